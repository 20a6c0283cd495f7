"""Barlow's slices: planted features, groupings, what is read of a row, poor groups, saving."""

import json

import numpy as np
import pytest

from errata.core import Evaluation, MissingInput, Source, State
from errata.core import tensor_files as arrays
from errata.core.scope import rows_in_scope
from errata.slicers.barlow.slicer import Barlow, tree_statistics
from errata.slicers.barlow.tree import grow, neighbour_information, threshold_information
from errata.slicers.contract import build, knows_outcome
from support.planted import draw_errors

PLANTED = 7


def made(preset: str = "recommended", seed: int = 0, **options) -> Barlow:
    return build(Barlow, preset, seed, options)


def world(seed: int = 0, n: int = 1500, shuffled: bool = False, dtype=np.float64) -> Evaluation:
    """Three classes; where feature 7 is low, class 1 is taken for class 2. `shuffled`: as many errors, anywhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 30)).astype(dtype)
    labels = rng.integers(0, 3, n)
    wrong = draw_errors(rng, (X[:, PLANTED] < -0.5) & (labels == 1), 0.8, shuffled)
    predictions = np.where(wrong, (labels + 1) % 3, labels)
    site = np.where(rng.random(n) < 0.5, "north", "south")
    return Evaluation(
        labels=labels, predictions=predictions, representations={"e": X}, metadata={"site": site, "age": X[:, 0]}
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("preset", ["recommended", "as_published"])
def test_a_planted_feature_is_the_first_split(preset, dtype):
    ev, fresh = world(dtype=dtype), world(1, dtype=dtype)
    slicer = made(preset).fit(ev)
    assert slicer._tree_of(1).features[0] == PLANTED
    rule = slicer.rules_[0]
    assert rule["kind"] == "path"
    assert rule["scope"] == {"label": 1}
    assert rule["representation"] == "e"
    assert rule["conditions"][0]["feature"] == PLANTED
    assert rule["conditions"][0]["op"] == "<="
    assert rule["conditions"][0]["value"] == pytest.approx(-0.5, abs=0.15)
    assert rule["names"][0] == "feature 7"
    inside = slicer.membership(fresh)[:, 0] >= slicer.thresholds_[0]
    assert fresh.errors[inside].mean() > 0.6
    within = rows_in_scope(fresh, rule["scope"])
    assert not inside[~within].any()
    assert fresh.errors[within & ~inside].mean() < 0.25


def test_shuffled_errors_give_leaves_that_do_not_last():
    """What was searched flatters; rows that grew no tree say so."""
    gaps = []
    for seed in range(5):
        slicer = made().fit(world(seed, shuffled=True))
        fresh = world(seed + 100, shuffled=True)
        for weights, rule in zip(slicer.membership(fresh).T, slicer.rules_, strict=True):
            assert rule["searched"]["error_rate"] > rule["searched"]["base_error_rate"] + 0.1
            within = rows_in_scope(fresh, rule["scope"])
            gaps.append(fresh.errors[weights > 0].mean() - fresh.errors[within].mean())
    assert len(gaps) >= 5
    assert abs(np.mean(gaps)) < 0.03


def test_rules_tell_the_rows_that_were_searched_and_statistics_any_rows():
    ev, fresh = world(), world(1)
    slicer = made().fit(ev)
    on_searched, on_fresh = tree_statistics(slicer, ev), tree_statistics(slicer, fresh)
    assert [one.group for one in on_fresh] == [{"label": 0}, {"label": 1}, {"label": 2}]
    for j, rule in enumerate(slicer.rules_):
        assert rule["searched"] == on_searched[rule["tree"]].leaves.numbers(rule["leaf"])
        inside = slicer.membership(fresh)[:, j] > 0
        held_out = on_fresh[rule["tree"]].leaves.numbers(rule["leaf"])
        assert held_out["n"] == inside.sum()
        assert held_out["failures"] == fresh.errors[inside].sum()
        group = rows_in_scope(fresh, rule["scope"])
        assert held_out["base_error_rate"] == pytest.approx(fresh.errors[group].mean())
        assert held_out["error_coverage"] == pytest.approx(fresh.errors[inside].sum() / fresh.errors[group].sum())
        assert held_out != rule["searched"]


def test_nodes_of_a_rule_lead_every_row_to_its_leaf():
    ev = world()
    slicer = made().fit(ev)
    X = np.asarray(slicer.matrix(ev))
    for rule, weights in zip(slicer.rules_, slicer.membership(ev).T, strict=True):
        rows = np.flatnonzero(rows_in_scope(ev, rule["scope"]))
        for row in rows[:200]:
            node = rule["nodes"][0]
            while "leaf" not in node:
                node = rule["nodes"][node["left" if X[row, node["feature"]] <= node["cut"] else "right"]]
            assert (node["leaf"] == rule["leaf"]) == (weights[row] == 1)


def test_slices_are_valid_leaves_by_importance_over_all_groups():
    ev = world(n=3000)
    slicer = made(slices=100, delta=0.02, tau=0.05).fit(ev)
    numbers = [rule["searched"] for rule in slicer.rules_]
    assert len(numbers) >= 4
    assert len({rule["tree"] for rule in slicer.rules_}) == 3
    weight = [one["error_rate"] * one["failures"] for one in numbers]
    assert weight == sorted(weight, reverse=True)
    for one in numbers:
        assert one["error_rate"] > one["base_error_rate"] + 0.02
        assert one["error_coverage"] > 0.05
    assert [rule["tree"] for rule in made(slices=2, delta=0.02, tau=0.05).fit(ev).rules_] == [
        rule["tree"] for rule in slicer.rules_[:2]
    ]


GROUPS = {
    "label": ({"label": 1}, {"label"}),
    "prediction": ({"prediction": 2}, {"prediction"}),
    "site": ({"site": "north"}, set()),
    "all": ({}, set()),
}


@pytest.mark.parametrize("group", GROUPS)
def test_groupings(group):
    scope, reads = GROUPS[group]
    ev, fresh = world(n=4000), world(1, n=4000)
    slicer = made(scope=group, tau=0.1, delta=0.05).fit(ev)
    assert slicer.reads == reads
    rule = next(rule for rule in slicer.rules_ if rule["scope"] == scope)
    assert PLANTED in [one["feature"] for one in rule["conditions"]]
    inside = rows_in_scope(fresh, rule["scope"])
    X = fresh.representations["e"]
    for one in rule["conditions"]:
        x = X[:, one["feature"]]
        inside &= x <= one["value"] if one["op"] == "<=" else x > one["value"]
    j = slicer.rules_.index(rule)
    np.testing.assert_array_equal(slicer.membership(fresh)[:, j], inside)


def test_groups_are_of_the_classes_that_occur():
    X = np.zeros((4, 1))
    ev = Evaluation(labels=np.array([0, 1, 1, 4]), predictions=np.array([0, 1, 3, 3]), representations={"e": X})
    assert made().fit(ev).groups_ == ({"label": 0}, {"label": 1}, {"label": 4})
    assert made(scope="prediction").fit(ev).groups_ == ({"prediction": 0}, {"prediction": 1}, {"prediction": 3})


def test_pairs_are_of_classes_taken_for_each_other():
    ev = world(n=3000)
    slicer = made(scope="pair", **{"advanced.pairs": 2}).fit(ev)
    confused = [((ev.labels == a) & (ev.predictions == b)).sum() for a, b in [(0, 1), (1, 2), (2, 0)]]
    assert len(slicer.groups_) == 2
    assert slicer.groups_[0] == {"pair": [1, 2]}
    assert slicer.groups_[1] == {"pair": [0, 1] if confused[0] >= confused[2] else [0, 2]}
    assert slicer.reads == {"label", "prediction"}
    rule = slicer.rules_[0]
    assert rule["pair"] == [1, 2]
    assert "scope" not in rule
    inside = slicer.membership(ev)[:, 0] > 0
    assert set(ev.labels[inside]) | set(ev.predictions[inside]) <= {1, 2}
    both = np.isin(ev.labels, [1, 2]) & np.isin(ev.predictions, [1, 2])
    assert rule["searched"]["group_n"] == both.sum()


def test_who_knows_the_outcome():
    ev = world()
    foreign = Evaluation(
        labels=ev.labels, predictions=ev.predictions, representations=ev.representations,
        sources={"e": Source(from_model=False)}, metadata=ev.metadata,
    )  # fmt: skip
    own = {group: knows_outcome(made(scope=group).fit(ev), ev) for group in ("label", "prediction", "pair", "site")}
    other = {group: knows_outcome(made(scope=group).fit(foreign), foreign) for group in own}
    assert own == {"label": True, "prediction": False, "pair": True, "site": False}
    assert other == {"label": False, "prediction": False, "pair": True, "site": False}


@pytest.mark.parametrize(("group", "missing"), [("label", "labels"), ("prediction", "predictions"), ("pair", "labels")])
def test_new_rows_need_what_the_grouping_reads(group, missing):
    slicer = made(scope=group).fit(world())
    bare = Evaluation(representations={"e": np.zeros((3, 30))})
    with pytest.raises(MissingInput, match=f"`barlow` with scope={group} needs `{missing}`"):
        slicer.membership(bare)


def test_new_rows_need_the_column_that_groups():
    ev = world()
    slicer = made(scope="site", delta=0.05, tau=0.1).fit(ev)
    with pytest.raises(ValueError, match="limited to site 'north', which this evaluation does not have"):
        slicer.membership(Evaluation(representations=ev.representations))


def test_values_that_were_not_seen_are_in_no_slice():
    ev = world()
    slicer = made().fit(ev)
    other = Evaluation(labels=np.full(len(ev), 9), representations=ev.representations)
    assert slicer.membership(other).sum() == 0


@pytest.mark.parametrize("group", ["label", "prediction", "pair", "site", "all"])
@pytest.mark.parametrize("preset", ["recommended", "as_published"])
def test_a_saved_slicer_gives_the_same_answers(group, preset, tmp_path):
    slicer = made(preset, scope=group, delta=0.01, tau=0.01, **{"advanced.features": 5}).fit(world(n=600))
    state = slicer.to_state()
    arrays.write(tmp_path / "s.safetensors", state.arrays)
    again = Barlow.from_state(
        State(state.name, json.loads(json.dumps(state.facts)), arrays.read(tmp_path / "s.safetensors"))
    )
    fresh = world(3)
    assert len(slicer.rules_) >= 1
    np.testing.assert_array_equal(again.membership(fresh), slicer.membership(fresh))
    assert again.rules_ == slicer.rules_
    mine, theirs = tree_statistics(slicer, fresh), tree_statistics(again, fresh)
    assert [one.group for one in mine] == [one.group for one in theirs]
    np.testing.assert_array_equal(
        np.concatenate([one.leaves.sizes for one in mine]), np.concatenate([one.leaves.sizes for one in theirs])
    )


@pytest.mark.parametrize("group", ["label", "prediction", "pair", "site", "all"])
@pytest.mark.parametrize("preset", ["recommended", "as_published"])
@pytest.mark.parametrize("case", ["no failure", "all failures", "constant", "tiny", "one failure", "integers"])
def test_poor_groups_give_an_answer(group, preset, case):
    rng = np.random.default_rng(0)
    n = 4 if case == "tiny" else 60
    labels = np.arange(n) % 2
    wrong = {"no failure": np.zeros(n, bool), "all failures": np.ones(n, bool), "one failure": np.arange(n) == 0}
    failed = wrong.get(case, np.arange(n) % 4 < 2)
    X = rng.integers(0, 5, (n, 3)) if case == "integers" else rng.normal(size=(n, 3))
    X = np.ones((n, 3)) if case == "constant" else X
    site = np.where(np.arange(n) < n // 2, "a", "b")
    ev = Evaluation(
        labels=labels, predictions=np.where(failed, 1 - labels, labels), representations={"e": X},
        metadata={"site": site},
    )  # fmt: skip
    slicer = made(preset, scope=group).fit(ev)
    weights = slicer.membership(ev)
    assert weights.shape == (n, len(slicer.rules_))
    if case in ("no failure", "all failures", "constant"):
        assert len(slicer.rules_) == 0
    for one in tree_statistics(slicer, ev):
        assert one.leaves.sizes.sum() == rows_in_scope(ev, one.group if "pair" not in one.group else None).sum()


@pytest.mark.parametrize("dtype", [np.int64, np.int8])
def test_whole_numbers_are_cut_in_between(dtype):
    X = np.repeat([-3, -2], 30).astype(dtype)[:, None]
    ev = Evaluation(labels=np.zeros(60, int), predictions=(X[:, 0] == -3).astype(int), representations={"e": X})
    slicer = made().fit(ev)
    assert slicer.rules_[0]["conditions"] == [{"feature": 0, "op": "<=", "value": -2.5}]
    np.testing.assert_array_equal(slicer.membership(ev)[:, 0], ev.errors)


def test_missing_numbers_are_no_group():
    ev = world(n=300)
    age = np.where(np.arange(300) % 3 == 0, np.nan, np.arange(300) % 3)
    ev = Evaluation(
        labels=ev.labels, predictions=ev.predictions, representations=ev.representations, metadata={"age": age}
    )
    assert made(scope="age").fit(ev).groups_ == ({"age": 1.0}, {"age": 2.0})


def test_seeds(monkeypatch):
    """The published estimate breaks ties of values by noise; the exact one reads no seed."""
    ev = world(n=400)

    def chosen(seed, **options):
        return made(seed=seed, delta=0.0, tau=0.0, **options).fit(ev).to_state()

    for options in ({}, {"advanced.information": "neighbours"}):
        a, b = chosen(1, **options), chosen(1, **options)
        assert a.facts == b.facts
        assert all(np.array_equal(a.arrays[name], b.arrays[name]) for name in a.arrays)
    X, failed = np.maximum(ev.representations["e"], 0), ev.errors  # as of rectified units: half are 0
    assert not np.array_equal(neighbour_information(X, failed, 0), neighbour_information(X, failed, 1))
    given_seeds = []
    monkeypatch.setattr(
        "errata.slicers.barlow.slicer.neighbour_information",
        lambda X, failed, seed: given_seeds.append(seed) or np.zeros(X.shape[1]),
    )
    chosen(5, **{"advanced.information": "neighbours"})
    assert set(given_seeds) == {5}
    exact = [chosen(seed).arrays["cuts_"] for seed in (0, 1)]
    np.testing.assert_array_equal(*exact)


def test_presets_differ_as_the_papers_code_does():
    plain, published = made(), made("as_published")
    assert (plain._rare.information, plain._rare.balanced, plain._rare.min_rows) == ("threshold", False, 10)
    assert (published._rare.information, published._rare.balanced, published._rare.min_rows) == ("neighbours", True, 1)
    for slicer in (plain, published):
        assert (slicer._rare.features, slicer.delta, slicer.tau) == (20, 0.1, 0.2)


def test_balanced_trees_weigh_failures_as_much_as_the_rest():
    ev = world(n=900)
    slicer = made(scope="all", **{"advanced.balanced": True}).fit(ev)
    X, failed = ev.by_id().representations["e"], ev.by_id().errors
    columns = np.argsort(-threshold_information(X, failed, 10), kind="stable")[:20]
    want = grow(X, failed, columns, 3, (~failed).sum() / failed.sum(), 10)
    np.testing.assert_array_equal(slicer.cuts_, want.cuts)
    plain = grow(X, failed, columns, 3, 1.0, 10)
    assert plain.cuts.shape != want.cuts.shape or not np.array_equal(plain.cuts, want.cuts)


@pytest.mark.parametrize(
    "option", ["advanced.features", "depth", "advanced.min_rows", "delta", "tau", "advanced.pairs", "slices"]
)
def test_options_out_of_range_are_refused(option):
    with pytest.raises(ValueError, match=rf"`barlow\.{option}` must be .*; got -1"):
        made(**{option: -1})


def test_depth_is_at_most_three():
    with pytest.raises(ValueError, match=r"`barlow\.depth` must be an integer between 1 and 3; got 4"):
        made(depth=4)
    assert all(len(rule["conditions"]) == 1 for rule in made(depth=1).fit(world()).rules_)


def test_unknown_groupings_are_refused():
    with pytest.raises(ValueError, match=r"unknown `barlow\.scope` `lable`; did you mean `label`"):
        made(scope="lable").fit(world(n=60))
    with pytest.raises(ValueError, match=r"`barlow\.scope` = age has 2,100 values; give a column with at most 2,000"):
        made(scope="age").fit(world(n=2100))


def test_only_classes_can_be_right_or_wrong():
    rng = np.random.default_rng(0)
    ev = Evaluation(labels=rng.random(40), predictions=rng.random(40), representations={"e": rng.normal(size=(40, 2))})
    with pytest.raises(MissingInput, match="method `barlow` needs `errors` of classes; this evaluation is one of reg"):
        made().fit(ev)
