"""`errata by`: metrics in groups of rows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..report.printing import echo
from .common import Names

if TYPE_CHECKING:
    from ..core.metrics_by import GroupMetrics


def measure_by(
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="A .npz, .parquet or .csv file.")],
    column: Annotated[Names, typer.Option("--column", metavar="NAME", help="Group by it; several are crossed.")],
    metric: Annotated[Names, typer.Option(metavar="NAME", help="A metric; repeat. Default: all that INPUT has.")] = [],
    positive: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="The positive class, or a label of several. Default: the second."),
    ] = None,
    level: Annotated[float, typer.Option(help="Of each interval by itself.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Measure error, recall and other metrics in the groups of a column, with intervals."""
    from ..core.metrics_by import by
    from ..inputs import read

    names = [name for names in metric for name in names.split(",") if name]
    result = by(read(source, metadata=["all"]), column, metrics=names or None, positive=positive, level=level)
    if as_json:
        echo(json.dumps(_as_json(result), indent=1, allow_nan=False))
        return
    echo(repr(result))
    for name, difference in result.difference().items():
        echo(f"{name}: largest difference {difference:.4g}, ratio {result.ratio()[name]:.4g}")


def _as_json(result: GroupMetrics) -> dict[str, Any]:
    estimates = result.to_frame().reset_index().to_dict("records")
    compared = {
        name: {"difference": difference, "ratio": result.ratio()[name]}
        for name, difference in result.difference().items()
    }
    return {
        "columns": list(result.columns),
        "level": result.level,
        "estimates": [_without_nan(estimate) for estimate in estimates],
        "between_groups": {name: _without_nan(own) for name, own in compared.items()},
    }


def _without_nan(facts: dict[str, Any]) -> dict[str, Any]:
    """JSON has null where a number is missing."""
    missing = {key for key, value in facts.items() if isinstance(value, float) and math.isnan(value)}
    return {key: value for key, value in facts.items() if key not in missing} | dict.fromkeys(missing)
