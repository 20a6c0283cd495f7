"""Shared torch numerics. Only those who have torch import this room."""

from .capture import Tap, evaluating, is_head, tapped, unwrap
from .curvature import MeanHessian, RowLosses, chosen_parameters, flat, twice_differentiable
from .devices import device_of, moved, to_device
from .fingerprint import state_fingerprint
from .gradients import RowProjections

__all__ = [
    "MeanHessian",
    "RowLosses",
    "RowProjections",
    "Tap",
    "chosen_parameters",
    "device_of",
    "evaluating",
    "flat",
    "is_head",
    "moved",
    "state_fingerprint",
    "tapped",
    "to_device",
    "twice_differentiable",
    "unwrap",
]
