"""What the handlers of all pages share: the audit, the records, and the names that a request may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastapi import HTTPException

from ..core import Array, Audit
from ..people.curation import Drawn
from ..people.records import Records
from .members import Rows

if TYPE_CHECKING:
    from .questionnaire import Questionnaire

Search = Callable[[str], Array]


@dataclass(frozen=True, eq=False)
class Served:
    """search: similarities of words to all rows, where somebody has an encoder.
    others: audits of other models, by name, that this one may be compared with.
    questionnaire: asked of what slices look like, where somebody handed one in."""

    audit: Audit
    records: Records
    rows: Rows
    search: Search | None = None
    others: tuple[tuple[str, Audit], ...] = ()
    questionnaire: Questionnaire | None = None


def made(kind: type, given: dict[str, Any]) -> Any:
    """One of the entries, from JSON; what it does not know is named."""
    try:
        return kind(**given)
    except TypeError as error:
        raise HTTPException(422, f"This is no {kind.__name__.lower()}: {error}.") from error


def known_slice(audit: Audit, id: str) -> None:
    if all(found.id != id for found in audit.slices):
        raise HTTPException(404, f"There is no slice {id!r}.")


def known_row(rows: Rows, id: str) -> int:
    found = rows.find(id)
    if found is None:
        raise HTTPException(404, f"There is no row {id!r}.")
    return found


def drawn_by_hand(served: Served, id: str) -> Drawn | None:
    """None of a slice that a method found, or that nobody knows."""
    if any(found.id == id for found in served.audit.slices):
        return None
    return next((one for one in served.records.drawn() if one.slice == id), None)


def members(served: Served, id: str) -> Array:
    """(n,) bool: the rows of a slice as it was found, or drawn."""
    for found in served.audit.slices:
        if found.id == id:
            return found.members
    drawn = drawn_by_hand(served, id)
    if drawn is None:
        raise HTTPException(404, f"There is no slice {id!r}.")
    return served.rows.mask(drawn.items)
