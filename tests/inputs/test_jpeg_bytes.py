"""Small JPEGs are shown as they were stored: the same pixels, without what a camera wrote beside them."""

import io

import numpy as np
import pytest
from PIL import Image

from errata.inputs import ImageArrays, ImageBytes, ImagePaths
from errata.inputs.jpeg_bytes import without_metadata


def photograph(px=64, seed=0):
    """Smooth, with a little noise: PNG stores it badly."""
    rng = np.random.default_rng(seed)
    across, down = np.meshgrid(np.linspace(0, 3, px), np.linspace(0, 2, px))
    waves = np.stack([np.sin(across + c) * np.cos(down * (c + 1)) for c in range(3)], axis=-1)
    return np.clip(128 + 90 * waves + rng.normal(0, 6, waves.shape), 0, 255).astype(np.uint8)


def jpeg(pixels, **options):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", **options)
    return file.getvalue()


def pixels_of(data):
    return np.asarray(Image.open(io.BytesIO(data)))


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_rows": 1}, {"quality": 100}])
def test_the_pixels_of_a_small_jpeg_are_those_that_were_stored(options):
    data = jpeg(photograph(), **options)
    shown = ImageBytes([data]).thumbnail(0, 112)
    assert len(shown) <= len(data)
    assert (pixels_of(shown) == pixels_of(data)).all()


def test_nothing_of_the_camera_is_kept(tmp_path):
    exif = Image.Exif()
    exif[0x013B] = "Ada at home"
    data = jpeg(photograph(), exif=exif, comment=b"a secret place") + b"a film behind the image"
    (tmp_path / "a.jpg").write_bytes(data)
    for media in (ImageBytes([data]), ImagePaths(["a.jpg"], tmp_path)):
        shown = media.thumbnail(0, 112)
        assert shown.startswith(b"\xff\xd8")
        assert not any(words in shown for words in (b"Ada", b"secret", b"film", b"Exif"))
        assert (pixels_of(shown) == pixels_of(data)).all()


def test_a_jpeg_that_is_turned_too_large_or_in_four_inks_is_encoded_again():
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = ImageBytes([jpeg(photograph()[:32], exif=exif)]).thumbnail(0, 112)
    assert pixels_of(turned).shape[:2] == (64, 32)
    large = ImageBytes([jpeg(photograph(224))]).thumbnail(0, 112)  # a decoder may halve it to just 112
    assert pixels_of(large).shape == (112, 112, 3)
    file = io.BytesIO()
    Image.fromarray(photograph()).convert("CMYK").save(file, "JPEG")
    assert Image.open(io.BytesIO(ImageBytes([file.getvalue()]).thumbnail(0, 112))).mode == "RGB"


ENDLESS = (b"", b"\xff\xd8", b"\xff\xd8\xff\xe0\x00\x10JFIF", b"\x89PNG", jpeg(photograph())[:-2])


@pytest.mark.parametrize("data", ENDLESS)
def test_what_has_no_end_is_not_taken_apart(data):
    assert without_metadata(data) is None


def test_arrays_of_photographs_take_few_bytes_and_drawings_stay_exact():
    photographs = np.stack([photograph(seed=i) for i in range(3)])
    assert all(len(ImageArrays(photographs).thumbnail(i, 112)) < 4000 for i in range(3))
    drawing = np.zeros((1, 64, 64, 3), dtype=np.uint8)
    drawing[:, 10:20, 10:40] = (200, 90, 60)
    assert (pixels_of(ImageArrays(drawing).thumbnail(0, 112)) == drawing[0]).all()
