"""An audit as a page that people read."""

from __future__ import annotations

from .change import comparison_table
from .page import to_html
from .terminal import to_terminal

__all__ = ["comparison_table", "to_html", "to_terminal"]
