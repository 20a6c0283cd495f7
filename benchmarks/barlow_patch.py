"""Heat maps and attacks of a feature that sees a planted patch, over networks (figures 3 and 4 of Barlow).

    python benchmarks/barlow_patch.py [--seeds 0 1 2 3 4]

The images and the small robust network of tests/explain/test_features.py (seed 0 is that of the tests): the area under
the curve of the first split's feature for the patch; of 100 images with the patch, the share of heat and of what an
attack changes that lies in the quarter that sees it, and how many of them the attack raises.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

import _support  # noqa: F401  # finds tests/support
from errata.tensors import Attribution, Ball
from errata.train import normalise_pixels
from support.patched_images import PX, planted_study
from trained import over_runs

NAMES = ("area under the curve", "heat in the quarter", "change in the quarter", "raised", "before", "after")


def measured(seed: int) -> tuple[float, ...]:
    """The figures of NAMES, of one network."""
    study = planted_study(seed)
    rows = study.rows(True)[:100]
    lens = Attribution(study.model, prepare=normalise_pixels)
    heat = lens.heat(study.images[rows], study.root)
    found, before, after, _ = lens.attack(study.images[rows], study.root, Ball(0.5, 20))
    change = np.square(found - study.images[rows] / 255)
    in_quarter = float(heat[:, :2, :2].sum() / heat.sum())
    changed = float(change[:, : PX // 2, : PX // 2].sum() / change.sum())
    area = float(study.areas()[study.root])
    return area, in_quarter, changed, float((after > before).mean()), float(before.mean()), float(after.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    torch.set_num_threads(1)
    rows = []
    for seed in parser.parse_args().seeds:
        rows.append(measured(seed))
        print(f"seed {seed}: " + ", ".join(f"{name} {v:.3f}" for name, v in zip(NAMES, rows[-1], strict=True)))
    if len(rows) > 1:
        for name, values in zip(NAMES, zip(*rows, strict=True), strict=True):
            print(f"{name}: {over_runs(values)}")


if __name__ == "__main__":
    main()
