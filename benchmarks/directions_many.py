"""Failure directions where one subclass of each class is rare in training, over many networks (Jain et al. 2023).

    python benchmarks/directions_many.py run -o WORLDS.jsonl [--device cuda] [--workers 12] [--minutes 4]
    python benchmarks/directions_many.py report WORLDS.jsonl

`two`: CIFAR-10, animal or vehicle, every pair of an animal and a vehicle cut in turn. `twenty`: twenty classes of two
to five subclasses (signs of GTSRB, things of CIFAR-10, digits of MNIST), another subclass of each cut in turn. `faces`:
old or young faces of UTKFace, old women and young men cut. Three in four training rows of a cut subclass are taken
away. Of each world: which subclass fails most, what directions and confidence rank hardest, captions, rows chosen from
a pool and trained with, training rows that count more.
Directions come from validation rows, numbers from test rows. `named` is a bridge fitted to rows of the pool and the
names of all subclasses: it knows the words, as CLIP does. `both` ranks by the mean of two standardised numbers: a row's
place along the direction and its nearness to the hardest caption. Data: ERRATA_DATA, or ../shared/data beside the
clone; what EfficientNet sees in the pictures is then in --cache. Wants what benchmarks/bridge.py wants.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

import errata
from errata import Captions, Evaluation, Slice, Source, fix
from errata.explain.captions import Direction, caption_slice
from errata.explain.view import SliceView
from errata.inputs import Bridge
from errata.slicers.directions.slicer import Directions
from trained import Recipe, Seen, seen_by

Array = np.ndarray
PX = 128  # as EfficientNet sees them
REMOVED = 0.75
RECIPE = Recipe(12)
TOP = (25, 50, 100)
SCORES = ("correlation", "difference")
FACTORS = (2.0, 4.0)
WAYS = ("random", "confidence", "directions", "caption", "both", "oracle")
ANIMALS = ("bird", "cat", "deer", "dog", "frog", "horse")
VEHICLES = ("airplane", "automobile", "ship", "truck")
SIGNS = {
    "slow limit": ("speed limit 20", "speed limit 30", "speed limit 50"),
    "middle limit": ("speed limit 60", "speed limit 70", "speed limit 80"),
    "fast limit": ("end of limit 80", "speed limit 100", "speed limit 120"),
    "overtaking": ("no overtaking", "no overtaking for trucks", "end of no overtaking", "end of it for trucks"),
    "priority": ("right of way", "priority road", "yield", "stop"),
    "ban": ("no vehicles", "no trucks", "no entry"),
    "bend": ("bend to the left", "bend to the right", "double bend"),
    "surface": ("general caution", "bumpy road", "slippery road"),
    "hindrance": ("narrow road", "road work", "traffic lights"),
    "living beings": ("pedestrians", "children", "bicycles"),
    "season": ("ice and snow", "wild animals", "end of all limits"),
    "turn": ("turn right", "turn left", "straight on"),
    "lane": ("straight or right", "straight or left", "keep right", "keep left", "roundabout"),
}
SIGN_NUMBERS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 41, 42, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 18, 22, 23, 24, 25)
SIGN_NUMBERS += (26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40)
THINGS = {"pet or frog": ("cat", "dog", "frog"), "wild or farm": ("bird", "deer", "horse")}
THINGS |= {"craft": ("airplane", "ship"), "motor": ("automobile", "truck")}
DIGITS = {"loopy digit": ("zero", "six", "eight"), "thin digit": ("one", "four", "seven")}
DIGITS |= {"other digit": ("two", "three", "five", "nine")}
PEOPLE = ("old man", "old woman", "young woman", "young man")
SIGNED = {name for names in SIGNS.values() for name in names}
NUMERALS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Hierarchy:
    """Which rows a study has of each subclass: to train, in the pool, to validate, to test; added from the pool."""

    classes: dict[str, tuple[str, ...]]
    train: int
    pool: int
    validation: int
    test: int
    added: int  # a class
    left: int | None = None  # training rows of a cut subclass, where there are too few to cut. Default: a quarter

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for names in self.classes.values() for name in names)

    @property
    def class_of(self) -> Array:
        """(subclasses,)"""
        return np.repeat(np.arange(len(self.classes)), [len(names) for names in self.classes.values()])


STUDIES = {
    "two": Hierarchy({"animal": ANIMALS, "vehicle": VEHICLES}, 200, 200, 800, 800, 100),
    "twenty": Hierarchy({**SIGNS, **THINGS, **DIGITS}, 60, 60, 100, 100, 25),
    "faces": Hierarchy({"old": PEOPLE[:2], "young": PEOPLE[2:]}, 2000, 100, 700, 500, 50, left=500),
}


@dataclass(frozen=True, eq=False)
class Pictures:
    """Rows of both studies; a row's group (a sign filmed on the road) has one role."""

    pixels: Array  # (n, 32, 32, 3) bytes
    name: Array  # (n,) of the subclass
    test: Array  # (n,) bool: where signs to validate and test come from
    group: Array  # (n,)
    features: Array  # (n, 1280)
    sentences: dict[str, Array]  # caption -> (384,)
    folder: Path

    @classmethod
    def read(cls, folder: Path) -> Pictures:
        path = folder / "many-pictures.npz"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            np.savez(path, **prepared())
        with np.load(path, allow_pickle=False) as file:
            sentences = dict(zip(file["texts"].tolist(), file["embeddings"], strict=True))
            rows = {key: file[key] for key in ("pixels", "name", "test", "group", "features")}
        return cls(**rows, sentences=sentences, folder=folder)


def prepared() -> dict[str, Array]:
    import bridge as bridging

    raw = raw_rows()
    features = bridging.seen(raw.pop("files"), PX)
    texts = all_captions()
    return {**raw, "features": features, "texts": np.array(texts), "embeddings": bridging.sentences(texts)}


def raw_rows() -> dict[str, Any]:
    """Some rows of each subclass and split, as PNG or JPEG files and as pixels."""
    import pandas as pd
    from PIL import Image

    from errata.bench.tables import data_folder

    signs = dict(zip(SIGN_NUMBERS, (name for names in SIGNS.values() for name in names), strict=True))
    things = pd.read_parquet(data_folder() / "cifar10.parquet").assign(name=lambda rows: rows.label, track=None)
    roads = pd.read_parquet(data_folder() / "gtsrb32.parquet").assign(name=lambda rows: rows.label.map(signs))
    rows = pd.concat([things, roads, digit_rows(), face_rows()], ignore_index=True)
    rows["test"] = rows.split == "test"
    alone = rows.track.isna() | (rows.track == "")
    rows["track"] = rows.track.where(~alone, rows.index.astype(str))
    rows["group"] = (rows.name + " " + rows.track).factorize()[0]
    shuffled = rows.sample(frac=1, random_state=0)
    most = np.where(shuffled.name.isin(things.name), 1000, np.where(shuffled.test, 200, 160))
    most[shuffled.name.isin(PEOPLE)] = 3300
    rows = shuffled[shuffled.groupby(["name", "test"]).cumcount().to_numpy() < most]
    pixels = [np.asarray(Image.open(io.BytesIO(data)).convert("RGB").resize((32, 32))) for data in rows.image]
    columns = {"name": rows.name.to_numpy(str), "test": rows.test.to_numpy(bool), "group": rows.group.to_numpy()}
    return {**columns, "pixels": np.stack(pixels), "files": rows.image.tolist()}


def digit_rows() -> Any:
    import pandas as pd
    from PIL import Image

    from errata.bench.tables import data_folder

    parts = []
    with np.load(data_folder() / "mnist.npz", allow_pickle=False) as file:
        for split in ("train", "test"):
            order = np.random.default_rng(0).permutation(len(file[f"y_{split}"]))[:6000]
            for x, y in zip(file[f"x_{split}"][order], file[f"y_{split}"][order], strict=True):
                data = io.BytesIO()
                Image.fromarray(x).save(data, "PNG")
                parts.append((split, NUMERALS[y], data.getvalue(), None))
    return pd.DataFrame(parts, columns=["split", "name", "image", "track"])


def face_rows() -> Any:
    """Old: 45 and over; young: 12 to 30; no other face."""
    import pandas as pd

    from errata.bench.tables import data_folder

    rows = pd.read_parquet(data_folder() / "utkface64.parquet")
    rows = rows[(rows.age >= 45) | ((rows.age >= 12) & (rows.age <= 30))]
    age = np.where(rows.age >= 45, "old ", "young ")
    who = np.where(rows.gender == "male", "man", "woman")
    return pd.DataFrame({"split": "train", "name": np.char.add(age, who), "image": rows.image, "track": None})


def all_captions() -> list[str]:
    names = [name for study in STUDIES.values() for name in (*study.names, *study.classes)]
    return list(dict.fromkeys(errata.explain.reference_captions(names)))


def caption(name: str) -> str:
    return errata.explain.reference_captions([name])[0]


@dataclass(frozen=True, eq=False)
class World:
    """One split, one subclass of each class cut, and the networks trained so."""

    pictures: Pictures
    study: Hierarchy
    seed: int
    cut: tuple[int, ...]  # one subclass of each class
    device: str = "cpu"
    removed: float = REMOVED  # of the training rows of a cut subclass

    @cached_property
    def fine(self) -> Array:
        """(n,) subclass of every row, -1 where the study has none."""
        index = {name: number for number, name in enumerate(self.study.names)}
        return np.array([index.get(name, -1) for name in self.pictures.name.tolist()])

    @cached_property
    def labels(self) -> Array:
        return self.study.class_of[self.fine]

    @cached_property
    def roles(self) -> dict[str, Array]:
        """Row numbers. Where groups are large, roles have fewer rows than they may."""
        rng = np.random.default_rng(self.seed)
        found: dict[str, list[Array]] = {"train": [], "pool": [], "validation": [], "test": []}
        for number in range(len(self.study.names)):
            for role, rows in zip(found, self._parts(number, rng), strict=True):
                most = min(getattr(self.study, role), len(rows))
                if role == "train":
                    most = self.rows_left(number, most)
                found[role].append(rows[:most])
        return {role: rng.permutation(np.concatenate(rows)) for role, rows in found.items()}

    def rows_left(self, number: int, most: int) -> int:
        """How many training rows of a subclass are not cut. most: all there are."""
        if number not in self.cut:
            return most
        return self.study.left or round((1 - self.removed) * most)

    def _parts(self, number: int, rng: np.random.Generator) -> list[Array]:
        """Rows to train, of the pool, to validate, to test; frames of one sign on the road are never in two of them."""
        rows = np.flatnonzero(self.fine == number)
        if self.study.names[number] not in SIGNED:
            counts = [self.study.train, self.study.pool, self.study.validation, self.study.test]
            if number in self.cut and self.study.left:
                counts[0] = self.study.left
            return np.split(rng.permutation(rows), np.cumsum(counts))[:4]
        test = self.pictures.test[rows]
        halves = [split_groups(rows[test == which], self.pictures.group[rows[test == which]], rng) for which in (0, 1)]
        return [*halves[0], *halves[1]]

    @cached_property
    def spaces(self) -> dict[str, Array]:
        return {"backbone": self.pictures.features, "named": self.named.transform_images(self.pictures.features)}

    @cached_property
    def named(self) -> Bridge:
        pool = self.roles["pool"]
        texts = np.stack([self.pictures.sentences[caption(name)] for name in self.study.names])
        return Bridge.fit(self.pictures.features[pool], texts, self.fine[pool]).recentred(
            self.pictures.features[self.roles["validation"]]
        )

    def network(self, added: Array | None = None, weights: Array | None = None) -> Seen:
        """Of all roles' rows, in their order, by a network trained on the training rows and some more."""
        rows = self.roles["train"]
        if added is not None:
            rows = np.concatenate([rows, added])
        pairs = self.pictures.pixels[rows], self.labels[rows]
        settings = {"seed": self.seed, "weights": weights, "device": self.device}
        return seen_by(self.pictures.folder, RECIPE, pairs, self.pictures.pixels[self.asked], **settings)

    @cached_property
    def asked(self) -> Array:
        return np.concatenate([self.roles[role] for role in ("validation", "pool", "test")])

    @cached_property
    def first(self) -> Seen:
        return self.network()

    def evaluation(self, role: str, space: str) -> Evaluation:
        rows = self.roles[role]
        probs = None
        if role != "train":
            probs = self.first.probs[np.isin(self.asked, rows)]
        return Evaluation(
            labels=self.labels[rows],
            probs=probs,
            class_names=tuple(self.study.classes),
            ids=rows,
            representations={space: self.spaces[space][rows]},
            sources={space: Source(from_model=False)},
        )

    @cached_property
    def _directions(self) -> dict[str, Directions]:
        return {}

    def directions(self, space: str) -> Directions:
        if space not in self._directions:
            machine = Directions(slices=None, permutations=0, representation=space)
            self._directions[space] = machine.fit(
                self.evaluation("validation", space), train=self.evaluation("train", space)
            )
        return self._directions[space]

    def hardness(self, space: str, role: str) -> Array:
        """(n,) largest where a row lies deepest on the hard side of its class's direction."""
        return self.directions(space).membership(self.evaluation(role, space)).max(axis=1, initial=0.0)


def split_groups(rows: Array, groups: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Two halves that share no group."""
    order = rng.permutation(np.unique(groups))
    first = np.isin(groups, order[: (len(order) + 1) // 2])
    return rng.permutation(rows[first]), rng.permutation(rows[~first])


# --- what is measured of a world -----------------------------------------------------------------------------


def measured(world: World) -> dict[str, Any]:
    captions_of = {score: captioned(world, score) for score in SCORES}
    plain = accuracy(world, world.first)
    return {
        "seed": world.seed,
        "cut": [world.study.names[c] for c in world.cut],
        "train": len(world.roles["train"]),
        "named_accuracy": zero_shot(world),
        "plain": plain,
        "classes": [class_facts(world, number, captions_of) for number in range(len(world.study.classes))],
        "selection": {way: selected(world, way, captions_of["correlation"]) for way in WAYS},
        "upweight": upweighted(world),
    }


def zero_shot(world: World) -> float:
    test = world.roles["test"]
    texts = np.stack([world.pictures.sentences[caption(name)] for name in world.study.names])
    return world.named.zero_shot(world.pictures.features[test], world.fine[test], texts).accuracy


def accuracy(world: World, said: Seen) -> dict[str, Any]:
    """Of test rows: all, those of each cut subclass, and all that were cut together."""
    test = world.roles["test"]
    right = said.probs[np.isin(world.asked, test)].argmax(axis=1) == world.labels[test]
    fine = world.fine[test]
    cut = [float(right[fine == c].mean()) for c in world.cut]
    return {"all": float(right.mean()), "cut": cut, "minority": float(np.mean(cut))}


def class_facts(world: World, number: int, captions_of: dict[str, Any]) -> dict[str, Any]:
    """Of one class's test rows."""
    test = world.evaluation("test", "named")
    own = np.flatnonzero(test.labels == number)
    fine = world.fine[world.roles["test"]][own]
    cut = world.cut[number]
    rates = {int(c): float(test.errors[own][fine == c].mean()) for c in np.unique(fine)}
    rankings = {"confidence": fix.by_confidence(test)}
    rankings |= {f"directions, {space}": world.hardness(space, "test") for space in world.spaces}
    hardest = {}
    for name, values in rankings.items():
        order = fine[np.argsort(-values[own], kind="stable")]
        hardest[name] = [[float((order[:k] == cut).mean()), int(np.bincount(order[:k]).argmax() == cut)] for k in TOP]
    wrong = fine[test.errors[own]]
    strength = {space: strengths(world, space)[number] for space in world.spaces}
    return {
        "subclasses": len(rates),
        "share": float((fine == cut).mean()),
        "worst": max(rates, key=lambda c: rates[c]) == cut,
        "error_cut": rates[cut],
        "error_others": float(np.mean([rate for c, rate in rates.items() if c != cut])),
        "of_errors": float((wrong == cut).mean()) if len(wrong) else None,
        "hardest": hardest,
        "strength": strength,
        "captions": {score: place(world, captions_of[score].get(number, []), cut) for score in SCORES},
    }


def strengths(world: World, space: str) -> dict[int, float | None]:
    found: dict[int, float | None] = dict.fromkeys(range(len(world.study.classes)))
    return found | {rule["scope"]["label"]: rule["strength"] for rule in world.directions(space).rules_}


def place(world: World, order: Sequence[str], cut: int) -> int | None:
    """0 where the cut subclass's caption is the hardest of its class."""
    name = caption(world.study.names[cut])
    return list(order).index(name) if name in order else None


def captioned(world: World, score: Any) -> dict[int, list[str]]:
    """Of each class its subclasses' captions, the hardest first; by the package's own captions of a slice."""
    machine = world.directions("named")
    parts = [world.evaluation(role, "named") for role in ("validation", "test")]
    both = Evaluation(
        labels=np.concatenate([part.labels for part in parts]),
        probs=np.concatenate([part.probs for part in parts]),
        representations={"named": np.concatenate([part.representations["named"] for part in parts])},
        class_names=tuple(world.study.classes),
    )
    weights = machine.membership(both)
    searched = np.arange(len(both)) < len(parts[0])
    found = {}
    for j, rule in enumerate(machine.rules_):
        number = rule["scope"]["label"]
        slice_ = Slice(
            f"s{j}", machine.name, "", "not confirmed", machine.thresholds_[j], rule, weights[:, j], column=j
        )
        view = SliceView(slice_, both, slice_.members, (both.labels == number) & ~slice_.members, searched)
        direction = Direction.of(slice_, machine.to_state().arrays)
        told = caption_slice(view, candidates(world, number, score), direction).to_json()
        rows = sorted([*told["hard"], *told["easy"]], key=lambda row: row["score"])
        found[number] = [row["text"] for row in rows]
    return found


def candidates(world: World, number: int, score: Any) -> Captions:
    """The captions of one class's subclasses; a class by itself is their mean, for the bridge knows no other name."""
    placed = [placed_captions(world, names) for names in world.study.classes.values()]
    means = np.stack([each.mean(axis=0) for each in placed])
    references = errata.explain.reference_captions(list(world.study.classes))
    own = errata.explain.reference_captions(list(world.study.classes.values())[number])
    rows = np.concatenate([placed[number], means])
    return Captions([*own, *references], rows, "named", references=references, score=score)


def placed_captions(world: World, names: Sequence[str]) -> Array:
    return world.named.transform_texts(np.stack([world.pictures.sentences[caption(name)] for name in names]))


def nearness(world: World, role: str, order: dict[int, list[str]]) -> Array:
    """(n,) cosine to the hardest caption of a row's class."""
    rows = world.evaluation(role, "named")
    near = np.zeros(len(rows))
    for number, texts in order.items():
        own = rows.labels == number
        captions_ = errata.explain.reference_captions(list(world.study.classes.values())[number])
        names = [text for text in texts if text in captions_]
        if names:
            text = world.named.transform_texts(world.pictures.sentences[names[0]][None])[0]
            near[own] = rows.representations["named"][own] @ text
    return near


def selected(world: World, way: str, order: dict[int, list[str]]) -> dict[str, Any]:
    """The share of what was added that is of the cut subclasses, and accuracy once trained with it."""
    pool = world.evaluation("pool", "named")
    cut = np.isin(world.fine[world.roles["pool"]], world.cut)
    ranks = {
        "random": lambda: fix.by_chance(pool, world.seed),
        "confidence": lambda: fix.by_confidence(pool),
        "directions": lambda: world.hardness("named", "pool"),
        "caption": lambda: nearness(world, "pool", order),
        "both": lambda: (
            within(pool.labels, world.hardness("named", "pool")) + within(pool.labels, nearness(world, "pool", order))
        ),
        "oracle": lambda: cut + 1e-3 * fix.by_chance(pool, world.seed),
    }
    added = fix.select(pool, ranks[way](), world.study.added).ids
    picked = np.isin(world.fine[added], world.cut).mean()
    return {"picked": float(picked), **accuracy(world, world.network(added))}


def within(labels: Array, values: Array) -> Array:
    """Standardised within each class."""
    scaled = np.zeros(len(values))
    for label in np.unique(labels):
        own = labels == label
        scaled[own] = (values[own] - values[own].mean()) / max(float(values[own].std()), 1e-12)
    return scaled


def upweighted(world: World) -> dict[str, Any]:
    """Training rows that the direction flags count more; beside as many at random, and the cut subclasses."""
    machine = world.directions("backbone")
    train = world.evaluation("train", "backbone")
    flagged = (machine.membership(train) >= machine.thresholds_).any(axis=1)
    cut = np.isin(world.fine[world.roles["train"]], world.cut)
    chance = np.random.default_rng([world.seed, 5]).permutation(flagged)
    told: dict[str, Any] = {"flagged": float(flagged.mean()), "cut": float(cut.mean())}
    told["of_flagged"] = None
    if flagged.any():
        told["of_flagged"] = float(cut[flagged].mean())
    for name, rows in (("directions", flagged), ("random", chance), ("oracle", cut)):
        for factor in FACTORS:
            weights = np.where(rows, factor, 1.0)
            told[f"{name}, {factor:g}"] = accuracy(world, world.network(weights=weights))
    return told


# --- many at once --------------------------------------------------------------------------------------------


@cache
def pictures(folder: str) -> Pictures:
    return Pictures.read(Path(folder))


def cuts(name: str, turn: int) -> tuple[int, ...]:
    """`two`: all 24 pairs in turn. `twenty`: of each class another subclass. `faces`: always the same two."""
    study = STUDIES[name]
    if name == "faces":
        return (1, 3)
    firsts = np.cumsum([0, *(len(names) for names in study.classes.values())])[:-1]
    if name == "two":
        return (turn % 6, 6 + turn // 6 % 4)
    sizes = [len(names) for names in study.classes.values()]
    return tuple(int(first + turn % size) for first, size in zip(firsts, sizes, strict=True))


def job(task: tuple[str, int, int, str, str]) -> dict[str, Any]:
    import torch

    torch.set_num_threads(1)
    name, turn, seed, device, folder = task
    began = time.perf_counter()
    world = World(pictures(folder), STUDIES[name], seed, cuts(name, turn), device)
    return {"study": name, "turn": turn, **measured(world), "seconds": round(time.perf_counter() - began, 1)}


def run(asked: argparse.Namespace) -> None:
    pictures(str(asked.cache))  # writes the cache before several processes want it
    turns = {"two": 24, "twenty": 4, "faces": 1}
    tasks = [
        (name, turn, seed, asked.device, str(asked.cache))
        for seed in asked.seeds
        for name in asked.studies
        for turn in range(turns[name])
    ]
    until = time.monotonic() + 60 * asked.minutes
    with multiprocessing.get_context("spawn").Pool(asked.workers) as pool, asked.out.open("a") as file:
        answers = [pool.apply_async(job, (task,)) for task in tasks]
        for number, answer in enumerate(answers):
            try:
                facts = answer.get(timeout=max(0.1, until - time.monotonic()))
            except multiprocessing.TimeoutError:
                print(f"stopped after {number} of {len(tasks)} worlds", flush=True)
                pool.terminate()
                break
            file.write(json.dumps(facts) + "\n")
            file.flush()
            print(f"{number + 1}/{len(tasks)} {facts['study']} {facts['seconds']} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["run", "report"])
    parser.add_argument("worlds", type=Path, nargs="*", help="files to report")
    parser.add_argument("-o", "--out", type=Path, default=Path("directions-many.jsonl"))
    parser.add_argument("--studies", nargs="+", choices=list(STUDIES), default=list(STUDIES))
    parser.add_argument("--seeds", type=int, nargs="+", default=range(2))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    if asked.task == "run":
        run(asked)
        return
    from directions_report import report

    report([json.loads(line) for path in asked.worlds for line in path.read_text().splitlines()])


if __name__ == "__main__":
    main()
