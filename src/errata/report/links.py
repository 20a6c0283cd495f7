"""Addresses of pages: within one saved file, or on a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from urllib.parse import quote


def page_keys(pages: Sequence[tuple[str, str]]) -> list[str]:
    """The letter that opens each page of the bar, with Shift: the first of its name that no page before it has.

    Capitals: lower-case letters are what pages have keys for themselves.
    """
    letters: list[str] = []
    for name, _ in pages:
        free = (letter for letter in name.upper() if letter in ascii_uppercase and letter not in letters)
        letters.append(next(free, ""))
    return letters


@dataclass(frozen=True)
class SavedLinks:
    """One file: every page is a part of it.

    pages: the navigation bar, (name, address) each. overview: where the brand name leads. sign_out: nowhere.
    """

    pages: tuple[tuple[str, str], ...] = (("Overview", "#overview"),)
    overview: str = "#overview"
    rows: str = "#rows"
    sign_out: str = ""
    saved = True

    @property
    def page_keys(self) -> list[str]:
        """The letter of each page of the bar."""
        return page_keys(self.pages)

    def slice(self, id: str) -> str:
        """The page of a slice."""
        return f"#slice/{id}"

    def class_page(self, id: str) -> str:
        """The page of a class, or of another group that has a tree."""
        return f"#class/{id}"

    def part_ids(self, id: str) -> str:
        """What the ids of the sections of a slice's page start with: one file holds all slices."""
        return f"slice/{id}/"

    def members(self, id: str) -> str:
        """All rows of a slice."""
        return f"#rows?slice={quote(id, safe='')}"

    def row(self, slice_id: str, row_id: object) -> str:
        """The page of a row: a saved file has none."""
        return ""


@dataclass(frozen=True)
class ServedLinks:
    """A server: every page has an address.

    pages: the navigation bar, (name, address) each. overview: where the brand name leads. sign_out: where one signs
    out; empty where nobody signs in.
    """

    pages: tuple[tuple[str, str], ...] = (("Overview", "/"),)
    overview: str = "/"
    rows: str = "/rows"
    sign_out: str = ""
    saved = False

    @property
    def page_keys(self) -> list[str]:
        """The letter of each page of the bar."""
        return page_keys(self.pages)

    def slice(self, id: str) -> str:
        """The page of a slice."""
        return f"/slice/{quote(id, safe='')}"

    def class_page(self, id: str) -> str:
        """The page of a class, or of another group that has a tree."""
        return f"/class/{quote(id, safe='')}"

    def part_ids(self, id: str) -> str:
        """What the ids of the sections of a slice's page start with: nothing, so that `/slice/s1#map` is the map."""
        return ""

    def members(self, id: str) -> str:
        """All rows of a slice."""
        return f"/rows?slice={quote(id, safe='')}"

    def row(self, slice_id: str, row_id: object) -> str:
        """The page of a row, as a member of a slice."""
        return f"/slice/{quote(slice_id, safe='')}/row/{quote(str(row_id), safe='')}"

    def static(self, name: str) -> str:
        """A style sheet or a script."""
        return f"/static/{name}"


Links = SavedLinks | ServedLinks
