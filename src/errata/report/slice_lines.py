"""A slice as one line of a list: its name, verdict, numbers, a few members, and what the list may be sorted by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core import Audit, Slice
from ..core.audit import UNCONFIRMABLE
from ..explain.names import Name
from ..explain.path import TreePath
from . import marks, numbers, sentences
from .contract import View
from .judgement_lines import change_words, decision_words
from .parts.path import path_sentence
from .parts.profile import main_mistake
from .parts.words import name_fit, name_score
from .row_items import example_item, has_images, strip

ORDERS = ("priority", "gap", "size", "rate", "named", "errors")  # names of the orders of a list, in that of their keys


def slice_lines(view: View, standings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All slices of the audit in its own order."""
    return [slice_line(view, slice_, standings) for slice_ in view.audit.slices]


def slice_line(view: View, slice_: Slice, standings: Mapping[str, Any]) -> dict[str, Any]:
    """One slice of a list; standings: what was decided of each slice."""
    audit = view.audit
    outcome = dict(audit.overall)[slice_.task].outcome
    measured = slice_.confirm
    if measured is None:
        rows = numbers.NOT_MEASURED
    else:
        rows = numbers.counted(measured.n, "row")
    members = strip(view, slice_)
    line = {
        "id": slice_.id,
        "number": audit.slices.index(slice_) + 1,
        "href": view.links.slice(slice_.id),
        "sort": {"priority": priorities(audit.slices)[slice_.id], **sort_keys(slice_)},
        "name": _name(view, slice_),
        "name_score": name_score(slice_),
        "name_fit": name_fit(slice_),
        "task": slice_.task,
        "verdict": slice_.verdict,
        "side": slice_.side,
        "rows": rows,
        "verdict_words": sentences.verdict_words(slice_),
        "changed": [],
        "sentence": sentences.verdict(slice_, outcome),
        "facts": _facts(view, slice_),
        "strip": members,
        "strip_label": _strip_label(members),
        "feature_strip": _feature_strip(view, slice_),
        **_measured(view, slice_, outcome),
    }
    given = "name" in slice_.rule  # by whoever asked for the slice
    return {**line, "renamed": given, **_apply_standing(standings.get(slice_.id)), **_as_left(slice_)}


def _as_left(slice_: Slice) -> dict[str, Any]:
    """What stands in another way where the rows are not those that were tested; nothing where they are."""
    if slice_.judged is None or not slice_.judged.changed:
        return {}
    return {"changed": change_words(slice_), "excess": "", "loss": "", "q": ""}


def title_of(slice_: Slice, standings: Mapping[str, Any]) -> str:
    """The name that a person gave, or else the machine's."""
    standing = standings.get(slice_.id) or {}
    return str(standing.get("name") or slice_.name)


def sort_keys(slice_: Slice) -> dict[str, float]:
    """What the list may be sorted by, beside its priority: always held-out rows, and the number that the words name."""
    measured = slice_.confirm
    if measured is None:
        return dict.fromkeys(ORDERS[1:], 0.0)
    name = slice_.explanation(Name)
    precise = (0, 0) if name is None or name.match is None else name.match.precise
    return {
        "errors": float(measured.errors),
        "gap": measured.interval[0],
        "size": float(measured.n),
        "rate": measured.rate,
        "named": precise[0] / max(precise[1], 1),
    }


def priorities(slices: Sequence[Slice]) -> dict[str, float]:
    """Id of a slice -> its priority, higher before lower: what nothing explains first, then by excess errors.

    By the lower end of their interval, so that a wide one does not win.
    """

    def rank(slice_: Slice) -> tuple[bool, bool, float]:
        low = 0.0 if slice_.confirm is None else slice_.confirm.excess[1]
        return slice_.verdict != "confirmed", bool(slice_.explained_by), -low

    return {slice_.id: -float(place) for place, slice_ in enumerate(sorted(slices, key=rank), start=1)}


def order_labels(outcome: str) -> list[tuple[int, str, str, str]]:
    """(key, name, label, sentence) of each order: what is sorted, in a few words, and exactly."""
    bad = sentences.bad_outcomes(outcome)
    rate = "Highest error rate" if outcome == sentences.ERROR else "Highest rate"
    labels = ("Priority", "Largest gap", "Most rows", rate, "Most precise name", f"Most {bad}")
    exactly = (
        "slices that neither class nor low confidence explains, then the others; both by how many excess "
        f"{bad} they have at least, the lower end of the interval",
        "to the rest, the lower end of its interval",
        "held-out rows",
        f"the share of held-out rows {_with_outcome(outcome)}",
        "the share of the rows it matches that are members",
        f"held-out rows {_with_outcome(outcome)}",
    )
    words = [f"Ordered by {label.lower()}: {what}." for label, what in zip(labels, exactly, strict=True)]
    return list(zip(range(1, len(ORDERS) + 1), ORDERS, labels, words, strict=True))


def _with_outcome(outcome: str) -> str:
    """Which rows are meant: "that are wrong", or "with a loss above 2.31"."""
    return "that are wrong" if outcome == sentences.ERROR else f"with a {outcome}"


def in_order(lines: Iterable[dict[str, Any]], order: str) -> list[dict[str, Any]]:
    """Lines of a list by the numbers of an order; those that are alike by priority."""
    return sorted(lines, key=lambda line: (-line["sort"][order], -line["sort"]["priority"]))


def methods_of(audit: Audit) -> list[str]:
    """Names of the methods that searched."""
    methods: Any = audit.settings.get("methods") or sorted({slice_.method for slice_ in audit.slices})
    names = []
    for method in methods:
        name = method["name"] if isinstance(method, Mapping) else method
        names.append(str(name))
    return names


def _measured(view: View, slice_: Slice, outcome: str) -> dict[str, Any]:
    """The numbers at the right edge; excess errors only where there is evidence for them."""
    measured = slice_.confirm
    if measured is None or slice_.reason == UNCONFIRMABLE:  # a number by construction is not shown
        return {"whisker": None, "whisker_label": "", "rate": "", "rest": "", "excess": "", "loss": "", "q": ""}
    excess = ""
    if slice_.verdict == "confirmed":
        excess = sentences.excess(slice_, measured, outcome)
    by_error = measured.error_rate is not None
    loss = ""
    if not by_error and measured.mean_loss is not None:
        loss = sentences.mean_loss(measured)
    return {
        "whisker": marks.whisker(slice_, measured, view.axis),
        "whisker_label": sentences.whisker(slice_, measured, outcome),
        "rate": numbers.rate_of(measured.errors, measured.n),
        "rest": sentences.rest_rate(measured),
        "excess": excess,
        "loss": loss,
        "q": numbers.p_value(measured.q_value, "q"),
    }


def _facts(view: View, slice_: Slice) -> list[str]:
    """Short lines under a slice's name."""
    audit = view.audit
    beyond = sentences.beyond(slice_) if slice_.verdict == "confirmed" else ""
    lines = [
        _as_found(slice_, beyond),
        _as_found(slice_, main_mistake(slice_)),
        view.features.named(slice_.id, path_sentence(slice_)),
        sentences.scope(slice_, audit.evaluation),
        sentences.found_by(slice_, len(methods_of(audit))),
        sentences.approximation(slice_),
        sentences.unconverged(slice_),
        sentences.merged(slice_),
    ]
    return [line for line in lines if line]


def _as_found(slice_: Slice, words: str) -> str:
    """What was measured of the rows that were found, marked so where people have changed them."""
    if not words or slice_.judged is None or not slice_.judged.changed:
        return words
    return f"As found: {words[:1].lower()}{words[1:]}"


def _name(view: View, slice_: Slice) -> str:
    """The name made by machine; where it is a path, with the words that people have for its features."""
    name = slice_.explanation(Name)
    if name is None or name.source != "path" or name.text != slice_.name:
        return slice_.name
    return view.features.named(slice_.id, slice_.name)


def _feature_strip(view: View, slice_: Slice) -> dict[str, Any] | None:
    """The images that raise the first feature of a path most; None of a slice that is no path, or without images."""
    path = slice_.explanation(TreePath)
    if path is None or not path.features or not has_images(view.audit):
        return None
    first = path.features[0]
    words = view.features.named(slice_.id, first.name)
    return {"words": words, "rows": [example_item(view, row) for row in first.activating]}


def _strip_label(strip: list[dict[str, Any]]) -> str:
    wrong = sum(item["wrong"] is True for item in strip)
    known = any(item["wrong"] is not None for item in strip)
    label = f"{len(strip)} random members"
    return f"{label}, {wrong} wrong" if known else label


def _apply_standing(standing: Mapping[str, Any] | None) -> dict[str, Any]:
    """A person's name goes before the machine's."""
    decided = {"standing": standing, "decided": decision_words(standing)}
    if standing is None or not standing["name"]:
        return decided
    # What was measured of the machine's name says nothing of a person's.
    return {**decided, "renamed": True, "name": standing["name"], "name_score": "", "name_fit": ""}
