"""Failure directions of a network trained on all of CIFAR-10, ten classes (Jain et al. 2023, figures 29 and 30).

    python benchmarks/directions_whole.py [--seeds 0 1] [--epochs 6]

The small network is trained on all 50,000 training images. Of the 10,000 test images one half fits a direction for each
class, in the space of EfficientNet-lite0, and the other half is counted: accuracy of the K rows of a class that lie
deepest on the hard side and on the easy side, beside as many by the network's confidence in the label, which reads the
outcome; and of the K rows nearest to the hardest and to the easiest caption. Captions are ImageNet's 1,000 class names,
by a bridge from the classifier's weights. Nothing was cut or planted. Wants what benchmarks/bridge.py wants; data:
ERRATA_DATA, or ../shared/data beside the clone.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

import bridge as bridging
import errata
from bridge import CLASSES, kept, table
from errata import Captions, Evaluation, Slice, Source
from errata.bench.tables import data_folder
from errata.explain.captions import Direction, caption_slice
from errata.explain.view import SliceView
from errata.inputs import Bridge
from errata.slicers.directions.slicer import Directions
from trained import Recipe, Seen, over_runs, seen_by

Array = np.ndarray
PX = 128  # as EfficientNet sees them
TOP = (25, 50, 100)  # of about 500 rows of a class
SPACE = "bridge"


@dataclass(frozen=True, eq=False)
class Pictures:
    """CIFAR-10 as it is, and what EfficientNet sees of its test images."""

    pixels: dict[str, Array]  # by split: (n, 32, 32, 3) bytes
    labels: dict[str, Array]
    features: Array  # (n, 1280) of test images
    folder: Path

    @classmethod
    def read(cls, folder: Path) -> Pictures:
        rows = pd.read_parquet(data_folder() / "cifar10.parquet").sample(frac=1, random_state=0)
        parts = {split: rows[rows.split == split] for split in ("train", "test")}
        pixels = {split: np.stack([opened(data) for data in part.image]) for split, part in parts.items()}
        labels = {split: part.label.map(CLASSES.index).to_numpy() for split, part in parts.items()}
        images = parts["test"].image.tolist()
        features = kept(folder / f"cifar10-test-{PX}px.npy", lambda: bridging.seen(images, PX))
        return cls(pixels, labels, features, folder)

    @cached_property
    def bridge(self) -> Bridge:
        weights = bridging.network()._fc.weight.detach().numpy()
        return Bridge.from_weights(weights, bridging.sentences(names()), method="cca").recentred(self.features)

    @cached_property
    def placed(self) -> Array:
        """(n, r) test images in the bridge's space."""
        return self.bridge.transform_images(self.features)

    @cached_property
    def captions(self) -> Captions:
        references = errata.explain.reference_captions(CLASSES)
        texts = [*dict.fromkeys(errata.explain.reference_captions(names())), *references]
        texts = list(dict.fromkeys(texts))
        return Captions(texts, self.place(texts), SPACE, references=references)

    def place(self, texts: Sequence[str]) -> Array:
        return self.bridge.transform_texts(bridging.sentences(texts))


def opened(data: bytes) -> Array:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def names() -> list[str]:
    frame = pd.read_csv(data_folder() / "imagenet_classes.csv").sort_values("label")
    return [str(name).partition(",")[0] for name in frame.name]


def evaluation(pictures: Pictures, found: Seen) -> Evaluation:
    """All test images."""
    return Evaluation(
        labels=pictures.labels["test"],
        probs=found.probs,
        class_names=CLASSES,
        representations={SPACE: pictures.placed, "backbone": pictures.features},
        sources={name: Source(from_model=False) for name in (SPACE, "backbone")},
    )


def accuracies(right: Array, order: Array) -> list[float]:
    """Of the first K of some rows in order, and of all of them."""
    return [float(right[order[:k]].mean()) for k in TOP] + [float(right[order].mean())]


def measured(pictures: Pictures, found: Seen, seed: int) -> Iterator[tuple[str, list[float]]]:
    """For every class and way: accuracy of its first K held-out rows."""
    whole = evaluation(pictures, found)
    searched = np.random.default_rng([seed, 1]).random(len(whole)) < 0.5
    right = ~whole.errors
    confidence = whole.probs[np.arange(len(whole)), whole.labels]
    machines = {
        space: Directions(slices=None, permutations=0, representation=space, seed=seed).fit(whole.rows(searched))
        for space in ("backbone", SPACE)
    }
    along = machines["backbone"].decisions(whole)
    texts = captioned(pictures, whole, searched, machines[SPACE])
    for j, rule in enumerate(machines["backbone"].rules_):
        label = rule["scope"]["label"]
        own = np.flatnonzero(~searched & (whole.labels == label))
        for name, values in (("direction", along[own, j]), ("confidence", confidence[own])):
            order = own[np.argsort(values, kind="stable")]
            yield f"{name}, hard", accuracies(right, order)
            yield f"{name}, easy", accuracies(right, order[::-1])
        for side, text in texts.get(label, {}).items():
            near = pictures.placed[own] @ pictures.place([text])[0]
            yield f"caption, {side}", accuracies(right, own[np.argsort(-near, kind="stable")])


def captioned(pictures: Pictures, whole: Evaluation, searched: Array, machine: Directions) -> dict[int, dict[str, str]]:
    """By class: its hardest and its easiest caption, where it has both."""
    weights = machine.membership(whole)
    captions: dict[int, dict[str, str]] = {}
    for j, rule in enumerate(machine.rules_):
        label = rule["scope"]["label"]
        slice_ = Slice(
            f"s{j}", machine.name, "", "not confirmed", machine.thresholds_[j], rule, weights[:, j], column=j
        )
        view = SliceView(slice_, whole, slice_.members, (whole.labels == label) & ~slice_.members, searched)
        facts = caption_slice(view, pictures.captions, Direction.of(slice_, machine.to_state().arrays)).to_json()
        if facts["hard"] and facts["easy"]:
            hard = min(facts["hard"], key=lambda row: row["score"])["text"]
            easy = max(facts["easy"], key=lambda row: row["score"])["text"]
            captions[label] = {"hard": hard, "easy": easy}
            print(f"{CLASSES[label]}: hardest {hard!r}, easiest {easy!r}", flush=True)
    return captions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    pictures = Pictures.read(asked.cache)
    curves: dict[str, list[list[float]]] = {}
    for seed in asked.seeds:
        training = pictures.pixels["train"], pictures.labels["train"]
        found = seen_by(asked.cache, Recipe(asked.epochs), training, pictures.pixels["test"], seed=seed)
        print(f"seed {seed}: right on {(found.probs.argmax(axis=1) == pictures.labels['test']).mean():.3f}", flush=True)
        for name, curve in measured(pictures, found, seed):
            curves.setdefault(name, []).append(curve)
    table(
        ["rows", *(f"{k}" for k in TOP), "all"],
        [[name, *map(over_runs, np.transpose(c))] for name, c in curves.items()],
    )
    for way in ("direction", "caption"):
        less = np.array(curves[f"{way}, easy"]) - np.array(curves[f"{way}, hard"])
        print(f"\n{way}: easy less hard " + ", ".join(f"{k}: {over_runs(less[:, i])}" for i, k in enumerate(TOP)))


if __name__ == "__main__":
    main()
