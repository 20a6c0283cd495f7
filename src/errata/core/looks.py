"""What counts as one look at held-out rows: the same rows, outcomes and settings are the same look, however often.

A repeated look gives the same verdicts, so it is no further chance of a false one. Anything that could change a verdict
makes another look: other representations, columns or groups, a method or option, the seed, alpha, another version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .evaluation import Evaluation


@dataclass(frozen=True)
class EarlierLook:
    """An audit of the same rows and outcomes that is already there.

    Attributes
    ----------
    look : str
        What `identify_look` gave for it; of audits before version 0.4, anything unique.
    run : int
        Which look it was.
    """

    look: str
    run: int


def run_number(look: str, earlier: Iterable[EarlierLook]) -> int:
    """Which look at the rows this is: that of the same look where it is repeated, else one more than there were.

    Parameters
    ----------
    look : str
        What `identify_look` gives.
    earlier : iterable of EarlierLook
        Audits of the same rows and outcomes.
    """
    runs: dict[str, int] = {}
    for known in earlier:
        runs[known.look] = min(known.run, runs.get(known.look, known.run))
    if look in runs:
        return runs[look]
    # Some of the audits may have been removed: their looks were looks all the same.
    return 1 + max([len(runs), *runs.values()])


def identify_look(evaluation: Evaluation, settings: Mapping[str, Any], train: Evaluation | None = None) -> str:
    """A hash of all that decides the verdicts of an audit.

    Parameters
    ----------
    evaluation : Evaluation
        The rows, as they were given. Their order does not matter.
    settings : mapping
        JSON: methods, options, seed and so on; not which run it is.
    train : Evaluation, optional
        Training rows that methods read.
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    for rows in (evaluation, train):
        if rows is not None:
            digest.update(rows.content.encode())
    return digest.hexdigest()
