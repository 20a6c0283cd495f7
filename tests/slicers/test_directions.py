"""`directions`: the solver against scikit-learn and by hand, and the method against planted directions."""

import json

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from errata.core import Evaluation, InputError, MissingInput, Source, State
from errata.core import tensor_files as arrays
from errata.slicers.contract import build, knows_outcome
from errata.slicers.directions.linear_svm import LARGE, solve
from errata.slicers.directions.slicer import Directions, _strength
from errata.slicers.directions.strength import (
    choose,
    nested_strength,
    ordered_halves,
    outcomes,
    quarters,
    shuffled_halves,
)
from errata.slicers.options import merge

GRID = np.geomspace(1e-6, 1, 7)
QUICK = {"permutations": 0}


def unit_rows(n: int, d: int, seed: int, share: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Rows of length 1, and an outcome that leans on the first column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    lean = X[:, 0] + rng.normal(size=n)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(lean > np.quantile(lean, share), 1, -1)


def gram(X: np.ndarray) -> np.ndarray:
    return (X @ X.T)[None]


def reference(C: float) -> SVC:
    return SVC(kernel="linear", class_weight="balanced", C=C)


def planted(
    seed: int = 0, n: int = 1200, d: int = 20, classes: int = 3, shuffled: bool = False, rate: float = 0.2
) -> Evaluation:
    """Errors of class 0 lie along the first column; those of the other classes anywhere."""
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, d)), rng.integers(0, classes, n)
    wrong = rng.random(n) < np.where(labels == 0, np.where(X[:, 0] > 0.8, 0.8, 0.05), rate)
    if shuffled:
        wrong[labels == 0] = rng.permutation(wrong[labels == 0])
    return of(X, labels, wrong)


def of(X: np.ndarray, labels: np.ndarray, wrong: np.ndarray, **more) -> Evaluation:
    predictions = np.where(wrong, labels + 1, labels)
    return Evaluation(labels=labels, predictions=predictions, representations={"e": X}, **more)


# --- the solver ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(40, 60), (120, 10), (LARGE + 50, 30)])
@pytest.mark.parametrize("C", [1.0, 3.0, 10.0])
def test_agrees_with_scikit_learn_where_one_intercept_is_optimal(n, d, C):
    X, y = unit_rows(n, d, seed=n)
    new, _ = unit_rows(1000, d, seed=99)
    fits = solve(gram(X), y[None, None], np.full((1, 1, 1), C))
    model = reference(C).fit(X, y)
    bounds = np.where(y > 0, 1 / (y > 0).sum(), 1 / (y < 0).sum())[model.support_] * C * n / 2
    assert (np.abs(model.dual_coef_[0]) < 0.999 * bounds).any()  # a row off its bound fixes the intercept
    values = new @ (fits.coefficients[0, 0, 0] @ X) + fits.intercepts[0, 0, 0]
    np.testing.assert_allclose(values, model.decision_function(new), atol=4e-3 * np.abs(values).max())
    assert np.mean((values < 0) == (model.decision_function(new) < 0)) > 0.99
    np.testing.assert_allclose(fits.values[0, 0, 0], model.decision_function(X), atol=4e-3 * np.abs(values).max())


def test_many_problems_at_once_are_each_solved():
    """Classes of several sizes, padded, with folds and several C, against one at a time."""
    sizes, d = (17, 40, 23), 30
    rows = [unit_rows(n, d, seed=n) for n in sizes]
    K, y = np.zeros((3, 40, 40)), np.zeros((3, 2, 40), dtype=int)
    for c, (X, outcome) in enumerate(rows):
        K[c, : len(X), : len(X)] = X @ X.T
        y[c, :, : len(X)] = outcome
    y[:, 1, ::3] = 0  # the second problem leaves rows out
    fits = solve(K, y, np.broadcast_to([3.0, 10.0], (3, 2, 2)))
    assert (fits.coefficients[:, 1, :, ::3] == 0).all()
    for c, (X, _) in enumerate(rows):
        for q in range(2):
            inside = y[c, q, : len(X)] != 0
            for r, C in enumerate((3.0, 10.0)):
                values = reference(C).fit(X[inside], y[c, q, : len(X)][inside]).decision_function(X)
                np.testing.assert_allclose(fits.values[c, q, r, : len(X)], values, atol=5e-3 * np.abs(values).max())


def test_a_fold_is_solved_on_its_own_rows():
    X, y = unit_rows(40, 30, seed=7)
    halves = np.stack([np.where(np.arange(40) % 2 == k, y, 0) for k in (0, 1)])[None]
    fits = solve(gram(X), halves, np.full((1, 2, 1), 5.0))
    for k in (0, 1):
        inside = halves[0, k] != 0
        values = reference(5.0).fit(X[inside], y[inside]).decision_function(X)
        np.testing.assert_allclose(fits.values[0, k, 0], values, atol=5e-3 * np.abs(values).max())


def test_small_C_by_hand():
    """Everything at its bound: w = C n / 2 (mean of correct - mean of errors), the boundary half way between the
    outcomes' mean values without each row's own part."""
    X = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]])
    C = 1e-4
    fits = solve(gram(X), np.array([[[1, 1, -1]]]), np.full((1, 1, 1), C))
    np.testing.assert_allclose(fits.coefficients[0, 0, 0], [0.75 * C, 0.75 * C, -1.5 * C])
    np.testing.assert_allclose(fits.coefficients[0, 0, 0] @ X, [1.2 * C, 2.1 * C])
    # Values 1.2, 2.4, -2.1; without their own .75, .75, -1.5 they are .45, 1.65 and -.6: half way is .225.
    np.testing.assert_allclose(fits.intercepts[0, 0, 0], -0.225 * C)
    np.testing.assert_allclose(fits.values[0, 0, 0], np.array([0.975, 2.175, -2.325]) * C)


def test_the_intercept_is_one_of_the_optimal_ones():
    """Half way may lie outside of what the hinge loss allows; then the nearest that it does allow."""
    for seed in range(20):
        X, y = unit_rows(12, 3, seed, share=0.2)
        for C in (0.3, 0.6, 1.0):
            fits = solve(gram(X), y[None, None], np.full((1, 1, 1), C))
            raw = fits.values[0, 0, 0] - fits.intercepts[0, 0, 0]

            def hinge(b, raw=raw, y=y):
                return (np.maximum(0, 1 - y * (raw + b)) / np.where(y > 0, (y > 0).sum(), (y < 0).sum())).sum()

            best = min(hinge(b) for b in y - raw)  # piecewise linear: a kink is optimal
            assert hinge(fits.intercepts[0, 0, 0]) < best + 1e-3


def test_tiny_C_gives_a_decision_where_the_reference_gives_a_constant():
    new, _ = unit_rows(2000, 200, seed=1)
    ours, theirs = [], []
    for seed in range(10):
        X, y = unit_rows(50, 200, seed=10 + seed)
        fits = solve(gram(X), y[None, None], np.full((1, 1, 1), 1e-6))
        hard = new @ (fits.coefficients[0, 0, 0] @ X) + fits.intercepts[0, 0, 0] < 0
        ours.append(hard.mean())
        theirs.append((reference(1e-6).fit(X, y).predict(new) < 0).mean())
    assert 0.3 < np.mean(ours) < 0.7
    assert min(ours) > 0.1
    assert np.mean(np.isin(theirs, (0, 1))) > 0.5


def test_libsvm_is_libsvm_whatever_C():
    X, y = unit_rows(50, 100, seed=3)
    new, _ = unit_rows(500, 100, seed=4)
    fits = solve(gram(X), y[None, None], GRID[None, None], "libsvm")
    for r, C in enumerate(GRID):
        values = new @ (fits.coefficients[0, 0, r] @ X) + fits.intercepts[0, 0, r]
        np.testing.assert_allclose(values, reference(C).fit(X, y).decision_function(new), atol=1e-6)


def test_equal_rows_and_missing_outcomes_have_an_answer():
    K = np.ones((1, 6, 6))
    y = np.array([[[1, -1, 1, -1, 1, -1], [1, 1, 0, 1, 1, 1], [-1, -1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]])
    fits = solve(K, y, np.full((1, 4, 1), 5.0))
    assert np.isfinite(fits.values).all()
    np.testing.assert_array_equal(np.sign(fits.values[0, 1:, 0, 0]), [1, -1, 0])


# --- folds and strength ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_halves_in_order_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    y = (rng.random(11 + seed) < 0.4).astype(int)
    (_, second) = next(iter(list(StratifiedKFold(2).split(y, y))[1:]))
    padded = np.concatenate([y, [-1, -1]])[None]
    np.testing.assert_array_equal(np.flatnonzero(ordered_halves(padded)[0][: len(y)]), second)


def test_choice_of_C_is_that_of_scikit_learn():
    X, y = unit_rows(60, 12, seed=5)
    scores = [cross_val_score(reference(C), X, y, cv=2, scoring="balanced_accuracy").mean() for C in GRID]
    half = ordered_halves(np.where(y < 0, 0, 1)[None])
    C, score = choose(gram(X), y[None, None], half, GRID, "libsvm")
    assert score[0, 0] == pytest.approx(max(scores))
    assert C[0, 0] == GRID[int(np.argmax(scores))]


def test_the_smallest_of_equally_good_C_is_chosen():
    """At small C all directions are one: the difference of means."""
    X, y = unit_rows(40, 50, seed=6)
    half = ordered_halves(np.where(y < 0, 0, 1)[None])
    C, _ = choose(gram(X), y[None, None], half, np.geomspace(1e-6, 1e-3, 4), "centre")
    assert C[0, 0] == 1e-6


def test_nested_strength_is_that_of_scikit_learn_in_each_fold():
    X, y = unit_rows(80, 10, seed=8)
    rng, grid = np.random.default_rng(0), np.geomspace(0.01, 10, 4)
    noise = rng.random((1, 80))
    quarter = quarters(np.where(y < 0, 0, 1)[None], lambda s: shuffled_halves(s, noise))
    scores, chosen = [], []
    for outer in (0, 1):
        fitted, held = quarter[0] // 2 != outer, quarter[0] // 2 == outer
        folds = [
            (np.flatnonzero(quarter[0][fitted] % 2 != k), np.flatnonzero(quarter[0][fitted] % 2 == k)) for k in (0, 1)
        ]
        inner = [
            cross_val_score(reference(C), X[fitted], y[fitted], cv=folds, scoring="balanced_accuracy").mean()
            for C in grid
        ]
        chosen.append(int(np.argmax(inner)))
        told = reference(grid[chosen[-1]]).fit(X[fitted], y[fitted]).predict(X[held])
        scores.append(balanced_accuracy_score(y[held], told))
    assert max(chosen) > 0  # some choice was made
    assert nested_strength(gram(X), y[None, None], quarter, grid, "libsvm")[0, 0] == pytest.approx(np.mean(scores))


def test_strength_and_its_null_by_hand():
    y = np.array([-1] * 4 + [1] * 4 + [0])
    told = _strength(0.75, np.array([0.5, 0.25, 0.75, np.nan, 0.5]), y)
    assert told["strength"] == 0.75
    # As fair coins: .5 sqrt(.25 / 4 + .25 / 4) = .177, and the shuffles' own spread is .177 as well.
    assert told["null"] == pytest.approx(
        {"mean": 0.5, "spread": 0.125**0.5 / 2, "z": 2**0.5, "p_value": 2 / 5, "shuffles": 4}
    )
    wide = _strength(0.75, np.array([0.5, 0.0, 1.0]), y)["null"]
    assert wide["spread"] == pytest.approx((1 / 6) ** 0.5)
    narrow = _strength(0.75, np.array([0.5, 0.5]), y)["null"]
    assert narrow["spread"] == pytest.approx(0.125**0.5 / 2)
    assert _strength(0.75, np.array([]), y) == {"strength": 0.75, "null": None}


def test_quarters_hold_equal_shares_and_keep_groups_together():
    rng = np.random.default_rng(0)
    strata = np.where(rng.random((1, 100)) < 0.2, 0, 1)
    noise = rng.random((1, 100))
    quarter = quarters(strata, lambda s: shuffled_halves(s, noise))
    for stratum in (0, 1):
        counts = np.bincount(quarter[strata == stratum], minlength=4)
        assert counts.max() - counts.min() <= 2
    pairs = np.repeat(rng.random(50), 2)[None]  # rows 2 i and 2 i + 1 belong together
    both = quarters(np.repeat(strata[:, :50], 2, axis=1), lambda s: shuffled_halves(s, pairs))
    np.testing.assert_array_equal(both[0, ::2], both[0, 1::2])
    assert len(np.unique(both)) == 4


def test_rows_that_belong_together_do_not_flatter_the_strength():
    """Each row six times: split apart, a row held back is known by heart."""
    rng = np.random.default_rng(0)
    X, wrong = np.repeat(rng.normal(size=(60, 200)), 6, axis=0), np.repeat(rng.random(60) < 0.4, 6)
    labels, groups = np.zeros(360, dtype=int), np.repeat(np.arange(60), 6)
    apart = Directions(**QUICK).fit(of(X, labels, wrong)).rules_[0]["strength"]
    together = Directions(**QUICK).fit(of(X, labels, wrong, groups=groups)).rules_[0]["strength"]
    assert apart > 0.9
    assert together < 0.7


def test_strength_is_honest_where_nothing_is_to_be_found():
    """Nested folds are near .5; the best of many C on the folds that chose it is not."""
    rng = np.random.default_rng(1)
    n, classes = 1600, 40
    ev = of(rng.normal(size=(n, 10)), np.arange(n) % classes, rng.random(n) < 0.3)
    spread = {"C_min": 0.1, "C_max": 10.0, "C_values": 7}
    nested = Directions(permutations=2, slices=None, advanced=spread).fit(ev)
    assert np.mean([rule["strength"] for rule in nested.rules_]) == pytest.approx(0.5, abs=0.02)
    assert np.mean([rule["null"]["mean"] for rule in nested.rules_]) == pytest.approx(0.5, abs=0.02)
    chosen = Directions(permutations=0, slices=None, advanced={**spread, "nested": False}).fit(ev)
    assert np.mean([rule["strength"] for rule in chosen.rules_]) > 0.53


def test_p_values_are_those_of_chance_where_there_is_nothing():
    rng = np.random.default_rng(2)
    ev = of(rng.normal(size=(4000, 30)), np.arange(4000) % 100, rng.random(4000) < 0.25)
    rules = Directions(permutations=9, slices=None).fit(ev).rules_
    p = np.array([rule["null"]["p_value"] for rule in rules])
    assert p.min() == pytest.approx(0.1)  # 1 / (9 + 1): as small as nine shuffles allow
    assert np.mean(p <= 0.1) < 0.2
    assert 0.4 < p.mean() < 0.65


# --- the method ------------------------------------------------------------------------------------------------


def test_a_planted_direction_is_found_on_other_rows():
    slicer = Directions().fit(planted(0))
    rule = slicer.rules_[0]
    assert rule["scope"] == {"label": 0}
    assert rule["strength"] > 0.75
    assert rule["null"]["z"] > 4
    assert rule["null"]["p_value"] == pytest.approx(1 / 21)
    assert slicer.directions_[0, 0] < -0.8  # hard is where the first column is large
    new = planted(1)
    hard = slicer.membership(new)[:, 0] >= slicer.thresholds_[0]
    own = new.labels == 0
    assert not hard[~own].any()
    assert new.errors[hard].mean() > 3 * new.errors[own & ~hard].mean()
    failing = new.representations["e"][:, 0] > 0.8
    assert hard[own & failing].mean() > 0.8
    assert hard[own & ~failing].mean() < 0.3


def test_nothing_is_found_among_shuffled_outcomes():
    rules = Directions(slices=None).fit(planted(0, shuffled=True)).rules_
    (rule,) = (rule for rule in rules if rule["scope"] == {"label": 0})
    assert abs(rule["strength"] - 0.5) < 0.12
    assert abs(rule["null"]["z"]) < 2.5


def test_positive_is_easy_and_negative_is_hard():
    slicer, new = Directions(slices=None, **QUICK).fit(planted(0)), planted(1)
    decisions, weights = slicer.decisions(new), slicer.membership(new)
    column = [rule["scope"]["label"] for rule in slicer.rules_].index(0)
    own = new.labels == 0
    assert decisions[own & new.errors, column].mean() < decisions[own & ~new.errors, column].mean()
    np.testing.assert_array_equal(weights[own, column] >= slicer.thresholds_[column], decisions[own, column] <= 0)
    order = np.argsort(decisions[own, column])
    assert (np.diff(weights[own, column][order]) <= 0).all()
    assert len(np.unique(weights[own, column])) == own.sum()  # the ends of a direction are told apart
    assert (weights[~own, column] == 0).all()


def test_the_surest_direction_comes_first_and_so_many_are_kept():
    ev = planted(0)
    full = Directions(slices=None, permutations=5).fit(ev)
    z = [rule["null"]["z"] for rule in full.rules_]
    assert z == sorted(z, reverse=True)
    assert len(z) == 3
    few = Directions(slices=1, permutations=5).fit(ev)
    assert few.rules_ == full.rules_[:1]
    np.testing.assert_array_equal(few.directions_, full.directions_[:1])


def test_columns_are_standardised_by_the_training_rows():
    ev, rng = planted(0), np.random.default_rng(5)
    d = ev.representations["e"].shape[1]
    shift, stretch = rng.normal(size=d) * 5, np.exp(rng.normal(size=d))
    train = Evaluation(losses=np.zeros(500), representations={"e": rng.normal(size=(500, d)) * stretch + shift})
    slicer = Directions(**QUICK).fit(ev, train=train)
    T = train.representations["e"]
    np.testing.assert_allclose(slicer.centre_, T.mean(axis=0))
    np.testing.assert_allclose(slicer.scale_, T.std(axis=0))
    standard = (ev.representations["e"] - T.mean(axis=0)) / T.std(axis=0)
    standard /= np.linalg.norm(standard, axis=1, keepdims=True)
    own, rule = ev.labels == slicer.classes_[0], slicer.rules_[0]
    y = np.where(ev.errors[own], -1, 1)
    fits = solve(gram(standard[own]), y[None, None], np.full((1, 1, 1), rule["C"]))
    normal = fits.coefficients[0, 0, 0] @ standard[own]
    np.testing.assert_allclose(slicer.directions_[0], normal / np.linalg.norm(normal), atol=2e-3)
    np.testing.assert_allclose(slicer.decisions(ev)[own, 0], fits.values[0, 0, 0] / np.linalg.norm(normal), atol=5e-3)


def test_a_column_that_never_varies_in_training_says_nothing():
    ev = planted(0)
    X = np.array(ev.representations["e"])
    train = X.copy()
    train[:, 3] = 7.0
    slicer = Directions(**QUICK).fit(
        of(X, ev.labels, ev.errors), train=Evaluation(losses=np.zeros(len(X)), representations={"e": train})
    )
    assert (slicer.directions_[:, 3] == 0).all()
    assert np.isfinite(slicer.membership(ev)).all()


def test_twice_standardises_what_already_is():
    ev = planted(0)
    slicer = Directions(advanced={"twice": True}, **QUICK).fit(ev)
    once = Directions(**QUICK).fit(ev)._standard(ev.representations["e"])
    np.testing.assert_allclose(slicer._standard(ev.representations["e"]), once_more(once, slicer), atol=1e-12)


def test_without_standardising_a_direction_lies_in_the_space_itself():
    """Columns of several spreads around a far middle: only the rows are scaled, whatever the training rows are."""
    ev, rng = planted(0), np.random.default_rng(5)
    d = ev.representations["e"].shape[1]
    X = ev.representations["e"] * np.exp(rng.normal(size=d)) + 2
    own = of(X, ev.labels, ev.errors)
    train = Evaluation(losses=np.zeros(500), representations={"e": rng.normal(size=(500, d))})
    slicer = Directions(standardise=False, **QUICK).fit(own, train=train)
    np.testing.assert_array_equal(slicer.centre_, np.zeros(d))
    np.testing.assert_array_equal(slicer.scale_, np.ones(d))
    rows, rule = X / np.linalg.norm(X, axis=1, keepdims=True), slicer.rules_[0]
    mine = own.labels == rule["scope"]["label"]
    y = np.where(own.errors[mine], -1, 1)
    fits = solve(gram(rows[mine]), y[None, None], np.full((1, 1, 1), rule["C"]))
    normal = fits.coefficients[0, 0, 0] @ rows[mine]
    np.testing.assert_allclose(slicer.directions_[0], normal / np.linalg.norm(normal), atol=2e-3)
    np.testing.assert_allclose(slicer.decisions(own)[mine, 0], fits.values[0, 0, 0] / np.linalg.norm(normal), atol=5e-3)
    again = Directions.from_state(slicer.to_state())
    assert again.standardise is False
    np.testing.assert_array_equal(again.membership(own), slicer.membership(own))


def test_what_is_not_standardised_cannot_be_so_twice():
    with pytest.raises(InputError, match=r"`directions\.advanced\.twice` must be false where `standardise` is"):
        Directions(standardise=False, advanced={"twice": True}).fit(planted(0, n=60))


def once_more(Z: np.ndarray, slicer: Directions) -> np.ndarray:
    again = (Z - slicer.centre_) / slicer.scale_
    return again / np.linalg.norm(again, axis=1, keepdims=True)


def two_failures(seed: int) -> tuple[Evaluation, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, mode = rng.normal(size=(1500, 30)), rng.integers(0, 6, 1500)
    X[mode == 0, 0] += 4
    X[mode == 1, 1] += 4
    wrong = rng.random(1500) < np.where(mode < 2, 0.8, 0.05)
    return of(X, np.zeros(1500, dtype=int), wrong), mode


def test_two_ways_to_fail_are_two_directions():
    (ev, _), (new, mode) = two_failures(0), two_failures(1)
    slicer = Directions(per_class=2, permutations=5).fit(ev)
    hard = slicer.membership(new) >= slicer.thresholds_
    shares = np.array([hard[mode == m].mean(axis=0) for m in (0, 1)])
    assert sorted(map(tuple, shares.round())) == [(0, 1), (1, 0)]
    assert all(rule["strength"] > rule["null"]["mean"] + 0.1 for rule in slicer.rules_)
    assert {rule["group"] for rule in slicer.rules_} == {0, 1}
    one = Directions(per_class=1, permutations=0).fit(ev).membership(new)[:, 0] >= 0.5
    assert min(one[mode == 0].mean(), one[mode == 1].mean()) > 0.7  # a single direction mixes them


@pytest.mark.parametrize("sizes", [(20, 30, 25), (30, 20, 25), (25, 30, 20), (20, 25, 30)])
def test_groups_of_errors_are_where_they_lie_and_the_largest_is_first(sizes):
    of_row = np.repeat([0, 1, 2, 3], [*sizes, 40])  # three groups of errors and the correct rows
    X = (
        np.random.default_rng(3).normal(size=(115, 8)) * 0.1
        + 3 * np.eye(4, 8)[of_row] * np.array([3, 2, 1, 0])[of_row, None]
    )
    y = outcomes(gram(X), np.where(of_row < 3, -1, 1)[None], 3, 10)
    want = [np.where(of_row == 3, 1, np.where(of_row == g, -1, 0)) for g in np.argsort(sizes)[::-1]]
    np.testing.assert_array_equal(y[0], want)


def test_few_errors_are_not_split():
    rng = np.random.default_rng(0)
    X, wrong = rng.normal(size=(80, 5)), np.arange(80) < 12
    y = outcomes(gram(X), np.where(wrong, -1, 1)[None], 3, 10)
    assert y.shape == (1, 3, 80)
    np.testing.assert_array_equal(y[0, 0], np.where(wrong, -1, 1))
    assert (y[0, 1:] == 0).all()
    rules = Directions(per_class=3, permutations=2).fit(of(X, np.zeros(80, dtype=int), wrong)).rules_
    assert len(rules) == 1


@pytest.mark.parametrize("preset", ["recommended", "as_published"])
def test_every_class_gets_an_answer(preset):
    """No error, all errors, one error, one correct row, a single row, two rows, two errors: an answer each."""
    cases = {0: (20, 0), 1: (20, 20), 2: (20, 1), 3: (20, 19), 4: (1, 1), 5: (2, 1), 6: (20, 2), 7: (40, 12)}
    labels = np.concatenate([np.full(n, c) for c, (n, _) in cases.items()])
    wrong = np.concatenate([np.arange(n) < e for n, e in cases.values()])
    X = np.random.default_rng(0).normal(size=(len(labels), 8))
    slicer = build(Directions, preset, 0, {"slices": None}).fit(of(X, labels, wrong))
    rules = {rule["scope"]["label"]: rule for rule in slicer.rules_}
    assert set(rules) == {2, 3, 5, 6, 7}
    for c in (2, 3, 5):
        assert rules[c]["strength"] is None
        assert rules[c]["null"] is None
    assert rules[2]["note"] == "errors: 1, correct rows: 19; no two halves hold both, so the strength is unknown"
    assert rules[3]["note"].startswith("errors: 19, correct rows: 1;")
    assert rules[6]["strength"] is not None
    assert "note" not in rules[7]
    assert json.dumps(slicer.rules_, allow_nan=False)
    assert slicer.rules_[-1]["strength"] is None  # what is unknown comes last
    assert np.isfinite(slicer.membership(of(X, labels, wrong))).all()


def test_rows_that_are_all_alike_have_no_direction():
    wrong = np.arange(30) % 3 == 0
    slicer = Directions(**QUICK).fit(of(np.ones((30, 4)), np.zeros(30, dtype=int), wrong))
    assert slicer.rules_ == ()
    assert slicer.membership(of(np.ones((30, 4)), np.zeros(30, dtype=int), wrong)).shape == (30, 0)


def test_large_classes_are_sampled_and_errors_kept():
    ev = planted(0, n=3000, classes=1)
    rules = Directions(advanced={"max_rows": 400}, **QUICK).fit(ev).rules_
    assert rules[0]["rows"] == 400
    assert rules[0]["errors"] == 200
    assert rules[0]["strength"] > 0.7
    everything = Directions(advanced={"max_rows": None}, **QUICK).fit(ev).rules_[0]
    assert (everything["rows"], everything["errors"]) == (3000, int(ev.errors.sum()))


def test_classes_by_prediction_need_no_label_of_new_rows():
    ev = planted(0)
    slicer = Directions(scope="prediction", **QUICK).fit(ev)
    assert slicer.reads == {"prediction"}
    assert all(set(rule["scope"]) == {"prediction"} for rule in slicer.rules_)
    bare = Evaluation(predictions=ev.predictions, representations=ev.representations)
    np.testing.assert_array_equal(slicer.membership(bare), slicer.membership(ev))
    with pytest.raises(MissingInput, match="scope=label needs `labels`"):
        Directions(**QUICK).fit(ev).membership(bare)


def test_who_knows_the_outcome():
    ev = planted(0)
    foreign = Evaluation(
        labels=ev.labels, predictions=ev.predictions, representations=ev.representations,
        sources={"e": Source(from_model=False)},
    )  # fmt: skip
    assert not knows_outcome(Directions(**QUICK).fit(foreign), foreign)
    assert knows_outcome(Directions(**QUICK).fit(ev), ev)


def test_multi_label_tasks_are_fitted_one_at_a_time():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    labels = (rng.random((600, 2)) < 0.5).astype(int)
    wrong = np.stack([X[:, 0] > 1, X[:, 1] > 1], axis=1)
    ev = Evaluation(labels=labels, predictions=np.where(wrong, 1 - labels, labels), representations={"e": X})
    for t, (_, view) in enumerate(ev.tasks()):
        slicer = Directions(**QUICK).fit(view)
        assert len(slicer.rules_) == 2
        assert (np.abs(slicer.directions_[:, t]) > 0.9).all()


def test_other_tasks_are_refused():
    ev = Evaluation(labels=np.linspace(0, 1, 30), predictions=np.linspace(0, 1, 30), representations={"e": np.eye(30)})
    with pytest.raises(InputError, match="`directions` looks within classes; this evaluation is one of regression"):
        Directions().fit(ev)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("per_class", 0, "an integer of at least 1"),
        ("advanced.C_min", 0.0, "a number above 0"),
        ("advanced.C_max", 1e-9, "a number of at least `C_min`"),
        ("advanced.C_values", 0, "an integer of at least 1"),
        ("permutations", -1, "an integer of at least 0"),
        ("advanced.max_rows", 3, "an integer of at least 10 or null"),
        ("slices", 0, "an integer of at least 1 or null"),
    ],
)
def test_bad_options_are_refused(option, value, words):
    with pytest.raises(InputError, match=rf"`directions\.{option}` must be {words}; got {value}"):
        build(Directions, "recommended", 0, {option: value})
    with pytest.raises(InputError, match=rf"`directions\.{option}` must be {words}; got {value}"):
        Directions(**merge({option: value})).fit(planted(0, n=60))  # also where nothing was built by name


def test_the_same_seed_gives_the_same_bytes_and_a_saved_slicer_the_same_weights(tmp_path):
    ev = planted(0)
    a, b, other = (Directions(seed=seed, permutations=3).fit(ev) for seed in (3, 3, 4))
    assert json.dumps(a.to_state().facts) == json.dumps(b.to_state().facts)
    assert {k: v.tobytes() for k, v in a.to_state().arrays.items()} == {
        k: v.tobytes() for k, v in b.to_state().arrays.items()
    }
    assert a.rules_ != other.rules_
    arrays.write(tmp_path / "s.safetensors", a.to_state().arrays)
    facts = json.loads(json.dumps(a.to_state().facts))
    again = Directions.from_state(State(a.name, facts, arrays.read(tmp_path / "s.safetensors")))
    np.testing.assert_array_equal(again.membership(planted(1)), a.membership(planted(1)))
    assert again.reads == a.reads
