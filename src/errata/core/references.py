"""What a slice is compared with: the rest, its own class, the model's own confidence.

Each reference is a rate b for the slice's rows, estimated from held-out rows outside the slice
that are like them (the same stratum), and the number of rows it is worth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .blocks import Array
from .evaluation import Evaluation
from .gaps import Counts
from .scratch import BLOCK_ROWS, fill_rows

FEWEST_IN_STRATUM = 5
LARGEST_DROPPED = 0.2  # of a slice: beyond it, the slice has nothing to be compared with
CONFIDENCE_BINS = 20
MOST_CODES = 1 << 20  # whole numbers apart, that are counted instead of sorted
CLASS_PRIOR = 5.0  # pseudo-errors that steady a predicted class's calibration


@dataclass(frozen=True)
class Reference:
    """Strata of the held-out rows and the error expected of each row, both independent of the slice.

    Attributes
    ----------
    name : str
        "rest", "class" or "confidence".
    strata : array
        (n,) int: rows are compared with those of the same stratum.
    expected : array
        (n,) expected error, or zeros where the stratum alone is the comparison.
    """

    name: str
    strata: Array
    expected: Array


def rest_reference(n: int) -> Reference:
    """All other rows."""
    return Reference("rest", np.zeros(n, dtype=np.int64), np.zeros(n))


def class_reference(evaluation: Evaluation) -> Reference | None:
    """Rows of the same true class; None where rows have no class."""
    if evaluation.labels is None or evaluation.task != "classification":
        return None
    return Reference("class", _codes(evaluation.labels), np.zeros(len(evaluation)))


def confidence_reference(evaluation: Evaluation, discover: Array, outcome: Array) -> Reference | None:
    """Rows of which the model was equally confident; by predicted class where there are no probabilities.

    None where it has no meaning: no predicted class, or one true class only, in which the
    predicted class is the outcome.
    """
    if evaluation.predictions is None or evaluation.task not in ("classification", "loss"):
        return None
    if evaluation.predictions.dtype.kind == "f":
        return None
    if evaluation.labels is not None and len(np.unique(evaluation.labels)) == 1:
        return None
    if evaluation.probs is None:
        return Reference("confidence", _codes(evaluation.predictions), np.zeros(len(evaluation)))
    expected = _expected_error(evaluation.probs, evaluation.predictions, discover, outcome)
    edges = np.quantile(expected, np.linspace(0, 1, CONFIDENCE_BINS + 1)[1:-1])
    strata = fill_rows(lambda rows: np.asarray(np.searchsorted(edges, rows, side="right")), np.int64, expected)
    return Reference("confidence", strata, expected)


def _codes(values: Array) -> Array:
    """(n,) the place of each value among all that occur, ascending."""
    if values.dtype.kind in "iu" and len(values):
        least = int(values.min())
        span = int(values.max()) - least + 1
        if span <= MOST_CODES:  # counting takes less time and memory than sorting
            return _ranks(values, least, span)
    codes: Array = np.unique(values, return_inverse=True)[1].ravel()
    return codes


def _ranks(values: Array, least: int, span: int) -> Array:
    present = np.zeros(span, dtype=bool)
    for start in range(0, len(values), BLOCK_ROWS):
        present[values[start : start + BLOCK_ROWS].astype(np.int64) - least] = True
    places = np.cumsum(present) - 1
    return fill_rows(lambda rows: places[rows.astype(np.int64) - least], np.int64, values)


def _expected_error(probs: Array, predictions: Array, discover: Array, outcome: Array) -> Array:
    """(n,) error expected from top probability (isotonic, decreasing) and predicted class, fitted on search rows."""
    from scipy.optimize import isotonic_regression

    top = fill_rows(lambda rows: rows.max(axis=1), np.float64, probs)
    levels, rows, bad = _by_level(top[discover], outcome[discover])
    fitted = isotonic_regression(bad / rows, weights=rows, increasing=False).x
    expected = fill_rows(lambda rows: np.interp(rows, levels, fitted), np.float64, top)
    classes = _codes(predictions)
    wrong = np.bincount(classes[discover], weights=outcome[discover], minlength=classes.max() + 1)
    predicted = np.bincount(classes[discover], weights=expected[discover], minlength=classes.max() + 1)
    factor = (wrong + CLASS_PRIOR) / (predicted + CLASS_PRIOR)
    return fill_rows(lambda error, own: np.clip(error * factor[own], 0, 1), np.float64, expected, classes)


def _by_level(values: Array, outcome: Array) -> tuple[Array, Array, Array]:
    """Distinct values, ascending, with the rows that have each and the outcomes of these in all."""
    order = np.argsort(values, kind="stable")
    values = values[order]
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    rows = np.diff(np.append(starts, len(values)))
    return values[starts], rows, np.add.reduceat(outcome[order], starts)


def compare(reference: Reference, inside: Array, outcome: Array, groups: Array | None = None) -> Counts | None:
    """Count a slice against a reference; None where too few of its rows can be compared.

    Parameters
    ----------
    reference : Reference
        Of n held-out rows.
    inside : array
        (n,) bool: rows of the slice.
    outcome : array
        (n,) 0/1: bad outcomes.
    groups : array, optional
        (n,) rows that belong together count as fewer.
    """
    strata = reference.strata
    size = int(strata.max(initial=0)) + 1
    slice_rows = np.bincount(strata[inside], minlength=size)
    rest_rows = np.bincount(strata[~inside], minlength=size)
    usable = (slice_rows > 0) & (rest_rows >= FEWEST_IN_STRATUM)
    m = float(slice_rows[usable].sum())
    if m == 0 or m < (1 - LARGEST_DROPPED) * slice_rows.sum():
        return None
    compared = usable[strata]
    b, nref = _reference_rate(reference, inside, outcome, usable)
    k = float(outcome[inside & compared].sum())
    if groups is None:
        return Counts(m, k, b, nref)
    effective = effective_rows(outcome[inside & compared], groups[inside & compared])
    rest = ~inside & compared
    shrink = effective_rows(outcome[rest], groups[rest]) / rest.sum()
    return Counts(effective, effective * k / m, b, max(nref * shrink, 1.0))


def _reference_rate(reference: Reference, inside: Array, outcome: Array, usable: Array) -> tuple[float, float]:
    """The rate b that the slice's rows would have outside it, and the rows it is worth."""
    strata = reference.strata

    def per_stratum(rows: Array, values: Array) -> Array:
        sums: Array = np.bincount(strata[rows], weights=values[rows], minlength=len(usable))[usable]
        return sums

    m_s = per_stratum(inside, np.ones(len(strata)))
    n_s = per_stratum(~inside, np.ones(len(strata)))
    errors_s = per_stratum(~inside, outcome)
    share = m_s / m_s.sum()
    shift = per_stratum(inside, reference.expected) / m_s - per_stratum(~inside, reference.expected) / n_s
    smooth = (errors_s + 0.5) / (n_s + 1)
    b = float(np.clip(share @ (shift + errors_s / n_s), 0, 1))
    variance = float((share**2) @ (smooth * (1 - smooth) / n_s))
    # The smoothed rate here too: with one stratum this gives nref = n_s, and so Fisher's test.
    steady = float(np.clip(share @ (shift + smooth), 0.5 / (n_s.sum() + 1), 1 - 0.5 / (n_s.sum() + 1)))
    return b, min(steady * (1 - steady) / variance, float(n_s.sum()))


def effective_rows(outcome: Array, groups: Array) -> float:
    """Rows divided by the design effect of their groups: rows of one patient are not independent."""
    m = len(outcome)
    if m == 0:
        return 0.0
    codes = _codes(groups)
    count = int(codes.max()) + 1
    if count == m:  # no two rows belong together
        return float(m)
    rate = float(outcome.mean())
    binomial = rate * (1 - rate) * m
    if binomial == 0 or count < 2:
        return float(min(m, count))  # no variance to be seen: only whole groups count
    sums = np.bincount(codes, weights=outcome - rate)
    cluster = float((sums**2).sum()) * count / (count - 1)
    return float(m / max(1.0, cluster / binomial))
