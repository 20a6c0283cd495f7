"""Methods of others that read more of a row than they declare."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

import errata
from errata import Evaluation
from errata.bench.null_worlds import world
from errata.core import Array
from errata.slicers import BaseSlicer
from errata.slicers.undeclared import undeclared_slices

N = 1500


class Toy(BaseSlicer):
    """Rows of one column, with a second slice that is honest."""

    name = "toy"
    needs = frozenset({"representations"})

    def __init__(self, representation: str | None = None):
        self.representation = representation

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        self.rules_ = ({"kind": "cut"}, {"kind": "cut"})

    def membership(self, evaluation: Evaluation) -> Array:
        first = np.asarray(self.matrix(evaluation))[:, 0]
        return np.stack([self.wanted(evaluation, first), first < -1], axis=1).astype(float)

    def wanted(self, evaluation: Evaluation, first: Array) -> Any:
        return first > 1


class ReadsErrors(Toy):
    name = "reads-errors"

    def wanted(self, evaluation: Evaluation, first: Array) -> Any:
        return evaluation.errors


class ReadsLosses(Toy):
    name = "reads-losses"

    def wanted(self, evaluation: Evaluation, first: Array) -> Any:
        return evaluation.losses > 1 if evaluation.losses is not None else first > 1


class ReadsLabels(Toy):
    """Declares the prediction, and reads the label beside it."""

    name = "reads-labels"

    @property
    def reads(self) -> frozenset[str]:
        return frozenset({"prediction"})

    def wanted(self, evaluation: Evaluation, first: Array) -> Any:
        return evaluation.labels != evaluation.predictions


class Fails(Toy):
    """Fails where rows have other labels than it knows of."""

    name = "fails"

    def wanted(self, evaluation: Evaluation, first: Array) -> Any:
        assert evaluation.labels is not None
        known = vars(self).setdefault("known", {})
        for row, label in zip(evaluation.row_ids.tolist(), evaluation.labels.tolist(), strict=True):
            if known.setdefault(row, label) != label:
                raise ValueError("not these rows")
        return first > 1


class Random(Toy):
    name = "random"

    def wanted(self, evaluation: Evaluation, first: Array) -> Any:
        return np.random.default_rng().random(len(first)) < 0.2


class Declares(ReadsErrors):
    name = "declares"

    @property
    def reads(self) -> frozenset[str]:
        return frozenset({"label", "prediction"})


class LooksUp(Toy):
    """Has the outcomes from elsewhere, by the ids of rows."""

    name = "looks-up"
    wrong: ClassVar[frozenset[Any]] = frozenset()

    def wanted(self, evaluation: Evaluation, first: Array) -> Any:
        return np.isin(evaluation.row_ids, list(self.wrong))


def looking_up(rows: Evaluation) -> type[Toy]:
    errors = frozenset(rows.row_ids[rows.errors].tolist())
    return type("LooksUpThese", (LooksUp,), {"wrong": errors, "__module__": __name__})


LIARS = (ReadsErrors, ReadsLosses, ReadsLabels, Fails)


@pytest.mark.parametrize("liar", LIARS, ids=lambda cls: cls.name)
def test_a_liar_is_caught(liar: type[Toy]) -> None:
    for kind in ("random", "label", "calibrated", "miscal"):
        rows = world(kind, N, seed=5)
        slicer = liar().fit(rows.rows(np.arange(N) % 2 == 0))
        found = undeclared_slices(slicer, rows, np.arange(N) % 2 == 1)
        assert found == ([0, 1] if liar is Fails else [0])  # the honest slice beside it stays


def test_who_looks_outcomes_up_by_ids_is_caught() -> None:
    rows = world("random", N, seed=5)
    slicer = looking_up(rows)().fit(rows.rows(np.arange(N) % 2 == 0))
    assert undeclared_slices(slicer, rows, np.arange(N) % 2 == 1) == [0]
    audit = errata.audit(rows, methods=[slicer])
    assert audit.confirmed == ()
    assert any("looks rows up by their ids" in note for note in audit.settings["notes"])


@pytest.mark.parametrize("honest", [Toy, Random, Declares], ids=lambda cls: cls.name)
def test_who_is_honest_is_not(honest: type[Toy]) -> None:
    rows = world("calibrated", N, seed=5)
    slicer = honest().fit(rows)
    assert undeclared_slices(slicer, rows, np.ones(N, dtype=bool)) == []


def test_a_liars_slices_are_approximated_in_an_audit() -> None:
    """Of random errors nothing is true: without the check the liar had a confirmed slice beyond everything."""
    rows = world("random", N, seed=5)
    audit = errata.audit(rows, methods=[ReadsErrors()])
    assert [slice_.verdict for slice_ in audit.slices if slice_.verdict == "confirmed"] == []
    assert any("`reads-errors` reads outcomes of rows that it does not declare" in n for n in audit.settings["notes"])
    honest = errata.audit(rows, methods=[Toy()])
    assert not any("does not declare" in note for note in honest.settings["notes"])


def test_no_row_is_copied_to_ask_one_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = world("calibrated", N, seed=5)
    slicer = errata.slicers.make("high-loss").fit(rows)
    monkeypatch.setattr(errata.Evaluation, "rows", lambda *some: pytest.fail("rows were copied"))
    assert undeclared_slices(slicer, rows, np.arange(N) % 2 == 1) == []


@pytest.mark.parametrize("name", sorted(errata.slicers.SLICERS))
def test_ours_are_held_to_what_they_declare(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = world("calibrated", N, seed=5)
    slicer = errata.slicers.make(name)
    try:
        slicer.fit(rows.rows(np.arange(N) % 2 == 0))
    except errata.ErrataError as error:
        pytest.skip(str(error))
    monkeypatch.setattr("errata.slicers.undeclared.is_ours", lambda slicer: False)
    assert undeclared_slices(slicer, rows, np.arange(N) % 2 == 1) == []
