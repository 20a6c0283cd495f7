"""An Audit as a folder, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..core import (
    Array,
    Audit,
    ErrataError,
    ErrorType,
    Explanation,
    HeldOutMeasure,
    InputError,
    NullRun,
    Overall,
    SearchMeasure,
    SelfTest,
    Slice,
    State,
)
from ..core import tensor_files as arrays
from ..core.audit import SCHEMA
from ..core.paths import check_encodable
from ..core.record import row_numbers
from ..core.rules import check_rule
from ..core.scratch import empty_array
from ..core.typed import typed, typed_fields
from . import checksums, evaluations
from .atomic import atomic_file, atomic_folder, check_output
from .settings import checked_settings

RestoreExplanation = Callable[[Mapping[str, Any]], Explanation]
MOST_BYTES = 1 << 30  # of an audit.json: an audit has some hundred thousand
M = TypeVar("M", SearchMeasure, HeldOutMeasure)


def save(
    audit: Audit,
    folder: str | Path,
    *,
    report: str | None = None,
    reference: Mapping[str, Any] | None = None,
    check: Callable[[], None] | None = None,
) -> Path:
    """Write an audit, and its report page, as a folder that does not exist yet.

    Parameters
    ----------
    audit : Audit
        What to write.
    folder : path
        Where to; it must not exist.
    report : str, optional
        The page, written as report.html.
    reference : mapping, optional
        The file that the evaluation came from (`path`, `metadata`, `foreign`): representations and media stay there.
    check : callable, optional
        Called when all is written and before the folder gets its name: an error it raises leaves nothing.

    Returns
    -------
    Path
        The folder.
    """
    folder = check_output(folder)
    with atomic_folder(folder) as partial:
        (partial / "audit.json").write_text(_audit_text(audit))
        _write_memberships(audit, partial / "memberships.parquet")
        (partial / "slicers").mkdir()
        for key, slicer in audit.slicers.items():
            _save_slicer(partial / "slicers" / key, slicer.to_state())
        evaluations.save(partial / "evaluation", audit.evaluation, reference)
        if report is not None:
            (partial / "report.html").write_text(report, encoding="utf-8")
        (partial / checksums.FILE).write_text(checksums.as_text(partial))
        if check is not None:
            check()
    return folder


def update(audit: Audit, folder: str | Path, *, report: str, changed: Iterable[str]) -> None:
    """Write an audit anew that has more slices than the folder's own, and is the same otherwise.

    Each file is written whole beside the old one and takes its name at the end, audit.json last. Until then a reader
    finds the slices that audit.json names, since the other files have more and not less than it needs.

    Parameters
    ----------
    audit : Audit
        With all slices.
    folder : path
        What `save` wrote; nobody else may write it meanwhile (`sole_writer`).
    report : str
        The page.
    changed : iterable of str
        Keys of the slicers that are new or have more slices.
    """
    folder = Path(folder)
    with ExitStack() as stack:

        def beside(name: str) -> Path:
            return stack.enter_context(atomic_file(folder / name, replace=True))

        # What is opened first takes its name last.
        beside("audit.json").write_text(_audit_text(audit))
        beside("report.html").write_text(report, encoding="utf-8")
        for key in changed:
            state = audit.slicers[key].to_state()
            beside(f"slicers/{key}.json").write_text(_slicer_text(state))
            arrays.write(beside(f"slicers/{key}.safetensors"), state.arrays)
        _write_memberships(audit, beside("memberships.parquet"))
        checksums.remove(folder)  # until all files have their names
    with atomic_file(folder / checksums.FILE, replace=True) as partial:
        partial.write_text(checksums.as_text(folder))


def _write_memberships(audit: Audit, path: Path) -> None:
    evaluations.write_rows(path, len(audit.evaluation), lambda rows: _memberships(audit, rows))


def _audit_text(audit: Audit) -> str:
    return json.dumps(audit.to_json(), indent=1, allow_nan=False, default=_plain) + "\n"


def _slicer_text(state: State) -> str:
    return json.dumps({"name": state.name, **state.facts}, indent=1, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _memberships(audit: Audit, rows: slice) -> pa.Table:
    split = np.where(audit.discover[rows], "discover", "confirm")
    columns = {"id": audit.evaluation.row_ids[rows], "split": split}
    columns |= {slice_.id: slice_.weights[rows] for slice_ in audit.slices}
    columns |= {error_type.id: error_type.weights[rows] for error_type in audit.error_types}
    return pa.table({name: evaluations.to_arrow(values) for name, values in columns.items()})


def write_memberships(path: Path, ids: Array, weights: Mapping[str, Array], thresholds: Mapping[str, float]) -> None:
    """Write `id`, one column of weights a slice, and after each whether the row is a member, as `errata apply` does."""
    evaluations.write_rows(
        path,
        len(ids),
        lambda rows: _membership_table(ids[rows], {name: w[rows] for name, w in weights.items()}, thresholds),
    )


def write_table(path: Path, columns: Mapping[str, Any], suffix: str) -> None:
    """Write columns as a .parquet or .csv file, by the suffix; the path may be that of an unfinished file."""
    table = pa.table({name: evaluations.to_arrow(np.asarray(values)) for name, values in columns.items()})
    if suffix == ".parquet":
        pq.write_table(table, path)
        return
    from pyarrow import csv

    csv.write_csv(table, path)


def _membership_table(ids: Array, weights: Mapping[str, Array], thresholds: Mapping[str, float]) -> pa.Table:
    """`id`, one column of weights a slice, and after each whether the row is a member: what `errata apply` writes."""
    columns = {"id": evaluations.to_arrow(ids)}
    for name, column in weights.items():
        columns[name] = pa.array(column)
        columns[f"{name}:in"] = pa.array(column >= thresholds[name])
    return pa.table(columns)


def _save_slicer(stem: Path, state: State) -> None:
    stem.with_name(stem.name + ".json").write_text(_slicer_text(state))
    arrays.write(stem.with_name(stem.name + ".safetensors"), state.arrays)


def load(
    folder: str | Path,
    restore: Callable[[State], Any],
    restore_explanation: RestoreExplanation,
    read: evaluations.ReadFile | None = None,
) -> Audit:
    """Read an audit from its folder.

    Parameters
    ----------
    folder : path
        What `save` wrote.
    restore : callable
        Makes a fitted slicer of its state.
    restore_explanation : callable
        Makes an explanation of its JSON, `kind` among its keys.
    read : callable, optional
        Reads the file that an audit saved with a reference refers to.
    """
    folder = Path(folder)
    facts = read_facts(folder)
    try:
        checksums.check(folder)
        audit = _load(folder, facts, restore, restore_explanation, read)
        _check_parts(audit)
        return audit
    except ErrataError:
        raise
    except Exception as error:  # of bytes that nobody wrote as an audit, readers raise almost anything
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"`{folder}` is damaged ({type(error).__name__}: {reason}); run the audit again") from error


def _load(
    folder: Path,
    facts: dict[str, Any],
    restore: Callable[[State], Any],
    restore_explanation: RestoreExplanation,
    read: evaluations.ReadFile | None,
) -> Audit:
    table = pq.ParquetFile(folder / "memberships.parquet")
    evaluation = evaluations.load(folder / "evaluation", read)
    n = table.metadata.num_rows
    if n != len(evaluation):
        raise ValueError(f"memberships.parquet has {n:,} rows where the evaluation has {len(evaluation):,}")
    return Audit(
        slices=tuple(_slice(item, _weights(table, item["id"]), restore_explanation) for item in facts["slices"]),
        evaluation=evaluation,
        discover=_read_column(table, "split", bool, lambda column: pc.equal(column, "discover")),
        overall=_overall(facts),
        settings=checked_settings(facts["settings"]),
        silence=typed(str, facts["silence"], "silence"),
        slicers={path.stem: restore(_state(path)) for path in sorted((folder / "slicers").glob("*.json"))},
        explanations=tuple(restore_explanation(item) for item in facts["explanations"]),
        error_types=tuple(  # audits of versions up to 0.2 have none
            _error_type(item, _weights(table, item["id"])) for item in facts.get("error_types", ())
        ),
        self_test=_self_test(facts),
        null_run=_null_run(facts),
    )


def _check_parts(audit: Audit) -> None:
    """The parts of an audit name no slicer, task or row that it does not have; a slice made by hand has no slicer."""
    for slice_ in audit.slices:
        if slice_.slicer and slice_.column >= len(audit.slicers[slice_.slicer].rules_):
            raise ValueError(f"{slice_.id} is slice {slice_.column} of `{slice_.slicer}`, which has no such slice")
    tasks = [name for name, _ in audit.overall]
    parts: list[Slice | ErrorType] = [*audit.slices, *audit.error_types]
    for part in parts:
        if part.task not in tasks:
            raise ValueError(f"{part.id} is of the task {part.task!r}, which the audit does not have")
    for row in _named_rows(audit):
        if not 0 <= row < len(audit.evaluation):
            raise ValueError(f"row {row} is shown, and there are {len(audit.evaluation):,}")


def _named_rows(audit: Audit) -> Iterator[int]:
    for error_type in audit.error_types:
        yield from error_type.central
    for explanations in (audit.explanations, *(slice_.explanations for slice_ in audit.slices)):
        for explanation in explanations:
            yield from row_numbers(explanation)


def _weights(table: pq.ParquetFile, name: str) -> Array:
    """(n,) the weights of a slice: none is missing, all lie in [0, 1]."""

    def checked(column: pa.Array) -> pa.Array:
        weights = column.to_numpy(zero_copy_only=False)
        if weights.dtype.kind != "f" or not ((weights >= 0) & (weights <= 1)).all():
            raise ValueError(f"the weights of {name} in memberships.parquet are not all numbers from 0 to 1")
        return column

    return _read_column(table, name, np.float64, checked)


def _read_column(table: pq.ParquetFile, name: str, dtype: Any, convert: Callable[[pa.Array], pa.Array]) -> Array:
    """(n,) a column, read a batch at a time: of many rows it lies in a file of its own."""
    filled = empty_array((table.metadata.num_rows,), dtype)
    start = 0
    for batch in table.iter_batches(columns=[name]):
        filled[start : start + len(batch)] = convert(batch.column(0)).to_numpy(zero_copy_only=False)
        start += len(batch)
    return filled


def read_facts(folder: Path, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """What audit.json says, as JSON; an InputError where it cannot be read, whatever lies there."""
    check_encodable(folder)
    path = folder / "audit.json"
    facts: Any = None
    try:
        is_file = path.is_file()  # a pipe would be waited for
        if is_file and path.stat().st_size > most_bytes:
            raise ValueError(f"more than {most_bytes >> 20:,} MiB, which no audit needs")
        if is_file:
            facts = json.loads(path.read_text(), parse_constant=_refuse_constant)
    except OSError as error:
        raise InputError(f"`{path}` cannot be read ({error.strerror or error}); give another folder") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"`{path}` is damaged ({error}); run the audit again") from error
    if not is_file:
        raise InputError(f"`{folder}` is not an audit: it has no audit.json; give the folder that `errata audit` wrote")
    schema = facts.get("schema") if isinstance(facts, dict) else None
    if schema != SCHEMA:
        raise InputError(f"`{path}` has the schema {schema!r}; this version reads {SCHEMA!r}; run the audit again")
    return dict(facts)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"it holds {name}, which is no number")


def _state(path: Path) -> State:
    facts = json.loads(path.read_text())
    return State(facts.pop("name"), facts, arrays.read(path.with_suffix(".safetensors")))


def _slice(item: dict[str, Any], weights: Array, restore_explanation: RestoreExplanation) -> Slice:
    check_rule(item["rule"])
    own = {name: value for name, value in item.items() if name not in ("discover", "confirm", "explanations")}
    return Slice(
        **typed_fields(Slice, own),
        weights=weights,
        discover=_measure(SearchMeasure, item["discover"]),
        confirm=_measure(HeldOutMeasure, item["confirm"]),
        explanations=tuple(restore_explanation(explanation) for explanation in item["explanations"]),
    )


def _measure(kind: type[M], facts: Mapping[str, Any] | None) -> M | None:
    if facts is None:
        return None
    return kind(**typed_fields(kind, facts))


def _error_type(item: dict[str, Any], weights: Array) -> ErrorType:
    return ErrorType(**typed_fields(ErrorType, item), weights=weights)


def _self_test(facts: Mapping[str, Any]) -> SelfTest | None:
    """None where the search was not tested, as in audits of versions up to 0.3."""
    plain = facts.get("self_test")
    return None if plain is None else SelfTest.from_json(plain)


def _null_run(facts: Mapping[str, Any]) -> NullRun | None:
    plain = facts.get("null")
    return None if plain is None else NullRun.from_json(plain)


def _overall(facts: dict[str, Any]) -> tuple[tuple[str, Overall], ...]:
    """What is known of all rows, by the names of the tasks."""
    tasks = facts["tasks"] or [{"task": "", **facts["overall"]}]
    named = {typed(str, task["task"], "task"): {k: v for k, v in task.items() if k != "task"} for task in tasks}
    return tuple((name, Overall(**typed_fields(Overall, measured))) for name, measured in named.items())
