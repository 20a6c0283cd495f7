"""The default method: evidence by hand, Ward beside scipy, choices by brute force, and slices that are known."""

import itertools
import json

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.stats import beta

import errata
from errata.core import Source
from errata.core.evidence import log_evidence
from errata.slicers import make, restore
from errata.slicers.choice import Candidate, choose
from errata.slicers.consensus import balls, blind, risk, tree
from errata.slicers.consensus.space import fit_axes, nearest


def groups(n=6000, count=30, bad=(0, 1), rate=0.6, base=0.08, d=16, seed=0):
    """An evaluation of round groups, some of which are bad; and the group of each row."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, count, n)
    X = rng.normal(0, 3, (count, d))[group] + rng.normal(size=(n, d))
    wrong = rng.random(n) < np.where(np.isin(group, bad), rate, base)
    labels = rng.integers(0, 2, n)
    predictions = np.where(wrong, 1 - labels, labels)
    evaluation = errata.Evaluation(
        labels=labels, predictions=predictions, representations={"x": X}, sources={"x": Source(from_model=False)}
    )
    return evaluation, group


# --- evidence -------------------------------------------------------------------------------------------------


def test_evidence_is_the_bayes_factor_of_a_uniform_rate():
    """By numerical integration: the mean likelihood over all rates, over that at the base rate."""
    rates = np.linspace(0, 1, 200_001)[1:-1]
    likelihood = rates**7 * (1 - rates) ** 3
    by_hand = np.log(likelihood.mean()) - 7 * np.log(0.2) - 3 * np.log(0.8)
    assert log_evidence(10, 7, 0.2) == pytest.approx(by_hand, abs=1e-4)
    assert log_evidence(10, 2, 0.2) == -np.inf  # no worse than the base rate claims nothing


def test_evidence_grows_with_rows_and_with_the_rate():
    assert log_evidence(20, 14, 0.2) > log_evidence(10, 7, 0.2)
    assert log_evidence(10, 8, 0.2) > log_evidence(10, 7, 0.2)


# --- the tree -------------------------------------------------------------------------------------------------


def test_ward_is_scipys_where_all_cells_have_one_size():
    points = np.random.default_rng(0).normal(size=(40, 3))
    merges = tree.ward(points, np.ones(40))
    theirs = fcluster(linkage(points, "ward"), 5, "maxclust")
    assert _partition(_cut(merges, 40, theirs, points), 40) == _partition(
        [np.flatnonzero(theirs == c) for c in np.unique(theirs)], 40
    )


def _cut(merges, k, theirs, points):
    """The nodes of our tree that are the clusters of theirs."""
    nodes = [np.array([i]) for i in range(k)]
    for a, b in merges:
        nodes.append(np.concatenate([nodes[a], nodes[b]]))
    wanted = {tuple(np.flatnonzero(theirs == c)) for c in np.unique(theirs)}
    return [np.sort(node) for node in nodes if tuple(np.sort(node)) in wanted]


def _partition(parts, k):
    assert sum(len(part) for part in parts) == k
    return {tuple(part) for part in parts}


def test_ward_weighs_cells_by_their_sizes():
    """A heavy cell is dear to move: the light one joins the other light one."""
    points = np.array([[0.0], [1.0], [2.1]])
    assert set(tree.ward(points, np.array([1000.0, 1.0, 1.0]))[0]) == {1, 2}
    assert set(tree.ward(points, np.array([1.0, 1.0, 1.0]))[0]) == {0, 1}


def test_the_antichain_is_the_best_of_all(monkeypatch):
    """Beside every set of disjoint nodes of a small tree."""
    monkeypatch.setattr(tree, "APART", np.inf)
    rng = np.random.default_rng(1)
    for _ in range(20):
        points = rng.normal(size=(6, 2))
        n = rng.integers(5, 30, 6)
        errors = rng.binomial(n, rng.choice([0.1, 0.7], 6))
        merges = tree.ward(points, n)
        chosen = tree.best_antichain(merges, n, errors, 0.1, points, np.ones(6))
        assert _total(chosen, n, errors) == pytest.approx(_best_total(merges, n, errors))


def _total(nodes, n, errors):
    return sum(float(log_evidence(n[c].sum(), errors[c].sum(), 0.1)) - np.log(2 * len(n) - 1) for c in nodes)


def _best_total(merges, n, errors):
    nodes = [np.array([i]) for i in range(len(n))]
    for a, b in merges:
        nodes.append(np.concatenate([nodes[a], nodes[b]]))
    best = 0.0
    for size in range(1, 5):
        for some in itertools.combinations(nodes, size):
            cells = np.concatenate(some)
            if len(np.unique(cells)) == len(cells):
                best = max(best, _total(some, n, errors))
    return best


def test_two_bad_groups_that_lie_apart_stay_two():
    rng = np.random.default_rng(0)
    P = np.concatenate([rng.normal(0, 1, (300, 2)), rng.normal(9, 1, (300, 2)), rng.normal(-40, 1, (3000, 2))])
    bad = np.zeros(3600, dtype=bool)
    bad[:600] = rng.random(600) < 0.8
    nodes = tree.grow_tree(P.astype(np.float32), np.arange(3600), bad, 0.1, seed=0)
    owner = nodes.owner[nearest(P.astype(np.float32), nodes.centres)]
    assert not set(owner[:300]) & set(owner[300:600]) - {-1}


# --- blind regions and half-spaces -----------------------------------------------------------------------------


def test_a_row_does_not_vote_for_itself():
    P = np.zeros((12, 1), dtype=np.float32)
    P[:, 0] = np.arange(12)
    bad = np.zeros(12, dtype=bool)
    bad[0] = True
    votes = blind.vote(P, np.arange(12), bad, seed=0)
    assert votes[0] == 0
    assert votes[1] == pytest.approx(0.1)


def test_groups_of_a_blind_region_are_told_apart():
    rng = np.random.default_rng(0)
    P = np.concatenate([rng.normal(c, 1, (150, 4)) for c in (0, 8)] + [rng.normal(-30, 5, (2000, 4))])
    region = np.arange(len(P)) < 300
    group = blind.find_groups(P.astype(np.float32), region, seed=0)
    assert set(group[300:]) == {-1}
    assert not set(group[:150]) & set(group[150:300]) - {-1}
    assert (group[:300] >= 0).mean() > 0.9


def test_the_risk_finds_the_direction_of_errors_and_scores_rows_it_did_not_see():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(2000, 6)).astype(np.float32)
    bad = rng.random(2000) < 1 / (1 + np.exp(-2 * Z[:, 0] + 2))
    found = risk.fit_risk(Z, bad, seed=0)
    slope = found.line[:-1] / np.linalg.norm(found.line[:-1])
    assert slope[0] > 0.98
    noise = risk.fit_risk(Z, rng.random(2000) < 0.2, seed=0)
    assert abs(np.corrcoef(noise.scores, rng.random(2000) < 0.2)[0, 1]) < 0.06
    cut = risk.best_cut(found.scores, bad, float(bad.mean()))
    assert bad[found.scores >= cut].mean() > 1.5 * bad.mean()


def test_rows_that_are_nowhere_worse_have_no_half_space():
    rng = np.random.default_rng(3)
    assert risk.best_cut(rng.normal(size=3000), rng.random(3000) < 0.2, 0.5) is None


# --- the choice -----------------------------------------------------------------------------------------------


def _candidate(part, rows, m=400, base=0.1, rank=1):
    members = np.zeros(m, dtype=bool)
    members[rows] = True
    return Candidate(part, 0, members, base, 1.0, rank)


def test_near_copies_are_one_finding_that_several_made():
    bad = np.zeros(400, dtype=bool)
    bad[:50] = True
    told = choose([_candidate(0, slice(0, 50)), _candidate(1, slice(0, 52))], bad, most=20)
    assert len(told) == 1
    assert told[0].found_by == {0, 1}


def test_a_wide_slice_takes_the_place_of_small_ones_only_where_it_says_more():
    bad = np.zeros(400, dtype=bool)
    bad[:100] = True
    pieces = [_candidate(0, slice(0, 30)), _candidate(1, slice(40, 70))]
    whole = choose([*pieces, _candidate(2, slice(0, 100))], bad, most=20)
    assert [c.part for c in whole] == [2]
    diluted = choose([*pieces, _candidate(2, slice(0, 400))], bad, most=20)
    assert sorted(c.part for c in diluted)[:2] == [0, 1]


def test_groups_that_geometry_told_apart_stay_two():
    bad = np.zeros(400, dtype=bool)
    bad[:100] = True
    joined = _candidate(2, slice(0, 100))
    for rank, parts in ((0, [0, 1]), (1, [2])):
        two = [_candidate(0, slice(0, 48), rank=rank), _candidate(1, slice(50, 98), rank=rank)]
        assert sorted(c.part for c in choose([*two, joined], bad, most=20)) == parts


def test_what_is_no_worse_is_not_told_and_little_else_is_where_nothing_stands_out():
    bad = np.arange(400) % 10 == 0
    assert choose([_candidate(0, slice(0, 40))], bad, most=20) == []
    slightly = [_candidate(i, slice(40 * i, 40 * i + 31)) for i in range(8)]  # 4 of 31
    assert len(choose(slightly, bad, most=20)) == 5


# --- whole audits ---------------------------------------------------------------------------------------------


def test_an_audit_finds_small_groups_among_many():
    evaluation, group = groups()
    audit = errata.audit(evaluation)
    assert audit.settings["methods"] == ["consensus"]
    for bad in (0, 1):
        best = max(_f1(slice_.members, group == bad) for slice_ in audit.confirmed)
        assert best > 0.9


def _f1(a, b):
    return 2 * (a & b).sum() / (a.sum() + b.sum())


def test_a_group_within_one_label_is_found_within_it():
    """Half of a group's rows are wrong: those of label 1. Over all rows, it stands out half as much."""
    rng = np.random.default_rng(0)
    n = 4000
    X = rng.normal(size=(n, 8))
    labels = rng.integers(0, 2, n)
    hard = (X[:, 0] > 0.8) & (labels == 1)
    wrong = rng.random(n) < np.where(hard, 0.7, 0.1)
    evaluation = errata.Evaluation(
        labels=labels,
        predictions=np.where(wrong, 1 - labels, labels),
        representations={"x": X},
        sources={"x": Source(from_model=False)},
    )
    first = errata.audit(evaluation).confirmed[0]
    assert first.rule["scope"] == {"label": 1}
    assert hard[first.members].mean() > 0.8
    assert first.confirm.gap_to_all > 0.3


def test_random_errors_are_not_told():
    told = 0
    for seed in range(8):
        evaluation, _ = groups(n=1500, bad=(), seed=seed)
        told += len(errata.audit(evaluation, seed=seed).confirmed)
    assert told <= 1


def test_held_out_outcomes_do_not_move_membership():
    evaluation, _ = groups(n=3000)
    options = {"consensus": {"scope": "none"}}
    audit = errata.audit(evaluation, methods=["consensus"], options=options)
    rng = np.random.default_rng(9)
    predictions = evaluation.predictions.copy()
    held_out = np.flatnonzero(~audit.discover)
    predictions[held_out] = predictions[rng.permutation(held_out)]
    changed = errata.Evaluation(
        labels=evaluation.labels,
        predictions=predictions,
        representations=dict(evaluation.representations),
        sources=dict(evaluation.sources),
    )
    again = errata.audit(changed, methods=["consensus"], options=options)
    assert len(audit.slices) > 0
    assert [slice_.confirm.errors for slice_ in again.slices] != [slice_.confirm.errors for slice_ in audit.slices]
    before = audit.slicers["consensus"].membership(evaluation)
    assert np.array_equal(again.slicers["consensus"].membership(evaluation), before)


def test_the_same_seed_gives_the_same_slices_in_any_order_of_the_rows():
    evaluation, _ = groups(n=2000)
    order = np.random.default_rng(1).permutation(2000)
    first = make("consensus").fit(evaluation)
    second = make("consensus").fit(evaluation.rows(order))
    before = first.to_state().arrays
    assert all(np.array_equal(array, before[name]) for name, array in second.to_state().arrays.items())
    weights = first.membership(evaluation)[order]
    others = second.membership(evaluation.rows(order))
    assert np.array_equal(weights > 0, others > 0)
    # Some processors round a row of a product by where it stands in the matrix.
    assert np.abs(weights - others).max() < 1e-6


def test_a_saved_slicer_answers_as_before():
    evaluation, _ = groups(n=2000)
    slicer = make("consensus").fit(evaluation)
    state = slicer.to_state()
    json.dumps(state.facts)
    assert np.array_equal(restore(state).membership(evaluation), slicer.membership(evaluation))


def test_losses_alone_are_enough():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    losses = rng.exponential(size=3000) * np.where(X[:, 0] > 1, 4, 1)
    audit = errata.audit(errata.Evaluation(losses=losses, representations={"x": X}))
    assert audit.confirmed
    assert (X[audit.confirmed[0].members, 0] > 0.5).mean() > 0.8


def test_axes_keep_what_the_rows_spread_along():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20)) * np.where(np.arange(20) < 3, 10, 0.1)
    axes = fit_axes(X, 3, seed=0)
    Z = axes.reduce(X)
    assert Z.shape == (500, 3)
    assert np.square(Z).sum(axis=1).mean() == pytest.approx(1, rel=0.01)
    assert np.abs(axes.axes[3:]).max() < 0.05 * np.abs(axes.axes[:3]).max()


def test_the_prior_of_evidence_is_uniform():
    """The posterior of the rate, which the evidence integrates, is scipy's Beta."""
    low = log_evidence(100, 60, 0.5)
    rates = np.linspace(1e-4, 1 - 1e-4, 20001)
    density = beta(61, 41).pdf(rates)
    by_bayes = rates**60 * (1 - rates) ** 40 / density
    assert np.exp(low) == pytest.approx(np.median(by_bayes) / 0.5**100, rel=1e-6)


def test_a_ball_is_found_where_it_was_put():
    rng = np.random.default_rng(0)
    P = rng.normal(size=(4000, 6)).astype(np.float32)
    inside = np.square(P - P[7]).sum(axis=1) <= np.sort(np.square(P - P[7]).sum(axis=1))[200]
    bad = rng.random(4000) < np.where(inside, 0.6, 0.1)
    first = next(balls.find_balls(P, bad, 0.1, seed=0))
    found = np.square(P - first.centre).sum(axis=1) <= first.reach
    assert _f1(found, inside) > 0.7


def test_chance_has_no_ball():
    rng = np.random.default_rng(1)
    P = rng.normal(size=(3000, 6)).astype(np.float32)
    assert list(balls.find_balls(P, rng.random(3000) < 0.15, 0.15, seed=0)) == []


def test_rows_without_predictions_are_placed_in_the_slices_that_read_none():
    evaluation, _ = groups()
    audit = errata.audit(evaluation)
    limited = {slice_.id for slice_ in audit.slices if slice_.rule["scope"]}
    X = np.asarray(evaluation.representations["x"])
    weights = errata.apply(audit, errata.Evaluation(representations={"x": X}))
    assert set(weights) == {slice_.id for slice_ in audit.slices} - limited
    assert all(np.array_equal(weights[s.id], s.weights) for s in audit.slices if s.id in weights)
