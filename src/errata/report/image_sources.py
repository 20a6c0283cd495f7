"""Where a page finds the image of a row: inside the file, or at an address of the server."""

from __future__ import annotations

from ..core import Evaluation, Media
from ..core.media import data_address

BUDGET = 1_500_000  # characters of data: addresses
PX = 112
FRAMES = (0xC0, 0xC1, 0xC2)  # segments of a JPEG that say how large it is
SMALL = 40  # an image with fewer pixels across is drawn with hard edges, so that they can be seen


class EmbeddedImages:
    """Thumbnails inside a saved page: each is stored once, and their sum stays under a budget."""

    def __init__(self, media: Media | None, budget: int | None = None):
        """media: of the audit. budget: characters of all images. Default: BUDGET."""
        self._media = media if media is not None and media.kind == "image" else None
        self._budget = BUDGET if budget is None else budget
        self._spent = 0
        self.symbols: dict[int, tuple[str, bool]] = {}  # row -> data: address, hard edges
        self.left_out: set[int] = set()
        self.missing: set[int] = set()
        self.inlined = [0, 0]  # images that came with the audit: drawn, and left out

    @property
    def requested(self) -> int:
        """How many images the page would show, with those that are left out or missing."""
        return len(self.symbols) + len(self.left_out) + len(self.missing) + sum(self.inlined)

    def inline(self, address: str | None) -> str | None:
        """A data: address that comes with the audit and is drawn where it is used; None where there is no room."""
        if address is None:
            return None
        if self._spent + len(address) > self._budget:
            self.inlined[1] += 1
            return None
        self._spent += len(address)
        self.inlined[0] += 1
        return address

    def symbol(self, row: int) -> str | None:
        """A reference to the row's image; None where there is none, or no room for it."""
        if self._media is None:
            return None
        if row not in self.symbols and row not in self.left_out and row not in self.missing:
            self._load(self._media, row)
        return f"#p{row}" if row in self.symbols else None

    def _load(self, media: Media, row: int) -> None:
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
        self._spent += len(address)
        self.symbols[row] = (address, is_small(thumbnail))


class LinkedImages:
    """Images of a server: an address each, and no budget."""

    def __init__(self, evaluation: Evaluation):
        self._has_images = evaluation.media is not None and evaluation.media.kind == "image"
        self._version = evaluation.fingerprint[:8]  # a browser must not keep another audit's images for this one's

    def symbol(self, row: int, px: int = PX) -> str | None:
        """The address of a row's thumbnail of `px` pixels; None where rows have no images."""
        return f"/thumb/{row}?px={px}&v={self._version}" if self._has_images else None

    def inline(self, address: str | None) -> str | None:
        """A data: address that comes with the audit, as it is."""
        return address


Images = EmbeddedImages | LinkedImages


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
