"""The last layer trained further, all else left as it is: what it sees is read once, so that an epoch costs nothing."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from ..core import Array, InputError
from ..tensors import evaluating, moved, tapped
from .loop import Images, check_images, check_labels, check_weights, outputs, prepared, row_losses, tensor_of


def fine_tune_head(
    model: nn.Module,
    images: Images,
    labels: Images,
    *,
    epochs: int = 15,
    batch: int = 128,
    lr: float = 1e-3,
    weights: Array | None = None,
    device: torch.device | str | None = None,
    seed: int = 0,
) -> float:
    """Trains the last linear layer in place, from where it stands; returns the mean loss of the last epoch.

    weights: (n,) how often each row counts; 1 where left out.
    """
    check_images(images, labels)
    check_weights(weights, len(images))
    if len(images) < 1 or epochs < 1 or batch < 1:
        raise InputError(f"training needs 1 image, 1 epoch and batches of 1; got {len(images)}, {epochs}, {batch}")
    head = _head(model, tensor_of(images[:2]))
    with moved(model, device) as where:
        targets = tensor_of(labels).to(where)
        check_labels(model, tensor_of(images[:2]).to(where), targets)
    seen = torch.from_numpy(outputs(model, images, device=device, batch=max(batch, 256))[1])
    counted = torch.ones(len(seen)) if weights is None else torch.as_tensor(weights, dtype=torch.float32)
    return _train(head, seen, targets.cpu(), counted, (epochs, batch, lr, seed))


def _head(model: nn.Module, two: torch.Tensor) -> nn.Linear:
    """The linear layer that runs last."""
    with evaluating(model), tapped(model) as tap:
        model(prepared(two).to(next(model.parameters()).device))
        tap.take(len(two))
    head = model.get_submodule(tap.layer or "")
    if not isinstance(head, nn.Linear):
        raise InputError(f"the last layer is a {type(head).__name__}; only a linear one can be trained by itself")
    return head


def _train(
    head: nn.Linear, seen: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor, plan: tuple[int, int, float, int]
) -> float:
    epochs, batch, lr, seed = plan
    home, chance, mean = head.weight.device, torch.Generator().manual_seed(seed), math.nan
    layer = nn.Linear(head.in_features, head.out_features, bias=head.bias is not None)
    layer.load_state_dict({name: value.detach().cpu() for name, value in head.state_dict().items()})
    optimiser = torch.optim.Adam(layer.parameters(), lr=lr)
    parts = math.ceil(len(seen) / batch)
    for _ in range(epochs):
        total = []
        for rows in torch.randperm(len(seen), generator=chance).tensor_split(parts):
            loss = (row_losses(layer(seen[rows]), targets[rows]) * weights[rows]).mean()
            optimiser.zero_grad(set_to_none=True)
            torch.autograd.backward(loss)
            optimiser.step()
            total.append(float(loss.detach()))
        mean = float(np.mean(total))
    if not math.isfinite(mean):
        raise InputError(f"the loss is {mean} after {epochs} epochs; use a smaller `lr`")
    head.load_state_dict({name: value.to(home) for name, value in layer.state_dict().items()})
    return mean
