"""The sentences of a page, one function each; `ui.md` fixes their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core import Audit, ErrorType, Evaluation, HeldOutMeasure, Overall, Slice
from ..core.audit import UNCONFIRMABLE
from ..core.confirm import LARGEST_MARGIN
from ..core.ownership import words as ownership_in_words
from ..core.scope import scope_in_words
from ..core.telling import is_outcome_note
from ..core.words import ERROR as ERROR
from ..core.words import FEWEST_FOR_PERCENT, READS_OUTCOME, SAYS_NOTHING
from ..explain.captions import DirectionCaptions
from ..explain.descriptions import DescriptionRow, Descriptions
from ..explain.metadata import SkippedColumn
from ..explain.rule import RuleRow
from ..explain.tokens import Lengths
from ..hypothesis import OwnSlices
from . import numbers
from .judgement_lines import changed_sentence

YOUR_OWN = "A slice of your own"
MOST_LISTED = 5  # error types in one line
KINDS_OF_ERRORS: dict[str | None, str] = {
    "fnr": "false negatives",
    "fpr": "false positives",
}  # where rows have one label
SCORED_BY = {
    "correlation": "the correlation, over search rows of the class, between a row’s nearness to the caption and the "
    "direction’s decision, less that of “{reference}”",
    "difference": "what each says beyond “{reference}”, along the direction",
    "published": "what each says beyond “{reference}”, as the paper’s code has it",
}
BETTER = "better than the rest"
BY_CHANCE = 1.645  # standard deviations that one shuffle in twenty exceeds


def warnings(settings: Mapping[str, Any]) -> list[str]:
    """What makes verdicts doubtful, to be read before them."""
    return [note for note in settings.get("notes", ()) if is_outcome_note(note)]


def verdict(slice_: Slice, outcome: str) -> str:
    """What the held-out rows say of a slice."""
    if slice_.reason == UNCONFIRMABLE:
        return READS_OUTCOME if slice_.fidelity is None else SAYS_NOTHING
    if slice_.judged is not None and slice_.judged.changed:
        return changed_sentence(slice_, outcome)
    if slice_.confirm is None:
        return "Its error on held-out rows was not measured."
    if slice_.verdict == "confirmed":
        return confirmed(slice_.confirm, outcome)
    if slice_.verdict == "too few to tell":
        return too_few(slice_.confirm)
    return " ".join(filter(None, [not_confirmed(slice_, slice_.confirm, outcome), slice_.reason]))


def verdict_words(slice_: Slice) -> str:
    """The verdict in a word or two; a group that was thought worse and is better is called that."""
    if slice_.judged is not None and slice_.judged.changed:  # whose rows were not tested
        return f"{slice_.verdict} as found"
    measured = slice_.confirm
    sought_worse = slice_.verdict == "not confirmed" and slice_.side == "hard"
    if sought_worse and measured is not None and measured.interval[1] < 0:
        return BETTER
    return slice_.verdict


def confirmed(measured: HeldOutMeasure, outcome: str) -> str:
    """How many held-out rows of a confirmed slice are wrong, against the rest."""
    share = ""
    if measured.n >= FEWEST_FOR_PERCENT:
        share = f": {numbers.rate(measured.rate)}"
    return (
        f"{numbers.out_of(measured.errors, measured.n)} held-out rows {_is_bad(outcome)}{share}, "
        f"against {rest_rate(measured)} of the rest. The gap is {numbers.points(measured.gap)} points "
        f"({numbers.interval(*measured.interval)})."
    )


def not_confirmed(slice_: Slice, measured: HeldOutMeasure, outcome: str) -> str:
    """The gap of a slice that is not confirmed, on search rows and on held-out rows."""
    interval = numbers.interval(*measured.interval)
    gap = f"on the held-out rows the gap is {numbers.points(measured.gap)} points ({interval})."
    if measured.interval[0] > 0 and slice_.side == "hard":
        gap += " It is worse, but not surely by more than the margin."
    if slice_.discover is None:
        return gap[0].upper() + gap[1:]
    searched = slice_.discover
    share = numbers.rate_of(round(searched.rate * searched.n), searched.n)
    return f"On the search rows {share} {_was_bad(outcome)}; {gap}"


def margin(delta: float | None) -> str:
    """How much worse than the rest a slice must be; None: by the rate of search rows."""
    amount = f"half of the rate of all search rows, at most {numbers.points(LARGEST_MARGIN)} points"
    if delta is not None:
        amount = f"{numbers.points(delta)} points"
    return f"{amount}: how much worse than the rest a slice must be to be confirmed"


def too_few(measured: HeldOutMeasure) -> str:
    """How many held-out rows a slice has, and how many are needed."""
    rows = numbers.counted(measured.n, "held-out row")
    if measured.rows_needed is None:
        return f"{rows}; how many are needed is not known."
    return f"{rows}; at least {numbers.count(measured.rows_needed)} are needed."


def rest_rate(measured: HeldOutMeasure) -> str:
    """The rate of the rest: a percentage, or counts where it has few rows."""
    if measured.rest_n < FEWEST_FOR_PERCENT:
        return numbers.out_of(round(measured.rest_rate * measured.rest_n), measured.rest_n)
    return numbers.rate(measured.rest_rate)


def _is_bad(outcome: str) -> str:
    return "are wrong" if outcome == ERROR else f"have a {outcome}"


def _was_bad(outcome: str) -> str:
    return "were wrong" if outcome == ERROR else f"had a {outcome}"


def side(slice_: Slice) -> str:
    """Whether the slice is better or worse than the rest."""
    return "better than the rest" if slice_.side == "easy" else "worse than the rest"


def beyond(slice_: Slice) -> str:
    """Whether its class or the model's confidence explains a confirmed slice."""
    claim = side(slice_).capitalize()
    sure = "sure" if slice_.side == "easy" else "unsure"
    low = "high" if slice_.side == "easy" else "low"
    if slice_.explained_by:
        reasons = {"class": "its class explains it", "confidence": f"the model is already {sure} here"}
        if "label" in (slice_.rule.get("scope") or {}):
            reasons["confidence"] = "within one label the model’s own prediction tells it"
        return f"{claim}; {' and '.join(reasons.get(name, name) for name in slice_.explained_by)}."
    if slice_.beyond:
        reasons = {"class": "by its class", "confidence": f"by {low} confidence"}
        return f"{claim}, not explained {' or '.join(reasons.get(name, name) for name in slice_.beyond)}."
    return f"{claim}; it could be compared neither with its class nor with the model’s confidence."


def bad_outcomes(outcome: str) -> str:
    """ "errors", "losses above 2.31", or "predictions too high by more than 2.31"."""
    if outcome == ERROR:
        return "errors"
    return outcome.replace("loss", "losses", 1).replace("prediction", "predictions", 1)


def excess(slice_: Slice, measured: HeldOutMeasure, outcome: str) -> str:
    """Errors beyond what the rest's rate would give; on the easy side, errors that were spared."""
    point, low, high = (numbers.whole(value) for value in measured.excess)
    what = bad_outcomes(outcome)
    lead = f"{point} fewer {what}" if slice_.side == "easy" else f"{point} excess {what}"
    return f"{lead} ({low} to {high})"


def found_by(slice_: Slice, methods: int) -> str:
    """Which methods found a slice, of how many."""
    names = slice_.found_by or (slice_.method,)
    if names == (OwnSlices.name,):
        return YOUR_OWN
    total = max(methods, len(names))
    return f"Found by {len(names)} of {numbers.counted(total, 'method')}: {', '.join(names)}"


def searches(rule: Mapping[str, Any]) -> tuple[str, str] | None:
    """How many of the searches that one method made found a slice; None of a method that makes one."""
    own = rule.get("of", rule) if rule.get("kind") == "approximation" else rule
    if "searches" not in own:
        return None
    what = f"; its shape: a {own['generator']}" if "generator" in own else ""
    return f"{own['found_by']} of {own['searches']} searches", f"of its method found it{what}"


def mean_loss(measured: HeldOutMeasure) -> str:
    """ "mean loss 2.31, 0.4 to 1.9 above the rest: confirmed"."""
    text = f"mean loss {numbers.quantity(measured.mean_loss)}"
    if measured.loss_bounds is None or measured.loss_verdict != "confirmed":
        return text
    low, high = measured.loss_bounds
    return f"{text}, {numbers.quantity(low)} to {numbers.quantity(high)} above the rest"


def merged(slice_: Slice) -> str:
    """How many near-identical slices this one stands for."""
    if not slice_.folded:
        return ""
    return f"{numbers.counted(slice_.folded, 'near-identical slice')} merged into this one"


def approximation(slice_: Slice) -> str:
    """Of a slice whose method reads the outcome."""
    if slice_.fidelity is None:
        return ""
    return (
        f"Measured on an approximation that does not read the outcome; {numbers.rate(slice_.fidelity)} of its rows are "
        "the method’s own."
    )


def ownership(settings: Mapping[str, Any]) -> list[str]:
    """Of each representation, whether it contains the model's prediction, and who says so."""
    known: Mapping[str, Any] = settings.get("ownership") or {}
    return [f"{name}: {ownership_in_words(facts)}." for name, facts in known.items()]


def groups(settings: Mapping[str, Any]) -> list[str]:
    """What rows were kept together: copies, and a column that looks like the id of a group."""
    known: Mapping[str, Any] = settings.get("groups") or {}
    copies: Mapping[str, Any] = known.get("copies") or {}
    lines = []
    if copies.get("rows"):
        where = ", ".join(_copied_in(name) for name in copies["by"])
        lines.append(
            f"{numbers.out_of(copies['rows'], copies['of'])} rows are copies of others ({where}); copies were kept on "
            "one side of the split and count as one."
        )
    for column in known.get("alike", ()):
        lines.append(_alike(column, known["column"]))
    return lines


def _copied_in(name: str) -> str:
    if name in ("text", "image"):
        return f"same {name}"
    nearly = name.removesuffix(", nearly")
    return f"same {name}" if nearly == name else f"nearly the same {nearly}"


def _alike(column: Mapping[str, Any], kept: str | None) -> str:
    """Of a column that looks like the id of a group: whether its values were kept together, and what would do it."""
    name = column["column"]
    alike = f"Errors are alike within `{name}` ({numbers.count(column['values'])} values)"
    if name == kept:
        return (
            f"{alike}: each value was kept on one side of the split, and its rows count as fewer. `--groups {name}` "
            "makes that certain, `--groups none` turns it off."
        )
    return f"{alike} as well: `--groups {name}` would keep its values together instead."


def error_type(error_type: ErrorType, rows: Evaluation, outcome: str) -> str:
    """How many held-out rows an error type has, and what the model takes them for."""
    bad = bad_outcomes(outcome)
    lead = f"{numbers.count(error_type.errors)} {bad} among {numbers.counted(error_type.n, 'held-out row')}"
    listed = ", ".join(
        f"“{rows.class_name(mistake.label)}” predicted “{rows.class_name(mistake.prediction)}” "
        f"{numbers.count(mistake.n)} times"
        for mistake in error_type.mistakes
    )
    return f"{lead}: {listed}." if listed else f"{lead}."


def at_risk(slice_: Slice | None, outcome: str) -> str:
    """What was tested in the place of an error type, and what came out."""
    if slice_ is None:
        return "not tested: what is known before the outcome does not tell these rows, or was no worse on search rows."
    return f"{verdict_words(slice_).capitalize()}. {verdict(slice_, outcome)}"


def error_types(audit: Audit) -> str:
    """The error types of an audit in one line; nothing where it has none."""
    if not audit.error_types:
        return ""
    listed = ", ".join(
        f"{item.name} ({numbers.count(item.errors)}{_tested_as(item)})" for item in audit.error_types[:MOST_LISTED]
    )
    more = len(audit.error_types) - MOST_LISTED
    tail = f" and {more} more" if more > 0 else ""
    count = numbers.counted(len(audit.error_types), "error type")
    return f"{count}, by held-out errors: {listed}{tail}. Defined by their errors: no rate is claimed."


def _tested_as(error_type: ErrorType) -> str:
    return "" if error_type.slice is None else f", at risk: {error_type.slice}"


def unconverged(slice_: Slice) -> str:
    """Of a light whose search did not end where it should."""
    if slice_.rule.get("converged", True):
        return ""
    return f"Its search did not converge: the light holds {slice_.rule['mass']:.2g} times the rows asked for."


def hard_predictions(settings: Mapping[str, Any]) -> str:
    """How hard predictions were read where a method asks for probabilities; nothing where they were not."""
    softness = settings.get("softness")
    if softness is None:
        return ""
    return (
        f"Predictions are hard: read as {numbers.rate(1 - softness)} for the predicted class, the rest spread over the "
        "others."
    )


def influence(settings: Mapping[str, Any]) -> str:
    """Whose curvature influence embeddings were scaled by, and how; nothing where there are none."""
    made: Mapping[str, Any] = settings.get("influence") or {}
    if not made:
        return ""
    if made["curvature"] == "given":
        return "Influence embeddings were given with the rows."
    damping = f"damping {made['damping']:g}" if made["damping"] else "no damping"
    return (
        f"Influence of the last layer ({made['representation']}): curvature of {numbers.count(made['rows'])} "
        f"{made['curvature']}; P = {made['steps']}, D = {made['directions']}, {damping}."
    )


def scope(slice_: Slice, evaluation: Evaluation) -> str:
    """What the search was limited to, by the names of classes."""
    words = scope_in_words(evaluation, slice_.rule.get("scope"))
    return f"Searched and compared within {words}." if words else ""


def overall(total: Overall) -> str:
    """The whole, with its own 95% interval."""
    measured = numbers.out_of(total.confirm_errors, total.confirm_n)
    share = ""
    if total.confirm_n >= FEWEST_FOR_PERCENT:
        share = f": {numbers.rate(total.confirm_rate)}"
    rest = f"{share} (95% interval {numbers.interval(*total.confirm_interval)})."
    if total.outcome == ERROR:
        return f"The model is wrong on {measured} held-out rows{rest}"
    mean = ""
    if total.confirm_loss is not None:
        mean = f" The mean loss of all held-out rows is {numbers.quantity(total.confirm_loss)}."
    return f"{measured} held-out rows have a {total.outcome}{rest}{mean}"


def errors_inside(inside: int, slices: int, covered: float, outside: tuple[int, int]) -> str:
    """Where the errors lie: in the confirmed slices, and outside them."""
    lie = "lies" if inside == 1 else "lie"
    noun = "slice that covers" if slices == 1 else "slices that cover"
    outside_them = "it the model" if slices == 1 else "them it"
    return (
        f"{numbers.count(inside)} of those errors {lie} in {numbers.in_words(slices)} confirmed {noun} "
        f"{numbers.whole_rate(covered)} of the rows. Outside {outside_them} "
        f"is wrong on {numbers.rate_of(*outside)}."
    )


def sought(evaluation: Evaluation) -> str:
    """What was searched for, where the rows were chosen by their label; nothing where they were not."""
    if not evaluation.label_is_given or evaluation.labels is None:
        return ""
    name = evaluation.class_name(int(evaluation.labels[0]))
    kind = KINDS_OF_ERRORS[evaluation.metric]
    return f"Searched for {kind}: all rows have the label “{name}”, and their errors are all {kind}."


def title(worse: int, better: int, share: float | None, outcome: str, errors: str = "errors") -> str:
    """The finding in words; `share` of the errors, where they can be counted once each, and what they are called."""
    if worse == 0:
        return "No slice was confirmed." if better == 0 else _only_better(better)
    noun = "group" if worse == 1 else "groups"
    groups = f"{numbers.in_words(worse).capitalize()} {noun} of inputs"
    if share is not None:
        verb = "holds" if worse == 1 else "hold"
        return f"{groups} {verb} {numbers.whole_rate(share)} of this model’s {errors}."
    if outcome == ERROR:
        verb = "is" if worse == 1 else "are"
        return f"{groups} {verb} worse than the rest."
    verb = "has" if worse == 1 else "have"
    return f"{groups} {verb} more {bad_outcomes(outcome)} than the rest."


def _only_better(better: int) -> str:
    if better == 1:
        groups = "one group is"
    else:
        groups = f"{numbers.in_words(better)} groups are"
    return f"No worse slice was confirmed; {groups} better than the rest."


def level(settings: Mapping[str, Any]) -> str:
    """The level of all intervals of slices: this look's alpha on each side, shared by all slices tested."""
    spent = float(settings.get("level", settings.get("alpha", 0.05)))
    return f"{100 * (1 - 2 * spent):.3g}%, simultaneous"


def whisker(slice_: Slice, measured: HeldOutMeasure, outcome: str) -> str:
    """What a dot and whisker shows, for those who do not see it."""
    what = "wrong" if outcome == ERROR else f"with a {outcome}"
    return (
        f"{numbers.rate_of(measured.errors, measured.n)} {what}; the rest {rest_rate(measured)}; "
        f"gap {numbers.points(measured.gap)} points, interval {numbers.interval(*measured.interval)}"
    )


def members_at_random(n: int, of: int, wrong: int | None, in_all: str) -> str:
    """How many members are listed, and how many of them are wrong."""
    outcomes = ""
    if wrong is not None:
        outcomes = f"; {numbers.count(wrong)} wrong here, {in_all} in all"
    return f"{numbers.out_of(n, of)}{outcomes}"


def rule(row: RuleRow, own: bool) -> str:
    """What happens on the held-out rows that meet a rule, beside all others; how well it tells a slice of another."""
    fitted = row.match.outcome
    others = row.others
    if fitted.errors is None:
        told = (
            f"{numbers.counted(fitted.n, 'held-out row')} meet it, with a mean loss of "
            f"{numbers.quantity(fitted.mean_loss)} against {numbers.quantity(others.mean_loss)} of all others."
        )
    else:
        interval = ""
        if row.interval is not None and fitted.n >= FEWEST_FOR_PERCENT:
            interval = f": {numbers.rate(fitted.error_rate)} (95% interval {rates(row.interval)})"
        told = (
            f"{numbers.out_of(fitted.errors, fitted.n)} held-out rows that meet it are wrong{interval}, against "
            f"{numbers.rate_of(others.errors or 0, others.n)} of all others."
        )
    if own:
        return told
    covers = numbers.out_of(*row.match.covers)
    return f"It covers {covers} members; {numbers.out_of(*row.match.precise)} rows that meet it are members. {told}"


def towards(data: Descriptions) -> list[DescriptionRow]:
    """The texts that lie nearer to a slice than to its class."""
    return [row for row in data.rows if row.score > 0]


def descriptions(data: Descriptions) -> str:
    """How the nearest texts were chosen and measured."""
    if data.chosen_on == "discover":
        chosen = "search rows"
    else:
        chosen = "all rows, since few members are search rows"
    n = numbers.count(data.rows[0].retrieval.n)
    return (
        f"Of {numbers.counted(data.total, 'text')}, chosen on {chosen}: nearer to the slice than to its class, "
        f"{data.class_name}. Average precision: how well nearness to the text retrieves members among {n} held-out "
        "rows."
    )


def rates(interval: Sequence[float]) -> str:
    """24.1% to 54.9%."""
    return f"{numbers.rate(interval[0])} to {numbers.rate(interval[1])}"


def captions(data: DirectionCaptions, class_rows: str) -> str:
    """What captions were chosen by, which were excluded, and what the numbers are. class_rows: "rows labelled dog"."""
    names = data.left_out.names
    nearer = data.left_out.nearer
    whole = data.class_rate.outcome
    assert whole.errors is not None  # a class has errors
    first = next(iter([*data.hard, *data.easy]), None)
    chance = ""
    if first is not None:
        chance = f", by chance {numbers.quantity(first.retrieval.base_rate)}"
    scored_by = SCORED_BY[data.scored_by].format(reference=data.reference)
    return (
        f"Chosen of {numbers.counted(data.total, 'caption')} by {scored_by}; negative is hard. "
        f"Excluded: {names} that name another class, {nearer} that lie nearer to one. "
        "In the order of the error that was measured: of the held-out rows nearest to the caption, how near being "
        "chosen on search rows; the intervals hold for all captions of a side together. "
        f"Of all {class_rows} {numbers.rate_of(whole.errors, whole.n)}, {numbers.out_of(whole.errors, whole.n)}. "
        f"Average precision: how well nearness to the caption retrieves the slice within its class{chance}."
    )


def hardest_caption(data: DirectionCaptions, class_rows: str) -> str:
    """The first, with what was measured of it. class_rows: "rows labelled dog"."""
    if not data.hard:
        return f"None of {numbers.counted(data.total, 'caption')} lies on its hard side."
    first = data.hard[0]
    whole = data.class_rate.outcome
    near = first.matches.match.outcome
    assert whole.errors is not None  # a class has errors
    assert near.errors is not None
    measured = ""
    if near.n:
        measured = (
            f": {numbers.out_of(near.errors, near.n)} held-out rows near it are wrong "
            f"({rates(first.matches.interval)}), of all {class_rows} {numbers.rate_of(whole.errors, whole.n)}"
        )
    return f"Hardest caption “{first.text}”{measured}."


def strength(slice_: Slice) -> tuple[str, str] | None:
    """Of a failure direction, "Strength 0.67", and what that is beside what chance gives; None of another slice.

    None of an approximation too: the direction that it stands for knows the outcome, and is strong by construction.
    """
    rule = slice_.rule
    if "strength" not in rule:
        return None
    if rule["strength"] is None:
        return "Strength unknown", str(rule["note"])
    words = "balanced accuracy of the direction on search rows that it was not fitted to; "
    null = rule["null"]
    if null is None:
        words += "not compared with shuffled outcomes"
    else:
        shuffles = numbers.counted(null["shuffles"], "shuffle")
        words += f"shuffled outcomes give {null['mean']:.2f} (standard deviation {null['spread']:.2f}, {shuffles})"
        if null["z"] < BY_CHANCE:
            words += ": no more than chance"
    return f"Strength {rule['strength']:.2f}", words


def nearest_texts(data: Descriptions) -> str:
    """The first three, with their average precision."""
    rows = towards(data)[:3]
    n = numbers.count(data.rows[0].retrieval.n)
    if not rows:
        return f"None of {numbers.counted(data.total, 'text')} lies nearer to it than to its class."
    listed = ", ".join(f"“{row.text}” ({numbers.quantity(row.retrieval.average_precision)})" for row in rows)
    base = numbers.quantity(rows[0].retrieval.base_rate)
    return f"Nearest texts, with their average precision on {n} held-out rows: {listed}; by chance {base}."


def lengths(data: Lengths) -> str:
    """The mean length of members and of the rest, in words."""
    if data.slice is None or data.rest is None:
        return ""
    return (
        f"Members have {numbers.quantity(data.slice)} words on average ({numbers.count(data.slice_n)} rows), "
        f"the rest {numbers.quantity(data.rest)} ({numbers.count(data.rest_n)} rows)."
    )


def skipped(columns: Sequence[SkippedColumn]) -> str:
    """Which columns are not profiled, and why; empty where there are none."""
    if not columns:
        return ""
    named = ", ".join(f"{c.column} ({numbers.count(c.distinct)} values)" for c in columns)
    return f"Not profiled, since almost every row has its own value: {named}."


def images_left_out(left_out: int, requested: int, megabytes: float) -> str:
    """How many images are not in the file, and why."""
    if left_out == 0:
        return ""
    counts = numbers.out_of(left_out, requested)
    return f"{counts} images are left out to keep them under {megabytes:g} MB in this file."


def images_missing(missing: int, requested: int) -> str:
    """How many images could not be read; empty where all could."""
    if not missing:
        return ""
    return f"{numbers.out_of(missing, requested)} images are missing: they could not be read."
