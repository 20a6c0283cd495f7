"""Metrics in groups of rows, with intervals: the groups of a column, of several, of a mask, of a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from . import validate
from .blocks import Array
from .brief import shortened
from .columns import format_value, type_column
from .errors import InputError, unknown
from .evaluation import Evaluation
from .gaps import wilson
from .metrics import RowMetric, choose_metrics, row_metrics
from .references import effective_rows
from .views import view_of

Columns = str | Sequence[str] | Mapping[str, Any] | Callable[[Evaluation], Any] | Array
Compared = Literal["between_groups", "to_overall"]

MISSING = "missing"  # the group of rows without a value
MOST_NUMBERS = 20  # different numbers of a column that are a group each; more are cut into ranges
RANGES = 4  # of equal size, as far as ties allow
MOST_GROUPS = 1000
MOST_SHOWN = 20  # groups in a `repr`


@dataclass(frozen=True)
class Estimate:
    """A metric of some rows.

    Attributes
    ----------
    n : int
        Rows that it is defined on: of a recall, the positive ones.
    value : float
        NaN where there are none.
    low, high : float
        Its interval; NaN where rows are too few for one.
    """

    n: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class GroupMetrics:
    """Metrics of groups of rows, of all rows, and how much the groups differ.

    Attributes
    ----------
    columns : tuple of str
        What the rows are grouped by.
    groups : tuple of tuple of str
        The groups, each by its value in every column.
    rows : tuple of int
        How many rows each group has.
    by_group : mapping
        Metric -> one Estimate a group.
    overall : mapping
        Metric -> the Estimate of all rows.
    level : float
        Of each interval by itself. Of many groups, some interval misses more often than one does.
    """

    columns: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    rows: tuple[int, ...]
    by_group: Mapping[str, tuple[Estimate, ...]]
    overall: Mapping[str, Estimate]
    level: float

    def __len__(self) -> int:
        return len(self.groups)

    def __repr__(self) -> str:
        return _table(self)

    def difference(self, method: Compared = "between_groups") -> dict[str, float]:
        """Metric -> its largest difference.

        Parameters
        ----------
        method : str
            "between_groups", the largest value less the smallest; or "to_overall", the largest distance of a group to
            all rows.
        """
        _check_method(method)
        return {name: _difference(values, self.overall[name].value, method) for name, values in self._values().items()}

    def ratio(self, method: Compared = "between_groups") -> dict[str, float]:
        """Metric -> its smallest ratio, at most 1.

        Parameters
        ----------
        method : str
            "between_groups", the smallest value by the largest; or "to_overall", the smallest of each group and all
            rows, the lesser by the greater.
        """
        _check_method(method)
        return {name: _ratio(values, self.overall[name].value, method) for name, values in self._values().items()}

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row a group and metric: rows, value, low, high; the last group is all rows."""
        return view_of(self, "to_frame")

    def _values(self) -> dict[str, Array]:
        """Metric -> values of the groups that have one."""
        values = {name: np.array([one.value for one in own]) for name, own in self.by_group.items()}
        return {name: own[~np.isnan(own)] for name, own in values.items()}


def by(
    evaluation: Evaluation,
    columns: Columns,
    *,
    metrics: Sequence[str] | None = None,
    positive: str | int | None = None,
    level: float = 0.95,
) -> GroupMetrics:
    """Measure metrics in groups of rows, with intervals.

    Parameters
    ----------
    evaluation : Evaluation
        The rows, with their outcomes.
    columns : str, list of str, mapping, callable or array
        What to group by: a metadata column, "label" or "prediction"; several of them, crossed; a mapping of names to
        (n,) values or masks; a function of the evaluation that returns (n,) values; or the (n,) values themselves.
        Numbers with more than 20 different values are cut into four ranges. Rows without a value are a group.
    metrics : list of str, optional
        Names. Default: all that these rows have. Classification: "error", "log_loss", and of a positive class
        "selection_rate", "fpr", "fnr", "precision", "recall". Regression: "mae", "rmse", "over_prediction",
        "under_prediction". Else "loss".
    positive : str or int, optional
        The positive class; in a multi-label task, the label to look at. Default: the second of two classes.
    level : float
        Of each interval by itself, between 0 and 1. Rates have Wilson's interval, means Student's; rows of one group
        of the evaluation count as fewer.

    Returns
    -------
    GroupMetrics
        With `by_group`, `overall`, `difference()`, `ratio()` and `to_frame()`.

    Examples
    --------
    >>> import errata, numpy as np
    >>> rows = errata.Evaluation(
    ...     labels=np.array([0, 1] * 50),
    ...     predictions=np.array([0, 1] * 30 + [0, 0] * 20),
    ...     metadata={"site": np.array(["a"] * 60 + ["b"] * 40)},
    ... )
    >>> errata.by(rows, "site", metrics=["error", "recall"])
    site  rows  error                 recall
    a     60    0.000 (0.000, 0.060)  1.000 (0.886, 1.000)
    b     40    0.500 (0.352, 0.648)  0.000 (0.000, 0.161)
    all   100   0.200 (0.133, 0.289)  0.600 (0.462, 0.724)
    >>> errata.by(rows, "site").difference()["recall"]
    1.0
    """
    if not 0 < level < 1:
        raise InputError(f"`level` must be between 0 and 1; got {level}")
    chosen = choose_metrics(row_metrics(evaluation, positive), metrics)
    named = _group_columns(evaluation, columns)
    groups, codes = _cross(list(named.values()))
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    everything = np.arange(len(evaluation))
    return GroupMetrics(
        columns=tuple(named),
        groups=groups,
        rows=tuple(map(len, members)),
        by_group={
            name: tuple(estimate(metric, rows, evaluation.groups, level) for rows in members)
            for name, metric in chosen.items()
        },
        overall={name: estimate(metric, everything, evaluation.groups, level) for name, metric in chosen.items()},
        level=level,
    )


def estimate(metric: RowMetric, rows: Array, groups: Array | None, level: float) -> Estimate:
    """A metric of some rows, with its interval.

    Parameters
    ----------
    metric : RowMetric
        Of all rows.
    rows : array
        (m,) numbers of those that are measured.
    groups : array, optional
        (n,) what rows belong together: they count as fewer.
    level : float
        Of the interval.
    """
    rows = rows[metric.defined[rows]]
    values = metric.values[rows].astype(np.float64)
    n = len(values)
    if not n:
        return Estimate(0, float("nan"), float("nan"), float("nan"))
    together = None if groups is None else groups[rows]
    value = float(values.mean())
    if metric.kind == "rate":
        counted = float(n) if together is None else effective_rows(values, together)
        low, high = wilson(counted * value, counted, float(special.ndtri((1 + level) / 2)))
        return Estimate(n, value, low, high)
    half = _half_width(values, together, level)
    if metric.kind == "root":
        return Estimate(n, float(np.sqrt(value)), float(np.sqrt(max(value - half, 0.0))), float(np.sqrt(value + half)))
    return Estimate(n, value, value - half, value + half)


def _half_width(values: Array, groups: Array | None, level: float) -> float:
    """Half of Student's interval of a mean; of clusters where rows belong together. NaN where there is only one."""
    residuals = values - values.mean()
    if groups is not None:
        residuals = np.bincount(np.unique(groups, return_inverse=True)[1].ravel(), weights=residuals)
    clusters = len(residuals)
    if clusters < 2:
        return float("nan")
    error = np.sqrt(float(residuals @ residuals) * clusters / (clusters - 1)) / len(values)
    return float(special.stdtrit(clusters - 1, (1 + level) / 2) * error)


# ---- groups


@dataclass(frozen=True, eq=False)
class _Coded:
    """(n,) which of the texts each row has; texts are in the order of groups."""

    codes: Array
    texts: list[str]


def _group_columns(evaluation: Evaluation, columns: Columns) -> dict[str, _Coded]:
    """Name -> the group of each row, in each column."""
    if callable(columns):
        columns = {getattr(columns, "__name__", "group").replace("<lambda>", "group"): columns(evaluation)}
    if isinstance(columns, str):
        columns = [columns]
    if isinstance(columns, Mapping):
        named = {str(name): np.asarray(values) for name, values in columns.items()}
    elif isinstance(columns, list | tuple) and columns and all(isinstance(name, str) for name in columns):
        named = {name: _known_column(evaluation, name) for name in columns}
    else:
        named = {"group": np.asarray(columns)}
    for name, values in named.items():
        if values.shape != (len(evaluation),):
            raise InputError(f"`{name}` must have one value a row, {len(evaluation):,}; got shape {values.shape}")
    if not named:
        raise InputError("name at least one column to group by")
    return {name: _coded(name, values) for name, values in named.items()}


def _known_column(evaluation: Evaluation, name: str) -> Array:
    if name in evaluation.metadata:
        return evaluation.metadata[name]
    outcomes = {"label": evaluation.labels, "prediction": evaluation.predictions}
    known = {key: values for key, values in outcomes.items() if values is not None and values.ndim == 1}
    if name not in known:
        raise unknown("column", name, [*evaluation.metadata, *known])
    if evaluation.task != "classification" or evaluation.class_names is None:
        return known[name]
    return np.array(evaluation.class_names)[known[name].astype(np.int64)]


def _coded(name: str, values: Array) -> _Coded:
    column = type_column(name, validate.columns({name: values}, len(values))[name])
    distinct, codes = np.unique(column.values[column.present], return_inverse=True)
    if column.kind == "number" and len(distinct) > MOST_NUMBERS:
        return _ranges(column.values, column.present)
    places = np.full(len(values), len(distinct))
    places[column.present] = codes.ravel()
    return _Coded(places, [*map(format_value, distinct.tolist()), MISSING])


def _ranges(values: Array, present: Array) -> _Coded:
    """Ranges with as many rows each, as far as ties allow, by the numbers that they hold."""
    edges = np.unique(np.quantile(values[present], np.linspace(0, 1, RANGES + 1)[1:-1]))
    places = np.where(present, np.searchsorted(edges, values, side="right"), len(edges) + 1)
    texts = []
    for place in range(len(edges) + 1):
        inside = values[places == place]
        low = inside.min(initial=np.inf)
        texts.append(f"{low:.6g} to {inside.max(initial=-np.inf):.6g}")  # of no rows, and then shown nowhere
    return _Coded(places, [*texts, MISSING])


def _cross(columns: list[_Coded]) -> tuple[tuple[tuple[str, ...], ...], Array]:
    """The combinations of values that there are, in order, and (n,) which of them each row has."""
    codes = np.zeros(len(columns[0].codes), dtype=np.int64)
    first = np.zeros(1, dtype=np.int64)
    for column in columns:  # numbered anew after each, so that no product overflows
        _, first, codes = np.unique(codes * len(column.texts) + column.codes, return_index=True, return_inverse=True)
    if len(first) > MOST_GROUPS:
        raise InputError(f"the columns make {len(first):,} groups; at most {MOST_GROUPS:,} can be compared")
    groups = (tuple(column.texts[column.codes[row]] for column in columns) for row in first)
    return tuple(groups), codes.ravel()


# ---- comparing


def _check_method(method: str) -> None:
    if method not in ("between_groups", "to_overall"):
        raise unknown("method", method, ("between_groups", "to_overall"))


def _difference(values: Array, overall: float, method: Compared) -> float:
    if not len(values):
        return float("nan")
    if method == "between_groups":
        return float(np.ptp(values))
    return float(np.abs(values - overall).max())


def _ratio(values: Array, overall: float, method: Compared) -> float:
    if not len(values):
        return float("nan")
    if method == "between_groups":
        least = float(values.min())
        most = float(values.max())
    else:
        pairs = np.stack([values, np.full(len(values), overall)])
        worst = int(np.argmin(pairs.min(axis=0) / np.maximum(pairs.max(axis=0), np.finfo(float).tiny)))
        least = float(pairs[:, worst].min())
        most = float(pairs[:, worst].max())
    return least / most if most > 0 else float("nan")


# ---- in words


def _table(result: GroupMetrics) -> str:
    lines = [[*result.columns, "rows", *result.by_group]]
    for place, group in enumerate(result.groups[:MOST_SHOWN]):
        own = [_written(estimates[place]) for estimates in result.by_group.values()]
        lines.append([*map(shortened, group), f"{result.rows[place]:,}", *own])
    more = len(result.groups) - MOST_SHOWN
    if more > 0:
        lines.append([f"… and {more:,} more"])
    blanks = [""] * (len(result.columns) - 1)
    lines.append(["all", *blanks, f"{sum(result.rows):,}", *map(_written, result.overall.values())])
    full = [line for line in lines if len(line) == len(lines[0])]
    widths = [max(map(len, column)) for column in zip(*full, strict=True)]
    padded = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)) for line in lines]
    return "\n".join(line.rstrip() for line in padded)


def _written(one: Estimate) -> str:
    if not one.n:
        return "none"
    if one.low != one.low:
        return f"{one.value:.4g}"
    if max(abs(one.low), abs(one.high)) <= 1:
        return f"{one.value:.3f} ({one.low:.3f}, {one.high:.3f})"
    return f"{one.value:.4g} ({one.low:.4g}, {one.high:.4g})"
