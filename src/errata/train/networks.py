"""The networks by name, with weights drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from ..core.errors import unknown
from .checks import check_numbers
from .resnet import ResNet18, slim
from .small import SmallCNN

NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "resnet18": ResNet18,
    "resnet18-slim": slim,
    "small": SmallCNN,
}


def network(name: str, *, px: int, outputs: int = 1, channels: int = 3, seed: int = 0) -> nn.Module:
    """A new network for images of `px`, with `outputs` logits; torch's own generators are left alone.

    channels: 3 for images in colour, 1 for grey ones.
    """
    if name not in NETWORKS:
        raise unknown("network", name, NETWORKS)
    check_numbers(px=px, outputs=outputs, channels=channels, seed=seed)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # not the GPUs' as well, which are not restored
        return NETWORKS[name](outputs, px, channels=channels)
