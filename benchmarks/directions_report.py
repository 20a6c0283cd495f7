"""The tables of `directions_many.py report`. A world is one network: intervals are over worlds, of means of classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.stats import pearsonr, spearmanr

from bridge import said, table
from trained import over_runs

TOP = (25, 50, 100)
FEWEST = 20  # networks for a correlation over them
Facts = dict[str, Any]
KINDS: dict[str, Callable[[Facts], bool]] = {
    "all": lambda fact: True,
    "the cut subclass errs most": lambda fact: fact["worst"],
    "another errs more": lambda fact: not fact["worst"],
}


def report(worlds: Sequence[Facts]) -> None:
    for study in dict.fromkeys(world["study"] for world in worlds):
        these = [world for world in worlds if world["study"] == study]
        facts = [fact for world in these for fact in world["classes"]]
        most = sum(fact["worst"] for fact in facts)
        print(f"\n## {study}: {len(these)} networks, {len(facts)} classes; in {most} the cut subclass errs most")
        print(f"accuracy {over_runs([world['plain']['all'] for world in these])}, of cut subclasses ", end="")
        print(over_runs([world["plain"]["minority"] for world in these]))
        print(f"`named` says the subclass of test rows: {over_runs([world['named_accuracy'] for world in these])}")
        for part in (rankings, captions, strengths, selections, upweights):
            part(these)


def by_world(worlds: Sequence[Facts], keep: Callable[[Facts], bool], value: Callable[[Facts], float]) -> list[float]:
    """The mean over the classes of each world that has any."""
    kept = [[value(fact) for fact in world["classes"] if keep(fact)] for world in worlds]
    return [float(np.mean(values)) for values in kept if values]


def kinds(facts: Sequence[Facts]) -> dict[str, Callable[[Facts], bool]]:
    """Those of which there is a class."""
    return {name: keep for name, keep in KINDS.items() if any(keep(fact) for fact in facts)}


def rankings(worlds: Sequence[Facts]) -> None:
    for name, keep in kinds([fact for world in worlds for fact in world["classes"]]).items():
        rows = []
        for ranking in worlds[0]["classes"][0]["hardest"]:
            shares = []
            for i in range(len(TOP)):
                shares.append(over_runs(by_world(worlds, keep, lambda f, r=ranking, i=i: f["hardest"][r][i][0])))
            more = by_world(worlds, keep, lambda f, r=ranking: f["hardest"][r][1][0] - f["hardest"]["confidence"][1][0])
            rows.append([ranking, *shares, over_runs(more)])
        chance = np.mean(by_world(worlds, keep, lambda fact: fact["share"]))
        print(f"\n{name}: share of the cut subclass among the hardest; chance {chance:.3f}")
        table(["ranking", *(f"{k} hardest" for k in TOP), "more than confidence, 50"], rows)


def captions(worlds: Sequence[Facts]) -> None:
    """Of classes with three subclasses or more: with two, the first two are both."""
    facts = [fact for world in worlds for fact in world["classes"] if fact["subclasses"] > 2]
    rows = []
    for score in ("correlation", "difference"):
        for name, keep in kinds(facts).items():
            places = [fact["captions"][score] for fact in facts if keep(fact)]
            chance = np.mean([1 / fact["subclasses"] for fact in facts if keep(fact)])
            first = sum(place == 0 for place in places)
            second = sum(place in (0, 1) for place in places)
            rows.append([score, name, said(first, len(places)), said(second, len(places)), f"{chance:.2f}"])
    table(["score", "classes", "the cut subclass is the hardest", "among the two hardest", "chance of the first"], rows)


def strengths(worlds: Sequence[Facts]) -> None:
    for space in ("backbone", "named"):
        within = []
        pairs = []
        for world in worlds:
            these = [(f["strength"][space], f["of_errors"]) for f in world["classes"]]
            these = [(a, b) for a, b in these if a is not None and b is not None]
            pairs += these
            if len(these) > 4:
                within.append(pearsonr(*np.transpose(these)).statistic)
        whole = pearsonr(*np.transpose(pairs))
        print(f"\n{space}: Pearson of strength and the cut subclass's share of errors {whole.statistic:.2f} ", end="")
        print(f"(p = {whole.pvalue:.2g}, n = {len(pairs)})", f"within networks {over_runs(within)}" if within else "")
        for number in range(len(worlds[0]["classes"])):
            mine = [world["classes"][number] for world in worlds]
            rows = [(f["strength"][space], 1 - f["error_cut"]) for f in mine if f["strength"][space] is not None]
            if len(rows) >= FEWEST:
                rank = spearmanr(*np.transpose(rows))
                print(
                    f"class {number}: Spearman of strength and the cut subclass's accuracy {rank.statistic:.2f} ",
                    end="",
                )
                print(f"(p = {rank.pvalue:.2g}, n = {len(rows)})")


def selections(worlds: Sequence[Facts]) -> None:
    base = np.array([world["plain"]["minority"] for world in worlds])
    found = {way: np.array([world["selection"][way]["minority"] for world in worlds]) for way in worlds[0]["selection"]}
    rows = []
    for way, minority in found.items():
        picked = [world["selection"][way]["picked"] for world in worlds]
        overall = [world["selection"][way]["all"] - world["plain"]["all"] for world in worlds]
        cells = [minority - base, overall, minority - found["random"], minority - found["confidence"]]
        rows.append([way, over_runs(picked, 2), *map(over_runs, cells)])
    head = ["of the cut subclasses", "gain of theirs", "gain overall", "more than random", "more than confidence"]
    table(["added by", *head], rows)


def upweights(worlds: Sequence[Facts]) -> None:
    flagged = over_runs([world["upweight"]["flagged"] for world in worlds], 2)
    inside = over_runs([world["upweight"]["of_flagged"] for world in worlds], 2)
    cut = over_runs([world["upweight"]["cut"] for world in worlds], 2)
    print(f"\nof training rows {flagged} are flagged; of those {inside} are of cut subclasses, of all {cut}")
    rows = []
    for way in [key for key in worlds[0]["upweight"] if ", " in key]:
        after = [world["upweight"][way] for world in worlds]
        gains = [
            [a[key] - world["plain"][key] for a, world in zip(after, worlds, strict=True)]
            for key in ("minority", "all")
        ]
        rows.append([way, *map(over_runs, gains)])
    table(["rows, times", "gain of cut subclasses", "gain overall"], rows)
