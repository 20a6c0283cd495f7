"""From values to HTML: the templates, and what every page of an audit has."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from . import marks, numbers, script_data
from .contract import Page, View
from .glossary import GLOSSARY
from .static_files import PAGE, PERSON, SAVED, Script

if TYPE_CHECKING:
    from jinja2 import Environment

KEYS = (("?", "this list"), ("g", "what the words mean"), ("j k", "next, previous slice or row"))


@cache
def templates(*packages: str) -> Environment:
    """The templates of `packages`, which bring pages of their own, and after them those of this room."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    others = [package for package in packages if package != "errata.report"]
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates") for package in (*others, "errata.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["verdict_classes"] = marks.VERDICT_CLASSES
    return environment


def shared_values(view: View) -> dict[str, Any]:
    """What every page of an audit has."""
    audit = view.audit
    media = audit.evaluation.media
    kind = None if media is None else media.kind
    model = audit.evaluation.origin.model or "A model"
    name = f"{model} on {numbers.counted(len(audit.evaluation), 'row')}"
    if view.links.saved:
        name += " · Saved page"
    return {
        "links": view.links,
        "axis": view.axis,
        "audit_name": name,
        "outcome": audit.overall[0][1].outcome,
        "media": kind,
        "keys": _keys(view),
        "fingerprint": audit.evaluation.fingerprint,
        "numbers": numbers,
        "glossary": GLOSSARY,
        "hypothesis_example": script_data.example_condition(audit),
    }


def _keys(view: View) -> list[tuple[str, str]]:
    lines = list(KEYS)
    for page in view.pages.values():
        if page.saved is not None or not view.links.saved:
            lines += page.keys
    if not view.links.saved:
        lines += [line for page in view.pages.values() for line in page.served_keys]
    return lines


def scripts_of(view: View, page: Page) -> list[Script]:
    """The scripts of a page and of its parts, for the saved report or for the app."""
    scripts = [PAGE, PERSON, SAVED, *page.scripts]
    scripts += [script for part in view.parts.values() if part.section.page == page.name for script in part.scripts]
    if view.links.saved:
        return [script for script in dict.fromkeys(scripts) if script.saved]
    return [script for script in dict.fromkeys(scripts) if script.served]
