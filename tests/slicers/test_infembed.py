"""Clusters of influence embeddings: planted ones, and the tree of a rule by brute force."""

import json

import numpy as np
import pytest
from sklearn.cluster import AgglomerativeClustering

from errata import audit
from errata.core import Evaluation, InputError, Source, State
from errata.core.blocks import unit
from errata.slicers import make, restore
from errata.slicers.contract import knows_outcome
from errata.slicers.infembed.clusters import NOISE, lloyd, nearest_centre
from errata.slicers.infembed.rule import Statistics, statistics
from errata.slicers.infembed.slicer import GRADE

GROUPS, CLUSTERERS = 6, ("normalised", "kmeans", "dbscan", "spectral")


def evaluation(X, labels, wrong, **others):
    """Two classes, sure and sometimes wrong; the embeddings are said to read the label."""
    right = np.where(wrong, 0.1, 0.9)
    probs = np.stack([np.where(labels == 0, right, 1 - right), np.where(labels == 1, right, 1 - right)], axis=1)
    return Evaluation(
        labels=labels, probs=probs, representations={"e": X, "influence": X},
        sources={"influence": Source(reads=frozenset({"label"}))}, **others,
    )  # fmt: skip


def planted(seed=0, n=900, d=8, spread=0.3, shuffled=False):
    """Groups in directions of their own; of the first eight in ten are wrong, of the others one in twenty."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, GROUPS, n)
    X = 4 * np.eye(d)[group] * rng.uniform(0.7, 1.5, (n, 1)) + spread * rng.standard_normal((n, d))
    wrong = rng.random(n) < np.where(group == 0, 0.8, 0.05)
    X = rng.permutation(X) if shuffled else X
    return evaluation(X, rng.integers(0, 2, n), wrong, ids=rng.permutation(n)), group


def halves(ev):
    searched = np.arange(len(ev)) % 2 == 0
    return ev.rows(searched), ev.rows(~searched), ~searched


def overlap(weights, group):
    """(slices, groups) Jaccard index."""
    inside, own = weights > 0.5, group[:, None] == np.arange(GROUPS)
    both = inside.T.astype(int) @ own.astype(int)
    return both / np.maximum(inside.sum(axis=0)[:, None] + own.sum(axis=0) - both, 1)


def named(value):
    """The same in every process, which functions and objects do not have by themselves."""
    if isinstance(value, dict):
        return " ".join(f"{name}={named(item)}" for name, item in value.items())
    plain = value is None or isinstance(value, str | int | float)
    return str(value) if plain else getattr(value, "__name__", type(value).__name__)


class Thirds:
    """Somebody's own clusterer: by the first column, and rows in the middle belong nowhere."""

    def fit_predict(self, X):
        return np.where(X[:, 0] > 2, 7, np.where(X[:, 0] < 0.1, 3, NOISE))


@pytest.mark.parametrize("clusterer", [*CLUSTERERS, AgglomerativeClustering(GROUPS)], ids=named)
@pytest.mark.parametrize("scaled", [False, True])
def test_planted_clusters_are_found_and_new_rows_go_into_them(clusterer, scaled):
    ev, group = planted()
    found, new, rows = halves(ev)
    options = {"slices": GROUPS, "clusterer": clusterer, "unit_length": scaled}
    slicer = make("infembed", options=options).fit(found)
    match = overlap(slicer.membership(new), group[rows])
    assert match.max(axis=0).min() > (0.6 if clusterer == "dbscan" else 0.9)  # every group; some rows are noise
    assert match[0].argmax() == 0  # the one that fails comes first
    ev, group = planted(shuffled=True)
    found, new, rows = halves(ev)
    slicer = make("infembed", options=options).fit(found)
    assert overlap(slicer.membership(new), group[rows]).max() < 0.3


@pytest.mark.parametrize("method", ["infembed", "infembed-rule"])
def test_leading_columns_for_each_class(method):
    """Of an embedding with the largest eigenvalue first, so many columns a class are looked at, also in new rows."""
    ev, _ = planted(n=300, d=12, spread=1.0)
    X = ev.representations["influence"]
    noisy = X + 1000 * (np.arange(12) >= 6) * np.random.default_rng(0).standard_normal(X.shape)
    other = ev.with_representation("influence", noisy, ev.source("influence"))
    few = {"axes": 3, "slices": GROUPS} if method == "infembed" else {"axes": 3, "min_rows": 10}
    first = make(method, options=few).fit(ev)
    assert first.membership(ev).shape[1] > 0
    assert np.array_equal(first.membership(ev), first.membership(other))
    assert np.array_equal(first.membership(ev), make(method, options=few).fit(other).membership(ev))
    whole = make(method, options={**few, "axes": None}).fit(ev)
    assert whole.centres_.shape[1] == 12
    assert first.centres_.shape[1] == 6
    assert not np.array_equal(whole.membership(ev), whole.membership(other))


def test_slices_come_by_excess_loss_and_are_numbered_so():
    ev, _ = planted()
    slicer = make("infembed", options={"slices": GROUPS}).fit(ev)
    inside = slicer.membership(ev) > 0.5
    excess = [(ev.losses[own].mean() - ev.losses.mean()) * np.sqrt(own.sum()) for own in inside.T]
    assert (np.diff(excess) <= 1e-12).all()
    assert (inside.sum(axis=1) == 1).all()
    assert [rule["component"] for rule in slicer.rules_] == list(range(GROUPS))
    assert {rule["clusterer"] for rule in slicer.rules_} == {"kmeans"}
    assert np.array_equal(slicer.membership(ev) >= slicer.thresholds_, inside)


def test_a_clusterer_of_ones_own_may_leave_rows_out():
    ev, _ = planted()
    slicer = make("infembed", options={"clusterer": Thirds()}).fit(ev)
    X = ev.representations["influence"]
    own = Thirds().fit_predict(X)
    weights = slicer.membership(ev)
    assert weights.shape == (len(ev), 2)
    assert np.array_equal(weights[:, 0] == 1, own == 7)  # the group that fails
    assert np.array_equal(weights[:, 1] == 1, own == 3)
    assert slicer.rules_[0]["clusterer"] == "Thirds"


@pytest.mark.parametrize("clusterer", [*CLUSTERERS, AgglomerativeClustering(4)], ids=named)
def test_identical_rows_are_at_most_one_slice_each(clusterer):
    labels, wrong = np.arange(60) % 2, np.arange(60) % 3 == 0
    for X, distinct in ((np.ones((60, 3)), 1), (np.where(np.arange(60)[:, None] < 30, -1.0, 1.0) * np.ones(3), 2)):
        ev = evaluation(X, labels, wrong)
        weights = make("infembed", options={"clusterer": clusterer, "slices": 4}).fit(ev).membership(ev)
        assert ((weights == 0) | (weights > 1 - GRADE)).all()
        assert (weights.sum(axis=1) <= 1).all()
        for row in range(60):
            same = (X[row] == X).all(axis=1)
            assert (weights[same] == weights[row]).all()  # rows that are alike are together
        assert (weights.sum(axis=0) > 0).sum() <= distinct


def brute(slicer, ev, rows, depth=0):
    """The sets of rows that a rule finds, by its definition."""
    X, facts, rare = ev.representations["influence"], ev.errors, slicer._rare
    X = X if slicer.axes is None else X[:, : 2 * slicer.axes]  # two classes
    X = unit(X) if rare.unit_length else X
    if slicer.rule is None:
        few = np.count_nonzero(~facts[rows]) <= slicer.accuracy * len(rows) + 1e-9
        satisfied = len(rows) >= slicer.min_rows and few
    else:
        satisfied = slicer.rule(statistics(ev, rows, depth))
    if satisfied:
        return [(rows, depth)]
    stop = 2 * slicer.min_rows if rare.stop is None else rare.stop
    if depth == rare.depth or len(rows) < stop:
        return []
    spherical = rare.clusterer == "normalised"
    centres = lloyd(X[rows], slicer.branch, spherical=spherical, steps=rare.steps, seed=slicer.seed)
    own = nearest_centre(X[rows], centres, spherical=spherical)[0]
    found = [brute(slicer, ev, rows[own == j], depth + 1) for j in range(len(centres))] if len(centres) > 1 else []
    return [item for part in found for item in part]


def pure(facts: Statistics) -> bool:
    return facts.n >= 15 and facts.label_share is not None and facts.label_share >= 0.75


RULES = [
    {},
    {"advanced.clusterer": "normalised"},
    {"advanced.unit_length": True},
    {"branch": 2, "min_rows": 10},
    {"branch": 5, "min_rows": 5, "advanced.stop": 30},
    {"advanced.depth": 1},
    {"advanced.depth": 2, "min_rows": 5},
    {"advanced.stop": 200},
    {"advanced.stop": 0, "min_rows": 3, "advanced.depth": 4},
    {"accuracy": 0.97},
    {"rule": pure},
    {"rule": pure, "min_rows": 1, "advanced.depth": 5},
    {"axes": 2},
    {"axes": None, "advanced.unit_length": True},
]


@pytest.mark.parametrize("options", RULES, ids=named)
@pytest.mark.parametrize("seed", range(3))
def test_the_tree_is_the_rules_definition(seed, options):
    ev, _ = planted(seed, n=500, spread=1.5)
    slicer = make("infembed-rule", seed=seed, options=options).fit(ev)
    ordered = ev.by_id()
    inside = slicer.membership(ordered) >= slicer.thresholds_
    expected = brute(slicer, ordered, np.arange(len(ev)))
    assert {tuple(np.flatnonzero(own)) for own in inside.T} == {tuple(np.sort(rows)) for rows, _ in expected}
    assert sorted(rule["depth"] for rule in slicer.rules_) == sorted(depth for _, depth in expected)
    assert max((depth for _, depth in expected), default=0) <= slicer._rare.depth
    assert (inside.sum(axis=1) <= 1).all()
    for own in inside.T:
        if slicer.rule is None:
            assert own.sum() >= slicer.min_rows
            assert 1 - ordered.errors[own].mean() <= slicer.accuracy + 1e-9
        else:
            assert pure(statistics(ordered, np.flatnonzero(own)))
    cut = set(slicer.parents_.tolist()) - {-1}
    assert not cut & set(np.flatnonzero(slicer.leaves_ >= 0).tolist())  # a slice is not cut further
    assert np.bincount(slicer.parents_ + 1).max(initial=0) <= slicer.branch
    excess = [(ordered.losses[own].mean() - ordered.losses.mean()) * np.sqrt(own.sum()) for own in inside.T]
    assert (np.diff(excess) <= 1e-9).all()


def test_the_group_that_fails_is_the_slice_also_on_new_rows():
    ev, group = planted(n=1200)
    found, new, rows = halves(ev)
    slicer = make("infembed-rule", options={"branch": GROUPS}).fit(found)
    match = overlap(slicer.membership(new), group[rows])
    assert match.shape[0] == 1
    assert match[0, 0] > 0.9
    ev, _ = planted(n=1200, shuffled=True)
    assert len(make("infembed-rule", options={"branch": GROUPS}).fit(ev.rows(np.arange(600))).rules_) == 0


def test_all_rows_together_are_a_slice_where_they_satisfy_the_rule():
    ev, _ = planted(n=200)
    slicer = make("infembed-rule", options={"accuracy": 1.0}).fit(ev)
    assert slicer.membership(ev).tolist() == [[1.0]] * 200
    assert slicer.rules_[0]["depth"] == 0
    nowhere = make("infembed-rule", options={"advanced.depth": 0}).fit(ev)
    assert nowhere.membership(ev).shape == (200, 0)


def test_an_accuracy_of_exactly_the_limit_satisfies():
    for n, right, limit in ((10, 3, 0.3), (25, 10, 0.4), (10, 1, 0.1), (50, 35, 0.7)):
        ev = evaluation(np.zeros((n, 2)), np.zeros(n, dtype=int), np.arange(n) >= right)
        assert statistics(ev, np.arange(n)).accuracy == limit
        assert len(make("infembed-rule", options={"accuracy": limit, "min_rows": n}).fit(ev).rules_) == 1
        assert len(make("infembed-rule", options={"accuracy": limit, "min_rows": n + 1}).fit(ev).rules_) == 0


def test_statistics_by_hand():
    ev = evaluation(np.zeros((5, 1)), np.array([0, 1, 1, 1, 0]), np.array([True, False, True, False, False]))
    facts = statistics(ev, np.array([1, 2, 3, 4]), depth=2)
    loss = (3 * -np.log(0.9) - np.log(0.1)) / 4
    assert facts == Statistics(4, 0.75, pytest.approx(loss), 1, 0.75, 0, 0.5, 2)
    targets = Evaluation(labels=np.array([0.5, 1.5]), predictions=np.array([0.5, 1.0]), representations={"influence": np.ones((2, 1))})  # fmt: skip  # noqa: E501
    facts = statistics(targets, np.array([0, 1]))
    assert (facts.accuracy, facts.label, facts.prediction_share) == (None, None, None)
    assert facts.mean_loss == pytest.approx(0.125)
    with pytest.raises(InputError, match="needs classes as labels and predictions; give a `rule` over mean_loss"):
        make("infembed-rule").fit(targets)
    found = make("infembed-rule", options={"rule": lambda facts: facts.mean_loss > 0.1}).fit(targets)
    assert len(found.rules_) == 1


def test_where_nothing_satisfies_the_rule_there_is_no_slice_and_the_audit_says_so():
    ev, _ = planted(n=400)
    for method, options in (
        ("infembed-rule", {"accuracy": 0.0}),
        ("infembed", {"clusterer": "dbscan", "advanced.radius": 1e-9}),
    ):
        slicer = make(method, options=options).fit(ev)
        assert slicer.membership(ev).shape == (400, 0)
        found = audit(ev, methods=[method], options={method: options})
        assert found.slices == ()
        assert "the smallest slice that would be confirmed" in found.silence
    alike = evaluation(np.ones((100, 2)), np.arange(100) % 2, np.arange(100) % 5 == 0)
    deep = make("infembed-rule", options={"rule": lambda facts: facts.depth > 1}).fit(alike)
    assert deep.membership(alike).shape == (100, 0)  # rows that are alike are not cut


CHOICES = {"infembed": "clusterer", "infembed-rule": "advanced.clusterer"}


@pytest.mark.parametrize(
    ("method", "options"),
    [(m, {o: c}) for m, o in CHOICES.items() for c in ("normalised", "kmeans")]
    + [("infembed", {"clusterer": c}) for c in ("dbscan", "spectral", Thirds(), AgglomerativeClustering(5))]
    + [
        ("infembed-rule", {"rule": pure, "min_rows": 1}),
        ("infembed-rule", {"rule": lambda facts: facts.n < 90}),
        ("infembed", {"unit_length": True}),
        ("infembed", {"axes": None}),
    ],
    ids=named,
)
def test_state_goes_through_json_with_objects_of_the_users_by_name(method, options):
    ev, _ = planted(n=400, spread=1.0)
    found, new, _ = halves(ev)
    slicer = make(method, options=options).fit(found)
    state = slicer.to_state()
    again = restore(State(state.name, json.loads(json.dumps(state.facts)), state.arrays))
    assert slicer.membership(new).shape[1] > 0
    assert np.array_equal(again.membership(new), slicer.membership(new))
    assert again.rules_ == slicer.rules_
    if not isinstance(next(iter(options.values())), str | bool | None):
        with pytest.raises(InputError, match=r"must be (`normalised`|a function)"):
            again.fit(found)  # its name cannot cluster


def test_both_know_the_outcome():
    ev, _ = planted(n=200)
    for method in ("infembed", "infembed-rule"):
        assert knows_outcome(make(method).fit(ev), ev)
        blind = make(method, options={"representation": "e"}).fit(ev)
        assert not knows_outcome(blind, ev)


BAD = [
    ("infembed", {"slices": 0}, "`infembed.slices` must be an integer of at least 1; got 0"),
    ("infembed", {"advanced.steps": 0}, "`infembed.advanced.steps` must be an integer of at least 1; got 0"),
    ("infembed", {"advanced": {"min_samples": 0}}, "`infembed.advanced.min_samples` must be an integer of at least 1"),
    (
        "infembed",
        {"clusterer": "k-means"},
        "must be `normalised`, `kmeans`, `dbscan`, `spectral` or an object with `fit_predict`; got 'k-means'",
    ),
    ("infembed", {"clusterer": 3}, "got 3"),
    ("infembed", {"axes": 0}, "`infembed.axes` must be an integer of at least 1 or null; got 0"),
    ("infembed-rule", {"axes": 0}, "`infembed-rule.axes` must be an integer of at least 1 or null; got 0"),
    ("infembed", {"advanced.radius": 0.0}, "`infembed.advanced.radius` must be a number above 0 or null; got 0.0"),
    ("infembed", {"advanced.radius": -1}, "got -1"),
    ("infembed", {"representation": "influenze"}, "unknown representation `influenze`; did you mean `influence`"),
    ("infembed-rule", {"accuracy": 1.5}, "`infembed-rule.accuracy` must be a number between 0 and 1; got 1.5"),
    ("infembed-rule", {"min_rows": 0}, "`infembed-rule.min_rows` must be an integer of at least 1; got 0"),
    ("infembed-rule", {"branch": 1}, "`infembed-rule.branch` must be an integer of at least 2; got 1"),
    (
        "infembed-rule",
        {"advanced.depth": -1},
        "`infembed-rule.advanced.depth` must be an integer of at least 0",
    ),
    ("infembed-rule", {"advanced.steps": 0}, "`infembed-rule.advanced.steps` must be an integer of at least 1; got 0"),
    (
        "infembed-rule",
        {"advanced.clusterer": "dbscan"},
        "`infembed-rule.advanced.clusterer` must be `normalised` or `kmeans`; got 'dbscan'",
    ),
    ("infembed-rule", {"rule": "low"}, "`infembed-rule.rule` must be a function or null; got 'low'"),
]


@pytest.mark.parametrize(("method", "options", "words"), BAD, ids=named)
def test_bad_options_are_one_sentence(method, options, words):
    ev, _ = planted(n=60)
    with pytest.raises(InputError, match=words):
        make(method, options=options).fit(ev)


@pytest.mark.parametrize("clusterer", ["normalised", "kmeans"])
def test_rows_of_a_slice_are_ranked_by_how_well_they_fit_and_all_are_members(clusterer):
    rng = np.random.default_rng(0)
    X = np.where(np.arange(300)[:, None] < 100, [4.0, 0, 0], [0, 4.0, 0]) + rng.normal(size=(300, 3))
    ev = evaluation(X, np.zeros(300, int), np.arange(300) < 100)
    slicer = make("infembed", options={"clusterer": clusterer, "slices": 2}).fit(ev)
    first = slicer.membership(ev)[:, 0]
    hard = first >= slicer.thresholds_[0]
    np.testing.assert_array_equal(hard, first > 0)
    order = np.argsort(-first)[: hard.sum()]
    along = X[order, 0]  # towards the centroid of the errors
    assert np.corrcoef(np.arange(len(along)), along)[0, 1] < -0.8


def test_an_audit_with_objects_of_ones_own_is_saved_with_their_names(tmp_path):
    from sklearn.cluster import AgglomerativeClustering

    import errata

    rng = np.random.default_rng(1)
    X = np.where(np.arange(300)[:, None] < 100, [4.0, 0, 0], [0, 4.0, 0]) + rng.normal(size=(300, 3))
    ev = evaluation(X, np.zeros(300, int), np.arange(300) < 100)
    options = {
        "infembed": {"clusterer": AgglomerativeClustering(3)},
        "infembed-rule": {"rule": lambda part: part.n >= 20 and part.accuracy <= 0.5},
    }
    folder = errata.save(audit(ev, methods=list(options), options=options), tmp_path / "a")
    settings = json.loads((folder / "audit.json").read_text())["settings"]["options"]
    assert settings["infembed"]["clusterer"] == "AgglomerativeClustering"
    assert settings["infembed-rule"]["rule"] == "<lambda>"
    assert errata.load(folder).slices


def test_a_regression_has_no_classes_to_count():
    from errata.core.influence import columns_used

    ev = Evaluation(
        labels=np.linspace(0, 1, 50), predictions=np.zeros(50), representations={"influence": np.ones((50, 40))}
    )
    assert columns_used(ev, 40, 4) == 8
