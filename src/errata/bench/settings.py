"""Slice settings: a labelled table is bent so that models fail on a known slice, and methods must find it.

Eyuboglu and others, "Domino", 2022, and its benchmark: rare slices, spurious correlations, noisy labels; models that
are drawn from Beta distributions or really trained. Methods are fitted on the valid rows and judged on the test rows.
`prepare` and `judge` leave files from which `run` is resumed. Where this differs from the published code: only slices
that are *worse* are kept (there: also better ones), and ties of scores are broken at random (there: by position).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..core import Array, Evaluation, InputError, Progress, Source, silent
from ..core.errors import unknown
from ..core.evaluation import INFLUENCE
from ..core.gaps import wilson
from ..inputs.influence import add_influence
from ..slicers import make
from ..workflow import options_of
from . import metrics
from .results import check_same_benchmark, write, write_npz
from .tables import Table, Train, train_logistic, train_network

__all__ = [
    "PUBLISHED",
    "Kind",
    "Score",
    "Setting",
    "SettingsBenchmark",
    "Train",
    "candidates",
    "correlation",
    "evaluation",
    "noisy",
    "prepare",
    "rare",
    "read_facts",
    "run",
    "score",
    "split_rows",
    "synthetic",
    "train_logistic",
    "train_network",
    "worse",
]

Kind = Literal["rare", "correlation", "noisy"]

SHARES = {"train": 0.7, "valid": 0.1, "test": 0.2}
WORSE = 0.05  # by so much the accuracy inside must be below that outside, between the nearer ends of the intervals
PROB_OUTSIDE = 0.75  # mean probability of the true class under the synthetic model, outside its slice
PROB_INSIDE = 0.4  # and inside
PUBLISHED = {
    "rare": tuple(np.geomspace(0.01, 0.05, 4).round(4).tolist()),
    "correlation": (0.2, 0.4, 0.6, 0.8),
    "noisy": (0.1, 0.2, 0.3, 0.4),
}


@dataclass(frozen=True, eq=False)
class Setting:
    """m rows of a table, and what is to be found in them."""

    kind: Kind
    name: str
    strength: float
    rows: Array  # (m,) indices into the table, ascending
    labels: Array  # (m,) 0 or 1, as models learn them and are judged by
    slices: Array  # (m, t) bool
    split: Array  # (m,) "train", "valid" or "test"


# --- settings ------------------------------------------------------------------------------------------------


def rare(
    target: Array,
    member: Array,
    *,
    share: float,
    n: int,
    balance: float | None = None,
    seed: int = 0,
    groups: Array | None = None,
    name: str = "",
) -> Setting:
    """`share` of the positives lie in each slice. member: (n,) or (n, t) bool; a slice is its positive members.

    balance: share of positives; None for the largest possible up to a half.
    """
    positive = target == 1
    inside = member.reshape(len(target), -1).astype(bool) & positive[:, None]
    pools = [np.flatnonzero(column) for column in inside.T]
    others = np.flatnonzero(positive & ~inside.any(axis=1))
    negatives = np.flatnonzero(~positive)
    left = 1 - share * len(pools)
    if not 0 < share < 1 or left <= 0:
        raise InputError(f"`share` must be positive and leave positives outside of {len(pools)} slices; got {share}")
    if balance is None:
        most = [n / 2, len(others) / left, *(len(pool) / share for pool in pools)]
        balance = float(np.floor(min(most)) / n)
    positives = round(n * balance)
    members = round(share * positives)
    if members < 1:
        raise InputError(f"this setting has no member of a slice: {share:g} of {positives:,} positives; use more rows")
    rng = np.random.default_rng(seed)
    parts = [_draw(rng, pool, members, "positives in the slice") for pool in pools]
    parts.append(_draw(rng, others, positives - members * len(pools), "positives outside the slices"))
    parts.append(_draw(rng, negatives, n - positives, "negatives"))
    rows = np.unique(np.concatenate(parts))
    if len(rows) < n:
        raise InputError(f"slices overlap: {n - len(rows)} rows were drawn for two of them; give disjoint slices")
    return Setting("rare", name, share, rows, target[rows].astype(np.int64), inside[rows], split_rows(rows, groups))


def correlation(
    target: Array, attribute: Array, *, rho: float, n: int, seed: int = 0, groups: Array | None = None, name: str = ""
) -> Setting:
    """Cells drawn so that target and attribute correlate by rho, each as frequent as the rarer of the two is.

    The slices are the rows that contradict the correlation: (target 0, attribute 1) and (target 1, attribute 0).
    """
    y = target == 1
    a = attribute.astype(bool)
    ones = round(n * min(y.mean(), a.mean()))
    # Covariance = rho * variance, both with the divisor n - 1: n11 = ones²/n + rho * ones * (n - ones) / n.
    both = round((ones * ones + rho * ones * (n - ones)) / n)
    counts = {(1, 1): both, (1, 0): ones - both, (0, 1): ones - both, (0, 0): n - 2 * ones + both}
    rng = np.random.default_rng(seed)
    parts = [
        _draw(rng, np.flatnonzero((y == i) & (a == j)), count, f"rows of target {i} and attribute {j}")
        for (i, j), count in counts.items()
    ]
    rows = np.sort(np.concatenate(parts))
    slices = np.stack([~y & a, y & ~a], axis=1)[rows]
    return Setting("correlation", name, rho, rows, target[rows].astype(np.int64), slices, split_rows(rows, groups))


def noisy(
    target: Array, member: Array, *, flip: float, n: int, seed: int = 0, groups: Array | None = None, name: str = ""
) -> Setting:
    """The labels of the share `flip` of the members, drawn at random from all splits, are flipped."""
    if not 0 <= flip <= 1:
        raise InputError(f"`flip` must lie in [0, 1]; got {flip}")
    rng = np.random.default_rng(seed)
    rows = np.sort(_draw(rng, np.arange(len(target)), n, "rows"))
    inside = member[rows].astype(bool)
    members = np.flatnonzero(inside)
    labels = target[rows].astype(np.int64)
    flipped = rng.choice(members, round(flip * len(members)), replace=False)
    labels[flipped] = 1 - labels[flipped]
    return Setting("noisy", name, flip, rows, labels, inside[:, None], split_rows(rows, groups))


def _draw(rng: np.random.Generator, pool: Array, count: int, what: str) -> Array:
    if not 0 <= count <= len(pool):
        raise InputError(f"this setting needs {count:,} {what}; the table has {len(pool):,}; use fewer rows")
    return rng.choice(pool, count, replace=False)


def split_rows(rows: Array, groups: Array | None = None) -> Array:
    """(m,) by the hash of a row's number, or of its group: the same in every setting of a table."""
    units = rows if groups is None else groups[rows]
    hashes = [hashlib.blake2b(str(unit).encode(), digest_size=8).digest() for unit in units.tolist()]
    positions = np.array([int.from_bytes(digest, "big") / 2**64 for digest in hashes])  # (m,) in [0, 1)
    bounds = np.cumsum(list(SHARES.values()))[:-1]
    split: Array = np.array(list(SHARES))[np.digitize(positions, bounds)]
    return split


# --- models --------------------------------------------------------------------------------------------------


def synthetic(
    labels: Array, inside: Array, *, seed: int, sound: float = PROB_OUTSIDE, flawed: float = PROB_INSIDE
) -> Array:
    """(m,) probability of 1: Beta(s, 1 - s) for label 1, Beta(1 - s, s) for 0: the true class has the mean s.

    s is `flawed` inside the slice and `sound` elsewhere.
    """
    s = np.where(inside, flawed, sound)
    alpha = np.where(labels == 1, s, 1 - s)
    return np.random.default_rng(seed).beta(alpha, 1 - alpha)


def worse(right: Array, slices: Array, least: float = WORSE) -> Array:
    """(t,) bool: even the upper end of the accuracy inside is more than `least` below the lower end outside.

    Signed, unlike the published rule. Wilson's 95% intervals; outside: in no slice at all.
    """
    outside = ~slices.any(axis=1)
    low, _ = wilson(int(right[outside].sum()), int(outside.sum()))
    highs = [wilson(int(right[inside].sum()), int(inside.sum()))[1] for inside in slices.T]
    return low - np.array(highs) > least


# --- one setting, one method ----------------------------------------------------------------------------------


def prepare(setting: Setting, train: Train | None, seed: int) -> dict[str, Array]:
    """Outputs of a model on the valid and test rows; without `train`, of a synthetic one."""
    unseen = setting.split != "train"
    rows = setting.rows[unseen]
    labels = setting.labels[unseen]
    slices = setting.slices[unseen]
    own: dict[str, Array] = {}
    if train is None:
        probs = synthetic(labels, slices.any(axis=1), seed=seed)
    else:
        probs, layer = train(setting.rows[~unseen], setting.labels[~unseen], rows)
        own = {"penultimate": layer.astype(np.float32)}
    right = (probs > 0.5) == (labels == 1)
    outside = ~slices.any(axis=1)
    accuracies: list[float | None] = []
    for part in (outside, *slices.T):
        accuracy = float(right[part].mean()) if part.any() else None
        accuracies.append(accuracy)
    flawed = worse(right, slices)
    facts = {"name": setting.name, "strength": setting.strength, "accuracies": accuracies, "kept": flawed.tolist()}
    return {
        "rows": rows,
        "labels": labels,
        "probs": probs,
        "slices": slices[:, flawed],
        "test": setting.split[unseen] == "test",
        **own,
        "facts": np.array(json.dumps(facts)),
    }


def evaluation(table: Table, arrays: Mapping[str, Array], own: bool = True) -> Evaluation:
    """The valid and test rows. The one representation: the model's own penultimate layer, or the table's."""
    if own and "penultimate" in arrays:
        representations = {"penultimate": arrays["penultimate"]}
        sources = {"penultimate": Source()}
    else:
        name = table.features_name
        representations = {name: table.features[arrays["rows"]]}
        sources = {name: Source(from_model=False)}
    return Evaluation(
        ids=arrays["rows"],
        labels=arrays["labels"],
        probs=arrays["probs"],
        representations=representations,
        sources=sources,
    )


NO_EMBEDDING = "high-loss:within_label"  # 1 - p(true class) in each label: what a search of an embedding has to beat


@dataclass(frozen=True)
class Score:
    """One method on one setting: means over its slices."""

    p10: float  # precision at 10 of the best hypothesis for each slice
    ap: float  # average precision, likewise
    base: float  # share of test rows in a slice: what chance scores
    seconds: float
    representation: str


def score(slicer: Any, rows: Evaluation, test: Array, slices: Array, *, top: int = 5, seed: int = 0) -> Score:
    """Fit on the valid rows; weights of the test rows, which keep their labels where a method reads them.

    The best of the first `top` hypotheses counts: a method that offers fifty must not win by their number.
    """
    start = time.perf_counter()
    slicer.fit(rows.rows(~test))
    weights = slicer.membership(rows.rows(test))[:, :top]
    seconds = time.perf_counter() - start
    truth = slices[test]
    p10 = metrics.best_precision_at(weights, truth, 10, seed)
    ap = [max((metrics.average_precision(w, b) for w in weights.T), default=0.0) for b in truth.T]
    used = getattr(slicer, "representation_", None) or "none"
    return Score(float(p10.mean()), float(np.mean(ap)), float(truth.mean()), seconds, used)


# --- the benchmark ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SettingsBenchmark:
    """What every method is measured on. The same benchmark gives the same table, but for its seconds."""

    n: int = 5000  # rows of a setting
    settings: int = 3  # of each kind
    tries: int = 12  # models of each kind at most; those that are not worse on the slice are dropped
    top: int = 5  # hypotheses of a method that count
    seed: int = 0
    own: bool = True  # trained models are read by their own penultimate layer; else by the table's representation
    strengths: Mapping[str, Sequence[float]] = field(default_factory=lambda: PUBLISHED)
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by kind; all where none are named


def run(
    table: Table,
    kinds: Sequence[str],
    methods: Sequence[str],
    folder: Path,
    *,
    benchmark: SettingsBenchmark | None = None,
    train: Train | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Progress = silent,
) -> list[dict[str, Any]]:
    """Prepare and judge what is missing, and return one row a kind and method.

    train: how models are trained. Default: synthetic ones. options: of methods, by names with or without a preset.
    """
    benchmark = benchmark or SettingsBenchmark()
    model = "synthetic" if train is None else "trained"
    settings = {kind: candidates(table, kind, benchmark)[: benchmark.tries] for kind in kinds}
    folder.mkdir(parents=True, exist_ok=True)
    _check_folder(table, benchmark, train, folder)
    rows = []
    for k, kind in enumerate(kinds):
        report = partial(_report_kind, progress, k, len(kinds))
        paths, dropped = _prepare_missing(settings[kind], benchmark, train, folder, report)
        for j, method in enumerate(methods):
            report(f"{kind}: {method}", (1 + j / len(methods)) / 2)
            own = options_of(method, options or {})
            scores = [_judge_missing(table, path, method, benchmark, own) for path in paths]
            rows.append(_summarise(method, kind, model, scores, dropped))
    return rows


def _report_kind(progress: Progress, k: int, kinds: int, stage: str, share: float) -> None:
    """`share` of kind k: the first half its models, the second its methods."""
    progress(stage, (k + share) / kinds)


def candidates(table: Table, kind: str, benchmark: SettingsBenchmark) -> list[Setting]:
    """Every attribute at every strength that the table has rows for, in random order."""
    makers: dict[str, Callable[..., Setting]] = {
        "rare": lambda a, x, **more: rare(table.target, a, share=x, **more),
        "correlation": lambda a, x, **more: correlation(table.target, a, rho=x, **more),
        "noisy": lambda a, x, **more: noisy(table.target, a, flip=x, **more),
    }
    if kind not in makers:
        raise unknown("kind of setting", kind, makers)
    names = benchmark.attributes.get(kind, tuple(table.attributes))
    grid = [(name, strength) for name in names for strength in benchmark.strengths[kind]]
    settings = []
    problem = "it has no attributes"
    for i in np.random.default_rng(benchmark.seed).permutation(len(grid)):
        name, strength = grid[i]
        more = {"n": benchmark.n, "seed": benchmark.seed + int(i), "groups": table.groups, "name": name}
        try:
            settings.append(makers[kind](table.attribute(name), strength, **more))
        except InputError as error:  # of this cell of the grid only
            problem = str(error)
    if not settings:
        raise InputError(f"table `{table.name}` allows no setting of kind `{kind}`: {problem}, or leave this kind out")
    return settings


def _prepare_missing(
    settings: Sequence[Setting], benchmark: SettingsBenchmark, train: Train | None, folder: Path, progress: Progress
) -> tuple[list[Path], int]:
    """Files of the settings of one kind whose models are as bad as planned, and how many were not."""
    paths: list[Path] = []
    dropped = 0
    model = "synthetic" if train is None else "trained"
    for i, setting in enumerate(settings):
        if len(paths) == benchmark.settings:
            break
        path = folder / f"{model}-{setting.kind}-{i:03d}.npz"
        if not path.exists():
            # Models may be dropped until the tries are used up: the nearer of the two ends.
            done = max(len(paths) / benchmark.settings, i / len(settings))
            progress(f"{setting.kind} {setting.name} {setting.strength:g}: {model} model", done / 2)
            write_npz(path, prepare(setting, train, benchmark.seed + i))
        if any(read_facts(path)["kept"]):
            paths.append(path)
        else:
            dropped += 1
    return paths, dropped


def _judge_missing(
    table: Table, path: Path, method: str, benchmark: SettingsBenchmark, options: Mapping[str, Any]
) -> dict[str, Any]:
    """From its file where it was done with these options, else done now."""
    layer = "own" if benchmark.own else "foreign"
    file = path.with_name(f"{path.stem}-{layer}-{method.replace(':', '-')}.json")
    if file.exists():
        result: dict[str, Any] = json.loads(file.read_text())
        if result["options"] == dict(options):
            return result
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files if name != "facts"}
    slicer = make(method, seed=benchmark.seed, options=options)
    rows = evaluation(table, arrays, benchmark.own)
    if getattr(slicer, "representation", None) == INFLUENCE:
        rows, _ = add_influence(rows, rows=~arrays["test"])
    scores = score(slicer, rows, arrays["test"], arrays["slices"], top=benchmark.top, seed=benchmark.seed)
    result = {"options": dict(options), **asdict(scores)}
    write(file, json.dumps(result).encode())
    return result


def _summarise(method: str, kind: str, model: str, scores: list[dict[str, Any]], dropped: int) -> dict[str, Any]:
    name, _, preset = method.partition(":")
    row: dict[str, Any] = {"method": name, "preset": preset or "recommended", "kind": kind, "model": model}
    row |= {"settings": len(scores), "dropped": dropped}
    row["p10"], row["p10_se"] = metrics.mean_and_error([score["p10"] for score in scores])
    for key in ("ap", "base", "seconds"):
        row[key] = metrics.mean_and_error([score[key] for score in scores])[0]
    row["each"] = [score["p10"] for score in scores]  # in the same order for all methods: differences are paired
    row["representation"] = scores[0]["representation"] if scores else None
    return row


def read_facts(path: Path) -> dict[str, Any]:
    """Of a prepared setting: attribute, strength, accuracy outside and in each slice, and which slices are kept."""
    with np.load(path, allow_pickle=False) as arrays:
        facts: dict[str, Any] = json.loads(str(arrays["facts"]))
    return facts


def _check_folder(table: Table, benchmark: SettingsBenchmark, train: Train | None, folder: Path) -> None:
    """A folder holds one benchmark of one table; its number of settings may grow, and other methods may join."""
    facts = {key: value for key, value in asdict(benchmark).items() if key not in ("settings", "tries", "own")}
    facts |= {"table": table.name, "rows": len(table), "fingerprint": table.fingerprint, "model": "synthetic"}
    if train is not None:
        recipe = getattr(train, "keywords", {})
        facts["model"] = f"{getattr(train, 'func', train).__name__} {json.dumps(recipe, sort_keys=True)}"
    name = "synthetic.json" if train is None else "trained.json"
    check_same_benchmark(folder / name, json.dumps(facts, sort_keys=True))
