"""An audit as one file that needs nothing else: all pages that can do without a server."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from ..core import Audit
from . import marks, script_data
from .contract import NoBackend, Page, Request, View
from .image_sources import EmbeddedImages, image_notes
from .links import SavedLinks
from .registry import all_pages, all_parts
from .rendering import scripts_of, shared_values, templates
from .static_files import STYLES, file_text, policy, script_text


def to_html(audit: Audit) -> str:
    """One self-contained file: no request, light and dark; complete without script."""
    images = EmbeddedImages(audit.evaluation.media)
    view = saved_view(audit, images)
    pages = [page for page in view.pages.values() if page.saved is not None]
    # All values before any template: how many images are left out is known at the end, and said on the first page.
    copies = [
        (page, request, page.context(view, request))
        for page in pages
        if page.saved is not None
        for request in page.saved(audit)
    ]
    shared = {**shared_values(view), "image_notes": image_notes(images)}
    bodies = [_body(view, page, request, {**shared, **values}) for page, request, values in copies]
    scripts = [script_text(script) for script in dict.fromkeys(s for page in pages for s in scripts_of(view, page))]
    values = {
        **shared,
        "title": copies[0][2]["title"],
        "here": pages[0].nav,
        "bodies": bodies,
        "images": images.symbols,
        "data": _data(view, pages),
        "styles": Markup("\n".join(map(file_text, STYLES))),
        "scripts": [Markup(text) for text in scripts],
        "policy": policy(scripts),
    }
    return templates(*view.packages).get_template("report.html").render(values)


def saved_view(audit: Audit, images: EmbeddedImages) -> View:
    """What the pages of a saved report are given."""
    pages = all_pages()
    links = SavedLinks(tuple((page.nav, f"#{page.anchor({})}") for page in pages.values() if page.nav and page.saved))
    return View(audit, images, marks.error_axis(audit.slices), links, pages, all_parts(), NoBackend(audit))


def _body(view: View, page: Page, request: Request, values: dict[str, Any]) -> Markup:
    template = templates(*view.packages).get_template(values.get("template", page.template))
    return Markup(template.render({**values, "frame": "view.html", "anchor": page.anchor(request)}))


def _data(view: View, pages: list[Page]) -> dict[str, Markup]:
    """What the scripts of a saved page read, by the id of its element."""
    texts = {}
    for page in pages:
        if page.saved_data is not None:
            texts.update({id: script_data.script_json(value) for id, value in page.saved_data(view).items()})
    return texts
