"""What `recommended` decides before and after the search: which loss, which size, and which lights are kept.

A light of a few rows can always be laid around errors of chance, the more so the better the solver. So a size is
tried first: one light is searched on half of the rows and looked at on the other half. The smallest size whose light
keeps most of its excess there is the size of all lights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...core import Array, Evaluation, Matrix, RowView
from ...core.membership import threshold
from .shape import Ellipse, Sphere

Light = Sphere | Ellipse

WIDER = (1, 2, 5, 10, 20)  # times the size asked for
WIDEST = 0.25  # share of the rows
HELD = 0.7  # of a light's excess that must be left where it was not searched
STANDING_OUT = 2.0  # standard errors


def bounded_losses(evaluation: Evaluation) -> Array:
    """(n,) one minus the probability of the label; the error where predictions are hard; else the losses as given.

    One row that is wrong by fifteen nats weighs as much as ten that are wrong: a light then follows single rows.
    """
    labels = evaluation.labels
    if evaluation.task == "classification" and labels is not None:
        if evaluation.probs is not None:
            return 1.0 - evaluation.probs[np.arange(len(labels)), labels].astype(np.float64)
        if evaluation.errors is not None:
            return evaluation.errors.astype(np.float64)
    assert evaluation.losses is not None
    return evaluation.losses.astype(np.float64)


def sizes_to_try(size: float) -> list[float]:
    """Shares of the rows, the one asked for first."""
    return [size] + [times * size for times in WIDER[1:] if times * size <= WIDEST]


def choose_size(
    sizes: Sequence[float], X: Matrix, losses: Array, searched: Array, search: Callable[[Matrix, Array, float], Light]
) -> float:
    """The smallest size whose light holds on rows where it was not searched; where none does, the one that holds best.

    searched: (n,) bool, the rows that `search` is given (X and losses of) with a share of them.
    """
    aside = ~searched
    rows = RowView(X, np.flatnonzero(searched))
    best = sizes[0]
    most = -np.inf
    for size in sizes:
        k = search(rows, losses[searched], size).weights(X)
        inside = k >= threshold(k[searched])
        excess = _excess(losses, inside, searched)
        left = _excess(losses, inside, aside)
        held = left / max(excess, 1e-12)
        members = max(int(np.count_nonzero(inside & aside)), 1)
        error = float(losses[aside].std()) / members**0.5
        if held > most:
            best = size
            most = held
        if held >= HELD and left >= STANDING_OUT * error:
            return size
    return best


def _excess(losses: Array, inside: Array, rows: Array) -> float:
    """Mean loss of the members among some rows, less that of all of these rows."""
    members = inside & rows
    if not members.any():
        return 0.0
    return float(losses[members].mean() - losses[rows].mean())


def members_mean(k: Array, losses: Array) -> float:
    """Mean loss of a light's members, before any dimming."""
    inside = k >= threshold(k)
    if not inside.any():
        return 0.0
    return float(losses[inside].mean())


def brightest(means: Sequence[float], least: float) -> list[int]:
    """Lights whose members' mean loss is at least this share of the best light's."""
    return [j for j, mean in enumerate(means) if mean >= least * max(means)]
