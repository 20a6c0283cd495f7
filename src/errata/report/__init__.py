"""An audit as pages that people read: one saved file, or one page at a time for the app; and as text for a terminal.

`PAGES` and `PARTS` are the registries: pages by name, and parts of a page by kind of explanation.
"""

from ..core.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
