"""Projected ascent: maximising a function of images without leaving a ball around them, nor the range of pixels.

Pixels lie in [0, 1], and so does every length here: a radius of .5 is .5 of one channel of one pixel, or less of many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real

import torch

from ..core import InputError

REACH = 2.5  # of all steps together, in radii (Madry et al. 2018): enough to cross the ball and walk along its edge
TINY = 1e-12  # a gradient shorter than this has no direction

Objective = Callable[[torch.Tensor], torch.Tensor]  # (b, ...) pixels -> (b,) values, one row's from that row alone


@dataclass(frozen=True)
class Ball:
    """How far an ascent may go (L2, in units of [0, 1] pixels), in how many steps, and how long each is."""

    radius: float
    steps: int = 7
    step: float | None = None  # Default: 2.5 radius / steps

    def __post_init__(self) -> None:
        if not isinstance(self.radius, Real) or not 0 <= self.radius < float("inf"):
            raise InputError(f"`radius` must be a length from 0 on, in units of [0, 1] pixels; got {self.radius!r}")
        if not isinstance(self.steps, Integral) or self.steps < 1:
            raise InputError(f"`steps` must be an integer of at least 1; got {self.steps!r}")
        if self.step is not None and not (isinstance(self.step, Real) and 0 < self.step < float("inf")):
            raise InputError(f"`step` must be a length above 0; got {self.step!r}")

    @property
    def stride(self) -> float:
        """The length of a step."""
        if self.step is not None:
            return self.step
        return REACH * self.radius / self.steps


def ascend(
    objective: Objective, pixels: torch.Tensor, ball: Ball, generator: torch.Generator | None = None
) -> torch.Tensor:
    """(b, ...) pixels where `objective` is higher: steps along its gradient, of one length, each projected.

    With a `generator` it starts at random in the ball, else at `pixels`. A row whose gradient vanishes does not move.
    """
    points = pixels
    if generator is not None:
        points = project_to_ball(pixels + _random_offsets(pixels, ball.radius, generator), pixels, ball.radius)
    for _ in range(ball.steps):
        points = points.detach().requires_grad_(True)
        with torch.enable_grad():
            total = objective(points).sum()
        (gradient,) = torch.autograd.grad(total, points)
        points = project_to_ball(points.detach() + ball.stride * _unit(gradient), pixels, ball.radius)
    return points.detach()


def project_to_ball(points: torch.Tensor, centre: torch.Tensor, radius: float) -> torch.Tensor:
    """The points, moved within `radius` of their centres and into [0, 1].

    Cutting to [0, 1] moves no coordinate away from a centre that lies there, so the radius still holds after it.
    """
    away = points - centre
    shrink = (radius / _lengths(away).clamp_min(TINY)).clamp_max(1.0)
    return (centre + shrink * away).clamp(0, 1)


def distances(points: torch.Tensor, centre: torch.Tensor) -> torch.Tensor:
    """(b,) the distance of each row from its centre."""
    return _lengths(points - centre).flatten()


def _random_offsets(pixels: torch.Tensor, radius: float, generator: torch.Generator) -> torch.Tensor:
    """Uniform in the ball: a random direction, and a length whose power to the dimension is uniform."""
    normal = torch.empty_like(pixels).normal_(generator=generator)  # in memory as the pixels are
    share = torch.rand((len(pixels), *[1] * (pixels.ndim - 1)), generator=generator, device=pixels.device)
    dimension = max(1, pixels[:1].numel())
    return radius * share.to(pixels.dtype).pow(1 / dimension) * _unit(normal)


def _unit(vectors: torch.Tensor) -> torch.Tensor:
    return vectors / _lengths(vectors).clamp_min(TINY)


def _lengths(vectors: torch.Tensor) -> torch.Tensor:
    """(b, 1, ...)"""
    lengths: torch.Tensor = torch.linalg.vector_norm(vectors, dim=tuple(range(1, vectors.ndim)), keepdim=True)
    return lengths
