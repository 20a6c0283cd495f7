"""Whether rows of one evaluation are also in another. An id alone does not say: without ids, rows are numbered."""

from __future__ import annotations

import numpy as np

from .evaluation import Evaluation

MAX_COMPARED = 1000


def count_same_rows(first: Evaluation, second: Evaluation) -> int:
    """How many of the first thousand shared ids have the same representation too; 0 where most of them have not."""
    _, in_first, in_second = np.intersect1d(first.row_ids, second.row_ids, return_indices=True)
    shared = [name for name in first.representations if name in second.representations]
    if not len(in_first) or not shared:
        return 0
    in_first = in_first[:MAX_COMPARED]
    in_second = in_second[:MAX_COMPARED]
    order = np.argsort(in_first)  # memory maps are read forwards
    a = np.asarray(first.representations[shared[0]][in_first[order]])
    b = np.asarray(second.representations[shared[0]][in_second[order]])
    if a.shape != b.shape:
        return 0
    same = int((a == b).all(axis=1).sum())
    return same if same > len(a) / 2 else 0
