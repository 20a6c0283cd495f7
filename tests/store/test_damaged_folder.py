"""What changed in a saved audit after it was written is told when it is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import errata
from errata import Audit, store
from errata.core import InputError
from errata.core import tensor_files as arrays
from errata.store import checksums


def test_one_byte_that_changed_is_told(saved: Any, tmp_path: Path) -> None:
    """In every file that an audit is read from, at any place."""
    audit, _ = saved("plain")
    store.save(audit, tmp_path / "audit")
    rng = np.random.default_rng(0)
    names = [path for path in (tmp_path / "audit").rglob("*") if path.is_file() and path.name != "checksums.json"]
    assert len(names) > 8
    for path in names:
        whole = path.read_bytes()
        for place in rng.integers(0, len(whole), 3):
            data = bytearray(whole)
            data[place] ^= 1 << int(rng.integers(0, 8))
            path.write_bytes(data)
            with pytest.raises(InputError, match=r"damaged|schema"):
                errata.load(tmp_path / "audit")
        path.write_bytes(whole)
    assert len(errata.load(tmp_path / "audit").slices) == len(audit.slices)


def test_a_file_that_is_gone_or_cut_is_told(saved: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit, _ = saved("plain")
    store.save(audit, tmp_path / "audit")
    monkeypatch.setattr(checksums, "LARGEST", 10)  # then sizes alone are compared
    (tmp_path / "audit" / "checksums.json").write_text(checksums.as_text(tmp_path / "audit"))
    path = tmp_path / "audit" / "evaluation" / "representations.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(InputError, match="not as it was written"):
        errata.load(tmp_path / "audit")
    path.unlink()
    with pytest.raises(InputError, match="is gone"):
        errata.load(tmp_path / "audit")


def _without_checksums(audit: Audit, folder: Path) -> Path:
    store.save(audit, folder)
    (folder / "checksums.json").unlink()
    return folder


@pytest.mark.parametrize("bad", [np.nan, -0.5, 1.5, np.inf])
def test_weights_that_are_none_are_told(bad: float, saved: Any, tmp_path: Path) -> None:
    folder = _without_checksums(saved("plain")[0], tmp_path / "audit")
    table = pq.read_table(folder / "memberships.parquet")
    weights = table.column(2).to_numpy().copy()
    weights[5] = bad
    pq.write_table(table.set_column(2, table.column_names[2], pa.array(weights)), folder / "memberships.parquet")
    with pytest.raises(InputError, match="not all numbers from 0 to 1"):
        errata.load(folder)


def test_missing_rows_and_nan_in_json_are_told(saved: Any, tmp_path: Path) -> None:
    folder = _without_checksums(saved("plain")[0], tmp_path / "audit")
    table = pq.read_table(folder / "memberships.parquet")
    pq.write_table(table.slice(1), folder / "memberships.parquet")
    with pytest.raises(InputError, match="239 rows where the evaluation has 240"):
        errata.load(folder)
    text = (folder / "audit.json").read_text()
    (folder / "audit.json").write_text(text.replace('"silence": ', '"nothing": NaN, "silence": '))
    with pytest.raises(InputError, match="holds NaN"):
        errata.load(folder)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"shape": [2, 3], "data_offsets": [0, 40]}, "has 40 bytes"),
        ({"shape": [2, 4], "data_offsets": [0, 48]}, "has 48 bytes"),
        ({"shape": [2, 3], "data_offsets": [8, 56]}, "ends behind the file"),
        ({"shape": [-2, -3], "data_offsets": [0, 48]}, "has the shape"),
        ({"shape": [2, 3], "data_offsets": [-48, 0]}, "has the shape"),
        ({"shape": [2.0, 3], "data_offsets": [0, 48]}, "has the shape"),
        ({"shape": [10**18, 10**18], "data_offsets": [0, 48]}, "has 48 bytes"),
    ],
)
def test_arrays_lie_in_their_file(entry: dict[str, Any], words: str, tmp_path: Path) -> None:
    header = json.dumps({"x": {"dtype": "F64", **entry}}).encode()
    (tmp_path / "x.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(48))
    with pytest.raises(ValueError, match=words):
        arrays.read(tmp_path / "x.safetensors", mapped=True)
