"""Any function from a batch of inputs to probabilities, scores, classes or values as an Evaluation.

Models of other libraries are such functions too: an adapter makes one and hands it on to `from_predictor`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..core import Array, Evaluation, InputError, Progress, Source
from ..core.errors import unknown
from ..core.evaluation import Task
from .features import encode_columns, encode_matrix, encode_rows, encode_words
from .formats import ObjectFormat
from .media import as_media
from .outcomes import plain
from .outputs import are_probabilities, interpret
from .progress import note, report_batches, terminal_progress
from .rows import Rows, rows_of
from .tables import column_values, is_table, to_arrow

Predict = Callable[[Any], Any]
NAMED = ("probs", "logits", "scores", "predictions", "values", "losses", "embedding")
KIND_OF = {
    "probs": "probabilities",
    "logits": "logits",
    "scores": "scores",
    "predictions": "classes",
    "values": "values",
}
OWN = Source(from_model=True)


def from_predictor(
    predict: Predict,
    data: Any,
    *,
    task: Task | None = None,
    class_names: Sequence[str] | None = None,
    outputs: str | None = None,
    labels: str | None = None,
    inputs: Sequence[str] | str | None = None,
    metadata: Any = None,
    media: Any = None,
    representation: Any = None,
    batch_size: int = 1024,
    progress: Progress = terminal_progress,
) -> Evaluation:
    """An Evaluation of any function that predicts a batch of rows.

    predict: a batch of inputs -> (b, k) probabilities or scores, (b,) names or numbers of classes, (b,) probabilities
    of the second of two classes or values of a regression; a pair of these and an embedding (b, d); or a dict with
    some of `probs`, `logits`, `scores`, `predictions`, `values`, `losses`, `embedding` and `embedding:NAME`. data: a
    pair (inputs, labels) of arrays or lists, or a table with a column of labels: a data frame, a list of dicts, a
    `datasets.Dataset`. A batch has the form of the inputs.

    task: "classification", "regression" or "multilabel". class_names: in the order of the columns of `predict`.
    outputs: what `predict` gives: "probabilities", "logits", "scores", "classes" or "values". Default of the three:
    what the arrays look like, which is said where it could be otherwise. labels: the column of a table with the
    labels. inputs: the column or columns that the model reads. Default: all others. metadata: names of columns, or a
    table or dict of further ones. Default: all columns of a table that are numbers or categories. media: what a row
    looks like: images, paths or texts. Default: the inputs, where they are. representation: "features" (columns,
    scaled and encoded) or "texts" (the main axes of the words); an array (n, d); a function of a batch; a dict of
    name -> these; or False for none. Default: what fits the inputs. batch_size: rows a call. progress: called with a
    stage and the share done; `silent` for none.
    """
    return collect_rows(
        predict,
        rows_of(data, labels=labels, inputs=inputs),
        task=task,
        class_names=class_names,
        outputs=outputs,
        metadata=metadata,
        media=media,
        representation=representation,
        batch_size=batch_size,
        progress=progress,
    )


def collect_rows(
    predict: Predict,
    rows: Rows,
    *,
    task: Task | None = None,
    class_names: Sequence[str] | None = None,
    outputs: str | None = None,
    metadata: Any = None,
    media: Any = None,
    representation: Any = None,
    batch_size: int = 1024,
    progress: Progress = terminal_progress,
) -> Evaluation:
    """An Evaluation of a function on rows; the options are those of `from_predictor`."""
    if len(rows) == 0:
        raise InputError("the data has no rows; give at least one")
    given = _predict_all(predict, rows, batch_size, progress)
    fields, notes = _outcome(given, rows, task, class_names or rows.class_names, outputs)
    embeddings, sources = _model_embeddings(given)
    shown = as_media(media)
    if shown is None:
        shown = rows.media
    made, said = _representations(representation, replace(rows, media=shown), batch_size, bool(embeddings))
    for sentence in (*notes, *said):
        note(progress, sentence)
    return Evaluation(
        **fields,
        representations={**embeddings, **made},
        sources=sources,
        metadata=metadata_of(metadata, rows.columns, len(rows), rows.texts),
        media=shown,
        ids=rows.ids,
        groups=rows.groups,
    )


def is_function(source: Any) -> bool:
    """Whether this can be called with a batch; asked last, since most models can be called too."""
    return callable(source) and not isinstance(source, type)


def data_argument(data: Any) -> tuple[Any, ...]:
    """The rows that a model needs."""
    if data is None:
        raise InputError(
            "a model needs its rows; call collect(model, (inputs, labels)), or give a table with a column `label`"
        )
    return (data,)


FORMAT = ObjectFormat(
    "function", "a function that predicts a batch, with its rows", is_function, data_argument, from_predictor
)


def _predict_all(predict: Predict, rows: Rows, batch_size: int, progress: Progress) -> dict[str, Array]:
    """Name -> all rows of what the function gave; "output" where it has no name."""
    if batch_size < 1:
        raise InputError(f"`batch_size` must be at least 1; got {batch_size}")
    starts = range(0, len(rows), batch_size)
    k = len(np.unique(rows.labels.astype(str), axis=0))
    parts: dict[str, list[Array]] = {}
    for start in report_batches(starts, progress, "predict"):
        stop = min(start + batch_size, len(rows))
        batch = named_outputs(predict(rows.batch(start, stop)), k)
        for name, values in batch.items():
            if values.ndim == 0 or len(values) != stop - start:
                raise InputError(
                    f"the model gave {_described(name)} of shape {values.shape} for a batch of {stop - start} rows "
                    f"({start} to {stop - 1}); it must give one row an example"
                )
            parts.setdefault(name, []).append(values)
    return {name: np.concatenate(values) for name, values in parts.items()}


def _described(name: str) -> str:
    return "an output" if name == "output" else f"`{name}`"


def named_outputs(output: Any, k: int) -> dict[str, Array]:
    """What a function gave for a batch, as arrays under their names. k: how many different labels there are."""
    if isinstance(output, Mapping):
        for name in output:
            if name not in (*NAMED, "output") and not str(name).startswith("embedding:"):
                raise unknown("output of the model", str(name), (*NAMED, "embedding:NAME"))
        return {str(name): as_rows(value) for name, value in output.items()}
    if not isinstance(output, tuple) and not _is_pair_of_matrices(output):
        return {"output": as_rows(output)}
    if len(output) != 2:
        raise InputError(f"the model gave a tuple of {len(output)}; give its output, or a pair of output and embedding")
    parts = [as_rows(part) for part in output]
    best = max(range(2), key=lambda i: (_likeness(parts[i], k), -i))
    return {"output": parts[best], "embedding": parts[1 - best]}


def _is_pair_of_matrices(output: Any) -> bool:
    return isinstance(output, list) and len(output) == 2 and all(getattr(part, "ndim", 0) == 2 for part in output)


def _likeness(values: Array, k: int) -> int:
    """How much an array looks like the outputs for k classes rather than like an embedding."""
    columns = 1 if values.ndim == 1 else values.shape[1]
    if values.dtype.kind not in "biuf":
        return 3
    if values.ndim == 2 and columns > 1 and are_probabilities(values):
        return 2
    return int(columns == k or columns == 1)


def as_rows(value: Any) -> Array:
    """One row an example, as an array: from tensors, lists, series and frames."""
    if is_table(value) and not isinstance(value, list):
        value = np.stack([column_values(to_arrow(value), name) for name in to_arrow(value).column_names], axis=1)
    elif hasattr(value, "to_numpy"):
        value = value.to_numpy()
    try:
        array = plain(value)
    except ValueError as error:
        raise InputError("the model gave rows of different lengths; give one row an example") from error
    if array.dtype == object and all(isinstance(item, str) for item in array.flat):
        return array.astype(str)
    if array.dtype == object:
        kinds = ", ".join(sorted({type(item).__name__ for item in array.flat})[:3])
        raise InputError(f"the model gave a list of {kinds}; give numbers or names of classes, one row an example")
    return array


def _outcome(
    given: Mapping[str, Array],
    rows: Rows,
    task: Task | None,
    class_names: Sequence[str] | None,
    outputs: str | None,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The outcome of all rows as arguments of an Evaluation, and what was decided about it."""
    named = [name for name in given if name in (*KIND_OF, "output")]
    fields: dict[str, Any] = {}
    notes: tuple[str, ...] = ()
    for name in named:
        kind = KIND_OF.get(name, outputs)
        if name == "predictions" and (task == "regression" or given[name].dtype.kind == "f"):
            kind = outputs
        outcome = interpret(given[name], rows.labels, task=task, class_names=class_names, outputs=kind)
        fields = {**outcome.fields, **{key: value for key, value in fields.items() if value is not None}}
        notes = (*notes, *outcome.notes)
    if "losses" in given:
        fields["losses"] = given["losses"]
    if not fields:
        raise InputError(f"the model gave {', '.join(given) or 'nothing'}; give `probs`, `predictions` or `losses` too")
    return fields, notes


def _model_embeddings(given: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Source]]:
    """What the model gave as an embedding is its own."""
    names = [name for name in given if name == "embedding" or name.startswith("embedding:")]
    embeddings = {name.partition(":")[2] or name: given[name].reshape(len(given[name]), -1) for name in names}
    return embeddings, dict.fromkeys(embeddings, OWN)


def _representations(
    wanted: Any, rows: Rows, batch_size: int, has_one: bool
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """Representations beside the model's own, and what was left out of them.

    They have no source: an audit measures whether the inputs tell the prediction, as those of a linear model do.
    """
    if wanted is False:
        return {}, ()
    if wanted is None:
        wanted = _default_representation(rows)
        if wanted is None or (wanted == "texts" and has_one):
            return {}, ()
    if isinstance(wanted, str):
        wanted = {wanted: wanted}
    elif not isinstance(wanted, Mapping):
        wanted = {"embedding": wanted}
    made: dict[str, Array] = {}
    notes: tuple[str, ...] = ()
    for name, how in wanted.items():
        made[name], said = _represent(how, rows, batch_size)
        notes = (*notes, *said)
    return made, notes


def _default_representation(rows: Rows) -> str | None:
    """The features of a table or matrix; of texts, their words."""
    if rows.columns:
        return "features"
    if getattr(rows.inputs, "ndim", 0) == 2 and getattr(rows.inputs, "dtype", np.dtype(object)).kind in "biuf":
        return "features"
    if rows.media is not None and rows.media.kind == "text":
        return "texts"
    return None


def _represent(how: Any, rows: Rows, batch_size: int) -> tuple[Array, tuple[str, ...]]:
    """(n, d), and what is to be said about it."""
    if isinstance(how, str):
        if how == "features":
            return _features(rows)
        if how == "texts":
            return encode_words(_texts(rows)), ()
        raise unknown("representation", how, ("features", "texts"))
    if callable(how):
        starts = range(0, len(rows), batch_size)
        parts = [as_rows(how(rows.batch(start, min(start + batch_size, len(rows))))) for start in starts]
        return np.concatenate(parts), ()
    return as_rows(how), ()


def _features(rows: Rows) -> tuple[Array, tuple[str, ...]]:
    from scipy import sparse

    if rows.columns:
        columns = {name: values for name, values in rows.columns.items() if np.ndim(values) == 1}
        if rows.media is not None and rows.media.kind == "text":
            features = encode_rows(columns, _texts(rows))
            left_out = features.left_out
        else:
            features = encode_columns(columns)
            left_out = (*features.left_out, *rows.texts)
        if not left_out:
            return features.matrix, ()
        listed = ", ".join(f"`{name}`" for name in left_out)
        return features.matrix, (f"left out of the features: {listed} (constant, or another text in most rows)",)
    X = rows.inputs.toarray() if sparse.issparse(rows.inputs) else rows.inputs
    if np.ndim(X) < 2 or np.asarray(X[:1]).dtype.kind not in "biuf":
        raise InputError(
            f'representation="features" needs a table or a matrix of numbers; got {type(rows.inputs).__name__}; give '
            "an array (n, d) or a function of a batch"
        )
    array = np.asarray(X)
    return encode_matrix(array.reshape(len(array), -1)), ()


def _texts(rows: Rows) -> list[str]:
    media = rows.media
    if media is None or media.kind != "text":
        raise InputError('representation="texts" needs inputs that are texts; give an array (n, d) instead')
    return [media.text(i) or "" for i in range(len(media))]


def metadata_of(
    wanted: Any, columns: Mapping[str, Array], n: int, texts: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Metadata from the columns of a table, or from a table or dict beside the rows.

    wanted: None or "all" for all columns; names of some, or of `texts`; or a table, or dict of name -> (n,), that is
    added to all columns.
    """
    plain_columns = {name: values for name, values in columns.items() if np.ndim(values) == 1}
    if wanted is None or wanted is True:
        return plain_columns
    if isinstance(wanted, str):
        wanted = (wanted,)
    if is_table(wanted):
        table = to_arrow(wanted)
        wanted = {name: column_values(table, name) for name in table.column_names}
        wanted = {name: values for name, values in wanted.items() if np.ndim(values) == 1}
    if isinstance(wanted, Mapping):
        for name, values in wanted.items():
            if len(values) != n:
                raise InputError(
                    f"metadata `{name}` has {len(values):,} values where there are {n:,} rows; give one a row"
                )
        return {**plain_columns, **{str(name): as_column(values) for name, values in wanted.items()}}
    if "all" in wanted and "all" not in columns:
        return plain_columns
    known = {**columns, **(texts or {})}
    for name in wanted:
        if name not in known:
            raise unknown("metadata column", name, known)
    return {name: known[name] for name in wanted}


def as_column(values: Any) -> Array:
    """(n,) values of a list, tensor or series."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    return plain(values)
