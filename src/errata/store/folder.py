"""An Audit as a folder, written whole or not at all."""

from __future__ import annotations

import glob
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..core import (
    Array,
    Audit,
    ErrataError,
    Explanation,
    HeldOutMeasure,
    InputError,
    Overall,
    SearchMeasure,
    Slice,
    State,
)
from ..core.audit import SCHEMA
from . import rows, tensors

PARTIAL = ".partial-"


def check_target(folder: str | Path) -> Path:
    """The folder to write to: it must not exist, and its parent must be writable or creatable."""
    folder = Path(folder)
    try:
        if folder.exists() or folder.is_symlink():
            raise InputError(f"`{folder}` exists already; name another output, or remove it first")
        parent = next(p for p in folder.absolute().parents if p.exists())
    except OSError as error:
        raise InputError(f"`{folder}` cannot be written ({error.strerror}); name another output") from error
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"`{folder}` cannot be written: `{parent}` is not a folder one may write to; name another")
    return folder


@contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """A folder to fill that gets its name only when it is complete; nothing is left of one that is not."""
    with _taking_its_name(folder) as partial:
        partial.mkdir()
        yield partial
        _flush(partial)


@contextmanager
def _taking_its_name(path: Path) -> Iterator[Path]:
    """Another name beside `path`, for what becomes it at the end; on any error neither is left, nor new parents."""
    partial = path.with_name(f".{path.name}{PARTIAL}{os.getpid()}")
    made = [parent for parent in path.absolute().parents if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
        yield partial
        os.rename(partial, path)
    except BaseException as error:
        _remove(partial)
        for parent in made:
            with suppress(OSError):  # somebody else has put something there
                parent.rmdir()
        if not isinstance(error, OSError):
            raise
        raise InputError(f"`{path}` cannot be written ({error.strerror or error}); name another output") from error


def check_file_target(path: str | Path) -> Path:
    """A new `.parquet` file to write."""
    path = Path(path)
    if path.suffix != ".parquet":
        raise InputError(f"`{path}` must end in .parquet; got `{path.suffix or 'nothing'}`; rename the output")
    return check_target(path)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file to write that gets its name only when it is complete."""
    with _taking_its_name(path) as partial:
        yield partial


def _remove_abandoned(path: Path) -> None:
    """What a killed process left of this same output. One with our own number is not us: containers reuse them."""
    for left in path.parent.glob(f".{glob.escape(path.name)}{PARTIAL}*"):
        process = left.name.rpartition("-")[2]
        if process.isdecimal() and (int(process) == os.getpid() or not _alive(int(process))):
            _remove(left)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _flush(folder: Path) -> None:
    """On disk before the rename is: a machine that stops in between must not leave empty files."""
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        with open(path, "rb") as file:
            os.fsync(file.fileno())


def save(
    audit: Audit, folder: str | Path, *, report: str | None = None, reference: Mapping[str, Any] | None = None
) -> Path:
    """Write an audit, and its report page, as a folder that did not exist."""
    folder = check_target(folder)
    with whole(folder) as partial:
        text = json.dumps(audit.to_json(), indent=1, allow_nan=False, default=_plain)
        (partial / "audit.json").write_text(text + "\n")
        pq.write_table(_memberships(audit), partial / "memberships.parquet")
        (partial / "slicers").mkdir()
        for key, slicer in audit.slicers.items():
            _save_slicer(partial / "slicers" / key, slicer.to_state())
        rows.save(partial / "evaluation", audit.evaluation, reference)
        if report is not None:
            (partial / "report.html").write_text(report, encoding="utf-8")
    return folder


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _memberships(audit: Audit) -> pa.Table:
    split = np.where(audit.discover, "discover", "confirm")
    columns = {"id": audit.evaluation.row_ids, "split": split, **{s.id: s.weights for s in audit.slices}}
    return pa.table({name: rows.column_of(values) for name, values in columns.items()})


def weights_table(ids: Array, weights: Mapping[str, Array]) -> pa.Table:
    """`id` and one column of weights a slice: what `apply` writes."""
    return pa.table({"id": rows.column_of(ids), **weights})


def _save_slicer(stem: Path, state: State) -> None:
    facts = {"name": state.name, **state.facts}
    stem.with_name(stem.name + ".json").write_text(json.dumps(facts, indent=1, default=_plain) + "\n")
    tensors.write(stem.with_name(stem.name + ".safetensors"), state.arrays)


def load(folder: str | Path, restore: Callable[[State], Any], read: rows.Read | None = None) -> Audit:
    """An audit from its folder. `restore` makes a slicer of its state; `read` reads a file it refers to."""
    folder = Path(folder)
    facts = _facts(folder)
    try:
        return _load(folder, facts, restore, read)
    except ErrataError:
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"`{folder}` is damaged ({type(error).__name__}: {reason}); run the audit again") from error


def _load(folder: Path, facts: dict[str, Any], restore: Callable[[State], Any], read: rows.Read | None) -> Audit:
    table = pq.read_table(folder / "memberships.parquet")
    evaluation = rows.load(folder / "evaluation", read)
    return Audit(
        slices=tuple(_slice(item, table.column(item["id"]).to_numpy()) for item in facts["slices"]),
        evaluation=evaluation,
        discover=np.array(table.column("split").to_pylist()) == "discover",
        overall=_overall(facts),
        settings=facts["settings"],
        silence=facts["silence"],
        slicers={path.stem: restore(_state(path)) for path in sorted((folder / "slicers").glob("*.json"))},
        explanations=tuple(_explanation(item) for item in facts["explanations"]),
    )


def _facts(folder: Path) -> dict[str, Any]:
    path = folder / "audit.json"
    if not path.is_file():
        raise InputError(f"`{folder}` is not an audit: it has no audit.json; give the folder that `errata audit` wrote")
    try:
        facts: dict[str, Any] = json.loads(path.read_text())
    except ValueError as error:
        raise InputError(f"`{path}` is damaged ({error}); run the audit again") from error
    form = facts.get("schema") if isinstance(facts, dict) else None
    if form != SCHEMA:
        raise InputError(f"`{path}` has the form {form!r}; this version reads {SCHEMA!r}; run the audit again")
    return facts


def _state(path: Path) -> State:
    facts = json.loads(path.read_text())
    return State(facts.pop("name"), facts, tensors.read(path.with_suffix(".safetensors")))


def _slice(item: dict[str, Any], weights: Array) -> Slice:
    item = dict(item)
    found, confirmed = item.pop("discover"), item.pop("confirm")
    explanations = tuple(_explanation(e) for e in item.pop("explanations"))
    return Slice(
        **_tuples(item),
        weights=weights,
        discover=SearchMeasure(**found) if found else None,
        confirm=HeldOutMeasure(**_tuples(confirmed)) if confirmed else None,
        explanations=explanations,
    )


def _tuples(facts: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists where the audit has tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}


def _explanation(item: dict[str, Any]) -> Explanation:
    return Explanation(item["kind"], {name: value for name, value in item.items() if name != "kind"})


def _overall(facts: dict[str, Any]) -> tuple[tuple[str, Overall], ...]:
    tasks = facts["tasks"] or [{"task": "", **facts["overall"]}]
    return tuple((task.pop("task"), Overall(**_tuples(task))) for task in map(dict, tasks))


def earlier_audits(fingerprint: str, folders: Iterable[Path], beside: Path) -> list[Path]:
    """Audits of the same rows and outcomes: among those named, and in the folder where the new one will lie."""
    parent = beside.absolute().parent
    found = {path: _facts(path) for path in {Path(folder).resolve() for folder in folders}}
    for path in sorted(parent.iterdir()) if parent.is_dir() and os.access(parent, os.R_OK) else []:
        with suppress(InputError):  # what merely lies there, and is no audit that can be read, was no look at the rows
            found.setdefault(path.resolve(), _facts(path))
    return sorted(path for path, facts in found.items() if facts.get("fingerprint") == fingerprint)
