"""A model with its data, a table or a file as an Evaluation."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core import Evaluation, InputError
from ..core.errors import unknown
from ..core.progress import silent
from .bridge import Bridge
from .clip import ClipSpace
from .estimator import from_estimator
from .files import read, read_texts
from .influence import HeadInfluence, add_influence, fit_influence, load_influence, restore_influence, save_influence
from .media import ImageArrays, ImageBytes, ImagePaths, Texts
from .progress import terminal_progress
from .robust import add_features, feature_maps
from .sentences import embed_captions
from .tables import from_table, is_table
from .thresholds import at_thresholds, f1_thresholds
from .torch_model import from_torch

__all__ = [
    "Bridge",
    "ClipSpace",
    "HeadInfluence",
    "ImageArrays",
    "ImageBytes",
    "ImagePaths",
    "Texts",
    "add_features",
    "add_influence",
    "at_thresholds",
    "collect",
    "embed_captions",
    "f1_thresholds",
    "feature_maps",
    "fit_influence",
    "from_estimator",
    "from_table",
    "from_torch",
    "load_influence",
    "read",
    "read_texts",
    "restore_influence",
    "save_influence",
    "silent",
    "terminal_progress",
]


def collect(source: Any, data: Any = None, **options: Any) -> Evaluation:
    """An Evaluation from what the user has.

    A path (`read`), a data frame or arrow table (`from_table`), a fitted scikit-learn estimator with
    data `(X, y)` (`from_estimator`), or a PyTorch model with a loader (`from_torch`). `options` are
    those of the function named here.
    """
    if isinstance(source, str | Path):
        return _without_data("a file", read, source, data, options)
    if is_table(source):
        return _without_data("a table", from_table, source, data, options)
    if _is_torch_module(source):
        if data is None:
            raise InputError("a PyTorch model needs a loader of batches; call collect(model, loader)")
        return _call(from_torch, (source, data), options)
    if hasattr(source, "predict") and not hasattr(source, "forward"):
        if not isinstance(data, list | tuple) or len(data) != 2:
            raise InputError("a scikit-learn estimator needs its inputs and answers; call collect(estimator, (X, y))")
        return _call(from_estimator, (source, *data), options)
    raise InputError(
        "collect takes a path (.npz, .parquet, .csv), a pandas, polars or pyarrow table, a fitted scikit-learn "
        f"estimator with (X, y), or a PyTorch model with a loader; got {type(source).__name__}"
    )


def _without_data(
    kind: str, reader: Callable[..., Evaluation], source: Any, data: Any, options: dict[str, Any]
) -> Evaluation:
    if data is not None:
        raise InputError(f"{kind} holds all there is, so collect takes no data beside it; got {type(data).__name__}")
    return _call(reader, (source,), options)


def _call(function: Callable[..., Evaluation], arguments: tuple[Any, ...], options: dict[str, Any]) -> Evaluation:
    parameters = inspect.signature(function).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            raise unknown(f"option of {function.__name__}", name, known)
    return function(*arguments, **options)


def _is_torch_module(value: Any) -> bool:
    """Whoever holds a module has imported torch already, so nobody else pays for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)
