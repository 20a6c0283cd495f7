"""What people enter, checked on entry (answers, decisions, edits, drawings, hypotheses), and what is saved of it."""

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
Decided = Literal["accepted", "rejected", "merged", "undecided"]
HypothesisKind = Literal["words", "condition"]

# The longest texts, in characters; the columns of the database follow.
LONGEST = {"key": 95, "queue": 200, "item": 1000, "person": 100, "name": 200, "note": 4000, "text": 1000}
LONGEST_ANSWER = 20_000  # as JSON
MOST_ROWS = 2**53
LONGEST_WAIT = 1e9  # seconds; who left the page open for thirty years did not think that long
UNDO = "undo:"  # begins the key of an undoing entry: undoing twice is undoing once


class Conflict(ErrataError):
    """Somebody else decided since: both versions, and nothing overwritten."""

    def __init__(self, mine: Decision, seen: int, theirs: Standing) -> None:
        since = f"{theirs.person} at {theirs.at}" if theirs.version else "nobody"
        super().__init__(
            f"slice `{mine.slice}` is at version {theirs.version}, decided by {since}, and yours was made on version "
            f"{seen}; nothing was overwritten; look at it and decide again"
        )
        self.mine, self.seen, self.theirs = mine, seen, theirs


def new_key() -> str:
    return str(uuid.uuid4())


def now() -> str:
    """UTC, to the microsecond, always equally long: in the order of texts is in the order of time."""
    return iso(datetime.now(UTC))


def iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """One answer of one person to one question about one item.

    `answer`, by task: "class" a class's index or name, or None for none of the above; "member" "in" or "out"; "region"
    {"failure": bool, "label": as for class}; "questionnaire" what was asked and said. With `settles` it ends a
    disagreement, and is not one more opinion.
    """

    queue: str  # what is being labelled: a slice, a region, "hypothesis:…"
    item: str  # a row's id, or a sample's number, as text
    person: str
    task: Task
    answer: Any
    seconds: float | None = None  # that the person took
    settles: bool = False
    key: str = field(default_factory=new_key)  # made by whoever asks: a post sent twice is one answer

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
    """A line of the log of annotations, as saved."""

    number: int  # lines are in this order
    key: str
    queue: str
    item: str
    person: str
    task: Task
    answer: Any  # None in a line that undoes
    seconds: float | None
    settles: bool
    undoes: str | None  # the key of the line that this one takes back
    at: str
    repeated: bool = False  # the key was saved before: this is what was saved then


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a person makes of a slice. The whole of it: what is left out is empty, not as before."""

    slice: str
    decision: Decided
    person: str
    name: str | None = None  # None: the one that the machine made
    note: str = ""
    into: str | None = None  # of a merged one
    key: str = field(default_factory=new_key)

    def __post_init__(self) -> None:
        check_texts(self, ("slice", "person", "key"))
        check_choice("decision", self.decision, Decided)
        if self.name is not None:
            check_text("name", self.name)
        check_text("note", self.note, may_be_empty=True)
        if (self.into is not None) != (self.decision == "merged"):
            raise InputError(f"`into` names the other slice of a merged one, and of no other; got {self.into!r}")
        if self.into is not None:
            check_text("into", self.into)


@dataclass(frozen=True)
class Standing:
    """A slice and the last decision about it; version 0 where there is none."""

    slice: str
    kind: Literal["found", "drawn"]
    made_name: str  # by the machine, or by who drew it
    version: int
    decision: Decided
    name: str | None
    note: str
    into: str | None
    person: str | None
    at: str | None

    @property
    def title(self) -> str:
        return self.made_name if self.name is None else self.name


@dataclass(frozen=True)
class Accepted:
    """A slice that a person accepted: what gates and fixes start from."""

    slice: str
    kind: Literal["found", "drawn"]
    name: str
    renamed: bool  # by a person; else the name is still the one it was made with
    note: str
    person: str
    at: str
    merged: tuple[str, ...]  # the slices that people merged into it, at once or by way of others


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A row put into a slice or out of it; None: back to what it was found as."""

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
    """Rows that a person drew a loop around."""

    name: str
    items: tuple[str, ...]  # ids of rows
    person: str
    key: str = field(default_factory=new_key)

    def __post_init__(self) -> None:
        check_texts(self, ("name", "person", "key"))
        if isinstance(self.items, str) or not isinstance(self.items, Iterable):
            raise InputError(f"`items` must be a list of row ids; got {self.items!r}")
        items = tuple(dict.fromkeys(self.items))
        if not items:
            raise InputError("a drawn slice needs at least one row; draw a loop that holds some")
        for item in items:
            check_text("item", item)
        object.__setattr__(self, "items", items)


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A person's own hypothesis, and how often the rows that match it are wrong."""

    text: str
    kind: HypothesisKind
    n: int
    errors: int
    rest_n: int
    rest_errors: int
    person: str
    slice: str | None = None  # that it was made about, where it was
    key: str = field(default_factory=new_key)

    def __post_init__(self) -> None:
        check_texts(self, ("text", "person", "key"))
        check_choice("kind", self.kind, HypothesisKind)
        if self.slice is not None:
            check_text("slice", self.slice)
        for errors, n in (("errors", "n"), ("rest_errors", "rest_n")):
            few, many = getattr(self, errors), getattr(self, n)
            if type(few) is not int or type(many) is not int or not 0 <= few <= many < MOST_ROWS:
                raise InputError(f"`{errors}` of `{n}` must be whole numbers, 0 to `{n}`; got {few!r} of {many!r}")


def check_texts(entry: Any, names: Iterable[str]) -> None:
    for name in names:
        check_text(name, getattr(entry, name))
    if entry.key.startswith(UNDO):
        raise InputError(f"`key` must not begin with {UNDO!r}, which the log keeps for itself; got {entry.key!r}")


def check_text(name: str, value: Any, may_be_empty: bool = False) -> None:
    """A text that every database can hold: no NUL, no half of a character."""
    most = LONGEST[{"slice": "queue", "into": "queue"}.get(name, name)]
    if not isinstance(value, str) or not (may_be_empty or value.strip()):
        raise InputError(f"`{name}` must be a text that is not empty; got {value!r}")
    if len(value) > most:
        raise InputError(f"`{name}` may have {most} characters; got {len(value)}; shorten it")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise InputError(f"`{name}` has a character that cannot be saved (NUL or half of a pair); got {value!r}")


def check_choice(name: str, value: Any, choices: Any) -> None:
    if value not in get_args(choices):
        raise unknown(name, str(value), get_args(choices))


def check_answer(task: Task, answer: Any) -> None:
    if task == "member" and answer not in ("in", "out"):
        raise InputError(f'the answer to "member" is "in" or "out"; got {answer!r}')
    if task == "class":
        _check_label(answer)
    if task == "region":
        if not isinstance(answer, Mapping) or set(answer) != {"failure", "label"}:
            raise InputError(f'the answer to "region" has `failure` and `label`; got {answer!r}')
        if not isinstance(answer["failure"], bool):
            raise InputError(f"`failure` must be true or false; got {answer['failure']!r}")
        _check_label(answer["label"])
    if task == "questionnaire" and (not isinstance(answer, Mapping) or not answer):
        raise InputError(f'the answer to "questionnaire" maps what was asked to what was said; got {answer!r}')
    if len(as_json(answer)) > LONGEST_ANSWER:
        raise InputError(f"an answer may have {LONGEST_ANSWER} characters as JSON; got {len(as_json(answer))}")


def _check_label(label: Any) -> None:
    if isinstance(label, str):
        check_text("name", label)
    elif label is not None and (type(label) is not int or label < 0):
        raise InputError(f"a class is its index, its name, or None for none of the above; got {label!r}")


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InputError(f"`seconds` must be a number of at least 0, or None; got {value!r}")
    return float(min(value, LONGEST_WAIT))


def as_json(answer: Any) -> str:
    """One text for equal answers."""
    try:
        return json.dumps(answer, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"an answer must be plain JSON ({error})") from error
