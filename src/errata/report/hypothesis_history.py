"""Guesses that were tested, as lines of a table: each judged as one of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import numbers

CLASSES = {"confirmed": "confirmed", "not confirmed": "not", "too few to tell": "few"}


def history(judged: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Newest first, and one sentence on how they are judged."""
    return {"summary": _summary(judged), "lines": [_line(one) for one in reversed(judged)]}


def _summary(judged: Sequence[Mapping[str, Any]]) -> str:
    n = len(judged)
    if n == 0:
        return "No guess was tested yet."
    if n == 1:
        return "1 guess, judged alone."
    fallen = sum(_has_fallen(one) for one in judged)
    lost = (
        f" {numbers.in_words(fallen).capitalize()} that stood when tested no longer {'does' if fallen == 1 else 'do'}."
    )
    return f"{numbers.count(n)} guesses, each judged as one of {numbers.count(n)}.{lost if fallen else ''}"


def _line(one: Mapping[str, Any]) -> dict[str, Any]:
    n, errors, rest_n = one["n"], one["errors"], one["rest_n"]
    shown = one["interval"] is not None and n >= numbers.FEWEST_FOR_PERCENT
    return {
        "text": one["text"],
        "person": one["person"],
        "verdict": "Not judged again" if one["verdict"] is None else one["verdict"].capitalize(),
        "form": CLASSES.get(one["verdict"], "few"),
        "note": _note(one),
        "rate": numbers.rate_of(errors, n),
        "count": numbers.out_of(errors, n),
        "interval": numbers.interval(*one["interval"]) if shown else "",
        "rest": numbers.rate_of(one["rest_errors"], rest_n),
    }


def _has_fallen(one: Mapping[str, Any]) -> bool:
    return one["then"] == "confirmed" and one["verdict"] not in ("confirmed", None)


def _note(one: Mapping[str, Any]) -> str:
    """Why the verdict is another than when the guess was tested."""
    if one["verdict"] is None:
        return "It cannot be read any more."
    if not _has_fallen(one):
        return ""
    then = "alone" if one["place"] == 1 else f"as one of {numbers.count(one['place'])}"
    return f"It stood {then}; as one of {numbers.count(one['hypotheses'])} it does not."
