"""Hundreds of bad inputs through the command, made by putting every wrong kind of array into every place."""

from __future__ import annotations

import io
import os
import struct
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.command import run

N = 60


def good() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, N)
    positive = np.where(rng.random(N) < 0.2, 1 - labels, labels) * 0.8 + 0.1
    return {
        "embedding": rng.normal(size=(N, 3)),
        "labels": labels,
        "probs": np.stack([1 - positive, positive], axis=1),
        "predictions": (positive > 0.5).astype(int),
        "losses": rng.random(N),
        "ids": np.arange(N),
        "groups": np.arange(N) // 2,
        "metadata:age": rng.random(N),
    }


TEXT = np.array(["a", "b"] * (N // 2))
# kind of array -> (the array, the places where it is wrong)
EVERYWHERE = ("embedding", "labels", "probs", "predictions", "losses", "ids", "groups", "metadata:age")
NUMBERS = ("embedding", "labels", "probs", "predictions", "losses")
WRONG: dict[str, tuple[Any, tuple[str, ...]]] = {
    "complex": (np.arange(N) * 1j, EVERYWHERE),
    "records": (np.zeros(N, dtype=[("a", int), ("b", float)]), EVERYWHERE),
    "empty records": (np.zeros(N, dtype=[]), EVERYWHERE),
    "void": (np.zeros(N, dtype="V8"), EVERYWHERE),
    "objects": (np.array([{}, None] * (N // 2), dtype=object), EVERYWHERE),
    "months": (np.arange(N).astype("timedelta64[M]"), (*NUMBERS, "ids", "metadata:age")),
    "seconds": (np.arange(N).astype("timedelta64[s]"), (*NUMBERS, "ids", "metadata:age")),
    "attoseconds": (np.arange(N).astype("datetime64[as]"), (*NUMBERS, "ids", "metadata:age")),
    "years beyond time": (np.full(N, 2**62).astype("datetime64[Y]"), (*NUMBERS, "ids", "metadata:age")),
    "days": (np.arange(N).astype("datetime64[D]"), (*NUMBERS, "ids")),
    "lone surrogates": (np.array(["a\ud800", "b"] * (N // 2)), EVERYWHERE),
    "broken bytes": (np.array([b"\xff", b"b"] * (N // 2)), EVERYWHERE),
    "a cube": (np.zeros((N, 2, 2)), EVERYWHERE),
    "no columns": (np.zeros((N, 0)), EVERYWHERE),
    "a single value": (np.array(3.0), EVERYWHERE),
    "no rows": (np.zeros(0), EVERYWHERE),
    "a row more": (np.zeros(N + 1), EVERYWHERE),
    "a row less": (np.zeros(N - 1), EVERYWHERE),
    "NaN": (np.full(N, np.nan), (*NUMBERS, "ids", "groups")),
    "infinite": (np.full(N, np.inf), (*NUMBERS, "ids", "groups")),
    "1e99": (np.where(np.arange(N) % 7 == 0, 1e99, 1), (*NUMBERS, "ids")),
    "1e300": (np.where(np.arange(N) % 7 == 0, -1e300, 1), (*NUMBERS, "ids")),
    "text": (TEXT, ("embedding", "labels", "predictions", "losses", "probs")),
    "the largest": (np.full(N, 2**64 - 1, dtype=np.uint64), ("labels", "predictions", "probs", "ids")),
    "the smallest": (np.full(N, -(2**63)), ("labels", "predictions", "probs", "ids")),
    "a fraction": (np.full(N, 0.5), ("labels", "predictions", "ids")),
    "one value": (np.zeros(N), ("ids", "groups")),
    "threes": (np.full((N, 2), 3.0), ("labels", "probs", "ids", "groups", "losses", "predictions", "metadata:age")),
}


def npy(header: str, data: bytes = bytes(8 * N)) -> bytes:
    """A file of one array with a header of one's own."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def described(descr: str = "'<i8'", order: str = "False", shape: str = f"({N},)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}"


WHOLE = npy(described())
MEMBERS: dict[str, bytes] = {
    "nothing": b"",
    "text": b"hello",
    "half of a magic": b"\x93NUM",
    "only a magic": b"\x93NUMPY",
    "version 9": b"\x93NUMPY\x09\x00" + bytes(100),
    "no header": b"\x93NUMPY\x01\x00\x00\x00",
    "a header that is cut": WHOLE[:40],
    "data that are cut": WHOLE[:-8],
    "no data": npy(described(), b""),
    "a list": npy("[1, 2]"),
    "code": npy("__import__('os').getcwd()"),
    "deep": npy("(" * 9000),
    "deep lists": npy("[" * 300 + "]" * 300),
    "open text": npy("{'descr': '"),
    "nulls": npy("\0" * 50),
    "no keys": npy("{}"),
    "one key more": npy(described()[:-1] + ", 'x': 1}"),
    "no type": npy(described("None")),
    "an unknown type": npy(described("'<q99'")),
    "a type that is a number": npy(described("7")),
    "an object": npy(described("'|O'")),
    "records in records": npy(described("[('a', [('b', '|O')])]")),
    "an order that is text": npy(described(order="'yes'")),
    "no shape": npy(described(shape="None")),
    "a shape that is a number": npy(described(shape="60")),
    "a negative shape": npy(described(shape="(-60,)")),
    "a fractional shape": npy(described(shape="(60.0,)")),
    "a shape of text": npy(described(shape="('60',)")),
    "petabytes": npy(described(shape="(1000000000000000,)")),
    "more than all numbers": npy(described(shape="(4294967296, 4294967296, 4)")),
    "40 axes": npy(described(shape="(1,) * 40")),
    "65 axes": npy(described(shape="(" + "1," * 65 + ")")),
    "a long number": npy(described(shape="(" + "9" * 4000 + ",)")),
}
FLAGS = {"encrypted": (6, 8, 1), "an unknown compression": (8, 10, 99)}  # place in both headers of a zip, and the value


def wrong_arrays() -> Iterator[tuple[str, dict[str, Any]]]:
    for kind, (array, places) in WRONG.items():
        for place in places:
            values = array
            if place == "embedding" and array.ndim == 1 and len(array) >= N - 1:
                values = np.stack([array] * 2, axis=1)
            yield f"{kind} as {place}", {**good(), place: values}


ARRAYS = dict(wrong_arrays())


def refused(folder: Path) -> str:
    """Audit x.npz: exit 2, one line, nothing written; return the line."""
    before = sorted(folder.iterdir())
    code, out, err = run("audit", "x.npz", "-o", "out", "--no-self-test", "--no-map", folder=folder)
    assert code == 2, (out, err)
    assert (err.count("\n"), err[:8]) == (1, "errata: "), err
    assert sorted(folder.iterdir()) == before
    return str(err)


@pytest.mark.parametrize("name", ARRAYS)
def test_a_wrong_array_is_refused(name: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **ARRAYS[name])
    refused(tmp_path)


@pytest.mark.parametrize("place", ["labels", "embedding"])
@pytest.mark.parametrize("name", MEMBERS)
def test_a_damaged_member_is_refused(name: str, place: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for key, array in good().items():
            file = io.BytesIO()
            np.save(file, array)
            archive.writestr(f"{key}.npy", MEMBERS[name] if key == place else file.getvalue())
    refused(tmp_path)


@pytest.mark.parametrize("name", FLAGS)
def test_an_archive_that_nobody_can_open_is_refused(name: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **good())
    data = bytearray((tmp_path / "x.npz").read_bytes())
    for sign, offset in zip((b"PK\x03\x04", b"PK\x01\x02"), FLAGS[name][:2], strict=True):
        place = data.find(sign)
        while place >= 0:
            data[place + offset] |= FLAGS[name][2]
            place = data.find(sign, place + 4)
    (tmp_path / "x.npz").write_bytes(data)
    assert "damaged" in refused(tmp_path)


CLASSES = {
    "below 0": np.where(np.arange(N) == 7, -1, 1),
    "-1 and 1": np.where(np.arange(N) % 2, -1, 1),
    "two thousand million": np.where(np.arange(N) == 7, 2_000_000_000, 1),
    "the largest": np.full(N, 2**64 - 1, dtype=np.uint64),
    "the smallest": np.full(N, -(2**63)),
    "1e30": np.where(np.arange(N) == 7, 1e30, 1.0),
}


@pytest.mark.parametrize("place", ["labels", "predictions"])
@pytest.mark.parametrize("name", CLASSES)
def test_a_class_that_is_none_is_refused_without_probabilities(name: str, place: str, tmp_path: Path) -> None:
    """Tables with a line for each class would have no room."""
    arrays = {key: good()[key] for key in ("embedding", "labels", "predictions")}
    np.savez(tmp_path / "x.npz", **{**arrays, place: CLASSES[name]})
    sentence = refused(tmp_path)
    assert "numbered from 0" in sentence
    assert "--task regression" in sentence
    assert str(int(CLASSES[name][7])) in sentence


@pytest.mark.parametrize("place", ["labels", "predictions", "both"])
def test_no_rows_are_refused_without_probabilities(place: str, tmp_path: Path) -> None:
    """What labels and predictions are is seen from their values, of which there are none."""
    empty = dict.fromkeys(("labels", "predictions") if place == "both" else (place,), np.zeros(0))
    np.savez(tmp_path / "x.npz", **{**{key: good()[key] for key in ("embedding", "labels", "predictions")}, **empty})
    refused(tmp_path)


def test_very_many_classes_take_no_longer(tmp_path: Path) -> None:
    arrays = {key: good()[key] for key in ("embedding", "labels", "predictions")}
    arrays["labels"][7] = 999_999
    np.savez(tmp_path / "x.npz", **arrays)
    words = ["audit", "x.npz", "-o", "out", "--no-self-test", "--no-map", "--method", "gmm"]
    start = time.process_time()
    assert run(*words, folder=tmp_path).code == 0
    assert time.process_time() - start < 20


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet", ".jsonl", ".json", ".safetensors"])
def test_a_pipe_is_no_file(suffix: str, tmp_path: Path) -> None:
    """It would be waited for."""
    os.mkfifo(tmp_path / f"x{suffix}")
    code, _, err = run("audit", f"x{suffix}", "-o", "out", folder=tmp_path)
    assert (code, err.count("\n")) == (2, 1)


def test_a_name_that_cannot_be_saved_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **{**good(), "embedding:__metadata__": good()["embedding"]})
    assert "rename it" in refused(tmp_path)


def test_the_good_arrays_are_good(tmp_path: Path) -> None:
    """Else all could be refused for one reason."""
    np.savez(tmp_path / "x.npz", **good())
    assert run("audit", "x.npz", "-o", "out", "--no-self-test", "--no-map", folder=tmp_path).code == 0


def test_flipped_bytes_are_refused_or_harmless(tmp_path: Path) -> None:
    """Never a traceback, whichever bytes of an archive are others."""
    np.savez(tmp_path / "x.npz", **good())
    whole = (tmp_path / "x.npz").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(40):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), rng.integers(1, 5)):
            data[place] = rng.integers(0, 256)
        (tmp_path / "x.npz").write_bytes(data)
        code, _, err = run("by", "x.npz", "--column", "age", folder=tmp_path)
        assert code in (0, 2), (code, err)
