"""What is audited in the studies of Defuse: pictures with classes, classifiers of them, and an oracle that labels.

The classifier of digits learns from a fifth of the pictures until it is right on all of them, so that more training
alone can gain little; the paper's learns from all. Signs: those photographed at 40 px or more, since smaller ones
cannot be read. The oracle is two larger networks, taught with distorted and blurred training pictures; it never sees
the classifier, and says none of the above where it is not sure. Half of the test pictures choose the strength, the
other half is what numbers are of. Data: ERRATA_DATA, or ../shared/data.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

from errata.bench.tables import data_folder
from errata.defuse import DefuseSettings
from errata.defuse.vae import Architecture, fitting_architecture
from errata.train import fine_tune, fit
from trained import NARROW, untrained

Array = np.ndarray
Pictures = tuple[Array, Array]
SURE = 0.6  # of the oracle
LEARNT = 12_000  # digits
LEARNING_RATES = (1e-3, 1e-4)
CONVERGED = (12, 4)  # epochs at each of them
READABLE = 40  # px of the photograph


@dataclass(frozen=True)
class OracleSize:
    """What the labels of a study cost."""

    epochs: int
    width: int = 64  # channels of the first two convolutions of six
    batch: int = 512


@dataclass(frozen=True, eq=False)
class Study:
    """Pictures with classes, how the audited classifier is trained, and what is set for them."""

    train: Pictures  # of the classifier, and of its correction
    drawn: Pictures  # of the oracle, and of the VAE unless `generated` says of how many
    validation: Pictures
    test: Pictures
    network: Callable[[int], nn.Module]  # by its seed
    taught: Callable[[nn.Module, int, str], nn.Module]  # by seed and device
    prepare: Callable[[torch.Tensor], torch.Tensor]
    settings: DefuseSettings
    architecture: Architecture
    oracle: OracleSize
    trained: str  # how the classifier was, to know its file by
    generated: int | None = None  # pictures that the VAE learns from. Default: all


def mnist_network(seed: int) -> nn.Module:
    layers: list[nn.Module] = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for inside in (1, 64, 64):
            layers += [nn.Conv2d(inside, 64, 4, 2, 1), nn.ReLU()]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(576, 256), nn.ReLU(), nn.Linear(256, 10))


def mnist(toy: bool = False, converged: Sequence[int] = CONVERGED) -> Study:
    """converged: epochs of the classifier at each learning rate; (1, 0) is one that is not."""
    with np.load(data_folder() / "mnist.npz", allow_pickle=False) as file:
        drawn = _shuffled((file["x_train"], file["y_train"]))
        test = (file["x_test"], file["y_test"])
    if toy:
        drawn = drawn[0][:400], drawn[1][:400]
    train = drawn[0][:LEARNT], drawn[1][:LEARNT]
    (validation, kept) = _halves(_shuffled(test))

    def prepare(pixels: torch.Tensor) -> torch.Tensor:
        return (pixels - 0.1307) / 0.3081

    def taught(model: nn.Module, seed: int, device: str) -> nn.Module:
        options = {"prepare": prepare, "batch": 64, "device": device, "seed": seed, "validation": validation}
        for lr, epochs in zip(LEARNING_RATES, converged, strict=True):
            if epochs:  # the last one: what chooses between epochs is not what is studied
                model, _ = fine_tune(model, train, prefer=lambda epoch: epoch.number, epochs=epochs, lr=lr, **options)
        return model

    architecture = fitting_architecture(28, 28, 1)
    given = (train, drawn, validation, kept, mnist_network, taught, prepare, DefuseSettings(), architecture)
    return Study(*given, oracle=OracleSize(epochs=10), trained=f"{tuple(converged)} epochs")


def published_mnist(toy: bool = False) -> Study:
    """The paper's classifier, which learns from all pictures; all are searched around, too."""
    study = mnist(toy)
    taught = partial(taught_as_published, train=study.drawn, prepare=study.prepare)
    return replace(study, train=study.drawn, network=published_network, taught=taught, trained="5 epochs of Adadelta")


def published_network(seed: int) -> nn.Module:
    """Figure 8 of the paper, with ten outputs in place of the twenty that it prints."""
    layers: list[nn.Module] = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for inside in (1, 64, 64, 64):
            layers += [nn.Conv2d(inside, 64, 4, 2, 1), nn.ReLU()]
        layers += [nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)]
        return nn.Sequential(*layers)


def taught_as_published(
    model: nn.Module, seed: int, device: str, *, train: Pictures, prepare: Callable[[torch.Tensor], torch.Tensor]
) -> nn.Module:
    """Adadelta with a rate of 1, five epochs, 64 a batch (appendix B.2 of the paper)."""
    model.to(device)
    pixels = prepare(torch.from_numpy(train[0])[:, None].to(device).float() / 255)
    labels = torch.from_numpy(train[1]).to(device)
    optimiser = torch.optim.Adadelta(model.parameters(), lr=1.0)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(5):
        for rows in torch.randperm(len(labels), generator=generator).to(device).split(64):
            loss = functional.cross_entropy(model(pixels[rows]), labels[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return model


def signs(toy: bool = False, slim: bool = False) -> Study:
    """slim: a ResNet-18 a quarter as wide, trained for fewer epochs."""
    blobs, labels, learnt = read_signs()
    pictures = np.stack([_stretched(blob) for blob in blobs])
    train = _shuffled((pictures[learnt], labels[learnt]))
    if toy:
        train = train[0][:400], train[1][:400]
    validation, kept = _halves(_shuffled((pictures[~learnt], labels[~learnt])))

    def new(seed: int) -> nn.Module:
        return untrained(NARROW if slim else "resnet18", px=32, outputs=43, seed=seed)

    epochs = 10 if slim else 15
    if toy:
        epochs = 3

    def taught(model: nn.Module, seed: int, device: str) -> nn.Module:
        fit(model, *train, epochs=epochs, batch=128, lr=2e-3, device=device, seed=seed)
        return model

    strengths = (1e-6, 1e-4, 1e-2, 0.1, 1.0, 5.0, 20.0)
    settings = DefuseSettings(latent=64, beta=1.0, epochs=120, batch=128, q=30, cap=10, tau=0.02, strengths=strengths)
    architecture = replace(
        fitting_architecture(32, 32, 3, settings.latent), channels=128, hidden=512, likelihood="gaussian", sigma=0.05
    )
    given = (train, train, validation, kept, new, taught, lambda x: 4 * x - 2, settings, architecture)
    return Study(*given, oracle=OracleSize(epochs=40), trained=f"{epochs} epochs")


def read_signs() -> tuple[list[bytes], Array, Array]:
    """PNG bytes, labels, and which rows are of the training split; of signs that were photographed large enough."""
    packed = data_folder() / "gtsrb32.npz"
    if packed.exists():
        with np.load(packed, allow_pickle=False) as file:
            ends = file["ends"]
            whole = file["blob"].tobytes()
            blobs = [whole[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
            return blobs, file["labels"], file["learnt"]
    import pandas as pd

    table = pd.read_parquet(data_folder() / "gtsrb32.parquet")
    table = table[table[["original_width", "original_height"]].min(axis=1) >= READABLE]
    return list(table.image), table.label.to_numpy().astype(np.int64), (table.split == "train").to_numpy()


def pack(folder: Path) -> None:
    blobs, labels, learnt = read_signs()
    ends = np.cumsum([len(blob) for blob in blobs])
    blob = np.frombuffer(b"".join(blobs), np.uint8)
    np.savez_compressed(folder / "gtsrb32.npz", blob=blob, ends=ends, labels=labels, learnt=learnt)


def shortened(study: Study) -> Study:
    few = {
        name: tuple(part[:200] for part in getattr(study, name)) for name in ("train", "drawn", "validation", "test")
    }
    small = {"epochs": 2, "q": 5, "cap": 3, "components": 5, "steps": 5, "strengths": (1e-6, 1.0), "tune_epochs": 1}
    return replace(study, **few, settings=replace(study.settings, **small), oracle=OracleSize(1))


def _stretched(blob: bytes) -> Array:
    """From black to white: some signs were photographed at night."""
    pixels = np.asarray(Image.open(io.BytesIO(blob)).convert("RGB")).astype(np.float32)
    low, high = np.quantile(pixels, (0.01, 0.99))
    return np.clip(255 * (pixels - low) / max(high - low, 1), 0, 255).astype(np.uint8)


def _shuffled(given: Pictures) -> Pictures:
    """Files go class by class."""
    order = np.random.default_rng(0).permutation(len(given[1]))
    return given[0][order], given[1][order].astype(np.int64)


def _halves(given: Pictures) -> tuple[Pictures, Pictures]:
    half = len(given[1]) // 2
    return (given[0][:half], given[1][:half]), (given[0][half:], given[1][half:])


class Oracle:
    """Two networks that must agree to be sure."""

    def __init__(self, study: Study, device: str, output: Path, seed: int = 100):
        images = study.drawn[0] if study.drawn[0].ndim == 4 else study.drawn[0][..., None]
        self.device = device
        self.colours = images.shape[-1]
        self.pixels = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous().to(device)
        self.labels = torch.from_numpy(study.drawn[1]).to(device)
        self.classes = int(study.drawn[1].max()) + 1
        self.size = study.oracle
        self.models = []
        for own in (seed, seed + 1):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(own)
                model = self._new().to(device)
            path = output / f"oracle-{own}.safetensors"
            about = f"{self.size}, {len(self.labels)} pictures"
            self.models.append(stored(path, about, model, partial(self._taught, seed=own)).eval())

    def __call__(self, images: Array) -> Array:
        probs = self._probs(images)
        sure = probs.max(axis=1)
        label = probs.argmax(axis=1)
        return np.where(sure >= SURE, label, -1)

    def accuracy(self, given: Pictures) -> float:
        images = given[0] if given[0].ndim == 4 else given[0][..., None]
        return float((self._probs(images).argmax(axis=1) == given[1]).mean())

    @torch.no_grad()
    def _probs(self, images: Array) -> Array:
        parts = []
        for part in torch.from_numpy(np.ascontiguousarray(images)).split(4096):
            pixels = part.permute(0, 3, 1, 2).to(self.device).float() / 255
            parts.append(torch.stack([model(pixels).softmax(dim=1) for model in self.models]).mean(dim=0).cpu())
        return torch.cat(parts).numpy()

    def _taught(self, model: nn.Module, seed: int) -> nn.Module:
        chance = torch.Generator(self.device).manual_seed(seed)
        steps = -(-len(self.labels) // self.size.batch)
        optimiser = torch.optim.Adam(model.parameters())
        rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=self.size.epochs * steps)
        for _ in range(self.size.epochs):
            order = torch.randperm(len(self.labels), generator=chance, device=self.device)
            for rows in order.split(self.size.batch):
                with torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=self.device != "cpu"):
                    logits = model(self._distorted(self.pixels[rows].float() / 255, chance))
                loss = functional.cross_entropy(logits.float(), self.labels[rows], label_smoothing=0.05)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()
                rate.step()
        return model

    def _new(self) -> nn.Module:
        layers: list[nn.Module] = []
        inside = self.colours
        for width in np.repeat([self.size.width, 2 * self.size.width, 4 * self.size.width], 2).tolist():
            layers += [nn.Conv2d(inside, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            if inside == width:
                layers.append(nn.MaxPool2d(2))
            inside = width
        cells = inside * (self.pixels.shape[-1] // 8) ** 2
        head = [nn.Dropout(0.3), nn.Linear(cells, 256), nn.ReLU(), nn.Dropout(0.3), nn.Linear(256, self.classes)]
        return nn.Sequential(*layers, nn.Flatten(), *head)

    def _distorted(self, pixels: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
        """Turned, sheared, stretched, moved, blurred, and of other contrast."""
        n = len(pixels)

        def some(*shape: int) -> torch.Tensor:
            return torch.rand(n, *shape, device=pixels.device, generator=chance) - 0.5

        angle = some() * 0.5
        sizes = 1 + some(2) * 0.3
        turn = torch.zeros(n, 2, 3, device=pixels.device)
        turn[:, 0, 0] = angle.cos() * sizes[:, 0]
        turn[:, 1, 1] = angle.cos() * sizes[:, 1]
        turn[:, 0, 1] = some() * 0.5 - angle.sin()
        turn[:, 1, 0] = angle.sin()
        turn[:, :, 2] = some(2) * 0.25
        border = "border" if self.colours == 3 else "zeros"
        grid = functional.affine_grid(turn, list(pixels.shape), align_corners=False)
        moved = functional.grid_sample(pixels, grid, align_corners=False, padding_mode=border)
        blurred = functional.avg_pool2d(functional.pad(moved, (2, 2, 2, 2), mode="replicate"), 5, 1)
        share = some(1, 1, 1) + 0.5
        return (moved * share + blurred * (1 - share)).clamp(1e-6, 1) ** torch.exp(0.8 * some(1, 1, 1))


def stored(path: Path, about: str, model: nn.Module, train: Callable[[nn.Module], nn.Module]) -> nn.Module:
    """A network trained and saved; where that was done before, its weights: a study that was stopped goes on."""
    if path.exists():
        with safe_open(path, "pt") as file:
            before = file.metadata()["about"]
        if before != about:
            raise SystemExit(f"{path} is of {before}, not of {about}; give another --output")
        model.load_state_dict(load_file(path))
        return model
    model = train(model)
    weights = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    save_file(weights, path, metadata={"about": about})
    return model


def coloured(images: Array) -> Array:
    return images if images.ndim == 4 else images[..., None]
