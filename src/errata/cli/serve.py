"""`errata serve`: the pages of an audit in a browser, with people's judgements; and `errata annotations`.

`SITES` is the list of the kinds of folders that both take. A room with pages of its own keeps its entry
(`defuse/site.py`), and is named there.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from ..core import ErrataError, InputError, require
from ..defuse.site import RunSite
from ..report.printing import echo
from .access import TOKEN_VARIABLE, PublicAddress, Secret, check_certificate, choose_token
from .common import Database, Dir

if TYPE_CHECKING:
    from ..app.served_audit import OtherAudit
    from ..core import Audit, Progress, Slice

BOTH_LOCAL = ("127.0.0.1", "::1")
NO_SUCH_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
LISTENING = 128  # connections that wait to be taken
EVERY_ADDRESS = ("0.0.0.0", "::")  # of this machine: people may use names that are not known here

annotations_app = typer.Typer(help="Import, export or list what people recorded about an audit.")


class Site(Protocol):
    """A kind of folder that can be served, with the records of what people said about it."""

    def recognises(self, folder: Path) -> bool:
        """Whether a folder is of this kind."""

    def open_records(self, folder: Path, database: str | None) -> Any:
        """The records of a folder (`people.records.Records`). database: its URL; None: a file in the folder."""

    def answer_check(self, folder: Path, records: Any) -> Any:
        """What is asked of an answer before it is saved, as a function: an annotation -> the same, or an error."""

    def open_app(
        self, folder: Path, database: str | None, others: list[Path], *, access: Any
    ) -> AbstractContextManager[Any]:
        """An ASGI app of a folder, with its records until the context ends.

        others: folders to compare with. access: who may ask (`app.access.Access`).
        """


class ReplaceableApp:
    """An ASGI app of a saved audit that may change while it is served, also by another command.

    Requests on their way end with the app they began with.

    Parameters
    ----------
    file : Path
        Replaced by whoever changes the audit.
    reload : callable
        The app of the audit as it is saved now; an ErrataError where it cannot be read, and the one before stays.

    Attributes
    ----------
    app : ASGI app
        Of now; set the first one before it is asked.
    """

    app: Any

    def __init__(self, file: Path, reload: Callable[[], Any]) -> None:
        self._file = file
        self._reload = reload
        self._lock = Lock()  # or an app with fewer slices could take the place of one with more
        self._state = _file_state(file)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer with the app of now."""
        if _file_state(self._file) != self._state:
            await asyncio.to_thread(self.refresh)
        await self.app(scope, receive, send)

    def refresh(self) -> None:
        """Make the app anew where the audit has changed."""
        with self._lock:
            state = _file_state(self._file)
            if state == self._state:
                return
            self._state = state
            with suppress(ErrataError):
                self.app = self._reload()


def _file_state(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


class AuditSite:
    """The folder of an audit."""

    def recognises(self, folder: Path) -> bool:
        """True of every folder: one that holds no audit is refused where it is read, with the reason."""
        return True

    def open_records(self, folder: Path, database: str | None) -> Any:
        """The records of the audit in the folder."""
        from ..workflow import load

        return records_of_audit(load(folder), folder, database)

    def answer_check(self, folder: Path, records: Any) -> Any:
        """An answer is about a row and a class of the audit, or about a question that its questionnaire has."""
        from ..app.server import answer_check
        from ..workflow import load

        return answer_check(load(folder), records, questionnaire())

    @contextmanager
    def open_app(self, folder: Path, database: str | None, others: list[Path], *, access: Any) -> Iterator[Any]:
        """The app of the audit, with a map, and with the other audits to compare with."""
        from .. import workflow
        from ..app.server import create_app
        from ..report.progress_bars import progress_bar

        current = ReplaceableApp(folder / "audit.json", lambda: reload())
        with progress_bar() as progress:
            audit = workflow.add_map(workflow.load(folder), progress=progress)
            compared = tuple(_other_audit(audit, other, _short_name(other, others), progress) for other in others)
        with records_of_audit(audit, folder, database) as records:

            def show(audit: Audit) -> Any:
                more: dict[str, Any] = {"others": compared, "questionnaire": questionnaire(), "keep": keep}
                return create_app(audit, records, access=access, **more)

            def reload() -> Any:
                saved = workflow.load(folder)
                if saved.evaluation.fingerprint != audit.evaluation.fingerprint:
                    raise InputError(f"`{folder}` holds another audit now")
                records.add_slices({slice_.id: slice_.name for slice_ in saved.slices})
                return show(_with_map_of(audit, saved))

            def keep(text: str, hypotheses: int) -> Slice:
                _, added = workflow.keep_in_folder(folder, text, hypotheses=hypotheses)
                current.refresh()
                return added

            current.app = show(audit)
            yield current


def _other_audit(audit: Audit, folder: Path, name: str, progress: Progress) -> OtherAudit:
    """An audit to compare with. It is searched for what got worse before anybody waits for a page."""
    from .. import workflow
    from ..app.served_audit import OtherAudit

    other = workflow.load(folder)
    comparison = workflow.ComparisonWith(other)
    try:
        comparison(audit, progress)
    except InputError as error:
        raise InputError(f"`{folder}` cannot be compared with: {error}") from error
    return OtherAudit(name, other, comparison)


def _with_map_of(drawn: Audit, audit: Audit) -> Audit:
    """The audit with the map that was drawn before: one more slice moves no row."""
    maps = [explanation for explanation in drawn.explanations if explanation.kind == "map"]
    others = [explanation for explanation in audit.explanations if explanation.kind != "map"]
    return replace(audit, explanations=(*others, *maps))


SITES: tuple[Site, ...] = (RunSite(), AuditSite())  # the first that recognises a folder serves it


def serve(
    folder: Dir,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes one that is free.")] = 8421,
    database: Database = None,
    others: Annotated[
        list[Path], typer.Option("--with", metavar="DIR", help="Another audit of the same rows, to compare with.")
    ] = [],
    token: Annotated[
        str | None,
        typer.Option(help="What people must know; `ps` shows it, so --token-file is safer. Default: a new one."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"A file that holds the token; the variable {TOKEN_VARIABLE} may, too."),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Ask for none: everybody on this machine may look and write.")
    ] = False,
    people: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="People with tokens of their own (`errata people add`): names are proven."),
    ] = None,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="A certificate (PEM): serve https.")] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its private key (PEM). Default: in the file of --certificate.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="URL", help="Where a proxy serves this: https://audits.example.org")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Save nothing; DIR may be a folder that nobody can write.")
    ] = False,
) -> None:
    """Look at an audit in a browser: slices, maps, hypotheses, annotations, decisions."""
    require("uvicorn", "app")
    from ..app.access import LOOPBACK, Access
    from ..people.tokens import PeopleFile

    # All that can be refused is refused before the long work.
    tls = check_certificate(certificate, key)
    public = None if address is None else PublicAddress.parse(address)
    secret = choose_token(token, token_file, no_token=no_token, has_people=people is not None)
    if not host:
        raise InputError("--host is empty, which would be every address of this machine; write 0.0.0.0 to mean it")
    if no_token and host not in LOOPBACK:
        raise InputError(
            f"--no-token is for this machine alone, and --host {host} is for others; leave one of them out"
        )
    names = {*LOOPBACK, host.lower()}
    if public is not None:
        names.add(public.host)
    hosts = None if host in EVERY_ADDRESS else tuple(names)
    known = None if people is None else PeopleFile(people)
    secure = bool(tls) or (public is not None and public.is_https)
    access = Access(hosts, secret.token, people=known, secure=secure, read_only=read_only)
    with (
        _listen(host, port) as listening,  # the port may be taken
        _to_show(folder, database, read_only) as place,
        _site_of(folder).open_app(folder, place, others, access=access) as app,
    ):
        _run(app, listening, _printed(host, listening[0], public, bool(tls), secret), proxy=public is not None, tls=tls)


@contextmanager
def _to_show(folder: Path, database: str | None, read_only: bool = True) -> Iterator[str | None]:
    """The database of a command; of one that only reads, a copy, since even to read SQLite writes beside its file."""
    if not read_only or database is not None:
        yield database
        return
    from ..people.database import copy_to_show

    with TemporaryDirectory(prefix="errata-") as temporary:
        yield str(copy_to_show(folder, Path(temporary)))


def _printed(host: str, listening: socket.socket, public: PublicAddress | None, tls: bool, secret: Secret) -> str:
    """The address to open, with the token where nobody knows it yet."""
    query = f"?token={secret.token}" if secret.to_print else ""
    if public is not None:
        return f"{public.url}/{query}"
    name = socket.gethostname() if host in EVERY_ADDRESS else host
    if ":" in name:
        name = f"[{name}]"
    scheme = "https" if tls else "http"
    return f"{scheme}://{name}:{listening.getsockname()[1]}/{query}"


def questionnaire() -> Any:
    """Return the questionnaire about features, for the app."""
    from ..app.questionnaire_routes import Questionnaire
    from ..people import questionnaire

    return Questionnaire(questionnaire.form(), questionnaire.checked)


def _short_name(folder: Path, others: list[Path]) -> str:
    """Return the folder's own name, unless two have the same."""
    unique = sum(other.name == folder.name for other in others) == 1
    return folder.name if unique and folder.name else str(folder)


@contextmanager
def _listen(host: str, port: int) -> Iterator[list[socket.socket]]:
    """Sockets on this address that nobody else has. `localhost` is two addresses, and browsers may ask either."""
    addresses: tuple[str, ...] = (host,)
    if host.lower() == "localhost":
        addresses = BOTH_LOCAL
    with ExitStack() as stack:
        sockets: list[socket.socket] = []
        for address in addresses:
            if sockets:
                port = sockets[0].getsockname()[1]
            try:
                sockets.append(stack.enter_context(_listen_on(address, port)))
            except (TypeError, UnicodeError) as error:  # of what can be no name of a machine
                raise InputError(f"--host {host!r} is no address; give one of this machine") from error
            except OSError as error:
                if sockets and error.errno in NO_SUCH_ADDRESS:
                    continue  # a machine without IPv6
                raise _unlistened(host, port, error) from error
        yield sockets


def _listen_on(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, or answers wait for 40 ms
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(LISTENING)
    except OSError:
        listening.close()
        raise
    return listening


def _unlistened(host: str, port: int, error: OSError) -> InputError:
    if error.errno == errno.EADDRINUSE:
        return InputError(f"port {port} of {host} is taken; name another with --port, or 0 for any")
    reason = error.strerror or str(error)
    return InputError(f"cannot listen on {host}, port {port} ({reason}); give an address of this machine")


def _run(app: Any, listening: list[socket.socket], address: str, *, proxy: bool, tls: dict[str, Any]) -> None:
    """Serve, and print the address once the server listens, so that whoever reads it can open it at once."""
    import uvicorn

    from ..app.patience import PatientProtocol, RateLimit

    class Announced(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                echo(address)

    options: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
    config = uvicorn.Config(app, http=PatientProtocol, ws="none", proxy_headers=proxy, **options, **tls)
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(RateLimit())
    Announced(config).run(sockets=listening)


@annotations_app.command("import")
def import_annotations(
    folder: Dir,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="What a page downloaded.")],
    database: Database = None,
) -> None:
    """Add the answers that a page downloaded; a second time adds nothing."""
    with _open_records(folder, database) as records:
        added = records.import_annotations(source, check=_site_of(folder).answer_check(folder, records))
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
    with _to_show(folder, database) as place, _open_records(folder, place) as records:
        if output.suffix == ".json":
            records.export_json(output)
        else:
            records.export_parquet(output)
    echo(str(output))


@annotations_app.command("log")
def print_log(
    folder: Dir,
    person: Annotated[str | None, typer.Option(metavar="NAME", help="Of one person.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, one object a line.")] = False,
    database: Database = None,
) -> None:
    """Print who did what and when, oldest first: answers, decisions, edits, drawings, hypotheses."""
    with _to_show(folder, database) as place, _open_records(folder, place) as records:
        lines = records.journal(person)
    for line in lines:
        if as_json:
            echo(json.dumps(asdict(line), ensure_ascii=False))
        else:
            echo(f"{line.at[:19].replace('T', ' ')} UTC  {line.person}  {line.action} {line.about}: {line.detail}")


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
