"""Names: every rule that decides one, on both sides of its limit. Even rows are search rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from errata.core import Evaluation
from errata.explain import explain
from errata.explain.names import class_words, unique

N = 200
ROWS = np.arange(N)
MEMBERS = ROWS < 40  # 20 search rows among 100
SEARCHED = np.flatnonzero(MEMBERS & (ROWS % 2 == 0))
HELD_OUT = np.flatnonzero(MEMBERS & (ROWS % 2 == 1))
REST = np.flatnonzero(~MEMBERS & (ROWS % 2 == 0))


@pytest.fixture
def name_of(make_audit):
    """The name of one slice."""

    def name(evaluation, members=MEMBERS, **changes):
        return explain(make_audit(evaluation, members, **changes)).slices[0].name

    return name


def _digits(class_names=None):
    labels = np.where(MEMBERS, 8, ROWS % 8)
    predictions = np.where(MEMBERS & (ROWS % 3 > 0), 1, labels)
    return Evaluation(labels=labels, predictions=predictions, class_names=class_names)


def _taken(*taken, rows=SEARCHED):
    """Members of label 8, of which the first of `rows` are taken for these classes, and the others are right."""
    labels = np.where(MEMBERS, 8, ROWS % 8)
    predictions = labels.copy()
    predictions[rows[: len(taken)]] = taken
    return Evaluation(labels=labels, predictions=predictions)


def _sites(members, rest=0, **arrays):
    """Metadata `site`: so many of the searched members, and of the searched rest, are at "x"."""
    site = np.where(ROWS % 4 < 2, "y", "z")
    site[SEARCHED[:members]] = "x"
    site[REST[:rest]] = "x"
    return Evaluation(losses=np.ones(N), metadata={"site": site}, **arrays)


def test_a_label_and_what_it_is_taken_for(make_audit, kinds):
    found = explain(make_audit(_digits(), MEMBERS)).slices[0]
    assert found.name == "label 8, mostly taken for 1"
    data = kinds(found)["name"]
    assert (data["source"], data["covers"], data["precise"]) == ("labels", [20, 20], [20, 20])
    assert (data["errors"], data["n"]) == (13, 20)


def test_a_class_with_a_name_needs_no_word(name_of):
    names = (*tuple(f"shape{j}" for j in range(8)), "star")
    assert name_of(_digits(names)) == "star, mostly taken for shape1"


@pytest.mark.parametrize(
    ("word", "value", "text"),
    [
        ("label", "cat", "cat"),
        ("label", "cat 2", "cat 2"),
        ("predicted", "cat", "predicted cat"),
        ("label", "3", "label 3"),
        ("label", "2.5", "label 2.5"),
        ("label", "−3", "label −3"),
        ("label", "2 to 3", "label 2 to 3"),
        ("label", "2.5 to 3", "label 2.5 to 3"),
        ("label", None, "label None"),
    ],
)
def test_a_mere_number_needs_a_word_and_a_prediction_always_does(word, value, text):
    assert class_words(word, value) == text


@pytest.mark.parametrize(
    ("taken", "tail"),
    [
        ((), ""),  # what is right is not taken for anything
        ((1, 1), ""),  # two errors say little
        ((1, 1, 1), ", mostly taken for 1"),
        ((1, 1, 2, 3), ", mostly taken for 1"),  # half
        ((1, 1, 2, 3, 4), ""),
    ],
)
def test_mostly_is_half_of_at_least_three_errors(name_of, taken, tail):
    assert name_of(_taken(*taken)) == f"label 8{tail}"


def test_only_searched_members_say_what_a_label_is_taken_for(name_of):
    assert name_of(_taken(*[1] * 10, rows=HELD_OUT)) == "label 8"
    labels = np.where(MEMBERS, 8, ROWS % 8)
    labels[REST[:10]] = 8
    predictions = labels.copy()
    predictions[REST[:10]] = 1
    predictions[REST[10:20]] = 8  # so that the prediction sets members apart no better than the label
    assert name_of(Evaluation(labels=labels, predictions=predictions)) == "label 8"


def test_errors_of_other_labels_do_not_say_what_a_label_is_taken_for(name_of):
    labels = np.where(MEMBERS, 8, ROWS % 8)
    labels[SEARCHED[:6]] = 0
    predictions = labels.copy()
    predictions[SEARCHED[:6]] = 1
    assert name_of(Evaluation(labels=labels, predictions=predictions)) == "label 8"


def test_a_prediction_names_where_the_label_does_not(name_of):
    predictions = MEMBERS.astype(int)
    evaluation = Evaluation(labels=np.zeros(N, int), predictions=predictions, class_names=("cat", "dog"))
    assert name_of(evaluation) == "predicted dog"


@pytest.mark.parametrize(("members", "name"), [(9, "spotlight 1"), (10, "site x"), (11, "site x")])
def test_a_name_fits_at_least_half_of_the_members(name_of, members, name):
    assert name_of(_sites(members)) == name


@pytest.mark.parametrize(("rest", "name"), [(23, "site x"), (24, "site x"), (25, "spotlight 1")])
def test_a_name_fits_members_20_points_more_often_than_the_rest(name_of, rest, name):
    assert name_of(_sites(10, rest)) == name


def test_the_strongest_wins_and_the_earlier_of_equal_ones(name_of, texts):
    weak = np.where(ROWS % 20 < 15, "old", "new")  # 75% of all
    strong = {"age": np.where(MEMBERS, "old", weak), "site": np.where(MEMBERS, "x", "y")}
    assert name_of(Evaluation(losses=np.ones(N), metadata=strong)) == "site x"
    labels = MEMBERS.astype(int)
    both = Evaluation(labels=labels, predictions=labels, metadata={"site": np.where(MEMBERS, "x", "y")})
    assert name_of(both) == "label 1"
    words = texts(["que" if inside else "the" for inside in MEMBERS])
    assert name_of(Evaluation(losses=np.ones(N), metadata={"site": strong["site"]}, media=words)) == "site x"


def test_the_value_that_a_slice_has_most_more_of(name_of):
    site = np.where(ROWS % 10 < 8, "a", np.where(ROWS % 20 < 10, "b", "c"))
    site[SEARCHED] = ["b", "c"] * 10  # what it lacks differs more, but says nothing of its members
    assert name_of(Evaluation(losses=np.ones(N), metadata={"site": site})) == "site b"


def test_a_missing_value_has_a_word(name_of):
    assert name_of(Evaluation(losses=np.ones(N), metadata={"site": np.where(MEMBERS, "", "x")})) == "site missing"


def test_a_metadata_range(name_of):
    age = np.where(MEMBERS, 60 + ROWS % 30, 10 + ROWS // 2 % 40)
    assert name_of(Evaluation(losses=np.ones(N), metadata={"age": age})) == "age 60 to 89"


def test_the_three_words_that_it_has_most_more_of(name_of, texts):
    lines = [f"que como para pero {i}" if MEMBERS[i] else f"the book {i}" for i in range(N)]
    assert name_of(Evaluation(losses=np.ones(N), media=texts(lines))) == "como, para, pero"


def test_nothing_in_common_gives_the_method_and_its_number(make_audit, kinds):
    evaluation = Evaluation(losses=np.ones(N), metadata={"kind": np.where(ROWS % 4 < 2, "a", "b")})
    audit = explain(make_audit(evaluation, MEMBERS, ROWS > 150))
    assert [found.name for found in audit.slices] == ["spotlight 1", "spotlight 2"]
    assert kinds(audit.slices[0])["name"]["source"] is None
    assert "covers" not in kinds(audit.slices[0])["name"]


def test_a_slice_that_no_column_can_be_applied_for_has_no_number(make_audit):
    audit = make_audit(Evaluation(losses=np.ones(N)), MEMBERS)
    audit = replace(audit, slices=tuple(replace(slice_, column=-1) for slice_ in audit.slices))
    assert explain(audit).slices[0].name == "spotlight"


def test_what_fits_everything_names_nothing(name_of):
    assert name_of(Evaluation(losses=np.ones(N), metadata={"site": np.full(N, "north")})) == "spotlight 1"


STARS = (*tuple(f"shape{j}" for j in range(8)), "star")


@pytest.mark.parametrize(
    ("scope", "class_names", "name"),
    [
        ({"label": 8}, None, "label 8, spotlight 1"),
        ({"label": 8}, STARS, "star, spotlight 1"),
        ({"prediction": 1}, None, "predicted 1, spotlight 1"),
        ({"prediction": 1}, STARS, "predicted shape1, spotlight 1"),
    ],
)
def test_the_scope_is_part_of_the_name(name_of, scope, class_names, name):
    labels = np.where(MEMBERS, 8, 1)
    evaluation = Evaluation(labels=labels, predictions=np.ones(N, int), class_names=class_names)
    random = np.random.default_rng(0).random(N) < 0.3
    assert name_of(evaluation, random, rule={"scope": scope}) == name


def test_a_scope_of_metadata_stands_before_what_sets_members_apart(name_of):
    day = np.where(ROWS < 20, "monday", "friday")
    evaluation = Evaluation(losses=np.ones(N), metadata={"site": np.where(MEMBERS, "x", "y"), "day": day})
    assert name_of(evaluation, ROWS < 20, rule={"scope": {"site": "x"}}) == "site x, day monday"


def test_a_scope_that_is_the_name_stands_once(name_of):
    assert name_of(_taken(), rule={"scope": {"label": 8}}) == "label 8"  # the whole scope: there is no rest


def test_a_name_that_stands_twice_is_numbered(make_audit):
    audit = explain(make_audit(_digits(), MEMBERS, MEMBERS))
    assert [found.name for found in audit.slices] == ["label 8, mostly taken for 1", "label 8, mostly taken for 1 (2)"]
    assert unique(["a", "b", "a", "a"]) == ["a", "b", "a (2)", "a (3)"]
