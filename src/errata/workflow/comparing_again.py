"""Two audits compared again and again, as a page asks for it: people decide in between, and nobody searches twice."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock

from ..core import Audit, Comparison, Progress, silent
from .comparing import Asked, compare_as_asked


class ComparisonWith:
    """What `errata compare A B` says of an audit A, which people may change, and an audit B.

    Which slices are compared depends on what people decided; what a search finds does not, and it takes most of the
    time. So a comparison is made anew where the audit is another one than before, and its search is not.

    Parameters
    ----------
    second : Audit
        Of the second model.
    """

    def __init__(self, second: Audit) -> None:
        self._second = second
        self._asked = Asked(most_changed=None)
        self._lock = Lock()  # who asks while it searches gets the same
        self._last: tuple[Audit, Comparison] | None = None

    def __call__(self, first: Audit, progress: Progress = silent) -> Comparison:
        """The comparison; the first audit is always the same but for what people decided of its slices."""
        with self._lock:
            if self._last is None or self._last[0] is not first:
                asked = replace(self._asked, progress=progress)
                self._last = first, compare_as_asked(first, self._second, asked)
            return self._last[1]
