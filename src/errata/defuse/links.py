"""Addresses of the pages of a run: within one saved file, or on a server."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from ..report.links import SavedLinks, ServedLinks


@dataclass(frozen=True)
class SavedRegions(SavedLinks):
    """One file: every region is a part of it."""

    pages: tuple[tuple[str, str], ...] = (("Regions", "#main"),)
    overview: str = "#main"

    def region(self, id: str) -> str:
        """A region."""
        return f"#{id}"


@dataclass(frozen=True)
class ServedRegions(ServedLinks):
    """A server: every region has an address."""

    pages: tuple[tuple[str, str], ...] = (("Regions", "/"), ("Annotate", "/annotate"), ("Result", "/result"))

    def region(self, id: str) -> str:
        """The page of a region."""
        return f"/region/{quote(id, safe='')}"

    slice = region
