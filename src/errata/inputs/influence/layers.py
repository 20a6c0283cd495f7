"""Influence embeddings of any layers of a PyTorch model: per-row gradients, scaled by the mean Hessian's factor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...core import Array, Evaluation, InputError, State
from ..batches import logits_of, split_batch
from ..checkpoints import KeptBatches, KeptSteps, fingerprint, hold
from ..outcomes import plain
from ..progress import bar, shown
from .head import NAME, SOURCE, Options
from .lanczos import Factor, factor, krylov

if TYPE_CHECKING:
    import torch

Loss = Callable[[Any, Any], Any]


class LayersInfluence:
    """A factor of the mean Hessian in the parameters of some layers; `transform` reads the model again."""

    name: ClassVar[str] = "influence of layers"

    def __init__(self, found: Factor, facts: dict[str, Any], options: Options, loss: Loss | None = None):
        self.values, self.least, self.negative = found.values, found.least, found.negative
        self.directions: Array = np.asarray(found.directions)  # (D, p)
        self.facts, self.options, self.loss = facts, options, loss

    @classmethod
    def fit(
        cls,
        model: torch.nn.Module,
        batches: Sequence[Any],
        layers: Sequence[str] | None,
        family: str,
        options: Options,
        *,
        loss: Loss | None = None,
        device: torch.device | str | None = None,
        memory: int | None = None,
        folder: str | Path | None = None,
        progress: bool = True,
    ) -> Self:
        """From batches of the rows that the model learnt from, which are read `steps` times."""
        from ...tensors import (
            MeanHessian,
            chosen_parameters,
            evaluating,
            moved,
            state_fingerprint,
            twice_differentiable,
        )
        from ...tensors.curvature import GRAPHS

        facts: dict[str, Any] = {
            "model": state_fingerprint(model),
            "layers": None if layers is None else list(layers),
            "loss": family,
        }
        with moved(model, device) as where, evaluating(model), twice_differentiable(model):
            parameters = chosen_parameters(model, layers)
            facts["parameters"] = {name: list(p.shape) for name, p in parameters.items()}
            nests = list(_nests(batches))
            hessian = MeanHessian(
                _row_losses(model, family, loss, where), parameters, nests, GRAPHS if memory is None else memory
            )
            p = sum(parameter.numel() for parameter in parameters.values())
            kept = None
            if folder is not None:
                work = {**facts, "options": vars(options), "rows": fingerprint(nests)}
                kept = KeptSteps(hold(folder, work), p, _dtype(parameters))
            with bar("curvature", progress) as tell:
                found = krylov(
                    hessian.product, _drawer(p, options.seed, parameters, where), options.steps, kept=kept, tell=tell
                )
            made = factor(found, options.rank, tolerance=options.tolerance, damping=options.damping)
        return cls(_on_cpu(made), facts, options, loss)

    def transform(
        self,
        model: torch.nn.Module,
        loader: Iterable[Any],
        *,
        device: torch.device | str | None = None,
        folder: str | Path | None = None,
        progress: bool = True,
    ) -> Array:
        """(n, D) float32 in the loader's order. `folder`: where a run that is killed leaves its rows, to go on from."""
        from ...tensors import RowProjections, chosen_parameters, evaluating, moved, twice_differentiable, unwrap

        model = unwrap(model)
        self._check(model)
        kept = None
        if folder is not None:
            work = {**self.facts, "directions": fingerprint(self.directions)}
            kept = KeptBatches(hold(folder, work), len(self.directions))
        parts: list[Array] = []
        with moved(model, device) as where, evaluating(model), twice_differentiable(model):
            parameters = chosen_parameters(model, self.facts["layers"])
            first = next(iter(parameters.values()))
            directions = first.new_tensor(self.directions)
            rows_of = RowProjections(_row_losses(model, self.facts["loss"], self.loss, where), parameters, directions)
            for nest in _nests(shown(loader, progress, "influence")):
                found = None if kept is None else kept.find(len(parts), nest)
                if found is None:
                    found = rows_of.of(_to(nest, where), len(nest[2])).float().cpu().numpy()
                    if kept is not None:
                        kept.add(nest, found)
                parts.append(found)
        if kept is not None:
            kept.end(len(parts))
        return np.concatenate(parts) if parts else np.empty((0, len(self.directions)), dtype=np.float32)

    def embed(
        self, evaluation: Evaluation, model: Any, loader: Iterable[Any], device: Any = None, progress: bool = True
    ) -> Evaluation:
        """The evaluation with its influence embeddings, from a second reading of the loader."""
        read = _Read(loader)
        array = self.transform(model, read, device=device, progress=progress)
        if len(array) != len(evaluation):
            raise InputError(
                f"the loader gave {len(evaluation):,} rows at first and {len(array):,} when it was read again; "
                "give one that can be read twice, such as a list or a DataLoader without shuffling"
            )
        if evaluation.labels is not None and not np.array_equal(read.labels(evaluation.labels.ndim), evaluation.labels):
            raise InputError(
                "the loader gave its rows in another order when it was read again; give one that does not shuffle"
            )
        return evaluation.with_representation(NAME, array, SOURCE)

    def _check(self, model: Any) -> None:
        from ...tensors import state_fingerprint

        if self.facts["loss"] == "own" and self.loss is None:
            raise InputError("this influence was fitted with a loss of your own, which is not saved; set `.loss` to it")
        if state_fingerprint(model) != self.facts["model"]:
            raise InputError("this influence was fitted on other weights than the model has; fit it again")

    def to_state(self) -> State:
        facts = {**self.facts, "options": vars(self.options), "least": self.least, "negative": self.negative}
        return State(self.name, facts, {"directions": self.directions, "values": self.values})

    @classmethod
    def from_state(cls, state: State) -> Self:
        facts = {name: state.facts[name] for name in ("model", "layers", "loss", "parameters")}
        arrays = state.arrays
        found = Factor(arrays["directions"], arrays["values"], state.facts["least"], state.facts["negative"])
        return cls(found, facts, Options(**state.facts["options"]))


class _Read:
    """A loader that remembers the labels it has given."""

    def __init__(self, loader: Iterable[Any]):
        self._loader, self._labels = loader, list[Array]()

    def __iter__(self) -> Iterator[Any]:
        for raw in self._loader:
            self._labels.append(plain(split_batch(raw).labels))
            yield raw

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]  # whoever asks expects a TypeError where it has none

    def labels(self, ndim: int) -> Array:
        """As an evaluation has them: of shares the largest, of one column that."""
        whole = np.concatenate(self._labels)
        if whole.ndim == ndim:
            return whole
        return whole[:, 0] if whole.shape[1] == 1 else whole.argmax(axis=1)


def _nests(batches: Iterable[Any]) -> Iterator[Any]:
    """(args, kwargs, labels) of each batch."""
    return ((batch.args, batch.kwargs, _tensor(batch.labels)) for batch in (split_batch(raw) for raw in batches))


def _tensor(labels: Any) -> Any:
    import torch

    return labels if isinstance(labels, torch.Tensor) else torch.as_tensor(plain(labels))


def _to(nest: Any, where: Any) -> Any:
    from ...tensors import to_device

    return to_device(nest, where)


def _row_losses(model: Any, family: str, loss: Loss | None, where: Any) -> Any:
    """Parameters and (args, kwargs, labels) -> (b,) losses."""
    from torch.func import functional_call

    row_loss = _LOSSES[family] if loss is None else loss

    def losses(parameters: Any, nest: Any) -> Any:
        args, kwargs, labels = _to(nest, where)
        logits = logits_of(functional_call(model, dict(parameters), args, kwargs))
        values = row_loss(logits, labels)
        if values.shape != labels.shape[:1]:
            raise InputError(
                f"`loss` must give one value a row, shape ({len(labels)},); got {tuple(values.shape)}; "
                "use reduction='none'"
            )
        return values

    return losses


def _classes(logits: Any, labels: Any) -> Any:
    """Numbers of classes, or the shares of all of them."""
    from torch.nn.functional import cross_entropy

    hard = labels.numel() == len(labels)
    return cross_entropy(logits, labels.reshape(-1).long() if hard else labels.to(logits.dtype), reduction="none")


def _binary(logits: Any, labels: Any) -> Any:
    from torch.nn.functional import binary_cross_entropy_with_logits

    flat = logits.reshape(len(labels))
    return binary_cross_entropy_with_logits(flat, labels.reshape(len(labels)).to(flat.dtype), reduction="none")


def _multilabel(logits: Any, labels: Any) -> Any:
    from torch.nn.functional import binary_cross_entropy_with_logits

    return binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none").mean(dim=1)


def _squared(logits: Any, labels: Any) -> Any:
    flat = logits.reshape(len(labels))
    return (flat - labels.reshape(len(labels)).to(flat.dtype)) ** 2


_LOSSES: dict[str, Loss] = {
    "classes": _classes,
    "binary": _binary,
    "multi-label": _multilabel,
    "squared": _squared,
}


def _drawer(p: int, seed: int, parameters: Any, where: Any) -> Callable[[int], Any]:
    """Random vectors from numpy, so that a CPU and a GPU start from the same."""
    first = next(iter(parameters.values()))

    def draw(j: int) -> Any:
        return first.new_tensor(np.random.default_rng([seed, j]).standard_normal(p, dtype=np.float32))

    return draw


def _dtype(parameters: Any) -> str:
    return str(next(iter(parameters.values())).dtype).removeprefix("torch.")


def _on_cpu(found: Factor) -> Factor:
    return Factor(found.directions.float().cpu().numpy(), found.values, found.least, found.negative)
