"""What the training rows have to do with a slice: opponents, helpers, coherence, and labels to look at again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core import Slice
from .. import numbers
from ..contract import Part, Section, Values, View
from ..explanations import explanation, of_audit
from ..row_items import LONG, MARKS, clipped, item

PROFILE = 6
FEW = 4
CHANCE = 0.05  # a coherence that so many random groups reach is not called one

WHY = Section(
    "why",
    "Why: training rows",
    6,
    note="Training rows that raise or lower the loss of these rows the most (influence).",
    short="Why",
)


def influence(view: View, slice_: Slice) -> dict[str, Any] | None:
    """Coherence, opponents and helpers; None where there are no influence embeddings."""
    alike = explanation(slice_, "coherence")
    rows = explanation(slice_, "opponents")
    if alike is None:
        return None
    central = [item(view, row) for row in alike["central"]]
    values = {"coherence": coherence(alike), "central": central, "groups": [], "profile": [], "profiled": 0}
    if rows is None:
        return {**values, "held": None}
    values["groups"] = _groups(rows)
    values["profile"] = [_share(row) for row in _most_enriched(rows["profile"])]
    values["profiled"] = rows["profile"][0]["opponents"][1] if rows["profile"] else 0
    return {**values, "held": _held(rows)}


def strongest_opponents(slice_: Slice) -> dict[str, Any] | None:
    """A few opponents to stand beside the members; None where there are none."""
    rows = explanation(slice_, "opponents")
    if rows is None:
        return None
    group = next((group for group in _groups(rows) if group["title"] == "Opponents"), None)
    if group is None:
        return None
    note = f"{numbers.out_of(min(FEW, len(group['rows'])), len(group['rows']))}; they pull these rows the wrong way"
    return {**group, "title": "Training opponents", "note": note, "rows": group["rows"][:FEW]}


def coherence(data: Mapping[str, Any]) -> str:
    """One sentence, on rows that were not searched."""
    what = "errors" if data["rows"] == "wrong" else "rows"
    if data["cosine"] is None:
        return f"Too few {what} among its held-out rows to say whether they have one cause."
    verdict = "no more alike than chance" if data["p_value"] > CHANCE else "more alike than chance"
    return (
        f"Its {numbers.counted(data['n'], what.removesuffix('s'))} among the held-out rows are {verdict}: mean cosine "
        f"of their influence {data['cosine']:.2f}, of as many {what} at random {data['random']:.2f} "
        f"(p = {data['p_value']:.3f})."
    )


def _held(data: Mapping[str, Any]) -> str | None:
    """Whether opponents chosen for some members oppose the others as well."""
    if not data["held"] or not data["held"][1]:
        return None
    return (
        f"Chosen for the {numbers.count(data['members'][0])} members among the search rows; "
        f"{numbers.out_of(*data['held'])} of the strongest opponents also raise the loss of the "
        f"{numbers.count(data['members'][1])} others."
    )


def _groups(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    named = (
        ("Opponents", "training rows that raise the loss of this slice most", "opponents"),
        ("Helpers", "training rows that lower it most", "helpers"),
    )
    of = f"of {numbers.counted(data['of'], 'training row')}"
    return [
        {"title": title, "note": f"{note}; {len(data[key])} {of}", "rows": [_training_item(row) for row in data[key]]}
        for title, note, key in named
        if data[key]
    ]


def _training_item(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "mark": MARKS[row["wrong"]],
        "text": None if row["text"] is None else clipped(row["text"], LONG),
        "loss_text": None if row["loss"] is None else numbers.quantity(row["loss"]),
    }


def _most_enriched(rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    def points(row: Mapping[str, Any]) -> float:
        return float(row["opponents"][0] / row["opponents"][1] - row["train"][0] / row["train"][1])

    return sorted(rows, key=points, reverse=True)[:PROFILE]


def _share(row: Mapping[str, Any]) -> dict[str, Any]:
    low, high = row["interval"]
    return {
        "column": row["column"],
        "value": row["value"],
        "opponents": numbers.rate_of(*row["opponents"]),
        "interval": f"{numbers.rate(low)} to {numbers.rate(high)}",
        "train": numbers.rate_of(*row["train"]),
        "lift": numbers.times(row["lift"]),
    }


def relabel_table(view: View, slice_: None) -> dict[str, Any] | None:
    """Training rows whose labels are worth a second look, of the audit as a whole."""
    tables = of_audit(view.audit, "relabel")
    if not tables or not tables[0]["rows"]:
        return None
    rows = [
        {
            **_training_item(row),
            "opposes": numbers.out_of(*row["opposes"]),
            "agree": numbers.out_of(*row["agree"]),
            "suggested": row["suggested"],
        }
        for row in tables[0]["rows"]
    ]
    return {"rows": rows, "of": numbers.counted(tables[0]["of"], "training row")}


def _relabel_note(view: View, slice_: None, parts: Sequence[Values]) -> dict[str, Any]:
    note = (
        f"Of {parts[0]['of']}: those that raise the loss of the model's errors most and whose nearest training rows "
        "mostly have another label. A suggestion, not a verdict."
    )
    return {"note": note}


LABELS = Section("relabel", "Training labels to look at again", 1, page="overview", context=_relabel_note)
COHERENCE = Part("coherence", WHY, influence, "part_influence.html", includes=("opponents",))
RELABEL = Part("relabel", LABELS, relabel_table, "part_relabel.html")
