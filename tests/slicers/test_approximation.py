"""What is measured in place of a slice that knows the outcome: trust rests on it."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from errata.core import Evaluation, MissingInput, Source, State
from errata.core import tensor_files as arrays
from errata.slicers import Approximation, make, restore
from errata.slicers.approximation import (
    FEWEST_MEMBERS,
    MOST_REFERENCES,
    NEIGHBOURS,
    REGRESSION,
    VOTE,
    VOTE_WITHIN_PREDICTION,
    best_match,
)
from errata.slicers.contract import BaseSlicer
from errata.slicers.neighbours import FEWEST_FOR_CELLS, References, keys_of_rows


class Known(BaseSlicer):
    """A slicer whose hard sets are columns of metadata."""

    name = "known"

    def _fit(self, evaluation, train):
        self.rules_ = tuple({"kind": "known", "column": name} for name in evaluation.metadata)

    def membership(self, evaluation):
        return np.stack([column.astype(float) for column in evaluation.metadata.values()], axis=1)


def world(n: int = 800, d: int = 4, seed: int = 0, noise: float = 0.0, **sets) -> Evaluation:
    """Rows whose set "right half" is a side of the first column, but for a share of them at random."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    member = (X[:, 0] > 0.5) != (rng.random(n) < noise)
    return Evaluation(
        losses=rng.random(n),
        predictions=rng.integers(0, 3, n),
        representations={"e": X},
        sources={"e": Source(from_model=False)},
        metadata={"right half": member, **{name: make_set(rng, n) for name, make_set in sets.items()}},
        ids=rng.permutation(n),
    )


def approximated(ev: Evaluation, seed: int = 0) -> Approximation:
    return Approximation("known", seed).fit(Known().fit(ev), ev)


def members(approximation: Approximation, ev: Evaluation) -> np.ndarray:
    return approximation.membership(ev) >= approximation.thresholds_


def test_a_set_that_the_representation_tells_is_found_again_on_new_rows():
    approximation, fresh = approximated(world()), world(4000, seed=1)
    inside = members(approximation, fresh)[:, 0]
    own = fresh.metadata["right half"]
    assert own[inside].mean() > 0.97  # fidelity: rows that the method itself would take
    assert inside[own].mean() > 0.93


def test_a_set_that_nothing_tells_is_not_found_again():
    approximation, fresh = approximated(world(noise=0.5)), world(4000, seed=1, noise=0.5)
    inside = members(approximation, fresh)[:, 0]
    assert abs(fresh.metadata["right half"][inside].mean() - fresh.metadata["right half"].mean()) < 0.1


def test_a_vote_is_the_share_of_members_among_the_nearest_other_rows():
    """Distances by hand, in all four columns: the axes are turned, and all are there."""
    ev = world(60, few=lambda rng, n: rng.random(n) < 0.4)
    approximation = approximated(ev)
    assert approximation.learners_[1] == VOTE
    X = np.asarray(ev.representations["e"])
    distances = np.square(X[:, None] - X[None]).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1)[:, :NEIGHBOURS]
    shares = ev.metadata["few"][near].mean(axis=1)
    np.testing.assert_allclose(approximation.membership(ev)[:, 1], shares)
    new = world(30, seed=1)
    distances = np.square(np.asarray(new.representations["e"])[:, None] - X[None]).sum(axis=2)
    shares = ev.metadata["few"][np.argsort(distances, axis=1)[:, :NEIGHBOURS]].mean(axis=1)
    np.testing.assert_allclose(approximation.membership(new)[:, 1], shares)


def test_a_group_that_is_no_half_space_is_found_again():
    """A ball in the middle, which no regression can tell."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    ball = np.square(X).sum(axis=1) < 0.6
    ev = Evaluation(losses=rng.random(3000), representations={"e": X}, metadata={"ball": ball})
    approximation = approximated(ev.rows(np.arange(3000) < 1500))
    inside = members(approximation, ev)[1500:, 0]
    assert f1_score(ball[1500:], inside) > 0.85


def test_a_wide_half_space_is_left_to_a_regression():
    """Eight columns of noise beside it hide the side of one column from neighbours; ten members a coefficient."""
    ev, fresh = world(2000, d=12), world(4000, d=12, seed=1)
    approximation = approximated(ev)
    assert approximation.learners_ == (REGRESSION,)
    assert f1_score(fresh.metadata["right half"], members(approximation, fresh)[:, 0]) > 0.95
    few = approximated(ev.rows(np.arange(2000) < 300))
    assert few.learners_ != (REGRESSION,)


def test_within_one_prediction_where_that_decides():
    """Members have prediction 1, and lie on one side; on the same side lie as many with others."""
    ev = world(600)
    own = (np.square(ev.representations["e"]).sum(axis=1) < 3) & (ev.predictions == 1)
    arrays = {"predictions": ev.predictions, "representations": ev.representations, "metadata": {"own": own}}
    foreign = Evaluation(**arrays, sources=ev.sources)
    approximation = approximated(foreign)
    assert approximation.learners_ == (VOTE_WITHIN_PREDICTION,)
    assert f1_score(own, members(approximation, foreign)[:, 0]) > 0.75
    assert approximation.rules_[0]["scope"] == {"prediction": 1}  # what is compared with it has the same prediction
    assert "scope" not in approximated(world(2000, d=12)).rules_[0]  # members of all predictions
    assert approximated(Evaluation(**arrays)).learners_ == (VOTE,)  # the model's own representation contains it


def test_the_prediction_is_not_read_where_it_is_the_outcome():
    """All labels are 1: prediction 0 is an error, and a set of errors must not be told by it."""
    ev = world(900)
    wrong = np.random.default_rng(1).random(900) < 0.3
    labels = np.ones(900, dtype=int)
    one = Evaluation(
        labels=labels, predictions=labels - wrong, representations=ev.representations, metadata={"wrong": wrong}
    )
    assert len(approximated(one).classes_) == 0
    inside = members(approximated(one), one)[:, 0]
    assert wrong[inside].mean() < 0.5


def test_copies_and_rows_of_one_group_have_no_vote_on_each_other():
    """Every row stands thirty times, members at random: copies would say all of it."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(40, 3)), 30, axis=0)
    member = np.repeat(rng.random(40) < 0.5, 30)
    ev = Evaluation(losses=rng.random(1200), representations={"e": X}, metadata={"some": member})
    moved = X + 1e-3 * rng.normal(size=X.shape)
    groups = np.repeat(np.arange(40), 30)
    grouped = Evaluation(losses=ev.losses, representations={"e": moved}, metadata={"some": member}, groups=groups)
    for rows in (ev, grouped):
        score = approximated(rows).membership(rows)[:, 0]
        assert abs(score[member].mean() - score[~member].mean()) < 0.5
    apart = Evaluation(losses=ev.losses, representations={"e": moved}, metadata={"some": member})
    score = approximated(apart).membership(apart)[:, 0]
    assert score[member].mean() - score[~member].mean() > 0.9


@pytest.mark.parametrize("seed", range(5))
def test_the_threshold_is_where_f1_is_best(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 16, 300) / 15
    member = rng.random(300) < scores**2
    threshold, match = best_match(scores, member)
    by_hand = {t: f1_score(member, scores >= t) for t in np.unique(scores) if t > 0}
    assert match == pytest.approx(max(by_hand.values()))
    assert by_hand[threshold] == pytest.approx(match)
    assert best_match(np.zeros(10), np.ones(10, dtype=bool)) == (float("inf"), 0.0)


@pytest.fixture(scope="module")
def wide() -> Evaluation:
    """As many columns as three rows in four: a regression would know its own rows by heart."""
    return world(200, d=150, noise=0.5, fifth=lambda rng, n: rng.random(n) < 0.2)


def test_search_rows_and_new_rows_are_members_equally_often(wide):
    """Judged by themselves, search rows would be members more often than any new row."""
    approximation, fresh = approximated(wide), world(4000, d=150, seed=1)
    own = members(approximation, wide)[:, 1].mean()
    assert members(approximation, fresh)[:, 1].mean() == pytest.approx(own, abs=0.07)


def test_many_rows_are_judged_by_a_sample_of_them():
    ev = world(MOST_REFERENCES + 2000)
    approximation = approximated(ev)
    assert len(approximation.references_) == MOST_REFERENCES
    assert f1_score(ev.metadata["right half"], members(approximation, ev)[:, 0]) > 0.95
    assert sum(array.nbytes for array in approximation.to_state().arrays.values()) < 2e6


def test_sets_with_too_few_members_or_too_few_others_have_no_approximation():
    def first(k):
        return lambda rng, n: np.arange(n) < k

    sets = {"four": first(FEWEST_MEMBERS - 1), "five": first(FEWEST_MEMBERS), "nearly all": first(800 - 4)}
    approximation = approximated(world(**sets))
    assert approximation.columns_.tolist() == [0, 2]
    assert [rule["of"]["column"] for rule in approximation.rules_] == ["right half", "five"]
    assert approximation.membership(world(50, seed=2)).shape == (50, 2)
    assert len(approximation.thresholds_) == len(approximation.learners_) == 2


def test_rules_name_what_is_approximated():
    rule = dict(approximated(world()).rules_[0])
    assert rule.pop("match") > 0.9
    assert rule == {
        "kind": "approximation", "of": {"kind": "known", "column": "right half"}, "representation": "e",
        "learner": REGRESSION,
    }  # fmt: skip


def test_neither_label_nor_loss_is_read():
    ev = world()
    bare = Evaluation(predictions=ev.predictions, representations=ev.representations)
    approximation = approximated(ev)
    np.testing.assert_array_equal(approximation.membership(bare), approximation.membership(ev))


def test_a_representation_that_reads_the_outcome_is_passed_over():
    ev = world()
    told = ev.metadata["right half"][:, None] * np.ones((1, 2))
    sources = {"influence": Source(reads=frozenset({"label"}))}
    both = Evaluation(
        losses=ev.losses, predictions=ev.predictions, metadata=ev.metadata, sources=sources,
        representations={"influence": told, "e": ev.representations["e"]},
    )  # fmt: skip
    assert approximated(both).representation_ == "e"
    only = Evaluation(
        losses=ev.losses, predictions=ev.predictions, metadata=ev.metadata, sources=sources,
        representations={"influence": told},
    )  # fmt: skip
    approximation = approximated(only)
    assert approximation.representation_ is None
    assert approximation.learners_ == (REGRESSION,)
    assert approximation.coefficients_.shape == (1, 1, 3)  # the prediction alone


def test_with_nothing_to_read_nothing_is_approximated():
    ev = world()
    approximation = approximated(Evaluation(losses=ev.losses, metadata=ev.metadata))
    assert approximation.columns_.tolist() == []
    assert approximation.membership(Evaluation(losses=ev.losses)).shape == (800, 0)


def test_constant_columns_do_no_harm():
    ev = world()
    X = np.hstack([ev.representations["e"], np.ones((800, 1))])
    flat = Evaluation(losses=ev.losses, metadata=ev.metadata, representations={"e": X})
    assert np.isfinite(approximated(flat).membership(flat)).all()


def test_same_seed_same_bytes_and_row_order_does_not_matter(wide):
    first = approximated(wide).to_state()
    order = np.random.default_rng(5).permutation(len(wide))
    for other in (approximated(wide), approximated(wide.rows(order))):
        state = other.to_state()
        assert json.dumps(state.facts) == json.dumps(first.facts)
        assert {name: a.tobytes() for name, a in state.arrays.items()} == {
            name: a.tobytes() for name, a in first.arrays.items()
        }


def test_another_seed_is_another_sample():
    ev = world(MOST_REFERENCES + 2000)
    first, again, other = (approximated(ev, seed).references_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", ["approximation", "stand-in"])
def test_a_saved_state_answers_alike(name, tmp_path):
    """Version 0.1 saved approximations under another name."""
    sets = {"within": lambda rng, n: rng.random(n) < 0.3, "all": lambda rng, n: rng.random(n) < 0.6}
    ev, approximation = world(seed=3), approximated(world(1500, d=12, **sets))
    ev = world(seed=3, d=12)
    assert REGRESSION in approximation.learners_
    state = approximation.to_state()
    assert state.name == "approximation"
    arrays.write(tmp_path / "s.safetensors", state.arrays)
    again = restore(State(name, json.loads(json.dumps(state.facts)), arrays.read(tmp_path / "s.safetensors")))
    assert isinstance(again, Approximation)
    np.testing.assert_array_equal(again.membership(ev), approximation.membership(ev))
    np.testing.assert_array_equal(again.thresholds_, approximation.thresholds_)
    np.testing.assert_array_equal(again.columns_, approximation.columns_)
    assert again.rules_ == approximation.rules_
    assert (again.method, again.seed) == ("known", 0)


def test_a_state_of_version_0_2_is_a_regression_on_all_columns():
    """Its arrays, as that version saved them, beside scikit-learn."""
    ev = world(noise=0.2).by_id()
    X = np.asarray(ev.representations["e"])
    F = np.hstack([(X - X.mean(axis=0)) / X.std(axis=0), ev.predictions[:, None] == np.arange(3)])
    peer = LogisticRegression(C=1.0, max_iter=1000).fit(F, ev.metadata["right half"])
    saved = {
        "columns_": np.array([0]), "coefficients_": peer.coef_, "intercepts_": peer.intercept_,
        "thresholds_": np.array([0.4]), "centre_": X.mean(axis=0), "scale_": X.std(axis=0), "classes_": np.arange(3),
    }  # fmt: skip
    rule = {"kind": "approximation", "of": {"kind": "known"}, "representation": "e"}
    facts = {"method": "known", "seed": 0, "representation": "e", "rules": [rule]}
    old = restore(State("stand-in", facts, saved))
    np.testing.assert_allclose(old.membership(ev)[:, 0], peer.predict_proba(F)[:, 1], rtol=1e-9)
    again = restore(old.to_state())
    np.testing.assert_array_equal(again.membership(ev), old.membership(ev))


def test_new_rows_must_have_what_it_was_fitted_on():
    ev = world(600)
    own = (np.square(ev.representations["e"]).sum(axis=1) < 3) & (ev.predictions == 1)
    arrays = {"predictions": ev.predictions, "representations": ev.representations, "sources": ev.sources}
    approximation = approximated(Evaluation(**arrays, metadata={"own": own}))
    assert approximation.learners_ == (VOTE_WITHIN_PREDICTION,)
    with pytest.raises(MissingInput, match="the approximation of `known` needs `predictions`"):
        approximation.membership(Evaluation(representations=ev.representations))
    narrow = Evaluation(predictions=ev.predictions, representations={"e": ev.representations["e"][:, :2]})
    with pytest.raises(ValueError, match="the approximation of `known` was fitted on 4 columns; got 2"):
        approximation.membership(narrow)
    for other in (approximated(world(100)), approximated(world(2000, d=12))):  # a plain vote, and a regression
        other.membership(Evaluation(representations={"e": np.ones((3, len(other.centre_)))}))


def test_of_a_registered_method():
    """The slice of the highest losses, which no representation tells: not its rows, but some."""
    ev = world()
    slicer = make("high-loss", options={"size": 0.1}).fit(ev)
    approximation = Approximation("high-loss").fit(slicer, ev)
    inside = members(approximation, ev)[:, 0]
    assert inside.any()
    assert slicer.membership(ev)[inside, 0].mean() < 0.3
    few = make("high-loss", options={"size": 0.005}).fit(ev)
    assert len(Approximation("high-loss").fit(few, ev).columns_) == 0


def test_with_thousands_of_references_cells_give_the_neighbours_that_all_would():
    rng = np.random.default_rng(0)
    groups = rng.normal(size=(60, 8)) * 4
    R = (groups[rng.integers(0, 60, FEWEST_FOR_CELLS)] + rng.normal(size=(FEWEST_FOR_CELLS, 8))).astype(np.float32)
    references = References(R, keys_of_rows(R))
    queries = R[:500].astype(np.float64)
    near = references.nearest(queries, references.keys[:500], NEIGHBOURS)
    distances = np.square(queries[:, None] - R[None]).sum(axis=2)
    distances[np.arange(500), np.arange(500)] = np.inf
    exact = np.argsort(distances, axis=1, kind="stable")[:, :NEIGHBOURS]
    shared = [len(set(a) & set(b)) / NEIGHBOURS for a, b in zip(near.tolist(), exact.tolist(), strict=True)]
    assert np.mean(shared) > 0.97
    assert not (near == np.arange(500)[:, None]).any()  # no row is its own neighbour
