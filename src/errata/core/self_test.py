"""What an audit's own search finds: in rows where a group was planted, and in rows where there is nothing to find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .record import Record

Kind = Literal["region", "rule"]
ERRORS = "errors"  # `outcome` where an outcome is an error
LOSSES = "losses above the tolerance"


@dataclass(frozen=True)
class PlantedCell(Record):
    """How often groups of one size and gap were found.

    Attributes
    ----------
    share : float
        Of the rows that a planted group holds.
    rows : int
        The same as a number.
    gap : float
        What the group's rate of bad outcomes rose by.
    kind : str
        "region": near rows of the representation. "rule": rows with one or two conditions on columns.
    trials, found : int, int
        Groups that were planted, and those that were found: at least half of a confirmed slice was planted.
    interval : (float, float)
        Of the share that is found: Wilson's, 95%.
    held : float, optional
        The share of a planted group's rows in the slice that found it, on average; None where none was found.
    """

    share: float
    rows: int
    gap: float
    kind: Kind
    trials: int
    found: int
    interval: tuple[float, float]
    held: float | None = None


@dataclass(frozen=True)
class SelfTest(Record):
    """The self-test: groups planted in these rows with patternless outcomes, and the same search.

    Attributes
    ----------
    rows : int
        Rows that were searched and held out, as in the audit.
    repeats : int
        Runs for each gap; each plants one group of each size.
    outcome : str
        "errors", or "losses above the tolerance".
    cells : tuple of PlantedCell
        One for each gap, size and kind, large ones first.
    """

    rows: int
    repeats: int
    outcome: str
    cells: tuple[PlantedCell, ...]


@dataclass(frozen=True)
class NullRun(Record):
    """The null run: the same search where outcomes have no pattern beyond predicted class and confidence.

    Attributes
    ----------
    runs, rows : int, int
        How often, and on how many rows.
    outcome : str
        "errors", or "losses above the tolerance".
    confirmed : int
        Runs with any confirmed slice.
    unexplained : int
        Runs with a confirmed slice that neither class nor confidence explains.
    interval : (float, float)
        Of the share of unexplained ones: Wilson's, 95%.
    worst_rate : float, optional
        The highest rate of a slice on search rows with the real outcomes; None where none was tested.
    reached : int
        Runs in which a slice has that rate on search rows, or a higher one.
    """

    runs: int
    rows: int
    outcome: str
    confirmed: int
    unexplained: int
    interval: tuple[float, float]
    worst_rate: float | None
    reached: int


def describe_self_test(result: SelfTest) -> str:
    """What the search finds, in a sentence."""
    parts = []
    for gap in dict.fromkeys(cell.gap for cell in result.cells):
        shares = sorted({cell.share for cell in result.cells if cell.gap == gap}, reverse=True)
        sizes = [_size_in_words(result.cells, gap, share) for share in shares]
        sizes[0] = sizes[0].replace("% in ", "% of the rows were found in ")
        parts.append(f"with {100 * gap:.0f} points more {result.outcome}, groups {', '.join(sizes)} trials")
    return (
        f"The search, tested by groups planted in these rows: {'; '.join(parts)}. "
        "Found means that at least half of a confirmed slice was planted."
    )


def _size_in_words(cells: Sequence[PlantedCell], gap: float, share: float) -> str:
    """All kinds of groups of one size and gap together: "of 5% in 9 of 10"."""
    same = [cell for cell in cells if cell.gap == gap and cell.share == share]
    found = sum(cell.found for cell in same)
    trials = sum(cell.trials for cell in same)
    return f"of {100 * share:.0f}% in {found} of {trials}"


def describe_null_run(result: NullRun) -> str:
    """What was confirmed where there is nothing to find, in a sentence."""
    runs = result.runs
    beyond = ""
    if result.outcome == ERRORS:
        beyond = " beyond class and confidence"
    lead = f"On {result.rows:,} of these rows with {result.outcome} that have no pattern{beyond}, "
    if not result.confirmed:
        return f"{lead}nothing was confirmed in {runs} of {runs} runs."
    if not result.unexplained:
        return (
            f"{lead}something was confirmed in {result.confirmed} of {runs} runs, "
            "and class or confidence explained it in all of them."
        )
    what = "a slice that neither explains" if beyond else "a slice"
    return f"{lead}{what} was confirmed in {result.unexplained} of {runs} runs."
