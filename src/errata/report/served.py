"""An audit one page at a time, for a server: each from the audit and what people said of it."""

from __future__ import annotations

from ..core import Audit
from . import marks
from .contract import Backend, Page, Request, View
from .image_sources import LinkedImages
from .links import ServedLinks
from .registry import all_pages, all_parts
from .rendering import scripts_of, shared_values, templates
from .static_files import STYLES, Script


def served_view(audit: Audit, backend: Backend, sign_out: str = "") -> View:
    """What the pages of an app are given; sign_out: where one signs out, empty where nobody signs in."""
    pages = all_pages()
    links = ServedLinks(tuple((page.nav, page.paths[0]) for page in pages.values() if page.nav), sign_out=sign_out)
    return View(
        audit, LinkedImages(audit.evaluation), marks.error_axis(audit.slices), links, pages, all_parts(), backend
    )


def render_page(view: View, page: Page, request: Request) -> str:
    """The HTML of one page; request: the parameters of its address."""
    values = page.context(view, request)
    around = {
        **shared_values(view),
        "frame": "layout.html",
        "style_names": STYLES,
        "script_names": [script.name for script in scripts_of(view, page)],
        "here": page.nav,
        "image_notes": [],
    }
    template = templates(*view.packages).get_template(values.get("template", page.template))
    return template.render({**around, **values})


def scripts_by_name(view: View) -> dict[str, Script]:
    """Every script that a page of the app may ask for."""
    return {script.name: script for page in view.pages.values() for script in scripts_of(view, page)}
