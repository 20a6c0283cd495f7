"""Products of single rows' gradients with given directions, without ever holding rows x parameters."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch.func import grad_and_value, vmap
from torch.utils import _pytree as trees

from ..core import InputError
from ..core.words import memory_size
from .curvature import Parameters, RowLosses, flat
from .devices import is_out_of_memory

ROW_GRADIENTS = 1 << 28  # bytes of gradients held at a time,
GPU_SHARE = 16  # and on a GPU one part of so many of its free memory, since few rows leave most of it idle
CLOSE = 1e-3  # a row whose loss differs by more than that when it is alone is not a row by itself

Route = Literal["rows", "weights"]


class RowProjections:
    """(b, D) for a batch: each row's gradient times each of D directions (D, p).

    `rows`: gradients of some rows at a time, as many as `memory` bytes hold and one at least, vectorised, each
    multiplied with all directions and then freed.
    `weights`: the gradient of the weighted sum of the losses, differentiated in the weights, a direction at a time:
    for models that cannot be vectorised (recurrent layers, control flow), whose rows are not along the first axis of
    every tensor or depend on each other.
    """

    def __init__(self, losses: RowLosses, parameters: Parameters, directions: torch.Tensor, memory: int | None = None):
        if memory is None:
            memory = _row_memory(directions.device)
        self._losses = losses
        self._named = {name: parameter.detach() for name, parameter in parameters.items()}
        self._parameters = parameters
        self._directions = directions
        # The gradient of one row is as large as one of the D directions: a machine that holds these has room for it.
        self._at_once = max(1, memory // (directions.element_size() * directions.shape[1]))
        self.route: Route = "rows"
        self._tried = False

    def of(self, batch: Any, rows: int) -> torch.Tensor:
        """(b, D) of a batch with so many rows."""
        if self.route == "rows":
            try:
                products, losses = self._by_fewer_rows(batch, rows)
            except Exception as error:
                if is_out_of_memory(error):
                    raise InputError(self._too_little()) from error
                self.route = "weights"  # anything may go wrong in a model that gets one row; this way says what does
            else:
                if self._tried or self._agree(losses, batch):
                    self._tried = True
                    return products
                self.route = "weights"
        return self._by_weights(batch, rows)

    def _too_little(self) -> str:
        """What to say where one row does not fit: the other way would take as long again for every direction."""
        count, weights = self._directions.shape
        size = self._directions.element_size() * weights
        return (
            f"out of memory with the gradient of one row at a time ({memory_size(size)}), beside {count} directions "
            f"({memory_size(count * size)}) and the model; give a smaller `rank`, fewer layers, or another `device`"
        )

    def _agree(self, losses: torch.Tensor, batch: Any) -> bool:
        """Whether rows have the losses alone that they have together."""
        together = self._losses(self._named, batch).detach()
        return together.shape == losses.shape and torch.allclose(losses, together, rtol=CLOSE, atol=CLOSE)

    def _by_fewer_rows(self, batch: Any, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """`_by_rows`, with half as many at a time whenever the device's memory was too small."""
        while True:
            try:
                return self._by_rows(batch, rows)
            except Exception as error:
                at_once = min(self._at_once, rows)
                if at_once <= 1 or isinstance(error, MemoryError) or not is_out_of_memory(error):
                    raise  # a MemoryError is of Python itself, which has too little left to go on with
            self._at_once = at_once // 2

    def _by_rows(self, batch: Any, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Products, and the rows' losses."""
        leaves, form = trees.tree_flatten(batch)
        mapped = [isinstance(leaf, torch.Tensor) and leaf.ndim > 0 and len(leaf) == rows for leaf in leaves]

        def apply(change: Callable[[torch.Tensor], torch.Tensor], values: Sequence[Any]) -> list[Any]:
            changed = list(values)
            for i, is_mapped in enumerate(mapped):
                if is_mapped:
                    changed[i] = change(changed[i])
            return changed

        def loss(parameters: Parameters, *row: Any) -> torch.Tensor:
            alone = apply(lambda leaf: leaf.unsqueeze(0), row)
            return self._losses(parameters, trees.tree_unflatten(alone, form)).sum()

        axes = {True: 0, False: None}
        gradients = vmap(grad_and_value(loss), in_dims=(None, *(axes[is_mapped] for is_mapped in mapped)))
        parts = []
        losses = []
        for start in range(0, rows, self._at_once):
            part = slice(start, start + self._at_once)
            row_gradients, values = gradients(self._named, *apply(operator.itemgetter(part), leaves))
            parts.append(self._multiplied(row_gradients))
            losses.append(values)
        return torch.cat(parts), torch.cat(losses)

    def _multiplied(self, gradients: Parameters) -> torch.Tensor:
        """(b, D), a parameter at a time."""
        sizes = [parameter.numel() for parameter in self._named.values()]
        directions = torch.split(self._directions, sizes, dim=1)
        products = [
            gradients[name].reshape(len(gradients[name]), -1) @ part.T
            for name, part in zip(self._named, directions, strict=True)
        ]
        return torch.stack(products).sum(dim=0)

    def _by_weights(self, batch: Any, rows: int) -> torch.Tensor:
        parameters = list(self._parameters.values())
        weights = torch.ones(rows, device=self._directions.device, dtype=self._directions.dtype, requires_grad=True)
        total = (weights * self._losses(self._parameters, batch)).sum()
        gradient = flat(torch.autograd.grad(total, parameters, create_graph=True, materialize_grads=True))
        columns = [
            torch.autograd.grad(gradient @ direction, weights, retain_graph=True, materialize_grads=True)[0]
            for direction in self._directions
        ]
        return torch.stack(columns, dim=1).detach()


def _row_memory(device: torch.device) -> int:
    """Bytes of row gradients that may be held at a time."""
    if device.type != "cuda":
        return ROW_GRADIENTS
    return max(ROW_GRADIENTS, torch.cuda.mem_get_info(device)[0] // GPU_SHARE)
