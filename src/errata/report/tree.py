"""The whole tree of a path, as lines: each node with its rows, its error, and how much of all failures it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core import Audit, Slice
from ..core.gaps import wilson
from . import marks, numbers

Node = Mapping[str, Any]


def tree(audit: Audit, found: Slice, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """None of an audit that was saved without it. Numbers of confirm rows, where they may be shown."""
    told = data.get("tree")
    if told is None:
        return None
    nodes = told["nodes"]
    which = "searched" if nodes[0]["confirm"] is None else "confirm"
    axis = _axis(audit, [node[which] for node in nodes])
    slices = _slices(audit, found)
    lines = [_line(node, nodes[0], which, axis) for node in nodes]
    for i, (line, node) in enumerate(zip(lines, nodes, strict=True)):
        line |= {
            "words": _words(node, data["within"]),
            "guides": _guides(nodes, i),
            "slices": slices.get(node["leaf"], []),
        }
    return {
        "lines": lines,
        "axis": axis,
        "drawn": which == "confirm",  # what was searched is never in a chart
        "rows": "confirm rows" if which == "confirm" else "discover rows, where the tree was grown",
    }


def _axis(audit: Audit, held: Sequence[Node]) -> marks.Axis:
    """The audit's own, unless a node would lie beyond its end."""
    plain = marks.error_axis(audit.slices)
    return marks.Axis(1.0) if any(one["failures"] > plain.top * one["n"] for one in held) else plain


def _line(node: Node, root: Node, which: str, axis: marks.Axis) -> dict[str, Any]:
    n, failures, all_failures = node[which]["n"], node[which]["failures"], root[which]["failures"]
    rate, share = failures / n if n else 0.0, failures / all_failures if all_failures else 0.0
    low, high = wilson(failures, n)
    return {
        "depth": node["depth"],
        "here": node["here"],
        "leaf": node["leaf"] is not None,
        "n": numbers.count(n),
        "rate": numbers.rate_of(failures, n),
        "count": numbers.out_of(failures, n),
        "holds": numbers.rate_of(failures, all_failures),
        "importance": f"{rate * share:.3f}",
        "at": axis.at(rate) if n else None,
        "low": axis.at(low),
        "high": axis.at(high),
        "label": f"{numbers.out_of(failures, n)} wrong, 95% interval {numbers.interval(low, high)}",
    }


def _words(node: Node, within: str) -> str:
    one = node["condition"]
    if one is None:
        return within or "all rows"
    return f"{one['name']} {'below' if one['op'] == '<=' else 'above'} {numbers.quantity(one['value'])}"


def _guides(nodes: Sequence[Node], at: int) -> list[str]:
    """The lines that lead to a node, one for each level above it: does that level go on below?"""
    depth = nodes[at]["depth"]
    later = [node["depth"] for node in nodes[at + 1 :]]
    guides = []
    for level in range(1, depth + 1):
        until = next((i for i, other in enumerate(later) if other < level), len(later))
        goes_on = level in later[:until]
        guides.append(("tee" if goes_on else "elbow") if level == depth else ("line" if goes_on else "gap"))
    return guides


def _slices(audit: Audit, found: Slice) -> dict[int, list[str]]:
    """Leaf -> the ids of the audit's slices that are it."""
    own, leaves = _rule(found), dict[int, list[str]]()
    for one in audit.slices:
        rule = _rule(one)
        if all(rule.get(name) == own.get(name) for name in ("kind", "nodes", "scope", "pair", "representation")):
            leaves.setdefault(rule["leaf"], []).append(one.id)
    return leaves


def _rule(found: Slice) -> Mapping[str, Any]:
    """The path itself, where a stand-in stands for it."""
    rule: Mapping[str, Any] = found.rule.get("of") or found.rule
    return rule
