"""Projections of single rows' gradients against gradients of one row after another."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # only once torch is known to be there
from torch.func import functional_call  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from errata.core import InputError  # noqa: E402
from errata.tensors import RowProjections, evaluating, select_parameters, twice_differentiable  # noqa: E402
from support.networks import INPUTS, batches, condition, losses_of, problem, row_gradients  # noqa: E402

torch.set_num_threads(1)
D = 6
MUCH = 1 << 28


def directions_for(parameters, dtype=torch.float64):
    p = sum(parameter.numel() for parameter in parameters.values())
    return torch.randn(D, p, dtype=dtype, generator=torch.Generator().manual_seed(3))


def rows_at_once(parameters, count):
    """Bytes that hold the gradients of so many rows."""
    return count * 8 * sum(parameter.numel() for parameter in parameters.values())


def projected(losses, parameters, X, y, route):
    """(n, D) of two batches, and the way it went."""
    rows = RowProjections(losses, parameters, directions_for(parameters))
    rows.route = route
    return torch.cat([rows.of(batch, len(batch[1])) for batch in batches(X, y)]), rows.route


@pytest.mark.parametrize("route", ["rows", "weights"])
@pytest.mark.parametrize("name", INPUTS)
def test_both_ways_equal_the_gradients_of_single_rows(name, route):
    model, X, y = problem(name)
    before = condition(model)
    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, None)
        expected = row_gradients(losses_of(model), parameters, X, y) @ directions_for(parameters).T
        found, taken = projected(losses_of(model), parameters, X, y, route)
    assert taken == ("weights" if name == "lstm" else route)
    assert expected.abs().max() > 0.1
    assert torch.allclose(found, expected, atol=1e-10)
    assert not found.requires_grad
    assert condition(model) == before


@pytest.mark.parametrize("count", [1, 2, 3, 4, 100])
def test_how_many_rows_are_held_at_once_does_not_matter(count):
    model, X, y = problem("conv")
    held = []
    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, ["0", "4"])
        rows = RowProjections(
            losses_of(model), parameters, directions_for(parameters), rows_at_once(parameters, count + 1) - 1
        )
        multiply = rows._multiplied
        rows._multiplied = lambda gradients: held.append(len(gradients["0.weight"])) or multiply(gradients)
        found = rows.of((X, y), len(y))
        expected = row_gradients(losses_of(model), parameters, X, y) @ directions_for(parameters).T
    assert rows.route == "rows"
    assert max(held) == min(count, len(y))
    assert sum(held) == len(y)
    assert torch.allclose(found, expected, atol=1e-12)


def test_single_precision():
    model, X, y = problem("conv")
    model, X = model.float(), X.float()
    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, None)
        rows = RowProjections(losses_of(model), parameters, directions_for(parameters, torch.float32))
        expected = row_gradients(losses_of(model), parameters, X, y) @ directions_for(parameters, torch.float32).T
        assert rows._at_once == MUCH // (4 * rows._directions.shape[1])
        assert torch.allclose(rows.of((X, y), len(y)), expected, atol=1e-4)


class Branching(nn.Module):
    """Looks at the values of a row to decide what to do."""

    def __init__(self):
        super().__init__()
        self.small, self.large = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x):
        return torch.cat([(self.large if row.sum() > 0 else self.small)(row[None]) for row in x])


class TimeFirst(nn.Module):
    """Rows lie along the second axis."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(torch.tanh(x.cumsum(dim=0)[-1]))


class Words(nn.Module):
    """Reads text."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 3)

    def forward(self, words):
        return self.embedding(torch.tensor([len(word) for word in words]))


class Together(nn.Module):
    """Normalises with the mean of the batch, also when it is not trained."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.BatchNorm1d(2, track_running_stats=False), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x.reshape(len(x), 2, 2))).reshape(len(x), 4))


CANNOT = {
    "branches": (Branching, lambda b: torch.randn(b, 4), 0),
    "time first": (TimeFirst, lambda b: torch.randn(7, b, 4), 1),
    "as many times as rows": (TimeFirst, lambda b: torch.randn(b, b, 4), 1),
    "words": (Words, lambda b: ["a" * (i % 8) for i in range(b)], None),
}


@pytest.mark.parametrize("case", CANNOT)
def test_models_that_cannot_be_vectorised_go_by_weights(case):
    build, draw, axis = CANNOT[case]
    torch.manual_seed(0)
    model = build()
    X, y = draw(5), torch.randint(0, 3, (5,))
    losses = losses_of(model)
    parameters = select_parameters(model, None)
    directions = directions_for(parameters, torch.float32)
    rows = RowProjections(losses, parameters, directions)
    found = rows.of((X, y), 5)
    assert rows.route == "weights"
    for i in range(5):
        x = [X[i]] if axis is None else X.narrow(axis, i, 1)
        gradient = torch.autograd.grad(losses(parameters, (x, y[i : i + 1])).sum(), list(parameters.values()),
                                       materialize_grads=True)  # fmt: skip
        assert torch.allclose(found[i], directions @ torch.cat([part.reshape(-1) for part in gradient]), atol=1e-5)


def test_rows_that_depend_on_each_other_are_taken_together():
    """The gradient of one row's loss within its batch, not of the row alone."""
    torch.manual_seed(0)
    model = Together().double().eval()
    X, y = torch.randn(5, 4).double(), torch.randint(0, 3, (5,))
    losses, parameters = losses_of(model), select_parameters(model, None)
    found = RowProjections(losses, parameters, directions_for(parameters)).of((X, y), 5)
    for i in range(5):
        gradient = torch.autograd.grad(losses(parameters, (X, y))[i], list(parameters.values()))
        expected = directions_for(parameters) @ torch.cat([part.reshape(-1) for part in gradient])
        assert torch.allclose(found[i], expected, atol=1e-10)


def test_nests_with_things_that_are_no_rows():
    """Dicts with lists, numbers and texts, and a tensor that all rows share."""
    torch.manual_seed(0)
    model = nn.Linear(4, 3).double()
    X, y, shared = torch.randn(5, 4).double(), torch.randint(0, 3, (5,)), torch.tensor([0.5, 1.0, 2.0]).double()

    def losses(parameters, nest):
        (given,), labels = nest
        logits = functional_call(model, dict(parameters), (given["parts"][0] * given["by"],)) * given["scale"]
        return F.cross_entropy(logits + len(given["word"]) * given["none"][0], labels, reduction="none")

    nest = (({"parts": [X], "by": 2, "scale": shared, "word": "ab", "none": (torch.tensor(0.1),)},), y)
    parameters = select_parameters(model, None)
    rows = RowProjections(losses, parameters, directions_for(parameters))
    found = rows.of(nest, 5)
    assert rows.route == "rows"
    scaled = lambda named, batch: F.cross_entropy(  # noqa: E731
        functional_call(model, dict(named), (2 * batch[0],)) * shared + 0.2, batch[1], reduction="none"
    )
    expected = row_gradients(scaled, parameters, X, y) @ directions_for(parameters).T
    assert torch.allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("route", ["rows", "weights"])
def test_rows_without_gradient_are_exactly_zero(route):
    model, X, y = problem("mlp")
    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, ["3"])
        some = torch.arange(len(y)) % 2 == 0
        losses = lambda named, batch: losses_of(model)(named, batch[:2]) * batch[2]  # noqa: E731
        rows = RowProjections(losses, parameters, directions_for(parameters))
        rows.route = route
        found = rows.of((X, y, some.double()), len(y))
        assert torch.equal(found[~some], torch.zeros(4, D, dtype=torch.float64))
        assert (found[some].abs().sum(dim=1) > 0.1).all()
        constant = RowProjections(lambda named, batch: batch[0].sum(dim=1), parameters, directions_for(parameters))
        constant.route = route
        assert torch.equal(constant.of((X, y), len(y)), torch.zeros(len(y), D, dtype=torch.float64))


@pytest.mark.parametrize("route", ["rows", "weights"])
def test_an_error_of_the_model_is_said_and_all_is_restored(route):
    model, X, y = problem("conv")
    model.train()
    next(model.parameters()).requires_grad_(False)
    before = condition(model)

    def losses(parameters, batch):
        losses_of(model)(parameters, batch)
        raise RuntimeError("boom")

    def run():
        with evaluating(model), twice_differentiable(model):
            parameters = select_parameters(model, None)
            rows = RowProjections(losses, parameters, directions_for(parameters))
            rows.route = route
            rows.of((X, y), len(y))

    with pytest.raises(RuntimeError, match="boom"):
        run()
    assert condition(model) == before


def test_what_was_found_out_with_the_first_batch_is_remembered():
    model, X, y = problem("mlp")
    calls = []

    def losses(parameters, batch):
        calls.append(len(batch[1]))
        return losses_of(model)(parameters, batch)

    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, None)
        rows = RowProjections(losses, parameters, directions_for(parameters))
        for batch in batches(X, y, 2):
            rows.of(batch, 2)
    assert calls == [1, 2, 1, 1, 1]  # once together, to see that a row alone has the same loss


def test_a_row_that_is_larger_than_the_memory_for_rows_is_taken_alone():
    model, X, y = problem("mlp")
    with evaluating(model), twice_differentiable(model):
        parameters = select_parameters(model, None)
        rows = RowProjections(losses_of(model), parameters, directions_for(parameters), rows_at_once(parameters, 1) - 1)
        found = rows.of((X, y), len(y))
        expected = row_gradients(losses_of(model), parameters, X, y) @ directions_for(parameters).T
    assert (rows.route, rows._at_once) == ("rows", 1)
    assert torch.allclose(found, expected, atol=1e-12)


OUT_OF_MEMORY = [  # on a GPU, on a CPU, on a CPU under Windows, of C++
    torch.cuda.OutOfMemoryError("too much"),
    RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 1024000000 bytes. Error code 12 (Cannot allocate memory)"
    ),
    RuntimeError("[enforce fail at alloc_cpu.cpp:116] data. DefaultCPUAllocator: not enough memory: you tried to"),
    RuntimeError("std::bad_alloc"),
]


@pytest.mark.parametrize("error", OUT_OF_MEMORY)
def test_fewer_rows_are_taken_where_the_memory_of_a_device_is_too_small(monkeypatch, error):
    torch.manual_seed(0)
    model = nn.Linear(4, 3).double()
    batch = (torch.randn(9, 4).double(), torch.randint(0, 3, (9,)))
    parameters = select_parameters(model, None)
    rows = RowProjections(losses_of(model), parameters, directions_for(parameters))
    expected = rows.of(batch, 9)
    by_rows = rows._by_rows

    def small(*given):
        if rows._at_once > 2:
            raise error
        return by_rows(*given)

    monkeypatch.setattr(rows, "_by_rows", small)
    assert torch.allclose(rows.of(batch, 9), expected)
    assert rows.route == "rows"
    assert rows._at_once in (1, 2)


@pytest.mark.parametrize("error", [*OUT_OF_MEMORY, MemoryError()])
def test_a_memory_that_holds_not_even_one_row_is_said_and_no_other_way_taken(monkeypatch, error):
    model = nn.Linear(4, 3)
    parameters = select_parameters(model, None)
    rows = RowProjections(losses_of(model), parameters, directions_for(parameters))

    def none(*given):
        raise error

    monkeypatch.setattr(rows, "_by_rows", none)
    monkeypatch.setattr(rows, "_by_weights", lambda *given: pytest.fail("the slow way was taken"))
    with pytest.raises(InputError, match=r"out of memory with the gradient of one row .* give a smaller `rank`"):
        rows.of((torch.randn(9, 4), torch.randint(0, 3, (9,))), 9)
