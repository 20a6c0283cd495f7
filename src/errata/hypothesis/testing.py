"""A guess of the user's, as words or a condition, tested on the rows nobody searched.

The test is the audit's own (`confirm.test_all`) at the audit's margin and level, the level divided by the number of
guesses tested so far. That holds for all of them together only if earlier guesses are judged again with the new
number (`judge_again`): whoever keeps the history should do so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from ..core import gaps
from ..core.audit import Audit, Verdict
from ..core.blocks import Array
from ..core.captions import nearest_share
from ..core.confirm import LARGEST_SHARE, Candidate, Settings, Trial, test_all
from ..core.errors import InputError, unknown
from ..core.evaluation import Evaluation
from ..core.references import compare, effective_rows, rest_reference
from .columns import OUTCOME, OWN, column_names, listed, nearest_number, nearest_word, read_column, shown
from .grammar import WORD, Comparison, Node, Parser, is_condition, tokens

LONGEST = 1000  # characters of a guess
MOST_IDS = 500  # in JSON
FEWEST_FOR_PERCENT = 20
GUESSES_UNSAID = 3  # that many need no word about their number
SIDE = 0.025  # of a 95% interval
UNCONFIRMABLE = "The method reads the outcome of a row, so a high error is by construction."

Search = Callable[[str], Array]  # words -> (n,) similarities, larger is nearer


@dataclass(frozen=True)
class Words:
    """Whole words that must all occur in a row's text; where rows have no text, in its metadata."""

    words: tuple[str, ...]

    def each(self, evaluation: Evaluation) -> Array:
        """(n, words) bool."""
        if evaluation.media is not None and evaluation.media.kind == "text":
            return np.array([self._within(evaluation.media.text(i) or "") for i in range(len(evaluation))])
        columns = [read_column(evaluation, name) for name in column_names(evaluation) if name not in OWN]
        columns = [column for column in columns if column.kind == "text"]
        if not columns:
            raise InputError("No row has text to find words in. Write a condition, such as “column = value”.")
        found = np.zeros((len(evaluation), len(self.words)), dtype=bool)
        for column in columns:
            distinct, place = np.unique(column.values, return_inverse=True)
            found |= np.array([self._within(value) for value in distinct.tolist()])[place.ravel()]
        return found

    def _within(self, text: str) -> list[bool]:
        lower = text.lower()
        if not any(word in lower for word in self.words):  # much quicker than taking a text apart
            return [False] * len(self.words)
        held = set(re.findall(WORD, lower))
        return [word in held for word in self.words]

    def to_json(self) -> dict[str, Any]:
        return {"op": "words", "words": list(self.words)}


@dataclass(frozen=True)
class Condition:
    """What was written, understood."""

    text: str
    meaning: Words | Node

    def mask(self, evaluation: Evaluation) -> Array:
        """(n,) bool: the rows that match."""
        if isinstance(self.meaning, Words):
            return np.asarray(self.meaning.each(evaluation).all(axis=1))
        return self.meaning.ask(evaluation).yes

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return () if isinstance(self.meaning, Words) else self.meaning.leaves()

    @property
    def knows_outcome(self) -> bool:
        """It reads both label and prediction, and so whether a row is wrong."""
        return set(OUTCOME) <= {leaf.column for leaf in self.comparisons}

    def to_json(self) -> dict[str, Any]:
        return {"text": self.text, **self.meaning.to_json()}


def parse(text: str, evaluation: Evaluation) -> Condition:
    """A condition over the columns of an evaluation, or words; one sentence for each mistake."""
    text = text.strip()
    if len(text) > LONGEST:
        raise InputError(f"The guess has {len(text):,} characters; at most {LONGEST:,} are read.")
    found = tokens(text)
    if is_condition(found):
        return Condition(text, Parser(found, evaluation).parse())
    words = tuple(dict.fromkeys(re.findall(WORD, text.lower())))
    if not words:
        raise InputError("Nothing to test. Write words, or a condition, such as “column = value”.")
    return Condition(text, Words(words))


@dataclass(frozen=True)
class Part:
    """One comparison or word of a guess that no unseen row matches."""

    asked: str
    n: int  # unseen rows that match it alone
    nearest: str | None  # what unseen rows have that is most like it, where none matches


@dataclass(frozen=True)
class Overlap:
    """A guess beside one slice, on unseen rows."""

    slice: str  # its id
    both: int
    members: int


@dataclass(frozen=True)
class Evidence:
    """What a guess is judged by, however many there are."""

    counts: gaps.Counts | None  # None: too few others to compare with
    worth: float  # rows, those of one group counting as fewer
    level: float  # of one guess alone
    decided: bool  # there are rows enough to decide anything


@dataclass(frozen=True, eq=False, kw_only=True)
class Guess:
    """What the unseen rows say of a guess. All intervals are 95% for all guesses together."""

    text: str
    condition: Condition
    task: str
    guesses: int  # tested so far, with this one
    outcome: str  # what counts as bad: "error", or "loss above 2.31"
    unseen: int  # rows
    n: int  # of them that match
    verdict: Verdict
    sentence: str
    ids: Array  # (n,) of the matching rows
    overlap: tuple[Overlap, ...]
    reason: str | None = None  # "unconfirmable": it reads the outcome
    errors: int | None = None
    rate: float | None = None
    interval: tuple[float, float] | None = None  # Wilson, of effective rows: for drawing
    rest_n: int = 0
    rest_rate: float | None = None
    gap: float | None = None
    gap_interval: tuple[float, float] | None = None
    p_value: float | None = None  # of "worse than the others by no more than delta"
    delta: float | None = None
    power: float | None = None
    rows_needed: int | None = None
    beyond: tuple[str, ...] = ()
    explained_by: tuple[str, ...] = ()
    near: float | None = None  # the share of rows that counts as near to the words, chosen on discover rows
    parts: tuple[Part, ...] = ()  # where no row matches
    evidence: Evidence | None = None  # where some row matches and it does not read the outcome

    def to_json(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "evidence"}
        plain["condition"] = self.condition.to_json()
        plain["ids"] = self.ids[:MOST_IDS].tolist()
        plain["overlap"] = [vars(other) for other in self.overlap]
        plain["parts"] = [vars(part) for part in self.parts]
        return plain


# ruff takes it for a test of this code, hence the suppressions.
def test(
    audit: Audit,
    text: str,
    *,
    guesses: int = 1,  # noqa: PT028
    search: Search | None = None,  # noqa: PT028
    task: str = "",  # noqa: PT028
) -> Guess:
    """Whether the rows that match are worse than the others, on rows nobody searched.

    guesses: how many were tested so far, with this one. search: similarities of words to all rows; with it, words
    match the rows nearest to them instead of those that have them. task: the label, in a multi-label audit.
    """
    if guesses < 1:
        raise InputError(f"`guesses` counts this one too and is at least 1; got {guesses}")
    trial = _trial(audit, task, guesses)
    condition = parse(text, trial.evaluation)
    inside, near = _matching(condition, trial, search)
    rows = inside & trial.confirm
    plain = Guess(
        text=condition.text,
        condition=condition,
        task=task,
        guesses=guesses,
        outcome=trial.outcome_name,
        unseen=int(trial.confirm.sum()),
        n=int(rows.sum()),
        verdict="too few to tell",
        sentence="",
        ids=trial.evaluation.row_ids[rows],
        overlap=tuple(
            Overlap(found.id, int((found.members & rows).sum()), int((found.members & trial.confirm).sum()))
            for found in audit.slices
        ),
        near=near,
    )
    if plain.n == 0:
        parts = () if near is not None else _parts(condition, trial)
        return replace(plain, parts=parts, sentence=_none_matches(condition.text, parts))
    if condition.knows_outcome:
        return replace(plain, verdict="not confirmed", reason="unconfirmable", sentence=UNCONFIRMABLE)
    measured = replace(plain, **_measure(trial, inside, guesses))
    return replace(measured, sentence=_sentence(measured))


def _trial(audit: Audit, task: str, guesses: int) -> Trial:
    tasks = dict(audit.evaluation.tasks())
    if task not in tasks:
        raise unknown("task", task, tasks)
    kept = {name: audit.settings[name] for name in ("alpha", "run", "delta", "tolerance") if name in audit.settings}
    settings = Settings(**kept)
    return Trial(tasks[task], audit.discover, replace(settings, alpha=settings.level / guesses, run=1))


def _matching(condition: Condition, trial: Trial, search: Search | None) -> tuple[Array, float | None]:
    """(n,) bool, and the share of rows that is near where nearness decides."""
    if search is None or not isinstance(condition.meaning, Words):
        return condition.mask(trial.evaluation), None
    similarity = np.asarray(search(condition.text), dtype=np.float64)
    if similarity.shape != (len(trial.evaluation),) or not np.isfinite(similarity).all():
        raise InputError(f"`search` must give one finite similarity a row; got shape {similarity.shape}")
    share, cut = nearest_share(similarity[trial.discover], trial.outcome[trial.discover])
    return similarity >= cut, share


def _measure(trial: Trial, inside: Array, guesses: int) -> dict[str, Any]:
    """The numbers of a guess that some unseen row matches."""
    within, outcome = inside[trial.confirm], trial.outcome[trial.confirm]
    groups = None if trial.evaluation.groups is None else trial.evaluation.groups[trial.confirm]
    n, bad = int(within.sum()), outcome[within]
    rate, worth = float(bad.mean()), n if groups is None else effective_rows(bad, groups[within])
    z = -float(special.ndtri(SIDE / guesses))
    told: dict[str, Any] = {
        "errors": round(float(bad.sum())),
        "rate": rate,
        "interval": gaps.wilson(rate * worth, worth, z),
        "rest_n": len(within) - n,
        "delta": trial.delta,
    }
    counts = compare(rest_reference(len(within)), within, outcome, groups)
    told["evidence"] = Evidence(counts, worth, trial.settings.level * guesses, trial.decided)
    if counts is None:  # too few others to compare with
        return told
    (result,) = test_all([(trial, Candidate("guess", 0, inside.astype(np.float64), 0.5, {}))])
    return told | {
        "verdict": result.verdict,
        "rest_rate": counts.b,
        "gap": counts.gap,
        "gap_interval": gaps.interval(counts, SIDE / guesses),
        "p_value": result.confirmed.p_value,
        "power": result.confirmed.power,
        "rows_needed": result.confirmed.rows_needed,
        "beyond": result.beyond,
        "explained_by": result.explained_by,
    }


def judge_again(guess: Guess, guesses: int) -> Guess:
    """A guess as one of so many, by what was counted when it was tested: what stood alone may not stand among ten.

    Whether it goes beyond its class or the model's confidence is not judged again, and not said.
    """
    seen = guess.evidence
    if seen is None or guess.rate is None or guess.delta is None:
        return guess
    z = -float(special.ndtri(SIDE / guesses))
    told: dict[str, Any] = {"guesses": guesses, "interval": gaps.wilson(guess.rate * seen.worth, seen.worth, z)}
    if seen.counts is not None:
        told |= _verdict_again(seen, seen.counts, guess.delta, guesses)
    judged = replace(guess, **told, beyond=(), explained_by=())
    return replace(judged, sentence=_sentence(judged))


def _verdict_again(seen: Evidence, counts: gaps.Counts, delta: float, guesses: int) -> dict[str, Any]:
    level, target = seen.level / guesses, gaps.target_gap(delta)
    power = gaps.power(counts.m, counts.b, counts.nref, delta, level, target)
    sees = power >= gaps.TARGET_POWER
    stands = gaps.p_gap(counts, delta) <= level
    verdict = "confirmed" if stands else "not confirmed" if sees else "too few to tell"
    return {
        "verdict": verdict if seen.decided else "too few to tell",
        "gap_interval": gaps.interval(counts, SIDE / guesses),
        "power": power,
        "rows_needed": None if sees else gaps.rows_needed(counts.b, counts.nref, delta, level, target),
    }


def _parts(condition: Condition, trial: Trial) -> tuple[Part, ...]:
    """Why nothing matches: what each part matches alone, and the nearest to a part that matches nothing."""
    unseen = trial.confirm
    if isinstance(condition.meaning, Words):
        each = condition.meaning.each(trial.evaluation)[unseen].sum(axis=0).tolist()
        known = [] if all(each) else _vocabulary(trial.evaluation, unseen)
        pairs = zip(condition.meaning.words, each, strict=True)
        return tuple(Part(word, n, None if n else nearest_word(word, known)) for word, n in pairs)
    found = []
    for leaf in condition.comparisons:
        n = int((leaf.ask(trial.evaluation).yes & unseen).sum())
        found.append(Part(leaf.text, n, None if n else _nearest_value(leaf, trial.evaluation, unseen)))
    return tuple(found)


def _nearest_value(leaf: Comparison, evaluation: Evaluation, unseen: Array) -> str | None:
    column, value = read_column(evaluation, leaf.column), leaf.values[0]
    known = column.distinct(unseen)
    if leaf.op == "!=" or not known:
        return None
    near = nearest_word(value, known) if isinstance(value, str) else nearest_number(value, known)
    return None if near is None else shown(near)


def _vocabulary(evaluation: Evaluation, unseen: Array) -> list[str]:
    if evaluation.media is not None and evaluation.media.kind == "text":
        texts = [evaluation.media.text(int(i)) or "" for i in np.flatnonzero(unseen)]
    else:
        columns = [read_column(evaluation, name) for name in column_names(evaluation) if name not in OWN]
        texts = [text for column in columns if column.kind == "text" for text in column.distinct(unseen)]
    return list({word for text in texts for word in re.findall(WORD, text.lower())})


def _none_matches(text: str, parts: tuple[Part, ...]) -> str:
    said = f"No unseen row matches “{text}”."
    near = [part.nearest for part in parts if part.nearest is not None]
    if near:
        return f"{said} Nearest: {listed(near)}."
    alone = ", ".join(f"“{part.asked}” matches {part.n:,}" for part in parts)
    return f"{said} Alone, {alone}." if len(parts) > 1 else said


def _sentence(guess: Guess) -> str:
    """The words that `ui.md` fixes."""
    n, errors, many = guess.n, guess.errors, guess.n > LARGEST_SHARE * guess.unseen
    assert errors is not None
    assert guess.interval is not None
    verb = "matches" if n == 1 else "match"
    head = f"{n:,} of {guess.unseen:,} unseen rows {verb}." if many else f"{n:,} unseen row{'s'[n == 1 :]} {verb}."
    low, high = (f"{100 * end:.1f}" for end in guess.interval)
    percent = f": {_rate(errors, n)} (95% interval {low} to {high})" if n >= FEWEST_FOR_PERCENT else ""
    rest = None if guess.rest_rate is None else _rate(guess.rest_rate * guess.rest_n, guess.rest_n)
    against = "" if rest is None else f", against {rest} of the other unseen rows"
    tail = " Add a word." if many else ""
    if guess.guesses > GUESSES_UNSAID:
        tail += f" {guess.guesses:,} guesses tested here; the interval allows for all of them."
    return f"{head} {errors:,} {_is_bad(guess.outcome, errors)}{percent}{against}.{tail}"


def _rate(k: float, n: int) -> str:
    return f"{100 * k / n:.1f}%" if n >= FEWEST_FOR_PERCENT else f"{round(k):,} of {n:,}"


def _is_bad(outcome: str, errors: int) -> str:
    if outcome == "error":
        return "is wrong" if errors == 1 else "are wrong"
    return f"{'has' if errors == 1 else 'have'} a {outcome}"
