"""What share of a real model's errors do the confirmed slices of an audit hold?

`captured` is the number of held-out errors in the union of the confirmed slices, less what the overall rate gives on as
many rows, as a share of all held-out errors. Beside it stand two numbers that no audit made: a predictor of errors,
whose riskiest rows at the same share of rows are a ceiling, and the plain tree, a floor.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, Audit, Evaluation, MissingInput, Progress, silent
from ..core.split import discover_mask
from ..workflow import audit, options_of
from .bounds import Bounds, measure_bounds, read_bounds, write_bounds
from .methods import audited_methods
from .real_models import model_path, prepare, read_model
from .results import resume_result

MEANS = ("slices", "share", "captured", "ceiling", "tree_share", "tree_captured", "seconds")


@dataclass(frozen=True)
class Capture:
    """What the confirmed slices of one audit hold of the held-out rows."""

    slices: int
    share: float  # of the held-out rows
    captured: float  # of the held-out errors, in excess of the overall rate
    rate: float | None  # of errors in the union of the slices


def measure_capture(inside: Array, wrong: Array) -> float:
    """Errors of the rows inside, in excess of the overall rate, as a share of all errors.

    inside, wrong: (n,) bool of the same rows.
    """
    errors = int(wrong.sum())
    if not errors:
        return 0.0
    excess = float((inside & wrong).sum()) - errors / len(wrong) * float(inside.sum())
    return excess / errors


def confirmed_rows(result: Audit) -> Array:
    """(n,) bool: the union of the confirmed slices that are worse than the rest."""
    union = np.zeros(len(result.evaluation), dtype=bool)
    for slice_ in result.confirmed:
        if slice_.side == "hard" and slice_.confirmed_on == "confirm":
            union |= slice_.members
    return union


def summarise_capture(result: Audit) -> Capture:
    """The confirmed slices of an audit on its held-out rows."""
    held_out = ~result.discover
    assert result.evaluation.errors is not None
    wrong = result.evaluation.errors[held_out]
    inside = confirmed_rows(result)[held_out]
    rate = float(wrong[inside].mean()) if inside.any() else None
    slices = sum(slice_.side == "hard" for slice_ in result.confirmed)
    return Capture(slices, float(inside.mean()), measure_capture(inside, wrong), rate)


def run(
    names: Sequence[str],
    methods: Sequence[str],
    folder: Path,
    *,
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Progress = silent,
) -> list[dict[str, Any]]:
    """Prepare what is missing, audit every table by every method, and return the rows of the table.

    Models, ceilings and floors are stored in the folder and used again, audits only while the code is the same.
    """
    prepare(names, seed, folder, lambda stage, share: progress(stage, share / 2))
    cases = [(name, kind) for name in names for kind in read_model(model_path(folder, name)).representations]
    rows = []
    for i, (name, kind) in enumerate(cases):
        progress(f"{name}, {kind}", (1 + i / len(cases)) / 2)
        rows += judge(name, kind, methods, folder, seed, options or {})
    return rows


def judge(
    name: str, kind: str, methods: Sequence[str], folder: Path, seed: int, options: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The rows of one table and one representation: one a method."""
    model = read_model(model_path(folder, name))
    evaluation = model.evaluation(kind)
    bounds = _bounds(evaluation, folder / f"bounds-{name}-{kind}.npz", seed)
    facts = {
        "table": name,
        "kind": kind,
        "representation": model.words[kind],
        "model": model.model,
        "n": len(evaluation),
        "error_rate": float(model.errors.mean()),
        **bounds.facts(),
    }
    rows = []
    for method in methods:
        key = {"table": name, "kind": kind, "method": method, "options": options_of_audit(method, options)}
        result = resume_result(folder, key, partial(judge_method, evaluation, bounds, method, seed, options))
        rows.append({**facts, **result})
    return rows


def _bounds(evaluation: Evaluation, path: Path, seed: int) -> Bounds:
    """From the folder where these search rows are the same, or measured and put there."""
    discover = discover_mask(evaluation)
    stored = read_bounds(path, discover)
    if stored is None:
        stored = measure_bounds(evaluation, discover, seed)
        write_bounds(path, stored, discover)
    return stored


def judge_method(
    evaluation: Evaluation, bounds: Bounds, method: str, seed: int, options: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """One audit beside the ceiling at its share of rows; a note where the method cannot run."""
    start = time.perf_counter()
    try:
        result = run_audit(evaluation, method, seed, options)
    except MissingInput as error:
        return {"method": method, "note": str(error)}
    seconds = time.perf_counter() - start
    capture = summarise_capture(result)
    ceiling = bounds.ceiling(capture.share)
    return {"method": method, **asdict(capture), "ceiling": ceiling, "seconds": seconds, "note": None}


def run_audit(evaluation: Evaluation, name: str, seed: int, options: Mapping[str, Mapping[str, Any]]) -> Audit:
    """An audit as a user runs it: by the methods that are named, or by those that a user gets who names none."""
    methods = audited_methods([name])
    if not methods:
        return audit(evaluation, seed=seed)
    return audit(evaluation, methods=methods, options=options_of_audit(name, options), seed=seed)


def options_of_audit(name: str, options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The options of the methods that an audit names."""
    return {method: options_of(method, options) for method in audited_methods([name])}


def summarise(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row a method and kind of representation: means over the tables, and how many reach the tree's capture.

    `of_ceiling` is the ratio of the means, in which a table with a low ceiling does not count like one with a high one.
    """
    cells: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["note"] is None:
            cells.setdefault((row["method"], row["kind"]), []).append(row)
    summary = []
    for (method, kind), judged in cells.items():
        means = {key: float(np.mean([row[key] for row in judged])) for key in MEANS}
        of_ceiling = None
        if means["ceiling"] > 0:
            of_ceiling = means["captured"] / means["ceiling"]
        reached = sum(row["captured"] >= row["tree_captured"] for row in judged)
        facts = {"method": method, "kind": kind, "tables": len(judged), "at_least_tree": reached}
        summary.append({**facts, **means, "of_ceiling": of_ceiling})
    return summary
