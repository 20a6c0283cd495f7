"""What every plan asks of an audit: which slices to fix, and that no audited row is used for the fix."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import Audit, Evaluation, InputError, Slice
from ..core.errors import unknown
from ..core.same_rows import count_same_rows


def target_slices(audit: Audit, ids: Sequence[str] | None) -> list[Slice]:
    """Return the slices with these ids; without ids, the confirmed slices that are worse than the rest."""
    if ids is None:
        return [slice_ for slice_ in audit.confirmed if slice_.side == "hard" and slice_.column >= 0]
    if isinstance(ids, str):
        raise InputError(f"`slices` must be a list of ids; got the text {ids!r}; write [{ids!r}]")
    known = {slice_.id: slice_ for slice_ in audit.slices if slice_.column >= 0}
    for name in ids:
        if name not in known:
            raise unknown("slice", name, known)
    return [known[name] for name in ids]


def no_targets(audit: Audit) -> str:
    """Return the sentence of a plan that is empty because the audit has no confirmed slice."""
    return f"no slice of {len(audit.slices)} is confirmed; name slices with `slices` to fix them anyway"


def refuse_audited(audit: Audit, rows: Evaluation, use: str) -> None:
    """Raise InputError where `rows` shares rows with the audit.

    A slice was chosen because it fails on the audited rows, so a fix measured on them looks better than it is.
    """
    shared = count_same_rows(audit.evaluation, rows)
    if shared:
        raise InputError(f"at least {shared} rows of the audit are also {use}; give rows that were not audited")
