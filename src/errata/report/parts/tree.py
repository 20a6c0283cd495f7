"""The whole tree of a group, as lines: each node with its rows, its error, and how much of all failures it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import Slice
from ...core.audit import UNCONFIRMABLE
from ...core.gaps import wilson
from ...explain.path import path_rule
from ...explain.tree import NodeRows, Tree, TreeNode
from .. import marks, numbers
from ..class_trees import ClassTree
from ..contract import View

SIDES = {"<=": "below", ">": "above"}
NOT_RECORDED = "not recorded"
SEARCHED = "search rows, where the tree was grown"
GUIDES = {  # (the level of the node itself, whether that level goes on below) -> what is drawn
    (True, True): "tee",
    (True, False): "elbow",
    (False, True): "line",
    (False, False): "gap",
}


def tree_lines(view: View, group: ClassTree, tree: Tree | None, own: Slice | None = None) -> dict[str, Any] | None:
    """A tree on held-out rows, with a line for what was measured of a slice where those are not the rows of its leaf.

    None of an audit that was saved without it. own: the slice whose path is marked.
    """
    if tree is None:
        return None
    counts = [node.confirm for node in tree.nodes]
    measured = [NodeRows(it.confirm.n, it.confirm.errors) for it in group.slices if it.confirm is not None]
    axis = fitting_axis(view, [*(count for count in counts if count is not None), *measured])
    leaves = _slices_by_leaf(group)
    lines = []
    for i, node in enumerate(tree.nodes):
        line = _node_line(view, group, tree.nodes, i, counts[0], counts[i], axis)
        lines.append(line)
        for slice_ in leaves.get(node.leaf, []):
            is_own = own is not None and slice_.id == own.id
            if _is_measured_apart(group, slice_):
                lines.append(_measured_line(slice_, line, axis, is_own))
            else:
                line["slices"].append((slice_.id, is_own))
                line["here"] = line["here"] or is_own
    recorded = counts[0] is not None
    return {"lines": lines, "axis": axis, "drawn": True, "recorded": recorded, "rows": "held-out rows"}


def searched_lines(view: View, group: ClassTree, tree: Tree | None) -> dict[str, Any] | None:
    """The same tree on the rows that grew it: never drawn, and behind "Details"."""
    if tree is None:
        return None
    counts = [node.searched for node in tree.nodes]
    axis = fitting_axis(view, counts)
    lines = [_node_line(view, group, tree.nodes, i, counts[0], count, axis) for i, count in enumerate(counts)]
    return {"lines": lines, "axis": axis, "drawn": False, "recorded": True, "rows": SEARCHED}


def fitting_axis(view: View, counts: Sequence[NodeRows]) -> marks.Axis:
    """The audit's own, unless one of these rates would lie beyond its end."""
    beyond = any(count.failures > view.axis.top * count.n for count in counts)
    return marks.Axis(1.0) if beyond else view.axis


def _node_line(
    view: View,
    group: ClassTree,
    nodes: Sequence[TreeNode],
    at: int,
    root: NodeRows | None,
    count: NodeRows | None,
    axis: marks.Axis,
) -> dict[str, Any]:
    node = nodes[at]
    condition = node.condition
    words = group.title
    by_people = ""
    if condition is not None:
        name = view.features.name(group.key, condition.feature)
        words = f"{name} {SIDES[condition.op]} {numbers.quantity(condition.value)}"
        by_people = name.note
    return {
        "depth": node.depth,
        "on_path": node.here,
        "here": False,
        "words": words,
        "by_people": by_people,
        "guides": _guides(nodes, at),
        "slices": [],
        **count_values(count, axis),
        **_shares(count, root),
    }


def _is_measured_apart(group: ClassTree, slice_: Slice) -> bool:
    """Whether the rows of a slice's verdict are others than those of its leaf."""
    changed = slice_.judged is not None and slice_.judged.changed
    return group.knows_outcome or changed


def _measured_line(slice_: Slice, leaf: dict[str, Any], axis: marks.Axis, is_own: bool) -> dict[str, Any]:
    """What the headline of a slice says, below the leaf that it stands for."""
    measured = slice_.confirm
    count = None
    if measured is not None and slice_.reason != UNCONFIRMABLE:
        count = NodeRows(measured.n, measured.errors)
    changed = slice_.judged is not None and slice_.judged.changed
    words = "as people left it" if changed else "what was measured: an approximation of this leaf"
    continued = {"tee": "line", "elbow": "gap"}
    return {
        "depth": leaf["depth"] + 1,
        "on_path": False,
        "here": is_own,
        "words": words,
        "by_people": "",
        "guides": [*(continued.get(guide, guide) for guide in leaf["guides"]), "elbow"],
        "slices": [(slice_.id, is_own)],
        **count_values(count, axis),
        "holds": "",
        "importance": "",
    }


def count_values(count: NodeRows | None, axis: marks.Axis) -> dict[str, Any]:
    """Rows, error rate and interval, as text and as places on an axis; None: not recorded."""
    if count is None:
        return {"n": "", "rate": NOT_RECORDED, "count": "", "at": None, "low": 0.0, "high": 0.0, "label": ""}
    low, high = wilson(count.failures, count.n)
    at = axis.at(count.failures / count.n) if count.n else None
    return {
        "n": numbers.count(count.n),
        "rate": numbers.rate_of(count.failures, count.n),
        "count": numbers.out_of(count.failures, count.n),
        "at": at,
        "low": axis.at(low),
        "high": axis.at(high),
        "label": f"{numbers.out_of(count.failures, count.n)} wrong, 95% interval {numbers.interval(low, high)}",
    }


def _shares(count: NodeRows | None, root: NodeRows | None) -> dict[str, str]:
    if count is None or root is None:
        return {"holds": "", "importance": ""}
    rate = count.failures / count.n if count.n else 0.0
    share = count.failures / root.failures if root.failures else 0.0
    return {"holds": numbers.rate_of(count.failures, root.failures), "importance": f"{rate * share:.3f}"}


def _guides(nodes: Sequence[TreeNode], at: int) -> list[str]:
    """The lines that lead to a node, one for each level above it: does that level go on below?"""
    depth = nodes[at].depth
    later = [node.depth for node in nodes[at + 1 :]]
    guides = []
    for level in range(1, depth + 1):
        until = next((i for i, other in enumerate(later) if other < level), len(later))
        goes_on = level in later[:until]
        own_level = level == depth
        guides.append(GUIDES[own_level, goes_on])
    return guides


def _slices_by_leaf(group: ClassTree) -> dict[int | None, list[Slice]]:
    """Leaf -> the slices of the audit that are it, or stand for it."""
    leaves: dict[int | None, list[Slice]] = {}
    for slice_ in group.slices:
        rule = path_rule(slice_.rule)
        assert rule is not None
        leaves.setdefault(rule["leaf"], []).append(slice_)
    return leaves
