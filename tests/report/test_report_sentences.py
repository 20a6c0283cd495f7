"""The sentences of `ui.md`, word for word."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from errata.core import Evaluation, Overall, SearchMeasure
from errata.explain.contrast import Contrast
from errata.explain.names import Name, Predicts
from errata.explain.view import Match, Outcome
from errata.report import name_sentences, sentences

ERROR, LOSS = "error", "loss above 2.31"


def test_confirmed(make_slice):
    assert sentences.verdict(make_slice(), ERROR) == (
        "98 of 214 held-out rows are wrong: 45.8%, against 7.6% of the rest. The gap is 38.2 points (31.6 to 44.9)."
    )


def test_confirmed_by_loss(make_slice, confirmed):
    found = make_slice(confirm=confirmed(error_rate=None))
    assert sentences.verdict(found, LOSS).startswith("98 of 214 held-out rows have a loss above 2.31: 45.8%, against")


def test_no_percentage_of_few_rows(make_slice, confirmed):
    seen = confirmed(n=11, errors=9, rate=9 / 11, rest_n=15, rest_rate=0.2)
    assert sentences.verdict(make_slice(confirm=seen), ERROR).startswith(
        "9 of 11 held-out rows are wrong, against 3 of 15 of the rest."
    )


def test_not_confirmed(make_slice, confirmed):
    found = make_slice(verdict="not confirmed", confirm=confirmed(gap=0.051, interval=(-0.002, 0.128)))
    assert sentences.verdict(found, ERROR) == (
        "On the search rows 31.0% were wrong; on the held-out rows the gap is 5.1 points (−0.2 to 12.8)."
    )
    assert sentences.verdict(found, LOSS).startswith("On the search rows 31.0% had a loss above 2.31; on")


def test_not_confirmed_on_few_discover_rows(make_slice):
    found = make_slice(verdict="not confirmed", discover=SearchMeasure(10, 0.5, 0.5, 0.4, None))
    assert sentences.verdict(found, ERROR).startswith("On the search rows 5 of 10 were wrong; on")


def test_too_few_to_tell(make_slice, confirmed):
    found = make_slice(verdict="too few to tell", confirm=confirmed(n=11, rows_needed=20))
    assert sentences.verdict(found, ERROR) == "11 held-out rows; at least 20 are needed."
    unknown = make_slice(verdict="too few to tell", confirm=confirmed(n=1, rows_needed=None))
    assert sentences.verdict(unknown, ERROR) == "1 held-out row; how many are needed is not known."


def test_unconfirmable(make_slice):
    found = make_slice(verdict="not confirmed", reason="unconfirmable")
    assert sentences.verdict(found, ERROR) == (
        "The method reads the outcome of a row, so a high error is by construction."
    )


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"explained_by": ("class",)}, "Worse than the rest; its class explains it."),
        ({"explained_by": ("confidence",)}, "Worse than the rest; the model is already unsure here."),
        (
            {"explained_by": ("confidence",), "rule": {"scope": {"label": 1}}},
            "Worse than the rest; within one label the model’s own prediction tells it.",
        ),
        (
            {"explained_by": ("class", "confidence")},
            "Worse than the rest; its class explains it and the model is already unsure here.",
        ),
        (
            {"beyond": ("class", "confidence")},
            "Worse than the rest, not explained by its class or by low confidence.",
        ),
        ({"side": "easy", "explained_by": ("class",)}, "Better than the rest; its class explains it."),
        (
            {"beyond": ()},
            "Worse than the rest; it could be compared neither with its class nor with the model’s confidence.",
        ),
    ],
)
def test_what_a_finding_is_beyond(make_slice, changes, wanted):
    assert sentences.beyond(make_slice(**changes)) == wanted


def test_excess(make_slice, confirmed):
    assert sentences.excess(make_slice(), confirmed(), ERROR) == "82 excess errors (68 to 96)"
    assert sentences.excess(make_slice(), confirmed(), LOSS) == "82 excess losses above 2.31 (68 to 96)"
    assert sentences.excess(make_slice(side="easy"), confirmed(), ERROR) == "82 fewer errors (68 to 96)"


def test_found_by(make_slice):
    three = make_slice(found_by=("spotlight", "infembed", "barlow"), folded=3, fidelity=0.62)
    assert sentences.found_by(three, 6) == "Found by 3 of 6 methods: spotlight, infembed, barlow"
    assert sentences.found_by(make_slice(found_by=()), 1) == "Found by 1 of 1 method: spotlight"
    several = make_slice(
        found_by=("consensus",), rule={"kind": "region", "generator": "ball", "found_by": 4, "searches": 6}
    )
    words = ("4 of 6 searches", "of its method found it; its shape: a ball")
    assert sentences.searches(several.rule) == words
    assert sentences.searches({"kind": "approximation", "of": several.rule}) == words
    assert sentences.searches(three.rule) is None
    assert sentences.merged(three) == "3 near-identical slices merged into this one"
    assert sentences.merged(make_slice(folded=1)) == "1 near-identical slice merged into this one"
    assert sentences.approximation(three) == (
        "Measured on an approximation that does not read the outcome; 62.0% of its rows are the method’s own."
    )


def test_a_scope_is_told_by_the_names_of_classes(make_slice):
    evaluation = Evaluation(labels=np.array([0, 1]), predictions=np.array([0, 1]), class_names=("cat", "dog"))
    within = make_slice(rule={"scope": {"label": 1}})
    assert sentences.scope(within, evaluation) == "Searched and compared within label dog."
    assert sentences.scope(make_slice(), evaluation) == ""


def test_overall():
    total = Overall(10000, 0.09, 0.4, 5000, 463, 0.0926, (0.085, 0.101), ERROR)
    assert sentences.overall(total) == (
        "The model is wrong on 463 of 5,000 held-out rows: 9.3% (95% interval 8.5 to 10.1)."
    )
    by_loss = Overall(10000, None, 0.4123, 5000, 463, 0.0926, (0.085, 0.101), LOSS, confirm_loss=0.4321)
    assert sentences.overall(by_loss) == (
        "463 of 5,000 held-out rows have a loss above 2.31: 9.3% (95% interval 8.5 to 10.1). "
        "The mean loss of all held-out rows is 0.432."
    )
    older = replace(by_loss, confirm_loss=None)
    assert "mean" not in sentences.overall(older), "that of all rows is another number than those beside it"


def test_where_the_errors_lie():
    assert sentences.errors_inside(268, 5, 0.15, (195, 4240)) == (
        "268 of those errors lie in five confirmed slices that cover 15% of the rows. Outside them it is wrong on 4.6%."
    )
    assert sentences.errors_inside(1, 1, 0.15, (2, 10)) == (
        "1 of those errors lies in one confirmed slice that covers 15% of the rows. "
        "Outside it the model is wrong on 2 of 10."
    )


@pytest.mark.parametrize(
    ("worse", "better", "share", "outcome", "wanted"),
    [
        (5, 0, 0.58, ERROR, "Five groups of inputs hold 58% of this model’s errors."),
        (1, 2, 0.3, ERROR, "One group of inputs holds 30% of this model’s errors."),
        (2, 0, None, ERROR, "Two groups of inputs are worse than the rest."),
        (2, 0, None, LOSS, "Two groups of inputs have more losses above 2.31 than the rest."),
        (0, 0, None, ERROR, "No slice was confirmed."),
        (0, 1, None, ERROR, "No worse slice was confirmed; one group is better than the rest."),
    ],
)
def test_the_answer_is_the_title(worse, better, share, outcome, wanted):
    assert sentences.title(worse, better, share, outcome) == wanted


def test_the_level_of_intervals():
    assert sentences.level({}) == "90%, simultaneous"
    assert sentences.level({"alpha": 0.05, "level": 0.025}) == "95%, simultaneous"
    assert sentences.level({"alpha": 0.01}) == "98%, simultaneous"


def test_a_name_carries_its_score():
    outcome = Outcome(236, 100, 100 / 236, None)
    good = Name("discover", "confirm", "cat", "labels", Match((201, 214), (201, 236), outcome))
    score = "covers 93.9% (201 of 214 members), precise 85.2% (201 of 236 rows it fits)."
    assert name_sentences.name_score(good) == name_sentences.name_fit(good) == f"The name {score}"
    weak = replace(good, weak=True)
    assert name_sentences.name_score(weak) == name_sentences.name_fit(weak) == f"Weak name: {score}"
    broad = replace(weak, match=Match((201, 214), (201, 600), outcome))
    assert name_sentences.name_fit(broad) == (
        "Weak name, most of what it fits lies elsewhere: "
        "covers 93.9% (201 of 214 members), precise 33.5% (201 of 600 rows it fits)."
    )
    few = replace(good, match=Match((5, 11), (5, 9), outcome))
    assert name_sentences.name_fit(few) == "The name covers 5 of 11 members, precise 5 of 9 rows it fits."
    assert name_sentences.name_fit(replace(good, own=True)) == ""
    telling = replace(good, predicts=Predicts((178, 355), 0.4904, 0.0781, 2266))
    assert name_sentences.name_score(telling).endswith(
        "All held-out rows that it fits: 178 of 355 errors, 49.0% wrong against 7.8% of the others."
    )
    assert name_sentences.name_score(replace(good, own=True)) == "Named by its own rule."


def test_where_nothing_describes_a_slice_the_contrast_stands_in_its_place():
    none = Name("discover", "confirm", "no short description: more often site a", None)
    none = replace(none, contrast=Contrast("site a", (160, 200), (82, 200)))
    contrast = "Members are more often site a: 80.0% against 41.0%."
    assert name_sentences.name_fit(none) == contrast
    assert (
        name_sentences.name_score(none) == f"No class, rule over columns, word or text describes these rows. {contrast}"
    )
    assert name_sentences.name_fit(replace(none, contrast=None)) == ""
