"""Groups of real rows in which errors are planted on top of a real model's errors: which of them does an audit find?

A trial takes n rows of a real table with hard predictions and a foreign representation, chooses a group of a
set size (rows with one value of the metadata, rows of one class, or the neighbourhood of a random row), and makes
correct rows of the group wrong until its error rate is a set gap above what it was. The audit sees no metadata.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, Audit, Evaluation, InputError, MissingInput, Progress, silent
from ..core.confirm import Settings, SliceCandidate, SplitTask, confirm_all
from ..core.errors import unknown
from ..core.split import discover_mask
from .bounds import standardised, tree_rows
from .captured import options_of_audit, run_audit
from .metrics import mean_and_error
from .real_models import FOREIGN, AuditedModel, model_path, prepare, read_model
from .results import resume_result

METADATA = "metadata"
CLASS = "class"
NEIGHBOURHOOD = "neighbourhood"
KINDS = (METADATA, CLASS, NEIGHBOURHOOD)
MANY = "many"  # not of real rows: see `many.py`
ALL_KINDS = (*KINDS, MANY)
ROWS = (2000, 4500)
SIZES = (0.02, 0.05, 0.1)
GAPS = (0.2, 0.4)
REPEATS = 4
COORDINATES = 0.75  # share of the coordinates that a neighbourhood is near in: not the distance that a search uses
NEIGHBOURS = 10
HALF = 0.5  # precision and recall of a slice that counts as the group


@dataclass(frozen=True)
class PlantedBenchmark:
    """The trials: every combination, `repeats` times, each time on another table."""

    kinds: Sequence[str] = KINDS
    n: Sequence[int] = ROWS
    sizes: Sequence[float] = SIZES  # of the group, as a share of n
    gaps: Sequence[float] = GAPS
    repeats: int = REPEATS
    seed: int = 0

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise unknown("kind of group", kind, KINDS)
        if min(self.n) < 100 or self.repeats < 1:
            raise InputError(f"a trial needs 100 rows and 1 repeat; got {min(self.n)} and {self.repeats}")
        for name, values in (("size", self.sizes), ("gap", self.gaps)):
            if not all(0 < value < 1 for value in values):
                raise InputError(f"`{name}` must lie between 0 and 1; got {', '.join(map(str, values))}")

    def trials(self) -> Iterator[Trial]:
        """All trials, each with a seed of its own."""
        cells = product(self.kinds, self.n, self.sizes, self.gaps)
        for number, (kind, n, size, gap) in enumerate(cells):
            for repeat in range(self.repeats):
                seed = int(np.random.SeedSequence([self.seed, number, repeat]).generate_state(1)[0])
                yield Trial(kind, n, size, gap, number + repeat, seed)


@dataclass(frozen=True)
class Trial:
    """One group to plant."""

    kind: str
    n: int
    size: float
    gap: float
    turn: int  # whose turn it is among the tables
    seed: int


@dataclass(frozen=True, eq=False)
class Planted:
    """The rows of a trial."""

    evaluation: Evaluation
    group: Array  # (n,) bool
    name: str  # of the group, in words
    table: str = ""


@dataclass(frozen=True)
class Match:
    """The confirmed slice that is most like a group, on held-out rows."""

    found: bool  # at least half of it is the group, and it holds at least half of the group
    in_parts: bool  # the slices of which at least half is the group hold at least half of the group together
    errors: float  # the share of the group's errors that these slices hold together
    precision: float | None  # None where no slice touches the group
    recall: float


def plant(model: AuditedModel, trial: Trial) -> Planted | None:
    """Choose rows and a group, and plant errors in it; None where the table has no such group."""
    rng = np.random.default_rng(trial.seed)
    if trial.kind == NEIGHBOURHOOD:
        choice = _neighbourhood(model, trial, rng)
    else:
        choice = _valued_group(model, trial, rng)
    if choice is None:
        return None
    rows, group, name = choice
    predictions = plant_errors(model.labels[rows], model.predictions[rows], group, trial.gap, rng)
    evaluation = model.evaluation(FOREIGN, rows, predictions, metadata=False)
    return Planted(evaluation, group, name)


def plant_errors(labels: Array, predictions: Array, group: Array, gap: float, rng: np.random.Generator) -> Array:
    """Predictions with correct rows of the group made wrong, by the chance that raises its error rate by the gap."""
    wrong = labels != predictions
    rate = float(wrong[group].mean())
    chance = min(1.0, gap / max(1 - rate, 1e-12))
    changed = group & ~wrong & (rng.random(len(labels)) < chance)
    classes = np.unique(labels)
    # Another class than the true one, all of them equally often.
    position = np.searchsorted(classes, labels) + rng.integers(1, len(classes), len(labels))
    others = classes[position % len(classes)]
    new: Array = np.where(changed, others, predictions)
    return new


def _valued_group(model: AuditedModel, trial: Trial, rng: np.random.Generator) -> tuple[Array, Array, str] | None:
    """Rows of one value, thinned to the size of the trial, among n rows."""
    columns: Mapping[str, Array] = model.metadata
    if trial.kind == CLASS:
        columns = {"label": np.asarray(model.class_names)[model.labels]}
    size = round(trial.size * trial.n)
    values = [
        (name, value)
        for name, column in columns.items()
        for value in np.unique(column)
        if (column == value).sum() >= size and (column != value).sum() >= trial.n - size
    ]
    if not values:
        return None
    name, value = values[rng.integers(len(values))]
    inside = columns[name] == value
    members = rng.choice(np.flatnonzero(inside), size, replace=False)
    others = rng.choice(np.flatnonzero(~inside), trial.n - size, replace=False)
    rows = np.sort(np.concatenate([members, others]))
    return rows, inside[rows], f"{name} {value}"


def _neighbourhood(model: AuditedModel, trial: Trial, rng: np.random.Generator) -> tuple[Array, Array, str] | None:
    """The nearest rows of a random one, in some of the coordinates, among n rows."""
    if len(model.labels) < trial.n:
        return None
    rows = np.sort(rng.choice(len(model.labels), trial.n, replace=False))
    X = np.asarray(model.representations[FOREIGN][rows], dtype=np.float64)
    X = X[:, rng.random(X.shape[1]) < COORDINATES]
    centre = int(rng.integers(len(rows)))
    distance = np.square(X - X[centre]).sum(axis=1)
    group = np.zeros(len(rows), dtype=bool)
    group[np.argsort(distance, kind="stable")[: round(trial.size * trial.n)]] = True
    return rows, group, f"{int(group.sum())} rows nearest to row {rows[centre]}"


def match_group(result: Audit, group: Array) -> Match:
    """Compare the confirmed slices with a group of rows, on held-out rows."""
    held_out = ~result.discover
    members = [slice_.members[held_out] for slice_ in result.confirmed if slice_.side == "hard"]
    assert result.evaluation.errors is not None
    return best_match(members, group[held_out], result.evaluation.errors[held_out])


def best_match(members: Sequence[Array], group: Array, wrong: Array) -> Match:
    """The set with the largest F1 among those that touch the group.

    members: (n,) bool each; group, wrong: (n,) bool of the same rows.
    """
    best = Match(False, False, 0.0, None, 0.0)
    best_f1 = 0.0
    covered = np.zeros(len(group), dtype=bool)
    for inside in members:
        common = float((inside & group).sum())
        if not common:
            continue
        precision = common / float(inside.sum())
        recall = common / float(group.sum())
        if precision >= HALF:
            covered |= inside
        f1 = 2 * precision * recall / (precision + recall)
        if f1 > best_f1:
            best = Match(precision >= HALF and recall >= HALF, False, 0.0, precision, recall)
            best_f1 = f1
    in_parts = bool((covered & group).sum() >= HALF * group.sum() > 0)
    errors = float((covered & group & wrong).sum()) / max(float((group & wrong).sum()), 1.0)
    return replace(best, in_parts=in_parts, errors=errors)


def is_confirmed(evaluation: Evaluation, group: Array) -> bool:
    """Whether the test confirms the group itself, handed over as the only candidate: no search can do better."""
    split = SplitTask(evaluation, discover_mask(evaluation), Settings())
    [result] = confirm_all([(split, SliceCandidate("given", 0, group.astype(np.float64), 0.5, {}))])
    return result.verdict == "confirmed"


def is_visible(evaluation: Evaluation, group: Array) -> bool:
    """Whether the representation shows the group: found by a model that knows its search rows and every row's label.

    Logistic regression or a vote of neighbours, whichever matches better; as many held-out rows as the group has.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    discover = discover_mask(evaluation)
    assert evaluation.labels is not None
    X = standardised(evaluation)
    classes = np.unique(evaluation.labels)
    # A label is worth as much as all coordinates together: rows of other labels are not near.
    label = (evaluation.labels[:, None] == classes) * np.sqrt(X.shape[1])
    features = np.column_stack([X, label])
    known = group[discover]
    members = []
    for model in (LogisticRegression(max_iter=200), KNeighborsClassifier(NEIGHBOURS)):
        score = model.fit(features[discover], known).predict_proba(features[~discover])[:, 1]
        likeliest = np.argsort(-score, kind="stable")[: int(group[~discover].sum())]
        members.append(np.isin(np.arange(len(score)), likeliest))
    assert evaluation.errors is not None
    return best_match(members, group[~discover], evaluation.errors[~discover]).found


def match_tree(planted: Planted, seed: int) -> Match:
    """The confirmed nodes of the plain tree within labels, which is the floor of `captured`."""
    discover = discover_mask(planted.evaluation)
    nodes = tree_rows(planted.evaluation, discover, "label", seed)
    assert planted.evaluation.errors is not None
    wrong = planted.evaluation.errors[~discover]
    return best_match(list(nodes[:, ~discover]), planted.group[~discover], wrong)


def run(
    benchmark: PlantedBenchmark,
    tables: Sequence[str],
    methods: Sequence[str],
    folder: Path,
    *,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Progress = silent,
) -> list[dict[str, Any]]:
    """Prepare the models that are missing, plant and audit; one row a trial and method.

    The folder is that of the benchmark `captured` with the same seed: both audit the same models.
    """
    prepare(tables, benchmark.seed, folder, lambda stage, share: progress(stage, share / 2))
    models = {table: read_model(model_path(folder, table)) for table in tables}
    trials = list(benchmark.trials())
    rows = []
    for i, trial in enumerate(trials):
        progress(f"{trial.kind}, {trial.n:,} rows", (1 + i / len(trials)) / 2)
        planted = _plant_somewhere(models, trial)
        if planted is not None:
            rows += _judge_all(planted, trial, methods, folder, options or {})
    if not rows:
        raise InputError("no table has a group of such a size in so many rows; ask for fewer rows or smaller groups")
    return rows


def _plant_somewhere(models: Mapping[str, AuditedModel], trial: Trial) -> Planted | None:
    """The group in the table whose turn it is, or in the next one that has such a group; None where none has."""
    tables = list(models)
    for i in range(len(tables)):
        table = tables[(trial.turn + i) % len(tables)]
        planted = plant(models[table], trial)
        if planted is not None:
            return replace(planted, table=table)
    return None


def _judge_all(
    planted: Planted, trial: Trial, methods: Sequence[str], folder: Path, options: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """One row a method; what the same code stored is used again."""
    key = {"table": planted.table, **asdict(trial)}
    facts = resume_result(folder, key, partial(describe, planted, trial))
    rows = []
    for method in methods:
        own = {**key, "method": method, "options": options_of_audit(method, options)}
        result = resume_result(folder, own, partial(judge, planted, trial, method, options))
        rows.append({**facts, **result})
    return rows


def describe(planted: Planted, trial: Trial) -> dict[str, Any]:
    """What is known of a trial before any audit."""
    given = is_confirmed(planted.evaluation, planted.group)
    visible = is_visible(planted.evaluation, planted.group)
    facts = {"table": planted.table, **asdict(trial), "group": planted.name}
    tree = match_tree(planted, trial.seed)
    return {**facts, "given": given, "visible": visible, "tree": tree.found, "tree_in_parts": tree.in_parts}


def judge(planted: Planted, trial: Trial, method: str, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """One audit of a planted group; a note where the method cannot run."""
    start = time.perf_counter()
    try:
        result = run_audit(planted.evaluation, method, trial.seed % 2**31, options)
    except MissingInput as error:
        return {"method": method, "note": str(error)}
    seconds = time.perf_counter() - start
    match = match_group(result, planted.group)
    return {"method": method, **asdict(match), "slices": len(result.confirmed), "seconds": seconds, "note": None}


CELL = ("method", "kind", "n", "size", "gap")
BOUNDS = ("given", "visible", "tree", "tree_in_parts")  # what no audit made


def summarise(rows: Sequence[Mapping[str, Any]], keys: Sequence[str] = CELL) -> list[dict[str, Any]]:
    """One row a combination of the keys: the share found, and what the best slices are like."""
    cells: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        cells.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [{**dict(zip(keys, cell, strict=True)), **_means(trials)} for cell, trials in sorted(cells.items())]


def _means(trials: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over the trials that could run; precision over those with a slice that touches the group."""
    judged = [trial for trial in trials if trial["note"] is None]
    means: dict[str, Any] = {"trials": len(judged)}
    for key in (*BOUNDS, "found", "in_parts", "errors", "precision", "recall", "seconds"):
        means[key], error = mean_and_error([trial[key] for trial in judged])
        if key in ("found", "in_parts", "errors"):
            means[f"{key}_se"] = error
    return means
