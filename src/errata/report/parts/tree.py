"""The whole tree of a path, as lines: each node with its rows, its error, and how much of all failures it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core import Audit, Slice
from ...core.gaps import wilson
from ...explain.path import TreePath
from ...explain.tree import NodeRows, TreeNode
from .. import marks, numbers

SIDES = {"<=": "below", ">": "above"}
GUIDES = {  # (the level of the node itself, whether that level goes on below) -> what is drawn
    (True, True): "tee",
    (True, False): "elbow",
    (False, True): "line",
    (False, False): "gap",
}


def tree_lines(audit: Audit, slice_: Slice, path: TreePath) -> dict[str, Any] | None:
    """None of an audit that was saved without it. Numbers of held-out rows, where they may be shown."""
    if path.tree is None:
        return None
    nodes = path.tree.nodes
    held_out = nodes[0].confirm is not None
    counts = [node.confirm or node.searched for node in nodes]
    axis = _axis(audit, counts)
    slices = _slices_by_leaf(audit, slice_)
    lines = [_line(node, count, counts[0], axis) for node, count in zip(nodes, counts, strict=True)]
    for i, (line, node) in enumerate(zip(lines, nodes, strict=True)):
        line |= {
            "words": _words(node, path.within),
            "guides": _guides(nodes, i),
            "slices": slices.get(node.leaf, []),
        }
    rows = "held-out rows" if held_out else "search rows, where the tree was grown"
    return {
        "lines": lines,
        "axis": axis,
        "drawn": held_out,  # what was searched is never in a chart
        "rows": rows,
    }


def _axis(audit: Audit, counts: Sequence[NodeRows]) -> marks.Axis:
    """The audit's own, unless a node would lie beyond its end."""
    plain = marks.error_axis(audit.slices)
    beyond = any(count.failures > plain.top * count.n for count in counts)
    return marks.Axis(1.0) if beyond else plain


def _line(node: TreeNode, count: NodeRows, root: NodeRows, axis: marks.Axis) -> dict[str, Any]:
    n = count.n
    failures = count.failures
    all_failures = root.failures
    rate = failures / n if n else 0.0
    share = failures / all_failures if all_failures else 0.0
    low, high = wilson(failures, n)
    at = axis.at(rate) if n else None
    return {
        "depth": node.depth,
        "here": node.here,
        "leaf": node.leaf is not None,
        "n": numbers.count(n),
        "rate": numbers.rate_of(failures, n),
        "count": numbers.out_of(failures, n),
        "holds": numbers.rate_of(failures, all_failures),
        "importance": f"{rate * share:.3f}",
        "at": at,
        "low": axis.at(low),
        "high": axis.at(high),
        "label": f"{numbers.out_of(failures, n)} wrong, 95% interval {numbers.interval(low, high)}",
    }


def _words(node: TreeNode, within: str) -> str:
    condition = node.condition
    if condition is None:
        return within or "all rows"
    return f"{condition.name} {SIDES[condition.op]} {numbers.quantity(condition.value)}"


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


def _slices_by_leaf(audit: Audit, slice_: Slice) -> dict[int | None, list[str]]:
    """Leaf -> the ids of the audit's slices that are it."""
    own = _rule(slice_)
    leaves: dict[int | None, list[str]] = {}
    for other in audit.slices:
        rule = _rule(other)
        if all(rule.get(name) == own.get(name) for name in ("kind", "nodes", "scope", "pair", "representation")):
            leaves.setdefault(rule["leaf"], []).append(other.id)
    return leaves


def _rule(slice_: Slice) -> Mapping[str, Any]:
    """The path itself, where the slice is an approximation of it."""
    rule: Mapping[str, Any] = slice_.rule.get("of") or slice_.rule
    return rule
