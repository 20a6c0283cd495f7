"""An ONNX Runtime session as an Evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core import Array, Evaluation, InputError
from .formats import ObjectFormat
from .outputs import are_probabilities
from .predictor import as_rows, data_argument, from_predictor
from .tables import column_values, is_table, to_arrow

TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}


def is_session(source: Any) -> bool:
    """Whether this is an `onnxruntime.InferenceSession`, by its methods."""
    return all(hasattr(source, name) for name in ("run", "get_inputs", "get_outputs"))


def from_onnx(session: Any, data: Any, **options: Any) -> Evaluation:
    """An Evaluation of an ONNX Runtime session.

    A model with one input reads the inputs as one array; one with several reads the columns of their names. Of its
    outputs, probabilities or logits are read, else classes; a further matrix is its embedding. Options: those of
    `from_predictor`.
    """
    return from_predictor(_runner(session), data, **options)


FORMAT = ObjectFormat(
    "onnx", "an ONNX Runtime session with its rows", is_session, data_argument, from_onnx, from_predictor
)


def _runner(session: Any) -> Callable[[Any], dict[str, Array]]:
    inputs = session.get_inputs()
    names = [output.name for output in session.get_outputs()]

    def run(batch: Any) -> dict[str, Array]:
        return _read(dict(zip(names, session.run(names, _feed(inputs, batch)), strict=True)))

    return run


def _feed(inputs: list[Any], batch: Any) -> dict[str, Array]:
    """Input name -> array of the type that the model was exported with."""
    if len(inputs) == 1 and not isinstance(batch, Mapping):
        array = np.array(batch, dtype=object) if _is_text(batch) else as_rows(batch)
        return {inputs[0].name: _typed(inputs[0], array)}
    columns = batch
    if not isinstance(batch, Mapping):
        if not is_table(batch):
            listed = ", ".join(f"`{one.name}`" for one in inputs)
            raise InputError(
                f"the ONNX model has {len(inputs)} inputs ({listed}); give a table with columns of these names, or a "
                "dict of arrays"
            )
        table = to_arrow(batch)
        columns = {name: column_values(table, name) for name in table.column_names}
    missing = next((one.name for one in inputs if one.name not in columns), None)
    if missing is not None:
        raise InputError(
            f"the ONNX model reads `{missing}`, which the rows do not have; they have {', '.join(map(str, columns))}"
        )
    return {one.name: _typed(one, np.asarray(columns[one.name])) for one in inputs}


def _is_text(batch: Any) -> bool:
    return isinstance(batch, list | tuple) and len(batch) > 0 and all(isinstance(value, str) for value in batch)


def _typed(one: Any, array: Array) -> Array:
    kind = TYPES.get(one.type)
    if kind is None:
        raise InputError(
            f"the ONNX model reads `{one.name}` as {one.type}; only tensors of numbers and text can be fed"
        )
    if array.ndim == 1 and len(one.shape) == 2:
        array = array[:, None]  # as skl2onnx exports the columns of a table
    _check_shape(one, array)
    try:
        return array.astype(kind)
    except (TypeError, ValueError) as error:
        raise InputError(f"the ONNX model reads `{one.name}` as {one.type}; got {array.dtype} ({error})") from error


def _check_shape(one: Any, array: Array) -> None:
    """Refuse rows of another shape than the model was exported for; names and None stand for any size."""
    fixed = [(i, size) for i, size in enumerate(one.shape) if i > 0 and isinstance(size, int)]
    if len(one.shape) != array.ndim or any(array.shape[i] != size for i, size in fixed):
        sizes = dict(fixed)
        wanted = ", ".join(str(sizes.get(i, "any")) for i in range(1, len(one.shape)))
        got = ", ".join(map(str, array.shape[1:]))
        raise InputError(
            f"the ONNX model reads `{one.name}` as rows of shape ({wanted}); got ({got}); give the columns that it was "
            "trained on, in their order"
        )


def _read(outputs: Mapping[str, Any]) -> dict[str, Array]:
    """What the outputs of a session are: their names tell most, their shapes the rest."""
    arrays = {name: _array(value) for name, value in outputs.items()}
    matrices = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind == "f"]
    best = next((name for name in matrices if "prob" in name.lower()), None)
    best = best or next(
        (name for name in matrices if arrays[name].shape[1] > 1 and are_probabilities(arrays[name])), None
    )
    best = best or next((name for name in matrices if "logit" in name.lower()), None)
    best = best or next(iter([*matrices, *arrays]))
    others = [name for name in matrices if name != best]
    read = {"output": arrays[best]}
    if others:
        read["embedding"] = arrays[others[0]]
    return read


def _array(value: Any) -> Array:
    """A tensor; or the dicts of class -> probability that skl2onnx exports unless told `zipmap=False`."""
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return np.array([[row[name] for name in value[0]] for row in value])
    return np.asarray(value)
