"""What tells opponents and helpers of a slice's own label apart: a signal that is there, and no noise."""

import numpy as np
import pytest

import errata
from errata.core import Evaluation, Source
from errata.explain.context import Context
from errata.explain.own_label import OwnLabel
from errata.explain.view import SliceView

SLICE = errata.Slice("s1", "x", "x", "confirmed", 0.5, {}, np.zeros(0))
READS = Source(reads=frozenset({"label"}))
N = 1000  # training rows, all of one label


def explained(E, metadata, **outcome) -> OwnLabel:
    """Of 60 errors whose embeddings are the first axis, beside training rows with some embeddings and columns."""
    m = 60
    test = Evaluation(
        labels=np.zeros(m, int),
        predictions=np.ones(m, int),
        representations={"penultimate": np.zeros((m, 1)), "influence": np.tile(np.eye(1, E.shape[1]), (m, 1))},
        sources={"influence": READS},
    )
    train = Evaluation(
        labels=np.zeros(len(E), int),
        representations={"penultimate": np.zeros((len(E), 1)), "influence": E},
        sources={"influence": READS},
        metadata=metadata,
        **outcome,
    )
    everything = np.ones(m, bool)
    view = SliceView(SLICE, test, everything, ~everything, np.arange(m) < 30)
    own = OwnLabel.explain(view, Context(None, train=train))
    assert own is not None
    return own


@pytest.mark.parametrize("kinds", [(2,), (20,), (400,), (2, 20, 400)])
def test_columns_of_noise_are_told_for_at_most_one_slice_in_twenty(kinds):
    """Intervals of 95% told a column of two values in .09 of such draws, one of twenty in .85, one of 400 in all."""
    rng = np.random.default_rng(len(kinds) + kinds[0])
    told = []
    for _ in range(200):
        noise = {f"of {values}": rng.integers(0, values, N) for values in kinds}
        own = explained(rng.normal(size=(N, 3)), noise)
        told.append(any(row.differs for row in own.shares))
    assert np.mean(told) <= 0.05


def planted(rng) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of training rows, and which have the signal: four in five, and they alone oppose the slice."""
    tagged = rng.random(N) < 0.8
    E = rng.normal(size=(N, 3))
    E[:, 0] = np.where(tagged, -1, 1) * rng.uniform(1, 3, N)
    return E, tagged


def test_a_signal_is_told_before_all_noise_and_right_and_wrong_come_last():
    rng = np.random.default_rng(1)
    E, tagged = planted(rng)
    noise = {f"noise {i}": rng.integers(0, 20, N) for i in range(20)}
    columns = {**noise, "tag": np.where(tagged, "yes", "no")}
    own = explained(E, columns, predictions=np.where(tagged, 0, 1))
    assert [(row.column, row.value) for row in own.shares] == [("tag", "yes"), ("fitted", "right")]
    first = own.shares[0]
    assert (first.opponents, first.helpers) == ((50, 50), (0, 50))
    assert first.differs
    assert first.p_value < 1e-20


def test_a_signal_in_a_number_is_told_as_one_in_a_word_is_and_in_few_digits():
    """Compared by exact value, no number of many digits was ever told."""
    rng = np.random.default_rng(5)
    E, tagged = planted(rng)
    brightness = np.where(tagged, 0.9, 0.1) + rng.normal(size=N) / 20
    own = explained(E, {"brightness": brightness, "tag": np.where(tagged, "yes", "no")})
    assert [row.column for row in own.shares] == ["tag", "brightness"]
    number = own.shares[1]
    assert number.p_value < 1e-10
    assert number.opponents[0] >= 45
    assert number.helpers[0] <= 5
    assert number.value.endswith(" or more")
    assert 0.1 < float(number.value.removesuffix(" or more")) < 0.9
    assert len(number.value) <= len("0.125 or more")


@pytest.mark.parametrize("rounded", [None, 1, 0])
def test_numbers_that_are_noise_are_told_for_at_most_one_slice_in_twenty(rounded):
    rng = np.random.default_rng(6)
    told = []
    for _ in range(200):
        numbers = rng.normal(size=(2, N)) * 5
        if rounded is not None:
            numbers = numbers.round(rounded)
        own = explained(rng.normal(size=(N, 3)), {"a": numbers[0], "b": numbers[1]})
        told.append(any(row.differs for row in own.shares))
    assert np.mean(told) <= 0.05


def test_numbers_in_the_middle_and_missing_ones_are_told_too():
    rng = np.random.default_rng(7)
    E, tagged = planted(rng)
    age = np.where(tagged, rng.uniform(20, 80, N), 50.0)
    assert explained(E, {"age": np.where(tagged, age, np.nan)}).shares[0].value == "missing"
    # half of the rows of each side are above 50, so that no threshold tells them apart
    (years,) = explained(E, {"age": age.round()}).shares
    assert years.value == "50"
    assert years.helpers[0] == 50


def test_values_too_rare_to_be_told_are_left_out_and_cost_the_others_nothing():
    rng = np.random.default_rng(2)
    E, tagged = planted(rng)
    tag = {"tag": np.where(tagged, "yes", "no")}
    alone = explained(E, tag)
    files = {"file": np.array([f"img-{i}" for i in range(N)])}
    beside = explained(E, {**files, **tag})
    assert beside.shares == alone.shares
    assert explained(E, files).shares == ()


def test_where_nothing_differs_the_nearest_column_is_shown_with_its_base_rate():
    rng = np.random.default_rng(3)
    coin = rng.integers(0, 2, N)
    own = explained(rng.normal(size=(N, 3)), {"coin": coin, "day": rng.integers(0, 7, N)})
    (nearest,) = own.shares
    assert not nearest.differs
    assert nearest.label[1] == N
    assert 0 < nearest.label[0] < N


def test_a_value_that_neither_side_has_is_told():
    """Both ends without what three rows in four have: no difference between them, and a large one from the label."""
    rng = np.random.default_rng(4)
    E = rng.normal(size=(N, 3))
    middle = np.abs(E[:, 0]) / np.linalg.norm(E, axis=1) < 0.75
    own = explained(E, {"part": np.where(middle, "middle", rng.choice(["a", "b"], N))})
    shares = {row.value: row for row in own.shares}
    assert shares["middle"].opponents[0] == shares["middle"].helpers[0] == 0
    assert shares["middle"].differs
