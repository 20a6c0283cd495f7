"""The settings that a saved audit names: those that commands and pages read are of the type that was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from ..core.typed import typed


class Copies(TypedDict):
    """Rows that are copies of others."""

    rows: int
    of: int
    by: Mapping[str, int]


class AlikeColumn(TypedDict):
    """A column within whose values errors are alike."""

    column: str
    values: int


class Groups(TypedDict):
    """What rows were kept together."""

    column: str | None
    alike: tuple[AlikeColumn, ...]
    copies: Copies | None


class GivenInfluence(TypedDict):
    """Influence embeddings that came with the rows."""

    curvature: Literal["given"]


class MadeInfluence(TypedDict):
    """How influence embeddings were made."""

    curvature: str
    rows: int
    representation: str
    steps: int
    directions: int
    damping: float | None


class Ownership(TypedDict):
    """Whether a representation is the model's own."""

    own: bool
    declared: bool
    r2: float | None
    auc: float | None


class Hypotheses(TypedDict):
    """Hypotheses that were kept as slices."""

    counted: int
    kept: tuple[str, ...]


class SavedSettings(TypedDict, total=False):
    """Keys of `settings` that are read again; earlier versions lack some, and there are others that nobody reads."""

    alpha: float
    level: float
    share: float
    delta: float | None
    tolerance: float | None
    tested: int
    most: int
    run: int
    seed: int
    look: str
    rows_of: str | None
    version: str
    metric: str
    positive: str | int | None  # as it was given
    crossfit: bool
    methods: tuple[str, ...]
    notes: tuple[str, ...]
    options: Mapping[str, Any]
    hypotheses: Hypotheses
    groups: Groups | None
    influence: GivenInfluence | MadeInfluence | None
    ownership: Mapping[str, Ownership] | None
    softness: float | None
    trained_on_these_rows: str


def checked_settings(settings: Any) -> dict[str, Any]:
    """The settings as they are; a ValueError where one that is read again is of another type."""
    typed(SavedSettings, settings, "settings")
    return dict(settings)
