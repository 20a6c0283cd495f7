"""Rows nearest to a caption, and captions of one network beside another's (Jain et al. 2023, figures 10, 27, 33 to 35).

    python benchmarks/directions_near.py match      are the test rows nearest to a subclass's name of that subclass?
    python benchmarks/directions_near.py networks -o NEAR.jsonl [--studies two] [--seeds 10] [--minutes 60]
    python benchmarks/directions_near.py report NEAR.jsonl
    python benchmarks/directions_near.py unbalanced --seeds 10 11   a validation set like training (figures 12, 13)
    python benchmarks/directions_near.py imagenet   accuracy near the hardest and the easiest class name

`networks`: worlds of benchmarks/directions_many.py, each with a second network (other weights, the same rows), a random
forest of the pixels and a network of another architecture: do they have the same hardest captions, and do the others
err near the first's? And of the first: how accurate are rows near the hardest caption, by `named`, which knows the
subclasses' names, and by a bridge from 5,000 images of ImageNet with their class names; are rows near the name of their
own subclass right more often because they are typical of it (near the mean of the subclass's validation rows)? And
strength beside the cut subclass's accuracy and its share of the errors, real and predicted. `report` takes a world as
one: its classes share a network and rows. Worlds of one seed share rows too, which no interval here knows of.
`unbalanced`: the faces of that script; directions from validation rows of which the minority has a fifth.
`imagenet`: EfficientNet-lite0 on 5,000 validation images, in nine super-classes; directions, captions and counts in the
network's own last layer, for there is no second network here that can tell them. Each seed halves the images anew.
Wants what benchmarks/bridge.py wants.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

import bridge as bridging
import errata
from bridge import table
from directions_many import RECIPE, STUDIES, World, caption, captioned, cuts, pictures, placed_captions, strengths
from directions_parts import TURNS
from errata import Captions, Evaluation, Slice, Source, fix
from errata.bench.tables import data_folder
from errata.explain.captions import Direction, caption_slice
from errata.explain.view import SliceView
from errata.inputs import Bridge
from errata.slicers.directions.slicer import Directions
from spotlight_clusters import superclass_names
from trained import NARROW, Seen, over_finite_runs, over_runs, seen_by

Array = np.ndarray
K = 50
TOP = (50, 100, 200)
SOME = (25, 50, 100)  # of ImageNet's super-classes, which are smaller
FIFTHS = 5
ROWS = ("fine", "labels", "roles")
OTHERS = ("a second run", "a random forest", "another architecture")


@dataclass(frozen=True, eq=False)
class Other(World):
    """The same rows, by another network."""

    by: str = OTHERS[0]

    @cached_property
    def asked(self) -> Array:
        return np.concatenate([self.roles[role] for role in ("validation", "test")])

    @cached_property
    def first(self) -> Seen:
        rows = self.roles["train"]
        pixels = self.pictures.pixels
        if self.by == OTHERS[1]:
            return forest(pixels[rows], self.labels[rows], pixels[self.asked], self.seed)
        recipe = RECIPE
        if self.by == OTHERS[2]:
            recipe = replace(RECIPE, architecture=NARROW)
        pairs = pixels[rows], self.labels[rows]
        return seen_by(self.pictures.folder, recipe, pairs, pixels[self.asked], seed=self.seed + 1000)


def forest(pixels: Array, labels: Array, tested: Array, seed: int) -> Seen:
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(100, random_state=seed)
    model.fit(pixels.reshape(len(pixels), -1), labels)
    return Seen(model.predict_proba(tested.reshape(len(tested), -1)), np.empty((len(tested), 0)))


@dataclass(frozen=True, eq=False)
class Coarse(World):
    """The same rows and network; `named` knows the names of ImageNet's classes only."""

    @cached_property
    def named(self) -> Bridge:
        return of_imagenet(self.pictures.folder).recentred(self.pictures.features[self.roles["validation"]])


@cache
def of_imagenet(folder: Path) -> Bridge:
    features, labels, names = bridging.imagenet(folder)
    return Bridge.fit(features, names, labels)


# --- do rows near a name match it? ---------------------------------------------------------------------------


def match(asked: argparse.Namespace) -> None:
    """For each subclass: of the K test rows of its class that lie nearest to its caption, how many are of it."""
    bridges: list[tuple[str, str]] = [(study, "named") for study in asked.studies]
    if "two" in asked.studies:
        bridges.append(("two", "ImageNet's names"))  # which knows no sign and no digit
    for study, name_ in bridges:
        kind = {"named": World, "ImageNet's names": Coarse}[name_]
        worlds = [kind(pictures(str(asked.cache)), STUDIES[study], seed, cuts(study, 0)) for seed in asked.seeds]
        found = np.array([matched(world) for world in worlds])  # (worlds, subclasses, 4)
        print(f"\n{study}, {name_}: {len(worlds)} splits, {found.shape[1]} subclasses, {K} rows each")
        for j, name in enumerate(("nearest of the class", "share in the class", "nearest of all rows", "of all rows")):
            each = found[:, :, j].mean(axis=0)
            print(f"{name}: {over_runs(found[:, :, j].mean(axis=1))}; subclasses {each.min():.3f} to {each.max():.3f}")
        lowest = np.argsort(found[:, :, 0].mean(axis=0))[:5]
        print("least:", ", ".join(f"{worlds[0].study.names[c]} {found[:, c, 0].mean():.2f}" for c in lowest))


def matched(world: World) -> list[list[float]]:
    test = world.roles["test"]
    placed = world.spaces["named"][test]
    texts = placed_captions(world, world.study.names)
    rows = []
    for c, text in enumerate(texts):
        order = np.argsort(-(placed @ text), kind="stable")
        right = world.fine[test][order] == c
        own = world.labels[test][order] == world.study.class_of[c]
        count = min(K, int(right.sum()))
        rows.append([right[own][:count].mean(), right[own].mean(), right[:count].mean(), right.mean()])
    return rows


# --- captions of several networks, and rows near them --------------------------------------------------------


def of_networks(world: World) -> dict[str, Any]:
    kin = {name: like(world, Other(**fields_of(world), by=name), (*ROWS, "named", "spaces")) for name in OTHERS}
    orders = {"itself": captioned(world, "correlation")}
    orders |= {name: captioned(other, "correlation") for name, other in kin.items()}
    named = [own_only(world, number, orders) for number in range(len(world.study.classes))]
    facts = {
        "cut": [world.study.names[c] for c in world.cut],
        "orders": named,
        "agree": {name: agreement(world, other) for name, other in kin.items()},
        "classes": [class_facts(world, number) for number in range(len(world.study.classes))],
        "near": {"named": near(world, orders["itself"])},
    }
    facts["near"] |= {f"named, {name}": near(other, orders["itself"]) for name, other in kin.items()}
    if world.study is STUDIES["two"]:
        coarse = like(world, Coarse(**fields_of(world)), (*ROWS, "first"))
        facts["near"]["ImageNet's names"] = near(coarse, captioned(coarse, "correlation"))
    return facts


def like(world: World, other: World, names: Sequence[str]) -> World:
    """The other, with what is the same in both taken from the one that has it."""
    vars(other).update({name: getattr(world, name) for name in names})
    return other


def fields_of(world: World) -> dict[str, Any]:
    return {name: getattr(world, name) for name in ("pictures", "study", "seed", "cut", "device")}


def own_only(world: World, number: int, orders: dict[str, dict[int, list[str]]]) -> dict[str, list[str]]:
    """Of each network the captions of a class's own subclasses, the hardest first."""
    own = {caption(name): name for name in list(world.study.classes.values())[number]}
    return {name: [own[text] for text in order.get(number, []) if text in own] for name, order in orders.items()}


def agreement(world: World, other: World) -> float:
    """The share of test rows that both have right or both have wrong."""
    return float((world.evaluation("test", "named").errors == other.evaluation("test", "named").errors).mean())


def class_facts(world: World, number: int) -> dict[str, Any]:
    test = world.evaluation("test", "named")
    own = test.labels == number
    fine = world.fine[world.roles["test"]]
    rates = {c: test.errors[own & (fine == c)].mean() for c in np.unique(fine[own])}
    cut = world.cut[number]
    wrong = fine[own & test.errors]
    return {
        "worst": bool(max(rates, key=lambda c: rates[c]) == cut),
        "accuracy": float(1 - rates[cut]),
        "of_errors": float((wrong == cut).mean()) if len(wrong) else None,
        "error": float(test.errors[own].mean()),
        "strength": {space: strengths(world, space)[number] for space in world.spaces},
        "of_flagged": {space: of_flagged(world, space, own & (fine == cut), own) for space in world.spaces},
    }


def of_flagged(world: World, space: str, cut: Array, own: Array) -> float | None:
    """The share of the cut subclass among a class's test rows that the direction predicts to be wrong."""
    machine = world.directions(space)
    test = world.evaluation("test", space)
    flagged = own & (machine.membership(test) >= machine.thresholds_).any(axis=1)
    if not flagged.any():
        return None
    return float(cut[flagged].mean())


def near(world: World, orders: dict[int, list[str]]) -> list[dict[str, Any]]:
    """Of each class: accuracy near its hardest and its easiest caption, and what nearness to a name is."""
    test = world.evaluation("test", "named")
    right = ~test.errors
    fine = world.fine[world.roles["test"]]
    placed = test.representations["named"]
    typical = typicality(world)
    facts = []
    for number, order in orders.items():
        names = list(world.study.classes.values())[number]
        texts = [text for text in order if text in errata.explain.reference_captions(names)]
        if len(texts) < 2:
            continue
        own = np.flatnonzero(test.labels == number)
        fact: dict[str, Any] = {"class": number, "all": float(right[own].mean())}
        for side, text in (("hard", texts[0]), ("easy", texts[-1])):
            order_ = own[np.argsort(-(placed[own] @ placed_text(world, text)), kind="stable")]
            subclass = fine == world.study.names.index(subclass_of(world, text))
            fact[side] = [float(right[order_[:k]].mean()) for k in TOP]
            fact[f"{side}, of the subclass"] = float(subclass[order_[: TOP[0]]].mean())
            fact[f"{side}, all of the subclass"] = float(right[subclass].mean())
        rows = [within(world, c, right, fine, placed, typical) for c in np.unique(fine[own])]
        fact["within"] = np.mean(rows, axis=0).tolist()
        facts.append(fact)
    return facts


def placed_text(world: World, text: str) -> Array:
    return world.named.transform_texts(world.pictures.sentences[text][None])[0]


def subclass_of(world: World, text: str) -> str:
    return next(name for name in world.study.names if caption(name) == text)


def typicality(world: World) -> Array:
    """(n,) of test rows: cosine to the mean of their subclass's validation rows, from the mean of all of them."""
    known = world.roles["validation"]
    centre = world.pictures.features[known].mean(axis=0)
    rows = world.pictures.features[world.roles["test"]] - centre
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    fine = world.fine[world.roles["test"]]
    found = np.zeros(len(rows))
    for c in np.unique(fine):
        mean = world.pictures.features[known[world.fine[known] == c]].mean(axis=0) - centre
        found[fine == c] = rows[fine == c] @ (mean / np.linalg.norm(mean))
    return found


def within(world: World, c: int, right: Array, fine: Array, placed: Array, typical: Array) -> list[float]:
    """Of one subclass's rows: Spearman of nearness to its name and typicality; accuracy of the nearer half less that of
    the other, and the same where halves are made among rows that are about as typical; and of the typical half."""
    own = np.flatnonzero(fine == c)
    nearness = placed[own] @ placed_text(world, caption(world.study.names[c]))
    kin = typical[own]
    parts = np.array_split(np.argsort(kin, kind="stable"), FIFTHS)
    matched_ = float(np.mean([upper_less_lower(nearness[part], right[own][part]) for part in parts]))
    raw = upper_less_lower(nearness, right[own])
    return [float(spearmanr(nearness, kin).statistic), raw, matched_, upper_less_lower(kin, right[own])]


def upper_less_lower(values: Array, right: Array) -> float:
    order = right[np.argsort(values, kind="stable")]
    half = len(order) // 2
    return float(order[half:].mean() - order[:half].mean())


def networks(asked: argparse.Namespace) -> None:
    import torch

    torch.set_num_threads(1)
    until = time.monotonic() + 60 * asked.minutes
    for study in asked.studies:
        for seed in asked.seeds:
            for turn in range(TURNS[study]):
                if time.monotonic() > until:
                    print("stopped: the minutes are over", flush=True)
                    return
                world = World(pictures(str(asked.cache)), STUDIES[study], seed, cuts(study, turn))
                facts = {"study": study, "turn": turn, "seed": seed, **of_networks(world)}
                with asked.out.open("a") as file:
                    file.write(json.dumps(facts) + "\n")
                print(f"{study} {turn}, seed {seed}", flush=True)


def report(paths: Sequence[Path]) -> None:
    worlds = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    for study in dict.fromkeys(world["study"] for world in worlds):
        these = [world for world in worlds if world["study"] == study]
        print(f"\n## {study}: {len(these)} worlds")
        agreements(these)
        nearest(these)
        strength(these)


def agreements(worlds: Sequence[dict[str, Any]]) -> None:
    """Chance: the first network of one world beside the other of another world, class by class."""
    for name in OTHERS:
        same = np.mean([world["agree"][name] for world in worlds])
        print(f"\n{name}: right or wrong on the same test rows for {same:.3f}")
        for kind, keep in (("all", (True, False)), ("the cut subclass errs most", (True,)), ("another", (False,))):
            by_number = [list(same_captions(worlds, i, name, keep)) for i in range(len(worlds))]
            pairs = [pair for found in by_number for pair in found]
            if not pairs:
                continue
            same_, second, chance = (
                over_finite_runs([float(np.mean([pair[j] for pair in found])) for found in by_number if found], 3)
                for j in range(3)
            )
            print(f"{kind}, {len(pairs)} classes, means of worlds: the same hardest {same_}, by chance ", end="")
            print(f"{chance}; the first's hardest among the other's two {second}")


def same_captions(
    worlds: Sequence[dict[str, Any]], i: int, name: str, keep: Sequence[bool]
) -> Iterator[tuple[bool, bool, float]]:
    """Of the classes of one world: does the other network have the same hardest caption, is it among that network's two
    hardest, and how often is it the other network's in another world."""
    world = worlds[i]
    for number, orders in enumerate(world["orders"]):
        if len(orders["itself"]) < 3 or not orders[name] or world["classes"][number]["worst"] not in keep:
            continue
        hardest = orders["itself"][0]
        others = [w["orders"][number][name] for j, w in enumerate(worlds) if j != i]
        chance = float(np.mean([hardest == order[0] for order in others if order]))
        yield hardest == orders[name][0], hardest in orders[name][:2], chance


def nearest(worlds: Sequence[dict[str, Any]]) -> None:
    for name in worlds[0]["near"]:
        facts = [fact for world in worlds for fact in world["near"][name]]
        print(f"\nbridge: {name}; {len(facts)} classes. Intervals are over worlds")
        keys: dict[str, Any] = {"all rows": ("all",)}
        for side in ("hard", "easy"):
            keys |= {f"nearest {k} to the {side}": (side, i) for i, k in enumerate(TOP)}
            keys |= {label: (label,) for label in (f"{side}, of the subclass", f"{side}, all of the subclass")}
        labels = ("Spearman of near and typical", "nearer half more", "of rows as typical", "typical half more")
        keys |= {label: ("within", i) for i, label in enumerate(labels)}
        for label, key in keys.items():
            print(f"{label}: {over_runs(by_world(worlds, name, key))}")
        for i, k in enumerate(TOP):
            less = np.array(by_world(worlds, name, ("easy", i))) - by_world(worlds, name, ("hard", i))
            more = np.array(by_world(worlds, name, ("hard", i))) - by_world(worlds, name, ("all",))
            print(f"easy less hard, {k}: {over_runs(less)}; hard less all rows: {over_runs(more)}")


def by_world(worlds: Sequence[dict[str, Any]], name: str, key: Sequence[Any]) -> list[float]:
    found = []
    for world in worlds:
        values = []
        for fact in world["near"][name]:
            value = fact
            for part in key:
                value = value[part]
            values.append(value)
        if values:
            found.append(float(np.mean(values)))
    return found


def strength(worlds: Sequence[dict[str, Any]]) -> None:
    """Spearman over worlds and classes: raw, and less the mean of each class over the worlds, which is what is left
    when classes may differ. Intervals leave one world out at a time, since its classes share a network and rows; the
    means of classes are taken anew each time."""
    for space in ("named", "backbone"):
        for fact in ("accuracy", "of_errors", "of_flagged", "error"):
            rows = [found for found in (strengths_beside(world, space, fact) for world in worlds) if found]
            raw = spearman_of(rows)
            within_ = spearman_of(rows, by_class=True)
            print(f"{space}, strength and {fact}: Spearman {raw:.2f}, by leaving out {left_out(rows)}; ", end="")
            print(f"within classes {within_:.2f}, by leaving out {left_out(rows, by_class=True)}; ", end="")
            print(f"{sum(map(len, rows))} classes of {len(rows)} worlds")


def strengths_beside(world: dict[str, Any], space: str, fact: str) -> list[tuple[int, float, float]]:
    """Of each class of a world that has both: its number, the strength of its direction, and the fact."""
    rows = []
    for number, facts in enumerate(world["classes"]):
        value = facts[fact]
        if fact == "of_flagged":
            value = value[space]
        if value is not None and facts["strength"][space] is not None:
            rows.append((number, facts["strength"][space], value))
    return rows


def spearman_of(rows: Sequence[Sequence[tuple[int, float, float]]], by_class: bool = False) -> float:
    """rows: by world, see `strengths_beside`."""
    number, strong, other = np.transpose([row for world in rows for row in world])
    if by_class:
        for values in (strong, other):
            for c in np.unique(number):
                values[number == c] -= values[number == c].mean()
    return float(spearmanr(strong, other).statistic)


def left_out(rows: Sequence[Sequence[tuple[int, float, float]]], by_class: bool = False) -> str:
    """The jackknife over worlds: its mean and interval are those of the pseudo-values, one a world."""
    n = len(rows)
    if n < 2:
        return over_finite_runs([])
    whole = spearman_of(rows, by_class)
    others = [spearman_of([*rows[:i], *rows[i + 1 :]], by_class) for i in range(n)]
    return over_finite_runs([n * whole - (n - 1) * other for other in others])


# --- faces, a validation set like training --------------------------------------------------------------------


def unbalanced(asked: argparse.Namespace) -> None:
    """Share of the minority among the K hardest test rows of a class, less that of confidence."""
    worlds = [World(pictures(str(asked.cache)), STUDIES["faces"], seed, cuts("faces", 0)) for seed in asked.seeds]
    found = [shares_of_minority(world) for world in worlds]  # by network, by ranking: (classes, K)
    for number, name in enumerate(STUDIES["faces"].classes):
        rows = []
        for ranking in found[0]:
            shares = np.array([one[ranking][number] for one in found])
            more = shares - np.array([one["confidence"][number] for one in found])
            cells = [over_runs(shares[:, i]) for i in range(len(TOP))]
            rows.append([ranking, *cells, *(over_runs(more[:, i]) for i in range(len(TOP)))])
        print(f"\n{name}")
        table(["ranking", *(f"{k} hardest" for k in TOP), *(f"more than confidence, {k}" for k in TOP)], rows)
    for ranking in found[0]:
        more = np.array([np.subtract(one[ranking], one["confidence"]).mean(axis=0) for one in found])
        cells = [over_runs(more[:, i]) for i in range(len(TOP))]
        print(f"{ranking}, both classes, more than confidence: {cells}")


def shares_of_minority(world: World) -> dict[str, list[list[float]]]:
    test = world.evaluation("test", "backbone")
    minority = np.isin(world.fine[world.roles["test"]], world.cut)
    ranks = {"confidence": fix.by_confidence(test)}
    for space in world.spaces:
        for name, share in (("balanced", None), ("unbalanced", 0.25)):
            ranks[f"directions, {space}, {name}"] = by_direction(world, space, share)
    found: dict[str, list[list[float]]] = {}
    for name, values in ranks.items():
        found[name] = []
        for number in range(len(world.study.classes)):
            own = np.flatnonzero(test.labels == number)
            order = minority[own[np.argsort(-values[own], kind="stable")]]
            found[name].append([float(order[:k].mean()) for k in TOP])
    return found


def by_direction(world: World, space: str, share: float | None) -> Array:
    """(n,) of test rows. share: of the validation rows of the minority that are left; None: all."""
    rows = world.evaluation("validation", space)
    if share is not None:
        keep = np.ones(len(rows), bool)
        for c in world.cut:
            own = np.flatnonzero(world.fine[rows.ids] == c)
            keep[own[round(share * len(own)) :]] = False
        rows = rows.rows(keep)
    machine = Directions(slices=None, permutations=0, representation=space)
    machine.fit(rows, train=world.evaluation("train", space))
    return machine.membership(world.evaluation("test", space)).max(axis=1, initial=0.0)


# --- ImageNet ------------------------------------------------------------------------------------------------


def imagenet(asked: argparse.Namespace) -> None:
    features, labels, embedded = bridging.imagenet(asked.cache)
    layer = bridging.network()._fc
    logits = features @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    wrong = logits.argmax(axis=1) != labels
    kinds, kind = np.unique(superclass_names()[labels], return_inverse=True)
    placed = Bridge.from_weights(layer.weight.detach().numpy(), embedded).recentred(features)
    whole = Evaluation(
        labels=kind,
        predictions=np.where(wrong, (kind + 1) % len(kinds), kind),
        class_names=tuple(kinds),
        representations={"bridge": placed.transform_images(features)},
        sources={"bridge": Source(from_model=False)},
    )
    print(f"right on {1 - wrong.mean():.3f} of {len(labels)} images; {len(kinds)} super-classes")
    by_seed = [list(near_names(whole, placed, seed)) for seed in asked.seeds]
    curves = [fact for found in by_seed for fact in found]
    for side in ("hard", "easy", "easy less hard", "hard less all"):
        cells = []
        for k in SOME:
            cells.append(over_runs([v for _, v in by_kind(curves, side, k)]))
        print(f"{side}: " + ", ".join(f"{k}: {cell}" for k, cell in zip(SOME, cells, strict=True)))
    for k in SOME:
        print(f"{k}: " + ", ".join(f"{kinds[c]} {value:+.3f}" for c, value in by_kind(curves, "easy less hard", k)))
        means = [float(np.mean([value for _, value in by_kind(found, "easy less hard", k)])) for found in by_seed]
        print(f"{k}, by halves: " + ", ".join(f"{mean:+.3f}" for mean in means))


def by_kind(curves: Sequence[tuple[int, dict[str, Any]]], side: str, k: int) -> list[tuple[int, float]]:
    """The mean over seeds of each super-class."""
    found = []
    for number in sorted({number for number, _ in curves}):
        values = [fact[side][k] for of, fact in curves if of == number and k in fact[side]]
        if values:
            found.append((number, float(np.mean(values))))
    return found


def near_names(whole: Evaluation, bridge: Bridge, seed: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Of each super-class: accuracy of the held-out rows nearest to its hardest class name and to its easiest."""
    searched = np.random.default_rng([seed, 1]).random(len(whole)) < 0.5
    machine = Directions(slices=None, permutations=0, representation="bridge", seed=seed).fit(whole.rows(searched))
    weights = machine.membership(whole)
    frame = pd.read_csv(data_folder() / "imagenet_classes.csv").sort_values("label")
    names = np.array([str(name).partition(",")[0] for name in frame.name])
    references = errata.explain.reference_captions(whole.class_names)
    for j, rule in enumerate(machine.rules_):
        number = rule["scope"]["label"]
        mine = list(dict.fromkeys(names[superclass_names() == whole.class_names[number]].tolist()))
        texts = [text for text in errata.explain.reference_captions(mine) if text not in references]
        placed = bridge.transform_texts(bridging.sentences([*texts, *references]))
        captions = Captions([*texts, *references], placed, "bridge", references=references)
        cut = machine.thresholds_[j]
        slice_ = Slice(f"s{j}", machine.name, "", "not confirmed", cut, rule, weights[:, j], column=j)
        view = SliceView(slice_, whole, slice_.members, (whole.labels == number) & ~slice_.members, searched)
        facts = caption_slice(view, captions, Direction.of(slice_, machine.to_state().arrays)).to_json()
        if not facts["hard"] or not facts["easy"]:
            continue
        texts_of = {
            "hard": min(facts["hard"], key=lambda row: row["score"])["text"],
            "easy": max(facts["easy"], key=lambda row: row["score"])["text"],
        }
        own = np.flatnonzero(~searched & (whole.labels == number))
        accuracies: dict[str, Any] = {}
        for side, text in texts_of.items():
            near_ = whole.representations["bridge"][own] @ bridge.transform_texts(bridging.sentences([text]))[0]
            right = ~whole.errors[own[np.argsort(-near_, kind="stable")]]
            accuracies[side] = {k: float(right[:k].mean()) for k in SOME if 2 * k <= len(own)}
        hard = accuracies["hard"]
        accuracies["easy less hard"] = {k: accuracies["easy"][k] - hard[k] for k in hard}
        accuracies["hard less all"] = {k: hard[k] - float(1 - whole.errors[own].mean()) for k in hard}
        print(f"seed {seed}, {whole.class_names[number]} ({len(own)}): {texts_of}")
        yield number, accuracies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["match", "networks", "report", "unbalanced", "imagenet"])
    parser.add_argument("files", type=Path, nargs="*", help="to report")
    parser.add_argument("-o", "--out", type=Path, default=Path("directions-near.jsonl"))
    parser.add_argument("--studies", nargs="+", choices=list(TURNS), default=["two"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[10])
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    if asked.task == "report":
        report(asked.files)
        return
    tasks = {"match": match, "networks": networks, "unbalanced": unbalanced, "imagenet": imagenet}
    tasks[asked.task](asked)


if __name__ == "__main__":
    main()
