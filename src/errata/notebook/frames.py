"""An Audit, an Evaluation and metrics by group as pandas frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Array, Audit, Evaluation, Slice
from ..core.metrics_by import GroupMetrics

if TYPE_CHECKING:
    import pandas as pd


def audit_frame(audit: Audit) -> pd.DataFrame:
    """One row a slice, in the order of the audit: what it is, what held-out rows say, what search rows said.

    Rates and gaps are shares, not per cent. What was not measured is missing. Where `changed`, people moved rows: the
    numbers are of the rows as they left them, and the verdict is of the rows as found.
    """
    import pandas as pd

    lines = [_slice_line(slice_) for slice_ in audit.slices]
    index = pd.Index([slice_.id for slice_ in audit.slices], name="slice", dtype=object)
    frame = pd.DataFrame(lines, index=index, columns=list(_COLUMNS))
    return frame.astype(_COLUMNS)


_COLUMNS = {  # name -> type: a frame of no slices has them too
    "name": "str",
    "task": "str",
    "method": "str",
    "verdict": "str",
    "changed": "bool",
    "side": "str",
    "beyond": "str",
    "explained_by": "str",
    "n": "Int64",
    "errors": "Int64",
    "rate": "float64",
    "rest_n": "Int64",
    "rest_rate": "float64",
    "gap": "float64",
    "gap_low": "float64",
    "gap_high": "float64",
    "excess": "float64",
    "p_value": "float64",
    "q_value": "float64",
    "mean_loss": "float64",
    "loss_gap": "float64",
    "search_n": "Int64",
    "search_rate": "float64",
    "rows": "int64",
}


def _slice_line(slice_: Slice) -> dict[str, Any]:
    line: dict[str, Any] = {name: getattr(slice_, name) for name in ("name", "task", "method", "verdict", "side")}
    line["changed"] = slice_.judged is not None and slice_.judged.changed
    line["beyond"] = ", ".join(slice_.beyond)
    line["explained_by"] = ", ".join(slice_.explained_by)
    line["rows"] = int(np.count_nonzero(slice_.members))
    measured = slice_.confirm
    if measured is not None:
        same = ("n", "errors", "rate", "rest_n", "rest_rate", "gap", "p_value", "q_value", "mean_loss", "loss_gap")
        line |= {name: getattr(measured, name) for name in same}
        line["gap_low"] = measured.interval[0]
        line["gap_high"] = measured.interval[1]
        line["excess"] = measured.excess[0]
    if slice_.discover is not None:
        line["search_n"] = slice_.discover.n
        line["search_rate"] = slice_.discover.rate
    return line


def evaluation_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row an example: label, prediction, confidence, error, loss, group and text as far as known, then metadata.

    Classes are named where they have names. A label of a multi-label task is `label:NAME`; a metadata column whose name
    is taken is `metadata:NAME`. Representations are left out.
    """
    import pandas as pd

    columns = _outcomes(evaluation)
    if evaluation.groups is not None:
        columns["group"] = evaluation.groups
    if evaluation.media is not None and evaluation.media.kind == "text":
        columns["text"] = [evaluation.media.text(i) for i in range(len(evaluation))]
    for name, values in evaluation.metadata.items():
        key = f"metadata:{name}" if name in columns else name
        columns[key] = values
    return pd.DataFrame(columns, index=pd.Index(evaluation.row_ids, name="id"))


def _outcomes(evaluation: Evaluation) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for name, values in (("label", evaluation.labels), ("prediction", evaluation.predictions)):
        if values is not None:
            columns |= _named(evaluation, name, values)
    if evaluation.probs is not None and evaluation.task == "classification":
        columns["confidence"] = evaluation.probs.max(axis=1)
    if evaluation.errors is not None:
        columns["error"] = evaluation.errors
    if evaluation.losses is not None:
        columns["loss"] = evaluation.losses
    return columns


def _named(evaluation: Evaluation, name: str, values: Array) -> Mapping[str, Any]:
    """One column of classes or targets; one a label of a multi-label task."""
    if values.ndim == 2:
        return {f"{name}:{evaluation.class_name(t)}": values[:, t] for t in range(values.shape[1])}
    if evaluation.task != "classification" or evaluation.class_names is None:
        return {name: values}
    return {name: np.array(evaluation.class_names, dtype=object)[values.astype(np.int64)]}


def groups_frame(result: GroupMetrics) -> pd.DataFrame:
    """One row a group and metric, then one a metric of all rows: how many rows it is defined on, value, low, high."""
    import pandas as pd

    lines = []
    everything = ("all", *[""] * (len(result.columns) - 1))
    for metric, estimates in result.by_group.items():
        for group, one in zip((*result.groups, everything), (*estimates, result.overall[metric]), strict=True):
            lines.append((*group, metric, one.n, one.value, one.low, one.high))
    frame = pd.DataFrame(lines, columns=[*result.columns, "metric", "n", "value", "low", "high"])
    return frame.set_index([*result.columns, "metric"])
