"""Small models in float64 with two batches of rows each, and derivatives found in other ways than ours."""

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

N = 8  # rows: a batch of five and one of three


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(4, 2, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.attention(x, x, x, need_weights=False)[0].mean(dim=1))


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.keys, self.head = nn.Linear(4, 8), nn.Linear(4, 3)

    def forward(self, x):
        keys, values = self.keys(x).chunk(2, dim=-1)
        return self.head(F.scaled_dot_product_attention(x, keys, values).mean(dim=1))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(4, 2, dim_feedforward=5, activation="gelu", batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.layer(x)[:, 0])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 3)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class Tied(nn.Module):
    """The weights of the embedding are those of the output."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, words):
        return self.head(torch.tanh(self.embedding(words).mean(dim=1)))


def mlp():
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 3))


def conv():
    """Whose batch norm has seen something."""
    model = nn.Sequential(nn.Conv2d(1, 2, 2), nn.BatchNorm2d(2), nn.Tanh(), nn.Flatten(), nn.Linear(8, 3))
    model.train()(torch.randn(20, 1, 3, 3))
    return model


INPUTS = {
    "mlp": (mlp, lambda: torch.randn(N, 4)),
    "conv": (conv, lambda: torch.randn(N, 1, 3, 3)),
    "multi-head attention": (Attends, lambda: torch.randn(N, 3, 4)),
    "scaled dot product": (Scaled, lambda: torch.randn(N, 3, 4)),
    "encoder layer": (Encoder, lambda: torch.randn(N, 3, 4)),
    "lstm": (Recurrent, lambda: torch.randn(N, 3, 4)),
    "tied": (Tied, lambda: torch.randint(0, 5, (N, 3))),
}


def problem(name):
    """The model, and its rows as (inputs, labels)."""
    torch.manual_seed(0)
    build, draw = INPUTS[name]
    model, X = build(), draw()
    return model.double(), X.double() if X.is_floating_point() else X, torch.randint(0, 3, (N,))


def batches(X, y, size=5):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]


def losses_of(model):
    def losses(parameters, batch):
        return F.cross_entropy(functional_call(model, dict(parameters), (batch[0],)), batch[1], reduction="none")

    return losses


def row_gradients(losses, parameters, X, y):
    """(n, p), one row after another."""
    rows = []
    for i in range(len(X)):
        loss = losses(parameters, (X[i : i + 1], y[i : i + 1])).sum()
        gradient = torch.autograd.grad(loss, list(parameters.values()), materialize_grads=True)
        rows.append(torch.cat([part.reshape(-1) for part in gradient]))
    return torch.stack(rows)


def numerical_hessian(losses, parameters, X, y, step=1e-4):
    """(p, p) of the mean loss: the slope of the gradient, from both sides, so that no second derivative is needed."""

    def gradient():
        loss = losses(parameters, (X, y)).mean()
        return torch.cat([part.reshape(-1) for part in torch.autograd.grad(loss, list(parameters.values()))])

    columns = []
    for parameter in parameters.values():
        flat = parameter.data.view(-1)
        for j in range(len(flat)):
            middle, sides = float(flat[j]), []
            for shift in (step, -step):
                flat[j] = middle + shift
                sides.append(gradient())
            flat[j] = middle
            columns.append((sides[0] - sides[1]) / (2 * step))
    return torch.stack(columns, dim=1)


def condition(model):
    """All of a model that must be as it was."""
    return (
        [module.training for module in model.modules()],
        [parameter.requires_grad for parameter in model.parameters()],
        [len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in model.modules()],
        {name: tensor.clone().numpy().tobytes() for name, tensor in model.state_dict().items()},
        [parameter.grad is None for parameter in model.parameters()],
        [id(parameter) for parameter in model.parameters()],
        torch.is_grad_enabled(),
        (torch.backends.mkldnn.enabled, torch.backends.cudnn.enabled),
        (torch.backends.cuda.flash_sdp_enabled(), torch.backends.cuda.mem_efficient_sdp_enabled()),
    )
