"""What an input format declares: the registry in `registry.py` lists them, `collect` and `read` iterate over it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import Evaluation, InputError
from .names import Reading


@dataclass(frozen=True)
class FileFormat:
    """Files with certain suffixes.

    name: in the registry. suffixes: in lower case, with their dot. read: (path, reading) -> Evaluation; the path
    exists and is not empty, and `reading` has the options of `errata.inputs.read`.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path, Reading], Evaluation]


@dataclass(frozen=True)
class ObjectFormat:
    """Objects in memory: a table, a model with its data.

    name: in the registry. description: what `collect` takes, for its error sentence. accepts: whether an object is of
    this format; it is asked of every object, so it must not import what an object may come from. arguments: from the
    `data` of `collect(source, data)` to the positional arguments behind `source`; it raises where they are not right.
    collect: (source, *arguments, **options) -> Evaluation; its keyword-only parameters are the options. passes_to: the
    function whose keyword-only parameters they are, where `collect` hands them on.
    """

    name: str
    description: str
    accepts: Callable[[Any], bool]
    arguments: Callable[[Any], tuple[Any, ...]]
    collect: Callable[..., Evaluation]
    passes_to: Callable[..., Evaluation] | None = None


InputFormat = FileFormat | ObjectFormat


def refuse_data(kind: str, data: Any) -> tuple[Any, ...]:
    """The arguments of a format that takes nothing beside its source."""
    if data is not None:
        raise InputError(f"{kind} holds all there is, so collect takes no data beside it; got {type(data).__name__}")
    return ()
