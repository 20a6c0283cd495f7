"""Opponents, helpers, coherence and relabel candidates, on embeddings whose products are known by hand."""

from dataclasses import replace

import numpy as np
import pytest

import errata
from errata.core import Evaluation, InputError, Source
from errata.core.blocks import mean_cosine
from errata.explain.coherence import Coherence
from errata.explain.context import Context
from errata.explain.own_label import OwnLabel
from errata.explain.relabel import relabel_candidates
from errata.explain.training_opponents import Opponents, _profile
from errata.explain.training_rows import has_influence, influence_on
from errata.explain.view import SliceView
from errata.inputs import HeadInfluence

SLICE = errata.Slice("s1", "x", "x", "confirmed", 0.5, {}, np.zeros(0))
READS = Source(reads=frozenset({"label"}))


def with_influence(E, **given) -> Evaluation:
    n = len(E)
    X = given.pop("X", np.zeros((n, 2)))
    return Evaluation(
        representations={"penultimate": X, "influence": np.asarray(E, dtype=float)},
        sources={"influence": READS},
        **given,
    )


TEST = with_influence([[1, 0], [0, 1], [-1, 0]], labels=[0, 1, 0], predictions=[1, 1, 0], ids=["a", "b", "c"])
TRAIN = with_influence(
    [[2, 0], [-3, 0], [0, 5], [-1, -1]], labels=[0, 1, 0, 1], predictions=[0, 1, 1, 1], ids=[10, 11, 12, 13]
)


def test_influence_is_the_sum_of_products():
    inside = np.array([True, True, False])  # v = (1, 1)
    np.testing.assert_allclose(influence_on(TEST.representations["influence"], TRAIN, inside), [2, -3, 5, -2])


def test_opponents_are_the_most_negative_first_and_helpers_the_most_positive():
    found = errata.explain.opponents(TEST, TRAIN, ["a", "b"])
    assert [(row.id, row.influence) for row in found] == [(11, -1.5), (13, -1.0)]
    found = errata.explain.opponents(TEST, TRAIN, np.array([True, True, False]), helpers=True)
    assert [(row.id, row.influence) for row in found] == [(12, 2.5), (10, 1.0)]


def test_a_single_row_has_its_own_opponents():
    assert [row.id for row in errata.explain.opponents(TEST, TRAIN, ["c"])] == [10]
    assert [row.id for row in errata.explain.opponents(TEST, TRAIN, ["c"], 1, helpers=True)] == [11]


def test_rows_that_are_not_there_and_missing_embeddings_are_said():
    with pytest.raises(InputError, match="names no row"):
        errata.explain.opponents(TEST, TRAIN, ["z"])
    bare = Evaluation(labels=[0, 1], predictions=[0, 1], representations={"penultimate": np.zeros((2, 2))})
    with pytest.raises(InputError, match="representation `influence`"):
        errata.explain.opponents(TEST, bare, ["a"])
    other = with_influence([[1, 2, 3]], labels=[0], predictions=[0])
    assert not has_influence(TEST, other)
    assert not has_influence(TEST, None)


def test_mean_cosine_over_pairs_by_hand():
    U = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    assert mean_cosine(U) == pytest.approx((0.6 + 0.0 + 0.8) / 3)


def test_the_profile_counts_values_that_are_commoner_among_the_rows():
    train = replace(TRAIN, metadata={"site": np.array(["x", "y", "y", "x"])}, class_names=("cat", "dog"))
    rows = _profile(train, np.array([1, 3]))
    told = {(row.column, row.value): (row.opponents, row.train, row.lift) for row in rows}
    assert told == {
        ("label", "dog"): ((2, 2), (2, 4), 2.0),
        ("fitted", "right"): ((2, 2), (3, 4), pytest.approx(4 / 3)),
    }
    assert _profile(train, np.array([], dtype=int)) == []


def profiled(rng, n=1000, **metadata):
    train = Evaluation(labels=np.zeros(n, int), losses=rng.random(n), metadata=metadata)
    return _profile(train, rng.permutation(n)[:50])


def test_a_column_of_noise_is_told_in_one_draw_of_twenty_at_most():
    rng = np.random.default_rng(0)
    told = [any(row.differs for row in profiled(rng, noise=rng.integers(0, 30, 1000))) for _ in range(200)]
    assert np.mean(told) <= 0.05


def test_a_value_that_opponents_have_beyond_chance_is_told_beside_noise():
    rng = np.random.default_rng(1)
    n = 1000
    site = np.where(np.arange(n) < 100, "new", "old")
    train = Evaluation(
        labels=np.zeros(n, int), losses=rng.random(n), metadata={"site": site, "noise": rng.integers(0, 400, n)}
    )
    rows = _profile(train, np.concatenate([np.arange(30), 500 + np.arange(20)]))
    assert [(row.column, row.value, row.opponents) for row in rows if row.differs] == [("site", "new", (30, 50))]


def test_a_number_that_opponents_have_is_told_as_one_range():
    rng = np.random.default_rng(2)
    n = 1000
    age = np.concatenate([rng.uniform(70, 90, 100), rng.uniform(10, 70, 900)])
    train = Evaluation(labels=np.zeros(n, int), losses=rng.random(n), metadata={"age": age})
    (row,) = _profile(train, np.concatenate([np.arange(40), 500 + np.arange(10)]))
    assert row.value.endswith(" or more")
    assert 60 < float(row.value.removesuffix(" or more")) < 85
    assert row.opponents[0] >= 30
    assert row.differs


def test_numbers_of_noise_are_told_in_one_draw_of_twenty_at_most():
    rng = np.random.default_rng(3)
    told = [any(row.differs for row in profiled(rng, noise=rng.normal(size=1000))) for _ in range(200)]
    assert np.mean(told) <= 0.05


def test_classes_that_are_named_by_numbers_stay_classes():
    labels = np.arange(1000) % 30
    train = Evaluation(labels=labels, losses=np.ones(1000))
    told = _profile(train, np.flatnonzero(labels >= 28)[:50])
    assert {row.value for row in told} == {"28", "29"}


def planted(rate: float, seed: int = 0, n: int = 1200) -> tuple[Evaluation, Evaluation, np.ndarray]:
    """Group 0 of four is mislabelled in training at some rate; a linear model learns what it is shown."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(seed)
    centres = 4 * np.eye(4, 5)

    def rows(flip):
        group = rng.integers(0, 4, n)
        truth = (group % 2).astype(int)
        labels = np.where(flip & (group == 0) & (rng.random(n) < rate), 1 - truth, truth)
        return centres[group] + rng.normal(size=(n, 5)), truth, labels

    X, truth, labels = rows(True)
    model = LogisticRegression(max_iter=1000).fit(X, labels)
    train = Evaluation(
        labels=labels, probs=model.predict_proba(X), representations={"penultimate": X}, ids=np.arange(n) + n,
        metadata={"flipped": labels != truth},
    )  # fmt: skip
    Z, clean, _ = rows(False)
    test = Evaluation(labels=clean, probs=model.predict_proba(Z), representations={"penultimate": Z})
    return test, train, labels != truth


def test_relabel_candidates_are_mostly_the_flipped_rows():
    test, train, flipped = planted(0.3)
    fitted = HeadInfluence.fit(train)
    found = relabel_candidates(fitted.embed(test), fitted.embed(train), 20)
    assert len(found) > 5
    hit = np.mean([flipped[row.row] for row in found])
    assert hit > 0.9 > 2 * flipped.mean()
    assert all(row.suggested != row.label for row in found)
    assert all(row.agree[0] < row.agree[1] and 0 < row.opposes[0] <= row.opposes[1] for row in found)


def test_an_audit_with_training_rows_tells_who_is_to_blame():
    test, train, flipped = planted(0.8)
    audit = errata.audit(test, train=train, methods=["infembed"])
    first = audit.slices[0]
    told = {e.kind: e.to_json() for e in first.explanations}
    opponents = told["opponents"]
    share = {(row["column"], row["value"]): row for row in opponents["profile"]}["flipped", "True"]
    assert share["opponents"][0] / share["opponents"][1] > 0.85 > 3 * flipped.mean()
    assert opponents["held"][0] > 0.9 * opponents["held"][1]
    assert all(row["influence"] < 0 for row in opponents["opponents"])
    assert all(row["influence"] > 0 for row in opponents["helpers"])
    assert told["coherence"]["p_value"] < 0.05
    assert told["coherence"]["cosine"] > told["coherence"]["random"]
    central = told["coherence"]["central"]
    assert 0 < len(central) <= 4
    assert all(row["wrong"] for row in central)
    assert any(e.kind == "relabel" for e in audit.explanations)


def test_an_audit_without_training_rows_has_coherence_but_no_opponents():
    test, _, _ = planted(0.8)
    kinds = {e.kind for e in errata.audit(test, methods=["infembed"]).slices[0].explanations}
    assert "coherence" in kinds
    assert "opponents" not in kinds


def test_opponents_of_an_approximation_are_those_of_the_rows_that_the_method_put_together():
    """The slice's other members, more and of another label, chose opponents and label before."""
    m = 40
    E = np.repeat([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], [m // 4, m // 2, m // 4], axis=0)
    labels = np.repeat([0, 1, 0], [m // 4, m // 2, m // 4])
    test = with_influence(E, labels=labels, predictions=1 - labels)
    T = np.tile([[-1.0, 0.1], [0.1, -1.0], [1.0, 0.1], [0.1, 1.0]], (30, 1))
    train = with_influence(T, labels=np.tile([0, 1], 60), predictions=np.tile([0, 1], 60))
    members = np.arange(m) < 3 * m // 4
    cluster = np.arange(m) < m // 4
    view = SliceView(SLICE, test, members, ~members, np.arange(m) % 2 == 0)
    of_slice = Opponents.explain(view, Context(None, train=train))
    of_cluster = Opponents.explain(view, Context(None, train=train, own={"s1": cluster}))
    assert (of_slice.group, of_cluster.group) == ("slice", "cluster")
    assert (of_slice.members, of_cluster.members) == ((15, 15), (5, 5))
    assert {row.row % 4 for row in of_slice.opponents} == {1}
    assert {row.row % 4 for row in of_cluster.opponents} == {0}
    assert OwnLabel.explain(view, Context(None, train=train)).label == "1"
    own = OwnLabel.explain(view, Context(None, train=train, own={"s1": cluster}))
    assert (own.label, own.group) == ("0", "cluster")


def test_a_random_group_is_not_called_coherent():
    rng = np.random.default_rng(3)
    n = 400
    ev = with_influence(rng.normal(size=(n, 6)), labels=np.zeros(n, int), predictions=rng.integers(0, 2, n))
    inside = rng.random(n) < 0.2
    searched = rng.random(n) < 0.5
    told = Coherence.explain(SliceView(SLICE, ev, inside, ~inside, searched), Context(None)).to_json()
    assert told["p_value"] > 0.05
    assert told["n"] == int((inside & ~searched & ev.errors).sum())
