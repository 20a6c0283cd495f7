"""What people enter (answers, decisions, edits, drawings, hypotheses), checked; and what is saved of it."""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from ..core import ErrataError, InputError
from ..core.errors import unknown

Task = Literal["class", "member", "region", "questionnaire"]
DecisionKind = Literal["accepted", "rejected", "merged", "undecided"]
HypothesisKind = Literal["words", "condition"]

# The longest texts, in characters; the columns of the database follow.
LONGEST = {"key": 95, "queue": 200, "item": 1000, "person": 100, "name": 200, "note": 4000, "text": 1000}
LONGEST_ANSWER = 20_000  # as JSON
MOST_ROWS = 2**53
MAX_SECONDS = 1e9  # of an answer: a page left open for thirty years measures nothing
UNDO = "undo:"  # starts the key of an entry that undoes: undoing twice is undoing once


class Conflict(ErrataError):
    """Somebody else decided since: both versions, and nothing overwritten.

    Attributes
    ----------
    mine : Decision
        The one that was not saved.
    version : int
        That it was made on.
    theirs : Standing
        The last decision.
    """

    def __init__(self, mine: Decision, version: int, theirs: Standing) -> None:
        since = f"{theirs.person} at {theirs.at}" if theirs.version else "nobody"
        super().__init__(
            f"slice `{mine.slice}` is at version {theirs.version}, decided by {since}, and yours was made on version "
            f"{version}; nothing was overwritten; look at it and decide again"
        )
        self.mine = mine
        self.version = version
        self.theirs = theirs


def new_key() -> str:
    """A key that no other line has."""
    return str(uuid.uuid4())


def now() -> str:
    """The time in UTC, to the microsecond, always equally long: the order of texts is the order of time."""
    return iso(datetime.now(UTC))


def iso(time: datetime) -> str:
    """A time as `now` writes it."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """One answer of one person to one question about one item.

    Parameters
    ----------
    queue : str
        What is being labelled: a slice, a region, "hypothesis:…".
    item : str
        A row's id, or a sample's number, as text.
    person : str
        Who answers.
    task : str
        "class", "member", "region" or "questionnaire".
    answer : any
        By task: "class" a class's index or name, or None for none of the above; "member" "in" or "out"; "region"
        {"failure": bool, "label": as for class}; "questionnaire" the questions and their answers.
    seconds : float, optional
        That the person took.
    settles : bool
        It ends a disagreement, and is not one more vote.
    key : str
        Made by the page: an answer sent twice is saved once.
    """

    queue: str
    item: str
    person: str
    task: Task
    answer: Any
    seconds: float | None = None
    settles: bool = False
    key: str = field(default_factory=new_key)

    def __post_init__(self) -> None:
        check_texts(self, ("queue", "item", "person", "key"))
        check_choice("task", self.task, Task)
        check_answer(self.task, self.answer)
        if self.seconds is not None:
            object.__setattr__(self, "seconds", _seconds(self.seconds))
        if not isinstance(self.settles, bool):
            raise InputError(f"`settles` must be true or false; got {self.settles!r}")
        if self.settles and self.task == "questionnaire":
            raise InputError("a questionnaire asks for opinions, so there is nothing to settle; leave `settles` out")


@dataclass(frozen=True)
class Entry:
    """A line of the log of annotations, as saved.

    Attributes
    ----------
    number : int
        Lines are in this order.
    key, queue, item, person, task, seconds, settles
        As in `Annotation`.
    answer : any
        None in a line that undoes.
    undoes : str, optional
        The key of the line that this one undoes.
    at : str
        When, in UTC.
    repeated : bool
        The key was saved before: this is what was saved then.
    """

    number: int
    key: str
    queue: str
    item: str
    person: str
    task: Task
    answer: Any
    seconds: float | None
    settles: bool
    undoes: str | None
    at: str
    repeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a person decides about a slice. It replaces the last decision as a whole: no field is inherited from it.

    Parameters
    ----------
    slice : str
        Its id.
    decision : str
        "accepted", "rejected", "merged" or "undecided".
    person : str
        Who decides.
    name : str, optional
        Default: the name that the machine made.
    note : str
        Free text.
    into : str, optional
        Of a merged slice: the id of the other one.
    key : str
        Made by the page: a decision sent twice is saved once.
    """

    slice: str
    decision: DecisionKind
    person: str
    name: str | None = None
    note: str = ""
    into: str | None = None
    key: str = field(default_factory=new_key)

    def __post_init__(self) -> None:
        check_texts(self, ("slice", "person", "key"))
        check_choice("decision", self.decision, DecisionKind)
        if self.name is not None:
            check_text("name", self.name)
        check_text("note", self.note, may_be_empty=True)
        if (self.into is not None) != (self.decision == "merged"):
            raise InputError(
                f"`into` must name the other slice where `decision` is merged, else be None; got {self.into!r}"
            )
        if self.into is not None:
            check_text("into", self.into)


@dataclass(frozen=True)
class Standing:
    """A slice and the last decision about it; version 0 where there is none.

    Attributes
    ----------
    slice, kind : str
        Its id; "found" by a method or "drawn" by a person.
    made_name : str
        Made by the machine, or by who drew it.
    version : int
        How many decisions there were.
    decision, name, note, into, person, at
        Of the last decision.
    """

    slice: str
    kind: Literal["found", "drawn"]
    made_name: str
    version: int
    decision: DecisionKind
    name: str | None
    note: str
    into: str | None
    person: str | None
    at: str | None

    @property
    def title(self) -> str:
        """The name that a person gave it, else the one it was made with."""
        if self.name is None:
            return self.made_name
        return self.name


@dataclass(frozen=True)
class AcceptedSlice:
    """A slice that a person accepted: what gates and fixes start from.

    Attributes
    ----------
    slice, kind, name : str
        Its id; "found" or "drawn"; its name.
    renamed : bool
        By a person; else the name is the one it was made with.
    note, person, at : str
        Of the decision.
    merged : tuple of str
        The slices that people merged into it, directly or by way of others.
    """

    slice: str
    kind: Literal["found", "drawn"]
    name: str
    renamed: bool
    note: str
    person: str
    at: str
    merged: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A row put into a slice or out of it.

    Parameters
    ----------
    slice, item : str
        The slice, and the row's id.
    inside : bool, optional
        None: as the method had it.
    person, key : str
        Who, and the key of the line.
    """

    slice: str
    item: str
    inside: bool | None
    person: str
    key: str = field(default_factory=new_key)

    def __post_init__(self) -> None:
        check_texts(self, ("slice", "item", "person", "key"))
        if self.inside is not None and not isinstance(self.inside, bool):
            raise InputError(f"`inside` must be true, false or None; got {self.inside!r}")


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Rows that a person drew a loop around.

    Parameters
    ----------
    name : str
        Of the new slice.
    items : tuple of str
        Ids of rows.
    person, key : str
        Who, and the key of the line.
    """

    name: str
    items: tuple[str, ...]
    person: str
    key: str = field(default_factory=new_key)

    def __post_init__(self) -> None:
        check_texts(self, ("name", "person", "key"))
        if isinstance(self.items, str) or not isinstance(self.items, Iterable):
            raise InputError(f"`items` must be a list of row ids; got {self.items!r}")
        items = tuple(dict.fromkeys(self.items))
        if not items:
            raise InputError("a drawn slice needs at least one row; draw a loop around some")
        for item in items:
            check_text("item", item)
        object.__setattr__(self, "items", items)


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A person's own hypothesis, and how often the rows that match it are wrong.

    Parameters
    ----------
    text : str
        As it was written.
    kind : str
        "words" or "condition".
    n, errors, rest_n, rest_errors : int
        Held-out rows that match, and the others, with their errors.
    person : str
        Who tested it.
    slice : str, optional
        That it is about.
    key : str
        Of the line.
    """

    text: str
    kind: HypothesisKind
    n: int
    errors: int
    rest_n: int
    rest_errors: int
    person: str
    slice: str | None = None
    key: str = field(default_factory=new_key)

    def __post_init__(self) -> None:
        check_texts(self, ("text", "person", "key"))
        check_choice("kind", self.kind, HypothesisKind)
        if self.slice is not None:
            check_text("slice", self.slice)
        for errors, n in (("errors", "n"), ("rest_errors", "rest_n")):
            part = getattr(self, errors)
            total = getattr(self, n)
            if type(part) is not int or type(total) is not int or not 0 <= part <= total < MOST_ROWS:
                raise InputError(f"`{errors}` of `{n}` must be whole numbers, 0 to `{n}`; got {part!r} of {total!r}")


def check_texts(entry: Any, names: Iterable[str]) -> None:
    """Some fields of an entry are texts, and its key is none that undoes."""
    for name in names:
        check_text(name, getattr(entry, name))
    if entry.key.startswith(UNDO):
        raise InputError(f"`key` must not start with {UNDO!r}, which the log reserves; got {entry.key!r}")


def check_text(name: str, value: Any, may_be_empty: bool = False) -> None:
    """A text that every database can store: no NUL, no half of a character."""
    longest = LONGEST[{"slice": "queue", "into": "queue"}.get(name, name)]
    if not isinstance(value, str) or not (may_be_empty or value.strip()):
        raise InputError(f"`{name}` must be a text that is not empty; got {value!r}")
    if len(value) > longest:
        raise InputError(f"`{name}` may have {longest} characters; got {len(value)}; shorten it")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InputError(f"`{name}` has a character that cannot be saved (NUL or half of a pair); got {value!r}")


def check_choice(name: str, value: Any, choices: Any) -> None:
    """A value is one of a Literal's."""
    if value not in get_args(choices):
        raise unknown(name, str(value), get_args(choices))


def check_answer(task: Task, answer: Any) -> None:
    """An answer has the form of its task."""
    if task == "member" and answer not in ("in", "out"):
        raise InputError(f'the answer to "member" must be "in" or "out"; got {answer!r}')
    if task == "class":
        _check_label(answer)
    if task == "region":
        if not isinstance(answer, Mapping) or set(answer) != {"failure", "label"}:
            raise InputError(f'the answer to "region" must have `failure` and `label`; got {answer!r}')
        if not isinstance(answer["failure"], bool):
            raise InputError(f"`failure` must be true or false; got {answer['failure']!r}")
        _check_label(answer["label"])
    if task == "questionnaire" and (not isinstance(answer, Mapping) or not answer):
        raise InputError(f'the answer to "questionnaire" must map questions to answers; got {answer!r}')
    if len(as_json(answer)) > LONGEST_ANSWER:
        raise InputError(f"an answer may have {LONGEST_ANSWER} characters as JSON; got {len(as_json(answer))}")


def _check_label(label: Any) -> None:
    if isinstance(label, str):
        check_text("name", label)
    elif label is not None and (type(label) is not int or label < 0):
        raise InputError(f"a class must be its index, its name, or None for none of the above; got {label!r}")


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InputError(f"`seconds` must be a number of at least 0, or None; got {value!r}")
    return float(min(value, MAX_SECONDS))


def as_json(answer: Any) -> str:
    """An answer as JSON: one text for equal answers."""
    try:
        return json.dumps(answer, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"an answer must be plain JSON ({error})") from error
