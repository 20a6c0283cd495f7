"""Is the first light worse than any cluster of its size? Figure 5 of d'Eon et al. 2022, on the data that are here.

    python benchmarks/spotlight_clusters.py [faces] [news] [sst2] [movielens] [adult] [wine] [imagenet] [--seeds 0 1 2]
    python benchmarks/spotlight_clusters.py faces --lights 5           what each of five lights holds
    python benchmarks/spotlight_clusters.py faces --sizes .001 .02 .1  what the first light holds at other sizes
    python benchmarks/spotlight_clusters.py scenes --worlds FOLDER --sizes .02   of `errata bench spotcheck -o FOLDER`

For every table a model is trained on some rows; of the others one half is searched, and the other half measured. The
light is `spotlight:as_published` (2% of pictures, 5% of others, C = 1, or 10 for the 1,000 classes of ImageNet) and, at
the same size, `spotlight`; clusters are a Gaussian mixture (50 for pictures, 20 for others; along 16 axes where rows
are few) and GEORGE's, which read the label. A cluster is chosen, as the light is, by its mean loss on searched rows.
Losses are cross-entropy; "highest loss" are as many rows by their own loss, "kind" the share of the commonest kind.
ImageNet has five pictures a class, which GEORGE cannot cut; it is also asked to cut nine super-classes.
imagenet wants what benchmarks/bridge.py wants, and keeps what the network sees in --cache. Data: ERRATA_DATA, or
../shared/data beside the clone. scenes: rows with a square of one trained world a seed, along 16 principal axes.
--lights and --sizes: of the loss that a light holds beyond all searched rows, "kept" is the share that it holds beyond
all held-out rows; "kind" is the one that it holds most beyond its share of all searched rows, "recall" how much of it
is lit.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from torch import nn
from torch.nn import functional

from errata import Evaluation
from errata.bench import tables
from errata.bench.recipes import RECIPES, splits
from errata.bench.scenes import sample_world
from errata.bench.tables import data_folder
from errata.slicers import make
from errata.train import fit, network, outputs
from trained import over_runs

Array = np.ndarray
Optimiser = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
HIDDEN = 64
IMAGE = (0.02, 50)  # size of a light, clusters
OTHER = (0.05, 20)
COARSE = "GEORGE, by super-class"
# ImageNet's 1,000 classes lie in this order
SUPERCLASSES = {
    "fish": [(0, 7), (389, 398)],
    "bird": [(7, 25), (80, 101), (127, 147)],
    "reptile or amphibian": [(25, 69)],
    "spider, insect, shell": [(69, 80), (107, 127), (300, 327)],
    "dog": [(151, 269)],
    "other mammal": [(101, 107), (147, 151), (269, 300), (327, 389)],
    "food": [(924, 970)],
    "landscape, person, plant": [(970, 999)],
}


@dataclass(frozen=True, eq=False)
class Case:
    """Rows that the model was not trained on."""

    labels: Array
    probs: Array
    hidden: Array  # (n, d) the model's last layer
    size: float
    clusters: int
    kinds: Array  # (n,) what a person might call the rows; "" for none
    barrier: float = 1.0
    facts: Mapping[str, Array] = field(default_factory=dict)  # name -> (n,) numbers that the search does not read
    coarse: Array | None = None  # (k,) a wider class of each class, which GEORGE may cut instead
    texts: Array | None = None  # (n,)


@dataclass(frozen=True, eq=False)
class Problem:
    """What a perceptron is trained on, and the rows that it is then asked about."""

    X: Array  # (m, d)
    y: Array  # (m,)
    asked: Array  # (n, d)
    labels: Array  # (n,)
    classes: int
    epochs: int
    kinds: Array  # (n,) as of a `Case`
    texts: Array | None = None  # (n,)


def adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=1e-3, weight_decay=1e-4)


def perceptron(problem: Problem, seed: int, optimiser_of: Optimiser = adam) -> tuple[Array, Array]:
    """Probabilities and hidden layer of the asked rows, by a network of two layers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = nn.Sequential(nn.Linear(problem.X.shape[1], 128), nn.ReLU(), nn.Linear(128, HIDDEN), nn.ReLU())
        head = nn.Linear(HIDDEN, problem.classes)
    rows = torch.from_numpy(problem.X.astype(np.float32))
    targets = torch.from_numpy(problem.y.astype(np.int64))
    optimiser = optimiser_of([*first.parameters(), *head.parameters()])
    generator = torch.Generator().manual_seed(seed)
    for _ in range(problem.epochs):
        for batch in torch.randperm(len(rows), generator=generator).split(256):
            loss = functional.cross_entropy(head(first(rows[batch])), targets[batch])
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
    with torch.no_grad():
        hidden = first(torch.from_numpy(problem.asked.astype(np.float32)))
        return head(hidden).double().softmax(dim=1).numpy(), hidden.numpy()


def by_perceptron(problem_of: Callable[[int], Problem], seed: int, folder: Path) -> Case:
    problem = problem_of(seed)
    return Case(problem.labels, *perceptron(problem, seed), *OTHER, problem.kinds, texts=problem.texts)


def faces(seed: int, folder: Path) -> Case:
    """A woman or a man, by the small network at 48 pixels."""
    from faces import _small

    frame = tables.sample_rows(pd.read_parquet(data_folder() / "utkface64.parquet"), 10_000, seed)
    images = np.stack([_small(data) for data in frame.image])
    labels = (frame.gender == "male").to_numpy().astype(int)
    model = network("small", px=48, outputs=2, seed=seed)
    fit(model, images[:4000], labels[:4000], epochs=4, batch=128, lr=3e-3, seed=seed, device="cpu")
    logits, hidden = outputs(model, images[4000:], device="cpu")
    bands = np.array(["0-11", "12-30", "31-44", "45+"])[np.digitize(frame.age.to_numpy()[4000:], (12, 31, 45))]
    race = frame.race.to_numpy(str)[4000:]
    facts = {"under 12": bands == "0-11", **{name: race == name for name in np.unique(race)}, "man": labels[4000:] == 1}
    return Case(labels[4000:], softmax(logits), hidden, *IMAGE, bands, facts=facts)


def softmax(logits: Array) -> Array:
    shifted = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def words(train: pd.DataFrame, target: str, rows: pd.DataFrame, classes: int, seed: int) -> Problem:
    """Principal axes of the words, then two layers."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectors = TfidfVectorizer(min_df=3, sublinear_tf=True)
    counts = vectors.fit_transform(train.text)
    axes = TruncatedSVD(100, random_state=seed).fit(counts)
    X = axes.transform(counts) * 10  # of length about one otherwise, on which two layers learn slowly
    asked = axes.transform(vectors.transform(rows.text)) * 10
    kinds = rows.label.to_numpy().astype(str)
    texts = rows.text.to_numpy(str)
    return Problem(X, train[target].to_numpy(), asked, rows.label.to_numpy(), classes, 8, kinds, texts)


def news(seed: int) -> Problem:
    """Four topics, learnt from what annotators said, which is wrong for a fifth."""
    frame = pd.read_parquet(data_folder() / "agnews.parquet")
    rows = tables.sample_rows(frame[frame.split == "test"], None, seed)
    return words(tables.sample_rows(frame[frame.split == "train"], 8000, seed), "noisy_label", rows, 4, seed)


def sst2(seed: int) -> Problem:
    frame = tables.sample_rows(pd.read_parquet(data_folder() / "sst2.parquet"), None, seed)
    return words(frame[:5000], "label", frame[5000:], 2, seed)


def columns(frame: pd.DataFrame, labels: Array, classes: int, kinds: Array, learnt: int) -> Problem:
    X = pd.get_dummies(frame, dtype=float).to_numpy()
    X = (X - X[:learnt].mean(axis=0)) / np.maximum(X[:learnt].std(axis=0), 1e-9)
    return Problem(X[:learnt], labels[:learnt], X[learnt:], labels[learnt:], classes, 20, kinds[learnt:])


def adult(seed: int) -> Problem:
    frame = tables.sample_rows(pd.read_parquet(data_folder() / "adult.parquet"), 16_000, seed)
    labels = frame.income.str.contains(">").to_numpy().astype(int)
    kinds = frame.marital_status.to_numpy(str)
    return columns(frame.drop(columns=["income", "split", "fnlwgt"]), labels, 2, kinds, 8000)


def wine(seed: int) -> Problem:
    """Poor (5 or less), fair (6) or good."""
    frame = tables.sample_rows(pd.read_parquet(data_folder() / "wine.parquet"), None, seed)
    labels = np.digitize(frame.quality.to_numpy(), (5.5, 6.5))
    text = [name for name in frame.columns if frame[name].dtype.kind not in "fiu" and frame[name].nunique() == 2]
    kinds = frame[text[0]].to_numpy(str) if text else np.full(len(frame), "")
    return columns(frame.drop(columns=["quality"]), labels, 3, kinds, 3000)


def movielens(seed: int, folder: Path) -> Case:
    """Which of five ratings: an autoencoder of a user's ratings, joined with a vector of the film."""
    ratings = tables.sample_rows(pd.read_parquet(data_folder() / "movielens100k_ratings.parquet"), None, seed)
    items = pd.read_parquet(data_folder() / "movielens100k_items.parquet")
    user = ratings.iloc[:, 0].factorize()[0]
    film, films = ratings.iloc[:, 1].factorize()
    stars = ratings.iloc[:, 2].to_numpy().astype(int) - 1
    learnt = 60_000
    known = np.zeros((user.max() + 1, film.max() + 1), dtype=np.float32)
    known[user[:learnt], film[:learnt]] = (stars[:learnt] - 2) / 2
    asked = slice(learnt, learnt + 20_000)
    probs, hidden = autoencoder(known, user, film, stars, learnt, asked, seed)
    genre = items.set_index(items.columns[0]).select_dtypes("number").idxmax(axis=1)
    counts = np.bincount(film[:learnt], minlength=film.max() + 1)
    sums = np.bincount(film[:learnt], weights=stars[:learnt] + 1.0, minlength=film.max() + 1)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum() / learnt)
    kinds = genre.reindex(films[film[asked]]).to_numpy(str)
    facts = {
        "film's ratings": counts[film[asked]],
        "film's stars": means[film[asked]],
        "film of 4 stars or more": means[film[asked]] >= 4,
        "film of less than 3": means[film[asked]] < 3,
        "user's ratings": np.bincount(user[:learnt], minlength=user.max() + 1)[user[asked]],
        "stars": stars[asked] + 1,
        "one star": stars[asked] == 0,
        **{name: kinds == name for name in ("Action", "Drama", "Comedy")},
        "drama or comedy": np.isin(kinds, ("Drama", "Comedy")),
        "largest probability": probs.max(axis=1),
        "predicted less true stars": probs @ np.arange(1, 6) - (stars[asked] + 1),
    }
    return Case(stars[asked], probs, hidden, *OTHER, kinds, facts=facts)


def autoencoder(
    known: Array, user: Array, film: Array, stars: Array, learnt: int, asked: slice, seed: int
) -> tuple[Array, Array]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encode = nn.Sequential(nn.Dropout(0.5), nn.Linear(known.shape[1], 64), nn.ReLU())
        vectors = nn.Embedding(known.shape[1], 32)
        join = nn.Sequential(nn.Linear(96, HIDDEN), nn.ReLU())
        head = nn.Linear(HIDDEN, 5)
        rows, users, films, targets = (torch.from_numpy(np.asarray(a)) for a in (known, user, film, stars))
        parts = nn.ModuleList([encode, vectors, join, head])
        optimiser = torch.optim.Adam(parts.parameters(), lr=2e-3, weight_decay=1e-5)

        def hidden_of(some: Any) -> torch.Tensor:
            return join(torch.cat([encode(rows[users[some]]), vectors(films[some])], dim=1))

        for _ in range(4):
            for batch in torch.randperm(learnt).split(512):
                loss = functional.cross_entropy(head(hidden_of(batch)), targets[batch])
                optimiser.zero_grad()
                torch.autograd.backward(loss)
                optimiser.step()
        parts.eval()
        with torch.no_grad():
            hidden = hidden_of(asked)
            return head(hidden).double().softmax(dim=1).numpy(), hidden.numpy()


def imagenet(seed: int, folder: Path) -> Case:
    """EfficientNet-lite0 as it is, along 64 principal axes; 5 pictures a class."""
    import bridge as bridging

    features, labels, _ = bridging.imagenet(folder)
    layer = bridging.network()._fc
    logits = features @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    kinds = superclass_names()
    coarse = np.unique(kinds, return_inverse=True)[1]
    axes = PCA(HIDDEN, random_state=seed).fit_transform(features)  # 50 covariances of 1,280 columns ask for more rows
    return Case(labels, softmax(logits), axes, *IMAGE, kinds[labels], barrier=10.0, coarse=coarse)


def superclass_names() -> Array:
    """(1000,) of ImageNet's classes."""
    kinds = np.full(1000, "thing", dtype="U32")  # by itself numpy cuts names at five letters
    for name, spans in SUPERCLASSES.items():
        for first, end in spans:
            kinds[first:end] = name
    return kinds


def scenes(seed: int, folder: Path) -> Case:
    """Rows with a square of a world that `errata bench spotcheck` trained; a kind is a blindspot."""
    path = sorted(folder.glob("world-*.npz"))[seed]
    with np.load(path, allow_pickle=False) as arrays:
        blindspots = arrays["blindspot"]
        world = sample_world(json.loads(str(arrays["facts"]))["seed"])
        rows = splits(world, RECIPES["small"])["test"].truth == 1
        hidden = arrays["penultimate"][rows].astype(np.float32)
        square = 1 / (1 + np.exp(-arrays["logits"][rows].astype(np.float64)))
    names = np.array(["", *(f"blindspot {number + 1}" for number in range(blindspots.shape[1]))])
    inside = blindspots[rows]
    kinds = names[np.where(inside.any(axis=1), inside.argmax(axis=1) + 1, 0)]
    axes = PCA(16, random_state=seed).fit_transform(hidden)
    probs = np.stack([1 - square, square], axis=1)
    facts = {"in a blindspot": inside.any(axis=1)}
    return Case(np.ones(len(axes), dtype=int), probs, axes, *IMAGE, kinds, facts=facts)


CASES: dict[str, Callable[[int, Path], Case]] = {
    "faces": faces,
    "news": partial(by_perceptron, news),
    "sst2": partial(by_perceptron, sst2),
    "movielens": movielens,
    "adult": partial(by_perceptron, adult),
    "wine": partial(by_perceptron, wine),
    "imagenet": imagenet,
    "scenes": scenes,
}


@dataclass(frozen=True)
class Region:
    """Of a light or a cluster: weighted means over searched rows and over held-out rows."""

    share: float  # of the searched rows
    held: float  # of the held-out rows
    searched: float  # mean loss
    loss: float  # held out
    error: float  # held out
    kind: float  # share of its most frequent kind, held out
    facts: Mapping[str, float]  # means, held out


def region(case: Case, k: Array, losses: Array, errors: Array, searched: Array) -> Region:
    inside = [np.where(rows, k, 0.0) for rows in (searched, ~searched)]
    totals = [max(float(each.sum()), 1e-12) for each in inside]
    kinds = [float(inside[1] @ (case.kinds == kind)) for kind in np.unique(case.kinds)]
    means = [float(inside[0] @ losses) / totals[0], float(inside[1] @ losses) / totals[1]]
    shares = [totals[0] / searched.sum(), totals[1] / (~searched).sum()]
    facts = {name: float(inside[1] @ values) / totals[1] for name, values in case.facts.items()}
    return Region(*shares, *means, float(inside[1] @ errors) / totals[1], max(kinds) / totals[1], facts)


@dataclass(frozen=True, eq=False)
class Halves:
    """A case's rows, one half of which is searched."""

    losses: Array  # (n,) cross-entropy
    errors: Array  # (n,) 0 or 1
    searched: Array  # (n,) bool
    whole: Evaluation


def halves(case: Case, seed: int) -> Halves:
    rows = np.arange(len(case.labels))
    losses = -np.log(np.maximum(case.probs[rows, case.labels], 1e-12))
    errors = (case.probs.argmax(axis=1) != case.labels).astype(float)
    searched = np.random.default_rng([seed, 3]).random(len(rows)) < 0.5
    whole = Evaluation(labels=case.labels, probs=case.probs, representations={"penultimate": case.hidden})
    return Halves(losses, errors, searched, whole)


def weights_of(case: Case, seed: int) -> dict[str, list[Array]]:
    """By method: a weight of every row, (n,), for each of its regions."""
    half = halves(case, seed)
    whole = half.whole
    searched = half.searched
    found: dict[str, list[Array]] = {}
    for name, method, options in methods(case):
        evaluation = coarsened(case, whole) if name == COARSE else whole
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                weights = make(method, seed=seed, options=options).fit(evaluation.rows(searched)).membership(evaluation)
        except ValueError as error:
            print(f"{name}: {error}")
            continue
        found[name] = list(weights.T)
    columns_ = clustered(case, searched, seed)
    mixture = GaussianMixture(case.clusters, random_state=seed, reg_covar=1e-4).fit(columns_[searched])
    mine = mixture.predict(columns_)
    found["mixture"] = [(mine == c).astype(float) for c in range(case.clusters)]
    found["highest loss"] = [highest_losses(case, half)]
    found["all rows"] = [np.ones(len(searched))]
    return found


def highest_losses(case: Case, half: Halves) -> Array:
    """(n,) as many rows as a light is to have, by their own loss."""
    return (half.losses >= np.quantile(half.losses, 1 - case.size)).astype(float)


def measured(case: Case, seed: int) -> dict[str, list[Region]]:
    """By method: its regions, worst first on searched rows."""
    half = halves(case, seed)
    order = {
        name: [region(case, k, half.losses, half.errors, half.searched) for k in each]
        for name, each in weights_of(case, seed).items()
    }
    return {name: sorted(each, key=lambda r: -r.searched * (r.share > 0)) for name, each in order.items()}


def clustered(case: Case, searched: Array, seed: int) -> Array:
    """(n, d) the layer, or 16 axes of it where covariances of all columns would hold no row but those they saw."""
    if searched.sum() / case.clusters >= 4 * case.hidden.shape[1]:
        return case.hidden
    return PCA(16, random_state=seed).fit(case.hidden[searched]).transform(case.hidden)


def methods(case: Case) -> list[tuple[str, str, dict[str, Any]]]:
    published = {"size": case.size, "slices": 1, "advanced": {"barrier": case.barrier}}
    published["advanced"] |= {"solver": "adam", "dimming": "by_peak", "loss": "given", "drop_below": 0.0}
    ours = {"size": case.size, "slices": 1, "advanced": {"grow": False, "widen": False, "loss": "given"}}
    lights = [("light, as published", "spotlight:as_published", published), ("light", "spotlight", ours)]
    # By itself `george` returns the ten clusters with most errors, and the worst of all may be none of them.
    every = {"slices": len(case.labels)}
    names = ["GEORGE"] if case.coarse is None else ["GEORGE", COARSE]
    return [*lights, *((name, "george:as_published", every) for name in names)]


def coarsened(case: Case, rows: Evaluation) -> Evaluation:
    """The same losses, with wider classes for labels and predictions."""
    assert case.coarse is not None
    return Evaluation(
        labels=case.coarse[case.labels],
        predictions=case.coarse[case.probs.argmax(axis=1)],
        losses=rows.losses,
        representations=rows.representations,
    )


# --- further lights, and other sizes -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Light:
    """One light of a model, by held-out rows."""

    region: Region
    rows: float  # sum of its weights on held-out rows
    kept: float  # share of its excess loss on searched rows that is there on held-out rows
    kind: str  # that it holds most beyond its share of all rows, by searched rows
    purity: float  # share of the light that is of that kind
    base: float  # share of all rows that is
    recall: float  # share of that kind that the light holds
    again: float  # share of its weight that an earlier light has


def lights_of(case: Case, seed: int, method: str, options: dict[str, Any]) -> list[Light]:
    """In the order in which the method finds them."""
    half = halves(case, seed)
    weights = weights_of_lights(half, seed, method, options)
    found = []
    for number, k in enumerate(weights.T):
        earlier = weights[:, :number].max(axis=1, initial=0.0)
        found.append(one_light(case, k, earlier, half.losses, half.errors, half.searched))
    return found


def weights_of_lights(half: Halves, seed: int, method: str, options: dict[str, Any]) -> Array:
    """(n, s)"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = make(method, seed=seed, options=options).fit(half.whole.rows(half.searched))
        return machine.membership(half.whole)


def one_light(case: Case, k: Array, earlier: Array, losses: Array, errors: Array, searched: Array) -> Light:
    place = region(case, k, losses, errors, searched)
    held = np.where(searched, 0.0, k)
    total = max(float(held.sum()), 1e-12)
    kind = kind_of(case, k, searched)
    mine = case.kinds == kind
    purity = float(held @ mine) / total
    excess = place.searched - losses[searched].mean()
    return Light(
        region=place,
        rows=total,
        kept=float((place.loss - losses[~searched].mean()) / excess) if total > 1e-6 else 0.0,
        kind=kind,
        purity=purity,
        base=float(mine[~searched].mean()),
        recall=purity * total / max(mine[~searched].sum(), 1),
        again=float(np.minimum(held, earlier).sum()) / total,
    )


def kind_of(case: Case, k: Array, searched: Array) -> str:
    """The kind that a light holds most beyond its share of all rows; by searched rows, so that its share of held-out
    rows is not the largest of many by chance."""
    weights = k[searched] / max(float(k[searched].sum()), 1e-12)
    kinds = case.kinds[searched]
    beyond = {name: weights @ (kinds == name) - (kinds == name).mean() for name in np.unique(kinds) if name}
    return max(beyond, key=lambda name: beyond[name])


def options_of(case: Case, size: float, count: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Method and options of the published light and of ours, at one size; of several lights also the published ones
    with nothing but our dimming."""
    named = {name: (method, options) for name, method, options in methods(case) if name.startswith("light")}
    if count > 1:
        method, options = named["light, as published"]
        ours = {**options, "advanced": {**options["advanced"], "dimming": "members"}}
        named["light, as published but for its dimming"] = (method, ours)
    return {name: (method, {**options, "size": size, "slices": count}) for name, (method, options) in named.items()}


def print_lights(name: str, cases: list[Case], seeds: list[int], sizes: list[float] | None, count: int) -> None:
    """A line for each light of each size, means over models."""
    print(f"\n{name}: {len(cases[0].labels):,} rows; n = {len(cases)} models", flush=True)
    head = ["", "size", "light", "rows, held out", "loss, searched", "loss, held out", "kept", "error, held out"]
    head += ["kinds", "purity", "of all rows", "recall", "lit before"]
    print("| " + " | ".join([*head, *cases[0].facts]) + " |\n" + "|---" * (len(head) + len(cases[0].facts)) + "|")
    for size in sizes or [cases[0].size]:
        for method in options_of(cases[0], size, count):
            made = []
            for seed, case in zip(seeds, cases, strict=True):
                made.append(lights_of(case, seed, *options_of(case, size, count)[method]))
            for number in range(count):
                mine = [each[number] for each in made if len(each) > number]
                if mine:
                    print_light(f"{method} | {size:.1%} | {number + 1}", mine)


def print_light(name: str, mine: list[Light]) -> None:
    places = [each.region for each in mine]
    means = [
        np.mean([each.rows for each in mine]),
        *(np.mean([getattr(p, key) for p in places]) for key in ("searched",)),
    ]
    kinds = ", ".join(f"{kind} {n}" for kind, n in Counter(each.kind for each in mine).most_common())
    cells = [f"{means[0]:.1f}", f"{means[1]:.3f}", told([p.loss for p in places]), told([each.kept for each in mine])]
    cells += [told([p.error for p in places]), kinds, told([each.purity for each in mine])]
    cells += [f"{np.mean([getattr(each, key) for each in mine]):.3f}" for key in ("base", "recall", "again")]
    cells += [told([p.facts[fact] for p in places]) for fact in places[0].facts]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def worst(regions: list[Region], size: float) -> Region:
    """Of a light's size at least, by half; the worst on searched rows."""
    large = [each for each in regions if each.share >= size / 2]
    return (large or regions)[0]


def report(name: str, runs: list[tuple[Case, dict[str, list[Region]]]]) -> None:
    size = runs[0][0].size
    print(f"\n{name}: {len(runs[0][0].labels):,} rows, a light is {size:.0%}; n = {len(runs)} models", flush=True)
    head = ["", "share", "share, held out", "loss, searched", "loss, held out", "error, held out"]
    print("| " + " | ".join([*head, "less than the light as published", "kind"]) + " |\n" + "|---" * 8 + "|")
    for method in runs[0][1]:
        mine = [worst(found[method], size) for _, found in runs]
        light = [found["light, as published"][0] for _, found in runs]
        less = [a.loss - b.loss for a, b in zip(light, mine, strict=True)]
        numbers = [[getattr(each, key) for each in mine] for key in ("share", "held", "searched", "loss", "error")]
        kinds = [each.kind for each in mine]
        print(f"| {method} | {' | '.join(told(each) for each in numbers)} | {told(less)} | {told(kinds)} |")
    for fact in runs[0][0].facts:
        means = [
            f"{method} {told([worst(found[method], size).facts[fact] for _, found in runs])}" for method in runs[0][1]
        ]
        print(f"{fact}: " + ", ".join(means))
    for method in [name for name in runs[0][1] if name.startswith("GEORGE")]:
        print(f"clusters of {method}, with rows: {[int(sum(r.share > 0 for r in found[method])) for _, found in runs]}")
    above = [sum(bool(r.searched > f["light, as published"][0].searched) for r in f["mixture"]) for _, f in runs]
    large = [
        sum(bool(r.searched > f["light, as published"][0].searched and r.share >= size / 2) for r in f["mixture"])
        for _, f in runs
    ]
    print(f"clusters of the mixture worse than the light on searched rows: {above}, of half its size or more: {large}")


def told(values: list[float]) -> str:
    return over_runs(values) if len(values) > 1 else f"{values[0]:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--lights", type=int, default=1, help="what each of so many lights holds")
    parser.add_argument("--sizes", type=float, nargs="+", help="what the lights of these sizes hold")
    parser.add_argument("--worlds", type=Path, help="of the case scenes")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    if "scenes" in asked.cases and not asked.worlds:
        parser.error("the case scenes wants --worlds FOLDER; `errata bench spotcheck -o FOLDER` trains its worlds")
    for size in asked.sizes or []:
        if not 0 < size <= 0.5:
            parser.error(f"a size is a share of the rows above 0 and at most 0.5; got --sizes {size:g}")
    for name in asked.cases or [name for name in CASES if name != "scenes"]:
        began = time.process_time()
        folder = asked.worlds if name == "scenes" else asked.cache
        cases = [CASES[name](seed, folder) for seed in asked.seeds]
        if asked.sizes or asked.lights > 1:
            print_lights(name, cases, asked.seeds, asked.sizes, asked.lights)
        else:
            report(name, [(case, measured(case, seed)) for seed, case in zip(asked.seeds, cases, strict=True)])
        print(f"{time.process_time() - began:.0f} s of one core", flush=True)


if __name__ == "__main__":
    main()
