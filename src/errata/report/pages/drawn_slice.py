"""A slice that a person drew on the map, and what two slices share before they become one.

A sub-page of `slice`, which chooses it where an id is none of the audit's: it has no `Page` of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core import Array, Audit
from ...core.gaps import wilson
from ...core.words import FEWEST_FOR_PERCENT
from .. import numbers
from ..contract import View
from ..judgement_lines import overlap_sentence
from ..row_facts import row_facts
from ..row_items import item

MAX_ROWS = 12
SEED = 0


def context(view: View, id: str, standings: Mapping[str, Any]) -> dict[str, Any]:
    """Its page. The numbers are of all rows: the loop was drawn with all of them in sight."""
    inside = view.backend.members(id)
    drawing = next(drawing for drawing in view.backend.drawings() if drawing["slice"] == id)
    standing = standings[id]
    values = {
        "id": id,
        "number": id,
        "name": standing["title"],
        "standing": standing,
        "by": drawing["person"],
        "at": drawing["at"],
        "sentence": loop_sentence(view.audit, inside),
        "group": _members(view, id, inside),
    }
    mergeable = [(other, entry["title"]) for other, entry in standings.items() if other != id]
    return {"template": "page_drawn.html", "title": standing["title"], "row": values, "mergeable": mergeable}


def loop_sentence(audit: Audit, inside: Array) -> str:
    """How many rows of a loop are wrong, beside the others. inside: (n,) bool."""
    errors = audit.evaluation.errors
    n = int(inside.sum())
    if errors is None:
        return f"{numbers.counted(n, 'row')} of {numbers.count(len(inside))}."
    bad = int(errors[inside].sum())
    rest = len(inside) - n
    against = ""
    if rest:
        against = f", against {numbers.rate_of(int(errors[~inside].sum()), rest)} of the rest"
    if n < FEWEST_FOR_PERCENT:
        return f"{numbers.out_of(bad, n)} rows in the loop are wrong{against}."
    interval = numbers.interval(*wilson(bad, n))
    return (
        f"{numbers.out_of(bad, n)} rows in the loop are wrong: {numbers.rate(bad / n)} "
        f"(95% interval {interval}){against}."
    )


def _members(view: View, id: str, inside: Array) -> dict[str, Any]:
    positions = np.flatnonzero(inside)
    chosen = np.random.default_rng(SEED).permutation(positions)[:MAX_ROWS]
    items = [item(view, row_facts(view.audit, int(position))) for position in chosen]
    return {
        "title": "Members at random",
        "note": numbers.out_of(len(items), len(positions)),
        "rows": [{**row, "href": view.links.row(id, row["id"])} for row in items],
        "empty": "None of its rows is in this audit.",
    }


def overlap(first: tuple[str, Array], second: tuple[str, Array]) -> dict[str, Any]:
    """(title, (n,) bool) twice: the rows of each, of both, and of either."""
    name, inside = first
    other_name, other_inside = second
    n = int(inside.sum())
    other_n = int(other_inside.sum())
    both = int((inside & other_inside).sum())
    either = n + other_n - both
    jaccard = both / either if either else None
    return {
        "n": n,
        "other_n": other_n,
        "both": both,
        "jaccard": jaccard,
        "sentence": overlap_sentence((name, n), (other_name, other_n), both),
    }
