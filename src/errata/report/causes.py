"""What the training rows have to do with a slice: opponents, helpers, coherence, and labels to look at again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import Audit, Slice
from . import numbers
from .images import Pictures
from .parts import LONG, clipped, explanation, item, of_audit

PROFILE = 6
FEW = 4
CHANCE = 0.05  # a coherence that so many random groups reach is not called one


def causes(audit: Audit, found: Slice, pictures: Pictures) -> dict[str, Any] | None:
    """None where there are no influence embeddings."""
    alike, rows = explanation(found, "coherence"), explanation(found, "opponents")
    if alike is None:
        return None
    return {
        "coherence": coherence(alike),
        "central": [item(audit, row, pictures, LONG) for row in alike["central"]],
        "groups": [] if rows is None else _groups(rows),
        "profile": [] if rows is None else [_share(row) for row in _most_enriched(rows["profile"])],
        "profiled": 0 if rows is None or not rows["profile"] else rows["profile"][0]["opponents"][1],
        "held": None if rows is None else _held(rows),
    }


def strongest(found: Slice) -> dict[str, Any] | None:
    """A few opponents to stand beside the members; None where there are none."""
    rows = explanation(found, "opponents")
    group = None if rows is None else next((one for one in _groups(rows) if one["title"] == "Opponents"), None)
    if group is None:
        return None
    note = f"{numbers.out_of(min(FEW, len(group['rows'])), len(group['rows']))}; they pull these rows the wrong way"
    return {**group, "title": "Training opponents", "note": note, "rows": group["rows"][:FEW]}


def coherence(data: Mapping[str, Any]) -> str:
    """One sentence, on rows that were not searched."""
    what = "errors" if data["rows"] == "wrong" else "rows"
    if data["cosine"] is None:
        return f"Too few {what} among its confirm rows to say whether they have one cause."
    chance = data["p_value"] > CHANCE
    verdict = "no more alike than chance" if chance else "more alike than chance"
    return (
        f"Its {numbers.counted(data['n'], what.removesuffix('s'))} among the confirm rows are {verdict}: mean cosine "
        f"of their influence {data['cosine']:.2f}, of as many {what} at random {data['random']:.2f} "
        f"(p = {data['p_value']:.3f})."
    )


def _held(data: Mapping[str, Any]) -> str | None:
    """Whether opponents chosen for some members oppose the others as well."""
    if not data["held"] or not data["held"][1]:
        return None
    return (
        f"Chosen for the {numbers.count(data['members'][0])} members that were searched; "
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
        {"title": title, "note": f"{note}; {len(data[key])} {of}", "rows": [_training(row) for row in data[key]]}
        for title, note, key in named
        if data[key]
    ]


def _training(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "mark": {True: "wrong", False: "right", None: ""}[row["wrong"]],
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


def relabel(audit: Audit) -> dict[str, Any] | None:
    """Training rows whose labels are worth a second look, of the audit as a whole."""
    found = of_audit(audit, "relabel")
    if not found or not found[0]["rows"]:
        return None
    rows = [
        {
            **_training(row),
            "opposes": numbers.out_of(*row["opposes"]),
            "agree": numbers.out_of(*row["agree"]),
            "suggested": row["suggested"],
        }
        for row in found[0]["rows"]
    ]
    return {"rows": rows, "of": numbers.counted(found[0]["of"], "training row")}
