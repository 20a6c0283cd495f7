"""Spotlight as a training objective (d'Eon et al. 2022, future directions), beside other ways without group labels.

    python benchmarks/worst_group.py run -o RUNS.jsonl [--device cuda] [--workers 12] [--minutes 5]
    python benchmarks/worst_group.py run --lights .01 .1 --settings mnist-95      plain training and the light alone
    python benchmarks/worst_group.py report RUNS.jsonl
    python benchmarks/worst_group.py steady RUNS.jsonl    every option: the last epoch, how epochs differ, each epoch

Before every epoch a light is laid over the penultimate layer of the training rows, by what the network says of them
then; rows of the epoch are drawn in part by their weight under it. Beside it: plain training, the rows of highest loss
(a light without a place), JTT, LfF, and two that know the groups: drawn evenly, and group DRO.
Settings: digits below 5 or not, tinted red or green by their label in 90, 95 or 99 of 100 training rows (`noise`: a
quarter of all labels are wrong); faces old or young, with gender by age in 80 or 95 of 100. A group is a label and a
tint or gender. 5,000 rows to train and 1,000 (digits: 4,000) to choose by, drawn alike; test rows of their own.
Each method's options and epoch are chosen on validation rows, by their accuracy or (an upper bound, since that reads
groups) by that of their worst group. Data: ERRATA_DATA, or ../shared/data beside the clone. Wants torch.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from errata import Evaluation
from errata.slicers import make
from errata.train import generalised_cross_entropy, network, normalise_bytes
from trained import over_runs

Array = np.ndarray
ROWS = 5000  # to train on
CHOOSING = 1000
FACES = 3800  # of a group at most
BATCH = 128
EPOCHS = 10
LR = 1e-3
GROUPS = 4
GRAPHS = "WORST_GROUP_EAGER" not in os.environ  # the same steps without a CUDA graph, to compare
EMA = 0.7  # of LfF's losses
SETTINGS = ("mnist-90", "mnist-95", "mnist-99", "mnist-90-noise", "faces-80", "faces-95")
LIT = (0.02, 0.1, 0.3)  # size of a light
METHODS: dict[str, list[dict[str, Any]]] = {
    "plain": [{}],
    "balanced groups": [{}],
    "spotlight": [{"size": s, "share": a} for s, a in product(LIT, (0.5, 1.0))],
    "spotlight, remembered": [{"size": s, "share": 0.5} for s in LIT],
    "highest loss": [{"size": 0.1, "share": a} for a in (0.5, 1.0)],
    "JTT": [{"epochs": t, "times": h} for t, h in product((1, 2), (5, 20, 50))],
    "LfF": [{}],
    "group DRO": [{"rate": r} for r in (0.01, 0.1)],
}


# --- problems ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Part:
    pixels: Array  # (n, px, px, 3) bytes
    labels: Array  # (n,)
    groups: Array  # (n,) 2 x label + whether the spurious attribute agrees


@dataclass(frozen=True, eq=False)
class Problem:
    train: Part
    validation: Part
    test: Part


def problem(setting: str, seed: int, folder: Path) -> Problem:
    kind, percent, *noise = setting.split("-")
    share = int(percent) / 100
    rng = np.random.default_rng([seed, int(percent), len(noise)])
    if kind == "mnist":
        return tinted(read_digits(folder), share, 0.25 if noise else 0.0, rng)
    return faces(read_faces(folder), share, rng)


def tinted(digits: Mapping[str, Array], share: float, wrong: float, rng: np.random.Generator) -> Problem:
    # More to choose by than of faces: of 1,000 rows at 99 of 100, a group may have none.
    order = rng.permutation(len(digits["y_train"]))[: ROWS + 4 * CHOOSING]
    parts = {"train": order[:ROWS], "validation": order[ROWS:], "test": np.arange(len(digits["y_test"]))}
    found = {}
    for role, rows in parts.items():
        kind = "test" if role == "test" else "train"
        labels = (digits[f"y_{kind}"][rows] >= 5).astype(np.int64)
        labels = np.where(rng.random(len(rows)) < wrong, 1 - labels, labels)
        agrees = rng.random(len(rows)) < (0.5 if role == "test" else share)
        pixels = np.zeros((len(rows), 28, 28, 3), dtype=np.uint8)
        pixels[np.arange(len(rows)), :, :, np.where(agrees, labels, 1 - labels)] = digits[f"x_{kind}"][rows]
        found[role] = Part(pixels, labels, 2 * labels + agrees)
    return Problem(**found)


def faces(rows: Mapping[str, Array], share: float, rng: np.random.Generator) -> Problem:
    """A quarter of each group to test; old men and young women agree with what training rows say."""
    chosen: dict[str, list[Array]] = {"train": [], "validation": [], "test": []}
    for group in range(GROUPS):
        own = rng.permutation(np.flatnonzero(rows["groups"] == group))
        part = share if group % 2 else 1 - share
        counts = np.cumsum([len(own) // 4, round(ROWS / 2 * part), round(CHOOSING / 2 * part)])
        assert counts[-1] <= len(own), (group, counts, len(own))
        test, train, validation, _ = np.split(own, counts)
        for role, some in (("test", test), ("train", train), ("validation", validation)):
            chosen[role].append(some)
    found = {}
    for role, some in chosen.items():
        index = rng.permutation(np.concatenate(some))
        groups = rows["groups"][index]
        found[role] = Part(rows["pixels"][index], groups // 2, groups)
    return Problem(**found)


@cache
def read_digits(folder: Path) -> dict[str, Array]:
    return stored(folder / "worst-group-digits.npz", make_digits)


@cache
def read_faces(folder: Path) -> dict[str, Array]:
    return stored(folder / "worst-group-faces.npz", make_faces)


def stored(path: Path, prepare: Callable[[], dict[str, Array]]) -> dict[str, Array]:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **prepare())
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def make_digits() -> dict[str, Array]:
    from errata.bench.tables import data_folder

    with np.load(data_folder() / "mnist.npz", allow_pickle=False) as file:
        some = np.random.default_rng(0).permutation(len(file["y_train"]))[:12_000]  # the file goes digit by digit
        train = {"x_train": file["x_train"][some], "y_train": file["y_train"][some]}
        return {**train, "x_test": file["x_test"], "y_test": file["y_test"]}


def make_faces() -> dict[str, Array]:
    """Old is 45 and over, young 12 to 30, at 48 pixels; no other face."""
    import pandas as pd

    from errata.bench.tables import data_folder
    from faces import _small

    table = pd.read_parquet(data_folder() / "utkface64.parquet")
    old = (table.age >= 45).to_numpy()
    used = old | ((table.age >= 12) & (table.age <= 30)).to_numpy()
    male = (table.gender == "male").to_numpy()
    groups = np.where(used, 2 * old + (male == old), -1)
    rows = np.sort(np.concatenate([np.flatnonzero(groups == g)[:FACES] for g in range(GROUPS)]))
    return {"pixels": np.stack([_small(data) for data in table.image[rows]]), "groups": groups[rows].astype(np.int64)}


# --- training ------------------------------------------------------------------------------------------------


class Learner:
    """A network, its optimiser and a training step over rows that stay on the device; on a GPU the step is one graph.

    mode: `rows` every drawn row counts as much; `lff` a second, biased network says how much; `dro` its group's weight.
    """

    def __init__(self, px: int, mode: str, device: torch.device):
        self.device = device
        self.mode = mode
        self.px = px
        names = ("model", "biased") if mode == "lff" else ("model",)
        self.models = {name: network("small", px=px, outputs=2).to(device) for name in names}
        self.model = self.models["model"]
        self.optimisers = [new_optimiser(model, device) for model in self.models.values()]
        self.pixels = torch.zeros((ROWS, px, px, 3), dtype=torch.uint8, device=device)
        self.labels = torch.zeros(ROWS, dtype=torch.long, device=device)
        self.groups = torch.zeros(ROWS, dtype=torch.long, device=device)
        self.index = torch.zeros(BATCH, dtype=torch.long, device=device)
        self.group_weights = torch.full((GROUPS,), 1 / GROUPS, device=device)
        self.rate = torch.zeros((), device=device)
        self.past = torch.zeros((2, ROWS), device=device)  # of the biased network's losses and the model's
        self.gce = generalised_cross_entropy()
        self.graph: Any = None

    def start(self, part: Part, seed: int, rate: float = 0.0) -> None:
        """New weights, new rows."""
        self.pixels.copy_(torch.from_numpy(part.pixels))
        self.labels.copy_(torch.from_numpy(part.labels))
        self.groups.copy_(torch.from_numpy(part.groups))
        self._reset(seed, rate)
        if self.device.type == "cuda" and self.graph is None and GRAPHS:
            self._capture()
            self._reset(seed, rate)

    def _reset(self, seed: int, rate: float) -> None:
        self.rate.fill_(rate)
        self.group_weights.fill_(1 / GROUPS)
        self.past.zero_()
        for number, model in enumerate(self.models.values()):
            fresh = network("small", px=self.px, outputs=2, seed=seed + 1000 * number).to(self.device)
            with torch.no_grad():
                for old, new in zip(model.state_dict().values(), fresh.state_dict().values(), strict=True):
                    old.copy_(new)
            model.train()
        for optimiser in self.optimisers:
            for state in optimiser.state.values():
                for value in state.values():
                    value.zero_()

    def _capture(self) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        self.graph = graph

    def epoch(self, rows: Array) -> None:
        """One pass over rows that were drawn before, in whole batches."""
        drawn = torch.from_numpy(rows[: len(rows) // BATCH * BATCH].reshape(-1, BATCH)).to(self.device)
        for model in self.models.values():
            model.train()
        for batch in drawn:
            self.index.copy_(batch)
            if self.graph is None:
                self._step()
            else:
                self.graph.replay()

    def _step(self) -> None:
        x = normalise_bytes(self.pixels[self.index])
        y = self.labels[self.index]
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=False)
        losses = functional.cross_entropy(self.model(x), y, reduction="none")
        {"rows": self._plain, "dro": self._dro, "lff": self._lff}[self.mode](losses, x, y)
        for optimiser in self.optimisers:
            optimiser.step()

    def _plain(self, losses: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> None:
        torch.autograd.backward(losses.mean())

    def _dro(self, losses: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> None:
        """Sagawa et al. 2020: a group's weight grows with its loss."""
        one_hot = functional.one_hot(self.groups[self.index], GROUPS).float()
        means = (losses @ one_hot) / one_hot.sum(dim=0).clamp(min=1)
        grown = self.group_weights * torch.exp(self.rate * means.detach())
        self.group_weights.copy_(grown / grown.sum())
        torch.autograd.backward((self.group_weights * means).sum())

    def _lff(self, losses: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> None:
        """Nam et al. 2020: rows that the biased network finds harder than the model count more."""
        logits = self.models["biased"](x)
        theirs = functional.cross_entropy(logits, y, reduction="none")
        both = torch.stack([theirs, losses]).detach()
        now = EMA * self.past[:, self.index] + (1 - EMA) * both
        self.past[:, self.index] = now
        most = torch.stack([self.past.where(self.labels == c, 0.0).amax(dim=1) for c in (0, 1)], dim=1)[:, y]
        biased, own = now / most.clamp(min=1e-8)
        weights = biased / (biased + own).clamp(min=1e-8)
        torch.autograd.backward(self.gce(logits, y).mean() + (weights * losses).mean())

    @torch.no_grad()
    def outputs(self, pixels: Array | torch.Tensor) -> tuple[Array, Array]:
        """(n, 2) probabilities and (n, 64) penultimate activations."""
        self.model.eval()
        held = torch.as_tensor(pixels)
        probs = []
        hidden = []
        for start in range(0, len(held), 2500):
            x = normalise_bytes(held[start : start + 2500].to(self.device))
            last = self.model.hidden(self.model.body(x))
            hidden.append(last)
            probs.append(self.model.head(last).double().softmax(dim=1))
        return torch.cat(probs).cpu().numpy(), torch.cat(hidden).cpu().numpy()


def new_optimiser(model: torch.nn.Module, device: torch.device) -> torch.optim.Optimizer:
    on_gpu = device.type == "cuda"
    return torch.optim.Adam(model.parameters(), lr=LR, weight_decay=1e-4, capturable=on_gpu, fused=on_gpu)


# --- what rows an epoch draws --------------------------------------------------------------------------------


@dataclass(eq=False)
class Draw:
    """How likely each training row is in the next epoch, by a method and its options."""

    method: str
    options: Mapping[str, Any]
    part: Part
    jtt_errors: Mapping[int, Array]
    lights: list[Array]

    def shares(self, learner: Learner, epoch: int, seed: int) -> Array:
        n = len(self.part.labels)
        even = np.full(n, 1 / n)
        if self.method in ("balanced groups", "group DRO"):
            weights = 1 / np.bincount(self.part.groups, minlength=GROUPS)[self.part.groups]
            return weights / weights.sum()
        if self.method == "JTT":
            weights = np.where(self.jtt_errors[self.options["epochs"]], self.options["times"], 1.0)
            return weights / weights.sum()
        if self.method in ("plain", "LfF") or epoch == 0:
            return even
        probs, hidden = learner.outputs(learner.pixels)
        self.lights.append(self.light(probs, hidden, seed))
        if self.method != "spotlight, remembered":
            del self.lights[:-1]
        return (1 - self.options["share"]) * even + self.options["share"] * np.mean(self.lights, axis=0)

    def light(self, probs: Array, hidden: Array, seed: int) -> Array:
        """(n,) shares that sum to one."""
        size = self.options["size"]
        if self.method == "highest loss":
            missed = 1 - probs[np.arange(len(probs)), self.part.labels]
            k = np.zeros(len(probs))
            k[np.argsort(-missed, kind="stable")[: round(size * len(k))]] = 1
            return k / k.sum()
        rows = Evaluation(labels=self.part.labels, probs=probs, representations={"penultimate": hidden})
        options = {"size": size, "slices": 1, "advanced": {"grow": False, "widen": False}}
        k = make("spotlight", seed=seed, options=options).fit(rows).membership(rows)[:, 0]
        return k / k.sum() if k.sum() > 0 else np.full(len(k), 1 / len(k))


def trained(learner: Learner, draw: Draw, whole: Problem, seed: int, epochs: int) -> Iterator[dict[str, Any]]:
    """What validation and test rows say after each epoch."""
    learner.start(whole.train, seed, draw.options.get("rate", 0.0))
    rng = np.random.default_rng([seed, 7])
    n = len(whole.train.labels)
    for epoch in range(epochs):
        shares = draw.shares(learner, epoch, seed)
        misled = whole.train.groups % 2 == 0
        wrong = train_errors(learner, whole.train)
        if draw.method in ("plain", "LfF"):
            rows = rng.permutation(n)
        else:
            rows = rng.choice(n, n, p=shares)
        learner.epoch(rows)
        told = {role: accuracies(learner, part) for role, part in (("v", whole.validation), ("t", whole.test))}
        minority = round(float(shares[misled].sum()), 4)
        of_wrong = round(float(misled[wrong].sum()) / max(int(wrong.sum()), 1), 4)
        of_label = round(float(max(np.bincount(whole.train.labels, weights=shares))), 4)
        yield {"epoch": epoch, "minority": minority, "minority of wrong": of_wrong, "of one label": of_label, **told}


def accuracies(learner: Learner, part: Part) -> list[float]:
    """Over all rows, then of each group."""
    right = learner.outputs(part.pixels)[0].argmax(axis=1) == part.labels
    return [round(float(rows.mean()), 5) for rows in (right, *(right[part.groups == g] for g in range(GROUPS)))]


def train_errors(learner: Learner, part: Part) -> Array:
    return learner.outputs(part.pixels)[0].argmax(axis=1) != part.labels


LEARNERS: dict[tuple[int, str], Learner] = {}


def learner_for(px: int, method: str, device: str) -> Learner:
    mode = {"LfF": "lff", "group DRO": "dro"}.get(method, "rows")
    if (px, mode) not in LEARNERS:
        LEARNERS[px, mode] = Learner(px, mode, torch.device(device))
    return LEARNERS[px, mode]


Task = tuple[str, int, str, list[dict[str, Any]], str, str, int]


def job(task: Task) -> list[dict[str, Any]]:
    """All options of one method in one setting with one seed."""
    setting, seed, method, choices, device, folder, count = task
    torch.set_num_threads(1)
    began = time.perf_counter()
    whole = problem(setting, seed, Path(folder))
    learner = learner_for(whole.train.pixels.shape[1], method, device)
    missed = jtt_errors(learner, whole, seed) if method == "JTT" else {}
    runs = []
    for options in choices:
        draw = Draw(method, options, whole.train, missed, [])
        epochs = list(trained(learner, draw, whole, seed, count))
        runs.append({"setting": setting, "seed": seed, "method": method, "options": options, "epochs": epochs})
    runs[-1]["seconds"] = round(time.perf_counter() - began, 2)
    return runs


def jtt_errors(learner: Learner, whole: Problem, seed: int) -> dict[int, Array]:
    """Training rows that a network has wrong after one epoch and after two."""
    learner.start(whole.train, seed)
    rng = np.random.default_rng([seed, 7])
    missed = {}
    for epochs in (1, 2):
        learner.epoch(rng.permutation(len(whole.train.labels)))
        missed[epochs] = train_errors(learner, whole.train)
    return missed


def lights_alone(sizes: Sequence[float]) -> dict[str, list[dict[str, Any]]]:
    """The paper's own objective: every row of an epoch is drawn by the light."""
    return {"plain": METHODS["plain"], "spotlight": [{"size": size, "share": 1.0} for size in sizes]}


def run(asked: argparse.Namespace) -> None:
    """Seeds go first, so that a run that is stopped has fewer of them and nothing else missing."""
    folder = str(asked.cache)
    for setting in asked.settings:
        problem(setting, 0, asked.cache)  # writes the cache before several processes want it
    methods = lights_alone(asked.lights) if asked.lights else METHODS
    tasks = [
        (setting, seed, method, choices, asked.device, folder, asked.epochs)
        for seed in asked.seeds
        for setting in asked.settings
        for method, choices in methods.items()
    ]
    until = time.monotonic() + 60 * asked.minutes
    context = multiprocessing.get_context("spawn")
    with context.Pool(asked.workers) as pool, asked.out.open("a") as file:
        answers = [pool.apply_async(job, (task,)) for task in tasks]
        for number, answer in enumerate(answers):
            try:
                runs = answer.get(timeout=max(0.1, until - time.monotonic()))
            except multiprocessing.TimeoutError:
                print(f"stopped after {number} of {len(tasks)} tasks", flush=True)
                pool.terminate()
                break
            file.writelines(json.dumps(each) + "\n" for each in runs)
            file.flush()
            print(
                f"{number + 1}/{len(tasks)} {runs[-1]['setting']} {runs[-1]['method']} {runs[-1]['seconds']} s",
                flush=True,
            )


# --- the table -----------------------------------------------------------------------------------------------


def chosen(runs: Sequence[dict[str, Any]], by_group: bool) -> dict[str, Any]:
    """The epoch that is best on validation rows, over all options; test rows are read only of it."""
    epochs = [{**epoch, "options": each["options"]} for each in runs for epoch in each["epochs"]]
    return max(epochs, key=lambda epoch: min(epoch["v"][1:]) if by_group else epoch["v"][0])


def read_runs(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Every run once: `run` appends, and a seed that was run again is no further seed."""
    runs = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    keys = ("setting", "seed", "method", "options")
    return list({json.dumps([each.get(key) for key in keys]): each for each in runs}.values())


def report(paths: Sequence[Path]) -> None:
    runs = read_runs(paths)
    for by_group in (False, True):
        way = "by the worst group of validation rows (reads groups)" if by_group else "by accuracy on validation rows"
        print(f"\nchosen {way}")
        for setting in [name for name in SETTINGS if any(each["setting"] == name for each in runs)]:
            print_setting(setting, [each for each in runs if each["setting"] == setting], by_group)


def print_setting(setting: str, runs: Sequence[dict[str, Any]], by_group: bool) -> None:
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for method in METHODS:
        for seed in sorted({each["seed"] for each in runs}):
            own = [each for each in runs if each["method"] == method and each["seed"] == seed]
            if len(own) == len(METHODS[method]):
                found.setdefault(method, {})[seed] = chosen(own, by_group)
    seeds = sorted(set.intersection(*(set(each) for each in found.values())))
    worst = {method: np.array([min(each[seed]["t"][1:]) for seed in seeds]) for method, each in found.items()}
    print(f"\n{setting}: n = {len(seeds)} seeds")
    print("| method | worst group | all test rows | more than plain, worst group | better, of seeds | minority drawn |")
    print("|---|---|---|---|---|---|")
    for method, each in found.items():
        overall = [each[seed]["t"][0] for seed in seeds]
        gain = worst[method] - worst["plain"]
        drawn = np.mean([each[seed]["minority"] for seed in seeds])
        cells = [over_runs(worst[method]), over_runs(overall), over_runs(gain), f"{int((gain > 0).sum())}"]
        print(f"| {method} | {' | '.join(cells)} | {drawn:.3f} |")


def steady(paths: Sequence[Path]) -> None:
    """Every option in a table, and accuracy epoch by epoch beside plain training.

    Of every option: test accuracy at the last epoch and at the best by validation rows, the mean change of
    validation accuracy from one epoch to the next, and how much of what is drawn is the minority: in all epochs but
    the first, and in the second alone, whose light is laid after one epoch; of the rows that are wrong then; and how
    much of that light is of the label that it holds most of."""
    runs = read_runs(paths)
    options: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for each in runs:
        if len(each["epochs"]) < 2:
            raise SystemExit("`steady` tells of the second epoch, and a run has one: `run` it with --epochs 2 or more")
        options.setdefault((each["setting"], each["method"], json.dumps(each["options"])), []).append(each)
    print(
        "| setting | method | options | seeds | test rows, last epoch | worst group | best epoch | change | minority "
        "| minority, after one epoch | of wrong training rows then | worst group after one epoch | of one label then |"
    )
    print("|---" * 13 + "|")
    for (setting, method, choice), own in sorted(options.items()):
        last = [each["epochs"][-1]["t"] for each in own]
        best = [max(each["epochs"], key=lambda epoch: epoch["v"][0])["t"][0] for each in own]
        changes = [np.abs(np.diff([epoch["v"][0] for epoch in each["epochs"]])).mean() for each in own]
        minority = [np.mean([epoch["minority"] for epoch in each["epochs"][1:]]) for each in own]
        first = [each["epochs"][1]["minority"] for each in own]
        wrong = [each["epochs"][1].get("minority of wrong", np.nan) for each in own]  # older files have none
        worst = [min(each["epochs"][0]["t"][1:]) for each in own]
        label = [each["epochs"][1].get("of one label", np.nan) for each in own]  # nor this
        columns = (
            [row[0] for row in last],
            [min(row[1:]) for row in last],
            best,
            changes,
            minority,
            first,
            wrong,
            worst,
            label,
        )
        cells = [over_runs(column) if len(own) > 1 else f"{column[0]:.3f}" for column in columns]
        print(f"| {setting} | {method} | {choice} | {len(own)} | {' | '.join(cells)} |")
    for (setting, method, choice), own in sorted(options.items()):
        plain = options.get((setting, "plain", "{}"), [])
        if method != "plain":
            print_by_epoch(f"{setting}, {method} {choice}", own, plain)


def print_by_epoch(name: str, own: Sequence[dict[str, Any]], plain: Sequence[dict[str, Any]]) -> None:
    """Accuracy on all test rows after every epoch, and how much it is beyond plain training with the same seed."""
    mine = accuracy_by_epoch(own)
    theirs = accuracy_by_epoch(plain)
    seeds = sorted(set(mine) & set(theirs))
    if len(seeds) < 2:
        return
    print(f"\n{name}, test rows by epoch; n = {len(seeds)} seeds")
    print("| epoch | | plain | more than plain |\n|---|---|---|---|")
    last = min(len(runs[seed]) for runs in (mine, theirs) for seed in seeds)
    spans = {str(epoch + 1): slice(epoch, epoch + 1) for epoch in range(last)} | {"mean": slice(last)}
    for epoch, span in spans.items():
        accuracies_ = [[float(np.mean(runs[seed][span])) for seed in seeds] for runs in (mine, theirs)]
        more = [a - b for a, b in zip(*accuracies_, strict=True)]
        print(f"| {epoch} | {' | '.join(over_runs(each) for each in (*accuracies_, more))} |")


def accuracy_by_epoch(runs: Sequence[dict[str, Any]]) -> dict[int, list[float]]:
    """By seed, on all test rows."""
    return {each["seed"]: [epoch["t"][0] for epoch in each["epochs"]] for each in runs}


def size_of_a_light(text: str) -> float:
    size = float(text)
    if not 0 < size <= 0.5:
        raise argparse.ArgumentTypeError(f"a light is a share of the rows above 0 and at most 0.5; got {text}")
    return size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["run", "report", "steady"])
    parser.add_argument("runs", type=Path, nargs="*", help="files to report")
    parser.add_argument("-o", "--out", type=Path, default=Path("worst-group.jsonl"))
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=SETTINGS)
    parser.add_argument(
        "--lights", type=size_of_a_light, nargs="+", help="plain training and lights of these sizes alone"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=range(10))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="2 are enough for the light after one")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    missing = [str(path) for path in asked.runs if not path.is_file()]
    if asked.task != "run" and (missing or not asked.runs):
        parser.error(f"`{asked.task}` wants files that `run -o FILE` wrote; got {', '.join(missing) or 'none'}")
    if asked.task == "run":
        run(asked)
    elif asked.task == "steady":
        steady(asked.runs)
    else:
        report(asked.runs)


if __name__ == "__main__":
    main()
