"""A small robust model of CIFAR-10, or of any small pictures: trained, saved in half precision, and measured as saved.

python benchmarks/robust_cifar.py TRAIN.npz TEST.npz OUT.safetensors [--radius .5] [--epochs 40] [--device cuda]
Each .npz has `images` (n, px, px, 3) bytes and `labels` (n,) whole numbers from 0. Exits 1 where the file is 5 MB or
more, or where the model stands no attack better than guessing does.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from errata.train import NETWORKS, Epoch, fit_robust, network, robust_accuracy

MOST_BYTES = 5_000_000
ATTACK = {"steps": 20, "restarts": 2}  # of the final measurement; in training, weaker ones do


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return file["images"], file["labels"].astype(np.int64)


def print_epoch(began: float):
    def print_one(epoch: Epoch) -> None:
        print(
            f"epoch {epoch.number + 1:3d}  {time.perf_counter() - began:6.1f} s  loss {epoch.loss:.3f}  "
            f"clean {epoch.validation_accuracy:.3f}  robust {epoch.robust_accuracy:.3f} (weak attack)",
            flush=True,
        )

    return print_one


def save(model: torch.nn.Module, path: Path, facts: dict[str, str]) -> int:
    """In half precision where a number is one; the size of the file."""
    state = {}
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            state[name] = value.half()
        else:
            state[name] = value
    save_file({name: value.contiguous().cpu() for name, value in state.items()}, str(path), metadata=facts)
    return path.stat().st_size


def load(path: Path, name: str, px: int, classes: int) -> torch.nn.Module:
    model = network(name, px=px, outputs=classes)
    model.load_state_dict({key: value.float() for key, value in load_file(str(path)).items()})
    return model.eval()


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("train", type=Path)
    asked.add_argument("test", type=Path)
    asked.add_argument("out", type=Path)
    asked.add_argument("--network", choices=sorted(NETWORKS), default="resnet18-slim")
    asked.add_argument("--radius", type=float, default=0.5, help="L2, of pixels in [0, 1]")
    asked.add_argument("--steps", type=int, default=3, help="of the attack while training")
    asked.add_argument("--epochs", type=int, default=40)
    asked.add_argument("--batch", type=int, default=512)
    asked.add_argument("--lr", type=float, default=2e-3)
    asked.add_argument("--seed", type=int, default=0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    asked.add_argument("--device", default=device)
    given = asked.parse_args()
    (images, labels) = read(given.train)
    (fresh, truth) = read(given.test)
    px = images.shape[1]
    classes = int(labels.max()) + 1
    model = network(given.network, px=px, outputs=classes, seed=given.seed)
    began = time.perf_counter()
    fit_robust(
        model,
        images,
        labels,
        radius=given.radius,
        steps=given.steps,
        epochs=given.epochs,
        batch=given.batch,
        lr=given.lr,
        shift=px // 8,
        flip=True,
        device=given.device,
        seed=given.seed,
        validation=(fresh, truth),
        on_epoch=print_epoch(began),
    )
    facts = {"network": given.network, "px": str(px), "outputs": str(classes), "radius": str(given.radius)}
    size = save(model, given.out, facts)
    kept = load(given.out, given.network, px, classes)
    clean = robust_accuracy(kept, fresh, truth, 0.0, device=given.device)
    robust = robust_accuracy(kept, fresh, truth, given.radius, device=given.device, **ATTACK)
    print(f"{given.out}: {size / 1e6:.2f} MB, {time.perf_counter() - began:.0f} s in all on {given.device}")
    print(f"clean accuracy {clean:.4f}, robust accuracy at {given.radius} {robust:.4f} ({ATTACK}, {len(fresh):,} rows)")
    return int(size >= MOST_BYTES or robust <= 1 / classes)


if __name__ == "__main__":
    sys.exit(main())
