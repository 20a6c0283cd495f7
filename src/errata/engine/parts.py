"""How rows are cut into parts: by their number and width alone, so that every engine adds up the same parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import Evaluation

PART_BYTES = 1 << 24  # of the columns of a part: much larger than what starting its work costs, and many fit in memory


def parts_of(*columns: Any, most: int = PART_BYTES) -> tuple[slice, ...]:
    """The parts of columns of one length, in order; one empty part where there are no rows."""
    n = len(columns[0])
    step = max(1, most // max(1, sum(row_bytes(column) for column in columns)))
    return tuple(slice(start, min(start + step, n)) for start in range(0, n, step)) or (slice(0, 0),)


def row_bytes(column: Any) -> int:
    """What one row of a column takes."""
    if isinstance(column, Evaluation):
        return sum(map(row_bytes, _arrays(column)))
    return int(np.prod(column.shape[1:], dtype=np.int64)) * int(column.dtype.itemsize)


def cut(column: Any, rows: slice) -> Any:
    """Some rows of a column, without a copy where it can be."""
    if isinstance(column, Evaluation):
        return column.span(rows)
    return column[rows]


def _arrays(evaluation: Evaluation) -> list[Any]:
    plain = (evaluation.losses, evaluation.labels, evaluation.probs, evaluation.predictions, evaluation.row_ids)
    return [a for a in (*plain, *evaluation.representations.values(), *evaluation.metadata.values()) if a is not None]
