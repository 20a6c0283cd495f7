"""What a loader hands over, and what a model gives back: the forms that are understood."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core import InputError
from ..core.errors import unknown

LABEL_KEYS = ("label", "labels", "y", "target", "targets")
ROW_KEYS = {"id": "ids", "ids": "ids", "group": "groups", "groups": "groups"}


@dataclass(frozen=True)
class Batch:
    """The arguments of one call of the model, and the columns of its rows."""

    labels: Any
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)  # "ids", "groups" and "metadata:NAME" -> (b,)


def split_batch(batch: Any, metadata: Collection[str] = ()) -> Batch:
    """Split a batch into the model's arguments, the labels and what describes the rows.

    batch: a pair (inputs, labels), or a dict with a label key whose other keys are the model's arguments. Of a dict,
    `id`/`ids`, `group`/`groups` and the keys named as metadata do not go to the model.
    """
    if isinstance(batch, Mapping):
        return _split_dict(dict(batch), metadata)
    if not isinstance(batch, list | tuple) or len(batch) != 2:
        got = f"a {type(batch).__name__}"
        if isinstance(batch, list | tuple):
            got += f" of {len(batch)}"
        raise InputError(f"a batch must be a pair (inputs, labels) or a dict with a label; got {got}")
    if metadata:
        raise InputError("`metadata` names keys of dict batches, but this loader gives pairs; give dicts")
    return Batch(labels=batch[1], args=(batch[0],))


def _split_dict(batch: dict[str, Any], metadata: Collection[str]) -> Batch:
    key = next((key for key in LABEL_KEYS if key in batch), None)
    if key is None:
        raise InputError(
            f"a batch has the keys {', '.join(map(str, batch)) or 'none'}, of which none is the label; "
            f"name it one of {', '.join(LABEL_KEYS)}"
        )
    labels = batch.pop(key)
    columns: dict[str, Any] = {}
    for name in metadata:
        if name not in batch:
            raise unknown("metadata key of a batch", name, map(str, batch))
        columns[f"metadata:{name}"] = batch.pop(name)
    for name in [name for name in batch if name in ROW_KEYS]:
        columns[ROW_KEYS[name]] = batch.pop(name)
    return Batch(labels=labels, kwargs=batch, columns=columns)


def logits_of(output: Any) -> Any:
    """The tensor of logits in a model's output: the output itself, its `logits`, or the first of a tuple."""
    if hasattr(output, "detach"):
        return output
    logits = getattr(output, "logits", None)
    if isinstance(output, Mapping):
        logits = output.get("logits")
    elif logits is None and isinstance(output, list | tuple) and output:
        logits = output[0]
    if not hasattr(logits, "detach"):
        raise InputError(
            f"the model's output is a {type(output).__name__} without `logits`; "
            "give a tensor, a dict with the key `logits`, or an object with `.logits`"
        )
    return logits
