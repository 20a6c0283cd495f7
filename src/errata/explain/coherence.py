"""Whether the errors of a slice have one cause: whether their influence embeddings point the same way (InfEmbed)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..core import Array
from ..core.blocks import Matrix, mean_cosine
from ..core.evaluation import INFLUENCE
from ..core.record import json_key
from .context import Context
from .examples import Example, example
from .kinds import SliceExplanation
from .view import MEASURED_ON, SliceView

CENTRAL = 4
DRAWS = 200  # random groups that a slice's coherence is compared with


@dataclass(frozen=True)
class Coherence(SliceExplanation):
    """The mean cosine between the errors of a slice, beside that of as many errors at random; on held-out rows."""

    kind = "coherence"
    needs = frozenset({"representations"})

    measured_on: str
    rows: str  # "wrong"; "all" where there are no errors
    n: int
    total: int = field(metadata=json_key("of"))
    cosine: float | None  # None with fewer than two rows, as the next three
    random: float | None
    p_value: float | None
    spread: float | None  # the k-means objective a row
    central: tuple[Example, ...]  # the members nearest to the mean

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Coherence | None:
        """None without influence embeddings."""
        evaluation = view.evaluation
        if INFLUENCE not in evaluation.representations:
            return None
        E = evaluation.representations[INFLUENCE]
        pool = view.measured
        counted = "all"
        if evaluation.errors is not None:
            pool = view.measured & evaluation.errors
            counted = "wrong"
        members = np.flatnonzero(pool & view.inside)
        everything = np.flatnonzero(pool & (view.inside | view.rest))
        cosine = None
        random = None
        p_value = None
        spread = None
        if len(members) >= 2:
            rows = np.asarray(E[everything], dtype=np.float64)
            inside = np.isin(everything, members)
            cosine, random, p_value = _compare(rows, inside, context.seed)
            spread = float(((rows[inside] - rows[inside].mean(axis=0)) ** 2).sum(axis=1).mean())
        return cls(
            measured_on=MEASURED_ON,
            rows=counted,
            n=len(members),
            total=len(everything),
            cosine=cosine,
            random=random,
            p_value=p_value,
            spread=spread,
            central=tuple(example(evaluation, int(i)) for i in _central(E, view)),
        )


def _compare(E: Array, inside: Array, seed: int) -> tuple[float, float, float]:
    """Mean cosine between pairs, the mean of that of random groups of the same size, and its p-value."""
    lengths = np.linalg.norm(E, axis=1, keepdims=True)
    U = E / np.where(lengths > 0, lengths, 1.0)
    m = int(inside.sum())
    own = mean_cosine(U[inside])
    rng = np.random.default_rng(seed)
    random = np.array([mean_cosine(U[rng.permutation(len(U))[:m]]) for _ in range(DRAWS)])
    beyond = int((random >= own).sum())
    return own, float(random.mean()), (1 + beyond) / (1 + DRAWS)


def _central(E: Matrix, view: SliceView) -> Array:
    """The members nearest the mean of those that were searched, among the others where there are any."""
    searched = np.flatnonzero(view.inside & view.chosen)
    members = np.flatnonzero(view.inside & view.measured)
    members = members if len(members) else searched
    if not len(searched) or not len(members):
        return members[:0]
    centre = np.asarray(E[searched], dtype=np.float64).mean(axis=0)
    distances = np.linalg.norm(np.asarray(E[members], dtype=np.float64) - centre, axis=1)
    return members[np.argsort(distances, kind="stable")[:CENTRAL]]
