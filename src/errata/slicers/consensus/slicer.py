"""`consensus`: the default method. See the modules beside it for how it looks and how it chooses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ...core import Array, Evaluation, State
from ...core.blocks import blocks
from ...core.scope import can_place, rows_in_scope
from ..choice import Candidate, choose
from ..contract import BaseSlicer, check_columns
from ..numerics import pick
from ..options import AT_LEAST_ONE
from ..scopes import FEWEST_BAD, MOST_COMPARED, Scope, bad_rows, list_scopes, price_across_labels
from . import blind
from .balls import find_balls
from .cells import NOWHERE, Cells
from .risk import Risk, best_cut, cut_in_pieces, fit_risk
from .space import Axes, fit_axes, nearest
from .tree import grow_tree

TREE_AXES = 32
BLIND_AXES = 16
MOST_EXAMPLES = 6000  # rows that a blind region is saved by
THRESHOLD = 0.5
BLOCK_BYTES = 1 << 23  # of rows that are placed at once
GENERATORS = 4  # of `_generate`


class Consensus(BaseSlicer):
    """What several generators find in several scopes, chosen by evidence.

    Four generators look at all rows, at the rows of each prediction and at those of each label: an *evidence tree*
    over fine cells (small, sharp groups), *blind regions* (most neighbours are bad; their groups are told apart by
    what mixtures agree on), *half-spaces* (wide, mild groups; cut into pieces) and *balls*. Candidates are compared on
    search rows that did not choose them, at a price for having looked at many, and a row is counted once.

    Parameters
    ----------
    slices
        Slices to tell at most.
    scope
        `auto` looks at all rows, within predictions and within labels; or one of `none`, `prediction`, `label`.
    axes
        Leading axes of the representation that are searched, at most.
    representation
        The representation that is searched. Default: the only one, or the first.
    seed
        Of samples, cells and folds.
    """

    name = "consensus"
    needs = frozenset({"representations", "losses"})
    presets: ClassVar = {"recommended": {}, "as_published": {}}
    own_scopes: ClassVar = {kind: {"scope": kind} for kind in ("none", "label", "prediction")}
    limits: ClassVar = {"slices": AT_LEAST_ONE, "axes": AT_LEAST_ONE}

    def __init__(
        self,
        slices: int = 20,
        scope: Scope = "auto",
        axes: int = 128,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.slices = slices
        self.scope = scope
        self.axes = axes
        self.representation = representation
        self.seed = seed

    space_: Axes
    parts_: tuple[Cells, ...]
    chosen_: Array  # (s, 2) part and index of each slice

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        assert self.representation_ is not None
        self._own = evaluation.source(self.representation_).from_model
        bad = bad_rows(evaluation)
        X = self.matrix(evaluation)
        self.space_ = fit_axes(X, self.axes, self.seed)
        Z = self.space_.reduce(X)
        elsewhere = self._reduced_others()
        compared = pick(len(bad), MOST_COMPARED, self.seed)
        parts: list[Cells] = []
        candidates: list[Candidate] = []
        plans = list(list_scopes(evaluation, self.scope))
        looks = [_ScopedRows(scope, np.flatnonzero(rows_in_scope(evaluation, scope))) for scope in plans]
        found_in = self.engine.each(_search_scope, looks, Z, bad, elsewhere, self.seed)
        for done, (look, found) in enumerate(zip(looks, found_in, strict=True)):
            self.report_progress(self.name, (done + 1) / len(plans))
            extra = 0.0 if self._own else price_across_labels(look.scope, plans)
            base = _base_rate(bad, look.rows)
            for cells, members, price, rank in found:
                owner = np.full(len(bad), NOWHERE)
                owner[look.rows] = members
                owner = owner[compared]
                candidates += [
                    Candidate(len(parts), j, owner == j, base, price + extra, rank) for j in range(len(cells.cuts))
                ]
                parts.append(cells)
        told = self._choose(candidates, parts, bad[compared])
        self._keep(told, parts, GENERATORS * len(plans))

    def _reduced_others(self) -> Array | None:
        """(n, q) the rows whose outcomes are not known here, in the shared space; None where there are none."""
        if self.unlabelled_rows is None:
            return None
        X = self.matrix(self.unlabelled_rows)
        self.unlabelled_rows = None
        return self.space_.reduce(X)

    def _choose(self, candidates: list[Candidate], parts: list[Cells], bad: Array) -> list[Candidate]:
        """Slices that may be tested and slices that know the outcome are chosen apart: neither stands for the other."""
        knowing = [c for c in candidates if self._own and "label" in parts[c.part].scope]
        free = [c for c in candidates if c not in knowing]
        told = choose(free, bad, self.slices) + choose(knowing, bad, self.slices)
        return sorted(told, key=lambda c: -c.value(bad, c.members))

    def _keep(self, told: list[Candidate], parts: list[Cells], searches: int) -> None:
        """Store the parts that tell something, and a rule for each slice."""
        used = sorted({c.part for c in told})
        self.parts_ = tuple(parts[i] for i in used)
        self.chosen_ = np.array([(used.index(c.part), c.index) for c in told], dtype=np.int64).reshape(-1, 2)
        self.rules_ = tuple(
            {
                "kind": "region",
                "representation": self.representation_,
                "generator": parts[c.part].generator,
                "scope": dict(parts[c.part].scope),
                "reads": self._reads(parts[c.part].scope),
                "found_by": len({(parts[i].generator, str(parts[i].scope)) for i in c.found_by}),
                "searches": searches,
            }
            for c in told
        )

    def _reads(self, scope: Mapping[str, Any]) -> list[str]:
        """What a slice reads: its scope and, where that gives the outcome away in any case, the loss to rank by."""
        reads = set(scope) & {"label", "prediction"}
        if self._own and "label" in scope:
            reads.add("loss")
        return sorted(reads)

    def _thresholds(self, evaluation: Evaluation) -> Array:
        return np.full(len(self.rules_), THRESHOLD)

    @property
    def reads(self) -> frozenset[str]:
        """What the scopes read; each rule says it for its own slice."""
        fitted = getattr(self, "rules_", ())
        return frozenset(read for rule in fitted for read in rule["reads"])

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) 0 outside, from .5 to 1 inside: the likelier a row is bad or, where that is known, the worse it is."""
        X = self.matrix(evaluation)
        check_columns(X, len(self.space_.centre), "method `consensus`")
        within = [self._rows_of(cells, evaluation) for cells in self.parts_]
        weights = np.zeros((len(X), len(self.chosen_)))
        for rows, block in blocks(X, BLOCK_BYTES):
            Z = self.space_.reduce(block)
            for i, cells in enumerate(self.parts_):
                columns = np.flatnonzero(self.chosen_[:, 0] == i)
                inside = np.flatnonzero(within[i][rows])
                found = cells.weights(Z[inside])[:, self.chosen_[columns, 1]]
                weights[np.ix_(rows.start + inside, columns)] = found
        self._rank_by_loss(weights, evaluation)
        return weights

    def _rows_of(self, cells: Cells, evaluation: Evaluation) -> Array:
        """(n,) bool: the rows of a part; none where they have no label or prediction to tell them by."""
        if not can_place(evaluation, cells.scope):
            return np.zeros(len(evaluation), dtype=bool)
        return rows_in_scope(evaluation, cells.scope)

    def _rank_by_loss(self, weights: Array, evaluation: Evaluation) -> None:
        """Order the rows of slices that know the outcome by how bad they are."""
        known = [j for j, rule in enumerate(self.rules_) if "loss" in rule["reads"]]
        if not known or evaluation.losses is None:
            return
        severity = 1 - np.exp(-np.maximum(evaluation.losses, 0))
        weights[:, known] = (weights[:, known] > 0) * (0.5 + 0.5 * severity)[:, None]

    def to_state(self) -> State:
        """Options and rules, the space, and the arrays of each part."""
        facts = {
            "params": self.params(),
            "representation": self.representation_,
            "rules": list(self.rules_),
            "parts": [{"generator": part.generator, "scope": dict(part.scope)} for part in self.parts_],
        }
        arrays = {"space.centre": self.space_.centre, "space.axes": self.space_.axes, "chosen": self.chosen_}
        arrays["thresholds"] = self.thresholds_
        for i, part in enumerate(self.parts_):
            arrays |= {f"part{i}.{name}": array for name, array in part.to_arrays().items()}
        return State(self.name, facts, arrays)

    @classmethod
    def from_state(cls, state: State) -> Consensus:
        """A fitted slicer from what was saved."""
        new = cls(**state.facts["params"])
        new.representation_ = state.facts["representation"]
        new.rules_ = tuple(state.facts["rules"])
        new.space_ = Axes(state.arrays["space.centre"], state.arrays["space.axes"])
        new.chosen_ = state.arrays["chosen"]
        new.thresholds_ = state.arrays["thresholds"]
        parts = []
        for i, facts in enumerate(state.facts["parts"]):
            prefix = f"part{i}."
            arrays = {name.removeprefix(prefix): a for name, a in state.arrays.items() if name.startswith(prefix)}
            parts.append(Cells.from_arrays(facts["generator"], facts["scope"], arrays))
        new.parts_ = tuple(parts)
        return new


Found = tuple[Cells, Array, float, int]  # cells, (m,) the slice of each search row, price and rank of a slice


@dataclass(frozen=True, eq=False)
class _ScopedRows:
    """A scope, and the rows in it."""

    scope: Mapping[str, Any]
    rows: Array


def _base_rate(bad: Array, rows: Array) -> float:
    """The rate that a slice among some rows must exceed: theirs, and that of all."""
    return max(float(bad.mean()), float(bad[rows].mean()))


def _search_scope(look: _ScopedRows, Z: Array, bad: Array, elsewhere: Array | None, seed: int) -> list[Found]:
    """What all generators find in one scope; nothing where there is nothing to find."""
    some = bad[look.rows]
    if some.sum() < FEWEST_BAD or some.all():
        return []
    beside = None if look.scope else elsewhere
    return list(_generate(look.scope, Z[look.rows], some, _base_rate(bad, look.rows), beside, seed))


def _generate(
    scope: Mapping[str, Any], Z: Array, bad: Array, base: float, beside: Array | None, seed: int
) -> Iterator[Found]:
    """What each generator finds in one scope.

    Parameters
    ----------
    scope
        Which rows these are.
    Z, bad
        (m, q) search rows in the shared space, and (m,) which of them are bad.
    base
        The rate that a slice must exceed.
    beside
        (n, q) more rows of the scope, whose outcomes are hidden; None where there are none.
    seed
        Of everything random.
    """
    risk = fit_risk(Z, bad, seed)
    rows = Z if beside is None else np.vstack([Z, beside])
    local = fit_axes(rows, TREE_AXES, seed)
    look = _Look(scope, local.reduce(rows), len(Z), bad, base, local, risk, seed)
    yield from _trees(look)
    yield from _blind_regions(look)
    yield from _half_spaces(look)
    yield from _balls(look)


@dataclass(frozen=True, eq=False)
class _Look:
    """What the generators read of one scope.

    Parameters
    ----------
    scope
        Which rows these are.
    P
        (n, r) rows on the local axes, search rows first.
    m
        How many search rows there are.
    bad
        (m,) bool.
    base
        The rate that a slice must exceed.
    local, risk
        The axes of the scope, and its score for being bad.
    seed
        Of everything random.
    """

    scope: Mapping[str, Any]
    P: Array
    m: int
    bad: Array
    base: float
    local: Axes
    risk: Risk
    seed: int

    def cells(self, generator: str, axes: int, centres: Array, owner: Array, cut: float = -np.inf) -> Cells:
        """What was found, on some of the local axes."""
        cuts = np.full(int(owner.max()) + 1, cut)
        return Cells(generator, self.scope, self.local.leading(axes), centres, owner, self.risk.line, cuts)


def _trees(look: _Look) -> Iterator[Found]:
    nodes = grow_tree(look.P, np.arange(look.m), look.bad, look.base, look.seed)
    if nodes.owner.max() >= 0:
        members = nodes.owner[nearest(look.P[: look.m], nodes.centres)]
        yield look.cells("tree", TREE_AXES, nodes.centres, nodes.owner), members, nodes.price, 1


def _blind_regions(look: _Look) -> Iterator[Found]:
    P = look.P[:, :BLIND_AXES]
    honest = blind.vote_across(P[: look.m], look.bad, look.seed) >= blind.VOTE
    if (look.bad & honest).sum() < max(blind.FEWEST_BAD, blind.LEAST_RATE * honest.sum()):
        return
    region = blind.vote(P, np.arange(look.m), look.bad, look.seed) >= blind.VOTE
    group = blind.find_groups(P, region, look.seed)
    if group.max() < 0:
        return
    around = np.flatnonzero(~region)
    kept = np.concatenate([np.flatnonzero(group >= 0), around[pick(len(around), MOST_EXAMPLES, look.seed)]])
    members = np.where(honest, group[kept][nearest(P[: look.m], P[kept])], NOWHERE)
    price = float(np.log(group.max() + 1))
    rank = int(look.bad[honest].mean() < blind.BLIND_RATE)
    yield look.cells("blind region", BLIND_AXES, P[kept], group[kept]), members, price, rank


def _half_spaces(look: _Look) -> Iterator[Found]:
    cut = best_cut(look.risk.scores, look.bad, look.base)
    if cut is None:
        return
    P = look.P[: look.m, :BLIND_AXES]
    beyond = look.risk.scores >= cut
    centres = cut_in_pieces(P[beyond], look.bad[beyond], look.base, look.seed)
    members = np.where(beyond, nearest(P, centres), NOWHERE)
    price = float(np.log(len(centres)))
    yield look.cells("half-space", BLIND_AXES, centres, np.arange(len(centres)), cut), members, price, 1


def _balls(look: _Look) -> Iterator[Found]:
    P = look.P[: look.m]
    for ball in find_balls(P, look.bad, look.base, look.seed):
        cells = look.cells("ball", TREE_AXES, ball.centre[None], np.zeros(1, dtype=np.int64))
        inside = np.square(P - ball.centre).sum(axis=1) <= ball.reach
        yield replace(cells, reach=ball.reach), np.where(inside, 0, NOWHERE), ball.price, 1
