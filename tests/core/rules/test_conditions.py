"""Conditions select the same rows by our own reading, in the grammar of hypotheses, in pandas and in SQLite."""

import json
import sqlite3

import numpy as np
import pandas as pd
import pytest

from errata.core import Evaluation, InputError
from errata.core.rules import Condition, from_json, match_all, read_rule, to_pandas, to_sql, to_text
from errata.hypothesis.grammar import Parser, tokenize
from hypothesis import given, settings
from hypothesis import strategies as st

ODD = ["a b", 'it\'s "x"', "", "É", "日本", "or", "x=1", " padded", "5", "a`b", "(c)", "and"]
NAMES = ["age", "odd name", 'q"uote', "class", "é", "a`b", "1st", "and"]


def rows(**columns) -> Evaluation:
    n = len(next(iter(columns.values())))
    return Evaluation(losses=np.zeros(n), metadata=columns)


def frame(evaluation: Evaluation) -> pd.DataFrame:
    """As a user holds the same table: missing values are null."""
    columns = {}
    for name, array in evaluation.metadata.items():
        values = array.tolist()
        columns[name] = [None if value == "" or value != value else value for value in values]
    return pd.DataFrame(columns)


def frame_with_empty_text(evaluation: Evaluation) -> pd.DataFrame:
    """As another user holds it: missing text is empty."""
    return pd.DataFrame(dict(evaluation.metadata))


def by_pandas(query: str, table: pd.DataFrame) -> list[int]:
    return table.query(query).index.tolist()


def by_sqlite(clause: str, table: pd.DataFrame) -> list[int]:
    database = sqlite3.connect(":memory:")
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in table.columns)
    database.execute(f"CREATE TABLE t ({names}, row_number)")
    records = table.astype(object).where(table.notna(), None)
    marks = ", ".join("?" * (len(table.columns) + 1))
    for i, record in enumerate(records.itertuples(index=False)):
        database.execute(f"INSERT INTO t VALUES ({marks})", [*record, i])
    return [row for (row,) in database.execute(f"SELECT row_number FROM t WHERE {clause} ORDER BY row_number")]


def by_grammar(text: str, evaluation: Evaluation) -> list[int]:
    node = Parser(tokenize(text), evaluation).parse()
    return np.flatnonzero(node.match_rows(evaluation).yes).tolist()


def check_everywhere(conditions: list[Condition], evaluation: Evaluation) -> None:
    expected = np.flatnonzero(match_all(conditions, evaluation)).tolist()
    for table in (frame(evaluation), frame_with_empty_text(evaluation)):
        assert by_pandas(to_pandas(conditions), table) == expected
        assert by_sqlite(to_sql(conditions), table) == expected
    again = [from_json(json.loads(json.dumps(condition.to_json()))) for condition in conditions]
    assert again == conditions


numbers = st.one_of(st.sampled_from([-2.0, 0.0, 1.0, 1.5, 3.0, 1e-7, 1e12]), st.just(float("nan")))
number_columns = st.lists(numbers, min_size=4, max_size=12)
texts = st.sampled_from(ODD)


@st.composite
def intervals(draw, name):
    low, high = draw(st.sampled_from([(None, 1.5), (0.0, None), (0.0, 3.0), (-2.0, 1e12), (1e-7, 2.0)]))
    return Condition(name, low, high, missing=draw(st.booleans()))


@st.composite
def number_sets(draw, name):
    values = draw(st.sampled_from([(1.0,), (0.0, 1.5), (-2.0, 1e-7, 3.0)]))
    return Condition(name, values=values, negated=draw(st.booleans()), missing=draw(st.booleans()))


@st.composite
def text_sets(draw, name):
    values = draw(st.lists(texts.filter(bool), min_size=0, max_size=10, unique=True))
    missing = draw(st.booleans()) or not values
    return Condition(name, values=tuple(values), negated=draw(st.booleans()) and bool(values), missing=missing)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_pandas_and_sql_select_the_same_rows(data):
    name = data.draw(st.sampled_from(NAMES))
    column = data.draw(number_columns)
    words = data.draw(st.lists(texts, min_size=len(column), max_size=len(column)))
    evaluation = rows(**{name: np.array(column), "word": np.array(words)})
    conditions = [data.draw(st.one_of(intervals(name), number_sets(name))), data.draw(text_sets("word"))]
    check_everywhere(conditions, evaluation)
    check_everywhere(conditions[:1], evaluation)
    check_everywhere(conditions[1:], evaluation)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_words_parse_in_the_grammar_and_select_the_same_rows(data):
    name = data.draw(st.sampled_from(NAMES))
    evaluation = rows(
        **{name: np.array([-2.0, 0.0, 1.0, 1.5, 3.0, 1e-7, 1e12, np.nan]), "word": np.array(ODD[:6] + ODD[8:10])}
    )
    known = st.sampled_from([word for word in evaluation.metadata["word"].tolist() if word])
    values = tuple(data.draw(st.lists(known, min_size=1, max_size=3, unique=True)))
    of_text = Condition("word", values=values, negated=data.draw(st.booleans()))
    of_numbers = data.draw(st.one_of(intervals(name), number_sets(name)))
    of_numbers = Condition(name, of_numbers.low, of_numbers.high, of_numbers.values, of_numbers.negated)
    for conditions in ([of_text], [of_numbers], [of_numbers, of_text]):
        expected = np.flatnonzero(match_all(conditions, evaluation)).tolist()
        assert by_grammar(to_text(conditions), evaluation) == expected, to_text(conditions)


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Condition("age", high=5), "age < 5"),
        (Condition("age", low=20, high=30.5), "age >= 20 and age < 30.5"),
        (Condition("age", low=20, high=30, missing=True), "(age >= 20 and age < 30) or age is missing"),
        (Condition("race", values=("a",)), "race = a"),
        (Condition("race", values=("a", "A", "b c")), 'race in (a, "b c")'),  # hypotheses ignore case
        (Condition("race", values=("a", "b"), negated=True), "race not in (a, b)"),
        (Condition("race", values=("a",), negated=True), "race != a"),
        (Condition("site", values=(), missing=True), "site is missing"),
        (Condition("the site", missing=True), '"the site" is missing'),
        (Condition("site", values=(), negated=True), "site is not missing"),
        (Condition("flag", values=(True,)), "flag = true"),
    ],
)
def test_words(condition, text):
    assert condition.text == text


def test_an_or_stands_in_parentheses():
    conditions = [Condition("age", high=5, missing=True), Condition("site", values=(), missing=True)]
    assert to_text(conditions) == "(age < 5 or age is missing) and site is missing"
    evaluation = rows(age=np.array([1.0, np.nan, 9.0, 1.0]), site=np.array(["", "", "", "x"]))
    check_everywhere(conditions, evaluation)
    assert match_all(conditions, evaluation).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    "array",
    [np.array([True, False, True]), np.array(["True", "", "true"]), np.array([True, None, True], dtype=object)],
)
def test_truth_values_in_any_form(array):
    evaluation = rows(flag=array)
    expected = [True, False, True]
    assert Condition("flag", values=(True,)).matches(evaluation).tolist() == expected
    table = pd.DataFrame({"flag": [True, None, True]})
    assert by_pandas(Condition("flag", values=(True,)).to_pandas(), table) == [0, 2]
    assert by_sqlite(Condition("flag", values=(True,)).to_sql(), table) == [0, 2]


def test_numbers_that_are_stored_as_text_compare_as_numbers():
    evaluation = rows(age=np.array(["10", "9", "", "100"]))
    assert Condition("age", low=9, high=100).matches(evaluation).tolist() == [True, True, False, False]
    assert Condition("age", high=10, missing=True).matches(evaluation).tolist() == [False, True, True, False]


def test_dates_compare_as_text():
    dates = np.array(["2020-01-05", "NaT", "2021-07-01"], dtype="datetime64[D]")
    evaluation = rows(day=dates)
    condition = Condition("day", high="2021-01-01")
    assert condition.matches(evaluation).tolist() == [True, False, False]
    table = pd.DataFrame({"day": ["2020-01-05", "", "2021-07-01"]})
    assert by_pandas(condition.to_pandas(), table) == [0]
    assert by_sqlite(condition.to_sql(), table) == [0]


def test_a_column_without_values_matches_missing_alone():
    evaluation = rows(age=np.array(["", ""]))
    assert not Condition("age", high=5).matches(evaluation).any()
    assert Condition("age", high=5, missing=True).matches(evaluation).all()


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(InputError, match="reads the column `age`, which these rows do not have"):
        Condition("age", high=5).matches(rows(size=np.zeros(3)))
    with pytest.raises(InputError, match="compares the column `age` with numbers; these rows hold text"):
        Condition("age", high=5).matches(rows(age=np.array(["old", "5"])))


def test_the_rule_of_a_slice_is_read():
    condition = Condition("age", high=5)
    assert read_rule({"kind": "conditions", "conditions": [condition.to_json()], "scope": {}}) == (condition,)
    assert read_rule({"kind": "region"}) == ()
