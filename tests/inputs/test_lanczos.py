"""Lanczos' iteration against numpy's eigh, and runs that were killed against runs that were not."""

import json

import numpy as np
import pytest

from errata.core import InputError
from errata.inputs.checkpoints import RowCheckpoint, StepCheckpoint, open_folder
from errata.inputs.influence.lanczos import Krylov, factor, krylov

SPECTRA = {
    "distinct": np.linspace(0.5, 3, 12),
    "deficient": [4, 3, 2, 1] + [0] * 11,
    "identity": np.ones(9),
    "repeated": [3, 3, 3, 2, 2, 0, 0, 0, 0],
    "one direction": [5, 0, 0, 0],
    "one number": [2],
    "indefinite": [4, 3, 1, 0.5, 0, -1, -2.5, -2.5],
    "tiny": np.array([4, 3, 2, 0, 0]) * 1e-9,
    "huge": np.array([4, 3, 2, 0, 0]) * 1e9,
}
KINDS = [(library, dtype) for library in ("numpy", "torch") for dtype in ("float32", "float64")]
every_kind = pytest.mark.parametrize(("library", "dtype"), KINDS)
every_spectrum = pytest.mark.parametrize("name", SPECTRA)


def matrix(name):
    """Symmetric, with that spectrum, in no special position."""
    values = np.asarray(SPECTRA[name], dtype=float)
    Q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((len(values), len(values))))
    M = Q * values @ Q.T
    return (M + M.T) / 2


def as_kind(array, library, dtype):
    array = np.asarray(array, dtype=dtype)
    return array if library == "numpy" else pytest.importorskip("torch").from_numpy(array.copy())


class Matrix:
    """Known by its products only; stops with an error at one of them where told to."""

    def __init__(self, M, library="numpy", dtype="float64", kill_at=None):
        self.M = as_kind(M, library, dtype)
        self.kind = (library, dtype)
        self.kill_at = kill_at
        self.calls = 0

    def product(self, V):
        self.calls += 1
        if self.calls == self.kill_at:
            raise KeyboardInterrupt
        return V @ self.M

    def draw(self, j):
        return as_kind(np.random.default_rng([0, j]).standard_normal(len(self.M)), *self.kind)

    def krylov(self, steps=500, **options):
        return krylov(self.product, self.draw, steps, **options)


def wide(array):
    return np.asarray(array, dtype=np.float64)


def rounding(dtype):
    return float(np.finfo(dtype).eps)


def inverse(M, tolerance=1e-5, damping=0.0):
    """Over the positive eigenvalues only."""
    values, V = np.linalg.eigh(M)
    kept = values > tolerance * values.max()
    return V[:, kept] / (values[kept] + damping) @ V[:, kept].T


@every_kind
@every_spectrum
def test_all_positive_eigenpairs_are_found(name, library, dtype):
    M = matrix(name)
    found = factor(Matrix(M, library, dtype).krylov(), 100, tolerance=1e-5)
    expected = np.sort(SPECTRA[name])[::-1]
    positive = expected[expected > 0]
    np.testing.assert_allclose(found.values, positive, atol=30 * rounding(dtype) * expected[0])
    R, truth = wide(found.directions), inverse(M)
    assert np.abs(R.T @ R - truth).max() < 300 * rounding(dtype) * np.abs(truth).max()
    assert str(found.directions.dtype).endswith(dtype)


@every_kind
@every_spectrum
def test_the_basis_is_orthonormal_and_the_small_matrix_is_the_matrix_on_it(name, library, dtype):
    M = matrix(name)
    found = Matrix(M, library, dtype).krylov()
    basis = wide(found.basis)
    assert np.abs(basis @ basis.T - np.eye(len(basis))).max() < 20 * rounding(dtype)
    assert np.array_equal(found.small, found.small.T)
    np.testing.assert_allclose(found.small, basis @ M @ basis.T, atol=30 * rounding(dtype) * np.abs(M).max())


def test_a_long_iteration_stays_orthonormal_where_the_short_recurrence_does_not():
    values = np.concatenate([[1e4, 5e3], np.linspace(1, 2, 198)])  # those far out come back
    found = Matrix(np.diag(values), dtype="float32").krylov(150)
    assert np.abs(wide(found.basis) @ wide(found.basis).T - np.eye(150)).max() < 1e-5
    top = factor(found, 5, tolerance=1e-6).values
    assert np.sum(top > 100) == 2  # and none of them twice


@every_spectrum
def test_numpy_and_torch_alike(name):
    mine, theirs = (factor(Matrix(matrix(name), library).krylov(), 3, tolerance=1e-5) for library in ("numpy", "torch"))
    np.testing.assert_allclose(mine.values, theirs.values, rtol=1e-10)
    if name in ("distinct", "deficient", "one direction", "one number", "indefinite"):  # others: directions are free
        mine, theirs = wide(mine.directions), wide(theirs.directions)
        theirs = theirs * np.sign((mine * theirs).sum(axis=1))[:, None]  # an eigenvector's sign is free
        assert np.abs(mine - theirs).max() < 1e-8 * np.abs(mine).max()


def test_leading_eigenvalues_of_a_few_steps():
    values = 0.7 ** np.arange(80)
    problem = Matrix(np.diag(values))
    found = factor(problem.krylov(30), 5, tolerance=1e-5)
    assert problem.calls == 30
    np.testing.assert_allclose(found.values, values[:5], rtol=1e-9)
    assert Matrix(np.diag(values)).krylov(1).small.shape == (1, 1)


def test_nothing_is_multiplied_once_all_that_is_left_is_mapped_to_nothing():
    problem = Matrix(matrix("deficient"))
    size = len(problem.krylov().small)
    assert problem.calls == size <= 6  # four directions, one that is mapped to nothing, and the start's own


def test_least_and_negative_say_how_the_loss_curves_downwards():
    found = factor(Matrix(matrix("indefinite")).krylov(), 100, tolerance=1e-5)
    assert found.least == pytest.approx(-2.5)
    assert found.negative == 3
    found = factor(Matrix(matrix("deficient"), dtype="float32").krylov(), 100, tolerance=1e-5)
    assert found.negative == 0  # rounding is no curvature


def test_rank_keeps_the_largest_and_tolerance_is_a_share_of_the_largest():
    for scale in (1, 1e-9):
        small = np.diag([5.0, 4.0, 0.05, 0.0005, 0.0]) * scale
        found = Krylov(np.eye(5), small)
        assert factor(found, 2, tolerance=1e-5).values.tolist() == (np.array([5.0, 4.0]) * scale).tolist()
        for tolerance, count in ((1e-5, 4), (2e-4, 3), (0.02, 2), (0.9, 1)):
            assert len(factor(found, 10, tolerance=tolerance).values) == count


def test_damping_is_added_to_every_eigenvalue_and_values_are_without():
    M = matrix("distinct")
    found = factor(Matrix(M).krylov(), 100, tolerance=1e-5, damping=0.25)
    np.testing.assert_allclose(found.directions.T @ found.directions, np.linalg.inv(M + 0.25 * np.eye(12)), atol=1e-12)
    np.testing.assert_allclose(found.values, SPECTRA["distinct"][::-1])


@every_kind
@pytest.mark.parametrize("values", [np.zeros(5), [0.0], [-1, -2, -3], [-3, -2, -1, 0, 0, 0, 0]])
def test_without_positive_curvature_there_is_one_sentence(values, library, dtype):
    Q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((len(values), len(values))))
    found = Matrix(Q * values @ Q.T, library, dtype).krylov()
    with pytest.raises(InputError, match=r"no positive eigenvalue.*check that the loss depends on the layers"):
        factor(found, 100, tolerance=1e-5)


@pytest.mark.parametrize(("library", "bad"), [("numpy", np.nan), ("torch", np.inf)])
def test_a_product_that_is_not_finite_is_said_at_once(library, bad):
    problem = Matrix(np.full((6, 6), bad), library)
    with pytest.raises(InputError, match="not finite; look for a row"):
        problem.krylov()
    assert problem.calls == 1


def test_how_far_it_is_is_told():
    shares = []
    Matrix(matrix("distinct")).krylov(8, progress=lambda stage, share: shares.append(share))
    assert shares == [j / 8 for j in range(1, 9)]


def same(a: Krylov, b: Krylov):
    return wide(a.basis).tobytes() == wide(b.basis).tobytes() and a.small.tobytes() == b.small.tobytes()


@every_kind
@pytest.mark.parametrize("name", ["distinct", "repeated", "deficient"])
def test_a_run_killed_at_any_step_goes_on_to_the_same_bytes(name, library, dtype, tmp_path):
    M = matrix(name)
    whole = Matrix(M, library, dtype)
    unbroken = whole.krylov()
    for k in range(1, whole.calls + 1):
        folder = open_folder(tmp_path / str(k), {})
        with pytest.raises(KeyboardInterrupt):
            Matrix(M, library, dtype, kill_at=k).krylov(checkpoint=StepCheckpoint(folder, len(M), dtype))
        again = Matrix(M, library, dtype)
        assert same(again.krylov(checkpoint=StepCheckpoint(folder, len(M), dtype)), unbroken)
        assert again.calls == whole.calls - k + 1  # only what was not finished is done again


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("cut", ["row", "line", "both", "last newline", "no lines", "no rows"])
def test_half_written_files_are_cut_to_what_is_whole(cut, rows, tmp_path):
    M = matrix("distinct")
    unbroken = Matrix(M).krylov()
    with pytest.raises(KeyboardInterrupt):
        Matrix(M, kill_at=7).krylov(checkpoint=StepCheckpoint(open_folder(tmp_path, {}), 12, "float64"))
    basis, small = tmp_path / "basis.bin", tmp_path / "small.jsonl"
    assert (basis.stat().st_size, small.read_text().count("\n")) == (7 * 12 * 8, 6)
    if cut in ("row", "both"):
        basis.write_bytes(basis.read_bytes()[: -rows * 96 - 5])
    if cut in ("line", "both"):
        small.write_text(small.read_text()[:-9])
    if cut == "last newline":
        small.write_text(small.read_text()[:-1])
    if cut in ("no lines", "no rows"):
        (small if cut == "no lines" else basis).write_bytes(b"")
    assert same(Matrix(M).krylov(checkpoint=StepCheckpoint(tmp_path, 12, "float64")), unbroken)
    assert small.read_text().count("\n") == 12
    assert all(json.loads(line) for line in small.read_text().splitlines())


def test_a_finished_run_needs_one_product_more(tmp_path):
    M = matrix("deficient")
    unbroken = Matrix(M).krylov(checkpoint=StepCheckpoint(tmp_path, 15, "float64"))
    again = Matrix(M)
    assert same(again.krylov(checkpoint=StepCheckpoint(tmp_path, 15, "float64")), unbroken)
    assert again.calls == 1


def test_kept_rows_grow_and_give_back_what_was_put_in(tmp_path):
    rows = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    kept = RowCheckpoint(tmp_path / "rows", 3)
    assert kept.read().shape == (0, 3)
    kept.append(rows[:2])
    kept.append(rows[2:])
    assert np.array_equal(RowCheckpoint(tmp_path / "rows", 3).read(), rows)
    with open(tmp_path / "rows", "ab") as file:
        file.write(b"half a r")
    kept = RowCheckpoint(tmp_path / "rows", 3)
    kept.append(rows[:1])
    assert np.array_equal(RowCheckpoint(tmp_path / "rows", 3).read(), rows[[0, 1, 2, 3, 4, 0]])


def test_a_folder_is_of_one_piece_of_work(tmp_path):
    assert open_folder(tmp_path / "a" / "b", {"model": "x", "rows": 5}) == tmp_path / "a" / "b"
    open_folder(tmp_path / "a" / "b", {"rows": 5, "model": "x"})
    with pytest.raises(InputError, match=r"holds the files of another run .*; name another folder"):
        open_folder(tmp_path / "a" / "b", {"model": "y", "rows": 5})


def blocks_of(M, steps, block, seed=0):
    def draw(j):
        return np.random.default_rng([seed, j]).standard_normal(len(M)).astype(M.dtype)

    return krylov(lambda V: V @ M, draw, steps, block=block)


@pytest.mark.parametrize("block", [1, 3, 4])
@pytest.mark.parametrize(
    "M",
    [
        np.diag([5.0, 0, 0, 0, 0, 0]),  # rank one
        np.eye(7),  # one eigenvalue, seven times
        np.diag([3.0, 3, 3, 2, 2, 0, 0, 0, 0]),
        np.diag(np.arange(-4.0, 5)),
        np.array([[2.0]]),
    ],
    ids=["rank one", "identity", "repeated", "indefinite", "1x1"],
)
def test_blocks_find_all_eigenvalues_however_often_they_occur(M, block):
    found = blocks_of(M, len(M), block)
    np.testing.assert_allclose(found.basis @ found.basis.T, np.eye(len(found.basis)), atol=1e-12)
    np.testing.assert_allclose(found.basis @ M @ found.basis.T, found.small, atol=1e-12)
    values = np.linalg.eigvalsh(found.small)
    true = np.linalg.eigvalsh(M)
    np.testing.assert_allclose(values[np.abs(values) > 1e-9], true[np.abs(true) > 1e-9], atol=1e-9)


def test_blocks_of_one_are_the_iteration_itself():
    rng = np.random.default_rng(1)
    A = rng.standard_normal((30, 50))
    M = A.T @ A / 30
    basis = [np.random.default_rng([0, 0]).standard_normal(50)]
    basis[0] /= np.linalg.norm(basis[0])
    while len(basis) < 12:  # Gram-Schmidt over the powers of M
        rest = M @ basis[-1]
        for _ in range(2):
            rest = rest - np.array(basis).T @ (np.array(basis) @ rest)
        basis.append(rest / np.linalg.norm(rest))
    block = blocks_of(M, 12, 1)
    np.testing.assert_allclose(np.abs(block.basis), np.abs(basis), atol=1e-9)
    np.testing.assert_allclose(np.abs(block.small), np.abs(basis @ M @ np.transpose(basis)), atol=1e-9)


def test_blocks_are_for_arrays_without_a_checkpoint(tmp_path):
    pytest.importorskip("torch")
    M = matrix("distinct")
    with pytest.raises(ValueError, match="`block` must be 1 for tensors and with a checkpoint; got 2"):
        Matrix(M).krylov(block=2, checkpoint=StepCheckpoint(tmp_path, 12, "float64"))
    with pytest.raises(ValueError, match="`block` must be 1 for tensors"):
        Matrix(M, "torch").krylov(block=2)


def test_blocks_lead_to_the_same_leading_eigenvalues():
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    M = (Q * (100 / np.arange(1, 201) ** 2)) @ Q.T
    values = np.linalg.eigvalsh(blocks_of(M, 60, 4).small)[::-1]
    np.testing.assert_allclose(values[:10], 100 / np.arange(1, 11) ** 2, rtol=1e-6)


def test_a_block_with_a_product_that_is_not_finite_says_so():
    M = np.eye(5)
    M[2, 2] = np.nan
    with pytest.raises(InputError, match="not finite"):
        blocks_of(M, 5, 4)


def test_blocks_stop_where_all_that_is_left_is_mapped_to_nothing():
    M = np.zeros((100, 100))
    M[:2, :2] = np.diag([5.0, 3.0])
    assert len(blocks_of(M, 100, 4).basis) <= 12


def decaying(n=400, p=300):
    """A matrix of the kind a Hessian is: a few large eigenvalues and a long tail."""
    X = np.random.default_rng(5).standard_normal((n, p)) * np.geomspace(1, 1e-3, p)
    return X.T @ X / n


@every_kind
@pytest.mark.parametrize("most", [30, 60])
def test_a_restart_finds_the_leading_eigenpairs_with_fewer_vectors(library, dtype, most):
    M = decaying()
    problem = Matrix(M, library, dtype)
    found = problem.krylov(150, most=most, keep=24)
    assert found.basis.shape[0] <= most
    assert problem.calls == 150  # as many products as without
    leading = factor(found, 20, tolerance=1e-7)
    exact, V = np.linalg.eigh(M)
    close = 1e-3 if dtype == "float32" else 1e-6
    np.testing.assert_allclose(leading.values, exact[::-1][:20], rtol=close)
    R = wide(leading.directions) * np.sqrt(leading.values)[:, None]
    overlap = np.linalg.svd(R @ V[:, ::-1][:, :20], compute_uv=False)
    assert overlap.min() > 1 - 10 * close


def test_a_restart_remembers_negative_curvature_that_it_let_go():
    M = np.diag(np.concatenate([np.linspace(1, 5, 60), [-3.0, -2.0]]))
    whole = factor(Matrix(M).krylov(50), 5, tolerance=1e-5)
    found = factor(Matrix(M).krylov(50, most=20, keep=8), 5, tolerance=1e-5)
    assert whole.least == pytest.approx(-3, abs=0.01)
    assert found.least == pytest.approx(-3, abs=0.3)
    assert found.negative >= 1
    np.testing.assert_allclose(found.values, whole.values, rtol=0.02)


def test_a_restart_that_cannot_go_on_is_refused():
    for keep in (0, 10):
        with pytest.raises(ValueError, match="a restart keeps 1 to 9 of 10"):
            Matrix(decaying()).krylov(50, most=10, keep=keep)


def test_directions_may_take_the_place_of_the_basis():
    M = decaying()
    beside = factor(Matrix(M).krylov(80), 10, tolerance=1e-6)
    krylov_ = Matrix(M).krylov(80)
    within = factor(krylov_, 10, tolerance=1e-6, in_place=True)
    np.testing.assert_allclose(within.directions, beside.directions, rtol=1e-10, atol=1e-12)
    assert np.shares_memory(within.directions, krylov_.basis)


@pytest.mark.parametrize("block", [1, 4])
def test_memory_is_what_the_formula_says(block):
    """As measured by Python itself, which sees every array of numpy's."""
    import tracemalloc

    from errata.inputs.influence.head import InfluenceOptions

    p = 200_000
    options = InfluenceOptions(steps=150, rank=20, basis=4 * p * 40)
    held = options.vectors(p, block)
    assert held == {"most": 40, "keep": 20 + (20 - block) // 3}
    diagonal = np.geomspace(1, 1e-4, p, dtype=np.float32)

    def draw(j):
        return np.random.default_rng([0, j]).standard_normal(p, dtype=np.float32)

    tracemalloc.start()
    found = krylov(lambda V: V * diagonal, draw, options.steps, block=block, **held)
    factor(found, options.rank, tolerance=1e-6, in_place=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    formula = 4 * p * held["most"]
    assert formula <= peak <= formula + 4 * p * 8 * block + (32 << 20)


def test_a_basis_that_does_not_fit_is_refused_with_its_bytes():
    from errata.inputs.influence.head import BASIS, InfluenceOptions

    weights = 7_087_872 + 3076  # the last layer of BERT-base and a classifier of four classes
    held = InfluenceOptions().vectors(weights)
    assert held["most"] == BASIS // (4 * weights) == 151
    assert 4 * weights * held["most"] <= BASIS < 4 * weights * 500
    with pytest.raises(InputError, match=r"100 directions of 7,090,948 weights need 2\.9 GiB .* `basis` allows 1\.0"):
        InfluenceOptions(basis=1 << 30).vectors(weights)
    with pytest.raises(InputError, match=r"need 3\.5 KiB of vectors, and `basis` allows 1,000 bytes; give more"):
        InfluenceOptions(basis=1000).vectors(30)
    assert InfluenceOptions(steps=50, rank=100).vectors(30) == {"most": 30, "keep": 30}
