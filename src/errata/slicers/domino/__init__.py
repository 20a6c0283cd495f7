"""Domino (Eyuboglu et al. 2022): an error-aware mixture model."""

from .slicer import Domino

__all__ = ["Domino"]
