import io
import os
import subprocess

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from errata.core import InputError, Media
from errata.inputs import ImageArrays, ImageBytes, ImagePaths, Texts, decoding
from errata.inputs.media import as_media


def opened(data):
    return Image.open(io.BytesIO(data))


def encoded(pixels, form="PNG", **options):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form, **options)
    return file.getvalue()


def test_texts_keep_their_rows_and_show_missing_ones_as_empty():
    texts = Texts(["a", "b", None])
    assert isinstance(texts, Media)
    assert len(texts) == 3
    assert [texts.rows(np.array([2, 0])).text(i) for i in range(2)] == ["", "a"]
    assert texts.thumbnail(0, 32) is None
    assert Texts(np.array(["x", "y"])).text(1) == "y"


def test_pixel_art_is_enlarged_by_a_whole_number_without_new_colours():
    pixels = np.zeros((1, 8, 8), dtype=np.uint8)
    pixels[0, 0, 0] = 255
    picture = opened(ImageArrays(pixels).thumbnail(0, 36))
    assert picture.format == "PNG"
    assert picture.size == (32, 32)
    expected = np.kron(pixels[0], np.ones((4, 4), dtype=np.uint8))
    assert np.array_equal(np.asarray(picture), expected)


def test_large_pictures_shrink_to_fit():
    picture = opened(ImageArrays(np.full((1, 50, 200, 3), 0.5)).thumbnail(0, 64))
    assert picture.format == "JPEG"
    assert picture.size == (64, 16)
    assert abs(int(np.asarray(picture)[0, 0, 0]) - 128) <= 2


def test_rows_of_arrays_are_views_of_the_same_pictures():
    pixels = np.stack([np.full((4, 4), value, dtype=np.uint8) for value in (0, 100, 200)])
    some = ImageArrays(pixels).rows(np.array([2, 1, 0])).rows(np.array([0, 2]))
    assert isinstance(some, Media)
    assert len(some) == 2
    assert [int(np.asarray(opened(some.thumbnail(i, 4)))[0, 0]) for i in range(2)] == [200, 0]
    assert np.shares_memory(some._items, pixels)


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.zeros((2, 3, 8, 8), dtype=np.uint8), "channels last"),
        (np.zeros((2, 8, 8), dtype=np.int64), "uint8.*int64"),
        (np.stack([np.zeros((4, 4)), np.full((4, 4), 1.5)]), r"\[0, 1\]; row 1"),
        (np.full((1, 4, 4), np.nan), r"\[0, 1\]; row 0"),
    ],
)
def test_arrays_that_are_no_pictures_are_refused(images, words):
    with pytest.raises(InputError, match=words):
        ImageArrays(images)


def test_bytes_from_lists_and_arrow_columns_and_none_for_broken_ones():
    good = encoded(np.full((10, 10, 3), 7, dtype=np.uint8))
    items = [good, None, b"", b"not a picture", good[:40]]
    for source in (items, pa.chunked_array([items])):
        media = ImageBytes(source)
        assert opened(media.thumbnail(0, 20)).size == (20, 20)
        assert [media.thumbnail(i, 20) for i in range(1, 5)] == [None] * 4
        assert media.rows(np.array([4, 0])).thumbnail(1, 10) is not None
        assert media.text(0) is None


def test_paths_start_at_the_folder_and_missing_files_show_nothing(tmp_path):
    (tmp_path / "a.png").write_bytes(encoded(np.zeros((4, 4), dtype=np.uint8)))
    media = ImagePaths(np.array(["a.png", "gone.png", "", None], dtype=object), tmp_path)
    assert opened(media.thumbnail(0, 8)).size == (8, 8)
    assert [media.thumbnail(i, 8) for i in (1, 2, 3)] == [None] * 3
    assert media.rows(np.array([1, 0])).path(1) == tmp_path / "a.png"
    assert media.path(3) is None


def test_deep_transparent_and_turned_pictures_are_shown_right():
    deep = (np.arange(16).reshape(4, 4) * 4000).astype(np.uint16)
    shown = np.asarray(opened(ImageBytes([encoded(deep)]).thumbnail(0, 4)))
    assert (shown[0, 0], shown[-1, -1]) == (0, 255)
    assert len(np.unique(shown)) == 16
    clear = np.zeros((4, 4, 4), dtype=np.uint8)
    assert (np.asarray(opened(ImageBytes([encoded(clear)]).thumbnail(0, 4))) == 255).all()
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = encoded(np.zeros((100, 50, 3), dtype=np.uint8), "JPEG", exif=exif)
    assert opened(ImageBytes([turned]).thumbnail(0, 20)).size == (20, 10)


OTHER_FORMATS = ("EPS", "BMP", "TIFF", "ICO", "PCX", "TGA", "PPM", "SGI")


@pytest.mark.parametrize("form", OTHER_FORMATS)
def test_only_four_formats_are_opened(form, tmp_path, monkeypatch):
    """EPS would start Ghostscript; of the others nobody knows what a hostile file does."""

    def start(*args, **options):
        raise AssertionError("a program was started")

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(subprocess, "check_call", start)
    data = encoded(np.full((8, 8, 3), 9, dtype=np.uint8), form)
    (tmp_path / "x.png").write_bytes(data)
    assert ImageBytes([data]).thumbnail(0, 32) is None
    assert ImagePaths(["x.png"], tmp_path).thumbnail(0, 32) is None


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "GIF"])
def test_four_formats_are_opened(form):
    assert ImageBytes([encoded(np.full((8, 8, 3), 9, dtype=np.uint8), form)]).thumbnail(0, 32) is not None


def test_too_many_pixels_are_not_decoded(monkeypatch):
    """A PNG of one colour has few bytes for any size: the size is read before the pixels are."""
    data = encoded(np.zeros((300, 400), dtype=np.uint8))
    assert ImageBytes([data]).thumbnail(0, 32) is not None
    monkeypatch.setattr(decoding, "MOST_PIXELS", 300 * 400 - 1)
    assert ImageBytes([data]).thumbnail(0, 32) is None


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    assert ImagePaths(["pipe.png"], tmp_path).thumbnail(0, 32) is None


def test_files_of_other_formats_are_refused_by_name():
    with pytest.raises(InputError, match=r"JPEG, PNG, WebP or GIF files; got `b\.TIF` in row 1"):
        ImagePaths(["a.png", "b.TIF"])
    with pytest.raises(InputError, match=r"b\.bmp"):
        as_media(["a.bmp", "b.bmp"][::-1])
