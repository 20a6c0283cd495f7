"""`directions`: in each class, the direction from the rows that a model gets wrong to those it gets right.

Jain, Lawrence, Moitra and Madry, "Distilling Model Failures as Directions in Latent Space", 2023. The representation
is standardised by the training rows and scaled to unit length; in each class a linear SVM with balanced weights
predicts whether the model is correct. Everywhere positive is easy and negative is hard: a slice is the rows of a
class on the hard side. How well the SVM predicts rows it was not fitted to is the strength of the direction.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import expit

from ...core import Array, Evaluation, InputError
from ...core.blocks import blocks, unit
from ...engine import Local
from ..contract import BaseSlicer, check_columns
from ..numerics import DIGITS
from ..options import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, Interval
from .linear_svm import Intercept, solve
from .strength import choose, nested_strength, ordered_halves, outcomes, quarters, shuffled_halves

BATCH = 1 << 22  # numbers in the largest array of one batch of classes
LEAST_ERRORS = 10  # of a group of errors, on average, for a direction of its own
FLAT = 1e-9  # length of a direction, for coefficients that sum to 1, below which the rows are all alike
BOUNDARY = 0.5  # the weight of a row on the SVM's boundary


@dataclass(frozen=True, eq=False)
class ClassBatch:
    """Classes of about one size, padded to the largest.

    Parameters
    ----------
    classes
        (g,) the class of each.
    rows
        (g, n) row indices; -1 for padding.
    quarter
        (g, n) the quarter each row is in.
    outcome
        (g, n) 1 correct, -1 error, 0 padding.
    """

    classes: Array
    rows: Array
    quarter: Array
    outcome: Array


@dataclass(frozen=True, eq=False)
class FittedDirection:
    """One direction, before the surest are chosen.

    Parameters
    ----------
    rank
        What directions are sorted by: the surest first.
    normal
        (d,) of length 1.
    intercept
        Of the SVM, in units of that normal.
    edge
        Distance from the boundary at which weights are .27 and .73.
    rule
        Of the slice.
    """

    rank: tuple[float, ...]
    normal: Array
    intercept: float
    edge: float
    rule: dict[str, Any]


@dataclass(frozen=True)
class DirectionsAdvanced:
    """Options of `directions` that are rarely set.

    Parameters
    ----------
    C_min
        Smallest value of C that is tried.
    C_max
        Largest value of C that is tried.
    C_values
        Values of C that are tried, evenly in the logarithm.
    intercept
        `centre`, or `libsvm` for what libsvm does where many are optimal.
    shuffle
        Cut the rows in halves at random, keeping groups together, instead of in order.
    nested
        Measure the strength with C chosen inside each fold.
    twice
        Standardise and scale what already is, as one published script does.
    max_rows
        Rows of a class that are fitted to at most; null for all.
    """

    C_min: float = 1e-6
    C_max: float = 1.0
    C_values: int = 7
    intercept: Intercept = "centre"
    shuffle: bool = True
    nested: bool = True
    twice: bool = False
    max_rows: int | None = 5000


class Directions(BaseSlicer):
    """Rows of a class on the hard side of a linear SVM that predicts the model's errors.

    Parameters
    ----------
    scope
        Classes by `label` or by `prediction`.
    slices
        Directions to return at most, the surest first; null for all.
    per_class
        Directions in each class; with more than one its errors are first put in groups by k-means.
    permutations
        Shuffles of the outcome that the strength of a direction is compared with.
    standardise
        Standardise columns before rows are scaled to unit length. Without it a direction lies in the space itself
        and can be decoded.
    advanced
        Options that are rarely set.
    representation
        The representation that is searched. Default: the first.
    seed
        Of the halves, the rows of large classes and the permutations.
    """

    name = "directions"
    needs = frozenset({"representations", "labels", "predictions"})
    own_scopes: ClassVar = {"label": {"scope": "label"}, "prediction": {"scope": "prediction"}}
    refused_scopes: ClassVar = {"none": "a direction is one of a class; ask for `label` or `prediction`"}
    presets: ClassVar = {
        "recommended": {},
        "as_published": {
            "slices": None,
            "permutations": 0,
            "advanced": {"intercept": "libsvm", "shuffle": False, "nested": False, "max_rows": None},
        },
    }
    limits: ClassVar = {
        "slices": AT_LEAST_ONE,
        "per_class": AT_LEAST_ONE,
        "permutations": NOT_NEGATIVE,
        "C_min": POSITIVE,
        "C_max": Interval("C_min"),
        "C_values": AT_LEAST_ONE,
        "max_rows": Interval(10),
    }
    advanced_type: ClassVar = DirectionsAdvanced
    renamed: ClassVar = {
        "within": "scope",
        "count": "per_class",
        "C_from": "advanced.C_min",
        "C_to": "advanced.C_max",
        "C_steps": "advanced.C_values",
        "rows": "advanced.max_rows",
    }
    fitted_arrays: ClassVar[tuple[str, ...]] = ("centre_", "scale_", "directions_", "intercepts_", "edges_", "classes_")

    centre_: Array  # (d,)
    scale_: Array  # (d,) infinite for a column that never varies: it says nothing
    directions_: Array  # (s, d) of length 1, in the standardised space, from hard to easy
    intercepts_: Array  # (s,)
    edges_: Array  # (s,) distance from the boundary that makes a weight of .27 or .73
    classes_: Array  # (s,)

    def __init__(
        self,
        scope: Literal["label", "prediction"] = "label",
        slices: int | None = 5,
        per_class: int = 1,
        permutations: int = 20,
        standardise: bool = True,
        advanced: Mapping[str, Any] | None = None,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.scope = scope
        self.slices = slices
        self.per_class = per_class
        self.permutations = permutations
        self.standardise = standardise
        self.advanced = advanced
        self.representation = representation
        self.seed = seed

    @property
    def reads(self) -> frozenset[str]:
        """What the classes are by: label or prediction."""
        return frozenset({self.scope})

    @property
    def _rare(self) -> DirectionsAdvanced:
        return DirectionsAdvanced(**(self.advanced or {}))

    # --- learning --------------------------------------------------------------------------------------------

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        if self._rare.twice and not self.standardise:
            raise InputError("`directions.advanced.twice` must be false where `standardise` is; got True")
        if evaluation.task != "classification":
            raise InputError(f"method `directions` looks within classes; this evaluation is one of {evaluation.task}")
        scaled_by = evaluation if train is None else train.by_id()
        self._fit_scale(scaled_by)
        X = self.matrix(evaluation)
        rng = np.random.default_rng(self.seed)
        check_columns(X, len(self.centre_), "method `directions`")
        batches = list(self._batches(evaluation, rng, X.shape[1]))
        # In this process one after the other: kernels of several large classes may not fit in memory.
        engine = Local(self.engine.memory, threads=1) if isinstance(self.engine, Local) else self.engine
        fitted = engine.each(_fit_batch, self._numbered(batches, X, rng), self._bare())
        directions: list[FittedDirection] = []
        done = 0
        for batch, found in zip(batches, fitted, strict=True):
            directions += found
            done += int((batch.rows >= 0).sum())
            self.report_progress(self.name, done / len(evaluation))
        self._keep(sorted(directions, key=lambda direction: direction.rank))

    def _thresholds(self, evaluation: Evaluation) -> Array:
        """(s,) the SVM's own boundary, however many rows lie beyond it."""
        return np.full(len(self.rules_), BOUNDARY)

    def _fit_scale(self, rows: Evaluation) -> None:
        """Mean and spread of each column, in two passes over rows that may not fit in memory; 0 and 1 if unwanted."""
        X = self.matrix(rows)
        if not self.standardise:
            self.centre_ = np.zeros(X.shape[1])
            self.scale_ = np.ones(X.shape[1])
            return
        n = len(X)
        self.centre_ = sum(block.sum(axis=0, dtype=np.float64) for _, block in blocks(X)) / n
        squares = sum(np.square(block - self.centre_).sum(axis=0) for _, block in blocks(X))
        spread = np.sqrt(squares / n)
        self.scale_ = np.where(spread > FLAT * np.maximum(np.abs(self.centre_), 1e-300), spread, np.inf)

    def _standard(self, block: Array) -> Array:
        """(m, d) standardised rows of length 1; of length 0 where nothing varies."""
        Z = np.asarray(block, dtype=np.float64)
        times = 2 if self._rare.twice else 1
        for _ in range(times):
            Z = unit((Z - self.centre_) / self.scale_)
        return Z

    def _batches(self, evaluation: Evaluation, rng: np.random.Generator, d: int) -> Iterator[ClassBatch]:
        """Classes with both outcomes, small ones first, as many at once as one array may hold."""
        group = _column(evaluation, self.scope)
        wrong = np.asarray(evaluation.predictions != evaluation.labels)
        strata, noise = _strata(evaluation, group, wrong, rng)
        shuffle = self._rare.shuffle
        if not shuffle:
            strata = np.where(wrong, 0, 1)
        both = [rows for rows in _classes(group) if 0 < wrong[rows].sum() < len(rows)]
        members = sorted((self._sample(rows, wrong, rng) for rows in both), key=len)
        while members:
            take = 1
            while take < len(members) and (take + 1) * (n := len(members[take])) * max(n, d) <= BATCH:
                take += 1
            rows = _padded(members[:take])
            members = members[take:]
            there = rows >= 0
            placed = np.where(there, strata[rows], -1)
            halves: Callable[[Array], Array] = ordered_halves
            if shuffle:
                halves = partial(shuffled_halves, noise=noise[rows])
            quarter = np.where(there, quarters(placed, halves), 4)
            sort = np.argsort(quarter, axis=1, kind="stable")  # a fold is then a run of rows
            rows, quarter = (np.take_along_axis(a, sort, axis=1) for a in (rows, quarter))
            outcome = np.where(rows < 0, 0, np.where(wrong[rows], -1, 1))
            yield ClassBatch(group[rows[:, 0]], rows, quarter, outcome)

    def _sample(self, rows: Array, wrong: Array, rng: np.random.Generator) -> Array:
        """At most so many rows of a class, of both outcomes: weights are balanced, so shares need not be kept."""
        most = self._rare.max_rows
        if most is None or len(rows) <= most:
            return rows
        few, many = sorted((rows[wrong[rows]], rows[~wrong[rows]]), key=len)
        few = rng.permutation(few)[: most // 2]
        return np.sort(np.concatenate([few, rng.permutation(many)[: most - len(few)]]))

    def _numbered(self, batches: list[ClassBatch], X: Any, rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
        """Each batch with its rows, and with the random numbers that it has where all are fitted in turn."""
        for batch in batches:
            yield batch, X[batch.rows[batch.rows >= 0]], copy.deepcopy(rng)
            rng.bit_generator.advance(self.permutations * batch.rows.size)  # type: ignore[attr-defined]

    def _bare(self) -> Self:
        """A copy without what is of this process and of no use to another."""
        bare = copy.copy(self)
        for name in ("report_progress", "engine", "unlabelled_rows"):
            vars(bare).pop(name, None)
        return bare

    def _directions(self, batch: ClassBatch, rows: Array, rng: np.random.Generator) -> list[FittedDirection]:
        """Fit a batch of classes, and measure each direction. rows: (m, d), those of the batch that are no padding."""
        rare = self._rare
        there = batch.rows >= 0
        X = np.zeros((*batch.rows.shape, rows.shape[1]))
        X[there] = self._standard(rows)
        K = X @ X.transpose(0, 2, 1)
        grid = np.geomspace(rare.C_min, rare.C_max, rare.C_values)
        y = outcomes(K, batch.outcome, self.per_class, LEAST_ERRORS)
        C, score = choose(K, y, batch.quarter // 2, grid, rare.intercept)
        fits = solve(K, y, C[..., None], rare.intercept)
        strength = self._strengths(K, y, batch, grid) if rare.nested else score
        null = self._null(K, batch, grid, rng)
        directions = []
        for c, k in np.argwhere((y < 0).any(axis=-1)):
            normal = fits.coefficients[c, k, 0] @ X[c]
            facts = {"C": float(C[c, k]), "rows": int((y[c, k] != 0).sum()), "errors": int((y[c, k] < 0).sum())}
            facts |= _strength(strength[c, k], null[:, c].ravel(), y[c, k])
            length = float(np.linalg.norm(normal))
            if length <= FLAT * facts["C"] * facts["rows"]:
                continue  # all rows are alike
            rule = self._rule(int(batch.classes[c]), int(k), facts)
            rank = (-_sureness(facts), int(batch.classes[c]), int(k))
            edge = max(float(fits.values[c, k, 0][y[c, k] != 0].std()) / length, 1e-6)
            intercept = float(fits.intercepts[c, k, 0]) / length
            directions.append(FittedDirection(rank, normal / length, intercept, edge, rule))
        return directions

    def _rule(self, value: int, k: int, facts: dict[str, Any]) -> dict[str, Any]:
        return {
            "kind": "direction",
            "representation": self.representation_,
            "scope": {self.scope: value},
            "group": k,
            "arrays": {
                "direction": "directions_",
                "intercept": "intercepts_",
                "centre": "centre_",
                "scale": "scale_",
            },
            **facts,
        }

    def _null(self, K: Array, batch: ClassBatch, grid: Array, rng: np.random.Generator) -> Array:
        """(permutations, g, per_class) strengths where outcomes were shuffled among the rows of a class and quarter."""
        null = np.empty((self.permutations, len(K), self.per_class))
        # two folds, in two folds, for each C
        at_once = max(1, BATCH // (batch.rows.size * self.per_class * 4 * len(grid)))
        for start in range(0, self.permutations, at_once):
            some = range(start, min(start + at_once, self.permutations))
            y = np.concatenate([self._shuffled(K, batch, rng) for _ in some], axis=1)
            scores = self._strengths(K, y, batch, grid)
            null[some] = scores.reshape(len(K), len(some), self.per_class).transpose(1, 0, 2)
        return null

    def _shuffled(self, K: Array, batch: ClassBatch, rng: np.random.Generator) -> Array:
        order = np.argsort(batch.quarter + rng.random(batch.quarter.shape), axis=1)
        return outcomes(K, np.take_along_axis(batch.outcome, order, axis=1), self.per_class, LEAST_ERRORS)

    def _strengths(self, K: Array, y: Array, batch: ClassBatch, grid: Array) -> Array:
        """(g, q)"""
        rare = self._rare
        if rare.nested:
            return nested_strength(K, y, batch.quarter, grid, rare.intercept)
        return choose(K, y, batch.quarter // 2, grid, rare.intercept)[1]

    def _keep(self, directions: list[FittedDirection]) -> None:
        directions = directions[: self.slices]
        self.directions_ = np.array([direction.normal for direction in directions]).reshape(-1, len(self.centre_))
        self.intercepts_ = np.array([direction.intercept for direction in directions])
        self.edges_ = np.array([direction.edge for direction in directions])
        self.rules_ = tuple(direction.rule for direction in directions)
        self.classes_ = np.array([rule["scope"][self.scope] for rule in self.rules_], dtype=np.int64)

    # --- new rows --------------------------------------------------------------------------------------------

    def decisions(self, evaluation: Evaluation) -> Array:
        """(n, s) signed distance from each slice's boundary, negative on the hard side; 0 for rows of other classes."""
        X = self.matrix(evaluation)
        check_columns(X, len(self.centre_), "method `directions`")
        evaluation.need(frozenset({f"{self.scope}s"}), f"method `directions` with scope={self.scope}")
        group = _column(evaluation, self.scope)
        distance = np.zeros((len(X), len(self.classes_)))
        for c in np.unique(self.classes_):
            rows = np.flatnonzero(group == c)
            of = np.flatnonzero(self.classes_ == c)
            near = self._standard(X[rows]) @ self.directions_[of].T + self.intercepts_[of]
            distance[np.ix_(rows, of)] = np.round(near, DIGITS)
        return distance

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) weights that fall with the decision; .5 on the boundary, where the threshold is."""
        inside = self.decisions(evaluation)
        own = _column(evaluation, self.scope)[:, None] == self.classes_
        return np.where(own, expit(-inside / self.edges_), 0.0)


def _fit_batch(item: tuple[Any, ...], slicer: Directions) -> list[FittedDirection]:
    return slicer._directions(*item)


def _sureness(facts: Mapping[str, Any]) -> float:
    """What directions are ranked by: standard deviations above chance, or the strength where nothing was shuffled."""
    if facts["strength"] is None:
        return -np.inf
    if facts["null"] is None:
        return float(facts["strength"])
    return float(facts["null"]["z"])


def _column(evaluation: Evaluation, scope: str) -> Array:
    column = evaluation.labels if scope == "label" else evaluation.predictions
    assert column is not None
    return column


def _strata(ev: Evaluation, group: Array, wrong: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """(n,) 0 where a row, or another of its class that belongs with it, is an error, else 1; (n,) chance."""
    if ev.groups is None:
        return np.where(wrong, 0, 1), rng.random(len(wrong))
    units = np.unique(ev.groups, return_inverse=True)[1].ravel()
    each = np.unique(np.stack([group, units]), axis=1, return_inverse=True)[1].ravel()
    return np.where(np.bincount(each, weights=wrong)[each] > 0, 0, 1), rng.random(units.max() + 1)[units]


def _classes(group: Array) -> list[Array]:
    """Rows of each class, in order."""
    order = np.argsort(group, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group[order])) + 1)


def _padded(members: list[Array]) -> Array:
    rows = np.full((len(members), max(map(len, members))), -1)
    for row, member in zip(rows, members, strict=True):
        row[: len(member)] = member
    return rows


def _strength(strength: float, null: Array, y: Array) -> dict[str, Any]:
    """What the rule says of a direction's strength: None, with a sentence, where no rows could be held back."""
    errors = int((y < 0).sum())
    right = int((y > 0).sum())
    if np.isnan(strength):
        note = f"errors: {errors}, correct rows: {right}; no two halves hold both, so the strength is unknown"
        return {"strength": None, "null": None, "note": note}
    null = null[~np.isnan(null)]
    if not len(null):
        return {"strength": float(strength), "null": None}
    # With few shuffles their spread is uncertain: it counts as no less than that of fair coins.
    coins = 0.25 * np.sqrt(1 / errors + 1 / right)
    spread = max(float(null.std()), float(coins))
    return {
        "strength": float(strength),
        "null": {
            "mean": float(null.mean()),
            "spread": spread,
            "z": float((strength - null.mean()) / spread),
            "p_value": float((1 + (null >= strength).sum()) / (1 + len(null))),
            "shuffles": len(null),
        },
    }
