"""What every plan asks of an audit: which slices to fix, and that no audited row is used for the fix."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

from ..core import Array, Audit, Evaluation, InputError, Slice
from ..core.apply import apply
from ..core.judgement import choose
from ..core.same_rows import count_same_rows
from ..explain.captions import DirectionCaptions


def check_whole(name: str, value: int, least: int) -> None:
    """Raise InputError for an option that is no whole number, or below the least that it may be."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"`{name}` must be a whole number of at least {least}; got {value}")


def target_slices(audit: Audit, ids: Sequence[str] | None) -> list[Slice]:
    """Return the slices that ids or words name; by default what people accepted, else the confirmed ones."""
    chosen = [slice_ for slice_ in choose(audit, ids).slices if slice_.column >= 0]
    for name in ids or ():
        if name in audit and audit[name].column < 0:
            raise InputError(f"slice {name} is defined by its outcomes and cannot be found in other rows; name another")
    return chosen


def place_targets(audit: Audit, targets: Sequence[Slice], rows: Evaluation) -> dict[str, Array]:
    """Return the (n,) weights of rows in each slice, by its id; raise InputError where one cannot be placed there."""
    weights = apply(audit, rows)
    lost = [slice_.id for slice_ in targets if slice_.id not in weights]
    if lost:
        raise InputError(
            f"these rows cannot be placed in {', '.join(lost)}: they lack the labels or predictions that the slice is "
            "within, or it is a list of other rows; add these columns, or name other slices"
        )
    return weights


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


def no_caption(slices: Sequence[Slice], use: str, side: str, instead: str) -> str:
    """Return why no slice has a caption on one side, and what to do. use: what for. instead: another cure."""
    described = [slice_.id for slice_ in slices if slice_.explanation(DirectionCaptions) is not None]
    if not described:
        return f"no slice has captions to {use}; audit with `texts` and method `directions`"
    return (
        f"no caption lies on the {side} side of {', '.join(described)}; {instead}, or audit with texts that say what "
        "may fail there"
    )
