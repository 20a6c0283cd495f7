"""Regions of generated pictures, served: sheets and single samples to label, and what a correction changed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Protocol

from fastapi import Body, FastAPI, HTTPException
from fastapi.responses import HTMLResponse, Response

from ..app.base_app import new_app
from ..app.guard import LOOPBACK, Guard
from ..app.served_audit import parse_entry
from ..people.entries import Annotation
from ..people.records import Records
from ..report.sheets import png
from . import pages as pages
from .pages import RegionRun

WHOLE = "all"  # the item that stands for all samples of a region


class Load(Protocol):
    """A run, with what people have said by now: all of their answers are counted for it."""

    def __call__(self) -> RegionRun: ...

    def stored(self) -> RegionRun:
        """As the folder has it: enough for a picture, and to save an answer."""
        ...


@dataclass(frozen=True, eq=False)
class ServedRun:
    load: Load
    records: Records

    def known(self, id: str, judged: bool = False) -> RegionRun:
        run = self.load.stored()
        if id not in run.names:
            raise HTTPException(404, f"There is no region {id!r}.")
        return self.load() if judged else run


def create_app(
    load: Load,
    records: Records,
    *,
    hosts: tuple[str, ...] | None = LOOPBACK,
    token: str | None = None,
) -> Guard:
    """An ASGI app of one run."""
    served = ServedRun(load, records)
    app = new_app(
        lambda words: pages.page(load.stored(), "problem", words=words),
        records,
        {script.name: script for script in pages.SERVED},
    )
    for add in (_pages, _samples, _judging):
        add(app, served)
    return Guard(app, hosts, token)


def _pages(app: FastAPI, served: ServedRun) -> None:
    def page(run: RegionRun, name: str, **asked: Any) -> HTMLResponse:
        return HTMLResponse(pages.page(run, name, **asked), headers={"cache-control": "no-cache"})

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def overview() -> HTMLResponse:
        return page(served.load(), "regions")

    @app.get("/region/{id}", response_class=HTMLResponse, include_in_schema=False)
    def one_region(id: str) -> HTMLResponse:
        return page(served.known(id, judged=True), "region", id=id)

    @app.get("/annotate", response_class=HTMLResponse, include_in_schema=False)
    @app.get("/annotate/{queue}", response_class=HTMLResponse, include_in_schema=False)
    def annotate(queue: str = "") -> HTMLResponse:
        return page(served.known(queue) if queue else served.load.stored(), "annotate", queue=queue)

    @app.get("/result", response_class=HTMLResponse, include_in_schema=False)
    def result() -> HTMLResponse:
        return page(served.load(), "result")


def _samples(app: FastAPI, served: ServedRun) -> None:
    @app.get("/sample/{id}/{number}", include_in_schema=False)
    def sample(id: str, number: int) -> Response:
        run = served.known(id)
        if not 0 <= number < run.pictures.shape[1]:
            raise HTTPException(404, f"Region {id!r} has no sample {number}.")
        return Response(png(run.pictures[run.place(id), number]), media_type="image/png")


def _judging(app: FastAPI, served: ServedRun) -> None:
    @app.get("/api/regions/{id}")
    def said(id: str, person: str) -> dict[str, Any]:
        """What a person said of a whole region, and how many regions they have answered; others' after one's own."""
        run = served.known(id)
        given = served.records.answers(id, task="region")
        mine = next((asdict(one) for one in given if one.person == person), None)
        done = {one.queue for one in served.records.answers(person=person) if one.task in ("region", "class")}
        answers = [(one.person, one.answer if mine else None) for one in given]
        return {"mine": mine, "answers": answers, "done": len(done & set(run.names)), "of": len(run.names)}

    @app.get("/api/queues/{queue}")
    def items(queue: str, person: str, task: str = "class") -> dict[str, Any]:
        """The samples of a region that a person has not named yet; what the classifier says is not told."""
        run = served.known(queue)
        if task != "class":
            raise HTTPException(404, f"There is no task {task!r} of single samples; there is class.")
        done = {entry.item for entry in served.records.answers(queue, person, "class")}
        link = pages.linked(run)
        listed = [{"id": str(i), "picture": link(queue, i), "text": None} for i in range(run.pictures.shape[1])]
        dispute = [asdict(one) for one in served.records.disagreements(queue, "class") if one.item in done]
        return {
            "items": [one for one in listed if one["id"] not in done], "done": len(done), "of": len(listed),
            "agreement": asdict(served.records.agreement(queue, "class")), "settle": dispute,
        }  # fmt: skip

    @app.post("/api/annotations")
    def annotate(given: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        """Save an answer; it is on disk when this returns. The same key twice is one answer."""
        answer = parse_entry(Annotation, given)
        _answerable(served.known(answer.queue), answer)
        return asdict(served.records.annotate(answer))


def _answerable(run: RegionRun, given: Annotation) -> None:
    """About a sample that is shown, or all of them; one of the classes."""
    single = given.task == "class" and given.item in {str(i) for i in range(run.pictures.shape[1])}
    if not single and not (given.task == "region" and given.item == WHOLE):
        raise HTTPException(422, f"Nothing is asked about {given.item!r} of a region.")
    label = given.answer if single else given.answer["label"]
    if label is not None and label not in run.class_names and label not in range(len(run.class_names)):
        raise HTTPException(422, f"There is no class {label!r}.")
