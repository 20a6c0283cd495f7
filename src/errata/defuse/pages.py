"""The pages of a run: regions, one region to label, annotation of single samples, and the result; saved or served."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from markupsafe import Markup, escape

from ..core import Array, Change
from ..core.media import data_address
from ..report import comparison_lines as changes
from ..report import marks, numbers
from ..report.image_sources import SMALL
from ..report.rendering import templates
from ..report.sheets import png
from ..report.static_files import PAGE, STYLES, Script, file_text, policy, script_text
from .labels import Judged, changes_in_words, majority_agreement, told_name
from .links import SavedRegions, ServedRegions
from .view import RunView

SCRIPTS = (PAGE,)
SERVED_SCRIPTS = (
    PAGE,
    Script("annotate.js", ("person.js", "outbox.js", "annotate.js")),
    Script("sheet.js", ("person.js", "outbox.js", "errata.defuse:sheet.js")),
)
NOTHING = 1e-9  # a strength below which regions have no effect; a network without training loss still feels 1e-6
FORMS = {"misclassified": "confirmed", "classified well": "not", "no common label": "few", "not labelled": "few"}
KEYS = (("?", "this list"), ("g", "what the words mean"), ("j k", "next, previous region"))
GLOSSARY = (
    ("Generator", "a model that makes images like the training images, and small changes of them"),
    ("Mistake", "a changed image that the classifier assigns to another class than the image it was made from"),
    ("Region", "where mistakes of one kind are dense; new samples are drawn from it"),
    ("Sample", "an image that the generator drew from a region; nobody photographed it"),
    ("Misclassified", "a region on most of whose labelled samples the classifier says another class than people do"),
    ("No common label", "people do not agree on what a region shows, or see none of the classes"),
    ("Fixed", "better beyond chance after the correction, and no longer misclassified"),
    ("Strength", "how much the samples of regions weigh beside the training images when the classifier is corrected"),
    ("Interval", "where the true number lies, with the chance that is stated; those of changes hold together"),
    ("Oracle", "a stronger model that labels samples in place of people"),
)
SERVED_KEYS = (
    *KEYS,
    ("digits", "the class, as its button says; 0 or n none of the above"),
    ("r", "the sheet: the classifier is right"),
    ("u s", "undo, skip"),
)
ORDER = ("misclassified", "not labelled", "no common label", "classified well")
LISTED = ORDER[:2]  # verdicts of regions that are not folded away
AXIS = marks.Axis(1.0)
NAMED = {"test": "Test rows", "regions": "Samples of all misclassified regions"}  # groups that are no single region
PAIRS = 10  # samples that are shown beside their nearest known mistake

Address = Callable[[str, int], str]  # of a sample of a region
Context = dict[str, Any]  # what a template reads


def to_html(run: RunView) -> str:
    """The run as one self-contained file."""
    scripts = [script_text(script) for script in SCRIPTS]

    def address(id: str, i: int) -> str:
        return data_address(png(run.images[run.index(id), i]))

    context = {
        **_shared(run),
        **overview(run, address),
        **{name: value for name, value in result(run).items() if name != "title"},
        "links": SavedRegions(),
        "audit_name": f"{run.name} · Saved page",
        "keys": KEYS,
        "here": "Regions",
        "styles": Markup("\n".join(map(file_text, STYLES))),
        "scripts": [Markup(text) for text in scripts],
        "policy": policy(scripts),
    }
    return templates("errata.defuse").get_template("report_regions.html").render(context)


def page(run: RunView, name: str, sign_out: str = "", **options: Any) -> str:
    """One page of a server: regions, region (id), annotate (queue), result, or problem (words).

    sign_out: where one signs out; empty where nobody signs in.
    """
    here, build = PAGES[name]
    context = {
        **_shared(run),
        "links": ServedRegions(sign_out=sign_out),
        "audit_name": run.name,
        "keys": SERVED_KEYS,
        "here": here,
        "style_names": STYLES,
        "script_names": [script.name for script in SERVED_SCRIPTS],
        **build(run, **options),
    }
    return templates("errata.defuse").get_template(f"page_{name}.html").render(context)


def served_address(run: RunView) -> Address:
    """Addresses of samples on the server; they change with the samples."""
    return lambda id, i: f"/sample/{id}/{i}?v={run.fingerprint[:8]}"


def _shared(run: RunView) -> Context:
    """What all templates read of a run."""
    return {
        "fingerprint": run.fingerprint,
        "glossary": GLOSSARY,
        "numbers": numbers,
        "axis": AXIS,
        "media": "image",
        "hard": bool(run.images.shape[3] < SMALL),
    }


def overview(run: RunView, address: Address) -> Context:
    """All regions, the map of codes, and how the run was made."""
    order = sorted(run.judged, key=lambda region: (ORDER.index(region.verdict), run.index(region.id)))
    lines = [line(run, region, address) for region in order]
    return {
        "title": title(run),
        "lede": lede(run),
        "words": _as_sentence(run.words),
        "notes": [_as_sentence(note) for note in run.notes],
        "lines": [entry for entry in lines if entry["verdict"] in LISTED],
        "folded": [entry for entry in lines if entry["verdict"] not in LISTED],
        "facts_": settings_lines(run),
        "stage": run.stage,
        "map": code_map(run),
        "change": run.comparison is not None,
        "compared": run.after is not None,
        "marked": any(region.label is not None for region in run.judged),
    }


def _as_sentence(words: str) -> Markup:
    """With a large first letter and a full stop, and names of settings as code; other capitals stay as they are."""
    escaped = str(escape(f"{words[:1].upper()}{words[1:]}."))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))


def code_map(run: RunView) -> Context | None:
    """Points as paths, in thousandths of the figure's side: three thousand circles would be a slow page."""
    if run.map is None:
        return None
    wrong = {region.id for region in run.judged if region.verdict == "misclassified"}
    centres = zip(run.names, _thousandths(run.map["regions"]), strict=True)
    context: Context = {"regions": [{"id": id, "x": x, "y": y} for id, (x, y) in centres if id in wrong]}
    for name in ("pictures", "mistakes"):
        context[name] = "".join(f"M{x} {y}h0" for x, y in _thousandths(run.map[name]))
        context[f"n_{name}"] = numbers.count(len(run.map[name]))
    return context


def _thousandths(xy: Array) -> list[tuple[int, int]]:
    return [(round(20 + 480 * (1 + float(x))), round(20 + 480 * (1 - float(y)))) for x, y in xy]


def title(run: RunView) -> str:
    """One sentence on what was found."""
    if not run.judged:
        titles = {
            "no mistakes": "No mistake was found beyond the data.",
            "poor generator": "The generator is too poor to search with.",
        }
        return titles.get(run.stage, "No region was found.")
    to_label = to_label_words(run)
    if to_label:
        return to_label
    wrong = sum(region.verdict == "misclassified" for region in run.judged)
    if run.comparison is not None:
        became = changes_in_words(run.comparison.changes, run.facts["settings"]["rho"])
        corrected = sum(change.id not in NAMED for change in run.comparison.changes)
        return f"Of {numbers.counted(corrected, 'misclassified region')}: {became}."
    return f"{numbers.count(wrong)} of {numbers.counted(len(run.judged), 'region')} of new images are misclassified."


def to_label_words(run: RunView) -> str:
    """How many regions nobody has answered, and how many lack the quorum; empty where people are done."""
    total = numbers.count(len(run.judged))
    begun = [region for region in run.judged if region.waiting]
    if run.comparison is not None:  # made with `--partly`: the result comes before a few samples that lack an answer
        begun = [region for region in begun if region.verdict == "not labelled"]
    untouched = sum(region.verdict == "not labelled" and not region.waiting for region in run.judged)
    if not untouched and not begun:
        return ""
    if not begun:
        return f"{numbers.counted(untouched, 'region')} of {total} to label."
    if not untouched:
        return f"{numbers.count(len(begun))} of {total} regions {waits_for(run, len(begun))}."
    words = f"{numbers.counted(untouched, 'region')} of {total} to label"
    return f"{words}; {numbers.count(len(begun))} {waits_for(run, len(begun))}."


def quorum_of(run: RunView) -> int:
    """People who must label a sample before it counts; runs of before 0.7 have no such setting."""
    return int(run.facts["settings"].get("quorum", 1))


def waits_for(run: RunView, count: int) -> str:
    """What so many regions or samples do that have an answer, and not as many as the quorum."""
    verb = "waits" if count == 1 else "wait"
    people = "a second person" if quorum_of(run) == 2 else "more people"
    return f"{verb} for {people}"


def quorum_line(run: RunView, waiting: int = 0) -> str:
    """What a page to label on says of the quorum; empty where one answer is enough. waiting: samples with too few."""
    if quorum_of(run) == 1:
        return ""
    words = f"A sample counts once {numbers.in_words(quorum_of(run))} people have labelled it; a final word does alone."
    if waiting:
        words += f" Here {numbers.counted(waiting, 'sample')} {waits_for(run, waiting)}."
    return words


def lede(run: RunView) -> str:
    """How mistakes were searched for, and what a region is."""
    facts = run.facts.get("mistakes")
    if not facts:
        return ""
    return (
        f"A generator changed {numbers.counted(facts['pictures'], 'image')} a little, {numbers.count(facts['tried'])} "
        f"times; {numbers.count(facts['found'])} of the results the classifier assigns to another class than that of "
        "their image. A region is where such results are dense. People label its samples, which tells whether the "
        "classifier is wrong there."
    )


def line(run: RunView, region: Judged, address: Address) -> Context:
    """One region in a list."""
    entry: Context = {
        "id": region.id,
        "name": "",
        "weight": numbers.rate(run.weights[region.id]),
        "verdict": region.verdict,
        "form": FORMS[region.verdict],
        "label": None,
        "waits": "",
        "wrong": numbers.out_of(region.wrong, region.labelled),
        "interval": numbers.interval(*region.interval),
        "share": None,
        "samples": samples(run, region, address),
        "change": None,
    }
    if region.waiting:
        entry["waits"] = f"{numbers.counted(region.waiting, 'sample')} {waits_for(run, region.waiting)}"
    # The class that a region comes from would sway who has yet to label it.
    if region.verdict != "not labelled":
        entry["name"] = _name(run, region.id)
    if region.label is not None:
        entry["label"] = run.class_names[region.label]
    if region.share is not None:
        entry["share"] = numbers.out_of(round(region.share * region.labelled), region.labelled)
    if run.comparison is not None:
        for change in run.comparison.changes:
            if change.id == region.id:
                entry["change"] = changes.change_line(change, _name(run, region.id), AXIS, 1.0)
    return entry


def _name(run: RunView, id: str) -> str:
    """A region's name by what people said of it."""
    j = run.index(id)
    return told_name(run.names[id], run.judged[j], run.predictions[j], run.class_names)


def samples(run: RunView, region: Judged, address: Address) -> list[Context]:
    """A region's samples, before and after a correction; wrong where a model predicts another class than the label."""
    entries = []
    j = run.index(region.id)
    for i, predicted in enumerate(run.predictions[j]):
        after = None
        if run.after is not None:
            after = _outcome(run, region, int(run.after[j, i]))
        entries.append(
            {
                "id": f"{region.id} {i + 1}",
                "picture": address(region.id, i),
                **_outcome(run, region, int(predicted)),
                "after": after,
            }
        )
    return entries


def _outcome(run: RunView, region: Judged, predicted: int) -> dict[str, str]:
    """What a model says of a sample, and whether that is the region's label, where it has one."""
    mark = ""
    if region.label is not None:
        mark = "right" if predicted == region.label else "wrong"
    return {"prediction": run.class_names[predicted], "mark": mark}


def region_page(run: RunView, id: str) -> Context:
    """One region as a sheet to label."""
    ids = [None, *run.names, None]
    position = run.index(id) + 1
    return {
        "title": f"Region {id}",
        "row": line(run, run.judged[run.index(id)], served_address(run)),
        "classes": run.class_names,
        "before": ids[position - 1],
        "after": ids[position + 1],
        "count": len(run.names),
        "rho": numbers.whole_rate(run.facts["settings"]["rho"]),
        "quorum": quorum_line(run, run.judged[run.index(id)].waiting),
    }


def annotate(run: RunView, queue: str) -> Context:
    """Samples of a region to label one at a time; without one, a choice of regions."""
    heading = f"Annotate: {queue}" if queue else "Annotate"
    return {
        "title": heading,
        "queue": queue,
        "task": "class",
        "queues": [(region.id, "", run.predictions.shape[1]) for region in run.judged],
        "classes": run.class_names,
        "questions": False,
        "sheets": True,
        "quorum": quorum_line(run),
        "after": dict(pairwise(run.names)).get(queue),
    }


def result(run: RunView) -> Context:
    """Before and after, the trade-off over strengths, novelty, and how far people agree."""
    if run.comparison is None:
        return {"title": "Nothing is corrected yet.", "change": None}
    facts = run.comparison.facts
    correction = run.correction or {"labels": {}}
    baseline = None
    if run.baseline is not None:
        baseline = change_lines([change for change in run.baseline.changes if change.id in NAMED])
    return {
        "title": title(run),
        "change": {
            "lines": change_lines(run.comparison.changes),
            "baseline": baseline,
            "single": correction.get("single"),
            "curve": curve(facts),
            "strengths": strengths(facts),
            "alone": effect_of_training_alone(facts),
            "harm": harm(facts),
            "trained_on_validation": not facts["validation"]["given"],
            "level": f"{100 * (1 - 2 * run.comparison.alpha):.0f}%",
        },
        "novelty": novelty(run, correction.get("novelty")),
        "agreement": agreement(run.judged),
        "stale": correction["labels"] != {r.id: r.label for r in run.judged if r.verdict == "misclassified"},
        "oracle": oracle_lines(correction.get("oracle")),
    }


def change_lines(chosen: Sequence[Change]) -> list[Context]:
    """Rows of a table of before and after."""
    return [
        {**changes.change_line(change, NAMED.get(change.id, change.name), AXIS, 1.0), "slice": change.id not in NAMED}
        for change in chosen
    ]


def curve(facts: Mapping[str, Any]) -> Context:
    """Accuracy on test rows against accuracy on regions, one dot per strength: up and right is better."""
    points = [point for point in facts["curve"] if point["test"] is not None]
    if not points:
        return {}
    values = [point["test"] for point in [*points, facts["before"]]]
    low = math.floor(100 * min(values) - 0.2)
    high = math.ceil(100 * max(values) + 0.1)

    def position(point: Mapping[str, Any]) -> dict[str, float]:
        return {"x": 100 * point["regions"], "y": 100 - 100 * (100 * point["test"] - low) / max(high - low, 1)}

    chosen = facts["curve"][facts["chosen"]]["strength"]
    dots: list[Context] = []
    for point in points:
        strength = point["strength"]
        dots.append({**position(point), "strength": f"{strength:g}", "chosen": strength == chosen})
    dots.sort(key=lambda dot: bool(dot["chosen"]))  # drawn last, so that no other hides it
    return {
        "dots": dots,
        "before": position(facts["before"]),
        "y_ticks": [(100 - 100 * i / 2, f"{low + (high - low) * i / 2:g}%") for i in range(3)],
        "x_ticks": [(25 * i, f"{25 * i}%") for i in range(5)],
    }


def strengths(facts: Mapping[str, Any]) -> list[Context]:
    """Rows of the table of all strengths."""
    lines = []
    for j, point in enumerate(facts["curve"]):
        entry: Context = {"strength": f"{point['strength']:g}", "chosen": j == facts["chosen"]}
        for name in ("validation_accuracy", "tuning_accuracy", "test", "regions"):
            entry[name] = numbers.rate(point[name])
        lines.append(entry)
    return lines


def effect_of_training_alone(facts: Mapping[str, Any]) -> str | None:
    """What further training does without regions: known where a strength gives them no weight."""
    weakest = min(facts["curve"], key=lambda point: point["strength"])
    if weakest["strength"] > NOTHING:
        return None
    return f"{numbers.rate(facts['before']['regions'])} to {numbers.rate(weakest['regions'])}"


def harm(facts: Mapping[str, Any]) -> str | None:
    """Accuracy on validation rows before and after, where the chosen strength costs some."""
    if not facts["harmed"]:
        return None
    after = facts["curve"][facts["chosen"]]["validation_accuracy"]
    return f"{numbers.rate(facts['validation']['accuracy'])} to {numbers.rate(after)}"


def novelty(run: RunView, facts: Mapping[str, Any] | None) -> Context | None:
    """Samples over the nearest image that the classifier gets wrong; of the regions that were corrected, which by now
    may not be those that people call misclassified."""
    if not facts:
        return None
    if not facts["known"] or run.near is None or run.comparison is None:
        return {"none": True, "of": numbers.count(facts["of"]), "among": facts["among"]}
    corrected = [change.id for change in run.comparison.changes if change.id not in NAMED]
    count = run.predictions.shape[1]
    pairs = []
    for i, id in enumerate(corrected[:PAIRS]):
        sample = data_address(png(run.images[run.index(id), 0]))
        pairs.append({"id": id, "made": sample, "near": data_address(png(run.near[i * count]))})
    usual = None  # of one known mistake alone
    if facts["usual"] is not None:
        usual = f"{facts['usual']:.2f}"
    known = f"the one {facts['among']} image"
    if facts["known"] > 1:
        known = f"one of {numbers.count(facts['known'])} {facts['among']} images"
    return {
        "none": False,
        "among": facts["among"],
        "pairs": pairs,
        "known": known,
        "median": f"{facts['median']:.2f}",
        "usual": usual,
        "farther": numbers.rate(facts["farther"]),
        "same": numbers.rate(facts["same_prediction"]),
    }


def agreement(judged: Sequence[Judged]) -> list[dict[str, str]]:
    """Rows of the table of how far people agree."""
    names = {"misclassified": "misclassified regions", "others": "other regions", "all": "all"}
    lines = []
    for part, values in majority_agreement(judged).items():
        if values.samples:
            error = "" if values.error is None else f"± {100 * values.error:.1f}"
            mean = numbers.rate(values.mean)
            lines.append({"name": names[part], "n": numbers.count(values.samples), "mean": mean, "error": error})
    return lines


def oracle_lines(facts: Mapping[str, Any] | None) -> dict[str, str] | None:
    """The correction by the oracle's label of every sample."""
    if not facts:
        return None
    n = facts["labelled"]
    return {
        "same": numbers.out_of(facts["same"], facts["n"]),
        "before": f"{numbers.rate_of(facts['right_before'], n)} ({numbers.interval(*facts['before_interval'])})",
        "after": f"{numbers.rate_of(facts['right_after'], n)} ({numbers.interval(*facts['after_interval'])})",
        "n": numbers.count(n),
    }


def settings_lines(run: RunView) -> list[tuple[str, str]]:
    """How the run was made: the quality of its generator, and all settings."""
    lines = []
    vae = run.facts.get("vae")
    if vae:
        bound = f"{vae['elbo']:.1f} nats per image, of {numbers.count(vae['pictures'])}"
        lines.append(("lower bound", bound))
        lines.append(("same class after reconstruction", numbers.rate(vae["same_class"])))
    settings = run.facts.get("settings") or {}
    return [*lines, *((name.replace("_", " "), f"{value}") for name, value in settings.items())]


PAGES: dict[str, tuple[str, Callable[..., Context]]] = {  # name -> the entry of the navigation, and what it shows
    "regions": ("Regions", lambda run: overview(run, served_address(run))),
    "region": ("Regions", region_page),
    "annotate": ("Annotate", annotate),
    "result": ("Result", result),
    "problem": ("", lambda run, words: {"title": "Not found", "words": words}),
}
