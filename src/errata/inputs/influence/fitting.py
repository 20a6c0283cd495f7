"""Fit, save and load influence embeddings of a PyTorch model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import InputError, Progress, State, require, silent
from ..batches import logits_of, split_batch
from ..fitted import load_state, save_state
from ..outcomes import are_shares, plain
from ..progress import terminal_progress
from ..torch_model import from_torch, without_keys
from .head import BASIS, HeadInfluence, InfluenceOptions
from .layers import LayersInfluence, Loss

if TYPE_CHECKING:
    import torch

Influence = HeadInfluence | LayersInfluence
CLOSE = 1e-3  # a head whose output differs by more than this share of the logits is not the last thing that happens


def fit_influence(
    model: torch.nn.Module,
    loader: Iterable[Any],
    *,
    layers: Sequence[str] | str | None = None,
    loss: Loss | None = None,
    steps: int = 500,
    rank: int = 100,
    damping: float = 0.0,
    tolerance: float = 1e-5,
    rows: int | None = 5000,
    seed: int = 0,
    metadata: Sequence[str] = (),
    device: torch.device | str | None = None,
    memory: int | None = None,
    basis: int = BASIS,
    folder: str | Path | None = None,
    progress: Progress = terminal_progress,
) -> Influence:
    """Fit influence embeddings on training rows: a factor of the mean Hessian over batches of them.

    `collect(..., influence=fitted)` then embeds rows with it.

    layers: names of modules whose parameters count; "all" for every parameter. Default: the last linear layer, in
    closed form where the model ends with it. loss: (logits, labels) -> (b,). Default: cross-entropy or squared error.
    steps, rank: P and D of the paper. damping: added to every eigenvalue. tolerance: eigenvalues below this share of
    the largest are left out. rows: about so many, in whole batches chosen by `seed`; None: all.
    metadata: keys of dict batches that are not the model's, as in `collect`. device: where to run. Default: where the
    model is. memory: bytes of graphs that stay between products. basis: bytes of vectors held at a time; where `steps`
    of them need more, the iteration restarts with the leading ones (P products as ever). folder: where a killed run
    leaves its steps, to be resumed. progress: `silent` for no bar.
    """
    require("torch", "torch")
    from ...tensors import unwrap

    model = unwrap(model)
    options = InfluenceOptions(steps, rank, tolerance, damping, rows, seed, basis)
    if isinstance(metadata, str):
        metadata = (metadata,)
    if isinstance(layers, str) and layers != "all":
        layers = [layers]
    batches = _sample_batches(without_keys(loader, metadata), options)
    if layers is None:
        head, closed = _find_head(model, batches[0], device)
        if closed and loss is None and not _has_soft_labels(batches):
            return _fit_head(model, batches, _layer(model, head), options, device, progress)
        layers = [head]
    family = "own" if loss is not None else _family(model, batches, device)
    names = None if layers == "all" else layers
    return LayersInfluence.fit(
        model,
        batches,
        names,
        family,
        options,
        loss=loss,
        device=device,
        memory=memory,
        folder=folder,
        progress=progress,
    )


def _fit_head(
    model: Any, batches: Sequence[Any], layer: Any, options: InfluenceOptions, device: Any, progress: Progress
) -> HeadInfluence:
    """In closed form, from one reading of the batches."""

    def report(stage: str, share: float) -> None:
        progress(stage, share)  # without the notes of `terminal_progress`: which layer is read is known here

    evaluation = from_torch(model, batches, device=device, progress=report)
    return HeadInfluence.fit(
        evaluation,
        replace(options, rows=None),
        representation="penultimate",
        bias=layer.bias is not None,
        outputs=layer.out_features,
        progress=progress,
    )


def save_influence(fitted: Influence, path: str | Path) -> Path:
    """Write an influence as one .safetensors file; a loss of one's own is not in it."""
    return save_state(fitted.to_state(), path)


def load_influence(path: str | Path) -> Influence:
    """The influence that `save_influence` wrote."""
    return restore_influence(load_state(path, "influence", "save one with save_influence"))


def restore_influence(state: State) -> Influence:
    """The influence of a saved state, of whichever kind it is."""
    kinds: dict[str, Any] = {HeadInfluence.name: HeadInfluence, LayersInfluence.name: LayersInfluence}
    if state.name not in kinds:
        raise InputError(f"a saved influence must be one of {', '.join(kinds)}; got {state.name!r}")
    influence: Influence = kinds[state.name].from_state(state)
    return influence


def _sample_batches(loader: Iterable[Any], options: InfluenceOptions) -> list[Any]:
    """Whole batches with about `options.rows` rows; the first ones where the loader has no length."""
    iterator = iter(loader)
    first = next(iterator, None)
    if first is None:
        raise InputError("the loader gave no batches; give it at least one row")
    labels = plain(split_batch(first).labels)
    if labels.ndim == 0:
        raise InputError(
            "the loader gives single examples; put them in batches, as DataLoader(..., batch_size=64) does"
        )
    count = math.inf
    if options.rows is not None:
        count = math.ceil(options.rows / max(1, len(labels)))
    try:
        total = len(loader)  # type: ignore[arg-type]  # not every loader has a length
    except (TypeError, NotImplementedError):
        total = 0
    chosen = None
    if total > count:
        chosen = set(np.random.default_rng(options.seed).choice(total, int(count), replace=False).tolist())
    batches: list[Any] = []
    for i, batch in enumerate(itertools.chain([first], iterator)):
        if len(batches) >= count:
            break
        if chosen is None or i in chosen:
            batches.append(batch)
    return batches


def _find_head(model: Any, raw: Any, device: Any) -> tuple[str, bool]:
    """The last linear layer, and whether its output is the model's and its weights belong to no other layer."""
    import torch

    from ...tensors import capture_layer, evaluating, on_device, to_device

    batch = split_batch(raw)
    with on_device(model, device) as where, evaluating(model), capture_layer(model) as tap:
        logits = logits_of(model(*to_device(batch.args, where), **to_device(batch.kwargs, where)))
        inputs = tap.take(len(logits)).to(logits.dtype)
        name = str(tap.layer)  # known once it has run
        layer = _layer(model, name)
        linear = isinstance(layer, torch.nn.Linear) and layer.out_features * len(inputs) == logits.numel()
        if not linear or _shares_weights(model, layer):
            return name, False
        outputs = layer(inputs.to(where)).reshape(logits.shape)
        return name, bool((outputs - logits).abs().max() <= CLOSE * logits.abs().max())


def _layer(model: Any, name: str) -> Any:
    return dict(model.named_modules())[name]


def _shares_weights(model: Any, layer: Any) -> bool:
    own = {id(parameter) for parameter in layer.parameters()}
    others = (module for module in model.modules() if module is not layer)
    return any(id(parameter) in own for module in others for parameter in module.parameters(recurse=False))


def _has_soft_labels(batches: Sequence[Any]) -> bool:
    labels = [plain(split_batch(raw).labels) for raw in batches]
    return labels[0].ndim == 2 and labels[0].shape[1] > 1 and are_shares(np.concatenate(labels))


def _family(model: Any, batches: Sequence[Any], device: Any) -> str:
    """The name of the loss that suits the labels, decided over all rows as `collect` does."""
    evaluation = from_torch(model, batches, device=device, progress=silent)
    if evaluation.task == "multilabel":
        return "multi-label"
    if evaluation.task == "regression":
        return "squared"
    first = split_batch(batches[0])
    from ...tensors import evaluating, on_device, to_device

    with on_device(model, device) as where, evaluating(model):
        logits = logits_of(model(*to_device(first.args, where), **to_device(first.kwargs, where)))
    if logits.ndim == 1 or logits.shape[1] == 1:
        return "binary"
    return "classes"
