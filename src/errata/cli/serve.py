"""`errata serve`: the pages of an audit in a browser, with a place for people's judgement; and `errata annotations`."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import Annotated, Any

import typer

Dir = Annotated[Path, typer.Argument(metavar="DIR", help="A saved audit.")]
Where = Annotated[str | None, typer.Option(metavar="URL", help="Where records are kept; left out, in DIR.")]

EVERY = ("", "0.0.0.0", "::")  # all addresses of this machine: people use names that nobody here can know

people = typer.Typer(help="What people said of an audit.")


@people.callback()
def _start() -> None:
    """What people said of an audit."""


def serve(
    folder: Dir,
    host: Annotated[
        str, typer.Option(help="The address to listen on; any but this machine's own asks for a token.")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes one that is free.")] = 8421,
    database: Where = None,
    others: Annotated[
        list[Path], typer.Option("--with", metavar="DIR", help="Another audit of the same rows, to compare with.")
    ] = [],  # noqa: B006
    token: Annotated[
        str | None, typer.Option(help="What people must know; left out, one is made where it is needed.")
    ] = None,
) -> None:
    """Look at an audit in a browser: slices, maps, guesses, annotations, decisions."""
    from ..core import require

    require("uvicorn", "app")
    from ..app.guard import LOOPBACK, checked
    from ..app.server import create_app
    from ..defuse.stages import is_run
    from ..people.records import Records
    from ..workflow import load
    from .audit import with_map

    if token is not None:
        checked(token)  # before the long work
    elif host not in LOOPBACK:
        token = secrets.token_urlsafe(16)
    hosts = None if host in EVERY else (*LOOPBACK, host.lower())
    if is_run(folder):
        _serve_run(folder, database, hosts, token, (host, port))
        return
    audit = with_map(load(folder))
    compared = tuple((_short(other, others), load(other)) for other in others)
    names = {found.id: found.name for found in audit.slices}
    with Records(database or folder, fingerprint=audit.evaluation.fingerprint, slices=names) as records:
        app = create_app(audit, records, hosts=hosts, token=token, others=compared, questionnaire=_questionnaire())
        _run(app, host, port, token)


def _serve_run(
    folder: Path, database: str | None, hosts: tuple[str, ...] | None, token: str | None, where: tuple[str, int]
) -> None:
    """The regions of `errata defuse`, to label."""
    from ..defuse.judgements import Watched
    from ..defuse.server import create_app

    with _records(folder, database) as records:
        load = Watched(folder, records)
        load()  # a folder that cannot be read is said before the server starts
        _run(create_app(load, records, hosts=hosts, token=token), *where, token)


def _questionnaire() -> Any:
    """Barlow's: what is asked and what an answer may be are known to `explain`, which the app does not know."""
    from ..app.questionnaire import Questionnaire
    from ..people import questionnaire

    return Questionnaire(questionnaire.form(), questionnaire.checked)


def _short(folder: Path, others: list[Path]) -> str:
    """Its own name, unless two have the same."""
    return folder.name if sum(one.name == folder.name for one in others) == 1 and folder.name else str(folder)


def _run(app: Any, host: str, port: int, token: str | None) -> None:
    """Says its address once it listens, so that who reads it can open it at once."""
    import uvicorn

    class Announced(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                taken = self.servers[0].sockets[0].getsockname()[1]
                name = socket.gethostname() if host in EVERY else host
                shown = f"[{name}]" if ":" in name else name
                typer.echo(f"http://{shown}:{taken}/" + (f"?token={token}" if token else ""))

    Announced(uvicorn.Config(app, host=host, port=port, log_level="warning", access_log=False)).run()


@people.command("import")
def import_annotations(
    folder: Dir,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="What a page downloaded.")],
    database: Where = None,
) -> None:
    """Add the answers that a page downloaded; a second time adds nothing."""
    with _records(folder, database) as records:
        added = records.import_annotations(source, check=_questionnaire().checked)
    typer.echo(f"{added.new:,} answers added")


@people.command("export")
def export_annotations(
    folder: Dir,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PATH", help="A .json file, or a new folder.")],
    database: Where = None,
) -> None:
    """Write all that people said, as JSON or as a folder of parquet tables."""
    from .. import store

    store.check_output(output)
    with _records(folder, database) as records:
        if output.suffix == ".json":
            records.export_json(output)
        else:
            records.export_parquet(output)
    typer.echo(str(output))


def _records(folder: Path, database: str | None) -> Any:
    from ..core import require

    require("sqlalchemy", "app")
    from ..defuse.judgements import opened
    from ..defuse.stages import is_run
    from ..people.records import Records
    from ..workflow import load

    if is_run(folder):
        return opened(folder, database)
    audit = load(folder)
    names = {found.id: found.name for found in audit.slices}
    return Records(database or folder, fingerprint=audit.evaluation.fingerprint, slices=names)
