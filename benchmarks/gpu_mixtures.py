"""E-steps of a diagonal Gaussian mixture and steps of k-means on one GPU: 1,000,000 x 128, 1,024 components.

    SCIPY_ARRAY_API=1 python benchmarks/gpu_mixtures.py [--rows 1000000] [--components 1024] [--device cuda]

Flash-GMM prints 152 ms an E-step on an A100. Floors: multiplications over what a large product reaches in the same
precision here, and the bytes of X over a copy's bandwidth. scikit-learn's mixture runs beside it through the array API
where it can; steps of `gmm` and `domino` run beside the threads of this process. Exits 1 where sums differ from those
of float64 on the CPU (20,000 rows; all of them for the last two) by more than 1e-9.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from _gpu import seconds
from errata.engine import Local
from errata.slicers.domino.device import chunk_sums
from errata.slicers.domino.mixture import DominoMixture, Weights
from errata.slicers.domino.mixture import part_sums as domino_sums
from errata.slicers.expectation import part_sums
from errata.slicers.numerics import Gaussians
from errata.tensors.mixtures import cluster_sums, gaussian_sums
from errata.tensors.rows import TensorRows, TensorWork


def product_rate(dtype: torch.dtype, device: torch.device) -> float:
    """Operations a second of a large product."""
    a = torch.randn(8192, 8192, device=device, dtype=dtype)
    a @ a
    torch.cuda.synchronize()
    return 2 * 8192**3 / seconds(lambda: a @ a)


def diagonal(parts: tuple[np.ndarray, ...], device: torch.device) -> TensorWork:
    log_weights, means, variances = parts
    return gaussian_sums(device, log_weights, means, variances**-0.5)


def gmm_step(rows: int, device: torch.device) -> float:
    """A step of `gmm`: 20 components with full covariances on 16 axes."""
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((rows, 16))
    mixture = Gaussians(np.full(20, -np.log(20)), rng.standard_normal((20, 16)), np.tile(np.eye(16), (20, 1, 1)))
    work = gaussian_sums(device, mixture.log_weights, mixture.means, mixture.factors)
    return beside_this_process(
        "gmm, 16 axes, 20 full covariances", TensorRows((Z,), device), (Z,), part_sums, (mixture,), work
    )


def domino_step(rows: int, device: torch.device) -> float:
    """A step of `domino`: 25 components on 64 axes, 10 classes."""
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((rows, 64), dtype=np.float32)
    labels = rng.integers(0, 10, rows)
    probs = rng.dirichlet(np.ones(10), rows).astype(np.float32)
    shares = rng.dirichlet(np.ones(10), (2, 25))
    mixture = DominoMixture(np.full(25, -np.log(25)), rng.standard_normal((25, 64)), np.ones((25, 64)), *shares)
    weights = Weights()
    work = chunk_sums(device, mixture, weights)
    columns = (Z, labels, probs)
    held = TensorRows(columns, device)
    name = "domino, 64 axes, 25 components, 10 classes"
    return beside_this_process(name, held, columns, domino_sums, (mixture, weights), work)


def beside_this_process(
    name: str,
    held: TensorRows,
    columns: tuple[np.ndarray, ...],
    statistics: Callable[..., Any],
    shared: tuple[Any, ...],
    work: TensorWork,
) -> float:
    """Time a step on the device and on all threads of this process; the largest error of its sums."""
    there = held.total(work)
    taken = seconds(lambda: held.total(work))
    local = Local()
    with local.hold(*columns) as parts:
        here = parts.total(statistics, *shared)
        threaded = seconds(lambda: parts.total(statistics, *shared), 1)
    error = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(there, here, strict=True))
    print(
        f"step of {name}, {len(columns[0]):,} rows: {taken * 1e3:.1f} ms; {local.threads} threads of this process "
        f"{threaded * 1e3:.0f} ms; largest error of a sum {error:.1e}",
        flush=True,
    )
    return error


def single_precision(
    X: np.ndarray, parts: tuple[np.ndarray, ...], device: torch.device, chunk: int
) -> tuple[float, float]:
    """Seconds of the same E-step in float32, and the largest error of its means in standard deviations."""
    log_weights, means, variances = parts
    held = torch.tensor(X, device=device)
    precisions = 1 / variances
    slopes = torch.tensor(np.hstack([means * precisions, -0.5 * precisions]).T, device=device, dtype=torch.float32)
    heights = (np.square(means) * precisions + np.log(variances) + np.log(2 * np.pi)).sum(axis=1)
    heights = torch.tensor(log_weights - 0.5 * heights, device=device, dtype=torch.float32)
    out = {}

    def step() -> None:
        mass = 0.0
        sums = 0.0
        for start in range(0, len(held), chunk):
            both = torch.cat([held[start : start + chunk], held[start : start + chunk].square()], dim=1)
            shares = torch.softmax(torch.addmm(heights, both, slopes), dim=1)
            mass = mass + shares.sum(dim=0).double()
            sums = sums + (shares.T @ both).double()
        out["means"] = (sums[:, : X.shape[1]] / mass[:, None]).cpu().numpy()

    step()
    taken = seconds(step)
    mass, sums, _, _ = TensorRows((X,), device).total(diagonal(parts, device), chunk)
    exact = sums / mass[:, None]
    return taken, float((np.abs(out["means"] - exact) / np.sqrt(variances)).max())


def peer(X: np.ndarray, components: int, device: torch.device) -> None:
    """scikit-learn's own EM on tensors."""
    import sklearn
    from sklearn.mixture import GaussianMixture

    with sklearn.config_context(array_api_dispatch=True):
        held = torch.tensor(X, device=device)
        rng = np.random.default_rng(0)
        given = {
            "weights_init": torch.full((components,), 1 / components, device=device),
            "means_init": held[torch.tensor(rng.choice(len(X), components, replace=False), device=device)],
            "precisions_init": torch.ones((components, X.shape[1]), device=device),
        }
        times = []
        for steps in (1, 2, 3):
            mixture = GaussianMixture(
                components, covariance_type="diag", max_iter=steps, tol=0.0, init_params="random", **given
            )
            times.append(seconds(lambda mixture=mixture: mixture.fit(held), 1))
    print(f"scikit-learn {sklearn.__version__} on tensors, float32: fits of 1, 2, 3 steps {np.round(times, 3)} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--components", type=int, default=1024)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    device = torch.device(given.device)
    cuda = device.type == "cuda"
    d = 128
    rng = np.random.default_rng(0)
    X = rng.standard_normal((given.rows, d), dtype=np.float32)
    means = rng.standard_normal((given.components, d))
    parts = (np.full(given.components, -np.log(given.components)), means, rng.uniform(0.5, 2, means.shape))

    cpu = torch.device("cpu")
    few = TensorRows((X[:20_000],), device).total(diagonal(parts, device), 4096)[1]
    few_here = TensorRows((X[:20_000],), cpu).total(diagonal(parts, cpu), 4096)[1]
    error = np.abs(few - few_here).max() / np.abs(few_here).max()
    print(f"largest error of sums beside the CPU: {error:.1e}", flush=True)

    rate = product_rate(torch.float64, device) if cuda else 1e10
    single = product_rate(torch.float32, device) if cuda else 1e10
    print(f"large products: float64 {rate / 1e12:.1f} TFLOP/s, float32 {single / 1e12:.1f} TFLOP/s", flush=True)
    operations = 8 * given.rows * d * given.components
    work = diagonal(parts, device)
    rows = TensorRows((X,), device, resident=True)
    for chunk in (8192, 32768, 131072):
        rows.total(work, chunk)
        taken = seconds(lambda chunk=chunk: rows.total(work, chunk))
        print(
            f"E-step, float64, chunks of {chunk}: {taken * 1e3:.1f} ms, {taken * rate / operations:.2f} times the "
            f"floor of its products, {operations / rate * 1e3:.1f} ms",
            flush=True,
        )
    near = cluster_sums(device, means, 0.5 * np.square(means).sum(axis=1))
    taken = seconds(lambda: rows.total(near))
    print(
        f"k-means step, float64: {taken * 1e3:.1f} ms, {taken * rate / (operations / 2):.2f} times its floor",
        flush=True,
    )
    streamed = TensorRows((X,), device, resident=False)
    taken = seconds(lambda: streamed.total(work))
    print(f"E-step, rows streamed from this side: {taken * 1e3:.1f} ms ({X.nbytes / taken / 1e9:.1f} GB/s)", flush=True)
    error = max(error, gmm_step(given.rows, device), domino_step(given.rows, device))
    if cuda:
        for allowed in (False, True):
            torch.backends.cuda.matmul.allow_tf32 = allowed
            taken, worst = single_precision(X, parts, device, 32768)
            print(f"E-step, float32, TF32 {allowed}: {taken * 1e3:.1f} ms; error of means {worst:.1e} sd", flush=True)
        torch.backends.cuda.matmul.allow_tf32 = False
        try:
            peer(X, given.components, device)
        except Exception as refused:  # any version may refuse in its own way
            print(f"scikit-learn's array API: {type(refused).__name__}: {str(refused)[:200]}")
    return 0 if error < 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())
