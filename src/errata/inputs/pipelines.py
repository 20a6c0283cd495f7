"""A Hugging Face pipeline for the classification of texts or images as an Evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from ..core import Array, Evaluation, InputError
from .formats import ObjectFormat
from .predictor import collect_rows, data_argument, from_predictor
from .progress import note, terminal_progress
from .rows import rows_of
from .tables import is_records, is_table, keys_of, to_arrow

COLUMNS = {
    "text-classification": ("text", "sentence", "content"),
    "image-classification": ("image", "img"),
}
ROWS = 32  # a call: one forward pass of the model


def is_pipeline(source: Any) -> bool:
    """Whether this is a pipeline of transformers, by the name of its class: nothing is imported to ask."""
    kinds = type(source).mro()
    return any(kind.__name__ == "Pipeline" and kind.__module__.startswith("transformers") for kind in kinds)


def from_pipeline(pipeline: Any, data: Any, **options: Any) -> Evaluation:
    """An Evaluation of a pipeline, with the scores of all classes.

    Classes have the names and the order of the model's configuration. Labels are these names, in any case, or their
    numbers; `class_names` are the names that labels have instead, in that order. The input of the model's last linear
    layer is the representation "penultimate". inputs: the column that is classified. Default: one called text,
    sentence or content, or image. Options: those of `from_predictor`.
    """
    task = getattr(pipeline, "task", None)
    if task not in COLUMNS:
        raise InputError(
            f"pipelines for {' and '.join(COLUMNS)} can be audited; got one for {task!r}; collect a function that "
            "calls it"
        )
    column = options.pop("inputs", None) or _column(data, COLUMNS[task])
    rows = rows_of(data, labels=options.pop("labels", None), inputs=column)
    names = _class_names(pipeline)
    own = tuple(map(str, options.pop("class_names", None) or rows.class_names or names))
    if not {name.lower() for name in own} & {name.lower() for name in names}:
        pairs = ", ".join(f"{mine} as {name}" for mine, name in zip(own, names, strict=False))
        note(
            options.get("progress", terminal_progress),
            f"labels are read by their order: {pairs}; `class_names` sets another",
        )
    rows = replace(rows, labels=_indices(rows.labels, own, names), class_names=None)
    options.setdefault("batch_size", ROWS)
    with _predicting(pipeline, names) as predict:
        return collect_rows(predict, rows, class_names=names, **options)


FORMAT = ObjectFormat(
    "pipeline", "a Hugging Face pipeline with its rows", is_pipeline, data_argument, from_pipeline, from_predictor
)


def _column(data: Any, usual: Sequence[str]) -> str | None:
    """The column that a pipeline classifies; None where the inputs are given by themselves."""
    if not is_table(data):
        return None
    names = (
        keys_of(data) if is_records(data) else list(getattr(data, "column_names", None) or to_arrow(data).column_names)
    )
    column = next((name for name in usual if name in names), None)
    if column is None:
        raise InputError(
            f"the data has none of the columns {', '.join(usual)} (it has {', '.join(names)}); pass inputs=NAME, the "
            "column that is classified"
        )
    return column


def _class_names(pipeline: Any) -> tuple[str, ...]:
    names = pipeline.model.config.id2label
    return tuple(str(names[i]) for i in sorted(names))


def _indices(labels: Array, own: Sequence[str], names: Sequence[str]) -> Array:
    """(n,) numbers of the model's classes, from names in any case or from numbers."""
    if len(own) != len(names):
        raise InputError(
            f"`class_names` has {len(own)} names where the model has {len(names)} classes; give one a class"
        )
    if labels.dtype.kind in "biu":
        return _by_number(labels, own, names)
    for known in (names, own):
        index = {name.lower(): i for i, name in enumerate(known)}
        texts = [str(value).lower() for value in labels.tolist()]
        if all(text in index for text in texts):
            return np.array([index[text] for text in texts])
    missing = next(i for i, text in enumerate(texts) if text not in index)
    raise InputError(
        f"`labels` has {str(labels[missing])!r} at row {missing}, none of the classes of the model ({', '.join(names)}"
        "); pass class_names, your labels in the order of these"
    )


def _by_number(labels: Array, own: Sequence[str], names: Sequence[str]) -> Array:
    """Numbers of the data's own classes; where its names are the model's in another order, they count."""
    index = {name.lower(): i for i, name in enumerate(names)}
    if labels.min() < 0 or labels.max() >= len(names):
        raise InputError(
            f"`labels` must be from 0 to {len(names) - 1}, the model's classes; got {labels.min()} to {labels.max()}"
        )
    if all(name.lower() in index for name in own):
        return np.array([index[name.lower()] for name in own])[labels]
    return labels


@contextmanager
def _predicting(pipeline: Any, names: Sequence[str]) -> Iterator[Callable[[Any], dict[str, Array]]]:
    """A function from a batch to the scores of all classes and the input of the last linear layer."""
    from ..tensors import capture_layer

    index = {name: i for i, name in enumerate(names)}
    with capture_layer(pipeline.model, None) as tap:

        def predict(batch: Any) -> dict[str, Array]:
            batch = list(batch)
            answers = pipeline(batch, top_k=None, batch_size=len(batch), **_softmax(pipeline))
            probs = np.zeros((len(batch), len(names)))
            for row, answer in enumerate(answers):
                for score in answer:
                    probs[row, index[score["label"]]] = score["score"]
            return {"probs": probs, "embedding:penultimate": tap.take(len(batch)).numpy()}

        yield predict


def _softmax(pipeline: Any) -> dict[str, str]:
    """Scores that sum to one: models for several labels give each class a sigmoid of its own."""
    if len(pipeline.model.config.id2label) > 1:
        return {"function_to_apply": "softmax"}
    return {}
