"""What people say that samples of regions show, and which regions a classifier gets wrong by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from ..core.blocks import Array
from ..core.errors import InputError
from ..core.gaps import wilson

NONE = -1  # none of the above

Verdict = Literal["misclassified", "classified well", "no common label", "not labelled"]


@dataclass(frozen=True)
class Vote:
    """One person's word on one sample of one region."""

    region: str
    sample: int
    person: str
    label: int  # a class, or NONE


@dataclass(frozen=True)
class Judged:
    """A region by its samples. A sample's label is what most people say; on a tie it has none."""

    id: str
    verdict: Verdict
    label: int | None  # of the region: what most of its samples are
    samples: int  # that somebody answered
    labelled: int  # of these: with a class that most say
    wrong: int  # of those: the classifier says another
    interval: tuple[float, float]  # Wilson, 95%, of wrong among labelled
    share: float | None  # of labelled samples that have the region's label
    people: int
    agreement: tuple[float, ...]  # of each sample that several answered: the share of them that gave its majority

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Judged:
        pairs = {"interval": tuple(told["interval"]), "agreement": tuple(told["agreement"])}
        return cls(**{**told, **pairs})


def judge(ids: Sequence[str], votes: Iterable[Vote], predictions: Array, rho: float = 0.5) -> tuple[Judged, ...]:
    """predictions: (r, s) the classifier's, of every sample. Misclassified: more than `rho` of labelled samples are."""
    said: dict[str, dict[int, dict[str, int]]] = {id: {} for id in ids}
    for vote in votes:
        if vote.region not in said or not 0 <= vote.sample < predictions.shape[1]:
            raise InputError(
                f"a vote of `{vote.person}` is on sample {vote.sample} of region `{vote.region}`; there are "
                f"{len(ids)} regions with {predictions.shape[1]} samples each"
            )
        said[vote.region].setdefault(vote.sample, {})[vote.person] = vote.label
    return tuple(_judge(id, said[id], predictions[j], rho) for j, id in enumerate(ids))


def _judge(id: str, said: Mapping[int, Mapping[str, int]], predictions: Array, rho: float) -> Judged:
    if not said:
        return Judged(id, "not labelled", None, 0, 0, 0, (0.0, 1.0), None, 0, ())
    majorities = {sample: most(given.values()) for sample, given in said.items()}
    labels = {sample: label for sample, label in majorities.items() if label is not None and label != NONE}
    wrong = sum(label != int(predictions[sample]) for sample, label in labels.items())
    # None of the above is a vote like any other on what a region is, so that blots make no region.
    label = most(label for label in majorities.values() if label is not None)
    label = None if label == NONE else label
    verdict: Verdict = "misclassified" if labels and wrong / len(labels) > rho else "classified well"
    return Judged(
        id, "no common label" if label is None else verdict, label, len(said), len(labels), wrong,
        wilson(wrong, len(labels)), _share(list(labels.values()), label),
        len({person for given in said.values() for person in given}),
        tuple(max(Counter(given.values()).values()) / len(given) for given in said.values() if len(given) > 1),
    )  # fmt: skip


def _share(labels: list[int], label: int | None) -> float | None:
    return None if label is None or not labels else labels.count(label) / len(labels)


def most(labels: Iterable[int]) -> int | None:
    """The one that is said most often; None on a tie, and of nothing."""
    counts = Counter(labels).most_common(2)
    return counts[0][0] if counts and (len(counts) == 1 or counts[0][1] > counts[1][1]) else None


@dataclass(frozen=True)
class Agreed:
    """Mean share of annotators that voted for a sample's majority, with its standard error (Defuse, figure 7)."""

    samples: int
    mean: float | None
    error: float | None


def agreement(judged: Iterable[Judged]) -> dict[str, Agreed]:
    """Of samples of misclassified regions, of the others, and of all; one person agrees with nobody."""
    parts: dict[str, list[float]] = {"misclassified": [], "others": [], "all": []}
    for region in judged:
        parts["misclassified" if region.verdict == "misclassified" else "others"] += region.agreement
        parts["all"] += region.agreement
    return {name: _agreed(np.array(shares)) for name, shares in parts.items()}


def _agreed(shares: Array) -> Agreed:
    n = len(shares)
    error = float(shares.std(ddof=1) / np.sqrt(n)) if n > 1 else None
    return Agreed(n, float(shares.mean()) if n else None, error)
