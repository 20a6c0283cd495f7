"""The pages of an audit, served: the same as the saved ones, with all the data and the records behind them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Any

import numpy as np
from fastapi import Body, FastAPI, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool

from ..core import Array, Audit, InputError
from ..hypothesis.testing import Search
from ..people.entries import Annotation, Decision, Drawing, Edit
from ..people.exchange import Check
from ..people.records import Records
from ..report import Page, View
from ..report.pages.annotate import class_names, queue_items
from ..report.pages.drawn_slice import overlap
from ..report.pages.questionnaire import TASK
from ..report.row_facts import row_facts
from ..report.script_data import map_members
from ..report.served import render_page, scripts_by_name, served_view
from . import hypothesis_routes, questionnaire_routes, row_routes
from .access import Access
from .audit_rows import AuditRows
from .base_app import new_app
from .guard import Guard, sign_out_address
from .hypothesis_routes import HypothesisTester
from .questionnaire_routes import Questionnaire
from .served_audit import Keep, OtherAudit, RecordsBackend, ServedAudit, parse_entry

Loop = Annotated[list[tuple[float, float]], Body(embed=True, min_length=3, max_length=5000)]
DAY = "private, max-age=86400, immutable"  # of an address that names its audit


def create_app(
    audit: Audit,
    records: Records,
    *,
    access: Access | None = None,
    search: Search | None = None,
    others: tuple[OtherAudit, ...] = (),
    questionnaire: Questionnaire | None = None,
    keep: Keep | None = None,
) -> Guard:
    """An ASGI app of one audit.

    records: where people's answers are saved. access: who may ask. Default: everybody on this machine. search:
    similarities of words to all rows. others: audits to compare with. questionnaire: about what slices look
    like. keep: makes a hypothesis a slice of the saved audit.
    """
    served = ServedAudit(audit, records, AuditRows(audit), search, others, questionnaire, keep)
    tester = HypothesisTester(served)
    view = served_view(audit, RecordsBackend(served, tester), sign_out_address(access))

    def problem(words: str) -> str:
        return render_page(view, view.pages["problem"], {"words": words})

    app = new_app(problem, records, scripts_by_name(view))
    _add_files(app, served)
    _add_map(app, served)
    _add_annotations(app, served, view)
    _add_decisions(app, served)
    row_routes.add_routes(app, served)
    questionnaire_routes.add_routes(app, served)
    hypothesis_routes.add_routes(app, served, tester)
    hypothesis_routes.add_keeping(app, served, tester)
    for page in view.pages.values():
        for path in page.paths:
            _add_page(app, served, view, page, path)
    return Guard(app, access)


def _add_page(app: FastAPI, served: ServedAudit, view: View, page: Page, path: str) -> None:
    @app.get(path, name=page.name, response_class=HTMLResponse, include_in_schema=False)
    def show(request: Request) -> HTMLResponse:
        parameters = {**request.query_params, **request.path_params}
        as_left = replace(view, audit=served.left())
        return HTMLResponse(render_page(as_left, page, parameters), headers={"cache-control": "no-cache"})


def _add_files(app: FastAPI, served: ServedAudit) -> None:
    @app.get("/thumb/{row}", include_in_schema=False)
    async def thumbnail(row: int, px: Annotated[int, Query(ge=1, le=2000)] = 112, v: str = "") -> Response:
        """The image of a row, by its position in the audit. One that is cached needs no thread."""
        image = served.rows.cached(row, px) or await run_in_threadpool(served.rows.thumbnail, row, px)
        if image is None:
            raise HTTPException(404, f"Row {row} has no image.")
        kind = "image/png" if image.startswith(b"\x89PNG") else "image/jpeg"
        caching = DAY if v else "no-cache"
        return Response(image, media_type=kind, headers={"cache-control": caching})

    @app.get("/api/accepted")
    def accepted_slices() -> list[dict[str, Any]]:
        """The slices that people accepted: what gates and fixes start from."""
        return [asdict(standing) for standing in served.records.accepted()]


def _add_map(app: FastAPI, served: ServedAudit) -> None:
    @app.get("/api/map")
    def map_points() -> dict[str, Any]:
        """Positions, outcomes and members of the rows to draw."""
        if served.rows.map is None or served.rows.drawn is None:
            raise HTTPException(404, "This audit has no map.")
        # Positions never change; people may move rows, and merge slices, at any time.
        return {**served.rows.map, "members": map_members(served.left(), served.rows.drawn)}

    @app.post("/api/lasso")
    def count_in_loop(loop: Loop) -> dict[str, Any]:
        """Counts of all rows inside a loop, drawn or not."""
        return served.rows.counts(_in_loop(served, loop))

    @app.get("/api/rows/{row:path}")
    def read_row(row: str) -> dict[str, Any]:
        """One row: what it is and what the model said."""
        return row_facts(served.audit, served.position(row))


def _add_annotations(app: FastAPI, served: ServedAudit, view: View) -> None:
    @app.get("/api/queues/{queue}")
    def read_queue(queue: str, person: str, task: str = "class") -> dict[str, Any]:
        """What a person has left to label of a slice, in an order that is the same for all people."""
        items = queue_items(view, queue)
        done = {entry.item: entry.answer for entry in served.records.answers(queue, person, task)}  # type: ignore[arg-type]  # a wrong one is refused
        agreement = served.records.agreement(queue, task)  # type: ignore[arg-type]  # likewise
        disputes = served.records.disagreements(queue, task)  # type: ignore[arg-type]  # likewise
        left = [item for item in items if item["id"] not in done]
        return {
            "items": left,
            "done": len(items) - len(left),
            "of": len(items),
            "agreement": asdict(agreement),
            # Who has not answered is not to be swayed.
            "settle": [asdict(dispute) for dispute in disputes if dispute.item in done],
        }

    @app.post("/api/annotations")
    def save_annotation(entry: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        """Save an answer; it is on disk when this returns. The same key twice is one answer."""
        annotation = _check_annotation(served, view, parse_entry(Annotation, entry))
        return asdict(served.records.annotate(annotation))


def _add_decisions(app: FastAPI, served: ServedAudit) -> None:
    @app.get("/api/overlap")
    def read_overlap(slice: str, into: str) -> dict[str, Any]:
        """How many rows two slices share, of the audit or drawn: to be looked at before they are merged."""
        if slice == into:
            raise HTTPException(422, "A slice shares all rows with itself; name another.")
        first = served.members(slice)
        second = served.members(into)
        titles = {id: f"{id} {standing.title}" for id, standing in served.records.standings().items()}
        return overlap((titles[slice], first), (titles[into], second))

    @app.post("/api/decisions")
    def save_decision(
        entry: Annotated[dict[str, Any], Body(alias="given")], version: Annotated[int, Body(alias="seen")]
    ) -> dict[str, Any]:
        """Decide on a slice as it was at version `seen`; 409 with both versions where somebody was faster."""
        standing = served.records.decide(parse_entry(Decision, entry), version=version)
        return asdict(standing) | {"title": standing.title}

    @app.post("/api/edits")
    def save_edit(entry: Annotated[dict[str, Any], Body()]) -> dict[str, bool]:
        """Put a row in or out of a slice; all rows of it that people moved."""
        edit = parse_entry(Edit, entry)
        served.position(edit.item)
        return served.records.edit(edit)

    @app.post("/api/drawn")
    def save_drawing(
        loop: Loop, name: Annotated[str, Body(embed=True)], person: Annotated[str, Body(embed=True)]
    ) -> dict[str, Any]:
        """Save what is inside a loop as a slice, marked as drawn by hand."""
        inside = np.flatnonzero(_in_loop(served, loop))
        items = tuple(str(id) for id in served.audit.evaluation.row_ids[inside].tolist())
        return asdict(served.records.draw(Drawing(name=name, items=items, person=person))) | {"items": len(items)}


def _in_loop(served: ServedAudit, loop: list[tuple[float, float]]) -> Array:
    """(n,) bool: the rows inside a loop on the map."""
    if served.rows.map is None:
        raise HTTPException(404, "This audit has no map.")
    points = np.array(loop, dtype=np.float64)
    if not np.isfinite(points).all():
        raise HTTPException(422, "The points of a loop must be finite numbers.")
    return served.rows.in_loop(points)


def _check_annotation(served: ServedAudit, view: View, annotation: Annotation) -> Annotation:
    """An answer about a slice is about one of this audit's rows and classes."""
    if annotation.task == TASK:
        return questionnaire_routes.check_annotation(served, view, annotation)
    if all(slice_.id != annotation.queue for slice_ in served.audit.slices):
        return annotation  # something else that people label
    served.position(annotation.item)
    names = class_names(served.audit)
    answer = annotation.answer
    if annotation.task == "class" and answer is not None and answer not in names and answer not in range(len(names)):
        raise InputError(f"Class {answer!r} does not exist.")
    return annotation


def answer_check(audit: Audit, records: Records, questionnaire: Questionnaire | None) -> Check:
    """What the app asks of an answer before it saves it, for answers that come another way."""
    served = ServedAudit(audit, records, AuditRows(audit), questionnaire=questionnaire)
    view = served_view(audit, RecordsBackend(served, HypothesisTester(served)))
    return lambda annotation: _check_annotation(served, view, annotation)
