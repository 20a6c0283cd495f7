"""What a row looks like to a person: the protocol that pages and explanations read."""

from __future__ import annotations

import base64
from typing import Literal, Protocol, runtime_checkable

from .blocks import Array

JPEG_QUALITY = 85  # of thumbnails


@runtime_checkable
class Media(Protocol):
    """One image or one text per row of an Evaluation."""

    kind: Literal["image", "text"]

    def __len__(self) -> int: ...

    def rows(self, index: Array) -> Media:
        """The same media for some of the rows."""
        ...

    def thumbnail(self, i: int, px: int) -> bytes | None:
        """PNG or JPEG bytes of row i, at most `px` wide and high; None for text."""
        ...

    def text(self, i: int) -> str | None:
        """The text of row i; None for images."""
        ...


@runtime_checkable
class Fingerprinted(Protocol):
    """Images that can tell cheaply which of them are the same."""

    def fingerprints(self) -> list[bytes | None]:
        """For each row, the same bytes for the same image and for no other; None where it has none."""
        ...


def data_address(image: bytes) -> str:
    """PNG or JPEG bytes as a data URL: pages and explanations carry small images with them."""
    kind = "png" if image.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(image).decode()}"
