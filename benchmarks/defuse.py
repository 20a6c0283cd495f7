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

The classifier, the VAE and the oracle are trained here; pictures, classifiers and oracle are those of
defuse_pictures.py. The classifier is corrected on the rows that it learnt from. With --published and without --epochs
it is the paper's, which learns from all pictures of digits; with --raw it gets pixels as they are once it is trained on
normalised ones, as the public code does. The VAE learns from all pictures. Data: ERRATA_DATA, or ../shared/data.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from defuse_pictures import (
    Array,
    Oracle,
    OracleSize,
    Pictures,
    Study,
    coloured,
    mnist,
    pack,
    published_mnist,
    shortened,
    signs,
    stored,
)
from errata.defuse import DefuseSettings, defuse
from errata.defuse.distil import distil
from errata.defuse.identify import Classifier, Noise, identify, predict_classes
from errata.defuse.novelty import Novelty, novelty
from errata.defuse.settings import parse_setting
from errata.defuse.stages import RunFolder
from errata.defuse.vae import Vae, decode_codes, encode_images, fit_vae, new_vae
from errata.train import measure_accuracy
from trained import over_runs

MISTAKES = 516  # in figure 2 of the paper
MISCLASSIFIED = "samples of misclassified regions"
SHIFTED = "noise as published"
CONTROLS = {"centred noise": Noise(scale=2.0), SHIFTED: Noise(scale=1.0, centred=False)}


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
    pictures = coloured(study.drawn[0])[: study.generated]
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
    some = coloured(given[0])[:2000], given[1][:2000]
    again = decode_codes(vae, encode_images(vae, some[0], device=device), device=device)
    shown = RunFolder(folder).load("samples").arrays["pictures"]
    named = (oracle(shown.reshape(-1, *shown.shape[2:])) >= 0).mean()
    return {
        "pictures": oracle.accuracy(some),
        "again": oracle.accuracy((again, some[1])),
        "samples named": float(named),
    }


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


def nearness(seed: int, output: Path) -> Array:
    """Distances from known mistakes of region samples, and of images that are right, as they are and reconstructed.

    Returns (r,) of each misclassified region the share of samples that are near a known mistake and predicted
    differently; empty where there are too few known mistakes to say what near is.
    """
    study = mnist()
    folder = output / f"defuse-mnist-{seed}"
    model = study.network(seed)
    model.load_state_dict(load_file(folder.with_suffix(".safetensors")))
    predict = partial(predict_classes, Classifier(model, study.prepare), device="cpu")
    pictures = study.train
    if (predict(coloured(pictures[0])) == pictures[1]).all():
        pictures = study.validation
    images = coloured(pictures[0])
    predictions = predict(images)
    wrong = predictions != pictures[1]
    print(f"seed {seed}: {wrong.sum()} known mistakes")
    shares = np.empty(0)
    for name, group in compared_images(study, folder, predict).items():
        distances = novelty(group, images[wrong])
        differs = predictions[wrong][distances.nearest] != predict(group)
        print_nearness(name, distances, differs)
        if name == MISCLASSIFIED and distances.farther is not None:
            shown = RunFolder(folder).load("samples").arrays["predictions"].shape[1]
            shares = near_and_different(distances, differs).reshape(-1, shown).mean(axis=1)
    if len(shares) > 1:
        print(f"    near and another, over {len(shares)} misclassified regions: {over_runs(shares)}", flush=True)
    return shares


def compared_images(study: Study, folder: Path, predict: Callable[[Array], Array]) -> dict[str, Array]:
    """(n, h, w, c) of a run: samples of regions, and test images that are right."""
    judged = json.loads(folder.with_suffix(".json").read_text())["judged"]
    chosen = [number for number, region in enumerate(judged) if region["verdict"] == "misclassified"]
    shown = RunFolder(folder).load("samples").arrays["pictures"]
    vae = Vae.from_state(RunFolder(folder).load("vae"))
    test = coloured(study.test[0])
    right = test[predict(test) == study.test[1]][:2000]
    return {
        MISCLASSIFIED: shown[chosen].reshape(-1, *shown.shape[2:]),
        "samples of all regions": shown.reshape(-1, *shown.shape[2:]),
        "test images that are right": right,
        "the same, reconstructed": decode_codes(vae, encode_images(vae, right, device="cpu"), device="cpu"),
    }


def print_nearness(name: str, distances: Novelty, differs: Array) -> None:
    """One group of images. differs: (m,) whether a prediction is another than that of the nearest known mistake."""
    farther = "too few known mistakes to compare"
    if distances.farther is not None:
        farther = f"{100 * distances.farther:.0f}% farther than known mistakes from each other"
        farther += f" (median {np.median(distances.usual):.2f})"
    print(f"  {name}: n = {len(differs):,}; median distance {np.median(distances.distances):.2f}; {farther}")
    print(f"    {100 * (1 - differs.mean()):.0f}% have the prediction of the nearest known mistake", flush=True)
    if distances.farther is not None:
        joint = near_and_different(distances, differs)
        print(f"    {100 * joint.mean():.0f}% are near and have another", flush=True)


def near_and_different(distances: Novelty, differs: Array) -> Array:
    """(m,) whether an image is no farther from a known mistake than those from each other, and predicted differently.

    differs: (m,) whether its prediction is another than that of the nearest known mistake.
    """
    near: Array = distances.distances <= np.median(distances.usual)
    return near & differs


def crowding(seed: int, output: Path, mapped: bool = True) -> dict[str, float]:
    """Figure 2 of the paper in numbers: of the ten codes nearest to an identified mistake, how many are mistakes? One
    mistake an image, among the codes of 10,000 training images that have none.

    The control has no mistakes: as many of those images with noise added to their codes, since noise alone, above all
    one whose mean is not 0, moves codes to a place of their own. mapped: mistakes, and the control with the paper's
    noise, also in a t-SNE, as in the paper.
    """
    folder = RunFolder(output / f"defuse-mnist-{seed}")
    arrays = folder.load("mistakes").arrays
    chance = np.random.default_rng(seed)
    order = chance.permutation(len(arrays["rows"]))
    first = order[np.unique(arrays["rows"][order], return_index=True)[1]]
    mistakes = arrays["codes"][chance.permutation(first)[:MISTAKES]]
    count = len(mistakes)
    images = coloured(mnist().train[0])
    others = np.setdiff1d(np.arange(len(images)), arrays["rows"])[:10_000]
    right = encode_images(Vae.from_state(folder.load("vae")), images[others], device="cpu")
    codes = {"mistakes": np.concatenate([mistakes, right])}
    right = right[chance.permutation(len(right))]
    for name, noise in CONTROLS.items():
        moved = right[:count] + noise.draw(chance, right[:count].shape)
        codes[f"right, {name}"] = np.concatenate([moved, right[count:]])
    shares = {name: crowd(rows, count) for name, rows in codes.items()}
    if mapped:
        for name in ("mistakes", f"right, {SHIFTED}"):
            shares[f"{name}, in a t-SNE"] = crowd(tsne(codes[name], seed), count)
    shares["of all"] = (count - 1) / (len(codes["mistakes"]) - 1)
    shares["of all, control"] = (count - 1) / (len(right) - 1)
    print(f"seed {seed}: of the ten nearest codes are of the same kind", flush=True)
    for name, share in shares.items():
        print(f"  {name}: {share:.3f}", flush=True)
    return shares


def crowd(codes: Array, count: int) -> float:
    """Of the ten codes nearest to each of the first `count`, the share that is among those."""
    from sklearn.neighbors import NearestNeighbors

    nearest = NearestNeighbors(n_neighbors=11).fit(codes).kneighbors(codes[:count], return_distance=False)
    return float((nearest[:, 1:] < count).mean())  # the first is itself


def tsne(codes: Array, seed: int) -> Array:
    from sklearn.manifold import TSNE

    positions: Array = TSNE(2, perplexity=30, init="pca", random_state=seed).fit_transform(codes)
    return positions


def report_novelty(seeds: Sequence[int], output: Path) -> None:
    near = {seed: nearness(seed, output) for seed in seeds}
    crowds = [crowding(seed, output) for seed in seeds]
    if len(seeds) < 2:
        return
    print(f"\nover {len(seeds)} classifiers:")
    pooled = np.concatenate(list(near.values()))
    if len(pooled) > 1:
        print(f"  near and predicted differently, over regions: {over_runs(pooled)}")
    for name in crowds[0]:
        print(f"  of the same kind, {name}: {over_runs([shares[name] for shares in crowds])}")


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["mnist", "signs", "time", "mixture", "pack", "novelty"])
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
    return parser


def pictures_of(asked: argparse.Namespace) -> Study:
    """Pictures and classifier, before any setting is changed."""
    if asked.what == "signs":
        return signs(asked.toy, slim=asked.slim)
    if asked.epochs:
        return mnist(asked.toy, asked.epochs)
    if asked.published:
        return published_mnist(asked.toy)
    return mnist(asked.toy)


def study_of(asked: argparse.Namespace) -> Study:
    study = pictures_of(asked)
    changed = {key: parse_setting(key, value) for key, _, value in (one.partition("=") for one in asked.set)}
    base = DefuseSettings.as_published() if asked.published else study.settings
    study = replace(study, settings=replace(base, **changed), generated=asked.vae_images)
    if asked.raw:
        study = replace(study, prepare=nn.Identity())
    if asked.toy:
        study = shortened(study)
    epochs = asked.oracle_epochs or study.oracle.epochs
    return replace(study, oracle=OracleSize(epochs, asked.oracle_width, asked.oracle_batch))


def run_seeds(asked: argparse.Namespace) -> None:
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    study = study_of(asked)
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


def main() -> None:
    parser = options()
    asked = parser.parse_args()
    if asked.slim and asked.what != "signs":
        parser.error(f"--slim is a classifier of signs, not of {asked.what}")
    if asked.epochs and asked.what != "mnist":
        parser.error(f"--epochs are of the classifier of mnist, not of {asked.what}")
    if asked.what == "mixture":
        mixture()
    elif asked.what == "pack":
        pack(asked.output)
    elif asked.what == "novelty":
        report_novelty(asked.seeds, asked.output)
    elif asked.what == "time":
        time_published(asked.device)
    else:
        run_seeds(asked)


if __name__ == "__main__":
    main()
