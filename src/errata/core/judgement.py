"""The slices of an audit as people left them: named, merged, with rows moved; and which of them a command takes.

Verdicts stay those of the slices as found. Who moves rows, or merges, may have seen the held-out outcomes: the numbers
of such a set are measured anew, and are no confirmation. Both stand beside each other (`Judged.found`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np

from .audit import Audit, HeldOutMeasure, Slice
from .blocks import Array
from .confirm import SplitTask, can_test, confirm_all
from .errors import InputError, unknown
from .id_order import positions_of
from .judged import Decided, Judged, Said
from .known_slices import audited_trials, candidate_of, count_tested, split_of

SCHEMA = "errata.judgement/1"
ACCEPTED: Final = "accepted"
CONFIRMED: Final = "confirmed"
ALL: Final = "all"
WORDS = (ACCEPTED, CONFIRMED, ALL)
DRAWN = "drawn"  # stands where other slices have their method
# Why a command takes no loop.
NO_RULE = "a loop has no rule for other rows; describe it as a condition and test it: errata test DIR CONDITION --keep"
NO_LABEL = "a loop belongs to no single label; describe it as a condition and test it: errata test DIR CONDITION --keep"


@dataclass(frozen=True)
class DrawnRows:
    """Rows that a person drew a loop around: a hypothesis until it is measured on new rows.

    Attributes
    ----------
    id, name : str
        Of the slice.
    rows : tuple of str
        Ids of rows, as text.
    person, at : str
        Who drew it and when.
    """

    id: str
    name: str
    rows: tuple[str, ...]
    person: str = ""
    at: str = ""


@dataclass(frozen=True)
class Judgement:
    """All that people decided about the slices of an audit.

    Attributes
    ----------
    decisions : mapping
        Id of a slice -> the last decision about it.
    moved : mapping
        Id of a slice -> id of a row, as text -> whether it was put in.
    drawn : tuple of DrawnRows
        Slices that people drew.
    said : mapping
        Id of a slice -> what people answered about its rows.
    """

    decisions: Mapping[str, Decided] = field(default_factory=dict)
    moved: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    drawn: tuple[DrawnRows, ...] = ()
    said: Mapping[str, tuple[Said, ...]] = field(default_factory=dict)

    def without_people(self) -> Judgement:
        """The same, without who decided, when, and what they noted."""
        decisions = {id: Decided(it.decision, it.name, into=it.into) for id, it in self.decisions.items()}
        drawn = tuple(replace(one, person="", at="") for one in self.drawn)
        return replace(self, decisions=decisions, drawn=drawn, said=self._said_by_nobody())

    def _said_by_nobody(self) -> dict[str, tuple[Said, ...]]:
        """The same answers, with a number in the place of each person, so that who answered twice counts once."""
        everything = [said for tasks in self.said.values() for said in tasks]
        people = dict.fromkeys(answer.person for said in everything for answer in said.filled)
        numbers = {person: f"person {i}" for i, person in enumerate(people, start=1)}

        def anonymous(said: Said) -> Said:
            return replace(said, filled=tuple(replace(answer, person=numbers[answer.person]) for answer in said.filled))

        return {id: tuple(map(anonymous, tasks)) for id, tasks in self.said.items()}

    def target(self, id: str) -> str:
        """The slice that one was merged into, at the end of the chain; itself where it was not."""
        seen = {id}
        while (into := self.decisions.get(id, Decided()).into) is not None and into not in seen:
            seen.add(into)
            id = into
        return id


def as_left(audit: Audit, judgement: Judgement) -> Audit:
    """The audit with every slice as people left it, in the same order; merged ones stay, and say into what.

    Parameters
    ----------
    audit : Audit
        As it was found.
    judgement : Judgement
        What people decided.
    """
    positions = positions_of(audit.evaluation.row_ids, {id for rows in judgement.moved.values() for id in rows})
    loops = tuple(_drawn(audit, drawing) for drawing in judgement.drawn)
    moves = {slice_.id: _moves(judgement.moved.get(slice_.id, {}), positions) for slice_ in (*audit.slices, *loops)}
    slices = [_left(audit, slice_, judgement, moves, loops) for slice_ in audit.slices]
    drawn = tuple(_left_loop(loop, judgement, moves, loops) for loop in loops)
    return replace(audit, slices=tuple(_measured(audit, slice_) for slice_ in slices), drawn=drawn)


def _drawn(audit: Audit, drawing: DrawnRows) -> Slice:
    """A loop as a slice: the rows of it that are audited. Nothing is measured of what was drawn to hold errors."""
    weights = np.zeros(len(audit.evaluation))
    weights[list(positions_of(audit.evaluation.row_ids, drawing.rows).values())] = 1.0
    return Slice(drawing.id, DRAWN, drawing.name, "not confirmed", 0.5, {}, weights, column=-1, reason="drawn by hand")


def _left_loop(loop: Slice, judgement: Judgement, moves: Mapping[str, Any], loops: Sequence[Slice]) -> Slice:
    inside = _moved(_with_loops(loop, loop.members, judgement, moves, loops), moves[loop.id])
    decided = judgement.decisions.get(loop.id, Decided())
    name = loop.name if decided.name is None else decided.name
    put_in = int((inside & ~loop.members).sum())
    put_out = int((loop.members & ~inside).sum())
    judged = Judged(decided, loop, put_in=put_in, put_out=put_out)
    return replace(loop, name=name, weights=_weights(loop, inside), judged=judged)


def _with_loops(
    slice_: Slice, inside: Array, judgement: Judgement, moves: Mapping[str, Any], loops: Sequence[Slice]
) -> Array:
    """The rows of a slice with those of loops that people merged into it: rows put in by hand, which no rule finds."""
    for loop in loops:
        if loop.id != slice_.id and judgement.target(loop.id) == slice_.id:
            inside = inside | _moved(loop.members, moves[loop.id])
    return inside


def _moves(moved: Mapping[str, bool], positions: Mapping[str, int]) -> tuple[list[int], list[int]]:
    """Row numbers that were put in, and out."""
    known = {positions[id]: inside for id, inside in moved.items() if id in positions}
    return [row for row, inside in known.items() if inside], [row for row, inside in known.items() if not inside]


def _left(audit: Audit, slice_: Slice, judgement: Judgement, moves: Mapping[str, Any], loops: Sequence[Slice]) -> Slice:
    merged = tuple(other for other in audit.slices if other.id != slice_.id and judgement.target(other.id) == slice_.id)
    inside = _moved(slice_.members, moves[slice_.id])
    for other in merged:
        inside |= _moved(other.members, moves[other.id])
    inside = _with_loops(slice_, inside, judgement, moves, loops)
    inside = _moved(inside, moves[slice_.id])  # who put a row out of it meant all of it
    before = rows_as_found(slice_, merged)
    decided = _decided(audit, slice_.id, judgement)
    said = judgement.said.get(slice_.id, ())
    judged = Judged(decided, slice_, merged, int((inside & ~before).sum()), int((before & ~inside).sum()), said)
    name = slice_.name if decided.name is None else decided.name
    return replace(slice_, name=name, weights=_weights(slice_, inside), judged=judged)


def rows_as_found(slice_: Slice, merged: Sequence[Slice]) -> Array:
    """(n,) bool: the rows of slices as they were found, of which people made one."""
    inside: Array = np.any([one.members for one in (slice_, *merged)], axis=0)
    return inside


def _decided(audit: Audit, id: str, judgement: Judgement) -> Decided:
    """The decision about a slice; one that was merged into a loop drawn by hand counts still, as itself."""
    decided = judgement.decisions.get(id, Decided())
    if decided.into is not None and judgement.target(id) not in audit:
        return replace(decided, decision="undecided", into=None)
    return decided


def _moved(inside: Array, moves: tuple[list[int], list[int]]) -> Array:
    moved = inside.copy()
    moved[moves[0]] = True
    moved[moves[1]] = False
    return moved


def _weights(slice_: Slice, inside: Array) -> Array:
    """The weights of a slice with these members: as they were, where they say the same."""
    if np.array_equal(inside, slice_.members):
        return slice_.weights
    raised = np.where(inside & ~slice_.members, slice_.threshold, slice_.weights)
    return np.where(slice_.members & ~inside, 0.0, raised).astype(slice_.weights.dtype)


def _measured(audit: Audit, slice_: Slice) -> Slice:
    """The slice with the numbers of the rows that it has now; its verdict is that of the rows it was found with."""
    judged = slice_.judged
    if judged is None or not judged.changed or slice_.confirm is None:
        return slice_
    split = split_of(slice_, audited_trials(audit))
    return replace(slice_, confirm=_measure(split, slice_, count_tested(audit)))


def _measure(split: SplitTask, slice_: Slice, tested: int) -> HeldOutMeasure | None:
    scope = {} if leaves_scope(slice_) else slice_.rule.get("scope")
    candidate = replace(candidate_of(slice_), rule={**slice_.rule, "scope": scope}, fidelity=None)
    if not can_test(split, candidate):
        return None
    return confirm_all([(split, candidate)], tested=tested)[0].held_out


def leaves_scope(slice_: Slice) -> bool:
    """Whether it holds rows that the scope of its rule does not: those are compared with all others."""
    judged = slice_.judged
    if judged is None:
        return False
    scope = slice_.rule.get("scope")
    return bool(judged.put_in) or any(other.rule.get("scope") != scope for other in judged.merged)


def kept(audit: Audit) -> tuple[Slice, ...]:
    """The slices that count: not those that people merged into others, or rejected."""
    return tuple(slice_ for slice_ in audit.slices if decision(slice_) not in ("merged", "rejected"))


def decision(slice_: Slice) -> str:
    """What people decided about a slice; "undecided" where nobody did."""
    return "undecided" if slice_.judged is None else slice_.judged.decided.decision


@dataclass(frozen=True)
class Choice:
    """The slices that a command takes.

    Attributes
    ----------
    slices : tuple of Slice
        In the order of the audit; those that were merged are in the one they were merged into.
    sentence : str
        Which they are, where nobody named them and people accepted some; else "".
    left_out : str
        Which loops people accepted that the command cannot take, and what it starts from where these are all; else "".
    """

    slices: tuple[Slice, ...]
    sentence: str = ""
    left_out: str = ""


def choose(
    audit: Audit,
    which: Sequence[str] | None,
    default: Literal["confirmed", "all"] = CONFIRMED,
    *,
    no_loops: str = NO_RULE,
) -> Choice:
    """The slices that words or ids name.

    Parameters
    ----------
    audit : Audit
        As people left it (`as_left`), or as it was found.
    which : list of str, optional
        "accepted", "confirmed", "all" or ids of slices. Default: the accepted ones where there are any.
    default : str
        What is taken where nothing is accepted.
    no_loops : str
        Why the command cannot take loops that people drew; "" where it takes them as other slices.
    """
    if isinstance(which, str):
        raise InputError(f"`slices` must be a list of ids; got the text {which!r}; write [{which!r}]")
    slices = audit.slices if no_loops else (*audit.slices, *audit.drawn)
    left_out = _left_out(audit, no_loops)
    if which:
        _check_loops(audit, which, no_loops)
        wanted = {slice_.id for word in which for slice_ in _named(slices, word)}
        named = tuple(slice_ for slice_ in slices if slice_.id in wanted)
        if ACCEPTED not in which:
            left_out = ""
        return Choice(named, left_out=left_out)
    accepted = tuple(_of_word(slices, ACCEPTED))
    others = tuple(slice_ for slice_ in _of_word(slices, default) if slice_ not in accepted)
    if not accepted:
        if left_out:
            left_out += f" No other slice is accepted: starts from {_number_of(others, default)}."
        return Choice(others, left_out=left_out)
    ids = ", ".join(slice_.id for slice_ in accepted)
    number = "1 slice" if len(accepted) == 1 else f"{len(accepted)} slices"
    more = f"; `--slices {default}` takes {len(others)} more" if others else ""
    return Choice(accepted, f"Starts from {number} that people accepted: {ids}{more}.", left_out)


def _accepted_loops(audit: Audit) -> list[str]:
    return [slice_.id for slice_ in _of_word(audit.drawn, ACCEPTED)]


def _left_out(audit: Audit, no_loops: str) -> str:
    """Which accepted loops a command leaves out, and why; "" where there are none or it takes them."""
    loops = _accepted_loops(audit)
    if not loops or not no_loops:
        return ""
    return f"Left out {', '.join(loops)}, which people drew by hand and accepted: {no_loops}."


def _check_loops(audit: Audit, which: Sequence[str], no_loops: str) -> None:
    """Raise InputError where what somebody names is loops alone, or one of them, and the command cannot take any."""
    if not no_loops:
        return
    for slice_ in audit.drawn:
        if slice_.id in which:
            raise InputError(f"slice {slice_.id} was drawn by hand: {no_loops}")
    loops = _accepted_loops(audit)
    if ACCEPTED in which and loops and not any(_of_word(audit.slices, ACCEPTED)):
        verb = "is accepted, and was" if len(loops) == 1 else "are accepted, and were"
        raise InputError(f"only {', '.join(loops)} {verb} drawn by hand: {no_loops}")


def _number_of(slices: Sequence[Slice], default: str) -> str:
    """In words: 3 confirmed slices; all 3 slices; nothing."""
    if not slices:
        return "nothing"
    if len(slices) == 1:
        return f"{slices[0].id} alone"
    if default == ALL:
        return f"all {len(slices)} slices"
    return f"{len(slices)} {default} slices"


def moved_words(slices: Sequence[Slice]) -> str:
    """What is to be said where slices are placed by their rules, of those that people moved rows of; else ""."""
    ids = [slice_.id for slice_ in slices if slice_.judged is not None and slice_.judged.edited]
    if not ids:
        return ""
    return f"People moved rows of {', '.join(ids)}: that counts among the audited rows; others are placed by rule."


def _named(slices: Sequence[Slice], word: str) -> Iterator[Slice]:
    if word in WORDS:
        found = list(_of_word(slices, word))
        if word == ACCEPTED and not found:
            raise InputError("no slice is accepted; accept some in `errata serve DIR`, or give ids")
        yield from found
        return
    known = {slice_.id: slice_ for slice_ in slices}
    if word not in known:
        raise unknown("slice", word, [*known, *WORDS])
    yield _end(known, word)


def _end(known: Mapping[str, Slice], id: str) -> Slice:
    """The slice that one was merged into, at the end of the chain."""
    slice_ = known[id]
    while slice_.judged is not None and slice_.judged.decided.into in known:
        slice_ = known[str(slice_.judged.decided.into)]
    return slice_


def _of_word(slices: Sequence[Slice], word: str) -> Iterator[Slice]:
    for slice_ in slices:
        decided = decision(slice_)
        confirmed = slice_.verdict == "confirmed" and slice_.side == "hard" and decided != "rejected"
        if decided != "merged" and {ACCEPTED: decided == ACCEPTED, CONFIRMED: confirmed, ALL: True}[word]:
            yield slice_


def judged_json(audit: Audit, slices: Sequence[Slice]) -> dict[str, Any]:
    """Slices as people left them, as plain JSON of the schema `errata.judgement/1`: decisions, and numbers as found
    and as left.

    Parameters
    ----------
    audit : Audit
        As people left it.
    slices : sequence of Slice
        Of the audit.
    """
    return {
        "schema": SCHEMA,
        "fingerprint": audit.evaluation.fingerprint,
        "slices": [_slice_json(slice_) for slice_ in slices],
    }


def _slice_json(slice_: Slice) -> dict[str, Any]:
    judged = slice_.judged or Judged(Decided(), slice_)
    found = judged.found
    return {
        "id": slice_.id,
        "name_as_found": found.name,
        "verdict": slice_.verdict,
        **{**asdict(judged.decided), "name": slice_.name},
        "merged": [other.id for other in judged.merged],
        "put_in": judged.put_in,
        "put_out": judged.put_out,
        "held_out": slice_.confirm and asdict(slice_.confirm),
        "held_out_as_found": found.confirm and asdict(found.confirm),
        "clean": not judged.changed and slice_.method != DRAWN,
    }


def judged_rows(audit: Audit, slices: Sequence[Slice]) -> dict[str, list[Any]]:
    """The rows of slices as people left them, one line a row and slice: columns by name.

    Parameters
    ----------
    audit : Audit
        As people left it.
    slices : sequence of Slice
        Of the audit.
    """
    columns: dict[str, list[Any]] = {"slice": [], "name": [], "id": [], "split": [], "found": []}
    for slice_ in slices:
        rows = slice_.rows()
        found = slice_ if slice_.judged is None else slice_.judged.found
        columns["slice"] += [slice_.id] * len(rows)
        columns["name"] += [slice_.name] * len(rows)
        columns["id"] += audit.evaluation.row_ids[rows].tolist()
        columns["split"] += np.where(audit.discover[rows], "search", "held-out").tolist()
        columns["found"] += found.members[rows].tolist()
    return columns
