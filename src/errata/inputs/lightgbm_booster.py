"""A LightGBM booster as an Evaluation; its scikit-learn wrappers are scikit-learn estimators."""

from __future__ import annotations

import sys
from typing import Any

from ..core import Evaluation, InputError
from .formats import ObjectFormat
from .predictor import data_argument, from_predictor

# What `Booster.predict` gives, by objective; others give values.
CLASSES = {"binary", "cross_entropy", "cross_entropy_lambda", "multiclass", "multiclassova"}
RANKING = ("lambdarank", "rank_xendcg")


def is_booster(source: Any) -> bool:
    """Whether this is a LightGBM booster; who holds one has imported LightGBM."""
    lightgbm = sys.modules.get("lightgbm")
    return lightgbm is not None and isinstance(source, lightgbm.Booster)


def from_lightgbm(booster: Any, data: Any, **options: Any) -> Evaluation:
    """An Evaluation of a LightGBM booster by its objective. Options: those of `from_predictor`."""
    objective = _objective(booster)
    if objective in RANKING:
        raise InputError(
            f"the booster ranks ({objective}), and an audit needs an answer a row; give `losses` in a table"
        )
    if objective in CLASSES:
        options.setdefault("outputs", "probabilities")
        options.setdefault("task", "classification")
    elif objective is not None:
        options.setdefault("task", "regression")
    return from_predictor(booster.predict, data, **options)


def _objective(booster: Any) -> str | None:
    """From the text of the model, which a booster that was loaded from a file has too."""
    for line in booster.model_to_string(num_iteration=1).splitlines():
        if line.startswith("objective="):
            return str(line.removeprefix("objective=").split()[0])
    return None  # a function of one's own: what the outputs look like


FORMAT = ObjectFormat(
    "lightgbm", "a LightGBM booster with its rows", is_booster, data_argument, from_lightgbm, from_predictor
)
