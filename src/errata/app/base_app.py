"""What every app here has: sentences for mistakes, the files of its pages, what people said, and undo."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException as Refused

from ..core import ErrataError
from ..people.database import Unavailable
from ..people.entries import Conflict
from ..people.records import Records
from ..report.contract import PageNotFound
from ..report.static_files import STYLES, Script, file_text, script_text
from .login_form import DATA

Problem = Callable[[str], str]  # a sentence -> a page


def new_app(problem: Problem, records: Records, scripts: Mapping[str, Script]) -> FastAPI:
    """An app with what every one here has; problem: the page of a mistake. scripts: those of its pages, by name."""
    app = FastAPI(title="Errata", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    _add_mistakes(app, problem)
    _add_static(app, scripts)
    _add_records(app, records)
    return app


def _add_mistakes(app: FastAPI, problem: Problem) -> None:
    """Every mistake gets one sentence: as a page where a person asked for one."""

    def answer(request: Request, status: int, words: str, **more: Any) -> Response:
        accepted = request.headers.get("accept", "")
        if request.method == "GET" and "text/html" in accepted and not request.url.path.startswith(DATA):
            return HTMLResponse(problem(words), status_code=status)
        return Response(json.dumps({"detail": words, **more}), status_code=status, media_type="application/json")

    @app.exception_handler(ErrataError)
    async def ours(request: Request, error: ErrataError) -> Response:
        if isinstance(error, Conflict):
            return answer(request, 409, str(error), mine=asdict(error.mine), theirs=asdict(error.theirs))
        statuses = {PageNotFound: 404, Unavailable: 503}
        status = next((code for kind, code in statuses.items() if isinstance(error, kind)), 422)
        return answer(request, status, str(error))

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        if error.detail == "Not Found":
            return answer(request, error.status_code, f"Page {request.url.path!r} does not exist.")
        return answer(request, error.status_code, str(error.detail))

    @app.exception_handler(RequestValidationError)
    async def unreadable(request: Request, error: RequestValidationError) -> Response:
        return answer(request, 422, f"This request cannot be read. {_first_fault(error.errors()[0])}.")

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> Response:
        return answer(request, 500, f"The server failed ({type(error).__name__}); nothing was saved.")


def _first_fault(first: Any) -> str:
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    if first["type"] == "json_invalid":
        return "It is not JSON"
    return f"`{where}`: {first['msg']}" if where else str(first["msg"])


def _add_static(app: FastAPI, scripts: Mapping[str, Script]) -> None:
    texts = {name: script_text(script) for name, script in scripts.items()}
    texts.update({name: file_text(name) for name in STYLES})

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in texts:
            raise HTTPException(404, f"File {name!r} does not exist.")
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return Response(texts[name], media_type=kind, headers={"cache-control": "no-cache"})


def _add_records(app: FastAPI, records: Records) -> None:
    @app.get("/api/export.json")
    def export_json() -> Response:
        """All that people said, as JSON."""
        text = io.StringIO()
        records.export_json(text)
        headers = {"content-disposition": 'attachment; filename="errata-records.json"'}
        return Response(text.getvalue(), media_type="application/json", headers=headers)

    @app.get("/api/log")
    def read_log(of: str = "") -> list[dict[str, Any]]:
        """Who did what, and when, oldest first; `of`: one person alone."""
        return [asdict(line) for line in records.journal(of or None)]

    @app.get("/api/answered")
    def count_answers(person: str) -> dict[str, int]:
        """To how many items of each queue a person has an answer, to one task or another."""
        answers = {(entry.queue, entry.item) for entry in records.answers(person=person)}
        return dict(Counter(queue for queue, _ in answers))

    @app.post("/api/annotations/{key}/undo")
    def undo(key: str, person: Annotated[str, Body(embed=True)]) -> dict[str, Any]:
        """Take one's own answer back; twice is once."""
        return asdict(records.undo(key, person=person))
