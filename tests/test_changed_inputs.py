"""An input that is written while it is audited: one sentence, and no audit of rows that were never together."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from errata import workflow
from errata.core import tensor_files
from errata.store import evaluations
from support.command import Done, run

N = 200


def arrays(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 4))
    return {"labels": (x[:, 0] > 0).astype(np.int64), "predictions": (x[:, 1] > 0).astype(np.int64), "embedding": x}


def npy(folder: Path, seed: int = 0) -> tuple[Path, Path]:
    (folder / "rows").mkdir()
    for name, array in arrays(seed).items():
        np.save(folder / "rows" / f"{name}.npy", array)
    return folder / "rows", folder / "rows" / "embedding.npy"


def npz(folder: Path) -> tuple[Path, Path]:
    np.savez(folder / "rows.npz", **arrays())
    return folder / "rows.npz", folder / "rows.npz"


def safetensors(folder: Path) -> tuple[Path, Path]:
    tensor_files.write(folder / "rows.safetensors", arrays())
    return folder / "rows.safetensors", folder / "rows.safetensors"


def table() -> pa.Table:
    columns = arrays()
    return pa.table({**columns, "embedding": list(columns["embedding"])})


def parquet(folder: Path) -> tuple[Path, Path]:
    pq.write_table(table(), folder / "rows.parquet")
    return folder / "rows.parquet", folder / "rows.parquet"


def parts(folder: Path) -> tuple[Path, Path]:
    (folder / "rows").mkdir()
    pq.write_table(table(), folder / "rows" / "part-0.parquet")
    return folder / "rows", folder / "rows" / "part-0.parquet"


INPUTS: dict[str, Callable[[Path], tuple[Path, Path]]] = {
    function.__name__: function for function in (npy, npz, safetensors, parquet, parts)
}


def make(kind: str, folder: Path) -> tuple[Path, Path]:
    """The input and one file of it, as they were an hour ago."""
    source, file = INPUTS[kind](folder)
    hour_ago = file.stat().st_mtime_ns - 3600 * 10**9
    os.utime(file, ns=(hour_ago, hour_ago))
    return source, file


def overwrite(file: Path) -> None:
    """Other bytes in the same file, as many as before: what a map shows from then on."""
    with file.open("r+b") as opened:
        opened.seek(-8, os.SEEK_END)
        opened.write(b"\x00" * 8)


def audit(source: Path, folder: Path, *words: object) -> Done:
    return run("audit", source, "-o", folder / "out", "--method", "gmm", "--no-map", "--no-self-test", *words)


def assert_refused(done: Done, file: Path, folder: Path) -> None:
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert f"`{file}` was changed or removed while it was audited" in done.err
    assert not [path for path in folder.iterdir() if "out" in path.name], "nothing is written"


def change_after(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, change: Callable[[], object]) -> None:
    """Change something once a function of the command has done its work."""
    original = getattr(place, name)

    def changing(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        change()
        return result

    monkeypatch.setattr(place, name, changing)


@pytest.mark.parametrize("kind", INPUTS)
def test_an_input_that_is_overwritten_in_place_ends_the_audit(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, file = make(kind, tmp_path)
    change_after(monkeypatch, workflow, "audit", lambda: overwrite(file))
    assert_refused(audit(source, tmp_path), file, tmp_path)


def test_one_that_is_removed_does_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, file = make("npy", tmp_path)
    change_after(monkeypatch, workflow, "audit", file.unlink)
    assert_refused(audit(source, tmp_path), file, tmp_path)


def test_one_that_is_replaced_does_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By another file of the same size and time, as `rsync --times` leaves it."""
    source, file = make("npy", tmp_path)
    other = file.with_suffix(".new")
    shutil.copy2(file, other)
    change_after(monkeypatch, workflow, "audit", lambda: os.replace(other, file))
    assert_refused(audit(source, tmp_path), file, tmp_path)


def test_one_that_changes_while_the_audit_is_written_does_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its representations are copied then, which can take minutes."""
    source, file = make("npy", tmp_path)
    change_after(monkeypatch, evaluations, "save", lambda: overwrite(file))
    assert_refused(audit(source, tmp_path), file, tmp_path)


def test_training_rows_are_watched_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "training").mkdir()
    source, _ = make("npz", tmp_path)
    train, file = npy(tmp_path / "training", seed=1)
    change_after(monkeypatch, workflow, "audit", lambda: overwrite(file))
    assert_refused(audit(source, tmp_path, "--train", train), file, tmp_path)


def test_a_search_that_fails_on_changed_rows_says_that_they_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, file = make("npy", tmp_path)

    def fail(*_: Any, **__: Any) -> None:
        overwrite(file)
        raise ZeroDivisionError

    monkeypatch.setattr(workflow, "audit", fail)
    assert_refused(audit(source, tmp_path), file, tmp_path)


def test_an_interrupted_audit_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, file = make("npy", tmp_path)

    def interrupt(*_: Any, **__: Any) -> None:
        overwrite(file)
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow, "audit", interrupt)
    assert audit(source, tmp_path).code == 130


@pytest.mark.parametrize("kind", INPUTS)
def test_an_input_that_stays_is_audited(kind: str, tmp_path: Path) -> None:
    """Also where the output lies in its folder."""
    source, _ = make(kind, tmp_path)
    folder = source if source.is_dir() else tmp_path
    assert audit(source, folder).code == 0
