"""The trees that a method grew, one for every group of rows, and the features that say most about each (Barlow).

A group whose tree gave no slice has its tree here too. What chose features and cuts are search rows; all that is
counted beside them is of held-out rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..core import Array, Audit, Evaluation, Explanation
from ..core.leaves import (
    GrownTree,
    InformativeFeature,
    Leaves,
    SearchedTrees,
    count_leaves,
    group_mask,
    leaf_numbers,
    leaf_paths,
)
from ..core.record import Record, RowNumber
from .examples import FeatureImage
from .path import ACTIVATING, group_in_words
from .tree import NodeRows, Tree, read_nodes


@dataclass(frozen=True)
class TopFeature(Record):
    """A feature that says much about the failures of a group."""

    feature: int
    information: float  # mutual information with failure on search rows, in nats
    cut: float  # chosen on search rows
    below: NodeRows  # held-out rows at or below the cut
    above: NodeRows  # and above it
    rows: tuple[RowNumber, ...]  # numbers of the rows of the group that raise it most, highest first
    values: tuple[float, ...]  # of the feature in them
    images: tuple[FeatureImage, ...] = ()  # of the same rows, where a model drew them


@dataclass(frozen=True)
class GroupTree(Record):
    """One group: its rows, its tree, and the features of most mutual information with failure."""

    id: str  # "t1": what its page is called
    within: str  # the group in words; "" where it is all rows
    group: dict[str, Any]
    searched: NodeRows
    confirm: NodeRows
    tree: Tree
    features: tuple[TopFeature, ...] | None  # None where the slicer was saved without them


@dataclass(frozen=True)
class GroupTrees(Explanation):
    """All trees of one search."""

    kind = "trees"

    task: str
    representation: str
    confirmed_on: str  # "confirm": held-out rows; "discover" in the reverse half of a cross-fit
    knows_outcome: bool  # whether a tree reads the outcome: its leaves are then wrong by construction, on any rows
    groups: tuple[GroupTree, ...]


def add_trees(audit: Audit, searches: Iterable[SearchedTrees]) -> Audit:
    """The audit with the trees of every search that grew some; groups are numbered through all of them."""
    tasks = dict(audit.evaluation.tasks())
    trees = []
    first = 1
    for search in searches:
        groups = tuple(_group_trees(tasks[search.task], search, first))
        first += len(groups)
        confirmed_on = "confirm" if np.array_equal(search.searched, audit.discover) else "discover"
        trees.append(GroupTrees(search.task, search.representation, confirmed_on, search.knows_outcome, groups))
    others = [explanation for explanation in audit.explanations if explanation.kind != GroupTrees.kind]
    return replace(audit, explanations=(*others, *trees))


def _group_trees(evaluation: Evaluation, search: SearchedTrees, first: int) -> Iterator[GroupTree]:
    for number, grown in enumerate(search.trees, start=first):
        yield _group_tree(_GroupRows(evaluation, search, grown), f"t{number}")


@dataclass(frozen=True, eq=False)
class _GroupRows:
    """The rows of one group, with the columns that its tree and its features read."""

    evaluation: Evaluation
    search: SearchedTrees
    grown: GrownTree

    @cached_property
    def rows(self) -> Array:
        """(r,) numbers of the rows of the group."""
        return np.flatnonzero(group_mask(self.evaluation, self.grown.group))

    @cached_property
    def values(self) -> dict[int, Array]:
        """Feature -> (r,) its values."""
        columns = sorted(_columns(self.grown))
        X = np.asarray(self.evaluation.representations[self.search.representation][self.rows])
        return {column: X[:, column] for column in columns}

    @cached_property
    def searched(self) -> Array:
        """(r,) bool: search rows."""
        return self.search.searched[self.rows]

    @cached_property
    def failed(self) -> Array:
        """(r,) bool: rows on which the model fails."""
        return np.asarray(self.evaluation.errors)[self.rows]


def _columns(grown: GrownTree) -> set[int]:
    split = {node["feature"] for node in grown.nodes if "leaf" not in node}
    return split | {line.feature for line in grown.informative or ()}


def _group_tree(group: _GroupRows, id: str) -> GroupTree:
    leaf = leaf_numbers(group.values, leaf_paths(group.grown.nodes), len(group.rows))
    searched = _leaves(group, leaf, group.searched)
    confirm = _leaves(group, leaf, ~group.searched)
    features = None
    if group.grown.informative is not None:
        features = tuple(_top_feature(group, line) for line in group.grown.informative)
    return GroupTree(
        id=id,
        within=group_in_words(group.evaluation, group.grown.group),
        group=dict(group.grown.group),
        searched=_all(searched),
        confirm=_all(confirm),
        tree=Tree(tuple(read_nodes(group.grown.nodes, searched, confirm))),
        features=features,
    )


def _leaves(group: _GroupRows, leaf: Array, rows: Array) -> Leaves:
    count = sum("leaf" in node for node in group.grown.nodes)
    return count_leaves(leaf[rows], group.failed[rows], count)


def _all(leaves: Leaves) -> NodeRows:
    return NodeRows(int(leaves.sizes.sum()), int(leaves.failures.sum()))


def _top_feature(group: _GroupRows, line: InformativeFeature) -> TopFeature:
    values = group.values[line.feature]
    below = values.astype(np.float64) <= line.cut
    top = np.argsort(values, kind="stable")[::-1][:ACTIVATING]  # as of a path: images drawn for one fit the other
    return TopFeature(
        feature=line.feature,
        information=line.information,
        cut=line.cut,
        below=_count(group, below),
        above=_count(group, ~below),
        rows=tuple(group.rows[top].tolist()),
        values=tuple(float(value) for value in values[top]),
    )


def _count(group: _GroupRows, rows: Array) -> NodeRows:
    """What some rows of the group hold, of held-out rows alone."""
    held_out = rows & ~group.searched
    return NodeRows(int(held_out.sum()), int((held_out & group.failed).sum()))
