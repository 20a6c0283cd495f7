"""Votes on what samples of regions show, and by them which regions a classifier gets wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from ..core.blocks import Array
from ..core.comparison import Change
from ..core.errors import InputError
from ..core.gaps import wilson

NONE = -1  # the label "none of the above"

WHOLES = ("test", "regions")  # groups of a comparison that are no single region
Verdict = Literal["misclassified", "classified well", "no common label", "not labelled"]


@dataclass(frozen=True)
class Vote:
    """One person's label of one sample of one region."""

    region: str
    sample: int
    person: str
    label: int  # a class, or NONE
    final: bool = False  # somebody's last word, which needs no quorum


@dataclass(frozen=True)
class Judged:
    """The judgement of a region by its samples. A sample's label is its majority's; on a tie it has none."""

    id: str
    verdict: Verdict
    label: int | None  # of the region: the label of most of its samples
    samples: int  # that somebody labelled
    labelled: int  # of these: with a class by majority
    wrong: int  # of those: the classifier predicts another class
    interval: tuple[float, float]  # Wilson, 95%, of wrong among labelled
    share: float | None  # of labelled samples that have the region's label
    people: int
    agreement: tuple[float, ...]  # of each sample that several labelled: the share of them that gave its majority
    waiting: int = 0  # samples with an answer, by fewer people than the quorum

    def to_json(self) -> dict[str, Any]:
        """All fields as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Judged:
        """The judgement that `to_json` describes."""
        tuples = {"interval": tuple(fields["interval"]), "agreement": tuple(fields["agreement"])}
        return cls(**{**fields, **tuples})


def judge(
    ids: Sequence[str], votes: Iterable[Vote], predictions: Array, rho: float = 0.5, quorum: int = 1
) -> tuple[Judged, ...]:
    """Judge every region by its votes; a person's last vote on a sample counts.

    predictions: (r, s) the classifier's, of every sample. rho: a region is misclassified where the classifier is wrong
    on more than this share of labelled samples. quorum: people who must vote on a sample before it has a label. A
    final vote needs none, and where a sample has one all others on it are left out.
    """
    answers: dict[str, dict[int, dict[str, int]]] = {id: {} for id in ids}  # region -> sample -> person -> label
    final: dict[str, dict[int, dict[str, int]]] = {id: {} for id in ids}
    for vote in votes:
        if vote.region not in answers or not 0 <= vote.sample < predictions.shape[1]:
            raise InputError(
                f"a vote of `{vote.person}` is on sample {vote.sample} of region `{vote.region}`; there are "
                f"{len(ids)} regions with {predictions.shape[1]} samples each"
            )
        answers[vote.region].setdefault(vote.sample, {})[vote.person] = vote.label
        if vote.final:
            final[vote.region].setdefault(vote.sample, {})[vote.person] = vote.label
    judged = []
    for id, classes in zip(ids, predictions, strict=True):
        counted = {i: labels for i, labels in answers[id].items() if len(labels) >= quorum} | final[id]
        waiting = len(answers[id]) - len(counted)
        judged.append(replace(_judge_region(id, counted, classes, rho), waiting=waiting))
    return tuple(judged)


def _judge_region(id: str, answers: Mapping[int, Mapping[str, int]], predictions: Array, rho: float) -> Judged:
    if not answers:
        return Judged(id, "not labelled", None, 0, 0, 0, (0.0, 1.0), None, 0, ())
    majorities = {sample: majority(votes.values()) for sample, votes in answers.items()}
    labels = {sample: label for sample, label in majorities.items() if label is not None and label != NONE}
    wrong = sum(label != int(predictions[sample]) for sample, label in labels.items())
    # None of the above is a vote like any other on what a region shows, so that blots make no region.
    label = majority(label for label in majorities.values() if label is not None)
    share = None
    verdict: Verdict = "classified well"
    if label is None or label == NONE:
        label = None
        verdict = "no common label"
    elif labels:
        share = list(labels.values()).count(label) / len(labels)
        if wrong / len(labels) > rho:
            verdict = "misclassified"
    return Judged(
        id=id,
        verdict=verdict,
        label=label,
        samples=len(answers),
        labelled=len(labels),
        wrong=wrong,
        interval=wilson(wrong, len(labels)),
        share=share,
        people=len({person for votes in answers.values() for person in votes}),
        agreement=tuple(
            max(Counter(votes.values()).values()) / len(votes) for votes in answers.values() if len(votes) > 1
        ),
    )


def told_name(found: str, region: Judged, predictions: Array, classes: Sequence[str]) -> str:
    """A region's name by what people said of it; `found`, by the classes of the images it came from, before they did.

    predictions: (s,) of its samples.
    """
    if region.verdict == "not labelled":
        return found
    if region.label is None:
        return f"no common label, predicted {classes[int(Counter(predictions.tolist()).most_common(1)[0][0])]}"
    others = [int(predicted) for predicted in predictions if predicted != region.label]
    if region.verdict == "classified well" or not others:
        return f"{classes[region.label]}, classified well"
    return f"{classes[region.label]} taken for {classes[Counter(others).most_common(1)[0][0]]}"


def changes_in_words(changes: Sequence[Change], rho: float) -> str:
    """What became of the regions that were corrected: fixed is one that is better and no longer misclassified.

    rho: the share of wrong samples above which a region is misclassified.
    """
    regions = [change for change in changes if change.id not in WHOLES]
    better = [change for change in regions if change.judgement == "better"]
    fixed = [change for change in better if (change.after_rate or 0.0) <= rho]
    worse = sum(change.judgement == "worse" for change in regions)
    counts = {
        "fixed": len(fixed),
        "better but still misclassified": len(better) - len(fixed),
        "with no change seen": len(regions) - len(better) - worse,
        "worse": worse,
    }
    return ", ".join(f"{count} {words}" for words, count in counts.items() if count or words == "fixed")


def majority(labels: Iterable[int]) -> int | None:
    """The most frequent label; None on a tie, and of no labels."""
    counts = Counter(labels).most_common(2)
    if not counts:
        return None
    if len(counts) == 2 and counts[0][1] == counts[1][1]:
        return None
    return counts[0][0]


@dataclass(frozen=True)
class MajorityAgreement:
    """The mean share of people who gave a sample's majority label, with its standard error (Defuse, figure 7)."""

    samples: int  # that several people labelled
    mean: float | None
    error: float | None


def majority_agreement(judged: Iterable[Judged]) -> dict[str, MajorityAgreement]:
    """Agreement on samples of misclassified regions, of the others, and of all; samples of one person do not count."""
    shares: dict[str, list[float]] = {"misclassified": [], "others": [], "all": []}
    for region in judged:
        part = "misclassified" if region.verdict == "misclassified" else "others"
        shares[part] += region.agreement
        shares["all"] += region.agreement
    return {name: _mean_and_error(np.array(values)) for name, values in shares.items()}


def _mean_and_error(shares: Array) -> MajorityAgreement:
    n = len(shares)
    mean = None
    error = None
    if n:
        mean = float(shares.mean())
    if n > 1:
        error = float(shares.std(ddof=1) / np.sqrt(n))
    return MajorityAgreement(n, mean, error)
