"""Why Defuse finds few misclassified regions with the paper's settings: each of them beside ours, on MNIST.

    python benchmarks/defuse_factors.py -o FOLDER [--seeds 0 1 2] [--epochs 5]

The weight of KL in the VAE (0 is what the public code amounts to, whose KL has no gradient), the noise (as published it
moves every code by one half in every dimension), the weight that a component needs and the spread of its samples are
crossed, for a classifier of one epoch, a converged one and one trained as in the paper, over the seeds of classifier
and search. Each cell counts misclassified regions by the oracle of defuse_pictures.py. Of identified mistakes
themselves the oracle says what they show: still the class of their source, so that the classifier is wrong; the class
that the classifier says, so that the generator has moved from one class to another; or neither. --raw: the classifier
gets decoded pixels as they are, though it was trained on normalised ones, which is what the public code does. Results
are appended to FOLDER/cells.jsonl, and a run that was stopped goes on. Nothing is corrected. Data: ERRATA_DATA, or
../shared/data beside the clone.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from defuse_pictures import Oracle, OracleSize, Study, mnist, published_mnist, stored
from errata.core.gaps import wilson
from errata.defuse.distil import distil
from errata.defuse.identify import Classifier, Noise, identify, predict_classes
from errata.defuse.labels import Vote, judge
from errata.defuse.regions import Mistakes, Regions
from errata.defuse.vae import Vae, decode_codes, encode_images, fit_vae, new_vae
from errata.train import measure_accuracy

Array = np.ndarray
BETAS = (4.0, 0.1, 0.0, 0.4)  # ours is .1; the paper prints 4 and .4 for digits
NOISES = {"centred, 2": Noise(scale=2.0), "as published": Noise(scale=1.0, centred=False)}
WEIGHTS = (0.003, 0.01)  # of a component that is a region: ours, the paper's
SPREADS = (0.05, 0.5)  # tau: ours, the paper's
CLASSIFIERS = {
    "one epoch": partial(mnist, converged=(1, 0)),
    "converged": partial(mnist, converged=(8, 2)),
    "the paper's": published_mnist,
}
SEARCHED = 3000  # images
Q = 50
SHOWN = 10
ASKED = 2000  # mistakes that the oracle is shown
ANNEAL = 500
BATCH = 128
ORACLE = OracleSize(epochs=4, width=16, batch=256)


def trained_vae(study: Study, beta: float, epochs: int, output: Path) -> Vae:
    """By all 60,000 images, in small batches: 2,345 steps in five epochs, a tenth of the paper's."""

    def teach(vae: nn.Module) -> nn.Module:
        images = study.drawn[0][..., None]
        fit_vae(vae, images, epochs=epochs, batch=BATCH, beta=beta, anneal=ANNEAL, device="cpu")
        return vae

    about = f"beta {beta}, {epochs} epochs of {BATCH}, {len(study.drawn[1])} pictures"
    return stored(output / f"vae-{beta:g}-{epochs}.safetensors", about, new_vae(study.architecture), teach)


def trained_classifier(name: str, seed: int, output: Path) -> nn.Module:
    study = CLASSIFIERS[name]()
    file = output / f"classifier-{name.replace(' ', '-')}-{seed}.safetensors"
    return stored(file, study.trained, study.network(seed), partial(study.taught, seed=seed, device="cpu"))


def cells(study: Study, oracle: Oracle, vae: Vae, classifier: Classifier, seed: int) -> Iterable[dict[str, Any]]:
    """One VAE and one classifier: a cell for every noise, least weight and spread."""
    images = study.train[0][:SEARCHED, ..., None]
    labels = study.train[1][:SEARCHED]
    predictions = predict_classes(classifier, images, device="cpu")
    again = predict_classes(classifier, decode_codes(vae, encode_images(vae, images)), device="cpu")
    for name, noise in NOISES.items():
        found = identify(vae, classifier, images, labels, noise=noise, q=Q, cap=20, device="cpu", seed=seed)
        same = float((predictions == again).mean())
        facts = {"noise": name, "same class": same, **found.facts, **content_of(vae, oracle, found)}
        regions = distil(found, classes=10, least=min(WEIGHTS), steps=200, seed=seed, device="cpu")
        for tau in SPREADS:
            verdicts = judged(vae, oracle, classifier, regions, tau, seed)
            for least in WEIGHTS:
                heavy = [verdict for verdict, weight in zip(verdicts, regions.weights, strict=True) if weight > least]
                counts = {verdict: heavy.count(verdict) for verdict in ("misclassified", "no common label")}
                yield {**facts, "tau": tau, "least": least, "regions": len(heavy), **counts}


def content_of(vae: Vae, oracle: Oracle, found: Mistakes) -> dict[str, int]:
    """What some identified mistakes show, by the oracle."""
    rows = np.random.default_rng(0).permutation(len(found))[:ASKED]
    labels = oracle(decode_codes(vae, found.codes[rows], device="cpu"))
    return {
        "asked": len(rows),
        "shows its source": int((labels == found.labels[rows]).sum()),
        "shows the prediction": int((labels == found.predictions[rows]).sum()),
    }


def judged(vae: Vae, oracle: Oracle, classifier: Classifier, regions: Regions, tau: float, seed: int) -> list[str]:
    """The verdict on every region, as a run has it."""
    codes = regions.samples(np.arange(len(regions)), SHOWN, "show", tau=tau, seed=seed)
    images = decode_codes(vae, codes, device="cpu")
    predictions = predict_classes(classifier, images, device="cpu").reshape(len(regions), SHOWN)
    labels = oracle(images).reshape(predictions.shape)
    votes = [
        Vote(id, sample, "oracle", int(label))
        for id, row in zip(regions.ids, labels, strict=True)
        for sample, label in enumerate(row)
    ]
    return [one.verdict for one in judge(regions.ids, votes, predictions)]


def run(asked: argparse.Namespace) -> None:
    path = asked.output / "cells.jsonl"
    asked.output.mkdir(parents=True, exist_ok=True)
    done = set()
    if path.exists():
        done = {key(json.loads(line)) for line in path.read_text().splitlines()}
    study = replace(mnist(), oracle=ORACLE)
    oracle = Oracle(study, "cpu", asked.output)
    print(f"oracle: {oracle.accuracy(study.test):.4f} of the test half is right", flush=True)
    for seed, beta, name in itertools.product(asked.seeds, asked.betas, asked.classifiers):
        about: dict[str, Any] = {"beta": beta, "vae epochs": asked.epochs, "classifier": name, "seed": seed}
        about["pixels"] = "raw" if asked.raw else "prepared"
        if key(about) in done:
            continue
        model = trained_classifier(name, seed, asked.output)
        about["right"] = measure_accuracy(model, study.test, prepare=study.prepare, device="cpu")
        about["right, raw"] = measure_accuracy(model, study.test, device="cpu")
        vae = trained_vae(study, beta, asked.epochs, asked.output)
        classifier = Classifier(model, None if asked.raw else study.prepare)
        rows = [{**about, **cell} for cell in cells(study, oracle, vae, classifier, seed)]
        with path.open("a") as file_:
            file_.writelines(json.dumps(row) + "\n" for row in rows)
        print(json.dumps(rows[0]), flush=True)


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("beta", "vae epochs", "classifier", "seed", "pixels"))


def report(path: Path) -> None:
    """Sums over seeds; Wilson's intervals for regions, whose seeds share images and generator."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in COLUMNS), []).append(row)
    head = [*COLUMNS, "seeds", "misclassified regions", "share", "no common label"]
    head += ["codes that are mistakes", "of them show their source", "the prediction", "keep their class"]
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for group, these in sorted(groups.items(), key=lambda item: tuple(map(str, item[0]))):
        total = {name: sum(row[name] for row in these) for name in (*COUNTED, "regions")}
        low, high = wilson(total["misclassified"], total["regions"]) if total["regions"] else (0.0, 1.0)
        each = ", ".join(f"{row['misclassified']} of {row['regions']}" for row in these)
        count = max(total["asked"], 1)
        shares = (total["found"] / total["tried"], total["shows its source"] / count)
        rest = [len(these), each, f"{low:.2f} to {high:.2f}", total["no common label"]]
        rest += [f"{share:.2f}" for share in (*shares, total["shows the prediction"] / count)]
        rest.append(f"{np.mean([row['same class'] for row in these]):.3f}")
        print("| " + " | ".join(map(str, [*group, *rest])) + " |")


COLUMNS = ("classifier", "pixels", "vae epochs", "beta", "noise", "least", "tau")
COUNTED = ("misclassified", "no common label", "tried", "found", "asked", "shows its source", "shows the prediction")


def report_effects(path: Path) -> None:
    """Each setting by itself: all cells that have it, beside the cells that differ in nothing else; all but the pixels
    of classifiers that get them as they were trained."""
    every = [json.loads(line) for line in path.read_text().splitlines()]
    for name in ("pixels", "classifier", "beta", "noise", "least", "tau"):
        rows = [row for row in every if name == "pixels" or row["pixels"] == "prepared"]
        others = [column for column in ("seed", *COLUMNS) if column != name]
        groups: dict[tuple[Any, ...], dict[Any, dict[str, Any]]] = {}
        for row in rows:
            groups.setdefault(tuple(row[column] for column in others), {})[row[name]] = row
        values = list(dict.fromkeys(row[name] for row in rows))
        whole = [group for group in groups.values() if len(group) == len(values)]
        print(f"\n{name}: {len(whole)} cells of each")
        for value in values if whole else ():
            wrong = sum(group[value]["misclassified"] for group in whole)
            total = sum(group[value]["regions"] for group in whole)
            low, high = wilson(wrong, total)
            print(
                f"  {value}: {wrong} of {total:,} regions misclassified, {wrong / total:.3f} ({low:.3f} to {high:.3f})"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--betas", type=float, nargs="+", default=BETAS)
    parser.add_argument("--epochs", type=int, default=5, help="of the VAE, on all 60,000 images")
    parser.add_argument("--classifiers", nargs="+", choices=list(CLASSIFIERS), default=list(CLASSIFIERS))
    parser.add_argument("--raw", action="store_true", help="the classifier gets pixels that are not normalised")
    parser.add_argument("--report", action="store_true", help="print what is there, and run nothing")
    asked = parser.parse_args()
    if not asked.report:
        run(asked)
    report(asked.output / "cells.jsonl")
    report_effects(asked.output / "cells.jsonl")


if __name__ == "__main__":
    main()
