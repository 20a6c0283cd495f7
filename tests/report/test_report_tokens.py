"""The table of words and phrases: both shares, how they were chosen, and older audits that did not say."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from errata.core import Evaluation
from errata.explain.tokens import Tokens
from errata.report import to_html

ROLES = {"chosen_on": "discover", "measured_on": "confirm"}
LENGTH = {"slice": 9.0, "slice_n": 20, "rest": 4.0, "rest_n": 80}
MATCH = {"covers": [10, 20], "precise": [10, 12], "n": 12, "errors": 6, "error_rate": 0.5, "mean_loss": 1.0}
ROW = {"token": "free shipping", "ratio": 30.0, "p_value": 0.001, "rest": [2, 80], "relative": 20.0, **MATCH}


@pytest.fixture
def table(make_slice, make_audit, texts):
    def shown(row: dict[str, Any] | None, **facts: Any) -> str:
        rows = [] if row is None else [row]
        tokens = Tokens.from_json({**ROLES, "minimum": 5, "rows": rows, "length": LENGTH, **facts})
        evaluation = Evaluation(losses=np.ones(100), media=texts(100, "some text"))
        html = to_html(make_audit(make_slice(explanations=(tokens,)), evaluation=evaluation))
        part = html.partition("<h3>Words and phrases")[2].partition("</div>\n</div>")[0]
        return " ".join(re.sub(r"<[^>]+>", " ", part).split())

    return shown


def test_a_phrase_has_its_share_of_members_and_of_the_rest(table):
    text = table(ROW, compared=1234)
    assert "free shipping 50.0% 10 of 20 2.5% 20.0× 10 of 12" in text
    assert (
        "Chosen on search rows among 1,234 words and phrases by likelihood ratio, corrected for all of them; at least"
        in text
    )


def test_a_vocabulary_is_called_the_users_own(table):
    assert "among 7 phrases of your vocabulary" in table(ROW, compared=7, own_vocabulary=True)


def test_no_phrase_is_said(table):
    assert "Members have no word or phrase more often than the rest, beyond chance." in table(None, compared=5)


def test_an_audit_of_an_older_version_shows_what_it_has(table):
    text = table({"token": "free", "relative": 3.0, "slice_tokens": [1, 2], "whole_tokens": [1, 2], **MATCH})
    assert "free 50.0% 10 of 20 – 3.0×" in text
    assert "Chosen on" not in text


def test_headings_say_what_a_column_counts_and_no_row_is_of_nobody(table):
    text = table(ROW)
    assert "Word or phrase Of members Of the rest Precise Mean loss, of all rows with it" in text
    assert "Outcome" not in text
    nobody = {**ROW, "token": "unseen", "covers": [0, 20], "precise": [0, 3]}
    assert "unseen" not in table(nobody)
