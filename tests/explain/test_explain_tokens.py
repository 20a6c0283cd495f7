"""Words and phrases: how they are counted, which are telling, and how they are measured. Even rows are search rows."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chi2_contingency, power_divergence
from sklearn.feature_extraction.text import CountVectorizer

from errata.core import Evaluation, InputError
from errata.core.words import WORD, words_of
from errata.explain import explain, phrases, text_phrases
from errata.explain.context import Context
from errata.explain.function_words import FUNCTION_WORDS
from errata.explain.text_phrases import (
    check_vocabulary,
    count_words,
    likelihood_ratio,
    phrase_evidence,
    telling_phrases,
)
from errata.explain.view import view_of


def _evaluation(texts, made):
    n = len(made)
    return Evaluation(losses=np.arange(n, dtype=float), media=texts(made))


def _random_texts(seed: int = 0, n: int = 300) -> list[str]:
    rng = np.random.default_rng(seed)
    known = np.array(
        ["red", "green", "blue", "cat", "dog", "runs", "sleeps", "the", "of", "in", "house", "tree", "x1", "x2", "x3"]
    )
    return [" ".join(rng.choice(known, size=rng.integers(0, 12))) for _ in range(n)]


def _tokens(audit, kinds, **given):
    return kinds(explain(audit, **given).slices[0])["tokens"]


def test_words_are_lower_case_and_of_any_script(texts):
    words = count_words(texts(["Don't STOP_now, él!", "стоп 42"] * 5))
    assert {"42", "don't", "now", "stop", "él", "стоп", "don't stop now", "стоп 42"} <= set(words.phrases)
    assert words.lengths.tolist() == [4, 2] * 5


@pytest.mark.parametrize("block", [10, 500, 4_000_000])
def test_phrases_are_those_of_an_independent_count(texts, monkeypatch, block):
    monkeypatch.setattr(text_phrases, "BLOCK", block)
    made = _random_texts()
    words = count_words(texts(made))
    counter = CountVectorizer(token_pattern=WORD, ngram_range=(1, 3), binary=True, min_df=5)
    expected = counter.fit_transform(made).toarray()
    telling = [not set(phrase.split()) <= FUNCTION_WORDS for phrase in counter.get_feature_names_out()]
    assert sorted(words.phrases) == counter.get_feature_names_out()[telling].tolist()
    order = np.argsort(words.phrases)
    assert np.array_equal(words.presence.toarray()[:, order], expected[:, telling])


def test_phrases_never_reach_from_one_text_into_the_next(texts):
    words = count_words(texts(["alpha", "beta gamma"] * 10))
    assert sorted(words.phrases) == ["alpha", "beta", "beta gamma", "gamma"]


@pytest.mark.parametrize(("rows", "known"), [(4, False), (5, True)])
def test_a_phrase_needs_five_rows_not_five_occurrences(texts, rows, known):
    made = ["big screen big screen" if i < rows else "other" for i in range(30)]
    assert ("big screen" in count_words(texts(made)).phrases) == known


def test_the_likelihood_ratio_is_that_of_scipy():
    rng = np.random.default_rng(0)
    inside = rng.integers(1, 40, size=50)
    outside = rng.integers(1, 300, size=50)
    ratio = likelihood_ratio(inside, 40, outside, 300)
    for k, rest, found in zip(inside, outside, ratio, strict=True):
        table = np.array([[k, 40 - k], [rest, 300 - rest]])
        if table.sum(axis=0).min() == 0:
            assert found == 0
            continue
        assert found == pytest.approx(chi2_contingency(table, correction=False, lambda_="log-likelihood").statistic)
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / 340
        assert found == pytest.approx(power_divergence(table.ravel(), expected.ravel(), lambda_=0).statistic)


def test_p_values_are_corrected_for_every_phrase_compared(make_audit, texts):
    made = _random_texts(1)
    audit = make_audit(_evaluation(texts, made), np.arange(300) < 60)
    context = Context(audit)
    view = view_of(audit, audit.slices[0], context.tasks)
    found = phrase_evidence(view, context.words)
    enough = found.inside + found.outside >= 5
    assert found.compared == enough.sum() < len(context.words.phrases)
    assert np.all(found.p_value[~enough] == 1)
    for j in np.flatnonzero(enough)[:40]:
        table = [[found.inside[j], found.n - found.inside[j]], [found.outside[j], found.rest_n - found.outside[j]]]
        p = chi2_contingency(table, correction=False, lambda_="log-likelihood").pvalue
        assert found.p_value[j] == pytest.approx(min(1, p * found.compared))


def test_words_at_random_are_seldom_telling(make_audit, texts, kinds):
    found = 0
    for seed in range(20):
        audit = make_audit(_evaluation(texts, _random_texts(seed)), np.random.default_rng(seed).random(300) < 0.3)
        found += bool(_tokens(audit, kinds)["rows"])
    assert found <= 3  # one of twenty, at the level of .05


def test_chosen_on_search_rows_and_measured_on_held_out_rows(make_audit, texts, kinds):
    # Members: rows 0-39. "que" stands in all search members and in half of the held-out members;
    # "sol" only in held-out members, so nothing that was searched knows it.
    made = []
    for i in range(120):
        if i >= 40:
            made.append("good book")
        elif i % 2 == 0:
            made.append("que book")
        else:
            made.append("que sol" if i % 4 == 1 else "good sol")
    data = _tokens(make_audit(_evaluation(texts, made), np.arange(120) < 40), kinds)
    assert [row["token"] for row in data["rows"]] == ["que book"]
    assert _tokens(make_audit(_evaluation(texts, made), np.arange(120) < 40), kinds, vocabulary=["que"])["rows"] == [
        {
            "token": "que",
            "ratio": pytest.approx(
                chi2_contingency([[20, 0], [0, 40]], correction=False, lambda_="log-likelihood").statistic
            ),
            "p_value": pytest.approx(
                chi2_contingency([[20, 0], [0, 40]], correction=False, lambda_="log-likelihood").pvalue
            ),
            "rest": [0, 40],
            "relative": None,
            "covers": [10, 20],
            "precise": [10, 10],
            "n": 10,
            "errors": None,
            "error_rate": None,
            "mean_loss": pytest.approx(np.mean(np.arange(1, 40, 4))),
        }
    ]


def test_how_much_more_often_members_have_it(make_audit, texts, kinds):
    made = ["wine list" if i < 40 or i % 8 == 1 else "other list" for i in range(200)]
    row = _tokens(make_audit(_evaluation(texts, made), np.arange(200) < 40), kinds, vocabulary=["wine"])["rows"][0]
    assert row["rest"] == [20, 80]
    assert row["relative"] == pytest.approx(1 / (20 / 80))


@pytest.mark.parametrize(("members", "shown"), [(4, False), (5, True)])
def test_a_phrase_needs_five_members(make_audit, texts, kinds, members, shown):
    inside = np.arange(4000) < 24
    made = ["dune" if (i % 2 == 0 and i // 2 < members) or i > 3995 else "plain" for i in range(4000)]
    audit = make_audit(_evaluation(texts, made), inside)  # of the rest two search rows have it
    assert ("dune" in [row["token"] for row in _tokens(audit, kinds)["rows"]]) == shown


def test_a_word_of_one_long_text_is_not_a_pattern(make_audit, texts, kinds):
    made = ["dune " * 50 if i == 0 else "plain words" for i in range(40)]
    audit = make_audit(_evaluation(texts, made), np.arange(40) < 20)
    assert "dune" not in [row["token"] for row in _tokens(audit, kinds)["rows"]]


def test_phrases_of_function_words_alone_say_nothing(make_audit, texts, kinds):
    made = ["on the table of it" if i < 40 else "chair" for i in range(120)]
    shown = [row["token"] for row in _tokens(make_audit(_evaluation(texts, made), np.arange(120) < 40), kinds)["rows"]]
    assert shown == ["table"]  # neither "the" nor "of it", nor "on the table", which says no more


def test_a_phrase_stands_for_its_parts_where_it_keeps_their_evidence(make_audit, texts, kinds):
    # Members say "new york"; "york" alone nowhere; others say "new" too.
    made = ["a new york paper" if i < 40 else f"new {('car', 'house', 'tree')[i % 3]}" for i in range(200)]
    shown = [row["token"] for row in _tokens(make_audit(_evaluation(texts, made), np.arange(200) < 40), kinds)["rows"]]
    assert shown == ["new york paper"]


def test_a_longer_phrase_may_lose_a_little_evidence(make_audit, texts, kinds):
    made = [("york" if i == 0 else "new york") if i < 80 else f"other {i % 4}" for i in range(300)]
    shown = [row["token"] for row in _tokens(make_audit(_evaluation(texts, made), np.arange(300) < 80), kinds)["rows"]]
    assert shown == ["new york"]  # 39 search members, of “york” 40


def test_a_phrase_may_begin_with_a_function_word_where_that_says_more(make_audit, texts, kinds):
    made = ["out of stock" if i < 60 else f"stock {i % 4}" for i in range(300)]
    shown = [row["token"] for row in _tokens(make_audit(_evaluation(texts, made), np.arange(300) < 60), kinds)["rows"]]
    assert shown == ["out of stock"]


def test_a_word_stands_where_longer_phrases_lose_evidence(make_audit, texts, kinds):
    colours = ("red", "green", "blue", "grey")
    made = [f"wine {colours[i // 2 % 4]}" if i < 80 else f"beer {colours[i // 2 % 4]}" for i in range(300)]
    shown = [row["token"] for row in _tokens(make_audit(_evaluation(texts, made), np.arange(300) < 80), kinds)["rows"]]
    assert shown == ["wine"]


def test_no_two_phrases_are_parts_of_each_other(make_audit, texts):
    rng = np.random.default_rng(0)
    known = np.array(["red", "green", "blue", "cat", "dog", "runs", "sleeps", "house", "tree"])
    made = [" ".join(rng.choice(known[:4] if i < 100 else known, size=8)) for i in range(400)]
    audit = make_audit(_evaluation(texts, made), np.arange(400) < 100)
    context = Context(audit)
    view = view_of(audit, audit.slices[0], context.tasks)
    columns = telling_phrases(view, context.words, phrase_evidence(view, context.words), 50)
    shown = [f" {context.words.phrases[j]} " for j in columns]
    assert len(shown) > 3
    assert not any(a in b for a in shown for b in shown if a != b)


def test_at_most_ten_phrases_with_the_most_evidence_first(make_audit, texts, kinds):
    # Word j stands in 40 - j of the 40 search members; none of them beside another, so that there are no pairs.
    made = []
    for i in range(200):
        words = [f"w{j:02}" for j in range(14) if i < 80 and i // 2 >= j]
        made.append(f" filler{i} ".join(words) or "other")
    data = _tokens(make_audit(_evaluation(texts, made), np.arange(200) < 80), kinds)
    assert [row["token"] for row in data["rows"]] == [f"w{j:02}" for j in range(10)]
    assert all(a["ratio"] >= b["ratio"] for a, b in pairwise(data["rows"]))


def test_mean_length_against_the_rest(make_audit, texts, kinds):
    made = ["a b c d" if i < 10 else "a b" for i in range(40)]
    length = _tokens(make_audit(_evaluation(texts, made), np.arange(40) < 10), kinds)["length"]
    assert length == {"slice": 4.0, "slice_n": 5, "rest": 2.0, "rest_n": 15}


def test_no_text_no_tokens(make_audit, texts, kinds):
    silent = make_audit(_evaluation(texts, ["", "…"] * 10), np.arange(20) < 6)
    without = make_audit(Evaluation(losses=np.arange(20.0)), np.arange(20) < 6)
    assert "tokens" not in kinds(explain(silent).slices[0])
    assert "tokens" not in kinds(explain(without).slices[0])


def test_a_vocabulary_is_all_that_words_are_chosen_from(make_audit, texts, kinds):
    made = [f"order with Free shipping, worldwide now {i % 7}" if i < 40 else "other goods" for i in range(200)]
    audit = make_audit(_evaluation(texts, made), np.arange(200) < 40)
    own = ["free  shipping worldwide now", "refund", "FREE SHIPPING WORLDWIDE NOW"]
    data = _tokens(audit, kinds, vocabulary=own)
    assert [row["token"] for row in data["rows"]] == ["free shipping worldwide now"]  # four words, and it stands once
    assert (data["compared"], data["own_vocabulary"]) == (1, True)  # no row has "refund"
    assert explain(audit, vocabulary=own).slices[0].name == "text contains “free shipping worldwide now”"
    assert _tokens(audit, kinds)["own_vocabulary"] is False


@pytest.mark.parametrize("phrase", ["the", "of it"])
def test_a_vocabulary_may_have_function_words(make_audit, texts, kinds, phrase):
    made = [f"{phrase} thing" if i < 40 else "other" for i in range(200)]
    audit = make_audit(_evaluation(texts, made), np.arange(200) < 40)
    assert [row["token"] for row in _tokens(audit, kinds, vocabulary=[phrase])["rows"]] == [phrase]


@pytest.mark.parametrize(
    ("vocabulary", "sentence"),
    [
        ([], "`vocabulary` must be a list of words and phrases, at least one"),
        ("word", "`vocabulary` must be a list of words and phrases, at least one"),
        (["word", "…"], "`vocabulary` has no word in '…', entry 2; remove it"),
    ],
)
def test_a_vocabulary_that_can_match_nothing_is_refused(texts, vocabulary, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        check_vocabulary(vocabulary, _evaluation(texts, ["a"] * 20))
    with pytest.raises(InputError, match="these rows have none"):
        check_vocabulary(["a"], Evaluation(losses=np.zeros(20)))


def test_captions_made_of_phrases_are_another_thing():
    assert phrases(["big screen"] * 5) == ["big", "big screen", "screen"]
    assert words_of("Big-Screen, 2!") == ["big", "screen", "2"]
