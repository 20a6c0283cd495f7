"""Evaluations of language models, one row a sample: what all their logs have in common.

The score of a sample becomes its loss, 1 - score. Where the samples are multiple choice, and the answer read off the
log explains every score, they are a classification of the choices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core import Array, Evaluation, InputError, Source
from .features import encode_rows
from .media import Texts
from .names import Reading

LONGEST_VALUE = 60  # characters of a text that may be metadata: what is longer is no name of a group
LONGEST_ANSWER = 400  # characters of an answer that are shown
NO_ANSWER = "no answer"


@dataclass(frozen=True)
class Sample:
    """One sample of a log.

    id: unique. score: from 0, wrong, to 1, right. prompt: what the model was asked. answer, target: what it said, and
    what was right. multiple_choice: whether both are letters of choices. group: shared by repetitions of one sample.
    """

    id: str
    score: float
    prompt: str
    answer: str = ""
    target: str = ""
    multiple_choice: bool = False
    group: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def from_samples(samples: Sequence[Sample], reading: Reading) -> Evaluation:
    """An Evaluation with one row a sample; its columns and the words of its prompt are "features"."""
    if not samples:
        raise InputError(f"{reading.where} has no samples with a score; evaluate again with samples logged")
    scores = np.array([sample.score for sample in samples])
    if not np.isfinite(scores).all() or scores.min() < 0 or scores.max() > 1:
        row = int(np.flatnonzero(~((scores >= 0) & (scores <= 1)))[0])
        raise InputError(
            f"{reading.where} has the score {scores[row]:g} for sample {samples[row].id}; scores from 0 to 1 are read"
        )
    groups = None
    if any(sample.group is not None for sample in samples):
        groups = np.array([str(sample.group) for sample in samples])
    metadata = _metadata(samples)
    representations = _features(metadata, [sample.prompt for sample in samples])
    return Evaluation(
        **_outcome(samples, scores),
        ids=np.array([sample.id for sample in samples]),
        groups=groups,
        media=Texts([_shown(sample) for sample in samples]),
        metadata=metadata,
        representations=representations,
        sources=dict.fromkeys(representations, Source(from_model=False)),
    )


def _outcome(samples: Sequence[Sample], scores: Array) -> dict[str, Any]:
    """Choices as classes where they explain all scores, else the losses alone."""
    answers = [sample.answer or NO_ANSWER for sample in samples]
    targets = [sample.target for sample in samples]
    agree = np.array([answer == target for answer, target in zip(answers, targets, strict=True)])
    if all(sample.multiple_choice for sample in samples) and np.array_equal(agree, scores == 1):
        names = tuple(sorted({*answers, *targets} - {NO_ANSWER})) + (NO_ANSWER,) * (NO_ANSWER in answers)
        return {"labels": np.array(targets), "predictions": np.array(answers), "class_names": names}
    return {"losses": 1 - scores}


def _features(metadata: Mapping[str, Array], prompts: Sequence[str]) -> dict[str, Array]:
    try:
        return {"features": encode_rows(metadata, prompts).matrix}
    except InputError:  # all rows are alike: there is nothing to be near to
        return {}


def _shown(sample: Sample) -> str:
    parts = [sample.prompt]
    if sample.answer:
        parts.append(f"Answer: {sample.answer[:LONGEST_ANSWER]}")
    if sample.target:
        parts.append(f"Target: {sample.target[:LONGEST_ANSWER]}")
    return "\n\n".join(parts)


def _metadata(samples: Sequence[Sample]) -> dict[str, Array]:
    """Columns of short texts and numbers, and how long the prompts are."""
    names = dict.fromkeys(name for sample in samples for name in sample.metadata)
    columns: dict[str, Array] = {}
    for name in names:
        values = [sample.metadata.get(name) for sample in samples]
        column = _column(values)
        if column is not None:
            columns[name] = column
    columns["prompt words"] = np.array([len(re.findall(r"\w+", sample.prompt)) for sample in samples])
    return columns


def _column(values: Sequence[Any]) -> Array | None:
    """(n,) numbers or short texts that more than one row has; None for all else."""
    known = [value for value in values if value is not None]
    if not known or any(not isinstance(value, str | int | float | bool) for value in known):
        return None
    if all(isinstance(value, int | float) for value in known):
        return np.array(values, dtype=np.float64)  # None becomes NaN
    texts = [str(value or "") for value in values]
    distinct = set(texts)
    if max(map(len, distinct)) > LONGEST_VALUE or len(distinct) > max(2, len(texts) / 2):
        return None
    return np.array(texts)
