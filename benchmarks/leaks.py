"""Methods that lie about what they read, and representations that contain the outcome: how many are caught.

python benchmarks/leaks.py --worlds 20

Each world of random, label, calibrated or miscalibrated errors is audited with an embedding that holds the loss, the
error, the label beside the layer, or probabilities less labels, in turn; with a method that takes the rows that are
wrong and declares to read nothing; and, as often twice, with what is honest: the model's layer, noise, another network
that knows the label of 92 to 99% of the rows, and a method that reads nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import errata
from errata import Evaluation
from errata.bench.null_worlds import WORLDS, world
from errata.core import Array
from errata.slicers import BaseSlicer

ROWS = 4000


class Honest(BaseSlicer):
    """Rows whose first column is large."""

    name = "honest"
    needs = frozenset({"representations"})

    def __init__(self, representation: str | None = None):
        self.representation = representation

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        self.rules_ = ({"kind": "cut"},)

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, 1)."""
        return (np.asarray(self.matrix(evaluation))[:, :1] > 1).astype(float)


class Liar(Honest):
    """Rows that are wrong."""

    name = "liar"

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, 1)."""
        return np.asarray(evaluation.errors, dtype=float)[:, None]


def _layer(rows: Evaluation) -> Array:
    return np.asarray(next(iter(rows.representations.values())))


def _labels(rows: Evaluation) -> Array:
    return np.eye(5)[np.asarray(rows.labels)]


def _other_network(rows: Evaluation, rng: np.random.Generator) -> Array:
    means = rng.normal(size=(5, 32))
    return rng.uniform(0.5, 0.7) * _labels(rows) @ means + rng.normal(size=(len(rows), 32))


Make = Callable[[Evaluation, np.random.Generator], Array]
LEAKING: tuple[Make, ...] = (
    lambda rows, rng: np.column_stack([_layer(rows), rows.losses]),
    lambda rows, rng: np.column_stack([rng.normal(size=(len(rows), 200)), 0.01 * rows.errors]),
    lambda rows, rng: np.column_stack([_layer(rows), _labels(rows)]),
    lambda rows, rng: rows.probs - _labels(rows),
)
HONEST: tuple[Make, ...] = (
    lambda rows, rng: _layer(rows),
    lambda rows, rng: rng.normal(size=(len(rows), 256)),
    _other_network,
)


def main() -> None:
    """Print one line a kind of attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=20)
    worlds = parser.parse_args().worlds
    counts = {"leaks caught": 0, "liars caught": 0, "liars confirmed": 0, "false alarms": 0}
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        rows = world(WORLDS[seed % len(WORLDS)], ROWS, 1000 + seed)
        counts["leaks caught"] += _alarm(_with(rows, LEAKING[seed % len(LEAKING)](rows, rng)), Honest())
        lied = errata.audit(rows, methods=[Liar()], map=False)
        counts["liars caught"] += any("does not declare" in note for note in lied.settings["notes"])
        counts["liars confirmed"] += any("confidence" in slice_.beyond for slice_ in lied.confirmed)
        for i in (2 * seed, 2 * seed + 1):
            counts["false alarms"] += _alarm(_with(rows, HONEST[i % len(HONEST)](rows, rng)), Honest())
    print(f"{worlds} worlds of {ROWS:,} rows: {counts}, of {worlds}, {worlds}, {worlds} and {2 * worlds}")


def _with(rows: Evaluation, X: Array) -> Evaluation:
    return replace(rows, representations={"x": X}, sources={})


def _alarm(rows: Evaluation, method: Honest) -> bool:
    notes = errata.audit(rows, methods=[method], map=False).settings["notes"]
    return any("does not declare" in note or "Representation `x` tells" in note for note in notes)


if __name__ == "__main__":
    main()
