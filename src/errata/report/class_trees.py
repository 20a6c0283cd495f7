"""The groups that trees were grown in, a class each as a rule: what their pages and the trees of slices show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import Audit, Slice
from ..core.audit import of_kind
from ..core.leaves import PAIR, group_mask
from ..explain.group_trees import GroupTree, GroupTrees, TopFeature
from ..explain.path import TreePath, path_rule
from ..explain.tree import NodeRows, Tree

MOST_SAVED = 100  # groups of a saved page
GroupKey = tuple[str, str, str]  # task, representation and group: where a feature has one meaning
Place = tuple[GroupKey, str]  # and the rows that confirm: in a cross-fit a group has two trees


@dataclass(frozen=True)
class ClassTree:
    """One group with its tree.

    id: what its page is called. key: where its features have one meaning. within: the group in words. knows_outcome:
    its leaves are wrong by construction. searched, confirm: its search rows and held-out rows. tree: None where it was
    saved without it. features: those of most mutual information; None: not recorded. slices: of the audit, that are
    leaves of it or stand for one.
    """

    id: str
    key: GroupKey
    within: str
    knows_outcome: bool
    searched: NodeRows
    confirm: NodeRows
    tree: Tree | None
    features: tuple[TopFeature, ...] | None
    slices: tuple[Slice, ...]

    @property
    def title(self) -> str:
        """The group in words."""
        return self.within or "all rows"


def class_trees(audit: Audit) -> tuple[ClassTree, ...]:
    """Every group that a tree was grown in; of an audit before 0.6, those that have a slice."""
    at: dict[Place, list[Slice]] = {}
    for slice_ in audit.slices:
        place = _place(slice_)
        if place is not None and slice_.explanation(TreePath) is not None:
            at.setdefault(place, []).append(slice_)
    searches = of_kind(audit.explanations, GroupTrees)
    if searches:
        return tuple(_recorded(at, search, group) for search in searches for group in search.groups)
    return tuple(_from_path(audit, slices, f"t{i}") for i, slices in enumerate(at.values(), start=1))


def saved_groups(groups: tuple[ClassTree, ...]) -> tuple[ClassTree, ...]:
    """Those that a saved page has room for: with a slice first."""
    kept = {group.id for group in sorted(groups, key=lambda group: not group.slices)[:MOST_SAVED]}
    return tuple(group for group in groups if group.id in kept)


def class_of(trees: tuple[ClassTree, ...], slice_: Slice) -> ClassTree | None:
    """The group whose tree a slice is a leaf of, or stands for one; None of a slice that is no path."""
    return next((tree for tree in trees if any(other.id == slice_.id for other in tree.slices)), None)


def group_key(slice_: Slice) -> GroupKey | None:
    """Where the features of a slice's path have one meaning; None of a slice that is no path."""
    rule = path_rule(slice_.rule)
    if rule is None:
        return None
    return slice_.task, rule["representation"], _group_text(_group_of(slice_))


def _group_of(slice_: Slice) -> Mapping[str, Any]:
    """The group of a slice that is a path, as `group_mask` takes it."""
    rule = path_rule(slice_.rule)
    assert rule is not None
    return {PAIR: rule[PAIR]} if PAIR in rule else rule["scope"]


def _group_text(group: Mapping[str, Any]) -> str:
    return json.dumps(dict(group), sort_keys=True, default=str)


def _place(slice_: Slice) -> Place | None:
    """The tree of a slice among all."""
    key = group_key(slice_)
    return None if key is None else (key, slice_.confirmed_on)


def _recorded(at: Mapping[Place, list[Slice]], search: GroupTrees, group: GroupTree) -> ClassTree:
    key = (search.task, search.representation, _group_text(group.group))
    return ClassTree(
        id=group.id,
        key=key,
        within=group.within,
        knows_outcome=search.knows_outcome,
        searched=group.searched,
        confirm=group.confirm,
        tree=group.tree,
        features=group.features,
        slices=tuple(at.get((key, search.confirmed_on), ())),
    )


def _from_path(audit: Audit, slices: Sequence[Slice], id: str) -> ClassTree:
    """What the path of its first slice says of a group."""
    slice_ = slices[0]
    path = slice_.explanation(TreePath)
    key = group_key(slice_)
    assert path is not None
    assert key is not None
    evaluation = dict(audit.evaluation.tasks())[slice_.task]
    held_out = ~audit.discover if slice_.confirmed_on == "confirm" else audit.discover
    inside = group_mask(evaluation, _group_of(slice_)) & held_out
    confirm = NodeRows(int(inside.sum()), int((inside & np.asarray(evaluation.errors)).sum()))
    return ClassTree(
        id=id,
        key=key,
        within=path.within,
        knows_outcome=path.knows_outcome,
        searched=NodeRows(path.searched.group_n, path.searched.group_failures),
        confirm=confirm,
        tree=path.tree,
        features=None,
        slices=tuple(slices),
    )
