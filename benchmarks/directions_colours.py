"""Does a caption's colour mean anything, by what the bridge has read? (Jain et al. 2023, figures 7a, 25, 29)

    python benchmarks/directions_colours.py near      is a picture that lies nearer to "white" than to "black" brighter?
    python benchmarks/directions_colours.py captions  of ten classes, is the colour that a direction calls hard hard?

Pictures have no captions here, so a bridge reads some that are written from their pixels: "a photo of a white cat" for
the third of the cats that is brightest, "black" for the darkest, and so on for red and blue, green and red. `near`
compares it with bridges that read names only (benchmarks/directions_many.py), and with one that read colours of five
classes and only the names of the five that it is asked about. `captions`: a network trained on all of CIFAR-10, as in
directions_whole.py; by direction, class and pair of colours: the difference of the two captions' scores beside the
difference of accuracy, on held-out rows, between the third that is lighter (redder) and the one that is darker; and
accuracy of the rows nearest to the hardest and the easiest of six captions. Wants what benchmarks/bridge.py wants.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import bridge as bridging
from bridge import CLASSES, table
from directions_many import STUDIES, World, cuts, pictures
from directions_near import Coarse, fields_of
from directions_whole import Pictures, evaluation
from errata import Source
from errata.core.blocks import unit
from errata.explain.captions import correlation_scores
from errata.inputs import Bridge
from errata.slicers.directions.slicer import Directions
from trained import Recipe, over_runs, seen_by

Array = np.ndarray
PAIRS = (("white", "black"), ("red", "blue"), ("green", "red"))
TOP = (25, 50, 100)
SPACE = "coloured"
NEAR = "a photo of a {} {}"


def tones(pixels: Array) -> list[Array]:
    """What the pixels say of each pair: larger where the first word is truer. pixels: (n, px, px, 3)."""
    rgb = pixels.mean(axis=(1, 2), dtype=np.float64)
    return [rgb.mean(axis=1), rgb[:, 0] - rgb[:, 2], rgb[:, 1] - rgb[:, 0]]


def thirds(values: Array, labels: Array) -> Array:
    """(n,) 1 in the upper third of its class, -1 in the lower, 0 between."""
    found = np.zeros(len(values), int)
    for label in np.unique(labels):
        own = labels == label
        low, high = np.quantile(values[own], [1 / 3, 2 / 3])
        found[own] = (values[own] > high).astype(int) - (values[own] < low)
    return found


def captioned(pixels: Array, names: Array, coloured: Sequence[str]) -> list[list[str]]:
    """Of each picture its captions: those with a colour that shows, if its name is among those that get colours."""
    texts: list[list[str]] = [[f"a photo of a {name}"] for name in names]
    for pair, values in zip(PAIRS, tones(pixels), strict=True):
        for row, side in enumerate(thirds(values, names)):
            if side and names[row] in coloured:
                texts[row].append(NEAR.format(pair[int(side < 0)], names[row]))
    return texts


def of_captions(features: Array, captions: Sequence[Sequence[str]]) -> Bridge:
    """A picture is there once for each of its captions."""
    rows = np.repeat(np.arange(len(captions)), [len(each) for each in captions])
    texts, number = np.unique([text for each in captions for text in each], return_inverse=True)
    return Bridge.fit(features[rows], bridging.sentences(texts.tolist())[number])


# --- nearness ------------------------------------------------------------------------------------------------


def near(asked: argparse.Namespace) -> None:
    """Spearman, within each class of CIFAR-10, of nearness to one colour rather than another and of what pixels say."""
    found: dict[str, list[list[list[float]]]] = {}  # by bridge: (worlds, pairs, classes)
    for seed in asked.seeds:
        world = World(pictures(str(asked.cache)), STUDIES["two"], seed, cuts("two", 0))
        for name, spearmans in of_world(world).items():
            found.setdefault(name, []).append(spearmans)
    rows = []
    for number, pair in enumerate(PAIRS):
        means = {name: np.mean([one[number] for one in worlds], axis=0) for name, worlds in found.items()}
        rows.append([", ".join(pair), *(over_runs(each) for each in means.values())])
    print(f"mean over ten classes, each the mean of {len(asked.seeds)} splits")
    table(["colours", *found], rows)


def of_world(world: World) -> dict[str, list[list[float]]]:
    pool = world.roles["pool"]
    names = world.pictures.name[pool]
    seen = (world.pictures.pixels[pool], names)
    features = world.pictures.features[pool]
    halves = world.study.names[::2], world.study.names[1::2]
    others = [of_captions(features, captioned(*seen, half)) for half in halves]
    bridges = {
        "names": [world.named] * 2,
        "ImageNet's names": [Coarse(**fields_of(world)).named] * 2,
        "names and colours": [of_captions(features, captioned(*seen, world.study.names))] * 2,
        "colours of other classes": others[::-1],
    }
    found = {name: [follows(world, pair, both) for pair in range(len(PAIRS))] for name, both in bridges.items()}
    values = tones(world.pictures.pixels)
    return found | {"a regression on the features": [list(by_features(world, each)) for each in values]}


def follows(world: World, pair: int, bridges: Sequence[Bridge]) -> list[float]:
    """By class. bridges: one for classes of even number, one for the others."""
    test = world.roles["test"]
    values = tones(world.pictures.pixels[test])[pair]
    found = []
    for c, name in enumerate(world.study.names):
        machine = bridges[c % 2]
        first, second = machine.transform_texts(bridging.sentences([NEAR.format(word, name) for word in PAIRS[pair]]))
        own = world.fine[test] == c
        nearness = machine.transform_images(world.pictures.features[test[own]]) @ (first - second)
        found.append(float(spearmanr(nearness, values[own]).statistic))
    return found


def by_features(world: World, values: Array) -> Iterator[float]:
    """What a regression on validation rows tells of test rows of each class: the most that a bridge could know."""
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import StandardScaler

    known = world.roles["validation"]
    test = world.roles["test"]
    scaler = StandardScaler().fit(world.pictures.features[known])
    model = Ridge(1000.0).fit(scaler.transform(world.pictures.features[known]), values[known])
    guessed = model.predict(scaler.transform(world.pictures.features[test]))
    for c in range(len(world.study.names)):
        own = world.fine[test] == c
        yield float(spearmanr(guessed[own], values[test][own]).statistic)


# --- captions of a network on all of CIFAR-10 ----------------------------------------------------------------


def captions(asked: argparse.Namespace) -> None:
    whole = Pictures.read(asked.cache)
    known = pictures(str(asked.cache))
    rows = np.flatnonzero(~known.test & np.isin(known.name, CLASSES))
    features = known.features[rows]
    coloured = captioned(known.pixels[rows], known.name[rows], CLASSES)
    plain = [each[:1] for each in coloured]
    bridges = {"names and colours": of_captions(features, coloured), "names": of_captions(features, plain)}
    for name, machine in bridges.items():
        placed = machine.recentred(whole.features)
        runs = [of_network(whole, placed, seed, asked) for seed in asked.seeds]
        print(f"\n## bridge of {name}, from {len(rows):,} training images; {len(runs)} networks")
        report(runs)


def of_network(whole: Pictures, machine: Bridge, seed: int, asked: argparse.Namespace) -> list[dict[str, Array]]:
    """By class: what its direction says of the colours, and what is so."""
    training = whole.pixels["train"], whole.labels["train"]
    found = seen_by(asked.cache, Recipe(asked.epochs), training, whole.pixels["test"], seed=seed)
    placed = machine.transform_images(whole.features)
    rows = evaluation(whole, found).with_representation(SPACE, placed, Source(from_model=False))
    searched = np.random.default_rng([seed, 1]).random(len(rows)) < 0.5
    slicer = Directions(slices=None, permutations=0, representation=SPACE, seed=seed).fit(rows.rows(searched))
    decisions = slicer.decisions(rows)
    sides = [thirds(values, rows.labels) for values in tones(whole.pixels["test"])]
    facts = []
    for j, rule in enumerate(slicer.rules_):
        own = rows.labels == rule["scope"]["label"]
        name = CLASSES[rule["scope"]["label"]]
        texts = unit(
            machine.transform_texts(bridging.sentences([NEAR.format(w, name) for pair in PAIRS for w in pair]))
        )
        scores = correlation_scores(texts, placed, own & searched, decisions[:, j])
        held = own & ~searched
        facts.append(
            {
                "caption": scores[0::2] - scores[1::2],
                "direction": by_side(decisions[:, j], held, sides),
                "accuracy": by_side(~rows.errors, held, sides),
                "nearest": nearest(placed[held] @ texts.T, ~rows.errors[held], scores),
                "class": np.array([rule["scope"]["label"]]),
            }
        )
    return facts


def by_side(values: Array, held: Array, sides: Sequence[Array]) -> Array:
    """Of each pair: the mean in the third of the first word less that in the third of the second."""
    return np.array([values[held & (side > 0)].mean() - values[held & (side < 0)].mean() for side in sides])


def nearest(cosines: Array, right: Array, scores: Array) -> Array:
    """(2, K) accuracy of the rows nearest to the hardest caption, and to the easiest. cosines: (n, captions)."""
    orders = [np.argsort(-cosines[:, at], kind="stable") for at in (scores.argmin(), scores.argmax())]
    return np.array([[right[order[:k]].mean() for k in TOP] for order in orders])


def report(runs: Sequence[Sequence[Mapping[str, Array]]]) -> None:
    """Spearman and signs over classes and pairs, of each network, whose classes share a bridge and images; the networks
    share both too, which no interval here knows of."""
    for first, second in (("caption", "accuracy"), ("caption", "direction"), ("direction", "accuracy")):
        pairs = [(np.concatenate([f[first] for f in run]), np.concatenate([f[second] for f in run])) for run in runs]
        print(f"{first} and {second}: Spearman {over_runs([spearmanr(*both).statistic for both in pairs])}", end="")
        same = [float((np.sign(a) == np.sign(b)).mean()) for a, b in pairs]
        print(f"; the same sign {over_runs(same)}, {sum(len(a) for a, _ in pairs)} pairs")
    for pair, words in enumerate(PAIRS):
        accuracies = [[f["accuracy"][pair] for f in run] for run in runs]
        same = [np.mean([np.sign(f["accuracy"][pair]) == np.sign(f["caption"][pair]) for f in run]) for run in runs]
        differs = f"{', '.join(words)}: accuracy differs by {np.mean(np.abs(accuracies)):.3f}"
        print(f"{differs}; the same sign {over_runs(same)}")
    near_ = np.array([np.mean([f["nearest"] for f in run], axis=0) for run in runs])
    for i, k in enumerate(TOP):
        cells = [over_runs(near_[:, 0, i]), over_runs(near_[:, 1, i]), over_runs(near_[:, 1, i] - near_[:, 0, i])]
        print(f"nearest {k}: hardest {cells[0]}, easiest {cells[1]}, easiest less hardest {cells[2]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["near", "captions"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    {"near": near, "captions": captions}[asked.task](asked)


if __name__ == "__main__":
    main()
