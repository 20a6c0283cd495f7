"""The door: what an evaluation takes, derives, refuses, and never copies."""

from __future__ import annotations

import numpy as np
import pytest

from errata.core import Evaluation, InputError, MissingInput, RowView, Source
from errata.core.blocks import blocks
from errata.explain.examples import highest

PROBS = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.25, 0.5, 0.25]])
LABELS = np.array([0, 2, 2, 1])


class FakeTexts:
    kind = "text"

    def __init__(self, texts):
        self.texts = list(texts)

    def __len__(self):
        return len(self.texts)

    def rows(self, index):
        return FakeTexts(self.texts[i] for i in index)

    def thumbnail(self, i, px):
        return None

    def text(self, i):
        return self.texts[i]


# --- tasks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [np.array([0.2, 0.9, 0.5]), np.array([[0.2], [0.9], [0.5]])])
def test_one_logit_becomes_two_columns(column):
    evaluation = Evaluation(labels=[0, 0, 1], probs=column)
    assert evaluation.task == "classification"
    assert evaluation.probs == pytest.approx(np.array([[0.8, 0.2], [0.1, 0.9], [0.5, 0.5]]))
    assert evaluation.predictions[:2].tolist() == [0, 1]
    assert evaluation.errors[:2].tolist() == [False, True]
    assert evaluation.losses == pytest.approx(-np.log([0.8, 0.1, 0.5]))


def test_two_logits_are_a_binary_task():
    evaluation = Evaluation(labels=[0, 1], probs=[[0.9, 0.1], [0.6, 0.4]])
    assert evaluation.task == "classification"
    assert evaluation.predictions.tolist() == [0, 0]
    assert evaluation.errors.tolist() == [False, True]
    assert evaluation.losses == pytest.approx(-np.log([0.9, 0.4]))


def test_many_classes():
    evaluation = Evaluation(labels=LABELS, probs=PROBS)
    assert (len(evaluation), evaluation.task) == (4, "classification")
    assert evaluation.predictions.tolist() == [0, 1, 2, 1]
    assert evaluation.errors.tolist() == [False, True, False, False]
    assert evaluation.losses == pytest.approx(-np.log([0.7, 0.1, 0.4, 0.5]))
    assert list(evaluation.tasks()) == [("", evaluation)]
    assert evaluation.ids.tolist() == [0, 1, 2, 3]


def test_a_probability_of_nothing_costs_a_finite_loss():
    assert Evaluation(labels=[1], probs=[[1.0, 0.0]]).losses == pytest.approx([-np.log(1e-12)])


def test_classes_without_probabilities_cost_one_where_they_are_wrong():
    evaluation = Evaluation(labels=[0, 1, 5], predictions=[0, 3, 5])
    assert evaluation.losses.tolist() == [0, 1, 0]
    assert evaluation.errors.tolist() == [False, True, False]


def test_losses_and_predictions_that_are_given_are_kept():
    evaluation = Evaluation(labels=LABELS, probs=PROBS, predictions=[2, 2, 2, 2], losses=[4.0, 3.0, 2.0, 1.0])
    assert evaluation.predictions.tolist() == [2, 2, 2, 2]
    assert evaluation.losses.tolist() == [4, 3, 2, 1]


def test_multi_label_is_a_binary_task_for_each_label():
    labels = np.array([[1, 0], [0, 1], [1, 1]])
    probs = np.array([[0.9, 0.2], [0.6, 0.7], [0.3, 0.4]])
    evaluation = Evaluation(labels=labels, probs=probs, class_names=("cat", "dog"), ids=["a", "b", "c"])
    assert evaluation.task == "multilabel"
    assert evaluation.errors is None
    assert evaluation.predictions.tolist() == [[1, 0], [1, 1], [0, 0]]
    true = np.array([[0.9, 0.8], [0.4, 0.7], [0.3, 0.4]])
    assert evaluation.losses == pytest.approx(-np.log(true).mean(axis=1))
    (cat, is_cat), (dog, is_dog) = evaluation.tasks()
    assert (cat, dog) == ("cat", "dog")
    assert is_cat.task == is_dog.task == "classification"
    assert is_cat.errors.tolist() == [False, True, True]
    assert is_dog.errors.tolist() == [False, False, True]
    assert is_dog.probs == pytest.approx(np.array([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]))
    assert is_dog.losses == pytest.approx(-np.log([0.8, 0.7, 0.4]))
    assert is_dog.class_names == ("not dog", "dog")
    assert is_dog.ids is evaluation.ids


def test_multi_label_without_probabilities_costs_the_share_that_is_wrong():
    evaluation = Evaluation(labels=[[1, 0, 1, 0]], predictions=[[1, 1, 1, 0]])
    assert evaluation.losses.tolist() == [0.25]
    assert [task.errors.tolist() for _, task in evaluation.tasks()] == [[False], [True], [False], [False]]


def test_regression_costs_the_squared_error():
    evaluation = Evaluation(labels=[1.5, 2.0], predictions=[1.0, 4.0])
    assert evaluation.task == "regression"
    assert evaluation.errors is None
    assert evaluation.losses == pytest.approx([0.25, 4.0])


def test_ratings_are_a_regression_where_one_says_so():
    ratings = {"labels": [1, 5, 3], "predictions": [1, 2, 4]}
    said = Evaluation(**ratings, task="regression")
    assert (said.task, said.errors) == ("regression", None)
    assert said.losses.tolist() == [0, 9, 1]
    assert Evaluation(**ratings).task == "classification"


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16])
def test_losses_and_probabilities_in_whole_numbers_can_be_ordered(dtype):
    """Minus 1 is 255 in bytes: the lowest losses were shown as the highest, and of booleans there was no audit."""
    losses = np.arange(200) % 2
    rows = Evaluation(losses=losses.astype(dtype))
    assert rows.losses.dtype == np.float64
    assert list(highest(rows.losses, np.arange(200), 3)) == [1, 3, 5]
    probs = np.stack([losses, 1 - losses], axis=1).astype(dtype)
    assert Evaluation(labels=losses, probs=probs).probs.dtype == np.float64


def test_losses_alone_are_enough():
    evaluation = Evaluation(losses=[0.5, 1.5])
    assert evaluation.task == "loss"
    assert evaluation.errors is None
    assert evaluation.labels is None


def test_rows_without_labels_have_no_losses():
    evaluation = Evaluation(probs=PROBS, representations={"x": np.ones((4, 2))})
    assert evaluation.losses is None
    assert evaluation.errors is None
    assert evaluation.predictions.tolist() == [0, 1, 2, 1]


def test_one_class_is_fine():
    evaluation = Evaluation(labels=[1, 1, 1], probs=[0.9, 0.2, 0.8])
    assert evaluation.errors.tolist() == [False, True, False]


@pytest.mark.parametrize("as_array", [list, lambda v: np.array(v, dtype=object), np.array])
def test_text_labels_become_classes(as_array):
    evaluation = Evaluation(labels=as_array(["dog", "cat", "dog"]), predictions=as_array(["dog", "eel", "cat"]))
    assert evaluation.class_names == ("cat", "dog", "eel")
    assert evaluation.labels.tolist() == [1, 0, 1]
    assert evaluation.predictions.tolist() == [1, 2, 0]
    assert evaluation.errors.tolist() == [False, True, True]
    assert evaluation.class_name(2) == "eel"


def test_text_labels_follow_the_order_of_names_that_are_given():
    evaluation = Evaluation(labels=["dog", "cat"], probs=[[0.9, 0.1], [0.2, 0.8]], class_names=("dog", "cat"))
    assert evaluation.labels.tolist() == [0, 1]
    assert not evaluation.errors.any()


def test_booleans_are_classes():
    labels = Evaluation(labels=[True, False], predictions=[True, True]).labels
    assert (labels.dtype.kind, labels.tolist()) == ("i", [1, 0])


def test_whole_floats_are_classes():
    evaluation = Evaluation(labels=np.array([0.0, 2.0]), probs=PROBS[:2])
    assert evaluation.labels.dtype.kind == "i"
    assert Evaluation(labels=np.array([0.0, 2.0]), predictions=[0, 1]).task == "classification"


def test_half_precision_probabilities_may_miss_one_by_their_rounding():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(1000), 50).astype(np.float16)
    assert Evaluation(labels=np.zeros(50, int), probs=probs).task == "classification"


# --- arrays are views, and read-only ----------------------------------------------------------------------


def test_arrays_are_read_only_views():
    X, losses, labels = np.ones((4, 3)), np.ones(4), LABELS.copy()
    evaluation = Evaluation(losses=losses, labels=labels, predictions=LABELS, representations={"x": X})
    assert np.shares_memory(evaluation.representations["x"], X)
    assert np.shares_memory(evaluation.losses, losses)
    assert np.shares_memory(evaluation.labels, labels)
    for array in (evaluation.losses, evaluation.labels, evaluation.ids, evaluation.representations["x"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    X[0, 0] = 5  # the user's own array stays theirs to write
    assert evaluation.representations["x"][0, 0] == 5


def test_an_evaluation_is_frozen():
    evaluation = Evaluation(losses=[1.0])
    with pytest.raises(AttributeError):
        evaluation.losses = np.zeros(1)


@pytest.fixture
def on_disk(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    return X, Evaluation(losses=np.arange(50.0), representations={"x": mapped})


def test_rows_of_a_memory_map_stay_on_disk(on_disk):
    X, evaluation = on_disk
    assert isinstance(evaluation.representations["x"], np.memmap)
    some = evaluation.rows(np.arange(50) % 2 == 0).rows(np.array([3, 1]))
    view = some.representations["x"]
    assert isinstance(view, RowView)
    assert (view.shape, view.dtype, view.ndim, len(view)) == ((2, 3), np.float32, 2, 2)
    assert np.array_equal(np.asarray(view), X[[6, 2]])
    assert np.array_equal(view[1:], X[[2]])
    assert np.asarray(view, dtype=np.float64).dtype == np.float64
    assert view.array is evaluation.representations["x"]  # one map, however many times rows are picked


def test_a_view_of_rows_is_read_in_blocks(on_disk):
    X, evaluation = on_disk
    view = evaluation.rows(np.arange(49, -1, -1)).representations["x"]
    parts = list(blocks(view, budget=7 * 3 * 4))
    assert [rows.stop - rows.start for rows, _ in parts] == [7] * 7 + [1]
    assert np.array_equal(np.concatenate([part for _, part in parts]), X[::-1])


def test_an_evaluation_can_be_built_on_a_view_of_rows(on_disk):
    X, evaluation = on_disk
    view = evaluation.rows(np.arange(10)).representations["x"]
    again = Evaluation(losses=np.arange(10.0), representations={"x": view})
    assert isinstance(again.representations["x"], RowView)
    assert np.array_equal(np.asarray(again.representations["x"]), X[:10])


# --- rows -------------------------------------------------------------------------------------------------


def _full():
    return Evaluation(
        labels=LABELS,
        probs=PROBS,
        ids=["d", "a", "c", "b"],
        groups=[7, 7, 8, 8],
        representations={"x": np.arange(8.0).reshape(4, 2)},
        metadata={"site": ["n", "s", None, "w"]},
        media=FakeTexts(["zero", "one", "two", "three"]),
        sources={"x": Source(from_model=False)},
    )


@pytest.mark.parametrize("index", [np.array([2, 0]), np.array([True, False, True, False])])
def test_some_rows_take_everything_along(index):
    some = _full().rows(index)
    order = [2, 0] if index.dtype != bool else [0, 2]
    assert some.labels.tolist() == LABELS[order].tolist()
    assert some.probs.tolist() == PROBS[order].tolist()
    assert some.losses == pytest.approx(_full().losses[order])
    assert some.predictions.tolist() == [_full().predictions[i] for i in order]
    assert some.ids.tolist() == [["d", "a", "c", "b"][i] for i in order]
    assert some.groups.tolist() == [[7, 7, 8, 8][i] for i in order]
    assert some.representations["x"][:, 0].tolist() == [2.0 * i for i in order]
    assert some.metadata["site"].tolist() == [["n", "s", "", "w"][i] for i in order]
    assert [some.media.text(i) for i in range(2)] == [["zero", "one", "two", "three"][i] for i in order]
    assert some.errors.tolist() == _full().errors[order].tolist()
    assert some.task == "classification"
    assert not some.source("x").from_model


def test_rows_in_the_order_of_their_ids():
    ordered = _full().by_id()
    assert ordered.ids.tolist() == ["a", "b", "c", "d"]
    assert ordered.labels.tolist() == LABELS[[1, 3, 2, 0]].tolist()
    assert ordered.by_id() is ordered


def test_the_fingerprint_is_of_the_rows_whatever_their_order():
    evaluation = _full()
    assert evaluation.fingerprint == evaluation.rows(np.array([2, 3, 0, 1])).fingerprint
    assert evaluation.fingerprint != evaluation.rows(np.array([2, 3, 0])).fingerprint


@pytest.mark.parametrize("change", [{"labels": [0, 2, 2, 2]}, {"losses": np.ones(4)}, {"ids": ["d", "a", "c", "e"]}])
def test_the_fingerprint_tells_other_rows_apart(change):
    given = {"labels": LABELS, "probs": PROBS, "ids": ["d", "a", "c", "b"]}
    assert Evaluation(**given).fingerprint != Evaluation(**{**given, **change}).fingerprint


def test_the_fingerprint_does_not_depend_on_how_wide_a_whole_number_is():
    wide, narrow = (
        Evaluation(labels=LABELS.astype(t), predictions=LABELS[::-1].astype(t), ids=np.arange(4, dtype=t))
        for t in (np.int64, np.int32)
    )
    assert wide.fingerprint == narrow.fingerprint


def test_a_representation_can_be_added():
    evaluation = _full().with_representation("clip", np.zeros((4, 5)), Source(from_model=False))
    assert list(evaluation.representations) == ["x", "clip"]
    assert not evaluation.source("clip").from_model
    assert Evaluation(losses=[1.0], representations={"y": [[1.0]]}).source("y").from_model  # the careful assumption


def test_representations_by_name():
    evaluation = _full().with_representation("penultimate", np.zeros((4, 5)))
    assert evaluation.representation(None, "a test") == "x"
    assert evaluation.representation("penultimate", "a test") == "penultimate"
    with pytest.raises(InputError, match="did you mean `penultimate`"):
        evaluation.representation("penultimat", "a test")
    with pytest.raises(MissingInput, match="a test needs `representations`"):
        Evaluation(losses=[1.0]).representation(None, "a test")


def test_what_is_missing_is_named():
    with pytest.raises(MissingInput, match="method `x` needs `probs`"):
        Evaluation(losses=[1.0]).need(frozenset({"losses", "probs"}), "method `x`")
    Evaluation(losses=[1.0]).need(frozenset({"losses"}), "method `x`")


def test_metadata_may_have_gaps():
    evaluation = Evaluation(losses=np.ones(3), metadata={"site": ["a", None, float("nan")], "age": [1.0, np.nan, 3.0]})
    assert evaluation.metadata["site"].tolist() == ["a", "", ""]
    assert np.isnan(evaluation.metadata["age"][1])


# --- what is refused --------------------------------------------------------------------------------------

NAN = float("nan")
REFUSED = {
    "nothing": ({}, "needs losses, or labels with probs"),
    "a single value": ({"losses": 3.0}, "`losses`.*single value"),
    "no rows": ({"losses": []}, "`losses` has no rows"),
    "no ids": ({"losses": [1.0], "ids": np.array([], dtype="<U5")}, "`ids` has 0 rows"),
    "lengths": ({"losses": [1.0, 2.0], "labels": [1]}, "`labels` has 1 rows where the evaluation has 2"),
    "length of probs": ({"labels": [0, 1], "losses": [1, 2], "probs": PROBS}, "`probs` has 4 rows.* 2"),
    "length of ids": ({"losses": [1.0, 2.0], "ids": [1]}, "`ids` has 1 rows"),
    "length of groups": ({"losses": [1.0, 2.0], "groups": [1]}, "`groups` has 1 rows"),
    "length of metadata": ({"losses": [1.0, 2.0], "metadata": {"site": ["a"]}}, "`metadata:site` has 1 rows"),
    "length of a representation": (
        {"losses": [1.0, 2.0], "representations": {"x": np.ones((3, 2))}},
        "`embedding:x` has 3 rows",
    ),
    "length of media": ({"losses": [1.0, 2.0], "media": FakeTexts("a")}, "`media` has 1 items.* 2 rows"),
    "NaN in losses": ({"losses": [1.0, NAN]}, "`losses` has NaN, first at row 1"),
    "infinite losses": ({"losses": [np.inf, 1.0]}, "`losses` has an infinite value, first at row 0"),
    "NaN in labels": ({"labels": [0.0, NAN], "predictions": [0, 1]}, "`labels` has NaN, first at row 1"),
    "NaN in a representation": (
        {"losses": [1.0, 2.0], "representations": {"x": [[1.0, 2.0], [NAN, 1.0]]}},
        "`embedding:x` has NaN, first at row 1",
    ),
    "NaN in probs": ({"labels": [0, 1], "probs": [[0.5, 0.5], [NAN, 1]]}, "`probs` has NaN, first at row 1"),
    "NaN in groups": ({"losses": [1.0, 2.0], "groups": [1.0, NAN]}, "`groups` has NaN.*row 1"),
    "logits": (
        {"labels": [0, 1], "probs": [[0.5, 0.5], [3.2, -1]]},
        "`probs` must lie in .0, 1.; got 3.2.*row 1.*soft",
    ),
    "sums": ({"labels": [0, 1], "probs": [[0.5, 0.5], [0.5, 0.4]]}, "sum to 1; row 1 sums to 0.9.*softmax"),
    "probs in three dimensions": ({"labels": [0], "probs": np.ones((1, 1, 1))}, r"`probs`.*shape \(1, 1, 1\)"),
    "a class out of range": ({"labels": [0, 2], "probs": [[0.5, 0.5]] * 2}, "`labels`.*0 to 1.*got 2 at row 1"),
    "a negative class": ({"labels": [0, -1], "probs": [[0.5, 0.5]] * 2}, "`labels`.*got -1 at row 1"),
    "a prediction out of range": (
        {"labels": [0, 1], "predictions": [0, 5], "probs": [[0.5, 0.5]] * 2},
        "`predictions`.*got 5 at row 1",
    ),
    "half a class": ({"labels": [0, 0.5], "probs": [[0.5, 0.5]] * 2}, "`labels` must be class indices.*0.5 at row 1"),
    "ids twice": ({"losses": [1.0, 2, 3], "ids": ["a", "b", "a"]}, "`ids` must be unique; got a at rows 0 and 2"),
    "float ids": ({"losses": [1.0, 2.0], "ids": [0.5, 1.5]}, "`ids` must be whole numbers or text"),
    "groups in two dimensions": ({"losses": [1.0, 2.0], "groups": [[1, 2], [1, 2]]}, "`groups`.*one value a row"),
    "losses in two dimensions": ({"losses": [[1.0, 2.0]]}, r"`losses`.*shape \(1, 2\)"),
    "text losses": ({"losses": ["high", "low"]}, "`losses` must be numbers"),
    "a flat representation": ({"losses": [1.0], "representations": {"x": [1.0]}}, r"`embedding:x`.*\(n, d\)"),
    "an empty representation": ({"losses": [1.0], "representations": {"x": [[]]}}, "`embedding:x`.*d at least 1"),
    "ragged": ({"losses": [1.0, 2.0], "representations": {"x": [[1.0], [1.0, 2.0]]}}, "`embedding:x` is ragged"),
    "objects": ({"losses": np.array([1.0, None], dtype=object)}, "`losses` is an object array.*NoneType"),
    "multi-label shapes": ({"labels": [[0, 1]], "probs": [[0.5, 0.2, 0.3]]}, r"`probs`.*multi-label.*\(1, 2\)"),
    "multi-label values": ({"labels": [[0, 1], [0, 3]], "probs": [[0.5, 0.5]] * 2}, "multi-label.*got 3 at row 1"),
    "multi-label predictions": (
        {"labels": [[0, 1]], "predictions": [1]},
        r"`predictions` must have the shape of multi-label",
    ),
    "labels in three dimensions": ({"labels": np.ones((2, 2, 2))}, r"`labels`.*shape \(2, 2, 2\)"),
    "text and numbers": (
        {"labels": ["cat", "dog"], "predictions": [0, 1]},
        "`labels` is text but `predictions` is num",
    ),
    "an unknown name": (
        {"labels": ["cat", "eel"], "predictions": ["cat", "cat"], "class_names": ("cat", "dog")},
        "`labels` has the class 'eel' at row 1.*known: cat, dog",
    ),
    "names for other columns": (
        {"labels": [0], "probs": [[0.5, 0.5]], "class_names": ("a", "b", "c")},
        "`class_names` has 3 names where `probs` has 2",
    ),
    "a name twice": ({"labels": [0], "predictions": [0], "class_names": ("a", "a")}, "`class_names` must be unique"),
    "a class without a name": (
        {"labels": [0, 2], "predictions": [0, 0], "class_names": ("a", "b")},
        "class 2 has no name",
    ),
    "another task": ({"losses": [1.0], "task": "regression"}, "`task` is 'regression'.*'loss'"),
    "a regression with probs": (
        {"labels": [0, 1], "probs": [[0.5, 0.5]] * 2, "task": "regression"},
        "`task` is 'regression'.*'classification'",
    ),
    "a source of nothing": (
        {"losses": [1.0], "representations": {"clip": [[1.0]]}, "sources": {"clib": Source()}},
        "unknown representation `clib`; did you mean `clip`",
    ),
    "metadata in two dimensions": ({"losses": [1.0], "metadata": {"site": [["a", "b"]]}}, "`site`.*one value a row"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_what_where_and_the_cure(name):
    given, words = REFUSED[name]
    with pytest.raises(InputError, match=words) as caught:
        Evaluation(**given)
    assert "\n" not in str(caught.value)  # one sentence


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_first_bad_row_is_found_beyond_the_first_block(dtype):
    X = np.zeros((200_000, 4), dtype=dtype)
    X[150_001, 2] = np.nan
    with pytest.raises(InputError, match="row 150001"):
        Evaluation(losses=np.zeros(200_000), representations={"x": X})


def test_what_no_regression_has_is_not_asked_for():
    heights = np.linspace(0, 1, 30)
    evaluation = Evaluation(labels=heights, predictions=heights, representations={"x": heights[:, None]})
    for name in ("errors", "probs"):
        with pytest.raises(InputError, match=f"a tree needs `{name}` of classes; this evaluation is one of regression"):
            evaluation.need(frozenset({name}), "a tree")
