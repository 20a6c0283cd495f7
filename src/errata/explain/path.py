"""A path of a shallow tree in words and numbers, and rows that show what its features stand for (Barlow).

All from the rule and the rows: no model is asked. `features.py` adds what only a model can show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..core import Array, Evaluation, Explanation
from ..core.blocks import blocks
from ..core.leaves import PAIR, Leaves, count_leaves, group_mask
from .exemplars import row_facts
from .tree import tree
from .view import View

ACTIVATING = 6  # as in the paper's figures
SHOWN = 6
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


def path_rule(rule: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The path that a slice is, or that its approximation stands for; None of another kind, or without its tree."""
    found: Mapping[str, Any] = rule.get("of", rule)
    return found if found.get("kind") == "path" and "leaves" in found else None


def path(view: View, seed: int) -> Explanation:
    """The path in words, its numbers on searched and on other rows, and rows to look at."""
    rule = path_rule(view.slice.rule)
    assert rule is not None
    seen = _Seen(view.evaluation, rule)
    known = rule is not view.slice.rule
    text = in_words(rule["conditions"], rule["names"])
    searched, confirm = seen.leaves(view.searched), seen.leaves(view.measured)
    data = {
        "text": text,
        "within": _group_in_words(view.evaluation, seen.group),
        "representation": rule["representation"],
        "searched": _told(searched, rule["leaf"], text),
        # A path that an approximation stands for knows the outcome: on any rows its error is high by construction.
        "confirm": None if known else _told(confirm, rule["leaf"], text),
        "tree": tree(rule, searched, None if known else confirm),
        "knows_outcome": known,
        "features": [_feature(view.evaluation, seen, one) for one in _features(rule)],
        **_rows(view, seen, seed),
    }
    return Explanation("path", data)


def in_words(conditions: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """ "feature 1456 below 0.36 and feature 3 between 1 and 2"; a cut lies between two values, so at is below."""
    limits: dict[str, dict[str, float]] = {}
    for one, name in zip(conditions, names, strict=True):
        limits.setdefault(name, {})[one["op"]] = one["value"]
    parts = []
    for name, sides in limits.items():
        low, high = (None if op not in sides else f"{sides[op]:.3g}" for op in (">", "<="))
        if low is not None and high is not None:
            parts.append(f"{name} between {low} and {high}")
        else:
            parts.append(f"{name} below {high}" if low is None else f"{name} above {low}")
    return " and ".join(parts)


@dataclass(frozen=True, eq=False)
class _Seen:
    """The rows of an evaluation as one tree sorts them."""

    evaluation: Evaluation
    rule: Mapping[str, Any]

    @property
    def group(self) -> Mapping[str, Any]:
        return {PAIR: self.rule[PAIR]} if PAIR in self.rule else self.rule["scope"]

    @cached_property
    def inside(self) -> Array:
        """(n,) bool: rows of the group."""
        return group_mask(self.evaluation, self.group)

    @cached_property
    def values(self) -> dict[int, Array]:
        """Feature -> (n,) its values."""
        columns = sorted({one["feature"] for leaf in self.rule["leaves"] for one in leaf})
        X = self.evaluation.representations[self.rule["representation"]]
        found = np.empty((len(X), len(columns)))
        for rows, block in blocks(X):
            found[rows] = block[:, columns]
        return dict(zip(columns, found.T, strict=True))

    @cached_property
    def leaf(self) -> Array:
        """(n,) number of the leaf of each row of the group; -1 outside of it."""
        number = np.full(len(self.evaluation), -1)
        for j, conditions in enumerate(self.rule["leaves"]):
            rows = self.inside.copy()
            for one in conditions:
                below = self.values[one["feature"]] <= one["value"]
                rows &= below if one["op"] == "<=" else ~below
            number[rows] = j
        return number

    def leaves(self, rows: Array) -> Leaves:
        """What the leaves hold of some rows ((n,) bool)."""
        taken = np.flatnonzero(rows & self.inside)
        errors = np.asarray(self.evaluation.errors)
        return count_leaves(self.leaf[taken], errors[taken], len(self.rule["leaves"]))


def _told(leaves: Leaves, leaf: int, text: str) -> dict[str, Any]:
    """BER, ER, EC, IV and ALER with their counts, and in a sentence; a rate of no rows is None."""
    numbers = {key: _number(value) for key, value in leaves.numbers(leaf).items()}
    rate, base, share = (numbers[key] for key in ("error_rate", "base_error_rate", "error_coverage"))
    if rate is None or base is None:
        return {**numbers, "text": f"{text}: no rows"}
    failures = "no failures in the group" if share is None else f"{share:.0%} of the failures"
    return {**numbers, "text": f"{text}: error {rate:.0%} against {base:.0%}, {failures}"}


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _group_in_words(evaluation: Evaluation, group: Mapping[str, Any]) -> str:
    """ "label cat", "cat and dog taken for each other"; nothing where all rows are one group."""
    if PAIR in group:
        one, other = (evaluation.class_name(int(value)) for value in group[PAIR])
        return f"{one} and {other} taken for each other"
    named = {"label", "prediction"}
    words = {key: evaluation.class_name(int(value)) if key in named else str(value) for key, value in group.items()}
    return " and ".join(f"{key} {value}" for key, value in words.items())


def _features(rule: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The features of a path, the root's first, each with its cuts."""
    found: dict[int, dict[str, Any]] = {}
    for one, name in zip(rule["conditions"], rule["names"], strict=True):
        entry = found.setdefault(one["feature"], {"feature": one["feature"], "name": name, "cuts": []})
        entry["cuts"].append({"op": one["op"], "value": one["value"]})
    return list(found.values())


def _feature(evaluation: Evaluation, seen: _Seen, one: Mapping[str, Any]) -> dict[str, Any]:
    """Rows of the group with the highest values, and rows along the whole range: the top alone says too little."""
    values, rows = seen.values[one["feature"]], np.flatnonzero(seen.inside)
    order = rows[np.argsort(values[rows], kind="stable")]
    places = [round(q * (len(order) - 1)) for q in QUANTILES] if len(order) else []
    steps = [{"quantile": q, **_valued(evaluation, values, order[i])} for q, i in zip(QUANTILES, places, strict=False)]
    top = [_valued(evaluation, values, i) for i in order[::-1][:ACTIVATING]]
    return {**one, "of": len(order), "activating": top, "range": steps}


def _valued(evaluation: Evaluation, values: Array, i: int) -> dict[str, Any]:
    return {**row_facts(evaluation, int(i)), "value": float(values[i])}


def _rows(view: View, seen: _Seen, seed: int) -> dict[str, Any]:
    """Failures of the leaf at random, and what the model gets right in it and beside it; of rows nobody searched."""
    errors, here = np.asarray(view.evaluation.errors), seen.leaf == seen.rule["leaf"]
    pool = view.measured if (here & view.measured).any() else np.ones_like(view.measured)
    chosen = {
        "failures": here & errors,
        "right in the leaf": here & ~errors,
        "right beside it": seen.inside & ~here & ~errors,
    }
    rng = np.random.default_rng([seed, 2])
    groups = []
    for which, rows in chosen.items():
        found = np.flatnonzero(rows & pool)
        drawn = rng.permutation(found)[:SHOWN]
        shown = [row_facts(view.evaluation, int(i)) for i in drawn]
        groups.append({"which": which, "of": len(found), "rows": shown})
    return {"drawn_from": "confirm" if pool is view.measured else "all", "seed": seed, "groups": groups}
