"""The ceiling and the floor beside an audit of a real model: a predictor of its errors, and the plain tree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, Evaluation
from ..core.confirm import Settings, SliceCandidate, SplitTask, confirm_all
from ..core.gaps import wilson
from .results import write_npz

SHARES = (0.1, 0.2, 0.3)  # of rows, at which the ceiling is reported whatever an audit holds
STRENGTHS = (0.001, 0.01, 0.1, 1.0)  # the predictor's C, chosen by cross-validation on the search rows
FOLDS = 5
FEWEST_OF_A_KIND = 10  # errors, and correct rows, in a scope that has a predictor of its own
SMALLEST_NODE = 20  # search rows
MOST_NODES = 10  # of the tree, that are tested
STARTS = 3  # of each 2-means


@dataclass(frozen=True, eq=False)
class Bounds:
    """What the rows of one table can show at most, and what a plain search finds."""

    order_errors: Array  # (held-out rows,) bool: errors, the riskiest row by the predictor first
    scope: str  # that of the predictor: "all rows", "prediction" or "label"
    tree_share: float  # of the held-out rows in the tree's confirmed nodes
    tree_captured: float
    tree_slices: int
    tree_scope: str

    def ceiling(self, share: float) -> float:
        """The share of errors in excess that the predictor's riskiest rows hold, at a share of rows."""
        wrong = self.order_errors
        errors = int(wrong.sum())
        if not errors:
            return 0.0
        count = round(share * len(wrong))
        return float(wrong[:count].sum()) / errors - count / len(wrong)

    def facts(self) -> dict[str, Any]:
        """The columns of a table."""
        ceilings = {f"ceiling_{round(100 * share)}": self.ceiling(share) for share in SHARES}
        tree = {"tree_share": self.tree_share, "tree_captured": self.tree_captured, "tree_slices": self.tree_slices}
        return {"ceiling_scope": self.scope, **ceilings, "tree_scope": self.tree_scope, **tree}


def measure_bounds(evaluation: Evaluation, discover: Array, seed: int) -> Bounds:
    """Fit the predictors and the tree on the search rows, and measure both on the held-out rows.

    Within a label, the model's own layer shows the outcome: there the predictor and the tree look within predictions.
    """
    kind = next(iter(evaluation.representations))
    tree_scope = "prediction" if evaluation.source(kind).from_model else "label"
    scopes = dict.fromkeys(["all rows", "prediction", tree_scope])
    orders = {scope: _errors_by_risk(evaluation, discover, scope) for scope in scopes}
    tree = tree_rows(evaluation, discover, tree_scope, seed)
    union = np.any(tree, axis=0)[~discover]
    assert evaluation.errors is not None
    wrong = evaluation.errors[~discover]
    captured = (wrong[union].sum() - wrong.mean() * union.sum()) / max(int(wrong.sum()), 1)
    # One predictor a table, the best on average over the shares: chosen on held-out rows, as suits a ceiling.
    candidates = [
        Bounds(order, scope, float(union.mean()), float(captured), len(tree), tree_scope)
        for scope, order in orders.items()
    ]
    return max(candidates, key=lambda bounds: sum(map(bounds.ceiling, SHARES)))


def write_bounds(path: Path, bounds: Bounds, discover: Array) -> None:
    """Store bounds with the search rows that they were measured by."""
    facts = {name: value for name, value in vars(bounds).items() if name != "order_errors"}
    arrays = {"order_errors": bounds.order_errors, "discover": discover, "facts": np.array(json.dumps(facts))}
    write_npz(path, arrays)


def read_bounds(path: Path, discover: Array) -> Bounds | None:
    """Stored bounds; None where there are none for these search rows."""
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        if not np.array_equal(arrays["discover"], discover):
            return None
        return Bounds(order_errors=arrays["order_errors"], **json.loads(str(arrays["facts"])))


def _scopes(evaluation: Evaluation, scope: str) -> Iterator[Array]:
    """(n,) bool masks that together hold every row."""
    columns = {"label": evaluation.labels, "prediction": evaluation.predictions}
    column = columns.get(scope)
    if column is None:
        yield np.ones(len(evaluation), dtype=bool)
        return
    for value in np.unique(column):
        yield column == value


def standardised(evaluation: Evaluation) -> Array:
    """(n, d) the only representation, its columns standardised."""
    X = np.asarray(next(iter(evaluation.representations.values())), dtype=np.float64)
    scaled: Array = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    return scaled


# --- the ceiling ---------------------------------------------------------------------------------------------


def _errors_by_risk(evaluation: Evaluation, discover: Array, scope: str) -> Array:
    """Held-out errors, the riskiest row first: logistic regression of the error in each scope, on search rows."""
    assert evaluation.errors is not None
    wrong = evaluation.errors
    X = standardised(evaluation)
    risk = np.zeros(len(wrong))
    for inside in _scopes(evaluation, scope):
        risk[inside] = _risk(X[inside], wrong[inside], discover[inside])
    held_out = ~discover
    ordered: Array = wrong[held_out][np.argsort(-risk[held_out], kind="stable")]
    return ordered


def _risk(X: Array, wrong: Array, discover: Array) -> Array:
    """(rows,) probability of an error; the rate of the search rows where they have too few of a kind to learn from."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    known = wrong[discover]
    errors = int(known.sum())
    if min(errors, len(known) - errors) < FEWEST_OF_A_KIND:
        return np.full(len(X), (errors + 0.5) / (len(known) + 1))
    model = GridSearchCV(LogisticRegression(max_iter=300), {"C": STRENGTHS}, scoring="neg_log_loss", cv=FOLDS)
    probability: Array = model.fit(X[discover], known).predict_proba(X)[:, 1]
    return probability


# --- the floor -----------------------------------------------------------------------------------------------


def tree_rows(evaluation: Evaluation, discover: Array, scope: str, seed: int) -> Array:
    """(s, n) bool: the nodes of bisecting 2-means trees that held-out rows confirm."""
    X = standardised(evaluation)
    assert evaluation.errors is not None
    overall = float(evaluation.errors[discover].mean())
    nodes = []
    for inside in _scopes(evaluation, scope):
        nodes += list(_bisect(X, inside, discover, seed))
    scores = np.array([_score(evaluation.errors[node & discover], overall) for node in nodes])
    chosen = _best_disjoint(nodes, scores)
    split = SplitTask(evaluation, discover, Settings())
    family = [(split, SliceCandidate("tree", j, node.astype(np.float64), 0.5, {})) for j, node in enumerate(chosen)]
    confirmed = [result.candidate.members for result in confirm_all(family) if result.verdict == "confirmed"]
    return np.array(confirmed, dtype=bool).reshape(len(confirmed), len(evaluation))


def _bisect(X: Array, inside: Array, discover: Array, seed: int) -> Iterator[Array]:
    """Every node of one tree, as (n,) bool: 2-means of the search rows; other rows follow the nearer centre."""
    from sklearn.cluster import KMeans

    yield inside
    rows = np.flatnonzero(inside & discover)
    if len(rows) < 2 * SMALLEST_NODE:
        return
    halves = KMeans(2, n_init=STARTS, random_state=seed).fit(X[rows])
    if np.bincount(halves.labels_, minlength=2).min() < SMALLEST_NODE:
        return
    members = np.flatnonzero(inside)
    side = halves.predict(X[members])
    for half in (0, 1):
        child = np.zeros(len(inside), dtype=bool)
        child[members[side == half]] = True
        yield from _bisect(X, child, discover, seed)


def _score(wrong: Array, overall: float) -> float:
    """Lower bound of the error rate beyond the overall rate, times the root of the number of rows."""
    low, _ = wilson(float(wrong.sum()), len(wrong))
    return float((low - overall) * np.sqrt(len(wrong)))


def _best_disjoint(nodes: list[Array], scores: Array) -> list[Array]:
    """The best nodes that stand out, none of them inside or around another."""
    chosen: list[Array] = []
    for j in np.argsort(-scores, kind="stable"):
        if scores[j] <= 0 or len(chosen) == MOST_NODES:
            break
        if not any((nodes[j] & other).any() for other in chosen):
            chosen.append(nodes[j])
    return chosen
