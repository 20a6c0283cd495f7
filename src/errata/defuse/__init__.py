"""Defuse: from a classifier to regions of generated images that it gets wrong, and to a corrected classifier.

By the flow: settings, images (a file of them), search (vae, identify, distil with mixture, regions), labels and votes,
correction (sweep, novelty), run; then view, pages and server, and the command. The folder of a run is in `stages`.

The command and the pages are imported where there is no torch, so what needs it is imported when it is asked for.
"""

from typing import TYPE_CHECKING, Any

from ..core import require
from .settings import DefuseSettings

if TYPE_CHECKING:
    from .run import Defused, defuse

__all__ = ["DefuseSettings", "Defused", "defuse"]


def __getattr__(name: str) -> Any:
    if name in ("Defused", "defuse"):
        require("torch", "torch")
        from . import run

        return getattr(run, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
