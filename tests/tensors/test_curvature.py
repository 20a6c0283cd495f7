"""Products with the mean Hessian against the slope of the gradient, for the layers that people use."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # only once torch is known to be there
from torch.func import functional_call, hessian  # noqa: E402

from errata.core import InputError  # noqa: E402
from errata.tensors import MeanHessian, evaluating, flat, select_parameters, twice_differentiable  # noqa: E402
from support.networks import INPUTS, batches, condition, losses_of, mlp, numerical_hessian, problem  # noqa: E402

torch.set_num_threads(1)


def whole(product, p):
    """(p, p), a column at a time."""
    return torch.stack([product(column) for column in torch.eye(p, dtype=torch.float64)], dim=1)


def size_of(parameters):
    return sum(parameter.numel() for parameter in parameters.values())


class Counted:
    """Losses that count how often they are asked for."""

    def __init__(self, losses):
        self.losses, self.calls = losses, 0

    def __call__(self, parameters, batch):
        self.calls += 1
        return self.losses(parameters, batch)


@pytest.mark.parametrize("name", INPUTS)
def test_products_are_those_of_the_hessian(name):
    model, X, y = problem(name)
    before = condition(model)
    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, None)
        product = MeanHessian(losses_of(model), parameters, batches(X, y)).product
        found = whole(product, size_of(parameters))
        expected = numerical_hessian(losses_of(model), parameters, X, y)
    assert expected.abs().max() > 0.01
    assert (found - expected).abs().max() < 1e-7 * expected.abs().max()
    assert condition(model) == before


@pytest.mark.parametrize("name", ["lstm", "scaled dot product", "conv"])
def test_single_precision_has_fused_kernels_of_its_own(name):
    model, X, y = problem(name)
    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, None)
        v = torch.randn(size_of(parameters), dtype=torch.float64)
        expected = MeanHessian(losses_of(model), parameters, batches(X, y)).product(v)
        model.float()
        parameters = select_parameters(model, None)
        found = MeanHessian(losses_of(model), parameters, batches(X.float(), y)).product(v.float())
    assert (found - expected).abs().max() < 1e-5 * expected.abs().max()


@pytest.mark.parametrize("layers", [["0"], ["3"], ["3", "0"], ["0", ""]])
def test_of_some_layers_only(layers):
    model, X, y = problem("mlp")
    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, layers)
        found = whole(MeanHessian(losses_of(model), parameters, batches(X, y)).product, size_of(parameters))
        flags = [parameter.requires_grad for parameter in model.parameters()]

        def loss(vector):
            parts = vector.split([parameter.numel() for parameter in parameters.values()])
            named = {name: part.view_as(parameters[name]) for name, part in zip(parameters, parts, strict=True)}
            return losses_of(model)(named, (X, y)).mean()

        expected = hessian(loss)(flat([parameter.detach() for parameter in parameters.values()]))
    assert torch.allclose(found, expected, atol=1e-12)
    names = {name.split(".")[0] for name in parameters}
    assert names == ({"0", "3"} if "" in layers else set(layers))
    assert flags == [name.split(".")[0] in names for name, _ in model.named_parameters()]


@pytest.mark.parametrize("name", ["conv", "encoder layer", "lstm"])
def test_how_rows_are_put_into_batches_does_not_matter(name):
    model, X, y = problem(name)
    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, None)
        v = torch.randn(size_of(parameters), dtype=torch.float64)
        found = [MeanHessian(losses_of(model), parameters, batches(X, y, b)).product(v) for b in (1, 3, 8)]
    for other in found[1:]:
        assert torch.allclose(found[0], other, atol=1e-12)
    assert found[0].abs().max() > 1e-3


@pytest.mark.parametrize("name", ["mlp", "lstm", "tied"])
def test_graphs_are_kept_as_far_as_memory_goes_and_change_nothing(name):
    model, X, y = problem(name)
    forwards, products = {}, {}
    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, None)
        vectors = torch.randn(3, size_of(parameters), dtype=torch.float64)
        one = _bytes_of_one_batch(model, parameters, X, y)
        for memory in (0, one - 1, int(2.5 * one), 1 << 30):
            losses = Counted(losses_of(model))
            mean = MeanHessian(losses, parameters, batches(X, y, 2), memory)  # four batches of one size
            products[memory] = torch.stack([mean.product(v) for v in vectors])
            forwards[memory] = losses.calls
    assert list(forwards.values()) == [12, 12, 8, 4]  # none, none, two and all of them are kept
    for other in products.values():
        assert torch.equal(other, products[0])


def _bytes_of_one_batch(model, parameters, X, y):
    mean = MeanHessian(losses_of(model), parameters, batches(X, y, 2), 1 << 30)
    mean.product(torch.zeros(size_of(parameters), dtype=torch.float64))
    used = (1 << 30) - mean._left
    assert used % 4 == 0
    return used // 4


def test_the_gradient_that_is_held_counts_as_memory():
    """As large as the weights, and larger than all else where a layer is wide and its rows are few."""
    wide, x = nn.Linear(200, 200).double(), torch.randn(1, 200).double()
    bytes_of_gradient = 8 * size_of(dict(wide.named_parameters()))

    def losses(parameters, batch):
        return (functional_call(wide, dict(parameters), (batch[0],)) ** 2).sum(dim=1)

    for memory, calls in ((bytes_of_gradient - 1, 2), (2 * bytes_of_gradient, 1)):
        counted = Counted(losses)
        mean = MeanHessian(counted, dict(wide.named_parameters()), [(x, x)], memory)
        for _ in range(2):
            mean.product(torch.ones(200 * 201, dtype=torch.float64))
        assert counted.calls == calls


def test_what_was_kept_is_given_back():
    """A graph that holds itself would stay until the garbage collector runs."""
    import gc
    import weakref

    model, X, y = problem("mlp")
    alive = []

    def losses(parameters, batch):
        hidden = torch.exp(torch.tanh(functional_call(model, dict(parameters), (batch[0],))))  # saves its own output
        alive.append(weakref.ref(hidden))
        return hidden.sum(dim=1)

    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, None)
        gc.disable()
        try:
            MeanHessian(losses, parameters, batches(X, y), 0).product(torch.ones(size_of(parameters)).double())
            assert [ref() for ref in alive] == [None, None]
        finally:
            gc.enable()


def test_a_loss_that_does_not_curve_and_one_that_does_not_depend():
    model, X, _ = problem("mlp")
    linear, other = nn.Linear(4, 3).double(), nn.Linear(2, 2).double()
    cases = [
        (linear, lambda parameters, batch: functional_call(linear, dict(parameters), (batch[0],)).sum(dim=1)),
        (other, lambda parameters, batch: model(batch[0]).sum(dim=1)),
    ]
    for owner, losses in cases:
        model.requires_grad_(False)
        parameters = dict(owner.named_parameters())
        mean = MeanHessian(losses, parameters, batches(X, X))
        product = mean.product(torch.ones(size_of(parameters), dtype=torch.float64))
        assert torch.equal(product, torch.zeros_like(product))
        assert len(product) == size_of(parameters)


def test_some_parameters_that_do_not_curve_beside_some_that_do():
    """The gradient of a sum's bias is constant."""
    model = nn.ModuleDict({"bent": nn.Linear(4, 1), "straight": nn.Linear(4, 1)}).double()
    _, X, y = problem("mlp")

    def losses(parameters, batch):
        bent = batch[0] @ parameters["bent.weight"].T + parameters["bent.bias"]
        return (bent**2 + batch[0] @ parameters["straight.weight"].T + parameters["straight.bias"])[:, 0]

    parameters = select_parameters(model, None)
    found = whole(MeanHessian(losses, parameters, batches(X, y)).product, 10)
    ones = torch.cat([X, torch.ones(len(X), 1).double()], dim=1)
    expected = torch.zeros(10, 10, dtype=torch.float64)
    expected[:5, :5] = 2 * ones.T @ ones / len(X)
    assert torch.allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", ["conv", "lstm"])
def test_all_is_restored_after_an_error(name):
    model, X, y = problem(name)
    model.train()
    next(model.parameters()).requires_grad_(False)
    next(model.children()).eval()
    before = condition(model)

    def losses(parameters, batch):
        losses_of(model)(parameters, batch)
        raise RuntimeError("boom")

    def run():
        with evaluating(model), twice_differentiable(model):
            parameters = select_parameters(model, None)
            assert condition(model) != before
            MeanHessian(losses, parameters, batches(X, y)).product(torch.ones(size_of(parameters)).double())

    with pytest.raises(RuntimeError, match="boom"):
        run()
    assert condition(model) == before


def test_tied_weights_are_one_parameter_whichever_layer_is_named():
    model, _, _ = problem("tied")
    for layers in (None, ["head"], ["embedding"], ["head", "embedding"]):
        assert list(select_parameters(model, layers)) == ["embedding.weight"]


def test_layers_that_cannot_be_chosen():
    with pytest.raises(InputError, match="unknown layer `4`; known: 0, 1, 2, 3"):
        select_parameters(mlp(), ["4"])
    with pytest.raises(InputError, match=r"the layers \['1', '2'\] have no parameters"):
        select_parameters(mlp(), ["1", "2"])
    with pytest.raises(InputError, match=r"the layers \[\] have no parameters"):
        select_parameters(mlp(), [])
    with pytest.raises(InputError, match=r"`0.weight` is torch.bfloat16, too coarse.*use model.float\(\)"):
        select_parameters(mlp().bfloat16(), None)
