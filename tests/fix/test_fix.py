"""Plans: which rows they name, in what order, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import errata
from errata.core import Evaluation, InputError, Plan, Slice, Source
from errata.fix import by_chance, by_confidence, make_prompts, select, upweight
from support.explanations import captions


def rows(labels=(0, 0, 0, 1, 1, 1), ids="abcdef", **more) -> Evaluation:
    return Evaluation(labels=np.array(labels), ids=np.array(list(ids)), losses=np.zeros(len(labels)), **more)


def test_flagged_rows_count_more_and_the_others_once():
    plan = upweight(rows(), np.array([True, False, False, False, True, False]), 3)
    assert plan.ids.tolist() == ["a", "e"]
    assert len(plan) == 2
    other_order = rows().rows(np.array([4, 5, 0, 1, 2, 3]))
    assert plan.weights_of(other_order).tolist() == [3, 1, 3, 1, 1, 1]
    assert plan.why == "2 of 6 rows count 3 times"


@pytest.mark.parametrize("factor", [0, -1, np.nan, np.inf])
def test_a_factor_is_a_positive_number(factor):
    with pytest.raises(InputError, match="`factor` must be a positive number"):
        upweight(rows(), np.ones(6, dtype=bool), factor)


def test_the_hardest_of_each_class_are_taken_hardest_first():
    plan = select(rows(), np.array([1, 5, 3, 2, 9, 4.0]), 2)
    assert plan.ids.tolist() == ["b", "c", "e", "f"]
    assert plan.rows_of(rows()).tolist() == [1, 2, 4, 5]


def test_equal_hardness_is_settled_by_id_whatever_the_order():
    shuffled = rows().rows(np.array([2, 0, 1, 5, 4, 3]))
    assert select(shuffled, np.ones(6), 1).ids.tolist() == ["a", "d"]


def test_rows_outside_of_every_slice_are_not_taken():
    plan = select(rows(), np.array([0.2, 0, 0, 0, 0, 0]), 2, least=0.0)
    assert plan.ids.tolist() == ["a"]


def test_classes_are_predictions_where_there_are_no_labels():
    pool = Evaluation(predictions=np.array([0, 0, 1]), ids=np.array(list("abc")))
    assert select(pool, np.array([1.0, 2.0, 0.5]), 1).ids.tolist() == ["b", "c"]
    bare = Evaluation(losses=np.zeros(3), ids=np.array(list("abc")))
    assert select(bare, np.array([1.0, 2.0, 0.5]), 1).ids.tolist() == ["b"]


def test_a_selection_of_nothing_is_refused():
    for count in (0, 2.5):
        with pytest.raises(InputError, match=f"`per_class` must be a whole number of at least 1; got {count}"):
            select(rows(), np.ones(6), count)
    with pytest.raises(InputError, match="`seed` must be a whole number of at least 0; got -1"):
        by_chance(rows(), -1)


def test_confidence_is_that_of_the_label():
    probs = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    labelled = Evaluation(labels=np.array([0, 0, 0]), probs=probs)
    assert by_confidence(labelled).tolist() == pytest.approx([0.1, 0.4, 0.8])
    assert by_confidence(Evaluation(probs=probs)).tolist() == pytest.approx([0.1, 0.4, 0.2])
    with pytest.raises(InputError, match="a ranking by confidence needs `probs`"):
        by_confidence(rows())


def test_of_several_labels_a_row_the_largest_doubt_counts():
    labels = np.array([[1, 0], [1, 1], [0, 0]])
    probs = np.array([[0.9, 0.3], [0.4, 0.8], [0.1, 0.1]])
    several = Evaluation(labels=labels, probs=probs, class_names=("cat", "dog"))
    assert by_confidence(several).tolist() == pytest.approx([0.3, 0.6, 0.1])
    assert by_confidence(several, ["dog"]).tolist() == pytest.approx([0.3, 0.2, 0.1])


def test_chance_follows_its_seed_and_the_id_not_the_place():
    order = np.array([5, 1, 0, 3, 2, 4])
    assert by_chance(rows(), 1)[order].tolist() == by_chance(rows().rows(order), 1).tolist()
    assert by_chance(rows(), 1).tolist() != by_chance(rows(), 2).tolist()


def test_a_plan_of_other_rows_is_refused():
    plan = Plan("weights", "", np.array(["a", "z"]), np.ones(2))
    with pytest.raises(InputError, match=r"names row .*'z'.*, which these rows do not have \(1 such\)"):
        plan.weights_of(rows())


def captioned(id: str, label: int, hard: list[str]) -> Slice:
    explanations = (captions(f"a photo of {label}", hard),)
    rule = {"scope": {"label": label}}
    return Slice(id, "directions", "", "confirmed", 0.5, rule, np.ones(1), explanations=explanations)


def test_captions_share_the_pictures():
    slices = [captioned("s1", 0, ["a red cat", "a cat inside", "a cat"]), captioned("s2", 1, ["a dog"])]
    plan = make_prompts(slices, 5, captions=2)
    assert [(p.text, p.label, p.count) for p in plan.prompts] == [
        ("a red cat", 0, 3), ("a cat inside", 0, 2), ("a dog", 1, 5),
    ]  # fmt: skip
    assert len(plan) == 10
    assert plan.slices == ("s1", "s2")
    assert [p.text for p in make_prompts(slices, side="reference").prompts] == ["a photo of 0", "a photo of 1"]
    some = make_prompts([*slices, captioned("s3", 0, [])], 5)
    assert some.why == "generate 10 images of 2 hard captions; without captions of that side: s3"
    assert some.slices == ("s1", "s2")


def test_nothing_to_draw_is_said():
    bare = replace(captioned("s1", 0, []), explanations=())
    with pytest.raises(InputError, match="no slice has captions to generate images from"):
        make_prompts([bare])
    with pytest.raises(InputError, match="no caption lies on the easy side of s1; give another `side`, or audit"):
        make_prompts([bare, captioned("s1", 0, ["x"])], side="easy")
    with pytest.raises(InputError, match="`seed` must be a whole number of at least 0; got True"):
        by_chance(rows(), True)
    with pytest.raises(InputError, match="unknown side `hrad`; did you mean `hard`"):
        make_prompts([captioned("s1", 0, ["x"])], side="hrad")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`count` must be a whole number of at least 1; got 0"):
        make_prompts([captioned("s1", 0, ["x"])], 0)


@pytest.mark.parametrize("columns", [(), ("predictions",)])
def test_rows_that_cannot_be_placed_in_a_slice_are_refused_by_name(columns):
    """A slice within a label cannot be found among rows without labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 1000)
    x = rng.normal(size=(1000, 2))
    wrong = rng.random(1000) < np.where((x[:, 0] > 1) & (labels == 1), 0.9, 0.03)
    rows = {"labels": labels, "predictions": np.where(wrong, 1 - labels, labels), "representations": {"x": x}}
    sources = {"x": Source(from_model=False)}
    audit = errata.audit(Evaluation(**rows, sources=sources), methods=["gmm"], within="label", map=False)
    (target, *_) = audit.confirmed
    known = {name: rows[name] for name in columns}
    others = Evaluation(representations={"x": x}, sources=sources, ids=np.arange(1000) + 5000, **known)
    said = f"these rows cannot be placed in {target.id}.*: they lack the labels or predictions that the slice is within"
    for plan in (errata.plan_weights, errata.plan_selection):
        with pytest.raises(InputError, match=said):
            plan(audit, others)
