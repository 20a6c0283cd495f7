"""Barlow's questionnaire, served. What it asks, and what an answer may be, is handed in: this room knows no methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fastapi import FastAPI, HTTPException

from ..core import InputError
from ..people.entries import Annotation, Task
from ..report import site
from .serving import Served, known_slice

TASK: Task = "questionnaire"


@dataclass(frozen=True)
class Questionnaire:
    """form: the limits and choices that the page shows. check: an answer with its `about` and `person` -> the same as
    it is kept; an InputError where it is none."""

    form: Mapping[str, Any]
    check: Callable[[Mapping[str, Any]], Mapping[str, Any]]

    def checked(self, given: Annotation) -> Annotation:
        if given.task != TASK:
            return given
        named = {"about": given.item, "person": given.person}
        whole = self.check({**given.answer, **named})
        answer = {name: value for name, value in whole.items() if name not in named}
        if not any(answer.values()):
            raise InputError("this answer says nothing; fill in at least one question, or skip it")
        return replace(given, answer=answer)


def answerable(served: Served, given: Annotation) -> Annotation:
    """About something that the page shows."""
    if served.questionnaire is None:
        raise HTTPException(422, "This server asks no questionnaire.")
    known_slice(served.audit, given.queue)
    if given.item not in site.question_items(served.audit, given.queue):
        raise HTTPException(404, f"Nothing is asked about {given.item!r}.")
    return served.questionnaire.checked(given)


def add(app: FastAPI, served: Served) -> None:
    @app.get("/api/questionnaire/{queue}")
    def said(queue: str, person: str) -> dict[str, Any]:
        """What a person said of a slice's features; of these, also what others said, who are not to sway anybody."""
        known_slice(served.audit, queue)
        given = served.records.answers(queue, task=TASK)
        done = {entry.item: entry.answer for entry in given if entry.person == person}
        others: dict[str, list[dict[str, Any]]] = {item: [] for item in done}
        for entry in given:
            if entry.item in done and entry.person != person:
                others[entry.item].append({"person": entry.person, "answer": entry.answer})
        return {"done": done, "others": others}
