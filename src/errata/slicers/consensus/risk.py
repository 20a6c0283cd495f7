"""A linear score for being bad within a scope, and the half-space in which it stands out, cut into pieces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_expit

from ...core import Array
from ...core.evidence import log_evidence
from ..numerics import pick, unconverged
from .space import nearest

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

FOLDS = 5
PENALTIES = (0.003, 0.03, 0.3)  # inverse strengths of the ridge that are tried
MOST_FITTED = 10_000
SHARES = np.arange(0.02, 0.61, 0.02)  # of the scope, that a half-space may hold
NEARLY = 0.8  # of the evidence of the best cut
MOST_PIECES = 4
SURE = 6.0  # evidence that every piece must have, beyond its price


@dataclass(frozen=True, eq=False)
class Risk:
    """A score that was fitted to search rows.

    Parameters
    ----------
    line
        (q + 1,) coefficients on the shared axes, the intercept last.
    scores
        (m,) of the search rows, each by a fit that did not see it.
    """

    line: Array
    scores: Array


def fit_risk(Z: Array, bad: Array, seed: int) -> Risk:
    """The ridge logistic regression that predicts best out of fold; a constant where all rows are alike.

    Parameters
    ----------
    Z
        (m, q) search rows of the scope in the shared space.
    bad
        (m,) bool.
    seed
        Of the folds and, where there are many rows, of those that are fitted to.
    """
    m, q = Z.shape
    constant = Risk(np.zeros(q + 1), np.zeros(m))
    if min(bad.sum(), m - bad.sum()) < FOLDS:
        return constant
    centre = Z.mean(axis=0)
    scale = np.maximum(Z.std(axis=0), 1e-6)
    A = (Z - centre) / scale
    fold = _folds(bad, seed)
    penalty = _best_penalty(A, bad, fold == 0, seed)
    scores = _out_of_fold(A, bad, fold, penalty, seed)
    fitted = _fit(A, bad, np.ones(m, dtype=bool), penalty, seed)
    slope = fitted.coef_[0] / scale
    intercept = float(fitted.intercept_[0] - centre @ slope)
    return Risk(np.append(slope, intercept), scores)


def _folds(bad: Array, seed: int) -> Array:
    """(m,) the fold of each row, with bad ones in every fold."""
    order = np.random.default_rng(seed).permutation(len(bad))
    order = order[np.argsort(bad[order], kind="stable")]
    fold = np.empty(len(bad), dtype=np.int64)
    fold[order] = np.arange(len(bad)) % FOLDS
    return fold


def _best_penalty(A: Array, bad: Array, test: Array, seed: int) -> float:
    """The one that predicts the rows of one fold best."""
    likelihoods = []
    for penalty in PENALTIES:
        scores = _fit(A, bad, ~test, penalty, seed).decision_function(A[test])
        likelihoods.append(float(log_expit(np.where(bad[test], scores, -scores)).sum()))
    return PENALTIES[int(np.argmax(likelihoods))]


def _out_of_fold(A: Array, bad: Array, fold: Array, penalty: float, seed: int) -> Array:
    scores = np.empty(len(A))
    for k in range(FOLDS):
        test = fold == k
        scores[test] = _fit(A, bad, ~test, penalty, seed).decision_function(A[test])
    return scores


def _fit(A: Array, bad: Array, rows: Array, penalty: float, seed: int) -> LogisticRegression:
    """A regression on some of the rows (m,) bool, or on a sample of them where they are many."""
    from sklearn.linear_model import LogisticRegression

    some = np.flatnonzero(rows)
    some = some[pick(len(some), MOST_FITTED, seed)]
    with unconverged():
        return LogisticRegression(C=penalty, max_iter=200, tol=1e-3).fit(A[some], bad[some])


def best_cut(scores: Array, bad: Array, base: float) -> float | None:
    """The score above which search rows stand out; None where no rows are worse than `base`.

    Of cuts with nearly the most evidence, the one that holds most rows: it misses fewest of the errors.
    """
    cuts = np.quantile(scores, 1 - SHARES)
    n = np.array([(scores >= cut).sum() for cut in cuts])
    errors = np.array([(bad & (scores >= cut)).sum() for cut in cuts])
    evidence = log_evidence(n, errors, base) - np.log(len(cuts))
    most = float(evidence.max())
    if most == -np.inf:
        return None
    return float(cuts[np.flatnonzero(evidence >= min(NEARLY * most, most))[-1]])


def cut_in_pieces(P: Array, bad: Array, base: float, seed: int) -> Array:
    """(k, r) centres of contiguous pieces, each of which stands out by itself; one where no cut leaves all such.

    Parameters
    ----------
    P
        (m, r) search rows beyond the plane, on local axes.
    bad
        (m,) bool.
    base
        The rate that a piece must exceed.
    seed
        Of the cut.
    """
    from sklearn.cluster import KMeans

    centres = P.mean(axis=0, keepdims=True)
    for k in range(2, MOST_PIECES + 1):
        if len(P) < 20 * k:
            break
        with unconverged():
            tried = KMeans(k, n_init=3, random_state=seed).fit(P).cluster_centers_.astype(np.float32)
        piece = nearest(P, tried)
        n = np.bincount(piece, minlength=k)
        errors = np.bincount(piece[bad], minlength=k)
        if (log_evidence(n, errors, base) - np.log(len(SHARES) * MOST_PIECES) < SURE).any():
            break
        centres = tried
    return np.asarray(centres)
