"""The split is a property of the data; what is searched never sees the outcome of a row that confirms."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from errata import workflow
from errata.core import Evaluation, split
from errata.core.split import discover_mask
from errata.workflow import findings

N = 400


def _arrays(n=N, classes=2, seed=0):
    """A binary problem with a bad corner, so that every method has something to test."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    labels = rng.integers(0, classes, n)
    bad = X[:, 0] > 1
    wrong = rng.random(n) < np.where(bad, 0.7, 0.1)
    return {
        "labels": labels,
        "predictions": np.where(wrong, (labels + 1) % classes, labels),
        "losses": np.where(wrong, 2.0, 0.1) + 0.1 * rng.random(n),
        "representations": {"penultimate": X},
        "ids": np.array([f"row {i}" for i in rng.permutation(n)]),
    }


def _mask(share=0.5, **given):
    return discover_mask(Evaluation(**given), share)


def test_the_order_of_rows_does_not_move_a_row():
    given = _arrays()
    order = np.random.default_rng(1).permutation(N)
    shuffled = {name: array[order] for name, array in given.items() if name != "representations"}
    assert np.array_equal(_mask(**given)[order], _mask(**shuffled))


def test_the_order_of_rows_does_not_move_a_group():
    groups = np.array([f"patient {i}" for i in np.random.default_rng(2).integers(0, 60, N)])
    given = {**_arrays(), "groups": groups}
    order = np.random.default_rng(1).permutation(N)
    shuffled = {name: array[order] for name, array in given.items() if name != "representations"}
    assert np.array_equal(_mask(**given)[order], _mask(**shuffled))


def test_the_seed_of_the_search_does_not_move_the_split():
    evaluation = Evaluation(**_arrays())
    audits = [workflow.audit(evaluation, methods=["gmm"], seed=seed) for seed in (0, 1, 7)]
    assert all(np.array_equal(audits[0].discover, other.discover) for other in audits[1:])
    thresholds = [audit.slicers["gmm"].thresholds_ for audit in audits]
    assert not np.array_equal(thresholds[0], thresholds[1])  # the search itself did change


def test_outcomes_do_not_move_the_split():
    given = _arrays()
    other = {**given, "predictions": np.roll(given["predictions"], 7), "losses": given["losses"][::-1]}
    assert np.array_equal(_mask(**given), _mask(**other))


def test_another_data_set_is_split_another_way():
    """The ids of all rows salt each row's own: row 7 of every data set must not always search."""
    given = _arrays()
    more = {**given, "ids": np.append(given["ids"][:-1], "a new row")}
    assert (_mask(**given) != _mask(**more)).mean() > 0.3


@pytest.mark.parametrize("share", [0.5, 0.3])
def test_every_class_gives_its_share_to_both_sides(share):
    given = _arrays(n=1000, classes=4)
    mask = _mask(share, **given)
    for c in range(4):
        mine = given["labels"] == c
        assert abs(mask[mine].sum() - share * mine.sum()) < 1


def test_without_labels_rows_are_split_within_the_predicted_class():
    given = {**_arrays(n=1001, classes=3), "labels": None}
    mask = _mask(**given)
    for c in range(3):
        mine = given["predictions"] == c
        assert abs(mask[mine].sum() - 0.5 * mine.sum()) < 1


@pytest.mark.parametrize("size", [1, 3])
def test_many_tiny_classes_do_not_all_lean_one_way(size):
    n = 3000
    mask = _mask(labels=np.arange(n) // size, predictions=np.zeros(n, int))
    assert abs(mask.mean() - 0.5) < 3 * 0.5 / np.sqrt(n)


@pytest.mark.parametrize(
    "given",
    [
        {"losses": np.arange(101.0)},
        {"labels": np.arange(101) + 0.5, "predictions": np.arange(101.0)},
        {"labels": np.eye(101, 3, dtype=int), "predictions": np.zeros((101, 3), int)},
    ],
)
def test_rows_without_one_class_are_split_all_together(given):
    assert _mask(**given).sum() in (50, 51)


def test_groups_are_never_split_apart():
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 80, N)
    mask = _mask(groups=groups, **_arrays())
    for group in np.unique(groups):
        assert len(np.unique(mask[groups == group])) == 1
    largest = np.bincount(groups).max()
    assert abs(mask.sum() - N / 2) <= largest


def test_as_many_groups_are_searched_as_come_nearest_to_the_share():
    groups = np.arange(120) // 30
    assert _mask(0.45, losses=np.zeros(120), groups=groups).sum() == 60
    assert _mask(0.35, losses=np.zeros(120), groups=groups).sum() == 30


def _spied(monkeypatch, given, methods):
    """The audit's slicers, and everything it decided before it looked at a confirm outcome."""
    families = []

    def spy(family):
        families.append(family)
        return confirm(family)

    confirm = findings.confirm_all
    monkeypatch.setattr(findings, "confirm_all", spy)
    audit = workflow.audit(Evaluation(**given), methods=methods)
    monkeypatch.setattr(findings, "confirm_all", confirm)
    (family,) = families
    decided = [(c.method, c.index, c.threshold, c.weights.tobytes(), trial.delta) for trial, c in family]
    return audit, decided


def _same_search(one, other):
    assert one.slicers.keys() == other.slicers.keys()
    for key, slicer in one.slicers.items():
        assert slicer.thresholds_.tobytes() == other.slicers[key].thresholds_.tobytes()


def test_flipping_confirm_predictions_changes_no_slice_that_is_tested(monkeypatch):
    given = _arrays(n=1200)
    confirm = ~_mask(**given)
    flipped = {
        **given,
        "predictions": np.where(confirm, 1 - given["predictions"], given["predictions"]),
        "losses": np.where(confirm, 3 - given["losses"], given["losses"]),
    }
    one, family = _spied(monkeypatch, given, ["spotlight", "gmm"])
    other, flipped_family = _spied(monkeypatch, flipped, ["spotlight", "gmm"])
    assert len(family) >= 3
    assert family == flipped_family
    _same_search(one, other)
    assert {s.verdict for s in one.slices} != {s.verdict for s in other.slices}  # the flip did bite


def test_flipping_confirm_labels_changes_no_slice_even_of_those_that_read_the_outcome(monkeypatch):
    """Each row its own group: then labels do not stratify the split, and can be flipped."""
    methods = ["spotlight", "gmm", "high-loss", "confusion"]
    given = _arrays(n=1200)
    given["groups"] = given["ids"]
    confirm = ~_mask(**given)
    flipped = {
        **given,
        "labels": np.where(confirm, 1 - given["labels"], given["labels"]),
        "losses": np.where(confirm, 3 - given["losses"], given["losses"]),
    }
    one, family = _spied(monkeypatch, given, methods)
    other, flipped_family = _spied(monkeypatch, flipped, methods)
    assert {method for method, *_ in family} == set(methods)
    assert family == flipped_family
    _same_search(one, other)


def test_the_margin_and_the_tolerance_come_from_discover_rows(monkeypatch):
    given = {name: _arrays(n=1200)[name] for name in ("losses", "representations", "ids")}
    confirm = ~_mask(**given)
    raised = {**given, "losses": np.where(confirm, 5 + given["losses"], given["losses"])}
    one, family = _spied(monkeypatch, given, ["spotlight", "high-loss"])
    other, raised_family = _spied(monkeypatch, raised, ["spotlight", "high-loss"])
    assert family
    assert family == raised_family
    assert one.overall[0][1].outcome == other.overall[0][1].outcome
    assert other.overall[0][1].confirm_rate == 1


def name_by_name(units, ids):
    """The keys as the page on statistics has them, one name after the other."""
    base = hashlib.blake2b(digest_size=8)
    for name in sorted(map(str, ids.tolist())):
        base.update(name.encode() + b"\0")
    keys = []
    for name in map(str, units.tolist()):
        own = base.copy()
        own.update(name.encode())
        keys.append(int.from_bytes(own.digest(), "big"))
    return keys


IDS = [
    np.arange(1000),
    np.arange(300)[::-1] - 150,
    np.array(["b", "a", "é", "zz", "日本", "aa", "😀"]),
    np.array([b"x", b"y"]),
]


@pytest.mark.parametrize("ids", IDS, ids=["numbers", "negative numbers", "texts", "bytes"])
def test_keys_are_those_of_names_hashed_one_by_one(ids, monkeypatch):
    monkeypatch.setattr(split, "HASHED", 7)
    for units in (ids, np.arange(len(ids)) % 3):
        assert split._hash_keys(units, ids).tolist() == name_by_name(units, ids)
