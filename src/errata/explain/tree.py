"""The whole tree that a path runs through: every node in words, with what it holds on searched and on other rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.leaves import Leaves


def tree(rule: Mapping[str, Any], searched: Leaves, confirm: Leaves | None) -> dict[str, Any] | None:
    """Nodes in the order in which they are read, each before those below it; None of a rule saved without them."""
    nodes: Sequence[Mapping[str, Any]] | None = rule.get("nodes")
    if nodes is None:
        return None
    below = _leaves_below(nodes)
    return {
        "nodes": [
            {
                "depth": depth,
                "condition": condition,
                "leaf": nodes[i].get("leaf"),
                "here": rule["leaf"] in below[i],
                "searched": _held(searched, below[i]),
                "confirm": None if confirm is None else _held(confirm, below[i]),
            }
            for i, depth, condition in _walk(nodes)
        ]
    }


def _walk(
    nodes: Sequence[Mapping[str, Any]], at: int = 0, depth: int = 0, condition: dict[str, Any] | None = None
) -> Iterator[tuple[int, int, dict[str, Any] | None]]:
    """Node, how deep it is, and what its rows meet that its parent's others do not."""
    yield at, depth, condition
    node = nodes[at]
    if "leaf" not in node:
        cut = {"feature": node["feature"], "name": f"feature {node['feature']}", "value": node["cut"]}
        for side, op in (("left", "<="), ("right", ">")):
            yield from _walk(nodes, node[side], depth + 1, {**cut, "op": op})


def _leaves_below(nodes: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Of each node the numbers of its leaves; children come after their parents."""
    below: list[list[int]] = [[] for _ in nodes]
    for i in range(len(nodes) - 1, -1, -1):
        node = nodes[i]
        below[i] = [node["leaf"]] if "leaf" in node else [*below[node["left"]], *below[node["right"]]]
    return below


def _held(leaves: Leaves, numbers: list[int]) -> dict[str, int]:
    return {"n": int(leaves.sizes[numbers].sum()), "failures": int(leaves.failures[numbers].sum())}
