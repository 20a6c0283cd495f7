"""A fitted scikit-learn classifier, regressor or Pipeline as an Evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from ..core import Array, Evaluation, InputError, Progress, Source
from ..core.evaluation import Task
from .features import encode_columns, encode_matrix
from .formats import ObjectFormat
from .media import Texts, as_media
from .outputs import interpret
from .predictor import metadata_of
from .progress import note, terminal_progress
from .rows import Rows, rows_of
from .tables import is_table

LARGEST_DENSE = 1 << 27  # values of a sparse input that is made dense: one gigabyte

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "identity": lambda z: z,
    "logistic": special.expit,
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
}


def from_estimator(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    labels: str | None = None,
    task: Task | None = None,
    metadata: Any = None,
    media: Any = None,
    features: bool = True,
    progress: Progress = terminal_progress,
) -> Evaluation:
    """An Evaluation of a fitted estimator on inputs `X` and true answers `y`.

    Representations: "features", the input of the estimator (of a Pipeline, of its last step);
    columns of a table are scaled, encoded and filled in. For a multi-layer perceptron also
    "penultimate", its last hidden layer. labels: the column of `X` that holds the answers, where `y` is not given.
    task: "regression" or "classification", for a regressor whose targets are 0 and 1. metadata: columns of `X`, or a
    table or dict of further ones. Default: all columns of a table that are numbers or categories. media: what a row
    looks like: images, paths or texts. features: False leaves "features" out. progress: where what was decided is
    said; `silent` for nowhere.
    """
    _check_fitted(estimator)
    if y is None:
        rows = rows_of(X, labels=labels)
        X = rows.inputs
        y = rows.labels
    answers = _answers(X, y)
    if hasattr(estimator, "classes_"):
        outcome = _classified(estimator, X, answers)
    else:
        outcome = _regressed(estimator, X, answers, task, progress)
    table = rows_of((X, answers)) if is_table(X) else None
    columns: Mapping[str, Array] = {}
    texts: Mapping[str, Array] = {}
    if table is not None:
        columns = table.columns
        texts = table.texts
    representations, sources = _representations(estimator, X, table, features, progress)
    shown = as_media(media)
    if shown is None:
        shown = _texts(X) if table is None else table.media
    return Evaluation(
        **outcome,
        representations=representations,
        sources=sources,
        metadata=_metadata(metadata, columns, texts, len(answers)),
        media=shown,
    )


def _metadata(wanted: Any, columns: Mapping[str, Array], texts: Mapping[str, Array], n: int) -> dict[str, Array]:
    named = isinstance(wanted, str) or (isinstance(wanted, Sequence) and len(wanted) > 0 and not is_table(wanted))
    if not columns and not texts and named and "all" not in wanted:
        raise InputError("`metadata` names columns of `X`, which has no names here; give `X` as a data frame")
    return metadata_of(wanted, columns, n, texts)


def _representations(
    estimator: Any, X: Any, table: Rows | None, features: bool, progress: Progress
) -> tuple[dict[str, Array], dict[str, Source]]:
    """The last hidden layer of a perceptron, and what the estimator reads as features."""
    from scipy import sparse

    inputs, last = _last_step(estimator, X)
    representations: dict[str, Array] = {}
    sources: dict[str, Source] = {}
    numbers = None
    if _is_perceptron(last) or (features and not is_table(inputs)):
        numbers = _numbers(inputs)
    if _is_perceptron(last) and numbers is not None:
        representations["penultimate"] = penultimate(last, numbers)
        sources["penultimate"] = Source(from_model=True)
    matrix = None
    if features and is_table(inputs):
        matrix = _encoded(inputs, table, inputs is X, progress)
    elif features and numbers is not None:
        prepared = inputs is not X or sparse.issparse(inputs)  # by steps of the user's own
        matrix = numbers if prepared and np.isfinite(numbers).all() else encode_matrix(numbers)
    if matrix is not None:
        # Without a source: an audit measures whether the features tell the prediction, as those of a linear model do.
        representations["features"] = matrix
    return representations, sources


def _encoded(inputs: Any, table: Rows | None, raw: bool, progress: Progress) -> Array | None:
    """The columns of a table as a matrix; None where none of them is a feature."""
    rows = table if raw and table is not None else rows_of((inputs, np.zeros(len(inputs))))
    columns = {name: values for name, values in rows.columns.items() if values.ndim == 1}
    if not columns:
        return None
    encoded = encode_columns(columns)
    left_out = [f"`{name}`" for name in (*encoded.left_out, *rows.texts)]
    if left_out:
        note(progress, f"left out of the features: {', '.join(left_out)} (constant, or another text in most rows)")
    return encoded.matrix


def is_estimator(source: Any) -> bool:
    """Whether this predicts as scikit-learn's estimators do; modules of PyTorch's may predict too."""
    named = any(hasattr(source, name) for name in ("classes_", "get_params"))
    return named and hasattr(source, "predict") and not hasattr(source, "forward")


def _inputs_and_answers(data: Any) -> tuple[Any, ...]:
    if is_table(data):
        return (data,)
    if not isinstance(data, list | tuple) or len(data) != 2:
        raise InputError("a scikit-learn estimator needs its inputs and answers; call collect(estimator, (X, y))")
    return tuple(data)


FORMAT = ObjectFormat(
    "sklearn", "a fitted scikit-learn estimator with (X, y)", is_estimator, _inputs_and_answers, from_estimator
)


def _check_fitted(estimator: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise InputError(f"the {type(estimator).__name__} is not fitted; call its `fit` first") from error
    except TypeError:
        return  # not scikit-learn's own; then `predict` raises


def _answers(X: Any, y: Any) -> Array:
    """(n,) or (n, t) true answers, one for each row of X."""
    answers = np.asarray(y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if answers.ndim == 2 and answers.shape[1] == 1:
        answers = answers[:, 0]
    if answers.ndim == 0 or len(answers) != n:
        raise InputError(f"`X` has {n:,} rows and `y` has shape {answers.shape}; give one answer a row")
    return answers


def _classified(estimator: Any, X: Any, y: Array) -> dict[str, Any]:
    if y.ndim == 2:
        return _multilabel(estimator, X, y)
    classes = np.asarray(estimator.classes_)
    outcome = {
        "labels": _indices("y", y, classes),
        # Not the largest probability: a tuned threshold, or a support vector machine, decides otherwise.
        "predictions": _indices("predict(X)", np.asarray(estimator.predict(X)), classes),
        "class_names": tuple(str(name) for name in classes),
    }
    if hasattr(estimator, "predict_proba"):
        outcome["probs"] = np.asarray(estimator.predict_proba(X))
    return outcome


def _indices(name: str, values: Array, classes: Array) -> Array:
    """(n,) the index of each value among the classes."""
    import pandas as pd

    indices: Array = pd.Index(classes).get_indexer(pd.Index(values))
    if (indices < 0).any():
        row = int(np.flatnonzero(indices < 0)[0])
        known = ", ".join(str(c) for c in classes[:8])
        raise InputError(
            f"`{name}` has the class {values[row]!r} at row {row}, which the estimator never saw; known: {known}"
        )
    return indices.astype(np.int64)


def _multilabel(estimator: Any, X: Any, y: Array) -> dict[str, Any]:
    outcome: dict[str, Any] = {"labels": y, "predictions": _dense(estimator.predict(X))}
    if hasattr(estimator, "predict_proba"):
        probs = estimator.predict_proba(X)
        # Forests give one (n, 2) array a label, others one (n, t) array.
        if isinstance(probs, list):
            outcome["probs"] = _positives(probs, estimator.classes_)
        else:
            outcome["probs"] = np.asarray(probs)
    return outcome


def _positives(probs: Sequence[Array], classes: Sequence[Array]) -> Array:
    """(n, t): the probability of 1 for each label; 0 where training never saw a 1."""
    columns = []
    for of_label, values in zip(probs, classes, strict=True):
        if 1 in values:
            columns.append(of_label[:, list(values).index(1)])
        else:
            columns.append(np.zeros(len(of_label)))
    return np.stack(columns, axis=1)


def _regressed(estimator: Any, X: Any, y: Array, task: Task | None, progress: Progress) -> dict[str, Any]:
    from sklearn.base import is_regressor

    if hasattr(estimator, "__sklearn_tags__") and not is_regressor(estimator):
        raise InputError(f"{type(estimator).__name__} is neither a classifier nor a regressor; give one of these")
    if y.ndim == 2:
        raise InputError(f"a regression has one target a row; got `y` of shape {y.shape}; collect each target apart")
    if y.dtype.kind not in "biuf":
        raise InputError(f"`y` must be numbers for a regressor; got {y.dtype}; convert it first")
    predictions = np.asarray(estimator.predict(X), dtype=np.float64).reshape(len(y))
    two_valued = bool(np.isin(y, (0, 1)).all())
    if task is None and not two_valued:
        task = "regression"
        if (y == np.round(y)).all():
            note(progress, f"{type(estimator).__name__} is a regressor, so its whole-numbered targets are values")
    outcome = interpret(predictions, y, task=task)
    for sentence in outcome.notes:
        note(progress, sentence)
    return outcome.fields


def _last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """What the last step sees, and that step; a search stands for the best it found."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not hasattr(estimator, "steps"):
        return X, estimator
    before = estimator[:-1]
    if len(before):
        X = before.transform(X)
    return X, estimator[-1]


def _numbers(inputs: Any) -> Array | None:
    """(n, d) numeric input; of a data frame its numeric columns; None where there are no numbers."""
    if hasattr(inputs, "select_dtypes"):
        inputs = inputs.select_dtypes(include=["number", "bool"]).to_numpy()
    array = _dense(inputs)
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            return None
    if array.dtype.kind not in "biuf" or array.size == 0:
        return None
    array = array.astype(np.float64) if array.dtype.kind == "b" else array
    return array.reshape(len(array), -1)


def _dense(inputs: Any) -> Array:
    from scipy import sparse

    if not sparse.issparse(inputs):
        return np.asarray(inputs)
    if inputs.shape[0] * inputs.shape[1] > LARGEST_DENSE:
        raise InputError(
            f"the input is sparse with shape {inputs.shape}, too large to be made dense; "
            "reduce it (TruncatedSVD in the Pipeline), or collect with features=False"
        )
    dense: Array = inputs.toarray()
    return dense


def _is_perceptron(estimator: Any) -> bool:
    return all(hasattr(estimator, name) for name in ("coefs_", "intercepts_", "activation"))


def penultimate(perceptron: Any, X: Array) -> Array:
    """(n, d): the last hidden layer of a fitted MLPClassifier or MLPRegressor; times the last weights, its output."""
    activation = _ACTIVATIONS[perceptron.activation]
    hidden = X
    for weights, bias in zip(perceptron.coefs_[:-1], perceptron.intercepts_[:-1], strict=True):
        hidden = activation(hidden @ weights + bias)
    return hidden


def _texts(X: Any) -> Texts | None:
    """The inputs themselves, where each is a text."""
    from scipy import sparse

    if sparse.issparse(X) or np.ndim(X) != 1 or not all(isinstance(text, str) for text in X):
        return None
    return Texts(list(X))
