"""JSON is read as what an annotation says, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import pytest

from errata.core.record import Record, RowNumber, row_numbers
from errata.core.typed import typed


@dataclass(frozen=True)
class Part(Record):
    row: RowNumber
    share: float | None = None


@dataclass(frozen=True)
class Whole(Record):
    parts: tuple[Part, ...]
    rows: tuple[RowNumber, ...]
    count: int = 0
    one: Part | None = None


class Facts(TypedDict):
    n: int


TAKEN: dict[str, tuple[Any, Any, Any]] = {
    "a whole float": (float, 3, 3),
    "a pair": (tuple[float, float], [0, 1.5], (0, 1.5)),
    "many": (tuple[str, ...], ["a", "b"], ("a", "b")),
    "none of them": (tuple[str, ...], [], ()),
    "absent": (float | None, None, None),
    "one of two": (int | str, "a", "a"),
    "a literal": (Literal["hard", "easy"], "easy", "easy"),
    "a mapping": (Mapping[str, int], {"a": 1}, {"a": 1}),
    "anything": (Any, [{}], [{}]),
    "a record": (Part, {"row": 1}, Part(1)),
    "records": (tuple[Part, ...], [{"row": 1, "share": 0.5}], (Part(1, 0.5),)),
    "a dictionary with more keys": (Facts, {"n": 1, "m": "x"}, {"n": 1, "m": "x"}),
}
REFUSED: dict[str, tuple[Any, Any]] = {
    "text for a number": (float, "x"),
    "true for a number": (float, True),
    "true for a whole number": (int, True),
    "a fraction for a whole number": (int, 0.5),
    "infinite": (float, float("inf")),
    "nothing for a number": (float, None),
    "a number for text": (str, 1),
    "text for truth": (bool, "true"),
    "text for a list": (tuple[str, ...], "abc"),
    "a list with another": (tuple[str, ...], ["a", 1]),
    "a pair of three": (tuple[float, float], [0, 1, 2]),
    "no literal": (Literal["hard", "easy"], "soft"),
    "a list for a literal": (Literal["hard", "easy"], ["hard"]),
    "neither of two": (int | str, 0.5),
    "a list for a mapping": (Mapping[str, int], []),
    "a mapping of others": (Mapping[str, int], {"a": "x"}),
    "a list for a record": (Part, [1]),
    "a record with another value": (Part, {"row": "x"}),
    "a dictionary without its key": (Facts, {}),
    "a dictionary with another value": (Facts, {"n": "x"}),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_value_of_its_type_is_taken(name: str) -> None:
    hint, value, expected = TAKEN[name]
    assert typed(hint, value, "x") == expected


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_of_another_type_is_refused(name: str) -> None:
    hint, value = REFUSED[name]
    with pytest.raises(ValueError, match="which it cannot be"):
        typed(hint, value, "x")


def test_a_record_says_which_of_its_values_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"`Whole.count` is 'many', which it cannot be"):
        Whole.from_json({"parts": [], "rows": [], "count": "many"})


def test_every_row_that_a_record_names_is_found() -> None:
    record = Whole((Part(1, 0.5), Part(2)), (7, 8), count=99, one=Part(5))
    assert sorted(row_numbers(record)) == [1, 2, 5, 7, 8]
