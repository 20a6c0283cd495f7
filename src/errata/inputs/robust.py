"""`robust`: the features of another model for the rows of an evaluation, and its last feature maps on demand.

A robust model is one trained against an adversary, by `errata.train.fit_robust` or by somebody else: what raises its
features can be seen by people (Barlow, section 4). Nothing here asks how the model was trained.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Array, Evaluation, InputError, Progress, Source, require
from .batches import Batch, split_batch
from .outcomes import plain
from .progress import report_batches, terminal_progress
from .streams import open_stream

if TYPE_CHECKING:
    import torch

    from ..tensors import Prepare


def add_features(
    evaluation: Evaluation,
    model: torch.nn.Module,
    loader: Iterable[Any],
    *,
    name: str = "robust",
    layer: str | None = None,
    device: torch.device | str | None = None,
    metadata: Sequence[str] = (),
    out: str | Path | None = None,
    progress: Progress = terminal_progress,
) -> Evaluation:
    """Add the features of another model to an evaluation, as one more representation.

    model: whose features they are; they count as another model's unless its weights are the audited model's.
    loader: the rows of the evaluation in the same order, as for `errata.collect`; only the inputs may be scaled in
    another way, as `model` needs them. name: of the representation. layer: whose output it is. Default: the input of
    the last linear layer. device: where to run. Default: where the model is. metadata: keys of dict batches that are
    not the model's. out: a .npy file that holds the features instead of memory. progress: `silent` for no bar.
    """
    require("torch", "torch")
    from ..tensors import capture_layer, evaluating, on_device, state_fingerprint, to_device, unwrap

    if name in evaluation.representations:
        raise InputError(f"the evaluation has a representation `{name}` already; give the new one another `name`")
    model = unwrap(model)
    if isinstance(metadata, str):
        metadata = (metadata,)
    features = open_stream(len(evaluation), out)
    n = 0
    try:
        with on_device(model, device) as where, evaluating(model), capture_layer(model, layer) as tap:
            for raw in report_batches(loader, progress, "collect"):
                batch = split_batch(raw, metadata)
                rows = _same_rows(evaluation, batch, n)
                model(*to_device(batch.args, where), **to_device(batch.kwargs, where))
                features.append(tap.take(rows).numpy())
                n += rows
        if n != len(evaluation):
            raise InputError(f"the loader has {n} rows and the evaluation {len(evaluation)}; give the same rows")
    except BaseException:
        features.abandon()
        raise
    own = evaluation.origin.model is not None and evaluation.origin.model == state_fingerprint(model)
    return evaluation.with_representation(name, features.finish(), Source(from_model=own))


def feature_maps(
    model: torch.nn.Module,
    images: Array,
    *,
    prepare: Prepare | None = None,
    layer: str | None = None,
    device: torch.device | str | None = None,
    batch: int = 64,
) -> Array:
    """(n, c, h', w') the last feature maps of some images, or the output of `layer`; nothing is stored.

    images: (n, h, w, 3) or (n, h, w), bytes or floats in [0, 1]. prepare: from pixels (b, c, h, w) in [0, 1] to what
    the model takes; `errata.train.normalise_pixels` for the networks of `errata.train`. device: where to run.
    Default: where the model is. batch: images at a time.
    """
    require("torch", "torch")
    from ..tensors import Attribution

    if not len(images):
        raise InputError("`images` is empty; give at least one image")
    return Attribution(model, prepare=prepare, maps=layer, device=device, batch=batch).maps(images)


def _same_rows(evaluation: Evaluation, batch: Batch, start: int) -> int:
    """The number of rows of a batch, which are those of the evaluation as far as ids and labels can tell."""
    labels = plain(batch.labels)
    if not labels.ndim:
        return 0
    rows = slice(start, start + len(labels))
    if rows.stop > len(evaluation):
        raise InputError(f"the loader has more rows than the evaluation, which has {len(evaluation)}; give the same")
    if "ids" in batch.columns:
        _check_alike("ids", plain(batch.columns["ids"]).astype(str), evaluation.row_ids[rows].astype(str), start)
    if evaluation.labels is not None:
        _check_alike("labels", labels, evaluation.labels[rows], start)
    return len(labels)


def _check_alike(what: str, loaded: Array, expected: Array, start: int) -> None:
    """Values of different shapes are not compared: soft labels are stored in another form."""
    if loaded.shape != expected.shape:
        return
    wrong = np.flatnonzero((loaded != expected).any(axis=tuple(range(1, expected.ndim))))
    if len(wrong):
        raise InputError(
            f"the loader's {what} differ from the evaluation's, first in row {start + int(wrong[0])}; "
            "give the same rows in the same order, with shuffle=False"
        )
