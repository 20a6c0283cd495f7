"""Influence embeddings of an audit: for methods that search them, and to rank training rows for every slice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..core import Array, Evaluation, InputError
from ..core.errors import unknown
from ..core.evaluation import INFLUENCE
from ..inputs.influence import Embedded, InfluenceOptions, embed_all, last_layer_weights
from ..slicers import Slicer
from .methods import reads_influence

MOST_WEIGHTS = 200_000  # of a last layer whose curvature is computed unasked, in seconds
PAPER = {"P": "steps", "D": "rank"}  # the paper's names
ALL_ROWS = "all"  # value of `rows`
WHOLE = ("steps", "rank", "rows", "seed", "basis")


def influence_options(given: Mapping[str, Any] | None) -> InfluenceOptions:
    """Return the options that a user gave by name, `P` and `D` as the paper has them or `steps` and `rank`."""
    known = [field.name for field in fields(InfluenceOptions)]
    options: dict[str, Any] = {}
    for name, value in (given or {}).items():
        key = PAPER.get(name, name)
        if key not in known:
            raise unknown("option of influence", name, [*PAPER, *known])
        options[key] = _number(key, value)
    return InfluenceOptions(**options)


def _number(name: str, value: Any) -> Any:
    if name == "rows" and value in (None, ALL_ROWS):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        wanted = "a number"
        if name == "rows":
            wanted = f"a number, or `{ALL_ROWS}`"
        raise InputError(f"`influence` option `{name}` must be {wanted}; got {value!r}")
    if name in WHOLE and value != int(value):
        raise InputError(f"`influence` option `{name}` must be a whole number; got {value!r}")
    return int(value) if name in WHOLE else float(value)


def influence_options_read(
    given: Mapping[str, Any] | None, slicers: Mapping[str, Slicer], evaluation: Evaluation, train: Evaluation | None
) -> InfluenceOptions:
    """Return the options of influence embeddings; refuse any where no embeddings are made."""
    options = influence_options(given)
    if not given:
        return options
    names = ", ".join(given)
    if INFLUENCE in evaluation.representations:
        raise InputError(
            f"`influence` ({names}) says how influence embeddings are made, and these rows come with the "
            f"representation `{INFLUENCE}`; leave `influence` out, or give them to errata.inputs.fit_influence"
        )
    if train is None and not reads_influence(slicers):
        raise InputError(
            f"`influence` ({names}) says how influence embeddings are made, and nothing reads any; name the method "
            "`infembed` or `infembed-rule`, or give the training rows with `train`"
        )
    return options


def embed_searched(
    slicers: Mapping[str, Slicer],
    evaluation: Evaluation,
    train: Evaluation | None,
    discover: Array,
    options: InfluenceOptions,
) -> Embedded:
    """Return both with influence embeddings where a method searches them; else as they are, with no record."""
    if reads_influence(slicers):
        return embed_all(evaluation, train, discover, options)
    return Embedded(evaluation, train, {})


def rank_training_rows(
    embedded: Embedded, slices: int, discover: Array, options: InfluenceOptions
) -> tuple[Embedded, list[str]]:
    """Return rows with influence embeddings for explanations, and notes that say why where that cannot be.

    No search and no verdict reads them: they are added once all slices are found, and where there are any.
    """
    evaluation = embedded.evaluation
    train = embedded.train
    if embedded.record or train is None or not slices:
        return embedded, []
    try:
        if INFLUENCE not in evaluation.representations:
            _check_size(last_layer_weights(evaluation, train))
        return embed_all(evaluation, train, discover, options), []
    except InputError as error:
        return embedded, [f"Training rows are not ranked by influence: {error}."]


def _check_size(weights: int) -> None:
    if weights > MOST_WEIGHTS:
        raise InputError(
            f"the last layer has {weights:,} weights, more than {MOST_WEIGHTS:,}; name the method `infembed` too"
        )
