"""Annotate: what is it really? Rows of a slice to label, one at a time, or a questionnaire about it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ...core import Audit
from ..contract import Page, PageNotFound, Request, View
from ..row_facts import row_facts
from ..static_files import Script
from . import questionnaire

TASKS = ("class", "member")
QUEUE = 60  # rows of a slice that are asked about
SEED = 0


def context(view: View, request: Request) -> dict[str, Any]:
    """The list of slices to label, or one of them with a task."""
    queue = request.get("queue", "")
    form = view.backend.questionnaire()
    tasks = _tasks(view, form is not None)
    task = request.get("task", tasks[0])
    if queue:
        view.slice(queue)
    if task not in tasks:
        raise PageNotFound(f"Task {task!r} does not exist; the tasks are {_in_words(tasks)}.")
    if queue and form is not None and task == questionnaire.TASK:
        return questionnaire.context(view, queue, form)
    queues = [(slice_.id, "", int((slice_.members & ~view.audit.discover).sum())) for slice_ in view.audit.slices]
    following = dict(pairwise(id for id, _, _ in queues))
    title = "Annotate"
    if queue:
        title = f"Annotate: {queue}"  # its name may tell the label, or what the model predicted
    return {
        "title": title,
        "queue": queue,
        "task": task,
        "queues": queues,
        "classes": class_names(view.audit),
        "questions": form is not None,
        "sheets": False,
        "after": following.get(queue),
    }


def _in_words(tasks: tuple[str, ...]) -> str:
    *others, last = tasks
    return f"{', '.join(others)} and {last}" if others else last


def _tasks(view: View, has_questionnaire: bool) -> tuple[str, ...]:
    """What may be asked: of a regression or of losses there is no class to name."""
    tasks = TASKS if class_names(view.audit) else TASKS[1:]
    return (*tasks, questionnaire.TASK) if has_questionnaire else tasks


def queue_items(view: View, slice_id: str) -> list[dict[str, Any]]:
    """Rows of a slice to ask people about, in the same order for everybody; neither label nor prediction is in them.

    A row that is neither an image nor a text is its columns.
    """
    members = np.flatnonzero(view.slice(slice_id).members & ~view.audit.discover)
    chosen = np.random.default_rng(SEED).permutation(members)[:QUEUE]
    facts = [row_facts(view.audit, int(position)) for position in chosen]
    shown: tuple[str, ...] = ("id", "picture", "text", "row")
    if view.audit.evaluation.media is None:
        shown = (*shown, "metadata")
    return [{name: row[name] for name in shown} for row in facts]


def class_names(audit: Audit) -> tuple[str, ...]:
    """What a row may be called; empty where there are no classes."""
    evaluation = audit.evaluation
    if evaluation.class_names or evaluation.task != "classification":
        return evaluation.class_names or ()
    return tuple(map(evaluation.class_name, range(evaluation.class_count)))


PAGE = Page(
    name="annotate",
    template="page_annotate.html",
    context=context,
    paths=("/annotate", "/annotate/{queue}"),
    nav="Annotate",
    scripts=(
        Script("annotate.js", ("person.js", "outbox.js", "annotate.js"), saved=False),
        Script("questions.js", ("person.js", "outbox.js", "questions.js"), saved=False),
    ),
    served_keys=(
        ("digits", "Annotate: the class, as its button says; 0 or n none of the above; i x in, out; j the next slice"),
        ("u s", "Annotate: undo, skip; d the first field of a questionnaire"),
    ),
)
