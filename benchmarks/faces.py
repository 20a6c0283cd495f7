"""UTKFace, old or young, with gender planted against age: rows, bridges, networks and directions for the studies.

Old: 45 and over; young: 12 to 30. Old women and young men are the minority of their class.
"""

from __future__ import annotations

import io
import itertools
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

import bridge as bridging
import errata
from bridge import kept
from errata import Evaluation
from errata.bench.tables import data_folder
from errata.inputs import Bridge
from errata.slicers.directions.slicer import Directions
from trained import Recipe, Seen, seen_by

Array = np.ndarray
CLASSES = ("young", "old")
GENDERS = ("man", "woman")  # the minority of each class
# as the small network sees faces, and as EfficientNet does
PX = 48
BACKBONE_PX = 128
# of each of the four groups: share to test, rows with captions
TEST = 0.25
CAPTIONED = 150
VALIDATION = {False: (700, 700), True: (800, 200)}  # rows of majority and minority in a class; True: as in training
# majority to minority in training, and training rows a class
RATIO = 4
SIZE = 2500
EPOCHS = 8
PLAIN = Recipe(EPOCHS)
OTHER = Recipe(4, architecture="resnet18-slim")
METHODS: dict[str, Any] = {"bridge": "cca", "bridge, ridge": "ridge"}
WEIGHTS = "bridge, ImageNet weights"
TOLD = "bridge, told of age and race"
OWN = "own layer"
SPACES = ("backbone", *METHODS, WEIGHTS, OWN)
# Words that UTKFace can check, of people of 12 and over, and for whom they hold. Years: both ends within.
AGES = {"": (12, 116), "teenage": (12, 19), "young": (12, 30), "old": (45, 116), "elderly": (65, 116)}
OTHER_AGES = {"middle-aged": (31, 44)}
RACES = {"": None, "white": "white", "black": "black", "Asian": "asian", "Indian": "indian"}
PEOPLE = {"person": None, "man": True, "woman": False}


@dataclass(frozen=True, eq=False)
class Faces:
    """All of UTKFace, in its own order."""

    pixels: Array  # (n, 48, 48, 3) bytes
    features: Array  # (n, 1280)
    ages: Array  # (n,)
    male: Array  # (n,) bool
    races: Array  # (n,) one of five
    folder: Path

    @classmethod
    def read(cls, folder: Path) -> Faces:
        rows = pd.read_parquet(data_folder() / "utkface64.parquet")
        pixels = kept(folder / f"utkface-pixels-{PX}px.npy", lambda: np.stack([_small(data) for data in rows.image]))
        seen = partial(bridging.seen, rows.image.tolist(), BACKBONE_PX)
        features = kept(folder / f"utkface-{BACKBONE_PX}px.npy", seen)
        male = (rows.gender == "male").to_numpy()
        return cls(pixels, features, rows.age.to_numpy(), male, rows.race.to_numpy(dtype=str), folder)

    @cached_property
    def labels(self) -> Array:
        """(n,) index in CLASSES, -1 for other ages."""
        return np.select([self.ages >= 45, (self.ages >= 12) & (self.ages <= 30)], [1, 0], -1)

    @cached_property
    def minority(self) -> Array:
        """(n,) bool: old women and young men."""
        return np.where(self.labels == 1, ~self.male, (self.labels == 0) & self.male)

    def captions(self, row: int) -> list[str]:
        """What somebody might write under a picture, in more words and in fewer."""
        age = self.ages[row]
        child, adult = ("boy", "man") if self.male[row] else ("girl", "woman")
        word = "old"
        if age <= 30:
            word = "young"
        elif age < 45:
            word = "middle-aged"
        if age < 12:
            phrases = [f"baby {child}", "baby", child] if age < 3 else [child, "child"]
        else:
            phrases = [f"{word} {adult}", f"{word} person", adult]
        return errata.explain.reference_captions([*phrases, "person"])

    @cached_property
    def checkable_captions(self) -> list[tuple[str, Array]]:
        """Captions of age, race and gender, each with the rows ((n,) bool) that they fit."""
        every = AGES | OTHER_AGES
        words = list(itertools.product(every, RACES, PEOPLE))
        texts = errata.explain.reference_captions([" ".join(filter(None, each)) for each in words])
        return [(text, self._fitting(*each)) for text, each in zip(texts, words, strict=True)]

    def _fitting(self, age: str, race: str, person: str) -> Array:
        youngest, oldest = (AGES | OTHER_AGES)[age]
        fits: Array = (self.ages >= youngest) & (self.ages <= oldest)
        if race:
            fits = fits & (self.races == RACES[race])
        if PEOPLE[person] is not None:
            fits = fits & (self.male == PEOPLE[person])
        return fits


def _small(data: bytes) -> Array:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB").resize((PX, PX), Image.Resampling.BOX))


@dataclass(frozen=True, eq=False)
class World:
    """One split with a planted ratio, what networks trained in it say, and the directions of the first of them."""

    faces: Faces
    seed: int
    ratio: float | None = RATIO  # of majority to minority in training; None: as UTKFace has them, to validate too
    size: int = SIZE  # training rows a class
    like_training: bool = False  # whether validation rows are as unbalanced as training rows
    px: int = PX  # that the small network sees; a divisor of PX

    @cached_property
    def roles(self) -> dict[str, Array]:
        """Row numbers; no row has two roles. Captioned are also all faces that are neither young nor old."""
        rng = np.random.default_rng(self.seed)
        faces = self.faces
        roles: dict[str, list[Array]] = {"test": [], "captioned": [np.flatnonzero(faces.labels < 0)]}
        roles |= {"train": [], "validation": []}
        for label in range(len(CLASSES)):
            share = float(faces.minority[faces.labels == label].mean())
            ratio = self.ratio or (1 - share) / share
            for minority in (False, True):
                rows = rng.permutation(np.flatnonzero((faces.labels == label) & (faces.minority == minority)))
                parts = 1 if minority else ratio
                learnt = round(self.size / (ratio + 1) * parts)
                asked = VALIDATION[self.like_training][minority]
                if self.ratio is None:
                    asked = round(sum(VALIDATION[False]) / (ratio + 1) * parts)
                counts = round(TEST * len(rows)), CAPTIONED, learnt, asked
                assert sum(counts) <= len(rows), (label, minority, counts)
                for role, part in zip(roles, np.split(rows, np.cumsum(counts)), strict=False):
                    roles[role].append(part)
        return {role: np.concatenate(parts) for role, parts in roles.items()}

    def seen(self, recipe: Recipe, seed: int | None = None, weights: Array | None = None) -> Seen:
        """What a network trained on the training rows says of all old and young faces, in their order."""
        learnt = self.roles["train"]
        # The other architecture is slow: a ninth of the pixels.
        pixels = self.faces.pixels[:, ::3, ::3] if recipe == OTHER else shrunk(self.faces, self.px)
        if seed is None:
            seed = self.seed
        return seen_by(
            self.faces.folder,
            recipe,
            (pixels[learnt], self.faces.labels[learnt]),
            pixels[self.faces.labels >= 0],
            seed=seed,
            weights=weights,
        )

    @cached_property
    def first(self) -> Seen:
        return self.seen(PLAIN)

    def evaluation(self, role: str, space: str = "backbone", found: Seen | None = None) -> Evaluation:
        """found: what a network says; the first one where left out."""
        faces = self.faces
        rows = self.roles[role]
        found = found or self.first
        at = (np.cumsum(faces.labels >= 0) - 1)[rows]  # among old and young faces
        placed = found.hidden[at] if space == OWN else placed_in(faces, self.seed, space)[rows]
        return Evaluation(
            labels=faces.labels[rows],
            probs=found.probs[at],
            ids=rows,
            class_names=CLASSES,
            representations={space: placed},
            metadata={"minority": faces.minority[rows]},
        )

    def directions(self, space: str, permutations: int = 0) -> Directions:
        """Fitted to the validation rows."""
        slicer = Directions(slices=None, permutations=permutations, representation=space, seed=self.seed)
        return slicer.fit(self.evaluation("validation", space), train=self.evaluation("train", space))

    def decisions(self, space: str, role: str = "test") -> Array:
        """(n,) signed distance from the boundary of a row's class, negative where it is hard."""
        return self.directions(space).decisions(self.evaluation(role, space)).sum(axis=1)


@cache
def bridge_of(faces: Faces, seed: int, space: str) -> Bridge:
    """From captioned rows, which no ratio moves; or from the classifier's weights alone."""
    roles = World(faces, seed).roles
    if space == WEIGHTS:
        names = pd.read_csv(data_folder() / "imagenet_classes.csv").sort_values("label").name
        weights = bridging.network()._fc.weight.detach().numpy()
        plain = Bridge.from_weights(weights, bridging.sentences(names), method="cca")
        return plain.recentred(faces.features[roles["train"]])
    if space == TOLD:
        pairs = [(row, text) for text, fits in faces.checkable_captions for row in roles["captioned"] if fits[row]]
    else:
        pairs = [(row, text) for row in roles["captioned"] for text in faces.captions(row)]
    rows, texts = zip(*pairs, strict=True)
    known, labels = np.unique(texts, return_inverse=True)
    return Bridge.fit(faces.features[list(rows)], bridging.sentences(known), labels, method=METHODS.get(space, "cca"))


@cache
def shrunk(faces: Faces, px: int) -> Array:
    """(n, px, px, 3) bytes: means of squares of pixels."""
    if px == PX:
        return faces.pixels
    squares = faces.pixels.reshape(len(faces.pixels), px, PX // px, px, PX // px, 3)
    return squares.mean(axis=(2, 4), dtype=np.float32).round().astype(np.uint8)


@cache
def placed_in(faces: Faces, seed: int, space: str) -> Array:
    """(n, d) all faces in a space that no network of the study has a part in."""
    if space == "backbone":
        return faces.features
    return bridge_of(faces, seed, space).transform_images(faces.features)
