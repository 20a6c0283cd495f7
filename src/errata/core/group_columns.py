"""Columns that look like the id of a group: a patient, a video, a user.

By its shape first: text or whole numbers, many values, few rows to each. Then by outcomes: errors are alike within its
values, beyond what label and confidence explain, and more so than in values that are next to each other in order (which
tells an id from a quantity such as age). Outcomes of a few search rows alone are read, see `grouping`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from .blocks import Array
from .columns import present_values
from .confirm import high_loss
from .evaluation import Evaluation

FEWEST_VALUES = 20
LEAST_REPEATED = 0.5  # of the rows have a value that another row has too
MOST_ROWS_EACH = 20  # of a typical row's value: no slice of one value is lost that could have been confirmed
MOST_ROWS_EACH_ID = 1000  # where the name is that of an id
LARGEST_SHARE = 0.1  # of the rows with one value
MOST_COLUMNS = 3  # that outcomes are read for
ID_WORDS = re.compile(
    r"(account|annotator|author|camera|case|client|clip|customer|device|dialog|dialogue|doc|document"
    r"|episode|family|group|household|id|ids|item|movie|participant|pid|mrn|patient|person|player|product|rater"
    r"|recording|respondent|scan|scene|sensor|sequence|series|session|song|speaker|station|store|student"
    r"|study|subject|thread|track|trip|uid|url|user|uuid|video|visit|worker|writer)s?(id)?"
)  # a word in the name of a column that says whose rows they are
NOT_LETTERS = re.compile(r"[^a-z]+")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
LEAST_Z = 4.0  # standard deviations of permuted outcomes
LEAST_ALIKE = 0.01  # intraclass correlation
QUANTITY = 0.3  # of it, between values next to each other: from there on, the column is a quantity
PERMUTATIONS = 200
CONFIDENCE_BINS = 10


@dataclass(frozen=True)
class AlikeColumn:
    """How alike errors are within the values of a column.

    Parameters
    ----------
    column : str
        Its name.
    values : int
        How many it has.
    correlation : float
        Of the errors of two rows with the same value (intraclass), beyond label and confidence.
    z : float
        Standard deviations above what permuted errors give.
    """

    column: str
    values: int
    correlation: float
    z: float


def candidate_columns(evaluation: Evaluation) -> dict[str, Array]:
    """Name -> (n,) codes of columns with the shape of an id; the likeliest first, at most three. No outcome is read."""
    found = []
    for name, values in evaluation.metadata.items():
        codes = column_codes(values)
        if codes is None:
            continue
        looks = _looks_like_id(name)
        if _has_shape(codes, looks):
            found.append((not looks, name, codes))
    found.sort(key=lambda item: item[:2])
    return {name: codes for _, name, codes in found[:MOST_COLUMNS]}


def column_codes(values: Array) -> Array | None:
    """(n,) int: the place of a row's value among all in order; of its own where it is missing. None for measures."""
    kind = values.dtype.kind
    if kind not in "iufUS":
        return None
    missing = ~present_values(values)
    if kind == "f" and (values[~missing] != np.round(values[~missing])).any():
        return None
    if kind in "US":
        values = _as_numbers(values, missing)
    codes = np.unique(values, return_inverse=True)[1].ravel().astype(np.int64)
    codes[missing] = int(codes.max()) + 1 + np.arange(missing.sum())
    return codes


def measure_columns(evaluation: Evaluation, columns: dict[str, Array], rows: Array) -> list[AlikeColumn]:
    """The columns within which errors are alike, the surest first.

    Parameters
    ----------
    evaluation : Evaluation
        All rows.
    columns : mapping of str to array
        Name -> (n,) codes, in the order of the values.
    rows : array
        Row numbers, in the order of ids: no outcome of another row is read.
    """
    some = evaluation.rows(rows)
    residual = _residual(some)
    if residual is None:
        return []
    found = []
    for name, codes in columns.items():
        correlation, z, beside = _alike(residual, np.unique(codes[rows], return_inverse=True)[1].ravel())
        if z >= LEAST_Z and correlation >= LEAST_ALIKE and beside < QUANTITY * correlation:
            values = len(np.unique(codes))
            found.append(AlikeColumn(name, values, round(correlation, 3), round(z, 1)))
    return sorted(found, key=lambda column: -column.z)


def _looks_like_id(name: str) -> bool:
    """By a word of its name. Its values do not tell: a category may be "c12" as well."""
    return any(ID_WORDS.fullmatch(word) for word in NOT_LETTERS.split(CAMEL.sub(" ", name).lower()))


def _has_shape(codes: Array, looks: bool) -> bool:
    counts = np.bincount(codes)
    counts = counts[counts > 0]
    typical = float((counts.astype(np.float64) ** 2).sum() / len(codes))  # rows that have the value of a row
    most = MOST_ROWS_EACH_ID if looks else MOST_ROWS_EACH
    many = len(counts) >= FEWEST_VALUES and counts.max() <= LARGEST_SHARE * len(codes)
    return bool(many and counts[counts > 1].sum() >= LEAST_REPEATED * len(codes) and typical <= most)


def _as_numbers(values: Array, missing: Array) -> Array:
    """Texts as numbers where all are, so that their order is that of the numbers."""
    try:
        numbers = np.zeros(len(values))
        numbers[~missing] = values[~missing].astype(np.float64)
    except ValueError:
        return values
    return numbers


def _residual(some: Evaluation) -> Array | None:
    """(m,) bad outcomes less what rows of the same label, and of the same confidence, have; None without outcomes."""
    if not len(some):
        return None
    if some.errors is not None:
        outcome = some.errors.astype(np.float64)
    elif some.losses is not None:
        outcome = (some.losses > high_loss(some.losses)).astype(np.float64)
    else:
        return None
    classes = some.labels
    if classes is not None and classes.ndim == 1 and classes.dtype.kind in "iu" and some.task == "classification":
        outcome = _less_means(outcome, classes)
    if some.probs is not None and some.task == "classification":
        top = some.probs.max(axis=1)
        edges = np.quantile(top, np.linspace(0, 1, CONFIDENCE_BINS + 1)[1:-1])
        outcome = _less_means(outcome, np.searchsorted(edges, top, side="right"))
    return outcome


def _less_means(values: Array, strata: Array) -> Array:
    codes = np.unique(strata, return_inverse=True)[1].ravel()
    means = np.bincount(codes, weights=values) / np.bincount(codes)
    return np.asarray(values - means[codes])


def _alike(residual: Array, codes: Array) -> tuple[float, float, float]:
    """Intraclass correlation, its z by permutations, and the correlation between values next to each other."""
    sizes = np.bincount(codes).astype(np.float64)
    pairs = float((sizes * (sizes - 1)).sum())
    variance = float(np.square(residual).mean())
    if pairs == 0 or variance == 0:
        return 0.0, 0.0, 0.0
    whole = float(np.square(residual).sum())
    rng = np.random.default_rng(0)
    sums = np.bincount(codes, weights=residual)
    within = float(np.square(sums).sum()) - whole
    by_chance = [
        float(np.square(np.bincount(codes, weights=rng.permutation(residual))).sum()) - whole
        for _ in range(PERMUTATIONS)
    ]
    z = (within - float(np.mean(by_chance))) / max(float(np.std(by_chance)), 1e-12)
    next_pairs = float((sizes[1:] * sizes[:-1]).sum())
    beside = float((sums[1:] * sums[:-1]).sum()) / max(next_pairs, 1.0) / variance
    return within / pairs / variance, z, beside
