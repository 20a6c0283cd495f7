"""A slice that a person drew on the map, and what two slices share before they become one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core import Array
from ..core.gaps import wilson
from . import numbers, parts, sentences
from .row import row_facts
from .slices import Page

SHOWN = 12
SEED = 0


def whole(page: Page, drawn: Mapping[str, Any], inside: Array, standing: Mapping[str, Any]) -> dict[str, Any]:
    """Its page. The numbers are of all rows: the loop was drawn with all of them in sight."""
    return {
        "id": drawn["slice"],
        "number": drawn["slice"],
        "name": standing["title"],
        "standing": standing,
        "by": drawn["person"],
        "at": drawn["at"],
        "sentence": _sentence(page, inside),
        "group": _some(page, drawn["slice"], inside),
    }


def _sentence(page: Page, inside: Array) -> str:
    errors, n = page.audit.evaluation.errors, int(inside.sum())
    if errors is None:
        return f"{numbers.counted(n, 'row')} of {numbers.count(len(inside))}."
    bad, rest, rest_bad = int(errors[inside].sum()), len(inside) - n, int(errors[~inside].sum())
    against = f", against {numbers.rate_of(rest_bad, rest)} of the rest" if rest else ""
    if n < numbers.FEWEST_FOR_PERCENT:
        return f"{numbers.out_of(bad, n)} rows in the loop are wrong{against}."
    interval = numbers.interval(*wilson(bad, n))
    return (
        f"{numbers.out_of(bad, n)} rows in the loop are wrong: {numbers.rate(bad / n)} "
        f"(95% interval {interval}){against}."
    )


def _some(page: Page, id: str, inside: Array) -> dict[str, Any]:
    rows = np.flatnonzero(inside)
    chosen = np.random.default_rng(SEED).permutation(rows)[:SHOWN]
    items = [parts.item(page.audit, row_facts(page.audit, int(row)), page.pictures, parts.LONG) for row in chosen]
    linked = [{**one, "href": page.home.row(id, one["id"])} for one in items]
    return {"title": "Members at random", "note": numbers.out_of(len(linked), len(rows)), "rows": linked,
            "empty": "None of its rows is in this audit."}  # fmt: skip


def overlap(one: tuple[str, Array], other: tuple[str, Array]) -> dict[str, Any]:
    """(title, (n,) bool) twice: the rows of each, of both, and of either."""
    (name, inside), (other_name, other_inside) = one, other
    n, other_n, both = (int(rows.sum()) for rows in (inside, other_inside, inside & other_inside))
    either = n + other_n - both
    return {
        "n": n,
        "other_n": other_n,
        "both": both,
        "jaccard": both / either if either else None,
        "sentence": sentences.overlap((name, n), (other_name, other_n), both),
    }
