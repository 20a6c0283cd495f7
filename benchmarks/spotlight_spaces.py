"""Which layer a light is laid over, and how the model was trained: the questions at the end of d'Eon et al. 2022.

    python benchmarks/spotlight_spaces.py [news] [adult] [wine] [--seeds 0 1 2 3 4]

The models of benchmarks/spotlight_clusters.py, a perceptron of two layers. One light of the paper's size is searched on
one half of the rows that no model was trained on, by its own layer, by the principal axes of what the model reads, and
by the layer of an autoencoder of the same shape, which reads neither labels nor losses; and by the own layer of models
that another optimiser trained. Printed is what the light holds of the other half: its mean loss less that of all rows,
and its error rate less that of all rows.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from sklearn.decomposition import PCA
from torch import nn

from errata import Evaluation, Source
from errata.slicers import make
from spotlight_clusters import HIDDEN, OTHER, Array, Optimiser, Problem, adam, adult, methods, news, perceptron, wine
from spotlight_clusters import Case as ModelCase
from trained import over_runs

PROBLEMS: dict[str, Callable[[int], Problem]] = {"news": news, "adult": adult, "wine": wine}
OPTIMISERS: dict[str, Optimiser] = {
    "no weight decay": partial(torch.optim.Adam, lr=1e-3),
    "weight decay .01": partial(torch.optim.AdamW, lr=1e-3, weight_decay=0.01),
    "ten times the rate": partial(torch.optim.Adam, lr=1e-2, weight_decay=1e-4),
    "SGD with momentum": partial(torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=1e-4),
}
OWN = "own layer"


def autoencoder(problem: Problem, seed: int) -> Array:
    """(n, HIDDEN) the middle layer of a network that learned to give back what the model reads."""
    d = problem.X.shape[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encode = nn.Sequential(nn.Linear(d, 128), nn.ReLU(), nn.Linear(128, HIDDEN), nn.ReLU())
        decode = nn.Sequential(nn.Linear(HIDDEN, 128), nn.ReLU(), nn.Linear(128, d))
    rows = torch.from_numpy(problem.X.astype(np.float32))
    optimiser = adam([*encode.parameters(), *decode.parameters()])
    generator = torch.Generator().manual_seed(seed)
    for _ in range(problem.epochs):
        for batch in torch.randperm(len(rows), generator=generator).split(256):
            loss = (decode(encode(rows[batch])) - rows[batch]).square().mean()
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
    with torch.no_grad():
        return encode(torch.from_numpy(problem.asked.astype(np.float32))).numpy()


def axes(problem: Problem, seed: int) -> Array:
    """(n, HIDDEN) or fewer: principal axes of the training rows."""
    few = min(HIDDEN, problem.X.shape[1])
    return PCA(few, random_state=seed).fit(problem.X).transform(problem.asked)


def light(case: ModelCase, space: Array, seed: int) -> dict[str, float]:
    """What one light holds of the rows that were not searched, less what all of them hold."""
    rows = np.arange(len(case.labels))
    losses = -np.log(np.maximum(case.probs[rows, case.labels], 1e-12))
    errors = case.probs.argmax(axis=1) != case.labels
    searched = np.random.default_rng([seed, 3]).random(len(rows)) < 0.5
    whole = Evaluation(
        labels=case.labels,
        probs=case.probs,
        representations={"layer": space},
        sources={"layer": Source(from_model=space is case.hidden)},
    )
    _, method, options = methods(case)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights = make(method, seed=seed, options=options).fit(whole.rows(searched)).membership(whole)
    held = np.where(searched, 0.0, weights[:, 0])
    total = max(float(held.sum()), 1e-12)
    others = ~searched
    return {
        "loss": float(held @ losses) / total - float(losses[others].mean()),
        "error": float(held @ errors) / total - float(errors[others].mean()),
        "share": total / float(others.sum()),
        "all": float(errors[others].mean()),
    }


def measured(problem: Problem, seed: int) -> dict[str, dict[str, float]]:
    case = ModelCase(problem.labels, *perceptron(problem, seed), *OTHER, problem.kinds)
    spaces = {OWN: case.hidden, "principal axes": axes(problem, seed), "autoencoder": autoencoder(problem, seed)}
    lights = {name: light(case, space, seed) for name, space in spaces.items()}
    for name, optimiser in OPTIMISERS.items():
        other = ModelCase(problem.labels, *perceptron(problem, seed, optimiser), *OTHER, problem.kinds)
        lights[f"{OWN}, {name}"] = light(other, other.hidden, seed)
    return lights


def report(name: str, runs: list[dict[str, dict[str, float]]], rows: int) -> None:
    print(f"\n{name}: {rows:,} rows, a light is {OTHER[0]:.0%}; n = {len(runs)} models\n")
    print("| light by | its share | error of all | error beyond all | loss beyond all | less than by the own layer |")
    print("|---" * 6 + "|")
    for space in runs[0]:
        facts = {key: np.array([run[space][key] for run in runs]) for key in ("share", "all", "error", "loss")}
        less = over_runs(np.array([run[OWN]["loss"] for run in runs]) - facts["loss"])
        if space == OWN:
            less = ""
        means = f"{facts['share'].mean():.3f} | {facts['all'].mean():.3f}"
        print(f"| {space} | {means} | {over_runs(facts['error'])} | {over_runs(facts['loss'])} | {less} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", choices=[*PROBLEMS, []])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    asked = parser.parse_args()
    for name in asked.problems or PROBLEMS:
        runs = []
        for seed in asked.seeds:
            problem = PROBLEMS[name](seed)
            runs.append(measured(problem, seed))
        report(name, runs, len(problem.labels))


if __name__ == "__main__":
    main()
