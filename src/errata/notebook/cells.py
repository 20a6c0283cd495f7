"""An Audit as the HTML of a notebook's cell: the overview, without scripts."""

from __future__ import annotations

from html import escape

from ..core import Audit, Slice
from ..core.audit import UNCONFIRMABLE
from ..core.words import ERROR
from ..report import numbers, sentences
from ..report.pages import overview

MOST_SLICES = 10  # that are listed
CELL = "text-align: left; padding: 0.2em 1em 0.2em 0"
ONE_LINE = f"{CELL}; white-space: nowrap"  # of all but names: numbers that are broken are read wrongly


def audit_cell(audit: Audit) -> str:
    """The finding, the numbers of the whole, a table of the first slices, and what could have been missed."""
    shares = overview.error_shares(audit)
    lines = [f"<p><b>{escape(overview.title(audit, shares))}</b></p>"]
    for task, sentence in overview.lede(audit, shares):
        lead = f"{task}: " if task else ""
        lines.append(f"<p>{escape(lead + sentence)}</p>")
    if audit.slices:
        lines.append(_table(audit))
    more = len(audit.slices) - MOST_SLICES
    if more > 0:
        lines.append(f"<p>… and {numbers.counted(more, 'slice')} more; <code>audit.to_frame()</code> has all.</p>")
    level = f"Intervals are {sentences.level(audit.settings)}: they hold together for all slices tested."
    below = [*audit.settings.get("notes", ()), level, audit.silence]
    lines.append(f"<p>{escape(' '.join(below))}</p>")
    return f'<div style="max-width: 60em">{"".join(lines)}</div>'


def _table(audit: Audit) -> str:
    rate = "wrong" if audit.overall[0][1].outcome == ERROR else "bad"
    titles = ("slice", "name", "verdict", "held-out rows", rate, "the rest", "gap in points (interval)")
    head = "".join(f'<th style="{ONE_LINE}">{title}</th>' for title in titles)
    lines = [_line(slice_) for slice_ in audit.slices[:MOST_SLICES]]
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _line(slice_: Slice) -> str:
    name = f"{slice_.task}, {slice_.name}" if slice_.task else slice_.name
    cells = [_cell(slice_.id), _cell(name, CELL), *map(_cell, [sentences.verdict_words(slice_), *_numbers(slice_)])]
    return f"<tr>{''.join(cells)}</tr>"


def _cell(text: str, style: str = ONE_LINE) -> str:
    return f'<td style="{style}">{escape(text)}</td>'


def _numbers(slice_: Slice) -> list[str]:
    measured = slice_.confirm
    if measured is None or slice_.reason == UNCONFIRMABLE:  # a number by construction is not shown
        return [numbers.NOT_MEASURED, "", "", ""]
    return [
        numbers.count(measured.n),
        numbers.rate_of(measured.errors, measured.n),
        sentences.rest_rate(measured),
        f"{numbers.points(measured.gap)} ({numbers.interval(*measured.interval)})",
    ]
