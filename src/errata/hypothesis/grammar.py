"""Conditions over what is known of a row: `size = big and (age > 60 or site in (a, b))`.

    condition   term, joined by `or`; a term is made of factors joined by `and`, which binds tighter
    factor      `not` factor, a condition in parentheses, or a comparison
    comparison  column = value (also != < <= > >=), column [not] in (value, value), column [not] contains value

Columns are the metadata and `label`, `prediction`, `id`, which come before metadata of the same name. Names and values
may be quoted, and must be where they hold an operator, `and` or `or`. Numbers compare as numbers, text without regard
to case; `contains` looks for a piece of text. What is missing matches nothing, nor does its negation. Text without
any operator is not a condition but words. `report/static/hypothesis_grammar.js` is the same grammar in a page; both
are tested with one file of cases.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..core.blocks import Array
from ..core.errors import InputError
from ..core.evaluation import Evaluation
from .columns import (
    Column,
    column_names,
    find_column,
    listed,
    nearest_number,
    nearest_word,
    parse_number,
    read_column,
    shown,
)

DEEPEST = 50  # parentheses and `not` within each other
WORD = r"[^\W_]+(?:['’][^\W_]+)*"  # letters and digits of any script; "don't" is one word
QUOTES = "\"'“"
SPELLINGS = {"==": "=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}
TOKEN = re.compile(
    r"""\s+ | (?P<quoted> "(?:[^"]|"")*" | '(?:[^']|'')*' | “[^”]*” ) | (?P<op> <=|>=|!=|==|<>|[=<>≠≤≥] )
    | (?P<mark> [(),] ) | (?P<word> (?:(?!!=)[^\s(),<>=≠≤≥])+ )""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    kind: str  # "word", "quoted", "op", "mark"
    text: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words


@dataclass(frozen=True, eq=False)
class Answer:
    """Three values: a row matches, or does not, or neither, since something is missing."""

    yes: Array  # (n,) bool
    no: Array  # (n,) bool


@dataclass(frozen=True)
class Comparison:
    """One column against values: numbers of a number column, lower-case text of a text column."""

    column: str
    op: str  # = != < <= > >= in contains
    values: tuple[float | str, ...]
    text: str  # as it was written

    def ask(self, evaluation: Evaluation) -> Answer:
        column = read_column(evaluation, self.column)
        if column.kind == "number" and any(isinstance(value, str) for value in self.values):
            raise InputError(f"Column “{self.column}” holds numbers; “{self.values[0]}” is not one.")
        yes = column.present & column.matches(self.op, self.values)
        return Answer(yes, column.present & ~yes)

    def leaves(self) -> tuple[Comparison, ...]:
        return (self,)

    def to_json(self) -> dict[str, object]:
        return {"op": self.op, "column": self.column, "values": list(self.values)}


@dataclass(frozen=True)
class Not:
    part: Node

    def ask(self, evaluation: Evaluation) -> Answer:
        answer = self.part.ask(evaluation)
        return Answer(answer.no, answer.yes)

    def leaves(self) -> tuple[Comparison, ...]:
        return self.part.leaves()

    def to_json(self) -> dict[str, object]:
        return {"op": "not", "parts": [self.part.to_json()]}


@dataclass(frozen=True)
class Joined:
    op: str  # and, or
    parts: tuple[Node, ...]

    def ask(self, evaluation: Evaluation) -> Answer:
        answer, *others = (part.ask(evaluation) for part in self.parts)
        for other in others:
            if self.op == "and":
                answer = Answer(answer.yes & other.yes, answer.no | other.no)
            else:
                answer = Answer(answer.yes | other.yes, answer.no & other.no)
        return answer

    def leaves(self) -> tuple[Comparison, ...]:
        return tuple(leaf for part in self.parts for leaf in part.leaves())

    def to_json(self) -> dict[str, object]:
        return {"op": self.op, "parts": [part.to_json() for part in self.parts]}


Node = Comparison | Not | Joined


def tokens(text: str) -> list[Token]:
    found = []
    for match in TOKEN.finditer(text):
        if match.lastgroup is not None:
            found.append(Token(match.lastgroup, match.group()))
    return found


def is_condition(found: list[Token]) -> bool:
    """Whether there is an operator anywhere; without one the text is words."""
    return any(token.kind == "op" or (i > 0 and _starts_operator(found, i)) for i, token in enumerate(found))


def _starts_operator(found: list[Token], i: int) -> bool:
    """`contains`, or `in (`: elsewhere "in" is a word like others."""
    opens = i + 1 < len(found) and found[i + 1].text == "("
    return found[i].is_word("contains") or (found[i].is_word("in") and opens)


class Parser:
    """One pass over the tokens of a condition; every mistake is one sentence."""

    def __init__(self, found: list[Token], evaluation: Evaluation):
        self.tokens, self.evaluation, self.at, self.depth = found, evaluation, 0, 0

    def parse(self) -> Node:
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
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _factor(self) -> Node:
        if not self._is_word("not") and not self._is_mark("("):
            return self._comparison()
        self.depth += 1
        if self.depth > DEEPEST:
            raise InputError(f"Parentheses and “not” are nested more than {DEEPEST} deep.")
        negated = self._is_word("not")
        self.at += 1
        node = Not(self._factor()) if negated else self._closed()
        self.depth -= 1
        return node

    def _closed(self) -> Node:
        node = self._condition()
        if self.at == len(self.tokens):
            raise InputError("A parenthesis is not closed.")
        if not self._is_mark(")"):
            raise InputError(f"“and” or “or” is missing before “{self.tokens[self.at].text}”.")
        self.at += 1
        return node

    def _comparison(self) -> Node:
        start = self.at
        name, negated = self._name()
        written = self.tokens[self.at]
        op = SPELLINGS.get(written.text, written.text.lower())
        column = read_column(self.evaluation, find_column(name, column_names(self.evaluation)))
        self.at += 1
        given = self._list() if op == "in" else [self._value(op)]
        values = tuple(_checked(column, op, value, quoted) for value, quoted in given)
        text = " ".join(token.text for token in self.tokens[start : self.at])
        node = Comparison(column.name, op, values, text)
        return Not(node) if negated else node

    def _name(self) -> tuple[str, bool]:
        """A column's name as it was written, and whether `not` stands between it and its operator."""
        words: list[str] = []
        while self.at < len(self.tokens) and not self._at_operator() and not self._is_word("and", "or"):
            if self.tokens[self.at].kind == "mark":
                break
            words.append(self._unquoted())
        negated = len(words) > 1 and words[-1].lower() == "not" and not self._is_kind("op")
        words = words[:-1] if negated else words
        if not words:
            raise InputError(self._nothing_named())
        if not self._at_operator():
            raise InputError(f"“{' '.join(words)}” is not compared with anything; write “column = value”.")
        return " ".join(words), negated

    def _nothing_named(self) -> str:
        if self.at == len(self.tokens):
            return f"A condition is missing after “{self.tokens[-1].text}”."
        return f"A column is missing before “{self.tokens[self.at].text}”."

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

    def _unquoted(self) -> str:
        token = self.tokens[self.at]
        self.at += 1
        if token.kind != "quoted":
            return token.text
        mark, inner = token.text[0], token.text[1:-1]
        return inner.replace(mark * 2, mark).strip()

    def _at_operator(self) -> bool:
        return self._is_kind("op") or (self.at < len(self.tokens) and _starts_operator(self.tokens, self.at))

    def _is_kind(self, kind: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].kind == kind

    def _is_word(self, *words: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].is_word(*words)

    def _is_mark(self, mark: str) -> bool:
        return self._is_kind("mark") and self.tokens[self.at].text == mark


def _checked(column: Column, op: str, value: str, quoted: bool) -> float | str:
    """A value as its column holds it: a number, or lower-case text; refused where it can match nothing."""
    number = parse_number(value)
    if column.kind == "number":
        if op == "contains":
            raise InputError(f"Column “{column.name}” holds numbers; “contains” looks in text.")
        if number is None:
            raise InputError(f"Column “{column.name}” holds numbers; “{value}” is not one.")
        if op in ("=", "!=", "in") and number not in (known := column.distinct()):
            raise _never_occurs(column, value, nearest_number(number, known), known)
        return number
    if op in ("<", "<=", ">", ">=") and number is not None and not quoted:
        raise InputError(f"Column “{column.name}” holds text; “{value}” is a number. Quote it to compare it as text.")
    folded = value.lower()
    if op in ("=", "!=", "in", "contains") and not (column.present & column.matches(op.strip("!"), [folded])).any():
        known = column.distinct()
        pieces = [word for text in known for word in re.findall(WORD, text)] if op == "contains" else known
        raise _never_occurs(column, value, nearest_word(value, list(dict.fromkeys(pieces))), known)
    return folded


def _never_occurs(column: Column, value: str, near: float | str | None, known: list[float | str]) -> InputError:
    said = f"“{value}” never occurs in “{column.name}”."
    if near is None:
        return InputError(f"{said} It holds {listed([shown(v) for v in known])}." if known else f"{said} It is empty.")
    hint = f"Did you mean “{near}”?" if isinstance(near, str) else f"The nearest is {shown(near)}."
    return InputError(f"{said} {hint}")
