"""Confirming slices on rows nobody searched: the procedure, from hard sets to verdicts.

One rule runs through it: nothing that decides which slices are tested, what rows they hold, or at
what margin, looks at the outcome of a confirm row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import stats

from . import gaps
from .audit import Confirmed, Found, Overall, Verdict
from .blocks import Array
from .errors import InputError
from .evaluation import Evaluation
from .membership import excess_order, fold
from .references import FEWEST_IN_STRATUM, Reference, class_reference, compare, confidence_reference, rest_reference

LARGEST_SHARE = 0.5  # a slice of over half the rows is not a slice
LOSS_QUANTILE = 0.9
LARGEST_MARGIN = 0.05
LEAST_FIDELITY = 0.3  # below it, an unconfirmed stand-in says nothing of the slice it stands for


@dataclass(frozen=True)
class Settings:
    """How strict the confirmation is."""

    alpha: float = 0.05
    share: float = 0.5  # of rows that are searched
    most: int = 5  # slices tested per method
    run: int = 1  # this look at the same confirm rows: later looks are stricter
    delta: float | None = None  # margin; by default min(.05, half the discover error rate)
    tolerance: float | None = None  # loss above which an outcome is bad, where there are no errors

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 0.5:
            raise InputError(f"`alpha` must lie between 0 and .5; got {self.alpha}")
        if not 0.1 <= self.share <= 0.5:
            raise InputError(f"`share` of rows to search must lie in [.1, .5]; got {self.share}")
        if self.delta is not None and not 0 <= self.delta < 1:
            raise InputError(f"`delta` must lie in [0, 1); got {self.delta}")
        if self.tolerance is not None and not np.isfinite(self.tolerance):
            raise InputError(f"`tolerance` must be a finite loss; got {self.tolerance}")
        if self.most < 1 or self.run < 1:
            raise InputError(f"`most` and `run` must be at least 1; got {self.most} and {self.run}")

    @property
    def level(self) -> float:
        """Alpha for this look: run r of any number spends alpha / (r (r - 1)), 2 alpha in all."""
        return self.alpha if self.run == 1 else self.alpha / (self.run * (self.run - 1))


class Trial:
    """One task's rows with their roles: discover rows set the margins, confirm rows decide."""

    def __init__(self, evaluation: Evaluation, discover: Array, settings: Settings):
        self.evaluation, self.discover, self.settings = evaluation, discover, settings
        self.confirm: Array = ~discover

    @cached_property
    def tolerance(self) -> float:
        """The loss above which an outcome is bad, where there are no errors."""
        losses = self.evaluation.losses
        if losses is None:
            raise InputError("an audit needs losses, or labels with probs or predictions; this evaluation has neither")
        given = self.settings.tolerance
        return float(np.quantile(losses[self.discover], LOSS_QUANTILE)) if given is None else given

    @property
    def by_error(self) -> bool:
        return self.evaluation.errors is not None

    @cached_property
    def outcome(self) -> Array:
        return self.outcome_of(self.evaluation)

    def outcome_of(self, rows: Evaluation) -> Array:
        """(n,) 0/1 of any rows: an error, or a loss above the tolerance of this trial's."""
        if self.by_error:
            rows.need(frozenset({"labels", "predictions"}), "a comparison of errors")
            assert rows.errors is not None
            return rows.errors.astype(np.float64)
        tolerance = self.tolerance
        rows.need(frozenset({"losses"}), "a comparison of losses")
        assert rows.losses is not None
        return (rows.losses > tolerance).astype(np.float64)

    @property
    def outcome_name(self) -> str:
        return "error" if self.by_error else f"loss above {self.tolerance:.4g}"

    @cached_property
    def delta(self) -> float:
        """The margin a slice must beat: from discover rows only."""
        rate = float(self.outcome[self.discover].mean())
        return min(LARGEST_MARGIN, rate / 2) if self.settings.delta is None else self.settings.delta

    @cached_property
    def references(self) -> tuple[tuple[str, Reference | None], ...]:
        """What a confirmed slice may be beyond; None where that comparison has no meaning here."""
        confidence = confidence_reference(self.evaluation, self.discover, self.outcome)
        return ("class", class_reference(self.evaluation)), ("confidence", confidence)

    @property
    def decided(self) -> bool:
        """Whether any verdict is possible: not where all confirm rows have one outcome."""
        return 0 < float(self.outcome[self.confirm].mean()) < 1

    def overall(self) -> Overall:
        errors, losses = self.evaluation.errors, self.evaluation.losses
        wrong, n = float(self.outcome[self.confirm].sum()), int(self.confirm.sum())
        return Overall(
            n=len(self.evaluation),
            error_rate=None if errors is None else float(errors.mean()),
            loss=None if losses is None else float(losses.mean(dtype=np.float64)),
            confirm_n=n,
            confirm_errors=round(wrong),
            confirm_rate=wrong / n,
            confirm_interval=gaps.wilson(wrong, n),
            outcome=self.outcome_name,
        )


@dataclass(frozen=True, eq=False)
class Candidate:
    """A slice before its confirm rows are looked at."""

    method: str
    index: int  # the column in its slicer
    weights: Array  # (n,)
    threshold: float
    rule: Mapping[str, Any]
    side: Literal["hard", "easy"] = "hard"
    fidelity: float | None = None

    @property
    def inside(self) -> Array:
        hard: Array = self.weights >= self.threshold
        return hard


@dataclass(frozen=True, eq=False)
class Result:
    """What the confirm rows say of one candidate."""

    candidate: Candidate
    trial: Trial
    found: Found
    confirmed: Confirmed
    verdict: Verdict
    beyond: tuple[str, ...]
    explained_by: tuple[str, ...]
    not_applicable: tuple[str, ...]
    reason: str | None = None

    @property
    def priority(self) -> tuple[bool, bool, float]:
        """Sorts confirmed slices first, those that nothing explains before the others, then by excess."""
        return self.verdict != "confirmed", bool(self.explained_by), -self.confirmed.excess[1]


def scope_mask(evaluation: Evaluation, scope: Mapping[str, Any] | None) -> Array:
    """(n,) bool: the rows a slice's rule speaks about, and is compared within."""
    mask = np.ones(len(evaluation), dtype=bool)
    for key, value in (scope or {}).items():
        columns = {"label": evaluation.labels, "prediction": evaluation.predictions}
        column = columns.get(key, evaluation.metadata.get(key))
        if column is None:
            raise InputError(f"a slice is limited to {key} {value!r}, which this evaluation does not have; add it")
        mask &= column == value
    return mask


def select(trial: Trial, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of one method that will be tested: folded, worse by delta while searching, at most five."""
    fit = [c for c in candidates if _testable(trial, c)]
    if not fit:
        return []
    hard = np.stack([c.inside[trial.discover] for c in fit], axis=1)
    outcome = _sided(trial.outcome[trial.discover], fit[0].side)
    kept = fold(hard, excess_order(hard, outcome))
    return [fit[j] for j in kept if _found(trial, fit[j]).gap > trial.delta][: trial.settings.most]


def _testable(trial: Trial, candidate: Candidate) -> bool:
    """Sizes only: rows on both sides, not most of them, and enough others to be compared with."""
    inside, within = candidate.inside, scope_mask(trial.evaluation, candidate.rule.get("scope"))
    searched, held_out = inside[trial.discover].sum(), inside[trial.confirm].sum()
    others = (trial.confirm & within & ~inside).sum()
    return bool(searched > 0 and held_out > 0 and others >= FEWEST_IN_STRATUM and inside.mean() <= LARGEST_SHARE)


def _sided(outcome: Array, side: str) -> Array:
    return outcome if side == "hard" else 1 - outcome


def _found(trial: Trial, candidate: Candidate) -> Found:
    """The slice on discover rows, within its scope; the gap is signed towards the side it claims."""
    within = trial.discover & scope_mask(trial.evaluation, candidate.rule.get("scope"))
    inside = candidate.inside & within
    rest = within & ~inside
    rate = float(trial.outcome[inside].mean()) if inside.any() else 0.0
    rest_rate = float(trial.outcome[rest].mean()) if rest.any() else rate
    sign = 1 if candidate.side == "hard" else -1
    return Found(
        n=int(inside.sum()),
        rate=rate,
        error_rate=rate if trial.by_error else None,
        gap=sign * (rate - rest_rate),
        mean_loss=_mean(trial.evaluation.losses, inside),
    )


def test_all(family: Sequence[tuple[Trial, Candidate]]) -> list[Result]:
    """Test every slice of the family at the level that allows for all of them."""
    measured = [_measure(trial, candidate, len(family)) for trial, candidate in family]
    q_values = gaps.benjamini_hochberg(np.array([r.confirmed.p_value for r in measured]))
    return [
        replace(result, confirmed=replace(result.confirmed, q_value=float(q)))
        for result, q in zip(measured, q_values, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Look:
    """One candidate on the confirm rows of its scope. `outcome` is 1 for what the slice claims to have more of."""

    rows: Array  # (n,) bool
    inside: Array  # (rows,) bool
    outcome: Array  # (rows,) 0/1
    groups: Array | None  # (rows,)

    def against(self, reference: Reference) -> gaps.Counts | None:
        return compare(reference, self.inside, self.outcome, self.groups)


def _look(trial: Trial, candidate: Candidate) -> _Look:
    rows = trial.confirm & scope_mask(trial.evaluation, candidate.rule.get("scope"))
    groups = None if trial.evaluation.groups is None else trial.evaluation.groups[rows]
    return _Look(rows, candidate.inside[rows], _sided(trial.outcome[rows], candidate.side), groups)


def _measure(trial: Trial, candidate: Candidate, s: int) -> Result:
    look = _look(trial, candidate)
    counts = look.against(rest_reference(len(look.inside)))
    assert counts is not None  # `select` takes no slice without enough others
    level = trial.settings.level / s
    confirmed = _confirmed(trial, candidate, look, counts, level)
    verdict = _verdict(trial, confirmed, level)
    against = {name: _against(reference, look, candidate.side) for name, reference in trial.references}
    if verdict == "confirmed":
        beyond, explained_by = _beyond(against, trial.delta / 5, level)
    else:
        beyond, explained_by = (), ()
    unconfirmable = verdict != "confirmed" and candidate.fidelity is not None and candidate.fidelity < LEAST_FIDELITY
    in_class = against["class"]
    same_class = in_class.counts if in_class else None
    return Result(
        candidate,
        trial,
        _found(trial, candidate),
        replace(confirmed, gap_in_class=same_class.gap if same_class else None),
        "not confirmed" if unconfirmable else verdict,
        beyond,
        explained_by,
        tuple(name for name, other in against.items() if other is None),
        "unconfirmable" if unconfirmable else None,
    )


def _verdict(trial: Trial, confirmed: Confirmed, level: float) -> Verdict:
    if not trial.decided:
        return "too few to tell"
    if confirmed.p_value <= level:
        return "confirmed"
    return "too few to tell" if confirmed.power < gaps.TARGET_POWER else "not confirmed"


def _confirmed(trial: Trial, candidate: Candidate, look: _Look, counts: gaps.Counts, level: float) -> Confirmed:
    inside, rest = look.rows & candidate.inside, look.rows & ~candidate.inside
    sign = 1.0 if candidate.side == "hard" else -1.0
    n, wrong = int(inside.sum()), float(trial.outcome[inside].sum())
    low, high = gaps.interval(counts, level)
    shape = (counts.m, counts.b, counts.nref, trial.delta, level)
    target = gaps.target_gap(trial.delta)
    sees = gaps.power(*shape, target)
    return Confirmed(
        n=n,
        errors=round(wrong),
        rate=wrong / n,
        error_rate=wrong / n if trial.by_error else None,
        rest_n=int(rest.sum()),
        rest_rate=counts.b if sign > 0 else 1 - counts.b,
        gap=sign * counts.gap,
        interval=(low, high) if sign > 0 else (-high, -low),
        gap_in_class=None,
        excess=(n * counts.gap, n * low, n * high),
        p_value=gaps.p_gap(counts, trial.delta),
        q_value=1.0,
        power=sees,
        visible_gap=gaps.visible_gap(*shape),
        rows_needed=None if sees >= gaps.TARGET_POWER else gaps.rows_needed(*shape[1:], target),
        **_losses(trial, inside, rest),
    )


@dataclass(frozen=True)
class Against:
    """A slice beside one reference: counts, or None where too few rows outside the slice are like it."""

    counts: gaps.Counts | None


def _against(reference: Reference | None, look: _Look, side: str) -> Against | None:
    """None where the reference has no meaning in this audit."""
    if reference is None:
        return None
    risk = reference.expected[look.rows]
    if side == "easy" and risk.any():
        risk = 1 - risk
    return Against(look.against(Reference(reference.name, reference.strata[look.rows], risk)))


def _beyond(
    against: Mapping[str, Against | None], margin: float, level: float
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The references that a confirmed slice beats, and those that explain it."""
    beats = {
        name: other.counts is not None and gaps.p_gap(other.counts, margin) <= level
        for name, other in against.items()
        if other is not None
    }
    return tuple(n for n, won in beats.items() if won), tuple(n for n, won in beats.items() if not won)


def _mean(values: Array | None, rows: Array) -> float | None:
    return None if values is None or not rows.any() else float(values[rows].mean(dtype=np.float64))


def _losses(trial: Trial, inside: Array, rest: Array) -> dict[str, Any]:
    """Mean loss and its gap to the rest with a Welch interval: shown, never a verdict."""
    losses = trial.evaluation.losses
    mean, rest_mean = _mean(losses, inside), _mean(losses, rest)
    if losses is None or mean is None or rest_mean is None:
        return {"mean_loss": mean, "loss_gap": None, "loss_interval": None}
    half = _welch_half_width(losses[inside], losses[rest])
    gap = mean - rest_mean
    return {"mean_loss": mean, "loss_gap": gap, "loss_interval": None if half is None else (gap - half, gap + half)}


def _welch_half_width(a: Array, b: Array, level: float = 0.95) -> float | None:
    """Half of the interval of a difference of means with unequal variances; None where there is no variance."""
    if len(a) < 2 or len(b) < 2:
        return None
    u, v = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    if u + v == 0:
        return None
    freedom = (u + v) ** 2 / (u**2 / (len(a) - 1) + v**2 / (len(b) - 1))
    return float(stats.t.ppf((1 + level) / 2, freedom) * np.sqrt(u + v))


def silence(trial: Trial, s: int) -> str:
    """What this many rows would have shown: the sentence that gives finding nothing its meaning."""
    n = int(trial.confirm.sum())
    rate = float(trial.outcome[trial.confirm].mean())
    what = "errors" if trial.by_error else "losses above the tolerance"
    if rate == 1:
        return f"All {n:,} confirm rows have {what}: no slice can be worse than the rest."
    b, level, target = rate, trial.settings.level / max(s, 1), gaps.target_gap(trial.delta)
    smallest = gaps.rows_needed(b, n, trial.delta, level, target)
    if smallest is None or smallest > n / 2:
        shown = gaps.visible_gap(n / 4, b, n * 3 / 4, trial.delta, level)
        gap = "no gap at all" if shown is None else f"gaps from {100 * shown:.0f} points"
        return f"With {n:,} confirm rows, a slice of a quarter of them would have shown {gap}: silence says little."
    twice = gaps.visible_gap(2 * smallest, b, n, trial.delta, level)
    more = "" if twice is None else f"; of {2 * smallest:,} rows, {100 * twice:.0f} points"
    return (
        f"The smallest slice that would have been seen: {smallest:,} of {n:,} confirm rows with "
        f"{100 * target:.0f} points more {what} than the rest (80% power){more}. "
        f"Below {smallest:,} rows, silence says little."
    )
