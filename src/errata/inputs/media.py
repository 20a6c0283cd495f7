"""What a person sees of a row: its text, or its image from an array, bytes or a file.

All leave the data where it is and hold an index into it, so that taking rows costs nothing.
"""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core import Array, InputError
from ..core.blocks import blocks
from ..core.media import JPEG_QUALITY
from .decoding import IMAGE_SUFFIXES, OTHER_SUFFIXES, open_image
from .jpeg_bytes import without_metadata

if TYPE_CHECKING:
    from PIL import Image

    from ..core import Media

PROBED = 64  # pixels by which arrays are told apart before they are read whole
LARGE_PNG = 4096  # bytes of a small image: a photograph, which JPEG stores in a fraction of them
ORIENTATION = 0x0112  # in EXIF: which way is up


class Texts:
    """One text a row."""

    kind: Literal["image", "text"] = "text"

    def __init__(self, texts: Sequence[str] | Array):
        # Objects, not numpy text: that would make every row as wide as the longest.
        self._texts: Array = texts if isinstance(texts, np.ndarray) else np.array(list(texts), dtype=object)

    def __len__(self) -> int:
        return len(self._texts)

    def rows(self, index: Array) -> Texts:
        """Some of the rows, in the order of `index`."""
        return Texts(self._texts[np.asarray(index)])

    def thumbnail(self, i: int, px: int) -> bytes | None:
        """Always None: a text has no image."""
        return None

    def text(self, i: int) -> str | None:
        """The text of row i."""
        value = self._texts[i]
        if isinstance(value, bytes):
            return value.decode("utf-8", errors="replace")
        if value is None:
            return ""
        return str(value).encode("utf-8", errors="replace").decode("utf-8")  # without halves of characters


class Images:
    """What all images share: an index into the data, and thumbnails that never raise."""

    kind: Literal["image", "text"] = "image"

    def __init__(self, items: Any, index: Array | None = None):
        self._items = items
        self._index: Array = np.arange(len(items)) if index is None else index

    def __len__(self) -> int:
        return len(self._index)

    def text(self, i: int) -> str | None:
        """Always None: an image has no text."""
        return None

    def thumbnail(self, i: int, px: int) -> bytes | None:
        """PNG or JPEG at most `px` wide and high; None where the image is missing or broken."""
        item = int(self._index[i])
        image = self._open(item, px)
        if image is None:
            return None
        stored = None
        if image.format == "JPEG" and max(image.size) <= px:
            stored = self._stored(item, px)
        return stored or _encode(image, px)

    def _stored(self, item: int, px: int) -> bytes | None:
        """The bytes of a JPEG that is small enough as it is: encoding it again makes it larger, or worse."""
        data = self._content(item)
        header = open_image(io.BytesIO(data)) if data else None
        if header is None or max(header.size) > px or header.mode not in ("L", "RGB"):
            return None
        return without_metadata(data) if header.getexif().get(ORIENTATION, 1) == 1 else None

    def image(self, i: int, px: int) -> Image.Image | None:
        """In colour and upright, for an encoder that wants `px`; None where the image is missing or broken."""
        from PIL import ImageOps

        image = self._open(int(self._index[i]), px)
        if image is None:
            return None
        return ImageOps.exif_transpose(_eight_bit(image)).convert("RGB")

    def fingerprints(self) -> list[bytes | None]:
        """The same bytes for the same image and for no other; None where it is missing. Only ties are read whole."""
        probes = [self._probe(int(item)) for item in self._index]
        times = Counter(probes)
        prints: list[bytes | None] = []
        for item, probe in zip(self._index, probes, strict=True):
            data = self._content(int(item)) if probe is not None and times[probe] > 1 else None
            if data is not None:
                probe = hashlib.blake2b(data, digest_size=16).digest()
            prints.append(probe)
        return prints

    def _probe(self, item: int) -> bytes | None:
        """Something cheap that differs between most images that differ; None where the image is missing."""
        return str(item).encode()

    def _content(self, item: int) -> Any:
        """The bytes of the image as it is stored; None where they cannot be read."""
        return None

    def _open(self, item: int, px: int) -> Image.Image | None:
        raise NotImplementedError


class ImageArrays(Images):
    """One array of images, memory-mapped or not: (n, h, w) or (n, h, w, 3); uint8, or floats in [0, 1]."""

    def __init__(self, images: Any, index: Array | None = None):
        images = np.asanyarray(images)
        if index is None:  # rows of an array that was checked are not checked again
            images = _checked_pixels(images)
        super().__init__(images, index)

    def rows(self, index: Array) -> ImageArrays:
        """Some of the rows, in the order of `index`."""
        return ImageArrays(self._items, self._index[np.asarray(index)])

    def _probe(self, item: int) -> bytes | None:
        pixels = self._items[item].reshape(-1)
        if pixels.min() == pixels.max():  # nothing to be seen
            return None
        return bytes(np.ascontiguousarray(pixels[:: max(1, len(pixels) // PROBED)]))

    def _content(self, item: int) -> Any:
        return np.ascontiguousarray(self._items[item])

    def _open(self, item: int, px: int) -> Image.Image | None:
        from PIL import Image

        pixels = np.asarray(self._items[item])
        if pixels.dtype != np.uint8:
            pixels = np.rint(pixels * 255.0).astype(np.uint8)
        return Image.fromarray(np.ascontiguousarray(pixels))


class ImageBytes(Images):
    """Bytes of a JPEG, PNG, WebP or GIF a row; None where there is none. An arrow column is taken as it is."""

    def rows(self, index: Array) -> ImageBytes:
        """Some of the rows, in the order of `index`."""
        return ImageBytes(self._items, self._index[np.asarray(index)])

    def _probe(self, item: int) -> bytes | None:
        data = self._content(item)
        return len(data).to_bytes(8, "big") if data else None

    def _content(self, item: int) -> Any:
        data = self._items[item]
        return data.as_py() if hasattr(data, "as_py") else data

    def _open(self, item: int, px: int) -> Image.Image | None:
        data = self._content(item)
        return _decode(io.BytesIO(data), px) if data else None


class ImagePaths(Images):
    """Images in files; relative paths start at `folder`."""

    def __init__(self, paths: Any, folder: str | Path = "", index: Array | None = None):
        if index is None:
            _check_suffixes(paths)
        super().__init__(paths, index)
        self._folder = Path(folder)

    def rows(self, index: Array) -> ImagePaths:
        """Some of the rows, in the order of `index`."""
        return ImagePaths(self._items, self._folder, self._index[np.asarray(index)])

    def path(self, i: int) -> Path | None:
        """The file of row i; None where the row names none."""
        return self._path(int(self._index[i]))

    def _path(self, item: int) -> Path | None:
        name = self._items[item]
        return self._folder / str(name) if name is not None and str(name) else None

    def _probe(self, item: int) -> bytes | None:
        path = self._path(item)
        try:
            return None if path is None else path.stat().st_size.to_bytes(8, "big")
        except (OSError, ValueError):  # the latter of a name that no file can have
            return None

    def _content(self, item: int) -> Any:
        path = self._path(item)
        try:
            return None if path is None or not path.is_file() else path.read_bytes()
        except (OSError, ValueError):
            return None

    def _open(self, item: int, px: int) -> Image.Image | None:
        path = self._path(item)
        return None if path is None else _decode(path, px)


class ImageObjects(Images):
    """Images of Pillow, one a row; None where there is none."""

    def rows(self, index: Array) -> ImageObjects:
        """Some of the rows, in the order of `index`."""
        return ImageObjects(self._items, self._index[np.asarray(index)])

    def _open(self, item: int, px: int) -> Image.Image | None:
        image: Image.Image | None = self._items[item]
        return None if image is None else image.copy()  # what encodes it may shrink it in place


def as_media(value: Any, folder: str | Path = "") -> Media | None:
    """What a person is to see of each row, from arrays of images, paths, encoded bytes, Pillow images or texts.

    value: (n, h, w) or (n, h, w, 3) pixels; or n paths of images, texts, JPEG or PNG bytes, or images. A list of
    texts that all end as image files do is a list of paths, relative to `folder`. A Media is returned as it is.
    """
    if value is None or hasattr(value, "thumbnail"):
        return value  # type: ignore[no-any-return]  # a Media of one's own
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return ImageArrays(value)
    items = list(value)
    if items and all(item is None or hasattr(item, "getbands") for item in items):
        return ImageObjects(items)
    if items and all(item is None or isinstance(item, bytes) for item in items):
        return ImageBytes(items)
    suffixes = (*IMAGE_SUFFIXES, *OTHER_SUFFIXES)
    if items and all(isinstance(item, Path) or str(item).lower().endswith(suffixes) for item in items):
        return ImagePaths(items, folder)
    if all(item is None or isinstance(item, str) for item in items):
        return Texts(items)
    kinds = ", ".join(sorted({type(item).__name__ for item in items})[:3])
    raise InputError(
        f"`media` must be images (arrays, paths, bytes or Pillow images) or texts, one a row; got a list of {kinds}"
    )


def _checked_pixels(images: Array) -> Array:
    if images.ndim == 4 and images.shape[3] == 1:
        images = images[..., 0]
    if images.ndim != 3 and not (images.ndim == 4 and images.shape[3] == 3):
        raise InputError(f"images must have shape (n, h, w) or (n, h, w, 3), channels last; got shape {images.shape}")
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise InputError(f"images must be uint8, or floats in [0, 1]; got {images.dtype}; convert them first")
    if images.dtype.kind == "f":
        for rows, block in blocks(images):
            good = ((block >= 0) & (block <= 1)).reshape(len(block), -1).all(axis=1)
            if not good.all():
                row = rows.start + int(np.flatnonzero(~good)[0])
                raise InputError(
                    f"images as floats must lie in [0, 1]; row {row} does not; undo the normalisation first"
                )
    return images


def _check_suffixes(paths: Any) -> None:
    for row, path in enumerate(paths):
        if str(path).lower().endswith(OTHER_SUFFIXES):
            raise InputError(
                f"images must be JPEG, PNG, WebP or GIF files; got `{path}` in row {row}; convert them, or leave it out"
            )


def _decode(source: Path | io.BytesIO, px: int) -> Image.Image | None:
    try:
        image = open_image(source)
        image.draft(None, (px, px))  # lets a large JPEG be decoded at a fraction of its size
        image.load()
    except Exception:  # on broken bytes Pillow's decoders raise almost anything
        return None
    return image


def _encode(image: Image.Image, px: int) -> bytes:
    """Small images are enlarged by a whole number, pixel by pixel, as PNG; large ones shrink to JPEG.

    A photograph that is neither is a JPEG too, where that takes less than half of the bytes.
    """
    from PIL import Image, ImageOps

    image = _eight_bit(image)
    largest = max(image.size)
    if largest <= px:
        factor = px // largest
        if factor > 1:
            image = image.resize((image.width * factor, image.height * factor), Image.Resampling.NEAREST)
        upright = ImageOps.exif_transpose(image)
        exact = _saved(upright, "PNG")
        if factor > 1 or len(exact) <= LARGE_PNG:
            return exact
        lossy = _saved(upright, "JPEG", quality=JPEG_QUALITY)
        return lossy if 2 * len(lossy) < len(exact) else exact
    image.thumbnail((px, px), Image.Resampling.LANCZOS)
    return _saved(ImageOps.exif_transpose(image), "JPEG", quality=JPEG_QUALITY)


def _eight_bit(image: Image.Image) -> Image.Image:
    """Grey or colour with eight bits a channel, on white where it is transparent."""
    from PIL import Image

    if image.mode in ("L", "RGB"):
        return image
    if image.mode[0] in "IF":  # 16 bits and more (scans, X-rays): stretched, since clipping would turn them white
        values = np.asarray(image, dtype=np.float64)
        low = values.min()
        high = values.max()
        return Image.fromarray(np.rint((values - low) * (255 / max(high - low, 1e-12))).astype(np.uint8))
    if "A" in image.getbands() or "transparency" in image.info:
        paper = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(paper, image.convert("RGBA"))
    return image.convert("RGB")


def _saved(image: Image.Image, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()
