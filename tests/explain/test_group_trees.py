"""The tree of every group, and the ten features that say most about its failures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import errata
from errata.core import Audit, Evaluation, InputError, Source
from errata.core.audit import of_kind
from errata.explain.group_trees import GroupTrees
from errata.slicers.barlow import Barlow
from errata.slicers.barlow.tree import threshold_information

CUT = 0.5


def world(n: int = 3000, own: bool = False) -> Evaluation:
    """Class 1 fails where feature 4 is high, class 0 at random, and class 2 never."""
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 14)).astype(np.float32)
    odds = np.select([labels == 2, (labels == 1) & (X[:, 4] > CUT)], [0.0, 0.8], 0.08)
    wrong = rng.random(n) < odds
    return Evaluation(
        labels=labels,
        predictions=np.where(wrong, (labels + 1) % 3, labels),
        representations={"robust": X},
        sources={"robust": Source(from_model=own)},
        class_names=("cat", "dog", "owl"),
    )


@pytest.fixture(scope="module")
def audit() -> Audit:
    return errata.audit(world(), methods=["barlow"])


def trees(audit: Audit) -> GroupTrees:
    (only,) = of_kind(audit.explanations, GroupTrees)
    return only


def test_every_class_has_a_tree_with_a_slice_or_without(audit: Audit) -> None:
    groups = trees(audit).groups
    assert [(group.id, group.within) for group in groups] == [
        ("t1", "label cat"), ("t2", "label dog"), ("t3", "label owl"),
    ]  # fmt: skip
    with_slices = {slice_.rule["scope"]["label"] for slice_ in audit.slices}
    assert with_slices != {0, 1, 2}
    labels, errors = np.asarray(audit.evaluation.labels), np.asarray(audit.evaluation.errors)
    for label, group in enumerate(groups):
        for counts, rows in ((group.searched, audit.discover), (group.confirm, ~audit.discover)):
            inside = (labels == label) & rows
            assert (counts.n, counts.failures) == (inside.sum(), (inside & errors).sum())


def test_the_ten_features_are_those_of_most_information_on_search_rows(audit: Audit) -> None:
    dog = trees(audit).groups[1]
    rows = np.flatnonzero(audit.discover & (np.asarray(audit.evaluation.labels) == 1))
    X, errors = np.asarray(audit.evaluation.representations["robust"]), np.asarray(audit.evaluation.errors)
    information = threshold_information(X[rows], errors[rows], 10)
    assert dog.features is not None
    assert [line.feature for line in dog.features] == np.argsort(-information, kind="stable")[:10].tolist()
    assert dog.features[0].feature == 4
    assert dog.features[0].cut == pytest.approx(CUT, abs=0.1)
    assert [line.information for line in dog.features] == pytest.approx(sorted(information, reverse=True)[:10])


def test_above_and_below_are_counted_on_held_out_rows_alone(audit: Audit) -> None:
    dogs = ~audit.discover & (np.asarray(audit.evaluation.labels) == 1)
    X, errors = np.asarray(audit.evaluation.representations["robust"]), np.asarray(audit.evaluation.errors)
    for line in trees(audit).groups[1].features or ():
        above = X[:, line.feature].astype(np.float64) > line.cut
        for counts, side in ((line.above, above), (line.below, ~above)):
            assert (counts.n, counts.failures) == ((dogs & side).sum(), (dogs & side & errors).sum())
        of_class = np.flatnonzero(np.asarray(audit.evaluation.labels) == 1)
        assert sorted(line.values, reverse=True) == list(line.values)
        assert line.values[0] == X[of_class, line.feature].max()
        assert [X[row, line.feature] for row in line.rows] == list(line.values)


def test_a_class_without_failures_has_a_single_leaf_and_no_feature(audit: Audit) -> None:
    owl = trees(audit).groups[2]
    assert owl.features == ()
    assert len(owl.tree.nodes) == 1


def test_the_leaf_of_a_slice_holds_the_rows_of_its_verdict(audit: Audit) -> None:
    for slice_ in audit.slices:
        group = trees(audit).groups[slice_.rule["scope"]["label"]]
        leaf = next(node for node in group.tree.nodes if node.leaf == slice_.rule["leaf"])
        assert leaf.confirm is not None
        assert slice_.confirm is not None
        assert (leaf.confirm.n, leaf.confirm.failures) == (slice_.confirm.n, slice_.confirm.errors)


def test_trees_and_features_are_saved_and_read_again(audit: Audit, tmp_path: Path) -> None:
    errata.save(audit, tmp_path / "audit")
    again = errata.load(tmp_path / "audit")
    assert trees(again) == trees(audit)
    assert again.slicers["barlow"].grown_trees() == audit.slicers["barlow"].grown_trees()


def test_a_slicer_that_was_saved_without_the_features_says_so(audit: Audit) -> None:
    state = audit.slicers["barlow"].to_state()
    old = {
        name: array
        for name, array in state.arrays.items()
        if name not in ("informative_", "information_", "best_cuts_")
    }
    slicer = Barlow.from_state(replace(state, arrays=old))
    assert [tree.informative for tree in slicer.grown_trees()] == [None, None, None]
    assert (slicer.membership(audit.evaluation) == audit.slicers["barlow"].membership(audit.evaluation)).all()


def test_a_tree_over_the_models_own_features_is_marked() -> None:
    assert trees(errata.audit(world(own=True), methods=["barlow"])).knows_outcome


def test_each_half_of_a_cross_fit_has_trees_of_its_own() -> None:
    first, second = of_kind(errata.audit(world(), methods=["barlow"], crossfit=True).explanations, GroupTrees)
    assert [group.id for group in (*first.groups, *second.groups)] == ["t1", "t2", "t3", "t4", "t5", "t6"]
    assert (first.confirmed_on, second.confirmed_on) == ("confirm", "discover")
    assert first.groups[1].confirm == second.groups[1].searched


def test_more_features_than_are_recorded_cannot_be_drawn(audit: Audit) -> None:
    pytest.importorskip("torch")
    with pytest.raises(InputError, match="`informative` must be from 0 to 10; got 11"):
        errata.explain.draw_features(audit, None, np.zeros((3000, 4, 4)), informative=11)  # type: ignore[arg-type]
