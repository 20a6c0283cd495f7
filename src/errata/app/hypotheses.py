"""Hypotheses, served: each tested on held-out rows, saved, and adjusted whenever there is one more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from threading import Lock
from typing import Annotated, Any

import numpy as np
from fastapi import Body, FastAPI

from .. import hypothesis
from ..core import InputError
from ..people.curation import TestedHypothesis
from ..people.entries import Hypothesis
from ..report import site
from .serving import Served, known_row, known_slice

SHOWN = 12  # rows that match a hypothesis
REMEMBERED = 500  # tested hypotheses in memory: adjusting one is quick, testing it is not


class Judge:
    """Tests a hypothesis once, and adjusts it to how many there are."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._tested: dict[str, hypothesis.HypothesisResult] = {}
        self._lock = Lock()

    def test(self, text: str, hypotheses: int) -> hypothesis.HypothesisResult:
        found = hypothesis.run_test(self._served.audit, text, hypotheses=hypotheses, search=self._served.search)
        with self._lock:
            if len(self._tested) >= REMEMBERED:
                del self._tested[next(iter(self._tested))]
            self._tested[found.text] = replace(found, ids=found.ids[:0])  # of many rows they are long
        return found

    def again(self, text: str, hypotheses: int) -> hypothesis.HypothesisResult:
        known = self._tested.get(text) or self.test(text, hypotheses)
        return hypothesis.adjust(known, hypotheses)

    def history(self, slice: str | None) -> list[dict[str, Any]]:
        """Every different hypothesis about a slice, or about none, oldest first: as it was judged then, and is now."""
        kept = _different(self._served.records.hypotheses(slice))
        return [self._line(one, place, len(kept)) for place, one in enumerate(kept, start=1)]

    def _line(self, one: TestedHypothesis, place: int, hypotheses: int) -> dict[str, Any]:
        plain = {**vars(one), "place": place, "hypotheses": hypotheses}
        try:
            now = self.again(one.text, hypotheses)
        except InputError:  # columns have gone, or an encoder that words were tested with
            return {**plain, "verdict": None, "then": None, "interval": None}
        then = hypothesis.adjust(now, place)
        return {**plain, "verdict": now.verdict, "then": then.verdict, "interval": now.interval}


def _different(kept: Iterable[TestedHypothesis]) -> list[TestedHypothesis]:
    """By their words: testing the same again is no new chance to be wrong."""
    found: dict[str, TestedHypothesis] = {}
    for one in kept:
        found.setdefault(one.text, one)
    return list(found.values())


def families(served: Served, judge: Judge) -> list[dict[str, Any]]:
    """Hypotheses about no slice, and at each that has some: those of one family count against each other."""
    titles = {id: one.title for id, one in served.records.standings().items()}
    told = [{"slice": "", "title": "", "history": judge.history(None)}]
    for found in served.audit.slices:
        told.append({"slice": found.id, "title": titles[found.id], "history": judge.history(found.id)})
    return [one for one in told if one["history"] or not one["slice"]]


def add(app: FastAPI, served: Served, judge: Judge) -> None:
    @app.post("/api/guess")
    def guess(
        text: Annotated[str, Body(max_length=2000)],
        person: Annotated[str, Body()] = "somebody",
        slice: Annotated[str | None, Body()] = None,
    ) -> dict[str, Any]:
        """Test a hypothesis on held-out rows; each is saved and counted."""
        slice = slice or None
        if slice is not None:
            known_slice(served.audit, slice)
        parsed = hypothesis.parse(text, served.audit.evaluation)
        number = len({one.text for one in served.records.hypotheses(slice)} | {parsed.text})
        found = judge.test(parsed.text, number)
        told = _told(served, found)
        if found.errors is not None:
            counts = {name: told[name] for name in ("n", "errors", "rest_n", "rest_errors")}
            kind = "words" if isinstance(parsed.meaning, hypothesis.WordQuery) else "condition"
            served.records.add_hypothesis(Hypothesis(text=parsed.text, kind=kind, person=person, slice=slice, **counts))  # type: ignore[arg-type]  # one of two words
        return told

    @app.get("/api/guesses")
    def guesses(slice: str = "") -> dict[str, Any]:
        """Every hypothesis about a slice, or about none, adjusted to their number."""
        if slice:
            known_slice(served.audit, slice)
        return site.guess_history(judge.history(slice or None))


def _told(served: Served, found: hypothesis.HypothesisResult) -> dict[str, Any]:
    told = found.to_json()
    told["rest_errors"] = 0 if found.rest_rate is None else round(found.rest_rate * found.rest_n)
    some = np.random.default_rng(0).permutation(len(found.ids))[:SHOWN]
    rows = [known_row(served.rows, str(found.ids[i])) for i in np.sort(some)]
    told["shown"] = [site.row_facts(served.audit, row) for row in rows]
    return told
