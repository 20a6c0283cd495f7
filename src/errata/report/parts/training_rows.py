"""What the training rows have to do with a slice: opponents, helpers, coherence, and labels to look at again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import Slice
from ...core.audit import of_kind
from ...explain.coherence import Coherence
from ...explain.relabel import Relabel
from ...explain.training_opponents import Opponents, OpponentShare
from ...explain.training_rows import TrainingRow
from .. import numbers
from ..contract import Part, Section, Values, View
from ..row_items import LONG, MARKS, clipped, example_item, loss_text

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
    alike = slice_.explanation(Coherence)
    opponents = slice_.explanation(Opponents)
    if alike is None:
        return None
    central = [example_item(view, row) for row in alike.central]
    values = {"coherence": coherence(alike), "central": central, "groups": [], "profile": [], "profiled": 0}
    if opponents is None:
        return {**values, "held": None}
    values["groups"] = _groups(opponents)
    values["profile"] = [_share(row) for row in _most_enriched(opponents.profile)]
    values["profiled"] = opponents.profile[0].opponents[1] if opponents.profile else 0
    return {**values, "held": _held(opponents)}


def strongest_opponents(slice_: Slice) -> dict[str, Any] | None:
    """A few opponents to stand beside the members; None where there are none."""
    opponents = slice_.explanation(Opponents)
    if opponents is None or not opponents.opponents:
        return None
    total = len(opponents.opponents)
    rows = [_training_item(row) for row in opponents.opponents[:FEW]]
    note = f"{numbers.out_of(len(rows), total)}; they pull these rows the wrong way"
    return {"title": "Training opponents", "note": note, "rows": rows}


def coherence(alike: Coherence) -> str:
    """One sentence, on rows that were not searched."""
    what = "errors" if alike.rows == "wrong" else "rows"
    if alike.cosine is None or alike.random is None or alike.p_value is None:
        return f"Too few {what} among its held-out rows to say whether they have one cause."
    verdict = "no more alike than chance" if alike.p_value > CHANCE else "more alike than chance"
    return (
        f"Its {numbers.counted(alike.n, what.removesuffix('s'))} among the held-out rows are {verdict}: mean cosine "
        f"of their influence {alike.cosine:.2f}, of as many {what} at random {alike.random:.2f} "
        f"(p = {alike.p_value:.3f})."
    )


def _held(opponents: Opponents) -> str | None:
    """Whether opponents chosen for some members oppose the others as well."""
    if not opponents.held or not opponents.held[1]:
        return None
    return (
        f"Chosen for the {numbers.count(opponents.members[0])} members among the search rows; "
        f"{numbers.out_of(*opponents.held)} of the strongest opponents also raise the loss of the "
        f"{numbers.count(opponents.members[1])} others."
    )


def _groups(opponents: Opponents) -> list[dict[str, Any]]:
    named = (
        ("Opponents", "training rows that raise the loss of this slice most", opponents.opponents),
        ("Helpers", "training rows that lower it most", opponents.helpers),
    )
    of = f"of {numbers.counted(opponents.total, 'training row')}"
    return [
        {"title": title, "note": f"{note}; {len(rows)} {of}", "rows": [_training_item(row) for row in rows]}
        for title, note, rows in named
        if rows
    ]


def _training_item(row: TrainingRow) -> dict[str, Any]:
    text = None if row.text is None else clipped(row.text, LONG)
    return {**row.to_json(), "mark": MARKS[row.wrong], "text": text, "loss_text": loss_text(row.loss)}


def _most_enriched(rows: Sequence[OpponentShare]) -> list[OpponentShare]:
    def points(row: OpponentShare) -> float:
        return row.opponents[0] / row.opponents[1] - row.train[0] / row.train[1]

    return sorted(rows, key=points, reverse=True)[:PROFILE]


def _share(row: OpponentShare) -> dict[str, Any]:
    low, high = row.interval
    return {
        "column": row.column,
        "value": row.value,
        "opponents": numbers.rate_of(*row.opponents),
        "interval": f"{numbers.rate(low)} to {numbers.rate(high)}",
        "train": numbers.rate_of(*row.train),
        "lift": numbers.times(row.lift),
    }


def relabel_table(view: View, slice_: None) -> dict[str, Any] | None:
    """Training rows whose labels are worth a second look, of the audit as a whole."""
    relabel = next(iter(of_kind(view.audit.explanations, Relabel)), None)
    if relabel is None or not relabel.rows:
        return None
    rows = [
        {
            **_training_item(row),
            "opposes": numbers.out_of(*row.opposes),
            "agree": numbers.out_of(*row.agree),
            "suggested": row.suggested,
        }
        for row in relabel.rows
    ]
    return {"rows": rows, "of": numbers.counted(relabel.total, "training row")}


def _relabel_note(view: View, slice_: None, parts: Sequence[Values]) -> dict[str, Any]:
    note = (
        f"Of {parts[0]['of']}: those that raise the loss of the model's errors most and whose nearest training rows "
        "mostly have another label. A suggestion, not a verdict."
    )
    return {"note": note}


LABELS = Section("relabel", "Training labels to look at again", 1, page="overview", context=_relabel_note)
COHERENCE = Part("coherence", WHY, influence, "part_influence.html", includes=("opponents",))
RELABEL = Part("relabel", LABELS, relabel_table, "part_relabel.html")
