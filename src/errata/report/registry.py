"""The lists of pages and parts: the saved report and the app are built by iterating over them.

One more page is a module in `pages/` and its line here; one more part, a module in `parts/` and its line. Outside
packages join through the entry points `errata.pages` and `errata.parts`.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from ..core.extensions import load_extensions
from .contract import Page, Part
from .pages import annotate, class_tree, compare, curate, hypothesis, log, overview, problem, row, slice
from .pages import rows as all_rows
from .parts import classes, map, metrics, path, profile, rows, rule, sizes, training_rows, words

PAGES: dict[str, Page] = {  # the order of the navigation bar
    page.name: page
    for page in (
        overview.PAGE,
        slice.PAGE,
        class_tree.PAGE,
        row.PAGE,
        all_rows.PAGE,
        compare.PAGE,
        hypothesis.PAGE,
        annotate.PAGE,
        curate.PAGE,
        log.PAGE,
        problem.PAGE,
    )
}
PARTS: dict[str, Part] = {  # by kind of explanation; sections and `order` say where each stands
    part.kind: part
    for part in (
        rows.EXEMPLARS,
        rows.NEAR,
        rows.EXTREMES,
        profile.CLASSES,
        profile.METADATA,
        rule.RULE,
        metrics.METRICS,
        words.TOKENS,
        words.DESCRIPTIONS,
        words.CAPTIONS,
        map.MAP,
        path.PATH,
        classes.TREES,
        training_rows.COHERENCE,
        training_rows.RELABEL,
        sizes.SIZES,
    )
}


def all_pages() -> dict[str, Page]:
    """Our pages, and after them those that outside packages offer through the entry point `errata.pages`."""
    outside = load_extensions(entry_points(group="errata.pages"), ("name",)).values()
    return {**PAGES, **{page.name: page for page in outside if page.name not in PAGES}}


def all_parts() -> dict[str, Part]:
    """Our parts, and after them those that outside packages offer through the entry point `errata.parts`."""
    outside = load_extensions(entry_points(group="errata.parts"), ("kind",)).values()
    return {**PARTS, **{part.kind: part for part in outside if part.kind not in PARTS}}
