"""ResNet-18 (He et al. 2016), with the usual stem for large images and a fine one for small images; and a slim one."""

from __future__ import annotations

import torch
from torch import nn

LARGE = 96  # pixels from which the stem may divide by four
WIDTHS = (64, 128, 256, 512)
SLIM = (40, 80, 160, 192)  # 2.4 million weights: less than 5 MB in half precision


class Block(nn.Module):
    """Two 3x3 convolutions around a shortcut, which is projected where the shape changes."""

    def __init__(self, inside: int, outside: int, stride: int):
        super().__init__()
        self.conv1 = _convolution(inside, outside, 3, stride)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = _convolution(outside, outside, 3)
        self.bn2 = nn.BatchNorm2d(outside)
        self.shortcut: nn.Module = nn.Identity()
        if inside != outside or stride != 1:
            self.shortcut = nn.Sequential(_convolution(inside, outside, 1, stride), nn.BatchNorm2d(outside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(b, c, h, w) -> two convolutions of it, added to the shortcut."""
        y = torch.relu_(self.bn1(self.conv1(x)))
        return torch.relu_(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    """(b, channels, px, px) -> (b, outputs) logits; `fc` takes (b, 512), or the last of `widths`."""

    def __init__(self, outputs: int = 1, px: int = 224, widths: tuple[int, ...] = WIDTHS, channels: int = 3):
        super().__init__()
        inside = widths[0]
        self.stem = _stem(px, channels, inside)
        stages = []
        for i, width in enumerate(widths):
            stride = 1 if i == 0 else 2
            stages.append(nn.Sequential(Block(inside, width, stride), Block(width, width, 1)))
            inside = width
        self.stages = nn.Sequential(*stages)
        self.fc = nn.Linear(inside, outputs)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(b, channels, px, px) -> (b, outputs) logits."""
        logits: torch.Tensor = self.fc(self.stages(self.stem(x)).mean(dim=(2, 3)))
        return logits


def slim(outputs: int = 1, px: int = 32, channels: int = 3) -> ResNet18:
    """A ResNet-18 of 2.4 million weights."""
    return ResNet18(outputs, px, SLIM, channels)


def _stem(px: int, channels: int, width: int) -> nn.Sequential:
    if px >= LARGE:
        head = [_convolution(channels, width, 7, 2), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        return nn.Sequential(*head, nn.MaxPool2d(3, stride=2, padding=1))
    return nn.Sequential(_convolution(channels, width, 3), nn.BatchNorm2d(width), nn.ReLU(inplace=True))


def _convolution(inside: int, outside: int, size: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inside, outside, size, stride=stride, padding=size // 2, bias=False)
