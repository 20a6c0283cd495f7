"""Many linear SVMs with balanced weights at once, from Gram matrices that they share.

The problem of scikit-learn's SVC(kernel="linear", class_weight="balanced"): hinge loss, an intercept without
penalty. In its dual, with b_i = y_i alpha_i, one minimises b'Kb / 2 - y'b, where sum b = 0 and b_i lies between 0
and y_i C n / (2 n_y). Balanced bounds of both outcomes have equal sums, so "everything at its bound" is feasible.
It is the optimum for small C (a difference of means), and a good start for the others: pairs are then moved by
sequential minimal optimisation, one pair of every problem at a time.

Shapes: g classes of n rows (padded with rows whose outcome is 0), q outcomes for each, r values of C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...core import Array

TOLERANCE = 1e-3  # of the optimality conditions; as in libsvm
LARGE = 300  # more rows, in fewer problems than FEW: libsvm's own loop is faster than ours over all of them at once
FEW = 8
SMALLEST_CURVATURE = 1e-12  # two equal rows have none
ROUNDING = 1e-9  # share of a bound within which a coefficient is at it
STILL = 0.8  # share of problems that move below which the others are put aside
STEPS = 1_000_000  # beyond any need for C up to 1; at a C of millions a machine is left as it is then

Intercept = Literal["centre", "libsvm"]


@dataclass(frozen=True)
class Fits:
    """Decision values of all rows of a class, also of those that a fit did not see."""

    coefficients: Array  # (g, q, r, n) b, 0 for rows outside
    intercepts: Array  # (g, q, r)
    values: Array  # (g, q, r, n) positive: easy; negative: hard


def solve(K: Array, y: Array, C: Array, intercept: Intercept = "centre") -> Fits:
    """Fit each outcome y (g, q, n) with each of its C (g, q, r); y is 1, -1, or 0 for a row that is not fitted to.

    intercept: at small C a whole interval of them is optimal. "centre" takes the one half way between the two
    outcomes' means, each row seen as if it had not been fitted to. "libsvm" leaves everything to libsvm, which takes
    the middle of the interval or, where rounding keeps one row off its bound, an end: a constant decision.
    """
    unit = at_bound(y)
    bound = unit[:, :, None] * C[..., None]
    beta = bound.copy()
    raw = (unit @ K)[:, :, None] * C[..., None]
    able = np.broadcast_to((unit != 0).any(axis=-1)[..., None], C.shape)
    intercepts = np.where(able, 0.0, np.sign(y.sum(axis=-1))[..., None])  # of one outcome: that outcome
    signs = np.broadcast_to(y[:, :, None], bound.shape)
    least, most = interval(signs - raw, beta, bound)
    unsolved = able & ((least > most + TOLERANCE) | (intercept == "libsvm"))
    if unsolved.any():
        large = np.count_nonzero(unsolved) < FEW and np.count_nonzero(y, axis=-1).max() > LARGE
        if large or intercept == "libsvm":
            beta[unsolved], intercepts[unsolved] = _by_libsvm(K, signs, C, np.argwhere(unsolved))
        else:
            beta[unsolved] = _by_pairs(K, np.nonzero(unsolved)[0], bound[unsolved], (signs - raw)[unsolved])
        for c in np.flatnonzero(unsolved.any(axis=(1, 2))):
            raw[c][unsolved[c]] = beta[c][unsolved[c]] @ K[c]
        least, most = interval(signs - raw, beta, bound)
    if intercept == "centre":
        intercepts = np.where(able, _centre(K, signs, beta, raw, least, most), intercepts)
    return Fits(beta, intercepts, raw + intercepts[..., None])


def at_bound(y: Array) -> Array:
    """(g, q, n) coefficients at C = 1 with every row at its bound; 0 where an outcome is missing."""
    right = (y > 0).sum(axis=-1, keepdims=True)
    wrong = (y < 0).sum(axis=-1, keepdims=True)
    own = np.maximum(np.where(y > 0, right, wrong), 1)
    return np.where((right > 0) & (wrong > 0), y * (right + wrong) / (2 * own), 0.0)


def interval(gaps: Array, beta: Array, bound: Array) -> tuple[Array, Array]:
    """(least, most) optimal intercept, of gaps y - Kb; least > most: b is no optimum yet."""
    close = ROUNDING * np.abs(bound)
    least = np.where(beta < np.maximum(bound, 0) - close, gaps, -np.inf).max(axis=-1)
    most = np.where(beta > np.minimum(bound, 0) + close, gaps, np.inf).min(axis=-1)
    return least, most


def _centre(K: Array, signs: Array, beta: Array, raw: Array, least: Array, most: Array) -> Array:
    """The optimal intercept nearest to half way between the outcomes' means.

    A row's own part of its value, b_i K_ii, is left out: a few errors pull the direction to themselves, and with
    that part a boundary half way would lie where no new row comes.
    """
    own = beta * np.diagonal(K, axis1=1, axis2=2)[:, None, None]
    means = [
        np.where(signs * side > 0, raw - own, 0.0).sum(axis=-1) / np.maximum((signs * side > 0).sum(axis=-1), 1)
        for side in (1, -1)
    ]
    inside = np.clip(-(means[0] + means[1]) / 2, least, np.maximum(least, most))
    with np.errstate(invalid="ignore"):  # of one outcome only: any is optimal, from -inf to inf
        return np.where(least < most, inside, (least + most) / 2)


def _by_libsvm(K: Array, signs: Array, C: Array, problems: Array) -> tuple[Array, Array]:
    """(p, n) coefficients and (p,) intercepts; libsvm reads the Gram matrix that all problems share."""
    from sklearn import config_context
    from sklearn.svm import SVC

    beta = np.zeros((len(problems), K.shape[1]))
    intercepts = np.empty(len(problems))
    before = None
    gram = K[0]
    rows: Array = np.empty(0)
    for k, (c, q, r) in enumerate(problems):
        if (c, q) != before:  # every C of an outcome reads the same rows
            before = (c, q)
            rows = np.flatnonzero(signs[c, q, r])
            together = rows[-1] - rows[0] + 1 == len(rows)
            span = slice(rows[0], rows[-1] + 1)
            if together:
                gram = np.ascontiguousarray(K[c, span, span])
            else:
                gram = K[c][np.ix_(rows, rows)]
        machine = SVC(kernel="precomputed", class_weight="balanced", C=C[c, q, r], tol=TOLERANCE)
        with config_context(assume_finite=True):  # checked with the inputs, and slow to check again
            machine.fit(gram, signs[c, q, r][rows])
        beta[k, rows[machine.support_]] = machine.dual_coef_[0]
        intercepts[k] = machine.intercept_[0]
    return beta, intercepts


def _by_pairs(K: Array, of: Array, bound: Array, gaps: Array) -> Array:
    """(p, n) coefficients, moved over the rows that are fitted to: in a fold, half of them or less."""
    inside = bound != 0
    rows = np.argsort(~inside, axis=1, kind="stable")[:, : int(inside.sum(axis=1).max())]
    packed = (np.take_along_axis(a, rows, axis=1) for a in (bound, gaps))
    beta = np.zeros_like(bound)
    np.put_along_axis(beta, rows, move_pairs(K, of, rows, *packed), axis=1)
    return beta


def move_pairs(K: Array, of: Array, rows: Array, bound: Array, gaps: Array) -> Array:
    """(p, m) optimal coefficients of p problems of the classes `of`, from bounds on.

    Working sets as in libsvm (Fan, Chen and Lin, 2005, WSS 2): the row i that wants most to go up, and of those
    that may come down the j for which the pair's objective falls most.
    """
    lowest = np.minimum(bound, 0)
    highest = np.maximum(bound, 0)
    beta = bound.copy()
    diagonal = K[of[:, None], rows, rows]
    result = np.empty_like(beta)
    live = np.arange(len(beta))
    for _ in range(STEPS):
        if not len(live):
            return result
        at = np.arange(len(live))
        rising = np.where(beta < highest, gaps, -np.inf)
        falling = np.where(beta > lowest, gaps, np.inf)
        i = rising.argmax(axis=1)
        top = rising[at, i]
        going = top - falling.min(axis=1) > TOLERANCE
        if going.mean() < STILL:
            result[live[~going]] = beta[~going]
            live, of, rows, diagonal, lowest, highest, beta, gaps = (
                a[going] for a in (live, of, rows, diagonal, lowest, highest, beta, gaps)
            )
            continue
        row_i = K[of[:, None], rows[at, i][:, None], rows]
        curvature = np.maximum(diagonal[at, i][:, None] + diagonal - 2 * row_i, SMALLEST_CURVATURE)
        fall = np.maximum(top[:, None] - falling, 0.0)
        j = (fall * fall / curvature).argmax(axis=1)
        room_i = highest[at, i] - beta[at, i]
        room_j = beta[at, j] - lowest[at, j]
        step = np.where(going, np.minimum(fall[at, j] / curvature[at, j], np.minimum(room_i, room_j)), 0.0)
        # Exactly at a bound or off it: a rounded sum would be neither.
        beta[at, i] = np.where(step >= room_i, highest[at, i], beta[at, i] + step)
        beta[at, j] = np.where(step >= room_j, lowest[at, j], beta[at, j] - step)
        gaps -= step[:, None] * (row_i - K[of[:, None], rows[at, j][:, None], rows])
    result[live] = beta
    return result
