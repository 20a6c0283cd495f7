"""`directions`: in each class, the direction from the rows that a model gets wrong to those it gets right.

Jain, Lawrence, Moitra and Madry, "Distilling Model Failures as Directions in Latent Space", 2023. The representation
is standardised by the training rows and scaled to unit length; in each class a linear SVM with balanced weights
foretells whether the model is correct. Everywhere positive is easy and negative is hard: a slice is the rows of a
class on the hard side. How well the SVM foretells rows it was not fitted to is the strength of the direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import expit

from ...core import Array, Evaluation, InputError
from ...core.blocks import blocks
from ..contract import BaseSlicer, check_columns
from .linear_svm import Intercept, solve
from .strength import choose, nested_strength, ordered_halves, outcomes, quarters, shuffled_halves

BATCH = 1 << 22  # numbers in the largest array of one batch of classes
LEAST_ERRORS = 10  # of a group of errors, on average, for a direction of its own
DIGITS = 9  # the last bits of a product depend on which rows stand in one block; sets must not
FLAT = 1e-9  # length of a direction, for coefficients that sum to 1, below which the rows are all alike
BOUNDARY = 0.5  # the weight of a row on the SVM's boundary


@dataclass(frozen=True, eq=False)
class Batch:
    """Classes of about one size: row indices, the quarter each row is in, and its outcome, 0 for padding."""

    classes: Array  # (g,)
    rows: Array  # (g, n) -1 for padding
    quarter: Array  # (g, n)
    outcome: Array  # (g, n) 1 correct, -1 error, 0 padding


@dataclass(frozen=True, eq=False)
class Found:
    """One direction, before it is known whether it is kept."""

    rank: tuple[float, ...]
    normal: Array  # (d,) of length 1
    intercept: float
    edge: float
    rule: dict[str, Any]


class Directions(BaseSlicer):
    """Rows of a class on the hard side of a linear SVM that foretells the model's errors.

    count: directions a class; with more than one its errors are first put in groups by k-means. C_from, C_to,
    C_steps: values of C tried, evenly in the logarithm. intercept: "centre", or "libsvm" for what libsvm does where
    many are optimal. shuffle: halves of the rows at random, keeping groups together, or in order. nested: strength
    with C chosen inside each fold. permutations: shuffles of the outcome that the strength is compared with. within:
    classes by "label" or by "prediction". twice: standardise and scale what already is, as one script does.
    standardise: false leaves the columns as they are and only scales rows to unit length, so that a direction lies in
    the space itself and can be decoded. rows: of a class that are fitted to at most; null for all. slices: directions
    kept, the surest first; null for all.
    """

    name = "directions"
    needs = frozenset({"representations", "labels", "predictions"})
    reads = frozenset({"label"})
    presets: ClassVar = {
        "recommended": {},
        "as_published": {
            "intercept": "libsvm", "shuffle": False, "nested": False, "permutations": 0, "rows": None, "slices": None,
        },
    }  # fmt: skip
    learnt: ClassVar[tuple[str, ...]] = ("centre_", "scale_", "directions_", "intercepts_", "edges_", "classes_")

    centre_: Array  # (d,)
    scale_: Array  # (d,) infinite for a column that never varies: it says nothing
    directions_: Array  # (s, d) of length 1, in the standardised space, from hard to easy
    intercepts_: Array  # (s,)
    edges_: Array  # (s,) distance from the boundary that makes a weight of .27 or .73
    classes_: Array  # (s,)

    def __init__(
        self,
        count: int = 1,
        C_from: float = 1e-6,
        C_to: float = 1.0,
        C_steps: int = 7,
        intercept: Intercept = "centre",
        shuffle: bool = True,
        nested: bool = True,
        permutations: int = 20,
        within: Literal["label", "prediction"] = "label",
        twice: bool = False,
        standardise: bool = True,
        rows: int | None = 5000,
        slices: int | None = 5,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.count, self.C_from, self.C_to, self.C_steps = count, C_from, C_to, C_steps
        self.intercept: Intercept = intercept
        self.shuffle, self.nested, self.permutations = shuffle, nested, permutations
        self.within, self.twice, self.standardise = within, twice, standardise
        self.rows, self.slices = rows, slices
        self.representation, self.seed = representation, seed
        # The class says what is read by default; `vars` since types allow no instance to differ.
        vars(self)["reads"] = frozenset({within})

    def _check(self, evaluation: Evaluation) -> None:
        limits = {
            "count": (self.count >= 1, "at least 1"),
            "C_from": (self.C_from > 0, "positive"),
            "C_to": (self.C_to >= self.C_from, "at least `C_from`"),
            "C_steps": (self.C_steps >= 1, "at least 1"),
            "permutations": (self.permutations >= 0, "at least 0"),
            "twice": (self.standardise or not self.twice, "false where `standardise` is"),
            "rows": (self.rows is None or self.rows >= 10, "at least 10, or null for all"),
            "slices": (self.slices is None or self.slices >= 1, "at least 1, or null for all"),
        }
        for option, (good, want) in limits.items():
            if not good:
                raise InputError(f"`directions.{option}` must be {want}; got {getattr(self, option)!r}")
        if evaluation.task != "classification":
            raise InputError(f"method `directions` looks within classes; this evaluation is one of {evaluation.task}")

    # --- learning --------------------------------------------------------------------------------------------

    def fit(self, evaluation: Evaluation, *, train: Evaluation | None = None) -> Self:
        """As every slicer's, but for the threshold: the SVM's own boundary, however many rows lie beyond it."""
        who = f"method `{self.name}`"
        evaluation.need(self.needs, who)
        self.representation_ = evaluation.representation(self.representation, who)
        self._fit(evaluation.by_id(), train)
        self.thresholds_ = np.full(len(self.rules_), BOUNDARY)
        return self

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        self._check(evaluation)
        self._fit_scale(evaluation if train is None else train.by_id())
        X, rng = self.matrix(evaluation), np.random.default_rng(self.seed)
        check_columns(X, len(self.centre_), "method `directions`")
        found: list[Found] = []
        done = 0
        for batch in self._batches(evaluation, rng, X.shape[1]):
            found += self._directions(batch, X, rng)
            done += int((batch.rows >= 0).sum())
            self.report_progress(self.name, done / len(evaluation))
        self._keep(sorted(found, key=lambda one: one.rank))

    def _fit_scale(self, rows: Evaluation) -> None:
        """Mean and spread of each column, in two passes over rows that may not fit in memory; 0 and 1 if unwanted."""
        X = self.matrix(rows)
        if not self.standardise:
            self.centre_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
            return
        n = len(X)
        self.centre_ = sum(block.sum(axis=0, dtype=np.float64) for _, block in blocks(X)) / n
        squares = sum(np.square(block - self.centre_).sum(axis=0) for _, block in blocks(X))
        spread = np.sqrt(squares / n)
        self.scale_ = np.where(spread > FLAT * np.maximum(np.abs(self.centre_), 1e-300), spread, np.inf)

    def _standard(self, block: Array) -> Array:
        """(m, d) standardised rows of length 1; of length 0 where nothing varies."""
        Z = np.asarray(block, dtype=np.float64)
        for _ in range(2 if self.twice else 1):
            Z = (Z - self.centre_) / self.scale_
            lengths = np.linalg.norm(Z, axis=1, keepdims=True)
            Z = Z / np.where(lengths > 0, lengths, 1.0)
        return Z

    def _batches(self, evaluation: Evaluation, rng: np.random.Generator, d: int) -> Iterator[Batch]:
        """Classes with both outcomes, small ones first, as many at once as one array may hold."""
        group = _column(evaluation, self.within)
        wrong = np.asarray(evaluation.predictions != evaluation.labels)
        strata, noise = _strata(evaluation, group, wrong, rng)
        if not self.shuffle:
            strata = np.where(wrong, 0, 1)
        both = [rows for rows in _classes(group) if 0 < wrong[rows].sum() < len(rows)]
        members = sorted((self._sample(rows, wrong, rng) for rows in both), key=len)
        while members:
            take = 1
            while take < len(members) and (take + 1) * (n := len(members[take])) * max(n, d) <= BATCH:
                take += 1
            rows, members = _padded(members[:take]), members[take:]
            there = rows >= 0
            placed = np.where(there, strata[rows], -1)
            halves = partial(shuffled_halves, noise=noise[rows]) if self.shuffle else ordered_halves
            quarter = np.where(there, quarters(placed, halves), 4)
            sort = np.argsort(quarter, axis=1, kind="stable")  # a fold is then a run of rows
            rows, quarter = (np.take_along_axis(a, sort, axis=1) for a in (rows, quarter))
            outcome = np.where(rows < 0, 0, np.where(wrong[rows], -1, 1))
            yield Batch(group[rows[:, 0]], rows, quarter, outcome)

    def _sample(self, rows: Array, wrong: Array, rng: np.random.Generator) -> Array:
        """At most so many rows of a class, of both outcomes: weights are balanced, so shares need not be kept."""
        if self.rows is None or len(rows) <= self.rows:
            return rows
        few, many = sorted((rows[wrong[rows]], rows[~wrong[rows]]), key=len)
        few = rng.permutation(few)[: self.rows // 2]
        return np.sort(np.concatenate([few, rng.permutation(many)[: self.rows - len(few)]]))

    def _directions(self, batch: Batch, matrix: Any, rng: np.random.Generator) -> list[Found]:
        """Fit a batch of classes, and measure each direction."""
        there = batch.rows >= 0
        X = np.zeros((*batch.rows.shape, matrix.shape[1]))
        X[there] = self._standard(matrix[batch.rows[there]])
        K = X @ X.transpose(0, 2, 1)
        grid = np.geomspace(self.C_from, self.C_to, self.C_steps)
        y = outcomes(K, batch.outcome, self.count, LEAST_ERRORS)
        C, score = choose(K, y, batch.quarter // 2, grid, self.intercept)
        fits = solve(K, y, C[..., None], self.intercept)
        strength = self._strengths(K, y, batch, grid) if self.nested else score
        null = self._null(K, batch, grid, rng)
        found = []
        for c, k in np.argwhere((y < 0).any(axis=-1)):
            normal = fits.coefficients[c, k, 0] @ X[c]
            facts = {"C": float(C[c, k]), "rows": int((y[c, k] != 0).sum()), "errors": int((y[c, k] < 0).sum())}
            facts |= _strength(strength[c, k], null[:, c].ravel(), y[c, k])
            fit = fits.values[c, k, 0][y[c, k] != 0], float(fits.intercepts[c, k, 0])
            found += self._found(int(batch.classes[c]), int(k), normal, fit, facts)
        return found

    def _null(self, K: Array, batch: Batch, grid: Array, rng: np.random.Generator) -> Array:
        """(permutations, g, count) strengths where outcomes were shuffled among the rows of a class and quarter."""
        null = np.empty((self.permutations, len(K), self.count))
        at_once = max(1, BATCH // (batch.rows.size * self.count * 4 * len(grid)))  # two folds, in two folds, for each C
        for start in range(0, self.permutations, at_once):
            some = range(start, min(start + at_once, self.permutations))
            y = np.concatenate([self._shuffled(K, batch, rng) for _ in some], axis=1)
            scores = self._strengths(K, y, batch, grid)
            null[some] = scores.reshape(len(K), len(some), self.count).transpose(1, 0, 2)
        return null

    def _shuffled(self, K: Array, batch: Batch, rng: np.random.Generator) -> Array:
        order = np.argsort(batch.quarter + rng.random(batch.quarter.shape), axis=1)
        return outcomes(K, np.take_along_axis(batch.outcome, order, axis=1), self.count, LEAST_ERRORS)

    def _strengths(self, K: Array, y: Array, batch: Batch, grid: Array) -> Array:
        """(g, q)"""
        if self.nested:
            return nested_strength(K, y, batch.quarter, grid, self.intercept)
        return choose(K, y, batch.quarter // 2, grid, self.intercept)[1]

    def _found(self, value: int, k: int, normal: Array, fit: tuple[Array, float], facts: dict[str, Any]) -> list[Found]:
        """The direction of a class and a group of its errors; none where all rows are alike."""
        values, intercept = fit
        length = float(np.linalg.norm(normal))
        if length <= FLAT * facts["C"] * facts["rows"]:
            return []
        rule = {
            "kind": "direction", "representation": self.representation_, "scope": {self.within: value}, "group": k,
            "arrays": {
                "direction": "directions_", "intercept": "intercepts_", "centre": "centre_", "scale": "scale_",
            },
            **facts,
        }  # fmt: skip
        null, strength = facts["null"], facts["strength"]
        sure = -np.inf if strength is None else strength if null is None else null["z"]
        edge = max(float(values.std()) / length, 1e-6)
        return [Found((-sure, value, k), normal / length, intercept / length, edge, rule)]

    def _keep(self, found: list[Found]) -> None:
        found = found[: self.slices]
        self.directions_ = np.array([one.normal for one in found]).reshape(-1, len(self.centre_))
        self.intercepts_ = np.array([one.intercept for one in found])
        self.edges_ = np.array([one.edge for one in found])
        self.rules_ = tuple(one.rule for one in found)
        self.classes_ = np.array([rule["scope"][self.within] for rule in self.rules_], dtype=np.int64)

    # --- new rows --------------------------------------------------------------------------------------------

    def decisions(self, evaluation: Evaluation) -> Array:
        """(n, s) signed distance from each slice's boundary, negative on the hard side; 0 for rows of other classes."""
        X = self.matrix(evaluation)
        check_columns(X, len(self.centre_), "method `directions`")
        evaluation.need(frozenset({f"{self.within}s"}), f"method `directions` with within={self.within}")
        group, distance = _column(evaluation, self.within), np.zeros((len(X), len(self.classes_)))
        for c in np.unique(self.classes_):
            rows, of = np.flatnonzero(group == c), np.flatnonzero(self.classes_ == c)
            near = self._standard(X[rows]) @ self.directions_[of].T + self.intercepts_[of]
            distance[np.ix_(rows, of)] = np.round(near, DIGITS)
        return distance

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) weights that fall with the decision; .5 on the boundary, where the threshold is."""
        inside = self.decisions(evaluation)
        own = _column(evaluation, self.within)[:, None] == self.classes_
        return np.where(own, expit(-inside / self.edges_), 0.0)


def _column(evaluation: Evaluation, within: str) -> Array:
    column = evaluation.labels if within == "label" else evaluation.predictions
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
    errors, right = int((y < 0).sum()), int((y > 0).sum())
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
            "mean": float(null.mean()), "spread": spread, "z": float((strength - null.mean()) / spread),
            "p_value": float((1 + (null >= strength).sum()) / (1 + len(null))), "shuffles": len(null),
        },
    }  # fmt: skip
