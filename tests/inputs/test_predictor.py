"""Any function that predicts a batch, with rows in any form."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import special

import errata
from errata.core import InputError, silent
from errata.inputs import collect, from_predictor
from errata.inputs.progress import TerminalProgress


class Listening(TerminalProgress):
    """Hears the notes that a person would read."""

    def __init__(self):
        super().__init__()
        self.notes = []

    def __call__(self, stage, share):
        pass

    def note(self, text):
        self.notes.append(text)


@pytest.fixture
def said():
    return Listening()


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


def logit(batch):
    return 3.0 * np.asarray(batch)[:, 0]


def two_columns(batch):
    positive = special.expit(logit(batch))
    return np.stack([1 - positive, positive], axis=1)


FORMS = {
    "probabilities": two_columns,
    "probability of the second class": lambda batch: two_columns(batch)[:, 1],
    "logits": lambda batch: np.stack([np.zeros(len(batch)), logit(batch)], axis=1),
    "one logit": logit,
    "classes": lambda batch: (logit(batch) > 0).astype(int),
    "a dict": lambda batch: {"probs": two_columns(batch)},
    "a list": lambda batch: two_columns(batch).tolist(),
    "a frame": lambda batch: pd.DataFrame(two_columns(batch)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_output_gives_the_same_errors(form):
    X, y = rows()
    expected = (X[:, 0] > 0) != y
    evaluation = collect(FORMS[form], (X, y), progress=silent, batch_size=64)
    assert evaluation.task == "classification"
    assert np.array_equal(evaluation.errors, expected)
    if form not in ("classes",):
        assert np.allclose(evaluation.probs[:, 1], special.expit(3.0 * X[:, 0]), atol=1e-6)


def test_a_0_1_target_is_never_silently_a_regression(said):
    X, y = rows()
    evaluation = collect(lambda batch: special.expit(logit(batch)), (X, y), progress=said)
    assert evaluation.task == "classification"
    assert any("read as the probability of `1`" in note for note in said.notes)
    said.notes.clear()
    assert collect(logit, (X, y), progress=said).task == "classification"
    assert any("read as the logit of `1`" in note for note in said.notes)
    asked = collect(logit, (X, y), task="regression", progress=said)
    assert asked.task == "regression"
    assert np.allclose(asked.losses, (y - 3.0 * X[:, 0]) ** 2, atol=1e-5)


def test_whole_numbers_say_what_was_decided(said):
    X, _ = rows()
    stars = np.clip(np.round(X[:, 0] + 3), 1, 5).astype(int)
    evaluation = collect(lambda batch: batch[:, 0] + 3, (X, stars), progress=said)
    assert evaluation.task == "regression"
    assert "5 values, 1 to 5" in said.notes[0]
    assert "regression" in said.notes[0]
    said.notes.clear()
    rounded = collect(lambda batch: np.clip(np.round(batch[:, 0] + 3), 1, 5), (X, stars), progress=said)
    assert rounded.task == "classification"
    assert not rounded.errors.any()
    assert "read as classes" in said.notes[0]


def test_labels_that_are_text_take_their_order_from_class_names(said):
    X, y = rows()
    names = np.array(["no", "yes"])[y]
    by_alphabet = collect(two_columns, (X, names), progress=said)
    assert by_alphabet.class_names == ("no", "yes")
    assert "in the order no, yes" in said.notes[0]
    given = collect(lambda batch: two_columns(batch)[:, ::-1], (X, names), class_names=["yes", "no"], progress=silent)
    assert np.array_equal(given.errors, by_alphabet.errors)
    with pytest.raises(
        InputError, match=r"`labels` has the class 'no' at row .* `class_names` does not list; known: yes, nay"
    ):
        collect(two_columns, (X, names), class_names=["yes", "nay"], progress=silent)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        lambda columns: [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
    ],
    ids=["pandas", "polars", "arrow", "dicts"],
)
def test_tables_of_all_libraries_give_one_evaluation(table):
    X, y = rows()
    columns = {
        "a": X[:, 0].astype(float).tolist(),
        "job": np.array(["nurse", "cook"])[(X[:, 1] > 0).astype(int)].tolist(),
        "label": y.tolist(),
        "id": [f"row {i}" for i in range(len(y))],
    }

    def predict(batch):
        if isinstance(batch, list):
            assert list(batch[0]) == ["a", "job"]  # neither labels nor ids reach the model
            return special.expit(3 * np.array([row["a"] for row in batch]))
        assert list(getattr(batch, "column_names", batch.columns)) == ["a", "job"]
        return special.expit(3 * np.asarray(batch["a"], dtype=float))

    evaluation = collect(predict, table(columns), progress=silent, batch_size=100)
    assert np.array_equal(evaluation.errors, (X[:, 0] > 0) != y)
    assert list(evaluation.metadata) == ["a", "job"]
    assert evaluation.row_ids[7] == "row 7"
    features = evaluation.representations["features"]
    assert features.shape == (300, 3)
    assert "features" not in evaluation.sources  # measured, since inputs may tell the prediction
    a = X[:, 0].astype(float)
    assert np.allclose(features[:, 0], (a - a.mean()) / a.std(), atol=1e-5)


def test_one_column_is_read_by_its_name_and_labels_by_theirs():
    frame = pl.DataFrame(
        {"text": ["good film", "bad film"] * 20, "sentiment": ["pos", "neg"] * 20, "stars": [5, 1] * 20}
    )
    evaluation = collect(
        lambda texts: ["pos" if "good" in text else "neg" for text in texts],
        frame,
        labels="sentiment",
        inputs="text",
        progress=silent,
    )
    assert not evaluation.errors.any()
    assert evaluation.media.text(1) == "bad film"
    assert list(evaluation.metadata) == ["text", "stars"]


def test_representations_of_ones_own(said):
    X, y = rows()
    embedding = np.arange(600.0).reshape(300, 2)
    by_array = collect(two_columns, (X, y), representation=embedding, progress=silent)
    assert np.array_equal(by_array.representations["embedding"], embedding)
    named = collect(
        two_columns,
        (X, y),
        representation={"half": lambda batch: batch / 2, "raw": "features"},
        batch_size=7,
        progress=silent,
    )
    assert np.allclose(named.representations["half"], X / 2)
    assert list(named.representations) == ["half", "raw"]
    assert collect(two_columns, (X, y), representation=False, progress=silent).representations == {}
    pair = collect(lambda batch: (two_columns(batch), batch * 2), (X, y), representation=False, progress=silent)
    assert np.allclose(pair.representations["embedding"], X * 2)
    assert pair.source("embedding").from_model
    turned = collect(lambda batch: (batch * 2, two_columns(batch)), (X, y), representation=False, progress=silent)
    assert np.array_equal(turned.probs, pair.probs)


def test_texts_have_the_axes_of_their_words():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["good", "bad", "film", "day", "plot"], 6)) for _ in range(100)]
    y = np.array([int("good" in text) for text in texts])
    evaluation = collect(lambda batch: [int("good" in text) for text in batch], (texts, y), progress=silent)
    assert list(evaluation.representations) == ["texts"]
    again = collect(
        lambda batch: [int("good" in text) for text in batch], (texts[::-1], y[::-1]), progress=silent
    ).representations["texts"]
    assert np.allclose(again[::-1], evaluation.representations["texts"], atol=1e-5)  # row order does not matter
    assert evaluation.media.text(0) == texts[0]


def test_metadata_and_media_beside_arrays():
    X, y = rows(40)
    images = np.zeros((40, 8, 8), dtype=np.uint8)
    frame = pd.DataFrame({"site": ["a", "b"] * 20})
    evaluation = collect(two_columns, (X, y), metadata=frame, media=images, progress=silent)
    assert evaluation.metadata["site"].tolist() == ["a", "b"] * 20
    assert evaluation.media.thumbnail(3, 32)[:4] == b"\x89PNG"
    with pytest.raises(InputError, match="metadata `site` has 2 values where there are 40 rows"):
        collect(two_columns, (X, y), metadata={"site": ["a", "b"]}, progress=silent)


@pytest.mark.parametrize(
    ("predict", "data", "options", "words"),
    [
        (two_columns, None, {}, r"needs its rows; call collect\(model, \(inputs, labels\)\)"),
        (two_columns, 7, {}, "rows cannot be read from a int"),
        (two_columns, (np.eye(3), [0, 1]), {}, r"3 inputs and labels of shape \(2,\); give one label a row"),
        (two_columns, pd.DataFrame({"a": [1.0]}), {}, r"no column `label` \(it has `a`\); pass labels=NAME"),
        (two_columns, pd.DataFrame({"y": [1], "label": [1]}), {}, "both `label` and `y`.*pass labels=NAME"),
        (two_columns, pd.DataFrame({"a": [1.0]}), {"labels": "b"}, "column of labels `b`; known: a"),
        (lambda batch: np.eye(2), (np.eye(3), [0, 1, 1]), {}, r"shape \(2, 2\) for a batch of 3 rows \(0 to 2\)"),
        (lambda batch: batch * 2, (np.eye(3), ["a", "b", "b"]), {}, "2 values .*a, b.* 3 columns; pass `class_n"),
        (lambda batch: batch[:, 0] / 2, (np.eye(3), ["a", "b", "c"]), {}, "3 classes and .* one number a row"),
        (lambda batch: {"prob": batch}, (np.eye(3), [0, 1, 1]), {}, "output of the model `prob`; did you mean `probs`"),
        (lambda batch: (1, 2, 3), (np.eye(3), [0, 1, 1]), {}, "gave a tuple of 3"),
        (lambda batch: [None] * 3, (np.eye(3), [0, 1, 1]), {}, "gave a list of NoneType"),
        (lambda batch: [[1], [1, 2], [1]], (np.eye(3), [0, 1, 1]), {}, "rows of different lengths"),
        (two_columns, (np.eye(3), [0, 1, 1]), {"outputs": "probs"}, "kind of `outputs` `probs`; did you mean"),
        (two_columns, (np.eye(3), [0, 1, 1]), {"batch_size": 0}, "`batch_size` must be at least 1"),
        (two_columns, (np.eye(3), [0, 1, 1]), {"representation": "feature"}, "representation `feature`; did you mean"),
        (two_columns, (np.eye(3), [0, 1, 1]), {"representation": "texts"}, "needs inputs that are texts"),
        (two_columns, (np.eye(3), [0, 1, 1]), {"media": [1, 2, 3]}, "`media` must be images .* or texts.*list of int"),
        (two_columns, (np.eye(3), [0, 1, 1]), {"meta": 1}, "option of from_predictor `meta`; did you mean `metadata`"),
    ],
)  # fmt: skip
def test_bad_inputs_are_one_sentence(predict, data, options, words):
    with pytest.raises(InputError, match=words) as caught:
        collect(predict, data, progress=silent, **options)
    assert "\n" not in str(caught.value)


def test_an_audit_of_a_function_on_a_table_finds_what_was_planted():
    rng = np.random.default_rng(1)
    n = 4000
    frame = pd.DataFrame(
        {"age": rng.integers(18, 80, n), "job": rng.choice(["nurse", "cook", "clerk"], n), "x": rng.normal(size=n)}
    )
    y = (frame["x"] > 0).astype(int).to_numpy()
    flip = (frame["job"] == "cook") & (frame["age"] > 60) & (rng.random(n) < 0.6)
    evaluation = collect(
        lambda batch: special.expit(4 * batch["x"].to_numpy()), (frame, np.where(flip, 1 - y, y)), progress=silent
    )
    audit = errata.audit(evaluation)
    assert len(audit.confirmed) > 0
    planted = ((frame["job"] == "cook") & (frame["age"] > 60)).to_numpy()
    members = audit.confirmed[0].weights >= audit.confirmed[0].threshold
    assert planted[members].mean() > 0.5


def test_from_predictor_is_what_collect_calls():
    X, y = rows()
    assert np.array_equal(
        from_predictor(two_columns, (X, y), progress=silent).probs, collect(two_columns, (X, y), progress=silent).probs
    )
