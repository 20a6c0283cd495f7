"""What people decide about slices: decisions that never overwrite one another, edits, drawn slices, hypotheses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, func, insert, select

from ..core import InputError
from ..core.errors import unknown
from .answers import append, saved_as
from .entries import AcceptedSlice, Conflict, Decision, Drawing, Edit, Hypothesis, Standing, as_json
from .schema import decisions, drawn, edits, hypotheses, slices


@dataclass(frozen=True)
class DrawnSlice:
    """A slice that a person drew, as saved: a hypothesis until it is measured on new rows.

    Attributes
    ----------
    slice, name : str
        Its id and its name.
    items : tuple of str
        Ids of its rows.
    person, at, key : str
        Who drew it, when, and the key of the line.
    """

    slice: str
    name: str
    items: tuple[str, ...]
    person: str
    at: str
    key: str


@dataclass(frozen=True)
class TestedHypothesis:
    """A hypothesis, as saved.

    Attributes
    ----------
    slice : str, optional
        That it is about.
    kind, text : str
        "words" or "condition", and what was written.
    n, errors, rest_n, rest_errors : int
        Held-out rows that match, and the others, with their errors.
    person, at, key : str
        Who tested it, when, and the key of the line.
    """

    slice: str | None
    kind: str
    text: str
    n: int
    errors: int
    rest_n: int
    rest_errors: int
    person: str
    at: str
    key: str


def register_slices(connection: Connection, names: Mapping[str, str], location: str) -> None:
    """Add the audit's slices by id and name; an InputError where other slices have the same ids."""
    known = {row.id: row for row in connection.execute(select(slices))}
    for id, name in names.items():
        if id not in known:
            _add_slice(connection, id, "found", name)
        elif (known[id].kind, known[id].name) != ("found", name):
            raise InputError(
                f"`{location}` holds the records of another audit: its slice `{id}` is “{known[id].name}”, "
                f"and yours is “{name}”; give each audit a database of its own"
            )


def _add_slice(connection: Connection, id: str, kind: str, name: str) -> None:
    position = connection.execute(select(func.coalesce(func.max(slices.c.place), 0))).scalar_one() + 1
    connection.execute(insert(slices).values(id=id, place=position, kind=kind, name=name))


def standings(connection: Connection) -> dict[str, Standing]:
    """Every known slice with the last decision about it: those of the audit first, then the drawn ones."""
    return {row.slice: _standing(row._mapping) for row in connection.execute(_standings())}


def _standings() -> Select[Any]:
    newest = select(decisions.c.slice, func.max(decisions.c.version).label("version")).group_by(decisions.c.slice)
    last = newest.subquery()
    return (
        _with_slices()
        .outerjoin(last, last.c.slice == slices.c.id)
        .outerjoin(decisions, and_(decisions.c.slice == last.c.slice, decisions.c.version == last.c.version))
        .order_by(slices.c.place)
    )


def _with_slices() -> Select[Any]:
    facts = [decisions.c[name] for name in ("version", "decision", "name", "note", "into", "person", "at")]
    return select(slices.c.id.label("slice"), slices.c.kind, slices.c.name.label("made_name"), *facts).select_from(
        slices
    )


def _standing(row: Mapping[Any, Any]) -> Standing:
    if row["version"] is None:
        return Standing(**{**row, "version": 0, "decision": "undecided", "note": ""})
    return Standing(**row)


def history(connection: Connection, slice: str) -> tuple[Standing, ...]:
    """All decisions about a slice, oldest first."""
    _check_known(connection, slice)
    lines = _with_slices().join(decisions, decisions.c.slice == slices.c.id).where(slices.c.id == slice)
    return tuple(Standing(**row._mapping) for row in connection.execute(lines.order_by(decisions.c.version)))


def decide(connection: Connection, decision: Decision, version: int) -> Standing:
    """Save a decision, one version after the `version` that the person saw; a Conflict where that is not the last."""
    before = saved_as(connection, decisions, decision.key, decision.person)
    if before is not None:
        return history(connection, before["slice"])[int(before["version"]) - 1]
    all_slices = standings(connection)
    for slice in (decision.slice, decision.into):
        if slice is not None and slice not in all_slices:
            raise unknown("slice", slice, all_slices)
    if all_slices[decision.slice].version != version:
        raise Conflict(decision, version, all_slices[decision.slice])
    if decision.into is not None:
        _check_merge(decision.slice, decision.into, all_slices)
    append(connection, decisions, {**vars(decision), "version": version + 1})
    return history(connection, decision.slice)[-1]


def _check_merge(slice: str, into: str, all_slices: Mapping[str, Standing]) -> None:
    path = [into, *_merged_into(into, all_slices)]
    if slice in path:
        through = f" by way of `{path[0]}`" if path[0] != slice else ""
        raise InputError(f"slice `{slice}` cannot be merged into itself{through}; merge it into another")


def _merged_into(slice: str, all_slices: Mapping[str, Standing]) -> Iterator[str]:
    """The slice that this one was merged into, the slice that that one was merged into, and so on."""
    into = all_slices[slice].into
    while into is not None:
        yield into
        into = all_slices[into].into


def accepted(connection: Connection) -> tuple[AcceptedSlice, ...]:
    """The accepted slices in the audit's order, with what was merged into each."""
    all_slices = standings(connection)
    targets = {slice: list(_merged_into(slice, all_slices))[-1:] for slice in all_slices}
    return tuple(
        AcceptedSlice(
            slice=standing.slice,
            kind=standing.kind,
            name=standing.title,
            renamed=standing.name is not None,
            note=standing.note,
            person=standing.person or "",
            at=standing.at or "",
            merged=tuple(slice for slice, target in targets.items() if target == [standing.slice]),
        )
        for standing in all_slices.values()
        if standing.decision == "accepted"
    )


def _check_known(connection: Connection, slice: str) -> None:
    known = connection.execute(select(slices.c.id)).scalars().all()
    if slice not in known:
        raise unknown("slice", slice, known)


def edit(connection: Connection, edited: Edit) -> None:
    """Save that a row was put into a slice or out of it."""
    _check_known(connection, edited.slice)
    append(connection, edits, vars(edited))


def edited(connection: Connection, slice: str) -> dict[str, bool]:
    """Row -> in or out, by the last edit of it; rows that are as the method had them are left out."""
    _check_known(connection, slice)
    return all_edited(connection).get(slice, {})


def all_edited(connection: Connection) -> dict[str, dict[str, bool]]:
    """Slice -> row -> in or out, by the last edit of it; slices whose rows are all as the method had them are out."""
    lines = select(edits.c.slice, edits.c.item, edits.c.inside).order_by(edits.c.number)
    last = {(row.slice, row.item): row.inside for row in connection.execute(lines)}
    moved: dict[str, dict[str, bool]] = {}
    for (slice, item), inside in last.items():
        if inside is not None:
            moved.setdefault(slice, {})[item] = inside
    return moved


def draw(connection: Connection, drawing: Drawing) -> DrawnSlice:
    """Save a drawn slice under a new id."""
    before = saved_as(connection, drawn, drawing.key, drawing.person)
    if before is not None:
        return _drawn(before)
    slice = f"drawn-{connection.execute(select(func.count()).select_from(drawn)).scalar_one() + 1}"
    _add_slice(connection, slice, "drawn", drawing.name)
    line, _ = append(connection, drawn, {**vars(drawing), "items": as_json(drawing.items), "slice": slice})
    return _drawn(line)


def drawings(connection: Connection) -> tuple[DrawnSlice, ...]:
    """All drawn slices, oldest first."""
    return tuple(_drawn(row._mapping) for row in connection.execute(select(drawn).order_by(drawn.c.number)))


def _drawn(line: Mapping[Any, Any]) -> DrawnSlice:
    facts = {name: line[name] for name in ("slice", "name", "person", "at", "key")}
    return DrawnSlice(**facts, items=tuple(json.loads(line["items"])))


def add_hypothesis(connection: Connection, hypothesis: Hypothesis) -> TestedHypothesis:
    """Save a hypothesis; the line as saved."""
    if hypothesis.slice is not None:
        _check_known(connection, hypothesis.slice)
    line, _ = append(connection, hypotheses, vars(hypothesis))
    return _tested(line)


def tested_hypotheses(connection: Connection, slice: str | None) -> tuple[TestedHypothesis, ...]:
    """All hypotheses about a slice, or about none, oldest first."""
    lines = select(hypotheses).where(hypotheses.c.slice == slice)  # `== None` is SQL's `IS NULL`
    return tuple(_tested(row._mapping) for row in connection.execute(lines.order_by(hypotheses.c.number)))


def hypothesis_texts(connection: Connection) -> frozenset[str]:
    """The different texts of all hypotheses."""
    return frozenset(connection.execute(select(hypotheses.c.text).distinct()).scalars())


def _tested(line: Mapping[Any, Any]) -> TestedHypothesis:
    return TestedHypothesis(**{name: value for name, value in line.items() if name != "number"})
