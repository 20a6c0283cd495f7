"""What methods share: fits that need not converge, on several threads."""

from __future__ import annotations

import warnings
from threading import Event, Thread

from sklearn.exceptions import ConvergenceWarning

from errata.slicers.numerics import unconverged


def test_fits_on_several_threads_leave_the_filters_of_warnings_as_they_were() -> None:
    before = list(warnings.filters)
    second_began = Event()
    first_ended = Event()
    first_began = Event()
    ignored = []

    def first() -> None:
        with unconverged():
            first_began.set()
            second_began.wait(10)
        first_ended.set()

    def second() -> None:
        first_began.wait(10)
        with unconverged():
            second_began.set()
            first_ended.wait(10)
            ignored.append(any(action == "ignore" and kind is ConvergenceWarning for action, _, kind, *_ in filters()))

    threads = [Thread(target=first), Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ignored == [True]
    assert list(warnings.filters) == before


def filters() -> list[tuple[object, ...]]:
    return list(warnings.filters)
