from __future__ import annotations

import numpy as np
import pytest

from errata.core import Evaluation
from errata.explain import explain
from errata.explain.tokens import count_words, relative_frequency


def _evaluation(texts, made):
    n = len(made)
    return Evaluation(losses=np.arange(n, dtype=float), media=texts(made))


def test_words_are_lower_case_and_of_any_script(texts):
    words = count_words(texts(["Don't STOP_now, él!", "стоп 42"]))
    assert words.vocabulary.tolist() == ["42", "don't", "now", "stop", "él", "стоп"]
    assert words.lengths.tolist() == [4, 2]


def test_relative_frequency_is_seen_over_expected_with_one_added():
    # Slice: 8 + 2 tokens of 100 in all; expected 20 * .1 = 2 and 80 * .1 = 8.
    relative = relative_frequency(np.array([8, 2]), np.array([20, 80]))
    assert relative.tolist() == [pytest.approx(9 / 3), pytest.approx(3 / 9)]


def test_more_evidence_beats_the_same_ratio():
    relative = relative_frequency(np.array([5, 100, 0]), np.array([5, 100, 5000]))
    assert relative[1] > relative[0] > 1


def test_chosen_on_discover_rows_and_measured_on_confirm_rows(make_audit, texts, kinds):
    # Members: rows 0-19. "que" stands in all discover members and in half of the confirm members;
    # "sol" only in confirm members, so nothing that was searched knows it.
    made = []
    for i in range(40):
        if i >= 20:
            made.append("good book")
        elif i % 2 == 0:
            made.append("que book")
        else:
            made.append("que sol" if i % 4 == 1 else "good sol")
    audit = make_audit(_evaluation(texts, made), np.arange(40) < 20)
    data = kinds(explain(audit).slices[0])["tokens"]
    assert [row["token"] for row in data["rows"]] == ["que"]
    row = data["rows"][0]
    assert row["covers"] == [5, 10]
    assert row["precise"] == [5, 5]
    assert row["slice_tokens"] == [5, 20]
    assert row["whole_tokens"] == [5, 40]
    assert row["relative"] == pytest.approx((5 + 1) / (5 * 20 / 40 + 1))
    assert row["n"] == 5
    assert row["errors"] is None
    assert row["mean_loss"] == pytest.approx(np.mean([1, 5, 9, 13, 17]))


def test_a_word_of_one_long_text_is_not_a_pattern(make_audit, texts, kinds):
    made = ["dune " * 50 if i == 0 else "plain words" for i in range(40)]
    audit = make_audit(_evaluation(texts, made), np.arange(40) < 20)
    assert "dune" not in [row["token"] for row in kinds(explain(audit).slices[0])["tokens"]["rows"]]


def test_mean_length_against_the_rest(make_audit, texts, kinds):
    made = ["a b c d" if i < 10 else "a b" for i in range(40)]
    length = kinds(explain(make_audit(_evaluation(texts, made), np.arange(40) < 10)).slices[0])["tokens"]["length"]
    assert length == {"slice": 4.0, "slice_n": 5, "rest": 2.0, "rest_n": 15}


def test_at_most_ten_words(make_audit, texts, kinds):
    slice_words = " ".join(f"w{j:02}" for j in range(14))
    made = [slice_words if i < 20 else "other text here" for i in range(60)]
    rows = kinds(explain(make_audit(_evaluation(texts, made), np.arange(60) < 20)).slices[0])["tokens"]["rows"]
    assert [row["token"] for row in rows] == [f"w{j:02}" for j in range(10)]


def test_no_text_no_tokens(make_audit, texts, kinds):
    silent = make_audit(_evaluation(texts, ["", "…"] * 10), np.arange(20) < 6)
    without = make_audit(Evaluation(losses=np.arange(20.0)), np.arange(20) < 6)
    assert "tokens" not in kinds(explain(silent).slices[0])
    assert "tokens" not in kinds(explain(without).slices[0])
