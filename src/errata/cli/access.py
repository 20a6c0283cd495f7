"""Who may ask a server, from the words of a command: token, certificate, public address; and `errata people`."""

from __future__ import annotations

import os
import re
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from ..core import InputError
from ..report.printing import echo

TOKEN_VARIABLE = "ERRATA_TOKEN"
LARGEST_TOKEN_FILE = 4096

people_app = typer.Typer(help="Who may sign in to a server, each with a token of their own.")
PeoplePath = Annotated[
    Path, typer.Argument(metavar="FILE", help="The file of people; `errata serve --people` reads it.")
]


@dataclass(frozen=True)
class Secret:
    """A token, None where none is asked for; and whether it is printed, since nobody else knows it."""

    token: str | None
    to_print: bool = False


def choose_token(token: str | None, token_file: Path | None, *, no_token: bool, has_people: bool) -> Secret:
    """The token of a server: given, from a file or a variable, a new one, or none."""
    from ..people.tokens import check_token, new_token

    variable = os.environ.get(TOKEN_VARIABLE)
    given = {
        "--token": token,
        "--token-file": token_file,
        "--no-token": no_token or None,
        "--people": has_people or None,
    }
    named = [option for option, value in given.items() if value is not None]
    if has_people and variable is not None:
        named.append(TOKEN_VARIABLE)
    if len(named) > 1:
        raise InputError(f"{' and '.join(named)} cannot be used together: there is one way to sign in; leave one out")
    if no_token or has_people:
        return Secret(None)
    if token is not None:
        return Secret(check_token(token), to_print=True)
    if token_file is not None:
        return Secret(check_token(_read_token(token_file)))
    if variable is not None:
        return Secret(check_token(variable))
    return Secret(new_token(), to_print=True)


def _read_token(path: Path) -> str:
    """The token in a file; its last line's end is no part of it."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_TOKEN_FILE:
            raise InputError(f"`{path}` is no small file; --token-file reads one with the token alone")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"`{path}` cannot be read ({error.strerror}); --token-file reads a file with the token"
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"`{path}` is no text; --token-file reads a file with the token alone") from error
    return text.strip()


def check_certificate(certificate: Path | None, key: Path | None) -> dict[str, Any]:
    """The options of uvicorn for https, of files that belong together; none without a certificate."""
    if certificate is None:
        if key is not None:
            raise InputError("--key needs the --certificate that it belongs to")
        return {}
    for path in (certificate, key):
        if path is not None and not path.is_file():
            raise InputError(f"`{path}` does not exist, or is no file; give a certificate and its key (PEM)")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise InputError(
            f"`{certificate}` and its key cannot be used ({reason}); give a certificate and the key it belongs to (PEM)"
        ) from error
    return {"ssl_certfile": str(certificate), "ssl_keyfile": str(key or certificate)}


def _no_password() -> str:
    raise InputError("the private key has a passphrase, which nobody types when a server starts; give one without")


@dataclass(frozen=True)
class PublicAddress:
    """Where a proxy serves this server.

    Attributes
    ----------
    url : str
        Without a slash at its end.
    host : str
        Its name, without a port.
    """

    url: str
    host: str

    @property
    def is_https(self) -> bool:
        """Whether browsers reach it by https."""
        return self.url.startswith("https:")

    @classmethod
    def parse(cls, text: str) -> PublicAddress:
        """The address in a text."""
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            parts = urlsplit("")
            port = None
        plain = not (parts.query or parts.fragment or parts.username or parts.path.strip("/"))
        named = re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]*:[0-9a-f:.]*", parts.hostname or "")  # as browsers send it
        if parts.scheme not in ("http", "https") or not named or not plain or parts.hostname is None:
            raise InputError(
                f"--address must look like https://audits.example.org, plain and without a path; got {text!r}"
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        end = "" if port is None else f":{port}"
        return cls(f"{parts.scheme}://{host}{end}", parts.hostname)


@people_app.command("add")
def add_person(
    path: PeoplePath, name: Annotated[str, typer.Argument(help="As it will stand beside what they save.")]
) -> None:
    """Add a person, and print their token; it is saved nowhere, so hand it on."""
    from ..people.tokens import add_person

    echo(add_person(path, name))


@people_app.command("remove")
def remove_person(path: PeoplePath, name: Annotated[str, typer.Argument(help="As it was added.")]) -> None:
    """Remove a person: servers that run let them in no longer. What they saved stays."""
    from ..people.tokens import remove_person

    remove_person(path, name)
    echo(f"{name} removed")


@people_app.command("list")
def list_people(path: PeoplePath) -> None:
    """Print everybody's name."""
    from ..people.tokens import PeopleFile

    for name in PeopleFile(path).names():
        echo(name)
