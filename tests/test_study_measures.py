"""What studies of benchmarks/ measure by code of their own: what is chosen on some rows is told of others."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import numpy as np
import pytest

from support.commands_in_docs import BENCHMARKS, imported

pytest.importorskip("torch")


@pytest.fixture
def study(monkeypatch):
    """A script of benchmarks/ by its name, not run."""
    return lambda name: imported(BENCHMARKS / f"{name}.py", monkeypatch)


def test_crowded_codes_are_those_whose_neighbours_are_of_their_kind(study):
    defuse = study("defuse")
    rng = np.random.default_rng(0)
    spread = rng.normal(size=(600, 4))
    together = np.concatenate([9 + rng.normal(size=(30, 4)), spread])
    assert defuse.crowd(together, 30) == 1.0
    assert defuse.crowd(spread, 30) < 0.15, "30 of 600 that are like the others"


def test_near_and_different_is_of_one_sample_and_not_of_two_rates(study):
    """Half are near, half are predicted differently, and none is both."""
    defuse = study("defuse")
    nearest = np.zeros(4, int)
    distances = defuse.Novelty(nearest, np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 2.0, 9.0]))
    assert defuse.near_and_different(distances, np.array([False, False, True, True])).tolist() == [False] * 4
    assert defuse.near_and_different(distances, np.array([False, True, True, False])).tolist() == [0, 1, 0, 0]


def light_of_eight(clusters):
    """Four searched rows and four held out, of which a light has the first three of each."""
    kinds = np.array(["a", "a", "b", "b", "a", "b", "b", "a"])
    losses = np.array([4.0, 4.0, 4.0, 0.0, 2.0, 2.0, 2.0, 2.0])
    searched = np.array([True] * 4 + [False] * 4)
    k = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0])
    earlier = np.array([1.0, 1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 1.0])
    case = clusters.Case(np.zeros(8, int), np.ones((8, 1)), np.zeros((8, 1)), 0.5, 2, kinds)
    return clusters.one_light(case, k, earlier, losses, np.zeros(8), searched)


def test_the_kind_of_a_light_is_chosen_on_searched_rows_and_measured_on_others(study):
    light = light_of_eight(study("spotlight_clusters"))
    assert light.kind == "a", "of the searched rows it has two of two 'a', of the held-out ones two of two 'b'"
    assert light.purity == pytest.approx(1 / 3)
    assert light.base == 0.5
    assert light.recall == 0.5


def test_a_light_s_loss_is_a_share_of_the_exact_solver_s_on_the_same_columns_and_losses(study):
    lights = study("spotlight_lights")
    plain = lights.exact_beside({"slices": 5, "advanced": lights.PUBLISHED})
    assert plain == {"size": 0.02, "slices": 1, "advanced": {**lights.PUBLISHED, **lights.EXACT}}
    other = {"size": 0.05, "axes": 16, "slices": 5, "advanced": {**lights.PUBLISHED, "loss": "bounded"}}
    exact = lights.exact_beside(other)
    assert (exact["size"], exact["axes"], exact["slices"]) == (0.05, 16, 1)
    assert exact["advanced"] == {**lights.PUBLISHED, **lights.EXACT, "loss": "bounded"}


def test_runs_without_a_figure_are_not_counted(study):
    trained = study("trained")
    assert trained.over_finite_runs([0.5, 0.7, np.nan]) == trained.over_runs([0.5, 0.7], 2)
    assert trained.over_finite_runs([0.5, np.nan]) == "–"


def test_words_are_times_as_frequent_one_by_one_and_together(study):
    contents = study("spotlight_contents")
    counts = np.array([[1, 0], [1, 1], [0, 0], [0, 1]])
    k = np.array([1.0, 1.0, 0.0, 0.0])
    assert contents.times_each(k, counts, np.ones(4, bool)).tolist() == [2, 1]
    assert contents.times_together(k, counts, np.ones(4, bool)) == 1.5


def test_superclasses_of_imagenet_have_their_whole_names(study):
    clusters = study("spotlight_clusters")
    assert set(clusters.superclass_names()) == {*clusters.SUPERCLASSES, "thing"}


def test_a_light_keeps_what_it_holds_beyond_all_rows_of_the_same_half(study):
    light = light_of_eight(study("spotlight_clusters"))
    assert light.rows == 3
    assert light.kept == 0, "4 beside 3 where it was searched, 2 beside 2 where it was not"
    assert light.again == pytest.approx(0.5 / 3)


def test_the_best_epoch_is_chosen_on_validation_rows(study, tmp_path, capsys):
    epochs = [
        {"v": [0.5, 0.5], "t": [0.9, 0.9]},
        {"v": [0.8, 0.8], "t": [0.7, 0.6]},
        {"v": [0.6, 0.6], "t": [0.4, 0.3]},
    ]
    run = {"setting": "digits", "seed": 0, "method": "plain", "options": {}}
    run["epochs"] = [{**epoch, "minority": 0.05, "minority of wrong": 0.4, "of one label": 0.6} for epoch in epochs]
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(run) + "\n")
    study("worst_group").steady([path])
    cells = capsys.readouterr().out.splitlines()[-1].strip("| ").split(" | ")
    assert cells[4:8] == ["0.400", "0.300", "0.700", "0.250"]
    assert cells[8:] == ["0.050", "0.050", "0.400", "0.900", "0.600"]


def one_run(tmp_path, epochs):
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"setting": "digits", "method": "plain", "options": {}, "epochs": epochs}) + "\n")
    return path


def test_what_an_older_file_has_not_is_no_number(study, tmp_path, capsys):
    epoch = {"v": [0.5, 0.5], "t": [0.9, 0.9], "minority": 0.05}
    study("worst_group").steady([one_run(tmp_path, [epoch, epoch])])
    cells = capsys.readouterr().out.splitlines()[-1].strip("| ").split(" | ")
    assert cells[8:] == ["0.050", "0.050", "nan", "0.900", "nan"]


def runs_by_epoch(path, seeds):
    """Plain training rises by a tenth an epoch from .5 for seed 0; a light is .1 and then .3 below it for each seed."""
    lines = []
    for seed in seeds:
        for method, less in (("plain", (0, 0)), ("spotlight", (0.1, 0.3))):
            epochs = [
                {"v": [0.5, 0.5], "t": [0.5 + seed / 10 + e / 10 - less[e], 0.4], "minority": 0.05} for e in (0, 1)
            ]
            run = {"setting": "digits", "seed": seed, "method": method, "options": {}, "epochs": epochs}
            lines.append(json.dumps(run) + "\n")
    path.write_text("".join(lines))
    return path


def test_accuracy_epoch_by_epoch_is_paired_with_plain_training(study, tmp_path, capsys):
    study("worst_group").steady([runs_by_epoch(tmp_path / "runs.jsonl", [0, 1])])
    lines = capsys.readouterr().out.splitlines()
    assert "digits, spotlight {}, test rows by epoch; n = 2 seeds" in lines
    assert lines[-3].endswith("| -0.100 (-0.100 to -0.100, n = 2) |")
    assert lines[-2].startswith("| 2 | 0.350 (")
    assert lines[-2].endswith("| -0.300 (-0.300 to -0.300, n = 2) |")
    assert lines[-1].startswith("| mean | 0.400 (")
    assert lines[-1].endswith("| -0.200 (-0.200 to -0.200, n = 2) |")


def test_a_seed_that_was_run_again_is_no_further_seed(study, tmp_path):
    path = runs_by_epoch(tmp_path / "runs.jsonl", [0, 1, 1])
    assert len(study("worst_group").read_runs([path, path])) == 4


REFUSED = {
    "spotlight_clusters.py scenes --sizes .02": "the case scenes wants --worlds",
    "spotlight_clusters.py scenes --worlds FOLDER --sizes .1 0": "at most 0.5; got --sizes 0",
    "spotlight_lights.py FOLDER": "no world-*.npz in",
    "worst_group.py report": "`report` wants files that `run -o FILE` wrote; got none",
    "worst_group.py steady FOLDER/nosuch": "got FOLDER/nosuch",
    "worst_group.py run --lights 2": "above 0 and at most 0.5; got 2",
    "worst_group.py run --lights 0": "above 0 and at most 0.5; got 0",
    "worst_group.py run --lights nan": "above 0 and at most 0.5; got nan",
}


@pytest.mark.parametrize("command", REFUSED)
def test_a_study_that_has_nothing_to_work_on_says_so(study, tmp_path, monkeypatch, capsys, command):
    name, *words = command.replace("FOLDER", str(tmp_path)).split()
    script = study(name.removesuffix(".py"))
    monkeypatch.setattr("sys.argv", [name, *words])
    monkeypatch.setattr(script, "run", lambda asked: None, raising=False)
    with pytest.raises(SystemExit) as refused:
        script.main()
    assert refused.value.code == 2
    assert REFUSED[command].replace("FOLDER", str(tmp_path)) in capsys.readouterr().err


@pytest.mark.parametrize("coarse", [None, np.zeros(3, int)])
def test_george_is_asked_for_more_clusters_than_any_rows_have(study, coarse):
    clusters = study("spotlight_clusters")
    rows = 20_000
    case = clusters.Case(np.zeros(rows, int), np.ones((rows, 1)), np.zeros((rows, 1)), 0.05, 20, np.array(["a"] * rows))
    asked = [(name, options) for name, _, options in clusters.methods(replace(case, coarse=coarse)) if "GEORGE" in name]
    assert len(asked) == (1 if coarse is None else 2)
    for name, options in asked:
        assert options.get("slices", 0) >= rows, f"{name} would keep the clusters with most errors"


def test_the_worst_clusters_of_any_size_and_of_each_label_are_told(study, monkeypatch, capsys):
    """Ten searched rows and ten held out: a small bad cluster of label 1 that a filter of size hides."""
    contents = study("spotlight_contents")
    half = np.arange(10)
    labels = np.tile((half >= 7).astype(int), 2)
    large = np.tile(half < 7, 2).astype(float)
    small = np.tile(half == 7, 2).astype(float)
    rest = np.tile(half > 7, 2).astype(float)
    losses = np.where(small > 0, 5.0, np.where(rest > 0, 0.5, 1.0))
    searched = np.arange(20) < 10
    clusters = study("spotlight_clusters")
    case = clusters.Case(labels, np.ones((20, 2)), np.zeros((20, 1)), 0.4, 2, np.array(["a"] * 20))
    monkeypatch.setattr(contents, "halves", lambda *_: clusters.Halves(losses, np.zeros(20), searched, None))
    monkeypatch.setattr(contents, "clusters_of", lambda *_: [large, small, rest, np.zeros(20)])
    told = contents.george(case, 0)
    assert told["worst of half a light's size"]["loss, held out"] == 1.0
    assert told["worst of any size"]["loss, held out"] == 5.0
    assert told["second of any size"]["share, held out"] == pytest.approx(0.7)
    assert told["worst of label 0"] == told["second of any size"]
    assert told["worst of label 1"] == told["worst of any size"]
    assert "3 clusters; searched rows of the three worst: 1 of label 1, 7 of label 0, 2 of label 1" in (
        capsys.readouterr().out
    )


def test_lengths_are_of_held_out_rows_by_weight(study):
    contents = study("spotlight_contents")
    texts = np.array(["a b c d e f g", "a", "a b c", "a b c d e"])
    k = np.array([1.0, 0.0, 1.0, 3.0])
    lengths = contents.lengths(k, texts, np.array([False, True, True, True]))
    assert lengths == {"words of a text": 4.5, "more than all rows": 1.5}


def test_two_groups_are_apart_by_the_spread_of_their_own_rows(study):
    layer = np.array([[-2.0, 0.0], [2.0, 0.0], [-2.0, 20.0], [2.0, 20.0], [90.0, 90.0]])
    misled = np.array([True, True, True, True, False])
    assert study("worst_group_layer").apart(layer, misled, np.array([0, 0, 1, 1, 1])) == 10


def test_a_run_of_one_epoch_has_no_second(study, tmp_path):
    epoch = {"v": [0.5, 0.5], "t": [0.9, 0.9], "minority": 0.05}
    with pytest.raises(SystemExit, match="--epochs 2 or more"):
        study("worst_group").steady([one_run(tmp_path, [epoch])])


@pytest.mark.parametrize(
    ("labels", "shares", "holds"),
    [
        ("annotators", [[0.5, 0.3], [0.4]], True),
        ("annotators", [[0.5, 0.3], [0.1]], False),
        ("annotators", [[0.5], []], False),
        ("true", [[0.0], [0.0, 0.0]], True),
        ("true", [[0.0], []], False),
    ],
)
def test_news_holds_only_where_every_seed_has_a_slice(study, labels, shares, holds):
    infembed = study("infembed")
    assert infembed.news_holds(infembed.NewsOptions(labels=labels), shares, base=0.2) is holds


def test_errors_of_other_classes_are_left_out_and_right_rows_of_theirs_are_not(study):
    errors = np.array([True, True, True, False, False, True])
    fine = np.array([2, 3, 0, 3, 2, 8])
    superclasses = np.array([0, 0, 1, 0, 0, 1])
    kept = study("directions_cifar").without_other_errors(errors, superclasses, fine, cut=(2, 8))
    assert kept.tolist() == [True, False, False, True, True, True]


def test_notes_are_counted_among_the_hardest_the_easiest_and_the_least_sure(study):
    factors = study("directions_factors")
    count = 4 * factors.K
    place = np.arange(count)
    notes = np.column_stack([place < factors.K, place >= count - factors.K, place % 2 == 0])
    errors = place < factors.K
    rows = argparse.Namespace(errors=errors)
    images = factors.Images(rows, doubt=place / count, notes=notes, names=["a", "b", "c"])
    facts = factors.of_class(images, place, weights=-place)
    assert facts[0].tolist() == [0.25, 1, 0, 0, 1, 1, 1]
    assert facts[1, 1:6].tolist() == [0, 1, 1, -1, -1]
    assert factors.difference(errors, np.ones(count, bool)) is np.nan


def test_the_parts_of_a_selection_s_gain_add_up_to_it(study):
    parts = study("directions_parts")
    names = ("nothing", "random", "directions", *(f"directions, {part}" for part in parts.PARTS["directions"]))
    gains = (0.70, 0.75, 0.80, 0.84, 0.79, 0.81)
    found = parts.decomposed([{name: {"minority": gain} for name, gain in zip(names, gains, strict=True)}], "minority")
    assert sum(found.values()) == pytest.approx(0.80 - 0.75)
    assert found["by the share of the cut"] == pytest.approx(0.81 - 0.75)
    assert found["by which rows of the cut"] < found["by which others"]


def test_swapped_rows_are_of_the_same_kind_and_class(study):
    labels = np.array([0, 0, 0, 1, 1, 1])
    cut = np.array([True, True, False, True, True, False])
    rows = study("directions_parts").swapped(np.array([0, 3, 4]), labels, cut, np.random.default_rng(0))
    assert cut[rows].all()
    assert sorted(labels[rows]) == [0, 1, 1]
    assert len(set(rows.tolist())) == 3


def test_rows_that_count_more_hold_the_share_that_was_asked_for(study):
    cut = np.arange(100) < 20
    rows = study("directions_parts").mixed(cut, 10, 15, np.random.default_rng(0))
    assert (rows & cut).sum() == 10
    assert (rows & ~cut).sum() == 15


@pytest.mark.parametrize(
    ("shares", "line"),
    [((0.5, 0.3), "0.400 of them of the cut, of"), ((0.5, None), "0.500 of them of the cut (n = 1 that")],
)
def test_networks_that_flag_nothing_have_no_share_of_what_they_flag(study, capsys, shares, line):
    parts = study("directions_parts")
    accuracies = [{"minority": 0.5, "all": 0.6 + share} for share in (0.0, 0.1)]
    names = ("nothing", "flagged", "as flagged, random", "1")
    rows = [
        {"count": 2, "rows": 10, "cut": 0.2, "of flagged": share, **dict.fromkeys(names, accuracy)}
        for share, accuracy in zip(shares, accuracies, strict=True)
    ]
    parts.report_weights(rows, "two")
    assert line in capsys.readouterr().out


def test_as_many_rows_are_left_out_of_a_class_whether_of_its_worst_subclass_or_of_all_alike(study):
    many = study("directions_many")
    degrees = study("directions_degrees")
    hierarchy = many.Hierarchy({"a": ("x", "y", "z"), "b": ("v", "w")}, 60, 1, 1, 1, 1)
    names = np.repeat(hierarchy.names, 63)
    pictures = many.Pictures(names, names, names, names, names, {}, None)
    for share, counts in {0.0: [60] * 5, 0.5: [60, 30, 60, 30, 60], 1.0: [60, 0, 60, 0, 60]}.items():
        cut = many.World(pictures, hierarchy, 0, (1, 3), removed=share)
        alike = degrees.Alike(pictures, hierarchy, 0, (1, 3), removed=share)
        assert np.bincount(cut.fine[cut.roles["train"]], minlength=5).tolist() == counts
        assert np.bincount(alike.labels[alike.roles["train"]]).tolist() == [sum(counts[:3]), sum(counts[3:])]
        assert set(cut.roles["test"]) == set(alike.roles["test"])


def test_errors_beyond_those_before_are_left_out_and_no_right_row_is(study):
    errors = np.array([True] * 6 + [False] * 4)
    labels = np.array([0, 0, 0, 0, 1, 1, 0, 0, 1, 1])
    kept = study("directions_degrees").not_beyond(errors, labels, np.array([2, 5]), np.random.default_rng(0))
    assert kept[~errors].all()
    assert np.bincount(labels[kept & errors]).tolist() == [2, 2]


def test_strength_is_related_to_the_cut_within_seeds(study):
    degrees = study("directions_degrees")
    shares = np.tile(degrees.SHARES, (2, 1))
    strength = shares * 0.1 + np.array([[0.9], [0.1]])
    within, pooled, of_means = degrees.related(strength, shares)
    assert within.startswith("1.00")
    assert float(pooled) > 0.98, "seeds that differ in strength do not hide the rise"
    assert of_means == "1.00"


PAGE = BENCHMARKS.parent / "docs" / "studies" / "barlow.md"


@pytest.mark.parametrize(
    ("name", "rows", "learnt", "row"),
    [("cifar10", 60_000, 40_000, "CIFAR-10, standard"), ("utkface", 23_705, 15_803, "ages, standard")],
)
def test_the_table_of_robust_networks_is_of_the_rows_that_its_script_takes(
    study, monkeypatch, tmp_path, name, rows, learnt, row
):
    """Nothing is trained: what is learnt from and what is attacked is only counted."""
    networks = study("barlow_networks")
    pictures = np.zeros((rows, 1, 1, 1), np.uint8), np.zeros(rows, np.int64)
    held = rows - learnt
    monkeypatch.setattr(networks, "read", lambda *given: pictures)
    monkeypatch.setattr(networks, "train", lambda *given, **options: None)
    monkeypatch.setattr(networks, "robust_accuracy", lambda *given, **options: 0.5)
    monkeypatch.setattr(networks, "outputs", lambda *given, **options: (np.zeros((held, 2)), np.zeros((held, 2))))
    monkeypatch.setattr(networks, "half_weights", lambda model: {})
    networks.study(name, 0.0, argparse.Namespace(data=None, toy=False, seed=0, device="cpu", out=tmp_path))
    facts = json.loads((tmp_path / f"{name}-0-0.json").read_text())
    assert facts["learnt"] == networks.DATA[name].learnt == learnt
    assert [(entry["radius"], entry["n"]) for entry in facts["accuracies"]] == [
        (0, held), (0.25, 5_000), (0.5, 5_000), (1, 5_000),
    ]  # fmt: skip
    page = PAGE.read_text()
    cells = next(line for line in page.splitlines() if line.startswith(f"| {row} |")).strip("| ").split(" | ")
    assert cells[2].endswith(f"n = {held:,}")
    assert cells[3].endswith("n = 5,000")
    assert f"{learnt:,} images" in page


def test_classes_of_one_world_are_no_further_worlds(study):
    near = study("directions_near")
    rng = np.random.default_rng(0)
    once = [[(0, *pair)] for pair in rng.normal(size=(12, 2))]
    assert near.left_out([world * 3 for world in once]) == near.left_out(once)
    assert near.left_out(once).endswith("n = 12)")
    assert near.left_out(once[:1]) == "–"


def test_captions_of_two_networks_are_compared_world_by_world(study, capsys):
    """One world of two classes, both the same; one of a single class, another caption."""
    near = study("directions_near")
    same = {"itself": ["a", "b", "c"], **{key: ["a", "b", "c"] for key in near.OTHERS}}
    other = {"itself": ["a", "b", "c"], **{key: ["c", "b", "a"] for key in near.OTHERS}}
    few = {"itself": ["a"], **{key: ["a"] for key in near.OTHERS}}
    agree = dict.fromkeys(near.OTHERS, 1.0)
    worlds = [
        {"agree": agree, "orders": orders, "classes": [{"worst": True}] * 2} for orders in ([same, same], [other, few])
    ]
    near.agreements(worlds)
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("all"))
    assert line.startswith("all, 3 classes, means of worlds: the same hardest 0.500 (")
    assert "n = 2" in line


def test_nearness_is_compared_among_rows_that_are_as_typical(study):
    near = study("directions_near")
    right = np.array([False, True] * 2)
    assert near.upper_less_lower(np.array([0.1, 0.9, 0.2, 0.8]), right) == 1
    assert near.upper_less_lower(np.array([0.9, 0.1, 0.8, 0.2]), right) == -1


def test_turned_explanations_have_the_distances_of_the_whole_ones_and_keep_the_lemma(study):
    explanations = study("infembed_explanations")
    rng = np.random.default_rng(0)
    E = rng.normal(size=(40, 3))
    T = rng.normal(size=(90, 3)) * [1, 2, 5]
    turned, constant = explanations.as_explanations(E, T)
    whole = np.square((E[:1] - E) @ T.T).sum(axis=1)
    np.testing.assert_allclose(np.square(turned[:1] - turned).sum(axis=1), whole)
    near = np.square(E[:1] - E).sum(axis=1)
    assert (whole[1:] <= constant * near[1:] * (1 + 1e-12)).all()
    assert constant < 1.5 * (whole[1:] / near[1:]).max(), "no bound that is true of anything"
    correlation, largest, median = explanations.compare_pairs(E, turned, constant, np.arange(40), 0)
    assert 0 < median < largest <= 1
    assert 0.5 < correlation < 1
    assert explanations.left(E, np.zeros(40)) == pytest.approx(1)
    assert explanations.left(E, np.arange(40)) == 0


def test_a_seed_that_is_in_the_file_is_refused(study, tmp_path, monkeypatch, capsys):
    """Its rows would have counted twice in the report."""
    reasons = study("barlow_reasons")
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"data": "cifar10", "seed": 1}) + "\n")
    monkeypatch.setattr("sys.argv", ["x", "run", "-o", str(path), "--data", "cifar10", "--seeds", "0", "1"])
    monkeypatch.setattr(reasons, "run", lambda asked: pytest.fail("nothing may be trained"))
    with pytest.raises(SystemExit) as ended:
        reasons.main()
    assert ended.value.code == 2
    assert "has cifar10, seed 1 already; give other --seeds" in capsys.readouterr().err


def test_the_coarse_share_of_a_change_is_that_of_its_slow_waves(study):
    planted = study("barlow_planted")
    across = np.arange(32)
    slow = np.cos(2 * np.pi * 2 * across / 32)[None, :, None, None] * np.ones((1, 32, 32, 3))
    quick = np.cos(2 * np.pi * 10 * across / 32)[None, :, None, None] * np.ones((1, 32, 32, 3))
    assert planted.coarse_share(slow) == pytest.approx(1)
    assert planted.coarse_share(quick) == pytest.approx(0, abs=1e-9)
    assert planted.coarse_share(slow + quick) == pytest.approx(0.5)


def test_classes_without_a_measure_are_left_out_of_the_mean(study):
    mean = study("barlow_planted").class_mean
    rows = [{"split": {"peak": 0.2}}, {"split": {"peak": 0.4}}, {"split": {}}, {"best": {"peak": 9.0}}]
    assert mean(rows, "split", "peak") == pytest.approx(0.3)


def test_the_main_set_of_a_blindspot_is_told_by_what_it_has_and_by_what_is_its_own(study):
    columns = study("infembed_columns")
    blindspots = np.array([[1, 0], [1, 0], [1, 0], [0, 1], [0, 0]], dtype=bool)
    h = np.array([[1, 0], [1, 0], [0, 1], [1, 0], [0, 0]], dtype=bool)
    own, has = columns.main_sets(h, blindspots)
    assert own == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert has == pytest.approx((2 / 3 + 1) / 2)
    assert np.isnan(columns.main_sets(np.zeros((5, 1), dtype=bool), blindspots)).all()
