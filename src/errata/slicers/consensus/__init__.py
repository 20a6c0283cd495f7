"""`consensus`: several ways to look for slices, one honest choice among what they find. The default method."""

from .slicer import Consensus

__all__ = ["Consensus"]
