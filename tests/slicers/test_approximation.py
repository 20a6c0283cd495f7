"""What is measured in place of a slice that knows the outcome: trust rests on it."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from errata.core import Evaluation, MissingInput, Source, State
from errata.slicers import Approximation, make, restore
from errata.slicers.approximation import FEWEST_MEMBERS, ROWS_PER_COLUMN
from errata.slicers.contract import BaseSlicer
from errata.store import arrays


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
    assert inside[own].mean() > 0.97


def test_a_set_that_nothing_tells_is_not_found_again():
    approximation, fresh = approximated(world(noise=0.5)), world(4000, seed=1, noise=0.5)
    inside = members(approximation, fresh)[:, 0]
    assert abs(fresh.metadata["right half"][inside].mean() - fresh.metadata["right half"].mean()) < 0.1


def test_as_many_search_rows_are_members_as_the_slice_has():
    ev = world(noise=0.2)
    approximation = approximated(ev)
    assert ev.representations["e"].shape[1] + 3 < len(ev) / ROWS_PER_COLUMN
    assert members(approximation, ev)[:, 0].sum() == ev.metadata["right half"].sum()


def test_thresholds_and_probabilities_are_those_of_scikit_learn():
    ev = world(noise=0.2).by_id()
    approximation, X = approximated(ev), ev.representations["e"]
    F = np.hstack([(X - X.mean(axis=0)) / X.std(axis=0), ev.predictions[:, None] == np.arange(3)])
    peer = LogisticRegression(C=1.0, max_iter=1000).fit(F, ev.metadata["right half"])
    np.testing.assert_allclose(approximation.membership(ev)[:, 0], peer.predict_proba(F)[:, 1], rtol=1e-9)
    m = int(ev.metadata["right half"].sum())
    assert approximation.thresholds_[0] == pytest.approx(np.sort(peer.predict_proba(F)[:, 1])[-m], rel=1e-9)


@pytest.fixture(scope="module")
def wide() -> Evaluation:
    """As many columns as three rows in four: a regression knows its own rows by heart."""
    return world(200, d=150, noise=0.5, fifth=lambda rng, n: rng.random(n) < 0.2)


def test_where_rows_are_few_the_threshold_comes_from_out_of_fold_scores(wide):
    """By regressions that were not fitted to a row, on the folds of scikit-learn; in-sample scores are higher."""
    ev = wide.by_id()
    approximation, X = approximated(ev), ev.representations["e"]
    F = np.hstack([(X - X.mean(axis=0)) / X.std(axis=0), ev.predictions[:, None] == np.arange(3)])
    own = ev.metadata["fifth"]
    scores = np.empty(len(F))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(F, own):
        scores[test] = LogisticRegression(C=1.0, max_iter=1000).fit(F[train], own[train]).predict_proba(F[test])[:, 1]
    m = int(own.sum())
    assert approximation.thresholds_[1] == pytest.approx(np.sort(scores)[-m], rel=1e-6)
    in_sample = np.sort(approximation.membership(ev)[:, 1])[-m]
    assert approximation.thresholds_[1] < in_sample - 0.05


def test_where_rows_are_few_new_rows_are_members_as_often_as_the_slice_has_rows(wide):
    """With in-sample scores the cut would be too high, and hardly a new row would reach it."""
    approximation, fresh = approximated(wide), world(4000, d=150, seed=1)
    share = members(approximation, fresh)[:, 1].mean()
    assert share == pytest.approx(wide.metadata["fifth"].mean(), abs=0.07)


def test_sets_with_too_few_members_or_too_few_others_have_no_approximation():
    def first(k):
        return lambda rng, n: np.arange(n) < k

    sets = {"nine": first(FEWEST_MEMBERS - 1), "ten": first(FEWEST_MEMBERS), "nearly all": first(800 - 9)}
    approximation = approximated(world(**sets))
    assert approximation.columns_.tolist() == [0, 2]
    assert [rule["of"]["column"] for rule in approximation.rules_] == ["right half", "ten"]
    assert approximation.membership(world(50, seed=2)).shape == (50, 2)
    assert len(approximation.thresholds_) == len(approximation.intercepts_) == 2


def test_rules_name_what_is_approximated():
    rule = approximated(world()).rules_[0]
    assert rule == {"kind": "approximation", "of": {"kind": "known", "column": "right half"}, "representation": "e"}


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
    assert approximation.coefficients_.shape == (1, 3)  # the prediction alone


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
    moved = approximated(wide, seed=1)
    assert moved.thresholds_.tolist() != approximated(wide).thresholds_.tolist()  # other folds
    np.testing.assert_array_equal(moved.coefficients_, approximated(wide).coefficients_)


@pytest.mark.parametrize("name", ["approximation", "stand-in"])
def test_a_saved_state_answers_alike(name, tmp_path):
    """Version 0.1 saved approximations under another name."""
    ev, approximation = world(seed=3), approximated(world())
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


def test_new_rows_must_have_what_it_was_fitted_on():
    ev, approximation = world(), approximated(world())
    with pytest.raises(MissingInput, match="the approximation of `known` needs `predictions`"):
        approximation.membership(Evaluation(representations=ev.representations))
    narrow = Evaluation(predictions=ev.predictions, representations={"e": ev.representations["e"][:, :2]})
    with pytest.raises(ValueError, match="the approximation of `known` was fitted on 4 columns; got 2"):
        approximation.membership(narrow)


def test_of_a_registered_method():
    """The slice of the highest losses: as many members as it has, from the representation alone."""
    ev = world()
    slicer = make("high-loss", options={"size": 0.1}).fit(ev)
    approximation = Approximation("high-loss").fit(slicer, ev)
    assert members(approximation, ev).sum() == 80
    few = make("high-loss", options={"size": 0.01}).fit(ev)
    assert len(Approximation("high-loss").fit(few, ev).columns_) == 0
