"""The command `errata`: argv -> one call -> exit code."""

from .audit import main

__all__ = ["main"]
