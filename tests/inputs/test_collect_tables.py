import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from errata.core import InputError
from errata.inputs import from_table
from errata.inputs.tables import is_table, matrix

COLUMNS = {
    "ids": ["a", "b", "c", "d"],
    "labels": ["cat", "dog", "cat", "dog"],
    "predictions": ["cat", "dog", "dog", "dog"],
    "prob:dog": [0.1, 0.9, 0.7, 0.8],
    "prob:cat": [0.9, 0.1, 0.3, 0.2],
    "embedding": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]],
    "groups": [1, 1, 2, 2],
    "age": [30, None, 50, 60],
    "city": ["Bonn", None, "Ulm", "Ulm"],
    "text": ["one", "two", "three", None],
}


def same(one, other):
    for name in ("ids", "labels", "predictions", "probs", "losses", "groups"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.class_names == other.class_names
    assert np.array_equal(one.representations["embedding"], other.representations["embedding"])
    assert np.array_equal(one.metadata["age"], other.metadata["age"], equal_nan=True)
    assert one.metadata["city"].tolist() == other.metadata["city"].tolist()
    assert [one.media.text(i) for i in range(4)] == [other.media.text(i) for i in range(4)]


def test_pandas_polars_and_arrow_give_the_same_evaluation():
    frames = [pa.table(COLUMNS), pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS)]
    first, *others = [from_table(frame, metadata=["age", "city"], foreign=["embedding"]) for frame in frames]
    assert first.class_names == ("dog", "cat")
    assert first.labels.tolist() == [1, 0, 1, 0]
    assert first.errors.tolist() == [False, False, True, False]
    assert not first.source("embedding").from_model
    for other in others:
        same(first, other)


def test_categories_and_fixed_lists_are_understood():
    frame = pd.DataFrame(COLUMNS)
    frame["labels"] = frame["labels"].astype("category")
    same(from_table(frame, metadata=["age", "city"]), from_table(pa.table(COLUMNS), metadata=["age", "city"]))
    fixed = pl.DataFrame(COLUMNS).with_columns(
        pl.col("embedding").cast(pl.Array(pl.Float32, 2)), pl.col("labels").cast(pl.Categorical)
    )
    ev = from_table(fixed, metadata=["age", "city"])
    assert ev.representations["embedding"].dtype == np.float32
    same(ev, from_table(pa.table(COLUMNS), metadata=["age", "city"]))


def test_tables_read_in_many_pieces_keep_their_categories():
    pieces = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c"]).dictionary_encode()]
    ev = from_table(pa.table({"labels": pa.chunked_array(pieces), "losses": [1.0, 2.0, 3.0, 4.0]}))
    assert ev.labels.tolist() == [0, 1, 1, 2]


def test_a_list_column_becomes_a_matrix_without_a_copy():
    values = np.arange(12, dtype=np.float32)
    column = pa.chunked_array([pa.FixedSizeListArray.from_arrays(pa.array(values), 3)])
    array = matrix("embedding", column)
    assert array.dtype == np.float32
    assert np.array_equal(array, values.reshape(4, 3))
    assert np.shares_memory(array, values)


def test_sliced_and_chunked_list_columns_keep_their_rows():
    whole = pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    column = pa.chunked_array([whole.slice(1), whole.slice(0, 0), whole.slice(0, 1)])
    assert matrix("embedding", column).tolist() == [[3, 4], [5, 6], [1, 2]]
    with pytest.raises(InputError, match="inside the list of row 4"):
        matrix("embedding", pa.chunked_array([whole, pa.array([[1.0, 2.0], [1.0, None]])]))


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        ([[1.0, 2.0], [1.0], None], "missing value.*row 2"),
        ([[1.0, 2.0], [1.0, 2.0], [1.0]], "different lengths: row 2 has 1"),
        ([[1.0, 2.0], [1.0, 2.0], [1.0, None]], "missing value inside the list of row 2"),
        ([[1.0, 2.0], [1.0, float("nan")], [1.0, 2.0]], "NaN, first at row 1"),
        ([["a"], ["b"], ["c"]], "lists of numbers; got lists of string"),
        ([1.0, 2.0, 3.0], "column of lists of numbers; got double"),
        ([[], [], []], "d at least 1"),
    ],
)
def test_embeddings_that_are_no_matrix_name_the_row(lists, words):
    with pytest.raises(InputError, match=f"embedding.*{words}"):
        from_table(pa.table({"losses": [1.0, 2.0, 3.0], "embedding": lists}))


def test_multilabel_tables_have_lists_of_labels():
    ev = from_table(pa.table({"labels": [[0, 1], [1, 1]], "probs": [[0.2, 0.7], [0.4, 0.9]]}))
    assert ev.task == "multilabel"
    assert ev.predictions.tolist() == [[0, 1], [0, 1]]


def test_names_that_are_nearly_right_do_not_pass_in_silence():
    for slip, right in (("label", "labels"), ("ID", "ids"), ("Loss", "losses")):
        with pytest.raises(InputError, match=f"`{slip}`.*`{right}`"):
            from_table(pa.table({"losses" if right != "losses" else "labels": [1.0], slip: [1.0]}))
    assert list(from_table(pa.table({"losses": [1.0], "label": ["x"]}), metadata=["label"]).metadata) == ["label"]


def test_probabilities_are_given_once():
    with pytest.raises(InputError, match="both `probs` and `prob:a`"):
        from_table(pa.table({"labels": [0], "probs": [[0.5, 0.5]], "prob:a": [0.5], "prob:b": [0.5]}))
    with pytest.raises(InputError, match="`age` and `metadata:age`"):
        from_table(pa.table({"losses": [1.0], "age": [1], "metadata:age": [2]}), metadata=["age"])


def test_mixed_pandas_columns_say_so():
    frame = pd.DataFrame({"losses": [1.0, 2.0], "mixed": [1, "a"]})
    with pytest.raises(InputError, match=r"cannot be read.*one type"):
        from_table(frame)


def test_what_is_a_table():
    frame = {"losses": [1.0]}
    assert all(is_table(made) for made in (pd.DataFrame(frame), pl.DataFrame(frame), pa.table(frame)))
    assert not any(is_table(other) for other in (frame, [1.0], np.ones(3), pd.Series([1.0]), "losses"))


def test_all_takes_every_column_that_is_nothing_else():
    more = {"metadata:camera": ["A", "B", "A", "B"], "picture": [b"x"] * 4, "boxes": [[1, 2]] * 4}
    for frame in (pa.table({**COLUMNS, **more}), pd.DataFrame({**COLUMNS, **more})):
        ev = from_table(frame, metadata=["all"])
        assert sorted(ev.metadata) == ["age", "camera", "city"]  # neither bytes nor lists, nor what is known
        assert list(ev.representations) == ["embedding"]


def test_a_column_may_be_called_all():
    ev = from_table(pa.table({**COLUMNS, "all": [1, 2, 3, 4]}), metadata="all")
    assert list(ev.metadata) == ["all"]


def test_all_does_not_hide_a_known_name_misspelt():
    columns = {"Label" if name == "labels" else name: values for name, values in COLUMNS.items()}
    with pytest.raises(InputError, match="read under the name `labels`"):
        from_table(pa.table(columns), metadata=["all"])
