"""Our safetensors files beside those of the library of that name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from errata.core import tensor_files as arrays
from errata.core.blocks import RowView
from support.bits import same_bits


@pytest.mark.parametrize("kind", ["texts", "multilabel", "swapped"])
def test_the_safetensors_library_reads_our_files(kind: str, saved: Any) -> None:
    audit, folder = saved(kind)
    paths = sorted(folder.rglob("*.safetensors"))
    assert len(paths) >= 2
    for path in paths:
        theirs, ours = safetensors.numpy.load_file(path), arrays.read(path)
        assert set(theirs) == set(ours)
        for name in ours:
            same_bits(ours[name], theirs[name])
    X = safetensors.numpy.load_file(folder / "evaluation" / "representations.safetensors")["deep"]
    assert np.array_equal(X, np.asarray(audit.evaluation.representations["deep"]))


TYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", ">f8", ">i4"]


def test_every_type_and_shape_is_read_by_both(tmp_path: Path) -> None:
    values = np.arange(-6, 6).reshape(4, 3)
    examples: dict[str, Any] = {f"type {name}": values.astype(name) for name in TYPES}
    examples |= {"scalar": np.array(2.5), "empty": np.empty((0, 3)), "narrow": np.empty((3, 0), dtype=np.float32)}
    examples |= {"turned": values.T.astype(np.float64), "stepped": values[::2, ::-1].astype(np.float32)}
    examples["view"] = RowView(values.astype(np.float64), np.array([2, 0]))
    arrays.write(tmp_path / "x.safetensors", examples)
    theirs = safetensors.numpy.load_file(tmp_path / "x.safetensors")
    for ours in (arrays.read(tmp_path / "x.safetensors"), arrays.read(tmp_path / "x.safetensors", mapped=True)):
        assert set(ours) == set(theirs) == set(examples)
        for name, array in examples.items():
            same_bits(np.asarray(array), ours[name])
            same_bits(ours[name], theirs[name])


def test_what_the_library_writes_is_read_here(tmp_path: Path) -> None:
    examples = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([True, False])}
    safetensors.numpy.save_file(examples, tmp_path / "x.safetensors", metadata={"who": "them"})
    for name, array in arrays.read(tmp_path / "x.safetensors").items():
        same_bits(examples[name], array)


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"\xff" * 8 + b"{}", "its header would have 18,446,744,073,709,551,615 bytes, more than the file"),
        ((1 << 45).to_bytes(8, "little") + b"{}", "its header would have 35,184,372,088,832 bytes"),
        ((1).to_bytes(8, "little") + b"7", "its header is not a table of arrays, but int"),
    ],
)
def test_a_broken_header_is_told_before_it_is_read(start: bytes, words: str, tmp_path: Path) -> None:
    """As a ValueError, of which everyone who opens such a file makes a sentence."""
    (tmp_path / "x.safetensors").write_bytes(start)
    with pytest.raises(ValueError, match=words):
        arrays.read(tmp_path / "x.safetensors")
