"""Where the errors are: counted once each, over all confirmed slices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core import Audit
from . import numbers, sentences


@dataclass(frozen=True)
class Where:
    """Errors of the confirm rows: new ones in each slice, in order, and those elsewhere."""

    parts: tuple[int, ...]
    elsewhere: int
    covered: float
    outside_rows: int

    @property
    def inside(self) -> int:
        return sum(self.parts)

    @property
    def total(self) -> int:
        return self.inside + self.elsewhere

    @property
    def segments(self) -> list[dict[str, float | int]]:
        """Each slice's place on the bar, in per cent."""
        edges = np.concatenate([[0], np.cumsum(self.parts)]) * (100 / self.total)
        return [{"x": float(edges[j]), "width": 100 * k / self.total, "count": k} for j, k in enumerate(self.parts)]


def where(audit: Audit) -> Where | None:
    """None where errors cannot be counted once each: several tasks, no errors, or a cross-fit."""
    worse = [found for found in audit.confirmed if found.side == "hard"]
    errors, confirm = audit.evaluation.errors, ~audit.discover
    crossed = any(found.confirmed_on != "confirm" for found in worse)
    if errors is None or crossed or not worse or not (errors & confirm).any():
        return None
    left, parts = confirm.copy(), []
    for found in worse:
        parts.append(int(np.count_nonzero(errors & left & found.members)))
        left &= ~found.members
    rows = int(np.count_nonzero(left))
    return Where(tuple(parts), int(np.count_nonzero(errors & left)), 1 - rows / int(confirm.sum()), rows)


def title(audit: Audit, seen: Where | None) -> str:
    sides = [found.side for found in audit.confirmed]
    share = None if seen is None else seen.inside / seen.total
    return sentences.title(sides.count("hard"), sides.count("easy"), share, audit.overall[0][1].outcome)


def lede(audit: Audit, seen: Where | None) -> list[tuple[str, str]]:
    """(task, sentence): the numbers of the whole."""
    lines = [(task, sentences.overall(total)) for task, total in audit.overall]
    if seen is not None and len(lines) == 1:
        outside = (seen.elsewhere, seen.outside_rows)
        held = sentences.held(seen.inside, len(seen.parts), seen.covered, outside)
        lines = [(lines[0][0], f"{lines[0][1]} {held}")]
    return lines


def where_label(seen: Where) -> str:
    listed = ", ".join(numbers.count(k) for k in seen.parts)
    return (
        f"{numbers.count(seen.total)} errors: {numbers.count(seen.inside)} in the confirmed slices ({listed}, "
        f"each counted once), {numbers.count(seen.elsewhere)} elsewhere"
    )
