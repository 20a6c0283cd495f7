"""What a light is made of: the parts of d'Eon et al. 2022 that are told of its rows, and not of its loss.

    python benchmarks/spotlight_contents.py spread [faces] [news] ...  clusters that it is spread over (figure 5)
    python benchmarks/spotlight_contents.py errors               do ImageNet's errors stay in a super-class?
    python benchmarks/spotlight_contents.py words [news] [sst2]  words that are frequent in it (figure 4)
    python benchmarks/spotlight_contents.py topics               does it hold the topics of highest loss? (figure 15)
    python benchmarks/spotlight_contents.py george [movielens] [faces]   GEORGE's clusters of any size (figures 7, 12)

Models, rows, lights and clusters are those of benchmarks/spotlight_clusters.py; all take --seeds and --cache.
spread: how many of a mixture's clusters, largest part first, hold 80% of a weight. "any place" is the same kernel with
the same weight around searched rows drawn at random. errors: "in kind" is the share of all errors that stay, had every
error the chance to stay of its true super-class. words: ten of each light, by frequency among searched rows over that
in all; "times as frequent" is theirs among held-out rows; words of a text are what stands between spaces. topics: of AG
News, by mean loss of searched rows. george: the worst cluster of half a light's size or more, the three worst of any
size, and the worst of each label, by searched rows; a label is that of the class which the cluster is cut from.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from spotlight_clusters import (
    CASES,
    Array,
    Case,
    Halves,
    halves,
    highest_losses,
    methods,
    options_of,
    region,
    weights_of,
    weights_of_lights,
)
from trained import over_finite_runs

MOST = 0.8  # of a weight
PLACES = 20  # drawn at random
LIGHTS = 3  # that the paper has words and topics of
WORDS = 10  # of a light
FEWEST = 20  # searched rows with a word
TOPICS = ("world", "sport", "business", "sci/tech")
PUBLISHED = "light, as published"
Measures = dict[str, dict[str, float]]  # weight -> measure -> value


def worst(regions: Sequence[Array], half: Halves, fewest: float) -> list[Array]:
    """Those of `fewest` searched rows or more, by their mean loss on searched rows."""
    searched = half.searched
    large = [k for k in regions if k[searched].sum() >= fewest] or list(regions)
    return sorted(large, key=lambda k: -float(k[searched] @ half.losses[searched]) / max(k[searched].sum(), 1e-12))


# --- how many clusters a light is spread over ----------------------------------------------------------------------


def clusters_for(k: Array, clusters: Array) -> tuple[int, float]:
    """How many clusters hold `MOST` of k, and the share of k that the first of them holds. clusters: (n, c)."""
    shares = np.sort(k @ clusters / k.sum())[::-1]
    return int(np.searchsorted(shares.cumsum(), MOST - 1e-9) + 1), float(shares[0])


def kernel_at(layer: Array, centre: Array, total: float) -> Array:
    """(n,) the light's kernel around a place, as wide as its sum over the rows of layer asks."""
    far = ((layer - centre) ** 2).sum(axis=1)
    low = 0.0
    high = float(far.max()) * 1e3
    for _ in range(100):
        middle = (low + high) / 2
        if np.maximum(1 - far / max(middle, 1e-300), 0).sum() < total:
            low = middle
        else:
            high = middle
    return np.maximum(1 - far / high, 0)


def spread(case: Case, seed: int) -> Measures:
    half = halves(case, seed)
    weights = weights_of(case, seed)
    searched = half.searched
    clusters = np.stack(weights["mixture"], axis=1)[searched]
    light = weights[PUBLISHED][0][searched]
    first = worst(weights["mixture"], half, case.size * searched.sum() / 2)[0][searched]
    layer = np.asarray(case.hidden, dtype=np.float64)[searched]
    centres = layer[np.random.default_rng([seed, 5]).choice(len(layer), PLACES, replace=False)]
    places = [kernel_at(layer, centre, float(light.sum())) for centre in centres]
    compared = {
        PUBLISHED: [light],
        "light": [weights["light"][0][searched]],
        "any place": places,
        "highest loss": [weights["highest loss"][0][searched]],
        "all rows": [np.ones(len(layer))],
    }
    measures = {}
    for name, each in compared.items():
        counts, largest = zip(*[clusters_for(k, clusters) for k in each], strict=True)
        inside = [float(k @ first / k.sum()) for k in each]
        measures[name] = {
            "clusters": float(np.mean(counts)),
            "in the first of them": float(np.mean(largest)),
            "in the worst cluster": float(np.mean(inside)),
        }
    return measures


# --- where ImageNet's errors go ------------------------------------------------------------------------------------


def staying(case: Case, seed: int) -> Measures:
    """Of held-out rows: which share of the errors has a prediction in the true super-class."""
    assert case.coarse is not None
    half = halves(case, seed)
    held = ~half.searched
    true = case.coarse[case.labels]
    same = case.coarse[case.probs.argmax(axis=1)] == true
    errors = half.errors
    chance = np.array([same[held & (errors > 0) & (true == c)].mean() for c in range(true.max() + 1)])[true]
    weights = weights_of(case, seed)
    compared = {name: weights[name][0] for name in (PUBLISHED, "light", "highest loss", "all rows")}
    further = weights_of_lights(half, seed, *options_of(case, case.size, 5)[PUBLISHED])
    compared |= {f"{PUBLISHED}, {number}": further[:, number - 1] for number in range(2, further.shape[1] + 1)}
    measures = {}
    for name, k in compared.items():
        wrong = np.where(held, k * errors, 0.0)
        lit = np.where(held, k, 0.0)
        measures[name] = {
            "errors that stay": float(wrong @ same / wrong.sum()),
            "in kind": float(wrong @ chance / wrong.sum()),
            "beyond": float(wrong @ (same - chance) / wrong.sum()),
            "class right": 1 - float(lit @ errors / lit.sum()),
            "super-class right": float(lit @ same / lit.sum()),
        }
    return measures


# --- words and topics ----------------------------------------------------------------------------------------------


def lights_and_others(case: Case, half: Halves, seed: int) -> dict[str, Array]:
    """Three lights of either kind, the highest losses, and GEORGE's three worst clusters."""
    options = options_of(case, case.size, LIGHTS)
    named = {}
    for name in (PUBLISHED, "light"):
        found = weights_of_lights(half, seed, *options[name])
        named |= {f"{name}, {number + 1}": k for number, k in enumerate(found.T)}
    clusters = worst(clusters_of(case, half, seed), half, 1.0)[:LIGHTS]
    named |= {f"GEORGE, {number + 1}": k for number, k in enumerate(clusters)}
    return named | {"highest loss": highest_losses(case, half)}


def clusters_of(case: Case, half: Halves, seed: int) -> list[Array]:
    """(n,) of each cluster of GEORGE."""
    method, options = next((method, options) for name, method, options in methods(case) if name == "GEORGE")
    return list(weights_of_lights(half, seed, method, options).T)


def words(case: Case, seed: int) -> Measures:
    """How many times as frequent ten words of each are in it, which are printed, and how long its texts are."""
    assert case.texts is not None
    half = halves(case, seed)
    vectors = CountVectorizer(binary=True, min_df=FEWEST, token_pattern=r"(?u)\b[a-z]{2,}\b")
    vectors.fit(case.texts[half.searched])
    counts = vectors.transform(case.texts)
    vocabulary = vectors.get_feature_names_out()
    measures = {}
    chosen: dict[str, Array] = {}
    named = lights_and_others(case, half, seed)
    for name, k in named.items():
        chosen[name] = times_each(k, counts, half.searched).argsort()[::-1][:WORDS]
        print(f"seed {seed}, {name}: {', '.join(vocabulary[chosen[name]])}")
    clusters = [k for name, k in named.items() if name.startswith("GEORGE")]
    for name, k in named.items():
        mine = chosen[name]
        measures[name] = {
            "times as frequent, searched": times_together(k, counts[:, mine], half.searched),
            "held out": times_together(k, counts[:, mine], ~half.searched),
            "in that of three GEORGE clusters with most": max(
                times_together(cluster, counts[:, mine], ~half.searched) for cluster in clusters
            ),
            **lengths(k, case.texts, ~half.searched),
        }
    everything = lengths(np.ones(len(case.texts)), case.texts, ~half.searched)
    measures["all rows"] = {**dict.fromkeys(measures[PUBLISHED + ", 1"], np.nan), **everything}
    return measures


def lengths(k: Array, texts: Array, rows: Array) -> dict[str, float]:
    """Words of a text among the rows, by weight, and beyond the mean of them all."""
    each = np.array([len(text.split()) for text in texts])
    weight = np.where(rows, k, 0.0)
    mine = float(weight @ each / max(weight.sum(), 1e-12))
    return {"words of a text": mine, "more than all rows": mine - float(each[rows].mean())}


def frequencies(k: Array, counts: Array, rows: Array) -> tuple[Array, Array]:
    """(m,) of each word among the rows: its share of k, and its share of all of them."""
    weight = np.where(rows, k, 0.0)
    mine = np.asarray(counts.T @ (weight / max(weight.sum(), 1e-12))).ravel()
    everywhere = np.asarray(counts.T @ (rows / rows.sum())).ravel()
    return mine, everywhere


def times_each(k: Array, counts: Array, rows: Array) -> Array:
    """(m,) how many times as frequent each word is in k as in all of the rows."""
    mine, everywhere = frequencies(k, counts, rows)
    return mine / np.maximum(everywhere, 1e-12)


def times_together(k: Array, counts: Array, rows: Array) -> float:
    """How many times as frequent the words are in k as in all of the rows, by their mean frequency."""
    mine, everywhere = frequencies(k, counts, rows)
    return float(mine.sum() / max(everywhere.sum(), 1e-12))


def topics(case: Case, seed: int) -> Measures:
    """Shares of the topics, of highest mean loss first, among held-out rows."""
    half = halves(case, seed)
    held = ~half.searched
    kinds = case.kinds.astype(int)
    searched = [half.losses[half.searched & (kinds == topic)].mean() for topic in range(len(TOPICS))]
    order = np.argsort(searched)[::-1]
    print(f"seed {seed}: {', '.join(f'{TOPICS[topic]} {searched[topic]:.3f}' for topic in order)}")
    measures = {}
    for name, k in {**lights_and_others(case, half, seed), "all rows": np.ones(len(kinds))}.items():
        weight = np.where(held, k, 0.0)
        shares = [float(weight @ (kinds == topic) / max(weight.sum(), 1e-12)) for topic in order]
        loss = {"loss, held out": float(weight @ half.losses / max(weight.sum(), 1e-12))}
        measures[name] = {f"topic {number + 1}": share for number, share in enumerate(shares)} | loss
    return measures


# --- GEORGE's clusters ---------------------------------------------------------------------------------------------


def george(case: Case, seed: int) -> Measures:
    """What the worst clusters hold, by held-out rows, with a filter of size and without one, and of each label."""
    half = halves(case, seed)
    clusters = clusters_of(case, half, seed)
    by_loss = worst(clusters, half, 1.0)
    label_of = {id(k): int(case.labels[k > 0][0]) for k in by_loss if k.any()}  # a cluster lies within its label
    named = {"worst of half a light's size": worst(clusters, half, case.size * half.searched.sum() / 2)[0]}
    named |= {f"{place} of any size": k for place, k in zip(("worst", "second", "third"), by_loss, strict=False)}
    for label in np.unique(case.labels):
        mine = [k for k in by_loss if label_of.get(id(k)) == label]
        named |= {f"worst of label {label}": k for k in mine[:1]}
    sizes = [f"{k[half.searched].sum():.0f} of label {label_of.get(id(k))}" for k in by_loss[:LIGHTS]]
    print(f"seed {seed}: {len(label_of)} clusters; searched rows of the three worst: {', '.join(sizes)}")
    measures = {}
    for name, k in {**named, "all rows": np.ones(len(case.labels))}.items():
        found = region(case, k, half.losses, half.errors, half.searched)
        told = {"share, held out": found.held, "loss, searched": found.searched, "loss, held out": found.loss}
        measures[name] = {**told, "error": found.error, **found.facts}
    return measures


STUDIES: dict[str, tuple[Callable[[Case, int], Measures], tuple[str, ...]]] = {
    "spread": (spread, tuple(name for name in CASES if name != "scenes")),
    "errors": (staying, ("imagenet",)),
    "words": (words, ("news", "sst2")),
    "topics": (topics, ("news",)),
    "george": (george, ("movielens", "faces")),
}


def print_table(name: str, runs: list[Measures]) -> None:
    """A line for each weight; a light that not every model has is of those that have it."""
    names = list(dict.fromkeys(weight for run in runs for weight in run))
    columns = list(runs[0][names[0]])
    print(f"\n{name}; n = {len(runs)} models\n| | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    for weight in names:
        mine = [run[weight] for run in runs if weight in run]
        if len(mine) > 1:
            cells = [over_finite_runs([run[column] for run in mine], 3) for column in columns]
            print(f"| {weight} | {' | '.join(cells)} |")


def print_differences(runs: list[Measures]) -> None:
    """What the published light has beyond each other weight, by model."""
    for weight in runs[0]:
        if weight != PUBLISHED and PUBLISHED in runs[0] and all(weight in run for run in runs):
            columns = runs[0][PUBLISHED]
            less = {c: over_finite_runs([run[PUBLISHED][c] - run[weight][c] for run in runs], 3) for c in columns}
            print(f"light less {weight}: " + ", ".join(f"{column} {value}" for column, value in less.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    measure, names = STUDIES[asked.study]
    for name in asked.cases or names:
        if name not in names:
            parser.error(f"{asked.study} is of {', '.join(names)}, not of {name}")
        runs = [measure(CASES[name](seed, asked.cache), seed) for seed in asked.seeds]
        if len(runs) < 2:
            print(f"\n{name}, {asked.study}: one model has no interval, so no table; give --seeds two or more")
            continue
        print_table(f"{name}, {asked.study}", runs)
        print_differences(runs)


if __name__ == "__main__":
    main()
