"""`errata serve`: the pages of an audit in a browser, with people's judgements; and `errata annotations`.

`SITES` is the list of the kinds of folders that both take. A room with pages of its own keeps its entry
(`defuse/site.py`), and is named there.
"""

from __future__ import annotations

import errno
import logging
import secrets
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from ..core import InputError, require
from ..defuse.site import RunSite
from ..report.printing import echo
from .common import Database, Dir

if TYPE_CHECKING:
    from ..core import Audit, Slice

LISTENING = 128  # connections that wait to be taken
EVERY_ADDRESS = ("", "0.0.0.0", "::")  # of this machine: people may use names that are not known here

annotations_app = typer.Typer(help="Import or export what people recorded about an audit.")


class Site(Protocol):
    """A kind of folder that can be served, with the records of what people said about it."""

    def recognises(self, folder: Path) -> bool:
        """Whether a folder is of this kind."""

    def open_records(self, folder: Path, database: str | None) -> Any:
        """The records of a folder (`people.records.Records`). database: its URL; None: a file in the folder."""

    def open_app(
        self,
        folder: Path,
        database: str | None,
        others: list[Path],
        *,
        hosts: tuple[str, ...] | None,
        token: str | None,
    ) -> AbstractContextManager[Any]:
        """An ASGI app of a folder, with its records until the context ends.

        others: folders to compare with. hosts, token: as for `app.server.create_app`.
        """


class ReplaceableApp:
    """An ASGI app of an audit that may change while it is served; requests on their way end with the one they began."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer with the app of now."""
        await self.app(scope, receive, send)


class AuditSite:
    """The folder of an audit."""

    def recognises(self, folder: Path) -> bool:
        """True of every folder: one that holds no audit is refused where it is read, with the reason."""
        return True

    def open_records(self, folder: Path, database: str | None) -> Any:
        """The records of the audit in the folder."""
        from ..workflow import load

        return records_of_audit(load(folder), folder, database)

    @contextmanager
    def open_app(
        self,
        folder: Path,
        database: str | None,
        others: list[Path],
        *,
        hosts: tuple[str, ...] | None,
        token: str | None,
    ) -> Iterator[Any]:
        """The app of the audit, with a map, and with the other audits to compare with."""
        from .. import workflow
        from ..app.server import create_app
        from ..report.progress_bars import progress_bar

        with progress_bar() as progress:
            audit = workflow.add_map(workflow.load(folder), progress=progress)
        compared = tuple((_short_name(other, others), workflow.load(other)) for other in others)
        with records_of_audit(audit, folder, database) as records:
            one_at_a_time = Lock()

            def show(audit: Audit) -> Any:
                more: dict[str, Any] = {"others": compared, "questionnaire": questionnaire(), "keep": keep}
                return create_app(audit, records, hosts=hosts, token=token, **more)

            def keep(text: str, hypotheses: int) -> Slice:
                with one_at_a_time:  # or an app with fewer slices could take the place of one with more
                    kept, added = workflow.keep_in_folder(folder, text, hypotheses=hypotheses)
                    records.add_slices({slice_.id: slice_.name for slice_ in kept.slices})
                    current.app = show(_with_map_of(audit, kept))
                return added

            current = ReplaceableApp(show(audit))
            yield current


def _with_map_of(drawn: Audit, audit: Audit) -> Audit:
    """The audit with the map that was drawn before: one more slice moves no row."""
    maps = [explanation for explanation in drawn.explanations if explanation.kind == "map"]
    others = [explanation for explanation in audit.explanations if explanation.kind != "map"]
    return replace(audit, explanations=(*others, *maps))


SITES: tuple[Site, ...] = (RunSite(), AuditSite())  # the first that recognises a folder serves it


def serve(
    folder: Dir,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but this machine's own asks for a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes one that is free.")] = 8421,
    database: Database = None,
    others: Annotated[
        list[Path], typer.Option("--with", metavar="DIR", help="Another audit of the same rows, to compare with.")
    ] = [],
    token: Annotated[
        str | None, typer.Option(help="What people must know. Default: one is created where it is needed.")
    ] = None,
) -> None:
    """Look at an audit in a browser: slices, maps, hypotheses, annotations, decisions."""
    require("uvicorn", "app")
    from ..app.guard import LOOPBACK, checked

    if token is not None:
        checked(token)  # before the long work
    elif host not in LOOPBACK:
        token = secrets.token_urlsafe(16)
    hosts = None if host in EVERY_ADDRESS else (*LOOPBACK, host.lower())
    with (
        _listen(host, port) as listening,  # before the long work: the port may be taken
        _site_of(folder).open_app(folder, database, others, hosts=hosts, token=token) as app,
    ):
        _run(app, host, listening, token)


def questionnaire() -> Any:
    """Return the questionnaire about features, for the app."""
    from ..app.questionnaire_routes import Questionnaire
    from ..people import questionnaire

    return Questionnaire(questionnaire.form(), questionnaire.checked)


def _short_name(folder: Path, others: list[Path]) -> str:
    """Return the folder's own name, unless two have the same."""
    unique = sum(other.name == folder.name for other in others) == 1
    return folder.name if unique and folder.name else str(folder)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket on this address that nobody else has."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or answers wait for 40 ms
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(LISTENING)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise InputError(f"port {port} of {host} is taken; name another with --port, or 0 for any") from error
        reason = error.strerror or str(error)
        raise InputError(f"cannot listen on {host}, port {port} ({reason}); give an address of this machine") from error
    return listening


def _run(app: Any, host: str, listening: socket.socket, token: str | None) -> None:
    """Serve, and print the address once the server listens, so that whoever reads it can open it at once."""
    import uvicorn

    from ..app.patience import PatientProtocol, RateLimit

    class Announced(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                actual_port = listening.getsockname()[1]
                name = socket.gethostname() if host in EVERY_ADDRESS else host
                if ":" in name:
                    name = f"[{name}]"
                query = f"?token={token}" if token else ""
                echo(f"http://{name}:{actual_port}/{query}")

    config = uvicorn.Config(app, http=PatientProtocol, ws="none", log_level="warning", access_log=False)
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(RateLimit())
    Announced(config).run(sockets=[listening])


@annotations_app.command("import")
def import_annotations(
    folder: Dir,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="What a page downloaded.")],
    database: Database = None,
) -> None:
    """Add the answers that a page downloaded; a second time adds nothing."""
    with _open_records(folder, database) as records:
        added = records.import_annotations(source, check=questionnaire().checked)
    echo(f"{added.new:,} answers added")


@annotations_app.command("export")
def export_annotations(
    folder: Dir,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PATH", help="A .json file, or a new folder.")],
    database: Database = None,
) -> None:
    """Write all records as JSON or as a folder of parquet tables."""
    from .. import store

    store.check_output(output)
    with _open_records(folder, database) as records:
        if output.suffix == ".json":
            records.export_json(output)
        else:
            records.export_parquet(output)
    echo(str(output))


def _site_of(folder: Path) -> Site:
    return next(site for site in SITES if site.recognises(folder))


def _open_records(folder: Path, database: str | None) -> Any:
    require("sqlalchemy", "app")
    return _site_of(folder).open_records(folder, database)


def records_of_audit(audit: Audit, folder: Path, database: str | None) -> Any:
    """Return what people recorded of an audit."""
    from ..people.records import Records

    names = {slice_.id: slice_.name for slice_ in audit.slices}
    return Records(database or folder, fingerprint=audit.evaluation.fingerprint, slices=names)
