"""Products of influence embeddings against g' H⁻¹ g with all of H in float64: losses, outputs, heads and batches."""

import copy
import sys
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # only once torch is known to be there
from torch.func import functional_call, hessian, jacrev  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from errata import Evaluation, Source, collect  # noqa: E402
from errata.core import InputError  # noqa: E402
from errata.core.progress import silent  # noqa: E402
from errata.inputs import HeadInfluence, fit_influence  # noqa: E402
from errata.inputs.influence.head import InfluenceOptions, add_influence  # noqa: E402
from errata.inputs.influence.layers import LayersInfluence  # noqa: E402

torch.set_num_threads(1)
N = 40
G = torch.Generator().manual_seed(0)
X = torch.randn(N, 4, generator=G)
TWO = (X[:, 0] + torch.randn(N, generator=G) > 0).long()
THREE = torch.randint(0, 3, (N,), generator=G)
SHARES = torch.randn(N, 3, generator=G).mul(2).softmax(dim=1)
TARGETS = X[:, 0] * 2 + torch.randn(N, generator=G)
MANY = (torch.rand(N, 3, generator=G) > 0.6).float()
COSTS = torch.tensor([1.0, 5.0, 0.2])


def net(outputs, bias=True):
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.5), nn.Linear(6, outputs, bias=bias))


class Scaled(nn.Module):
    """The head is not the last thing that happens."""

    def __init__(self):
        super().__init__()
        self.net = net(3)

    def forward(self, x):
        return self.net(x) * 3


class Keywords(nn.Module):
    """Keyword arguments in, an object with logits out."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, pixels, scale):
        return type("Output", (), {"logits": self.head(torch.tanh(self.body(pixels * scale["by"])))})()


class Pixels(nn.Module):
    """A head that is a convolution of size one, and the mean over its places."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv2d(1, 4, 2, padding=1), nn.Conv2d(4, 3, 1)

    def forward(self, x):
        return self.head(torch.tanh(6 * self.body(x.reshape(-1, 1, 2, 2)))).mean(dim=(2, 3))


class Tokens(nn.Module):
    """A linear head at every place: the mean over them may as well be taken before."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(2, 5), nn.Linear(5, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x.reshape(-1, 2, 2)))).mean(dim=1)


class Tied(nn.Module):
    """The head's weights are another layer's too."""

    def __init__(self):
        super().__init__()
        self.body, self.middle, self.head = nn.Linear(4, 3), nn.Linear(3, 3), nn.Linear(3, 3)
        self.head.weight = self.middle.weight

    def forward(self, x):
        return self.head(torch.tanh(self.middle(torch.tanh(self.body(x)))))


def cross_entropy(logits, labels):
    return F.cross_entropy(logits, labels, reduction="none")


def binary(logits, labels):
    return F.binary_cross_entropy_with_logits(logits.reshape(-1), labels.to(logits.dtype), reduction="none")


def squared(logits, labels):
    return (logits.reshape(-1) - labels) ** 2


def each(logits, labels):
    return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none").mean(dim=1)


def weighted(logits, labels):
    return F.cross_entropy(logits, labels, weight=COSTS.to(logits.dtype), reduction="none")


# how to build, labels, loss, the layer, and whether the closed form holds
CASES = {
    "classes": (lambda: net(3), THREE, cross_entropy, "3", True),
    "one logit": (lambda: net(1), TWO, binary, "3", True),
    "one logit, flat": (lambda: nn.Sequential(net(1), nn.Flatten(0)), TWO, binary, "0.3", True),
    "two logits": (lambda: net(2), TWO, cross_entropy, "3", True),
    "regression": (lambda: net(1), TARGETS, squared, "3", True),
    "many labels": (lambda: net(3), MANY, each, "3", True),
    "shares": (lambda: net(3), SHARES, cross_entropy, "3", False),
    "own loss": (lambda: net(3), THREE, weighted, "3", False),
    "no bias": (lambda: net(3, bias=False), THREE, cross_entropy, "3", True),
    "object": (Keywords, THREE, cross_entropy, "head", True),
    "scaled": (Scaled, THREE, cross_entropy, "net.3", False),
    "pixels": (Pixels, THREE, cross_entropy, "head", False),
    "tokens": (Tokens, THREE, cross_entropy, "head", True),
    "tied": (Tied, THREE, cross_entropy, "head", False),
    "one layer": (lambda: nn.Linear(4, 3), THREE, cross_entropy, "", True),
    "more classes than columns": (lambda: nn.Linear(4, 9), THREE, cross_entropy, "", True),
}


def batches(labels, form="pairs", size=16, rows=slice(None)):
    def batch(x, y):
        return (x, y) if form == "pairs" else {"pixels": x, "scale": {"by": torch.ones(())}, "labels": y, "id": ids(x)}

    def ids(x):
        return [str(row.tolist()) for row in x]

    inputs, labels = X[rows], labels[rows]
    return [batch(inputs[i : i + size], labels[i : i + size]) for i in range(0, len(inputs), size)]


def exact(model, layer, labels, row_loss, damping=0.0, rows=slice(None), tolerance=1e-5):
    """(n, n) g' H⁻¹ g of all rows, H the mean over some, over eigenvalues above a share of the largest."""
    model = copy.deepcopy(model).double().eval().requires_grad_(False)
    wanted = {id(parameter) for parameter in dict(model.named_modules())[layer].parameters()}
    named = {name: p.detach() for name, p in model.named_parameters() if id(p) in wanted}
    labels = labels.double() if labels.is_floating_point() else labels

    def losses(vector):
        parts = vector.split([value.numel() for value in named.values()])
        given = {name: part.view_as(named[name]) for name, part in zip(named, parts, strict=True)}
        inputs = (
            ((), {"pixels": X.double(), "scale": {"by": 1}}) if isinstance(model, Keywords) else ((X.double(),), {})
        )
        output = functional_call(model, given, *inputs)
        return row_loss(getattr(output, "logits", output), labels)

    theta = torch.cat([value.reshape(-1) for value in named.values()])
    gradients, curvature = jacrev(losses)(theta), hessian(lambda vector: losses(vector)[rows].mean())(theta)
    values, vectors = torch.linalg.eigh(curvature)
    kept = values > tolerance * values.max()
    projected = gradients @ vectors[:, kept]
    return (projected / (values[kept] + damping) @ projected.T).numpy()


def embedded(fitted, model, loader):
    evaluation = collect(model, loader, influence=fitted, progress=silent)
    assert evaluation.source("influence") == Source(from_model=True, reads=frozenset({"label"}))
    return np.asarray(evaluation.representations["influence"])


def worst(embedding, expected):
    wide = np.asarray(embedding, dtype=np.float64)
    return np.abs(wide @ wide.T - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("damping", [0.0, 0.03])
@pytest.mark.parametrize("route", ["left out", "named"])
@pytest.mark.parametrize("case", CASES)
def test_products_are_the_exact_influence(case, route, damping):
    build, labels, row_loss, layer, closed = CASES[case]
    torch.manual_seed(1)
    model = build()
    loader = batches(labels, "dicts" if case == "object" else "pairs")
    fitted = fit_influence(
        model, loader, layers=None if route == "left out" else layer, loss=weighted if case == "own loss" else None,
        damping=damping, progress=silent,
    )  # fmt: skip
    assert isinstance(fitted, HeadInfluence if closed and route == "left out" else LayersInfluence)
    embedding = embedded(fitted, model, loader)
    assert embedding.dtype == np.float32
    assert worst(embedding, exact(model, layer, labels, row_loss, damping)) < 1e-3


@pytest.mark.parametrize("case", ["classes", "one logit", "many labels", "shares", "pixels", "object"])
def test_of_all_layers(case):
    build, labels, row_loss, _, _ = CASES[case]
    torch.manual_seed(1)
    model = build()
    _train(model, labels, row_loss)
    loader = batches(labels, "dicts" if case == "object" else "pairs")
    fitted = fit_influence(model, loader, layers="all", damping=0.01, progress=silent)
    assert fitted.directions.shape[1] == sum(parameter.numel() for parameter in model.parameters())
    assert worst(embedded(fitted, model, loader), exact(model, "", labels, row_loss, 0.01)) < 1e-3


def _train(model, labels, row_loss):
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(30):
        optimiser.zero_grad()
        output = model(X, {"by": 1}).logits if isinstance(model, Keywords) else model(X)
        row_loss(output, labels).mean().backward()
        optimiser.step()
    model.zero_grad()


@pytest.mark.parametrize("layers", [None, "3"])
def test_one_logit_and_two_are_one_model(layers):
    two, one = net(2), net(1)
    one[0].load_state_dict(two[0].state_dict())
    with torch.no_grad():
        one[3].weight.copy_(two[3].weight[1:] - two[3].weight[:1])
        one[3].bias.copy_(two[3].bias[1:] - two[3].bias[:1])
    for labels in (TWO, TWO.float(), TWO[:, None]):
        products = []
        for model in (one, two):
            fitted = fit_influence(model, batches(labels), layers=layers, progress=silent)
            embedding = embedded(fitted, model, batches(labels)).astype(np.float64)
            products.append(embedding @ embedding.T)
        assert np.abs(products[0] - products[1]).max() < 1e-4 * np.abs(products[0]).max()


@pytest.mark.parametrize(("outputs", "damping_of_file"), [(2, 0.03), (1, 0.06)])
def test_damping_does_the_same_with_a_model_and_with_its_file(outputs, damping_of_file):
    """A file of two classes is read as two logits; where the model has one, it takes twice the damping."""
    model = net(outputs)
    fitted = fit_influence(model, batches(TWO), damping=0.03, rows=None, progress=silent)
    from_file, _ = add_influence(
        collect(model, batches(TWO), progress=silent), options=InfluenceOptions(damping=damping_of_file, rows=None)
    )
    found = np.asarray(from_file.representations["influence"])
    np.testing.assert_allclose(found, embedded(fitted, model, batches(TWO)), atol=1e-4)
    assert fitted.record("given", N)["damping"] == 0.03


@pytest.mark.parametrize(("fit_on", "embed"), [(SHARES, THREE), (THREE, SHARES)])
def test_shares_and_class_numbers_may_be_mixed(fit_on, embed):
    """As where training labels were smoothed and test labels are not. Labels do not bend this loss in the head."""
    model = net(3)
    fitted = fit_influence(model, batches(fit_on), layers="3", progress=silent)
    assert worst(embedded(fitted, model, batches(embed)), exact(model, "3", embed, cross_entropy)) < 1e-3


def test_a_model_in_float64_is_computed_in_float64():
    """Directions of little curvature are lost in float32."""
    model, labels = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 3)), THREE
    with torch.no_grad():
        model[0].weight.copy_(torch.diag(torch.tensor([1.0, 0.3, 0.03, 0.003])))
    model, loader = model.double(), [(X.double(), labels)]
    fitted = fit_influence(model, loader, layers="1", tolerance=1e-8, progress=silent)
    assert fitted.values[-1] < 1e-5 * fitted.values[0]
    expected = exact(model, "1", labels, cross_entropy, tolerance=1e-8)
    assert worst(fitted.transform(model, loader, progress=silent), expected) < 1e-5


def test_only_the_rows_asked_for_give_the_curvature():
    model = net(3)
    evaluation = collect(model, batches(THREE), progress=silent)
    options = InfluenceOptions(rows=15, seed=4)
    rows = options.choose_rows(N)
    assert len(set(rows.tolist())) == 15
    assert rows.tolist() != InfluenceOptions(rows=15, seed=5).choose_rows(N).tolist()
    found = HeadInfluence.fit(evaluation, options).transform(evaluation)
    assert worst(found, exact(model, "3", THREE, cross_entropy, rows=torch.tensor(rows))) < 1e-3
    for layers in (None, "3"):
        fitted = fit_influence(model, batches(THREE, size=10), layers=layers, rows=15, seed=1, progress=silent)
        products = [
            worst(
                embedded(fitted, model, batches(THREE)),
                exact(model, "3", THREE, cross_entropy, rows=torch.tensor(pair)),
            )
            for pair in _pairs_of_tens()
        ]
        assert min(products) < 1e-3 < sorted(products)[1]  # two whole batches, and only they


def _pairs_of_tens():
    tens = [list(range(i, i + 10)) for i in range(0, N, 10)]
    return [tens[i] + tens[j] for i in range(4) for j in range(i)]


def test_a_file_is_enough_where_the_last_layer_is_meant():
    model = net(3)
    seen = collect(model, batches(THREE), progress=silent)
    bare = Evaluation(
        labels=seen.labels,
        probs=np.asarray(seen.probs),
        representations={"hidden": seen.representations["penultimate"]},
    )
    fitted = HeadInfluence.fit(bare)
    assert worst(fitted.transform(bare), exact(model, "3", THREE, cross_entropy)) < 1e-3
    foreign = bare.with_representation("clip", np.ones((N, 2)), Source(from_model=False))
    assert HeadInfluence.fit(foreign).representation == "hidden"
    with pytest.raises(InputError, match="needs the input of the model's last layer"):
        HeadInfluence.fit(Evaluation(labels=[0, 1], probs=np.eye(2)))
    with pytest.raises(InputError, match="needs its label; add `labels`"):
        fitted.transform(Evaluation(probs=bare.probs, representations=bare.representations))
    narrow = Evaluation(labels=[0, 1], probs=np.full((2, 3), 1 / 3), representations={"hidden": np.ones((2, 5))})
    with pytest.raises(InputError, match=r"fitted on 21 weights; these rows have 5 columns and 3 outputs"):
        fitted.transform(narrow)


def test_blocks_of_rows_and_of_directions_change_nothing(monkeypatch):
    for k in (3, 9):
        model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, k))
        evaluation = collect(model, batches(THREE), progress=silent)
        fitted = HeadInfluence.fit(evaluation)
        whole = fitted.transform(evaluation)
        monkeypatch.setattr(sys.modules[HeadInfluence.__module__], "BLOCK_NUMBERS", 70)
        monkeypatch.setattr(sys.modules[HeadInfluence.__module__], "WIDE", 7)
        np.testing.assert_allclose(fitted.transform(evaluation), whole, atol=1e-5)
        monkeypatch.undo()


@pytest.mark.parametrize("case", ["classes", "regression"])
def test_add_influence_takes_the_curvature_of_training_rows_where_there_are_some(case):
    build, labels, row_loss, layer, _ = CASES[case]
    model = build()
    half = torch.arange(N) < 20
    test, train = (collect(model, batches(labels, rows=rows), progress=silent) for rows in (~half, half))
    expected = exact(model, layer, labels, row_loss, rows=half)
    given, taught = add_influence(test, train)
    together = np.concatenate([taught.representations["influence"], given.representations["influence"]])
    assert worst(together, expected) < 1e-3
    alone, none = add_influence(test, rows=np.arange(20) < 10)
    first = (torch.arange(N) >= 20) & (torch.arange(N) < 30)
    assert none is None
    expected = exact(model, layer, labels, row_loss, rows=first)[20:, 20:]
    assert worst(alone.representations["influence"], expected) < 1e-3
    assert add_influence(given, train) == (given, train)


# ---- is it the last layer?


def perceptron_layers(seed=0, binary=False):
    """Probabilities of a perceptron for the digits, with its layers, the last one first."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, y = load_digits(return_X_y=True)
    X = X / 16
    y = y % 2 if binary else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier((48, 24), max_iter=40, random_state=seed).fit(X[::2], y[::2])
    first = np.maximum(X @ model.coefs_[0] + model.intercepts_[0], 0)
    last = np.maximum(first @ model.coefs_[1] + model.intercepts_[1], 0)
    return y, model.predict_proba(X), {"last": last, "first": first, "pixels": X}


@pytest.mark.parametrize(("binary", "wrong"), [(False, ("first", "pixels")), (True, ("pixels",))])
def test_only_the_last_layer_gives_influence(binary, wrong):
    y, probs, layers = perceptron_layers(seed=7, binary=binary)
    rounded = [probs, probs.astype(np.float32), probs.astype(np.float16).astype(np.float32)]
    for P in rounded:
        P = P / P.sum(axis=1, keepdims=True)
        add_influence(Evaluation(labels=y, probs=P, representations={"r": layers["last"]}))
    for name in wrong:
        with pytest.raises(
            InputError, match=r"needs the input of the model's last layer.*`r` gives them with an R² of"
        ):
            add_influence(Evaluation(labels=y, probs=probs, representations={"r": layers[name]}))
    noise = np.random.default_rng(0).normal(size=layers["last"].shape)
    with pytest.raises(InputError, match=r"R² of -?0\.0"):
        add_influence(Evaluation(labels=y, probs=probs, representations={"r": noise}))


def test_hard_predictions_and_few_rows_tell_nothing_about_the_layer():
    y, probs, layers = perceptron_layers()
    add_influence(Evaluation(labels=y, predictions=probs.argmax(axis=1), representations={"r": layers["pixels"]}))
    few = slice(0, 60)
    add_influence(Evaluation(labels=y[few], probs=probs[few], representations={"r": layers["pixels"][few]}))


def test_the_last_layer_of_a_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    values = X @ rng.normal(size=5) + 2
    add_influence(Evaluation(labels=values + rng.normal(size=300), predictions=values, representations={"r": X}))
    with pytest.raises(InputError, match="last layer"):
        add_influence(Evaluation(labels=values, predictions=np.sin(3 * values), representations={"r": X}))
