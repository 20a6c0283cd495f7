"""Failure Directions (Jain et al. 2023): linear SVMs that separate right from wrong within a class."""

from .slicer import Directions

__all__ = ["Directions"]
