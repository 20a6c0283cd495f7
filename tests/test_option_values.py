"""What `--set METHOD.KEY=VALUE` takes a value for: JSON, a number as Python writes it, or text."""

import pytest

from errata.cli.common import read_options, read_value
from errata.core import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (".05", 0.05),
        ("-.05", -0.05),
        ("5.", 5.0),
        ("5.e2", 500.0),
        ("1e-3", 0.001),
        (".1E+1", 1.0),
        ("+1", 1),
        ("+1.5", 1.5),
        (" .05 ", 0.05),
    ],
)
def test_a_number_as_python_writes_it_is_a_number(text, value):
    read = read_value(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "nan",
        "inf",
        "-inf",
        "infinity",
        "1_000",
        "1_0.5",
        "007",
        "00.5",
        ".",
        "+",
        "e5",
        "1e",
        "0x10",
        "1.2.3",
        "٣.",
        "+true",
    ],
)
def test_words_stay_words(text):
    assert read_value(text) == text


@pytest.mark.parametrize(
    ("text", "value"), [("null", None), ("true", True), ("[1, 2]", [1, 2]), ('"05"', "05"), ("3", 3)]
)
def test_json_is_read_as_before(text, value):
    assert read_value(text) == value


@pytest.mark.parametrize("text", [".1e999", "1.e999", "+1e999", "NaN", "-Infinity", "+" + "9" * 5000])
def test_a_number_that_is_not_finite_is_refused(text):
    with pytest.raises(InputError, match="finite numbers"):
        read_value(text)


def test_an_option_may_begin_with_a_point():
    assert read_options(["spotlight"], ["spotlight.size=.05"], []) == {"spotlight": {"size": 0.05}}
