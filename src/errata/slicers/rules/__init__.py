"""`rules`: see `slicer` for the method, `leaks` for the columns that it leaves out."""

from .slicer import Rules

__all__ = ["Rules"]
