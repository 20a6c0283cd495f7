"""An audit as pages that people read: one saved file, or one page at a time for the app; and as text for a terminal.

`PAGES` and `PARTS` are the registries: pages by name, and parts of a page by kind of explanation.
"""

from __future__ import annotations

from .comparison_page import comparison_html
from .comparison_text import comparison_table
from .contract import Page, Part, Section, View
from .registry import PAGES, PARTS
from .saved import to_html
from .sheets import sheet
from .static_files import Script
from .terminal import to_terminal

__all__ = [
    "PAGES",
    "PARTS",
    "Page",
    "Part",
    "Script",
    "Section",
    "View",
    "comparison_html",
    "comparison_table",
    "sheet",
    "to_html",
    "to_terminal",
]
