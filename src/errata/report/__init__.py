"""An audit as a page that people read."""

from __future__ import annotations

from .comparison_text import comparison_table
from .page import to_html
from .sheets import sheet
from .terminal import to_terminal

__all__ = ["comparison_table", "sheet", "to_html", "to_terminal"]
