"""`errata serve`: the pages of an audit in a browser, with people's judgements; and `errata annotations`."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core import Audit, require
from .common import Dir

Database = Annotated[str | None, typer.Option(metavar="URL", help="Database of the records. Default: a file in DIR.")]

EVERY_ADDRESS = ("", "0.0.0.0", "::")  # of this machine: people may use names that are not known here

annotations_app = typer.Typer(help="Import or export what people recorded about an audit.")


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
    from .. import workflow
    from ..app.guard import LOOPBACK, checked
    from ..app.server import create_app
    from ..defuse.stages import is_run
    from ..report.progress_bars import progress_bar

    if token is not None:
        checked(token)  # before the long work
    elif host not in LOOPBACK:
        token = secrets.token_urlsafe(16)
    hosts = None if host in EVERY_ADDRESS else (*LOOPBACK, host.lower())
    if is_run(folder):
        from ..defuse.server import app_of_folder

        with _records(folder, database) as records:
            _run(app_of_folder(folder, records, hosts=hosts, token=token), host, port, token)
        return
    with progress_bar() as progress:
        audit = workflow.add_map(workflow.load(folder), progress=progress)
    compared = tuple((_short_name(other, others), workflow.load(other)) for other in others)
    with _records_of_audit(audit, folder, database) as records:
        app = create_app(audit, records, hosts=hosts, token=token, others=compared, questionnaire=questionnaire())
        _run(app, host, port, token)


def questionnaire() -> Any:
    """Return the questionnaire about features, for the app."""
    from ..app.questionnaire_routes import Questionnaire
    from ..people import questionnaire

    return Questionnaire(questionnaire.form(), questionnaire.checked)


def _short_name(folder: Path, others: list[Path]) -> str:
    """Return the folder's own name, unless two have the same."""
    unique = sum(other.name == folder.name for other in others) == 1
    return folder.name if unique and folder.name else str(folder)


def _run(app: Any, host: str, port: int, token: str | None) -> None:
    """Serve, and print the address once the server listens, so that whoever reads it can open it at once."""
    import uvicorn

    class Announced(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                actual_port = self.servers[0].sockets[0].getsockname()[1]
                name = socket.gethostname() if host in EVERY_ADDRESS else host
                if ":" in name:
                    name = f"[{name}]"
                query = f"?token={token}" if token else ""
                typer.echo(f"http://{name}:{actual_port}/{query}")

    Announced(uvicorn.Config(app, host=host, port=port, log_level="warning", access_log=False)).run()


@annotations_app.command("import")
def import_annotations(
    folder: Dir,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="What a page downloaded.")],
    database: Database = None,
) -> None:
    """Add the answers that a page downloaded; a second time adds nothing."""
    with _records(folder, database) as records:
        added = records.import_annotations(source, check=questionnaire().checked)
    typer.echo(f"{added.new:,} answers added")


@annotations_app.command("export")
def export_annotations(
    folder: Dir,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="PATH", help="A .json file, or a new folder.")],
    database: Database = None,
) -> None:
    """Write all records as JSON or as a folder of parquet tables."""
    from .. import store

    store.check_output(output)
    with _records(folder, database) as records:
        if output.suffix == ".json":
            records.export_json(output)
        else:
            records.export_parquet(output)
    typer.echo(str(output))


def _records(folder: Path, database: str | None) -> Any:
    """Open the records of an audit, or of a run of Defuse."""
    require("sqlalchemy", "app")
    from ..defuse.stages import is_run
    from ..defuse.votes import open_records
    from ..workflow import load

    if is_run(folder):
        return open_records(folder, database)
    return _records_of_audit(load(folder), folder, database)


def _records_of_audit(audit: Audit, folder: Path, database: str | None) -> Any:
    from ..people.records import Records

    names = {slice_.id: slice_.name for slice_ in audit.slices}
    return Records(database or folder, fingerprint=audit.evaluation.fingerprint, slices=names)
