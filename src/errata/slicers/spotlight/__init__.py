"""Spotlight (d'Eon et al. 2022): contiguous regions of high loss in the representation space."""

from .slicer import Spotlight

__all__ = ["Spotlight"]
