"""A PyTorch model and a loader as an Evaluation: one pass, streamed, and the model left as it was."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..core import Array, Evaluation, InputError, Origin, Progress, Source, require
from ..engine import Engine, Local, open_engine
from .batches import logits_of, split_batch
from .formats import ObjectFormat
from .media import as_media
from .outcomes import plain, settle_outcome
from .predictor import metadata_of
from .progress import note, report_batches, terminal_progress
from .streams import InMemory, open_stream
from .tables import is_table

if TYPE_CHECKING:
    import torch

Loss = Callable[[Any, Any], Any]


class RowEmbedder(Protocol):
    """Embeds the rows of a loader that an evaluation was collected from; a fitted influence is one."""

    def embed(
        self, evaluation: Evaluation, model: Any, loader: Iterable[Any], device: Any, progress: Progress
    ) -> Evaluation:
        """The evaluation with one more representation."""


def from_torch(
    model: torch.nn.Module,
    loader: Iterable[Any],
    *,
    layer: str | None = None,
    device: torch.device | str | None = None,
    loss: Loss | None = None,
    metadata: Any = (),
    media: Any = None,
    class_names: Sequence[str] | None = None,
    out: str | Path | None = None,
    influence: RowEmbedder | None = None,
    engine: str | Engine = "local",
    progress: Progress = terminal_progress,
) -> Evaluation:
    """An Evaluation of `model` on the batches of `loader`, which should not shuffle.

    Batches are pairs (inputs, labels), or dicts with the label under label(s), y or target(s), ids
    under id(s), groups under group(s) and the model's keyword arguments under the other keys.

    layer: the representation is the output of this module, flattened, and has its name. Default: the input of the
    last linear layer (or 1x1 convolution) that runs, called "penultimate". device: where to run. Default: where the
    model is. loss: (logits, labels) -> (b,) losses. Default: cross-entropy or squared error. metadata: keys of dict
    batches to keep as metadata; or a table, or dict of name -> (n,), beside the loader, in its order. media: what a
    row looks like: images, paths or texts, in that order too. class_names: in the order of the logits. out: a .npy
    file that holds the representation instead of memory. influence: what `errata.inputs.fit_influence` fitted on
    training rows; the rows' embeddings become the representation "influence". engine: "ray", or its address, for a copy
    of the model in each worker of a Ray cluster, which reads its rows of `loader.dataset` by itself. progress: called
    with a stage and the share done. Default: a bar on stderr where that is a terminal, and a line that says which layer
    was taken; `silent` for none.
    """
    require("torch", "torch")
    from ..tensors import state_fingerprint, unwrap

    model = unwrap(model)
    engine = open_engine(engine)
    keys, beside = _split_metadata(metadata)
    _check_order(loader, beside is not None or media is not None, progress)
    origin = Origin(model=state_fingerprint(model))
    gathered = _Gathered(_expected_rows(loader), out)
    asked = BatchQuestion(layer, device, keys, loss)
    # Closed also where a batch is refused: the model is then as it was.
    with gathered.removed_on_error(), closing(_outputs_of_all(model, loader, asked, engine, progress)) as every:
        for outputs in every:
            gathered.add(outputs)
            if gathered.batches == 1:
                note(progress, f"representation: {_describe_layer(outputs.layer, layer)}")
        evaluation, decided = gathered.evaluation(layer or "penultimate", origin)
    for sentence in decided:
        note(progress, sentence)
    evaluation = _describe(evaluation, beside, media, class_names)
    if influence is None:
        return evaluation
    return influence.embed(evaluation, model, without_keys(loader, keys), device, progress)


def _split_metadata(metadata: Any) -> tuple[tuple[str, ...], Any]:
    """Keys of dict batches, or what is given beside the loader."""
    if isinstance(metadata, str):
        return (metadata,), None
    if metadata is None or isinstance(metadata, Mapping) or is_table(metadata):
        return (), metadata
    return tuple(metadata), None


def _check_order(loader: Any, beside: bool, progress: Progress) -> None:
    if not _shuffles(loader):
        return
    if beside:
        raise InputError(
            "the loader shuffles, so `metadata` and `media` beside it would be those of other rows; use shuffle=False"
        )
    note(
        progress,
        "the loader shuffles, so rows without ids are numbered as they came; use shuffle=False to compare runs",
    )


def _describe(evaluation: Evaluation, beside: Any, media: Any, class_names: Sequence[str] | None) -> Evaluation:
    """The evaluation with what was given beside the loader."""
    changes: dict[str, Any] = {}
    if beside is not None:
        changes["metadata"] = {**evaluation.metadata, **metadata_of(beside, {}, len(evaluation))}
    if media is not None:
        changes["media"] = as_media(media)
    if class_names is not None:
        changes["class_names"] = tuple(map(str, class_names))
    return replace(evaluation, **changes) if changes else evaluation


def is_module(source: Any) -> bool:
    """Whether this is a PyTorch module; who holds one has imported torch, so nobody else pays for the import."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(source, torch.nn.Module)


def _loader_argument(data: Any) -> tuple[Any, ...]:
    if data is None:
        raise InputError("a PyTorch model needs a loader of batches; call collect(model, loader)")
    return (data,)


FORMAT = ObjectFormat("torch", "a PyTorch model with a loader", is_module, _loader_argument, from_torch)


class _WithoutKeys:
    """A loader whose dict batches lack some keys."""

    def __init__(self, loader: Iterable[Any], names: Collection[str]):
        self._loader = loader
        self._names = names

    def __iter__(self) -> Iterator[Any]:
        for raw in self._loader:
            if isinstance(raw, Mapping):
                yield {key: raw[key] for key in raw if key not in self._names}
            else:
                yield raw

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]  # callers expect a TypeError where it has none


def without_keys(loader: Iterable[Any], names: Collection[str]) -> Iterable[Any]:
    """The loader without some keys of its dict batches: those that are about the rows and not for the model."""
    if not names:
        return loader
    return _WithoutKeys(loader, names)


@dataclass(frozen=True)
class BatchQuestion:
    """What is asked of a model on every batch: options of `from_torch`."""

    layer: str | None
    device: Any
    keys: tuple[str, ...]
    loss: Loss | None


@dataclass(frozen=True, eq=False)
class BatchOutputs:
    """What a model gives for a batch of b rows.

    logits: (b, k), or None where they are no matrix. rows: (b, d) of the representation. layer: where it is from.
    """

    logits: Array | None
    labels: Array
    losses: Array | None
    columns: dict[str, Array]
    rows: Array
    layer: str | None


def _outputs_of_all(
    model: Any, loader: Iterable[Any], asked: BatchQuestion, engine: Engine, progress: Progress
) -> Generator[BatchOutputs, None, None]:
    """The outputs of every batch in turn: of the model itself, left as it was, or of copies in other processes."""
    from ..tensors import capture_layer, evaluating, on_device

    if not isinstance(engine, Local):
        items, read = _batches_elsewhere(loader)
        copy_ = ModelOfWorker(model, asked, read)
        yield from engine.each(_run_elsewhere, report_batches(items, progress, "collect"), copy_)
        return
    with on_device(model, asked.device) as where, evaluating(model), capture_layer(model, asked.layer) as tap:
        for raw in report_batches(loader, progress, "collect"):
            yield _outputs(model, raw, asked, where, tap)


def _batches_elsewhere(loader: Any) -> tuple[Iterable[Any], Callable[[Any], Any] | None]:
    """What is sent of each batch, and how it is read: its row numbers, where a dataset has them; else the batch."""
    from torch.utils.data import IterableDataset

    sampler = getattr(loader, "batch_sampler", None)
    dataset = getattr(loader, "dataset", None)
    # A stream has `__getitem__` too, which only raises, and a sampler that never ends.
    if sampler is None or isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
        return loader, None
    return list(sampler), partial(_read_rows, dataset, loader.collate_fn)


def _read_rows(dataset: Any, collate: Callable[[list[Any]], Any], index: Sequence[int]) -> Any:
    return collate([dataset[i] for i in index])


class ModelOfWorker:
    """A model in a worker, made ready at its first batch; nobody else uses this copy of it."""

    def __init__(self, model: Any, asked: BatchQuestion, read: Callable[[Any], Any] | None):
        self._model = model
        self._asked = asked
        self._read = read

    @cached_property
    def _ready(self) -> tuple[Any, Any]:
        """Its device and its tap."""
        from ..tensors import LayerCapture, device_of

        self._model.eval()
        if self._asked.device is not None:
            self._model.to(self._asked.device)
        return device_of(self._model), LayerCapture(self._model, self._asked.layer)

    def outputs(self, item: Any) -> BatchOutputs:
        """Of a batch, or of rows that are read here."""
        import torch

        raw = item if self._read is None else self._read(item)
        with torch.no_grad():
            return _outputs(self._model, raw, self._asked, *self._ready)


def _run_elsewhere(item: Any, model: ModelOfWorker) -> BatchOutputs:
    return model.outputs(item)


def _outputs(model: Any, raw: Any, asked: BatchQuestion, device: Any, tap: Any) -> BatchOutputs:
    """Run the model on one batch."""
    from ..tensors import to_device

    batch = split_batch(raw, asked.keys)
    output = model(*to_device(batch.args, device), **to_device(batch.kwargs, device))
    logits = logits_of(output)
    labels = plain(batch.labels)
    rows = 0
    if labels.ndim:
        rows = len(labels)
    if logits.ndim == 0 or len(logits) != rows:
        raise InputError(
            f"the model gave an output of shape {tuple(logits.shape)} for a batch of {rows} labels; "
            "it must give one row an example"
        )
    losses = None
    if asked.loss is not None:
        losses = _own_losses(asked.loss, logits, to_device(batch.labels, device), rows)
    if logits.ndim > 2 and losses is None:
        raise InputError(
            f"the model gave an output of shape {tuple(logits.shape)}, more than logits of shape (n, k); "
            "pass `loss`, a function of (logits, labels) that gives one loss a row"
        )
    columns = {name: plain(values) for name, values in batch.columns.items()}
    scores = logits.detach().float().cpu().numpy() if logits.ndim <= 2 else None
    return BatchOutputs(scores, labels, losses, columns, tap.take(rows).numpy(), tap.layer)


def _own_losses(loss: Loss, logits: Any, labels: Any, rows: int) -> Array:
    losses = plain(loss(logits, labels))
    if losses.shape != (rows,):
        raise InputError(
            f"`loss` must give one value a row, shape ({rows},); got shape {losses.shape}; use reduction='none'"
        )
    return losses


class _Gathered:
    """The rows so far, a batch at a time; nothing of it holds on to the model's graph."""

    def __init__(self, expected: int | None, out: str | Path | None):
        self.batches = 0
        self._logits = InMemory(expected)
        self._rows = open_stream(expected, out)
        self._columns: dict[str, list[Array]] = {}

    @contextmanager
    def removed_on_error(self) -> Iterator[None]:
        """Leave no half-written file behind where something goes wrong on the way."""
        try:
            yield
        except BaseException:
            self._rows.abandon()
            raise

    def add(self, outputs: BatchOutputs) -> None:
        """Add the outputs and columns of one batch."""
        if outputs.logits is not None:
            self._logits.append(outputs.logits)
            self._column("labels", outputs.labels)
        if outputs.losses is not None:
            self._column("losses", outputs.losses)
        for name, values in outputs.columns.items():
            self._column(name, values, len(outputs.labels))
        self._rows.append(outputs.rows)
        self.batches += 1

    def _column(self, name: str, values: Array, rows: int | None = None) -> None:
        if rows is not None and values.shape != (rows,):
            raise InputError(f"`{name}` must have one value a row, shape ({rows},); got shape {values.shape}")
        self._columns.setdefault(name, []).append(values)

    def evaluation(self, name: str, origin: Origin) -> tuple[Evaluation, tuple[str, ...]]:
        """An evaluation of all batches, with the representation under `name`, and what was decided about outputs."""
        if self.batches == 0:
            raise InputError("the loader gave no batches; give it at least one row")
        columns = {column: np.concatenate(parts) for column, parts in self._columns.items()}
        outcome: dict[str, Any] = {}
        decided: tuple[str, ...] = ()
        if "labels" in columns:
            outcome, decided = settle_outcome(self._logits.finish(), columns.pop("labels"))
        metadata = {key: columns.pop(key) for key in list(columns) if key.startswith("metadata:")}
        evaluation = Evaluation(
            **outcome | columns,  # losses that the user computed stand before derived ones
            representations={name: self._rows.finish()},
            sources={name: Source(from_model=True)},
            metadata={key.removeprefix("metadata:"): values for key, values in metadata.items()},
            origin=origin,
        )
        return evaluation, decided


def _expected_rows(loader: Any) -> int | None:
    try:
        return len(loader.dataset)
    except (AttributeError, TypeError, NotImplementedError):
        return None


def _shuffles(loader: Any) -> bool:
    return type(getattr(loader, "sampler", None)).__name__ == "RandomSampler"


def _describe_layer(last: str | None, layer: str | None) -> str:
    """What the representation is. layer: the one that was named. last: the last linear layer that ran."""
    if layer is not None:
        return f"the output of `{layer}`"
    if last:
        return f"the input of the last linear layer, `{last}`"
    return "the model's input, since it is one layer"
