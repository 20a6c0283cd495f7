"""The second waist of the house: what an audit found. Anything can display one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from .blocks import Array
from .evaluation import Evaluation

SCHEMA = "errata.audit/1"

Verdict = Literal["confirmed", "not confirmed", "too few to tell"]


@dataclass(frozen=True)
class Found:
    """A slice on the rows it was searched on: shown as "while searching", never as evidence.

    `rate` is the share of bad outcomes; `error_rate` is the same where an outcome is an error,
    and None where it is a loss above a tolerance.
    """

    n: int
    rate: float
    error_rate: float | None
    gap: float
    mean_loss: float | None


@dataclass(frozen=True)
class Confirmed:
    """A slice on rows nobody searched."""

    n: int
    errors: int
    rate: float
    error_rate: float | None
    rest_n: int
    rest_rate: float
    gap: float
    interval: tuple[float, float]  # simultaneous over all slices tested
    gap_in_class: float | None
    excess: tuple[float, float, float]  # errors beyond what the rest's rate gives: point, low, high
    p_value: float
    q_value: float
    power: float  # to see a gap of 20 points, from sizes alone
    visible_gap: float | None  # the smallest gap these rows would show with 80% power
    rows_needed: int | None  # confirm rows for 80% power at 20 points
    mean_loss: float | None
    loss_gap: float | None
    loss_interval: tuple[float, float] | None  # Welch, 95%, without a verdict


@dataclass(frozen=True)
class Explanation:
    """One view on a slice; `kind` says which page part draws it, `data` is plain JSON."""

    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Slice:
    """A group of rows found by one method, frozen: its rule, its numbers, its verdict."""

    id: str
    method: str
    name: str
    verdict: Verdict
    threshold: float
    rule: Mapping[str, Any]
    weights: Array  # (n,) of all rows of the evaluation
    slicer: str = ""  # key of the fitted slicer, and the column in it that this slice is
    column: int = 0
    side: Literal["hard", "easy"] = "hard"
    task: str = ""  # the label, in a multi-label audit
    reason: str | None = None  # why it is not confirmed, where there is more to say
    confirmed_on: Literal["confirm", "discover"] = "confirm"  # "discover": the reverse half of a cross-fit
    discover: Found | None = None
    confirm: Confirmed | None = None
    beyond: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()
    not_applicable: tuple[str, ...] = ()
    fidelity: float | None = None  # of a stand-in: share of its rows that the method itself would take
    found_by: tuple[str, ...] = ()
    folded: int = 0  # other slices that hold mostly the same rows
    explanations: tuple[Explanation, ...] = ()

    @property
    def members(self) -> Array:
        """(n,) bool: the hard set that the verdict is about."""
        inside: Array = self.weights >= self.threshold
        return inside

    def to_json(self) -> dict[str, Any]:
        hidden = {"weights", "explanations", "discover", "confirm"}
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in hidden}
        plain["discover"] = asdict(self.discover) if self.discover else None
        plain["confirm"] = asdict(self.confirm) if self.confirm else None
        plain["explanations"] = [{"kind": e.kind, **e.data} for e in self.explanations]
        return plain


@dataclass(frozen=True)
class Overall:
    """The whole evaluation, and its confirm rows."""

    n: int
    error_rate: float | None
    loss: float | None
    confirm_n: int
    confirm_errors: int
    confirm_rate: float
    confirm_interval: tuple[float, float]  # Wilson, 95%: a single rate, for drawing
    outcome: str  # what counts as bad: "error", or "loss above 2.31"


@dataclass(frozen=True, eq=False)
class Audit:
    """Slices in order of importance, with all that is needed to show, save and apply them."""

    slices: tuple[Slice, ...]
    evaluation: Evaluation
    discover: Array  # (n,) bool
    overall: tuple[tuple[str, Overall], ...]  # one a task; the task's name is "" where there is only one
    settings: Mapping[str, Any]
    silence: str  # what would have been seen: the meaning of finding nothing
    slicers: Mapping[str, Any] = field(default_factory=dict)  # key -> fitted slicer, as the contract has it
    explanations: tuple[Explanation, ...] = ()  # of the audit as a whole

    @property
    def confirmed(self) -> tuple[Slice, ...]:
        return tuple(found for found in self.slices if found.verdict == "confirmed")

    def to_json(self) -> dict[str, Any]:
        origin = self.evaluation.origin
        tasks = [{"task": name, **asdict(overall)} for name, overall in self.overall]
        return {
            "schema": SCHEMA,
            "origin": {**asdict(origin), "data": origin.data or self.evaluation.fingerprint},
            "fingerprint": self.evaluation.fingerprint,
            "settings": dict(self.settings),
            "overall": {key: value for key, value in tasks[0].items() if key != "task"},
            "tasks": tasks if len(tasks) > 1 or tasks[0]["task"] else [],
            "slices": [found.to_json() for found in self.slices],
            "silence": self.silence,
            "explanations": [{"kind": e.kind, **e.data} for e in self.explanations],
            "null": None,
        }
