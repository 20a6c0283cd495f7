"""Any method within each label or each predicted class: fitted afresh in every scope, ordered over all of them.

A group that is wrong in one class only drowns among all rows: errors of other classes lie where it does not. Methods
that search within classes themselves are asked to; the others are wrapped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np

from ..core import Array, Evaluation, InputError, Progress, State, silent
from ..core.errors import unknown
from ..core.scope import SCOPINGS, Scoping, rows_in_scope, scopes
from ..engine import Engine, Local
from .contract import Slicer, clone
from .options import constructor_options

CHOICES = ("auto", *SCOPINGS)
MOST_SLICES = 20  # over all scopes


@dataclass(frozen=True, eq=False)
class ScopedSlice:
    """One slice of a fitted part, while slices of all scopes are put in order."""

    part: int
    column: int
    excess: float  # errors beyond the scope's rate, over the root of the size


class Within:
    """A slicer fitted afresh in each scope of the search rows.

    Parameters
    ----------
    slicer
        Not fitted; each scope gets a copy with the same options and seed.
    within
        "label" or "prediction". Small classes are pooled, see `errata.core.scope.scopes`.

    Attributes
    ----------
    parts_
        One fitted slicer for each of `scopes_`.
    columns_
        (s, 2) the part and its column that each slice is, the most important first.
    """

    name: ClassVar[str] = "within"
    needs: ClassVar[frozenset[str]] = frozenset()  # each part asks for its own
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"recommended": {}, "as_published": {}}

    report_progress: Progress = staticmethod(silent)
    engine: Engine = Local()
    representation_: str | None = None
    parts_: list[Any]
    scopes_: list[dict[str, Any]]
    columns_: Array
    thresholds_: Array
    rules_: tuple[Mapping[str, Any], ...]

    def __init__(self, slicer: Slicer, within: Scoping):
        self.slicer = slicer
        self.within = within
        self.representation = getattr(slicer, "representation", None)
        self.reads_probs = getattr(slicer, "reads_probs", False)

    @property
    def reads(self) -> frozenset[str]:
        """What the method reads, and what its scopes are by."""
        return self.slicer.reads | {self.within}

    @property
    def _who(self) -> str:
        return f"method `{self.slicer.name}` within each {self.within}"

    def fit(self, evaluation: Evaluation, *, train: Evaluation | None = None) -> Self:
        """Learn slices of each scope of the search rows."""
        evaluation.need(frozenset({f"{self.within}s"}), self._who)
        if evaluation.task != "classification":
            raise InputError(f"{self._who} needs classes; this evaluation is one of {evaluation.task}; leave it out")
        self.scopes_ = scopes(evaluation, self.within)
        self.parts_ = []
        offered: list[ScopedSlice] = []
        for i, scope in enumerate(self.scopes_):
            rows = evaluation.rows(rows_in_scope(evaluation, scope))
            part = clone(self.slicer)
            part.report_progress = self._progress_of(i)
            if hasattr(part, "engine"):
                part.engine = self.engine
            part.fit(rows, train=train)
            for name in ("report_progress", "engine"):  # of this process: fitted parts go to others
                vars(part).pop(name, None)
            self.parts_.append(part)
            offered += _offer(i, part, rows)
        best = sorted(offered, key=lambda slice_: -slice_.excess)[:MOST_SLICES]
        self.columns_ = np.array([(slice_.part, slice_.column) for slice_ in best], dtype=np.int64).reshape(-1, 2)
        self._collect()
        return self

    def _progress_of(self, i: int) -> Progress:
        def report(stage: str, share: float) -> None:
            self.report_progress(stage, (i + share) / len(self.scopes_))

        return report

    def _collect(self) -> None:
        """Set what follows from the fitted parts and the chosen columns."""
        self.representation_ = getattr(self.parts_[0], "representation_", None)
        self.thresholds_ = np.array([self.parts_[i].thresholds_[j] for i, j in self.columns_], dtype=np.float64)
        self.rules_ = tuple(self._rule(int(i), int(j)) for i, j in self.columns_)

    def _rule(self, i: int, j: int) -> dict[str, Any]:
        """The part's own rule, with its scope. Arrays that it names lie in the part, where columns are others."""
        own = {key: value for key, value in self.parts_[i].rules_[j].items() if key != "arrays"}
        if not self.scopes_[i]:
            return own
        reads = frozenset(own.get("reads", self.parts_[i].reads)) | {self.within}
        scope = {**self.scopes_[i], **own.get("scope", {})}  # a part's own is the narrower one
        return {**own, "scope": scope, "reads": sorted(reads)}

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) weights of each slice; 0 outside its scope."""
        weights = np.zeros((len(evaluation), len(self.columns_)))
        for i, scope in enumerate(self.scopes_):
            mine = np.flatnonzero(self.columns_[:, 0] == i)
            rows = np.flatnonzero(rows_in_scope(evaluation, scope))
            if len(mine) and len(rows):
                own = self.parts_[i].membership(evaluation.rows(rows))
                weights[np.ix_(rows, mine)] = own[:, self.columns_[mine, 1]]
        return weights

    def to_state(self) -> State:
        """What is saved: the states of the parts, one in another."""
        states = [part.to_state() for part in self.parts_]
        facts = {
            "within": self.within,
            "scopes": self.scopes_,
            "parts": [{"name": state.name, "facts": state.facts} for state in states],
        }
        arrays = {f"{i}.{name}": array for i, state in enumerate(states) for name, array in state.arrays.items()}
        return State(self.name, facts, {**arrays, "columns_": self.columns_})

    @classmethod
    def from_state(cls, state: State, others: Mapping[str, Any] | None = None) -> Self:
        """A fitted slicer from what was saved. others: as for `slicers.restore`."""
        from . import restore  # a part is any method, and the registry of methods knows this one

        parts = []
        for i, part in enumerate(state.facts["parts"]):
            arrays = {
                name.partition(".")[2]: array
                for name, array in state.arrays.items()
                if name.partition(".")[0] == str(i)
            }
            parts.append(restore(State(part["name"], part["facts"], arrays), others))
        new = cls(parts[0], state.facts["within"])
        new.parts_ = parts
        new.scopes_ = list(state.facts["scopes"])
        new.columns_ = np.asarray(state.arrays["columns_"])
        new._collect()
        return new


def _offer(i: int, part: Slicer, rows: Evaluation) -> list[ScopedSlice]:
    """The slices of a part with their excess over the rate of its scope, so that hard classes do not win for that."""
    hard = part.membership(rows) >= part.thresholds_
    bad = rows.losses if rows.errors is None else rows.errors
    outcome = np.asarray(bad, dtype=np.float64)
    beyond = (outcome - outcome.mean()) @ hard / np.sqrt(np.maximum(hard.sum(axis=0), 1))
    easy = np.array([rule.get("side") == "easy" for rule in part.rules_], dtype=bool)
    excess = np.where(easy, -beyond, beyond)
    return [ScopedSlice(i, j, float(value)) for j, value in enumerate(excess)]


def search_within(slicer: Slicer, within: str, options: Mapping[str, Any]) -> Slicer:
    """The slicer that searches within each label or prediction: itself where it can be asked to, else wrapped.

    Parameters
    ----------
    slicer
        Not fitted.
    within
        "label", "prediction", "none" for all rows at once, or "auto" for the method's own way.
    options
        The user's own options of the method: one that says where to search is not overridden.
    """
    if within not in CHOICES:
        raise unknown("`within`", within, CHOICES)
    if within == "auto":
        return slicer
    refusals: Mapping[str, str] = getattr(slicer, "refused_scopes", {})
    if within in refusals:
        raise InputError(f"method `{slicer.name}` cannot search within `{within}`: {refusals[within]}")
    own_ways: Mapping[str, Mapping[str, Any]] = getattr(slicer, "own_scopes", {})
    given = sorted({name for way in own_ways.values() for name in way} & set(options))
    if given:
        raise InputError(f"`{slicer.name}.{given[0]}` and `within` both say where to search; give one of them")
    if within in own_ways:
        params = {name: getattr(slicer, name) for name in constructor_options(type(slicer))}
        asked: Slicer = type(slicer)(**{**params, **own_ways[within]})
        return asked
    if within == "none":
        return slicer
    return Within(slicer, cast(Scoping, within))
