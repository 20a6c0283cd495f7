"""Whether a representation tells the outcome of a row: then every slice found in it is one of errors by construction.

Rows with one prediction and one confidence differ, to whoever knows what the model knows, by chance alone. What sorts
the errors among them from the others almost without a mistake holds the outcome itself, or knows the label of nearly
every row: data cannot say which of the two, so an audit says both. Simple readers are fitted to half of the search rows
and tried on the other half: single columns, and all columns, for the error and for the label. A label counts as known
where a bound says so that is wrong in at most 5% of audits, for any classifier that errs in one row of a hundred.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from .blocks import Array, take
from .evaluation import Evaluation
from .id_order import draw_in_order

TOLD = 0.99  # area under the curve of errors from which an outcome counts as told
LABELS_TOLD = 0.99  # share of rows whose label is told, from which a label counts as known: its lower bound counts
MISTAKES_TOLD = 0.75  # the same of rows where the model is wrong, whose label its prediction does not tell
LEVEL = 0.05  # of those bounds, over all readers
MOST_ROWS = 5000
MOST_COLUMNS = 512  # of a regression
MOST_CLASSES = 1000  # of more, such as answers in words, a reader would see few rows each and take minutes
FEWEST_ERRORS = 20  # and rows that are none, in each half
FEWEST_IN_STRATUM = 50
STRATA = 10  # of confidence, in each predicted class
HIGH_LOSS = 0.9  # quantile that is bad where there are no errors
TRIED = 5  # single columns
BINS = 64
PENALTY = 1e-3  # of standardised columns
CONTAINS = (
    "Either it contains {}, or something that knows it of nearly every row. In the first case slices found in it are "
    "errors by construction, and their verdicts are no evidence: leave those columns out."
)
OWN_LAYER = (
    "It is given as a layer of the model, which saw no label of these rows: then the model sees what it fails on. Were "
    "it no such layer, it would contain {}."
)


@dataclass(frozen=True)
class Reading:
    """What the best readers make of a representation, on rows that they were not fitted to.

    Attributes
    ----------
    area : float
        How well errors are sorted from other rows of the same prediction and confidence: 1 without a mistake, .5 by
        chance.
    labels : float
        A lower bound of the share of rows whose label is told.
    """

    area: float = 0.5
    labels: float = 0.0

    @property
    def told(self) -> bool:
        """Whether that is as good as knowing the outcome, or the label that makes it beside the prediction."""
        return self.area >= TOLD or self.labels > LABELS_TOLD


def outcome_notes(evaluation: Evaluation, search: Array) -> list[str]:
    """A sentence for each representation that tells the outcome.

    Parameters
    ----------
    evaluation : Evaluation
        All rows.
    search : array
        (n,) bool: the rows that may be looked at.
    """
    notes = []
    for name in evaluation.representations:
        if evaluation.source(name).reads:  # what is declared to read outcomes is treated so
            continue
        reading = read_outcome(evaluation, name, search)
        declared = name in evaluation.sources and evaluation.sources[name].from_model
        meaning = OWN_LAYER if declared else CONTAINS
        if reading.area >= TOLD:
            notes.append(
                f"Representation `{name}` tells errors from other rows of the same prediction and confidence almost "
                f"without a mistake (AUC {reading.area:.3f} on unseen search rows). {meaning.format('the outcome')}"
            )
        elif reading.told:
            notes.append(
                f"Representation `{name}` tells the label of more than {reading.labels:.1%} of unseen search rows. "
                f"{meaning.format('the label')}"
            )
    return notes


def is_outcome_note(note: str) -> bool:
    """Whether a note of an audit says that verdicts may be no evidence (`outcome_notes`), so that it is shown first."""
    return note.startswith("Representation `") and "verdicts are no evidence" in note


def read_outcome(evaluation: Evaluation, name: str, search: Array) -> Reading:
    """What simple readers make of a representation.

    Parameters
    ----------
    evaluation : Evaluation
        All rows.
    name : str
        Of the representation.
    search : array
        (n,) bool: the rows that may be looked at.
    """
    rng = np.random.default_rng(0)
    rows = draw_in_order(evaluation.row_ids, search, MOST_ROWS, rng)
    X = _standardised(np.asarray(take(evaluation.representations[name], rows), dtype=np.float64))
    half = rng.permutation(len(rows)) % 2 == 0
    if not X.shape[1]:
        return Reading()
    readings = [Reading()]
    for _, view in evaluation.tasks():
        cases = _cases(view.rows(rows), X)
        if cases is not None:
            readings.append(Reading(_error_area(cases, half, rng), _known_labels(cases, half, rng)))
    return max(readings, key=lambda reading: (reading.told, reading.area))


@dataclass(frozen=True, eq=False)
class _Cases:
    """Rows of a task: n of them, d columns."""

    X: Array  # (n, d)
    bad: Array  # (n,) bool
    labels: Array | None  # (n,) codes of k classes; None where there are none, or too many
    predictions: Array | None  # (n,) codes of the same classes
    known: Array  # (n, k) or (n, 2k) what the model says: the class that it predicts, and its probabilities
    strata: Array  # (n,) of prediction and confidence


def _cases(rows: Evaluation, X: Array) -> _Cases | None:
    """None where there are too few outcomes of a kind to say anything."""
    if rows.errors is not None:
        bad = rows.errors
    elif rows.losses is not None:
        bad = rows.losses > np.quantile(rows.losses, HIGH_LOSS)
    else:
        return None
    if min(bad.sum(), (~bad).sum()) < FEWEST_ERRORS:
        return None
    if rows.errors is None or rows.labels is None or rows.predictions is None:
        nothing = np.zeros((len(bad), 0))
        return _Cases(X, bad, None, None, nothing, np.zeros(len(bad), dtype=np.int64))
    classes, codes = np.unique(np.concatenate([rows.labels, rows.predictions]), return_inverse=True)
    labels = codes[: len(bad)]
    predictions = codes[len(bad) :]
    strata = predictions
    many = len(classes) > MOST_CLASSES
    if rows.probs is not None:
        strata = _strata(predictions, np.asarray(rows.probs).max(axis=1))
        many = many or rows.probs.shape[1] > MOST_CLASSES
    if many:
        return _Cases(X, bad, None, None, np.zeros((len(bad), 0)), strata)
    known = np.eye(len(classes))[predictions]
    if rows.probs is not None:
        known = np.concatenate([known, np.asarray(rows.probs, dtype=np.float64)], axis=1)
    return _Cases(X, bad, labels, predictions, known, strata)


def _strata(predictions: Array, confidence: Array) -> Array:
    """(n,) prediction and quantile of confidence, as one number."""
    from scipy.stats import rankdata

    strata = np.zeros(len(predictions), dtype=np.int64)
    for code in np.unique(predictions):
        here = np.flatnonzero(predictions == code)
        parts = min(STRATA, max(1, len(here) // FEWEST_IN_STRATUM))
        places = rankdata(confidence[here], method="ordinal") - 1
        strata[here] = code * STRATA + (places * parts // len(here)).astype(np.int64)
    return strata


def _standardised(X: Array) -> Array:
    centred = X - X.mean(axis=0)
    scale = centred.std(axis=0)
    return np.asarray(centred[:, scale > 0] / scale[scale > 0])


def _error_area(cases: _Cases, half: Array, rng: np.random.Generator) -> float:
    """The area of the better reader: all columns, or one of those that sort the errors of the other half best."""
    target = cases.bad[:, None].astype(np.float64)
    scores = [_out_of_half(partial(_ridge, _all_columns(cases, rng), target), half)[:, 0]]
    for place in range(min(TRIED, cases.X.shape[1])):
        scores.append(_out_of_half(partial(_sorting_column, cases, place), half))
    return max(_area_within(cases, score) for score in scores)


def _known_labels(cases: _Cases, half: Array, rng: np.random.Generator) -> float:
    """A lower bound of the share of labels that the better reader tells: all columns, or one of them."""
    if cases.labels is None or cases.predictions is None:
        return 0.0
    one_hot = np.eye(1 + max(int(cases.labels.max()), int(cases.predictions.max())))[cases.labels]
    columns = _all_columns(cases, rng)
    readers = [partial(_ridge, columns, one_hot)]
    readers += [partial(_by_bin, cases.X, one_hot, place) for place in range(min(TRIED, cases.X.shape[1]))]
    found = [_out_of_half(reader, half).argmax(axis=1) == cases.labels for reader in readers]
    right = max(found, key=lambda correct: int(correct.sum()))
    if _lower_bound(right[cases.bad], len(readers)) <= MISTAKES_TOLD:  # of other rows, the prediction tells the label
        return 0.0
    rare = cases.labels != np.bincount(cases.labels).argmax()  # the commonest label is told by naming it always
    if _lower_bound(right[rare], len(readers)) <= MISTAKES_TOLD:
        return 0.0
    return _lower_bound(right, len(readers))


def _lower_bound(right: Array, readers: int) -> float:
    """The exact lower bound of a share by Clopper and Pearson, at a level that holds for all readers together."""
    from scipy import stats

    count = int(right.sum())
    if count == 0:
        return 0.0
    return float(stats.beta.ppf(LEVEL / readers, count, len(right) - count + 1))


def _out_of_half(read: Callable[[Array], Array], half: Array) -> Array:
    """What a reader says of each row after it was fitted to the half that the row is not in."""
    first = read(half)
    second = read(~half)
    apart = half.reshape(-1, *[1] * (first.ndim - 1))
    return np.where(apart, second, first)


def _all_columns(cases: _Cases, rng: np.random.Generator) -> Array:
    """(n, d) the representation, or as many random mixtures of its columns, and what the model says of a row."""
    X = cases.X
    if X.shape[1] > MOST_COLUMNS:
        X = X @ rng.normal(size=(X.shape[1], MOST_COLUMNS)) / np.sqrt(X.shape[1])
    return np.concatenate([X, cases.known], axis=1)


def _sorting_column(cases: _Cases, place: int, fitted: Array) -> Array:
    """A column that sorts the errors of the fitted half well, the way round that it does."""
    from scipy.stats import rankdata

    bad = cases.bad[fitted]
    ranks = rankdata(cases.X[fitted], axis=0)
    count = max(1, int(bad.sum()))
    areas = (ranks[bad].sum(axis=0) - count * (count + 1) / 2) / (count * max(1, len(bad) - count))
    column = np.argsort(-np.abs(areas - 0.5), kind="stable")[place]
    return np.asarray(cases.X[:, column] * np.sign(areas[column] - 0.5))


def _by_bin(X: Array, one_hot: Array, place: int, fitted: Array) -> Array:
    """(n, k) shares of labels among fitted rows with the same value, or in the same of many bins, of one column.

    The column is one of those whose means differ most between labels.
    """
    sizes = np.maximum(one_hot[fitted].sum(axis=0), 1)
    means = one_hot[fitted].T @ X[fitted] / sizes[:, None]
    column = X[:, np.argsort(-(sizes @ np.square(means)), kind="stable")[place]]
    values = np.unique(column)
    if len(values) > BINS:
        values = np.unique(np.quantile(column[fitted], np.linspace(0, 1, BINS + 1)[1:-1]))
    codes = np.searchsorted(values, column)
    counts = np.zeros((len(values) + 1, one_hot.shape[1]))
    np.add.at(counts, codes[fitted], one_hot[fitted])
    return np.asarray(counts[codes])


def _ridge(X: Array, target: Array, fitted: Array) -> Array:
    """(n, k) a ridge regression that was fitted to some of the rows."""
    centre = X[fitted].mean(axis=0)
    height = target[fitted].mean(axis=0)
    Z = X - centre
    gram = Z[fitted].T @ Z[fitted] / fitted.sum()
    moments = Z[fitted].T @ (target[fitted] - height) / fitted.sum()
    return np.asarray(Z @ np.linalg.solve(gram + PENALTY * np.eye(len(gram)), moments) + height)


def _area_within(cases: _Cases, score: Array) -> float:
    """The area under the curve: its mean over strata, weighted by their errors or what is not one, the fewer."""
    from scipy.stats import rankdata

    areas = []
    weights = []
    for stratum in np.unique(cases.strata):
        here = cases.strata == stratum
        bad = cases.bad[here]
        many = int(bad.sum())
        others = len(bad) - many
        if many and others:
            ranks = rankdata(score[here])
            areas.append((ranks[bad].sum() - many * (many + 1) / 2) / (many * others))
            weights.append(min(many, others))
    return float(np.average(areas, weights=weights)) if areas else 0.5
