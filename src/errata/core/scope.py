"""Which rows a slice's rule is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from .blocks import Array
from .errors import InputError, unknown
from .evaluation import Evaluation

Scoping = Literal["none", "label", "prediction"]
SCOPINGS = ("none", "label", "prediction")

FEWEST_ERRORS = 10  # of search rows, for a class to be searched on its own: fewer are hardly a group
ROWS_PER_ERROR = 5  # a class has this many times as many rows: a slice is compared with the rest of its class
MOST_SCOPES = 20  # classes that are searched on their own, those with most errors; as many as slices are shown
NAMED = 3  # classes of a pooled scope that are named; of more, two


def rows_in_scope(evaluation: Evaluation, scope: Mapping[str, Any] | None) -> Array:
    """The rows that a slice's rule is about, and that the slice is compared within.

    Parameters
    ----------
    evaluation : Evaluation
        The rows to choose from.
    scope : mapping, optional
        `label`, `prediction` or the name of a metadata column -> its value, or a list of values that are pooled; None
        or empty for all rows.

    Returns
    -------
    array
        (n,) bool.
    """
    mask = np.ones(len(evaluation), dtype=bool)
    for key, value in check_scope(scope).items():
        column = _column(evaluation, key)
        if column is None:
            raise InputError(f"a slice is limited to {key} {value!r}, which this evaluation does not have; add it")
        if is_pooled(value):
            mask &= np.isin(column, list(value))
        else:
            mask &= column == value
    return mask


def can_place(evaluation: Evaluation, scope: Mapping[str, Any] | None) -> bool:
    """Whether these rows have what a scope reads. Parameters as of `rows_in_scope`."""
    return all(_column(evaluation, key) is not None for key in check_scope(scope))


def check_scope(scope: Any) -> Mapping[str, Any]:
    """The scope; an InputError where it comes from a file that somebody changed."""
    if not scope:
        return {}
    if not isinstance(scope, Mapping):
        raise InputError(f"the scope of a slice must map columns to values; got {scope!r}; write its audit again")
    return scope


def _column(evaluation: Evaluation, key: str) -> Array | None:
    """(n,) what a key of a scope reads; None where these rows do not have it."""
    columns = {"label": evaluation.labels, "prediction": evaluation.predictions}
    return columns.get(key, evaluation.metadata.get(key))


def is_pooled(value: Any) -> bool:
    """Whether the value of a scope is several classes that are searched as one."""
    return isinstance(value, list | tuple)


def scopes(evaluation: Evaluation, within: Scoping, least: int = FEWEST_ERRORS) -> list[dict[str, Any]]:
    """The parts of the search rows that are searched one by one.

    Parameters
    ----------
    evaluation : Evaluation
        The search rows.
    within : str
        "none", "label" or "prediction".
    least : int
        Errors of a class, on five times as many rows, for a scope of its own. Where errors have no meaning, rows count
        alone.

    Returns
    -------
    list of dict
        One scope a class, in the order of classes, at most 20. The others are pooled into one scope, the last, unless
        they have too few errors together. `[{}]`, all rows, where there are no classes or only one scope would be left.
    """
    if within not in SCOPINGS:
        raise unknown("`within`", within, SCOPINGS)
    columns = {"label": evaluation.labels, "prediction": evaluation.predictions}
    column = columns.get(within)
    if column is None or evaluation.task != "classification":
        return [{}]
    classes, codes = np.unique(column, return_inverse=True)
    rows = np.bincount(codes, minlength=len(classes))
    if evaluation.errors is None:
        evidence = rows // ROWS_PER_ERROR
    else:
        evidence = np.bincount(codes[evaluation.errors], minlength=len(classes))
    enough = (evidence >= least) & (rows >= least * ROWS_PER_ERROR)
    ranked = np.argsort(-evidence, kind="stable")
    own = np.zeros(len(classes), dtype=bool)
    own[ranked[enough[ranked]][:MOST_SCOPES]] = True
    found: list[dict[str, Any]] = [{within: int(value)} for value in classes[own]]
    if evidence[~own].sum() >= least and rows[~own].sum() >= least * ROWS_PER_ERROR:
        found.append({within: [int(value) for value in classes[~own]]})
    covers_all = len(found) == 1 and rows_in_scope(evaluation, found[0]).all()
    if not found or covers_all:
        return [{}]
    return found


def scope_values(evaluation: Evaluation, scope: Mapping[str, Any] | None) -> dict[str, str]:
    """The values of a scope as text: classes by their names where they have any, pooled ones as "cat, dog or bird".

    Parameters
    ----------
    evaluation : Evaluation
        What names the classes.
    scope : mapping, optional
        As for `rows_in_scope`.
    """
    values = {}
    for key, value in (scope or {}).items():
        by_class = key in ("label", "prediction") and evaluation.task == "classification"
        members = list(value) if is_pooled(value) else [value]
        if by_class:
            members = [evaluation.class_name(int(member)) for member in members]
        values[key] = _either([str(member) for member in members])
    return values


def _either(texts: list[str]) -> str:
    """ "cat", "cat or dog", "cat, dog or bird"; "cat, dog or 3 others"."""
    if len(texts) > NAMED:
        texts = [*texts[: NAMED - 1], f"{len(texts) - NAMED + 1} others"]
    if len(texts) == 1:
        return texts[0]
    return f"{', '.join(texts[:-1])} or {texts[-1]}"


def scope_in_words(evaluation: Evaluation, scope: Mapping[str, Any] | None) -> str:
    """A scope in words: "label cat and prediction dog"; nothing for all rows. Parameters as of `scope_values`."""
    return " and ".join(f"{key} {value}" for key, value in scope_values(evaluation, scope).items())
