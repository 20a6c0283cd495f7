"""Slices of the user's own, a condition, words, a mask or a clustering, as a slicer that learns nothing.

An audit tests them like any slice that a method found: on held-out rows, counted in the family.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from ..core import State
from ..core.blocks import Array
from ..core.confirm import LARGEST_SHARE
from ..core.errors import InputError
from ..core.evaluation import Evaluation
from ..core.progress import Progress, silent
from ..core.words import READS_OUTCOME
from .columns import OUTCOME
from .grammar import Node, node_from_json
from .parsing import ParsedHypothesis, WordQuery, parse

MOST_CLUSTERS = 100  # values of one clustering
THRESHOLD = 0.5

Given = str | Array | Any  # a condition or words; (n,) bool; (n,) whole numbers


@dataclass(frozen=True, eq=False)
class OwnSlice:
    """One slice of the user's own.

    Parameters
    ----------
    name
        As the user calls it.
    meaning
        A parsed condition or words; None where rows are listed.
    ids
        (m,) the ids of listed rows; None where a condition tells them.
    """

    name: str
    meaning: ParsedHypothesis | None = None
    ids: Array | None = None

    def mask(self, evaluation: Evaluation) -> Array:
        """(n,) bool: the rows of the slice."""
        if self.meaning is not None:
            return self.meaning.mask(evaluation)
        assert self.ids is not None
        inside: Array = np.isin(evaluation.row_ids, self.ids)
        return inside

    @property
    def rule(self) -> dict[str, Any]:
        """How its members are told, as JSON."""
        if self.meaning is None:
            return {"kind": "ids", "name": self.name, "reads": []}
        reads = sorted({predicate.column for predicate in self.meaning.predicates} & set(OUTCOME))
        return {"kind": "given", "name": self.name, "condition": self.meaning.text, "reads": reads}


class OwnSlices:
    """What the user asks to be tested, in the form of a slicer.

    Parameters
    ----------
    slices : tuple of OwnSlice
        See `read_slices`.

    Attributes
    ----------
    notes
        What the audit says beside its slices.
    """

    name: ClassVar[str] = "own"
    needs: ClassVar[frozenset[str]] = frozenset()
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"recommended": {}, "as_published": {}}
    reads: ClassVar[frozenset[str]] = frozenset()

    report_progress: Progress = staticmethod(silent)
    notes: tuple[str, ...] = ()

    def __init__(self, slices: tuple[OwnSlice, ...]):
        self.slices = slices
        self.rules_: tuple[Mapping[str, Any], ...] = tuple(slice_.rule for slice_ in slices)
        self.thresholds_ = np.full(len(slices), THRESHOLD)

    def fit(self, evaluation: Evaluation, *, train: Evaluation | None = None) -> Self:
        """There is nothing to learn."""
        return self

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) 1 for members, else 0."""
        return np.stack([slice_.mask(evaluation) for slice_ in self.slices], axis=1).astype(np.float64)

    def to_state(self) -> State:
        """Conditions as trees, listed rows as ids."""
        facts = [{"name": slice_.name, "meaning": _to_json(slice_.meaning)} for slice_ in self.slices]
        arrays = {f"ids{i}": _plain_ids(slice_.ids) for i, slice_ in enumerate(self.slices) if slice_.ids is not None}
        return State(self.name, {"slices": facts}, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The same slices."""
        slices = []
        for i, facts in enumerate(state.facts["slices"]):
            ids = state.arrays.get(f"ids{i}")
            if ids is not None and ids.dtype == np.uint8:
                ids = np.array(bytes(ids).decode().split("\0"))
            slices.append(OwnSlice(facts["name"], _from_json(facts["meaning"]), ids))
        return cls(tuple(slices))


def read_slices(slices: Mapping[str, Given], evaluation: Evaluation) -> OwnSlices:
    """Read what a user wants tested; an InputError of one sentence for each mistake.

    Parameters
    ----------
    slices
        Name -> a condition or words, as text; (n,) bool, which rows; or (n,) whole numbers, a clustering, of which
        each value from 0 on is a slice.
    evaluation
        All rows.
    """
    if not isinstance(slices, Mapping) or not slices:
        raise InputError(f"`slices` must map names to conditions or masks; got {type(slices).__name__}")
    return OwnSlices(tuple(own for name, given in slices.items() for own in _read(str(name), given, evaluation)))


def _read(name: str, given: Given, evaluation: Evaluation) -> Iterator[OwnSlice]:
    if isinstance(given, str):
        yield OwnSlice(name, meaning=_read_condition(name, given, evaluation))
        return
    array = np.asarray(given)
    if array.shape != (len(evaluation),) or array.dtype.kind not in "biu":
        raise InputError(
            f"slice `{name}` must be a condition, or one true or false or one whole number a row, shape "
            f"({len(evaluation)},); got shape {array.shape} of {array.dtype}"
        )
    if array.dtype == bool:
        yield OwnSlice(name, ids=evaluation.row_ids[array])
        return
    clusters = np.unique(array[array >= 0])
    if len(clusters) > MOST_CLUSTERS:
        raise InputError(f"slice `{name}` has {len(clusters):,} clusters; at most {MOST_CLUSTERS} can be tested")
    for cluster in clusters:
        yield OwnSlice(f"{name} {cluster}", ids=evaluation.row_ids[array == cluster])


def _read_condition(name: str, text: str, evaluation: Evaluation) -> ParsedHypothesis:
    try:
        parsed = parse(text, evaluation)
    except InputError as error:
        raise InputError(f"slice `{name}`: {error}") from error
    if parsed.reads_outcome:
        raise InputError(f"slice `{name}`: {READS_OUTCOME}")
    return parsed


def untestable(own: OwnSlices, evaluation: Evaluation, search: Array) -> list[str]:
    """Why slices of the user's own cannot be tested, one sentence each.

    Parameters
    ----------
    own
        The slices.
    evaluation
        All rows of a task.
    search
        (n,) bool: the search rows.
    """
    sentences = []
    for slice_ in own.slices:
        inside = slice_.mask(evaluation)
        if not inside[~search].any():
            sentences.append(f"Your slice “{slice_.name}” was not tested: none of its rows is held out.")
        elif inside.mean() > LARGEST_SHARE:
            sentences.append(f"Your slice “{slice_.name}” was not tested: it holds more than half of the rows.")
    return sentences


def with_slice(own: OwnSlices | None, name: str, text: str, evaluation: Evaluation) -> OwnSlices:
    """The slices with one more, the last, that a condition or words tell.

    Parameters
    ----------
    own
        Those there are; None where there are none yet.
    name, text
        What it is called, and its condition or words.
    evaluation
        All rows of its task.
    """
    earlier = () if own is None else own.slices
    return OwnSlices((*earlier, *read_slices({name: text}, evaluation).slices))


def _to_json(meaning: ParsedHypothesis | None) -> dict[str, Any] | None:
    return None if meaning is None else meaning.to_json()


def _from_json(facts: Mapping[str, Any] | None) -> ParsedHypothesis | None:
    if facts is None:
        return None
    if facts["op"] == "words":
        return ParsedHypothesis(facts["text"], WordQuery(tuple(facts["words"])))
    meaning: Node = node_from_json(facts)
    return ParsedHypothesis(facts["text"], meaning)


def _plain_ids(ids: Array) -> Array:
    """Ids as an array that can be stored: whole numbers as they are, texts as bytes with zeros between them."""
    if ids.dtype.kind in "iu":
        return ids
    return np.frombuffer("\0".join(map(str, ids.tolist())).encode(), dtype=np.uint8)
