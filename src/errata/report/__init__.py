"""An audit as a page that people read."""

from __future__ import annotations

from .page import to_html
from .terminal import to_terminal

__all__ = ["to_html", "to_terminal"]
