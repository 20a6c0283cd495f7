"""Defuse: from a classifier to regions in which it errs beyond its data, and to a corrected one.

The command and the pages of this room are imported where there is no torch, so what needs it is imported when it is
asked for.
"""

from typing import TYPE_CHECKING, Any

from ..core import require
from .settings import Settings

if TYPE_CHECKING:
    from .run import Defused, defuse

__all__ = ["Defused", "Settings", "defuse"]


def __getattr__(name: str) -> Any:
    if name in ("Defused", "defuse"):
        require("torch", "torch")
        from . import run

        return getattr(run, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
