"""Parts of rows on threads: every row once, results in order, and the same bits however many threads there are."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import errata
from errata.core import InputError
from errata.core.scratch import empty_array
from errata.engine import Local, open_engine, parts_of, read_memory
from errata.engine.parts import PART_BYTES

ROWS = 300_000  # of 16 columns of doubles: three parts


@pytest.fixture(scope="module")
def X() -> Any:
    return np.random.default_rng(0).normal(size=(ROWS, 16))


def moments(block: Any, centre: Any) -> tuple[Any, ...]:
    offset = block - centre
    return len(block), offset.sum(axis=0), offset.T @ offset


def test_parts_cover_every_row_once_and_are_no_larger_than_they_may_be(X: Any) -> None:
    parts = parts_of(X)
    assert len(parts) > 1
    assert np.array_equal(np.concatenate([np.arange(ROWS)[rows] for rows in parts]), np.arange(ROWS))
    assert max((rows.stop - rows.start) * 16 * 8 for rows in parts) <= PART_BYTES


def test_totals_are_those_of_all_rows_at_once(X: Any) -> None:
    with Local().hold(X) as rows:
        n, sums, squares = rows.total(moments, np.ones(16))
    expected = moments(X, np.ones(16))
    assert n == ROWS
    assert np.allclose(sums, expected[1], rtol=1e-12)
    assert np.allclose(squares, expected[2], rtol=1e-12)


def test_the_number_of_threads_changes_no_bit(X: Any) -> None:
    results = [Local(threads=threads).hold(X).total(moments, np.zeros(16)) for threads in (1, 2, 3, 5)]
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_results_come_in_the_order_of_items_and_few_are_ahead() -> None:
    started: list[int] = []
    gate = threading.Event()

    def work(item: int) -> int:
        started.append(item)
        if item == 0:
            gate.wait(5)
        return item

    results = Local(threads=2).each(work, range(50))
    threading.Timer(0.2, gate.set).start()
    assert next(results) == 0
    assert len(started) <= 4  # not all fifty: their results would fill the memory
    assert list(results) == list(range(1, 50))


@pytest.mark.parametrize("threads", [1, 2])
def test_products_have_a_thread_each_and_all_of_them_afterwards(threads: int) -> None:
    def limits(item: int) -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(3, user_api="blas"):
        before = limits(0)
        one, other = (Local(threads=threads).each(limits, range(4)) for _ in range(2))
        during = [next(one), next(other), *one, *other]  # the first to begin ends first
        assert limits(0) == before
    assert set(before) == {3}
    assert {count for counts in during for count in counts} == {1}


def test_an_error_in_one_part_is_the_callers() -> None:
    def fail(item: int) -> int:
        raise ValueError(f"part {item}")

    with pytest.raises(ValueError, match="part 0"):
        list(Local(threads=2).each(fail, range(3)))


def test_an_evaluation_is_cut_into_views(X: Any) -> None:
    evaluation = errata.Evaluation(losses=X[:, 0], representations={"x": X}, metadata={"m": np.arange(ROWS)})
    with Local().hold(evaluation) as rows:
        pieces = [part for _, part in rows.each(lambda part: part)]
    assert sum(map(len, pieces)) == ROWS
    assert np.concatenate([piece.metadata["m"] for piece in pieces]).tolist() == list(range(ROWS))
    assert all(np.shares_memory(piece.representations["x"], X) for piece in pieces)


def test_a_large_array_lies_in_a_file(tmp_path: Any) -> None:
    small = empty_array((10, 3), float, 64 << 20)
    large = empty_array((2_000_000, 3), float, 64 << 20, "F")
    assert not isinstance(small, np.memmap)
    assert isinstance(large, np.memmap)
    large[:, 1] = 7
    assert large[:, 1].flags.c_contiguous
    assert large[:, 1].sum() == 14_000_000


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 << 30), ("500 mb", 500 << 20), ("1.5GiB", 3 << 29), (2**30, 2**30)]
)
def test_sizes_of_memory(text: Any, size: int) -> None:
    assert read_memory(text) == size


@pytest.mark.parametrize("text", ["much", "12", "-1GB", "1PB"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="such as 2GB"):
        read_memory(text)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(InputError, match="spark"):
        open_engine("spark")


@pytest.mark.parametrize("name", ["local:3", "cuda:0", "ray:", "ray://", "ray:host", "ray:host:port", "ray:h:1 x", ""])
def test_an_engine_with_an_address_that_is_none_is_refused(name: str) -> None:
    """It was taken, and told only once rows were sent there; of methods that send none, never."""
    with pytest.raises(InputError, match=r"unknown engine|no address of Ray"):
        open_engine(name)
