"""Barlow (Singla et al. 2021): paths of shallow trees over robust features."""

from .slicer import Barlow

__all__ = ["Barlow"]
