"""Are rows of one evaluation also in another? An id alone does not say: without given ids, all rows are numbered."""

from __future__ import annotations

import numpy as np

from .evaluation import Evaluation

LOOKED_AT = 1000


def same_rows(one: Evaluation, other: Evaluation) -> int:
    """How many of the first thousand shared ids have the same values too; 0 where most of them have not."""
    _, mine, theirs = np.intersect1d(one.row_ids, other.row_ids, return_indices=True)
    shared = [name for name in one.representations if name in other.representations]
    if not len(mine) or not shared:
        return 0
    few = slice(0, LOOKED_AT)
    a = np.asarray(one.representations[shared[0]][np.sort(mine[few])])
    b = np.asarray(other.representations[shared[0]][theirs[few][np.argsort(mine[few])]])
    same = int((a == b).all(axis=1).sum()) if a.shape == b.shape else 0
    return same if same > len(a) / 2 else 0
