"""Regions served: sheets and single samples to label, and what a correction changed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException
from fastapi.responses import HTMLResponse, Response

from ..app.access import Access
from ..app.base_app import new_app
from ..app.guard import Guard, sign_out_address
from ..app.served_audit import parse_entry
from ..core import InputError
from ..people.entries import Annotation
from ..people.exchange import Check
from ..people.records import Records
from ..report.sheets import png
from . import pages
from .labels import judge
from .stages import RunFolder
from .view import RunView, load_run
from .votes import read_votes

WHOLE = "all"  # the item that stands for all samples of a region


class LiveRun:
    """A run that is served: judged by people's answers so far, and read again when a later stage is done."""

    def __init__(self, folder: str | Path, records: Records):
        self.run = RunFolder(folder)
        self.records = records
        self._loaded: tuple[int, RunView] | None = None  # when stage.json was written, and the run as of then

    def __call__(self) -> RunView:
        """The run, judged by all answers so far."""
        view = self.stored()
        by_oracle = self.run.has("judged-by") and self.run.read("judged-by") == "oracle"
        if by_oracle or not view.names:  # people's answers are stored beside it
            return view
        votes = read_votes(self.records, self.run)
        return replace(
            view,
            judged=judge(
                list(view.names),
                votes,
                view.predictions,
                view.facts["settings"]["rho"],
                view.facts["settings"].get("quorum", 1),
            ),
        )

    def stored(self) -> RunView:
        """The run as its folder has it, which is enough for an image and to save an answer."""
        path = self.run.folder / "stage.json"
        written = path.stat().st_mtime_ns if path.is_file() else 0
        if self._loaded is None or self._loaded[0] != written:
            self._loaded = (written, load_run(self.run.folder))
        return self._loaded[1]


@dataclass(frozen=True, eq=False)
class ServedRun:
    """What every address of the server needs."""

    load: LiveRun
    records: Records
    sign_out: str = ""

    def stored_with(self, id: str) -> RunView:
        """The run as its folder has it; not found where it has no such region."""
        view = self.load.stored()
        if id not in view.names:
            raise HTTPException(404, f"There is no region {id!r}.")
        return view


def create_app(load: LiveRun, records: Records, *, access: Access | None = None) -> Guard:
    """An ASGI app of one run. access: who may ask. Default: everybody on this machine."""
    served = ServedRun(load, records, sign_out_address(access))
    app = new_app(
        lambda words: pages.page(load.stored(), "problem", served.sign_out, words=words),
        records,
        {script.name: script for script in pages.SERVED_SCRIPTS},
    )
    for add in (_add_pages, _add_samples, _add_answers):
        add(app, served)
    return Guard(app, access)


def app_of_folder(folder: str | Path, records: Records, *, access: Access | None = None) -> Guard:
    """The app of a run's folder; an error here, before a server starts, where it cannot be read."""
    load = LiveRun(folder, records)
    load()
    return create_app(load, records, access=access)


def _add_pages(app: FastAPI, served: ServedRun) -> None:
    def page(view: RunView, name: str, **options: Any) -> HTMLResponse:
        return HTMLResponse(pages.page(view, name, served.sign_out, **options), headers={"cache-control": "no-cache"})

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def overview() -> HTMLResponse:
        return page(served.load(), "regions")

    @app.get("/region/{id}", response_class=HTMLResponse, include_in_schema=False)
    def region(id: str) -> HTMLResponse:
        served.stored_with(id)
        return page(served.load(), "region", id=id)

    @app.get("/annotate", response_class=HTMLResponse, include_in_schema=False)
    @app.get("/annotate/{queue}", response_class=HTMLResponse, include_in_schema=False)
    def annotate(queue: str = "") -> HTMLResponse:
        view = served.stored_with(queue) if queue else served.load.stored()
        return page(view, "annotate", queue=queue)

    @app.get("/result", response_class=HTMLResponse, include_in_schema=False)
    def result() -> HTMLResponse:
        return page(served.load(), "result")


def _add_samples(app: FastAPI, served: ServedRun) -> None:
    @app.get("/sample/{id}/{number}", include_in_schema=False)
    def sample(id: str, number: int) -> Response:
        view = served.stored_with(id)
        if not 0 <= number < view.images.shape[1]:
            raise HTTPException(404, f"Region {id!r} has no sample {number}.")
        return Response(png(view.images[view.index(id), number]), media_type="image/png")


def _add_answers(app: FastAPI, served: ServedRun) -> None:
    @app.get("/api/regions/{id}")
    def answers_to(id: str, person: str) -> dict[str, Any]:
        """A person's answer to a whole region, and how many regions they have answered; others' after their own."""
        view = served.stored_with(id)
        entries = served.records.answers(id, task="region")
        mine = next((asdict(entry) for entry in entries if entry.person == person), None)
        answers = [(entry.person, entry.answer) for entry in entries]
        if mine is None:
            answers = [(name, None) for name, _ in answers]
        own = served.records.answers(person=person)
        done = {entry.queue for entry in own if entry.task in ("region", "class")}
        return {"mine": mine, "answers": answers, "done": len(done & set(view.names)), "of": len(view.names)}

    @app.get("/api/queues/{queue}")
    def items(queue: str, person: str, task: str = "class") -> dict[str, Any]:
        """The samples of a region that a person has not labelled yet, without the classifier's predictions."""
        view = served.stored_with(queue)
        if task != "class":
            raise HTTPException(404, f"There is no task {task!r} of single samples; there is class.")
        done = {entry.item for entry in served.records.answers(queue, person, "class")}
        address = pages.served_address(view)
        samples = [{"id": str(i), "picture": address(queue, i), "text": None} for i in range(view.images.shape[1])]
        disputed = [asdict(item) for item in served.records.disagreements(queue, "class") if item.item in done]
        return {
            "items": [sample for sample in samples if sample["id"] not in done],
            "done": len(done),
            "of": len(samples),
            "agreement": asdict(served.records.agreement(queue, "class")),
            "settle": disputed,
        }

    @app.post("/api/annotations")
    def annotate(fields: Annotated[dict[str, Any], Body()]) -> dict[str, Any]:
        """Save an answer; it is on disk when this returns. The same key twice is one answer."""
        answer = parse_entry(Annotation, fields)
        _check_answer(served.stored_with(answer.queue), answer)
        return asdict(served.records.annotate(answer))


def _check_answer(view: RunView, answer: Annotation) -> None:
    """About a sample of the region, or all of them, and with one of the classes."""
    if answer.task == "class" and answer.item in {str(i) for i in range(view.images.shape[1])}:
        label = answer.answer
    elif answer.task == "region" and answer.item == WHOLE:
        label = answer.answer["label"]
    else:
        raise InputError(f"Nothing is asked about {answer.item!r} of a region.")
    if label is not None and label not in view.class_names and label not in range(len(view.class_names)):
        raise InputError(f"There is no class {label!r}.")


def answer_check(folder: str | Path, records: Records) -> Check:
    """What the app asks of an answer before it saves it, for answers that come another way."""
    view = LiveRun(folder, records).stored()

    def check(answer: Annotation) -> Annotation:
        if answer.queue not in view.names:
            raise InputError(f"There is no region {answer.queue!r}.")
        _check_answer(view, answer)
        return answer

    return check
