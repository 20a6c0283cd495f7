"""What the training rows have to do with a slice: opponents, helpers, coherence, and labels to look at again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import Slice
from ...core.audit import of_kind
from ...core.words import clipped
from ...explain.coherence import CHANCE, MEANS_SOMETHING, Coherence, Homogeneity, Similarity
from ...explain.own_label import FITTED, LabelShare, OwnLabel
from ...explain.relabel import Relabel
from ...explain.training_opponents import Opponents, OpponentShare
from ...explain.training_rows import TrainingRow
from ...explain.view import CLUSTER
from .. import numbers
from ..contract import Part, Section, Values, View
from ..row_items import LONG, MARKS, example_item, loss_text

PROFILE = 6
FEW = 4

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
    values: dict[str, Any] = {"coherence": coherence(alike), "central": _central(view, alike), "own_label": None}
    values |= {"groups": [], "profile": [], "profiled": 0, "held": None, "nothing_enriched": None}
    own = slice_.explanation(OwnLabel)
    if own is not None:
        values["own_label"] = _own_label(own)
    if opponents is None:
        return values
    values["groups"] = _groups(opponents, _whose_loss(opponents, alike))
    values["profile"] = [_share(row) for row in _most_enriched(opponents.profile)]
    values["profiled"] = opponents.profile[0].opponents[1] if opponents.profile else 0
    values["nothing_enriched"] = _nothing_enriched(opponents)
    return {**values, "held": _held(opponents)}


def _whose_loss(opponents: Opponents, alike: Coherence) -> str:
    """Whose loss opponents raise: the approximation may have other causes than the rows it stands for."""
    if opponents.group == CLUSTER:
        return "the rows that the method put together"
    if alike.clustered is not None:  # an approximation, up to version 0.7.0
        return "the approximation"
    return "this slice"


def _nothing_enriched(opponents: Opponents) -> str | None:
    """A sentence where there are opponents, and no value that they have beyond chance."""
    if not opponents.opponents or any(row.differs for row in opponents.profile):
        return None
    return "No value of any column is more frequent among the strongest opponents than chance would have it."


def _central(view: View, alike: Coherence) -> dict[str, Any] | None:
    """The rows in the middle of what was clustered, as a group of rows; None where there are none."""
    counted = alike.cluster or alike
    # Where no held-out row counted, audits up to version 0.7.0 kept other members: searched ones, and right ones.
    if not alike.central or not counted.n or any(row.wrong is False for row in alike.central):
        return None
    rows = [example_item(view, row) for row in alike.central]
    return {"title": "Nearest the centre", "note": f"of {_whose_centre(alike)}, by influence", "rows": rows}


def _whose_centre(alike: Coherence) -> str:
    what = "errors" if alike.rows == "wrong" else "members"
    if alike.cluster is not None:
        return f"the held-out {what} that the method itself put together"
    if alike.clustered is not None and alike.clustered[0]:  # up to version 0.7.0: of both, where there were any
        return f"its {what} that the method itself put together"
    return f"its {what}"


def strongest_opponents(slice_: Slice) -> dict[str, Any] | None:
    """A few opponents to stand beside the members; None where there are none."""
    opponents = slice_.explanation(Opponents)
    if opponents is None or not opponents.opponents:
        return None
    total = len(opponents.opponents)
    rows = [_training_item(row) for row in opponents.opponents[:FEW]]
    pulled = "these rows"
    if opponents.group == CLUSTER:
        pulled = "the rows that the method put together"
    note = f"{numbers.out_of(len(rows), total)}; they pull {pulled} the wrong way"
    return {"title": "Training opponents", "note": note, "rows": rows}


def coherence(alike: Coherence) -> str:
    """A few sentences, on rows that were not searched."""
    what = "errors" if alike.rows == "wrong" else "rows"
    columns = "" if alike.columns is None else f" in its first {numbers.counted(alike.columns, 'column')}"
    if alike.cluster is not None:
        return f"{_of_cluster(alike.cluster, what, columns)} {_of_approximation(alike, what)}"
    whose = f"Its {numbers.counted(alike.n, what.removesuffix('s'))} among the held-out rows"
    sentences = [_compared(alike, whose, what, columns), _beside_label(alike, what), _clustered(alike)]
    if not sentences[0]:
        return f"Too few {what} among its held-out rows to say whether they have one cause."
    return " ".join(filter(None, [*sentences, _homogeneity(alike)]))


def _of_cluster(cluster: Similarity, what: str, columns: str) -> str:
    """How alike the rows are that the method put together, of which the slice is an approximation."""
    whose = f"The {numbers.counted(cluster.n, what.removesuffix('s'))} among the held-out rows that the method itself "
    compared = _compared(cluster, f"{whose}put together", what, columns)
    if not compared:
        return f"Too few {what} among the held-out rows of the method's own cluster to say whether they have one cause."
    # Rows are put together by these cosines: any cluster of embeddings, also of noise, has a small p-value.
    caution = "The method put them together by these cosines, so the size of the difference counts, not p."
    return " ".join(filter(None, [compared, _beside_label(cluster, what), caution, _homogeneity(cluster)]))


def _of_approximation(alike: Coherence, what: str) -> str:
    """The approximation by itself, of which everything else on the page is."""
    text = f"Its approximation, which was tested, has {numbers.counted(alike.n, what.removesuffix('s'))}"
    if alike.clustered is not None:
        text += f", {numbers.count(alike.clustered[0])} of them from that cluster"
    if alike.cosine is None or alike.random is None or alike.p_value is None:
        return f"{text}."
    degree = _degree(alike.cosine, alike.random, alike.p_value, "chance")
    figures = f"{alike.cosine:.2f}, at random {alike.random:.2f} ({numbers.p_value(alike.p_value)})"
    return f"{text}; they are {degree}: {figures}."


def _compared(alike: Similarity, whose: str, what: str, columns: str) -> str:
    """How alike some rows are beside random ones; nothing where there are too few."""
    if alike.cosine is None or alike.random is None or alike.p_value is None:
        return ""
    return (
        f"{whose} are {_degree(alike.cosine, alike.random, alike.p_value, 'chance')}: mean cosine of their influence"
        f"{columns} {alike.cosine:.2f}, of as many {what} at random {alike.random:.2f} "
        f"({numbers.p_value(alike.p_value)})."
    )


def _degree(cosine: float, other: float, p_value: float, beside: str) -> str:
    """How much more alike than something, by the size of the difference and by how sure it is."""
    large = cosine - other >= MEANS_SOMETHING
    if p_value > CHANCE and large:
        return f"not surely more alike than {beside}"
    if p_value > CHANCE:
        return f"no more alike than {beside}"
    if large:
        return f"more alike than {beside}"
    return f"more alike than {beside}, by little"


def _beside_label(alike: Similarity, what: str) -> str:
    """Whether they share more than their label."""
    if alike.cosine is None or alike.same_label is None or alike.same_label_p is None:
        return ""
    figures = f"{alike.same_label:.2f} ({numbers.p_value(alike.same_label_p)})"
    if alike.beyond_label:
        return f"They share more than a label: of {what} with the same labels it is {figures}."
    degree = _degree(alike.cosine, alike.same_label, alike.same_label_p, f"other {what} with the same labels")
    share = "the label may be all they share"
    if alike.same_label_p <= CHANCE:
        share = "most of what they share may be the label"
    return f"They are {degree}, {figures}: {share}."


def _clustered(alike: Coherence) -> str:
    """Of an approximation, in audits that say no more of what it stands for."""
    if alike.clustered is None:
        return ""
    return f"The method itself would put {numbers.out_of(*alike.clustered)} of them together."


def _homogeneity(alike: Similarity) -> str:
    """Equation 8 of InfEmbed in words."""
    same: Homogeneity | None = alike.homogeneity
    if same is None:
        return ""
    text = (
        f"Label homogeneity: {numbers.rate_of(*same.labels)} have the label {same.label}, "
        f"{numbers.rate_of(*same.predictions)} the prediction {same.prediction}"
    )
    if same.margins is None or same.random is None:
        return f"{text}."
    margins = f"{same.margins:.2f}, at random {same.random:.2f}"
    return f"{text}; mean product of their margins (label less probabilities) {margins}."


def _own_label(own: OwnLabel) -> dict[str, Any]:
    """Rows of the slice's own label: opponents beside helpers, and what tells them apart."""
    of = f"of {numbers.counted(own.total, 'training row')} of that label"
    named = (
        (f"Opponents labelled {own.label}", "point the other way most", own.opponents),
        (f"Helpers labelled {own.label}", "point the same way most", own.helpers),
    )
    groups = [
        {"title": title, "note": f"{note}; {len(rows)} {of}", "rows": [_training_item(row) for row in rows]}
        for title, note, rows in named
        if rows
    ]
    return {
        "label": own.label,
        "groups": groups,
        "sentence": own_label_sentence(own),
        "shares": [_label_share(row) for row in own.shares],
    }


def own_label_words(slice_: Slice) -> str:
    """What tells opponents of the slice's own label from its helpers; nothing where there are none."""
    own = slice_.explanation(OwnLabel)
    return "" if own is None else own_label_sentence(own)


def own_label_sentence(own: OwnLabel) -> str:
    """The most telling column, whether the ranking holds for other rows, and the training loss at both ends of it."""
    words = f"Training rows of its own label, {own.label}:"
    pulled = "it"
    held_out = "its held-out rows"
    if own.group == CLUSTER:
        words = f"Training rows labelled {own.label}, the commonest label of the errors that the method put together:"
        pulled = "these errors"
        held_out = "those of them that are held out"
    if not own.opponents:
        return f"{words} none pulls {pulled} the wrong way."
    if not own.helpers:
        return f"{words} none pulls {pulled} the right way."
    parts = [_most_telling_column(own, pulled)]
    if own.held is not None and own.held[1]:
        parts.append(f"{numbers.out_of(*own.held)} of the former pull {held_out} the wrong way too")
    if own.losses is not None:
        against, beside, base = own.losses
        parts.append(
            f"mean training loss {against:.2g} of the former, {beside:.2g} of the latter (all of the label: {base:.2g})"
        )
    return f"{words} {'; '.join(parts)}."


def _most_telling_column(own: OwnLabel, pulled: str) -> str:
    """What tells opponents from helpers of what is pulled, or that nothing does, and what comes nearest."""
    most = f"those that pull {pulled} the wrong way most"
    others = f"those that pull {pulled} the right way most"
    top = next((share for share in own.shares if share.column != FITTED), None)
    if top is None:
        return f"no column of metadata tells {most} from {others}"
    shares = f"{top.column} is {top.value} in {numbers.out_of(*top.opponents)} of {most} and in "
    shares += f"{numbers.out_of(*top.helpers)} of {others} (all of the label: {numbers.rate_of(*top.label)}"
    if top.p_value is None:  # an audit of a version that listed noise too
        return f"{shares}; not compared with chance)"
    shares += f"; {numbers.p_value(top.p_value)})"
    if top.differs:
        return shares
    return f"no column tells them apart beyond chance; the nearest: {shares}"


def _label_share(row: LabelShare) -> dict[str, Any]:
    def with_interval(counts: tuple[int, int], interval: tuple[float, float]) -> str:
        return f"{numbers.out_of(*counts)} ({numbers.rate(interval[0])} to {numbers.rate(interval[1])})"

    return {
        "column": row.column,
        "value": row.value,
        "opponents": with_interval(row.opponents, row.interval),
        "helpers": with_interval(row.helpers, row.helpers_interval),
        "label": numbers.rate_of(*row.label),
        "chance": _chance(row.p_value),
    }


def _held(opponents: Opponents) -> str | None:
    """Whether opponents chosen for some members oppose the others as well."""
    if not opponents.held or not opponents.held[1]:
        return None
    members = "members"
    if opponents.group == CLUSTER:
        members = "rows that the method put together"
    return (
        f"Opponents were chosen for the {numbers.count(opponents.members[0])} {members} among the search rows; "
        f"{numbers.out_of(*opponents.held)} of the strongest opponents also raise the loss of the "
        f"{numbers.count(opponents.members[1])} others."
    )


def _groups(opponents: Opponents, whose: str) -> list[dict[str, Any]]:
    named = (
        ("Opponents", f"training rows that raise the loss of {whose} most", opponents.opponents),
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


def _chance(p_value: float | None) -> str:
    """Of audits up to version 0.7.0 it is not known."""
    return numbers.NOT_MEASURED if p_value is None else numbers.p_value(p_value)


def _most_enriched(rows: Sequence[OpponentShare]) -> list[OpponentShare]:
    def points(row: OpponentShare) -> float:
        return row.opponents[0] / row.opponents[1] - row.train[0] / row.train[1]

    return sorted((row for row in rows if row.differs), key=points, reverse=True)[:PROFILE]


def _share(row: OpponentShare) -> dict[str, Any]:
    low, high = row.interval
    return {
        "chance": _chance(row.p_value),
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
COHERENCE = Part("coherence", WHY, influence, "part_influence.html", includes=("opponents", "own_label"))
RELABEL = Part("relabel", LABELS, relabel_table, "part_relabel.html")
