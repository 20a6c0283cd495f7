"""Conditions on the columns of an evaluation: `size = big and (age > 60 or site in (a, b))`.

    condition   terms joined by `or`; a term is factors joined by `and`, which binds tighter
    factor      `not` factor, a condition in parentheses, or a predicate
    predicate   column = value (also != < <= > >=), column [not] in (value, value), column is [not] missing,
                column [not] contains value, column [not] contains "value" or "value"

Columns are the metadata and `label`, `prediction`, `id`, `text`, which take precedence over metadata of the same name.
Names and values may be quoted, and must be where they contain an operator, `and` or `or`. Numbers compare as numbers,
text ignoring case; `contains` looks for a substring, and in `text`, the rows' own texts, for whole words that follow
each other. A missing value matches neither a predicate nor its negation, except that of `is missing`. Text without any
operator is not a condition but words. `report/static/hypothesis_grammar.js` is the same grammar in a page; both are
tested with the same files of cases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.blocks import Array
from ..core.columns import TypedColumn, format_value, parse_number
from ..core.errors import InputError
from ..core.evaluation import Evaluation
from ..core.words import WORD, words_of
from .columns import (
    AnyColumn,
    TextColumn,
    column_names,
    find_column,
    nearest_number,
    nearest_word,
    quoted_list,
    read_column,
)

MISSING = "is missing"  # an operator without a value
MAX_DEPTH = 50  # of nested parentheses and `not`
QUOTES = "\"'“"
SPELLINGS = {"==": "=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}
TOKEN = re.compile(
    r"""\s+ | (?P<quoted> "(?:[^"]|"")*" | '(?:[^']|'')*' | “[^”]*” ) | (?P<op> <=|>=|!=|==|<>|[=<>≠≤≥] )
    | (?P<mark> [(),] ) | (?P<word> (?:(?!!=)[^\s(),<>=≠≤≥])+ )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """A word, a quoted text, an operator or a mark of a condition.

    Attributes
    ----------
    kind : str
        "word", "quoted", "op" or "mark".
    text : str
        As written, with its quotation marks.
    """

    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these words, ignoring case."""
        return self.kind == "word" and self.text.lower() in words


@dataclass(frozen=True, eq=False)
class RowMatches:
    """Three values: a row matches, does not match, or neither, where a value is missing.

    Attributes
    ----------
    yes : Array
        (n,) bool: rows that match.
    no : Array
        (n,) bool: rows that do not match.
    """

    yes: Array
    no: Array


@dataclass(frozen=True)
class Predicate:
    """A column compared with values: numbers of a number column, lower-case text of a text column.

    Attributes
    ----------
    column : str
        Its name.
    op : str
        = != < <= > >= in contains, or `is missing`.
    values : tuple[float | str, ...]
        One value, several after `in` and `contains`, none after `is missing`.
    text : str
        As it was written.
    """

    column: str
    op: str
    values: tuple[float | str, ...]
    text: str

    def match_rows(self, evaluation: Evaluation) -> RowMatches:
        """The rows of an evaluation that match; an InputError where its column differs in type."""
        column = read_column(evaluation, self.column)
        if self.op == MISSING:
            return RowMatches(~column.present, column.present)
        if column.kind == "number" and any(isinstance(value, str) for value in self.values):
            raise InputError(f"Column “{self.column}” holds numbers; “{self.values[0]}” is not one.")
        yes = column.present & column.matches(self.op, self.values)
        return RowMatches(yes, column.present & ~yes)

    def predicates(self) -> tuple[Predicate, ...]:
        """Itself."""
        return (self,)

    def to_json(self) -> dict[str, object]:
        """Plain JSON."""
        return {"op": self.op, "column": self.column, "values": list(self.values)}


@dataclass(frozen=True)
class Not:
    """The negation of a condition.

    Attributes
    ----------
    part : Node
        The condition that is negated.
    """

    part: Node

    def match_rows(self, evaluation: Evaluation) -> RowMatches:
        """The rows that the part does not match."""
        matches = self.part.match_rows(evaluation)
        return RowMatches(matches.no, matches.yes)

    def predicates(self) -> tuple[Predicate, ...]:
        """Those of its part."""
        return self.part.predicates()

    def to_json(self) -> dict[str, object]:
        """Plain JSON."""
        return {"op": "not", "parts": [self.part.to_json()]}


@dataclass(frozen=True)
class Joined:
    """Conditions joined by `and` or by `or`.

    Attributes
    ----------
    op : str
        "and" or "or".
    parts : tuple[Node, ...]
        At least two.
    """

    op: str
    parts: tuple[Node, ...]

    def match_rows(self, evaluation: Evaluation) -> RowMatches:
        """The rows that all parts match, or any of them."""
        matches, *others = (part.match_rows(evaluation) for part in self.parts)
        for other in others:
            if self.op == "and":
                matches = RowMatches(matches.yes & other.yes, matches.no | other.no)
            else:
                matches = RowMatches(matches.yes | other.yes, matches.no & other.no)
        return matches

    def predicates(self) -> tuple[Predicate, ...]:
        """Those of all parts, in the order they were written."""
        return tuple(predicate for part in self.parts for predicate in part.predicates())

    def to_json(self) -> dict[str, object]:
        """Plain JSON."""
        return {"op": self.op, "parts": [part.to_json() for part in self.parts]}


Node = Predicate | Not | Joined


def node_from_json(facts: Mapping[str, Any]) -> Node:
    """A condition from what `to_json` gave: it can be asked of rows in which its values do not occur."""
    if facts["op"] == "not":
        return Not(node_from_json(facts["parts"][0]))
    if facts["op"] in ("and", "or"):
        return Joined(facts["op"], tuple(node_from_json(part) for part in facts["parts"]))
    values = tuple(facts["values"])
    return Predicate(facts["column"], facts["op"], values, f"{facts['column']} {facts['op']} {values}")


def tokenize(text: str) -> list[Token]:
    """A text as tokens, without its spaces."""
    return [Token(match.lastgroup, match.group()) for match in TOKEN.finditer(text) if match.lastgroup is not None]


def is_condition(tokens: list[Token]) -> bool:
    """Whether there is an operator anywhere; without one the text is words."""
    return any(token.kind == "op" or (i > 0 and _starts_operator(tokens, i)) for i, token in enumerate(tokens))


def _starts_operator(tokens: list[Token], i: int) -> bool:
    """`contains`, `in (` or `is [not] missing`: elsewhere "in" and "is" are words like others."""
    if tokens[i].is_word("is"):
        return _length_of_missing(tokens, i) > 0
    opens = i + 1 < len(tokens) and tokens[i + 1].text == "("
    return tokens[i].is_word("contains") or (tokens[i].is_word("in") and opens)


def _length_of_missing(tokens: list[Token], i: int) -> int:
    """How many words of `is missing` or `is not missing` start here; 0 where neither does."""
    for words in (("is", "missing"), ("is", "not", "missing")):
        here = tokens[i : i + len(words)]
        if len(here) == len(words) and all(map(Token.is_word, here, words)):
            return len(words)
    return 0


class Parser:
    """One pass over the tokens of a condition; every mistake is one sentence.

    Parameters
    ----------
    tokens : list of Token
        A condition: at least one of them is an operator.
    evaluation : Evaluation
        Its columns are those that the condition may name.
    """

    def __init__(self, tokens: list[Token], evaluation: Evaluation):
        self.tokens = tokens
        self.evaluation = evaluation
        self.at = 0
        self.depth = 0

    def parse(self) -> Node:
        """The condition as a tree; an InputError for what cannot be read."""
        for token in self.tokens:
            if token.kind == "word" and token.text[0] in QUOTES:
                raise InputError("A quotation mark is not closed.")
        node = self._condition()
        if self._is_mark(")"):
            raise InputError("A parenthesis is closed that was never opened.")
        if self.at < len(self.tokens):
            raise InputError(f"“and” or “or” is missing before “{self.tokens[self.at].text}”.")
        return node

    def _condition(self) -> Node:
        return self._joined("or", lambda: self._joined("and", self._factor))

    def _joined(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self._is_word(word):
            self.at += 1
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        return Joined(word, tuple(parts))

    def _factor(self) -> Node:
        if not self._is_word("not") and not self._is_mark("("):
            return self._predicate()
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise InputError(f"Parentheses and “not” are nested more than {MAX_DEPTH} deep.")
        negated = self._is_word("not")
        self.at += 1
        node = Not(self._factor()) if negated else self._until_closed()
        self.depth -= 1
        return node

    def _until_closed(self) -> Node:
        """A condition and the parenthesis that closes it."""
        node = self._condition()
        if self.at == len(self.tokens):
            raise InputError("A parenthesis is not closed.")
        if not self._is_mark(")"):
            raise InputError(f"“and” or “or” is missing before “{self.tokens[self.at].text}”.")
        self.at += 1
        return node

    def _predicate(self) -> Node:
        start = self.at
        name, negated = self._name()
        column = read_column(self.evaluation, find_column(name, column_names(self.evaluation)))
        missing = _length_of_missing(self.tokens, self.at)
        if missing:
            op = MISSING
            values: tuple[float | str, ...] = ()
            negated = negated != (missing == len(("is", "not", "missing")))
            self.at += missing
        else:
            op, values = self._comparison(column)
        text = " ".join(token.text for token in self.tokens[start : self.at])
        predicate = Predicate(column.name, op, values, text)
        if negated:
            return Not(predicate)
        return predicate

    def _comparison(self, column: AnyColumn) -> tuple[str, tuple[float | str, ...]]:
        """An operator, and its values in the type of the column."""
        written = self.tokens[self.at]
        op = SPELLINGS.get(written.text, written.text.lower())
        self.at += 1
        if op == "in":
            texts = self._list()
        elif op == "contains":
            texts = self._alternatives()
        else:
            texts = [self._value(op)]
        return op, tuple(_checked_value(column, op, value, quoted) for value, quoted in texts)

    def _name(self) -> tuple[str, bool]:
        """A column's name as it was written, and whether `not` stands between it and its operator."""
        words: list[str] = []
        while self.at < len(self.tokens) and not self._at_operator() and not self._is_word("and", "or"):
            if self.tokens[self.at].kind == "mark":
                break
            words.append(self._unquoted())
        negated = len(words) > 1 and words[-1].lower() == "not" and not self._is_kind("op")
        if negated:
            words = words[:-1]
        if not words:
            if self.at == len(self.tokens):
                raise InputError(f"A condition is missing after “{self.tokens[-1].text}”.")
            raise InputError(f"A column is missing before “{self.tokens[self.at].text}”.")
        if not self._at_operator():
            raise InputError(f"“{' '.join(words)}” is not compared with anything; write “column = value”.")
        return " ".join(words), negated

    def _value(self, op: str) -> tuple[str, bool]:
        """A value as it was written, and whether it was quoted."""
        if self._is_kind("quoted"):
            return self._unquoted(), True
        words = []
        while self._is_kind("word") and not self._is_word("and", "or") and not self._at_operator():
            words.append(self._unquoted())
        if not words:
            raise InputError(f"A value is missing after “{op}”.")
        if self._at_operator():  # the words before it may be a value and a column
            raise InputError(f"“and” or “or” is missing before “{self.tokens[self.at].text}”.")
        return " ".join(words), False

    def _list(self) -> list[tuple[str, bool]]:
        self.at += 1  # the parenthesis that made it an operator
        values = [self._value("(")]
        while self._is_mark(","):
            self.at += 1
            values.append(self._value(","))
        if not self._is_mark(")"):
            raise InputError("A parenthesis is not closed.")
        self.at += 1
        return values

    def _alternatives(self) -> list[tuple[str, bool]]:
        """The value after `contains`, and further ones in quotation marks after `or`."""
        values = [self._value("contains")]
        while values[-1][1] and self._is_word("or") and self._is_whole_value(self.at + 1):
            self.at += 1
            values.append(self._value("or"))
        return values

    def _is_whole_value(self, i: int) -> bool:
        """Whether a quoted text stands there that is a value and no column's name: after it a condition ends."""
        if i >= len(self.tokens) or self.tokens[i].kind != "quoted":
            return False
        return i + 1 == len(self.tokens) or self.tokens[i + 1].is_word("and", "or") or self.tokens[i + 1].text == ")"

    def _unquoted(self) -> str:
        token = self.tokens[self.at]
        self.at += 1
        if token.kind != "quoted":
            return token.text
        mark = token.text[0]
        return token.text[1:-1].replace(mark * 2, mark).strip()

    def _at_operator(self) -> bool:
        return self._is_kind("op") or (self.at < len(self.tokens) and _starts_operator(self.tokens, self.at))

    def _is_kind(self, kind: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].kind == kind

    def _is_word(self, *words: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].is_word(*words)

    def _is_mark(self, mark: str) -> bool:
        return self._is_kind("mark") and self.tokens[self.at].text == mark


def _checked_value(column: AnyColumn, op: str, value: str, quoted: bool) -> float | str:
    """A value in the type of its column: a number, or lower-case text; an InputError where it can match nothing."""
    if isinstance(column, TextColumn):
        return _checked_words(column, op, value)
    number = parse_number(value)
    if column.kind == "number":
        if op == "contains":
            raise InputError(f"Column “{column.name}” holds numbers; “contains” looks in text.")
        if number is None:
            raise InputError(f"Column “{column.name}” holds numbers; “{value}” is not one.")
        if op in ("=", "!=", "in") and not column.matches("=", [number]).any():
            raise _never_occurs(column, value, nearest_number(number, column.distinct()))
        return number
    if op in ("<", "<=", ">", ">=") and number is not None and not quoted:
        raise InputError(f"Column “{column.name}” holds text; “{value}” is a number. Quote it to compare it as text.")
    folded = value.lower()
    if op in ("=", "!=", "in", "contains") and not (column.present & column.matches(op.strip("!"), [folded])).any():
        pieces = column.distinct()
        if op == "contains":
            pieces = [word for text in pieces for word in re.findall(WORD, text)]
        raise _never_occurs(column, value, nearest_word(value, list(dict.fromkeys(pieces))))
    return folded


def _checked_words(column: TextColumn, op: str, value: str) -> str:
    """Words to look for in texts, in lower case with one space between them."""
    words = words_of(value)
    if op != "contains":
        raise InputError("“text” is what the rows say; write “text contains” and words.")
    if not words:
        raise InputError(f"“{value}” has no word to look for.")
    phrase = " ".join(words)
    if not column.matches(op, [phrase]).any():
        known = set(column.distinct())
        missing = next((word for word in words if word not in known), None)
        near = None if missing is None else nearest_word(missing, sorted(known))
        hint = "" if near is None else f" Did you mean “{near}”?"
        raise InputError(f"“{value}” never occurs in “text”.{hint}")
    return phrase


def _never_occurs(column: TypedColumn, value: str, near: float | str | None) -> InputError:
    """The error for a value that its column does not hold, with the nearest that it does."""
    known = column.distinct()
    if isinstance(near, str):
        hint = f"Did you mean “{near}”?"
    elif near is not None:
        hint = f"The nearest is {format_value(near)}."
    elif known:
        hint = f"It holds {quoted_list([format_value(value) for value in known])}."
    else:
        hint = "It is empty."
    return InputError(f"“{value}” never occurs in “{column.name}”. {hint}")
