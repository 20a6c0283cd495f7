"""Answers are checked in words, travel as JSON, and agree as far as their descriptions do."""

from __future__ import annotations

import json

import numpy as np
import pytest

from errata.core import InputError
from errata.people.questionnaire import (
    QuestionnaireAnswer,
    cumulative,
    description_agreement,
    mean_scores,
    statement_scores,
    tally,
)

FULL = {
    "about": "s1 feature 1456", "person": "p1", "description3": "metal buckle shine",
    "description15": "a round buckle of bright metal on leather", "ease": 4, "confidence": 5, "view": "both",
    "necessity": "spurious", "actions": ["collect", "warn users"], "statements": {"new": 4},
}  # fmt: skip


def test_an_answer_survives_json():
    answer = QuestionnaireAnswer(**FULL)
    text = json.dumps(answer.to_json())
    assert QuestionnaireAnswer.from_json(json.loads(text)) == answer
    assert json.loads(text) == FULL
    assert answer.actions == ("collect", "warn users")


def test_what_was_not_asked_is_none():
    crowd = QuestionnaireAnswer(about="f", person="p", description3="fur", ease=1)
    assert crowd.to_json() == {
        **dict.fromkeys(FULL), "about": "f", "person": "p", "description3": "fur", "ease": 1, "actions": [],
        "statements": {},
    }  # fmt: skip
    assert QuestionnaireAnswer.from_json(crowd.to_json()) == crowd


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"description3": "one two three four"}, "`description3` may have 3 words; got 4: 'one two three four'"),
        ({"description15": "word " * 16}, "`description15` may have 15 words; got 16"),
        ({"description3": "  "}, "`description3` must be a text that is not empty"),
        ({"description15": 3}, "`description15` must be a text"),
        ({"ease": 0}, "`ease` must be a whole number from 1 to 5; got 0"),
        ({"ease": 6}, "`ease` must be a whole number"),
        ({"confidence": 2.5}, "`confidence` must be a whole number from 1 to 5; got 2.5"),
        ({"confidence": True}, "`confidence` must be"),
        ({"view": "saliency"}, "`view` must be one of heat map, attack, both, none; got 'saliency'"),
        ({"necessity": "maybe"}, "`necessity` must be one of necessary, spurious"),
        ({"actions": ["collect", "pray"]}, "`action` must be one of collect, .*, other; got 'pray'"),
        ({"actions": "collect"}, "`actions` must be a list; got the text 'collect'"),
        ({"statements": {"mew": 4}}, "`statement` must be one of easy to use, .*, valuable; got 'mew'"),
        ({"statements": {"new": 6}}, "`statements.new` must be a whole number from 1 to 5; got 6"),
        ({"statements": {"new": None}}, "`statements.new` has no number; leave out what was not answered"),
        ({"statements": [4]}, "`statements` must map statements to numbers"),
        ({"about": ""}, "`about` of an answer must be a text"),
        ({"person": None}, "`person` of an answer must be a text"),
        ({"eas": 3}, "unknown part of an answer `eas`; did you mean `ease`"),
    ],
)
def test_bad_answers_are_one_sentence(change, words):
    with pytest.raises(InputError, match=words):
        QuestionnaireAnswer.from_json({**FULL, **change})


def test_longest_descriptions_are_allowed_and_names_are_needed():
    assert QuestionnaireAnswer.from_json({**FULL, "description15": "word " * 15}).description15
    with pytest.raises(InputError, match="an answer needs `person`; got about"):
        QuestionnaireAnswer.from_json({"about": "f"})


def test_scores_of_statements_are_of_those_who_answered_them():
    answers = [
        QuestionnaireAnswer(about="the method", person=person, statements=given)
        for person, given in {"p": {"new": 4, "again": 2}, "q": {"new": 1}, "r": {}}.items()
    ]
    scores = statement_scores(answers)
    assert (scores["new"], scores["again"], scores["valuable"]) == ([4, 1], [2], [])


AXES = {"fur": [1, 0], "hair": [0.6, 0.8], "dots": [0, 3], "the": [0, 0]}


def embed(texts):
    """The mean of the words' vectors, as in the paper."""
    return np.array([np.mean([AXES[word] for word in text.split()], axis=0) for text in texts])


def said(about: str, *texts: str, **more: object) -> list[QuestionnaireAnswer]:
    return [QuestionnaireAnswer(about=about, person=f"p{i}", description3=text, **more) for i, text in enumerate(texts)]


def test_agreement_is_the_mean_cosine_over_pairs():
    answers = said("a", "fur", "hair", "dots") + said("b", "fur", "fur") + said("c", "fur", "the") + said("d", "fur")
    found = description_agreement(answers, embed, "description3")
    assert found == pytest.approx({"a": (0.6 + 0.0 + 0.8) / 3, "b": 1.0, "c": 0.0})  # "d": nobody to agree with


def test_both_descriptions_are_put_together():
    answers = [
        QuestionnaireAnswer(about="a", person="p", description3="fur", description15="dots"),
        QuestionnaireAnswer(about="a", person="q", description15="dots"),
    ]
    assert description_agreement(answers, embed, "description15") == pytest.approx({"a": 1.0})
    assert description_agreement(answers, embed) == pytest.approx({"a": 3 / np.sqrt(1 + 9)})
    assert description_agreement(answers, embed, "description3") == {}
    assert description_agreement([], embed) == {}


def test_a_bad_encoder_and_a_bad_choice_are_said():
    with pytest.raises(InputError, match=r"`embed` must give a finite row for each of 2 texts; got shape \(2,\)"):
        description_agreement(said("a", "fur", "fur"), lambda texts: np.ones(len(texts)))
    with pytest.raises(InputError, match="`embed` must give a finite row"):
        description_agreement(said("a", "fur", "fur"), lambda texts: np.full((2, 2), np.nan))
    with pytest.raises(InputError, match="`description` must be one of"):
        description_agreement([], embed, "description4")  # type: ignore[arg-type]


def test_the_curve_counts_what_lies_at_or_below():
    curve = cumulative({"a": 0.5, "b": 0.25, "c": 0.5, "d": 1.0})
    assert curve == [
        {"value": 0.25, "count": 1, "share": 0.25},
        {"value": 0.5, "count": 3, "share": 0.75},
        {"value": 1.0, "count": 4, "share": 1.0},
    ]
    assert cumulative([3.0]) == [{"value": 3.0, "count": 1, "share": 1.0}]
    assert cumulative({}) == []


def test_means_and_counts_of_answers():
    answers = said("a", "fur", "fur", ease=2, view="heat map") + said(
        "a", "fur", ease=5, view="none", actions=["other"]
    )
    answers += said("b", "fur", confidence=3, necessity="necessary", actions=["other", "collect"])
    assert mean_scores(answers, "ease") == {"a": 3.0}
    assert mean_scores(answers, "confidence") == {"b": 3.0}
    assert tally(answers, "view") == {"heat map": 2, "attack": 0, "both": 0, "none": 1}
    assert tally(answers, "necessity") == {"necessary": 1, "spurious": 0}
    assert tally(answers, "actions") == {
        "collect": 1, "relabel": 0, "architecture": 0, "warn users": 0, "do not deploy": 0, "other": 2
    }  # fmt: skip
