"""Rows of a table show the values of the columns that say most of the slice; images and texts show themselves."""

from __future__ import annotations

import re

import numpy as np
import pytest

import errata
from errata.core import Evaluation
from errata.report import to_html
from errata.report.row_items import column_value

N = 600


def _table(**given) -> Evaluation:
    rng = np.random.default_rng(0)
    age = rng.integers(1, 90, N)
    labels = rng.integers(0, 2, N)
    wrong = rng.random(N) < np.where(age < 20, 0.8, 0.05)
    metadata = {
        "first": np.full(N, "same"),
        "height": np.where(age < 20, 1.234567, 1.75),
        "age": age,
        "site": np.where(np.arange(N) % 50 == 0, "", "a very long name of a site that nobody would read to its end"),
    }
    return Evaluation(labels=labels, predictions=np.where(wrong, 1 - labels, labels), metadata=metadata, **given)


def _lines(html: str, heading: str) -> list[str]:
    part = html.partition(f"<h3>{heading}")[2].partition("</ul>")[0]
    return [" ".join(re.sub(r"<[^>]+>", " ", line).split()) for line in part.split("<li")[1:]]


@pytest.fixture(scope="module")
def html() -> str:
    audit = errata.audit(_table(), methods=["rules"])
    assert audit.confirmed[0].name == "height = 1.234567"
    return to_html(audit)


def test_the_columns_of_the_rule_come_first(html):
    lines = _lines(html, "Members at random")
    assert len(lines) == 6
    for line in lines:
        assert re.search(r"height 1\.23 age \d+ ", line), line  # the rule, then what differs most
        assert line.index("age") < line.index("first same")
        assert "site a very long name" in line
        assert "to its end" not in line
        assert re.search(r"row \d+$|row \d+ open$|loss", line)


def test_the_overview_has_them_too(html):
    strip = html.partition('class="strip-cell"')[2].partition("</ul>")[0]
    assert 'class="value"' in strip
    assert "1.23" in strip


def test_images_and_texts_show_themselves(texts):
    audit = errata.audit(_table(media=texts(N, "some text")), methods=["rules"])
    assert 'class="value"' not in to_html(audit)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "missing"), (float("nan"), "missing"), ("", "missing"), (3, "3"), (np.int64(3), "3"), (True, "True"),
     (1.23456, "1.23"), ("word", "word"), ("x" * 50, "x" * 39 + "…")],
)  # fmt: skip
def test_values_are_short(value, text):
    assert column_value(value) == text
