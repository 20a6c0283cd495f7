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
