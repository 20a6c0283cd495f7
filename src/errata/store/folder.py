"""An Audit as a folder, written whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..core import Array, Audit, Confirmed, Explanation, Found, InputError, Overall, Slice, State
from ..core.audit import SCHEMA
from . import rows, tensors

PARTIAL = ".partial-"


def check_target(folder: str | Path) -> Path:
    """The folder to write to: it must not exist, and its parent must be writable or creatable."""
    folder = Path(folder)
    if folder.exists() or folder.is_symlink():
        raise InputError(f"`{folder}` exists already; name another output, or remove it first")
    parent = next(p for p in folder.absolute().parents if p.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"`{folder}` cannot be written: `{parent}` is not a folder one may write to; name another")
    return folder


@contextmanager
def whole(folder: Path) -> Iterator[Path]:
    """A folder to fill that gets its name only when it is complete; nothing is left of one that is not."""
    partial = folder.parent / f".{folder.name}{PARTIAL}{os.getpid()}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        partial.mkdir()
        yield partial
        _flush(partial)
        os.rename(partial, folder)
    except OSError as error:
        raise InputError(f"`{folder}` cannot be written ({error.strerror or error}); name another output") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_file_target(path: str | Path) -> Path:
    """A new `.parquet` file to write."""
    path = Path(path)
    if path.suffix != ".parquet":
        raise InputError(f"`{path}` must end in .parquet; got `{path.suffix or 'nothing'}`; rename the output")
    return check_target(path)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file to write that gets its name only when it is complete."""
    partial = path.with_name(f".{path.name}{PARTIAL}{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        os.rename(partial, path)
    except OSError as error:
        raise InputError(f"`{path}` cannot be written ({error.strerror or error}); name another output") from error
    finally:
        partial.unlink(missing_ok=True)


def _remove_abandoned(folder: Path) -> None:
    """What a killed process left of this same folder."""
    for left in folder.parent.glob(f".{folder.name}{PARTIAL}*"):
        if not _alive(int(left.name.rpartition("-")[2])):
            shutil.rmtree(left, ignore_errors=True)


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
    return pa.table({n: pa.array(a.tolist() if a.dtype.kind in "US" else a) for n, a in columns.items()})


def weights_table(ids: Array, weights: Mapping[str, Array]) -> pa.Table:
    """`id` and one column of weights a slice: what `apply` writes."""
    return pa.table({"id": pa.array(ids.tolist() if ids.dtype.kind in "US" else ids), **weights})


def _save_slicer(stem: Path, state: State) -> None:
    facts = {"name": state.name, **state.facts}
    stem.with_name(stem.name + ".json").write_text(json.dumps(facts, indent=1, default=_plain) + "\n")
    tensors.write(stem.with_name(stem.name + ".safetensors"), state.arrays)


def load(folder: str | Path, restore: Callable[[State], Any], read: rows.Read | None = None) -> Audit:
    """An audit from its folder. `restore` makes a slicer of its state; `read` reads a file it refers to."""
    folder = Path(folder)
    facts = _facts(folder)
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
    if facts.get("schema") != SCHEMA:
        raise InputError(f"`{path}` has the form {facts.get('schema')!r}; this version reads {SCHEMA!r}")
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
        discover=Found(**found) if found else None,
        confirm=Confirmed(**_tuples(confirmed)) if confirmed else None,
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
    near = sorted(parent.iterdir()) if parent.is_dir() else []
    named = {Path(folder).absolute() for folder in folders}
    candidates = sorted(named | {path for path in near if (path / "audit.json").is_file()})
    return [path for path in candidates if _facts(path).get("fingerprint") == fingerprint]
