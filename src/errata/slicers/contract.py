"""What every slicing method is: weights in, weights out, and nothing else.

A slicer returns membership, a threshold and a rule for each slice. Sizes, rates, intervals, words and
pictures are shared code, so methods compare fairly and stay short. No slicer sees a model.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import UnionType
from typing import (
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import numpy as np

from ..core import Array, Evaluation, InputError, State
from ..core.errors import unknown
from ..core.membership import thresholds
from ..core.progress import Progress, silent


@runtime_checkable
class Slicer(Protocol):
    """scikit-learn's habits: `__init__` stores, `fit` starts afresh, what is learnt ends in an underscore."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]]  # fields of the evaluation that `fit` cannot do without
    reads: ClassVar[frozenset[str]]  # what `membership` reads of a row's outcome: "label", "prediction", "loss"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]]  # at least "recommended" and "as_published"
    thresholds_: Array  # (s,)
    rules_: tuple[Mapping[str, Any], ...]

    def fit(self, evaluation: Evaluation, *, train: Evaluation | None = None) -> Self: ...

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) weights in [0, 1], the most important slice first."""
        ...

    def to_state(self) -> State: ...

    @classmethod
    def from_state(cls, state: State) -> Self: ...


class BaseSlicer:
    """What slicers share: options, sorted rows, thresholds, saving. A method writes `_fit` and `membership`."""

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    reads: ClassVar[frozenset[str]] = frozenset()
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"recommended": {}, "as_published": {}}
    learnt: ClassVar[tuple[str, ...]] = ()  # names of the arrays that `_fit` sets and `membership` reads

    report_progress: Progress = staticmethod(silent)  # set by whoever shows how far `fit` is
    representation_: str | None = None
    thresholds_: Array
    rules_: tuple[Mapping[str, Any], ...]

    @classmethod
    def options(cls) -> dict[str, Any]:
        """Constructor arguments and their defaults."""
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {parameter.name: parameter.default for parameter in parameters}

    def params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.options()}

    def fit(self, evaluation: Evaluation, *, train: Evaluation | None = None) -> Self:
        """Learn slices from scratch. Rows are put in the order of their ids: row order never matters."""
        who = f"method `{self.name}`"
        evaluation.need(self.needs, who)
        if "representations" in self.needs:
            self.representation_ = evaluation.representation(getattr(self, "representation", None), who)
        ordered = evaluation.by_id()
        self._fit(ordered, train)
        self.thresholds_ = thresholds(self.membership(ordered))
        return self

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        raise NotImplementedError

    def membership(self, evaluation: Evaluation) -> Array:
        raise NotImplementedError

    def matrix(self, evaluation: Evaluation) -> Any:
        """(n, d) the representation this slicer was fitted on, with as many columns as then."""
        name = evaluation.representation(self.representation_, f"method `{self.name}`")
        return evaluation.representations[name]

    def to_state(self) -> State:
        facts = {"params": self.params(), "representation": self.representation_, "rules": list(self.rules_)}
        arrays = {name: np.asarray(getattr(self, name)) for name in (*self.learnt, "thresholds_")}
        return State(self.name, facts, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        new = cls(**state.facts["params"])
        new.representation_ = state.facts["representation"]
        new.rules_ = tuple(state.facts["rules"])
        for name, array in state.arrays.items():
            setattr(new, name, array)
        return new


def check_columns(array: Any, d: int, who: str) -> None:
    """New rows must have the columns the slicer was fitted on."""
    if array.shape[1] != d:
        raise InputError(f"{who} was fitted on {d} columns; got {array.shape[1]}; give the same representation")


def build(cls: Any, preset: str, seed: int, options: Mapping[str, Any]) -> Slicer:
    """A slicer from its class, a preset's options, a seed and the user's own options."""
    if preset not in cls.presets:
        raise unknown(f"preset of method `{cls.name}`", preset, cls.presets)
    known = cls.options()
    for name in options:
        if name not in known:
            raise unknown(f"option of method `{cls.name}`", name, known)
    hints = get_type_hints(cls.__init__)
    for name, value in options.items():
        if name in hints and not _fits(value, hints[name]):
            want = str(hints[name]).removeprefix("typing.")
            want = getattr(hints[name], "__name__", want) if get_origin(hints[name]) is None else want
            raise InputError(f"`{cls.name}.{name}` must be {want}; got {value!r}")
    seeded = {"seed": seed} if "seed" in known else {}
    built: Slicer = cls(**{**seeded, **cls.presets[preset], **options})
    return built


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value from the outside is of the type that a constructor asks for."""
    if hint is Any:
        return True
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and value == value
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return not isinstance(hint, type) or isinstance(value, hint)


def knows_outcome(slicer: Slicer, evaluation: Evaluation) -> bool:
    """Whether membership could be 100% error by construction, so that an approximation must be measured instead.

    A representation of the audited model contains its prediction: reading the label beside it is
    reading the outcome.
    """
    name = getattr(slicer, "representation_", None)
    source = evaluation.source(name) if name is not None else None
    reads = slicer.reads | (source.reads if source else frozenset())
    sees_prediction = "prediction" in reads or (source is not None and source.from_model)
    return "loss" in reads or ("label" in reads and sees_prediction)
