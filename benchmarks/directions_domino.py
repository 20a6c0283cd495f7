"""Captions of Domino's worst slices beside a failure direction's hardest captions (Jain et al. 2023, appendix B.1.5).

    python benchmarks/directions_domino.py --seeds 3 4 5    do both name the minority gender, which are more niche?

The faces of benchmarks/directions_faces.py, the same candidates for both, in three spaces that images and texts share:
the bridge fitted to captions of age and gender, that of ImageNet's weights, and one that read race and more ages too.
Candidates: those of that script, and 75 whose words UTKFace can check (five ages or none, race, gender): of these a
caption is more niche where it names more attributes, and where fewer test rows of its class are such people. Slices
are found, and captions chosen, on validation rows. Means are over networks, of the two classes of each.

Domino as published: label and prediction count ten times, two slices. It captions by the mean of the slice less the
mean of its class; Jain et al. describe it as what is nearest to the mean of the slice. The worst slice of each class
is from a Domino of that class; they may have run one of both classes. And, to tell what is due to the slices from what
is due to the words, Domino's procedure for the rows that the direction flags. Wants what benchmarks/bridge.py wants.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from bridge import said, table
from directions_faces import captioned, domino_of, names_gender, placed_captions, texts_of_study
from errata import Captions, Evaluation
from errata.core.blocks import unit
from errata.explain.descriptions import describe
from errata.slicers.directions.slicer import Directions
from faces import AGES, CLASSES, GENDERS, OTHER_AGES, PX, RACES, TOLD, WEIGHTS, Faces, World
from trained import over_runs

Array = np.ndarray
BRIDGES = ("bridge", WEIGHTS, TOLD)
FIRST = 3  # captions that the paper prints of each
OF_OTHERS = ({"old", "elderly"}, {"young", "teenage"})  # ages that nobody of a class has
DRAWS = 20  # of as many flagged rows as a slice has
MEMBER = 0.5  # weight from which a test row is in a slice of Domino's


@dataclass(frozen=True, eq=False)
class SliceCaptions:
    """What is said of a slice, or of the rows that a direction flags."""

    label: int  # the class of most of its weight
    texts: list[str]  # the FIRST best, the best first; fewer where no more lie on the hard side
    rows: Array  # test rows of that class in the slice, by their numbers


# --- who captions --------------------------------------------------------------------------------------------


def by_direction(world: World, space: str, candidates: Captions) -> Iterator[SliceCaptions]:
    for label, data in captioned(world, space, candidates):
        best = [row["text"] for row in data["hard"][:FIRST]]
        yield SliceCaptions(label, best, flagged(world, space, label))


def by_flagged_rows(world: World, space: str, candidates: Captions) -> Iterator[SliceCaptions]:
    """Domino's procedure, as if the rows that the direction flags were a slice."""
    searched = world.evaluation("validation", space)
    hard = (directions_of(world, space).decisions(searched).sum(axis=1) < 0).astype(float)
    for label in range(len(CLASSES)):
        weights = np.where(searched.labels == label, hard, 0.0)
        yield SliceCaptions(label, described(weights, searched, candidates)[1], flagged(world, space, label))


def by_slice(world: World, space: str, candidates: Captions) -> Iterator[SliceCaptions]:
    for label, weights, searched, members in worst_slices(world, space):
        yield SliceCaptions(label, described(weights, searched, candidates)[1], members)


def by_mean(world: World, space: str, candidates: Captions) -> Iterator[SliceCaptions]:
    """Nearest to the mean of the slice, from which nothing is taken."""
    for label, weights, searched, members in worst_slices(world, space):
        yield SliceCaptions(label, nearest(weights, searched, candidates), members)


def by_slice_in_class(world: World, space: str, candidates: Captions) -> Iterator[SliceCaptions]:
    """From candidates that do not name the other class, as a direction must choose."""
    for label, weights, searched, members in worst_slices(world, space):
        allowed = in_class(candidates, label)
        yield SliceCaptions(label, described(weights, searched, allowed)[1], members)


def by_mean_in_class(world: World, space: str, candidates: Captions) -> Iterator[SliceCaptions]:
    for label, weights, searched, members in worst_slices(world, space):
        yield SliceCaptions(label, nearest(weights, searched, in_class(candidates, label)), members)


def by_flagged_mean(world: World, space: str, candidates: Captions) -> Iterator[SliceCaptions]:
    searched = world.evaluation("validation", space)
    hard = directions_of(world, space).decisions(searched).sum(axis=1) < 0
    for label in range(len(CLASSES)):
        weights = (hard & (searched.labels == label)).astype(float)
        texts = nearest(weights, searched, in_class(candidates, label))
        yield SliceCaptions(label, texts, flagged(world, space, label))


def by_few_flagged(world: World, space: str, candidates: Captions) -> Iterator[SliceCaptions]:
    """As many flagged rows as Domino's slice has, at random: their mean, as if Domino had found a slice of them."""
    searched = world.evaluation("validation", space)
    hard = directions_of(world, space).decisions(searched).sum(axis=1) < 0
    rng = np.random.default_rng([world.seed, 7])
    for label, weights, _, _ in worst_slices(world, space):
        rows = np.flatnonzero(hard & (searched.labels == label))
        count = min(int((weights >= MEMBER).sum()), len(rows))
        for _ in range(DRAWS):
            drawn = np.isin(np.arange(len(searched)), rng.choice(rows, count, replace=False)).astype(float)
            texts = nearest(drawn, searched, in_class(candidates, label))
            yield SliceCaptions(label, texts, flagged(world, space, label))


def in_class(candidates: Captions, label: int) -> Captions:
    own = [j for j, text in enumerate(candidates.texts) if not OF_OTHERS[label] & set(text.split())]
    texts = [candidates.texts[j] for j in own]
    return replace(candidates, texts=texts, embeddings=candidates.embeddings[own], references=None)


def nearest(weights: Array, searched: Evaluation, candidates: Captions) -> list[str]:
    nearness = candidates.embeddings @ (weights @ unit(searched.representations[candidates.representation]))
    return [candidates.texts[j] for j in np.argsort(-nearness, kind="stable")[:FIRST]]


def by_slices_of_both(world: World, space: str, candidates: Captions) -> Iterator[SliceCaptions]:
    """The two slices of one Domino; each is of the class that most of its weight lies in."""
    searched = world.evaluation("validation", space)
    test = world.evaluation("test", space)
    slicer = domino_of(world, searched)
    inside = slicer.membership(test) >= MEMBER
    for j, weights in enumerate(slicer.membership(searched).T):
        label, texts = described(weights, searched, candidates)
        yield SliceCaptions(label, texts, test.ids[inside[:, j] & (test.labels == label)])


@cache
def worst_slices(world: World, space: str) -> list[tuple[int, Array, Evaluation, Array]]:
    """Of each class: weights of its validation rows in Domino's first slice, these rows, and its test members."""
    searched = world.evaluation("validation", space)
    test = world.evaluation("test", space)
    found = []
    for label in range(len(CLASSES)):
        rows = searched.rows(searched.labels == label)
        held_out = test.rows(test.labels == label)
        slicer = domino_of(world, rows)
        members = slicer.membership(held_out)[:, 0] >= MEMBER
        found.append((label, slicer.membership(rows)[:, 0], rows, held_out.ids[members]))
    return found


@cache
def directions_of(world: World, space: str) -> Directions:
    return world.directions(space)


def flagged(world: World, space: str, label: int) -> Array:
    """Test rows of a class on the hard side of its direction, by their numbers."""
    test = world.evaluation("test", space)
    hard = directions_of(world, space).decisions(test).sum(axis=1) < 0
    return test.ids[hard & (test.labels == label)]


def described(weights: Array, searched: Evaluation, candidates: Captions) -> tuple[int, list[str]]:
    """The class of most of the weight, and Domino's captions."""
    found = describe(weights, searched.labels, searched.representations[candidates.representation], candidates)
    return found.majority, [row.text for row in found.rows[:FIRST]]


DIRECTION = "direction"
MEAN_IN_CLASS = "Domino, mean of the slice, own class's candidates"
FLAGGED_MEAN = "its flagged rows, their mean, own class's candidates"
Way = Callable[[World, str, Captions], Iterator[SliceCaptions]]
WAYS: dict[str, Way] = {
    DIRECTION: by_direction,
    "its flagged rows less class": by_flagged_rows,
    "Domino, slice less class": by_slice,
    "Domino, mean of the slice": by_mean,
    "Domino of both classes": by_slices_of_both,
    "Domino, slice less class, own class's candidates": by_slice_in_class,
    MEAN_IN_CLASS: by_mean_in_class,
    FLAGGED_MEAN: by_flagged_mean,
}
# Several draws of one slice are no cases of their own, so these are told as means over networks only.
DRAWN: dict[str, Way] = {"as few of its flagged rows, their mean, own class's candidates": by_few_flagged}
ByWorld = list[list[SliceCaptions]]


# --- what they say -------------------------------------------------------------------------------------------


def captions_of(worlds: Sequence[World], space: str, texts: list[str], ways: dict[str, Way]) -> dict[str, ByWorld]:
    found: dict[str, ByWorld] = {way: [] for way in ways}
    for world in worlds:
        candidates = placed_captions(world, space, texts)
        for way, captions in ways.items():
            found[way].append(list(captions(world, space, candidates)))
    return found


def name_the_minority(faces: Faces, found: dict[str, ByWorld]) -> None:
    rows = []
    for way, by_world in found.items():
        every = [slice_ for slices in by_world for slice_ in slices]
        named = [[names_gender(text, GENDERS[one.label]) for text in one.texts] for one in every]
        other = [names_gender(text, GENDERS[1 - one.label]) for one in every for text in one.texts[:1]]
        first = said(sum(any(names[:1]) for names in named), len(every))
        three = said(sum(map(sum, named)), FIRST * len(every))
        members = np.concatenate([one.rows for one in every])
        rows.append([way, first, sum(other), three, said(faces.minority[members].sum(), len(members))])
    ways = ["captions by", "the first names the minority", "the other gender", f"of the first {FIRST}"]
    table([*ways, "minority in the slice"], rows)


def gender_share(texts: list[str]) -> float:
    """The share of candidates that name one gender, which is as large for the other: chance."""
    shares = [float(np.mean([names_gender(text, gender) for text in texts])) for gender in GENDERS]
    assert shares[0] == shares[1]
    return shares[0]


def niche(worlds: Sequence[World], found: dict[str, ByWorld]) -> None:
    """How many attributes the first caption names, and the shares of the class and of the slice that it fits."""
    facts = {way: facts_of(worlds, by_world) for way, by_world in found.items()}
    rows = [[way, *over_worlds(values)] for way, values in facts.items()]
    for way in facts:
        if way != DIRECTION:
            rows.append([f"{way}, more than the direction", *over_worlds(facts[way] - facts[DIRECTION])])
    few = facts[next(iter(DRAWN))]
    for way in (MEAN_IN_CLASS, FLAGGED_MEAN):
        rows.append([f"{next(iter(DRAWN))}, more than {way}", *over_worlds(few - facts[way])])
    table(["the first caption of", "attributes", "fits of the class", "fits of the slice", "rows of the slice"], rows)
    for way, by_world in found.items():
        print(f"{way}: {'; '.join(text for slices in by_world for one in slices for text in one.texts[:1])}")


def facts_of(worlds: Sequence[World], by_world: ByWorld) -> Array:
    """(worlds, 4) means over slices that have a caption."""
    fits = dict(worlds[0].faces.checkable_captions)
    means = []
    for world, slices in zip(worlds, by_world, strict=True):
        means.append(np.nanmean([caption_facts(world, one, fits) for one in slices], axis=0))
    return np.array(means)


def caption_facts(world: World, found: SliceCaptions, fits: dict[str, Array]) -> list[float]:
    if not found.texts or not len(found.rows):
        return [np.nan] * 4
    fitting = fits[found.texts[0]]
    test = world.roles["test"]
    own = test[world.faces.labels[test] == found.label]
    return [attributes(found.texts[0]), fitting[own].mean(), fitting[found.rows].mean(), len(found.rows)]


def over_worlds(values: Array) -> list[str]:
    """Means over the worlds ((n, columns)) in which there is a caption."""
    return [over_runs(column[np.isfinite(column)]) for column in values.T]


def attributes(text: str) -> int:
    """Of age, race and gender, those that a caption names."""
    words = set(text.split())
    return sum(bool(words & names) for names in (AGES.keys(), RACES.keys(), set(GENDERS)))


def checkable_texts(faces: Faces) -> list[str]:
    """Those of `Faces.checkable_captions` that speak of an age that old or young people have, or of none."""
    return [text for text, _ in faces.checkable_captions if not OTHER_AGES.keys() & set(text.split())]


def report(worlds: Sequence[World], spaces: Sequence[str] = BRIDGES) -> None:
    faces = worlds[0].faces
    checkable = checkable_texts(faces)
    for space in spaces:
        for texts in (texts_of_study(), checkable):
            found = captions_of(worlds, space, texts, WAYS)
            print(f"\n{space}, {len(texts)} candidates, of which {gender_share(texts):.3f} name each gender")
            name_the_minority(faces, found)
        print(f"\nattributes that a candidate names: {np.mean([attributes(text) for text in checkable]):.2f}")
        niche(worlds, found | captions_of(worlds, space, checkable, DRAWN))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(3, 11)))
    parser.add_argument("--spaces", nargs="+", choices=BRIDGES, default=BRIDGES, metavar="BRIDGE")
    parser.add_argument("--px", type=int, default=PX, help=f"that networks see; a divisor of {PX}")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    faces = Faces.read(asked.cache)
    report([World(faces, seed, px=asked.px) for seed in asked.seeds], asked.spaces)


if __name__ == "__main__":
    main()
