"""Products with the mean Hessian of a loss, for any model, without ever holding the Hessian."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..core import InputError
from ..core.errors import unknown

GRAPHS = 1 << 30  # bytes of graphs kept between products

Parameters = Mapping[str, torch.Tensor]
RowLosses = Callable[[Parameters, Any], torch.Tensor]  # parameters and a batch -> (b,) losses


@contextmanager
def twice_differentiable(model: nn.Module) -> Iterator[None]:
    """Gradients, by kernels that can be differentiated twice: fused attention and fused recurrent layers cannot."""
    recurrent = any(isinstance(module, nn.RNNBase) for module in model.modules())
    with ExitStack() as stack:
        stack.enter_context(torch.enable_grad())
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        if recurrent:
            stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
            stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        yield


def select_parameters(model: nn.Module, layers: Sequence[str] | None) -> dict[str, nn.Parameter]:
    """Parameters of the modules named, each once also where weights are tied; None: all. All others are frozen."""
    modules = dict(model.named_modules())
    for layer in layers or ():
        if layer not in modules:
            raise unknown("layer", layer, [name for name in modules if name])
    wanted = {id(p) for layer in layers or () for p in modules[layer].parameters()}
    chosen = {name: p for name, p in model.named_parameters() if layers is None or id(p) in wanted}
    if not chosen:
        raise InputError(f"the layers {list(layers or ())} have no parameters; name others")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name in chosen)
        if name in chosen and parameter.dtype not in (torch.float32, torch.float64):
            raise InputError(f"`{name}` is {parameter.dtype}, too coarse to differentiate twice; use model.float()")
    return chosen


def flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the entries of all tensors as one vector."""
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def unflat(vector: torch.Tensor, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """A vector (p,) as tensors of the shapes of `like`: the inverse of `flat`."""
    parts = torch.split(vector, [tensor.numel() for tensor in like])
    return [part.reshape(tensor.shape) for part, tensor in zip(parts, like, strict=True)]


class MeanHessian:
    """v -> Hv, H the mean over all rows of the second derivative in the parameters.

    The graph of a batch's gradient is the same at every product, so as many as fit into `memory` bytes are kept: a
    product is then one backward pass instead of three passes.
    """

    def __init__(self, losses: RowLosses, parameters: Parameters, batches: Sequence[Any], memory: int = GRAPHS):
        self._losses = losses
        self._batches = batches
        self._named = parameters
        self._parameters = list(parameters.values())
        self._left = memory
        self._graphs: dict[int, tuple[torch.Tensor, ...]] = {}
        self._rows: dict[int, int] = {}

    def product(self, v: torch.Tensor) -> torch.Tensor:
        """(p,) the product of H with a vector (p,)."""
        direction = unflat(v, self._parameters)
        total = torch.zeros_like(v)
        for i, batch in enumerate(self._batches):
            gradients = self._graphs.get(i) or self._gradients(i, batch)
            total += self._backward(gradients, direction, keep=i in self._graphs)
        return total / sum(self._rows.values())

    def _gradients(self, i: int, batch: Any) -> tuple[torch.Tensor, ...]:
        """The gradient of one batch with its graph, which is stored where it fits."""
        size = _SavedBytes(self._parameters)
        with saved_tensors_hooks(size.pack, size.unpack):
            losses = self._losses(self._named, batch)
            gradients = _gradient(losses.sum(), self._parameters)
        for gradient in gradients:
            size.pack(gradient)
        self._rows[i] = len(losses)
        if size.bytes <= self._left:
            self._left -= size.bytes
            self._graphs[i] = gradients
        return gradients

    def _backward(self, gradients: tuple[torch.Tensor, ...], direction: list[torch.Tensor], keep: bool) -> torch.Tensor:
        pairs = [(g, d) for g, d in zip(gradients, direction, strict=True) if g.requires_grad]
        if not pairs:  # a loss that is linear in the parameters does not curve
            return torch.zeros_like(flat(direction))
        outputs, grads = zip(*pairs, strict=True)
        products = torch.autograd.grad(outputs, self._parameters, grads, retain_graph=keep, materialize_grads=True)
        return flat([product.detach() for product in products])


def _gradient(loss: torch.Tensor, parameters: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """With its graph; zeros where the loss does not depend on the parameters."""
    if not loss.requires_grad:
        return tuple(torch.zeros_like(parameter) for parameter in parameters)
    return torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)


class _SavedBytes:
    """Counts the bytes that a graph keeps alive; parameters are alive anyway."""

    def __init__(self, parameters: Sequence[torch.Tensor]):
        self.bytes = 0
        self._counted = {parameter.untyped_storage().data_ptr() for parameter in parameters}

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        """Count a tensor's storage once and return the tensor, as a hook of autograd."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._counted:
            self._counted.add(storage.data_ptr())
            self.bytes += storage.nbytes()
        return tensor

    @staticmethod
    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        """The tensor as it was saved."""
        return tensor
