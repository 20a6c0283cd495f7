"""Confirming slices on held-out rows: the procedure, from hard sets to verdicts.

One rule runs through it: nothing that decides which slices are tested, what rows they hold, or at
what margin, looks at the outcome of a held-out row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import special

from . import gaps
from .audit import UNCONFIRMABLE, HeldOutMeasure, Overall, SearchMeasure, Verdict
from .blocks import Array
from .errors import InputError
from .evaluation import Evaluation
from .mean_loss import compare_means, loss_cap
from .membership import drop_overlapping, excess_order
from .references import FEWEST_IN_STRATUM, Reference, class_reference, compare, confidence_reference, rest_reference
from .scope import rows_in_scope
from .scratch import fill_rows

LARGEST_SHARE = 0.5  # a slice of over half the rows is not a slice
LOSS_QUANTILE = 0.9
LARGEST_MARGIN = 0.05
LOSS_WORDS: dict[str | None, str] = {  # what an outcome is called, before the tolerance
    "over_prediction": "prediction too high by more than",
    "under_prediction": "prediction too low by more than",
}
LEAST_FIDELITY = 0.3  # below it, an unconfirmed approximation says nothing of the slice that it approximates


@dataclass(frozen=True)
class Settings:
    """How strict the confirmation is.

    Parameters
    ----------
    alpha : float
        The chance that any slice is confirmed that is not worse than the rest. Between 0 and 0.5.
    share : float
        Of the rows that are searched; the others are held out. Between 0.1 and 0.5.
    most : int
        Slices tested per method, at least 1.
    run : int
        Which look at the same held-out rows this is, at least 1: later looks are stricter.
    delta : float, optional
        The margin by which a slice must be worse. Default: half the error rate of the search rows, at most 0.05.
    tolerance : float, optional
        The loss above which an outcome is bad, where there are no errors. Default: the 0.9 quantile of the losses of
        the search rows.

    Examples
    --------
    >>> import errata
    >>> errata.Settings(alpha=0.1).level
    0.1
    >>> errata.Settings(alpha=0.1, run=2).level  # a second look at the same rows
    0.05
    """

    alpha: float = 0.05
    share: float = 0.5
    most: int = 20
    run: int = 1
    delta: float | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not _is_setting(name, value):
                raise InputError(f"`{name}` must be a number; got {value!r}")
        if not 0 < self.alpha < 0.5:
            raise InputError(f"`alpha` must be between 0 and 0.5; got {self.alpha}")
        if not 0.1 <= self.share <= 0.5:
            raise InputError(f"`share` of rows to search must be between 0.1 and 0.5; got {self.share}")
        if self.delta is not None and not 0 <= self.delta < 1:
            raise InputError(f"`delta` must be at least 0 and below 1; got {self.delta}")
        if self.tolerance is not None and not np.isfinite(self.tolerance):
            raise InputError(f"`tolerance` must be a finite loss; got {self.tolerance}")
        if self.most < 1 or self.run < 1:
            raise InputError(f"`most` and `run` must be at least 1; got {self.most} and {self.run}")

    @property
    def level(self) -> float:
        """Alpha for this look: run r of any number spends alpha / (r (r - 1)), 2 alpha in all."""
        if self.run == 1:
            return self.alpha
        return self.alpha / (self.run * (self.run - 1))


def _is_setting(name: str, value: Any) -> bool:
    """Whether a value may be that of a setting, as far as its type tells: those of a saved audit may be anything."""
    if value is None:
        return name in ("delta", "tolerance")
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def high_loss(losses: Array) -> float:
    """The loss above which a row is bad, where there are no errors: the worst tenth lies above it.

    Where more rows than that share the largest loss, as with losses of 0 and 1, these rows are the bad ones.

    Parameters
    ----------
    losses : array
        (n,) of the search rows.
    """
    quantile = float(np.quantile(losses, LOSS_QUANTILE))
    below = losses[losses < losses.max()]
    if quantile >= losses.max() and len(below):
        return float(below.max())
    return quantile


class SplitTask:
    """The rows of one task, split: search rows set the margins, held-out rows decide.

    Parameters
    ----------
    evaluation : Evaluation
        Of one task (see `Evaluation.tasks`).
    discover : array
        (n,) bool: the search rows. The others, `confirm`, are held out.
    settings : Settings
        How strict the confirmation is.
    """

    def __init__(self, evaluation: Evaluation, discover: Array, settings: Settings):
        self.evaluation = evaluation
        self.discover = discover
        self.confirm: Array = ~discover
        self.settings = settings

    @cached_property
    def tolerance(self) -> float:
        """The loss above which an outcome is bad, where there are no errors."""
        losses = self.evaluation.losses
        if losses is None:
            raise InputError("an audit needs losses, or labels with probs or predictions; this evaluation has neither")
        if self.settings.tolerance is not None:
            return self.settings.tolerance
        return high_loss(losses[self.discover])

    @property
    def by_error(self) -> bool:
        """Whether an outcome is an error; else it is a loss above the tolerance."""
        return self.evaluation.errors is not None

    @cached_property
    def outcome(self) -> Array:
        """(n,) 0/1: 1 where a row is bad."""
        return self.outcome_of(self.evaluation)

    def outcome_of(self, rows: Evaluation) -> Array:
        """(n,) 0/1 of any rows: an error, or a loss above the tolerance of this task."""
        if self.by_error:
            rows.need(frozenset({"labels", "predictions"}), "a comparison of errors")
            assert rows.errors is not None
            return fill_rows(lambda wrong: wrong, np.float64, rows.errors)
        tolerance = self.tolerance
        rows.need(frozenset({"losses"}), "a comparison of losses")
        assert rows.losses is not None
        return fill_rows(lambda losses: losses > tolerance, np.float64, rows.losses)

    @property
    def outcome_name(self) -> str:
        """What counts as bad: "error", "loss above 2.31", or "prediction too high by more than 2.31"."""
        words = LOSS_WORDS.get(self.evaluation.metric, "loss above")
        return "error" if self.by_error else f"{words} {self.tolerance:.4g}"

    @property
    def bad_outcomes(self) -> str:
        """The plural, where an outcome is no error: "losses above the tolerance"."""
        words = LOSS_WORDS.get(self.evaluation.metric, "losses above")
        return f"{words.replace('prediction', 'predictions', 1)} the tolerance"

    @cached_property
    def delta(self) -> float:
        """The margin a slice must beat: from search rows only."""
        if self.settings.delta is not None:
            return self.settings.delta
        return min(LARGEST_MARGIN, float(self.outcome[self.discover].mean()) / 2)

    @cached_property
    def references(self) -> tuple[tuple[str, Reference | None], ...]:
        """What a confirmed slice may be beyond; None where that comparison has no meaning here."""
        confidence = confidence_reference(self.evaluation, self.discover, self.outcome)
        return ("class", class_reference(self.evaluation)), ("confidence", confidence)

    @property
    def decided(self) -> bool:
        """Whether any verdict is possible: not where all held-out rows have one outcome."""
        return 0 < float(self.outcome[self.confirm].mean()) < 1

    def overall(self) -> Overall:
        """The numbers of all rows, and of all held-out rows."""
        n = int(self.confirm.sum())
        bad = float(self.outcome[self.confirm].sum())
        errors = self.evaluation.errors
        losses = self.evaluation.losses
        error_rate = None if errors is None else float(errors.mean())
        mean_loss = None if losses is None else float(losses.mean(dtype=np.float64))
        return Overall(
            n=len(self.evaluation),
            error_rate=error_rate,
            loss=mean_loss,
            confirm_n=n,
            confirm_errors=round(bad),
            confirm_rate=bad / n,
            confirm_interval=gaps.wilson(bad, n),
            outcome=self.outcome_name,
            confirm_loss=_mean(losses, self.confirm),
        )


@dataclass(frozen=True, eq=False)
class SliceCandidate:
    """A slice before its held-out rows are looked at.

    Attributes
    ----------
    method : str
        The name of the slicer.
    index : int
        The column in its slicer.
    weights : array
        (n,) membership.
    threshold : float
        The least weight of a member.
    rule : mapping
        As the slicer has it.
    side : str
        "hard" where its rows should be worse than the rest, "easy" where they should be better.
    fidelity : float, optional
        Of an approximation: the share of its rows that the method itself would take.
    """

    method: str
    index: int
    weights: Array
    threshold: float
    rule: Mapping[str, Any]
    side: Literal["hard", "easy"] = "hard"
    fidelity: float | None = None

    @property
    def members(self) -> Array:
        """(n,) bool: the hard set."""
        inside: Array = self.weights >= self.threshold
        return inside


@dataclass(frozen=True, eq=False)
class SliceResult:
    """What the held-out rows say of one candidate.

    Attributes
    ----------
    candidate, split
        The slice, and the task it was tested in.
    search, held_out
        Its numbers on the search rows and on the held-out rows.
    verdict : str
        "confirmed", "not confirmed" or "too few to tell".
    beyond, explained_by, not_applicable
        References ("class", "confidence") that the slice is worse than, that explain it, and that have no meaning here.
    reason : str, optional
        "unconfirmable" where the approximation is too poor to say anything.
    """

    candidate: SliceCandidate
    split: SplitTask
    search: SearchMeasure
    held_out: HeldOutMeasure
    verdict: Verdict
    beyond: tuple[str, ...]
    explained_by: tuple[str, ...]
    not_applicable: tuple[str, ...]
    reason: str | None = None

    @property
    def priority(self) -> tuple[bool, bool, float]:
        """Sorts confirmed slices first, those that nothing explains before the others, then by excess errors."""
        return self.verdict != "confirmed", bool(self.explained_by), -self.held_out.excess[1]

    @property
    def judgement(self) -> dict[str, Any]:
        """What it says of a `Slice`, by the names of that: all that a new judgement of known rows changes."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "confirm": self.held_out,
            "beyond": self.beyond,
            "explained_by": self.explained_by,
            "not_applicable": self.not_applicable,
        }


def select_candidates(split: SplitTask, candidates: Sequence[SliceCandidate]) -> list[SliceCandidate]:
    """The candidates of one method that are tested: near-identical ones merged, worse by delta on search rows.

    At most `split.settings.most`, those with the largest excess on search rows first.
    """
    testable = [candidate for candidate in candidates if can_test(split, candidate)]
    if not testable:
        return []
    hard = np.stack([candidate.members[split.discover] for candidate in testable], axis=1)
    outcome = _sided(split.outcome[split.discover], testable[0].side)
    distinct = [testable[j] for j in drop_overlapping(hard, excess_order(hard, outcome))]
    worse = [candidate for candidate in distinct if _measure_search(split, candidate).gap > split.delta]
    return worse[: split.settings.most]


def can_test(split: SplitTask, candidate: SliceCandidate) -> bool:
    """Whether a slice can be tested, by sizes only: rows on both sides, not most of them, enough others beside it."""
    inside = candidate.members
    within = rows_in_scope(split.evaluation, candidate.rule.get("scope"))
    others = (split.confirm & within & ~inside).sum()
    return bool(
        inside[split.discover].any()
        and inside[split.confirm].any()
        and others >= FEWEST_IN_STRATUM
        and inside.mean() <= LARGEST_SHARE
    )


def _sided(outcome: Array, side: str) -> Array:
    """1 for what the slice claims to have more of: bad outcomes, or good ones."""
    return outcome if side == "hard" else 1 - outcome


def _measure_search(split: SplitTask, candidate: SliceCandidate) -> SearchMeasure:
    """The slice on search rows, within its scope; the gap is signed towards the side it claims."""
    within = split.discover & rows_in_scope(split.evaluation, candidate.rule.get("scope"))
    inside = candidate.members & within
    rest = within & ~inside
    rate = float(split.outcome[inside].mean()) if inside.any() else 0.0
    rest_rate = float(split.outcome[rest].mean()) if rest.any() else rate
    sign = 1 if candidate.side == "hard" else -1
    error_rate = rate if split.by_error else None
    return SearchMeasure(
        n=int(inside.sum()),
        rate=rate,
        error_rate=error_rate,
        gap=sign * (rate - rest_rate),
        mean_loss=_mean(split.evaluation.losses, inside),
    )


def confirm_all(family: Sequence[tuple[SplitTask, SliceCandidate]], *, tested: int | None = None) -> list[SliceResult]:
    """Test every slice of the family on held-out rows, at the level that allows for all of them.

    Parameters
    ----------
    family : sequence
        Each slice with its task.
    tested : int, optional
        How many there are with those that are not at hand any more, whose p-values count as 1. Default: these alone.
    """
    tested = len(family) if tested is None else tested
    results = [_confirm(split, candidate, tested) for split, candidate in family]
    p_values = np.ones(tested)
    p_values[: len(results)] = [result.held_out.p_value for result in results]
    q_values = gaps.benjamini_hochberg(p_values)[: len(results)]
    return [
        replace(result, held_out=replace(result.held_out, q_value=float(q)))
        for result, q in zip(results, q_values, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _HeldOutRows:
    """The held-out rows in the scope of a candidate. `outcome` is 1 for what the slice claims to have more of."""

    mask: Array  # (n,) bool: which rows of the evaluation these are
    inside: Array  # (rows,) bool
    outcome: Array  # (rows,) 0/1
    groups: Array | None  # (rows,)

    def compare_with(self, reference: Reference) -> gaps.Counts | None:
        """Counts of the slice against a reference; None where they cannot be compared."""
        return compare(reference, self.inside, self.outcome, self.groups)


def _held_out_rows(split: SplitTask, candidate: SliceCandidate, scope: Mapping[str, Any] | None) -> _HeldOutRows:
    mask = split.confirm & rows_in_scope(split.evaluation, scope)
    groups = None if split.evaluation.groups is None else split.evaluation.groups[mask]
    return _HeldOutRows(mask, candidate.members[mask], _sided(split.outcome[mask], candidate.side), groups)


def count_against_rest(split: SplitTask, candidate: SliceCandidate, scope: Mapping[str, Any] | None) -> gaps.Counts:
    """What the test of a slice counts: its held-out rows, and the others within a scope, or all of them (None)."""
    rows = _held_out_rows(split, candidate, scope)
    counts = rows.compare_with(rest_reference(len(rows.inside)))
    assert counts is not None  # `select_candidates` takes no slice without enough others
    return counts


def _confirm(split: SplitTask, candidate: SliceCandidate, s: int) -> SliceResult:
    """One candidate of s on held-out rows."""
    scope = candidate.rule.get("scope")
    rows = _held_out_rows(split, candidate, scope)
    counts = count_against_rest(split, candidate, scope)
    level = split.settings.level / s
    applicable = {name: reference for name, reference in split.references if reference is not None}
    against = {name: _compare_like(rows, reference, candidate.side) for name, reference in applicable.items()}
    if "label" in (scope or {}) and "confidence" in against:
        against["confidence"] = None  # within a label the prediction is the outcome: nothing is beyond it
    same_class = against.get("class")
    gap_in_class = None if same_class is None else same_class.gap
    held_out = replace(_measure_held_out(split, candidate, rows, counts, level), gap_in_class=gap_in_class)
    if scope:
        held_out = _beside_all(split, candidate, held_out)
    verdict = _verdict(split, held_out, level)
    beyond: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()
    reason = None
    if verdict == "confirmed":
        beyond = tuple(name for name, like in against.items() if _beats(like, split.delta / 5, level))
        explained_by = tuple(name for name in against if name not in beyond)
    elif candidate.fidelity is not None and candidate.fidelity < LEAST_FIDELITY:
        verdict = "not confirmed"
        reason = UNCONFIRMABLE
    return SliceResult(
        candidate=candidate,
        split=split,
        search=_measure_search(split, candidate),
        held_out=held_out,
        verdict=verdict,
        beyond=beyond,
        explained_by=explained_by,
        not_applicable=tuple(name for name, reference in split.references if reference is None),
        reason=reason,
    )


def _beside_all(split: SplitTask, candidate: SliceCandidate, held_out: HeldOutMeasure) -> HeldOutMeasure:
    """A slice within a scope must also be worse than all other rows: one of a class that is easy is no finding."""
    counts = count_against_rest(split, candidate, None)
    sign = 1 if candidate.side == "hard" else -1
    p_value = max(held_out.p_value, gaps.p_gap(counts, split.delta))
    return replace(held_out, p_value=p_value, gap_to_all=sign * counts.gap)


def _verdict(split: SplitTask, held_out: HeldOutMeasure, level: float) -> Verdict:
    if not split.decided:
        return "too few to tell"
    if held_out.p_value <= level:
        return "confirmed"
    return "too few to tell" if held_out.power < gaps.TARGET_POWER else "not confirmed"


def _measure_held_out(
    split: SplitTask, candidate: SliceCandidate, rows: _HeldOutRows, counts: gaps.Counts, level: float
) -> HeldOutMeasure:
    inside = rows.mask & candidate.members
    rest = rows.mask & ~candidate.members
    n = int(inside.sum())
    bad = float(split.outcome[inside].sum())
    error_rate = bad / n if split.by_error else None
    low, high = gaps.interval(counts, level)
    gap = counts.gap
    interval = (low, high)
    rest_rate = counts.b
    if candidate.side == "easy":  # the counts are of good outcomes
        gap = -counts.gap
        interval = (-high, -low)
        rest_rate = 1 - counts.b
    power = gaps.power(counts.m, counts.b, counts.nref, split.delta, level, gaps.target_gap(split.delta))
    rows_needed = None
    if power < gaps.TARGET_POWER:
        rows_needed = gaps.rows_needed(counts.b, counts.nref, split.delta, level, gaps.target_gap(split.delta))
    return HeldOutMeasure(
        n=n,
        errors=round(bad),
        rate=bad / n,
        error_rate=error_rate,
        rest_n=int(rest.sum()),
        rest_rate=rest_rate,
        gap=gap,
        interval=interval,
        gap_in_class=None,
        excess=(n * counts.gap, n * low, n * high),
        p_value=gaps.p_gap(counts, split.delta),
        q_value=1.0,
        power=power,
        visible_gap=gaps.visible_gap(counts.m, counts.b, counts.nref, split.delta, level),
        rows_needed=rows_needed,
        **_measure_losses(split, inside, rest),
        **_judge_mean_loss(split, inside, rest, level),
    )


def _compare_like(rows: _HeldOutRows, reference: Reference, side: str) -> gaps.Counts | None:
    """A slice beside the rows like it; None where too few rows outside the slice are like it."""
    expected = reference.expected[rows.mask]
    if side == "easy" and expected.any():
        expected = 1 - expected
    return rows.compare_with(Reference(reference.name, reference.strata[rows.mask], expected))


def _beats(counts: gaps.Counts | None, margin: float, level: float) -> bool:
    return counts is not None and gaps.p_gap(counts, margin) <= level


def _mean(values: Array | None, rows: Array) -> float | None:
    if values is None or not rows.any():
        return None
    return float(values[rows].mean(dtype=np.float64))


def _measure_losses(split: SplitTask, inside: Array, rest: Array) -> dict[str, Any]:
    """Mean loss and its gap to the rest with a Welch interval: shown, never a verdict."""
    losses = split.evaluation.losses
    mean = _mean(losses, inside)
    rest_mean = _mean(losses, rest)
    if losses is None or mean is None or rest_mean is None:
        return {"mean_loss": mean, "loss_gap": None, "loss_interval": None}
    half = _welch_half_width(losses[inside], losses[rest])
    gap = mean - rest_mean
    interval = None if half is None else (gap - half, gap + half)
    return {"mean_loss": mean, "loss_gap": gap, "loss_interval": interval}


def _judge_mean_loss(split: SplitTask, inside: Array, rest: Array, level: float) -> dict[str, Any]:
    """Whether the mean loss is higher than the rest's, where losses are the outcome; beside the verdict."""
    losses = split.evaluation.losses
    if split.by_error or losses is None or float(losses.min()) < 0:
        return {}
    groups = split.evaluation.groups
    cap = loss_cap(losses[split.discover])
    compared = compare_means(_per_group(losses, groups, inside), _per_group(losses, groups, rest), cap, level)
    if compared is None:
        return {}
    verdict: Verdict = "confirmed" if compared.interval[0] > 0 else "not confirmed"
    return {"loss_cap": compared.cap, "loss_bounds": compared.interval, "loss_verdict": verdict}


def _per_group(losses: Array, groups: Array | None, rows: Array) -> Array:
    """Losses of some rows; of rows that belong together their mean, for only groups are independent."""
    if groups is None:
        return losses[rows]
    _, codes = np.unique(groups[rows], return_inverse=True)
    means: Array = np.bincount(codes, weights=losses[rows]) / np.bincount(codes)
    return means


def _welch_half_width(a: Array, b: Array, level: float = 0.95) -> float | None:
    """Half of the interval of a difference of means with unequal variances; None where there is no variance."""
    if len(a) < 2 or len(b) < 2:
        return None
    u = float(a.var(ddof=1)) / len(a)
    v = float(b.var(ddof=1)) / len(b)
    if u + v == 0:
        return None
    share = u / (u + v)  # squares of shares, since squares of variances may be infinite or zero
    freedom = 1 / (share**2 / (len(a) - 1) + (1 - share) ** 2 / (len(b) - 1))
    return float(special.stdtrit(freedom, (1 + level) / 2) * np.sqrt(u + v))


def describe_sensitivity(split: SplitTask, s: int) -> str:
    """What the test could have missed: the smallest slice, or gap, that s tests on these held-out rows detect."""
    n = int(split.confirm.sum())
    rate = float(split.outcome[split.confirm].mean())
    bad = "errors" if split.by_error else split.bad_outcomes
    if rate == 1:
        return f"All {n:,} held-out rows have {bad}: no slice can be worse than the rest."
    level = split.settings.level / max(s, 1)
    target = gaps.target_gap(split.delta)
    smallest = gaps.rows_needed(rate, n, split.delta, level, target, most=n // 2)
    if smallest is None or smallest > n / 2:
        visible = gaps.visible_gap(n / 4, rate, n * 3 / 4, split.delta, level)
        gap = "no gap at all" if visible is None else f"gaps from {100 * visible:.0f} points"
        return (
            f"The test, with {n:,} held-out rows: a slice of a quarter of them would have shown {gap}, "
            "so slices may have been missed."
        )
    twice = gaps.visible_gap(2 * smallest, rate, n, split.delta, level)
    larger = "" if twice is None else f"; of {2 * smallest:,} rows, {100 * twice:.0f} points"
    return (
        f"The test: the smallest slice that would be confirmed, once found, has {smallest:,} of {n:,} held-out rows "
        f"and {100 * target:.0f} points more {bad} than the rest (80% power){larger}. "
        f"Below {smallest:,} rows, slices may have been missed."
    )
