"""Representations of a model's inputs, made from their columns or their words.

Numbers are standardised, categories become one column each, missing values are filled in and marked; texts become the
main axes of their words. Nothing here reads a label or a prediction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core import Array, InputError

MOST_CATEGORIES = 30  # of a column that get a column of their own; the others share one
FEWEST_ROWS = 10  # of a category that gets one
SHARED = 0.5**0.5  # so that two rows of different categories lie as far apart as two numbers one deviation apart
UNEQUAL = 10.0  # times the spread of one column is another's: then they have different units
WORD_AXES = 64
MOST_WORDS = 20_000
FEWEST_TEXTS = 2  # that a word must be in


@dataclass(frozen=True, eq=False)
class Features:
    """A table as numbers.

    matrix: (n, d) without missing values. names: (d,) "age", "age is missing", "job = nurse". left_out: columns that
    are neither numbers nor categories, such as names and free text.
    """

    matrix: Array
    names: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def encode_columns(columns: Mapping[str, Array]) -> Features:
    """Columns of numbers and of text as one matrix.

    columns: name -> (n,) numbers, booleans, dates or text; NaN and None are missing.
    """
    parts: list[Array] = []
    names: list[str] = []
    left_out: list[str] = []
    for name, values in columns.items():
        encoded = dict(_encode(name, np.asarray(values)))
        if not encoded:
            left_out.append(name)
        names += encoded
        parts += encoded.values()
    if not parts:
        listed = ", ".join(f"`{name}`" for name in columns) or "(none)"
        raise InputError(
            f"none of the columns {listed} is a feature: each is constant or has another text in most rows; give "
            "`representation`"
        )
    return Features(np.stack(parts, axis=1).astype(np.float32), tuple(names), tuple(left_out))


def encode_matrix(X: Array) -> Array:
    """(n, d) numbers without missing values, standardised where columns have different units.

    Columns of about one spread (pixels, an embedding) stay as they are: what varies little there matters little.
    """
    if X.dtype.kind in "biu":
        X = X.astype(np.float64)
    finite = np.isfinite(X)
    if finite.all():
        spread = X.std(axis=0)
        spread = spread[spread > 0]
        if not len(spread) or spread.max() <= UNEQUAL * spread.min():
            return X
    return encode_columns({f"column {j}": X[:, j] for j in range(X.shape[1])}).matrix


def _encode(name: str, values: Array) -> Iterator[tuple[str, Array]]:
    """The columns that one column becomes; none where it is constant or names rows."""
    if values.dtype.kind == "O" or values.dtype.kind in "US":
        yield from _categories(name, values)
        return
    if values.dtype.kind in "mM":
        numbers = np.where(np.isnat(values), np.nan, values.astype(np.int64).astype(np.float64))
    else:
        numbers = values.astype(np.float64)
    present = np.isfinite(numbers)
    if not present.any():
        return
    filled = np.where(present, numbers, np.median(numbers[present]))
    spread = filled.std()
    if np.isin(filled, (0, 1)).all() and spread > 0:  # a category already; scaled, a rare one would outweigh all else
        yield name, SHARED * filled
    elif spread > 0:
        yield name, (filled - filled.mean()) / spread
    if (~present).sum() >= FEWEST_ROWS:
        yield f"{name} is missing", SHARED * ~present


def _categories(name: str, values: Array) -> Iterator[tuple[str, Array]]:
    texts = np.array([_text(value) for value in values.tolist()])
    kinds, index, counts = np.unique(texts, return_inverse=True, return_counts=True)
    if len(kinds) < 2 or len(kinds) > max(MOST_CATEGORIES, len(texts) / 2):
        return
    order = np.argsort(-counts, kind="stable")
    own = [i for i in order[:MOST_CATEGORIES] if counts[i] >= FEWEST_ROWS or len(kinds) <= 2]
    for i in own:
        label = f"{name} = {kinds[i]}" if kinds[i] else f"{name} is missing"
        yield label, SHARED * (index == i)
    others = ~np.isin(index, own)
    if others.any() and own:
        yield f"{name} = any other", SHARED * others


def _text(value: object) -> str:
    """ "" where it is missing."""
    if value is None or value != value:
        return ""
    return str(value)


def encode_words(texts: Sequence[str], axes: int = WORD_AXES) -> Array:
    """(n, d) the main axes of the words of texts (tf-idf and a truncated singular value decomposition).

    It knows words, not meanings; a sentence encoder's embedding finds more.
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(max_features=MOST_WORDS, min_df=min(FEWEST_TEXTS, len(texts)), sublinear_tf=True)
    try:
        matrix = words.fit_transform(list(texts))
    except ValueError as error:
        raise InputError("the texts share no words, so they have no axes; give `representation`") from error
    axes = min(axes, min(matrix.shape) - 1)
    if axes < 1:
        raise InputError(f"the texts share {matrix.shape[1]} words, too few for axes; give `representation`")
    with np.errstate(divide="ignore", invalid="ignore"):  # its share of the variance, which nobody reads, may be 0 / 0
        reduced: Array = TruncatedSVD(axes, algorithm="arpack", random_state=0).fit_transform(matrix)
    return reduced.astype(np.float32)


def encode_rows(columns: Mapping[str, Array], texts: Sequence[str]) -> Features:
    """Columns and the main axes of texts as one matrix; the axes together count as much as one column.

    Where either has nothing to tell, the other stands alone.
    """
    parts: list[Features] = []
    failure: InputError | None = None
    try:
        parts.append(encode_columns(columns))
    except InputError as error:
        failure = error
    try:
        words = encode_words(texts)
        spread = np.sqrt(words.var(axis=0).sum())
        names = tuple(f"words {j + 1}" for j in range(words.shape[1]))
        parts.append(Features(words / np.float32(max(spread, 1e-12)), names))
    except InputError as error:
        failure = failure or error
    if not parts:
        assert failure is not None
        raise failure
    names = tuple(name for part in parts for name in part.names)
    return Features(np.concatenate([part.matrix for part in parts], axis=1), names, parts[0].left_out)
