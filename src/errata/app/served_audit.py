"""What the handlers of all pages share: the audit, the records, and the names that a request may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import HTTPException

from ..core import Array, Audit, Comparison, Slice
from ..core.judgement import Judgement, as_left, rows_as_found
from ..hypothesis.testing import Search
from ..people.curation import DrawnSlice
from ..people.judgement import read_judgement
from ..people.records import Records
from ..report.contract import PageNotFound
from .audit_rows import AuditRows

if TYPE_CHECKING:
    from .hypothesis_routes import HypothesisTester
    from .questionnaire_routes import Questionnaire


Keep = Callable[[str, int], Slice]


@dataclass(frozen=True, eq=False)
class OtherAudit:
    """An audit of another model on the same rows.

    name: what it is called. compare: the served audit as people left it -> what `errata compare` says of both.
    """

    name: str
    audit: Audit
    compare: Callable[[Audit], Comparison]


class AuditAsLeft:
    """An audit under the last judgement that was asked for: pages are asked for more often than people decide."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._judgement = Judgement()
        self._left = as_left(audit, self._judgement)
        self._lock = Lock()

    def under(self, judgement: Judgement) -> Audit:
        """The slices as people left them."""
        with self._lock:
            if judgement != self._judgement:
                self._left = as_left(self._audit, judgement)
                self._judgement = judgement
            return self._left


@dataclass(frozen=True, eq=False)
class ServedAudit:
    """An audit and what people said of it.

    search: similarities of words to all rows, where there is an encoder. others: audits of other models, to
    compare with. questionnaire: about what slices look like, where there is one. keep: a hypothesis
    and how many there were -> the new slice of the saved audit, where it may be changed.
    """

    audit: Audit
    records: Records
    rows: AuditRows
    search: Search | None = None
    others: tuple[OtherAudit, ...] = ()
    questionnaire: Questionnaire | None = None
    keep: Keep | None = None

    @cached_property
    def _left(self) -> AuditAsLeft:
        return AuditAsLeft(self.audit)

    def left(self) -> Audit:
        """The audit with its slices as people have left them by now."""
        return self._left.under(read_judgement(self.records))

    def check_slice(self, id: str) -> None:
        """A slice of the audit, or PageNotFound."""
        if all(slice_.id != id for slice_ in self.audit.slices):
            raise PageNotFound(f"Slice {id!r} does not exist.")

    def position(self, row_id: str) -> int:
        """The position of a row by its id, or PageNotFound."""
        position = self.rows.find(row_id)
        if position is None:
            raise PageNotFound(f"Row {row_id!r} does not exist.")
        return position

    def drawing(self, id: str) -> DrawnSlice | None:
        """A slice that a person drew; None of one of the audit, or that does not exist."""
        if any(slice_.id == id for slice_ in self.audit.slices):
            return None
        return next((drawing for drawing in self.records.drawn() if drawing.slice == id), None)

    def members(self, id: str) -> Array:
        """(n,) bool: the rows of a slice of the audit, or of a drawn one."""
        slice_ = self._left_slice(id)
        if slice_ is None:
            raise PageNotFound(f"Slice {id!r} does not exist.")
        return slice_.members

    def _left_slice(self, id: str) -> Slice | None:
        left = self.left()
        return next((slice_ for slice_ in (*left.slices, *left.drawn) if slice_.id == id), None)

    def moved(self, id: str) -> dict[str, bool]:
        """Row id -> whether people put it in or out of a slice; not of rows that are back where they were."""
        slice_ = self._left_slice(id)
        if slice_ is None or slice_.judged is None:
            return {}
        before = rows_as_found(slice_.judged.found, slice_.judged.merged)
        ids = self.audit.evaluation.row_ids
        return {str(ids[row]): bool(slice_.members[row]) for row in np.flatnonzero(before != slice_.members)}


class RecordsBackend:
    """What pages read beside the audit (`report.contract.Backend`)."""

    def __init__(self, served: ServedAudit, tester: HypothesisTester) -> None:
        self._served = served
        self._tester = tester

    def standings(self) -> Mapping[str, Mapping[str, Any]]:
        """Slice id -> what was decided of it, from the records."""
        standings = self._served.records.standings()
        return {id: asdict(standing) | {"title": standing.title} for id, standing in standings.items()}

    def edits(self, slice_id: str) -> Mapping[str, bool]:
        """Row id -> whether a person put it into the slice or out of it."""
        return self._served.moved(slice_id)

    def drawings(self) -> Sequence[Mapping[str, Any]]:
        """Slices that people drew on the map, from the records."""
        return [asdict(drawing) for drawing in self._served.records.drawn()]

    def members(self, slice_id: str) -> Array:
        """(n,) bool: the rows of a slice, of the audit or drawn; PageNotFound where it does not exist."""
        return self._served.members(slice_id)

    def row(self, row_id: str) -> int:
        """The position of a row; PageNotFound where it does not exist."""
        return self._served.position(row_id)

    def hypotheses(self) -> Sequence[Mapping[str, Any]]:
        """Hypotheses that were tested, by slice."""
        return self._tester.families()

    def other_audits(self) -> Mapping[str, Audit]:
        """Audits by name that this one may be compared with."""
        return {other.name: other.audit for other in self._served.others}

    def compare(self, audit: Audit, other: str) -> Comparison:
        """The audit as people left it, beside another one by its name."""
        return next(one for one in self._served.others if one.name == other).compare(audit)

    def questionnaire(self) -> Mapping[str, Any] | None:
        """Limits and choices of the questionnaire; None where there is none."""
        return None if self._served.questionnaire is None else self._served.questionnaire.form

    def journal(self, person: str | None) -> Sequence[Mapping[str, Any]]:
        """All that people did, or one of them, oldest first."""
        return [asdict(line) for line in self._served.records.journal(person)]


def parse_entry(kind: type, data: dict[str, Any]) -> Any:
    """One of the entries of the records, from JSON; what it does not know is named."""
    try:
        return kind(**data)
    except TypeError as error:
        raise HTTPException(422, f"This is no {kind.__name__.lower()}: {error}.") from error
