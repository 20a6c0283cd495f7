"""Guesses, served: each tested on rows nobody searched, kept, and judged again whenever there is one more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from threading import Lock
from typing import Annotated, Any

import numpy as np
from fastapi import Body, FastAPI

from ..core import InputError
from ..hypothesis import testing as guessing
from ..people.curation import Tested
from ..people.entries import Guess
from ..report import site
from .serving import Served, known_row, known_slice

SHOWN = 12  # rows that match a guess
REMEMBERED = 500  # tested guesses in memory: judging one again is quick, testing it is not


class Judge:
    """Tests a guess once, and judges it as one of as many as there are."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._tested: dict[str, guessing.Guess] = {}
        self._lock = Lock()

    def test(self, text: str, guesses: int) -> guessing.Guess:
        found = guessing.test(self._served.audit, text, guesses=guesses, search=self._served.search)
        with self._lock:
            if len(self._tested) >= REMEMBERED:
                del self._tested[next(iter(self._tested))]
            self._tested[found.text] = replace(found, ids=found.ids[:0])  # of many rows they are long
        return found

    def again(self, text: str, guesses: int) -> guessing.Guess:
        known = self._tested.get(text) or self.test(text, guesses)
        return guessing.judge_again(known, guesses)

    def history(self, slice: str | None) -> list[dict[str, Any]]:
        """Every different guess about a slice, or about none, oldest first: as it was judged then, and is now."""
        kept = _different(self._served.records.guesses(slice))
        return [self._line(one, place, len(kept)) for place, one in enumerate(kept, start=1)]

    def _line(self, one: Tested, place: int, guesses: int) -> dict[str, Any]:
        plain = {**vars(one), "place": place, "guesses": guesses}
        try:
            now = self.again(one.text, guesses)
        except InputError:  # columns have gone, or an encoder that words were tested with
            return {**plain, "verdict": None, "then": None, "interval": None}
        then = guessing.judge_again(now, place)
        return {**plain, "verdict": now.verdict, "then": then.verdict, "interval": now.interval}


def _different(kept: Iterable[Tested]) -> list[Tested]:
    """By their words: testing the same again is no new chance to be wrong."""
    found: dict[str, Tested] = {}
    for one in kept:
        found.setdefault(one.text, one)
    return list(found.values())


def families(served: Served, judge: Judge) -> list[dict[str, Any]]:
    """Guesses at no slice, and at each that has some: those of one family count against each other."""
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
        """Test a guess on rows nobody searched; each is kept and counted."""
        slice = slice or None
        if slice is not None:
            known_slice(served.audit, slice)
        parsed = guessing.parse(text, served.audit.evaluation)
        number = len({one.text for one in served.records.guesses(slice)} | {parsed.text})
        found = judge.test(parsed.text, number)
        told = _told(served, found)
        if found.errors is not None:
            counts = {name: told[name] for name in ("n", "errors", "rest_n", "rest_errors")}
            kind = "words" if isinstance(parsed.meaning, guessing.Words) else "condition"
            served.records.guess(Guess(text=parsed.text, kind=kind, person=person, slice=slice, **counts))  # type: ignore[arg-type]  # one of two words
        return told

    @app.get("/api/guesses")
    def guesses(slice: str = "") -> dict[str, Any]:
        """Every guess at a slice, or at none, judged again as one of all of them."""
        if slice:
            known_slice(served.audit, slice)
        return site.guess_history(judge.history(slice or None))


def _told(served: Served, found: guessing.Guess) -> dict[str, Any]:
    told = found.to_json()
    told["rest_errors"] = 0 if found.rest_rate is None else round(found.rest_rate * found.rest_n)
    some = np.random.default_rng(0).permutation(len(found.ids))[:SHOWN]
    rows = [known_row(served.rows, str(found.ids[i])) for i in np.sort(some)]
    told["shown"] = [site.row_facts(served.audit, row) for row in rows]
    return told
