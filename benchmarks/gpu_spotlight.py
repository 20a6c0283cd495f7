"""Spotlight's published search on one GPU: 50,000 x 512, 5,000 steps.

    python benchmarks/gpu_spotlight.py [--rows 50000] [--steps 5000] [--device cuda]

Times the search of one light (median of five, each from the losses on the host to the light on the host, X on the
device), beside plain torch operations in a CUDA graph, an empty kernel per step, and one read of X per step. Exits 1
where the search takes more than .19 s, two runs differ by a bit, or its objective is below that of plain operations by
more than .001.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import torch

from _gpu import seconds
from errata.bench.loss_problems import planted
from errata.slicers.spotlight.device import DeviceRows, DeviceSearch
from errata.slicers.spotlight.shape import Sphere
from errata.slicers.spotlight.slicer import AdamSettings

MOST = 0.19


def objective(light: Sphere, rows: DeviceRows, losses: np.ndarray) -> float:
    k = rows.weights(light)
    return float(k @ losses / k.sum())


def launches(programs: int, steps: int) -> float:
    """Seconds of as many empty kernels, each waiting for the one before it."""
    counter = torch.zeros(programs, device="cuda")
    graph = torch.cuda.CUDAGraph()
    counter.add_(1)
    with torch.cuda.graph(graph):
        for _ in range(50):
            counter.add_(1)
    return seconds(lambda: [graph.replay() for _ in range(steps // 50)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    device = torch.device(given.device)
    X, rate, _ = planted(given.rows, 512, 40, {0.02: 0.6, 0.05: 0.5}, seed=0)
    X = X.astype(np.float32)
    losses = (np.random.default_rng(1).random(len(X)) < rate).astype(float)
    settings = AdamSettings(0.02 * len(X), 1.0, 1e-2, 10, given.steps, None)

    lights = {}
    times = {}
    for name, fused in (("kernel", None), ("plain operations", False)):
        began = time.perf_counter()
        rows = DeviceRows(X, device, fused)
        search = DeviceSearch(rows, settings)
        lights[name] = search.light(losses)
        print(f"{name}: the first light, with copying X and compiling, {time.perf_counter() - began:.2f} s", flush=True)
        repeats = 5 if fused is None else 1
        times[name] = seconds(lambda search=search: search.light(losses), repeats)
        again = search.light(losses)
        same = np.array_equal(again.centre, lights[name].centre) and again.factor == lights[name].factor
        value = objective(lights[name], rows, losses)
        mass = rows.weights(lights[name]).sum() / settings.size
        print(
            f"{name}: {times[name]:.4f} s, {times[name] / given.steps * 1e6:.2f} us a step; weighted loss {value:.5f}, "
            f"sum k / S {mass:.4f}; the same bytes again: {same}",
            flush=True,
        )
    if device.type == "cuda":
        on_device = torch.as_tensor(X, device=device)
        one_read = seconds(lambda: [on_device.sum() for _ in range(200)]) / 200
        print(f"one read of X by torch: {one_read * 1e6:.1f} us; in every step {one_read * given.steps:.3f} s")
        floor = launches(-(-len(X) // 128), given.steps)
        print(
            f"a small kernel for every step: {floor:.4f} s; the search takes {times['kernel'] / floor:.2f} times that"
        )
    worse = objective(lights["plain operations"], rows, losses) - objective(lights["kernel"], rows, losses)
    good = same and worse < 1e-3 and (device.type != "cuda" or times["kernel"] <= MOST)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
