"""A model with a `predict` of its own, such as Keras's, as an Evaluation: one output, or two with an embedding."""

from __future__ import annotations

import inspect
from typing import Any

from ..core import Evaluation
from .formats import ObjectFormat
from .predictor import Predict, data_argument, from_predictor


def predicts(source: Any) -> bool:
    """Whether this has a method that predicts, and is neither a scikit-learn estimator nor a PyTorch module."""
    return any(callable(getattr(source, name, None)) for name in ("predict_proba", "predict"))


def from_predicting(model: Any, data: Any, **options: Any) -> Evaluation:
    """An Evaluation of a model by its `predict_proba` or `predict`, as `from_predictor` makes it of a function."""
    predict = getattr(model, "predict_proba", None) or model.predict
    return from_predictor(_quiet(predict), data, **options)


def _quiet(predict: Predict) -> Predict:
    """Without the bar that Keras draws."""
    try:
        parameters = inspect.signature(predict).parameters
    except (TypeError, ValueError):
        return predict
    if "verbose" not in parameters:
        return predict
    return lambda batch: predict(batch, verbose=0)  # type: ignore[call-arg]  # of Keras


FORMAT = ObjectFormat(
    "predict", "a model with `predict` and its rows", predicts, data_argument, from_predicting, from_predictor
)
