"""A path of a shallow tree in words and numbers, and rows that show what its features stand for (Barlow).

All from the rule and the rows: no model is run. `features.py` adds what only a model can show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..core import Array, Evaluation
from ..core.blocks import blocks
from ..core.leaves import PAIR, Leaves, count_leaves, group_mask, leaf_numbers
from ..core.record import FLAT, Record, json_key
from ..core.scope import scope_in_words
from .context import Context
from .examples import Example, ExampleGroup, ValuedExample, example, example_fields
from .kinds import SliceExplanation
from .tree import Tree, read_tree
from .view import SliceView

ACTIVATING = 6  # as in the paper's figures
MAX_ROWS = 6
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class PathNumbers(Record):
    """BER, ER, EC, IV and ALER of a path with their counts, and in a sentence; a rate of no rows is None."""

    n: int
    failures: int
    group_n: int
    group_failures: int
    base_error_rate: float | None
    error_rate: float | None
    error_coverage: float | None
    importance: float | None
    aler: float | None
    text: str


@dataclass(frozen=True)
class Cut(Record):
    """One side of a cut."""

    op: str  # "<=" or ">"
    value: float


@dataclass(frozen=True)
class QuantileExample(Record):
    """The row at a quantile of a feature."""

    quantile: float
    example: ValuedExample = field(metadata=FLAT)


@dataclass(frozen=True)
class PathFeature(Record):
    """A feature of a path: rows with its highest values, and rows along its whole range."""

    feature: int
    name: str
    cuts: tuple[Cut, ...]
    total: int = field(metadata=json_key("of"))  # rows of the group
    activating: tuple[ValuedExample, ...]
    range: tuple[QuantileExample, ...]


@dataclass(frozen=True, kw_only=True)
class TreePath(SliceExplanation):
    """A path in words, its numbers on search rows and on held-out rows, and rows to look at."""

    kind = "path"
    needs = frozenset({"errors"})

    text: str
    within: str  # the group that the tree was grown in; "" where it is all rows
    representation: str
    searched: PathNumbers
    confirm: PathNumbers | None  # None where the path reads the outcome
    tree: Tree | None = None  # None where the rule was saved without it
    knows_outcome: bool
    features: tuple[PathFeature, ...]
    drawn_from: str  # "confirm": held-out rows; "all" where the path has none of those
    seed: int
    groups: tuple[ExampleGroup, ...]  # "failures", "right in the leaf", "right beside it"

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> TreePath | None:
        """None of a slice that is no path."""
        rule = path_rule(view.slice.rule)
        if rule is None:
            return None
        leaf_rows = _LeafRows(view.evaluation, rule)
        # A path that an approximation stands for reads the outcome: on any rows its error is high by construction.
        knows_outcome = rule is not view.slice.rule
        text = in_words(rule["conditions"], rule["names"])
        searched = leaf_rows.leaves(view.searched)
        confirm = leaf_rows.leaves(view.measured)
        confirm_numbers = None if knows_outcome else _numbers(confirm, rule["leaf"], text)
        here = leaf_rows.leaf == rule["leaf"]
        held_out = bool((here & view.measured).any())
        drawn_from = "confirm" if held_out else "all"
        pool = view.measured if held_out else np.ones_like(view.measured)
        return cls(
            text=text,
            within=group_in_words(view.evaluation, leaf_rows.group),
            representation=rule["representation"],
            searched=_numbers(searched, rule["leaf"], text),
            confirm=confirm_numbers,
            tree=read_tree(rule, searched, confirm),
            knows_outcome=knows_outcome,
            features=_features(leaf_rows),
            drawn_from=drawn_from,
            seed=context.seed,
            groups=_groups(leaf_rows, pool, context.seed),
        )


def path_rule(rule: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The path that a slice is, or that its approximation stands for; None of another kind, or without its tree."""
    path: Mapping[str, Any] = rule.get("of", rule)
    return path if path.get("kind") == "path" and "leaves" in path else None


def in_words(conditions: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """ "feature 1456 below 0.36 and feature 3 between 1 and 2"; a cut lies between two values, so at is below."""
    limits: dict[str, dict[str, float]] = {}
    for condition, name in zip(conditions, names, strict=True):
        limits.setdefault(name, {})[condition["op"]] = condition["value"]
    parts = []
    for name, sides in limits.items():
        if len(sides) == 2:
            parts.append(f"{name} between {sides['>']:.3g} and {sides['<=']:.3g}")
        elif "<=" in sides:
            parts.append(f"{name} below {sides['<=']:.3g}")
        else:
            parts.append(f"{name} above {sides['>']:.3g}")
    return " and ".join(parts)


@dataclass(frozen=True, eq=False)
class _LeafRows:
    """The rows of an evaluation as one tree sorts them."""

    evaluation: Evaluation
    rule: Mapping[str, Any]

    @property
    def group(self) -> Mapping[str, Any]:
        """The group that the tree was grown on, as `group_mask` takes it: a pair of classes, or a scope."""
        return {PAIR: self.rule[PAIR]} if PAIR in self.rule else self.rule["scope"]

    @cached_property
    def inside(self) -> Array:
        """(n,) bool: rows of the group."""
        return group_mask(self.evaluation, self.group)

    @cached_property
    def values(self) -> dict[int, Array]:
        """Feature -> (n,) its values."""
        columns = sorted({condition["feature"] for leaf in self.rule["leaves"] for condition in leaf})
        X = self.evaluation.representations[self.rule["representation"]]
        values = np.empty((len(X), len(columns)))
        for rows, block in blocks(X):
            values[rows] = block[:, columns]
        return dict(zip(columns, values.T, strict=True))

    @cached_property
    def leaf(self) -> Array:
        """(n,) number of the leaf of each row of the group; -1 outside of it."""
        number = leaf_numbers(self.values, self.rule["leaves"], len(self.evaluation))
        return np.where(self.inside, number, -1)

    def leaves(self, rows: Array) -> Leaves:
        """What the leaves hold of some rows ((n,) bool)."""
        taken = np.flatnonzero(rows & self.inside)
        errors = np.asarray(self.evaluation.errors)
        return count_leaves(self.leaf[taken], errors[taken], len(self.rule["leaves"]))


def _numbers(leaves: Leaves, leaf: int, text: str) -> PathNumbers:
    numbers: dict[str, Any] = {key: _none_if_nan(value) for key, value in leaves.numbers(leaf).items()}
    rate = numbers["error_rate"]
    base = numbers["base_error_rate"]
    share = numbers["error_coverage"]
    if rate is None or base is None:
        return PathNumbers(**numbers, text=f"{text}: no rows")
    failures = "no failures in the group" if share is None else f"{share:.0%} of the failures"
    return PathNumbers(**numbers, text=f"{text}: error {rate:.0%} against {base:.0%}, {failures}")


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def group_in_words(evaluation: Evaluation, group: Mapping[str, Any]) -> str:
    """ "label cat", "cat and dog taken for each other"; nothing where all rows are one group."""
    if PAIR in group:
        first, second = (evaluation.class_name(int(value)) for value in group[PAIR])
        return f"{first} and {second} taken for each other"
    return scope_in_words(evaluation, group)


def _features(leaf_rows: _LeafRows) -> tuple[PathFeature, ...]:
    """The features of a path, the root's first, each with its cuts."""
    names: dict[int, str] = {}
    cuts: dict[int, list[Cut]] = {}
    for condition, name in zip(leaf_rows.rule["conditions"], leaf_rows.rule["names"], strict=True):
        names.setdefault(condition["feature"], name)
        cuts.setdefault(condition["feature"], []).append(Cut(condition["op"], condition["value"]))
    return tuple(_feature(leaf_rows, feature, name, cuts[feature]) for feature, name in names.items())


def _feature(leaf_rows: _LeafRows, feature: int, name: str, cuts: Sequence[Cut]) -> PathFeature:
    """Rows of the group with the highest values, and rows along the whole range: the top alone says too little."""
    values = leaf_rows.values[feature]
    rows = np.flatnonzero(leaf_rows.inside)
    order = rows[np.argsort(values[rows], kind="stable")]

    def valued(i: int) -> ValuedExample:
        return ValuedExample(**example_fields(leaf_rows.evaluation, int(i)), value=float(values[i]))

    steps = []
    if len(order):
        steps = [QuantileExample(q, valued(order[round(q * (len(order) - 1))])) for q in QUANTILES]
    top = [valued(i) for i in order[::-1][:ACTIVATING]]
    return PathFeature(feature, name, tuple(cuts), len(order), tuple(top), tuple(steps))


def _groups(leaf_rows: _LeafRows, pool: Array, seed: int) -> tuple[ExampleGroup, ...]:
    """Failures of the leaf at random, and what the model gets right in it and beside it."""
    errors = np.asarray(leaf_rows.evaluation.errors)
    here = leaf_rows.leaf == leaf_rows.rule["leaf"]
    masks = {
        "failures": here & errors,
        "right in the leaf": here & ~errors,
        "right beside it": leaf_rows.inside & ~here & ~errors,
    }
    rng = np.random.default_rng([seed, 2])
    groups = []
    for which, mask in masks.items():
        rows = np.flatnonzero(mask & pool)
        examples: list[Example] = [example(leaf_rows.evaluation, int(i)) for i in rng.permutation(rows)[:MAX_ROWS]]
        groups.append(ExampleGroup(which, len(rows), tuple(examples)))
    return tuple(groups)
