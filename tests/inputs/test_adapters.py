"""Models of other libraries, each with its own package: tests of packages that are not installed are skipped."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import special

import errata
from errata.core import InputError, silent
from errata.inputs import collect


def planted(n=3000, seed=0):
    """A table whose labels are noisy in one corner, so that every good model is wrong there."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"a": rng.normal(size=n), "b": rng.normal(size=n), "age": rng.integers(18, 80, n).astype(float)}
    )
    y = (frame["a"] > 0).astype(int).to_numpy()
    corner = (frame["age"] > 65).to_numpy()
    return frame, np.where(corner & (rng.random(n) < 0.5), 1 - y, y), corner


def finds(evaluation, corner):
    audit = errata.audit(evaluation)
    assert len(audit.confirmed) > 0
    best = audit.confirmed[0]
    return corner[best.weights >= best.threshold].mean()


# ---- boosters


def test_a_lightgbm_booster_by_its_objective():
    lightgbm = pytest.importorskip("lightgbm")
    frame, y, corner = planted()
    quiet = {"verbose": -1, "num_leaves": 4, "min_data_in_leaf": 200, "num_threads": 1}
    booster = lightgbm.train({"objective": "binary", **quiet}, lightgbm.Dataset(frame, y), 10)
    evaluation = collect(booster, (frame, y), progress=silent)
    assert evaluation.task == "classification"
    assert np.allclose(evaluation.probs[:, 1], booster.predict(frame))
    assert list(evaluation.metadata) == ["a", "b", "age"]
    assert finds(evaluation, corner) > 0.8
    loaded = lightgbm.Booster(model_str=booster.model_to_string())
    assert np.array_equal(collect(loaded, (frame, y), progress=silent).probs, evaluation.probs)

    three = np.digitize(frame["a"], [-0.5, 0.5])
    several = lightgbm.train({"objective": "multiclass", "num_class": 3, **quiet}, lightgbm.Dataset(frame, three), 5)
    by_name = collect(several, (frame, np.array(["low", "mid", "top"])[three]), class_names=["low", "mid", "top"])
    assert np.array_equal(by_name.predictions, several.predict(frame).argmax(axis=1))

    # 0 and 1 as a regression, since the booster's own objective says so.
    values = lightgbm.train({"objective": "regression", **quiet}, lightgbm.Dataset(frame, y), 5)
    assert collect(values, (frame, y), progress=silent).task == "regression"
    ranker = lightgbm.train({"objective": "lambdarank", **quiet}, lightgbm.Dataset(frame, y, group=[3000]), 2)
    with pytest.raises(InputError, match=r"ranks \(lambdarank\)"):
        collect(ranker, (frame, y), progress=silent)


def test_the_wrappers_of_lightgbm_are_estimators():
    lightgbm = pytest.importorskip("lightgbm")
    frame, y, _ = planted()
    model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(frame, np.array(["no", "yes"])[y])
    evaluation = collect(model, (frame, np.array(["no", "yes"])[y]))
    assert evaluation.class_names == ("no", "yes")
    assert np.allclose(evaluation.probs, model.predict_proba(frame))
    with pytest.raises(InputError, match="LGBMClassifier is not fitted"):
        collect(lightgbm.LGBMClassifier(), (frame, y))


@pytest.mark.parametrize(
    ("objective", "outputs"),
    [
        ("binary:logistic", "probs"),
        ("binary:logitraw", "probs"),
        ("binary:hinge", "predictions"),
        ("reg:logistic", "probs"),
    ],
)
def test_an_xgboost_booster_by_its_objective(objective, outputs):
    xgboost = pytest.importorskip("xgboost")
    frame, y, corner = planted()
    options = {"objective": objective, "max_depth": 2, "nthread": 1}
    booster = xgboost.train(options, xgboost.DMatrix(frame, y), 10)
    evaluation = collect(booster, (frame, y), progress=silent)
    raw = booster.predict(xgboost.DMatrix(frame))
    assert evaluation.task == "classification"
    assert (evaluation.probs is not None) == (outputs == "probs")
    expected = {"binary:logitraw": raw > 0, "binary:hinge": raw == 1}.get(objective, raw > 0.5)
    assert np.array_equal(evaluation.predictions, expected.astype(int))
    assert finds(evaluation, corner) > 0.8


def test_an_xgboost_booster_reads_categories():
    xgboost = pytest.importorskip("xgboost")
    frame, y, _ = planted()
    frame = frame.assign(site=pd.Categorical(np.where(frame["a"] > 0, "north", "south")))
    options = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
    booster = xgboost.train(options, xgboost.DMatrix(frame, y, enable_categorical=True), 5)
    evaluation = collect(booster, (frame, y), progress=silent)
    raw = booster.predict(xgboost.DMatrix(frame, enable_categorical=True))
    assert np.array_equal(evaluation.predictions, (raw > 0.5).astype(int))


def test_xgboost_for_several_classes_for_values_and_its_wrappers():
    xgboost = pytest.importorskip("xgboost")
    frame, y, _ = planted()
    three = np.digitize(frame["a"], [-0.5, 0.5])
    for objective in ("multi:softprob", "multi:softmax"):
        options = {"objective": objective, "num_class": 3, "max_depth": 2, "nthread": 1}
        booster = xgboost.train(options, xgboost.DMatrix(frame, three), 5)
        evaluation = collect(booster, (frame, three), progress=silent)
        assert (evaluation.probs is not None) == (objective == "multi:softprob")
        assert evaluation.errors.mean() < 0.05
    booster = xgboost.train({"objective": "reg:squarederror", "nthread": 1}, xgboost.DMatrix(frame, y), 5)
    assert collect(booster, (frame, y), progress=silent).task == "regression"  # its objective says so
    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(frame, y)
    assert np.allclose(collect(model, (frame, y)).probs, model.predict_proba(frame))
    ranker = xgboost.train({"objective": "rank:ndcg", "nthread": 1}, xgboost.DMatrix(frame, y, qid=np.zeros(3000)), 2)
    with pytest.raises(InputError, match=r"objective is rank:ndcg"):
        collect(ranker, (frame, y), progress=silent)


# ---- ONNX


def graph(onnx, outputs, kind="FLOAT", columns=3):
    """logits = X W, their softmax, and the input twice as an embedding."""
    helper = onnx.helper
    weights = np.array([[-2.0, 2.0], [0.0, 0.0], [0.0, 0.0]], dtype=np.float32)
    nodes = [
        helper.make_node("MatMul", ["X", "W"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
        helper.make_node("ArgMax", ["logits"], ["label"], axis=1, keepdims=0),
        helper.make_node("Add", ["X", "X"], ["hidden"]),
    ]
    kinds = {"label": (onnx.TensorProto.INT64, [None]), "hidden": (onnx.TensorProto.FLOAT, [None, 3])}
    described = [
        helper.make_tensor_value_info(name, *kinds.get(name, (onnx.TensorProto.FLOAT, [None, 2]))) for name in outputs
    ]
    inputs = [helper.make_tensor_value_info("X", onnx.TensorProto.FLOAT, [None, columns])]
    made = helper.make_graph(nodes, "g", inputs, described, [onnx.numpy_helper.from_array(weights, "W")])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9).SerializeToString()


@pytest.mark.parametrize(
    "outputs", [["probabilities"], ["logits"], ["label", "probabilities"], ["hidden", "logits"], ["label"]]
)
def test_an_onnx_session_by_its_outputs(outputs):
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    frame, y, corner = planted()
    session = runtime.InferenceSession(graph(onnx, outputs), providers=["CPUExecutionProvider"])
    evaluation = collect(session, (frame, y), progress=silent)
    assert np.array_equal(evaluation.predictions, (frame["a"] > 0).astype(int))
    if outputs != ["label"]:
        assert np.allclose(evaluation.probs[:, 1], special.expit(4 * frame["a"]), atol=1e-5)
    if "hidden" in outputs:
        assert np.allclose(evaluation.representations["embedding"], 2 * frame, atol=1e-4)
        assert evaluation.source("embedding").from_model
    else:
        assert finds(evaluation, corner) > 0.8
    as_array = collect(session, (frame.to_numpy(), y), progress=silent)
    assert np.array_equal(as_array.predictions, evaluation.predictions)


def test_rows_of_another_shape_than_an_onnx_model_reads():
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    frame, y, _ = planted()
    session = runtime.InferenceSession(graph(onnx, ["logits"]), providers=["CPUExecutionProvider"])
    with pytest.raises(errata.ErrataError, match=r"reads `X` as rows of shape \(3\); got \(2\)"):
        collect(session, (frame.to_numpy()[:, :2], y), progress=silent)


def test_an_onnx_model_of_scikit_learn_reads_the_columns_of_a_table():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    skl2onnx = pytest.importorskip("skl2onnx")
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame, y, _ = planted()
    frame["job"] = np.where(frame["b"] > 0, "nurse", "cook")
    columns = make_column_transformer((OneHotEncoder(), ["job"]), ("passthrough", ["a", "b", "age"]))
    model = make_pipeline(columns, LogisticRegression(max_iter=500)).fit(frame, y)
    numbers = [(name, FloatTensorType([None, 1])) for name in ("a", "b", "age")]
    exported = skl2onnx.convert_sklearn(model, initial_types=[*numbers, ("job", StringTensorType([None, 1]))])
    session = runtime.InferenceSession(exported.SerializeToString(), providers=["CPUExecutionProvider"])
    evaluation = collect(session, (frame, y), progress=silent)
    assert np.allclose(evaluation.probs, model.predict_proba(frame), atol=1e-4)
    with pytest.raises(InputError, match=r"reads `job`, which the rows do not have; they have a, b, age"):
        collect(session, (frame[["a", "b", "age"]], y), progress=silent)
    with pytest.raises(InputError, match=r"has 4 inputs .*`a`.*; give a table with columns of these names"):
        collect(session, (frame[["a", "b", "age"]].to_numpy(), y), progress=silent)


# ---- models with `predict`


class Keras:
    """As a Keras model looks from outside."""

    def __init__(self, outputs):
        self._outputs = outputs

    def __call__(self, x):
        raise AssertionError("a model is asked to predict, not called")

    def predict(self, x, batch_size=None, verbose="auto"):
        assert verbose == 0
        return self._outputs(np.asarray(x))


def sigmoid(x):
    return special.expit(4 * x[:, :1])


@pytest.mark.parametrize("names", [["a", "b"], ["b", "a"]], ids=["first", "second"])
def test_a_model_with_predict_and_one_or_two_outputs(names):
    frame, y, corner = planted()
    X = frame.to_numpy()
    one = collect(Keras(sigmoid), (X, y), progress=silent)
    assert one.task == "classification"  # 0 and 1 with a sigmoid is no regression
    assert np.allclose(one.probs[:, 1], special.expit(4 * X[:, 0]))
    assert finds(one, corner) > 0.8
    parts = {"a": sigmoid, "b": lambda x: 3 * x}
    two = collect(Keras(lambda x: [parts[name](x) for name in names]), (X, y), progress=silent)
    assert np.array_equal(two.probs, one.probs)
    assert np.allclose(two.representations["embedding"], 3 * X)


def test_a_model_of_ones_own_with_predict_proba_is_asked_for_it():
    class Own:
        def predict(self, X):
            raise AssertionError

        def predict_proba(self, X):
            positive = sigmoid(np.asarray(X))
            return np.hstack([1 - positive, positive])

    frame, y, _ = planted()
    assert np.allclose(collect(Own(), (frame, y), progress=silent).probs[:, 1], special.expit(4 * frame["a"]))


# ---- Hugging Face


@pytest.fixture(scope="module")
def reviews():
    rng = np.random.default_rng(0)
    words = ["good", "bad", "film", "day", "great", "poor", "plot", "the", "a", "was"]
    texts = [" ".join(rng.choice(words, 5)) for _ in range(120)]
    return words, texts, rng.integers(0, 2, 120)


@pytest.fixture(scope="module")
def classifier(reviews, tmp_path_factory):
    """A small text classification pipeline with weights of chance; nothing is downloaded."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *reviews[0]]
    path = tmp_path_factory.mktemp("words") / "vocab.txt"
    path.write_text("\n".join(vocabulary))
    names = {0: "NEGATIVE", 1: "POSITIVE"}
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        id2label=names,
        label2id={name: i for i, name in names.items()},
    )
    model = transformers.BertForSequenceClassification(config).eval()
    with torch.no_grad():
        model.classifier.weight *= 50  # else all probabilities are .5
    tokenizer = transformers.BertTokenizerFast(vocab_file=str(path))
    return transformers.pipeline("text-classification", model=model, tokenizer=tokenizer)


def test_a_pipeline_gives_all_scores_and_its_last_layer(classifier, reviews):
    torch = pytest.importorskip("torch")
    _, texts, y = reviews
    evaluation = collect(classifier, (texts, y), progress=silent, batch_size=50)
    with torch.no_grad():
        inputs = classifier.tokenizer(texts, padding=True, return_tensors="pt")
        logits = classifier.model(**inputs).logits
        weights = classifier.model.classifier
        from_layer = weights(torch.tensor(evaluation.representations["penultimate"]))
    assert np.allclose(evaluation.probs, torch.softmax(logits, dim=1).numpy(), atol=1e-4)
    assert np.allclose(from_layer.numpy(), logits.numpy(), atol=1e-3)
    assert evaluation.class_names == ("NEGATIVE", "POSITIVE")
    assert evaluation.media.text(3) == texts[3]
    assert evaluation.source("penultimate").from_model
    assert len(classifier.model.classifier._forward_hooks) == 0
    in_words = collect(classifier, (texts, np.array(["negative", "positive"])[y]), progress=silent)
    assert np.array_equal(in_words.labels, y)


def test_a_pipeline_on_a_dataset_matches_classes_by_name(classifier, reviews):
    datasets = pytest.importorskip("datasets")
    _, texts, y = reviews
    data = datasets.Dataset.from_dict({"text": texts, "label": y, "length": [len(text) for text in texts]})
    by_number = collect(classifier, data, progress=silent)
    assert np.array_equal(by_number.labels, y)
    assert list(by_number.metadata) == ["length"]
    turned = data.cast_column("label", datasets.ClassLabel(names=["positive", "negative"]))
    assert np.array_equal(collect(classifier, turned, progress=silent).labels, 1 - y)
    with pytest.raises(InputError, match=r"none of the columns text, sentence, content .*pass inputs=NAME"):
        collect(classifier, data.rename_column("text", "review"), progress=silent)
    with pytest.raises(InputError, match=r"'other' at row 0, none of the classes of the model \(NEGATIVE, POSITIVE\)"):
        collect(classifier, (texts, np.array(["other"] * 120)), progress=silent)


def test_a_pipeline_for_images_shows_them():
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from PIL import Image

    torch.manual_seed(0)
    names = {0: "cat", 1: "dog", 2: "owl"}
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=16, patch_size=8,
        id2label=names, label2id={name: i for i, name in names.items()},
    )  # fmt: skip
    model = transformers.ViTForImageClassification(config).eval()
    processor = transformers.ViTImageProcessor(size={"height": 16, "width": 16})
    pipeline = transformers.pipeline("image-classification", model=model, image_processor=processor)
    rng = np.random.default_rng(0)
    images = [Image.fromarray(rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)) for _ in range(40)]
    evaluation = collect(pipeline, (images, np.array(["Cat", "dog"] * 20)), progress=silent)
    assert evaluation.probs.shape == (40, 3)
    assert evaluation.labels.tolist() == [0, 1] * 20
    assert evaluation.media.thumbnail(0, 16)[:4] == b"\x89PNG"
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"image": images, "label": ["cat", "dog"] * 20})
    stored = collect(pipeline, data, progress=silent)
    assert np.allclose(stored.probs, evaluation.probs, atol=1e-5)
    assert stored.media.thumbnail(0, 16) is not None


def test_a_pipeline_for_another_task_says_so(classifier):
    class Pipeline:
        task = "summarization"

    Pipeline.__module__ = "transformers.pipelines.base"
    with pytest.raises(InputError, match="can be audited; got one for 'summarization'"):
        collect(Pipeline(), (["a"], [0]))


def test_a_dataset_of_results_is_a_table():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict(
        {"labels": [0, 1, 1], "probs": [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], "site": list("abc")}
    )
    evaluation = collect(data, metadata=["site"])
    assert evaluation.errors.tolist() == [False, False, True]
    assert evaluation.metadata["site"].tolist() == ["a", "b", "c"]


def test_a_function_on_a_dataset_reads_columns():
    datasets = pytest.importorskip("datasets")
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    data = datasets.Dataset.from_dict({"x": x, "label": (x > 0).astype(int)})
    data = data.cast_column("label", datasets.ClassLabel(names=["no", "yes"]))
    evaluation = collect(lambda batch: special.expit(9 * np.array(batch["x"])), data, progress=silent, batch_size=64)
    assert evaluation.class_names == ("no", "yes")
    assert not evaluation.errors.any()


def test_asking_what_an_object_is_imports_nothing():
    code = (
        "import sys, errata\n"
        "def f(x): return [0] * len(x)\n"
        "errata.collect(f, ([[1.0], [2.0]], [0, 1]), progress=errata.core.silent)\n"
        "heavy = {'torch', 'onnxruntime', 'lightgbm', 'xgboost', 'datasets', 'transformers', 'polars'}\n"
        "assert not heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
