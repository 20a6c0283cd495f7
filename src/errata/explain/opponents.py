"""Which training rows a slice owes its errors to, and whether those errors have one cause (InfEmbed, section 3.6).

All from influence embeddings. The product of a training row's and a test row's embedding is the influence g' H⁻¹ g:
positive, and more of the training row would lower the test row's loss (a helper; removing it raises the loss);
negative, and it raises that loss (an opponent).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import Array, Evaluation, Explanation, InputError
from ..core.blocks import Matrix, blocks
from ..core.gaps import wilson
from ..core.media import data_address
from .exemplars import row_facts
from .view import View

REPRESENTATION = "influence"
SHOWN = 8
CENTRAL = 4
PROFILED = 50  # opponents whose labels and metadata are counted
VALUES = 8  # of a column
DRAWS = 200  # random groups that a slice's coherence is compared with
PX = 72
TEXT = 240


def can_explain(evaluation: Evaluation, train: Evaluation | None) -> bool:
    """Both have influence embeddings of the same factor, as far as their columns can say."""
    if train is None or REPRESENTATION not in train.representations:
        return False
    mine = evaluation.representations.get(REPRESENTATION)
    return mine is not None and mine.shape[1] == train.representations[REPRESENTATION].shape[1]


def training_rows(view: View, train: Evaluation) -> Explanation:
    """Opponents and helpers of a slice: chosen for members that were searched, measured on the others."""
    E = view.evaluation.representations[REPRESENTATION]
    chosen, measured = view.inside & view.chosen, view.inside & view.measured
    scores = influence_on(E, train, chosen)
    later = influence_on(E, train, measured)
    order = np.argsort(scores, kind="stable")
    against, towards = order[: _count(scores < 0)], order[::-1][: _count(scores > 0)]
    n, m = max(1, int(chosen.sum())), int(measured.sum())

    def told(rows: Array) -> list[dict[str, Any]]:
        means = [{"influence": float(scores[i]) / n, "measured": float(later[i]) / m if m else None} for i in rows]
        return [{**training_facts(train, int(i)), **mean} for i, mean in zip(rows, means, strict=True)]

    profiled = order[: min(PROFILED, int((scores < 0).sum()))]
    data = {
        **view.roles,
        "of": len(train),
        "members": [n, m],
        "opponents": told(against),
        "helpers": told(towards),
        "held": [int((later[profiled] < 0).sum()), len(profiled)] if m else None,
        "profile": profile(train, profiled),
    }
    return Explanation("opponents", data)


def coherence(view: View, seed: int) -> Explanation:
    """Whether the errors of a slice point the same way, beside as many errors drawn at random; on measured rows."""
    evaluation = view.evaluation
    E = evaluation.representations[REPRESENTATION]
    pool = view.measured if evaluation.errors is None else view.measured & evaluation.errors
    members, others = np.flatnonzero(pool & view.inside), np.flatnonzero(pool & (view.inside | view.rest))
    data: dict[str, Any] = {"measured_on": "confirm", "rows": "all" if evaluation.errors is None else "wrong"}
    data |= {"n": len(members), "of": len(others), "cosine": None, "random": None, "p_value": None, "spread": None}
    if len(members) >= 2:
        data |= _compared(np.asarray(E[others], dtype=np.float64), np.isin(others, members), seed)
    data["central"] = [row_facts(evaluation, int(i)) for i in _central(E, view)]
    return Explanation("coherence", data)


def influence_on(E: Matrix, train: Evaluation, rows: Array) -> Array:
    """(n',) the influence of every training row on some rows ((n,) bool) together: a sum of products."""
    total = np.zeros(E.shape[1])
    for part, block in blocks(E):
        total += rows[part].astype(np.float64) @ block
    T = train.representations[REPRESENTATION]
    scores = np.empty(len(T))
    for part, block in blocks(T):
        scores[part] = block @ total
    return scores


def opponents(
    evaluation: Evaluation, train: Evaluation, rows: Sequence[Any] | Array, count: int = 10, *, helpers: bool = False
) -> list[dict[str, Any]]:
    """The training rows that raise the loss of some rows most, or lower it most (`helpers`).

    rows: their ids, one or many; or (n,) bool. Each answer has the row's facts and `influence`, the mean over `rows`.
    """
    if not can_explain(evaluation, train):
        raise InputError(
            f"opponents need the representation `{REPRESENTATION}` in the evaluation and in `train`, of one factor; "
            "collect both with the same errata.inputs.influence"
        )
    inside = _mask(evaluation, rows)
    scores = influence_on(evaluation.representations[REPRESENTATION], train, inside) / inside.sum()
    order = np.argsort(-scores if helpers else scores, kind="stable")
    fitting = order[: int((scores > 0).sum() if helpers else (scores < 0).sum())][:count]
    return [{**training_facts(train, int(i)), "influence": float(scores[i])} for i in fitting]


def _mask(evaluation: Evaluation, rows: Sequence[Any] | Array) -> Array:
    array = np.asarray(rows)
    inside = array if array.dtype == bool else np.isin(evaluation.row_ids, array)
    if inside.shape != (len(evaluation),) or not inside.any():
        raise InputError("`rows` names no row of the evaluation; give ids that it has, or one yes or no a row")
    return inside


def _count(signs: Array) -> int:
    return min(SHOWN, int(signs.sum()))


def _compared(E: Array, inside: Array, seed: int) -> dict[str, Any]:
    """Mean cosine between pairs, beside that of random groups of the same size; and the k-means objective a row."""
    lengths = np.linalg.norm(E, axis=1, keepdims=True)
    U = E / np.where(lengths > 0, lengths, 1.0)
    m = int(inside.sum())
    own = _mean_cosine(U[inside])
    rng = np.random.default_rng(seed)
    drawn = np.array([_mean_cosine(U[rng.permutation(len(U))[:m]]) for _ in range(DRAWS)])
    spread = float(((E[inside] - E[inside].mean(axis=0)) ** 2).sum(axis=1).mean())
    beyond = int((drawn >= own).sum())
    return {"cosine": own, "random": float(drawn.mean()), "p_value": (1 + beyond) / (1 + DRAWS), "spread": spread}


def _mean_cosine(U: Array) -> float:
    """Over pairs of different rows: the squared length of their sum has every pair twice, and each row once."""
    m, total = len(U), U.sum(axis=0)
    return float((total @ total - (U * U).sum()) / (m * (m - 1)))


def _central(E: Matrix, view: View) -> Array:
    """The members nearest the mean of those that were searched, among the others where there are any."""
    searched = np.flatnonzero(view.inside & view.chosen)
    shown = np.flatnonzero(view.inside & view.measured)
    shown = shown if len(shown) else searched
    if not len(searched) or not len(shown):
        return shown[:0]
    centre = np.asarray(E[searched], dtype=np.float64).mean(axis=0)
    distances = np.linalg.norm(np.asarray(E[shown], dtype=np.float64) - centre, axis=1)
    return shown[np.argsort(distances, kind="stable")[:CENTRAL]]


def profile(train: Evaluation, rows: Array) -> list[dict[str, Any]]:
    """Values of labels and metadata that are commoner among some training rows than among all of them."""
    columns: dict[str, Array] = {}
    if train.labels is not None and train.labels.ndim == 1 and train.task == "classification":
        columns["label"] = np.array([train.class_name(int(c)) for c in train.labels])
    if train.errors is not None:
        columns["fitted"] = np.where(train.errors, "wrong", "right")
    columns |= {name: values.astype(str) for name, values in train.metadata.items()}
    return [row for name, values in columns.items() for row in _enriched(name, values, rows)] if len(rows) else []


def _enriched(column: str, values: Array, rows: Array) -> list[dict[str, Any]]:
    names, codes = np.unique(values, return_inverse=True)
    inside, all_rows = np.bincount(codes[rows], minlength=len(names)), np.bincount(codes, minlength=len(names))
    shares, base = inside / len(rows), all_rows / len(values)
    best = np.argsort(-(shares - base), kind="stable")[:VALUES]
    return [
        {
            "column": column,
            "value": str(names[j]),
            "opponents": [int(inside[j]), len(rows)],
            "train": [int(all_rows[j]), len(values)],
            "lift": float(shares[j] / base[j]),
            "interval": list(wilson(int(inside[j]), len(rows))),
        }
        for j in best
        if inside[j] > 0 and shares[j] > base[j]
    ]


def training_facts(train: Evaluation, i: int) -> dict[str, Any]:
    """One training row as JSON, with a small picture or the beginning of its text: an audit does not hold the rest."""
    facts = row_facts(train, i)
    media = train.media
    facts["text"], facts["picture"] = None, None
    if media is not None and media.kind == "text":
        facts["text"] = (media.text(i) or "")[:TEXT]
    elif media is not None:
        picture = media.thumbnail(i, PX)
        facts["picture"] = None if picture is None else data_address(picture)
    return facts
