"""What people made of one slice: their decision, what they merged into it, which rows they moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .questionnaire import QuestionnaireAnswer

if TYPE_CHECKING:
    from .audit import Slice

DecisionWord = Literal["accepted", "rejected", "merged", "undecided"]


@dataclass(frozen=True)
class Decided:
    """The last decision about a slice.

    Attributes
    ----------
    decision : str
        "accepted", "rejected", "merged" or "undecided".
    name : str, optional
        That a person gave it.
    note : str
        Free text.
    into : str, optional
        Of a merged slice: the id of the other one.
    person, at : str
        Who decided and when; "" where people are left out.
    """

    decision: DecisionWord = "undecided"
    name: str | None = None
    note: str = ""
    into: str | None = None
    person: str = ""
    at: str = ""


@dataclass(frozen=True)
class Said:
    """What people answered about the rows of a slice, to one task.

    Attributes
    ----------
    task : str
        "class", "member" or "questionnaire".
    people, rows : int
        How many people answered, and how many rows have an answer.
    answers : mapping
        Id of a row, as text -> what most people answer; rows on which they tie are not in it.
    both, same : int
        Rows that two or more people answered, and those to which all gave the same answer.
    interval : (float, float)
        Of `same / both`: Wilson's, 95%.
    kappa : float, optional
        Cohen's, averaged over pairs of people.
    words : tuple of str
        Descriptions in people's own words.
    filled : tuple of QuestionnaireAnswer
        Of a questionnaire: every answer, in the order they were given.
    filled_as : tuple of int
        The number of each of them in the log: between questionnaires, too, a later answer has a higher one.
    """

    task: str
    people: int
    rows: int
    answers: Mapping[str, Any]
    both: int
    same: int
    interval: tuple[float, float]
    kappa: float | None
    words: tuple[str, ...] = ()
    filled: tuple[QuestionnaireAnswer, ...] = ()
    filled_as: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Judged:
    """What people made of a slice.

    Attributes
    ----------
    decided : Decided
        The last decision about it.
    found : Slice
        The slice as the audit found it: its name, its rows, and the numbers that its verdict is about.
    merged : tuple of Slice
        Those that people merged into it, directly or by way of others, as they were found.
    put_in, put_out : int
        Rows that it has and had not, and the other way round, by single moves of people.
    said : tuple of Said
        What they answered about its rows.
    """

    decided: Decided
    found: Slice
    merged: tuple[Slice, ...] = ()
    put_in: int = 0
    put_out: int = 0
    said: tuple[Said, ...] = ()

    @property
    def edited(self) -> bool:
        """Whether people moved rows. They may have seen the outcomes: its rate is then no clean confirmation."""
        return bool(self.put_in or self.put_out)

    @property
    def changed(self) -> bool:
        """Whether its rows are others than those that were found."""
        return self.edited or bool(self.merged)
