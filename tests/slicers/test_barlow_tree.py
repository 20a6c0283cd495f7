"""Barlow's numbers against the paper's tables, brute force and scikit-learn."""

import numpy as np
import pytest
from sklearn.feature_selection import mutual_info_classif
from sklearn.tree import DecisionTreeClassifier

from errata.core.leaves import Leaves, count_leaves
from errata.slicers.barlow.tree import best_splits, grow, leaf_paths, neighbour_information, threshold_information
from hypothesis import given, settings
from hypothesis import strategies as st

# --- the paper's numbers ---------------------------------------------------------------------------------------


def test_the_published_leaf():
    """Syringe, by prediction: the published notebook's counts and table 3's rates."""
    leaves = Leaves(np.array([395, 1406 - 395]), np.array([139, 284 - 139]))
    numbers = leaves.numbers(0)
    assert numbers["base_error_rate"] == pytest.approx(0.2020, abs=5e-5)
    assert numbers["error_rate"] == pytest.approx(0.3519, abs=5e-5)
    assert numbers["error_coverage"] == pytest.approx(0.4894, abs=5e-5)
    assert numbers["importance"] == pytest.approx(0.1722, abs=5e-5)
    assert numbers["aler"] == pytest.approx(0.2455, abs=5e-5)
    assert (numbers["n"], numbers["failures"], numbers["group_n"], numbers["group_failures"]) == (395, 139, 1406, 284)
    assert leaves.valid(0.1, 0.2).tolist() == [0]
    assert leaves.valid(0.15, 0.2).tolist() == []  # .3519 < .2020 + .15
    assert leaves.valid(0.1, 0.489).tolist() == [0]  # of coverage, .4894, not of the error rate
    assert leaves.valid(0.1, 0.49).tolist() == []
    assert leaves.valid(0.0, 0.0).tolist() == [0]  # the other leaf fails less often than the base


TABLES = {  # class: BER, ER, EC, ALER of trees of depth one
    "purse": (0.3085, 0.4179, 0.6409, 0.3433),  # table 2: standard model, by label
    "monastery": (0.3861, 0.6345, 0.3543, 0.4301),
    "maillot": (0.6592, 0.7564, 0.4819, 0.6696),
    "monitor": (0.4731, 0.6061, 0.7431, 0.5247),
    "tiger cat": (0.4969, 0.8754, 0.4458, 0.5946),
    "titi": (0.4131, 0.5240, 0.8138, 0.4664),
    "lotion": (0.3624, 0.4797, 0.6920, 0.4040),
    "pitcher": (0.3438, 0.6253, 0.5526, 0.4444),
    "hog": (0.3315, 0.6842, 0.7842, 0.5615),
    "trench coat": (0.1339, 0.3196, 0.8227, 0.2693),
    "baseball": (0.1069, 0.3034, 0.9712, 0.2948),
    "bakery": (0.2695, 0.3875, 0.7793, 0.3307),  # table 3: standard model, by prediction
    "polaroid camera": (0.1141, 0.2713, 0.8671, 0.2384),
    "saluki": (0.1122, 0.2287, 0.5772, 0.1600),
    "trailer truck": (0.1121, 0.2184, 0.5036, 0.1472),
    "apiary": (0.1057, 0.2341, 0.8041, 0.1969),
    "anemone fish": (0.1056, 0.2573, 0.4247, 0.1516),
    "theater curtain": (0.1049, 0.2482, 0.5072, 0.1583),
    "forklift": (0.1047, 0.2379, 0.8889, 0.2136),
    "french bulldog": (0.1022, 0.2103, 0.3712, 0.1273),
    "syringe": (0.2020, 0.3519, 0.4894, 0.2455),
    "rhodesian ridgeback": (0.2093, 0.3184, 0.4561, 0.2337),
    "tiger cat, robust": (0.7715, 0.8786, 0.9521, 0.8473),  # table 4: robust model, by label
    "lighter": (0.7285, 0.8608, 0.9335, 0.8188),
    "purse, robust": (0.7277, 0.9258, 0.5011, 0.7627),
    "chihuahua": (0.7269, 0.9332, 0.7386, 0.8062),
    "rifle": (0.7223, 0.9558, 0.5985, 0.7846),
    "crayfish": (0.7154, 0.9294, 0.5806, 0.7671),
    "cougar": (0.3438, 0.6074, 0.9172, 0.5620),
    "butternut squash": (0.3438, 0.6034, 0.7830, 0.5017),
    "sea cucumber": (0.3438, 0.6042, 0.7718, 0.4983),
    "zucchini": (0.3431, 0.6445, 0.8049, 0.5416),
    "table lamp": (0.3423, 0.7251, 0.7528, 0.5783),
    "paper towel": (0.6310, 0.7825, 0.6566, 0.6720),  # table 5: robust model, by prediction
    "seat belt": (0.5983, 0.7402, 0.5816, 0.6282),
    "crutch": (0.5842, 0.7302, 0.7233, 0.6343),
    "lumbermill": (0.5625, 0.7049, 0.4362, 0.5817),
    "bassoon": (0.5621, 0.7490, 0.6474, 0.6208),
    "impala": (0.3535, 0.6298, 0.5917, 0.4609),
    "boxer": (0.3527, 0.4991, 0.7671, 0.4246),
    "samoyed": (0.3487, 0.5304, 0.6247, 0.4147),
    "milk can": (0.3530, 0.6284, 0.6300, 0.4707),
    "gasmask": (0.3521, 0.6216, 0.5736, 0.4514),
    "king crab": (0.3487, 0.5991, 0.5770, 0.4396),
}
ROUNDED = 2e-4  # four figures each, of three rates


def aler_of(base: float, rate: float, coverage: float) -> float:
    """Of the tree of depth one whose better-known leaf has these rates: the other leaf has what is left."""
    rows = 1e8
    failures = np.array([coverage, 1 - coverage]) * base * rows
    first = failures[0] / rate
    return Leaves(np.array([first, rows - first]), failures).aler


@pytest.mark.parametrize("name", [name for name in TABLES if name != "apiary"])
def test_aler_of_the_papers_tables(name):
    *rates, printed = TABLES[name]
    assert aler_of(*rates) == pytest.approx(printed, abs=ROUNDED)


def test_the_one_row_of_the_tables_that_is_misprinted():
    assert len(TABLES) == 44
    base, rate, coverage, printed = TABLES["apiary"]
    assert abs(aler_of(base, rate, coverage) - printed) > 10 * ROUNDED
    assert aler_of(base, 0.2371, coverage) == pytest.approx(printed, abs=ROUNDED)  # figure 36


counts = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=8)


@given(counts)
def test_propositions(pairs):
    """Coverages sum to one; some leaf fails at least as often as ALER says, and ALER is no lower than the base."""
    failures, others = np.array(pairs).T
    leaves = Leaves(failures + others, failures)
    if failures.sum() == 0:
        assert np.isnan(leaves.coverages).all()
        assert leaves.aler == 0 or leaves.sizes.sum() == 0
        return
    assert leaves.coverages.sum() == pytest.approx(1)
    assert np.nanmax(leaves.error_rates) >= leaves.aler - 1e-12
    assert leaves.aler >= leaves.base_error_rate - 1e-12
    assert leaves.aler == pytest.approx(leaves.importances.sum())


def test_a_leaf_without_rows_has_no_rate():
    leaves = count_leaves(np.array([0, 0, 2]), np.array([True, False, False]), 4)
    assert leaves.sizes.tolist() == [2, 0, 1, 0]
    np.testing.assert_array_equal(leaves.error_rates, [0.5, np.nan, 0, np.nan])
    assert leaves.aler == 0.5
    assert leaves.valid(0, 0).tolist() == [0]
    nothing = Leaves(np.zeros(2), np.zeros(2))
    assert np.isnan(nothing.base_error_rate)
    assert np.isnan(nothing.aler)


# --- information -----------------------------------------------------------------------------------------------


def entropy(masses: list[float]) -> float:
    shares = np.array([mass for mass in masses if mass > 0]) / sum(masses)
    return float(-(shares * np.log(shares)).sum())


def brute_force(x, failed, weight, least) -> float:
    """The best of all thresholds, each looked at on its own."""
    best = 0.0
    for cut in np.unique(x)[:-1]:
        sides = [x <= cut, x > cut]
        if min(side.sum() for side in sides) < least:
            continue
        masses = [[weight * failed[side].sum(), (~failed[side]).sum()] for side in sides]
        whole = np.sum(masses, axis=0).tolist()
        after = sum(sum(one) * entropy(one) for one in masses) / sum(whole)
        best = max(best, entropy(whole) - after)
    return best


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 40),
    st.sampled_from([1.0, 3.5]),
    st.sampled_from([1, 4]),
    st.sampled_from([np.float16, np.float32, np.float64]),
)
def test_threshold_information_is_the_best_of_all_thresholds(seed, n, weight, least, dtype):
    rng = np.random.default_rng(seed)
    zeros = np.copysign(rng.integers(0, 2, n), rng.normal(size=n))  # some of them negative, which are equal to the rest
    X = np.stack([rng.normal(size=n), rng.integers(0, 4, n), np.ones(n), zeros], axis=1).astype(dtype)
    failed = rng.random(n) < rng.random()
    gains, cuts = best_splits(X, failed, weight, least)
    want = [brute_force(x, failed, weight, least) for x in X.T]
    np.testing.assert_allclose(gains, want, atol=1e-12)
    for x, cut, gain in zip(X.T, cuts, gains, strict=True):
        if gain > 1e-9:  # the cut is one that gives this much
            left = x <= cut
            assert brute_force(left.astype(float), failed, weight, least) == pytest.approx(gain)


def test_many_columns_are_read_in_several_blocks(monkeypatch):
    monkeypatch.setattr("errata.slicers.barlow.tree.CELLS", 450)  # seven columns of sixty rows
    rng = np.random.default_rng(0)
    X, failed = rng.normal(size=(60, 150)), rng.random(60) < 0.4
    alone = [threshold_information(X[:, [j]], failed)[0] for j in range(150)]
    np.testing.assert_array_equal(threshold_information(X, failed), alone)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_cut_lies_between_neighbouring_numbers_of_any_precision(dtype):
    """The middle of two neighbouring numbers rounds to one of them; rounding up would send both to the left."""
    low = dtype(1.0)
    for _ in range(4):
        high = np.nextafter(low, dtype(2))
        X = np.array([[low], [high]], dtype=dtype)
        _, cuts = best_splits(X, np.array([True, False]))
        assert cuts.dtype == dtype
        assert (X[:, 0] <= cuts[0]).tolist() == [True, False]
        tree = grow(X, np.array([True, False]), np.arange(1), 1)
        assert tree.leaf_of(X, np.arange(2)).tolist() == [0, 1]
        low = high


def test_the_published_information_is_scikit_learns():
    rng = np.random.default_rng(0)
    X, failed = rng.normal(size=(200, 6)), rng.random(200) < 0.3
    X[failed, 2] += 2
    ours = neighbour_information(X, failed, 5)
    np.testing.assert_array_equal(ours, mutual_info_classif(X, failed, n_neighbors=3, random_state=5))
    assert ours.argmax() == 2


# --- trees -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1.0, 4.0])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_trees_are_scikit_learns(weight, depth):
    for seed in range(5):  # with so many rows that no two splits tie, which scikit-learn would decide by lot
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(4000, 8)).astype(np.float32)  # scikit-learn rounds to this
        failed = rng.random(4000) < np.where(X[:, 0] > 0.3, 0.6, 0.15) * np.where(X[:, 1] < 0, 1, 0.4)
        tree = grow(X, failed, np.arange(8), depth, weight, least=50)
        peer = DecisionTreeClassifier(
            criterion="entropy", max_depth=depth, class_weight={False: 1, True: weight}, min_samples_leaf=50,
            random_state=0,
        ).fit(X, failed)  # fmt: skip
        inner = tree.features >= 0
        np.testing.assert_array_equal(inner, peer.tree_.feature >= 0)
        np.testing.assert_array_equal(tree.features[inner], peer.tree_.feature[inner])
        np.testing.assert_allclose(tree.cuts[inner], peer.tree_.threshold[inner], rtol=1e-6)
        leaf = tree.leaf_of(X, np.arange(4000))
        np.testing.assert_array_equal(tree.leaves[leaf], peer.apply(X))


def test_a_path_says_which_rows_are_in_its_leaf():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    failed = rng.random(2000) < np.where((X[:, 0] > -1) & (X[:, 0] < 1) & (X[:, 1] < 0), 0.9, 0.1)
    tree = grow(X, failed, np.arange(2), 3)
    leaf = tree.leaf_of(X, np.arange(2000))
    assert len(tree.leaves) >= 5
    for number, path in enumerate(leaf_paths(tree.nodes())):
        inside = np.ones(2000, dtype=bool)
        for condition in path:
            x = X[:, condition["feature"]]
            inside &= x <= condition["value"] if condition["op"] == "<=" else x > condition["value"]
        np.testing.assert_array_equal(inside, leaf == number)


def test_of_two_cuts_on_one_side_a_path_keeps_the_tighter():
    X = np.arange(12.0)[:, None]
    failed = np.array([1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0], dtype=bool)
    tree = grow(X, failed, np.arange(1), 2)
    paths = leaf_paths(tree.nodes())
    assert paths[0] == [{"feature": 0, "op": "<=", "value": 3.5}]
    assert paths[1] == [{"feature": 0, "op": ">", "value": 3.5}, {"feature": 0, "op": "<=", "value": 6.5}]
    assert paths[2] == [{"feature": 0, "op": ">", "value": 6.5}]  # and not > 3.5 as well


def test_a_split_that_tells_nothing_is_not_made():
    X = np.array([0.0, 0, 1, 1])[:, None]
    assert len(grow(X, np.array([True, False, True, False]), np.arange(1), 3).features) == 1
    assert len(grow(X, np.array([True, True, False, False]), np.arange(1), 3).features) == 3  # and none below
