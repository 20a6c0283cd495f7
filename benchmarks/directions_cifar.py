"""Failure directions on CIFAR-10, animal or vehicle, one class of each cut in training (Jain et al. 2023, section 3.2).

    python benchmarks/directions_cifar.py captions     is the cut class among the hardest captions? by two scores
    python benchmarks/directions_cifar.py flagged      its share of the hardest test pictures, by ranking
    python benchmarks/directions_cifar.py selection    100 a superclass added from a pool, and trained again
    python benchmarks/directions_cifar.py nearest      accuracy of the K test pictures nearest to a caption
    python benchmarks/directions_cifar.py strength     the direction's strength against the share that was cut
    python benchmarks/directions_cifar.py strength --space classes   without EfficientNet: by the layer of a small
                                                       network of the ten classes, trained on rows of its own
    python benchmarks/directions_cifar.py runs         a network's directions on a second run and another kind of model

Of 50,000 pictures 40% are there to train, 20% to validate, 40% are a pool; --rows of the first and the last are used,
2,000 being as many of a class as in the paper's CIFAR-100. Directions come from validation rows, numbers from the
10,000 test pictures. --seeds: of split and network. Several studies may be asked for at once.
Data: ERRATA_DATA, or ../shared/data beside the clone. Wants what benchmarks/bridge.py wants; what EfficientNet sees in
60,000 pictures and what each small network says is then in --cache.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from scipy.stats import binomtest, spearmanr
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

import bridge as bridging
import errata
from bridge import CLASSES, PLANTED, VEHICLES, kept, said, table
from errata import Audit, Captions, Evaluation, Source, fix
from errata.bench.tables import data_folder
from errata.core.split import discover_mask
from errata.explain.captions import Direction, caption_slice
from errata.explain.view import view_of
from errata.inputs import Bridge
from errata.slicers import make
from trained import Recipe, Seen, over_runs, seen_by

Array = np.ndarray
PX = 128  # as EfficientNet sees them; 224 take five times as long
ROWS = 50_000  # the test pictures come after them
SUPERCLASSES = ("animal", "vehicle")
PAIRS = (*PLANTED, ("bird", "truck"))  # the first is the paper's choice: the worst class of each when none is cut
EPOCHS = 12
PLAIN = Recipe(EPOCHS)
FINE = Recipe(6)  # of the network of ten classes
RECIPES = {"confidence": PLAIN, "LfF": Recipe(EPOCHS, q=0.7), "JTT": Recipe(2)}
RANKINGS = ("directions, bridge", "directions, backbone", "directions, own layer", "confidence", "LfF", "JTT", "Domino")
WAYS = ("nothing", "random", "confidence", *RANKINGS[:2], "oracle")  # `chosen` also knows the other rankings
WORST = ("the cut class errs most of its superclass", "another class errs more")
SCORES = ("correlation", "difference")
TOP = (50, 100, 200)
ADDED = 100  # rows a superclass
NEAREST = (50, 100, 200, 400, 800)
REMOVED = (0.0, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, eq=False)
class Pictures:
    """CIFAR-10's training rows, then its test rows."""

    pixels: Array  # (n, 32, 32, 3) bytes
    fine: Array  # (n,) index in CLASSES
    features: Array  # (n, 1280)
    bridge: Bridge | None  # None where EfficientNet is not asked
    folder: Path

    @classmethod
    def read(cls, folder: Path, backbone: bool = True) -> Pictures:
        rows = pd.read_parquet(data_folder() / "cifar10.parquet").sort_values("split", ascending=False, kind="stable")
        pixels = np.stack([np.asarray(Image.open(io.BytesIO(data)).convert("RGB")) for data in rows.image])
        features = np.empty((len(rows), 0))
        bridge = None
        if backbone:
            features = kept(folder / f"cifar10-{PX}px.npy", lambda: bridging.seen(rows.image.tolist(), PX))
            theirs, labels, names = bridging.imagenet(folder)
            bridge = Bridge.fit(theirs, names, labels).recentred(features[:ROWS])
        chance = np.random.default_rng(0)  # rows come by class: what ties are broken by must not
        order = np.concatenate([chance.permutation(ROWS), ROWS + chance.permutation(len(rows) - ROWS)])
        return cls(pixels[order], rows.label.map(CLASSES.index).to_numpy()[order], features[order], bridge, folder)

    @cached_property
    def placed(self) -> Array:
        """(n, r) in the bridge's space."""
        return self.bridge.transform_images(self.features)

    @cached_property
    def captions(self) -> Captions:
        texts = errata.explain.caption_candidates(CLASSES, adjectives=(), prepositions=())
        references = errata.explain.reference_captions(SUPERCLASSES)
        return errata.inputs.embed_captions(texts, self.place_texts, "bridge", references=references)

    def place_texts(self, texts: Sequence[str]) -> Array:
        return self.bridge.transform_texts(bridging.sentences(texts))


@dataclass(frozen=True, eq=False)
class World:
    """One split, one class of each superclass cut in training, and what networks trained so say."""

    pictures: Pictures
    seed: int
    cut: tuple[str, str]
    size: int  # rows for training, before any are cut, and in the pool
    removed: float = 0.75
    permutations: int = 0
    mislabelled: bool = False  # the cut rows stay, under the other superclass: more harm than their absence does

    @cached_property
    def roles(self) -> dict[str, Array]:
        """Row numbers."""
        order = np.random.default_rng(self.seed).permutation(ROWS)
        train, validation, pool = np.split(order, [2 * ROWS // 5, 3 * ROWS // 5])
        train = train[: self.size]
        pool = pool[: self.size]
        if not self.mislabelled:
            train = train[~np.isin(train, self.cut_rows(train))]
        test = np.arange(ROWS, len(self.pictures.fine))
        return {"train": train, "validation": validation, "pool": pool, "test": test}

    def cut_rows(self, rows: Array) -> Array:
        """Those of the rows that are cut: the last of each class of which some are."""
        cut = []
        for name in self.cut:
            own = rows[self.fine(rows) == CLASSES.index(name)]
            cut.append(own[round((1 - self.removed) * len(own)) :])
        return np.concatenate(cut)

    def fine(self, rows: Array) -> Array:
        return self.pictures.fine[rows]

    def seen(self, recipe: Recipe = PLAIN, more: int = 0) -> dict[str, Seen]:
        """By role: what a network trained in this world says."""
        rows = np.concatenate(list(self.roles.values()))
        found = self.trained(self.roles["train"], rows, recipe, more)
        ends = np.cumsum([len(role) for role in self.roles.values()])[:-1]
        parts = zip(self.roles, np.split(found.probs, ends), np.split(found.hidden, ends), strict=True)
        return {role: Seen(probs, hidden) for role, probs, hidden in parts}

    def trained(self, rows: Array, asked: Array, recipe: Recipe = PLAIN, more: int = 0) -> Seen:
        """What a network trained on some rows says of others. more: added to the seed."""
        pixels = self.pictures.pixels
        labels = VEHICLES[self.fine(rows)]
        if self.mislabelled:
            labels = np.where(np.isin(rows, self.cut_rows(rows)), 1 - labels, labels)
        return seen_by(self.pictures.folder, recipe, (pixels[rows], labels), pixels[asked], seed=self.seed + more)

    def evaluation(self, role: str, space: str = "bridge", recipe: Recipe = PLAIN) -> Evaluation:
        rows = self.roles[role]
        pictures = self.pictures
        found = self.seen(recipe)[role]
        if space == "bridge":
            representation = pictures.placed[rows]
        elif space == "backbone":
            representation = pictures.features[rows]
        elif space == "classes":
            representation = self.of_classes[rows]
        else:
            representation = found.hidden
        return Evaluation(
            labels=VEHICLES[self.fine(rows)],
            probs=found.probs,
            class_names=SUPERCLASSES,
            ids=rows,
            representations={space: representation},
            # Not true of the own layer, but its SVM is wanted here, not an approximation of it.
            sources={space: Source(from_model=False)},
        )

    @property
    def of_classes(self) -> Array:
        """(n, d) the layer of a network that knows the ten classes, trained on rows that have no other role."""
        own = np.random.default_rng(self.seed).permutation(ROWS)[3 * ROWS // 5 + self.size :]
        pixels = self.pictures.pixels
        return seen_by(self.pictures.folder, FINE, (pixels[own], self.fine(own)), pixels, seed=self.seed).hidden

    def strengths(self, space: str, errors_of: str) -> dict[int, dict[str, Any]]:
        """By superclass: what the rule of its direction says. errors_of: "all", "the cut class" to leave out validation
        rows of other classes that are wrong, or "other classes" to leave out those of the cut class."""
        validation = self.evaluation("validation", space)
        rows = validation.rows(discover_mask(validation))  # as an audit would search them
        if errors_of != "all":
            cut = (self.cut_class(0), self.cut_class(1))
            keep = without_other_errors(rows.errors, rows.labels, self.fine(rows.ids), cut)
            if errors_of == "other classes":
                keep = ~keep | ~rows.errors
            rows = rows.rows(keep)
        slicer = make("directions", options={"permutations": self.permutations}).fit(rows)
        return {rule["scope"]["label"]: rule for rule in slicer.rules_}

    @cached_property
    def _audits(self) -> dict[str, Audit]:
        return {}

    def audit(self, space: str) -> Audit:
        if space not in self._audits:
            self._audits[space] = errata.audit(
                self.evaluation("validation", space),
                methods=["directions"],
                train=self.evaluation("train", space),
                options={"directions": {"permutations": self.permutations}},
            )
        return self._audits[space]

    def cut_class(self, superclass: int) -> int:
        return CLASSES.index(self.cut[superclass])


def without_other_errors(errors: Array, superclasses: Array, fine: Array, cut: tuple[int, int]) -> Array:
    """(n,) False for rows that are wrong and not of the class that was cut of their superclass."""
    return ~errors | (fine == np.array(cut)[superclasses])


def hardness(world: World, ranking: str, role: str) -> Array:
    """(n,) larger for rows that the ranking holds to be harder; to compare within a superclass."""
    method, _, space = ranking.partition(", ")
    if method == "Domino":
        return by_domino(world, role)
    if method in RECIPES:
        return fix.by_confidence(world.evaluation(role, recipe=RECIPES[method]))
    return np.max(list(errata.apply(world.audit(space), world.evaluation(role, space)).values()), axis=0)


def by_domino(world: World, role: str) -> Array:
    """The weight in the worse of two slices of each superclass, as in the paper's comparison."""
    audit = world.audit("bridge")
    asked = world.evaluation(role)
    searched = audit.evaluation.rows(audit.discover)
    weights = np.zeros(len(asked))
    for label in range(len(SUPERCLASSES)):
        mine = searched.rows(searched.labels == label)
        theirs = asked.labels == label
        domino = make("domino:as_published", seed=world.seed, options={"components": 2, "slices": 2}).fit(mine)
        inside = domino.membership(mine)
        worse = int(np.argmax(mine.errors @ inside / inside.sum(axis=0)))
        weights[theirs] = domino.membership(asked.rows(theirs))[:, worse]
    return weights


def chosen(world: World, way: str) -> Array:
    """Row numbers from the pool."""
    rows = world.roles["pool"]
    (method, _, space) = way.partition(", ")
    if way == "nothing":
        return rows[:0]
    if way == "oracle":
        return np.concatenate([rows[world.fine(rows) == world.cut_class(s)][:ADDED] for s in (0, 1)])
    audit = world.audit(space or "bridge")
    pool = world.evaluation("pool", space or "bridge", RECIPES.get(way, PLAIN))
    if way == "Domino":
        return fix.select(pool, by_domino(world, "pool"), ADDED).ids
    by: Any = "confidence"
    if method == "directions":
        by = "slices"
    elif way == "random":
        by = "random"
    ids = [found.id for found in audit.slices]
    return errata.plan_selection(audit, pool, ADDED, slices=ids, by=by, seed=world.seed).ids


def captioned(world: World, score: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Of each direction in the bridge's space: the superclass, and its captions by that score."""
    audit = world.audit("bridge")
    tasks = dict(audit.evaluation.tasks())
    candidates = replace(world.pictures.captions, score=score)
    for found in audit.slices:
        direction = Direction.of(found, audit.slicers[found.slicer].to_state().arrays)
        data = caption_slice(view_of(audit, found, tasks), candidates, direction).to_json()
        yield found.rule["scope"]["label"], data


def captions(worlds: Sequence[World]) -> None:
    """The correlation beside the paper's score, of the same directions."""
    found = {score: [fact for world in worlds for fact in told(world, score)] for score in SCORES}
    for score, facts in found.items():
        print(f"\nscore: {score}")
        kinds = {"all": facts}
        for name in (*WORST, *(name for name in CLASSES if any(fact.cut == name for fact in facts))):
            kinds[name] = [fact for fact in facts if name in (fact.cut, fact.worst)]
        rows = [[name, *counted(these), leads_uncut(facts, name)] for name, these in kinds.items() if these]
        head = ["first by score", "among the first two by score", "first as shown", "among the first two as shown"]
        more = ["its rows fail more than the class", "class that errs most among the first two by score"]
        table(["cut class", *head, *more, "among the first two by score where another was cut"], rows)
    for which in ("second", "shown_second"):
        pairs = [(getattr(a, which), getattr(b, which)) for a, b in zip(*found.values(), strict=True)]
        only = pairs.count((True, False)), pairs.count((False, True))
        p = binomtest(only[0], sum(only)).pvalue if sum(only) else 1.0
        print(f"\n{which}: only {SCORES[0]} {only[0]}, only {SCORES[1]} {only[1]}, exact paired test p = {p:.2g}")


@dataclass(frozen=True)
class Told:
    """What the captions of one direction say of the class that was cut."""

    cut: str
    worst: str  # one of WORST
    others: dict[str, bool]  # class of the superclass that was not cut -> is it among the first two by score?
    first: bool
    second: bool  # among the first two
    shown_first: bool  # in the order of the measured error
    shown_second: bool
    fails: bool  # the lower end of its rows' error rate is above the class's rate
    finds_worst: bool  # the class that errs most is among the first two


def told(world: World, score: str) -> Iterator[Told]:
    for superclass, data in captioned(world, score):
        cut = world.cut[superclass]
        worst = worst_class(world, superclass)
        shown = [row["text"].rpartition(" ")[2] for row in data["hard"]]
        order = [row["text"].rpartition(" ")[2] for row in sorted(data["hard"], key=lambda row: row["score"])]
        low = data["hard"][shown.index(cut)]["matches"]["interval"][0] if cut in shown else 0.0
        mine = [name for name, of in zip(CLASSES, VEHICLES, strict=True) if of == superclass and name != cut]
        yield Told(
            cut=cut,
            worst=WORST[worst != world.cut_class(superclass)],
            others={name: name in order[:2] for name in mine},
            first=cut in order[:1],
            second=cut in order[:2],
            shown_first=cut in shown[:1],
            shown_second=cut in shown[:2],
            fails=low > data["class_rate"]["error_rate"],
            finds_worst=CLASSES[worst] in order[:2],
        )


def counted(facts: Sequence[Told]) -> list[str]:
    names = ("first", "second", "shown_first", "shown_second", "fails", "finds_worst")
    return [said(sum(getattr(fact, name) for fact in facts), len(facts)) for name in names]


def leads_uncut(facts: Sequence[Told], name: str) -> str:
    """A class may lead whatever was cut: how often it does where another of its superclass was."""
    hits = [hit for fact in facts for other, hit in fact.others.items() if name in ("all", other)]
    return said(sum(hits), len(hits)) if hits else ""


def worst_class(world: World, superclass: int) -> int:
    """The class of a superclass with most errors among test rows: what a direction should find, cut or not."""
    test = world.evaluation("test")
    fine = world.fine(world.roles["test"])
    rates = [test.errors[fine == c].mean() * (VEHICLES[c] == superclass) for c in range(len(CLASSES))]
    return int(np.argmax(rates))


def flagged(worlds: Sequence[World]) -> None:
    found = {ranking: [one for world in worlds for one in hardest(world, ranking)] for ranking in RANKINGS}
    shares = {ranking: np.array([share for share, _ in each]) for ranking, each in found.items()}  # (directions, tops)
    firsts = {ranking: np.array([first for _, first in each]) for ranking, each in found.items()}
    errs_most = np.array(
        [worst_class(world, label) == world.cut_class(label) for world in worlds for label in labels(world)]
    )
    for which, name in ((np.ones_like(errs_most), "all directions"), (errs_most, WORST[0]), (~errs_most, WORST[1])):
        print(f"\n{name}: n = {which.sum()}")
        rows = []
        for ranking in RANKINGS:
            more = shares[ranking][which] - shares["confidence"][which]
            told = [*map(over_runs, shares[ranking][which].T), *(over_runs(more[:, i]) for i in (1, -1))]
            rows.append([ranking, *told, *(f"{hits}" for hits in firsts[ranking][which].sum(axis=0))])
        tops = [*map(str, TOP), "flagged"]
        head = [f"share, {top}" for top in tops] + ["more than confidence, 100", "more, flagged"]
        table(["ranking", *head, *(f"most frequent, {top}" for top in tops)], rows)


def labels(world: World) -> list[int]:
    """The superclass of each direction, in the audit's order."""
    return [found.rule["scope"]["label"] for found in world.audit("bridge").slices]


def hardest(world: World, ranking: str) -> Iterator[tuple[list[float], list[bool]]]:
    """For each superclass: the cut class's share of the hardest test rows, and whether it is the most frequent."""
    test = world.roles["test"]
    rank = hardness(world, ranking, "test")
    audit = world.audit("bridge")
    inside = errata.apply(audit, world.evaluation("test"))
    for found in audit.slices:
        superclass = found.rule["scope"]["label"]
        own = np.flatnonzero(VEHICLES[world.fine(test)] == superclass)
        fine = world.fine(test)[own[np.argsort(-rank[own], kind="stable")]]
        tops = [fine[:k] for k in (*TOP, int((inside[found.id] >= found.threshold).sum()))]
        cut = world.cut_class(superclass)
        yield [float((top == cut).mean()) for top in tops], [bool(np.bincount(top).argmax() == cut) for top in tops]


def selection(worlds: Sequence[World]) -> None:
    found = {way: np.array([selected(world, way) for world in worlds]) for way in WAYS}
    errs_most = np.array([[worst_class(world, s) == world.cut_class(s) for s in (0, 1)] for world in worlds])
    mine = found["directions, bridge"]
    rows = []
    for way, theirs in found.items():
        more = mine - theirs
        one_each = theirs[:, 1:3].mean(axis=1), theirs[:, 3]
        gains = more[:, 1:3].mean(axis=1), more[:, 3], more[:, 1:3][errs_most], more[:, 1:3][~errs_most]
        rows.append([way, f"{theirs[:, 0].mean():.0f}", *map(over_runs, one_each), *map(over_runs, gains)])
    told = ["of the cut classes", "their accuracy", "overall", "directions, bridge: more of theirs", "more overall"]
    table([f"{ADDED} a superclass by", *told, *(f"more of theirs: {name}" for name in WORST)], rows)


def selected(world: World, way: str) -> tuple[float, float, float, float]:
    """Rows of the cut classes among those added; when trained with them, accuracy of each cut class, and overall."""
    added = chosen(world, way)
    test = world.roles["test"]
    cut = [world.cut_class(0), world.cut_class(1)]
    again = np.concatenate([world.roles["train"], added])
    found = world.trained(again, test) if len(added) else world.seen()["test"]
    right = found.probs.argmax(axis=1) == VEHICLES[world.fine(test)]
    first, second = (right[world.fine(test) == each].mean() for each in cut)
    return np.isin(world.fine(added), cut).sum(), first, second, right.mean()


def nearest(worlds: Sequence[World]) -> None:
    """Of the first caption on each side, as shown; not all directions have an easy one."""
    rows = []
    for score in SCORES:
        curves: dict[str, list[list[float]]] = {"hard": [], "easy": []}
        for world in worlds:
            test = world.evaluation("test")
            for superclass, data in captioned(world, score):
                own = np.flatnonzero(test.labels == superclass)
                for side in [side for side in curves if data[side]]:
                    text = world.pictures.place_texts([data[side][0]["text"]])[0]
                    order = own[np.argsort(-(test.representations["bridge"][own] @ text), kind="stable")]
                    curves[side].append([float(1 - test.errors[order[:k]].mean()) for k in (*NEAREST, len(order))])
        rows += [[score, side, *map(over_runs, np.transpose(curve))] for side, curve in curves.items()]
    table(["score", "caption", *(f"{k} nearest" for k in NEAREST), "all"], rows)


def strength(worlds: Sequence[World], space: str = "bridge", shares: Sequence[float] = REMOVED) -> None:
    rows = []
    found = []
    for removed in shares:
        these = [replace(world, removed=removed, permutations=20) for world in worlds]
        here = np.array([fact for world in these for fact in strengths(world, space)])
        found += [(removed, *fact) for fact in here]
        apart = np.unique(here[:, :2], axis=0)  # where nothing is removed, all pairs of a seed share a network
        rows.append([f"{removed:.0%}", *map(over_runs, apart.T), *map(over_runs, here.T[2:])])
        print(rows[-1], flush=True)
    told = [
        "accuracy of the cut class",
        "of the others",
        "share of errors in the cut class",
        "strength, its errors alone",
        "the others' errors alone",
    ]
    table(["removed", "strength", "its null", *told], rows)
    removed, strong, _, cut, _, share, alone, others = np.transpose(found)
    kinds = {"": strong, " of the cut class's errors alone": alone, " of the other classes' errors alone": others}
    for kind, values in kinds.items():
        means = [np.mean(values[removed == part]) for part in shares]
        print(
            f"\nSpearman of strength{kind} with the removed share: {spearmanr(means, shares).statistic:.2f} of means, "
            f"{spearmanr(values, removed).statistic:.2f} of all {len(values)} directions; "
            f"with the accuracy of the cut class: {spearmanr(values, cut).statistic:.2f}; "
            f"with its share of the errors: {spearmanr(values, share).statistic:.2f}"
        )


def strengths(world: World, space: str) -> Iterator[tuple[float, ...]]:
    """For each superclass: strength, its null's mean, test accuracy of the cut class and of the others, the cut class's
    share of the errors, and the strength where no other class has errors and where the cut one has none."""
    test = world.evaluation("test", space)
    fine = world.fine(world.roles["test"])
    every = world.strengths(space, "all")
    alone = world.strengths(space, "the cut class")
    others = world.strengths(space, "other classes")
    for superclass, rule in every.items():
        cut = fine == world.cut_class(superclass)
        own = test.labels == superclass
        accuracies = 1 - test.errors[cut].mean(), 1 - test.errors[own & ~cut].mean()
        share = test.errors[cut].sum() / test.errors[own].sum()
        apart = alone[superclass]["strength"], others[superclass]["strength"]
        yield rule["strength"], rule["null"]["mean"], *accuracies, share, *apart


def runs(worlds: Sequence[World]) -> None:
    others = {
        "itself": lambda world: said_by(world, 0),
        "a second run": lambda world: said_by(world, 100),
        "a random forest of the pixels": forest,
    }
    rows = []
    for name, predictions in others.items():
        found = [fact for world in worlds for fact in carried(world, predictions(world))]
        rows.append([name, *(over_runs(column) for column in np.transpose(found))])
    told = ["error rate of flagged rows", "of the others", "AUC of the direction", "AUC of the first one's confidence"]
    table(["errors of", *told], rows)


def said_by(world: World, more: int) -> Array:
    return world.seen(more=more)["test"].probs.argmax(axis=1)


def forest(world: World) -> Array:
    pixels = world.pictures.pixels
    train = world.roles["train"]
    model = RandomForestClassifier(200, random_state=world.seed)
    model.fit(pixels[train].reshape(len(train), -1), VEHICLES[world.fine(train)])
    return model.predict(pixels[world.roles["test"]].reshape(len(world.roles["test"]), -1))


def carried(world: World, predictions: Array) -> Iterator[tuple[float, float, float, float]]:
    """For each superclass: how well the first network's direction foretells these errors on test rows."""
    audit = world.audit("bridge")
    test = world.evaluation("test")
    weights = errata.apply(audit, test)
    doubt = fix.by_confidence(test)
    errors = predictions != test.labels
    for found in audit.slices:
        own = test.labels == found.rule["scope"]["label"]
        wrong = errors[own]
        inside = weights[found.id][own] >= found.threshold
        areas = [roc_auc_score(wrong, values[own]) for values in (weights[found.id], doubt)]
        yield wrong[inside].mean(), wrong[~inside].mean(), *areas


STUDIES: dict[str, Callable[[Sequence[World]], None]] = {
    "captions": captions,
    "flagged": flagged,
    "selection": selection,
    "nearest": nearest,
    "strength": strength,
    "runs": runs,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", choices=list(STUDIES), nargs="+")
    parser.add_argument("--rows", type=int, default=2000, help="to train on before any are cut, and in the pool")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--pairs", type=int, nargs="+", default=range(len(PAIRS)), help="of classes to cut, by number")
    parser.add_argument("--space", choices=["bridge", "classes"], default="bridge", help="of the study of strength")
    parser.add_argument("--removed", type=float, nargs="+", default=REMOVED, help="shares of the cut class, there")
    parser.add_argument("--mislabelled", action="store_true", help="the cut rows stay, under the other superclass")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    pictures = Pictures.read(asked.cache, backbone=asked.space == "bridge")
    worlds = [
        World(pictures, seed, PAIRS[pair], asked.rows, mislabelled=asked.mislabelled)
        for seed in asked.seeds
        for pair in asked.pairs
    ]
    for study in asked.studies:
        if study == "strength":
            strength(worlds, asked.space, asked.removed)
        else:
            STUDIES[study](worlds)


if __name__ == "__main__":
    main()
