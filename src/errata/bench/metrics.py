"""How good are hypotheses about where a model fails? Measured against slices that are known to be true.

h: hypothesised slices, (n, s) bool, the most important first. b: true slices, (n, t) bool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..core import Array, InputError


@dataclass(frozen=True)
class Rates:
    """Discovery and false discovery; None where there is nothing to discover, or nothing was claimed."""

    dr: float | None
    fdr: float | None


@dataclass(frozen=True)
class Rule:
    """When a hypothesis counts as belonging to a true slice, and when a true slice counts as found."""

    precision: float = 0.8
    recall: float = 0.8
    top: int = 10
    strict: bool = False  # > instead of >=
    fdr_scope: Literal["all", "prefix"] = "all"  # "prefix": up to the hypothesis that completes the discovery

    def reaches(self, values: Array, threshold: float) -> Array:
        """Where values reach a threshold: above it if `strict`, else also at it."""
        reached: Array = values > threshold if self.strict else values >= threshold
        return reached


def precision_matrix(h: Array, b: Array) -> Array:
    """(s, t) share of each hypothesis that lies in each true slice; 0 for an empty hypothesis."""
    overlap = h.T.astype(np.float64) @ b.astype(np.float64)
    shares: Array = overlap / np.maximum(h.sum(axis=0), 1)[:, None]
    return shares


def discovery(h: Array, b: Array, rule: Rule | None = None) -> Rates:
    """Discovery rate: the share of true slices that the hypotheses precise in it cover together. False discovery
    rate: the share of hypotheses that are precise in no true slice. Empty hypotheses claim nothing and are left out."""
    rule = rule or Rule()
    h = h[:, h.any(axis=0)][:, : rule.top]
    precise = rule.reaches(precision_matrix(h, b), rule.precision)
    if rule.fdr_scope == "all":
        scope = h.shape[1]
    else:
        scope = _prefix(h, b, precise, rule)
    dr = None
    false: Array = np.ones(scope, dtype=bool)
    if b.shape[1]:
        dr = float(_discovered(h, b, precise, rule).mean())
        false = np.logical_not(precise[:scope].any(axis=1))
    fdr = float(false.mean()) if scope else None
    return Rates(dr, fdr)


def _discovered(h: Array, b: Array, precise: Array, rule: Rule) -> Array:
    """(t,) bool: enough of the true slice is covered by the hypotheses that are precise in it."""
    covered = np.zeros(b.shape[1])
    for j in range(b.shape[1]):
        union = h[:, precise[:, j]].any(axis=1)
        covered[j] = (union & b[:, j]).sum() / max(int(b[:, j].sum()), 1)
    return rule.reaches(covered, rule.recall)


def _prefix(h: Array, b: Array, precise: Array, rule: Rule) -> int:
    """The fewest first hypotheses that find all true slices; all of them where none do."""
    for s in range(1, h.shape[1] + 1):
        if b.shape[1] and _discovered(h[:, :s], b, precise[:s], rule).all():
            return s
    return int(h.shape[1])


def precision_at(scores: Array, truth: Array, k: int, seed: int = 0) -> float:
    """Share of true rows among the k with the highest score; ties are broken at random, by seed.

    Posteriors saturate at 1: breaking ties by position would reward the order of the file.
    """
    if k < 1:
        raise InputError(f"precision at k needs k of at least 1; got {k}")
    shuffled = np.random.default_rng(seed).permutation(len(scores))
    first = shuffled[np.argsort(-scores[shuffled], kind="stable")][:k]
    return float(truth[first].mean())


def average_precision(scores: Array, truth: Array) -> float:
    """Area under precision against recall, rows of one score taken together; 0 where nothing is true."""
    if not truth.any():
        return 0.0
    order = np.argsort(-scores, kind="stable")
    hits = truth[order].astype(np.float64)
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)  # ends of runs of ties
    hits_so_far = np.cumsum(hits)[last]
    precision = hits_so_far / (last + 1)
    recall = hits_so_far / hits.sum()
    return float(np.sum(np.diff(recall, prepend=0.0) * precision))


def best_precision_at(weights: Array, b: Array, k: int = 10, seed: int = 0) -> Array:
    """(t,) for each true slice the precision at k of the best hypothesis. weights: (n, s)."""
    columns = range(weights.shape[1])
    best = [max((precision_at(weights[:, j], truth, k, seed) for j in columns), default=0.0) for truth in b.T]
    return np.array(best)


def homogeneity(h: Array, labels: Array) -> float | None:
    """Mean over hypotheses of the share of their most frequent label: 1 where each is of one class."""
    shares = [np.unique(labels[inside], return_counts=True)[1].max() / inside.sum() for inside in h.T if inside.any()]
    return float(np.mean(shares)) if shares else None


def coherence(h: Array, X: Array, seed: int = 0) -> float | None:
    """How much closer members lie to their centre than as many random rows do: 1 - spread / random spread."""
    rng = np.random.default_rng(seed)
    gains = []
    for inside in h.T:
        m = int(inside.sum())
        if m < 2:
            continue
        random = rng.choice(len(X), m, replace=False)
        gains.append(1 - _spread(X[inside]) / max(_spread(X[random]), 1e-12))
    return float(np.mean(gains)) if gains else None


def _spread(X: Array) -> float:
    return float(np.square(X - X.mean(axis=0)).sum(axis=1).mean())


def mean_and_error(values: list[float | None]) -> tuple[float | None, float | None]:
    """Mean over configurations and its standard error; None is left out."""
    known = np.array([value for value in values if value is not None])
    if not len(known):
        return None, None
    error = None
    if len(known) > 1:
        error = float(known.std(ddof=1) / np.sqrt(len(known)))
    return float(known.mean()), error
