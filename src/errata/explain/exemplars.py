"""Rows to look at: some of all, the highest losses, and the slice (Spotlight, figures 2 and 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import Array, Evaluation, Explanation
from .view import View

SHOWN = 12
WORST = 4


def exemplars(view: View, seed: int) -> Explanation:
    """Three groups of rows nobody searched; of all rows where the slice has none of those."""
    rng = np.random.default_rng([seed, 0])  # the same random rows beside every slice, to compare them with
    pool = view.measured if (view.inside & view.measured).any() else np.ones_like(view.measured)
    everything = np.flatnonzero(pool)
    groups = [_group("slice", view, *_members(view, np.flatnonzero(view.inside & pool), seed))]
    if view.evaluation.losses is not None:
        top = _highest(view.evaluation.losses, everything, SHOWN)
        groups.append(_group("highest loss", view, top, ["loss"] * len(top), len(everything)))
        groups += _worst_members(view, pool)
    some = _random(rng, everything, SHOWN)
    groups.append(_group("random", view, some, ["random"] * len(some), len(everything)))
    drawn = "confirm" if pool is view.measured else "all"
    return Explanation("exemplars", {"drawn_from": drawn, "seed": seed, "groups": groups})


def _worst_members(view: View, pool: Array) -> list[dict[str, Any]]:
    """Members that are wrong, by loss: the far end of the slice, not its middle."""
    errors, losses = view.evaluation.errors, view.evaluation.losses
    if errors is None or losses is None:
        return []
    wrong = np.flatnonzero(view.inside & pool & errors)
    top = _highest(losses, wrong, WORST)
    return [_group("worst members", view, top, ["loss"] * len(top), len(wrong))]


def extremes(view: View) -> Explanation:
    """Both ends of a failure direction, where nobody searched: weights fall from hard to easy within its class."""
    pool = np.flatnonzero((view.inside | view.rest) & view.measured)
    groups = []
    for which, values in (("hardest", view.slice.weights), ("easiest", -view.slice.weights)):
        rows = _highest(values, pool, SHOWN // 2)
        groups.append(_group(which, view, rows, ["weight"] * len(rows), len(pool)))
    return Explanation("extremes", {"drawn_from": "confirm", "groups": groups})


def _members(view: View, members: Array, seed: int) -> tuple[Array, list[str], int]:
    """Half by weight, half at random, and how each came in; all at random where weights do not differ."""
    rng = np.random.default_rng([seed, 1])
    weights = view.slice.weights
    graded = len(members) > 0 and weights[members].min() < weights[members].max()
    top = _highest(weights, members, SHOWN // 2) if graded else members[:0]
    others = _random(rng, np.setdiff1d(members, top), SHOWN // 2)
    return np.concatenate([top, others]), ["weight"] * len(top) + ["random"] * len(others), len(members)


def _highest(values: Array, rows: Array, count: int) -> Array:
    picked: Array = rows[np.argsort(-values[rows], kind="stable")][:count]
    return picked


def _random(rng: np.random.Generator, rows: Array, count: int) -> Array:
    picked: Array = rng.permutation(rows)[:count]
    return picked


def _group(which: str, view: View, rows: Array, picked: list[str], of: int) -> dict[str, Any]:
    shown = [{**row_facts(view.evaluation, int(i)), "picked": how} for i, how in zip(rows, picked, strict=True)]
    return {"which": which, "of": of, "rows": shown}


def row_facts(evaluation: Evaluation, i: int) -> dict[str, Any]:
    """One row as JSON: what it is, what the model said, how wrong that was."""
    errors, losses = evaluation.errors, evaluation.losses
    identity = evaluation.row_ids[i]
    return {
        "row": i,
        "id": identity.item() if isinstance(identity, np.integer) else str(identity),
        "label": class_text(evaluation, evaluation.labels, i),
        "prediction": class_text(evaluation, evaluation.predictions, i),
        "loss": None if losses is None else float(losses[i]),
        "wrong": None if errors is None else bool(errors[i]),
    }


def class_text(evaluation: Evaluation, column: Array | None, i: int) -> str | None:
    """The class of row i by name; a quantity in four digits."""
    if column is None:
        return None
    value = column[i]
    return evaluation.class_name(int(value)) if value == int(value) else f"{float(value):.4g}"
