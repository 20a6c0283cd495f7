"""What is said of a slice's name: how well it fits, that it is weak, what members have more of where there is none."""

from __future__ import annotations

from ..explain.contrast import Contrast
from ..explain.names import Name
from ..explain.view import ratio
from . import numbers

MOSTLY_ELSEWHERE = 0.5  # of what a name fits: where fewer are members, it says so


def name_score(name: Name) -> str:
    """How well a machine-made name fits, and whether it tells errors; on the page of a slice."""
    if name.own:
        return "The name was given." if name.source == "given" else "Named by its own rule."
    if name.match is None:
        return f"No class, rule over columns, word or text describes these rows. {_contrasts(name)}".strip()
    return f"{name_fit(name)} {predicts(name)}".strip()


def name_fit(name: Name) -> str:
    """The score of a name, wherever it stands; nothing of a rule, which fits by definition."""
    if name.match is None:
        return _contrasts(name)
    if name.own:
        return ""
    covers = _share(*name.match.covers, "members")
    precise = _share(*name.match.precise, "rows it fits")
    score = f"covers {covers}, precise {precise}"
    if not name.weak:
        return f"The name {score}."
    if (ratio(*name.match.precise) or 0.0) < MOSTLY_ELSEWHERE:
        return f"Weak name, most of what it fits lies elsewhere: {score}."
    return f"Weak name: {score}."


def _share(k: int, n: int, rows: str) -> str:
    """ "82.0% (201 of 245 members)"; without a percentage where rows are few."""
    counted = numbers.out_of(k, n)
    rate = numbers.rate_of(k, n)
    return f"{counted} {rows}" if rate == counted else f"{rate} ({counted} {rows})"


def _contrasts(name: Name) -> str:
    """What members have more or less of, both shares each."""
    if name.contrast is None:
        return ""
    return " ".join(map(_contrast, (name.contrast, *(name.further or ()))))


def _contrast(contrast: Contrast) -> str:
    shares = f"{numbers.rate_of(*contrast.slice)} against {numbers.rate_of(*contrast.rest)}"
    return f"Members are {contrast.way} often {contrast.text}: {shares}."


def predicts(name: Name) -> str:
    """Of a name that also tells errors: how often all that it fits is wrong; nothing where it does not."""
    told = name.predicts
    if told is None:
        return ""
    return (
        f"All held-out rows that it fits: {numbers.out_of(*told.of_errors)} errors, {numbers.rate(told.rate)} wrong "
        f"against {numbers.rate(told.others_rate)} of the others."
    )
