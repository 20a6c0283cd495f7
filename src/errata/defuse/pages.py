"""Regions of generated pictures as pages: all in one file, or one at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from ..core import Array, Comparison
from ..core.media import data_address
from ..report import comparison_lines as compared
from ..report import marks, numbers
from ..report.image_sources import SMALL
from ..report.rendering import templates
from ..report.sheets import png
from ..report.static_files import PAGE, STYLES, Script, file_text, policy, script_text
from .labels import Agreed, Judged, agreement
from .links import SavedRegions, ServedRegions

SCRIPTS = (PAGE,)
SERVED = (
    PAGE,
    Script("annotate.js", ("person.js", "outbox.js", "annotate.js")),
    Script("sheet.js", ("person.js", "outbox.js", "sheet.js")),
)
NOTHING = 1e-9  # a strength that teaches nothing of regions; a network without training loss still feels 1e-6
FORMS = {"misclassified": "confirmed", "classified well": "not", "no common label": "few", "not labelled": "few"}
KEYS = (("?", "this list"), ("j k", "next, previous region"))
SERVED_KEYS = (
    ("digits", "the class, as its button says; 0 or n none of the above"),
    ("g", "the sheet: the classifier is right"),
    ("u s", "undo, skip"),
)
ORDER = ("misclassified", "not labelled", "no common label", "classified well")
AXIS = marks.Axis(1.0)
NAMED = {"test": "Test rows", "regions": "Samples of all misclassified regions"}


@dataclass(frozen=True, eq=False)
class RegionRun:
    """What is known of a run: as far as it came."""

    name: str
    stage: str
    words: str
    class_names: tuple[str, ...]
    names: Mapping[str, str]  # id -> what it was made from and taken for
    weights: Mapping[str, float]
    pictures: Array  # (r, s, h, w, c) samples that people label
    predictions: Array  # (r, s)
    judged: tuple[Judged, ...]
    fingerprint: str
    facts: Mapping[str, Any]  # settings, vae, mistakes
    comparison: Comparison | None = None
    baseline: Comparison | None = None
    told: Mapping[str, Any] | None = None  # novelty, agreement, what the oracle says
    map: Mapping[str, Array] | None = None  # places in [-1, 1] of pictures, mistakes and regions
    near: Array | None = None  # (m, h, w, c) the nearest training mistake of each sample of misclassified regions

    def place(self, id: str) -> int:
        return list(self.names).index(id)

    @property
    def hard(self) -> bool:
        return bool(self.pictures.shape[3] < SMALL)


Address = Callable[[str, int], str]  # of a region's sample


def to_html(run: RegionRun) -> str:
    """One self-contained file."""
    scripts = [script_text(script) for script in SCRIPTS]
    around = {
        "styles": Markup("\n".join(map(file_text, STYLES))),
        "scripts": [Markup(text) for text in scripts],
        "policy": policy(scripts),
    }
    address = lambda id, i: data_address(png(run.pictures[run.place(id), i]))  # noqa: E731
    told = {**_shared(run, SavedRegions()), **overview(run, address), **_proof(run), **around, "here": "Regions"}
    return templates("errata.defuse").get_template("report_regions.html").render(told)


def _proof(run: RegionRun) -> dict[str, Any]:
    """What a correction changed, below the overview and its title."""
    return {name: value for name, value in result(run).items() if name != "title"}


def page(run: RegionRun, name: str, **asked: Any) -> str:
    """One page of a server."""
    made: dict[str, Callable[..., dict[str, Any]]] = {
        "regions": overview, "region": region, "annotate": annotate, "result": lambda run, address: result(run),
        "problem": lambda run, address, words: {"title": "Not found", "words": words},
    }  # fmt: skip
    heads = {"regions": "Regions", "region": "Regions", "annotate": "Annotate", "result": "Result", "problem": ""}
    around = {"style_names": STYLES, "script_names": [script.name for script in SERVED], "here": heads[name]}
    told = {**_shared(run, ServedRegions()), **made[name](run, linked(run), **asked), **around}
    return templates("errata.defuse").get_template(f"page_{name}.html").render(told)


def linked(run: RegionRun) -> Address:
    return lambda id, i: f"/sample/{id}/{i}?v={run.fingerprint[:8]}"


def _shared(run: RegionRun, links: SavedRegions | ServedRegions) -> dict[str, Any]:
    return {
        "links": links,
        "audit_name": run.name + (" · Saved page" if links.saved else ""),
        "keys": KEYS if links.saved else (*KEYS, *SERVED_KEYS),
        "fingerprint": run.fingerprint,
        "numbers": numbers,
        "axis": AXIS,
        "media": "image",
        "hard": run.hard,
    }


def overview(run: RegionRun, address: Address) -> dict[str, Any]:
    order = sorted(run.judged, key=lambda one: (ORDER.index(one.verdict), run.place(one.id)))
    lines = [line(run, one, address) for one in order]
    return {
        "title": title(run),
        "lede": lede(run),
        "words": run.words,
        "lines": [one for one in lines if one["verdict"] in ORDER[:2]],
        "folded": [one for one in lines if one["verdict"] not in ORDER[:2]],
        "facts_": made_of(run),
        "stage": run.stage,
        "map": places(run),
        "change": run.comparison is not None,
    }


def places(run: RegionRun) -> dict[str, Any] | None:
    """Dots as paths, in thousandths of the figure's side: three thousand circles would be a slow page."""
    if run.map is None:
        return None
    wrong = {one.id for one in run.judged if one.verdict == "misclassified"}
    dots = {name: _dots(run.map[name]) for name in ("pictures", "mistakes")}
    centres = [
        {"id": id, "x": x, "y": y}
        for id, (x, y) in zip(run.names, _thousandths(run.map["regions"]), strict=True)
        if id in wrong
    ]
    return {**dots, "regions": centres, **{f"n_{name}": numbers.count(len(run.map[name])) for name in dots}}


def _dots(xy: Array) -> str:
    return "".join(f"M{x} {y}h0" for x, y in _thousandths(xy))


def _thousandths(xy: Array) -> list[tuple[int, int]]:
    return [(round(20 + 480 * (1 + float(x))), round(20 + 480 * (1 - float(y)))) for x, y in xy]


def title(run: RegionRun) -> str:
    wrong = sum(one.verdict == "misclassified" for one in run.judged)
    open_ones = sum(one.verdict == "not labelled" for one in run.judged)
    if not run.judged:
        return {"no mistakes": "No mistake was found beyond the data."}.get(run.stage, "No region was found.")
    if open_ones:
        return f"{numbers.counted(open_ones, 'region')} of {numbers.count(len(run.judged))} to label."
    return f"{numbers.count(wrong)} of {numbers.counted(len(run.judged), 'region')} of new pictures are misclassified."


def lede(run: RegionRun) -> str:
    found = run.facts.get("mistakes") or {}
    if not found:
        return ""
    return (
        f"A generator disturbed {numbers.counted(found['pictures'], 'picture')} {numbers.count(found['tried'])} times; "
        f"{numbers.count(found['found'])} of these the classifier calls something else than what they came from. "
        "A region is where such pictures crowd. People say what its samples show, and so whether the classifier errs."
    )


def line(run: RegionRun, one: Judged, address: Address) -> dict[str, Any]:
    change = None if run.comparison is None else next((c for c in run.comparison.changes if c.id == one.id), None)
    return {
        "id": one.id,
        # What a region was made from would sway who has yet to say what it shows.
        "name": run.names[one.id] if one.verdict != "not labelled" else "",
        "weight": numbers.rate(run.weights[one.id]),
        "verdict": one.verdict,
        "form": FORMS[one.verdict],
        "label": None if one.label is None else run.class_names[one.label],
        "wrong": numbers.out_of(one.wrong, one.labelled),
        "interval": numbers.interval(*one.interval),
        "share": None if one.share is None else numbers.out_of(round(one.share * one.labelled), one.labelled),
        "samples": samples(run, one, address),
        "change": None if change is None else compared.change_line(change, run.names[one.id], AXIS, 1.0),
    }


def samples(run: RegionRun, one: Judged, address: Address) -> list[dict[str, Any]]:
    """A sample is wrong where the classifier says another class than the region's label."""
    said = run.predictions[run.place(one.id)]
    marks_ = ["" if one.label is None else "right" if label == one.label else "wrong" for label in said]
    return [
        {"id": f"{one.id} {i + 1}", "picture": address(one.id, i), "said": run.class_names[label], "mark": mark}
        for i, (label, mark) in enumerate(zip(said, marks_, strict=True))
    ]


def region(run: RegionRun, address: Address, id: str) -> dict[str, Any]:
    one = run.judged[run.place(id)]
    ids = list(run.names)
    at = ids.index(id)
    return {
        "title": f"Region {id}",
        "row": line(run, one, address),
        "classes": run.class_names,
        "before": ids[at - 1] if at else None,
        "after": ids[at + 1] if at + 1 < len(ids) else None,
        "count": len(ids),
        "rho": numbers.whole_rate(run.facts["settings"]["rho"]),
    }


def annotate(run: RegionRun, address: Address, queue: str) -> dict[str, Any]:
    queues = [(one.id, "", run.predictions.shape[1]) for one in run.judged]
    said = f"Annotate: {queue}" if queue else "Annotate"
    return {"title": said, "queue": queue, "task": "class", "queues": queues, "classes": run.class_names,
            "questions": False, "sheets": True, "after": dict(pairwise(run.names)).get(queue)}  # fmt: skip


def result(run: RegionRun) -> dict[str, Any]:
    """Before and after, the trade-off over strengths, novelty, and how far people agree."""
    if run.comparison is None:
        return {"title": "Nothing is corrected yet.", "change": None}
    told = run.told or {"labels": {}}
    return {
        "title": title(run),
        "change": {
            "lines": _lines(run, run.comparison),
            "baseline": None if run.baseline is None else _lines(run, run.baseline, ("test", "regions")),
            "single": told.get("single"),
            "curve": curve(run.comparison.facts),
            "strengths": _strengths(run.comparison.facts),
            "alone": _alone(run.comparison.facts),
            "harm": _harm(run.comparison.facts),
            "learnt": not run.comparison.facts["validation"]["given"],
            "level": f"{100 * (1 - 2 * run.comparison.alpha):.0f}%",
        },
        "novelty": novelty(run, told.get("novelty")),
        "agreement": _agreement(agreement(run.judged)),
        "stale": told["labels"] != {one.id: one.label for one in run.judged if one.verdict == "misclassified"},
        "oracle": _oracle(told.get("oracle")),
    }


def _lines(run: RegionRun, comparison: Comparison, only: Sequence[str] = ()) -> list[dict[str, Any]]:
    chosen = [one for one in comparison.changes if not only or one.id in only]
    lines = [compared.change_line(one, NAMED.get(one.id, one.name), AXIS, 1.0) for one in chosen]
    return [{**told, "slice": one.id not in NAMED} for told, one in zip(lines, chosen, strict=True)]


def curve(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Accuracy on test rows against accuracy on regions, one dot a strength: up and right is better."""
    points = [one for one in facts["curve"] if one["test"] is not None]
    if not points:
        return {}
    values = [one["test"] for one in points] + [facts["before"]["test"]]
    low, high = math.floor(100 * min(values) - 0.2), math.ceil(100 * max(values) + 0.1)

    def at(one: Mapping[str, Any]) -> dict[str, float]:
        return {"x": 100 * one["regions"], "y": 100 - 100 * (100 * one["test"] - low) / max(high - low, 1)}

    chosen = facts["curve"][facts["chosen"]]["strength"]
    dots = [{**at(one), "strength": f"{one['strength']:g}", "chosen": one["strength"] == chosen} for one in points]
    dots.sort(key=lambda dot: bool(dot["chosen"]))  # drawn last, so that no other hides it
    ticks = [(100 - 100 * i / 2, f"{low + (high - low) * i / 2:g}%") for i in range(3)]
    return {"dots": dots, "before": at(facts["before"]), "y_ticks": ticks,
            "x_ticks": [(25 * i, f"{25 * i}%") for i in range(5)]}  # fmt: skip


def _strengths(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = ("validation_accuracy", "tuning_accuracy", "test", "regions")
    return [
        {"strength": f"{one['strength']:g}", "chosen": j == facts["chosen"], **{n: numbers.rate(one[n]) for n in names}}
        for j, one in enumerate(facts["curve"])
    ]


def _alone(facts: Mapping[str, Any]) -> str | None:
    """What further training does by itself: told by a strength that weighs nothing."""
    weakest = min(facts["curve"], key=lambda one: one["strength"])
    if weakest["strength"] > NOTHING:
        return None
    return f"{numbers.rate(facts['before']['regions'])} to {numbers.rate(weakest['regions'])}"


def _harm(facts: Mapping[str, Any]) -> str | None:
    """Accuracy on validation rows, where the chosen strength costs some."""
    if not facts["harmed"]:
        return None
    after = facts["curve"][facts["chosen"]]["validation_accuracy"]
    return f"{numbers.rate(facts['validation']['accuracy'])} to {numbers.rate(after)}"


def novelty(run: RegionRun, told: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Samples over the nearest training picture that the classifier gets wrong; of the regions that were corrected,
    which by now may not be those that people call misclassified."""
    if not told or not told["known"] or run.near is None or run.comparison is None:
        return None if not told else {"none": True, "of": numbers.count(told["of"]), "among": told["among"]}
    wrong = [run.place(one.id) for one in run.comparison.changes if one.id not in NAMED]
    count = run.predictions.shape[1]
    pairs = [
        {"id": list(run.names)[j], "made": data_address(png(run.pictures[j, 0])),
         "near": data_address(png(run.near[i * count]))} for i, j in enumerate(wrong[:10])
    ]  # fmt: skip
    usual = None if told["usual"] is None else f"{told['usual']:.2f}"
    return {"none": False, "among": told["among"], "pairs": pairs, "known": numbers.count(told["known"]),
            "median": f"{told['median']:.2f}", "usual": usual, "farther": numbers.rate(told["farther"]),
            "same": numbers.rate(told["same_prediction"])}  # fmt: skip


def _agreement(told: Mapping[str, Agreed]) -> list[dict[str, str]]:
    names = {"misclassified": "misclassified regions", "others": "other regions", "all": "all"}
    return [
        {"name": names[name], "n": numbers.count(one.samples), "mean": numbers.rate(one.mean),
         "error": "" if one.error is None else f"± {100 * one.error:.1f}"}
        for name, one in told.items() if one.samples
    ]  # fmt: skip


def _oracle(told: Mapping[str, Any] | None) -> dict[str, str] | None:
    if not told:
        return None
    n = told["labelled"]
    return {
        "same": numbers.out_of(told["same"], told["n"]),
        "before": f"{numbers.rate_of(told['right_before'], n)} ({numbers.interval(*told['before_interval'])})",
        "after": f"{numbers.rate_of(told['right_after'], n)} ({numbers.interval(*told['after_interval'])})",
        "n": numbers.count(n),
    }


def made_of(run: RegionRun) -> list[tuple[str, str]]:
    """How the run was made, in lines."""
    vae, settings = run.facts.get("vae") or {}, run.facts.get("settings") or {}
    lines = [(name.replace("_", " "), f"{value}") for name, value in settings.items()]
    if vae:
        lines = [
            ("lower bound", f"{vae['elbo']:.1f} nats a picture, of {numbers.count(vae['pictures'])}"),
            ("same class after reconstruction", numbers.rate(vae["same_class"])),
            *lines,
        ]
    return lines
