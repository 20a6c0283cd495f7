"""What searches by evidence share: which rows are bad, where one looks, and what a slice across labels must say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ..core import Array, Evaluation
from ..core.confirm import high_loss
from ..core.scope import Scoping, scopes

Scope = Literal["auto", "none", "prediction", "label"]
ALL: tuple[Scoping, ...] = ("none", "prediction", "label")
ACROSS_LABELS = 8.0  # price of a slice that mixes labels where it could be told within one
FEWEST_BAD = 8  # bad rows of a scope, for anything to be found
MOST_COMPARED = 50_000  # search rows on which candidates are compared


def bad_rows(evaluation: Evaluation) -> Array:
    """(n,) bool: errors, or the highest losses where errors have no meaning."""
    if evaluation.errors is not None:
        return np.asarray(evaluation.errors, dtype=bool)
    assert evaluation.losses is not None
    return np.asarray(evaluation.losses > high_loss(evaluation.losses))


def list_scopes(evaluation: Evaluation, scope: Scope) -> Iterator[dict[str, Any]]:
    """All rows, and the classes that can be searched by themselves.

    Parameters
    ----------
    evaluation
        The search rows.
    scope
        `auto` for all of them, or one kind.
    """
    seen_all = False
    for kind in ALL:
        if scope not in ("auto", kind):
            continue
        for part in scopes(evaluation, kind):
            if part or not seen_all:
                yield part
            seen_all = seen_all or not part


def price_across_labels(scope: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> float:
    """What a slice of this scope must say beyond others: within a label it is easier to name and to fix."""
    could_be_within = any("label" in plan for plan in plans)
    return ACROSS_LABELS * (could_be_within and "label" not in scope)
