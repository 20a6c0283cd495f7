"""What the explanations of all slices of one audit share, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..core import Array, Audit, Captions, Evaluation
from ..core.rules.leaks import find_leaks, search_classes
from ..core.rules.literals import CodedColumn, encode_all
from .encode import Column, Skipped, class_values, encode, encode_classes
from .text_phrases import Words, count_words


@dataclass(frozen=True, eq=False)
class Context:
    """The audit, and what was handed over beside it."""

    audit: Audit
    seed: int = 0
    clusters: Array | None = None  # (n,) int: the cluster of each row in a plain clustering
    train: Evaluation | None = None  # the rows the model was trained on, where their influence can be computed
    texts: Captions | None = None  # candidates for describing a slice
    vocabulary: tuple[str, ...] | None = None  # phrases of the user's own: the only ones that words are chosen from
    arrays: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)  # key of a slicer -> its fitted arrays
    own: Mapping[str, Array] = field(default_factory=dict)  # id of an approximation -> (n,) bool: the method's own rows

    @cached_property
    def tasks(self) -> dict[str, Evaluation]:
        """Name of a task -> its evaluation; one, named "", where there is only one."""
        return dict(self.audit.evaluation.tasks())

    @cached_property
    def words(self) -> Words | None:
        """Which row has which word or phrase; None where rows are no texts."""
        media = self.audit.evaluation.media
        return None if media is None else count_words(media, self.vocabulary)

    @cached_property
    def columns(self) -> tuple[Column | Skipped, ...]:
        """The metadata."""
        metadata = self.audit.evaluation.metadata
        return tuple(encode(name, column, self.audit.discover) for name, column in metadata.items())

    @cached_property
    def coded_columns(self) -> list[CodedColumn]:
        """The metadata as bins that rules are made of."""
        return encode_all(self.audit.evaluation.metadata)

    @cached_property
    def leaks(self) -> dict[str, dict[str, str]]:
        """Name of a task -> column -> what it gives away: "the outcome", "the label" or "the prediction"."""
        searched = np.flatnonzero(self.audit.discover)
        some = [column.rows(searched) for column in self.coded_columns]
        found: dict[str, dict[str, str]] = {task: {} for task in self.tasks}
        for task, rows in self.tasks.items():
            if rows.errors is not None:
                found[task] = find_leaks(some, rows.errors[searched], search_classes(rows, searched))
        return found

    @cached_property
    def coded_classes(self) -> dict[str, list[CodedColumn]]:
        """Name of a task -> labels and predictions as such bins, where they are no metadata."""
        own = self.audit.evaluation.metadata
        return {
            task: encode_all({name: array for name, array in class_values(rows).items() if name not in own})
            for task, rows in self.tasks.items()
        }

    @cached_property
    def class_columns(self) -> dict[str, dict[str, Column]]:
        """Name of a task that has slices -> "labels" and "predictions", where there are any."""
        return {slice_.task: self._class_columns(self.tasks[slice_.task]) for slice_ in self.audit.slices}

    def _class_columns(self, evaluation: Evaluation) -> dict[str, Column]:
        columns = {"labels": evaluation.labels, "predictions": evaluation.predictions}
        encoded = {
            name: encode_classes(name, evaluation, column, self.audit.discover)
            for name, column in columns.items()
            if column is not None
        }
        return {name: column for name, column in encoded.items() if isinstance(column, Column)}

    def has(self, evaluation: Evaluation, needs: frozenset[str]) -> bool:
        """Whether the evaluation, or this context, has everything that an explanation needs."""
        for name in needs:
            owner: Any = evaluation if hasattr(evaluation, name) else self
            value = getattr(owner, name)
            if value is None or (isinstance(value, Mapping | tuple) and not value):
                return False
        return True
