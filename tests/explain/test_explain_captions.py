"""Captions along a failure direction: scored by hand, filtered, and measured on rows that were not searched."""

from __future__ import annotations

import json
import sys
import types
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import average_precision_score

import errata
from errata.core import Captions, Evaluation, InputError, MissingExtra, Source
from errata.core.captions import SHARES
from errata.core.gaps import wilson
from errata.explain import caption_candidates, explain, hyponyms, phrases, reference_captions
from errata.explain.candidates import text_candidates
from errata.explain.captions import Direction, caption_scores, correlation_scores, mentions
from errata.explain.context import Context
from errata.explain.view import view_of
from support.explanations import captions

N, D = 1600, 8
AXIS = np.eye(D)  # 0 dog, 1 cat, 2 snow, 3 grass, 4 night, 5 indoors
TEXTS = {
    "a dog": AXIS[0], "a cat": AXIS[1], "a dog in snow": AXIS[0] + AXIS[2], "a dog on grass": AXIS[0] + AXIS[3],
    "a cat in snow": AXIS[1] + AXIS[2], "a puppy": 0.2 * AXIS[0] + AXIS[4], "a kitten in snow": AXIS[1] + 0.9 * AXIS[2],
    "snow": AXIS[2], "a dog, a cat and snow": AXIS[0] + 0.2 * AXIS[1] + AXIS[2],
}  # fmt: skip
CAPTIONS = Captions(list(TEXTS), 5 * np.array(list(TEXTS.values())), "clip", ["a cat", "a dog"])
DIFFERENCE = replace(CAPTIONS, score="difference")
RULE = {
    "kind": "direction", "representation": "clip", "scope": {"label": 1}, "strength": 0.8,
    "arrays": {"direction": "directions_", "intercept": "intercepts_", "centre": "centre_", "scale": "scale_"},
}  # fmt: skip


def world(seed: int = 0, **changes: Any) -> tuple[Evaluation, np.ndarray]:
    """Cats and dogs, a quarter of them in snow and the others on grass; dogs in snow fail at 60%, others at 5%."""
    rng = np.random.default_rng(seed)
    labels, snow = rng.integers(0, 2, N), rng.random(N) < 0.25
    X = 3 * AXIS[1 - labels] + 3 * AXIS[np.where(snow, 2, 3)] + 0.5 * rng.normal(size=(N, D))
    wrong = rng.random(N) < np.where(snow & (labels == 1), 0.6, 0.05)
    given = {"labels": labels, "predictions": np.where(wrong, 1 - labels, labels), "class_names": ("cat", "dog")}
    sources = {"clip": Source(from_model=False)}
    return Evaluation(**{**given, **changes}, representations={"clip": X}, sources=sources), snow


ARRAYS = {  # from snow to grass is from hard to easy
    "directions_": np.stack([AXIS[4], (AXIS[3] - AXIS[2]) / 2**0.5]), "intercepts_": np.array([7.0, 0.25]),
    "centre_": np.full(D, 0.5), "scale_": np.full(D, 2.0),
}  # fmt: skip


def captioned(make_audit: Any, kinds: Any, captions: Captions = CAPTIONS, rule: Any = RULE, **changes: Any) -> Any:
    evaluation, snow = world(**changes)
    members = snow & (evaluation.labels == rule["scope"].get("label", 1))
    audit = make_audit(evaluation, members, rule=rule, slicer="directions")
    audit = errata.core.Audit(**{**vars(audit), "slices": (replace(audit.slices[0], column=1),)})
    return kinds(explain(audit, texts=captions, arrays={"directions": ARRAYS}).slices[0]).get("captions")


def texts_of(rows: Any) -> list[str]:
    return [row["text"] for row in rows]


# --- scores ----------------------------------------------------------------------------------------------------


def test_scores_by_hand():
    """(c - r) = (3, 4); by the scale (1, 2) it is (3, 2), of length 13 ** .5."""
    direction = Direction(np.array([0.0, -1.0]), np.array([1.0, 2.0]), np.array([1.0, 2.0]), 0.25)
    texts, reference = np.array([[4.0, 5.0], [1.0, 1.0]]), np.array([1.0, 1.0])
    np.testing.assert_allclose(caption_scores(texts, reference, direction), [-2 / 13**0.5, 0])
    # As published: (3, 4) - (1, 2) = (2, 2), by the scale (2, 1), of length 5 ** .5; and (-1, -2), (-1, -1), 2 ** .5.
    published = caption_scores(texts, reference, direction, score="published")
    np.testing.assert_allclose(published, [-1 / 5**0.5 + 0.25, 1 / 2**0.5 + 0.25])


def test_a_column_that_never_varies_says_nothing():
    direction = Direction(np.array([0.6, 0.8]), np.array([1.0, np.inf]), np.zeros(2), 0.0)
    np.testing.assert_allclose(caption_scores(np.array([[2.0, 9.0]]), np.zeros(2), direction), [0.6])


def test_the_correlation_is_numpy_s_over_the_rows_that_count():
    """Two thousand columns make several blocks."""
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(400, 2000)), rng.random(400) < 0.6
    texts, decision = rng.normal(size=(3, 2000)), rng.normal(size=400)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    decision[~rows] = 1e6
    cosines = X @ texts.T / np.linalg.norm(X, axis=1)[:, None]
    expected = [np.corrcoef(cosines[rows, j], decision[rows])[0, 1] for j in range(3)]
    np.testing.assert_allclose(correlation_scores(texts, X, rows, decision), expected)


def test_a_text_that_all_rows_are_as_near_to_says_nothing():
    """As near but for the last digits."""
    rng = np.random.default_rng(0)
    X, rows = np.tile(rng.normal(size=D), (100, 1)), np.ones(100, dtype=bool)
    texts = rng.normal(size=(3, D))
    np.testing.assert_array_equal(correlation_scores(texts, X, rows, rng.normal(size=100)), [0, 0, 0])
    spread = rng.normal(size=(100, D))
    np.testing.assert_array_equal(correlation_scores(texts, spread, rows, np.full(100, 0.7)), [0, 0, 0])


def test_hard_captions_are_negative(make_audit, kinds):
    data = captioned(make_audit, kinds, DIFFERENCE)
    assert sorted(texts_of(data["hard"])) == ["a dog in snow", "snow"]
    assert texts_of(data["easy"]) == ["a dog on grass"]
    assert [row["score"] < 0 for row in data["hard"]] == [True, True]
    # Texts have length one before they are subtracted: the difference to "a dog" turns towards snow, and away from dog.
    in_snow = (AXIS[0] + AXIS[2]) / 2**0.5 - AXIS[0]
    scores = {row["text"]: row["score"] for row in data["hard"]}
    assert scores["a dog in snow"] == pytest.approx(-in_snow[2] / 2**0.5 / np.linalg.norm(in_snow))
    assert data["scored_by"] == "difference"
    assert (data["class"], data["reference"], data["of"], data["representation"]) == ("dog", "a dog", 9, "clip")
    assert (data["chosen_on"], data["measured_on"]) == ("discover", "confirm")
    json.dumps(data)


# --- what is left out --------------------------------------------------------------------------------------------


def test_captions_of_another_class_are_left_out_by_name_and_by_place(make_audit, kinds):
    data = captioned(make_audit, kinds)
    every = texts_of(data["hard"] + data["easy"])
    assert "a cat in snow" not in every  # it names the other class
    assert "a dog, a cat and snow" not in every  # so does this, which lies with the dogs
    assert "a kitten in snow" not in every  # it does not, but lies there
    assert data["left_out"] == {"names": 3, "nearer": 1}


def test_names_within_names_and_plurals():
    found = mentions(["a Fire Truck", "two trucks", "trucking", "a cat-like dog", ""], ["truck", "fire truck", "cat"])
    assert found == [{1}, {0}, set(), {2}, set()]
    assert mentions(["a cat"], []) == [set()]
    assert mentions(["a fire truck", "fire"], ["fire", "fire truck"]) == [{1}, {0}]
    assert mentions(["a fire"], ["fire truck"]) == [set()]


def test_without_references_the_middle_of_what_names_a_class(make_audit, kinds):
    plain = Captions(CAPTIONS.texts, CAPTIONS.embeddings, "clip", score="difference")
    data = captioned(make_audit, kinds, plain)
    assert data["reference"] == "the mean of 3 texts that name it"
    named = np.array([TEXTS["a dog"], TEXTS["a dog in snow"] / 2**0.5, TEXTS["a dog on grass"] / 2**0.5]).mean(axis=0)
    beyond = AXIS[2] - named
    score = beyond @ (AXIS[3] - AXIS[2]) / 2**0.5 / np.linalg.norm(beyond)
    assert {row["text"]: row["score"] for row in data["hard"]}["snow"] == pytest.approx(score)
    nameless = captioned(make_audit, kinds, plain, class_names=None)
    assert nameless["reference"] == "the mean of all texts"
    assert nameless["left_out"] == {"names": 0, "nearer": 0}
    assert nameless["class"] == "1"


def test_a_class_that_no_text_names_draws_no_caption_to_itself(make_audit, kinds):
    """The mean of all texts stands for a cat here, and most of what is said of dogs lies near it."""
    texts = {"a dog": AXIS[0], "in snow": AXIS[2] + AXIS[0], "on grass": AXIS[3] + AXIS[0], "at night": AXIS[4]}
    data = captioned(make_audit, kinds, Captions(list(texts), np.array(list(texts.values())), "clip"))
    assert data["left_out"] == {"names": 0, "nearer": 0}
    assert "in snow" in texts_of(data["hard"])
    # The other way round, the dogs are a class that is named: of cats only what lies near them is left out.
    cats = captioned(
        make_audit, kinds, Captions(list(texts), np.array(list(texts.values())), "clip"),
        rule={**RULE, "scope": {"label": 0}},
    )  # fmt: skip
    assert cats["left_out"] == {"names": 1, "nearer": 0}


# --- what is measured --------------------------------------------------------------------------------------------


def test_each_caption_is_measured_on_confirm_rows_of_its_class(make_audit, kinds):
    evaluation, snow = world()
    hard = captioned(make_audit, kinds)["hard"]
    row = next(row for row in hard if row["text"] == "a dog in snow")
    X = evaluation.representations["clip"]
    cosines = X @ (AXIS[0] + AXIS[2]) / np.linalg.norm(X, axis=1) / 2**0.5
    dogs, confirm = evaluation.labels == 1, np.arange(N) % 2 == 1
    among = dogs & confirm
    assert row["retrieval"] == {
        "average_precision": pytest.approx(average_precision_score(snow[among], cosines[among])),
        "base_rate": snow[among].mean(), "n": among.sum(),
    }  # fmt: skip
    assert row["retrieval"]["average_precision"] > 0.9
    told = row["matches"]
    matched = among & (cosines >= told["cosine"])
    assert (told["n"], told["errors"]) == (matched.sum(), evaluation.errors[matched].sum())
    assert told["error_rate"] == told["errors"] / told["n"] > 0.4
    assert tuple(told["interval"]) == wilson(told["errors"], told["n"], norm.ppf(1 - 0.025 / len(hard)))
    assert told["covers"] == [(matched & snow).sum(), (among & snow).sum()]
    assert told["precise"] == [(matched & snow).sum(), matched.sum()]


def test_captions_are_in_the_order_of_what_was_measured(make_audit, kinds):
    """Chosen by the score; those whose rows surely fail most often come first, and on the other side last."""
    rng = np.random.default_rng(5)
    near = {f"dog {j}": AXIS[0] + (j / 20) * AXIS[2] + 0.3 * rng.normal(size=D) for j in range(20)}
    data = captioned(make_audit, kinds, Captions(list(near), np.array(list(near.values())), "clip"))
    lows = [row["matches"]["interval"][0] for row in data["hard"]]
    highs = [row["matches"]["interval"][1] for row in data["easy"]]
    assert (len(lows), len(highs)) == (5, 5)
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs)
    scores = [row["score"] for row in data["hard"]]
    assert scores != sorted(scores)  # it is another order


def test_the_class_as_a_whole_stands_beside_it(make_audit, kinds):
    evaluation, _ = world()
    data = captioned(make_audit, kinds)
    dogs = (evaluation.labels == 1) & (np.arange(N) % 2 == 1)
    whole = data["class_rate"]
    assert (whole["n"], whole["errors"]) == (dogs.sum(), evaluation.errors[dogs].sum())
    assert tuple(whole["interval"]) == wilson(whole["errors"], whole["n"])
    assert data["hard"][0]["matches"]["interval"][0] > whole["interval"][1]
    assert data["easy"][0]["matches"]["interval"][1] < whole["error_rate"]


def test_how_near_is_near_is_chosen_on_discover_rows(make_audit, kinds):
    """Outcomes of the confirm rows change what is measured, and nothing that is chosen."""
    evaluation, _ = world()
    discover = np.arange(N) % 2 == 0
    others = np.where(discover, evaluation.predictions, evaluation.labels)
    usual, flawless = (
        captioned(make_audit, kinds, predictions=given) for given in (evaluation.predictions, others)
    )  # fmt: skip
    for a, b in zip(usual["hard"] + usual["easy"], flawless["hard"] + flawless["easy"], strict=True):
        assert (a["text"], a["score"]) == (b["text"], b["score"])
        assert (a["matches"]["cosine"], a["matches"]["share"]) == (b["matches"]["cosine"], b["matches"]["share"])
        assert b["matches"]["errors"] == 0
    assert usual["hard"][0]["matches"]["share"] == 0.2  # a quarter of the dogs stand in snow
    assert usual["easy"][0]["matches"]["share"] == 0.5  # three quarters on grass: the more of them, the surer
    assert (SHARES[0], SHARES[-1]) == (0.05, 0.5)


def test_a_caption_that_says_nothing_of_the_failures_is_shown_to_say_nothing(make_audit, kinds):
    """The outcome is shuffled among the dogs: scores are what they were, and the rates are the class's."""
    evaluation, _ = world()
    rng = np.random.default_rng(1)
    dogs = np.flatnonzero(evaluation.labels == 1)
    predictions = np.array(evaluation.predictions)
    predictions[dogs] = rng.permutation(predictions[dogs])
    data = captioned(make_audit, kinds, predictions=predictions)
    whole = data["class_rate"]["error_rate"]
    for row in data["hard"]:
        low, high = row["matches"]["interval"]
        assert low < whole < high


def test_a_scope_by_prediction(make_audit, kinds):
    rule = {**RULE, "scope": {"prediction": 1}}
    evaluation, _ = world()
    data = captioned(make_audit, kinds, rule=rule)
    assert data["class"] == "dog"
    taken = (evaluation.predictions == 1) & (np.arange(N) % 2 == 1)
    assert data["class_rate"]["n"] == taken.sum()


@pytest.mark.parametrize("rule", [{**RULE, "representation": "pixels"}, {**RULE, "kind": "component"}])
def test_no_captions_for_other_spaces_and_other_rules(make_audit, kinds, rule):
    assert captioned(make_audit, kinds, rule=rule) is None


def test_references_that_do_not_fit_are_refused(make_audit, kinds):
    with pytest.raises(InputError, match="`references` must be among the texts, which 'a bird' is not"):
        Captions(["a dog"], AXIS[:1], "clip", ["a bird"])
    one = Captions(CAPTIONS.texts, CAPTIONS.embeddings, "clip", ["a dog"])
    with pytest.raises(InputError, match="`references` has 1 texts where there are 2 classes; give one a class"):
        captioned(make_audit, kinds, one)


def test_classes_are_counted_as_far_as_the_rows_show(make_audit, kinds):
    data = captioned(make_audit, kinds, class_names=None)
    assert (data["class"], data["reference"]) == ("1", "a dog")
    evaluation, _ = world(class_names=None)
    assert (evaluation.class_count, world()[0].class_count) == (2, 2)
    probs = np.tile([0.5, 0.3, 0.2], (N, 1))
    assert Evaluation(labels=evaluation.labels, probs=probs).class_count == 3
    assert Evaluation(labels=np.eye(4, dtype=int), predictions=np.eye(4, dtype=int)).class_count == 4
    assert Evaluation(losses=np.ones(9)).class_count == 0


# --- in an audit -------------------------------------------------------------------------------------------------


def test_an_audit_with_directions_is_captioned_and_shows_both_ends():
    evaluation, snow = world()
    audit = errata.audit(evaluation, methods=["directions"], texts=CAPTIONS)
    by_class = {found.rule["scope"]["label"]: found for found in audit.slices}
    said = {e.kind: e.to_json() for e in by_class[1].explanations}
    assert sorted(texts_of(said["captions"]["hard"])[:2]) == ["a dog in snow", "snow"]
    assert said["captions"]["scored_by"] == "correlation"
    mine = (evaluation.labels == 1) & audit.discover
    decision = audit.slicers[by_class[1].slicer].decisions(evaluation)[mine, by_class[1].column]
    X = evaluation.representations["clip"][mine]

    def correlation(text: str) -> float:
        return float(np.corrcoef(X @ TEXTS[text] / np.linalg.norm(X, axis=1), decision)[0, 1])

    for row in said["captions"]["hard"] + said["captions"]["easy"]:
        assert row["score"] == pytest.approx(correlation(row["text"]) - correlation("a dog"))
    assert said["captions"]["hard"][0]["matches"]["error_rate"] > 0.4
    assert "descriptions" in said
    hardest, easiest = said["extremes"]["groups"]
    assert (hardest["which"], easiest["which"]) == ("hardest", "easiest")
    ends = [np.array([row["row"] for row in group["rows"]]) for group in (hardest, easiest)]
    assert all((~audit.discover[rows] & (evaluation.labels[rows] == 1)).all() for rows in ends)
    assert (snow[ends[0]].all(), snow[ends[1]].any()) == (True, False)
    held = (evaluation.labels == 1) & ~audit.discover
    assert hardest["of"] == held.sum()
    weights = by_class[1].weights
    assert weights[ends[0][0]] == weights[held].max()
    assert weights[ends[1][0]] == weights[held].min()


def test_without_standardising_a_caption_s_score_is_its_cosine_to_the_direction():
    """(c - r) / |c - r| along w, as the paper prints it."""
    evaluation, _ = world()
    audit = errata.audit(
        evaluation, methods=["directions"], texts=DIFFERENCE, options={"directions": {"standardise": False}}
    )
    found = next(found for found in audit.slices if found.rule["scope"]["label"] == 1)
    normal = audit.slicers[found.slicer].directions_[found.column]
    said = {e.kind: e.to_json() for e in found.explanations}["captions"]
    assert {"a dog in snow", "snow"} <= set(texts_of(said["hard"]))
    assert "a dog on grass" in texts_of(said["easy"])
    for row in said["hard"] + said["easy"]:
        text = TEXTS[row["text"]] / np.linalg.norm(TEXTS[row["text"]])
        beyond = text - AXIS[0]
        assert row["score"] == pytest.approx(beyond @ normal / np.linalg.norm(beyond))


def test_without_texts_there_are_extremes_and_no_captions():
    evaluation, _ = world()
    for found in errata.audit(evaluation, methods=["directions", "gmm"]).slices:
        there = {e.kind for e in found.explanations}
        assert ("extremes" in there) == (found.method == "directions")
        assert "captions" not in there


def test_each_label_of_a_multi_label_audit(make_audit, kinds):
    evaluation, _ = world()
    both = np.stack([evaluation.labels, 1 - evaluation.labels], axis=1)
    predictions = np.stack([evaluation.predictions, 1 - evaluation.predictions], axis=1)
    many = Evaluation(
        labels=both, predictions=predictions, representations=evaluation.representations, class_names=("dog", "cat"),
        sources=evaluation.sources,
    )  # fmt: skip
    captions = Captions(CAPTIONS.texts, CAPTIONS.embeddings, "clip", ["a dog", "a cat"])
    audit = errata.audit(many, methods=["directions"], texts=captions)
    data = next(kinds(f)["captions"] for f in audit.slices if f.task == "dog" and f.rule["scope"]["label"] == 1)
    assert (data["class"], data["reference"]) == ("dog", "the mean of 4 texts that name it")  # cat is no class
    assert "a dog in snow" in texts_of(data["hard"])


def test_names_try_captions_in_the_order_of_their_score(make_audit):
    """The order they are shown in was measured on held-out rows, which may not choose a name."""
    evaluation, snow = world()
    audit = make_audit(evaluation, snow & (evaluation.labels == 1), rule=RULE)
    context = Context(audit, texts=CAPTIONS)
    shown = captions("a dog", ["snow", "a dog in snow", "a dog"])
    scores = {"snow": -0.2, "a dog in snow": -0.9, "a dog": -0.5}
    shown = replace(shown, hard=tuple(replace(row, score=scores[row.text]) for row in shown.hard))
    view = replace(view_of(audit, audit.slices[0], context.tasks), earlier={"captions": shown})
    tried = [candidate.text for candidate in text_candidates(view, context)]
    assert tried == ["near “a dog in snow”", "near “a dog”", "near “snow”"]


# --- candidates --------------------------------------------------------------------------------------------------


def test_the_grammar_crosses_all_lists_and_starts_plain():
    made = caption_candidates(
        ["cat", "otter"], adjectives=("white", "orange"), prepositions=("inside",), nouns={"cat": ["tabby"]},
        own={"otter": ["in the water"]},
    )  # fmt: skip
    assert len(made) == 3 * 2 * 2 + 3 * 1 * 3 == len(set(made))
    assert made[:3] == ["a photo of a cat", "a photo of a cat inside", "a photo of a tabby"]
    assert "a photo of an orange cat inside" in made
    assert "a photo of a white otter in the water" in made
    assert "a photo of a white cat in the water" not in made
    assert "a photo of an otter" in made
    assert caption_candidates(["cat"], adjectives=(), prepositions=(), template="{}, drawn") == ["a cat, drawn"]
    assert len(caption_candidates(["cat"])) == 9 * 8
    assert caption_candidates(["cat", "cat"], adjectives=(), prepositions=()) == ["a photo of a cat"]
    assert reference_captions(["cat", "apple"], "a {x} of {}") == ["a {x} of a cat", "a {x} of an apple"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nouns": {"cats": ["tabby"]}}, "unknown class `cats`; did you mean `cat`"),
        ({"own": {"dog": []}}, "unknown class `dog`"),
        ({"template": "a photo"}, "`template` must hold one {} for the phrase; got 'a photo'"),
        ({"classes": "cat"}, "`classes` must be a list of names"),
        ({"classes": [""]}, "`classes` must be a list of names"),
        ({"classes": []}, "`classes` must be a list of names"),
    ],
)
def test_a_grammar_that_cannot_be(options, words):
    with pytest.raises(InputError, match=words):
        caption_candidates(**{"classes": ["cat"], **options})


def test_phrases_of_the_rows_own_texts():
    texts = ["Don't stop me", "don't stop", "stop it", "it rains", "it rains"]
    assert phrases(texts, fewest=2) == ["it", "stop", "don't", "don't stop", "it rains", "rains"]
    assert phrases(texts, fewest=2, most=2) == ["it", "stop"]
    assert phrases(texts, longest=1, fewest=3) == ["it", "stop"]
    assert phrases(texts, fewest=9) == []
    assert phrases(["b b b", "a", "a"], longest=1, fewest=1) == ["a", "b"]  # texts are counted, not words
    with pytest.raises(InputError, match="must be at least 1"):
        phrases(texts, longest=0)


class Meaning:
    def __init__(self, names: list[str], below: list[Meaning]):
        self._names, self._below = names, below

    def lemma_names(self) -> list[str]:
        return self._names

    def hyponyms(self) -> list[Meaning]:
        return self._below

    def closure(self, step: Any) -> Any:
        for below in step(self):
            yield below
            yield from below.closure(step)


def test_nouns_from_wordnet_where_it_is_installed(monkeypatch):
    tabby = Meaning(["tabby", "tabby_cat"], [Meaning(["tiger_cat", "tabby"], [])])
    asked = []
    wordnet = types.SimpleNamespace(synsets=lambda noun, pos: asked.append((noun, pos)) or [Meaning(["x"], [tabby])])
    corpus: Any = types.ModuleType("nltk.corpus")
    corpus.wordnet = wordnet
    monkeypatch.setitem(sys.modules, "nltk", types.ModuleType("nltk"))
    monkeypatch.setitem(sys.modules, "nltk.corpus", corpus)
    assert hyponyms("big cat") == ["tabby", "tabby cat", "tiger cat"]
    assert asked == [("big_cat", "n")]
    wordnet.synsets = lambda noun, pos: []
    with pytest.raises(InputError, match="WordNet has no noun 'gfx'"):
        hyponyms("gfx")

    def no_data(noun: str, pos: str) -> None:
        raise LookupError("Resource wordnet not found.")

    wordnet.synsets = no_data
    with pytest.raises(MissingExtra, match=r"need nltk and its data.*nltk.downloader wordnet"):
        hyponyms("cat")
    monkeypatch.setitem(sys.modules, "nltk.corpus", None)
    with pytest.raises(MissingExtra, match="pip install nltk"):
        hyponyms("cat")


def test_text_rows_are_captioned_by_phrases(make_audit, kinds):
    """The same machinery: rows that are texts, candidates that are their phrases, one encoder for both."""
    vocabulary = ["cheap", "slow", "service", "food"]

    def encode(texts: list[str]) -> np.ndarray:
        return np.array([[text.split().count(word) + 0.01 for word in vocabulary] for text in texts])

    rng = np.random.default_rng(0)
    slow = rng.random(600) < 0.3
    rows = [f"{'slow' if s else 'cheap'} {'service' if rng.random() < 0.5 else 'food'}" for s in slow]
    X = encode(rows) + 0.1 * rng.normal(size=(600, 4))
    wrong = rng.random(600) < np.where(slow, 0.7, 0.05)
    labels = np.arange(600) % 2
    evaluation = Evaluation(
        labels=labels, predictions=np.where(wrong, 1 - labels, labels), representations={"text": X},
        sources={"text": Source(from_model=False)}, media=errata.inputs.Texts(rows), class_names=("bad", "good"),
    )  # fmt: skip
    texts = errata.inputs.embed_captions(phrases(rows), encode, "text")
    audit = errata.audit(evaluation, methods=["directions"], texts=texts)
    for found in audit.slices:
        data = kinds(found)["captions"]
        assert data["reference"] == "the mean of all texts"
        assert all("slow" in text for text in texts_of(data["hard"])[:2])
        assert all("cheap" in text for text in texts_of(data["easy"])[:2])
        assert data["hard"][0]["matches"]["error_rate"] > 0.5
