"""In whose name a request is: somebody with a token of their own asks and writes in no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Refusal = tuple[int, str]
FIELD = "person"


def refused(person: str, names: list[Any]) -> Refusal | None:
    """Why a request that has these names is refused to a person; None where all are their own."""
    other = next((name for name in names if name != person), None)
    if other is None:
        return None
    return 403, f"You are signed in as {person!r}; nothing is asked or saved in the name of {str(other)[:100]!r}."


def signed(person: str, body: bytes) -> tuple[bytes, Refusal | None]:
    """The body of a write with the name of who sends it; and why it is refused, where it has another's."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return body, (422, "This request cannot be read. It is not JSON.")
    names = list(_names_in(value))
    if not names and isinstance(value, dict):
        body = json.dumps({**value, FIELD: person}).encode()
    return body, refused(person, names)


def _names_in(value: Any) -> Iterator[Any]:
    """The names in all parts of a value."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if FIELD in part:
                yield part[FIELD]
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
