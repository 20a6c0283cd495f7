"""Errata finds, explains and fixes the systematic errors of a trained model."""

__version__ = "0.1.0"
