"""Thumbnails inside the page: each is stored once, and their sum stays under a budget."""

from __future__ import annotations

from ..core import Evaluation, Media
from ..core.media import data_address

BUDGET = 1_500_000  # characters of data: addresses
PX = 112
SMALL = 40  # a picture with fewer pixels across is drawn with hard edges, so that they can be seen


class Pictures:
    """Hands out a symbol for a row's picture, and remembers what it handed out."""

    def __init__(self, media: Media | None, budget: int = BUDGET):
        self._media = media if media is not None and media.kind == "image" else None
        self._budget, self._spent = budget, 0
        self.symbols: dict[int, tuple[str, bool]] = {}  # row -> data: address, hard edges
        self.left_out: set[int] = set()
        self.missing: set[int] = set()
        self.inlined = [0, 0]  # pictures that came with the audit: drawn, and left out

    @property
    def asked(self) -> int:
        return len(self.symbols) + len(self.left_out) + len(self.missing) + sum(self.inlined)

    def inline(self, address: str | None) -> str | None:
        """A data: address that comes with the audit and is drawn where it is used; None where there is no room."""
        if address is None:
            return None
        fits = self._spent + len(address) <= self._budget
        self._spent += len(address) if fits else 0
        self.inlined[0 if fits else 1] += 1
        return address if fits else None

    def symbol(self, row: int) -> str | None:
        """A reference to the row's picture; None where there is none, or no room for it."""
        if self._media is None:
            return None
        if row not in self.symbols and row not in self.left_out and row not in self.missing:
            self._load(self._media, row)
        return f"#p{row}" if row in self.symbols else None

    def _load(self, media: Media, row: int) -> None:
        try:
            found = media.thumbnail(row, PX)
        except (OSError, ValueError):  # a file that has gone or is broken must not cost the report
            found = None
        if found is None:
            self.missing.add(row)
            return
        address = data_address(found)
        if self._spent + len(address) > self._budget:
            self.left_out.add(row)
            return
        self._spent += len(address)
        self.symbols[row] = (address, is_small(found))


class Linked:
    """Pictures of a server: an address each, and no budget."""

    def __init__(self, evaluation: Evaluation):
        self._there = evaluation.media is not None and evaluation.media.kind == "image"
        self._version = evaluation.fingerprint[:8]  # a browser must not keep another audit's pictures for this one's

    def symbol(self, row: int, px: int = PX) -> str | None:
        return f"/thumb/{row}?px={px}&v={self._version}" if self._there else None

    def inline(self, address: str | None) -> str | None:
        return address


def is_small(picture: bytes) -> bool:
    """Read from a PNG's header; JPEGs this small are not worth the parsing."""
    return picture.startswith(b"\x89PNG") and int.from_bytes(picture[16:20], "big") < SMALL
