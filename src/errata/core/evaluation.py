"""What a model did on some rows: labels, predictions, losses, representations. Every method reads this."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from . import validate
from .blocks import Array, Matrix, blocks, take
from .brief import evaluation_in_brief
from .errors import InputError, MissingInput, missing, unknown
from .id_order import blocks_in_order, id_order
from .media import Media
from .scratch import fill_rows
from .views import view_of

INFLUENCE = "influence"  # the representation that holds influence embeddings

Task = Literal["classification", "multilabel", "regression", "loss"]


@dataclass(frozen=True)
class Origin:
    """Fingerprints of what was audited; None where not recorded.

    Parameters
    ----------
    model, data, code : str, optional
        Any text that identifies them, such as a hash or a version.
    """

    model: str | None = None
    data: str | None = None
    code: str | None = None


@dataclass(frozen=True)
class Source:
    """Where a representation comes from, which decides how a slice found in it can be confirmed.

    Parameters
    ----------
    from_model : bool
        Whether it is a layer of the audited model and so contains its prediction. Default: True, the careful
        assumption. An audit measures it for a representation without a source.
    reads : frozenset of str
        What of a row's outcome it reads: "label", "prediction", "loss".

    Examples
    --------
    >>> import errata, numpy as np
    >>> clip = errata.Source(from_model=False)
    >>> rows = errata.Evaluation(losses=np.zeros(2), representations={"clip": np.eye(2)}, sources={"clip": clip})
    >>> rows.source("clip").from_model
    False
    """

    from_model: bool = True
    reads: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """What a model did on n examples: row i of every array is one example.

    Every array is checked once, when the evaluation is built. Arrays may be memory-mapped; none is written to.

    Parameters
    ----------
    losses : array, optional
        (n,). Default: derived from labels and probs (cross-entropy), or from labels and predictions (0 or 1, or the
        squared error of a regression); None on rows without labels.
    labels : array, optional
        (n,) class indices, class names or regression targets; (n, t) of 0 and 1 for t labels of a multi-label task.
    probs : array, optional
        (n, k) probabilities of k classes, never logits; (n,) of the positive class; (n, t) for multi-label.
    predictions : array, optional
        (n,) or (n, t), as `labels`. Default: the class with the largest probability.
    representations : mapping of str to array
        Name -> (n, d), in which slices are searched.
    metadata : mapping of str to array
        Name -> (n,) numbers or text; values may be missing.
    ids : array, optional
        (n,) unique whole numbers or texts. Default: 0 to n - 1.
    media : Media, optional
        What each row looks like to a person: an image or a text.
    groups : array, optional
        (n,) what rows belong together (a patient, a video): rows of one group are never split apart.
    class_names : tuple of str, optional
        (k,), or (t,) for multi-label.
    task : str, optional
        "classification", "multilabel", "regression" or "loss". Default: inferred from the arrays.
    origin : Origin
        Fingerprints of model, data and code.
    sources : mapping of str to Source
        Where representations come from, as far as it is known. An audit measures of the others whether they contain
        the model's prediction.
    metric : str, optional
        What an audit of these rows searched for where that is not every error; an audit sets it.

    Examples
    --------
    >>> import errata, numpy as np
    >>> rows = errata.Evaluation(
    ...     labels=np.array([0, 1, 1]),
    ...     probs=np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]),
    ...     representations={"embedding": np.eye(3)},
    ...     metadata={"site": np.array(["a", "b", "b"])},
    ... )
    >>> len(rows), rows.task, rows.errors.tolist()
    (3, 'classification', [False, False, True])
    """

    losses: Array | None = None
    labels: Array | None = None
    probs: Array | None = None
    predictions: Array | None = None
    representations: Mapping[str, Matrix] = field(default_factory=dict)
    metadata: Mapping[str, Array] = field(default_factory=dict)
    ids: Array | None = None
    media: Media | None = None
    groups: Array | None = None
    class_names: tuple[str, ...] | None = None
    task: Task | None = None
    origin: Origin = Origin()
    sources: Mapping[str, Source] = field(default_factory=dict)
    metric: str | None = None

    def __post_init__(self) -> None:
        n = _count_rows(self)
        class_names = None
        if self.class_names is not None:
            class_names = tuple(map(str, self.class_names))
            validate.as_array("class_names", class_names)
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
        if self.task == "classification":
            validate.class_numbers("labels", self.labels)
            validate.class_numbers("predictions", self.predictions)

    def __len__(self) -> int:
        return len(self.row_ids)

    def __repr__(self) -> str:
        return evaluation_in_brief(self)

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row an example: outcomes, then metadata; the index has the ids."""
        return view_of(self, "to_frame")

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

    @property
    def label_is_given(self) -> bool:
        """Whether rows were chosen by their label, so that the prediction alone tells the outcome."""
        return self.metric in ("fnr", "fpr")

    @cached_property
    def fingerprint(self) -> str:
        """A hash of ids and outcomes in id order: two audits with the same one look at the same rows."""
        order = id_order(self.row_ids)
        digest = hashlib.blake2b(digest_size=16)
        for array in (self.row_ids, self.labels, self.predictions, self.losses):
            if array is not None:
                _digest(digest, array, order)
        return digest.hexdigest()

    @cached_property
    def content(self) -> str:
        """A hash of all that a search may read, in id order: outcomes, representations, metadata, groups."""
        order = id_order(self.row_ids)
        digest = hashlib.blake2b(self.fingerprint.encode(), digest_size=16)
        columns = {"probs": self.probs, "groups": self.groups}
        columns |= {f"metadata {name}": column for name, column in sorted(self.metadata.items())}
        for name, column in columns.items():
            if column is not None:
                digest.update(name.encode())
                _digest(digest, column, order)
        for name, matrix in sorted(self.representations.items()):
            source = self.sources.get(name)
            declared = "" if source is None else f"{source.from_model} {sorted(source.reads)}"
            digest.update(f"representation {name} {declared}".encode())
            rows = matrix if order is None else take(matrix, order)
            for _, block in blocks(rows):
                digest.update(_digestible(block))
        return digest.hexdigest()

    def class_name(self, index: int) -> str:
        """The name of a class; its index where classes have no names."""
        if self.class_names is None:
            return str(index)
        return self.class_names[index]

    @property
    def class_count(self) -> int:
        """How many classes, or labels of a multi-label task; as far as the rows show where nothing names them."""
        if self.class_names is not None:
            return len(self.class_names)
        if self.probs is not None:
            return int(self.probs.shape[1])
        count = 0
        for array in (self.labels, self.predictions):
            if array is not None and array.ndim == 2:
                count = max(count, int(array.shape[1]))
            elif array is not None:
                count = max(count, int(array.max()) + 1)
        return count

    def source(self, representation: str) -> Source:
        """Where a representation comes from."""
        return self.sources.get(representation, Source())

    def need(self, names: frozenset[str], who: str) -> None:
        """Raise, by name, for what `who` needs and this evaluation lacks."""
        for name in sorted(names):
            value: Any = getattr(self, name)
            if value is None or (isinstance(value, Mapping) and not value):
                raise missing(name, who, self.task)

    def representation(self, name: str | None, who: str) -> str:
        """The name of the representation to use: `name`, or the first one where it is None."""
        self.need(frozenset({"representations"}), who)
        if name is None:
            return next(iter(self.representations))
        if name not in self.representations:
            raise unknown("representation", name, self.representations)
        return name

    def rows(self, index: Array) -> Evaluation:
        """Some of the rows, in the order of `index`: row numbers, or (n,) bool. Nothing is checked again."""
        index = np.asarray(index)
        if index.dtype == bool:
            index = np.flatnonzero(index)
        changes = self._columns_at(index)
        changes["representations"] = {name: take(array, index) for name, array in self.representations.items()}
        if self.media is not None:
            changes["media"] = self.media.rows(index)
        return self._unchecked(changes)

    def span(self, rows: slice) -> Evaluation:
        """Consecutive rows without their media: views, not copies. Nothing is checked again."""
        return self.map_columns(lambda array: array[rows])

    def map_columns(self, change: Callable[[Matrix], Any]) -> Evaluation:
        """The same evaluation with what `change` makes of each array, and without media. Nothing is checked again."""
        changes: dict[str, Any] = {"media": None}
        for name in ("losses", "labels", "probs", "predictions", "ids", "groups"):
            array = getattr(self, name)
            if array is not None:
                changes[name] = change(array)
        for name in ("representations", "metadata"):
            changes[name] = {key: change(array) for key, array in getattr(self, name).items()}
        return self._unchecked(changes)

    def _columns_at(self, index: Array) -> dict[str, Any]:
        """Outcomes, ids, groups and metadata of some rows."""
        columns: dict[str, Any] = {}
        for name in ("losses", "labels", "probs", "predictions", "ids", "groups"):
            array = getattr(self, name)
            if array is not None:
                columns[name] = array[index]
        columns["metadata"] = {name: array[index] for name, array in self.metadata.items()}
        return columns

    def without_outcomes(self) -> Evaluation:
        """The same rows, of which representations and ids alone are known."""
        hidden = ("losses", "labels", "probs", "predictions", "groups", "media")
        return self._unchecked({**dict.fromkeys(hidden), "metadata": {}})

    def with_outcomes(self, **changes: Any) -> Evaluation:
        """The same rows with other `labels`, `predictions`, `probs` or `losses`. Nothing is checked again.

        Losses that are not given follow from the others.
        """
        new = self._unchecked(changes)
        if "losses" in changes:
            return new
        return new._unchecked({"losses": _derived_losses(new.labels, new.probs, new.predictions, new.task)})

    def by_id(self) -> Evaluation:
        """The rows in the order of their ids; itself where they already are."""
        order = id_order(self.row_ids)
        return self if order is None else self.rows(order)

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
        positive = None if self.probs is None else self.probs[:, t]
        predictions = None if self.predictions is None else self.predictions[:, t]
        return self._two_classes(self.class_name(t), self.labels[:, t], positive, predictions)

    def one_against_rest(self, k: int) -> Evaluation:
        """A view of a classification with two classes: all others, and class k; itself where these are its own."""
        if k == 1 and self.class_count <= 2:
            return self
        assert self.labels is not None
        positive = None if self.probs is None else self.probs[:, k]
        predictions = None if self.predictions is None else self.predictions == k
        return self._two_classes(self.class_name(k), self.labels == k, positive, predictions)

    def _two_classes(self, name: str, labels: Array, positive: Array | None, predictions: Array | None) -> Evaluation:
        labels = labels.astype(np.int64)
        binary: dict[str, Any] = {
            "labels": labels,
            "class_names": (f"not {name}", name),
            "task": "classification",
        }
        if positive is not None:
            probs = np.stack([1 - positive.astype(np.float64), positive.astype(np.float64)], axis=1)
            binary["probs"] = probs
            binary["losses"] = _cross_entropy(probs, labels)
        if predictions is not None:
            binary["predictions"] = predictions.astype(np.int64)
            if positive is None:
                binary["losses"] = (binary["predictions"] != labels).astype(np.float64)
        return self._unchecked(binary)

    def _unchecked(self, changes: Mapping[str, Any]) -> Evaluation:
        """A copy with other arrays that need no check."""
        new = object.__new__(Evaluation)
        for name in self.__dataclass_fields__:
            object.__setattr__(new, name, changes.get(name, getattr(self, name)))
        return new

    def with_groups(self, groups: Array) -> Evaluation:
        """The same rows with other groups, (n,), which are not checked again."""
        return self._unchecked({"groups": groups})

    def with_representation(self, name: str, array: Any, source: Source | None = None) -> Evaluation:
        """The same rows with one more representation.

        Parameters
        ----------
        name : str
            Of the representation.
        array : array
            (n, d).
        source : Source, optional
            Where it comes from. Default: not known, so that an audit measures whether it is the model's own.
        """
        sources = {known: value for known, value in self.sources.items() if known != name}
        if source is not None:
            sources[name] = source
        return replace(self, representations={**self.representations, name: array}, sources=sources)


def _digest(digest: Any, array: Array, order: Array | None) -> None:
    """Hash a column in an order; texts with a mark between them."""
    for i, block in enumerate(blocks_in_order(array, order)):
        if i and block.dtype.kind in "US":
            digest.update(b"\0")
        digest.update(_digestible(block))


def _digestible(array: Array) -> bytes:
    """The same bytes for the same values, whatever the width they are stored in."""
    if array.dtype.kind in "US":
        return "\0".join(map(str, array.tolist())).encode()
    wide = np.int64 if array.dtype.kind in "biumM" else np.float64
    return np.ascontiguousarray(array, dtype=wide).tobytes()


def _count_rows(ev: Evaluation) -> int:
    arrays = {
        "losses": ev.losses,
        "labels": ev.labels,
        "probs": ev.probs,
        "predictions": ev.predictions,
        **{f"embedding:{name}": array for name, array in ev.representations.items()},
        **{f"metadata:{name}": array for name, array in ev.metadata.items()},  # enough to apply rules to
    }
    for name, array in arrays.items():
        if array is not None:
            if np.ndim(array) == 0:
                raise InputError(f"`{name}` must be an array with one row an example; got a single value")
            n = len(array)
            if n == 0:
                raise InputError(f"`{name}` has no rows; give at least one")
            return n
    raise MissingInput(
        "an evaluation needs losses, or labels with probs or predictions, or a representation, or metadata; got none"
    )


def _checked_outcome(ev: Evaluation, n: int, class_names: tuple[str, ...] | None) -> dict[str, Any]:
    """Losses, labels, probs and predictions, checked together and derived where they can be."""
    classes = {name: _checked_classes(name, getattr(ev, name), n) for name in ("labels", "predictions")}
    classes, class_names = validate.encode_text_classes(classes, class_names)
    labels = classes["labels"]
    predictions = classes["predictions"]
    multilabel = labels is not None and labels.ndim == 2
    probs = None
    if ev.probs is not None:
        probs = validate.probabilities(ev.probs, n, independent=multilabel)
    if multilabel and labels is not None:
        labels = _checked_multilabel(labels, probs, predictions)
    validate.check_one_prediction(labels, predictions)
    if probs is not None and not multilabel:
        labels = _class_indices("labels", labels, probs)
        predictions = _class_indices("predictions", predictions, probs)
    if predictions is None and probs is not None:
        if multilabel:
            predictions = (probs >= 0.5).astype(np.int64)
        else:
            predictions = fill_rows(lambda rows: rows.argmax(axis=1), np.int64, probs)
    _check_names(class_names, probs, labels, predictions)
    if ev.losses is None:
        losses = _derived_losses(labels, probs, predictions, ev.task)
        if losses is not None:
            validate.check_moderate("losses", losses)
    else:
        losses = validate.as_floating(validate.vector("losses", ev.losses, n))
    return {
        "labels": labels,
        "probs": probs,
        "predictions": predictions,
        "losses": losses,
        "class_names": class_names,
    }


def _checked_classes(name: str, value: Any, n: int) -> Array | None:
    """(n,) numbers or text, or (n, t) numbers, with no NaN."""
    if value is None:
        return None
    array = validate.as_array(name, value)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise InputError(f"`{name}` must have shape (n,), or (n, t) for multi-label; got shape {array.shape}")
    if array.ndim == 2 and array.shape[1] == 0:
        raise InputError(
            f"`{name}` has no columns; got shape {array.shape}; give shape (n,), or (n, t) for multi-label"
        )
    validate.check_length(name, array, n)
    if array.ndim == 2 and array.dtype.kind in "US":
        raise InputError(f"`{name}` of shape {array.shape} must be 0 or 1, one column a label; got text")
    if array.dtype.kind not in "US":
        validate.check_numeric(name, array)
        validate.check_finite(name, array)
        validate.check_moderate(name, array)
    return array.astype(np.int64) if array.dtype.kind == "b" else array


def _checked_multilabel(labels: Array, probs: Array | None, predictions: Array | None) -> Array:
    for name, array in (("probs", probs), ("predictions", predictions)):
        if array is not None and array.shape != labels.shape:
            raise InputError(f"`{name}` must have the shape of multi-label `labels`, {labels.shape}; got {array.shape}")
    if not np.isin(labels, (0, 1)).all():
        row = int(np.flatnonzero(~np.isin(labels, (0, 1)).all(axis=1))[0])
        raise InputError(f"multi-label `labels` must be 0 or 1; got {labels[row].max()} at row {row}")
    return labels.astype(np.int64)


def _class_indices(name: str, values: Array | None, probs: Array) -> Array | None:
    """Class indices as whole numbers that `probs` has a column for."""
    if values is None:
        return None
    if values.ndim != 1:
        raise InputError(f"`{name}` must have shape (n,); got shape {values.shape}")
    if values.dtype.kind == "f" and (values != np.round(values)).any():
        row = int(np.flatnonzero(values != np.round(values))[0])
        raise InputError(f"`{name}` must be class indices where `probs` are given; got {values[row]} at row {row}")
    validate.classes_in_range(name, values, probs.shape[1])  # first: as signed numbers the largest are negative
    return fill_rows(lambda rows: rows, np.int64, values)


def _check_names(class_names: tuple[str, ...] | None, probs: Array | None, *classes: Array | None) -> None:
    if class_names is None:
        return
    if probs is not None and len(class_names) != probs.shape[1]:
        raise InputError(f"`class_names` has {len(class_names)} names where `probs` has {probs.shape[1]} columns")
    if len(set(class_names)) != len(class_names):
        raise InputError("`class_names` must be unique; got a name twice")
    for array in classes:
        whole = array is not None and array.ndim == 1 and array.dtype.kind in "iu"
        if whole and array is not None and array.max() >= len(class_names):
            raise InputError(f"class {array.max()} has no name: `class_names` has only {len(class_names)}")


def _checked_groups(value: Any, n: int) -> Array | None:
    if value is None:
        return None
    groups = validate.as_array("groups", value)
    if groups.dtype.kind in "Vc":
        raise InputError(f"`groups` must be numbers or text; got {groups.dtype}; number the groups")
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
    """The task of the constructor, where the arrays allow it, or what the arrays look like."""
    inferred: Task
    if ev.labels is None:
        inferred = "loss"
    elif ev.labels.ndim == 2:
        inferred = "multilabel"
    elif _looks_continuous(ev):
        inferred = "regression"
    else:
        inferred = "classification"
    if ev.task is None or ev.task == inferred:
        return inferred
    if (ev.task, inferred) == ("regression", "classification") and ev.probs is None:
        return "regression"  # whole-number targets, such as ratings
    raise InputError(f"`task` is {ev.task!r}, but the arrays are those of {inferred!r}; leave `task` out")


def _looks_continuous(ev: Evaluation) -> bool:
    """Regression: no probabilities, and a label or a prediction that is not a whole number."""
    if ev.probs is not None:
        return False
    arrays = [array for array in (ev.labels, ev.predictions) if array is not None]
    return any(array.dtype.kind == "f" and bool((array != np.round(array)).any()) for array in arrays)


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
    both_whole = (labels == np.round(labels)).all() and (predictions == np.round(predictions)).all()
    if both_whole and task != "regression":
        wrong: Array = labels != predictions
        return wrong.astype(np.float64)
    squared: Array = np.square(labels.astype(np.float64) - predictions)
    return squared


def _cross_entropy(probs: Array, labels: Array) -> Array:
    """(n,) nats; the mean over tasks for multi-label probabilities."""
    if labels.ndim == 2:
        true = np.where(labels == 1, probs, 1 - probs)
        nats: Array = -np.log(np.clip(true, validate.FLOOR, 1)).mean(axis=1)
        return nats
    return fill_rows(_nats, np.float64, probs, labels)


def _nats(probs: Array, labels: Array) -> Array:
    true = probs[np.arange(len(labels)), labels].astype(np.float64)
    nats: Array = -np.log(np.clip(true, validate.FLOOR, 1))
    return nats
