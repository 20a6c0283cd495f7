"""The two homes of the same pages: one saved file, or a server with all the data behind it."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from urllib.parse import quote

STYLES = ("tokens.css", "base.css", "parts.css")
SCRIPTS: dict[str, tuple[str, ...]] = {  # a module of a page -> the files it is made of
    "page.js": ("page.js",),
    "rank.js": ("rank.js",),
    "grid.js": ("grid.js",),
    "map.js": ("map.js",),
    "guess.js": ("hypothesis_grammar.js", "guess.js"),
    "saved.js": ("saved.js",),
}
SERVED_SCRIPTS: dict[str, tuple[str, ...]] = {  # that a saved page has no use for
    "decide.js": ("decide.js",),
    "annotate.js": ("outbox.js", "annotate.js"),
    "questions.js": ("outbox.js", "questions.js"),
    "sheet.js": ("outbox.js", "sheet.js"),
}
KEYS = (
    ("?", "this list"),
    ("j k", "next, previous slice"),
    ("1 to 5", "order by excess, gap, size, worst, fixable"),
    ("[ ]", "previous, next slice"),
    ("i x", "the focused row in, out of the slice"),
    ("/", "a guess of your own"),
    ("l + - 0", "on the map: draw a loop, zoom in, out, reset; n keeps the loop"),
)
SERVED_KEYS = (
    ("a r", "accept, reject the slice"),
    ("m e o", "merge it, give it another name, a note"),
    ("digits", "Annotate: the class, as its button says; 0 or n none of the above; i x in, out; j the next slice"),
    ("u s", "Annotate: undo, skip; d the first field of a questionnaire"),
)


@dataclass(frozen=True)
class Saved:
    """One file: every page is a part of it."""

    saved = True
    overview = "#overview"
    pages: tuple[tuple[str, str], ...] = (("Overview", "#overview"),)

    def slice(self, id: str) -> str:
        return f"#slice/{id}"

    def part(self, id: str, what: str) -> str:
        return f"#{id}-{what}"

    def row(self, id: str, row: object) -> str:
        return ""


@dataclass(frozen=True)
class Served:
    """A server: every page has an address."""

    saved = False
    overview = "/"
    pages: tuple[tuple[str, str], ...] = (
        ("Overview", "/"),
        ("Compare", "/compare"),
        ("Hypothesis", "/hypothesis"),
        ("Annotate", "/annotate"),
        ("Curate", "/curate"),
    )

    def slice(self, id: str) -> str:
        return f"/slice/{quote(id, safe='')}"

    def part(self, id: str, what: str) -> str:
        return f"#{id}-{what}"

    def row(self, id: str, row: object) -> str:
        return f"/slice/{quote(id, safe='')}/row/{quote(str(row), safe='')}"

    def static(self, name: str) -> str:
        return f"/static/{name}"


@dataclass(frozen=True)
class SavedRegions(Saved):
    """Of generated regions."""

    overview = "#main"
    pages: tuple[tuple[str, str], ...] = (("Regions", "#main"),)

    def region(self, id: str) -> str:
        return f"#{id}"


@dataclass(frozen=True)
class ServedRegions(Served):
    """Of generated regions."""

    pages: tuple[tuple[str, str], ...] = (("Regions", "/"), ("Annotate", "/annotate"), ("Result", "/result"))

    def region(self, id: str) -> str:
        return f"/region/{quote(id, safe='')}"

    slice = region


Home = Saved | Served


@cache
def static_text(name: str) -> str:
    """A style sheet, or a module made of its files."""
    folder = files("errata.report") / "static"
    return "\n".join(
        (folder / part).read_text(encoding="utf-8") for part in {**SCRIPTS, **SERVED_SCRIPTS}.get(name, (name,))
    )


def policy(scripts: list[str]) -> str:
    """What a saved page may do: show what is in it, and run these scripts and no others."""
    digests = (b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"
