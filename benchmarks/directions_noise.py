"""Light noise on part of CIFAR-10: do the flagged pictures have it (Jain et al. 2023, appendix B.3, with ImageNet-C)?

    python benchmarks/directions_noise.py

Ten classes; a tenth of the training rows and half of validation and test rows have Gaussian noise. Directions come from
10,000 validation rows, numbers from 10,000 test rows; --seeds: of training rows and network.
Data and cache as in benchmarks/directions_cifar.py; EfficientNet sees the noisy pictures too.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

import errata
from bridge import CLASSES, kept, seen, table
from directions_cifar import PX, ROWS, Pictures
from errata import Evaluation, Settings, Source, fix
from trained import Recipe, over_runs, seen_by

Array = np.ndarray
NOISE = 0.06  # standard deviation, of pixels from 0 to 1
# share of rows
NOISY_TRAIN = 0.1
NOISY = 0.5
RECIPE = Recipe(epochs=12)
TOP = (25, 50, 100)  # of a class
RANKINGS = ("directions, backbone", "confidence")


def disturbed(pixels: Array, seed: int) -> Array:
    noise = np.random.default_rng(seed).normal(0, 255 * NOISE, pixels.shape)
    return (pixels + noise).round().clip(0, 255).astype(np.uint8)


def as_png(pixels: Array) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def study(pictures: Pictures, seeds: Sequence[int], size: int) -> None:
    order = np.random.default_rng(0).permutation(ROWS)
    rows = np.concatenate([order[: ROWS // 5], np.arange(ROWS, len(pictures.fine))])  # to validate, then to test
    noisy = np.random.default_rng(1).random(len(rows)) < NOISY
    pixels = pictures.pixels[rows]
    features = pictures.features[rows]
    pixels[noisy] = disturbed(pixels[noisy], seed=2)
    noisy_features = pictures.folder / f"cifar10-{PX}px-noise{NOISE}.npy"
    features[noisy] = kept(noisy_features, lambda: seen([as_png(one) for one in pixels[noisy]], PX))
    shares = []
    accuracies = []
    for seed in seeds:
        train = np.random.default_rng(seed).permutation(order[ROWS // 5 :])[:size]
        said = seen_by(pictures.folder, RECIPE, noisy_rows(pictures, train, seed), pixels, seed=seed)
        both = Evaluation(
            labels=pictures.fine[rows],
            probs=said.probs,
            ids=rows,
            class_names=CLASSES,
            metadata={"noisy": noisy},
            representations={"backbone": features},
            sources={"backbone": Source(from_model=False)},
        )
        validation = both.rows(rows < ROWS)
        test = both.rows(rows >= ROWS)
        shares.append(noisy_shares(validation, test))
        accuracies.append([1 - test.errors[test.metadata["noisy"] == which].mean() for which in (False, True)])
    plain, with_noise = (over_runs(column) for column in np.transpose(accuracies))
    print(f"\naccuracy of plain test rows {plain}, of noisy ones {with_noise}")
    told = [[name, *map(over_runs, row)] for name, row in zip(RANKINGS, np.transpose(shares, (1, 2, 0)), strict=True)]
    table(["share of noisy rows by", *(f"{k} hardest of a class" for k in TOP), "as many as are flagged"], told)


def noisy_rows(pictures: Pictures, train: Array, seed: int) -> tuple[Array, Array]:
    pixels = pictures.pixels[train]
    some = round(NOISY_TRAIN * len(train))
    pixels[:some] = disturbed(pixels[:some], seed=seed + 3)
    return pixels, pictures.fine[train]


def noisy_shares(validation: Evaluation, test: Evaluation) -> Array:
    """(rankings, tops) of the hardest test rows of each class how many are noisy, in the mean over classes."""
    options = {"directions": {"slices": None, "permutations": 0}}
    settings = Settings(most=len(CLASSES))
    audit = errata.audit(validation, methods=["directions"], options=options, settings=settings)
    weights = errata.apply(audit, test)
    doubt = fix.by_confidence(test)
    shares = []
    for found in audit.slices:
        own = test.labels == found.rule["scope"]["label"]
        tops = (*TOP, int((weights[found.id] >= found.threshold).sum()))
        noisy = [test.metadata["noisy"][own][np.argsort(-values[own])] for values in (weights[found.id], doubt)]
        shares.append([[hardest[:k].mean() for k in tops] for hardest in noisy])
    return np.mean(shares, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000, help="to train on")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    study(Pictures.read(asked.cache), asked.seeds, asked.rows)


if __name__ == "__main__":
    main()
