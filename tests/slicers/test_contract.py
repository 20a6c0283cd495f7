"""What every registered method must do, whatever it is."""

import json

import numpy as np
import pytest

from errata.core import Evaluation, InputError, MissingInput, Source, State
from errata.core import tensor_files as arrays
from errata.core.membership import thresholds
from errata.slicers import SLICERS, make, registry, restore
from errata.slicers.contract import BaseSlicer, Slicer, build, knows_outcome
from errata.slicers.gmm import Gmm

N, D, K = 600, 6, 3
QUICK = {
    "spotlight:as_published": {"advanced.steps": 60},
    "gmm:as_published": {"components": 8},
    "planespot:as_published": {"advanced.stride": 11},
    "directions:recommended": {"permutations": 3},
}


def evaluation(seed: int = 0, n: int = N) -> Evaluation:
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 6, n)
    X = rng.normal(0, 3, (6, D))[cluster] + rng.normal(size=(n, D))
    labels = rng.integers(0, K, n)
    wrong = rng.random(n) < np.where(cluster == 0, 0.7, 0.15)
    logits = rng.normal(size=(n, K))
    logits[np.arange(n), np.where(wrong, (labels + 1) % K, labels)] += 3
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return built(labels, probs, X, ids=rng.permutation(n))


def columns_of(X) -> dict:
    """Metadata from which the same groups can be told: a number, and a text that is missing in some rows."""
    return {"first": X[:, 0], "side": np.where(X[:, 1] > 0, "right", np.where(X[:, 2] > 1, "", "left"))}


def built(labels, probs, X, ids=None) -> Evaluation:
    """With the gradients of a last layer that has one output as its influence embeddings."""
    residual = 1 - probs[np.arange(len(X)), labels]
    return Evaluation(
        labels=labels,
        probs=probs,
        representations={"embedding": X, "influence": X * residual[:, None]},
        sources={"influence": Source(reads=frozenset({"label"}))},
        metadata=columns_of(X),
        ids=ids,
    )


def every_method() -> list[str]:
    return [f"{name}:{preset}" for name, cls in registry().items() for preset in cls.presets]


@pytest.fixture(params=every_method())
def method(request):
    return request.param


def fitted(method: str, ev: Evaluation, seed: int = 0):
    return make(method, seed=seed, options=QUICK.get(method, {})).fit(ev)


def state_bytes(slicer) -> tuple:
    state = slicer.to_state()
    return json.dumps(state.facts), {name: array.tobytes() for name, array in state.arrays.items()}


def test_keeps_the_protocol(method):
    slicer = fitted(method, evaluation())
    assert isinstance(slicer, Slicer)
    assert {"recommended", "as_published"} <= set(slicer.presets)
    assert slicer.reads <= {"label", "prediction", "loss"}
    s = slicer.membership(evaluation()).shape[1]
    assert slicer.thresholds_.shape == (s,)
    assert len(slicer.rules_) == s
    assert all("kind" in rule and json.dumps(rule) for rule in slicer.rules_)


def test_weights_lie_in_the_unit_interval(method):
    weights = fitted(method, evaluation()).membership(evaluation(1))
    assert weights.min() >= 0
    assert weights.max() <= 1
    assert np.isfinite(weights).all()


def test_thresholds_are_those_of_the_rows_it_was_fitted_on(method):
    slicer = fitted(method, evaluation())
    if type(slicer)._thresholds is not BaseSlicer._thresholds:
        pytest.skip("cuts at a boundary of its own")
    np.testing.assert_array_equal(slicer.thresholds_, thresholds(slicer.membership(evaluation().by_id())))


def test_refit_forgets(method):
    once = fitted(method, evaluation(1))
    twice = fitted(method, evaluation(0)).fit(evaluation(1))
    assert state_bytes(once) == state_bytes(twice)
    assert state_bytes(once) != state_bytes(fitted(method, evaluation(0)))


def test_same_seed_same_bytes(method):
    assert state_bytes(fitted(method, evaluation(), 3)) == state_bytes(fitted(method, evaluation(), 3))


def test_fitting_leaves_the_evaluation_alone(method):
    ev = evaluation()
    before = [array.tobytes() for array in (ev.losses, ev.labels, ev.probs, ev.representations["embedding"])]
    fitted(method, ev)
    after = [array.tobytes() for array in (ev.losses, ev.labels, ev.probs, ev.representations["embedding"])]
    assert before == after


def test_save_and_load_gives_the_same_membership(method, tmp_path):
    slicer = fitted(method, evaluation())
    state = slicer.to_state()
    arrays.write(tmp_path / "s.safetensors", state.arrays)
    facts = json.loads(json.dumps(state.facts))
    again = restore(State(state.name, facts, arrays.read(tmp_path / "s.safetensors")))
    np.testing.assert_array_equal(again.membership(evaluation(2)), slicer.membership(evaluation(2)))
    assert again.rules_ == tuple(facts["rules"])


def test_rows_in_another_order_give_the_same_answer(method):
    ev, order = evaluation(), np.random.default_rng(9).permutation(N)
    shuffled = ev.rows(order)
    a, b = fitted(method, ev), fitted(method, shuffled)
    assert state_bytes(a) == state_bytes(b)
    np.testing.assert_allclose(b.membership(shuffled), a.membership(ev)[order], atol=1e-9)
    hard = a.membership(ev) >= a.thresholds_
    np.testing.assert_array_equal((b.membership(shuffled) >= b.thresholds_), hard[order])


def test_says_by_name_what_is_missing(method):
    cls = registry()[method.partition(":")[0]]
    for needed in cls.needs:
        ev = evaluation()
        object.__setattr__(ev, needed, {} if needed in ("representations", "metadata") else None)
        with pytest.raises(MissingInput, match=f"{cls.name}.*{needed}"):
            make(method).fit(ev)


def test_new_rows_with_other_columns_are_refused(method):
    slicer = fitted(method, evaluation())
    if slicer.representation_ is None:
        pytest.skip("reads no representation")
    narrow = Evaluation(representations={slicer.representation_: np.zeros((3, D - 1))})
    with pytest.raises(ValueError, match=f"fitted on {D} columns; got {D - 1}"):
        slicer.membership(narrow)


def test_unlabelled_rows_are_enough_where_nothing_of_the_outcome_is_read(method):
    slicer = fitted(method, evaluation())
    if slicer.reads:
        pytest.skip("reads the outcome; an approximation is applied instead")
    ev = evaluation(4)
    bare = Evaluation(representations=ev.representations, metadata=ev.metadata)
    np.testing.assert_array_equal(slicer.membership(bare), slicer.membership(ev))


@pytest.mark.parametrize("case", ["no errors", "all errors", "constant columns", "two distinct rows"])
def test_degenerate_data_gives_an_answer(method, case):
    ev = evaluation(n=100)
    X = np.array(ev.representations["embedding"])
    labels = ev.labels
    if case == "no errors":
        labels = ev.predictions
    if case == "all errors":
        labels = (ev.predictions + 1) % K
    if case == "constant columns":
        X = np.ones_like(X)
    if case == "two distinct rows":
        X = np.where(np.arange(100)[:, None] < 50, 0.0, 1.0) * np.ones((1, D))
    ev = built(labels, ev.probs, X)
    weights = fitted(method, ev).membership(ev)
    assert np.isfinite(weights).all()
    assert weights.shape[0] == 100


def test_unknown_names_and_types_are_refused():
    with pytest.raises(ValueError, match="unknown method `spotligth`; did you mean `spotlight`"):
        make("spotligth")
    with pytest.raises(ValueError, match="unknown preset"):
        make("spotlight:published")
    with pytest.raises(ValueError, match="unknown option of method `spotlight` `sizes`; did you mean"):
        make("spotlight", options={"sizes": 0.1})
    with pytest.raises(ValueError, match=r"`spotlight\.size` must be a number above 0 and at most 0\.5; got 'big'"):
        make("spotlight", options={"size": "big"})
    with pytest.raises(ValueError, match=r"`gmm\.components` must be an integer of at least 1; got 2\.5"):
        make("gmm", options={"components": 2.5})


def test_outside_packages_join_through_the_entry_point(monkeypatch):
    class Ours(BaseSlicer):
        name = "ours"

    class Entry:
        name = "ours"

        @staticmethod
        def load():
            return Ours

    monkeypatch.setattr("errata.slicers.entry_points", lambda group: [Entry] if group == "errata.slicers" else [])
    assert registry()["ours"] is Ours
    assert set(registry()) == {*SLICERS, "ours"}


class Reader(BaseSlicer):
    name = "reader"
    needs = frozenset({"representations"})

    def __init__(self, representation=None):
        self.representation = representation

    def _fit(self, evaluation, train):
        self.rules_ = ({"kind": "test"},)

    def membership(self, evaluation):
        return np.ones((len(evaluation), 1)) / 2


@pytest.mark.parametrize(
    ("reads", "from_model", "source_reads", "knows"),
    [
        ((), True, (), False),
        (("loss",), False, (), True),
        (("label", "prediction"), False, (), True),
        (("label",), True, (), True),
        (("label",), False, (), False),
        (("prediction",), True, (), False),
        ((), True, ("label",), True),
        ((), False, ("loss",), True),
    ],
)
def test_who_knows_the_outcome(reads, from_model, source_reads, knows):
    from errata.core import Source

    ev = evaluation()
    ev = Evaluation(
        labels=ev.labels,
        probs=ev.probs,
        representations=ev.representations,
        sources={"embedding": Source(from_model, frozenset(source_reads))},
    )
    slicer = build(type("R", (Reader,), {"reads": frozenset(reads)}), "recommended", 0, {}).fit(ev)
    assert knows_outcome(slicer, ev) is knows


@pytest.mark.parametrize(
    ("rule", "knows"),
    [
        ({}, True),  # what the slicer reads
        ({"reads": []}, False),
        ({"reads": ["prediction"]}, False),
        ({"reads": [], "scope": {"prediction": 1}}, False),
        ({"reads": [], "scope": {"label": 1}}, True),  # the representation is the model's own
        ({"reads": [], "scope": {"site": 1}}, False),
        ({"reads": ["loss"]}, True),
    ],
)
def test_a_rule_says_what_its_own_slice_reads(rule, knows):
    ev = evaluation()
    slicer = build(type("R", (Reader,), {"reads": frozenset({"label"})}), "recommended", 0, {}).fit(ev)
    slicer.rules_ = ({"kind": "other"}, {"kind": "reader", **rule})
    assert knows_outcome(slicer, ev, 1) is knows
    assert knows_outcome(slicer, ev, 0)


def test_a_saved_method_without_one_of_its_arrays_is_refused() -> None:
    rng = np.random.default_rng(0)
    rows = Evaluation(losses=rng.random(80), representations={"x": rng.normal(size=(80, 2))})
    saved = Gmm(components=2).fit(rows).to_state()
    assert len(Gmm.from_state(saved).means_) == 2
    lacking = State(saved.name, saved.facts, {name: a for name, a in saved.arrays.items() if name != "means_"})
    with pytest.raises(InputError, match="a saved `gmm` has no array `means_`"):
        Gmm.from_state(lacking)
