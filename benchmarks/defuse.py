"""Defuse on MNIST and on traffic signs (Slack et al. 2021): regions, labels by an oracle, correction, before and after.

    python benchmarks/defuse.py mnist --seeds 0 1 2 --device cuda
    python benchmarks/defuse.py mnist --seeds 0 1 2 --device cuda --published     the paper's classifier and numbers
    python benchmarks/defuse.py mnist --seeds 0 1 2 --device cuda --published --raw     and its public code's pixels
    python benchmarks/defuse.py signs --seeds 0 1 2 --device cuda
    python benchmarks/defuse.py signs --seeds 0 1 2 --device cpu --slim       a ResNet-18 that a CPU can train
    python benchmarks/defuse.py pack --output FOLDER     signs for a machine without parquet
    python benchmarks/defuse.py time          the paper's volume on MNIST: 800 epochs, Q = 500 of 60,000 pictures
    python benchmarks/defuse.py mixture       the mixture beside scikit-learn's
    python benchmarks/defuse.py novelty --output FOLDER   of runs on digits there: are samples near to known mistakes
                                              because they are mistakes, or because the generator blurs?

The classifier, the VAE and the oracle are trained here. The classifier of digits learns from a fifth of the pictures
until it is right on all of them, so that more training alone can gain little; it is corrected on those rows. With
--published and without --epochs it is the paper's, which learns from all; with --raw it gets pixels as they are once
it is trained on normalised ones, as the public code does. The VAE learns from all pictures. Signs:
those photographed at 40 px or more, since smaller ones cannot be read. The oracle is two larger networks, taught with
distorted and blurred training pictures; it never sees the classifier, and says none of the above where it is not sure.
Half of the test pictures choose the strength, the other half is what numbers are of. Data: ERRATA_DATA, or
../shared/data.
"""

from __future__ import annotations

import argparse
import io
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
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
from errata.defuse import DefuseSettings, defuse
from errata.defuse.distil import distil
from errata.defuse.identify import Classifier, Noise, identify, predict_classes
from errata.defuse.novelty import novelty
from errata.defuse.settings import parse_setting
from errata.defuse.stages import RunFolder
from errata.defuse.vae import Architecture, Vae, decode_codes, encode_images, fit_vae, fitting_architecture, new_vae
from errata.train import fine_tune, fit, measure_accuracy
from trained import NARROW, untrained

Array = np.ndarray
Pictures = tuple[Array, Array]
SURE = 0.6  # of the oracle
LEARNT = 12_000  # digits
LEARNING_RATES = (1e-3, 1e-4)
CONVERGED = (12, 4)  # epochs at each of them
READABLE = 40  # px of the photograph
MISTAKES = 516  # in figure 2 of the paper


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


STUDIES = {"mnist": mnist, "signs": signs}


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


def run(
    study: Study, oracle: Oracle, seed: int, device: str, folder: Path, vae_seed: int | None = None
) -> dict[str, object]:
    """vae_seed: of a VAE that seeds share; the method trains it without the classifier. Default: each has its own."""
    started = time.perf_counter()
    stages: dict[str, float] = {}

    def progress(stage: str, share: float) -> None:
        stages[stage] = time.perf_counter() - started

    about = f"{len(study.train[1])} pictures, {study.trained}"
    teach = partial(study.taught, seed=seed, device=device)
    model = stored(folder.with_suffix(".safetensors"), about, study.network(seed), teach)
    begun = stages["train the classifier"] = time.perf_counter() - started
    settings = replace(study.settings, seed=seed)
    found = defuse(
        model,
        study.train,
        folder,
        validation=study.validation,
        test=study.test,
        prepare=study.prepare,
        oracle=oracle,
        settings=settings,
        vae=taught_vae(study, replace(settings, seed=seed if vae_seed is None else vae_seed), device, folder.parent),
        device=device,
        progress=progress,
    )
    told = {"seed": seed, "stage": found.stage, "words": found.words, "facts": found.facts, "until": stages}
    told |= {"seconds": time.perf_counter() - started - begun, "vae": found_vae(folder)}
    told["test before"] = measure_accuracy(model, study.test, prepare=study.prepare, device=device)
    told["train before"] = measure_accuracy(model, study.train, prepare=study.prepare, device=device)
    if (folder / "samples.safetensors").exists():
        told["readable"] = readable(folder, oracle, study.validation, device)
    if (folder / "mistakes.json").exists():  # not where the generator was too poor to search with
        told["mistakes"] = json.loads((folder / "mistakes.json").read_text())["facts"]
    if found.comparison is not None:
        told["comparison"] = found.comparison.to_json()
        told["baseline"] = found.baseline and found.baseline.to_json()
    told["judged"] = [{k: v for k, v in asdict(one).items() if k != "agreement"} for one in found.judged]
    return told


def taught_vae(study: Study, settings: DefuseSettings, device: str, output: Path) -> Vae:
    """By all pictures, of which the classifier may have seen few, or by the first `generated` of them."""
    pictures = _coloured(study.drawn[0])[: study.generated]
    filled = settings.for_data(len(pictures))
    options = {name: getattr(filled, name) for name in ("epochs", "batch", "lr", "beta", "anneal", "seed")}

    def teach(vae: nn.Module) -> nn.Module:
        fit_vae(vae, pictures, device=device, **options)
        return vae

    about = f"{options}, {len(pictures)} pictures"
    return stored(output / f"vae-{settings.seed}.safetensors", about, new_vae(study.architecture, settings.seed), teach)


def readable(folder: Path, oracle: Oracle, given: Pictures, device: str) -> dict[str, float]:
    """What the oracle reads of pictures, and of what the VAE makes of them."""
    vae = Vae.from_state(RunFolder(folder).load("vae"))
    some = _coloured(given[0])[:2000], given[1][:2000]
    again = decode_codes(vae, encode_images(vae, some[0], device=device), device=device)
    shown = RunFolder(folder).load("samples").arrays["pictures"]
    named = (oracle(shown.reshape(-1, *shown.shape[2:])) >= 0).mean()
    return {
        "pictures": oracle.accuracy(some),
        "again": oracle.accuracy((again, some[1])),
        "samples named": float(named),
    }


def _coloured(images: Array) -> Array:
    return images if images.ndim == 4 else images[..., None]


def found_vae(folder: Path) -> dict[str, float]:
    return dict(json.loads((folder / "vae-told.json").read_text()))


def line(told: dict) -> str:
    """One seed."""
    regions = len(told["judged"])
    wrong = sum(one["verdict"] == "misclassified" for one in told["judged"])
    said = f"seed {told['seed']}: {wrong} of {regions} regions misclassified; {told['seconds']:.0f} s"
    for name in ("comparison", "baseline"):
        for change in (told.get(name) or {"changes": []})["changes"]:
            if change["id"] in ("test", "regions"):
                low, high = (100 * end for end in change["after_interval"])
                before = 100 * (1 - change["before_rate"])
                after = 100 * (1 - change["after_rate"])
                said += f"\n  {name}, {change['name']}: {before:.1f} -> {after:.1f}"
                said += f" ({100 - high:.1f} to {100 - low:.1f}), n = {change['n']:,}"
        said += further_training(told.get(name), name)
    share = told["vae"]["same_class"]
    said += f"\n  reconstructions that keep their class: {100 * share:.1f} of {told['vae']['pictures']:,}"
    said += f"; right on its own rows before: {100 * told['train before']:.1f}"
    if "oracle" in told["facts"]:
        said += f"\n  samples that the oracle calls as their region: {told['facts']['oracle']}"
    return said


def further_training(comparison: dict | None, name: str) -> str:
    """The weakest strength of a sweep, at which the regions count for nothing, and the others."""
    lines = ""
    for point in (comparison or {"facts": {"curve": []}})["facts"]["curve"]:
        lines += f"\n  {name} at {point['strength']:g}: test rows {100 * point['test']:.1f}"
        lines += f", region samples {100 * point['regions']:.1f}"
    return lines


def time_published(device: str) -> None:
    """Stage by stage; no labels, so no correction, which the studies time."""
    study = mnist()
    began = time.perf_counter()

    def say(what: str) -> None:
        nonlocal began
        print(f"{what}: {time.perf_counter() - began:.1f} s", flush=True)
        began = time.perf_counter()

    settings = DefuseSettings.as_published(beta=study.settings.beta, scale=study.settings.scale, centred=True)
    classifier = Classifier(study.taught(study.network(0), 0, device), study.prepare)
    say("classifier")
    vae = new_vae(study.architecture)
    given = {"epochs": settings.epochs, "batch": settings.batch, "beta": settings.beta, "anneal": settings.anneal}
    fit_vae(vae, study.drawn[0], device=device, **given)
    say(f"VAE, {settings.epochs} epochs")
    noise = Noise(settings.a, settings.b, settings.scale)
    found = identify(vae, classifier, *study.drawn, noise=noise, q=settings.q, cap=settings.cap, device=device)
    say(f"identification, {found.facts}")
    say(f"distillation, {len(distil(found, classes=10, device=device))} regions")


def mixture() -> None:
    """50,000 codes of 10 dimensions, 100 components: both from the same start, to the same answer."""
    from sklearn.mixture import BayesianGaussianMixture
    from threadpoolctl import threadpool_limits

    from errata.defuse.mixture import fit_mixture

    warnings.simplefilter("ignore")
    chance = np.random.default_rng(0)
    rows = chance.normal(size=(30, 10))[chance.integers(30, size=50_000)] * 2 + 0.4 * chance.normal(size=(50_000, 10))
    with threadpool_limits(limits=1):
        torch.set_num_threads(1)
        begun = time.perf_counter()
        ours = fit_mixture(rows, 100, steps=30, device="cpu")
        middle = time.perf_counter()
        theirs = BayesianGaussianMixture(n_components=100, max_iter=30, random_state=0).fit(rows)
        ended = time.perf_counter()
    ratio = (ended - middle) / (middle - begun)
    print(f"ours {middle - begun:.1f} s, scikit-learn {ended - middle:.1f} s: {ratio:.1f} times")
    print(f"largest difference of a mean: {np.abs(ours.means - theirs.means_).max():.1e}")


def nearness(seed: int, output: Path) -> None:
    """Distances from known mistakes of region samples, and of images that are right, as they are and reconstructed."""
    study = mnist()
    folder = output / f"defuse-mnist-{seed}"
    told = json.loads(folder.with_suffix(".json").read_text())
    model = study.network(seed)
    model.load_state_dict(load_file(folder.with_suffix(".safetensors")))
    classifier = Classifier(model, study.prepare)

    def predict(images: Array) -> Array:
        return predict_classes(classifier, images, device="cpu")

    pictures = study.train
    if (predict(_coloured(pictures[0])) == pictures[1]).all():
        pictures = study.validation
    images = _coloured(pictures[0])
    said = predict(images)
    wrong = said != pictures[1]
    known = images[wrong]
    vae = Vae.from_state(RunFolder(folder).load("vae"))
    held = _coloured(study.test[0])[predict(_coloured(study.test[0])) == study.test[1]][:2000]
    shown = RunFolder(folder).load("samples").arrays["pictures"]
    chosen = [number for number, one in enumerate(told["judged"]) if one["verdict"] == "misclassified"]
    groups = {
        "samples of misclassified regions": shown[chosen].reshape(-1, *shown.shape[2:]),
        "samples of all regions": shown.reshape(-1, *shown.shape[2:]),
        "test images that are right": held,
        "the same, reconstructed": decode_codes(vae, encode_images(vae, held, device="cpu"), device="cpu"),
    }
    print(f"seed {seed}: {len(known)} known mistakes")
    for name, group in groups.items():
        distances = novelty(group, known)
        same = (said[wrong][distances.nearest] == predict(group)).mean()
        farther = "too few known mistakes to compare"
        if distances.farther is not None:
            farther = f"{100 * distances.farther:.0f}% farther than known mistakes from each other"
            farther += f" (median {np.median(distances.usual):.2f})"
        print(f"  {name}: n = {len(group):,}; median distance {np.median(distances.distances):.2f}; {farther}")
        print(f"    {100 * same:.0f}% have the prediction of the nearest known mistake", flush=True)


def crowding(seed: int, output: Path) -> None:
    """Figure 2 of the paper in numbers: of the ten codes nearest to an identified mistake, how many are mistakes? One
    mistake an image, among the codes of 10,000 training images that have none."""
    folder = RunFolder(output / f"defuse-mnist-{seed}")
    arrays = folder.load("mistakes").arrays
    chance = np.random.default_rng(seed)
    order = chance.permutation(len(arrays["rows"]))
    first = order[np.unique(arrays["rows"][order], return_index=True)[1]]
    mistakes = arrays["codes"][chance.permutation(first)[:MISTAKES]]
    images = _coloured(mnist().train[0])
    others = np.setdiff1d(np.arange(len(images)), arrays["rows"])[:10_000]
    codes = np.concatenate([mistakes, encode_images(Vae.from_state(folder.load("vae")), images[others], device="cpu")])
    distances = np.square(mistakes[:, None] - codes[None]).sum(axis=2)
    nearest = np.argsort(distances, axis=1)[:, 1:11]  # the first is itself
    share = (nearest < len(mistakes)).mean()
    base = (len(mistakes) - 1) / (len(codes) - 1)
    print(
        f"seed {seed}: {len(mistakes)} mistakes; {share:.3f} of their ten nearest codes are mistakes, of all {base:.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*STUDIES, "time", "mixture", "pack", "novelty"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=device)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one of the settings")
    parser.add_argument("--published", action="store_true", help="the paper's settings instead of ours")
    parser.add_argument("--raw", action="store_true", help="the trained classifier gets pixels that are not normalised")
    parser.add_argument("--toy", action="store_true", help="few rows and steps, to see that it runs")
    parser.add_argument("--epochs", type=int, nargs=2, help="of the classifier of digits, at both learning rates")
    parser.add_argument("--slim", action="store_true", help="a smaller classifier of signs, that a CPU can train")
    parser.add_argument("--oracle-epochs", type=int, help="Default: 10 for digits, 40 for signs")
    parser.add_argument("--oracle-width", type=int, default=64, help="channels of its first convolutions")
    parser.add_argument("--oracle-batch", type=int, default=512)
    parser.add_argument("--vae-images", type=int, help="that the VAE learns from, the classifier's first. Default: all")
    parser.add_argument("--one-vae", action="store_true", help="that of the first seed for all seeds")
    parser.add_argument("--output", type=Path, default=Path("bench-results"))
    asked = parser.parse_args()
    if asked.what == "mixture":
        mixture()
        return
    if asked.what == "pack":
        pack(asked.output)
        return
    if asked.what == "novelty":
        for seed in asked.seeds:
            nearness(seed, asked.output)
            crowding(seed, asked.output)
        return
    if asked.what == "time":
        time_published(asked.device)
        return
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    study = STUDIES[asked.what](asked.toy)
    if asked.slim:
        study = signs(asked.toy, slim=True)
    elif asked.epochs:
        study = mnist(asked.toy, asked.epochs)
    elif asked.published and asked.what == "mnist":
        study = published_mnist(asked.toy)
    changed = {key: parse_setting(key, value) for key, _, value in (one.partition("=") for one in asked.set)}
    base = DefuseSettings.as_published() if asked.published else study.settings
    study = replace(study, settings=replace(base, **changed), generated=asked.vae_images)
    if asked.raw:
        study = replace(study, prepare=nn.Identity())
    if asked.toy:
        study = shortened(study)
    epochs = asked.oracle_epochs or study.oracle.epochs
    study = replace(study, oracle=OracleSize(epochs, asked.oracle_width, asked.oracle_batch))
    asked.output.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    oracle = Oracle(study, asked.device, asked.output)
    taken = time.perf_counter() - begun
    print(f"oracle: {oracle.accuracy(study.test):.4f} of the test half is right, {taken:.0f} s", flush=True)
    for seed in asked.seeds:
        suffix = "-published" * asked.published + "-raw" * asked.raw
        folder = asked.output / f"defuse-{asked.what}{suffix}-{seed}"
        told = run(study, oracle, seed, asked.device, folder, asked.seeds[0] if asked.one_vae else None)
        folder.with_suffix(".json").write_text(json.dumps(told, indent=1, default=float))
        print(line(told), flush=True)


if __name__ == "__main__":
    main()
