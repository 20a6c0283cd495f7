"""Names: every limit that decides one, on both sides of it. Even rows are search rows."""

from __future__ import annotations

import numpy as np
import pytest

from errata.core import Evaluation
from errata.explain import explain
from errata.explain.candidates import class_words
from errata.explain.names import Name

N = 200
ROWS = np.arange(N)
MEMBERS = ROWS < 40  # 20 search rows among 100
SEARCHED = np.flatnonzero(MEMBERS & (ROWS % 2 == 0))
HELD_OUT = np.flatnonzero(MEMBERS & (ROWS % 2 == 1))
REST = np.flatnonzero(~MEMBERS & (ROWS % 2 == 0))
HELD_OUT_REST = np.flatnonzero(~MEMBERS & (ROWS % 2 == 1))


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


def _taken(*taken, rows=(SEARCHED, HELD_OUT)):
    """Members of label 8, of which the first of each `rows` are taken for these classes, and the others are right."""
    labels = np.where(MEMBERS, 8, ROWS % 8)
    predictions = labels.copy()
    for part in rows:
        predictions[part[: len(taken)]] = taken
    return Evaluation(labels=labels, predictions=predictions)


def _labels(members, rest=0, held_out=None, held_out_rest=None):
    """Label 8: so many members and rows of the rest among the search rows; the same, or these, among held-out rows."""
    labels = np.where(MEMBERS, ROWS % 7, ROWS % 7)
    labels[SEARCHED[:members]] = 8
    labels[REST[:rest]] = 8
    labels[HELD_OUT[: members if held_out is None else held_out]] = 8
    labels[HELD_OUT_REST[: rest if held_out_rest is None else held_out_rest]] = 8
    return Evaluation(labels=labels, losses=np.ones(N))


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


def test_members_on_both_kinds_of_rows_say_what_a_label_is_taken_for(name_of):
    assert name_of(_taken(*[1] * 10, rows=[HELD_OUT])) == "label 8"
    assert name_of(_taken(*[1] * 10, rows=[SEARCHED])) == "label 8"  # the held-out rows do not bear it out
    labels = np.where(MEMBERS, 8, ROWS % 8)
    labels[REST[:10]] = 8
    predictions = labels.copy()
    predictions[REST[:10]] = 1  # others of the label, not members
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


def test_only_what_search_rows_and_held_out_rows_bear_out_names(name_of):
    assert name_of(_labels(20)) == "label 8"
    assert name_of(_labels(20, held_out=0, held_out_rest=20)).startswith("no short description")
    assert name_of(_labels(0, 20, held_out=20, held_out_rest=0)).startswith("no short description")


@pytest.mark.parametrize(("members", "fits"), [(4, False), (5, True)])
def test_a_name_fits_at_least_five_members(name_of, members, fits):
    assert (name_of(_labels(members)) == "label 8") == fits


@pytest.mark.parametrize(("held_out", "fits"), [(1, False), (2, True)])
def test_a_name_fits_at_least_a_tenth_of_the_held_out_members(name_of, held_out, fits):
    assert (name_of(_labels(10, held_out=held_out)) == "label 8") == fits


@pytest.mark.parametrize(("rest", "fits"), [(8, True), (9, True), (10, False)])
@pytest.mark.parametrize("where", ["search", "held-out"])
def test_half_of_what_a_name_fits_are_members_where_it_fits_less_than_half_of_them(name_of, rest, fits, where):
    counts = {"rest": rest, "held_out_rest": 0} if where == "search" else {"rest": 0, "held_out_rest": rest}
    assert (name_of(_labels(9, **counts)) == "label 8") == fits


@pytest.mark.parametrize(("rest", "fits"), [(11, True), (23, True), (24, False)])  # 10 of 33, 10 of 34
@pytest.mark.parametrize("where", ["search", "held-out"])
def test_of_a_name_that_fits_half_of_the_members_three_in_ten_are_members(name_of, rest, fits, where):
    """One and a half times their share among all rows, which is a fifth."""
    counts = {"rest": rest, "held_out_rest": 0} if where == "search" else {"rest": 0, "held_out_rest": rest}
    assert (name_of(_labels(10, **counts)) == "label 8") == fits


@pytest.mark.parametrize(("rest", "fits"), [(27, True), (28, False)])  # 6 of 33, 6 of 34
@pytest.mark.parametrize("where", ["search", "held-out"])
def test_members_of_a_small_slice_are_three_times_as_frequent_in_what_its_name_fits(name_of, rest, fits, where):
    few = ROWS < 12
    labels = ROWS % 7
    labels[few] = 8
    elsewhere = {"search": REST, "held-out": HELD_OUT_REST}[where]
    labels[elsewhere[:rest]] = 8
    assert (name_of(Evaluation(labels=labels, losses=np.ones(N)), few) == "label 8") == fits


def test_two_slices_are_not_named_by_one_condition_in_other_words(make_audit):
    predictions = np.where(MEMBERS, 1, 0)
    evaluation = Evaluation(labels=np.zeros(N, int), predictions=predictions, class_names=("cat", "dog"))
    names = [found.name for found in explain(make_audit(evaluation, MEMBERS, MEMBERS)).slices]
    assert names[0] == "predicted dog"
    assert "prediction = dog" not in names


def _ages():
    """Faces that are labelled by their age; members are the oldest, half of them predicted young."""
    years = ROWS // 4 % 10  # the same in every fourth row, and so in all halves
    age = np.where(ROWS < 120, 45, 20) + years
    age[MEMBERS] = 70 + years[MEMBERS]
    labels = (age >= 45).astype(int)
    predictions = labels.copy()
    predictions[MEMBERS & (ROWS % 8 < 4)] = 0
    return Evaluation(
        labels=labels, predictions=predictions, class_names=("young", "old"), metadata={"age": age.astype(float)}
    )


def test_a_column_that_gives_the_label_away_describes_rows_as_the_label_does(name_of):
    assert name_of(_ages()) == "age >= 70"


def test_within_a_label_the_column_that_gives_it_away_tells_no_errors(name_of):
    assert name_of(_ages(), rule={"scope": {"label": 1}}) == "old, age >= 70"


def test_within_a_prediction_it_would_tell_the_errors_and_is_left_out(make_audit):
    evaluation = _ages()
    wrong = MEMBERS & (evaluation.predictions == 0)
    found = explain(make_audit(evaluation, wrong, rule={"scope": {"prediction": 0}})).slices[0]
    assert "age" not in found.name


def _unsure(sure, unsure):
    confidence = np.where(MEMBERS, unsure, sure)
    labels = ROWS % 2
    return Evaluation(labels=labels, probs=np.stack([confidence, 1 - confidence], axis=1))


def test_what_nothing_else_describes_is_named_by_the_confidence(make_audit):
    name = explain(make_audit(_unsure(0.95, 0.715), MEMBERS)).slices[0].explanation(Name)
    assert (name.text, name.source, name.weak) == ("confidence below 72%", "confidence", False)
    assert (name.match.covers, name.match.precise) == ((20, 20), (20, 20))


def test_the_confidence_names_nothing_that_has_another_description(name_of):
    evaluation = _unsure(0.95, 0.715)
    site = np.where(MEMBERS, "a", "b")
    site[SEARCHED[:2]] = "b"
    site[HELD_OUT[:2]] = "b"
    described = Evaluation(labels=evaluation.labels, probs=evaluation.probs, metadata={"site": site})
    assert name_of(described) == "site = a"


def test_what_fits_everything_names_nothing(name_of):
    half = ROWS < 120  # of all rows: a name that fits all rows has a precision of .6
    evaluation = Evaluation(labels=np.zeros(N, int), losses=np.ones(N))
    assert name_of(evaluation, half) == "no short description"


@pytest.mark.parametrize(
    ("members", "rest", "weak"),
    [(20, 0, False), (10, 0, False), (9, 0, True), (20, 10, False), (20, 11, True)],
)
def test_a_name_that_fits_less_than_half_or_too_much_else_is_weak(make_audit, members, rest, weak):
    name = explain(make_audit(_labels(members, rest), MEMBERS)).slices[0].explanation(Name)
    assert (name.text, name.weak) == ("label 8", weak)
    assert name.match.covers == (members, 20)
    assert name.match.precise == (members, members + rest)


def test_the_best_wins_and_the_earlier_of_equal_ones(name_of, texts):
    labels = MEMBERS.astype(int)
    both = Evaluation(labels=labels, predictions=np.where(ROWS < 50, 1, 0))
    assert name_of(both) == "label 1"
    other = Evaluation(labels=np.where(ROWS < 50, 1, 0), predictions=labels)
    assert name_of(other) == "predicted 1"
    words = texts(["que" if inside else "the" for inside in MEMBERS])
    assert name_of(Evaluation(labels=labels, losses=np.ones(N), media=words)) == "label 1"


def test_words_that_add_to_what_the_first_fits(name_of, texts):
    lines = ["que" if i % 8 < 4 else "como" if i % 8 < 6 else "para" for i in range(40)]
    lines += [f"the book {i}" for i in range(N - 40)]
    assert name_of(Evaluation(losses=np.ones(N), media=texts(lines))) == "text contains “que” or “como” or “para”"
    same = [f"que como {i}" if MEMBERS[i] else f"the book {i}" for i in range(N)]
    assert name_of(Evaluation(losses=np.ones(N), media=texts(same))) == "text contains “que como”"


def test_words_of_search_rows_alone_name_nothing(name_of, texts):
    lines = ["que" if MEMBERS[i] and i % 2 == 0 else f"the book {i}" for i in range(N)]
    assert name_of(Evaluation(losses=np.ones(N), media=texts(lines))).startswith("no short description")


def test_a_description_that_predicts_errors_says_how_many(make_audit):
    labels = np.where(MEMBERS, 8, ROWS % 8)
    wrong = np.where(MEMBERS, ROWS % 4 < 2, ROWS % 20 == 19)
    wrong[HELD_OUT] = np.arange(20) < 15
    evaluation = Evaluation(labels=labels, predictions=np.where(wrong, (labels + 1) % 9, labels))
    name = explain(make_audit(evaluation, MEMBERS)).slices[0].explanation(Name)
    assert name.predicts.of_errors == (15, 23)  # of the 80 others, every tenth
    assert (name.predicts.rate, name.predicts.others_rate, name.predicts.others_n) == (15 / 20, 8 / 80, 80)
    assert name.interval == pytest.approx((0.5313, 0.8881), abs=1e-4)  # Wilson, 15 of 20
    few = np.zeros(N, dtype=bool)
    few[HELD_OUT[:3]] = True
    few[HELD_OUT_REST[:8]] = True
    evaluation = Evaluation(labels=labels, predictions=np.where(few, (labels + 1) % 9, labels))
    assert explain(make_audit(evaluation, MEMBERS)).slices[0].explanation(Name).predicts is None


def test_without_a_description_the_name_says_what_members_have_more_of(make_audit, kinds):
    site = np.where(ROWS % 10 < 5, "a", "b")
    site[SEARCHED[:16]] = "a"
    site[HELD_OUT[:14]] = "a"
    evaluation = Evaluation(losses=np.ones(N), metadata={"site": site})
    audit = explain(make_audit(evaluation, MEMBERS, MEMBERS))
    assert [found.name for found in audit.slices] == [
        "no short description: more often site a",
        "no short description: more often site a, 20 rows",
    ]
    data = kinds(audit.slices[0])["name"]
    assert "further" not in data
    assert data["source"] is None
    assert "covers" not in data
    assert data["contrast"]["text"] == "site a"
    assert data["contrast"]["slice"] == [int((site[HELD_OUT] == "a").sum()), 20]
    assert data["contrast"]["rest"] == [int((site[HELD_OUT_REST] == "a").sum()), 80]


def test_slices_with_one_contrast_are_told_apart_by_further_ones(make_audit):
    site = np.where(ROWS % 10 < 5, "a", "b")
    for rows in (SEARCHED, HELD_OUT):
        site[rows[:15]] = "a"
    lamp = np.where(ROWS % 8 < 2, "on", "off")
    for rows in (SEARCHED, HELD_OUT):
        lamp[rows[5:14]] = "on"
    evaluation = Evaluation(losses=np.ones(N), metadata={"site": site, "lamp": lamp})
    found = explain(make_audit(evaluation, MEMBERS, MEMBERS)).slices
    first, second = (slice_.explanation(Name) for slice_ in found)
    assert first.further is None
    assert second.text.startswith(f"{first.text} and ")
    contrasts = [contrast.text for contrast in (second.contrast, *second.further)]
    assert second.text == f"no short description: more often {' and '.join(contrasts)}"


STARS = (*tuple(f"shape{j}" for j in range(8)), "star")


@pytest.mark.parametrize(
    ("scope", "class_names", "name"),
    [
        ({"label": 8}, None, "label 8, no short description"),
        ({"label": 8}, STARS, "star, no short description"),
        ({"prediction": 1}, None, "predicted 1, no short description"),
        ({"prediction": 1}, STARS, "predicted shape1, no short description"),
    ],
)
def test_the_scope_is_part_of_the_name(name_of, scope, class_names, name):
    labels = np.where(ROWS < 120, 8, 1)
    evaluation = Evaluation(labels=labels, predictions=np.ones(N, int), class_names=class_names)
    random = (np.random.default_rng(0).random(N) < 0.3) & (labels == 8)
    assert name_of(evaluation, random, rule={"scope": scope}) == name


def test_a_slice_that_is_most_of_its_scope_has_its_name(name_of):
    assert name_of(_taken(), rule={"scope": {"label": 8}}) == "label 8"  # the whole scope: there is no rest
    assert name_of(_taken(1, 1, 1), rule={"scope": {"label": 8}}) == "label 8, mostly taken for 1"
    most = MEMBERS & (ROWS % 8 < 6)
    assert name_of(_taken(), most, rule={"scope": {"label": 8}}) == "label 8"
    half = MEMBERS & (ROWS % 8 < 3)
    assert name_of(_taken(), half, rule={"scope": {"label": 8}}).startswith("label 8, no short description")


def test_a_rule_that_two_slices_have_stays_their_name(make_audit):
    """Such as the halves of a cross-fit: nothing else describes the second better."""
    rule = {"kind": "conditions", "conditions": [{"column": "site", "values": ["a"]}]}
    site = np.where(MEMBERS, "a", "b")
    audit = explain(make_audit(Evaluation(losses=np.ones(N), metadata={"site": site}), MEMBERS, MEMBERS, rule=rule))
    assert [found.name for found in audit.slices] == ["site = a", "site = a, 20 rows"]


def test_no_name_stands_twice(make_audit):
    audit = explain(make_audit(_digits(), MEMBERS, MEMBERS, MEMBERS))
    names = [found.name for found in audit.slices]
    assert names[0] == "label 8, mostly taken for 1"
    assert len(set(names)) == 3
    assert not any("(2)" in name for name in names)
    assert [found.explanation(Name).text for found in audit.slices] == names


def test_a_word_can_be_the_contrast(make_audit, texts):
    def name(members, rest):
        """The name of a slice of which so many of 20 rows have “que”, and of the rest so many of 100."""
        lines = ["the book"] * N
        for rows, share in ((SEARCHED, members), (HELD_OUT, members), (REST, rest), (HELD_OUT_REST, rest)):
            for i in rows[: round(share * len(rows))]:
                lines[i] = "que book"
        evaluation = Evaluation(losses=np.ones(N), media=texts(lines))
        return explain(make_audit(evaluation, MEMBERS)).slices[0].explanation(Name)

    more = name(0.95, 0.6)
    assert more.text == "no short description: more often “que”"
    assert (more.contrast.slice, more.contrast.rest) == ((19, 20), (48, 80))
    assert name(0.6, 0.4).text == "no short description"  # chance would do as much
    assert name(0.45, 0.4).text == "no short description"


def test_what_members_lack_is_told_where_they_have_nothing_more_of(name_of, texts):
    lines = [("que " if i % 10 < 2 else "") + "book" if MEMBERS[i] else "que book" for i in range(N)]
    half = np.arange(N) % 3 > 0  # so that no single word describes the members
    mixed = [line if half[i] else "que book" for i, line in enumerate(lines)]
    assert name_of(Evaluation(losses=np.ones(N), media=texts(mixed))) == "no short description: less often “que”"
