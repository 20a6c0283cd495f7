import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, special
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from errata.core import InputError
from errata.inputs import estimator as adapter
from errata.inputs import from_estimator


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, np.array(["low", "mid", "top"])[np.digitize(X[:, 0] + 0.3 * rng.normal(size=80), [-0.5, 0.5])]


def quiet(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y)


def test_classifier_with_probabilities(data):
    X, y = data
    model = LogisticRegression().fit(X, y)
    ev = from_estimator(model, X, y)
    assert ev.class_names == ("low", "mid", "top")
    assert np.array_equal(ev.errors, model.predict(X) != y)
    assert np.allclose(ev.probs, model.predict_proba(X))
    assert np.array_equal(ev.representations["features"], X)
    assert "features" not in ev.sources  # measured, since inputs may tell the prediction


def test_classifier_without_probabilities_and_labels_that_are_no_indices(data):
    X, y = data
    numbers = np.where(y == "top", 7, 3)
    model = LinearSVC().fit(X, numbers)
    ev = from_estimator(model, X, numbers)
    assert ev.probs is None
    assert ev.class_names == ("3", "7")
    assert set(ev.labels) == {0, 1}
    assert np.array_equal(ev.errors, model.predict(X) != numbers)


def test_predictions_are_the_models_own_and_not_the_largest_probability(data):
    X, y = data

    class Careful(LogisticRegression):
        def predict(self, X):
            return np.full(len(X), "top")

    ev = from_estimator(Careful().fit(X, y), X, y)
    assert set(ev.predictions) == {2}


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic", "identity"])
def test_penultimate_layer_times_the_last_weights_is_the_prediction(data, activation):
    X, y = data
    model = quiet(MLPClassifier((8, 5), activation=activation, max_iter=20, random_state=0), X, y)
    ev = from_estimator(model, X, y)
    hidden = ev.representations["penultimate"]
    assert hidden.shape == (80, 5)
    logits = hidden @ model.coefs_[-1] + model.intercepts_[-1]
    assert np.allclose(special.softmax(logits, axis=1), model.predict_proba(X))
    assert ev.source("penultimate").from_model
    assert "features" not in ev.sources  # measured, since inputs may tell the prediction


def test_regressor_and_its_penultimate_layer_in_a_pipeline(data):
    X, _ = data
    y = X[:, 0] * 2.5 + 0.1
    model = quiet(
        make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(4,), max_iter=20, random_state=0)), X, y
    )
    ev = from_estimator(model, X, y)
    assert ev.task == "regression"
    assert np.allclose(ev.losses, (y - model.predict(X)) ** 2)
    assert np.allclose(ev.representations["features"], model[0].transform(X))
    out = ev.representations["penultimate"] @ model[-1].coefs_[-1] + model[-1].intercepts_[-1]
    assert np.allclose(out[:, 0], model.predict(X))


def test_search_stands_for_its_best(data):
    X, y = data
    grid = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {"logisticregression__C": [1.0]}, cv=2)
    ev = from_estimator(grid.fit(X, y), X, y)
    assert np.allclose(ev.representations["features"].mean(axis=0), 0)


def test_data_frames_give_numeric_features_and_metadata(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(flag=X[:, 0] > 0)
    ev = from_estimator(LogisticRegression().fit(frame, y), frame, y, metadata=["flag"])
    assert ev.representations["features"].shape == (80, 4)
    assert ev.metadata["flag"].dtype == bool
    with pytest.raises(InputError, match="`flog`; did you mean `flag`"):
        from_estimator(LogisticRegression().fit(frame, y), frame, y, metadata=["flog"])
    with pytest.raises(InputError, match="data frame"):
        from_estimator(LogisticRegression().fit(X, y), X, y, metadata=["flag"])


def test_texts_are_shown_and_their_sparse_features_made_dense(monkeypatch):
    texts, y = ["good film", "bad film", "good day", "bad day"], [1, 0, 1, 0]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, y)
    ev = from_estimator(model, texts, y)
    assert ev.media.text(1) == "bad film"
    assert ev.representations["features"].shape == (4, 4)
    monkeypatch.setattr(adapter, "LARGEST_DENSE", 10)
    with pytest.raises(InputError, match=r"sparse with shape.*TruncatedSVD"):
        from_estimator(model, texts, y)
    assert from_estimator(model, texts, y, features=False).representations == {}


def test_sparse_input_is_taken(data):
    X, y = data
    ev = from_estimator(LogisticRegression().fit(X, y), sparse.csr_matrix(X), y)
    assert np.array_equal(ev.representations["features"], X)


def test_multilabel_forest_and_perceptron(data):
    X, _ = data
    y = np.stack([X[:, 0] > 0, X[:, 1] > 0], axis=1).astype(int)
    for model in (RandomForestClassifier(5, random_state=0), MLPClassifier((4,), max_iter=20, random_state=0)):
        quiet(model, X, y)
        ev = from_estimator(model, X, y)
        assert ev.task == "multilabel"
        assert np.array_equal(ev.predictions, model.predict(X))
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    probs = from_estimator(forest, X, y).probs
    assert np.array_equal(probs[:, 1], forest.predict_proba(X)[1][:, 1])


@pytest.mark.parametrize("strange", ["other", None])
def test_labels_the_estimator_never_saw(data, strange):
    X, y = data
    y = y.astype(object)
    model = LogisticRegression().fit(X, y.astype(str))
    y[5] = strange
    with pytest.raises(InputError, match=f"`y` has the class {strange!r} at row 5.*known: low, mid, top"):
        from_estimator(model, X, y)


def test_what_is_no_fitted_predictor_says_so(data):
    X, y = data
    with pytest.raises(InputError, match="LogisticRegression is not fitted"):
        from_estimator(LogisticRegression(), X, y)
    with pytest.raises(InputError, match="KMeans is neither"):
        from_estimator(KMeans(2, n_init=1).fit(X), X, y)
    with pytest.raises(InputError, match="`X` has 80 rows and `y` has shape \\(79,\\)"):
        from_estimator(LogisticRegression().fit(X, y), X, y[:-1])
    with pytest.raises(InputError, match="one target"):
        from_estimator(LinearRegression().fit(X, X[:, :2]), X, X[:, :2])


def test_missing_inputs_are_filled_in_and_marked(data):
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y = data
    X[4, 1] = np.nan
    X[5:20, 2] = np.nan
    model = HistGradientBoostingClassifier(max_iter=2).fit(X, y)
    features = from_estimator(model, X, y).representations["features"]
    assert features.shape == (80, 4)  # a column says where the third was missing; one row is too few for a column
    filled = np.where(np.isnan(X[:, 1]), np.nanmedian(X[:, 1]), X[:, 1])
    assert np.allclose(features[:, 1], (filled - filled.mean()) / filled.std(), atol=1e-6)
    assert np.array_equal(features[:, 3] > 0, np.isnan(X[:, 2]))
    assert from_estimator(model, X, y, features=False).representations == {}
