"""The whole tree that a path runs through: every node with what it holds on search rows and on held-out rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.leaves import Leaves
from ..core.record import Record


@dataclass(frozen=True)
class Condition(Record):
    """A cut of one feature."""

    feature: int
    name: str
    value: float
    op: str  # "<=" or ">"


@dataclass(frozen=True)
class NodeRows(Record):
    """What a node holds of some rows."""

    n: int
    failures: int


@dataclass(frozen=True)
class TreeNode(Record):
    """One node of a tree."""

    depth: int
    condition: Condition | None  # what its rows meet and its sibling's do not; None of the root
    leaf: int | None  # the number of a leaf
    here: bool  # whether the path runs through it
    searched: NodeRows
    confirm: NodeRows | None  # held-out rows; None where versions before 0.6 did not count them


@dataclass(frozen=True)
class Tree(Record):
    """Nodes in the order in which they are read, each before those below it."""

    nodes: tuple[TreeNode, ...]


def read_tree(rule: Mapping[str, Any], searched: Leaves, confirm: Leaves) -> Tree | None:
    """The tree that a rule of kind "path" holds; None of a rule saved without it."""
    nodes: Sequence[Mapping[str, Any]] | None = rule.get("nodes")
    if nodes is None:
        return None
    return Tree(tuple(read_nodes(nodes, searched, confirm, rule["leaf"])))


def read_nodes(
    nodes: Sequence[Mapping[str, Any]], searched: Leaves, confirm: Leaves, leaf: int | None = None
) -> Iterator[TreeNode]:
    """The nodes of a tree with what each holds; leaf: the end of the path that is marked, where there is one."""
    below = _leaves_below(nodes)
    for i, depth, condition in _walk(nodes):
        here = leaf in below[i]
        yield TreeNode(
            depth, condition, nodes[i].get("leaf"), here, _count(searched, below[i]), _count(confirm, below[i])
        )


def _walk(
    nodes: Sequence[Mapping[str, Any]], at: int = 0, depth: int = 0, condition: Condition | None = None
) -> Iterator[tuple[int, int, Condition | None]]:
    """Node, how deep it is, and what its rows meet that its parent's others do not."""
    yield at, depth, condition
    node = nodes[at]
    if "leaf" not in node:
        feature = node["feature"]
        for side, op in (("left", "<="), ("right", ">")):
            yield from _walk(nodes, node[side], depth + 1, Condition(feature, f"feature {feature}", node["cut"], op))


def _leaves_below(nodes: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Of each node the numbers of its leaves; children come after their parents."""
    below: list[list[int]] = [[] for _ in nodes]
    for i in range(len(nodes) - 1, -1, -1):
        node = nodes[i]
        if "leaf" in node:
            below[i] = [node["leaf"]]
        else:
            below[i] = [*below[node["left"]], *below[node["right"]]]
    return below


def _count(leaves: Leaves, numbers: list[int]) -> NodeRows:
    return NodeRows(int(leaves.sizes[numbers].sum()), int(leaves.failures[numbers].sum()))
