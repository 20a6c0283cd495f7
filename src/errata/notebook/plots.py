"""The slices of an audit, drawn with matplotlib."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from ..core import Audit, HeldOutMeasure, InputError, Overall, Slice, require
from ..core.audit import UNCONFIRMABLE
from ..core.brief import shortened
from ..core.errors import unknown
from ..core.words import ERROR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("gaps", "sizes")
WIDEST_LINE = 36  # letters of a name
MOST_SLICES = 20  # that are drawn; as many as one method has tested
COLOURS = {"confirmed": "#b3261e", "not confirmed": "#5f6b7a", "too few to tell": "#5f6b7a"}
MARKERS = {"confirmed": "o", "not confirmed": "o", "too few to tell": "s"}
FILLED = "confirmed"
RATES = {"fnr": "false-negative rate", "fpr": "false-positive rate"}


def plot_audit(audit: Audit, kind: str = "gaps", ax: Axes | None = None) -> Axes:
    """Draw the slices of an audit, by `plot_gaps` or by `plot_sizes`."""
    if kind not in KINDS:
        raise unknown("kind of plot", kind, KINDS)
    return plot_gaps(audit, ax) if kind == "gaps" else plot_sizes(audit, ax)


def plot_gaps(audit: Audit, ax: Axes | None = None) -> Axes:
    """Each slice's gap to the rest on held-out rows, with its interval, the first slice on top."""
    slices = _measured(audit)
    ax = ax if ax is not None else _new_axes(height=1.3 + 0.4 * len(slices))
    for place, (slice_, measured) in enumerate(slices):
        low, high = (100 * edge for edge in measured.interval)
        ax.plot([low, high], [place, place], color=COLOURS[slice_.verdict], linewidth=1.5)
        _mark(ax, 100 * measured.gap, place, slice_)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_yticks(range(len(slices)), [_label(slice_) for slice_, _ in slices])
    ax.set_ylim(len(slices) - 0.4, -0.6)
    ax.set_xlabel("gap to the rest, points")
    ax.set_title(_title(audit, slices), fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    _legend(ax, slices)
    return ax


def plot_sizes(audit: Audit, ax: Axes | None = None) -> Axes:
    """The size of each slice against its rate of bad outcomes, on held-out rows; a line is at the rate of all."""
    slices = _measured(audit)
    ax = ax if ax is not None else _new_axes(height=4.5)
    for slice_, measured in slices:
        _mark(ax, measured.n, 100 * measured.rate, slice_)
        ax.annotate(slice_.id, (measured.n, 100 * measured.rate), xytext=(5, 4), textcoords="offset points", fontsize=9)
    if len(audit.overall) == 1:
        _line_of_all(ax, audit.overall[0][1])
    ax.set_xscale("log")
    counts = require("matplotlib.ticker", "plot").FuncFormatter(_round_counts)
    ax.xaxis.set_major_formatter(counts)
    ax.xaxis.set_minor_formatter(counts)
    ax.margins(x=0.1)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("held-out rows of the slice")
    ax.set_ylabel("per cent")
    ax.set_title(_title(audit, slices), fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    _legend(ax, slices)
    return ax


def _line_of_all(ax: Axes, overall: Overall) -> None:
    rate = 100 * overall.confirm_rate
    ax.axhline(rate, color="black", linewidth=0.8, linestyle="--")
    place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "xytext": (0, -4), "textcoords": "offset points"}
    ax.annotate(f"all {overall.confirm_n:,} held-out rows", (1, rate), ha="right", va="top", fontsize=9, **place)


def _round_counts(value: float, _: object) -> str:
    """1, 2, 5, 10, 20, 50, …: a number on every tick of a scale of powers would not fit."""
    leading = f"{value:.0e}"[0]
    return f"{value:,.0f}" if value >= 1 and leading in "125" else ""


def _new_axes(height: float) -> Axes:
    pyplot = require("matplotlib.pyplot", "plot")
    axes: Axes = pyplot.subplots(figsize=(8, height), layout="constrained")[1]
    return axes


def _measured(audit: Audit) -> list[tuple[Slice, HeldOutMeasure]]:
    """The first slices with numbers of held-out rows; one whose error is by construction has none to show."""
    known = [(slice_, slice_.confirm) for slice_ in audit.slices if slice_.reason != UNCONFIRMABLE]
    slices = [(slice_, measured) for slice_, measured in known if measured is not None]
    if not slices:
        raise InputError("this audit has no slice that was measured on held-out rows: there is nothing to draw")
    return slices[:MOST_SLICES]


def _mark(ax: Axes, x: float, y: float, slice_: Slice) -> None:
    colour = COLOURS[slice_.verdict]
    changed = slice_.judged is not None and slice_.judged.changed  # by people: these rows were not tested
    face = colour if slice_.verdict == FILLED and not changed else "white"
    ax.plot([x], [y], MARKERS[slice_.verdict], color=colour, markerfacecolor=face, markersize=7, clip_on=False)


def _label(slice_: Slice) -> str:
    name = f"{slice_.task}, {slice_.name}" if slice_.task else slice_.name
    lines = textwrap.wrap(f"{slice_.id}  {shortened(name)}", WIDEST_LINE, break_on_hyphens=False)
    return "\n".join(lines).replace("$", r"\$")  # no mathematics


def _rate_name(audit: Audit) -> str:
    if audit.evaluation.metric in RATES:
        return RATES[audit.evaluation.metric]
    outcomes = {overall.outcome for _, overall in audit.overall}
    return "error rate" if outcomes == {ERROR} else f"share with {' or '.join(sorted(outcomes))}"


def _title(audit: Audit, slices: list[tuple[Slice, HeldOutMeasure]]) -> str:
    rate = f"{_rate_name(audit)} on held-out rows".capitalize()
    title = f"{rate}: {len(audit.confirmed)} of {len(audit.slices)} slices confirmed"
    return title if len(slices) == len(audit.slices) else f"{title}, {len(slices)} drawn"


def _legend(ax: Axes, slices: list[tuple[Slice, HeldOutMeasure]]) -> None:
    lines = require("matplotlib.lines", "plot")
    handles = []
    for verdict in dict.fromkeys(slice_.verdict for slice_, _ in slices):
        face = COLOURS[verdict] if verdict == FILLED else "white"
        style = {"color": COLOURS[verdict], "marker": MARKERS[verdict], "markerfacecolor": face, "linestyle": ""}
        handles.append(lines.Line2D([], [], label=verdict, **style))
    ax.legend(handles=handles, loc="best", frameon=False, fontsize=9)
