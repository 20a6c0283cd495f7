"""Influence beside retraining and beside captum, and where there is little to be had."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # only once torch is known to be there
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from errata import audit, collect  # noqa: E402
from errata.core import InputError, State  # noqa: E402
from errata.core.progress import silent  # noqa: E402
from errata.inputs import HeadInfluence, fit_influence, load_influence, save_influence  # noqa: E402
from errata.inputs.influence.layers import LayersInfluence  # noqa: E402
from errata.slicers import Approximation  # noqa: E402
from errata.tensors import MeanHessian  # noqa: E402

torch.set_num_threads(1)
N, PENALTY = 60, 0.05
G = torch.Generator().manual_seed(0)
X = torch.randn(N, 4, generator=G)
Y = (X @ torch.randn(4, 3, generator=G) + torch.randn(N, 3, generator=G)).argmax(dim=1)


def net(outputs=3):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, outputs))


def pairs(size=16, inputs=X, labels=Y):
    return [(inputs[i : i + size], labels[i : i + size]) for i in range(0, len(inputs), size)]


def fit(model, loader, **options):
    return fit_influence(model, loader, progress=silent, **options)


def embeddings(fitted, model, loader):
    evaluation = collect(model, loader, influence=fitted, progress=silent)
    return np.asarray(evaluation.representations["influence"], np.float64)


def row_losses(weights, inputs, labels):
    ones = torch.cat([inputs, torch.ones(len(inputs), 1)], dim=1).double()
    return F.cross_entropy(ones @ weights.view(-1, 3), labels, reduction="none")


def logistic(share, start):
    """Weights (15,) where the summed loss over N, each row by its share, and the penalty are least: Newton's steps."""

    def objective(flat):
        return (share * row_losses(flat, X, Y)).sum() / N + PENALTY / 2 * (flat**2).sum()

    flat = start
    for _ in range(50):
        gradient = torch.func.grad(objective)(flat)
        if gradient.abs().max() < 1e-13:
            break
        flat = flat - torch.linalg.solve(torch.func.hessian(objective)(flat), gradient)
    assert gradient.abs().max() < 1e-13
    return flat


class Retrained:
    """A logistic regression, test rows, and how much each test loss rises when less of a training row is there."""

    def __init__(self):
        self.best = logistic(torch.ones(N).double(), torch.zeros(15).double())
        self.model = nn.Linear(4, 3)
        with torch.no_grad():
            self.model.weight.copy_(self.best.view(5, 3)[:4].T)
            self.model.bias.copy_(self.best.view(5, 3)[4])
        self.test, self.answers = torch.randn(30, 4, generator=G), torch.randint(0, 3, (30,), generator=G)
        self.test[0], self.answers[0] = X[0], Y[0]  # a training row once more,
        self.test[1], self.answers[1] = X[0], (Y[0] + 1) % 3  # and with another label

    def rises(self, rows, less):
        """(30, rows)"""
        before, found = row_losses(self.best, self.test, self.answers), []
        for i in range(rows):
            share = torch.ones(N).double()
            share[i] -= less
            found.append((row_losses(logistic(share, self.best), self.test, self.answers) - before) / less)
        return torch.stack(found, dim=1).numpy()

    def foretold(self, layers=None, damping=PENALTY):
        fitted = fit(self.model, pairs(), layers=layers, damping=damping)
        assert isinstance(fitted, HeadInfluence if layers is None else LayersInfluence)
        new = embeddings(fitted, self.model, [(self.test, self.answers)])
        return new @ embeddings(fitted, self.model, pairs()).T / N


@pytest.fixture(scope="module")
def retrained():
    return Retrained()


@pytest.fixture(scope="module")
def left_out(retrained):
    return retrained.rises(N, 1.0)


@pytest.mark.parametrize("layers", [None, "all"])
def test_it_foretells_what_leaving_a_training_row_out_does(retrained, left_out, layers):
    foretold = retrained.foretold(layers)
    assert np.corrcoef(foretold.ravel(), left_out.ravel())[0, 1] > 0.98
    assert min(np.corrcoef(a, b)[0, 1] for a, b in zip(foretold, left_out, strict=True)) > 0.95
    large = np.abs(foretold) > np.quantile(np.abs(foretold), 0.8)
    assert (np.sign(foretold[large]) == np.sign(left_out[large])).all()
    shuffled = np.random.default_rng(0).permutation(foretold.T).T
    assert np.corrcoef(shuffled.ravel(), left_out.ravel())[0, 1] < 0.5


@pytest.mark.parametrize("layers", [None, "all"])
def test_it_is_the_slope_when_a_little_less_of_a_row_is_there(retrained, layers):
    """Exactly, size and all; leaving out a whole row goes further than a slope does."""
    slopes, foretold = retrained.rises(6, 1e-5), retrained.foretold(layers)[:, :6]
    assert np.abs(foretold - slopes).max() < 1e-3 * np.abs(slopes).max()
    undamped = retrained.foretold(layers, damping=0.0)[:, :6]
    assert np.abs(undamped - slopes).max() > 0.05 * np.abs(slopes).max()


def test_the_sign_is_positive_for_a_helper_and_negative_for_an_opponent(retrained, left_out):
    """Without the helper the loss rises."""
    foretold = retrained.foretold()
    assert foretold[0, 0] > 0
    assert left_out[0, 0] > 0
    assert foretold[1, 0] < 0
    assert left_out[1, 0] < 0


def trained(model, steps=200):
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        optimiser.zero_grad()
        F.cross_entropy(model(X), Y).backward()
        optimiser.step()
    model.zero_grad()
    return model


@pytest.mark.parametrize("layers", [["0", "2"], ["2"]])
@pytest.mark.filterwarnings("ignore")
def test_ten_leading_directions_are_captums(tmp_path, layers):
    """Captum takes the sum of the Hessians, not the mean, and gives the largest last."""
    pytest.importorskip("captum", reason="the peer is not installed: pip install captum")
    from captum.influence._core.arnoldi_influence_function import ArnoldiInfluenceFunction

    model, rows = trained(net()), TensorDataset(X, Y)
    torch.save(model.state_dict(), tmp_path / "weights.pt")

    def load(peer, path):
        peer.load_state_dict(torch.load(path, weights_only=True))
        return 1.0

    peer = ArnoldiInfluenceFunction(
        copy.deepcopy(model), rows, str(tmp_path / "weights.pt"), load, layers, nn.CrossEntropyLoss(reduction="sum"),
        batch_size=N, sample_wise_grads_per_batch=True, arnoldi_dim=50, projection_dim=20, arnoldi_tol=1e-4,
        hessian_reg=0.0, hessian_inverse_tol=1e-5, seed=1,
    )  # fmt: skip
    theirs = peer.compute_intermediate_quantities(DataLoader(rows, batch_size=N)).detach().numpy()[:, ::-1]
    theirs = theirs[:, :10] * np.sqrt(N)
    fitted = fit(model, pairs(), layers=layers, steps=50, rank=20)
    ours = fitted.transform(model, pairs(), progress=silent)[:, :10]
    lengths = np.linalg.norm(ours, axis=0), np.linalg.norm(theirs, axis=0)
    cosines = np.abs((ours * theirs).sum(axis=0)) / lengths[0] / lengths[1]
    assert cosines.min() >= 0.99
    np.testing.assert_allclose(lengths[0], lengths[1], rtol=0.01)


def test_one_example_only():
    model, one = net(), [(X[:1], Y[:1])]
    for layers in (None, "2", "all"):
        fitted = fit(model, one, layers=layers)
        (row,) = embeddings(fitted, model, one)
        assert np.isfinite(row).all()
        assert 1 <= len(row) <= 2 if layers != "all" else len(row) >= 1  # three classes bend a loss in two directions
    head = embeddings(fit(model, one), model, one)
    named = embeddings(fit(model, one, layers="2"), model, one)
    np.testing.assert_allclose(head @ head.T, named @ named.T, rtol=1e-4)


def test_rows_without_gradient_are_at_the_origin():
    model = net()
    with torch.no_grad():
        model[2].weight.zero_()
        model[2].bias.copy_(torch.tensor([0.0, 200.0, -200.0]))  # sure of one class
    loader = [(X, torch.ones(N, dtype=torch.long))]
    bent = fit(net(), pairs())
    bent.model = None  # the curvature of another model: this one has none
    assert np.array_equal(embeddings(bent, model, loader), np.zeros((N, len(bent.values))))
    for layers in (None, "all"):
        with pytest.raises(InputError, match="no positive eigenvalue"):
            fit(model, loader, layers=layers)
    some = fit(net(), pairs(), layers="all", loss=lambda logits, labels: F.cross_entropy(logits, labels, reduction="none") * (labels > 0))  # fmt: skip  # noqa: E501
    zero = (embeddings(some, net(), pairs()) == 0).all(axis=1)
    assert np.array_equal(zero, Y.numpy() == 0)


def test_fewer_rows_than_weights():
    """A Hessian of small rank: only directions that curve count, and training rows lie in them."""
    model, few = net(), [(X[:3], Y[:3])]
    fitted = fit(model, few)
    assert len(fitted.values) == 6  # three rows, three classes that sum to one
    assert (fitted.values > 1e-5 * fitted.values[0]).all()
    wide = fit(model, few, layers="all", steps=500, rank=500)
    assert len(wide.values) < sum(parameter.numel() for parameter in model.parameters()) / 2
    assert np.isfinite(embeddings(wide, model, pairs())).all()


def test_curvature_downwards_is_counted_and_left_out():
    fitted = fit(net(), pairs(), layers="all", rank=500)
    assert fitted.negative > 0
    assert fitted.least < 0
    assert (fitted.values > 0).all()
    assert (np.diff(fitted.values) <= 0).all()
    convex = fit(net(), pairs(), layers="2", rank=500)
    assert convex.negative == 0


def test_rank_steps_and_seed():
    model = net()
    whole = fit(model, pairs(), layers="all", rank=500)
    short = fit(model, pairs(), layers="all", rank=3)
    np.testing.assert_allclose(short.values, whole.values[:3], rtol=1e-5)
    np.testing.assert_allclose(short.directions, whole.directions[:3], atol=1e-6)
    few = fit(model, pairs(), layers="all", steps=4, rank=500)
    assert len(few.values) + few.negative <= 4
    other = fit(model, pairs(), layers="all", steps=4, rank=500, seed=1)
    assert not np.allclose(few.values, other.values, rtol=1e-3)
    same = fit(model, pairs(), layers="all", steps=4, rank=500)
    assert same.directions.tobytes() == few.directions.tobytes()


@pytest.mark.parametrize("memory", [0, 20_000])
def test_memory_changes_the_time_only(memory):
    fitted = fit(net(), pairs(), layers="all", memory=memory)
    assert fitted.directions.tobytes() == fit(net(), pairs(), layers="all").directions.tobytes()


def test_rows_are_embedded_without_a_second_copy_of_the_directions():
    model = net()
    fitted = fit(model, pairs(), layers="all", rank=7)
    projections = fitted._projections(model, torch.device("cpu"))
    assert np.shares_memory(projections._directions.numpy(), fitted.directions)


def test_an_audit_measures_approximations_of_what_reads_the_label():
    torch.manual_seed(0)
    inputs = torch.randn(400, 4)
    labels = torch.where(inputs[:, 1] > 1, (inputs[:, 0] < 0).long(), (inputs[:, 0] > 0).long())  # a corner is wrong
    model, loader = net(2), pairs(100, inputs, (inputs[:, 0] > 0).long())
    for _ in range(3):
        trained_on(model, loader)
    for layers in (None, "all"):
        fitted = fit(model, loader, layers=layers)
        evaluation = collect(model, pairs(100, inputs, labels), influence=fitted, progress=silent)
        assert set(evaluation.representations) == {"penultimate", "influence"}
        assert evaluation.source("influence").reads == {"label"}
        assert evaluation.source("influence").from_model
        found = audit(evaluation, methods=["infembed"], options={"infembed": {"slices": 4}})
        approximation = found.slicers["infembed-approximation"]
        assert isinstance(approximation, Approximation)
        assert approximation.representation_ == "penultimate"
        assert found.slices
        assert all(item.fidelity is not None or item.reason == "unconfirmable" for item in found.slices)


def trained_on(model, loader):
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for inputs, labels in loader:
        optimiser.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimiser.step()


@pytest.mark.parametrize("layers", [None, "all"])
def test_saved_and_loaded_it_embeds_the_same(tmp_path, layers):
    model = net()
    fitted = fit(model, pairs(), layers=layers, rank=7, damping=0.1)
    path = save_influence(fitted, tmp_path / "influence.safetensors")
    again = load_influence(path)
    assert type(again) is type(fitted)
    assert again.options == fitted.options
    assert (again.least, again.negative) == (fitted.least, fitted.negative)
    assert np.array_equal(again.values, fitted.values)
    assert embeddings(again, model, pairs()).tobytes() == embeddings(fitted, model, pairs()).tobytes()


def test_what_is_no_saved_influence(tmp_path):
    from safetensors.numpy import save_file

    save_file({"a": np.ones(2)}, str(tmp_path / "other.safetensors"))
    (tmp_path / "text").write_text("no")
    for name in ("other.safetensors", "text", "nowhere"):
        with pytest.raises(InputError, match=r"is not a saved influence .*; save one with save_influence"):
            load_influence(tmp_path / name)
    from errata.inputs import restore_influence

    with pytest.raises(InputError, match=r"one of influence of the last layer, influence of layers; got 'domino'"):
        restore_influence(State("domino", {}, {}))


def test_a_loss_of_ones_own_is_not_saved(tmp_path):
    def loss(logits, labels):
        return F.cross_entropy(logits, labels, reduction="none") ** 2

    model = net()
    fitted = fit(model, pairs(), layers="2", loss=loss)
    again = load_influence(save_influence(fitted, tmp_path / "own.safetensors"))
    with pytest.raises(InputError, match=r"a loss of your own, which is not saved; set `\.loss` to it"):
        again.transform(model, pairs(), progress=silent)
    again.loss = loss
    assert np.array_equal(embeddings(again, model, pairs()), embeddings(fitted, model, pairs()))


@pytest.mark.parametrize("layers", [None, "all"])
def test_other_weights_are_refused(layers):
    model = net()
    fitted = fit(model, pairs(), layers=layers)
    with torch.no_grad():
        model[0].weight[0, 0] += 1e-3
    with pytest.raises(InputError, match=r"fitted on other weights.*fit it again"):
        collect(model, pairs(), influence=fitted, progress=silent)


def test_products_are_asked_for_once_a_step(monkeypatch):
    calls = []
    product = MeanHessian.product
    monkeypatch.setattr(MeanHessian, "product", lambda self, v: calls.append(0) or product(self, v))
    fit(net(), pairs(), layers="all", steps=6)
    assert len(calls) == 6
