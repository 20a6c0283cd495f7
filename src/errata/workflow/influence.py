"""Influence embeddings that rank training rows for every slice of an audit, whichever method found it."""

from __future__ import annotations

from ..core import Array, Evaluation, InputError
from ..core.evaluation import INFLUENCE
from ..inputs.influence import add_influence, last_layer_weights

MOST_WEIGHTS = 200_000  # of a last layer whose curvature is computed unasked, in seconds


def rank_training_rows(
    evaluation: Evaluation, train: Evaluation, discover: Array
) -> tuple[Evaluation, Evaluation, list[str]]:
    """Return both with influence embeddings, for explanations, and notes that say why where that cannot be.

    No search and no verdict reads them: they are added once all slices are found.
    """
    if INFLUENCE in evaluation.representations:
        return evaluation, train, []
    try:
        weights = last_layer_weights(evaluation, train)
        if weights > MOST_WEIGHTS:
            raise InputError(
                f"the last layer has {weights:,} weights, more than {MOST_WEIGHTS:,}; name the method `infembed` too"
            )
        embedded, rows = add_influence(evaluation, train, discover)
    except InputError as error:
        return evaluation, train, [f"Training rows are not ranked by influence: {error}."]
    assert rows is not None
    return embedded, rows, []
