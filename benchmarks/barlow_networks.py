"""Networks for the studies of robust features: CIFAR-10 and faces, l2-robust and standard, trained by one recipe.

    python benchmarks/barlow_networks.py cifar10 --radius .5 -o OUT [--seed 0] [--device cuda]
    python benchmarks/barlow_networks.py utkface --radius 0 -o OUT        its standard twin: the same, without attacks
    python benchmarks/barlow_networks.py pack -o FOLDER                   pictures for a machine without parquet

Writes OUT/NAME.npz (features, logits and labels of held-out rows, in half precision), OUT/NAME.weights.npz and
OUT/NAME.json: accuracy of held-out rows, clean and attacked, with n and its 95% interval. A ResNet-18 of 40 to 320
channels, pictures of 32 px (CIFAR-10) and 64 px (faces, eight spans of age). Data: ERRATA_DATA, or ../shared/data.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from errata.bench.tables import data_folder
from errata.train import Epoch, ResNet18, fit_robust, outputs, robust_accuracy

Array = np.ndarray
AGES = (4, 13, 21, 28, 36, 46, 60)  # eight spans of about one size
WIDTHS = (40, 80, 160, 320)  # 4.4 million weights: 9 MB in half precision
TRAIN_STEPS = 4
ATTACK_STEPS = 50
ATTACKED = 5_000  # held-out rows
RADII = (0.25, 0.5, 1.0)  # of those attacks


@dataclass(frozen=True)
class Data:
    """How many rows are learnt from, and for how long."""

    file: str
    px: int
    learnt: int
    epochs: int
    batch: int
    lr: float


DATA = {
    "cifar10": Data("cifar10", 32, 40_000, 24, 512, 2e-3),
    "utkface": Data("utkface64", 64, 15_803, 20, 256, 2e-3),
}


def pack(folder: Path) -> None:
    """The pictures' bytes in one array, which compresses as well as the table did."""
    import pandas as pd

    for data in DATA.values():
        table = pd.read_parquet(data_folder() / f"{data.file}.parquet")
        if "age" in table:
            labels = np.searchsorted(AGES, table.age, side="right")
        else:
            labels = np.unique(table.label, return_inverse=True)[1]
        ends = np.cumsum([len(blob) for blob in table.image])
        blob = np.frombuffer(b"".join(table.image), np.uint8)
        np.savez_compressed(folder / f"{data.file}.npz", blob=blob, ends=ends, labels=labels.astype(np.int64))


def read(name: str, folder: Path | None = None) -> tuple[Array, Array]:
    """(n, px, px, 3) bytes and (n,) classes, in an order that is the same for all."""
    data = DATA[name]
    packed = (folder or Path.cwd()) / f"{data.file}.npz"
    if not packed.exists():
        packed = data_folder() / f"{data.file}.npz"
    if packed.exists():
        with np.load(packed, allow_pickle=False) as file:
            labels = file["labels"]
            ends = file["ends"]
            whole = file["blob"].tobytes()
        blobs = [whole[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    else:
        import pandas as pd

        table = pd.read_parquet(data_folder() / f"{data.file}.parquet")
        blobs = list(table.image)
        labels = np.searchsorted(AGES, table.age, side="right") if "age" in table else None
        if labels is None:
            labels = np.unique(table.label, return_inverse=True)[1]
    images = np.stack([np.asarray(Image.open(io.BytesIO(blob)).convert("RGB")) for blob in blobs])
    order = np.random.default_rng(0).permutation(len(labels))
    return images[order], np.asarray(labels, dtype=np.int64)[order]


def split(name: str, rows: tuple[Array, Array], seed: int) -> tuple[tuple[Array, Array], tuple[Array, Array], Array]:
    """(learnt from), (held out), and which rows those are."""
    images, labels = rows
    order = np.random.default_rng(seed).permutation(len(labels))
    learnt = min(DATA[name].learnt, 2 * len(order) // 3)
    held = np.sort(order[learnt:])
    return (images[order[:learnt]], labels[order[:learnt]]), (images[held], labels[held]), held


def new_network(px: int, classes: int, seed: int, widths: tuple[int, ...] = WIDTHS) -> ResNet18:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return ResNet18(classes, px, widths)


def train(
    rows: tuple[Array, Array], radius: float, *, epochs: int, batch: int, lr: float, seed: int, device: str, **more: Any
) -> ResNet18:
    """Crops and flips for both; the standard twin has a radius of 0."""
    images, labels = rows
    model = new_network(images.shape[1], int(labels.max()) + 1, seed, **more)
    began = time.perf_counter()

    def tell(epoch: Epoch) -> None:
        print(
            f"  radius {radius:g}, seed {seed}, epoch {epoch.number + 1} of {epochs}: loss {epoch.loss:.3f}, "
            f"{time.perf_counter() - began:.0f} s",
            flush=True,
        )

    fit_robust(
        model, images, labels, radius=radius, steps=TRAIN_STEPS, epochs=epochs, batch=batch, lr=lr,
        shift=images.shape[1] // 8, flip=True, device=device, seed=seed, on_epoch=tell,
    )  # fmt: skip
    return model


def interval(share: float, n: int) -> tuple[float, float]:
    """Wilson's, 95%."""
    z = 1.959964
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return float(middle - half), float(middle + half)


def measured(
    model: torch.nn.Module,
    held: tuple[Array, Array],
    radii: tuple[float, ...],
    device: str,
    *,
    attacked: int = ATTACKED,
    steps: int = ATTACK_STEPS,
) -> list[dict[str, Any]]:
    """Accuracy of held-out rows: clean, and under an attack of more steps than in training."""
    found = []
    for radius in (0.0, *radii):
        rows = len(held[1]) if radius == 0 else min(attacked, len(held[1]))
        part = held[0][:rows], held[1][:rows]
        share = robust_accuracy(model, *part, radius, steps=steps, device=device, batch=1000)
        found.append({"radius": radius, "accuracy": share, "n": rows, "interval": interval(share, rows)})
    return found


def half_weights(model: ResNet18) -> dict[str, Array]:
    state = {name: value.cpu().numpy() for name, value in model.state_dict().items()}
    return {name: value.astype(np.float16) if value.dtype.kind == "f" else value for name, value in state.items()}


def load_weights(path: Path, px: int, classes: int) -> ResNet18:
    model = ResNet18(classes, px, WIDTHS)
    with np.load(path, allow_pickle=False) as file:
        model.load_state_dict({name: torch.from_numpy(file[name].astype(_kind(file[name]))) for name in file.files})
    return model.eval()


def _kind(value: Array) -> Any:
    return np.float32 if value.dtype.kind == "f" else value.dtype


def study(name: str, radius: float, asked: argparse.Namespace) -> None:
    """Train one network, measure it, and keep what it says of held-out rows."""
    rows = read(name, asked.data)
    if asked.toy:
        rows = rows[0][:200], rows[1][:200]
    learnt, held, held_rows = split(name, rows, asked.seed)
    data = DATA[name]
    options = {"epochs": 1 if asked.toy else data.epochs, "batch": data.batch // (8 if asked.toy else 1), "lr": data.lr}
    more = {"widths": (16, 16, 32, 32)} if asked.toy else {}
    began = time.perf_counter()
    model = train(learnt, radius, seed=asked.seed, device=asked.device, **options, **more)
    took = time.perf_counter() - began
    title = f"{name}-{radius:g}-{asked.seed}"
    facts = {"data": name, "radius": radius, "seed": asked.seed, "seconds": took, "learnt": len(learnt[1]), **options}
    facts |= {"steps": TRAIN_STEPS, "attack": ATTACK_STEPS}
    facts["accuracies"] = measured(model, held, RADII, asked.device)
    (asked.out / f"{title}.json").write_text(json.dumps(facts))
    logits, features = outputs(model, held[0], device=asked.device)
    numbers = {"features": features.astype(np.float16), "logits": logits.astype(np.float16)}
    np.savez_compressed(asked.out / f"{title}.npz", labels=held[1].astype(np.int8), rows=held_rows, **numbers)
    np.savez_compressed(asked.out / f"{title}.weights.npz", **half_weights(model))
    print(json.dumps(facts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*DATA, "pack"])
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--radius", type=float, default=0.5, help="L2, of pixels in [0, 1]; 0 for a standard network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--data", type=Path, help="a folder made by `pack`")
    parser.add_argument("--toy", action="store_true", help="few rows, to see that it runs")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    torch.backends.cudnn.benchmark = True
    if asked.what == "pack":
        pack(asked.out)
    else:
        study(asked.what, asked.radius, asked)


if __name__ == "__main__":
    main()
