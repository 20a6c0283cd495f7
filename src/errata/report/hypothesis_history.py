"""Hypotheses that were tested, as lines of a table: each judged as one of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.words import FEWEST_FOR_PERCENT
from . import numbers
from .marks import VERDICT_CLASSES


def history(hypotheses: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Newest first, and one sentence on how they are judged."""
    return {"summary": _summary(hypotheses), "lines": [_line(hypothesis) for hypothesis in reversed(hypotheses)]}


def _summary(hypotheses: Sequence[Mapping[str, Any]]) -> str:
    n = len(hypotheses)
    if n == 0:
        return "No hypothesis was tested yet."
    if n == 1:
        return "1 hypothesis, judged alone."
    judged = f"{numbers.count(n)} hypotheses, each judged as one of {numbers.count(n)}."
    lost = sum(map(_is_lost, hypotheses))
    if not lost:
        return judged
    verb = "was" if lost == 1 else "were"
    still = "is" if lost == 1 else "are"
    return f"{judged} {numbers.in_words(lost).capitalize()} that {verb} confirmed when tested no longer {still}."


def _line(hypothesis: Mapping[str, Any]) -> dict[str, Any]:
    n = hypothesis["n"]
    verdict = hypothesis["verdict"]
    interval = ""
    if hypothesis["interval"] is not None and n >= FEWEST_FOR_PERCENT:
        interval = numbers.interval(*hypothesis["interval"])
    verdict_text = "Not tested again"
    if _is_better(hypothesis):
        verdict_text = "Better than the rest"
    elif verdict is not None:
        verdict_text = verdict.capitalize()
    return {
        "text": hypothesis["text"],
        "person": hypothesis["person"],
        "verdict": verdict_text,
        "form": VERDICT_CLASSES.get(verdict, "few"),
        "note": _note(hypothesis),
        "rate": numbers.rate_of(hypothesis["errors"], n),
        "count": numbers.out_of(hypothesis["errors"], n),
        "interval": interval,
        "rest": numbers.rate_of(hypothesis["rest_errors"], hypothesis["rest_n"]),
    }


def _is_better(hypothesis: Mapping[str, Any]) -> bool:
    """Whether rows that match are wrong less often than the others: no weakness, and no finding that failed."""
    interval = hypothesis["interval"]
    if interval is None or hypothesis["n"] < FEWEST_FOR_PERCENT or not hypothesis["rest_n"]:
        return False
    return bool(interval[1] < hypothesis["rest_errors"] / hypothesis["rest_n"])


def _is_lost(hypothesis: Mapping[str, Any]) -> bool:
    """Confirmed when it was tested, and not any more among all that were tested since."""
    return hypothesis["then"] == "confirmed" and hypothesis["verdict"] not in ("confirmed", None)


def _note(hypothesis: Mapping[str, Any]) -> str:
    """Why the verdict is another than when the hypothesis was tested."""
    if hypothesis["verdict"] is None:
        return "It cannot be read any more."
    if not _is_lost(hypothesis):
        return ""
    if hypothesis["position"] == 1:
        then = "alone"
    else:
        then = f"as one of {numbers.count(hypothesis['position'])}"
    return f"Confirmed {then}; not as one of {numbers.count(hypothesis['hypotheses'])}."
