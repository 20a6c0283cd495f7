"""How well a direction predicts errors of rows it was not fitted to, and the groups of errors it is fitted to.

Shapes as in `linear_svm`: g classes of n rows, padded; q outcomes for each, of 1 (correct), -1 (error) and 0 (left
out); r values of C. A class's rows are cut into halves, and each half into halves again for the choice of C.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core import Array
from .linear_svm import Intercept, solve

ROUNDS = 20  # of power iterations and of k-means: groups need no last digit
SCORE_DIGITS = 12  # equal scores are equal whatever order they were summed in


def shuffled_halves(strata: Array, noise: Array) -> Array:
    """(g, n) bool: every other row of each stratum, in the order of `noise`; rows of equal noise stay together.

    A stratum below 0 is a row that is not there.
    """
    key = np.where(strata < 0, np.inf, strata + noise)
    order = np.argsort(key, axis=1, kind="stable")
    ordered = np.take_along_axis(key, order, axis=1)
    with np.errstate(invalid="ignore"):  # inf - inf: rows that are not there
        rank = np.cumsum(np.diff(ordered, axis=1, prepend=ordered[:, :1]) != 0, axis=1)
    second = np.empty(strata.shape, dtype=bool)
    np.put_along_axis(second, order, rank % 2 == 1, axis=1)
    return second


def ordered_halves(strata: Array) -> Array:
    """(g, n) bool: the later rows of each of two strata, as scikit-learn's StratifiedKFold(2) without shuffling."""
    here = strata >= 0
    first = np.take_along_axis(strata, here.argmax(axis=1)[:, None], axis=1)
    of_first = here & (strata == first)
    a = of_first.sum(axis=1, keepdims=True)
    b = (here & ~of_first).sum(axis=1, keepdims=True)
    early = np.where(of_first, (a + 1) // 2, (b + 1 - a % 2) // 2)
    rank = np.where(of_first, np.cumsum(of_first, axis=1), np.cumsum(here & ~of_first, axis=1))
    return np.asarray(rank > early)


def quarters(strata: Array, halves: Callable[[Array], Array]) -> Array:
    """(g, n) 0 to 3: the outer half of a row twice, and its half within it."""
    outer = halves(strata)
    inner = np.where(outer, halves(np.where(outer, strata, -1)), halves(np.where(outer, -1, strata)))
    return np.asarray(2 * outer + inner)


def choose(K: Array, y: Array, half: Array, grid: Array, intercept: Intercept) -> tuple[Array, Array]:
    """(g, q) the C with the best balanced accuracy over two folds, the first among equals; (g, q) that accuracy.

    NaN, and the smallest C, where a half lacks an outcome.
    """
    g, q, _ = y.shape
    train, truth = _folds(y, half)
    values = solve(K, train, np.broadcast_to(grid, (g, 2 * q, len(grid))), intercept).values
    scores = balanced_accuracy(values, truth[:, :, None]).reshape(g, 2, q, len(grid)).mean(axis=1)
    best = np.where(np.isnan(scores), -np.inf, np.round(scores, SCORE_DIGITS)).argmax(axis=-1)
    return grid[best], np.take_along_axis(scores, best[..., None], axis=-1)[..., 0]


def nested_strength(K: Array, y: Array, quarter: Array, grid: Array, intercept: Intercept) -> Array:
    """(g, q) balanced accuracy over two folds, with C chosen inside each fold's own rows; NaN where a fold is bare."""
    g, q, _ = y.shape
    train, truth = _folds(y, quarter // 2)
    C, _ = choose(K, train, quarter % 2, grid, intercept)
    values = solve(K, train, C[..., None], intercept).values[:, :, 0]
    return np.asarray(balanced_accuracy(values, truth).reshape(g, 2, q).mean(axis=1))


def _folds(y: Array, half: Array) -> tuple[Array, Array]:
    """(g, 2 q, n) outcomes to fit to, and those held back."""
    g, q, n = y.shape
    held = (half[:, None] == np.array([0, 1])[:, None])[:, :, None]  # (g, 2, 1, n)
    each = y[:, None]
    return np.where(held, 0, each).reshape(g, 2 * q, n), np.where(held, each, 0).reshape(g, 2 * q, n)


def balanced_accuracy(values: Array, truth: Array) -> Array:
    """(...) mean of the shares of correct rows with a value of at least 0 and of errors below it; NaN without both."""
    right = truth > 0
    wrong = truth < 0
    with np.errstate(invalid="ignore"):
        easy = (right & (values >= 0)).sum(axis=-1) / right.sum(axis=-1)
        hard = (wrong & (values < 0)).sum(axis=-1) / wrong.sum(axis=-1)
    return np.asarray((easy + hard) / 2)


def outcomes(K: Array, outcome: Array, count: int, least: int) -> Array:
    """(g, count, n) correct rows against one group of errors each, the other groups left out; largest group first.

    A class has as many groups as have `least` errors on average; outcomes without a group are all 0.
    """
    if count == 1:
        return outcome[:, None]
    group = error_groups(K, outcome < 0, np.clip((outcome < 0).sum(axis=1) // least, 1, count))
    member = group[:, None] == np.arange(count)[:, None]
    sizes = member.sum(axis=-1)
    member = np.take_along_axis(member, np.argsort(-sizes, axis=1, kind="stable")[..., None], axis=1)
    y = np.where(member, -1, np.where(outcome > 0, 1, 0)[:, None])
    return np.where(member.any(axis=-1, keepdims=True), y, 0)


def error_groups(K: Array, wrong: Array, groups: Array) -> Array:
    """(g, n) k-means of each class's errors, from its Gram matrix: group 0 to groups - 1, or -1 for no error.

    It starts from equal parts along the first principal axis, so that it needs neither chance nor restarts.
    """
    errors = np.maximum(wrong.sum(axis=1, keepdims=True), 1)
    axis = _principal_scores(K, wrong, errors)
    rank = np.argsort(np.argsort(np.where(wrong, axis, np.inf), axis=1, kind="stable"), axis=1, kind="stable")
    group = np.where(wrong, rank * groups[:, None] // errors, -1)
    for _ in range(ROUNDS):
        member = group[..., None] == np.arange(groups.max())
        sizes = member.sum(axis=1, keepdims=True)
        shares = member / np.maximum(sizes, 1)
        likeness = K @ shares  # (g, n, k) with each centre
        lengths = (shares * likeness).sum(axis=1, keepdims=True)
        nearest = np.where(sizes > 0, lengths - 2 * likeness, np.inf).argmin(axis=-1)
        before = group
        group = np.where(wrong, nearest, -1)
        if np.array_equal(group, before):
            break
    return group


def _principal_scores(K: Array, wrong: Array, errors: Array) -> Array:
    """(g, n) errors along the axis of their largest spread, by power iteration from the most unusual one."""

    def centred(v: Array) -> Array:
        return np.where(wrong, v - (v * wrong).sum(axis=1, keepdims=True) / errors, 0.0)

    mean = (K @ (wrong / errors)[..., None])[..., 0]
    far = np.where(wrong, np.diagonal(K, axis1=1, axis2=2) - 2 * mean, -np.inf).argmax(axis=1)
    v = centred(np.take_along_axis(K, far[:, None, None], axis=1)[:, 0])
    for _ in range(ROUNDS):
        v = centred((K @ v[..., None])[..., 0])
        v = v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-300)
    return v
