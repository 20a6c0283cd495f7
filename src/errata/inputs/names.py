"""The names that files and tables use for what an Evaluation holds, and how one is built from them."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..core import Evaluation, InputError, Media, Source
from ..core.errors import unknown
from ..core.evaluation import Task
from .class_order import InputWarning
from .media import ImagePaths, Texts

OUTCOMES = ("losses", "labels", "probs", "predictions", "ids", "groups")
MEDIA = ("text", "image_path", "image")
KNOWN = (*OUTCOMES, *MEDIA, "embedding")
MANY_CLASSES = 20  # whole numbers with more values than this may well be a regression
TASKS = ("classification", "multilabel", "regression", "loss")
PREFIXES = ("embedding:", "metadata:")
ALL = "all"  # named as metadata, unless it is a column: every column that is nothing else


@dataclass(frozen=True)
class Reading:
    """How the columns of a file or table are to be read."""

    metadata: tuple[str, ...] = ()  # columns with other names that are metadata; `all` for all of them
    foreign: tuple[str, ...] = ()  # representations that do not come from the audited model
    folder: Path = Path()  # where relative image paths start
    where: str = "the table"  # for error sentences
    task: Task | None = None  # where the columns could be of two

    @classmethod
    def of(
        cls, metadata: Sequence[str], foreign: Sequence[str], folder: Path, where: str, task: str | None = None
    ) -> Reading:
        """From names, of which a single one may be a plain string."""
        if isinstance(metadata, str):
            metadata = (metadata,)
        if isinstance(foreign, str):
            foreign = (foreign,)
        if task not in (None, *TASKS):
            raise unknown("task", str(task), TASKS)
        return cls(tuple(metadata), tuple(foreign), folder, where, cast("Task | None", task))

    def takes_all(self, names: Collection[str]) -> bool:
        """Whether every further column is metadata; names: all columns."""
        return ALL in self.metadata and ALL not in names

    def named(self, names: Collection[str]) -> Reading:
        """The reading without `all`, where that is no column."""
        if not self.takes_all(names):
            return self
        return replace(self, metadata=tuple(name for name in self.metadata if name != ALL))

    def with_further(self, names: Collection[str], further: Iterable[str]) -> Reading:
        """The reading with `all` as the columns that it stands for; further: those that may be metadata."""
        if not self.takes_all(names):
            return self
        named = self.named(names)
        return replace(named, metadata=tuple(dict.fromkeys((*named.metadata, *further))))


def has_prefix(name: str, prefixes: Iterable[str] = PREFIXES) -> bool:
    """Whether a name starts with one of the prefixes and goes on behind it."""
    return any(name.startswith(prefix) and len(name) > len(prefix) for prefix in prefixes)


def check_metadata(names: Collection[str], reading: Reading) -> None:
    """Raise an InputError where a column named as metadata does not exist."""
    for name in reading.metadata:
        if name not in names:
            raise unknown(f"metadata column in {reading.where}:", name, names)


def build(columns: Mapping[str, Any], reading: Reading, class_names: Sequence[str] | None = None) -> Evaluation:
    """An Evaluation from arrays under the known names; `image` holds a Media object."""
    representations = _representations(columns)
    for name in reading.foreign:
        if name not in representations:
            raise unknown("representation", name, representations)
    outcome, note = settle_numbers({name: columns[name] for name in OUTCOMES if name in columns}, reading.task)
    if note is not None:
        warnings.warn(f"{reading.where}: {note}", InputWarning, stacklevel=2)
    class_names = None if class_names is None else tuple(class_names)
    return Evaluation(
        **outcome,
        task=reading.task,
        representations=representations,
        metadata=_metadata(columns, reading),
        media=_media(columns, reading),
        class_names=class_names,
        sources={name: Source(from_model=False) for name in reading.foreign},
    )


def settle_numbers(outcome: Mapping[str, Any], task: str | None) -> tuple[dict[str, Any], str | None]:
    """The outcome with predictions as probabilities where they are, and what is to be said where it could be otherwise.

    Labels of 0 and 1 with predictions between them are not a regression unless `task` says so.
    """
    if task is not None or "probs" in outcome or not {"labels", "predictions"} <= set(outcome):
        return dict(outcome), None
    labels = np.asarray(outcome["labels"])
    predictions = np.asarray(outcome["predictions"])
    if labels.ndim != 1 or any(array.dtype.kind not in "biuf" for array in (labels, predictions)):
        return dict(outcome), None
    if not len(labels):
        return dict(outcome), None  # the door refuses it, with the number of rows
    whole = [bool((array == np.round(array)).all()) for array in (labels, predictions)]
    if not whole[0]:
        return dict(outcome), None
    distinct = np.unique(labels)
    span = f"{len(distinct)} values, {distinct[0]:g} to {distinct[-1]:g}"
    if not whole[1] and np.isin(distinct, (0, 1)).all() and predictions.min() >= 0 and predictions.max() <= 1:
        probable = {name: value for name, value in outcome.items() if name != "predictions"}
        note = "`predictions` lie between labels of 0 and 1, so they are read as the probability of 1"
        return {**probable, "probs": predictions}, f'{note}; task="regression" reads them as values'
    if not whole[1]:
        note = f"`labels` are whole numbers ({span}) and `predictions` are not, so this is read as a regression"
        return dict(outcome), f'{note}; task="regression" says so'
    if len(distinct) > MANY_CLASSES:
        note = f"`labels` and `predictions` are whole numbers ({span}), so they are read as classes"
        return dict(outcome), f'{note}; task="regression" reads them as values'
    return dict(outcome), None


def _representations(columns: Mapping[str, Any]) -> dict[str, Any]:
    representations: dict[str, Any] = {}
    for column, value in columns.items():
        name = column.partition(":")[2] or column
        if column == "embedding" or has_prefix(column, ("embedding:",)):
            if name in representations:
                raise InputError("`embedding` and `embedding:embedding` have one name; rename one of them")
            representations[name] = value
    return representations


def _metadata(columns: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    named = {name.partition(":")[2]: value for name, value in columns.items() if has_prefix(name, ("metadata:",))}
    for column in reading.metadata:
        if has_prefix(column, ("metadata:",)):
            name = column.partition(":")[2]
        else:
            name = column
        if name in named and column != f"metadata:{name}":
            raise InputError(f"`{name}` and `metadata:{name}` have one name in {reading.where}; rename one of them")
        named[name] = columns[column]
    return named


def _media(columns: Mapping[str, Any], reading: Reading) -> Media | None:
    """What is shown of a row: there is room for one; the others must be named as metadata."""
    names = [name for name in MEDIA if name in columns]
    if len(names) > 1:
        names = [name for name in names if name not in reading.metadata]
    if len(names) > 1:
        raise InputError(
            f"{reading.where} has both `{names[0]}` and `{names[1]}`, but a row shows one of them; "
            f"name the other as metadata, or drop it"
        )
    if not names:
        return None
    name = names[0]
    value = columns[name]
    if name == "image":
        return value  # type: ignore[no-any-return]  # a Media from the reader of tables
    if np.ndim(value) != 1:
        raise InputError(f"`{name}` must have one text a row; got shape {np.shape(value)} in {reading.where}")
    if name == "text":
        return Texts(value)
    return ImagePaths(value, reading.folder)
