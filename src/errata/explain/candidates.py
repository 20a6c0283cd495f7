"""Short descriptions that may name a slice, each with the rows that it fits; best first on the rows that choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core import Array, Captions
from ..core.blocks import unit
from .captions import DirectionCaptions
from .classes import Classes
from .context import Context
from .descriptions import Descriptions, unit_products
from .encode import Column
from .text_phrases import Words, phrase_evidence, telling_phrases
from .view import SliceView

LEAST_COVERED = 0.1  # of the members: a name that fits fewer misleads
LEAST_PRECISE = 0.5  # of what it fits are members; less only of a name that fits most members
MOST_MEMBERS = 0.5  # of the members, that such a broad name fits
LEAST_BROAD = 0.25  # of what it fits are members, and
LEAST_LIFT = 1.5  # times as frequent are they there as among all rows of the scope
LEAST_RARE = 0.1  # of what it fits are members: enough of a small slice, if
RARE_LIFT = 3.0  # times as frequent are they there
LEAST_POINTS = 0.2  # above the rest: a name that fits everything says nothing
FEWEST = 5  # members that it fits
COST = 0.03  # of F1, of every condition or phrase beyond the first
MOST_PHRASES = 3
MOST_TRIED = 50  # phrases with the most evidence
FEWEST_WRONG = 3  # errors before "mostly taken for" is said
LEAST_TAKEN = 0.5  # of those errors


@dataclass(frozen=True, eq=False)
class NameCandidate:
    """A description, where it comes from and the rows it fits."""

    text: str
    source: str
    matches: Array  # (n,) bool
    parts: int = 1  # conditions or words


@dataclass(frozen=True)
class Fit:
    """How well a description fits a slice on some rows."""

    both: int  # members that it fits
    covers: float  # of the members, those it fits
    precise: float  # of what it fits, those that are members
    above: float  # how much more of the members than of the rest it fits
    base: float  # the share of members among all rows of the scope

    @property
    def passes(self) -> bool:
        """Whether most of what it fits are members, or it fits most members and tells them from the rest."""
        if self.precise >= LEAST_PRECISE:
            return self.covers >= LEAST_COVERED
        broad = self.precise >= max(LEAST_BROAD, LEAST_LIFT * self.base)
        rare = self.precise >= max(LEAST_RARE, RARE_LIFT * self.base)
        return self.covers >= MOST_MEMBERS and self.above >= LEAST_POINTS and (broad or rare)

    @property
    def f1(self) -> float:
        """The harmonic mean of both shares."""
        total = self.covers + self.precise
        return 2 * self.covers * self.precise / total if total else 0.0


def fit(view: SliceView, matches: Array, rows: Array) -> Fit:
    """How `matches` ((n,) bool) fits the slice, within its scope, on some rows ((n,) bool)."""
    members = view.inside & rows
    rest = view.rest & rows
    both = int(np.count_nonzero(members & matches))
    elsewhere = int(np.count_nonzero(rest & matches))
    n = int(np.count_nonzero(members))
    rest_n = int(np.count_nonzero(rest))
    covers = both / max(n, 1)
    return Fit(
        both=both,
        covers=covers,
        precise=both / max(both + elsewhere, 1),
        above=covers - elsewhere / max(rest_n, 1),
        base=n / max(n + rest_n, 1),
    )


def ranked(view: SliceView, options: Sequence[NameCandidate]) -> list[NameCandidate]:
    """The candidates that fit on the rows that choose, best first; of equal ones the earlier."""
    scored = []
    for candidate in _distinct(options):
        found = fit(view, candidate.matches, view.chosen)
        if found.passes and found.both >= FEWEST and (found.above >= LEAST_POINTS or candidate.source == "scope"):
            scored.append((round(found.f1 - COST * (candidate.parts - 1), 9), candidate))
    return [candidate for _, candidate in sorted(scored, key=lambda pair: -pair[0])]


def _distinct(options: Sequence[NameCandidate]) -> list[NameCandidate]:
    """Of candidates that fit the same rows the first: "predicted old" and "prediction = old" are one description."""
    by_rows: dict[bytes, NameCandidate] = {}
    for candidate in options:
        by_rows.setdefault(np.packbits(candidate.matches).tobytes(), candidate)
    return list(by_rows.values())


def holds_up(view: SliceView, candidate: NameCandidate) -> bool:
    """Whether the held-out rows bear a candidate out."""
    return fit(view, candidate.matches, view.measured).passes


def class_candidates(view: SliceView, context: Context) -> list[NameCandidate]:
    """The label and the prediction that the slice differs in most; none of a slice within one, which says as much."""
    classes = view.explanation(Classes)
    if classes is None or view.in_class:
        return []
    columns = context.class_columns[view.slice.task]
    names = []
    if classes.labels is not None and classes.labels.rows:
        value = classes.labels.rows[0].value
        matches = columns["labels"].holds(value)
        text = class_words("label", value) + taken_for(view, columns.get("predictions"), matches)
        names.append(NameCandidate(text, "labels", matches))
    if classes.predictions is not None and classes.predictions.rows:
        value = classes.predictions.rows[0].value
        names.append(NameCandidate(class_words("predicted", value), "predictions", columns["predictions"].holds(value)))
    return names


def class_words(word: str, value: str | None) -> str:
    """A class by its own name; a mere number needs a word before it, and a prediction always does."""
    named = value is not None and not value.replace(".", "").replace("−", "").replace(" to ", "").isdigit()
    return str(value) if named and word == "label" else f"{word} {value}"


def taken_for(view: SliceView, predictions: Column | None, matches: Array) -> str:
    """ ", mostly taken for 1", where half the errors of the label's members go one way, on both kinds of rows."""
    errors = view.evaluation.errors
    if errors is None or predictions is None:
        return ""
    wrong = view.inside & matches & errors
    counts = np.bincount(predictions.codes[wrong & view.chosen], minlength=len(predictions.values))
    held_out = np.bincount(predictions.codes[wrong & view.measured], minlength=len(predictions.values))
    best = int(counts.argmax())
    for of in (counts, held_out):
        if of.sum() < FEWEST_WRONG or of[best] < LEAST_TAKEN * of.sum():
            return ""
    return f", mostly taken for {predictions.values[best]}"


def confidence_candidates(view: SliceView, context: Context) -> list[NameCandidate]:
    """How sure the model is, alone and within the prediction that the slice differs in most.

    It says where the model is unsure, not what the rows are: only a slice that nothing else describes is named by it.
    """
    evaluation = view.evaluation
    if evaluation.task != "classification" or evaluation.probs is None:
        return []
    confidence = evaluation.probs.max(axis=1)
    names = [_less_sure(view, confidence, np.ones(len(confidence), dtype=bool), "")]
    classes = view.explanation(Classes)
    if classes is not None and classes.predictions is not None and classes.predictions.rows and not view.in_class:
        value = classes.predictions.rows[0].value
        predicted = context.class_columns[view.slice.task]["predictions"].holds(value)
        names.append(_less_sure(view, confidence, predicted, f"{class_words('predicted', value)}, "))
    return names


def _less_sure(view: SliceView, confidence: Array, within: Array, lead: str) -> NameCandidate:
    """Rows of which the model is less sure than so many per cent, those that give the best F1 where rows are chosen."""
    cut = -_best_cut(view, np.where(within, -confidence, -np.inf))
    percent = int(np.clip(np.floor(100 * cut) + 1, 1, 100))
    matches = within & (confidence < percent / 100)
    return NameCandidate(f"{lead}confidence below {percent}%", "confidence", matches, 1 + bool(lead))


def word_candidates(view: SliceView, context: Context) -> list[NameCandidate]:
    """The word or phrase that fits best, and with it up to two more of which a text has one."""
    words = context.words
    if words is None:
        return []
    tried = telling_phrases(view, words, phrase_evidence(view, words), MOST_TRIED)
    chosen: list[int] = []
    matches = np.zeros(len(view.inside), dtype=bool)
    candidates = []
    for parts in range(1, MOST_PHRASES + 1):
        best = _best_phrase(view, words, matches, [j for j in tried if j not in chosen])
        if best is None:
            break
        chosen.append(best)
        matches = matches | words.have(best)
        text = contains_words([words.phrases[j] for j in chosen])
        candidates.append(NameCandidate(text, "tokens", matches, parts))
    return candidates


def _best_phrase(view: SliceView, words: Words, matches: Array, tried: Sequence[int]) -> int | None:
    """The phrase that adds most to the F1 of what those before it fit, more than it costs; None where none does."""
    members = view.inside & view.chosen
    scope = members | (view.rest & view.chosen)
    rows = np.flatnonzero(scope & ~matches)
    if not tried or not len(rows):
        return None
    new = words.present(rows, tried)
    both = np.count_nonzero(members & matches) + new[members[rows]].sum(axis=0)
    fitted = np.count_nonzero(scope & matches) + new.sum(axis=0)
    f1 = 2 * both / (np.count_nonzero(members) + fitted)
    best = int(f1.argmax())
    before = fit(view, matches, view.chosen).f1 if matches.any() else -1.0
    return tried[best] if f1[best] > before + COST else None


def contains_words(phrases: Sequence[str]) -> str:
    """A condition on the texts of the rows, in the grammar of hypotheses."""
    return "text contains " + " or ".join(f"“{phrase}”" for phrase in phrases)


def text_candidates(view: SliceView, context: Context) -> list[NameCandidate]:
    """Rows near to one of the captions or texts that describe the slice; how near, the rows that choose decide."""
    captions = context.texts
    texts = _texts_of(view)
    if captions is None or not texts:
        return []
    index = {text: j for j, text in enumerate(captions.texts)}
    known = [text for text in texts if text in index]
    cosines = _cosines(view, captions, [index[text] for text in known])
    return [
        NameCandidate(f"near “{text}”", "texts", cosines[:, j] >= _best_cut(view, cosines[:, j]))
        for j, text in enumerate(known)
    ]


def _texts_of(view: SliceView) -> list[str]:
    """Captions by their score, which search rows gave: the order they are shown in was measured on held-out rows."""
    captions = view.explanation(DirectionCaptions)
    descriptions = view.explanation(Descriptions)
    texts = []
    if captions is not None:
        texts += [row.text for row in sorted(captions.hard, key=lambda row: row.score)]
    if descriptions is not None:
        texts += [row.text for row in descriptions.rows if row.score > 0]
    return list(dict.fromkeys(texts))


def _cosines(view: SliceView, captions: Captions, index: list[int]) -> Array:
    """(n, texts) between rows and texts."""
    embeddings = view.evaluation.representations[captions.representation]
    return unit_products(embeddings, unit(np.asarray(captions.embeddings, dtype=np.float64)[index]))


def _best_cut(view: SliceView, cosines: Array) -> float:
    """The least cosine of the rows that fit, which gives the best F1 on the rows that choose."""
    rows = np.flatnonzero((view.inside | view.rest) & view.chosen)
    order = rows[np.argsort(-cosines[rows], kind="stable")]
    both = np.cumsum(view.inside[order])
    f1 = 2 * both / (np.arange(1, len(order) + 1) + max(int(both[-1]), 1))
    return float(cosines[order[int(f1.argmax())]])
