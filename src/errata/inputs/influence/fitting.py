"""`influence`: which training rows a prediction owes its loss to, as a representation (InfEmbed's embeddings)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import InputError, State, require
from ..batches import logits_of, split_batch
from ..fitted import load_state, save_state
from ..outcomes import are_shares, plain
from ..progress import bar
from ..torch_model import from_torch, without
from .head import HeadInfluence, Options
from .layers import LayersInfluence, Loss

if TYPE_CHECKING:
    import torch

Influence = HeadInfluence | LayersInfluence
CLOSE = 1e-3  # a head whose output differs by more than this share of the logits is not the last thing that happens


def influence(
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
    folder: str | Path | None = None,
    progress: bool = True,
) -> Influence:
    """The factor of the mean Hessian over batches of training rows; `collect(..., influence=it)` embeds rows with it.

    layers: names of modules whose parameters count; left out, the last linear layer, in closed form where the model
    ends with it; "all" for every parameter. loss: (logits, labels) -> (b,); left out, cross-entropy or squared error.
    steps, rank: P and D of the paper. rows: about so many, in whole batches chosen by seed; None: all.
    memory: bytes of graphs kept between products; beside them it takes 4 (steps + rank) bytes a parameter.
    metadata: keys of dict batches that are not the model's, as in `collect`.
    folder: where a run that is killed leaves its steps, for the next one to go on from.
    """
    require("torch", "torch")
    from ...tensors import unwrap

    model = unwrap(model)
    options = Options(steps, rank, tolerance, damping, rows, seed)
    batches = _some(without(loader, (metadata,) if isinstance(metadata, str) else metadata), options)
    named = None if layers == "all" else [layers] if isinstance(layers, str) else layers
    if layers is None:
        head, closed = _head(model, batches[0], device)
        if closed and loss is None and not _soft(batches):
            evaluation = from_torch(model, batches, device=device, progress=progress, say=lambda text: None)
            # Two logits of two classes are fitted as one, which curves half as much: half the damping does the same.
            twins = evaluation.task == "classification" and _layer(model, head).out_features == 2
            with bar("curvature", progress) as tell:
                return HeadInfluence.fit(
                    evaluation, Options(steps, rank, tolerance, damping / (2 if twins else 1), None, seed),
                    representation="penultimate", bias=_layer(model, head).bias is not None, tell=tell,
                )  # fmt: skip
        named = [head]
    family = "own" if loss is not None else _family(model, batches, device)
    return LayersInfluence.fit(
        model, batches, named, family, options,
        loss=loss, device=device, memory=memory, folder=folder, progress=progress,
    )  # fmt: skip


def save_influence(fitted: Influence, path: str | Path) -> Path:
    """One .safetensors file, facts and all; a loss of one's own is not in it."""
    return save_state(fitted.to_state(), path)


def load_influence(path: str | Path) -> Influence:
    return restore_influence(load_state(path, "influence", "save one with save_influence"))


def restore_influence(state: State) -> Influence:
    kinds: dict[str, Any] = {HeadInfluence.name: HeadInfluence, LayersInfluence.name: LayersInfluence}
    if state.name not in kinds:
        raise InputError(f"a saved influence is one of {', '.join(kinds)}; got {state.name!r}")
    made: Influence = kinds[state.name].from_state(state)
    return made


def _some(loader: Iterable[Any], options: Options) -> list[Any]:
    """Whole batches with about as many rows as asked for; the first ones where the loader has no length."""
    iterator = iter(loader)
    first = next(iterator, None)
    if first is None:
        raise InputError("the loader gave no batches; give it at least one row")
    labels = plain(split_batch(first).labels)
    if labels.ndim == 0:
        raise InputError(
            "the loader gives single examples; put them in batches, as DataLoader(..., batch_size=64) does"
        )
    size = max(1, len(labels))
    wanted = math.inf if options.rows is None else math.ceil(options.rows / size)
    try:
        total = len(loader)  # type: ignore[arg-type]  # not every loader knows
    except (TypeError, NotImplementedError):
        total = 0
    if total <= wanted:
        chosen = None
    else:
        chosen = set(np.random.default_rng(options.seed).choice(total, int(wanted), replace=False).tolist())
    found = [first] if chosen is None or 0 in chosen else []
    for i, batch in enumerate(iterator, start=1):
        if len(found) >= wanted:
            break
        if chosen is None or i in chosen:
            found.append(batch)
    return found


def _head(model: Any, raw: Any, device: Any) -> tuple[str, bool]:
    """The last linear layer, and whether its output is what the model says and its weights are nobody else's."""
    import torch

    from ...tensors import evaluating, moved, tapped, to_device

    batch = split_batch(raw)
    with moved(model, device) as where, evaluating(model), tapped(model) as tap:
        logits = logits_of(model(*to_device(batch.args, where), **to_device(batch.kwargs, where)))
        seen = tap.take(len(logits)).to(logits.dtype)
        name = str(tap.layer)  # known once it has run
        layer = _layer(model, name)
        linear = isinstance(layer, torch.nn.Linear) and layer.out_features * len(seen) == logits.numel()
        if not linear or _shares_weights(model, layer):
            return name, False
        said = layer(seen.to(where)).reshape(logits.shape)
        return name, bool((said - logits).abs().max() <= CLOSE * logits.abs().max())


def _layer(model: Any, name: str) -> Any:
    return dict(model.named_modules())[name]


def _shares_weights(model: Any, layer: Any) -> bool:
    own = {id(parameter) for parameter in layer.parameters()}
    others = (module for module in model.modules() if module is not layer)
    return any(id(parameter) in own for module in others for parameter in module.parameters(recurse=False))


def _soft(batches: Sequence[Any]) -> bool:
    labels = [plain(split_batch(raw).labels) for raw in batches]
    return labels[0].ndim == 2 and labels[0].shape[1] > 1 and are_shares(np.concatenate(labels))


def _family(model: Any, batches: Sequence[Any], device: Any) -> str:
    """Which loss the labels ask for, decided over all rows as `collect` does."""
    evaluation = from_torch(model, batches, device=device, progress=False)
    if evaluation.task == "multilabel":
        return "multi-label"
    if evaluation.task == "regression":
        return "squared"
    first = split_batch(batches[0])
    from ...tensors import evaluating, moved, to_device

    with moved(model, device) as where, evaluating(model):
        logits = logits_of(model(*to_device(first.args, where), **to_device(first.kwargs, where)))
    return "binary" if logits.ndim == 1 or logits.shape[1] == 1 else "classes"
