"""A hypothesis, as words or a condition, tested on the held-out rows of an audit.

The test is the audit's own (`confirm.confirm_all`) at the audit's margin and level, the level divided by the number of
hypotheses tested so far. The level then holds for all of them together only if earlier results are adjusted to the
new number (`adjust`): whoever stores the history should do so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from ..core import gaps
from ..core.audit import UNCONFIRMABLE, Audit, Verdict
from ..core.blocks import Array
from ..core.captions import nearest_share
from ..core.columns import format_value
from ..core.confirm import LARGEST_SHARE, Settings, SliceCandidate, SplitTask, confirm_all
from ..core.errors import InputError, unknown
from ..core.evaluation import Evaluation
from ..core.references import compare, effective_rows, rest_reference
from ..core.words import FEWEST_FOR_PERCENT, READS_OUTCOME, WORD
from .columns import nearest_number, nearest_word, quoted_list, read_column
from .grammar import Predicate
from .parsing import ParsedHypothesis, WordQuery, read_hypothesis, text_columns

MAX_IDS = 500  # in JSON
MAX_UNMENTIONED = 3  # hypotheses: up to so many, the sentence does not give their number
SIDE = 0.025  # of a 95% interval

Search = Callable[[str], Array]  # words -> (n,) similarities, larger is nearer


@dataclass(frozen=True)
class HypothesisPart:
    """One predicate or word of a hypothesis that no held-out row matches.

    Attributes
    ----------
    text : str
        As it was written.
    n : int
        Held-out rows that match it alone.
    nearest : str, optional
        The most similar value of the held-out rows, where none matches.
    """

    text: str
    n: int
    nearest: str | None


@dataclass(frozen=True)
class Overlap:
    """Held-out rows that a hypothesis shares with one slice.

    Attributes
    ----------
    slice : str
        The slice's id.
    both : int
        Rows that match and are in the slice.
    members : int
        Rows of the slice.
    """

    slice: str
    both: int
    members: int


@dataclass(frozen=True)
class Evidence:
    """What a result is computed from, whatever the number of hypotheses.

    Attributes
    ----------
    counts : gaps.Counts, optional
        None where there are too few other rows to compare with.
    effective : float
        Matching rows, those of one group counting as fewer.
    level : float
        Of one hypothesis alone.
    decided : bool
        There are rows enough to decide anything.
    """

    counts: gaps.Counts | None
    effective: float
    level: float
    decided: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class HypothesisResult:
    """What the held-out rows say of a hypothesis. All intervals are 95% for all hypotheses together.

    Attributes
    ----------
    text, condition
        As written, and as parsed.
    task : str
        The label, in a multi-label audit.
    hypotheses : int
        Tested so far, with this one.
    outcome : str
        What counts as bad: "error", or "loss above 2.31".
    held_out : int
        Held-out rows.
    n : int
        Held-out rows that match.
    verdict : str
        "confirmed", "not confirmed" or "too few to tell".
    sentence : str
        The result in words.
    ids : array
        (n,) of the matching rows.
    overlap : tuple of Overlap
        One a slice of the audit.
    reason : str, optional
        "unconfirmable" where it reads the outcome.
    errors, rate, interval
        Bad outcomes of matching rows; the Wilson interval is of effective rows, and for drawing.
    rest_n, rest_rate
        Of the other held-out rows.
    gap, gap_interval
        `rate - rest_rate`.
    p_value : float, optional
        Of "worse than the others by no more than `delta`".
    delta, power, rows_needed
        The margin; the power at a gap of practical size; the rows that 80% power would need.
    beyond, explained_by
        References that it is worse than ("class", "confidence"), and those that explain it.
    nearest_share : float, optional
        The share of rows that counts as near to the words, chosen on search rows.
    parts : tuple of HypothesisPart
        Where no row matches.
    evidence : Evidence, optional
        Where some row matches and it does not read the outcome; not in JSON.
    """

    text: str
    condition: ParsedHypothesis
    task: str
    hypotheses: int
    outcome: str
    held_out: int
    n: int
    verdict: Verdict
    sentence: str
    ids: Array
    overlap: tuple[Overlap, ...]
    reason: str | None = None
    errors: int | None = None
    rate: float | None = None
    interval: tuple[float, float] | None = None
    rest_n: int = 0
    rest_rate: float | None = None
    gap: float | None = None
    gap_interval: tuple[float, float] | None = None
    p_value: float | None = None
    delta: float | None = None
    power: float | None = None
    rows_needed: int | None = None
    beyond: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()
    nearest_share: float | None = None
    parts: tuple[HypothesisPart, ...] = ()
    evidence: Evidence | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with at most 500 ids."""
        facts = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "evidence"}
        facts["condition"] = self.condition.to_json()
        facts["ids"] = self.ids[:MAX_IDS].tolist()
        facts["overlap"] = [vars(overlap) for overlap in self.overlap]
        facts["parts"] = [vars(part) for part in self.parts]
        return facts


def run_test(
    audit: Audit,
    hypothesis: str | Array | ParsedHypothesis,
    *,
    hypotheses: int = 1,
    search: Search | None = None,
    task: str = "",
) -> HypothesisResult:
    """Test whether the rows that match a hypothesis are worse than the others, on held-out rows.

    Parameters
    ----------
    audit : Audit
        Its held-out rows decide, at its margin and level.
    hypothesis : str or array
        A condition on columns, or words, parsed or not; or (n,) bool, the rows themselves. How those were chosen is
        not known here: rows that were chosen by looking at held-out errors confirm themselves.
    hypotheses : int
        How many were tested so far, with this one: the level is divided by it.
    search : callable, optional
        Words -> (n,) similarities. With it, words match the rows nearest to them instead of those that contain them.
    task : str
        The label, in a multi-label audit.

    Returns
    -------
    HypothesisResult
        Its verdict, its numbers, and the sentence that says them.

    Examples
    --------
    >>> import errata, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(0, 90, 2000)
    >>> wrong = rng.random(2000) < np.where(age < 9, 0.5, 0.1)
    >>> rows = errata.Evaluation(
    ...     labels=np.zeros(2000, int),
    ...     predictions=wrong.astype(int),
    ...     representations={"x": rng.normal(size=(2000, 2))},
    ...     metadata={"age": age},
    ... )
    >>> audit = errata.audit(rows, methods=["gmm"])
    >>> errata.test(audit, "age < 9").verdict
    'confirmed'
    """
    if hypotheses < 1:
        raise InputError(f"`hypotheses` counts this one too and must be at least 1; got {hypotheses}")
    split = _split(audit, task, hypotheses)
    condition = read_hypothesis(hypothesis, split.evaluation)
    inside, nearest = _matching(condition, split, search)
    rows = inside & split.confirm
    result = HypothesisResult(
        text=condition.text,
        condition=condition,
        task=task,
        hypotheses=hypotheses,
        outcome=split.outcome_name,
        held_out=int(split.confirm.sum()),
        n=int(rows.sum()),
        verdict="too few to tell",
        sentence="",
        ids=split.evaluation.row_ids[rows],
        overlap=tuple(
            Overlap(slice_.id, int((slice_.members & rows).sum()), int((slice_.members & split.confirm).sum()))
            for slice_ in audit.slices
        ),
        nearest_share=nearest,
    )
    if result.n == 0:
        parts = () if nearest is not None else _parts(condition, split)
        sentence = _none_matches(condition.text, parts) + _looked_in(condition, split.evaluation, search, parts)
        return replace(result, parts=parts, sentence=sentence)
    if condition.reads_outcome:
        return replace(result, verdict="not confirmed", reason=UNCONFIRMABLE, sentence=READS_OUTCOME)
    result = replace(result, **_measure(split, inside, hypotheses))
    return replace(result, sentence=_sentence(result))


def _split(audit: Audit, task: str, hypotheses: int) -> SplitTask:
    tasks = dict(audit.evaluation.tasks())
    if task not in tasks:
        raise unknown("task", task, tasks)
    names = ("alpha", "run", "delta", "tolerance")
    settings = Settings(**{name: audit.settings[name] for name in names if name in audit.settings})
    return SplitTask(tasks[task], audit.discover, replace(settings, alpha=settings.level / hypotheses, run=1))


def _matching(condition: ParsedHypothesis, split: SplitTask, search: Search | None) -> tuple[Array, float | None]:
    """(n,) bool, and the share of rows that is near where nearness decides."""
    if search is None or not isinstance(condition.meaning, WordQuery):
        return condition.mask(split.evaluation), None
    similarity = np.asarray(search(condition.text), dtype=np.float64)
    if similarity.shape != (len(split.evaluation),) or not np.isfinite(similarity).all():
        raise InputError(f"`search` must give one finite similarity a row; got shape {similarity.shape}")
    share, cut = nearest_share(similarity[split.discover], split.outcome[split.discover])
    return similarity >= cut, share


def _measure(split: SplitTask, inside: Array, hypotheses: int) -> dict[str, Any]:
    """The numbers of a hypothesis that some held-out row matches."""
    within = inside[split.confirm]
    outcome = split.outcome[split.confirm]
    bad = outcome[within]
    n = int(within.sum())
    rate = float(bad.mean())
    groups = None
    effective: float = n
    if split.evaluation.groups is not None:
        groups = split.evaluation.groups[split.confirm]
        effective = effective_rows(bad, groups[within])
    counts = compare(rest_reference(len(within)), within, outcome, groups)
    facts: dict[str, Any] = {
        "errors": round(float(bad.sum())),
        "rate": rate,
        "interval": _rate_interval(rate, effective, hypotheses),
        "rest_n": len(within) - n,
        "delta": split.delta,
        "evidence": Evidence(counts, effective, split.settings.level * hypotheses, split.decided),
    }
    if counts is None:  # too few others to compare with
        return facts
    (tested,) = confirm_all([(split, SliceCandidate("hypothesis", 0, inside.astype(np.float64), 0.5, {}))])
    return facts | {
        "verdict": tested.verdict,
        "rest_rate": counts.b,
        "gap": counts.gap,
        "gap_interval": gaps.interval(counts, SIDE / hypotheses),
        "p_value": tested.held_out.p_value,
        "power": tested.held_out.power,
        "rows_needed": tested.held_out.rows_needed,
        "beyond": tested.beyond,
        "explained_by": tested.explained_by,
    }


def _rate_interval(rate: float, effective: float, hypotheses: int) -> tuple[float, float]:
    return gaps.wilson(rate * effective, effective, -float(special.ndtri(SIDE / hypotheses)))


def adjust(result: HypothesisResult, hypotheses: int) -> HypothesisResult:
    """The same result as one of another number of hypotheses: what is confirmed alone may not be among ten.

    Whether it goes beyond its class or the model's confidence is not computed again: `beyond` and `explained_by`
    are then empty.

    Parameters
    ----------
    result : HypothesisResult
        As `run_test` returned it.
    hypotheses : int
        How many were tested, with this one.
    """
    evidence = result.evidence
    if evidence is None or result.rate is None or result.delta is None:
        return result
    facts: dict[str, Any] = {
        "hypotheses": hypotheses,
        "interval": _rate_interval(result.rate, evidence.effective, hypotheses),
    }
    if evidence.counts is not None:
        facts |= _adjusted_verdict(evidence, evidence.counts, result.delta, hypotheses)
    adjusted = replace(result, **facts, beyond=(), explained_by=())
    return replace(adjusted, sentence=_sentence(adjusted))


def _adjusted_verdict(evidence: Evidence, counts: gaps.Counts, delta: float, hypotheses: int) -> dict[str, Any]:
    level = evidence.level / hypotheses
    target = gaps.target_gap(delta)
    power = gaps.power(counts.m, counts.b, counts.nref, delta, level, target)
    rows_needed = None
    if power < gaps.TARGET_POWER:
        rows_needed = gaps.rows_needed(counts.b, counts.nref, delta, level, target)
    if not evidence.decided:
        verdict = "too few to tell"
    elif gaps.p_gap(counts, delta) <= level:
        verdict = "confirmed"
    elif power < gaps.TARGET_POWER:
        verdict = "too few to tell"
    else:
        verdict = "not confirmed"
    return {
        "verdict": verdict,
        "gap_interval": gaps.interval(counts, SIDE / hypotheses),
        "power": power,
        "rows_needed": rows_needed,
    }


def _parts(condition: ParsedHypothesis, split: SplitTask) -> tuple[HypothesisPart, ...]:
    """Why nothing matches: what each part matches alone, and the nearest to a part that matches nothing."""
    parts = []
    if isinstance(condition.meaning, WordQuery):
        counts = condition.meaning.match_each(split.evaluation)[split.confirm].sum(axis=0).tolist()
        known = [] if all(counts) else _vocabulary(split.evaluation, split.confirm)
        for word, n in zip(condition.meaning.words, counts, strict=True):
            nearest = nearest_word(word, known) if n == 0 else None
            parts.append(HypothesisPart(word, n, nearest))
        return tuple(parts)
    for predicate in condition.predicates:
        n = int((predicate.match_rows(split.evaluation).yes & split.confirm).sum())
        nearest = _nearest_value(predicate, split) if n == 0 else None
        parts.append(HypothesisPart(predicate.text, n, nearest))
    return tuple(parts)


def _nearest_value(predicate: Predicate, split: SplitTask) -> str | None:
    """The value of the held-out rows nearest to the first of a predicate."""
    known = read_column(split.evaluation, predicate.column).distinct(split.confirm)
    if predicate.op == "!=" or not predicate.values or not known:
        return None
    value = predicate.values[0]
    if isinstance(value, str):
        return nearest_word(value, known)
    number = nearest_number(value, known)
    return None if number is None else format_value(number)


def _vocabulary(evaluation: Evaluation, rows: Array) -> list[str]:
    """The distinct words of some rows ((n,) bool)."""
    if evaluation.media is not None and evaluation.media.kind == "text":
        texts = [evaluation.media.text(int(i)) or "" for i in np.flatnonzero(rows)]
    else:
        texts = [text for column in text_columns(evaluation) for text in column.distinct(rows)]
    return list({word for text in texts for word in re.findall(WORD, text.lower())})


def _none_matches(text: str, parts: tuple[HypothesisPart, ...]) -> str:
    sentence = f"No held-out row matches “{text}”."
    nearest = [part.nearest for part in parts if part.nearest is not None]
    if nearest:
        return f"{sentence} Nearest: {quoted_list(nearest)}."
    if len(parts) < 2:
        return sentence
    alone = ", ".join(f"“{part.text}” matches {part.n:,}" for part in parts)
    return f"{sentence} Alone, {alone}."


def _looked_in(
    condition: ParsedHypothesis, evaluation: Evaluation, search: Search | None, parts: tuple[HypothesisPart, ...]
) -> str:
    """Where words were looked for, where that is not plain: in columns, and never in images."""
    kind = None if evaluation.media is None else evaluation.media.kind
    if search is not None or kind == "text" or not isinstance(condition.meaning, WordQuery):
        return ""
    sentence = f" Words were looked for in {quoted_list([column.name for column in text_columns(evaluation)])}"
    if kind == "image":
        return f"{sentence}; to find them in images takes a text encoder."
    if any(part.nearest is not None for part in parts):
        return ""
    return f"{sentence}."


def _sentence(result: HypothesisResult) -> str:
    """The result in words."""
    errors = result.errors
    assert errors is not None
    assert result.interval is not None
    many = result.n > LARGEST_SHARE * result.held_out
    if many:
        text = f"{result.n:,} of {result.held_out:,} held-out rows match."
    elif result.n == 1:
        text = "1 held-out row matches."
    else:
        text = f"{result.n:,} held-out rows match."
    text += f" {errors:,} {_bad_words(result.outcome, errors)}"
    if result.n >= FEWEST_FOR_PERCENT:
        low, high = (f"{100 * end:.1f}" for end in result.interval)
        text += f": {_format_rate(errors, result.n)} (95% interval {low} to {high})"
    if result.rest_rate is not None:
        rest = _format_rate(result.rest_rate * result.rest_n, result.rest_n)
        text += f", against {rest} of the other held-out rows"
    text += "."
    if result.gap_interval is not None and result.gap_interval[1] < 0:
        text += " They are better than the others, not worse."
    if many:
        text += " Add a word."
    if result.hypotheses > MAX_UNMENTIONED:
        text += f" {result.hypotheses:,} hypotheses tested here; the interval allows for all of them."
    return text


def _format_rate(k: float, n: int) -> str:
    if n < FEWEST_FOR_PERCENT:
        return f"{round(k):,} of {n:,}"
    return f"{100 * k / n:.1f}%"


def _bad_words(outcome: str, errors: int) -> str:
    if outcome == "error":
        return "is wrong" if errors == 1 else "are wrong"
    verb = "has" if errors == 1 else "have"
    return f"{verb} a {outcome}"
