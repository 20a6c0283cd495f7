"""An Evaluation, a Slice and an Audit in a line or a few, for a prompt or a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .words import ERROR, FEWEST_FOR_PERCENT

if TYPE_CHECKING:
    from .audit import Audit, HeldOutMeasure, Overall, Slice
    from .evaluation import Evaluation

MOST_SLICES = 5  # of an audit that are listed
MOST_NOTES = 3  # of an audit: that classes are in another order explains more than its slices
MOST_COLUMNS = 8  # of metadata that are named
LONGEST_NAME = 60  # letters of a name


def evaluation_in_brief(evaluation: Evaluation) -> str:
    """Its rows, its task, how often the model is wrong, its representations and its columns."""
    lines = [f"Evaluation: {', '.join(_facts(evaluation))}"]
    if evaluation.representations:
        shapes = [f"{name} ({array.shape[1]:,} columns)" for name, array in evaluation.representations.items()]
        lines.append(f"  representations: {_first(shapes)}")
    if evaluation.metadata:
        lines.append(f"  metadata: {_first(list(evaluation.metadata))}")
    return "\n".join(lines)


def _facts(evaluation: Evaluation) -> list[str]:
    facts = [f"{len(evaluation):,} rows", str(evaluation.task)]
    if evaluation.task in ("classification", "multilabel"):
        kind = "classes" if evaluation.task == "classification" else "labels"
        facts.append(f"{evaluation.class_count:,} {kind}")
    if evaluation.errors is not None:
        facts.append(f"{evaluation.errors.mean():.1%} errors")
    elif evaluation.losses is not None:
        facts.append(f"mean loss {evaluation.losses.mean(dtype=float):.4g}")
    return facts


def _first(names: list[str]) -> str:
    shown = ", ".join(map(shortened, names[:MOST_COLUMNS]))
    more = len(names) - MOST_COLUMNS
    return f"{shown} and {more:,} more" if more > 0 else shown


def shortened(text: str) -> str:
    """A text on one line, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"


def slice_in_brief(slice_: Slice) -> str:
    """ "s1 age < 5, confirmed: 178 of 355 wrong (50.1%), the rest 8.0%"."""
    name = f"{slice_.task}, {slice_.name}" if slice_.task else slice_.name
    head = f"{slice_.id} {shortened(name)}, {slice_.verdict}"
    if slice_.confirm is None:
        return head
    return f"{head}: {bad_of(slice_.confirm)}, the rest {slice_.confirm.rest_rate:.1%}"


def bad_of(measured: HeldOutMeasure) -> str:
    """ "178 of 355 wrong (50.1%)"; without a percentage where rows are few."""
    share = f" ({measured.rate:.1%})" if measured.n >= FEWEST_FOR_PERCENT else ""
    kind = "bad" if measured.error_rate is None else "wrong"
    return f"{measured.errors:,} of {measured.n:,} {kind}{share}"


def audit_in_brief(audit: Audit) -> str:
    """How many slices are confirmed, the numbers of the whole, the first slices, and what to know beside them."""
    metric = f", by {audit.evaluation.metric}" if audit.evaluation.metric else ""
    lines = [f"Audit: {len(audit.confirmed):,} of {len(audit.slices):,} slices confirmed{metric}"]
    lines += [f"  {line}" for line in overall_in_brief(audit)]
    lines += [f"  {slice_in_brief(slice_)}" for slice_ in audit.slices[:MOST_SLICES]]
    more = len(audit.slices) - MOST_SLICES
    if more > 0:
        lines.append(f"  … and {more:,} more")
    lines += [f"  note: {note}" for note in audit.settings.get("notes", ())[:MOST_NOTES]]
    return "\n".join(lines)


def overall_in_brief(audit: Audit) -> list[str]:
    """One line a task, at most five."""
    lines = [_whole(task, overall) for task, overall in audit.overall]
    more = len(lines) - MOST_SLICES
    return [*lines[:MOST_SLICES], f"… and {more:,} more labels"] if more > 0 else lines


def _whole(task: str, overall: Overall) -> str:
    lead = f"{task}: " if task else ""
    kind = "are wrong" if overall.outcome == ERROR else f"have a {overall.outcome}"
    counts = f"{overall.confirm_errors:,} of {overall.confirm_n:,} held-out rows"
    return f"{lead}{counts} {kind} ({overall.confirm_rate:.1%})"
