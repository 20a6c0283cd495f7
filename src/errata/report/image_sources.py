"""Where a page finds the image of a row: inside the file, or at an address of the server."""

from __future__ import annotations

from base64 import b64decode

from ..core import Evaluation, Media
from ..core.media import data_address
from . import sentences

BUDGET = 1_500_000  # characters of data: addresses
PX = 112
FRAMES = (0xC0, 0xC1, 0xC2)  # segments of a JPEG that say how large it is
HEADER = 44  # characters of base64 that hold a PNG's size
SMALL = 40  # an image with fewer pixels across is drawn with hard edges, so that they can be seen


class EmbeddedImages:
    """Thumbnails inside a saved page: each is stored once, and their sum stays under a budget."""

    def __init__(self, media: Media | None, budget: int | None = None):
        """media: of the audit. budget: characters of all images. Default: BUDGET."""
        self._media = media if media is not None and media.kind == "image" else None
        self._budget = BUDGET if budget is None else budget
        self._spent = 0
        self.symbols: dict[str, tuple[str, bool]] = {}  # id of its element -> data: address, hard edges
        self._inlined: dict[str, str | None] = {}  # data: address -> the id of its element; None: left out
        self.left_out: set[int] = set()
        self.missing: set[int] = set()
        self.inline_left_out = 0  # images that came with the audit

    @property
    def requested(self) -> int:
        """How many images the page would show, with those that are left out or missing."""
        return len(self.symbols) + len(self.left_out) + len(self.missing) + self.inline_left_out

    def inline(self, address: str | None, *, spare: bool = False) -> str | None:
        """A reference to an image that comes with the audit as a data: address; None where there is no room.

        spare: take no room for one that nothing else on the page shows.
        """
        if address is None or (spare and address not in self._inlined):
            return None
        if address not in self._inlined:
            self._inlined[address] = self._add_inline(address)
        id = self._inlined[address]
        return None if id is None else f"#{id}"

    def _add_inline(self, address: str) -> str | None:
        if self._spent + len(address) > self._budget:
            self.inline_left_out += 1
            return None
        return self._add(f"v{len(self._inlined)}", address, is_small_address(address))

    def symbol(self, row: int) -> str | None:
        """A reference to the row's image; None where there is none, or no room for it."""
        if self._media is None:
            return None
        id = f"p{row}"
        if id not in self.symbols and row not in self.left_out and row not in self.missing:
            self._load(self._media, row, id)
        return f"#{id}" if id in self.symbols else None

    def _load(self, media: Media, row: int, id: str) -> None:
        try:
            thumbnail = media.thumbnail(row, PX)
        except (OSError, ValueError):  # a file that has gone or is broken must not cost the report
            thumbnail = None
        if thumbnail is None:
            self.missing.add(row)
            return
        address = data_address(thumbnail)
        if self._spent + len(address) > self._budget:
            self.left_out.add(row)
            return
        self._add(id, address, is_small(thumbnail))

    def _add(self, id: str, address: str, hard: bool) -> str:
        self._spent += len(address)
        self.symbols[id] = (address, hard)
        return id


class LinkedImages:
    """Images of a server: an address each, and no budget."""

    def __init__(self, evaluation: Evaluation):
        self._has_images = evaluation.media is not None and evaluation.media.kind == "image"
        self._version = evaluation.fingerprint[:8]  # a browser must not keep another audit's images for this one's

    def symbol(self, row: int, px: int = PX) -> str | None:
        """The address of a row's thumbnail of `px` pixels; None where rows have no images."""
        return f"/thumb/{row}?px={px}&v={self._version}" if self._has_images else None

    def inline(self, address: str | None, *, spare: bool = False) -> str | None:
        """A data: address that comes with the audit, as it is."""
        return address


Images = EmbeddedImages | LinkedImages


def is_small_address(address: str) -> bool:
    """Whether the image of a data: address is a PNG with few pixels."""
    return is_small(b64decode(address.partition(",")[2][:HEADER]))


def image_notes(images: EmbeddedImages) -> list[str]:
    """How many images a saved page has not, and why."""
    notes = [
        sentences.images_left_out(len(images.left_out) + images.inline_left_out, images.requested, BUDGET / 1e6),
        sentences.images_missing(len(images.missing), images.requested),
    ]
    return [note for note in notes if note]


def is_small(image: bytes) -> bool:
    """Whether an image has few pixels, by its header."""
    if image.startswith(b"\x89PNG"):
        return int.from_bytes(image[16:20], "big") < SMALL
    return 0 < _jpeg_width(image) < SMALL


def _jpeg_width(image: bytes) -> int:
    """From the first segment that names it; 0 where there is none."""
    at = 2
    while at + 9 < len(image) and image[at] == 0xFF:
        if image[at + 1] in FRAMES:
            return int.from_bytes(image[at + 7 : at + 9], "big")
        at += 2 + int.from_bytes(image[at + 2 : at + 4], "big")
    return 0
