"""A fingerprint of a model's weights."""

from __future__ import annotations

import hashlib

import torch


def state_fingerprint(model: torch.nn.Module) -> str:
    """blake2b of the names, types, shapes and bytes of all parameters and buffers, whatever device they are on."""
    digest = hashlib.blake2b(digest_size=16)
    state = model.state_dict()
    for name in sorted(state):
        tensor = state[name]
        if not isinstance(tensor, torch.Tensor):  # a module's extra state has no bytes to speak of
            continue
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        # numpy has no bfloat16, so every type travels as bytes.
        flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(flat.numpy().data)
    return digest.hexdigest()
