"""Copies stay on one side of the split; rows that only look alike do not become copies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from errata import audit, hold_out
from errata.bench.null_worlds import copied_world, patients_world, world
from errata.core import Evaluation
from errata.core.copies import find_copies, row_keys
from errata.core.grouping import copies_mask, settle_groups
from errata.core.near_copies import find_near_copies
from errata.core.references import effective_rows
from errata.core.split import discover_mask
from errata.inputs.media import ImageArrays, ImageBytes, ImagePaths, Texts


def _evaluation(X, **more):
    n = len(X)
    given = {"labels": np.arange(n) % 3, "predictions": np.arange(n) % 3, "representations": {"x": X}, **more}
    return Evaluation(**given)


def _random(n=600, d=8, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def _together(codes, rows):
    return len(np.unique(codes[rows])) == 1


def test_without_copies_the_split_is_what_it_was_bit_for_bit():
    for kind in ("random", "calibrated"):
        rows = world(kind, 1500, 3)
        settled, mask, record = settle_groups(rows)
        assert settled is rows
        assert np.array_equal(mask, discover_mask(rows))
        assert record["copies"] == {"rows": 0, "of": 1500, "groups": 0, "largest": 0, "by": {}, "near": True}


def test_equal_rows_stay_together_and_the_split_stays_stratified():
    X = np.repeat(_random(200), 5, axis=0)
    order = np.random.default_rng(1).permutation(1000)
    rows = _evaluation(X[order], labels=np.repeat(np.arange(200) % 4, 5)[order], predictions=None)
    settled, mask, record = settle_groups(rows)
    base = np.repeat(np.arange(200), 5)[order]
    for item in range(200):
        assert _together(settled.groups, base == item)
        assert _together(mask, base == item)
    assert len(np.unique(settled.groups)) == 200
    assert record["copies"]["rows"] == 1000
    assert record["copies"]["by"] == {"x": 1000}
    for label in range(4):
        assert abs(mask[rows.labels == label].mean() - 0.5) <= 0.02


def test_one_copied_row_moves_only_its_own_stratum():
    X = _random(500)
    rows = _evaluation(X)
    X = X.copy()
    X[7] = X[400]
    with_copy = _evaluation(X)
    before = discover_mask(rows)
    after = settle_groups(with_copy)[1]
    assert after[7] == after[400]
    assert (before != after).sum() <= 2


def test_the_order_of_rows_does_not_matter():
    X = np.concatenate([_random(300), _random(300)[:60] + 0.01 * _random(60, seed=1)])
    ids = np.array([f"row {i}" for i in range(360)])
    order = np.random.default_rng(2).permutation(360)
    one = settle_groups(_evaluation(X, ids=ids))
    rows = _evaluation(X[order], ids=ids[order], labels=(np.arange(360) % 3)[order], predictions=None)
    other = settle_groups(rows)
    assert one[2] == other[2]
    assert 120 <= one[2]["copies"]["rows"] <= 122
    assert np.array_equal(one[1][order], other[1])
    assert np.array_equal(one[0].groups[order], other[0].groups)


def test_no_outcome_decides_what_a_copy_is():
    rows = copied_world(600, 5, 0.05, 1)
    flipped = Evaluation(labels=rows.labels, predictions=(rows.labels + 1) % 5, representations=rows.representations)
    assert np.array_equal(find_copies(rows).codes, find_copies(flipped).codes)


def test_rounding_makes_no_difference_and_digits_do():
    X = _random(50).astype(np.float32)
    assert np.array_equal(row_keys(X), row_keys(X.astype(np.float64)))
    assert len(np.unique(row_keys(X * (1 + 1e-3)).tolist() + row_keys(X).tolist())) == 100
    assert np.array_equal(row_keys(np.array([[0.0, 1.0]])), row_keys(np.array([[-0.0, 1.0]])))
    assert len(np.unique(row_keys(np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, 2.0], [1.0, -2.0]])))) == 4


@pytest.mark.parametrize(
    "coarse",
    [
        pytest.param(lambda rng: np.eye(5)[rng.integers(5, size=2000)], id="one-hot"),
        pytest.param(lambda rng: np.round(rng.normal(size=(2000, 1)), 2), id="one score"),
        pytest.param(lambda rng: rng.integers(4, size=(2000, 6)).astype(float), id="few categories"),
        pytest.param(lambda rng: np.eye(400)[rng.integers(400, size=2000)], id="many categories"),
        pytest.param(lambda rng: np.stack([rng.integers(70, size=2000), rng.integers(90, size=2000)], 1), id="lattice"),
        pytest.param(lambda rng: np.repeat(np.round(rng.random((2000, 1)), 3), 2, 1) * [1, -1] + [0, 1], id="p, 1 - p"),
        pytest.param(lambda rng: np.ones((2000, 3)), id="constant"),
        pytest.param(lambda rng: rng.integers(60, size=(2000, 1)) ** np.arange(1, 5), id="powers of an age"),
        pytest.param(lambda rng: rng.normal(size=(2000, 16)) * (rng.random((2000, 1)) < 0.97), id="some rows of zeros"),
    ],
)
def test_rows_that_are_equal_by_chance_are_no_copies(coarse):
    rng = np.random.default_rng(3)
    assert find_copies(_evaluation(coarse(rng).astype(float))) is None


@pytest.mark.parametrize("d", [2, 3, 16, 300])
def test_quantities_that_are_equal_are_copies(d):
    X = _random(500, d)
    X[:50] = X[50:100]
    assert find_copies(_evaluation(X)).rows == {"x": 100}


def test_counts_and_pixels_that_are_equal_are_copies():
    rng = np.random.default_rng(4)
    X = rng.poisson(0.3, size=(500, 300))
    X[:50] = X[50:100]
    assert find_copies(_evaluation(X.astype(float))).rows == {"x": 100}


@pytest.mark.parametrize("d", [1, 2, 5, 16, 64, 512])
@pytest.mark.parametrize("kind", ["normal", "heavy", "clusters"])
def test_random_rows_have_hardly_any_near_copies_and_never_many(d, kind):
    rng = np.random.default_rng([5, d])
    X = rng.normal(size=(3000, d))
    if kind == "heavy":
        X = rng.standard_t(2, size=(3000, d))
    if kind == "clusters":
        X = X + rng.normal(0, 3, size=(25, d))[rng.integers(25, size=3000)]
    found = find_near_copies(X, np.arange(3000))
    assert (found >= 0).mean() <= 0.005
    assert np.unique(found[found >= 0], return_counts=True)[1].max(initial=0) <= 3


def test_near_copies_are_sets_that_are_isolated_by_brute_force():
    rng = np.random.default_rng(6)
    X = np.concatenate([_random(400, 12), np.repeat(_random(40, 12, 7), 4, axis=0)])
    X[400:] += 0.05 * rng.normal(size=(160, 12))
    found = find_near_copies(X, np.arange(len(X)))
    assert (found[:400] >= 0).mean() <= 0.02
    assert len(np.unique(found[400:])) == 40
    distances = cdist(X / X.std(axis=0), X / X.std(axis=0))
    for code in np.unique(found[400:]):
        inside = found == code
        assert distances[np.ix_(inside, inside)].max() < 0.8 * distances[np.ix_(inside, ~inside)].min()


def test_same_texts_are_copies_whatever_their_case_and_punctuation():
    texts = [f"A film about number {i}, which nobody saw." for i in range(300)]
    texts[5] = "a film about NUMBER 7 which nobody   saw"
    texts[10:20] = ["Good!"] * 10  # too short to be anybody's copy
    rows = _evaluation(_random(300), media=Texts(texts))
    copies = find_copies(rows)
    assert copies.rows == {"text": 2}
    assert copies.codes[5] == copies.codes[7]


def test_a_text_that_is_too_short_is_no_copy_in_the_representation_either():
    X = _random(300)
    X[10:20] = X[10]
    texts = [f"A film about number {i}, which nobody saw." for i in range(300)]
    assert find_copies(_evaluation(X, media=Texts(texts))).rows == {"x": 10}
    texts[10:20] = [""] * 10
    assert find_copies(_evaluation(X, media=Texts(texts))) is None


def _pictures(n=40):
    pictures = np.random.default_rng(8).integers(0, 256, size=(n, 6, 6), dtype=np.uint8)
    pictures[3] = pictures[30]
    pictures[4:8] = 0  # nothing to be seen
    return pictures


def test_same_images_are_copies(tmp_path):
    pictures = _pictures()
    as_bytes = [bytes(picture) for picture in pictures]
    as_bytes[9] = None
    for i, data in enumerate(as_bytes):
        (tmp_path / f"{i}.raw").write_bytes(data or b"")
    names = [f"{i}.raw" for i in range(39)] + ["missing.raw"]
    for media in (ImageArrays(pictures), ImageBytes(as_bytes), ImagePaths(names, tmp_path)):
        codes = find_copies(_evaluation(_random(40), media=media)).codes
        assert codes[3] == codes[30]
    assert find_copies(_evaluation(_random(40), media=ImageArrays(pictures))).rows == {"image": 2}


def test_groups_that_are_given_stay_as_they_are_where_copies_join_none():
    X = _random(300)
    X[0] = X[1]
    groups = np.array([f"patient {i // 3}" for i in range(300)])
    settled, mask, record = settle_groups(_evaluation(X, groups=groups))
    assert np.array_equal(settled.groups, groups)
    assert record["given"]
    assert np.array_equal(mask, discover_mask(_evaluation(X, groups=groups)))


def test_copies_join_groups_that_are_given():
    X = _random(300)
    X[0] = X[150]
    groups = np.array([f"patient {i // 3:03d}" for i in range(300)])
    settled, mask, _ = settle_groups(_evaluation(X, groups=groups))
    assert _together(mask, [0, 1, 2, 150, 151, 152])
    assert set(settled.groups[[0, 150, 152]]) == {"patient 000"}
    others = np.delete(np.arange(300), [150, 151, 152])
    assert np.array_equal(settled.groups[others], groups[others])


def test_none_turns_it_off():
    rows = copied_world(600, 5, 0.0, 1)
    settled, mask, record = settle_groups(rows, "none")
    assert settled is rows
    assert np.array_equal(mask, discover_mask(rows))
    assert record["copies"] is None


def test_held_out_rows_are_no_copies_of_audited_ones():
    rows = copied_world(1000, 5, 0.0, 2)
    audited, held_out = hold_out(rows, 0.3)
    shared = np.intersect1d(
        row_keys(audited.representations["penultimate"]), row_keys(held_out.representations["penultimate"])
    )
    assert len(shared) == 0
    assert copies_mask(rows, 0.3).sum() == len(held_out)


def test_rows_without_company_count_in_full():
    outcome = np.random.default_rng(9).random(40) < 0.3
    assert effective_rows(outcome.astype(float), np.arange(40)) == 40
    some = np.arange(40)
    some[1] = 0
    assert effective_rows(outcome.astype(float), some) >= 34


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_random_errors_of_copied_rows_are_not_confirmed(noise):
    worlds = [copied_world(2000, 5, noise, seed) for seed in range(2)]
    assert all(audit(rows, groups="none").confirmed for rows in worlds)  # what copies do where nothing is done
    assert sum(bool(audit(rows).confirmed) for rows in worlds) <= 1


def test_an_audit_says_what_it_kept_together():
    from errata.report.sentences import groups

    result = audit(patients_world(2000, 20, 1, column=True), methods=["gmm"])
    assert result.settings["groups"]["column"] == "patient"
    assert "Errors are alike within `patient` (100 values)" in groups(result.settings)[-1]
    result = audit(copied_world(1000, 5, 0.0, 1), methods=["gmm"])
    assert groups(result.settings) == [
        "1,000 of 1,000 rows are copies of others (same penultimate); copies were kept on one side of the split and "
        "count as one."
    ]
