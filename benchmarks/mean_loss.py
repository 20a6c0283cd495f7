"""Does the verdict on a mean loss keep its level for losses of any shape? Beside Welch's t and the bootstrap-t.

    python benchmarks/mean_loss.py [--draws 2000] [--seed 0]

Prints, for each shape and size of a slice, how often each test finds a gap where there is none, by the level (1 is
right, above 1 is too often), and how often where a quarter of the slice's losses are high. The rest has 2,000 rows.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy import stats

from errata.core.mean_loss import compare_means, loss_cap

LEVELS = (0.05, 0.0025)
SHAPES = {
    "exponential": lambda rng, n: rng.exponential(1, n),
    "log-normal, 1": lambda rng, n: rng.lognormal(0, 1, n),
    "log-normal, 2": lambda rng, n: rng.lognormal(0, 2, n),
    "high, with a low tail": lambda rng, n: 5 - np.minimum(rng.exponential(1, n), 5),
    "1 of 20 is high": lambda rng, n: (rng.random(n) < 0.05).astype(float),
    "19 of 20 are high": lambda rng, n: (rng.random(n) < 0.95).astype(float),
}
RESAMPLES = 2000


def ours(inside, rest, level, rng):
    found = compare_means(inside, rest, 1.0, level)
    return found.interval[0] > 0


def welch(inside, rest, level, rng):
    return stats.ttest_ind(inside, rest, equal_var=False, alternative="greater").pvalue <= level


def bootstrap_t(inside, rest, level, rng):
    rest_variance = rest.var(ddof=1) / len(rest)
    resampled = inside[rng.integers(len(inside), size=(RESAMPLES, len(inside)))]
    spread = np.sqrt(resampled.var(axis=1, ddof=1) / len(inside) + rest_variance)
    ratios = (resampled.mean(axis=1) - inside.mean()) / np.maximum(spread, 1e-12)
    own = (inside.mean() - rest.mean()) / np.sqrt(inside.var(ddof=1) / len(inside) + rest_variance)
    return own > np.quantile(ratios, 1 - level)


TESTS = {"ours": ours, "Welch": welch, "bootstrap-t": bootstrap_t}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(args.seed)
    print(f"{'losses':24}{'rows':>5}  found by the level, at .05 and .0025; then the power there")
    for shape, draw in SHAPES.items():
        cap = max(loss_cap(draw(rng, 20_000)), 1e-9)
        for m in (30, 100, 400):
            found = {(name, kind): np.zeros(len(LEVELS)) for name in TESTS for kind in ("null", "gap")}
            for _ in range(args.draws):
                null = np.minimum(draw(rng, m), cap) / cap
                rest = np.minimum(draw(rng, 2000), cap) / cap
                gap = np.where(rng.random(m) < 0.25, 1 - rng.random(m) / 2, np.minimum(draw(rng, m), cap) / cap)
                for name, test in TESTS.items():
                    for i, level in enumerate(LEVELS):
                        found[name, "null"][i] += test(null, rest, level, rng)
                        found[name, "gap"][i] += test(gap, rest, level, rng)
            cells = []
            for name in TESTS:
                ratio = found[name, "null"] / args.draws / np.array(LEVELS)
                power = found[name, "gap"] / args.draws
                cells.append(f"{name} {ratio[0]:.2f} {ratio[1]:.1f}; {power[0]:.2f} {power[1]:.2f}")
            print(f"{shape:24}{m:>5}  {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
