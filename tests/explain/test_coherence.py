"""Coherence, central rows and label homogeneity, in the columns and of the rows that were clustered."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import errata
from errata.core import Audit, Evaluation, Source
from errata.core.influence import clustered_columns
from errata.explain.coherence import Coherence
from errata.explain.context import Context
from errata.explain.own_label import ends, label_cosines, of_label
from errata.explain.view import SliceView
from errata.inputs import HeadInfluence
from errata.workflow.auditing import own_members

READS = Source(reads=frozenset({"label"}))


def view_of(E, inside, searched, **given) -> SliceView:
    rule = given.pop("rule", {})
    n = len(E)
    evaluation = Evaluation(
        representations={"penultimate": np.zeros((n, 2)), "influence": np.asarray(E, dtype=float)},
        sources={"influence": READS},
        **given,
    )
    slice_ = errata.Slice("s1", "x", "x", "confirmed", 0.5, rule, inside.astype(float))
    return SliceView(slice_, evaluation, inside, ~inside, searched)


def noisy_world(seed=0, n=800, noise=92):
    """Errors of a slice point one way in 8 columns, and there are many columns of noise beside them."""
    rng = np.random.default_rng(seed)
    inside = rng.random(n) < 0.2
    E = rng.normal(size=(n, 8 + noise))
    E[inside, :8] = rng.normal(size=8) * 2 + 0.5 * rng.normal(size=(int(inside.sum()), 8))
    labels = np.zeros(n, dtype=int)
    wrong = rng.random(n) < 0.5
    return E, inside, rng.random(n) < 0.5, labels, np.where(wrong, 1, 0)


def test_columns_that_were_not_clustered_do_not_count():
    E, inside, searched, labels, predictions = noisy_world()
    told = Coherence.explain(view_of(E, inside, searched, labels=labels, predictions=predictions), Context(None))
    assert told.columns == 8  # four for each of two classes
    rows = inside & ~searched & (predictions == 1)
    U = E[rows, :8] / np.linalg.norm(E[rows, :8], axis=1, keepdims=True)
    pairs = [a @ b for a, b in itertools.combinations(U, 2)]
    assert told.cosine == pytest.approx(np.mean(pairs))
    assert told.cosine > 0.8
    assert told.alike
    rule = {"kind": "component", "representation": "influence", "columns": 100}
    whole = Coherence.explain(
        view_of(E, inside, searched, labels=labels, predictions=predictions, rule=rule), Context(None)
    )
    assert whole.columns == 100
    assert whole.cosine < told.cosine / 2


def test_the_columns_are_those_of_the_rule_that_an_approximation_stands_for():
    ev = Evaluation(labels=[0, 1, 2], predictions=[0, 1, 2], representations={"influence": np.ones((3, 40))})
    assert clustered_columns({}, ev, 40) == 12
    own = {"representation": "influence", "columns": 5}
    assert clustered_columns({"of": own}, ev, 40) == 5
    assert clustered_columns({"of": {**own, "representation": "pixels"}}, ev, 40) == 12


def test_a_small_difference_is_not_called_alike_however_sure_it_is():
    rng = np.random.default_rng(1)
    n = 4000
    inside = rng.random(n) < 0.5
    E = rng.normal(size=(n, 8))
    E[inside] += 0.15  # mean cosine about .02
    view = view_of(E, inside, np.zeros(n, bool), labels=np.zeros(n, int), predictions=np.ones(n, int))
    told = Coherence.explain(view, Context(None))
    assert told.p_value < 0.05
    assert 0 < told.cosine - told.random < 0.1
    assert not told.alike


def test_errors_that_share_a_label_and_no_more_are_not_beyond_it():
    """All errors of a label point one way, in the slice and outside."""
    rng = np.random.default_rng(2)
    n = 900
    labels = rng.integers(0, 3, n)
    E = 3 * np.eye(3, 12)[labels] + rng.normal(size=(n, 12))
    inside = (labels == 0) & (rng.random(n) < 0.4)
    given = {"labels": labels, "predictions": (labels + 1) % 3}
    told = Coherence.explain(view_of(E, inside, rng.random(n) < 0.5, **given), Context(None))
    assert told.alike
    assert not told.beyond_label
    E[inside, 5] += 4  # and now a cause of their own
    told = Coherence.explain(view_of(E, inside, rng.random(n) < 0.5, **given), Context(None))
    assert told.beyond_label


def test_homogeneity_is_equation_8_over_all_pairs():
    labels = np.array([0, 0, 1, 0, 1])
    probs = np.array([[0.2, 0.5, 0.3], [0.1, 0.8, 0.1], [0.6, 0.3, 0.1], [0.9, 0.1, 0.0], [0.2, 0.1, 0.7]])
    inside = np.array([True, True, True, True, False])
    view = view_of(np.random.default_rng(0).normal(size=(5, 4)), inside, np.zeros(5, bool), labels=labels, probs=probs)
    told = Coherence.explain(view, Context(None)).homogeneity
    margins = np.eye(3)[labels] - probs
    wrong = [0, 1, 2]  # the fourth is right
    by_hand = np.mean([margins[i] @ margins[j] for i, j in itertools.combinations(wrong, 2)])
    assert told.margins == pytest.approx(by_hand)
    assert (told.label, told.labels) == ("0", (2, 3))
    assert (told.prediction, told.predictions) == ("1", (2, 3))


def test_central_rows_are_wrong_ones_of_the_own_cluster():
    """Right rows have gradients near zero, and lie nearest to the mean of anything."""
    rng = np.random.default_rng(3)
    n = 400
    wrong = rng.random(n) < 0.4
    E = np.where(wrong[:, None], 2.0, 0.0) + 0.1 * rng.normal(size=(n, 8))
    inside = rng.random(n) < 0.5
    searched = rng.random(n) < 0.5
    view = view_of(E, inside, searched, labels=np.zeros(n, int), predictions=wrong.astype(int))
    own = rng.random(n) < 0.3
    alone = Coherence.explain(view, Context(None))
    assert [row.row for row in alone.central] == nearest_to_their_mean(E, inside & ~searched & wrong)
    coherence = Coherence.explain(view, Context(None, own={"s1": own}))
    assert [row.row for row in coherence.central] == nearest_to_their_mean(E, own & ~searched & wrong)
    held = inside & ~searched & wrong
    assert coherence.clustered == (int((held & own).sum()), int(held.sum()))


def nearest_to_their_mean(E, inside) -> list[int]:
    rows = np.flatnonzero(inside)
    distances = np.linalg.norm(E[rows] - E[rows].mean(axis=0), axis=1)
    return rows[np.argsort(distances)][:4].tolist()


@pytest.mark.parametrize("approximates", [False, True])
def test_without_a_held_out_error_no_row_is_central(approximates):
    """Rows that are right, and errors of the approximation that the method did not cluster, are not shown instead."""
    rng = np.random.default_rng(5)
    n = 60
    inside = np.arange(n) < 30
    searched = np.arange(n) % 2 == 0
    own = np.arange(n) % 5 == 1  # of the approximation and of the others
    wrong = rng.random(n) < 0.5
    wrong[(own if approximates else inside) & ~searched] = False
    view = view_of(rng.normal(size=(n, 8)), inside, searched, labels=np.zeros(n, int), predictions=wrong.astype(int))
    owned = {"s1": own} if approximates else {}
    coherence = Coherence.explain(view, Context(None, own=owned))
    assert coherence.central == ()
    assert (coherence.cluster.n if approximates else coherence.n) == 0
    assert not approximates or coherence.n > 0


def test_without_errors_the_held_out_members_nearest_to_their_mean_are_central():
    rng = np.random.default_rng(6)
    E = rng.normal(size=(80, 8))
    inside = rng.random(80) < 0.5
    searched = rng.random(80) < 0.5
    coherence = Coherence.explain(view_of(E, inside, searched, losses=np.ones(80)), Context(None))
    assert coherence.rows == "all"
    columns = coherence.columns
    assert [row.row for row in coherence.central] == nearest_to_their_mean(E[:, :columns], inside & ~searched)


def test_of_an_approximation_the_rows_that_were_clustered_count():
    """The cluster points one way; its approximation holds half of it, and twice as many others."""
    rng = np.random.default_rng(4)
    n = 1200
    own = rng.random(n) < 0.15
    E = rng.normal(size=(n, 8)) + 3 * own[:, None]
    inside = np.where(own, rng.random(n) < 0.5, rng.random(n) < 0.2)
    searched = rng.random(n) < 0.5
    labels = rng.integers(0, 2, n)
    wrong = rng.random(n) < 0.5
    view = view_of(E, inside, searched, labels=labels, predictions=np.where(wrong, 1 - labels, labels))
    told = Coherence.explain(view, Context(None, own={"s1": own}))
    rows = own & ~searched & wrong
    U = E[rows] / np.linalg.norm(E[rows], axis=1, keepdims=True)
    assert told.cluster.n == rows.sum()
    assert told.cluster.cosine == pytest.approx(np.mean([a @ b for a, b in itertools.combinations(U, 2)]))
    assert told.cluster.cosine > 0.8 > told.cosine + 0.2  # of the approximation's members
    assert told.cluster.random == pytest.approx(told.random, abs=0.1)
    assert told.cluster.alike
    assert told.cluster.homogeneity.labels == (np.bincount(labels[rows]).max(), rows.sum())
    assert Coherence.explain(view, Context(None)).cluster is None
    assert Coherence.from_json(told.to_json()) == told


def test_an_audit_knows_the_clusters_that_its_slices_stand_for():
    from test_opponents import planted

    test, train, _ = planted(0.8)
    audit: Audit = errata.audit(test, train=train, methods=["infembed"])
    own = own_members(audit)
    assert set(own) == {slice_.id for slice_ in audit.slices}
    for slice_ in audit.slices:
        held = slice_.members & ~audit.discover
        assert own[slice_.id][held].mean() == pytest.approx(slice_.fidelity)
        clustered = np.flatnonzero(own[slice_.id] & ~audit.discover & test.errors)
        coherence = slice_.explanation(Coherence)
        assert {row.row for row in coherence.central} <= set(clustered.tolist())
        assert len(coherence.central) == min(4, coherence.cluster.n) == min(4, len(clustered))


def signalled(seed=0, n=3000, share=0.8):
    """Label 1 comes with a signal in 80% of its training rows, and without it in the test rows."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(seed)

    def rows(rate):
        labels = rng.integers(0, 3, n)
        has = (labels == 1) & (rng.random(n) < rate)
        X = 1.2 * np.eye(3, 6)[labels] + rng.normal(size=(n, 6))
        X[:, 5] = 0.2 * rng.normal(size=n) + 3 * has
        return X, labels, has

    X, labels, has = rows(share)
    model = LogisticRegression(max_iter=2000).fit(X, labels)
    train = Evaluation(
        labels=labels, probs=model.predict_proba(X), representations={"x": X}, ids=np.arange(n) + n,
        metadata={"tag": np.where(has, "yes", "no")},
    )  # fmt: skip
    Z, clean, _ = rows(0.0)
    test = Evaluation(labels=clean, probs=model.predict_proba(Z), representations={"x": Z})
    return test, train


def label_ranking(test, train) -> tuple[int, int]:
    """How many of the fifty opponents and helpers of label 1 carry the tag."""
    fitted = HeadInfluence.fit(train)
    rows = np.flatnonzero(train.labels == 1)
    asked = of_label(test, test.labels == 1, 1)
    cosines = label_cosines(fitted.transform(test), fitted.embed(train), asked, rows)
    tagged = train.metadata["tag"][rows] == "yes"
    opposing, helping = ends(cosines)
    return int(tagged[opposing].sum()), int(tagged[helping].sum())


@pytest.mark.parametrize("method", ["infembed-rule", "gmm"])
def test_opponents_of_the_own_label_carry_its_signal_and_helpers_do_not(method):
    test, train = signalled()
    audit = errata.audit(test, train=train, methods=[method])
    told = [{e.kind: e for e in slice_.explanations}["own_label"] for slice_ in audit.slices]
    of_label = [own for own in told if own.label == "1"]
    assert of_label
    share = {(row.column, row.value): row for row in of_label[0].shares}["tag", "yes"]
    assert share.opponents[0] >= 35  # rows without it that are taken for the third label oppose a slice too
    assert share.opponents[1] == share.helpers[1] == 50
    assert share.helpers[0] <= 2
    assert share.label[0] / share.label[1] == pytest.approx(0.8, abs=0.03)
    assert of_label[0].held[0] >= 45
    assert of_label[0].losses[0] < of_label[0].losses[1]
    whole = label_ranking(test, train)  # of all errors of the label, not of one slice
    assert whole == (50, 0)


def test_without_a_signal_the_column_that_means_nothing_is_not_told():
    test, train = signalled(share=0.0)
    coin = np.random.default_rng(9).choice(["heads", "tails"], len(train))
    fitted = HeadInfluence.fit(train)
    train = replace(fitted.embed(train), metadata={"coin": coin})
    audit = errata.audit(fitted.embed(test), train=train, methods=["infembed-rule"])
    told = [e for slice_ in audit.slices for e in slice_.explanations if e.kind == "own_label"]
    assert told
    assert {row.column for own in told for row in own.shares} == {"coin", "fitted"}
    assert not any(row.differs for own in told for row in own.shares if row.column == "coin")
