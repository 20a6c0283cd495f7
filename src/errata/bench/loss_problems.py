"""Ten fixed problems for Spotlight: blobs, heavy tails, wine, Adult, digits; 0/1 and continuous losses.

Each is (name, X, losses): X (n, d) is a representation, losses (n,) what to find large ones of. Those on real data
need the data folder of `tables.data_folder` and are left out where it is missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Array
from .tables import data_folder

if TYPE_CHECKING:
    from sklearn.neural_network import MLPClassifier

Problem = tuple[str, Array, Array]


def problems() -> Iterator[Problem]:
    """All that the data folder allows."""
    yield blobs("blobs, 0/1", seed=0, binary=True)
    yield blobs("blobs, continuous", seed=1, binary=False)
    yield heavy_tails()
    yield surface()
    yield wide()
    yield digits()
    if not (data_folder() / "wine.parquet").exists():
        return
    yield wine("wine, raw", scale=False)
    yield wine("wine, standardised", scale=True)
    yield adult("Adult, 0/1", binary=True)
    yield adult("Adult, hidden layer", binary=False)


def planted(
    n: int, d: int, clusters: int, bad: dict[float, float], seed: int, base: float = 0.1
) -> tuple[Array, Array, Array]:
    """X, error probability and cluster of each row; `bad` maps a share of rows to its error rate."""
    rng = np.random.default_rng(seed)
    shares = np.array([*bad, *[(1 - sum(bad)) / (clusters - len(bad))] * (clusters - len(bad))])
    cluster = rng.choice(clusters, n, p=shares)
    X = rng.normal(0, 1.5, (clusters, d))[cluster] + rng.normal(0, 1, (n, d))
    rates = np.array([*bad.values(), *[base] * (clusters - len(bad))])
    return X, rates[cluster], cluster


def blobs(name: str, seed: int, binary: bool) -> Problem:
    """Twenty Gaussian clusters, two of them bad; losses 0 and 1, or continuous."""
    X, rate, _ = planted(5000, 32, 20, {0.03: 0.6, 0.05: 0.4}, seed)
    rng = np.random.default_rng(seed + 100)
    if binary:
        return name, X, (rng.random(len(X)) < rate).astype(float)
    return name, X, rng.gamma(2, rate)


def heavy_tails() -> Problem:
    """Rows of Student's t and log-normal losses, larger near one point."""
    rng = np.random.default_rng(2)
    X = rng.standard_t(3, (6000, 16))
    ridge = np.exp(-np.square(X[:, :3] - 1).sum(axis=1))
    return "heavy tails", X, rng.lognormal(-1 + 2 * ridge, 1)


def surface() -> Problem:
    """A plane with two hills of loss."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-3, 3, (8000, 2))
    hill = np.exp(-np.square(X - [1.5, 1]).sum(1) / 0.3) + 0.8 * np.exp(-np.square(X - [-1.5, -1]).sum(1))
    return "a surface of two hills", X, hill + rng.exponential(0.2, len(X))


def wide() -> Problem:
    """256 rectified columns of eight hidden ones, with one bad ball."""
    rng = np.random.default_rng(4)
    hidden = rng.normal(size=(5000, 8))
    X = np.maximum(0, hidden @ rng.normal(size=(8, 256)) + 0.3 * rng.normal(size=(5000, 256)))
    rate = np.where(np.square(hidden - hidden[0]).sum(1) < 6, 0.6, 0.1)
    return "wide, rectified", X, (rng.random(5000) < rate).astype(float)


def _fitted(model: MLPClassifier, X: Array, y: Array) -> MLPClassifier:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # an unfinished model is what makes errors
        return model.fit(X, y)


def _hidden(model: MLPClassifier, X: Array) -> Array:
    layer: Array = np.maximum(0, X @ model.coefs_[0] + model.intercepts_[0])
    return layer


def _cross_entropy(model: Any, X: Array, y: Array) -> Array:
    losses: Array = -np.log(np.clip(model.predict_proba(X)[np.arange(len(y)), y], 1e-12, 1))
    return losses


def digits() -> Problem:
    """The hidden layer of a perceptron on scikit-learn's digits."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    model = _fitted(MLPClassifier((64,), max_iter=30, random_state=0), X[::2], y[::2])
    return "digits, hidden layer", _hidden(model, X[1::2]), _cross_entropy(model, X[1::2], y[1::2])


def _parquet(name: str) -> Any:
    import pandas

    return pandas.read_parquet(data_folder() / name)


def wine(name: str, scale: bool) -> Problem:
    """Squared errors of a ridge regression of wine quality."""
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import StandardScaler

    table = _parquet("wine.parquet").select_dtypes("number")
    y = table.pop("quality").to_numpy(float)
    X = table.to_numpy(float)
    standard = StandardScaler().fit_transform(X)
    losses = np.square(Ridge().fit(standard[::2], y[::2]).predict(standard) - y)[1::2]
    if scale:
        X = standard
    return name, X[1::2], losses


def adult(name: str, binary: bool) -> Problem:
    """Errors of a logistic regression of census income, or losses and hidden layer of a perceptron."""
    import pandas
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    table = _parquet("adult.parquet")
    target = next(c for c in ("income", "class", "target", "label") if c in table)
    table = table.drop(columns="split", errors="ignore")
    y = pandas.factorize(table.pop(target).astype(str).str.strip(" ."), sort=True)[0]
    X = StandardScaler().fit_transform(pandas.get_dummies(table, dtype=float).to_numpy())
    train = slice(0, 20000)
    test = slice(20000, 28000)
    if binary:
        model = LogisticRegression(max_iter=200).fit(X[train], y[train])
        return name, X[test], (model.predict(X[test]) != y[test]).astype(float)
    network = _fitted(MLPClassifier((32,), max_iter=8, random_state=0), X[train], y[train])
    return name, _hidden(network, X[test]), _cross_entropy(network, X[test], y[test])
