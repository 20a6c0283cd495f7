"""Folders and patterns of files as one table, and arrays that stay on disk: the same rows as one file would give."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import safetensors.numpy

from errata.core import InputError, scratch
from errata.inputs import datasets, read
from errata.inputs.class_order import InputWarning

N, D = 1000, 5


def columns(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, N)
    positive = rng.random(N).astype(np.float32)
    return {
        "labels": labels,
        "probs": np.stack([1 - positive, positive], axis=1),
        "embedding": rng.normal(size=(N, D)).astype(np.float32),
        "metadata:age": rng.integers(1, 90, N),
        "site": np.array(["north", "south"])[rng.integers(0, 2, N)],
    }


def as_table(rows: slice = slice(None)) -> pa.Table:
    return pa.table({name: values[rows].tolist() for name, values in columns().items()})


def write_parts(folder: Path, suffix: str = ".parquet", parts: int = 4) -> Path:
    folder.mkdir()
    for i in range(parts):
        table = as_table(slice(i * N // parts, (i + 1) * N // parts))
        file = folder / f"part-{i}{suffix}"
        if suffix == ".parquet":
            pq.write_table(table, file)
        else:
            pa.feather.write_feather(table, file)
    return folder


def check_same(evaluation: Any) -> None:
    expected = columns()
    assert np.array_equal(evaluation.labels, expected["labels"])
    assert np.allclose(evaluation.probs, expected["probs"], atol=1e-7)
    assert np.allclose(evaluation.representations["embedding"], expected["embedding"], atol=1e-6)
    assert np.array_equal(evaluation.metadata["age"], expected["metadata:age"])
    assert evaluation.metadata["site"].tolist() == expected["site"].tolist()


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_a_folder_of_files_is_one_table(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "BATCH", 90)
    check_same(read(write_parts(tmp_path / "rows", suffix), metadata=["site"]))


def test_a_pattern_names_some_of_the_files(tmp_path: Path) -> None:
    folder = write_parts(tmp_path / "rows")
    (folder / "notes.parquet").write_text("no table")
    check_same(read(str(folder / "part-*.parquet"), metadata="all"))
    assert len(read(str(folder / "part-[01].parquet"))) == N // 2


def test_a_file_whose_name_looks_like_a_pattern_is_itself(tmp_path: Path) -> None:
    pq.write_table(as_table(slice(0, 40)), tmp_path / "part1.parquet")
    pq.write_table(as_table(slice(40, 100)), tmp_path / "part[1].parquet")
    assert len(read(tmp_path / "part[1].parquet")) == 60


@pytest.mark.parametrize("hidden", ["_delta_log", ".ipynb_checkpoints", "_temporary/0"])
def test_hidden_folders_are_no_rows(tmp_path: Path, hidden: str) -> None:
    (tmp_path / ".cache").mkdir()  # where a folder lies says nothing of its files
    folder = write_parts(tmp_path / ".cache" / "rows")
    (folder / hidden).mkdir(parents=True)
    pq.write_table(as_table(slice(0, 40)), folder / hidden / "part-0.parquet")
    assert len(read(folder)) == N


def test_large_lists_lie_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch.empty_array, "__defaults__", (1000, "C", False))
    evaluation = read(write_parts(tmp_path / "rows"), metadata=["site"])
    assert isinstance(evaluation.representations["embedding"], np.memmap)
    check_same(evaluation)


def test_rows_without_outcomes_can_be_read_too(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    pq.write_table(as_table().select(["embedding"]), tmp_path / "rows" / "a.parquet")
    evaluation = read(tmp_path / "rows")
    assert evaluation.labels is None
    assert evaluation.representations["embedding"].shape == (N, D)


def test_lists_of_other_lengths_are_refused_by_their_row(tmp_path: Path) -> None:
    folder = write_parts(tmp_path / "rows")
    table = as_table(slice(0, 3)).set_column(2, "embedding", pa.array([[1.0] * D, [1.0] * (D + 1), [1.0] * D]))
    pq.write_table(table, folder / "part-4.parquet")
    with pytest.raises(InputError, match=r"row 1001 has 6 values where others have 5"):
        read(folder)


def test_two_kinds_of_files_are_refused(tmp_path: Path) -> None:
    folder = write_parts(tmp_path / "rows")
    pa.feather.write_feather(as_table(), folder / "more.feather")
    with pytest.raises(InputError, match="keep one kind"):
        read(folder)


def test_rows_of_another_kind_that_are_not_read_are_named(tmp_path: Path) -> None:
    folder = write_parts(tmp_path / "rows")
    (folder / "README.md").write_text("about these rows")
    (folder / "dataset_info.json").write_text("{}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(folder)
    for i in range(5):
        (folder / f"late-{i}.csv").write_text("labels,predictions\n1,0\n")
    with pytest.warns(InputWarning, match=r"late-0.csv, late-1.csv, late-2.csv and 2 more, not read"):
        read(folder)


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        read(tmp_path)


def test_a_saved_audit_is_no_input(tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text("{}")
    with pytest.raises(InputError, match="saved audit"):
        read(tmp_path)


def write_arrays(folder: Path) -> Path:
    for name, values in columns().items():
        file = folder / f"{name.replace(':', '/')}.npy"
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, values)
    return folder


def test_a_folder_of_arrays_stays_on_disk(tmp_path: Path) -> None:
    evaluation = read(write_arrays(tmp_path / "rows"), metadata=["site"])
    check_same(evaluation)
    X = evaluation.representations["embedding"]
    assert isinstance(X.base if not isinstance(X, np.memmap) else X, np.memmap)


def test_an_unknown_array_in_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="site"):
        read(write_arrays(tmp_path / "rows"))


def test_objects_in_a_folder_are_refused(tmp_path: Path) -> None:
    folder = write_arrays(tmp_path / "rows")
    np.save(folder / "labels.npy", np.array([{}] * N, dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="would need pickle"):
        read(folder, metadata=["site"])


def test_a_damaged_array_in_a_folder_is_named(tmp_path: Path) -> None:
    folder = write_arrays(tmp_path / "rows")
    (folder / "labels.npy").write_bytes(b"junk")
    with pytest.raises(InputError, match=r"labels\.npy"):
        read(folder, metadata=["site"])


def test_a_safetensors_file_stays_on_disk(tmp_path: Path) -> None:
    numbers = {name: values for name, values in columns().items() if values.dtype.kind != "U"}
    safetensors.numpy.save_file(numbers, tmp_path / "rows.safetensors")
    evaluation = read(tmp_path / "rows.safetensors")
    assert np.array_equal(evaluation.labels, numbers["labels"])
    assert np.array_equal(evaluation.representations["embedding"], numbers["embedding"])
    assert np.array_equal(evaluation.metadata["age"], numbers["metadata:age"])
    X = evaluation.representations["embedding"]
    assert isinstance(X.base if not isinstance(X, np.memmap) else X, np.memmap)


def test_a_damaged_safetensors_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(b"\x08" + bytes(7) + b'{"a": 1}')
    with pytest.raises(InputError, match=r"x\.safetensors` is damaged"):
        read(tmp_path / "x.safetensors")


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    folder = write_parts(tmp_path / "rows")
    table = as_table(slice(0, 10))
    pq.write_table(table.append_column("losses", [[7.0] * 10]), folder / "part-4.parquet")
    with pytest.raises(InputError, match=r"`part-4\.parquet` and the first have not both a column `losses`"):
        read(folder)


def test_a_folder_for_each_value_is_a_column(tmp_path: Path) -> None:
    for site in ("north", "south"):
        folder = tmp_path / "rows" / f"hospital={site}"
        folder.mkdir(parents=True)
        pq.write_table(as_table(slice(0, 100)).drop_columns(["site"]), folder / "a.parquet")
    evaluation = read(tmp_path / "rows", metadata="all")
    assert evaluation.metadata["hospital"].tolist() == ["north"] * 100 + ["south"] * 100
