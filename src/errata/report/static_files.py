"""Style sheets and scripts of pages: which files they are made of, and what a saved page may run."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

STYLES = ("tokens.css", "base.css", "parts.css", "rows.css")


@dataclass(frozen=True)
class Script:
    """A JavaScript module of pages.

    name: of the module. files: what it is made of, one after the other; "package:file" is a file in the folder
    `static` of another package. saved, served: whether the saved report and the app have it.
    """

    name: str
    files: tuple[str, ...]
    saved: bool = True
    served: bool = True


PAGE = Script("page.js", ("page.js",))
PERSON = Script("person.js", ("person.js",), saved=False)
SAVED = Script("saved.js", ("person.js", "saved.js"), served=False)


@cache
def file_text(name: str) -> str:
    """A file of a `static` folder: "base.css" is ours, "package:file" another package's."""
    package, _, file = name.rpartition(":")
    return (files(package or "errata.report") / "static" / file).read_text(encoding="utf-8")


@cache
def script_text(script: Script) -> str:
    """A script, made of its files."""
    return "\n".join(map(file_text, script.files))


def policy(scripts: list[str]) -> str:
    """What a saved page may do: show what is in it, and run these scripts and no others."""
    digests = (b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"
