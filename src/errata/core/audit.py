"""The result of an audit: slices with their numbers and verdicts. Everything that shows or saves reads this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from .blocks import Array
from .brief import audit_in_brief, slice_in_brief
from .errors import InputError, unknown
from .evaluation import Evaluation
from .judged import Judged
from .record import Record
from .self_test import NullRun, SelfTest
from .views import view_of

SCHEMA = "errata.audit/1"
MOSTLY = 0.5  # of the errors of an error type: a mistake that so many are names it
UNCONFIRMABLE = "unconfirmable"  # `reason` of what cannot be tested: the outcome itself defines it

Verdict = Literal["confirmed", "not confirmed", "too few to tell"]
RowKind = Literal["all", "search", "held-out"]


@dataclass(frozen=True)
class SearchMeasure:
    """A slice on the search rows: shown as "while searching", never as evidence.

    Attributes
    ----------
    n : int
        Rows of the slice.
    rate : float
        The share of bad outcomes.
    error_rate : float, optional
        The same where an outcome is an error; None where it is a loss above a tolerance.
    gap : float
        To the rate of the rest.
    mean_loss : float, optional
        Where there are losses.
    """

    n: int
    rate: float
    error_rate: float | None
    gap: float
    mean_loss: float | None


@dataclass(frozen=True)
class HeldOutMeasure:
    """A slice on the held-out rows, which were not searched: the evidence.

    Attributes
    ----------
    n, errors, rate : int, int, float
        Rows of the slice, those with a bad outcome, and their share.
    error_rate : float, optional
        `rate` where an outcome is an error; None where it is a loss above a tolerance.
    rest_n, rest_rate : int, float
        The rows that the slice is compared with.
    gap : float
        `rate - rest_rate`.
    interval : (float, float)
        Of the gap; simultaneous over all slices tested.
    gap_in_class : float, optional
        The gap to rows of the same class.
    gap_to_all : float, optional
        Of a slice within a scope, which is compared with the rest of that scope: the gap to all other rows. Both must
        hold for a verdict.
    excess : (float, float, float)
        Errors beyond what the rest's rate gives: estimate, low, high.
    p_value, q_value : float, float
        Of "worse than the rest by no more than the margin", and within a scope also than all others; q is Benjamini
        and Hochberg's, and decides nothing.
    power : float
        To see a gap of 20 points, from sizes alone.
    visible_gap : float, optional
        The smallest gap that these rows would show with 80% power.
    rows_needed : int, optional
        Held-out rows for 80% power at 20 points; None where these are enough.
    mean_loss, loss_gap : float, optional
        Where there are losses.
    loss_interval : (float, float), optional
        Of `loss_gap`: Welch's, 95%, without a verdict.
    loss_bounds : (float, float), optional
        Where losses are the outcome: bounds of the gap of mean losses, each loss cut at `loss_cap`. They hold for
        losses of any shape, simultaneously over all slices tested.
    loss_verdict : str, optional
        "confirmed" where these bounds are above 0. It stands beside `verdict`, which is about losses above the
        tolerance.
    loss_cap : float, optional
        The 0.99 quantile of the losses of search rows.
    """

    n: int
    errors: int
    rate: float
    error_rate: float | None
    rest_n: int
    rest_rate: float
    gap: float
    interval: tuple[float, float]
    gap_in_class: float | None
    excess: tuple[float, float, float]
    p_value: float
    q_value: float
    power: float
    visible_gap: float | None
    rows_needed: int | None
    mean_loss: float | None
    loss_gap: float | None
    loss_interval: tuple[float, float] | None
    gap_to_all: float | None = None
    loss_bounds: tuple[float, float] | None = None
    loss_verdict: Verdict | None = None
    loss_cap: float | None = None


class Explanation(Record):
    """One view on a slice or on an audit; every kind is a frozen dataclass of its own, in `explain`.

    A subclass says its `kind` and has one field for each key that audit.json holds of it.
    """

    kind: ClassVar[str]


E = TypeVar("E", bound=Explanation)


@dataclass(frozen=True)
class UnknownExplanation(Explanation):
    """An explanation of a kind that is not registered here: its JSON is kept, and shown as it is."""

    kind: str  # type: ignore[misc]  # of a kind that is not registered, only the file knows the name
    data: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The JSON that was read."""
        return dict(self.data)


def of_kind(explanations: Iterable[Explanation], kind: type[E]) -> list[E]:
    """The explanations of one class, in their order."""
    return [explanation for explanation in explanations if isinstance(explanation, kind)]


@dataclass(frozen=True, eq=False)
class AuditedRows:
    """What a slice knows of the rows that its weights are of.

    Attributes
    ----------
    ids : array
        (n,) of the rows of the evaluation.
    discover : array
        (n,) bool: the search rows of the audit.
    """

    ids: Array
    discover: Array


@dataclass(frozen=True, eq=False)
class Slice:
    """A group of rows found by one method, frozen: its rule, its numbers, its verdict.

    Attributes
    ----------
    id : str
        Unique in its audit: "s1", "s2", …
    method : str
        The slicer that found it.
    name : str
        Made by machine from its explanations.
    verdict : str
        "confirmed", "not confirmed" or "too few to tell".
    threshold : float
        The least weight of a member.
    rule : mapping
        How the method tells its members: kind, scope, representation, and its numbers.
    weights : array
        (n,) membership of all rows of the evaluation, in [0, 1].
    slicer, column : str, int
        The key of the fitted slicer in `Audit.slicers`, and which of its columns this slice is. In audits of versions
        up to 0.2, -1 where only the outcome defines it, so that it cannot be applied to other rows.
    side : str
        "hard" where its rows are worse than the rest, "easy" where they are better.
    task : str
        The label, in a multi-label audit.
    reason : str, optional
        Why it is not confirmed, where there is more to say: "unconfirmable" where it could not be tested.
    confirmed_on : str
        "confirm" for the held-out rows; "discover" for the reverse half of a cross-fit.
    discover : SearchMeasure, optional
        On the search rows.
    confirm : HeldOutMeasure, optional
        On the held-out rows; None where it could not be tested.
    beyond, explained_by, not_applicable : tuple of str
        References ("class", "confidence") that it is worse than, that explain it, that have no meaning here.
    fidelity : float, optional
        Of an approximation: the share of its rows that the method itself would take.
    found_by : tuple of str
        Methods that found mostly the same rows.
    folded : int
        Near-identical slices that were merged into this one.
    error_types : tuple of str
        Of an approximation: the error types whose rows it tells before the outcome, by id.
    explanations : tuple of Explanation
        What its rows have in common.
    audited : AuditedRows, optional
        The rows that its weights are of; an Audit sets it.
    judged : Judged, optional
        What people made of it, in an audit as people left it.

    Examples
    --------
    >>> import errata, numpy as np
    >>> weights = np.array([0.9, 0.2, 0.7])
    >>> slice_ = errata.Slice("s1", "gmm", "small", "confirmed", 0.5, {}, weights)
    >>> slice_
    Slice: s1 small, confirmed
    >>> slice_.members.tolist(), slice_.rows().tolist()
    ([True, False, True], [0, 2])
    """

    id: str
    method: str
    name: str
    verdict: Verdict
    threshold: float
    rule: Mapping[str, Any]
    weights: Array
    slicer: str = ""
    column: int = 0
    side: Literal["hard", "easy"] = "hard"
    task: str = ""
    reason: str | None = None
    confirmed_on: Literal["confirm", "discover"] = "confirm"
    discover: SearchMeasure | None = None
    confirm: HeldOutMeasure | None = None
    beyond: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()
    not_applicable: tuple[str, ...] = ()
    fidelity: float | None = None
    found_by: tuple[str, ...] = ()
    folded: int = 0
    error_types: tuple[str, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    audited: AuditedRows | None = None
    judged: Judged | None = None

    def __repr__(self) -> str:
        return f"Slice: {slice_in_brief(self)}"

    @property
    def members(self) -> Array:
        """(n,) bool: the hard set that the verdict is about."""
        inside: Array = self.weights >= self.threshold
        return inside

    def rows(self, which: RowKind = "all") -> Array:
        """(m,) row numbers of its members.

        Parameters
        ----------
        which : str
            "all"; "held-out", the rows that its verdict and its numbers are from; or "search", on which it was found.
        """
        if which not in ("all", "search", "held-out"):
            raise unknown("kind of rows", which, ("all", "search", "held-out"))
        if which == "all":
            return np.flatnonzero(self.members)
        crossed = self.confirmed_on == "discover"  # the reverse half of a cross-fit
        return np.flatnonzero(self.members & (self._audited.discover ^ crossed ^ (which == "held-out")))

    @property
    def ids(self) -> Array:
        """(m,) ids of its members, of all rows."""
        found: Array = self._audited.ids[self.members]
        return found

    @property
    def query(self) -> str | None:
        """Its rule as text for `DataFrame.query`, of `evaluation.to_frame()` or a table with the same columns.

        None where its rule is not over columns.
        """
        return self._rule_as("query")

    @property
    def sql(self) -> str | None:
        """Its rule as the condition of a WHERE clause; None where its rule is not over columns."""
        return self._rule_as("sql")

    def _rule_as(self, language: str) -> str | None:
        """Its own rule as its explanation wrote it, classes by their names."""
        for explanation in self.explanations:
            if explanation.kind == "rules":
                facts = explanation.to_json()
                return str(facts["rows"][0][language]) if facts["own"] else None
        return None

    @property
    def _audited(self) -> AuditedRows:
        if self.audited is None:
            raise InputError(f"slice {self.id} is not part of an audit, which knows its rows; take it from one")
        return self.audited

    def explanation(self, kind: type[E]) -> E | None:
        """The explanation of one class; None where the slice has none."""
        return next(iter(of_kind(self.explanations, kind)), None)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without the weights."""
        separate = {"weights", "explanations", "discover", "confirm", "audited", "judged"}
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in separate}
        facts["discover"] = asdict(self.discover) if self.discover else None
        facts["confirm"] = asdict(self.confirm) if self.confirm else None
        facts["explanations"] = [{"kind": e.kind, **e.to_json()} for e in self.explanations]
        return facts


@dataclass(frozen=True)
class Mistake(Record):
    """A label and a prediction that rows of an error type have.

    Attributes
    ----------
    label, prediction : int, int
        The classes.
    n : int
        Wrong held-out rows with both.
    share : float
        Of the wrong held-out rows of the error type.
    """

    label: int
    prediction: int
    n: int
    share: float


@dataclass(frozen=True, eq=False)
class ErrorType:
    """A slice that knows the outcome, as its method found it: defined by its errors, so that no rate is claimed.

    Its other face is the slice that is its approximation, which is told before the outcome and tested.

    Attributes
    ----------
    id : str
        Unique in its audit: "e1", "e2", …
    method : str
        The slicer that found it.
    name : str
        Its mistake, where most of its errors are one, and what tells it from others of that mistake.
    rule : mapping
        How the method tells its members.
    weights : array
        (n,) membership of all rows of the evaluation, in [0, 1]. It reads the outcome.
    threshold : float
        The least weight of a member.
    slicer, column : str, int
        The key of the fitted slicer in `Audit.slicers`, and which of its columns this is.
    task : str
        The label, in a multi-label audit.
    n, errors : int, int
        Its held-out rows, and those that are wrong.
    mistakes : tuple of Mistake
        The most frequent labels and predictions of its wrong held-out rows, at most three.
    central : tuple of int
        Wrong held-out rows that are most of its kind, by their number.
    found_by : tuple of str
        Methods that found mostly the same rows.
    folded : int
        Near-identical ones that were merged into this one.
    slice : str, optional
        The slice that is its approximation, by id: who is at risk. None where nothing tells its rows before the
        outcome, or what does is not worse than the rest on search rows.
    """

    id: str
    method: str
    name: str
    rule: Mapping[str, Any]
    weights: Array
    threshold: float
    slicer: str = ""
    column: int = 0
    task: str = ""
    n: int = 0
    errors: int = 0
    mistakes: tuple[Mistake, ...] = ()
    central: tuple[int, ...] = ()
    found_by: tuple[str, ...] = ()
    folded: int = 0
    slice: str | None = None

    @property
    def members(self) -> Array:
        """(n,) bool: its rows."""
        inside: Array = self.weights >= self.threshold
        return inside

    @property
    def is_one_mistake(self) -> bool:
        """Whether at least half of its errors are of one label and one prediction."""
        return bool(self.mistakes) and self.mistakes[0].share >= MOSTLY

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, without the weights."""
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "weights"}
        facts["mistakes"] = [mistake.to_json() for mistake in self.mistakes]
        return facts


@dataclass(frozen=True)
class Overall:
    """All rows of an evaluation, and its held-out rows.

    Attributes
    ----------
    n : int
        All rows.
    error_rate, loss : float, optional
        Of all rows; the loss is their mean.
    confirm_n, confirm_errors, confirm_rate : int, int, float
        Held-out rows, those with a bad outcome, and their share.
    confirm_interval : (float, float)
        Wilson's, 95%: of a single rate, for drawing.
    outcome : str
        What counts as bad: "error", or "loss above 2.31".
    confirm_loss : float, optional
        The mean loss of the held-out rows; None without losses, and in audits of versions up to 0.6.
    """

    n: int
    error_rate: float | None
    loss: float | None
    confirm_n: int
    confirm_errors: int
    confirm_rate: float
    confirm_interval: tuple[float, float]
    outcome: str
    confirm_loss: float | None = None


@dataclass(frozen=True, eq=False)
class Audit:
    """Slices in order of importance, with all that is needed to show, save and apply them.

    Attributes
    ----------
    slices : tuple of Slice
        Confirmed ones first, then by excess errors.
    evaluation : Evaluation
        The rows that were audited.
    discover : array
        (n,) bool: the search rows. The others were held out.
    overall : tuple of (str, Overall)
        One a task; the task's name is "" where there is only one.
    settings : mapping
        How the audit was made: methods, options, seed, level, versions.
    silence : str
        What this audit could have missed: what the test would confirm, what the search finds, what it finds by chance.
    slicers : mapping
        Key -> fitted slicer.
    explanations : tuple of Explanation
        Of the audit as a whole.
    error_types : tuple of ErrorType
        Slices that know the outcome, those with the most errors first: shown, and nothing is claimed of them.
    self_test : SelfTest, optional
        How often the search finds groups that are planted in these rows; None where it was not tested.
    null_run : NullRun, optional
        What the search confirms where outcomes have no pattern; None where it was not run.
    drawn : tuple of Slice
        Loops that people drew on the map, in an audit as people left it: rows of this audit without a rule, chosen
        after seeing the errors, so that they are hypotheses.

    Examples
    --------
    >>> import errata, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(600, 4))
    >>> wrong = rng.random(600) < np.where(x[:, 0] > 1, 0.8, 0.05)
    >>> rows = errata.Evaluation(labels=np.zeros(600, int), predictions=wrong.astype(int), representations={"x": x})
    >>> audit = errata.audit(rows, methods=["gmm"])
    >>> len(audit.evaluation), int(audit.discover.sum())
    (600, 300)
    >>> worst = audit["s1"]
    >>> worst.verdict, len(worst.rows("held-out")) == worst.confirm.n
    ('confirmed', True)
    >>> [slice_.id for slice_ in audit] == audit.to_frame().index.tolist()
    True
    """

    slices: tuple[Slice, ...]
    evaluation: Evaluation
    discover: Array
    overall: tuple[tuple[str, Overall], ...]
    settings: Mapping[str, Any]
    silence: str
    slicers: Mapping[str, Any] = field(default_factory=dict)
    explanations: tuple[Explanation, ...] = ()
    error_types: tuple[ErrorType, ...] = ()
    self_test: SelfTest | None = None
    null_run: NullRun | None = None
    drawn: tuple[Slice, ...] = ()

    def __post_init__(self) -> None:
        rows = AuditedRows(self.evaluation.row_ids, self.discover)
        object.__setattr__(self, "slices", tuple(_bound(slice_, rows) for slice_ in self.slices))
        object.__setattr__(self, "drawn", tuple(_bound(slice_, rows) for slice_ in self.drawn))

    def __repr__(self) -> str:
        return audit_in_brief(self)

    def _repr_html_(self) -> str:
        return str(view_of(self, "html"))

    def __len__(self) -> int:
        return len(self.slices)

    def __iter__(self) -> Iterator[Slice]:
        return iter(self.slices)

    def __bool__(self) -> bool:  # that nothing was found is a result
        return True

    def __contains__(self, id: object) -> bool:
        return any(id == slice_.id or id is slice_ for slice_ in self.slices)

    def __getitem__(self, id: str) -> Slice:
        found = {slice_.id: slice_ for slice_ in self.slices}
        if id not in found:
            raise unknown("slice", str(id), found)
        return found[id]

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row a slice: name, verdict, sizes, rates, gap and interval; the index has the ids."""
        return view_of(self, "to_frame")

    def plot(self, kind: str = "gaps", ax: Any = None) -> Any:
        """Draw the slices with matplotlib, which `errata[plot]` installs.

        Parameters
        ----------
        kind : str
            "gaps", each slice's gap to the rest with its interval; or "sizes", the size of each slice against its rate
            of bad outcomes.
        ax : matplotlib Axes, optional
            Where to draw. Default: a new figure.

        Returns
        -------
        matplotlib Axes
            With the drawing.
        """
        return view_of(self, "plot", kind, ax)

    @property
    def confirmed(self) -> tuple[Slice, ...]:
        """The slices that held-out rows confirmed."""
        return tuple(slice_ for slice_ in self.slices if slice_.verdict == "confirmed")

    def to_json(self) -> dict[str, Any]:
        """The content of audit.json: all but the rows, the weights and the fitted slicers."""
        origin = self.evaluation.origin
        tasks = [{"task": name, **asdict(overall)} for name, overall in self.overall]
        only = tasks[0]
        overall = {key: value for key, value in only.items() if key != "task"}
        if len(tasks) == 1 and not only["task"]:
            tasks = []
        return {
            "schema": SCHEMA,
            "origin": {**asdict(origin), "data": origin.data or self.evaluation.fingerprint},
            "fingerprint": self.evaluation.fingerprint,
            "settings": dict(self.settings),
            "overall": overall,
            "tasks": tasks,
            "slices": [slice_.to_json() for slice_ in self.slices],
            "error_types": [error_type.to_json() for error_type in self.error_types],
            "silence": self.silence,
            "explanations": [{"kind": e.kind, **e.to_json()} for e in self.explanations],
            "self_test": self.self_test and self.self_test.to_json(),
            "null": self.null_run and self.null_run.to_json(),
        }


def _bound(slice_: Slice, rows: AuditedRows) -> Slice:
    """The slice with these rows; itself where it holds them already."""
    known = slice_.audited
    same = known is not None and known.ids is rows.ids and known.discover is rows.discover
    return slice_ if same else replace(slice_, audited=rows)
