"""A network small enough for a CPU: a few thousand images of 48 pixels per second and core."""

from __future__ import annotations

import torch
from torch import nn

from ..core import InputError

FOLD = 2  # pixels a side that become channels: the first layer, which costs most, has a quarter of the positions
WIDTHS = (24, 48, 64, 96)
GRID = 3  # cells a side of the last map: with one cell, above and below would look the same
HIDDEN = 64


class SmallCNN(nn.Module):
    """(b, channels, px, px) -> (b, outputs) logits; `head` takes (b, 64)."""

    def __init__(self, outputs: int = 1, px: int = 48, channels: int = 3):
        super().__init__()
        if px % FOLD or px < 16:
            raise InputError(f"`px` must be a multiple of {FOLD}, at least 16; got {px}")
        layers: list[nn.Module] = [nn.PixelUnshuffle(FOLD)]
        inside = channels * FOLD**2
        for i, width in enumerate(WIDTHS):
            if i > 0:
                layers.append(nn.MaxPool2d(2))
            layers += [nn.Conv2d(inside, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
            inside = width
        # The maximum shows whether a thing is there at all, which an average over a mostly empty image hardly does.
        self.body = nn.Sequential(*layers, nn.AdaptiveMaxPool2d(GRID), nn.Flatten())
        cells = nn.Linear(inside * GRID**2, HIDDEN, bias=False)
        self.hidden = nn.Sequential(cells, nn.BatchNorm1d(HIDDEN), nn.ReLU(inplace=True))
        self.head = nn.Linear(HIDDEN, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(b, channels, px, px) -> (b, outputs) logits."""
        logits: torch.Tensor = self.head(self.hidden(self.body(x)))
        return logits
