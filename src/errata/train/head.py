"""Further training of the last layer alone: what it takes is computed once, so that an epoch costs little."""

from __future__ import annotations

import math

import torch
from torch import nn

from ..core import Array, InputError
from ..tensors import capture_layer, evaluating, on_device
from .checks import Images, as_tensor, check_labelled, check_numbers, check_weights
from .loop import (
    check_labels,
    naming_images,
    normalise_bytes,
    outputs,
    row_losses,
    run_epoch,
)


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
    """Train the last linear layer further, in place; returns the mean loss of the last epoch.

    images, labels: (n, px, px, 3) bytes, or grey (n, px, px), and (n,) classes. weights: (n,) how often each row
    counts. Default: 1.
    """
    check_numbers(epochs=epochs, batch=batch, lr=lr, seed=seed)
    images, targets = check_labelled(images, labels)
    check_weights(weights, len(images))
    if not len(images):
        raise InputError("training needs 1 image; got none")
    head = _last_linear_layer(model, as_tensor(images[:2]))
    with on_device(model, device) as where:
        check_labels(model, as_tensor(images[:2]).to(where), targets.to(where))
    targets = targets.cpu()
    features = torch.from_numpy(outputs(model, images, device=device, batch=max(batch, 256))[1])
    row_weights = torch.ones(len(features)) if weights is None else torch.as_tensor(weights, dtype=torch.float32)
    layer = nn.Linear(head.in_features, head.out_features, bias=head.bias is not None)  # a copy, on the CPU
    layer.load_state_dict({name: value.detach().cpu() for name, value in head.state_dict().items()})
    optimiser = torch.optim.Adam(layer.parameters(), lr=lr)
    generator = torch.Generator().manual_seed(seed)

    def batch_loss(rows: torch.Tensor) -> torch.Tensor:
        return (row_losses(layer(features[rows]), targets[rows]) * row_weights[rows]).mean()

    mean = math.nan
    for _ in range(epochs):
        parts = torch.randperm(len(features), generator=generator).tensor_split(math.ceil(len(features) / batch))
        mean = run_epoch(layer, optimiser, parts, batch_loss)
    head.load_state_dict({name: value.to(head.weight.device) for name, value in layer.state_dict().items()})
    return mean


def _last_linear_layer(model: nn.Module, two: torch.Tensor) -> nn.Linear:
    pixels = normalise_bytes(two).to(next(model.parameters()).device)
    with evaluating(model), naming_images(pixels), capture_layer(model) as capture:
        model(pixels)
        capture.take(len(two))
    head = model.get_submodule(capture.layer or "")
    if not isinstance(head, nn.Linear):
        raise InputError(f"the last layer is a {type(head).__name__}; only a linear one can be trained by itself")
    return head
