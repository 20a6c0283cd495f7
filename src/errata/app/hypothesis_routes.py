"""Hypotheses, served: each tested on held-out rows, saved, and adjusted whenever there is one more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from threading import Lock
from typing import Annotated, Any

import numpy as np
from fastapi import Body, FastAPI, HTTPException

from .. import hypothesis
from ..core import InputError
from ..people.curation import TestedHypothesis
from ..people.entries import Hypothesis
from ..report.hypothesis_history import history
from ..report.row_facts import row_facts
from .served_audit import ServedAudit

MAX_ROWS = 12  # rows that match a hypothesis
REMEMBERED = 500  # tested hypotheses in memory: adjusting one is quick, testing it is not


class HypothesisTester:
    """Tests a hypothesis once, and adjusts it to how many there are."""

    def __init__(self, served: ServedAudit) -> None:
        self._served = served
        self._tested: dict[str, hypothesis.HypothesisResult] = {}
        self._lock = Lock()

    def test(self, text: str | hypothesis.ParsedHypothesis, hypotheses: int) -> hypothesis.HypothesisResult:
        """Test on held-out rows, as one of `hypotheses`; of many rows parsing takes as long as testing."""
        result = hypothesis.run_test(self._served.audit, text, hypotheses=hypotheses, search=self._served.search)
        with self._lock:
            if len(self._tested) >= REMEMBERED:
                del self._tested[next(iter(self._tested))]
            self._tested[result.text] = replace(result, ids=result.ids[:0])  # of many rows they are long
        return result

    def adjust(self, text: str, hypotheses: int) -> hypothesis.HypothesisResult:
        """A hypothesis as one of `hypotheses`; tested where it is not remembered."""
        result = self._tested.get(text) or self.test(text, hypotheses)
        return hypothesis.adjust(result, hypotheses)

    def history(self, slice_id: str | None) -> list[dict[str, Any]]:
        """Every different hypothesis about a slice, or about none, oldest first: as it was judged then, and is now."""
        records = _different(self._served.records.hypotheses(slice_id))
        return [self._line(record, position, len(records)) for position, record in enumerate(records, start=1)]

    def families(self) -> list[dict[str, Any]]:
        """Hypotheses about no slice, and about each that has some: those of one family count against each other."""
        titles = {id: standing.title for id, standing in self._served.records.standings().items()}
        families = [{"slice": "", "title": "", "history": self.history(None)}]
        for slice_ in self._served.audit.slices:
            lines = self.history(slice_.id)
            if lines:
                families.append({"slice": slice_.id, "title": titles[slice_.id], "history": lines})
        return families

    def _line(self, record: TestedHypothesis, position: int, hypotheses: int) -> dict[str, Any]:
        line = {**vars(record), "position": position, "hypotheses": hypotheses}
        try:
            now = self.adjust(record.text, hypotheses)
        except InputError:  # columns have gone, or an encoder that words were tested with
            return {**line, "verdict": None, "then": None, "interval": None}
        then = hypothesis.adjust(now, position)
        return {**line, "verdict": now.verdict, "then": then.verdict, "interval": now.interval}


def _different(records: Iterable[TestedHypothesis]) -> list[TestedHypothesis]:
    """By their words: testing the same again is no new chance to be wrong."""
    by_text: dict[str, TestedHypothesis] = {}
    for record in records:
        by_text.setdefault(record.text, record)
    return list(by_text.values())


def add_routes(app: FastAPI, served: ServedAudit, tester: HypothesisTester) -> None:
    """Testing a hypothesis, and the history of all."""

    @app.post("/api/hypotheses")
    def test_hypothesis(
        text: Annotated[str, Body(max_length=2000)],
        person: Annotated[str, Body()] = "not recorded",
        slice: Annotated[str | None, Body()] = None,
    ) -> dict[str, Any]:
        """Test a hypothesis on held-out rows; each is saved and counted."""
        slice = slice or None
        if slice is not None:
            served.check_slice(slice)
        parsed = hypothesis.parse(text, served.audit.evaluation)
        number = len({record.text for record in served.records.hypotheses(slice)} | {parsed.text})
        result = tester.test(parsed, number)
        facts = _facts(served, result)
        facts["can_keep"] = result.verdict == "confirmed" and _can_keep(served, parsed)
        if result.errors is not None:
            counts = {name: facts[name] for name in ("n", "errors", "rest_n", "rest_errors")}
            kind: Any = "words" if isinstance(parsed.meaning, hypothesis.WordQuery) else "condition"
            served.records.add_hypothesis(Hypothesis(text=parsed.text, kind=kind, person=person, slice=slice, **counts))
        return facts

    @app.get("/api/hypotheses")
    def tested_hypotheses(slice: str = "") -> dict[str, Any]:
        """Every hypothesis about a slice, or about none, adjusted to their number."""
        if slice:
            served.check_slice(slice)
        return history(tester.history(slice or None))


def add_keeping(app: FastAPI, served: ServedAudit, tester: HypothesisTester) -> None:
    """Making a hypothesis a slice."""

    @app.post("/api/slices")
    def keep_hypothesis(text: Annotated[str, Body(max_length=2000, embed=True)]) -> dict[str, Any]:
        """Make a hypothesis that is confirmed a slice of the saved audit, counted with all others."""
        parsed = hypothesis.parse(text, served.audit.evaluation)
        if served.keep is None:
            raise HTTPException(409, "This audit was not opened from a folder; nothing can be added to it.")
        if served.audit.evaluation.task == "multilabel":
            cure = "“errata test DIR HYPOTHESIS --task LABEL --keep”"
            raise HTTPException(422, f"With several labels a row, a slice belongs to one of them: {cure} keeps it.")
        if not _can_keep(served, parsed):
            raise HTTPException(422, "Words that an encoder finds are no rule to keep; write a condition.")
        number = len(served.records.hypothesis_texts() | {parsed.text})
        if tester.adjust(parsed.text, number).verdict != "confirmed":
            raise HTTPException(
                422, f"Only what is confirmed can be kept; this is not, as one of {number:,} hypotheses."
            )
        slice_ = served.keep(parsed.text, number)
        return {"id": slice_.id, "name": slice_.name, "verdict": slice_.verdict}


def _can_keep(served: ServedAudit, parsed: hypothesis.ParsedHypothesis) -> bool:
    """Whether a hypothesis can become a slice: there is a folder to save it in, and its text alone tells its rows."""
    by_encoder = served.search is not None and isinstance(parsed.meaning, hypothesis.WordQuery)
    return served.keep is not None and not by_encoder and served.audit.evaluation.task != "multilabel"


def _facts(served: ServedAudit, result: hypothesis.HypothesisResult) -> dict[str, Any]:
    """The result as JSON, with some of the rows that match."""
    facts = result.to_json()
    own = [slice_.id for slice_ in served.audit.slices if slice_.rule.get("condition") == result.text]
    facts["kept"] = next(iter(own), None)
    facts["rest_errors"] = 0
    if result.rest_rate is not None:
        facts["rest_errors"] = round(result.rest_rate * result.rest_n)
    chosen = np.random.default_rng(0).permutation(len(result.ids))[:MAX_ROWS]
    positions = np.flatnonzero(served.rows.mask(str(id) for id in result.ids[chosen]))
    facts["shown"] = [row_facts(served.audit, int(position)) for position in positions]
    return facts
