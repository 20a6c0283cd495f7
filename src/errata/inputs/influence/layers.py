"""Influence embeddings of any layers of a PyTorch model: per-row gradients, scaled by the mean Hessian's factor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ...core import Array, Evaluation, InputError, Progress, State
from ...core.evaluation import INFLUENCE
from ...core.words import memory_size
from ...engine import Engine, Local, open_engine
from ..batches import logits_of, split_batch
from ..checkpoints import BatchCheckpoint, StepCheckpoint, fingerprint, open_folder
from ..outcomes import plain
from ..progress import report_batches, terminal_progress
from .head import SOURCE, InfluenceOptions
from .lanczos import Factor, factor, krylov

if TYPE_CHECKING:
    import torch

Loss = Callable[[Any, Any], Any]


class LayersInfluence:
    """A factor of the mean Hessian in the parameters of some layers; `transform` runs the model again.

    values: (D,) eigenvalues. least: the smallest eigenvalue met. negative: how many were below zero.
    directions: (D, p). facts: the model's fingerprint, the layers, their parameters and the name of the loss.
    options: what it was fitted with. loss: a loss of one's own, which is not saved.
    """

    name: ClassVar[str] = "influence of layers"

    def __init__(self, factor: Factor, facts: dict[str, Any], options: InfluenceOptions, loss: Loss | None = None):
        self.values = factor.values
        self.least = factor.least
        self.negative = factor.negative
        self.directions: Array = np.asarray(factor.directions)
        self.facts = facts
        self.options = options
        self.loss = loss

    @classmethod
    def fit(
        cls,
        model: torch.nn.Module,
        batches: Sequence[Any],
        layers: Sequence[str] | None,
        family: str,
        options: InfluenceOptions,
        *,
        loss: Loss | None = None,
        device: torch.device | str | None = None,
        memory: int | None = None,
        folder: str | Path | None = None,
        progress: Progress = terminal_progress,
    ) -> Self:
        """Fit on batches of training rows, which are read `steps` times.

        layers: names of modules; None: all parameters. family: the loss, one of "classes", "binary", "multi-label",
        "squared", or "own" with `loss`. memory: bytes of graphs that stay between products. folder: of a checkpoint.
        """
        from ...tensors import (
            MeanHessian,
            evaluating,
            on_device,
            select_parameters,
            state_fingerprint,
            twice_differentiable,
        )
        from ...tensors.curvature import GRAPHS

        if memory is None:
            memory = GRAPHS
        layers = None if layers is None else list(layers)
        facts: dict[str, Any] = {"model": state_fingerprint(model), "layers": layers, "loss": family}
        with on_device(model, device) as where, evaluating(model), twice_differentiable(model):
            parameters = select_parameters(model, layers)
            facts["parameters"] = {name: list(p.shape) for name, p in parameters.items()}
            nests = list(_nests(batches))
            hessian = MeanHessian(_row_losses(model, family, loss, where), parameters, nests, memory)
            p = sum(parameter.numel() for parameter in parameters.values())
            held = options.vectors(p, itemsize=next(iter(parameters.values())).element_size())
            checkpoint = None
            if folder is not None:
                _check_whole(options, held["most"], p)
                work = {**facts, "options": vars(options), "rows": fingerprint(nests)}
                checkpoint = StepCheckpoint(open_folder(folder, work), p, _dtype(parameters))
            basis = krylov(
                lambda vectors: hessian.product(vectors[0])[None],
                _random_vectors(p, options.seed, parameters),
                options.steps,
                **held,
                checkpoint=checkpoint,
                progress=progress,
            )
            eigenpairs = factor(
                basis, options.rank, tolerance=options.tolerance, damping=options.damping, in_place=True
            )
        directions = eigenpairs.directions.float().cpu().numpy()
        return cls(replace(eigenpairs, directions=directions), facts, options, loss)

    def transform(
        self,
        model: torch.nn.Module,
        loader: Iterable[Any],
        *,
        device: torch.device | str | None = None,
        folder: str | Path | None = None,
        engine: str | Engine = "local",
        progress: Progress = terminal_progress,
    ) -> Array:
        """(n, D) float32 in the loader's order.

        folder: where a killed run leaves its rows, to be resumed. engine: "ray", or its address, for a copy of the
        model in each worker of a Ray cluster, to which batches are sent.
        """
        from ...tensors import evaluating, on_device, to_device, twice_differentiable, unwrap

        model = unwrap(model)
        self._check(model)
        engine = open_engine(engine)
        if not isinstance(engine, Local):
            return self._transform_elsewhere(model, loader, engine, device, folder, progress)
        checkpoint = None
        if folder is not None:
            work = {**self.facts, "directions": fingerprint(self.directions)}
            checkpoint = BatchCheckpoint(open_folder(folder, work), len(self.directions))
        parts: list[Array] = []
        with on_device(model, device) as where, evaluating(model), twice_differentiable(model):
            rows_of = self._projections(model, where)
            for nest in _nests(report_batches(loader, progress, "influence")):
                rows = None
                if checkpoint is not None:
                    rows = checkpoint.find(len(parts), nest)
                if rows is None:
                    rows = rows_of.of(to_device(nest, where), len(nest[2])).float().cpu().numpy()
                    if checkpoint is not None:
                        checkpoint.add(nest, rows)
                parts.append(rows)
        if checkpoint is not None:
            checkpoint.check_end(len(parts))
        return self._joined(parts)

    def _transform_elsewhere(
        self, model: Any, loader: Iterable[Any], engine: Engine, device: Any, folder: Any, progress: Progress
    ) -> Array:
        if folder is not None:
            raise InputError("`folder` is of runs in this process; leave it out, a worker that dies is replaced")
        nests = _nests(report_batches(loader, progress, "influence"))
        return self._joined(list(engine.each(_project, nests, GradientsOfWorker(self, model, device))))

    def _projections(self, model: Any, where: Any) -> Any:
        """What projects the gradients of rows, in a model that is ready for it."""
        import torch

        from ...tensors import RowProjections, select_parameters

        parameters = select_parameters(model, self.facts["layers"])
        first = next(iter(parameters.values()))
        # Shared on a CPU, not copied: nothing in memory is larger. torch wants arrays that can be written to.
        directions = torch.from_numpy(np.require(self.directions, requirements=["W"])).to(first)
        return RowProjections(_row_losses(model, self.facts["loss"], self.loss, where), parameters, directions)

    def _joined(self, parts: list[Array]) -> Array:
        if not parts:
            return np.empty((0, len(self.directions)), dtype=np.float32)
        return np.concatenate(parts)

    def embed(
        self,
        evaluation: Evaluation,
        model: Any,
        loader: Iterable[Any],
        device: Any = None,
        progress: Progress = terminal_progress,
    ) -> Evaluation:
        """The evaluation with its influence embeddings, from a second reading of the loader."""
        recorder = _LabelRecorder(loader)
        embeddings = self.transform(model, recorder, device=device, progress=progress)
        if len(embeddings) != len(evaluation):
            raise InputError(
                f"the loader gave {len(evaluation):,} rows at first and {len(embeddings):,} when it was read again; "
                "give one that can be read twice, such as a list or a DataLoader without shuffling"
            )
        labels = evaluation.labels
        if labels is not None and not np.array_equal(recorder.labels(labels.ndim), labels):
            raise InputError(
                "the loader gave its rows in another order when it was read again; give one that does not shuffle"
            )
        return evaluation.with_representation(INFLUENCE, embeddings, SOURCE)

    def _check(self, model: Any) -> None:
        from ...tensors import state_fingerprint

        if self.facts["loss"] == "own" and self.loss is None:
            raise InputError("this influence was fitted with a loss of your own, which is not saved; set `.loss` to it")
        if state_fingerprint(model) != self.facts["model"]:
            raise InputError("this influence was fitted on other weights than the model has; fit it again")

    def to_state(self) -> State:
        """What a file needs to hold."""
        facts = {**self.facts, "options": vars(self.options), "least": self.least, "negative": self.negative}
        return State(self.name, facts, {"directions": self.directions, "values": self.values})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The fitted influence that `to_state` described."""
        facts = {name: state.facts[name] for name in ("model", "layers", "loss", "parameters")}
        arrays = state.arrays
        eigenpairs = Factor(arrays["directions"], arrays["values"], state.facts["least"], state.facts["negative"])
        return cls(eigenpairs, facts, InfluenceOptions(**state.facts["options"]))


class GradientsOfWorker:
    """A model in a worker, made ready at its first batch; nobody else uses this copy of it."""

    def __init__(self, influence: LayersInfluence, model: Any, device: Any):
        self._influence = influence
        self._model = model
        self._device = device

    @cached_property
    def _ready(self) -> Any:
        from ...tensors import device_of, twice_differentiable

        self._model.eval()
        if self._device is not None:
            self._model.to(self._device)
        self._lasting = ExitStack()
        self._lasting.enter_context(twice_differentiable(self._model))
        where = device_of(self._model)
        return self._influence._projections(self._model, where), where

    def rows(self, nest: Any) -> Array:
        """(b, D)"""
        import torch

        from ...tensors import to_device

        rows_of, where = self._ready
        with torch.no_grad():
            projected: Array = rows_of.of(to_device(nest, where), len(nest[2])).float().cpu().numpy()
        return projected


def _project(nest: Any, gradients: GradientsOfWorker) -> Array:
    return gradients.rows(nest)


class _LabelRecorder:
    """A loader that remembers the labels it has given."""

    def __init__(self, loader: Iterable[Any]):
        self._loader = loader
        self._labels: list[Array] = []

    def __iter__(self) -> Iterator[Any]:
        for raw in self._loader:
            self._labels.append(plain(split_batch(raw).labels))
            yield raw

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]  # callers expect a TypeError where it has none

    def labels(self, ndim: int) -> Array:
        """As an evaluation has them: of shares the largest, of one column that."""
        labels = np.concatenate(self._labels)
        if labels.ndim == ndim:
            return labels
        if labels.shape[1] == 1:
            return labels[:, 0]
        largest: Array = labels.argmax(axis=1)
        return largest


def _check_whole(options: InfluenceOptions, most: int, p: int) -> None:
    """A run that is to be resumed keeps every vector."""
    steps = min(options.steps, p)
    if most < steps:
        raise InputError(
            f"`folder` keeps all {steps} vectors of {p:,} weights, {memory_size(4 * p * steps)}, and `basis` allows "
            f"{memory_size(options.basis)}; give more `basis`, or no `folder`"
        )


def _nests(batches: Iterable[Any]) -> Iterator[Any]:
    """(args, kwargs, labels) of each batch, the labels as a tensor."""
    import torch

    for raw in batches:
        batch = split_batch(raw)
        labels = batch.labels
        if not isinstance(labels, torch.Tensor):
            labels = torch.as_tensor(plain(labels))
        yield batch.args, batch.kwargs, labels


def _row_losses(model: Any, family: str, loss: Loss | None, where: Any) -> Any:
    """Parameters and (args, kwargs, labels) -> (b,) losses."""
    from torch.func import functional_call

    from ...tensors import to_device

    row_loss = loss or _LOSSES[family]

    def losses(parameters: Any, nest: Any) -> Any:
        args, kwargs, labels = to_device(nest, where)
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

    if labels.numel() == len(labels):
        return cross_entropy(logits, labels.reshape(-1).long(), reduction="none")
    return cross_entropy(logits, labels.to(logits.dtype), reduction="none")


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


def _random_vectors(p: int, seed: int, parameters: Any) -> Callable[[int], Any]:
    """Random vectors from numpy, so that a CPU and a GPU start from the same."""
    first = next(iter(parameters.values()))

    def draw(j: int) -> Any:
        return first.new_tensor(np.random.default_rng([seed, j]).standard_normal(p, dtype=np.float32))

    return draw


def _dtype(parameters: Any) -> str:
    return str(next(iter(parameters.values())).dtype).removeprefix("torch.")
