"""What every slicing method is: weights in, weights out, and nothing else.

A slicer returns membership, a threshold and a rule for each slice. Sizes, rates, intervals, words and images are
shared code, so methods compare fairly and stay short. No slicer sees a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from ..core import Array, Evaluation, InputError, Progress, State, silent
from ..core.errors import unknown
from ..core.membership import thresholds
from ..engine import Engine, Local
from .options import (
    SEED,
    Interval,
    check_names,
    check_values,
    constructor_options,
    current_name,
    merge,
)

OUTCOMES = frozenset({"label", "prediction", "loss"})  # what `reads` names


@runtime_checkable
class Slicer(Protocol):
    """What an audit asks of a method.

    The habits are scikit-learn's: `__init__` stores, `fit` starts afresh, what is fitted ends in an underscore.

    Attributes
    ----------
    name
        The name of the method, as `--method` takes it.
    needs
        Fields of the evaluation that `fit` cannot do without.
    presets
        Name -> options; at least "recommended" and "as_published".
    thresholds_
        (s,) weights from which a row is a member.
    rules_
        One JSON mapping for each slice. Its `scope` names the rows that it is about, such as {"label": 3}; its `reads`,
        where it has them, are what membership in this slice reads of a row's outcome, in place of those of the slicer.
    report_progress
        Set by whoever shows progress; called with the method's name and the share of `fit` that is done.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]]
    thresholds_: Array
    rules_: tuple[Mapping[str, Any], ...]
    report_progress: Progress

    @property
    def reads(self) -> frozenset[str]:
        """What `membership` reads of a row's outcome: "label", "prediction", "loss"."""
        ...

    def fit(self, evaluation: Evaluation, *, train: Evaluation | None = None) -> Self:
        """Learn slices from search rows."""
        ...

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) weights in [0, 1], the most important slice first."""
        ...

    def to_state(self) -> State:
        """What is saved."""
        ...

    @classmethod
    def from_state(cls, state: State) -> Self:
        """A fitted slicer from what was saved."""
        ...


class BaseSlicer:
    """What slicers share: options, sorted rows, thresholds, saving. A method writes `_fit` and `membership`.

    Attributes
    ----------
    limits
        Option -> the numbers that it allows; keys of `advanced` too. Those of base classes hold as well.
    advanced_type
        A dataclass of the options that are rarely set; the constructor takes them as the mapping `advanced`.
    renamed
        Option of version 0.1 -> its name today; keys of `advanced` as `advanced.KEY`.
    own_scopes
        "none", "label" or "prediction" -> the options by which the method searches there itself; others wrap it.
    refused_scopes
        Those that make no sense, each with the reason.
    reads_probs
        Whether probabilities are read: hard predictions are made soft where there are none.
    fitted_arrays
        Names of the arrays that `_fit` sets and `membership` reads.
    report_progress
        Called with the method's name and the share of `fit` that is done; set by whoever shows it.
    engine
        Who runs passes over many rows; set by whoever chooses one.
    representation_
        The representation that the slicer was fitted on.
    unlabelled_rows
        Set before `fit`: more rows, of which representations alone are known; a fit that reads nothing else of a row
        may use them.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"recommended": {}, "as_published": {}}
    limits: ClassVar[Mapping[str, Interval]] = {"seed": SEED}
    advanced_type: ClassVar[type[Any] | None] = None
    renamed: ClassVar[Mapping[str, str]] = {}
    own_scopes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    refused_scopes: ClassVar[Mapping[str, str]] = {}
    reads_probs: ClassVar[bool] = False
    fitted_arrays: ClassVar[tuple[str, ...]] = ()

    report_progress: Progress = staticmethod(silent)
    engine: Engine = Local()
    representation_: str | None = None
    unlabelled_rows: Evaluation | None = None
    thresholds_: Array
    rules_: tuple[Mapping[str, Any], ...]

    @property
    def reads(self) -> frozenset[str]:
        """What `membership` reads of a row beside representations and metadata."""
        return frozenset()

    @classmethod
    def options(cls) -> dict[str, Any]:
        """Constructor arguments and their defaults."""
        return constructor_options(cls)

    def params(self) -> dict[str, Any]:
        """Constructor arguments and their values."""
        return {name: getattr(self, name) for name in self.options()}

    def fit(self, evaluation: Evaluation, *, train: Evaluation | None = None) -> Self:
        """Learn slices from scratch. Rows are put in the order of their ids: row order never matters."""
        who = f"method `{self.name}`"
        evaluation.need(self.needs, who)
        check_values(type(self), self.params())
        if "representations" in self.needs:
            self.representation_ = evaluation.representation(getattr(self, "representation", None), who)
        ordered = evaluation.by_id()
        self._fit(ordered, train)
        self.thresholds_ = self._thresholds(ordered)
        return self

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        raise NotImplementedError

    def _thresholds(self, evaluation: Evaluation) -> Array:
        """(s,) as many rows are members as the weights sum to."""
        return thresholds(self.membership(evaluation))

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) weights in [0, 1], the most important slice first."""
        raise NotImplementedError

    def matrix(self, evaluation: Evaluation) -> Any:
        """(n, d) the representation this slicer was fitted on."""
        name = evaluation.representation(self.representation_, f"method `{self.name}`")
        return evaluation.representations[name]

    def to_state(self) -> State:
        """What is saved: options, rules and the fitted arrays."""
        facts = {"params": self.params(), "representation": self.representation_, "rules": list(self.rules_)}
        arrays = {name: np.asarray(getattr(self, name)) for name in (*self.fitted_arrays, "thresholds_")}
        return State(self.name, facts, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """A fitted slicer from what was saved, also by version 0.1 with its names of options."""
        params = {current_name(cls, name): value for name, value in state.facts["params"].items()}
        new = cls(**merge(params))
        new.representation_ = state.facts["representation"]
        new.rules_ = tuple(state.facts["rules"])
        for name, array in state.arrays.items():
            setattr(new, name, array)
        for name in (*cls.fitted_arrays, "thresholds_"):
            if not hasattr(new, name):  # some have a value where versions before them saved none
                raise InputError(f"a saved `{cls.name}` has no array `{name}`; it is damaged: run the audit again")
        return new


def check_columns(array: Any, d: int, who: str) -> None:
    """New rows must have the columns the slicer was fitted on."""
    if array.shape[1] != d:
        raise InputError(f"{who} was fitted on {d} columns; got {array.shape[1]}; give the same representation")


def checked_options(cls: Any, preset: str, seed: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a slicer's class: a preset's options, a seed and the user's own; bad values are refused here."""
    if preset not in cls.presets:
        raise unknown(f"preset of method `{cls.name}`", preset, cls.presets)
    check_names(cls, options)
    defaults = constructor_options(cls)
    seeded = {"seed": seed} if "seed" in defaults else {}
    chosen = merge(seeded, cls.presets[preset], options)
    check_values(cls, {**defaults, **chosen})
    return chosen


def build(cls: Any, preset: str, seed: int, options: Mapping[str, Any]) -> Slicer:
    """A slicer from its class, and what `checked_options` takes."""
    slicer: Slicer = cls(**checked_options(cls, preset, seed, options))
    return slicer


def clone(slicer: Slicer) -> Slicer:
    """An unfitted slicer with the same options, as scikit-learn's `clone`."""
    copy: Slicer = type(slicer)(**{name: getattr(slicer, name) for name in constructor_options(type(slicer))})
    return copy


def knows_outcome(slicer: Slicer, evaluation: Evaluation, j: int | None = None) -> bool:
    """Whether membership could be 100% error by construction, so that an approximation must be measured instead.

    A representation of the audited model contains its prediction: reading the label beside it is reading the outcome.
    Where rows were chosen by their label, every slice reads it.

    Parameters
    ----------
    slicer
        A fitted method.
    evaluation
        Says of each representation whether it is the model's own, and what of a row's outcome it reads.
    j
        The slice that is asked about; its rule may say what it reads. None: what `slicer.reads` says of all of them.
    """
    rule = {} if j is None else slicer.rules_[j]
    reads = frozenset(rule.get("reads", slicer.reads)) | (OUTCOMES & frozenset(rule.get("scope") or {}))
    if evaluation.label_is_given:
        reads |= {"label"}
    sees_prediction = "prediction" in reads
    name = getattr(slicer, "representation_", None)
    if name is not None:
        source = evaluation.source(name)
        reads |= source.reads
        sees_prediction = "prediction" in reads or source.from_model
    return "loss" in reads or ("label" in reads and sees_prediction)
