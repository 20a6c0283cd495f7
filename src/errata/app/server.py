"""The pages of an audit, served: the same as the saved ones, with all the data and the records behind them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
from fastapi import Body, FastAPI, HTTPException, Query
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool

from ..core import Array, Audit
from ..people.entries import Annotation, Decision, Drawing, Edit
from ..people.records import Records
from ..report import site
from . import hypotheses as guesses
from . import questionnaire as questions
from .common import new_app
from .guard import LOOPBACK, Guard
from .members import Rows
from .serving import Search, Served, drawn_by_hand, known_row, known_slice, made, members

Loop = Annotated[list[tuple[float, float]], Body(embed=True, min_length=3, max_length=5000)]
DAY = "private, max-age=86400, immutable"  # of an address that names its audit
TASKS = ("class", "member")


def create_app(
    audit: Audit,
    records: Records,
    *,
    hosts: tuple[str, ...] | None = LOOPBACK,
    token: str | None = None,
    search: Search | None = None,
    others: tuple[tuple[str, Audit], ...] = (),
    questionnaire: questions.Questionnaire | None = None,
) -> Guard:
    """An ASGI app of one audit."""
    served = Served(audit, records, Rows(audit), search, others, questionnaire)
    app = new_app(lambda words: site.page(audit, "problem", standings={}, words=words), records)
    judge = guesses.Judge(served)
    for add in (_files, _looking, _judging, _curating, questions.add):
        add(app, served)
    _pages(app, served, judge)
    guesses.add(app, served, judge)
    return Guard(app, hosts, token)


def _pages(app: FastAPI, served: Served, judge: guesses.Judge) -> None:
    def page(name: str, **more: Any) -> HTMLResponse:
        standings = {id: asdict(one) | {"title": one.title} for id, one in served.records.standings().items()}
        text = site.page(served.audit, name, standings=standings, others=served.others, **more)
        return HTMLResponse(text, headers={"cache-control": "no-cache"})

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def overview() -> HTMLResponse:
        return page("overview")

    @app.get("/slice/{id}", response_class=HTMLResponse, include_in_schema=False)
    def one_slice(id: str) -> HTMLResponse:
        if (drawn := drawn_by_hand(served, id)) is not None:
            return page("drawn", drawn_slice=asdict(drawn), inside=members(served, id))
        known_slice(served.audit, id)
        return page("slice", slice_id=id, edits=served.records.edits(id))

    @app.get("/slice/{id}/row/{row:path}", response_class=HTMLResponse, include_in_schema=False)
    def one_row(id: str, row: str) -> HTMLResponse:
        members(served, id)
        return page("row", slice_id=id, row=known_row(served.rows, row))

    @app.get("/hypothesis", response_class=HTMLResponse, include_in_schema=False)
    def hypothesis(q: str = "") -> HTMLResponse:
        return page("hypothesis", asked=q, families=guesses.families(served, judge))

    @app.get("/annotate", response_class=HTMLResponse, include_in_schema=False)
    @app.get("/annotate/{queue}", response_class=HTMLResponse, include_in_schema=False)
    def annotate(queue: str = "", task: str = "class") -> HTMLResponse:
        if queue:
            known_slice(served.audit, queue)
        *first, last = tasks = TASKS if served.questionnaire is None else (*TASKS, questions.TASK)
        if task not in tasks:
            raise HTTPException(404, f"There is no task {task!r}; there are {', '.join(first)} and {last}.")
        if queue and served.questionnaire is not None and task == questions.TASK:
            return page("questionnaire", queue=queue, form=served.questionnaire.form)
        return page("annotate", queue=queue, task=task, questions=served.questionnaire is not None)

    @app.get("/curate", response_class=HTMLResponse, include_in_schema=False)
    def curate() -> HTMLResponse:
        return page("curate", drawn=[asdict(one) for one in served.records.drawn()])

    @app.get("/compare", response_class=HTMLResponse, include_in_schema=False)
    def compare(with_: Annotated[str, Query(alias="with")] = "") -> HTMLResponse:
        if with_ and with_ not in dict(served.others):
            raise HTTPException(404, f"There is no audit {with_!r} to compare with.")
        return page("compare", chosen=with_)


def _files(app: FastAPI, served: Served) -> None:
    @app.get("/thumb/{row}", include_in_schema=False)
    async def thumbnail(row: int, px: Annotated[int, Query(ge=1, le=2000)] = 112, v: str = "") -> Response:
        """A picture of a row, by its place in the audit. One that is known needs no thread."""
        picture = served.rows.known(row, px) or await run_in_threadpool(served.rows.thumbnail, row, px)
        if picture is None:
            raise HTTPException(404, f"Row {row} has no picture.")
        kind = "image/png" if picture.startswith(b"\x89PNG") else "image/jpeg"
        return Response(picture, media_type=kind, headers={"cache-control": DAY if v else "no-cache"})

    @app.get("/api/accepted")
    def accepted() -> list[dict[str, Any]]:
        """The slices that people accepted: what gates and fixes start from."""
        return [asdict(one) for one in served.records.accepted()]


def _looking(app: FastAPI, served: Served) -> None:
    @app.get("/api/map")
    def the_map() -> dict[str, Any]:
        """Places, outcomes and members of the rows to draw."""
        if served.rows.map is None:
            raise HTTPException(404, "No map was drawn for this audit.")
        return served.rows.map

    @app.post("/api/lasso")
    def lasso(loop: Loop) -> dict[str, Any]:
        """Counts of all rows inside a loop, drawn or not."""
        return served.rows.counts(_looped(served, loop))

    @app.get("/api/rows/{row:path}")
    def row(row: str) -> dict[str, Any]:
        """One row: what it is and what the model said."""
        return site.row_facts(served.audit, known_row(served.rows, row))


def _judging(app: FastAPI, served: Served) -> None:
    @app.get("/api/queues/{queue}")
    def items(queue: str, person: str, task: str = "class") -> dict[str, Any]:
        """What is left to label of a slice, in an order of its own for nobody: the same for all people."""
        known_slice(served.audit, queue)
        done = {entry.item: entry.answer for entry in served.records.answers(queue, person, task)}  # type: ignore[arg-type]  # a wrong one is refused
        listed = site.queue_items(served.audit, queue)
        agreed = asdict(served.records.agreement(queue, task))  # type: ignore[arg-type]  # likewise
        open_ones = served.records.to_settle(queue, task)  # type: ignore[arg-type]  # likewise
        dispute = [asdict(one) for one in open_ones if one.item in done]  # who has not answered is not to be swayed
        left = [one for one in listed if one["id"] not in done]
        return {
            "items": left,
            "done": len(listed) - len(left),
            "of": len(listed),
            "agreement": agreed,
            "settle": dispute,
        }

    @app.post("/api/annotations")
    def annotate(given: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        """Save an answer; it is on disk when this returns. The same key twice is one answer."""
        return asdict(served.records.annotate(_answerable(served, made(Annotation, given))))


def _curating(app: FastAPI, served: Served) -> None:
    @app.get("/api/overlap")
    def overlap(slice: str, into: str) -> dict[str, Any]:
        """How many rows two slices share, found or drawn: to be looked at before they are merged."""
        if slice == into:
            raise HTTPException(422, "A slice shares all rows with itself; name another.")
        titles = {id: one.title for id, one in served.records.standings().items()}
        rows = {id: members(served, id) for id in (slice, into)}
        return site.overlap(*((f"{id} {titles[id]}", inside) for id, inside in rows.items()))

    @app.post("/api/decisions")
    def decide(given: Annotated[dict[str, Any], Body()], seen: Annotated[int, Body()]) -> dict[str, Any]:
        """Decide on a slice as it was at version `seen`; 409 with both versions where somebody was faster."""
        standing = served.records.decide(made(Decision, given), seen=seen)
        return asdict(standing) | {"title": standing.title}

    @app.post("/api/edits")
    def edit(given: Annotated[dict[str, Any], Body()]) -> dict[str, bool]:
        """Put a row in or out of a slice; all rows of it that people moved."""
        edited = made(Edit, given)
        known_row(served.rows, edited.item)
        return served.records.edit(edited)

    @app.post("/api/drawn")
    def draw(
        loop: Loop, name: Annotated[str, Body(embed=True)], person: Annotated[str, Body(embed=True)]
    ) -> dict[str, Any]:
        """Keep what is inside a loop as a slice, marked as drawn by hand."""
        inside = np.flatnonzero(_looped(served, loop))
        items = tuple(str(id) for id in served.audit.evaluation.row_ids[inside].tolist())
        return asdict(served.records.draw(Drawing(name=name, items=items, person=person))) | {"items": len(items)}


def _looped(served: Served, loop: list[tuple[float, float]]) -> Array:
    if served.rows.map is None:
        raise HTTPException(404, "No map was drawn for this audit.")
    points = np.array(loop, dtype=np.float64)
    if not np.isfinite(points).all():
        raise HTTPException(422, "A loop is made of finite numbers.")
    return served.rows.in_loop(points)


def _answerable(served: Served, given: Annotation) -> Annotation:
    """An answer about a slice is about one of this audit's rows and classes."""
    if given.task == questions.TASK:
        return questions.answerable(served, given)
    if all(found.id != given.queue for found in served.audit.slices):
        return given  # something else that people label
    known_row(served.rows, given.item)
    names, answer = site.class_names(served.audit), given.answer
    if given.task == "class" and answer is not None and answer not in names and answer not in range(len(names)):
        raise HTTPException(422, f"There is no class {answer!r}.")
    return given
