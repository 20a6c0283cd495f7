"""Places on a map: neighbours stay together, and nothing but ids, rows and seed decides where."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from errata.core import Evaluation, InputError, MissingInput
from errata.explain import layout as placing
from errata.explain.layout import lay_out

N, D, BLOBS = 900, 20, 6


def _rows(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=4, size=(BLOBS, d))
    blob = rng.integers(0, BLOBS, n)
    return (centres[blob] + rng.normal(size=(n, d))).astype(np.float32), blob


def _evaluation(X, ids=None):
    return Evaluation(losses=np.zeros(len(X)), representations={"e": X}, ids=ids)


@pytest.fixture(scope="module")
def world():
    """Rows of which 300 of 900 are landmarks, and where they are placed."""
    X, blob = _rows()
    return X, blob, lay_out(_evaluation(X), landmarks=300)


def _landmarks(n=N, most=300, seed=0):
    chosen = np.zeros(n, dtype=bool)
    chosen[placing._chosen(placing._keys(np.arange(n), seed), most)] = True
    return chosen


def test_places_are_pairs_in_one_scale(world):
    _, _, xy = world
    assert (xy.shape, xy.dtype) == ((N, 2), np.float32)
    assert np.abs(xy).max() == 1
    low, high = xy.min(axis=0), xy.max(axis=0)
    assert np.allclose(low, -high, atol=1e-6)  # the middle is at zero
    assert (high - low).max() == pytest.approx(2)


def test_neighbours_are_kept(world):
    X, blob, xy = world
    assert trustworthiness(X, xy, n_neighbors=10) > 0.85
    placed = ~_landmarks()
    assert placed.sum() == 600
    assert trustworthiness(X[placed], xy[placed], n_neighbors=10) > 0.85
    own = np.array([np.median(xy[blob == b], axis=0) for b in range(BLOBS)])
    nearest = np.linalg.norm(xy[:, None] - own[None], axis=2).argmin(axis=1)
    assert (nearest == blob)[placed].mean() > 0.95
    assert trustworthiness(X, np.random.default_rng(0).permutation(xy), n_neighbors=10) < 0.6  # the measure can fail


def test_rows_between_the_same_landmarks_do_not_hide_each_other():
    X, _ = _rows(400)
    X = np.concatenate([X, X[:50], X[:50]])
    xy = lay_out(_evaluation(X), landmarks=100)
    assert len(np.unique(xy, axis=0)) == len(X)
    twins = np.linalg.norm(xy[400:450] - xy[450:], axis=1)
    assert np.median(twins) < 0.05


def test_landmarks_stay_where_they_are_put(world, monkeypatch):
    X, _, xy = world
    monkeypatch.setattr(placing, "JITTER", 0.1)
    shaken = lay_out(_evaluation(X), landmarks=300)
    shapes = [rows - rows.mean(axis=0) for rows in (xy[_landmarks()], shaken[_landmarks()])]
    assert np.allclose(*(shape / np.linalg.norm(shape) for shape in shapes), atol=1e-6)
    assert not np.allclose(xy[~_landmarks()], shaken[~_landmarks()], atol=0.05)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(world):
    X, _, xy = world
    assert lay_out(_evaluation(X), landmarks=300).tobytes() == xy.tobytes()
    assert lay_out(_evaluation(X), landmarks=300, seed=1).tobytes() != xy.tobytes()


def test_an_id_has_its_place_in_any_order_of_rows(world):
    X, _, xy = world
    order = np.random.default_rng(3).permutation(N)
    assert np.array_equal(lay_out(_evaluation(X[order], ids=order), landmarks=300), xy[order])


@pytest.mark.parametrize("columns", [D, 700])  # below and beyond what the covariance is made for
def test_rows_on_disk_are_placed_as_rows_in_memory_are(tmp_path, columns, monkeypatch):
    monkeypatch.setattr(placing, "BLOCK_BYTES", 1 << 15)  # several blocks
    X, blob = _rows(300, columns)
    np.save(tmp_path / "x.npy", X)
    mapped = lay_out(_evaluation(np.load(tmp_path / "x.npy", mmap_mode="r")), landmarks=150)
    assert np.array_equal(mapped, lay_out(_evaluation(X), landmarks=150))
    assert trustworthiness(X, mapped, n_neighbors=5) > 0.85
    assert len(np.unique(blob)) == BLOBS


@pytest.mark.parametrize("d", [5, 700])
def test_principal_axes_are_those_of_the_covariance(d):
    rng = np.random.default_rng(5)
    strong = np.linalg.qr(rng.normal(size=(d, 3)))[0]
    X = rng.normal(size=(400, 3)) * [9, 5, 3] @ strong.T + 0.01 * rng.normal(size=(400, d)) + 7
    centre, axes = placing._principal_axes(X, np.arange(400), seed=0)
    expected = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:3]
    assert np.allclose(centre, X.mean(axis=0))
    assert axes.shape == (d, min(d, 50))
    assert np.allclose(np.abs(np.sum(axes[:, :3].T * expected, axis=1)), 1, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 29, 30, 31, 101])
@pytest.mark.parametrize("d", [1, 2, 60])
def test_few_rows_have_places(n, d):
    X = np.random.default_rng(n).normal(size=(n, d))
    xy = lay_out(_evaluation(X))
    assert xy.shape == (n, 2)
    assert np.isfinite(xy).all()
    assert np.abs(xy).max() <= 1
    assert n == 1 or len(np.unique(xy, axis=0)) == n


def test_few_rows_keep_their_distances():
    X = np.random.default_rng(0).normal(size=(29, 2))
    apart = [np.linalg.norm(rows[:, None] - rows[None], axis=2) for rows in (X, lay_out(_evaluation(X)))]
    assert np.allclose(*(distances / distances.max() for distances in apart), atol=1e-6)


@pytest.mark.parametrize("n", [5, 200])
def test_rows_that_are_all_alike_lie_at_zero(n):
    xy = lay_out(_evaluation(np.full((n, 4), 0.1)))
    assert np.array_equal(xy, np.zeros((n, 2), dtype=np.float32))


def test_constant_columns_change_nothing():
    X, _ = _rows(200)
    wide = np.concatenate([X, np.full((200, 5), 0.1, dtype=np.float32)], axis=1)
    assert trustworthiness(X, lay_out(_evaluation(wide)), n_neighbors=10) > 0.85


@pytest.mark.parametrize("scale", [1e-30, 1e36])
def test_odd_numbers_have_places(scale):
    X = _rows(150)[0].astype(np.float64)
    assert trustworthiness(X, lay_out(_evaluation(X * scale)), n_neighbors=10) > 0.85
    half = np.where(np.arange(150)[:, None] < 75, X[0], X)  # half of them equal
    assert np.isfinite(lay_out(_evaluation(half))).all()
    assert np.isfinite(lay_out(_evaluation((X > 0).astype(np.int8)))).all()


def test_progress_grows_to_one():
    reports = []
    lay_out(_evaluation(_rows(300)[0]), landmarks=100, progress=lambda *report: reports.append(report))
    assert {stage for stage, _ in reports} == {"map"}
    shares = [share for _, share in reports]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert len(shares) >= 4


def test_mistakes_are_named():
    with pytest.raises(InputError, match="`landmarks` must be at least 30; got 3"):
        lay_out(_evaluation(_rows(50)[0]), landmarks=3)
    with pytest.raises(InputError, match="unknown representation `f`; did you mean"):
        lay_out(Evaluation(losses=np.zeros(2), representations={"ff": np.eye(2)}), "f")
    with pytest.raises(MissingInput, match="the map needs `representations`"):
        lay_out(Evaluation(losses=np.zeros(2)))
