"""The first waist of the house: what a model did on some rows. Anything can produce one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from . import validate
from .blocks import Array, Matrix, take
from .errors import InputError, MissingInput, unknown
from .media import Media

Task = Literal["classification", "multilabel", "regression", "loss"]


@dataclass(frozen=True)
class Origin:
    """Fingerprints of what was audited; None where nobody said."""

    model: str | None = None
    data: str | None = None
    code: str | None = None


@dataclass(frozen=True)
class Source:
    """Where a representation comes from, which decides who may confirm a slice found in it.

    `from_model`: it is a layer of the audited model and so contains its prediction. True unless
    somebody says otherwise, because that is the careful assumption.
    `reads`: what of a row's outcome it reads ("label", "prediction", "loss").
    """

    from_model: bool = True
    reads: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """Row i of every array is one example. Arrays may be memory-mapped; none is written to.

    Shapes: n examples, k classes, d dimensions, t tasks of a multi-label problem.
    """

    losses: Array | None = None  # (n,)  given, or derived; None only on unlabelled rows
    labels: Array | None = None  # (n,)  class index or regression target; (n, t) for multi-label
    probs: Array | None = None  # (n, k) probabilities, never logits; (n, t) for multi-label
    predictions: Array | None = None  # (n,) or (n, t)
    representations: Mapping[str, Matrix] = field(default_factory=dict)  # name -> (n, d)
    metadata: Mapping[str, Array] = field(default_factory=dict)  # name -> (n,)
    ids: Array | None = None  # (n,)  unique; always set once built
    media: Media | None = None
    groups: Array | None = None  # (n,)  rows that belong together: never split apart
    class_names: tuple[str, ...] | None = None
    task: Task | None = None  # inferred where nobody says; always set once built
    origin: Origin = Origin()
    sources: Mapping[str, Source] = field(default_factory=dict)  # of representations; missing: Source()

    def __post_init__(self) -> None:
        n = _count_rows(self)
        class_names = tuple(map(str, self.class_names)) if self.class_names is not None else None
        outcome = _checked_outcome(self, n, class_names)
        checked = {
            **outcome,
            "representations": {
                str(name): validate.representation(f"embedding:{name}", value, n)
                for name, value in self.representations.items()
            },
            "metadata": validate.columns(self.metadata, n),
            "ids": validate.identifiers(self.ids, n),
            "groups": _checked_groups(self.groups, n),
            "media": _checked_media(self.media, n),
        }
        for name in self.sources:
            if name not in checked["representations"]:
                raise unknown("representation", name, checked["representations"])
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "task", _task(self))

    def __len__(self) -> int:
        return len(self.row_ids)

    @property
    def row_ids(self) -> Array:
        """`ids`, which are always there once the evaluation is built."""
        assert self.ids is not None
        return self.ids

    @cached_property
    def errors(self) -> Array | None:
        """(n,) bool: the prediction differs from the label; None where that has no meaning."""
        if self.task != "classification" or self.predictions is None or self.labels is None:
            return None
        wrong: Array = self.predictions != self.labels
        return wrong

    @cached_property
    def fingerprint(self) -> str:
        """Of ids and outcomes in id order: two audits with this in common look at the same rows."""
        order = np.argsort(self.row_ids, kind="stable")
        digest = hashlib.blake2b(digest_size=16)
        for array in (self.row_ids, self.labels, self.predictions, self.losses):
            if array is not None:
                digest.update(_digestible(array[order]))
        return digest.hexdigest()

    def class_name(self, index: int) -> str:
        return self.class_names[index] if self.class_names is not None else str(index)

    @property
    def class_count(self) -> int:
        """Classes, or labels of a multi-label task; as far as the rows show where nothing names them."""
        if self.class_names is not None:
            return len(self.class_names)
        if self.probs is not None:
            return int(self.probs.shape[1])
        given = [array for array in (self.labels, self.predictions) if array is not None]
        return max((array.shape[1] if array.ndim == 2 else int(array.max()) + 1 for array in given), default=0)

    def source(self, representation: str) -> Source:
        return self.sources.get(representation, Source())

    def need(self, names: frozenset[str], who: str) -> None:
        """Raise, by name, for what `who` needs and this evaluation lacks."""
        for name in sorted(names):
            held: Any = getattr(self, name)
            if held is None or (isinstance(held, Mapping) and not held):
                raise MissingInput(f"{who} needs `{name}`, which this evaluation does not have; add it to the input")

    def representation(self, name: str | None, who: str) -> str:
        """The name of the representation to use: the one asked for, or the only or first one."""
        self.need(frozenset({"representations"}), who)
        if name is None:
            return next(iter(self.representations))
        if name not in self.representations:
            raise unknown("representation", name, self.representations)
        return name

    def rows(self, index: Array) -> Evaluation:
        """Some of the rows, in the order given. Nothing is checked again."""
        index = np.asarray(index)
        index = np.flatnonzero(index) if index.dtype == bool else index
        picked: dict[str, Any] = {
            name: None if (array := getattr(self, name)) is None else array[index]
            for name in ("losses", "labels", "probs", "predictions", "ids", "groups")
        }
        picked["representations"] = {name: take(array, index) for name, array in self.representations.items()}
        picked["metadata"] = {name: array[index] for name, array in self.metadata.items()}
        picked["media"] = self.media.rows(index) if self.media is not None else None
        return self._unchecked(picked)

    def by_id(self) -> Evaluation:
        """The rows in the order of their ids; itself where they already are."""
        order = np.argsort(self.row_ids, kind="stable")
        return self if np.array_equal(order, np.arange(len(order))) else self.rows(order)

    def tasks(self) -> Iterator[tuple[str, Evaluation]]:
        """(name, evaluation) for each task: one, or a binary view of each label of a multi-label problem."""
        if self.task != "multilabel":
            yield "", self
            return
        assert self.labels is not None
        for t in range(self.labels.shape[1]):
            yield self.class_name(t), self._binary(t)

    def _binary(self, t: int) -> Evaluation:
        assert self.labels is not None
        labels = self.labels[:, t].astype(np.int64)
        positive = None if self.probs is None else self.probs[:, t].astype(np.float64)
        probs = None if positive is None else np.stack([1 - positive, positive], axis=1)
        name = self.class_name(t)
        return self._unchecked(
            {
                "labels": labels,
                "probs": probs,
                "predictions": None if self.predictions is None else self.predictions[:, t].astype(np.int64),
                "losses": self.losses if probs is None else _cross_entropy(probs, labels),
                "class_names": (f"not {name}", name),
                "task": "classification",
            }
        )

    def _unchecked(self, changes: Mapping[str, Any]) -> Evaluation:
        """A copy with other arrays that are known to be good."""
        new = object.__new__(Evaluation)
        for name in self.__dataclass_fields__:
            object.__setattr__(new, name, changes.get(name, getattr(self, name)))
        return new

    def with_representation(self, name: str, array: Any, source: Source | None = None) -> Evaluation:
        """The same rows with one more named representation."""
        return replace(
            self,
            representations={**self.representations, name: array},
            sources={**self.sources, name: source or Source()},
        )


def _digestible(array: Array) -> bytes:
    """The same bytes for the same values, whatever the width they are stored in."""
    if array.dtype.kind in "US":
        return "\0".join(map(str, array.tolist())).encode()
    wide = np.int64 if array.dtype.kind in "biu" else np.float64
    return np.ascontiguousarray(array, dtype=wide).tobytes()


def _count_rows(ev: Evaluation) -> int:
    given = {
        "losses": ev.losses,
        "labels": ev.labels,
        "probs": ev.probs,
        "predictions": ev.predictions,
        **{f"embedding:{name}": array for name, array in ev.representations.items()},
    }
    for name, array in given.items():
        if array is not None:
            if np.ndim(array) == 0:
                raise InputError(f"`{name}` must be an array with one row an example; got a single value")
            n = len(array)
            if n == 0:
                raise InputError(f"`{name}` has no rows; give at least one")
            return n
    raise MissingInput("an evaluation needs losses, or labels with probs or predictions, or a representation; got none")


def _checked_outcome(ev: Evaluation, n: int, class_names: tuple[str, ...] | None) -> dict[str, Any]:
    """Losses, labels, probs and predictions, checked together and derived where they can be."""
    given = {name: _checked_classes(name, getattr(ev, name), n) for name in ("labels", "predictions")}
    given, class_names = validate.encode_text_classes(given, class_names)
    labels, predictions = given["labels"], given["predictions"]
    multilabel = labels is not None and labels.ndim == 2
    probs = None if ev.probs is None else validate.probabilities(ev.probs, n, independent=multilabel)
    if multilabel and labels is not None:
        labels = _checked_multilabel(labels, probs, predictions)
    if probs is not None and not multilabel:
        labels, predictions = _whole("labels", labels, probs), _whole("predictions", predictions, probs)
    if predictions is None and probs is not None:
        predictions = (probs >= 0.5).astype(np.int64) if multilabel else probs.argmax(axis=1)
    _check_names(class_names, probs, labels, predictions)
    losses = None if ev.losses is None else validate.vector("losses", ev.losses, n)
    losses = _derived_losses(labels, probs, predictions, ev.task) if losses is None else losses
    return {
        "labels": labels, "probs": probs, "predictions": predictions, "losses": losses, "class_names": class_names,
    }  # fmt: skip


def _checked_classes(name: str, value: Any, n: int) -> Array | None:
    """(n,) numbers or text, or (n, t) numbers, with no NaN."""
    if value is None:
        return None
    array = validate.as_array(name, value)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise InputError(f"`{name}` must have shape (n,), or (n, t) for multi-label; got shape {array.shape}")
    validate.check_length(name, array, n)
    if array.ndim == 2 and array.dtype.kind in "US":
        raise InputError(f"`{name}` of shape {array.shape} must be 0 or 1, one column a label; got text")
    if array.dtype.kind not in "US":
        validate.check_numeric(name, array)
        validate.check_finite(name, array)
    return array.astype(np.int64) if array.dtype.kind == "b" else array


def _checked_multilabel(labels: Array, probs: Array | None, predictions: Array | None) -> Array:
    for name, array in (("probs", probs), ("predictions", predictions)):
        if array is not None and array.shape != labels.shape:
            raise InputError(f"`{name}` must have the shape of multi-label `labels`, {labels.shape}; got {array.shape}")
    if not np.isin(labels, (0, 1)).all():
        row = int(np.flatnonzero(~np.isin(labels, (0, 1)).all(axis=1))[0])
        raise InputError(f"multi-label `labels` must be 0 or 1; got {labels[row].max()} at row {row}")
    return labels.astype(np.int64)


def _whole(name: str, values: Array | None, probs: Array) -> Array | None:
    """Class indices as whole numbers that `probs` has a column for."""
    if values is None:
        return None
    if values.ndim != 1:
        raise InputError(f"`{name}` must have shape (n,); got shape {values.shape}")
    if values.dtype.kind == "f" and (values != np.round(values)).any():
        row = int(np.flatnonzero(values != np.round(values))[0])
        raise InputError(f"`{name}` must be class indices where `probs` are given; got {values[row]} at row {row}")
    values = values.astype(np.int64)
    validate.classes_in_range(name, values, probs.shape[1])
    return values


def _check_names(class_names: tuple[str, ...] | None, probs: Array | None, *classes: Array | None) -> None:
    if class_names is None:
        return
    if probs is not None and len(class_names) != probs.shape[1]:
        raise InputError(f"`class_names` has {len(class_names)} names where `probs` has {probs.shape[1]} columns")
    if len(set(class_names)) != len(class_names):
        raise InputError("`class_names` must be unique; a name stands there twice")
    for array in classes:
        whole = array is not None and array.ndim == 1 and array.dtype.kind in "iu"
        if whole and array is not None and array.max() >= len(class_names):
            raise InputError(f"class {array.max()} has no name: `class_names` has only {len(class_names)}")


def _checked_groups(value: Any, n: int) -> Array | None:
    if value is None:
        return None
    groups = validate.as_array("groups", value)
    if groups.ndim != 1:
        raise InputError(f"`groups` must have one value a row; got shape {groups.shape}")
    validate.check_length("groups", groups, n)
    validate.check_finite("groups", groups)
    return groups


def _checked_media(media: Media | None, n: int) -> Media | None:
    if media is not None and len(media) != n:
        raise InputError(f"`media` has {len(media):,} items where the evaluation has {n:,} rows; give one a row")
    return media


def _task(ev: Evaluation) -> Task:
    """What was said, where the arrays allow it, or what the arrays look like."""
    inferred: Task = "loss"
    if ev.labels is not None:
        inferred = "multilabel" if ev.labels.ndim == 2 else "regression" if _looks_continuous(ev) else "classification"
    if ev.task is None or ev.task == inferred:
        return inferred
    if (ev.task, inferred) == ("regression", "classification") and ev.probs is None:
        return "regression"  # whole-number targets, such as ratings
    raise InputError(f"`task` is {ev.task!r}, but the arrays are those of {inferred!r}; leave `task` out")


def _looks_continuous(ev: Evaluation) -> bool:
    """Regression: no probabilities, and a label or a prediction that is not a whole number."""
    if ev.probs is not None:
        return False
    given = [array for array in (ev.labels, ev.predictions) if array is not None]
    return any(array.dtype.kind == "f" and bool((array != np.round(array)).any()) for array in given)


def _derived_losses(
    labels: Array | None, probs: Array | None, predictions: Array | None, task: Task | None
) -> Array | None:
    """Cross-entropy of labels and probs; squared error of a regression; 0/1 where only classes are known."""
    if labels is None:
        return None
    if probs is not None:
        return _cross_entropy(probs, labels)
    if predictions is None:
        return None
    if labels.ndim == 2:
        mismatch: Array = (labels != predictions).mean(axis=1)
        return mismatch
    squared: Array = np.square(labels.astype(np.float64) - predictions)
    both_whole = (labels == np.round(labels)).all() and (predictions == np.round(predictions)).all()
    return (labels != predictions).astype(np.float64) if both_whole and task != "regression" else squared


def _cross_entropy(probs: Array, labels: Array) -> Array:
    """(n,) nats; the mean over tasks for multi-label probabilities."""
    if labels.ndim == 2:
        true = np.where(labels == 1, probs, 1 - probs)
        nats: Array = -np.log(np.clip(true, validate.FLOOR, 1)).mean(axis=1)
        return nats
    true = probs[np.arange(len(labels)), labels].astype(np.float64)
    own: Array = -np.log(np.clip(true, validate.FLOOR, 1))
    return own
