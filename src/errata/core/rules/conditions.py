"""One condition on one metadata column, and conjunctions of them: in words, as a pandas query, as SQL.

A condition is an interval (`low` inclusive, `high` exclusive) or a set of values, and says whether rows without a value
match too. Missing is a value: a condition may be on it alone. Words parse in the grammar of hypotheses:

    age < 5                             race = a                    site is missing
    age >= 20 and age < 30              race in (a, "b c")          site is not missing
    age < 5 or age is missing           race not in (a, b)          flag = true

A condition that is an `or` stands in parentheses within a conjunction.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..blocks import Array
from ..columns import as_text, format_value, present_values, type_column
from ..errors import InputError
from ..evaluation import Evaluation
from ..scope import check_scope

KIND = "conditions"  # of a slice's rule that is a conjunction
PLAIN = re.compile(r"[^\W_][\w.-]*|_\w[\w.-]*|-?\d[\d.]*")  # words that need no quotes
RESERVED = frozenset({"and", "or", "not", "in", "contains", "is", "missing"})
FEW = 8  # values that are compared one by one, which is faster than looking them up

Value = bool | float | str


@dataclass(frozen=True)
class Condition:
    """A condition on one metadata column.

    Infinite numbers count as missing, as in hypotheses. Text compares exactly, with its case and its spaces.

    Parameters
    ----------
    column : str
        The name of the column.
    low, high : float or str, optional
        An interval: from `low` on, and below `high`; None for no bound. Text compares by its letters, as dates do.
    values : tuple of bool, float or str, optional
        A set of values, all of one type; None for an interval. Without any, and without bounds, the condition is on
        missing values alone: `()` in a column of text, None in one of numbers.
    negated : bool
        Whether rows with any other value match instead of those in `values`.
    missing : bool
        Whether rows without a value match too.

    Examples
    --------
    >>> from errata.core.rules import Condition
    >>> Condition("age", low=20, high=30, missing=True).text
    '(age >= 20 and age < 30) or age is missing'
    >>> Condition("race", values=("a", "b c")).to_sql()
    '"race" IN (\\'a\\', \\'b c\\')'
    """

    column: str
    low: float | str | None = None
    high: float | str | None = None
    values: tuple[Value, ...] | None = None
    negated: bool = False
    missing: bool = False

    def matches(self, evaluation: Evaluation) -> Array:
        """(n,) bool: the rows that meet the condition; an InputError where the column is missing or of another type."""
        if self.column not in evaluation.metadata:
            raise InputError(f"a rule reads the column `{self.column}`, which these rows do not have; add it")
        return self.matches_array(np.asarray(evaluation.metadata[self.column]))

    def matches_array(self, array: Array) -> Array:
        """(n,) bool: the same for the values of the column. Parameters as of `matches`."""
        present = present_values(array)
        if self.on_missing:
            inside = np.full(len(array), self.negated)
        elif self._of_numbers:
            inside = self._match_numbers(array, present)
        elif self.values is None:
            inside = _within(as_text(array), self.low, self.high)
        else:
            inside = _among(_comparable(array, self.values), self._keys) ^ self.negated
        inside &= present
        if self.missing:
            inside |= ~present
        return inside

    def _match_numbers(self, array: Array, present: Array) -> Array:
        column = type_column(self.column, array)
        if column.kind == "text":
            if present.any():
                raise InputError(f"a rule compares the column `{self.column}` with numbers; these rows hold text in it")
            return np.zeros(len(array), dtype=bool)
        if self.values is None:
            return _within(column.values, self.low, self.high)
        return _among(column.values, self._keys) ^ self.negated

    @property
    def _of_numbers(self) -> bool:
        """Whether bounds or values are numbers."""
        compared: list[Any] = [self.low, self.high, *(self.values or ())]
        return any(isinstance(value, int | float) and not isinstance(value, bool) for value in compared)

    @property
    def _keys(self) -> list[Any]:
        """The values as rows are compared with them: true and false as text, which is how most files hold them."""
        values: list[Any] = list(self.values or ())
        if any(isinstance(value, bool) for value in values):
            return [str(value).lower() for value in values]
        return values

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: `column`, then `low` and `high`, or `values` and `negated`, and `missing`."""
        if self.values is None:
            return {"column": self.column, "low": self.low, "high": self.high, "missing": self.missing}
        return {
            "column": self.column,
            "values": list(self.values),
            "negated": self.negated,
            "missing": self.missing,
        }

    @property
    def on_missing(self) -> bool:
        """Whether it asks for nothing but that a value is missing or, negated, that there is one."""
        return not self.values and not self._bounds

    @property
    def text(self) -> str:
        """In the grammar of hypotheses, as a person reads it."""
        name = _quoted_word(self.column)
        if self.on_missing:
            return f"{name} is {'not ' * self.negated}missing"
        if self.values is None:
            main = " and ".join(f"{name} {op} {_word(bound)}" for op, bound in self._bounds)
        else:
            main = self._values_text(name)
        if not self.missing:
            return main
        if len(self._bounds) > 1:
            main = f"({main})"
        return f"{main} or {name} is missing"

    def _values_text(self, name: str) -> str:
        words = list({str(value).strip().lower(): _word(value) for value in reversed(self.values or ())}.values())[::-1]
        if len(words) == 1:
            return f"{name} {'!' * self.negated}= {words[0]}"
        return f"{name} {'not ' * self.negated}in ({', '.join(words)})"

    @property
    def _bounds(self) -> list[tuple[str, float | str]]:
        bounds = ((">=", self.low), ("<", self.high))
        return [(op, bound) for op, bound in bounds if bound is not None]

    @property
    def _of_text(self) -> bool:
        """Whether empty text may stand for a missing value."""
        if self.values is not None:
            return all(isinstance(value, str) for value in self.values)
        return any(isinstance(bound, str) for _, bound in self._bounds)

    @property
    def _below_text(self) -> bool:
        """Whether empty text, which is missing, would compare as smaller."""
        return self.low is None and isinstance(self.high, str)

    def to_pandas(self) -> str:
        """A condition for `DataFrame.query`."""
        return self._written(PANDAS)

    def to_sql(self) -> str:
        """A condition of standard SQL, for a WHERE clause."""
        return self._written(SQL)

    def _written(self, words: Dialect) -> str:
        name = words.name(self.column)
        missing = words.missing.format(name)
        present = words.present.format(name)
        if self._of_text:
            missing = f"{missing} {words.either} {name} {words.equal} ''"
            present = f"{present} {words.both} {name} {words.unequal} ''"
        if self.on_missing:
            return present if self.negated else missing
        if self.values is None:
            main = f" {words.both} ".join(f"{name} {op} {words.value(bound)}" for op, bound in self._bounds)
        elif len(self.values) == 1:
            main = f"{name} {words.equal} {words.value(self.values[0])}"
        else:
            main = words.among.format(name, ", ".join(map(words.value, self.values)))
        if self.negated:
            main = f"{words.neither} ({main}) {words.both} {present}"
        elif self._below_text:
            main = f"{main} {words.both} {name} {words.unequal} ''"
        if not self.missing:
            return main
        return f"({main}) {words.either} {missing}"


def from_json(value: Mapping[str, Any]) -> Condition:
    """The condition that `Condition.to_json` wrote; an InputError where a damaged file has something else."""
    if not isinstance(value, Mapping) or "column" not in value:
        raise InputError(f"a condition of a rule must name a column; got {value!r}; write its audit again")
    values = value.get("values")
    if values is not None:
        values = tuple(values)
    for compared in (value.get("low"), value.get("high"), *(values or ())):
        if compared is not None and not isinstance(compared, str | int | float):
            raise InputError(f"a condition of a rule compares with texts and numbers; got {compared!r}")
    return Condition(
        str(value["column"]),
        value.get("low"),
        value.get("high"),
        values,
        bool(value.get("negated", False)),
        bool(value.get("missing", False)),
    )


def read_rule(rule: Mapping[str, Any]) -> tuple[Condition, ...]:
    """The conditions of a slice's rule; none where it is a rule of another kind."""
    if rule.get("kind") != KIND:
        return ()
    return tuple(from_json(condition) for condition in rule["conditions"])


def check_rule(rule: Any) -> None:
    """An InputError where the rule of a slice, read from a file that may be damaged, is none that rows can meet."""
    if not isinstance(rule, Mapping):
        raise InputError(f"the rule of a slice must be a mapping; got {rule!r:.40}; run the audit again")
    check_scope(rule.get("scope"))
    read_rule(rule)


def match_all(conditions: Sequence[Condition], evaluation: Evaluation) -> Array:
    """(n,) bool: the rows that meet all conditions."""
    inside = np.ones(len(evaluation), dtype=bool)
    for condition in conditions:
        inside &= condition.matches(evaluation)
    return inside


def to_text(conditions: Sequence[Condition]) -> str:
    """A conjunction in the grammar of hypotheses."""
    return " and ".join(_factor(condition.text, condition, conditions) for condition in conditions)


def to_pandas(conditions: Sequence[Condition]) -> str:
    """A conjunction for `DataFrame.query`."""
    return " and ".join(_factor(condition.to_pandas(), condition, conditions) for condition in conditions)


def to_sql(conditions: Sequence[Condition]) -> str:
    """A conjunction for the WHERE clause of a SQL query."""
    return " AND ".join(_factor(condition.to_sql(), condition, conditions) for condition in conditions)


def _factor(written: str, condition: Condition, conditions: Sequence[Condition]) -> str:
    """A condition as it stands among others: in parentheses where it is an `or`."""
    alone = len(conditions) == 1 or not condition.missing or written == f"{_quoted_word(condition.column)} is missing"
    return written if alone else f"({written})"


def _within(values: Array, low: Any, high: Any) -> Array:
    inside = np.ones(len(values), dtype=bool)
    if low is not None:
        inside &= values >= low
    if high is not None:
        inside &= values < high
    return inside


def _among(array: Array, values: Sequence[Any]) -> Array:
    if len(values) > FEW:
        return np.isin(array, np.array(values))
    inside = np.zeros(len(array), dtype=bool)
    for value in values:
        inside |= array == value
    return inside


def _comparable(array: Array, values: Sequence[Any]) -> Array:
    """The rows as text: in lower case beside true and false, whole numbers without a point beside text."""
    if isinstance(values[0], bool):
        return np.char.lower(np.char.strip(as_text(array)))
    if array.dtype.kind == "f":
        return np.array([format_value(value) for value in np.where(np.isfinite(array), array, 0.0).tolist()])
    return as_text(array)


def _word(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _quoted_word(value.strip())
    return format_value(float(value))


def _quoted_word(text: str) -> str:
    if PLAIN.fullmatch(text) and text.lower() not in RESERVED:
        return text
    return '"' + text.replace('"', '""') + '"'


def _pandas_name(column: str) -> str:
    if column.isidentifier() and not keyword.iskeyword(column):
        return column
    return "`" + column.replace("`", "``") + "`"


def _pandas_value(value: Any) -> str:
    if isinstance(value, str):
        return repr(value)
    return _python_number(value)


def _sql_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return _python_number(value)


def _python_number(value: float | bool) -> str:
    if isinstance(value, bool):
        return str(value)
    return format_value(float(value))


def _sql_name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


@dataclass(frozen=True)
class Dialect:
    """How a language writes conditions: names and values, and its words for what they are joined by."""

    name: Callable[[str], str]
    value: Callable[[Any], str]
    missing: str
    present: str
    among: str
    equal: str
    unequal: str
    both: str
    either: str
    neither: str


PANDAS = Dialect(_pandas_name, _pandas_value, "{}.isna()", "{}.notna()", "{} in [{}]", "==", "!=", "and", "or", "not")
SQL = Dialect(_sql_name, _sql_value, "{} IS NULL", "{} IS NOT NULL", "{} IN ({})", "=", "<>", "AND", "OR", "NOT")
