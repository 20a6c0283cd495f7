"""Influence embeddings (InfEmbed): which training rows the loss of a prediction depends on, as a representation.

`fit_influence` fits one on a PyTorch model and its training rows; `add_influence` computes that of the last layer from
an evaluation's own arrays.
"""

from .fitting import Influence, fit_influence, load_influence, restore_influence, save_influence
from .head import (
    SOURCE,
    Embedded,
    HeadInfluence,
    InfluenceOptions,
    add_influence,
    embed_all,
    has_two_logits,
    last_layer_weights,
)
from .layers import LayersInfluence

__all__ = [
    "SOURCE",
    "Embedded",
    "HeadInfluence",
    "Influence",
    "InfluenceOptions",
    "LayersInfluence",
    "add_influence",
    "embed_all",
    "fit_influence",
    "has_two_logits",
    "last_layer_weights",
    "load_influence",
    "restore_influence",
    "save_influence",
]
