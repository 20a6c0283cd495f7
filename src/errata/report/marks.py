"""Positions of the marks of a page, in per cent of their svg: it stretches without a script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core import HeldOutMeasure, Slice
from ..core.gaps import wilson
from ..explain.sizes import SizePoint, Sizes

VERDICT_CLASSES = {"confirmed": "confirmed", "not confirmed": "not", "too few to tell": "few"}  # of the style sheet
TAG_WIDTH = 5.0  # per cent of a plot that a point with its id takes, across and up
TAG_HEIGHT = 6.0
FORMS = {verdict: f"k-{name}" for verdict, name in VERDICT_CLASSES.items()} | {"confirmed": ""}  # of marks


@dataclass(frozen=True)
class Axis:
    """One axis for a whole page: 0 to `top`, a rate."""

    top: float

    def at(self, share: float) -> float:
        """The position of a rate, in per cent of the axis."""
        return 100 * min(max(share / self.top, 0.0), 1.0)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """(position, text) of each tick."""
        steps = [0.0, 0.2, 0.4, 0.6] if self.top < 1 else [0.0, 0.25, 0.5, 0.75, 1.0]
        return [(self.at(value), f"{100 * value:.0f}%") for value in steps]


def error_axis(slices: Sequence[Slice]) -> Axis:
    """0 to 60%, and 0 to 100% for the whole audit where a confirmed slice exceeds that."""
    rates = [s.confirm.rate for s in slices if s.verdict == "confirmed" and s.confirm]
    top = 1.0 if max(rates, default=0.0) > 0.6 else 0.6
    return Axis(top)


@dataclass(frozen=True)
class Whisker:
    """A dot with its interval, and the rest as a diamond with its own short line."""

    form: str
    dot: float
    low: float
    high: float
    rest: float
    rest_low: float
    rest_high: float
    leaves_left: bool
    leaves_right: bool


def form_of(slice_: Slice) -> str:
    """The form of a slice's mark: that of its verdict, or hollow where people changed its rows."""
    if slice_.judged is not None and slice_.judged.changed:
        return FORMS["not confirmed"]  # these rows were not tested
    return FORMS[slice_.verdict]


def whisker(slice_: Slice, measured: HeldOutMeasure, axis: Axis) -> Whisker:
    """The gap's interval is drawn from the rest's rate: how far it clears the diamond is the gap's lower end."""
    low = measured.rest_rate + measured.interval[0]
    high = measured.rest_rate + measured.interval[1]
    rest_low, rest_high = wilson(measured.rest_rate * measured.rest_n, measured.rest_n)
    return Whisker(
        form=form_of(slice_),
        dot=axis.at(measured.rate),
        low=axis.at(low),
        high=axis.at(high),
        rest=axis.at(measured.rest_rate),
        rest_low=axis.at(rest_low),
        rest_high=axis.at(rest_high),
        leaves_left=low < 0 < measured.rate,  # a measured zero ends at the wall, it does not leave
        leaves_right=axis.top < min(high, 1.0),  # nothing lies beyond 100%
    )


def nice_ticks(largest: float, most: int = 5) -> list[float]:
    """Round numbers from 0 that reach past `largest`."""
    if not largest > 0 or not math.isfinite(largest):
        return [0.0, 1.0]
    scale = 10.0 ** math.floor(math.log10(largest / most))
    step = next(scale * m for m in (1, 2, 2.5, 5, 10) if scale * m * most >= largest)
    return [step * i for i in range(math.ceil(round(largest / step, 9)) + 1)]


def _tag(points: list[dict[str, Any]]) -> None:
    """Say of each point whether its number is written beside it: not where it would lie on another point or number."""
    tagged: list[dict[str, Any]] = []
    for point in points:
        others = [other for other in points if other is not point]
        on_point = any(
            0 <= other["x"] - point["x"] < TAG_WIDTH and abs(other["y"] - point["y"]) < TAG_HEIGHT for other in others
        )
        on_tag = any(
            abs(other["x"] - point["x"]) < TAG_WIDTH and abs(other["y"] - point["y"]) < TAG_HEIGHT for other in tagged
        )
        point["tagged"] = not on_point and not on_tag
        if point["tagged"]:
            tagged.append(point)


def size_plot(sizes: Sizes) -> dict[str, Any]:
    """Size against mean loss: where each slice and cluster stands, and the ticks of both axes."""
    slices = [entry for entry in sizes.slices if entry.point.mean_loss is not None]
    clusters = [entry for entry in sizes.clusters if entry.point.mean_loss is not None]
    points = [*(entry.point for entry in slices), *(entry.point for entry in clusters)]
    across = nice_ticks(max([point.share for point in points], default=0.0))
    up = nice_ticks(max([point.mean_loss or 0.0 for point in points], default=0.0))

    def position(point: SizePoint) -> dict[str, float]:
        height = max(point.mean_loss or 0.0, 0.0)
        return {"x": 100 * point.share / across[-1], "y": 100 - 100 * height / up[-1]}

    overall = None if sizes.overall is None else 100 - 100 * sizes.overall / up[-1]
    placed = [{**e.to_json(), **position(e.point)} for e in slices]
    _tag(placed)
    return {
        "task": sizes.task,
        "slices": placed,
        "all_tagged": all(point["tagged"] for point in placed),
        "clusters": [{**e.to_json(), **position(e.point)} for e in clusters],
        "x_ticks": [(100 * value / across[-1], f"{100 * value:.3g}%") for value in across],
        "y_ticks": [(100 - 100 * value / up[-1], f"{value:.3g}") for value in up],
        "overall": overall,
        "mean": sizes.overall,
    }
