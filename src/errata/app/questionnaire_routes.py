"""Barlow's questionnaire, served. What it asks, and what an answer may be, is handed in: this room knows no methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fastapi import FastAPI

from ..core import InputError
from ..people.entries import Annotation
from ..report import View
from ..report.contract import PageNotFound
from ..report.pages.questionnaire import TASK, question_items
from .served_audit import ServedAudit


@dataclass(frozen=True)
class Questionnaire:
    """form: the limits and choices that the page shows. check: an answer with its `about` and `person` -> the same as
    it is saved; an InputError where it is none."""

    form: Mapping[str, Any]
    check: Callable[[Mapping[str, Any]], Mapping[str, Any]]

    def checked(self, annotation: Annotation) -> Annotation:
        """The annotation as it is saved; an InputError where it is no answer to the form."""
        if annotation.task != TASK:
            return annotation
        named = {"about": annotation.item, "person": annotation.person}
        whole = self.check({**annotation.answer, **named})
        answer = {name: value for name, value in whole.items() if name not in named}
        if not any(answer.values()):
            raise InputError("this answer is empty; fill in at least one question, or skip it")
        return replace(annotation, answer=answer)


def check_annotation(served: ServedAudit, view: View, annotation: Annotation) -> Annotation:
    """An annotation about something that the page shows, as it is saved."""
    if served.questionnaire is None:
        raise InputError("This server has no questionnaire.")
    items = [item["about"] for item in question_items(view, annotation.queue)]
    if annotation.item not in items:
        raise PageNotFound(f"The questionnaire has no question about {annotation.item!r}.")
    return served.questionnaire.checked(annotation)


def add_routes(app: FastAPI, served: ServedAudit) -> None:
    """What was answered."""

    @app.get("/api/questionnaire/{queue}")
    def questionnaire_answers(queue: str, person: str) -> dict[str, Any]:
        """A person's answers about a slice; others' answers to the same items, shown only after one's own."""
        served.check_slice(queue)
        answers = served.records.answers(queue, task=TASK)
        done = {entry.item: entry.answer for entry in answers if entry.person == person}
        others: dict[str, list[dict[str, Any]]] = {item: [] for item in done}
        for entry in answers:
            if entry.item in done and entry.person != person:
                others[entry.item].append({"person": entry.person, "answer": entry.answer})
        return {"done": done, "others": others}
