"""Whole audits in worlds whose truth is known: `benchmarks/null.py` runs them with 200 seeds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from errata import workflow
from errata.bench.null_runs import SEARCHERS, BoundedShare, audit_null_world, finds_planted, largest_share
from errata.bench.null_worlds import LABEL_RATES, WORLDS, planted_world, world, world_arrays
from errata.core import Evaluation, Source, gaps
from errata.core.confirm import Settings, SliceCandidate, SplitTask, confirm_all, select_candidates
from errata.core.split import discover_mask
from errata.slicers import SLICERS, BaseSlicer, knows_outcome, make, registry
from errata.workflow import findings

READERS = ("high-loss", "confusion", "class-tree")


class ClassTree(BaseSlicer):
    """Leaves of a tree in each true class: fair on a foreign representation, not on the model's own."""

    name = "class-tree"
    needs = frozenset({"representations", "labels", "predictions"})
    reads = frozenset({"label"})

    def __init__(self, representation: str | None = None):
        self.representation = representation

    def _fit(self, evaluation, train):
        X = self.matrix(evaluation)
        self.leaves_, self.trees_ = [], {}
        for c in np.unique(evaluation.labels):
            mine = evaluation.labels == c
            tree = DecisionTreeClassifier(max_depth=3, min_samples_leaf=15, random_state=0)
            self.trees_[c] = tree.fit(X[mine], evaluation.errors[mine])
            at, rows = np.unique(tree.apply(X[mine]), return_inverse=True)
            rates = np.bincount(rows, weights=evaluation.errors[mine]) / np.bincount(rows)
            self.leaves_ += [(-rate, c, leaf) for rate, leaf in zip(rates, at, strict=True)]
        self.leaves_.sort()
        self.rules_ = tuple({"kind": "path", "label": int(c)} for _, c, _ in self.leaves_)

    def membership(self, evaluation):
        X = self.matrix(evaluation)
        at = {c: tree.apply(X) for c, tree in self.trees_.items()}
        columns = [(evaluation.labels == c) & (at[c] == leaf) for _, c, leaf in self.leaves_]
        return np.stack(columns, axis=1).astype(float)


@pytest.fixture(autouse=True)
def class_tree(monkeypatch):
    monkeypatch.setitem(SLICERS, ClassTree.name, ClassTree)


def _naive(method, evaluation, *, in_sample=False):
    """Confirmed slices of a method, without an approximation; in sample: also on the rows that were searched."""
    discover = np.ones(len(evaluation), dtype=bool) if in_sample else discover_mask(evaluation)
    trial = SplitTask(evaluation, discover, Settings())
    if in_sample:
        trial.confirm = discover
    slicer = make(method).fit(evaluation.rows(discover))
    weights = slicer.membership(evaluation)
    found = [SliceCandidate(method, j, w, slicer.thresholds_[j], {}) for j, w in enumerate(weights.T)]
    results = confirm_all([(trial, candidate) for candidate in select_candidates(trial, found)])
    return [result for result in results if result.verdict == "confirmed"]


# --- worlds without a slice -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", sorted(registry()))
def test_no_method_finds_anything_among_errors_at_random(method):
    seeds = 8
    any_confirmed = sum(audit_null_world("random", 1000, (method,), seed).confirmed for seed in range(seeds))
    assert any_confirmed <= largest_share(seeds) * seeds


@pytest.mark.parametrize("kind", WORLDS)
def test_nothing_is_beyond_class_and_confidence_where_they_tell_it_all(kind):
    seeds = 8
    seen = [audit_null_world(kind, 1000, SEARCHERS, seed) for seed in range(seeds)]
    assert sum(s.beyond_both for s in seen) <= largest_share(seeds) * seeds
    if kind == "random":
        assert sum(s.confirmed for s in seen) <= largest_share(seeds) * seeds


def test_measured_where_it_was_searched_chance_itself_is_confirmed():
    """What the split is for: the same slicer, tested on the rows it was fitted on."""
    seeds = 6
    given = [{**world_arrays("random", 2000, seed), "probs": None} for seed in range(seeds)]
    found = [_naive("multiaccuracy", Evaluation(**arrays), in_sample=True) for arrays in given]
    assert sum(map(bool, found)) > seeds / 2
    held_out = [_naive("multiaccuracy", Evaluation(**arrays)) for arrays in given]
    assert not any(held_out)


def test_the_references_explain_what_a_calibrated_model_already_says():
    seeds = 4
    seen = [audit_null_world("calibrated", 10_000, SEARCHERS, seed) for seed in range(seeds)]
    assert sum(s.confirmed and not s.beyond_both for s in seen) > seeds / 2


@pytest.mark.parametrize("method", READERS)
def test_one_who_reads_the_outcome_finds_it_and_the_approximation_does_not(method):
    seeds = 10
    given = [world("random", 1000, seed) for seed in range(seeds)]
    naive = [_naive(method, evaluation) for evaluation in given]
    assert sum(map(bool, naive)) >= 0.8 * seeds
    assert max(result.held_out.rate for found in naive for result in found) > 0.5  # eleven percent are wrong
    stood_in = [workflow.audit(evaluation, methods=[method]).confirmed for evaluation in given]
    assert sum(map(bool, stood_in)) <= largest_share(seeds) * seeds


def test_whether_a_representation_is_the_models_own_decides_who_reads_the_outcome():
    """The same tree, told that the model's own embedding were a foreign one, is taken at its word."""
    given = world_arrays("random", 1000, 0)
    own = Evaluation(**given)
    foreign = Evaluation(**given, sources={"penultimate": Source(from_model=False)})
    tree = ClassTree().fit(own)
    assert knows_outcome(tree, own)
    assert not knows_outcome(tree, foreign)
    assert not workflow.audit(own, methods=["class-tree"]).confirmed
    assert workflow.audit(foreign, methods=["class-tree"]).confirmed


# --- a world with one -------------------------------------------------------------------------------------


def test_a_planted_group_is_found():
    seeds = 7
    assert sum(finds_planted(5000, 0.05, 0.40, seed) for seed in range(seeds)) >= 0.85 * seeds


def test_a_group_planted_without_a_gap_is_not():
    assert sum(finds_planted(2000, 0.05, 0.0, seed) for seed in range(4)) == 0


def test_the_planted_group_is_as_bad_as_it_says():
    evaluation, bad = planted_world(20_000, 0.05, 0.40, 0)
    plain = world("calibrated", 20_000, 0)
    assert bad.sum() == 1000
    assert evaluation.errors[bad].mean() - plain.errors[bad].mean() == pytest.approx(0.40, abs=0.05)
    assert np.array_equal(evaluation.labels[~bad], plain.labels[~bad])


def test_the_worlds_are_as_bad_as_they_say():
    n = 50_000
    random, label, calibrated, miscal = (world(kind, n, 1) for kind in WORLDS)
    doubt = 1 - calibrated.probs.max(axis=1)
    assert random.errors.mean() == pytest.approx(0.11, abs=0.005)
    assert doubt.mean() == pytest.approx(0.11, abs=0.005)
    rates = [label.errors[label.labels == c].mean() for c in range(5)]
    assert rates == pytest.approx(LABEL_RATES, abs=0.02)
    unsure = doubt > 0.3
    assert calibrated.errors[unsure].mean() == pytest.approx(doubt[unsure].mean(), abs=0.02)
    ratio = [miscal.errors[miscal.predictions == c].mean() / doubt[miscal.predictions == c].mean() for c in (0, 4)]
    assert ratio[0] < 0.8
    assert ratio[1] > 1.2


# --- many slices at once ----------------------------------------------------------------------------------


def _overlapping(rng, n=2400, s=12, width=0.1):
    """Results of overlapping windows over a bump of at most twenty points, and their true gaps."""
    u = rng.random(n)
    rate = 0.1 + 0.2 * np.exp(-np.square((u - 0.5) / 0.12))
    bad = (rng.random(n) < rate).astype(float)
    trial = SplitTask(Evaluation(losses=bad), np.arange(n) % 2 == 0, Settings(tolerance=0.5))
    windows = [np.abs(u - centre) < width / 2 for centre in np.linspace(0.2, 0.8, s)]
    results = confirm_all([(trial, SliceCandidate("window", i, w * 1.0, 0.5, {})) for i, w in enumerate(windows)])
    odd = trial.confirm
    return results, [rate[w & odd].mean() - rate[~w & odd].mean() for w in windows]


def test_simultaneous_intervals_hold_for_those_that_were_confirmed_and_plain_ones_do_not():
    rng = np.random.default_rng(0)
    held, plain_held, inflation, all_held = [], [], [], []
    for _ in range(24):
        results, gaps_ = _overlapping(rng)
        inside = [
            r.held_out.interval[0] <= gap <= r.held_out.interval[1] for r, gap in zip(results, gaps_, strict=True)
        ]
        all_held.append(all(inside))
        for result, gap, good in zip(results, gaps_, inside, strict=True):
            if result.verdict == "confirmed":
                shown = result.held_out
                counts = gaps.Counts(shown.n, shown.errors, shown.rest_rate, shown.rest_n)
                low, high = gaps.interval(counts, 0.05)
                held.append(good)
                plain_held.append(low <= gap <= high)
                inflation.append(shown.gap - gap)
    assert len(held) >= 20
    assert np.mean(held) >= 0.9
    assert np.mean(all_held) >= 0.9
    assert np.mean(plain_held) < 0.9
    assert (
        np.mean(inflation) > 0
    )  # those confirmed by luck look worse than they are: why the discover gap is no evidence


# --- cross-fitting ----------------------------------------------------------------------------------------


def test_both_directions_of_a_cross_fit_are_one_family(monkeypatch):
    families = []

    def spy(family):
        families.append(family)
        return confirm_all(family)

    monkeypatch.setattr(findings, "confirm_all", spy)
    evaluation, _ = planted_world(1500, 0.05, 0.4, 3)
    one_way = workflow.audit(evaluation, methods=SEARCHERS)
    both_ways = workflow.audit(evaluation, methods=SEARCHERS, crossfit=True)
    (first, both) = families
    forward = [c for trial, c in both if trial.discover is both[0][0].discover]
    assert [c.weights.tobytes() for c in forward] == [c.weights.tobytes() for _, c in first]
    assert len(both) > len(first) == len(forward)
    assert (one_way.settings["tested"], both_ways.settings["tested"]) == (len(first), len(both))
    assert {trial.discover.tobytes() for trial, _ in both} == {
        one_way.discover.tobytes(),
        (~one_way.discover).tobytes(),
    }


def test_a_cross_fit_slice_is_measured_on_the_half_that_did_not_find_it():
    """Never on both: counts of two matched lists, added up, are chosen by both halves' errors."""
    evaluation, _ = planted_world(1500, 0.05, 0.4, 3)
    audit = workflow.audit(evaluation, methods=SEARCHERS, crossfit=True)
    halves = {"confirm": ~audit.discover, "discover": audit.discover}
    assert {item.confirmed_on for item in audit.slices} == set(halves)
    for item in audit.slices:
        half = halves[item.confirmed_on]
        inside = item.members & half
        counts = gaps.Counts(inside.sum(), evaluation.errors[inside].sum(), item.confirm.rest_rate, item.confirm.rest_n)
        assert (item.confirm.n, item.confirm.errors) == (counts.m, counts.k)
        assert item.confirm.rest_n == half.sum() - counts.m
        assert item.confirm.interval == pytest.approx(gaps.interval(counts, 0.05 / audit.settings["tested"]), abs=1e-6)


def test_cross_fitting_finds_nothing_among_errors_at_random():
    seeds = 6
    given = [world("random", 1000, seed) for seed in range(seeds)]
    confirmed = [workflow.audit(ev, methods=SEARCHERS, crossfit=True, seed=i).confirmed for i, ev in enumerate(given)]
    assert sum(map(bool, confirmed)) <= largest_share(seeds) * seeds


# --- the benchmark itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "bounds", "broken"),
    [
        (17, {"at_most": 0.081}, True),
        (16, {"at_most": 0.081}, False),
        (100, {}, False),
        (100, {"at_least": 0.5}, False),
        (99, {"at_least": 0.5}, True),
    ],
)
def test_a_broken_bound_shows_in_the_table(times, bounds, broken):
    line = BoundedShare("a world", times, 200, **bounds)
    assert line.broken == broken
    assert ("BROKEN" in str(line)) == broken


def test_bounds_allow_for_two_standard_errors():
    assert largest_share(200) == pytest.approx(0.05 + 0.031, abs=0.0005)
