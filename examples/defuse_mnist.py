"""From a trained classifier of digits to a corrected one, with a stronger model in place of people who label.

    python examples/defuse_mnist.py mnist.npz DIR      x_train, y_train, x_test and y_test, as MNIST is often stored
    python examples/defuse_mnist.py digits DIR         the small digits that come with scikit-learn: under a minute

With people, leave `oracle` out: the run stops, `errata serve DIR` shows what to label, and the same call goes on.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

from errata.defuse import defuse
from errata.train import fine_tune, measure_accuracy


def data(source: str) -> tuple[np.ndarray, np.ndarray]:
    """Images as bytes and their digits, in random order."""
    if source == "digits":
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
        images = (images.reshape(-1, 8, 8) * 255 / 16).astype(np.uint8)
    else:
        with np.load(source, allow_pickle=False) as file:
            images = np.concatenate([file["x_train"], file["x_test"]])
            labels = np.concatenate([file["y_train"], file["y_test"]])
    order = np.random.default_rng(0).permutation(len(labels))
    return images[order], labels[order].astype(np.int64)


def prepare(pixels: torch.Tensor) -> torch.Tensor:
    return (pixels - 0.13) / 0.31


def train_network(rows: tuple[np.ndarray, np.ndarray], width: int, epochs: int, seed: int) -> nn.Module:
    """Train a network of two convolutions."""
    torch.manual_seed(seed)
    cells = width * (-(-rows[0].shape[1] // 4)) ** 2
    layers = [nn.Conv2d(1, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1), nn.ReLU(), nn.Flatten()]
    model = nn.Sequential(*layers, nn.Linear(cells, 64), nn.ReLU(), nn.Linear(64, 10))
    return fine_tune(model, rows, validation=rows, prepare=prepare, epochs=epochs, batch=64)[0]


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def main(source: str, folder: str) -> None:
    images, labels = data(source)
    small = len(labels) < 10_000
    shares = (0.25, 0.6, 0.8) if small else (0.1, 0.7, 0.85)
    parts = np.split(np.arange(len(labels)), [round(share * len(labels)) for share in shares])
    train, more, validation, test = ((images[part], labels[part]) for part in parts)
    model = train_network(train, 16, 8, seed=0)
    both = (np.concatenate([train[0], more[0]]), np.concatenate([train[1], more[1]]))
    stronger = train_network(both, 48, 12, seed=1)
    for name, network in (("classifier", model), ("oracle", stronger)):
        say(f"the {name} is right on {measure_accuracy(network, test, prepare=prepare):.0%} of test rows")

    def oracle(images: np.ndarray) -> np.ndarray:
        """A digit, or -1 where it is not sure."""
        pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
        with torch.no_grad():
            sure, digit = stronger(prepare(pixels)).softmax(dim=1).max(dim=1)
        return np.where(sure.numpy() > 0.6, digit.numpy(), -1)

    run = defuse(model, train, Path(folder), validation=validation, test=test, prepare=prepare, oracle=oracle)
    say(run.words)
    changes = () if run.comparison is None else run.comparison.changes
    for change in changes:
        say(f"{change.name}, n = {change.n}: {change.before_rate:.0%} wrong before, {change.after_rate:.0%} after")
    say(str(run.folder / "report.html"))


if __name__ == "__main__":
    torch.set_num_threads(min(2, torch.get_num_threads()))
    main(*(sys.argv[1:3] if len(sys.argv) > 2 else ("digits", tempfile.mkdtemp() + "/run")))
