"""An XGBoost booster as an Evaluation; its scikit-learn wrappers are scikit-learn estimators."""

from __future__ import annotations

import json
import sys
from typing import Any

from ..core import Evaluation, InputError, require
from .formats import ObjectFormat
from .predictor import data_argument, from_predictor

# What `Booster.predict` gives, by objective; others give values.
OUTPUTS = {
    "binary:logistic": "probabilities",
    "binary:logitraw": "logits",
    "binary:hinge": "classes",
    "multi:softprob": "probabilities",
    "multi:softmax": "classes",
}
REGRESSION = ("reg:", "count:")


def is_booster(source: Any) -> bool:
    """Whether this is an XGBoost booster; who holds one has imported XGBoost."""
    xgboost = sys.modules.get("xgboost")
    return xgboost is not None and isinstance(source, xgboost.Booster)


def from_xgboost(booster: Any, data: Any, **options: Any) -> Evaluation:
    """An Evaluation of an XGBoost booster by its objective. Options: those of `from_predictor`."""
    xgboost = require("xgboost", "xgboost")
    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    if objective.startswith(("rank:", "survival:")):
        raise InputError(
            f"the booster's objective is {objective}, and an audit needs an answer a row; give `losses` in a table"
        )
    if objective in OUTPUTS:
        options.setdefault("outputs", OUTPUTS[objective])
        options.setdefault("task", "classification")
    elif objective.startswith(REGRESSION) and objective != "reg:logistic":
        options.setdefault("task", "regression")

    def predict(batch: Any) -> Any:
        # Text columns of a table must have been categories in training; the booster itself says so where they were not.
        return booster.predict(xgboost.DMatrix(batch, enable_categorical=True))

    return from_predictor(predict, data, **options)


FORMAT = ObjectFormat(
    "xgboost", "an XGBoost booster with its rows", is_booster, data_argument, from_xgboost, from_predictor
)
