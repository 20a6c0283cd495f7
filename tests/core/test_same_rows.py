"""The same id is the same row only where its values are the same too."""

import numpy as np

from errata.core import Evaluation
from errata.core.same_rows import count_same_rows


def rows(X, ids) -> Evaluation:
    return Evaluation(losses=np.zeros(len(X)), representations={"seen": X}, ids=np.array(ids))


def test_shared_rows_are_counted_whatever_their_order():
    X = np.arange(20.0).reshape(10, 2)
    one, other = rows(X, np.arange(10)), rows(X[::-1][:4], np.arange(10)[::-1][:4])
    assert count_same_rows(one, other) == count_same_rows(other, one) == 4


def test_equal_numbers_of_other_rows_are_no_overlap():
    """Rows are numbered from 0 where nobody names them; a few may have equal values by chance."""
    X, Y = np.arange(20.0).reshape(10, 2), -np.arange(20.0).reshape(10, 2)
    Y[3] = X[3]
    assert count_same_rows(rows(X, np.arange(10)), rows(Y, np.arange(10))) == 0


def test_without_a_common_representation_nothing_is_known():
    bare = Evaluation(losses=np.zeros(3), ids=np.arange(3))
    assert count_same_rows(bare, bare) == 0
    wide = rows(np.ones((3, 5)), np.arange(3))
    assert count_same_rows(wide, rows(np.ones((3, 4)), np.arange(3))) == 0


def test_half_of_the_rows_alike_is_not_most():
    X = np.arange(20.0).reshape(10, 2)
    Y = np.where(np.arange(10)[:, None] < 5, X, -1 - X)
    assert count_same_rows(rows(X, np.arange(10)), rows(Y, np.arange(10))) == 0
    Y[5] = X[5]
    assert count_same_rows(rows(X, np.arange(10)), rows(Y, np.arange(10))) == 6
