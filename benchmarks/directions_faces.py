"""Failure directions on UTKFace, old or young, gender planted against age (the CelebA study of Jain et al. 2023).

    python benchmarks/directions_faces.py flagged    how many of the flagged test rows are of the minority gender
    python benchmarks/directions_faces.py ranking    its share of the hardest test rows, by ranking
    python benchmarks/directions_faces.py own        the same by the network's own layer, beside confidence
    python benchmarks/directions_faces.py natural    the same with men and women as UTKFace has them
    python benchmarks/directions_faces.py strength   the direction's strength against the planted ratio
    python benchmarks/directions_faces.py captions   what the hardest captions say, and what was measured of them
    python benchmarks/directions_faces.py unbalanced the same with validation rows as unbalanced as training rows
    python benchmarks/directions_faces.py upweight   flagged training rows count two or four times, beside the oracle
    python benchmarks/directions_faces.py runs       directions of one network on a second run and another architecture

Four in five of the training rows are young women or old men. Directions come from validation rows, all numbers from
test rows. --seeds: of split and network. Data: ERRATA_DATA, or ../shared/data beside the clone. Wants what
benchmarks/bridge.py wants; what EfficientNet sees in 23,705 pictures and what each small network says is then in
--cache. Several studies at once share their bridges. Exits 1 where a claim does not hold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from scipy.stats import t as student
from sklearn.metrics import roc_auc_score

import bridge as bridging
import errata
from bridge import said, table
from errata import Captions, Evaluation, Slice, fix
from errata.core.gaps import wilson
from errata.explain.captions import Direction, caption_slice
from errata.explain.view import SliceView
from errata.slicers import make
from errata.slicers.domino.slicer import Domino
from faces import CLASSES, EPOCHS, GENDERS, METHODS, OTHER, OWN, PLAIN, PX, SPACES, WEIGHTS, Faces, World, bridge_of
from trained import Recipe, over_finite_runs, over_runs

Array = np.ndarray
RECIPES = {
    "confidence": PLAIN,
    "LfF": Recipe(EPOCHS, q=0.7),
    "JTT, 1 epoch": Recipe(1),
    "JTT, 2 epochs": Recipe(2),
}
OURS = ("directions, backbone", "directions, bridge", "directions, bridge, ridge")
RANKINGS = (*OURS, *RECIPES, "Domino", "random")
BY_OWN_LAYER = f"directions, {OWN}"
TOP = (50, 100, 200)
# training rows a class, the same for every ratio
RATIOS = range(1, 9)
SMALLER = 1250
NATURAL = 2000  # where nothing is planted: there are no more old women
PERMUTATIONS = 20
FACTORS = (2.0, 4.0)
WAYS = ("directions, bridge", "random", "confidence", "oracle")
ATTRIBUTES = (
    "with glasses",
    "with a smile",
    "with a beard",
    "with no beard",
    "with heavy makeup",
    "with long hair",
    "with short hair",
    "with brown hair",
    "with blond hair",
    "with black hair",
    "with grey hair",
    "with a hat",
    "with earrings",
    "with an oval face",
    "with a mouth that is slightly open",
)
# flagged of the minority; Spearman; how far from .5 a null may lie
WANTED = 0.7
CORRELATED = 0.9
COIN = 0.02


def brief(hits: float, n: int) -> str:
    low, high = wilson(hits, n)
    return f"{hits / n:.3f} ({low:.2f} to {high:.2f})"


def flagged(worlds: Sequence[World]) -> bool:
    for world in worlds:
        learnt = 1 - world.evaluation("train").errors.mean()
        told = accuracies(world.evaluation("test"))
        print(f"seed {world.seed}: right in training {learnt:.3f}, test minority {told[0]:.3f}, majority {told[1]:.3f}")
    rows = []
    shares = {}
    for unbalanced in (False, True):
        for space in SPACES:
            counts = np.array([flagged_counts(replace(world, like_training=unbalanced), space) for world in worlds])
            hits, n, there = counts.sum(axis=0)
            by_seed = ", ".join(f"{share:.3f}" for share in counts[:, 0] / counts[:, 1])
            way = "as training" if unbalanced else "balanced"
            rows.append([space, way, said(hits, n), by_seed, said(hits, there)])
            shares[space, unbalanced] = hits / n
    table(["space", "validation", "minority among flagged", "by seed", "flagged among the minority"], rows)
    base = np.concatenate([world.faces.minority[world.roles["test"]] for world in worlds])
    wrong = np.concatenate([world.evaluation("test").errors for world in worlds])
    print(f"\nminority among test rows: {said(base.sum(), len(base))}")
    print(f"minority among the network's errors: {said(base[wrong].sum(), wrong.sum())}")
    return min(shares["backbone", False], shares["bridge", False]) >= WANTED


def flagged_counts(world: World, space: str) -> list[int]:
    """Test rows that are flagged and of the minority, flagged, of the minority."""
    hard = world.decisions(space) < 0
    minority = world.faces.minority[world.roles["test"]]
    return [(hard & minority).sum(), hard.sum(), minority.sum()]


def accuracies(test: Evaluation) -> tuple[float, float, float]:
    """Of the minority, of the majority, of all rows."""
    right = ~test.errors
    minority = test.metadata["minority"]
    return float(right[minority].mean()), float(right[~minority].mean()), float(right.mean())


def ranking(worlds: Sequence[World]) -> bool:
    found = {name: np.sum([top_counts(world, name) for world in worlds], axis=0) for name in RANKINGS}
    asked = [len(worlds) * k for _ in CLASSES for k in TOP]
    rows = [[name, *(brief(hits, n) for hits, n in zip(counts, asked, strict=True))] for name, counts in found.items()]
    table(["ranking", *(f"{name}, top {k}" for name in CLASSES for k in TOP)], rows)
    print(f"\nn: {len(worlds)} seeds times K")
    others = [name for name in RANKINGS if name not in OURS]
    lost = {mine: [name for name in others if (found[mine] <= found[name]).any()] for mine in OURS}
    for mine, names in lost.items():
        print(f"{mine}: not above at every K in both classes: {', '.join(names) or 'none'}")
    return not lost[OURS[0]]


def own(worlds: Sequence[World]) -> bool:
    """Does a direction of the network's own layer rank as confidence does?"""
    asked = np.tile(TOP, len(CLASSES))
    mine = np.array([top_counts(world, BY_OWN_LAYER) for world in worlds]) / asked
    confidence = np.array([top_counts(world, "confidence") for world in worlds]) / asked
    more = mine - confidence
    rows = []
    for name, shares in ((BY_OWN_LAYER, mine), ("confidence", confidence), ("more than confidence", more)):
        rows.append([name, *(over_runs(column) for column in shares.T)])
    table(["ranking", *(f"{name}, top {k}" for name in CLASSES for k in TOP)], rows)
    alike = np.array([rank_agreement(world) for world in worlds])
    for label, name in enumerate(CLASSES):
        print(f"\n{name}: Spearman of both rankings, over test rows of the class: {over_runs(alike[:, label])}")
    error = more.std(axis=0, ddof=1) / np.sqrt(len(worlds))
    return bool((np.abs(more.mean(axis=0)) <= student.ppf(0.975, len(worlds) - 1) * error).all())


def rank_agreement(world: World) -> list[float]:
    """Of each class the Spearman correlation of the own layer's ranking and confidence's."""
    labels = world.evaluation("test").labels
    mine = hardnesses(world, BY_OWN_LAYER)
    doubt = hardnesses(world, "confidence")
    return [float(spearmanr(mine[labels == k], doubt[labels == k]).statistic) for k in range(len(CLASSES))]


def natural(worlds: Sequence[World]) -> bool:
    """Nothing is planted: is the smaller gender of a class, or the one that errs more, among the hardest?"""
    worlds = [replace(world, ratio=None, size=NATURAL) for world in worlds]
    held = []
    for label, name in enumerate(CLASSES):
        errors = np.array([gender_errors(world, label) for world in worlds])
        print(f"\n{name}: {over_runs(errors[:, 0])} are of the smaller gender, a {GENDERS[label]}")
        print(f"error rate of it {over_runs(errors[:, 1])}, of the others {over_runs(errors[:, 2])}")
        shares = {way: np.array([top_shares(world, way, label) for world in worlds]) for way in (OURS[0], "confidence")}
        rows = [[way, *(over_runs(column) for column in found.T)] for way, found in shares.items()]
        more = shares[OURS[0]] - shares["confidence"]
        rows.append(["directions less confidence", *(over_runs(column) for column in more.T)])
        table(["ranking", *(f"top {k}" for k in TOP)], rows)
        held.append(bool((more.mean(axis=0) > 0).all()))
    return all(held)


def gender_errors(world: World, label: int) -> list[float]:
    """The smaller gender's share of the test rows of a class, its error rate, and that of the others."""
    test = world.evaluation("test")
    own = test.labels == label
    smaller = test.metadata["minority"]
    return [float(values.mean()) for values in (smaller[own], test.errors[own & smaller], test.errors[own & ~smaller])]


def top_shares(world: World, name: str, label: int) -> Array:
    """(K,) the smaller gender's share of the hardest test rows of a class."""
    counts = np.array(top_counts(world, name)).reshape(len(CLASSES), len(TOP))
    return counts[label] / np.array(TOP)


def top_counts(world: World, name: str) -> list[int]:
    """Rows of the minority among the K hardest test rows of each class."""
    test = world.evaluation("test")
    hardness = hardnesses(world, name)
    counts = []
    for label in range(len(CLASSES)):
        own = np.flatnonzero(test.labels == label)
        minority = test.metadata["minority"][own[np.argsort(-hardness[own], kind="stable")]]
        counts += [int(minority[:k].sum()) for k in TOP]
    return counts


def hardnesses(world: World, name: str) -> Array:
    """(n,) of test rows, larger where they are held to be harder."""
    if name in (*OURS, BY_OWN_LAYER):
        return -world.decisions(name.partition(", ")[2])
    if name == "Domino":
        return by_domino(world)
    if name == "random":
        return fix.by_chance(world.evaluation("test"), world.seed)
    return fix.by_confidence(world.evaluation("test", found=world.seen(RECIPES[name])))


def by_domino(world: World) -> Array:
    """The weight in the two slices of a row's class; label and prediction count ten times, as published."""
    searched = world.evaluation("validation")
    test = world.evaluation("test")
    weights = np.zeros(len(test))
    for label in range(len(CLASSES)):
        own = test.labels == label
        domino = domino_of(world, searched.rows(searched.labels == label))
        weights[own] = domino.membership(test.rows(own)).sum(axis=1)
    return weights


def domino_of(world: World, rows: Evaluation) -> Domino:
    slicer = make("domino:as_published", seed=world.seed, options={"slices": 2})
    slicer.fit(rows)
    return slicer


def strength(worlds: Sequence[World]) -> bool:
    rows = []
    by_seed = []
    for ratio in RATIOS:
        planted = [replace(world, ratio=ratio, size=SMALLER) for world in worlds]
        facts = np.array([list(strengths(world)) for world in planted])  # (seeds, classes, 5)
        by_seed.append(facts.mean(axis=1))
        rows.append([ratio, *(over_runs(column) for column in facts.reshape(-1, facts.shape[2]).T)])
    told = [f"{space}: {name}" for space in SPACES[:2] for name in ("strength", "its null")]
    table(["ratio", *told, "accuracy of the minority"], rows)
    seeds = np.transpose(by_seed, (1, 2, 0))  # (seeds, 5, ratios)
    within_seeds(seeds[:, [0, 2, 4]])
    curves = seeds.mean(axis=0)
    rises = [float(spearmanr(RATIOS, curves[j]).statistic) for j in (0, 2)]
    off = float(np.abs(curves[[1, 3]] - 0.5).max())
    print(f"\nSpearman of mean strength with the ratio, n = 8: backbone {rises[0]:.2f}, bridge {rises[1]:.2f}")
    print(f"largest distance of a mean null from .5: {off:.3f}")
    return min(rises) >= CORRELATED and off <= COIN


def within_seeds(curves: Array) -> None:
    """curves: (seeds, 3, ratios), strength in two spaces and the accuracy of the minority, means of both classes."""
    for j, name in enumerate(("strength, backbone", "strength, bridge", "accuracy of the minority")):
        order = [float(spearmanr(RATIOS, curve).statistic) for curve in curves[:, j]]
        print(f"\n{name}: Spearman with the ratio within a seed {over_finite_runs(order, 3)}")
        cells = [over_finite_runs(column, 3) for column in (curves[:, j] - curves[:, j, :1]).T[1:]]
        print(f"more than at 1:1, from 2:1 on: {', '.join(cells)}")
        print(f"its steps: {', '.join(over_finite_runs(column, 3) for column in np.diff(curves[:, j]).T)}")


def strengths(world: World) -> Iterator[list[float]]:
    """For each class: strength and the mean of its null in two spaces, test accuracy of the minority."""
    test = world.evaluation("test")
    slicers = [world.directions(space, PERMUTATIONS) for space in SPACES[:2]]
    for label in range(len(CLASSES)):
        rules = [rule for slicer in slicers for rule in slicer.rules_ if rule["scope"]["label"] == label]
        facts = [value for rule in rules for value in (rule["strength"], rule["null"]["mean"])]
        yield [*facts, 1 - float(test.errors[(test.labels == label) & test.metadata["minority"]].mean())]


def captions(worlds: Sequence[World], spaces: Sequence[str] = (*METHODS, WEIGHTS)) -> bool:
    named = {}
    for space in spaces:
        print(f"\n{space}. Man or woman of test rows: {', '.join(told_gender(world, space) for world in worlds)}")
        found = []
        for world in worlds:
            candidates = placed_captions(world, space, texts_of_study())
            found += [(world, *one) for one in captioned(world, space, candidates)]
        rows = [row for world, label, data in found for row in caption_rows(world, label, data)]
        head = ["seed", "class", "its error rate", "side", "caption", "score", "coverage", "precision", "error rate"]
        table(head, rows)
        hardest = [(label, data["hard"][0]["text"]) for _, label, data in found if data["hard"]]
        named[space] = [names_gender(text, GENDERS[label]) for label, text in hardest]
        other = sum(names_gender(text, GENDERS[1 - label]) for label, text in hardest)
        print(f"\nhardest caption names the minority gender: {said(sum(named[space]), len(found))} of directions")
        print(f"the other gender: {other}; chance, of the candidates: {1 / 3:.3f}")
    return len(named["bridge"]) == len(CLASSES) * len(worlds) and all(named["bridge"])


def unbalanced(worlds: Sequence[World]) -> bool:
    return captions([replace(world, like_training=True) for world in worlds], ("bridge", WEIGHTS))


def names_gender(text: str, gender: str) -> bool:
    return gender in text.split()


def texts_of_study() -> list[str]:
    return errata.explain.caption_candidates(("person", *GENDERS), adjectives=CLASSES, prepositions=ATTRIBUTES)


def told_gender(world: World, space: str) -> str:
    test = world.roles["test"]
    names = bridging.sentences(errata.explain.reference_captions(GENDERS))
    found = bridge_of(world.faces, world.seed, space)
    score = found.zero_shot(world.faces.features[test], (~world.faces.male[test]).astype(int), names)
    return said(score.accuracy * score.n, score.n)


def caption_rows(world: World, label: int, data: dict[str, Any]) -> Iterator[list[Any]]:
    rate = data["class_rate"]
    for side, one in [("hard", one) for one in data["hard"][:2]] + [("easy", one) for one in data["easy"][:1]]:
        found = one["matches"]
        rates = [f"{brief(hits, n)}, n = {n}" for hits, n in (found["covers"], found["precise"])]
        failed = f"{brief(found['errors'], found['n'])}, n = {found['n']}"
        told = [CLASSES[label], brief(rate["errors"], rate["n"]), side, one["text"], f"{one['score']:.2f}"]
        yield [world.seed, *told, *rates, failed]


def captioned(world: World, space: str, candidates: Captions) -> Iterator[tuple[int, dict[str, Any]]]:
    """For each class its captions: directions and thresholds from validation rows, measured on test rows."""
    slicer = world.directions(space)
    parts = [world.evaluation(role, space) for role in ("validation", "test")]
    both = Evaluation(
        labels=np.concatenate([part.labels for part in parts]),
        probs=np.concatenate([part.probs for part in parts]),
        representations={space: np.concatenate([part.representations[space] for part in parts])},
        class_names=CLASSES,
    )
    weights = slicer.membership(both)
    searched = np.arange(len(both)) < len(parts[0])
    for j, rule in enumerate(slicer.rules_):
        label = rule["scope"]["label"]
        cut = slicer.thresholds_[j]
        found = Slice(f"s{j}", slicer.name, "", "not confirmed", cut, rule, weights[:, j], column=j)
        view = SliceView(found, both, found.members, (both.labels == label) & ~found.members, searched)
        direction = Direction.of(found, slicer.to_state().arrays)
        data = caption_slice(view, candidates, direction).to_json()
        data["hard"].sort(key=lambda row: row["score"])
        data["easy"].sort(key=lambda row: -row["score"])
        yield label, data


def placed_captions(world: World, space: str, texts: list[str]) -> Captions:
    placed = bridge_of(world.faces, world.seed, space).transform_texts(bridging.sentences(texts))
    references = errata.explain.reference_captions([f"{name} person" for name in CLASSES])
    return Captions(texts, placed, space, references=references, score="difference")  # as the study was told


def upweight(worlds: Sequence[World]) -> bool:
    own = [world.decisions(OWN, "train") < 0 for world in worlds]
    print(f"training rows flagged in the own layer: {said(np.sum(own), np.size(own))}")
    print(
        f"training rows that are right: {over_runs([float(1 - w.evaluation('train').errors.mean()) for w in worlds])}"
    )
    arms = {(way, factor): [] for factor in FACTORS for way in WAYS}
    before = []
    chosen: dict[str, list[Array]] = {way: [] for way in WAYS}
    for world in worlds:
        before.append(accuracies(world.evaluation("test")))
        for way in WAYS:
            chosen[way].append(to_upweight(world, way))
            for factor in FACTORS:
                arms[way, factor].append(accuracies(retrained(world, chosen[way][-1], factor)))
        gains = ", ".join(f"{way} {factor:g} {arms[way, factor][-1][0] - before[-1][0]:+.3f}" for way, factor in arms)
        print(f"seed {world.seed}: minority {before[-1][0]:.3f}; {gains}", flush=True)
    rows = [["nothing", "", "", *(over_runs(column) for column in np.transpose(before)), "", ""]]
    gained = {}
    for (way, factor), after in arms.items():
        gained[way, factor] = (np.array(after) - before).T
        hits = sum(int((some & minority(world)).sum()) for world, some in zip(worlds, chosen[way], strict=True))
        told = [over_runs(column) for column in (*np.transpose(after), gained[way, factor][0], gained[way, factor][2])]
        rows.append([way, f"{factor:g}", said(hits, np.sum(chosen[way])), *told])
    counted = ["upweighted", "factor", "minority among them"]
    table([*counted, "accuracy: minority", "majority", "all", "gain: minority", "gain: all"], rows)
    for factor in FACTORS:
        more = gained[WAYS[0], factor][0]
        for way in WAYS[1:]:
            print(f"\n{WAYS[0]} less {way}, factor {factor:g}: {over_runs(more - gained[way, factor][0])}")
    return bool(gained[WAYS[0], FACTORS[0]][0].mean() > gained["random", FACTORS[0]][0].mean())


def minority(world: World) -> Array:
    return world.faces.minority[world.roles["train"]]


def to_upweight(world: World, way: str) -> Array:
    """(n,) bool: training rows that shall count more."""
    if way == "oracle":
        return minority(world)
    hard = world.decisions("bridge", "train") < 0
    if way == "random":
        return np.random.default_rng(world.seed).permutation(hard)
    if way == "confidence":  # as many rows, those that the network is least sure of
        order = np.argsort(-fix.by_confidence(world.evaluation("train")), kind="stable")
        hard = np.isin(np.arange(len(hard)), order[: hard.sum()])
    return hard


def retrained(world: World, chosen: Array, factor: float) -> Evaluation:
    """Test rows of a network trained with some rows counted more."""
    train = world.evaluation("train")
    weights = fix.upweight(train, chosen, factor).weights_of(train)
    return world.evaluation("test", found=world.seen(PLAIN, weights=weights))


def runs(worlds: Sequence[World]) -> bool:
    others = {"itself": (PLAIN, 0), "a second run": (PLAIN, 1000), "another architecture": (OTHER, 0)}
    rows = []
    held = []
    for name, (recipe, more) in others.items():
        found = np.array([fact for world in worlds for fact in carried(world, recipe, world.seed + more)])
        hard, easy = np.split(found[:, :4].sum(axis=0).astype(int), 2)
        rows.append([name, said(*hard), said(*easy), *(over_runs(column) for column in found.T[4:])])
        held.append(wilson(*hard)[0] > wilson(*easy)[1])
    told = ["error rate of flagged rows", "of the others", "AUC of the direction", "AUC of the first one's confidence"]
    table(["errors of", *told], rows)
    return all(held)


def carried(world: World, recipe: Recipe, seed: int) -> Iterator[list[float]]:
    """For each class how the first network's direction foretells another's errors on test rows: counts, then areas."""
    first = world.evaluation("test")
    other = world.evaluation("test", found=world.seen(recipe, seed))
    hardness = -world.decisions("backbone")
    doubt = fix.by_confidence(first)
    for label in range(len(CLASSES)):
        own = other.labels == label
        wrong = other.errors[own]
        hard = hardness[own] > 0
        areas = [float(roc_auc_score(wrong, values[own])) for values in (hardness, doubt)]
        yield [wrong[hard].sum(), hard.sum(), wrong[~hard].sum(), (~hard).sum(), *areas]


STUDIES: dict[str, Callable[[Sequence[World]], bool]] = {
    "flagged": flagged,
    "ranking": ranking,
    "own": own,
    "natural": natural,
    "strength": strength,
    "captions": captions,
    "unbalanced": unbalanced,
    "upweight": upweight,
    "runs": runs,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=STUDIES, nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--px", type=int, default=PX, help=f"that networks see; a divisor of {PX}")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    faces = Faces.read(asked.cache)
    worlds = [World(faces, seed, px=asked.px) for seed in asked.seeds]
    held = []
    for study in asked.study:
        held.append(STUDIES[study](worlds))
        outcome = "holds" if held[-1] else "DOES NOT HOLD"
        print(f"\n{study}: {outcome}\n", flush=True)
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
