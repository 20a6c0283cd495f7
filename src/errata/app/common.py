"""What every app here has: sentences for mistakes, the files of its pages, what people said, and undo."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
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
from ..report import site
from .login import DATA

Problem = Callable[[str], str]  # a sentence -> a page


def new_app(problem: Problem, records: Records) -> FastAPI:
    app = FastAPI(title="Errata", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    _mistakes(app, problem)
    _files(app, records)
    return app


def _mistakes(app: FastAPI, problem: Problem) -> None:
    """Every mistake gets one sentence: as a page where a person asked for one."""

    def answer(request: Request, status: int, words: str, **more: Any) -> Response:
        path, wanted = request.url.path, request.headers.get("accept", "")
        if request.method == "GET" and "text/html" in wanted and not path.startswith(DATA):
            return HTMLResponse(problem(words), status_code=status)
        return Response(json.dumps({"detail": words, **more}), status_code=status, media_type="application/json")

    @app.exception_handler(ErrataError)
    async def ours(request: Request, error: ErrataError) -> Response:
        if isinstance(error, Conflict):
            return answer(request, 409, str(error), mine=asdict(error.mine), theirs=asdict(error.theirs))
        return answer(request, 503 if isinstance(error, Unavailable) else 422, str(error))

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        words = f"There is no page {request.url.path!r}." if error.detail == "Not Found" else str(error.detail)
        return answer(request, error.status_code, words)

    @app.exception_handler(RequestValidationError)
    async def unreadable(request: Request, error: RequestValidationError) -> Response:
        return answer(request, 422, f"This request cannot be read. {_what(error.errors()[0])}.")

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> Response:
        return answer(request, 500, f"The server failed ({type(error).__name__}); nothing was saved.")


def _what(first: Any) -> str:
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    if first["type"] == "json_invalid":
        return "It is no JSON"
    return f"`{where}`: {first['msg']}" if where else str(first["msg"])


def _files(app: FastAPI, records: Records) -> None:
    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        if name not in site.STATIC:
            raise HTTPException(404, f"There is no file {name!r}.")
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return Response(site.static_text(name), media_type=kind, headers={"cache-control": "no-cache"})

    @app.get("/api/export.json")
    def export_json() -> Response:
        """All that people said, as JSON."""
        text = io.StringIO()
        records.export_json(text)
        named = {"content-disposition": 'attachment; filename="errata-records.json"'}
        return Response(text.getvalue(), media_type="application/json", headers=named)

    @app.get("/api/answered")
    def answered(person: str) -> dict[str, int]:
        """To how many items of each queue a person has an answer, to one task or another."""
        given = {(entry.queue, entry.item) for entry in records.answers(person=person)}
        return dict(Counter(queue for queue, _ in given))

    @app.post("/api/annotations/{key}/undo")
    def undo(key: str, person: Annotated[str, Body(embed=True)]) -> dict[str, Any]:
        """Take one's own answer back; twice is once."""
        return asdict(records.undo(key, person=person))
