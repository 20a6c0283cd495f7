"""Shared torch numerics. Only those who have torch import this room."""

from .capture import Tap, evaluating, is_head, tapped, unwrap
from .devices import device_of, moved, to_device
from .fingerprint import state_fingerprint

__all__ = ["Tap", "device_of", "evaluating", "is_head", "moved", "state_fingerprint", "tapped", "to_device", "unwrap"]
