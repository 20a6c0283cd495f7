"""A file of people with tokens of their own. It holds hashes: who reads it cannot sign in with what it says."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from pathlib import Path
from typing import Any

from .. import store
from ..core import InputError
from .entries import check_text, now

SCHEMA = "errata.people/1"
LARGEST_FILE = 1 << 20


def new_token() -> str:
    """A token that nobody guesses: 128 random bits."""
    return secrets.token_urlsafe(16)


def check_token(token: str) -> str:
    """The token, where an address can carry it and it is no invitation."""
    if not re.fullmatch(r"[A-Za-z0-9_.~-]{8,200}", token):
        raise InputError(f"a token has 8 to 200 letters, digits or signs of `-_.~`; got {len(token)} characters")
    return token


def digest(token: str) -> str:
    """The hash of a token. Tokens are random and long, so that a quick hash cannot be turned round."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def add_person(path: Path, name: str) -> str:
    """Add a person to a file, which may be new, and return the token, which is saved nowhere."""
    _check_name(name)
    people = _read(path) if path.exists() else {}
    if name in people:
        raise InputError(f"`{path}` has {name!r} already; remove them first to give them another token")
    token = new_token()
    _write(path, {**people, name: {"sha256": digest(token), "since": now()}})
    return token


def remove_person(path: Path, name: str) -> None:
    """Remove a person from a file: a server that reads it lets them in no longer."""
    people = _read(path)
    if name not in people:
        raise InputError(f"`{path}` has nobody called {name!r}; it has {', '.join(people) or 'nobody'}")
    _write(path, {other: facts for other, facts in people.items() if other != name})


class PeopleFile:
    """The people of a file, which is read again whenever it changes.

    Parameters
    ----------
    path : Path
        What `errata people add` wrote.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state: tuple[int, ...] | None = None
        self._digests: dict[str, str] = {}
        self._digests_now()
        if not self._digests:
            raise InputError(f"`{path}` has no people; add somebody with `errata people add {path} NAME`")

    def names(self) -> tuple[str, ...]:
        """Everybody."""
        return tuple(self._digests_now())

    def person_of(self, token: str) -> str | None:
        """Whose token this is; None where it is nobody's."""
        given = digest(token)
        person = None
        for name, known in self._digests_now().items():  # all of them, whoever it is: time tells nothing
            if hmac.compare_digest(given, known):
                person = name
        return person

    def has(self, name: str, token_digest: str) -> bool:
        """Whether a person still has the token of this hash."""
        return hmac.compare_digest(self._digests_now().get(name, ""), token_digest)

    def _digests_now(self) -> dict[str, str]:
        """Name -> hash; nobody, where the file is gone or damaged while a server runs."""
        try:
            status = os.stat(self._path)
            state = (status.st_mtime_ns, status.st_size, status.st_ino)
            if state != self._state:
                self._digests = {name: facts["sha256"] for name, facts in _read(self._path).items()}
                self._state = state
        except (InputError, OSError) as error:
            if self._state is None:
                if isinstance(error, InputError):
                    raise
                raise _unreadable(self._path, error) from error
            self._digests = {}
        return self._digests


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_FILE:
            raise InputError(f"`{path}` is no file of people; `errata people add FILE NAME` writes one")
        facts = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"`{path}` is damaged ({error}); remove it, and add its people again") from error
    people = facts.get("people") if isinstance(facts, dict) and facts.get("schema") == SCHEMA else None
    if not isinstance(people, dict) or not all(map(_is_person, people.values())):
        raise InputError(f"`{path}` is no file of people; `errata people add FILE NAME` writes one")
    for name in people:
        _check_name(name)
    if len({facts["sha256"] for facts in people.values()}) < len(people):
        raise InputError(f"`{path}` gives two people one token; remove one of them, and add them again")
    return people


def _is_person(facts: Any) -> bool:
    return isinstance(facts, dict) and bool(re.fullmatch("[0-9a-f]{64}", str(facts.get("sha256"))))


def _write(path: Path, people: dict[str, dict[str, str]]) -> None:
    text = json.dumps({"schema": SCHEMA, "people": people}, indent=1, ensure_ascii=False) + "\n"
    store.check_replaceable(path)
    with store.atomic_file(path, replace=True) as partial:
        partial.touch(mode=0o600)
        partial.write_text(text, encoding="utf-8")
        partial.chmod(0o600)


def _check_name(name: str) -> None:
    check_text("person", name)
    if name != name.strip() or not name.isprintable():
        raise InputError(f"a name has no spaces around it and no signs that cannot be printed; got {name!r}")


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"`{path}` cannot be read ({error.strerror}); `errata people add FILE NAME` writes a file of people"
    )
