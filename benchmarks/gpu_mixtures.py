"""E-steps of a diagonal Gaussian mixture and steps of k-means on one GPU: 1,000,000 x 128, 1,024 components.

    python benchmarks/gpu_mixtures.py [--rows 1000000] [--components 1024] [--device cuda]

Flash-GMM prints 152 ms an E-step on an A100. Floors: multiplications over what a large product reaches in the same
precision here, and the bytes of X over a copy's bandwidth. scikit-learn's mixture runs beside it through the array API
where it can. Exits 1 where sums differ from those of float64 on the CPU (20,000 rows) by more than 1e-9.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from errata.tensors.mixtures import TensorRows, diagonal_densities, nearness, weighted_sums, with_squares


def seconds(work: Callable[[], object], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - began)
    return float(np.median(taken))


def product_rate(dtype: torch.dtype, device: torch.device) -> float:
    """Operations a second of a large product."""
    a = torch.randn(8192, 8192, device=device, dtype=dtype)
    a @ a
    torch.cuda.synchronize()
    return 2 * 8192**3 / seconds(lambda: a @ a)


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
    rows = TensorRows((X,), device, chunk)
    mass, sums, _ = weighted_sums(rows, diagonal_densities(*parts, device), with_squares)
    exact = sums[:, : X.shape[1]] / mass[:, None]
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

    few = TensorRows((X[:20_000],), device, 4096)
    here = TensorRows((X[:20_000],), torch.device("cpu"), 4096)
    _, sums, _ = weighted_sums(few, diagonal_densities(*parts, device), with_squares)
    _, sums_here, _ = weighted_sums(here, diagonal_densities(*parts, torch.device("cpu")), with_squares)
    error = np.abs(sums - sums_here).max() / np.abs(sums_here).max()
    print(f"largest error of sums beside the CPU: {error:.1e}", flush=True)

    rate = product_rate(torch.float64, device) if cuda else 1e10
    single = product_rate(torch.float32, device) if cuda else 1e10
    print(f"large products: float64 {rate / 1e12:.1f} TFLOP/s, float32 {single / 1e12:.1f} TFLOP/s", flush=True)
    operations = 8 * given.rows * d * given.components
    densities = diagonal_densities(*parts, device)
    for chunk in (8192, 32768, 131072):
        rows = TensorRows((X,), device, chunk, resident=True)
        weighted_sums(rows, densities, with_squares)
        taken = seconds(lambda rows=rows: weighted_sums(rows, densities, with_squares))
        print(
            f"E-step, float64, chunks of {chunk}: {taken * 1e3:.1f} ms, {taken * rate / operations:.2f} times the "
            f"floor of its products, {operations / rate * 1e3:.1f} ms",
            flush=True,
        )
    rows = TensorRows((X,), device, 32768, resident=True)
    near = nearness(means, device)
    taken = seconds(lambda: weighted_sums(rows, near, lambda z: z.double(), hard=True))
    print(
        f"k-means step, float64: {taken * 1e3:.1f} ms, {taken * rate / (operations / 2):.2f} times its floor",
        flush=True,
    )
    streamed = TensorRows((X,), device, 32768, resident=False)
    taken = seconds(lambda: weighted_sums(streamed, diagonal_densities(*parts, device), with_squares))
    print(f"E-step, rows streamed from this side: {taken * 1e3:.1f} ms ({X.nbytes / taken / 1e9:.1f} GB/s)", flush=True)
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
