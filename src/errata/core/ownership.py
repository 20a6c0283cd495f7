"""Whether a representation contains the model's prediction: measured where nobody declared it.

Reading the label beside such a representation is reading the outcome. What counts is what its columns tell *beyond the
label*: any good representation tells the label, and so most predictions. Within labels, the last layer gives back the
logits (R2 near 1), the layer of another network hardly (.04 to .16 where both are strong). Thresholds were chosen on
layers of small networks, their siblings, pixels and texts, and on tuning worlds; every doubt counts as the model's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from .blocks import Array, take
from .evaluation import Evaluation, Source
from .id_order import draw_in_order

MOST_ROWS = 5000
MOST_COLUMNS = 512
FOLDS = 5
PENALTIES = (1e-4, 1e-2, 1.0)  # of standardised columns
OWN_R2 = 0.4  # of the logits within labels
OWN_AUC = 0.9  # of the errors within labels, where there are only predictions: its upper bound counts
BOUND = 2.0  # standard errors of that bound
FEWEST_ERRORS = 10  # below which nothing is measured
LEAST = 1e-30  # a probability below it counts as this
ROUNDED = 0.05  # share of probabilities that are exactly 0 from which logits are lost


@dataclass(frozen=True)
class Ownership:
    """Whether a representation is taken for the model's own, and why.

    Parameters
    ----------
    own : bool
        Whether it is taken to contain the prediction.
    declared : bool
        Whether someone said so; nothing is measured then.
    r2 : float, optional
        Share of the logits' variance within labels that its columns predict on unseen search rows.
    auc : float, optional
        Without logits: how well the prediction that its columns predict tells errors from others of the same label.
    """

    own: bool
    declared: bool
    r2: float | None = None
    auc: float | None = None


def settle_sources(evaluation: Evaluation, search: Array) -> tuple[Evaluation, dict[str, dict[str, Any]]]:
    """The evaluation with what was measured as the sources of undeclared representations, and a record of it.

    Parameters
    ----------
    evaluation : Evaluation
        All rows.
    search : array
        (n,) bool: the rows that may be looked at.
    """
    found = {name: _ownership(evaluation, name, search) for name in evaluation.representations}
    foreign = {name: Source(from_model=False) for name, fact in found.items() if not fact.own and not fact.declared}
    if foreign:
        evaluation = replace(evaluation, sources={**evaluation.sources, **foreign})
    return evaluation, {name: asdict(fact) for name, fact in found.items()}


def _ownership(evaluation: Evaluation, name: str, search: Array) -> Ownership:
    if name in evaluation.sources:
        return Ownership(evaluation.sources[name].from_model, declared=True)
    rng = np.random.default_rng(0)
    rows = draw_in_order(evaluation.row_ids, search, MOST_ROWS, rng)
    X = _columns(np.asarray(take(evaluation.representations[name], rows), dtype=np.float64), rng)
    fold = rng.permutation(len(rows)) % FOLDS
    measured = [_measure(view.rows(rows), X, fold) for _, view in evaluation.tasks()]
    return max(measured, key=lambda fact: (fact.own, fact.r2 or 0.0, fact.auc or 0.0))


def _columns(X: Array, rng: np.random.Generator) -> Array:
    """(n, d) itself, or its coordinates along the widest directions of some rows."""
    X = X - X.mean(axis=0)
    if X.shape[1] <= MOST_COLUMNS:
        return X
    some = X[: 2 * MOST_COLUMNS]
    sketch = some.T @ (some @ rng.normal(size=(X.shape[1], MOST_COLUMNS)))
    axes: Array = np.linalg.qr(sketch)[0]
    return np.asarray(X @ axes)


def _measure(rows: Evaluation, X: Array, fold: Array) -> Ownership:
    """What columns tell of the prediction beyond the label; the model's own where that cannot be measured."""
    if rows.errors is None or min(rows.errors.sum(), (~rows.errors).sum()) < FEWEST_ERRORS:
        return Ownership(own=True, declared=False)
    assert rows.labels is not None
    if rows.probs is not None and (rows.probs <= 0).mean() < ROUNDED:
        r2 = logit_r2(X, np.asarray(rows.probs, dtype=np.float64), rows.labels, fold)
        return Ownership(own=r2 >= OWN_R2, declared=False, r2=round(r2, 3))
    assert rows.predictions is not None
    auc, bound = error_auc(X, rows.predictions, rows.labels, fold)
    return Ownership(own=auc + bound >= OWN_AUC, declared=False, auc=round(auc, 3))


def logit_r2(X: Array, probs: Array, labels: Array, fold: Array) -> float:
    """Cross-validated share of the logits' variance within labels that a ridge regression on X explains.

    Parameters
    ----------
    X : array
        (n, d).
    probs : array
        (n, k) probabilities.
    labels : array
        (n,) classes.
    fold : array
        (n,) which fold a row is left out in.
    """
    logits = np.log(np.maximum(probs, LEAST))
    logits -= logits.mean(axis=1, keepdims=True)
    target = _within(logits, labels)
    predicted = _out_of_fold(_within(X, labels), target, fold)
    whole = float(np.square(target).sum())
    if whole <= 0:
        return 0.0
    return 1 - float(np.square(target - predicted).sum()) / whole


def error_auc(X: Array, predictions: Array, labels: Array, fold: Array) -> tuple[float, float]:
    """How well a prediction of the prediction tells errors from other rows of their label, and its uncertainty.

    Parameters as of `logit_r2`. The area under the curve is a mean over labels, by their errors.
    """
    classes = np.unique(np.concatenate([predictions, labels]))
    predicted = _out_of_fold(X, (predictions[:, None] == classes).astype(np.float64), fold)
    own = labels[:, None] == classes
    margin = np.where(own, -np.inf, predicted).max(axis=1) - predicted[own]
    wrong = predictions != labels
    areas = []
    weights = []
    for label in np.unique(labels):
        here = labels == label
        few = min((here & wrong).sum(), (here & ~wrong).sum())
        if few:
            areas.append(_area(margin[here], wrong[here]))
            weights.append(int(few))
    if sum(weights) < FEWEST_ERRORS:
        return 1.0, 0.0
    area = float(np.average(areas, weights=weights))
    return area, BOUND * float(np.sqrt(max(area * (1 - area), 0.01) / sum(weights)))


def _area(score: Array, positive: Array) -> float:
    """The area under the curve; ties count half."""
    _, places, counts = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    many = int(positive.sum())
    return float((ranks[positive].sum() - many * (many + 1) / 2) / (many * (len(score) - many)))


def _within(values: Array, labels: Array) -> Array:
    """(n, d) values less the mean of their label."""
    codes = np.unique(labels, return_inverse=True)[1]
    sums = np.zeros((codes.max() + 1, values.shape[1]))
    np.add.at(sums, codes, values)
    means = sums / np.bincount(codes)[:, None]
    return np.asarray(values - means[codes])


def _out_of_fold(X: Array, target: Array, fold: Array) -> Array:
    """(n, k) predictions of a ridge regression that was not fitted to the row, at the penalty that does best."""
    predictions = {penalty: np.empty_like(target) for penalty in PENALTIES}
    for left_out in range(FOLDS):
        train = fold != left_out
        centre = X[train].mean(axis=0)
        scale = np.maximum(X[train].std(axis=0), 1e-9)
        Z = (X - centre) / scale
        height = target[train].mean(axis=0)
        gram = Z[train].T @ Z[train] / train.sum()
        moments = Z[train].T @ (target[train] - height) / train.sum()
        for penalty, predicted in predictions.items():
            slopes = np.linalg.solve(gram + penalty * np.eye(len(gram)), moments)
            predicted[~train] = Z[~train] @ slopes + height
    return min(predictions.values(), key=lambda predicted: float(np.square(target - predicted).sum()))


def words(ownership: Mapping[str, Any]) -> str:
    """One entry of the record in words: "the model's own (R² of its logits within labels .99)"."""
    kind = "the model’s own" if ownership["own"] else "not the model’s own"
    if ownership["declared"]:
        return f"{kind} (declared)"
    if ownership["r2"] is not None:
        return f"{kind} (measured: tells {max(ownership['r2'], 0):.0%} of the logits within labels)"
    if ownership["auc"] is not None:
        return f"{kind} (measured: tells errors from others of their label with an AUC of {ownership['auc']:.2f})"
    return f"{kind} (assumed: nothing to measure it by)"
