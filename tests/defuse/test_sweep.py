"""The sweep over strengths: who may be chosen, who is, and what is kept of the others."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from errata.core import InputError
from errata.defuse import DefuseSettings
from errata.defuse.sweep import STRENGTHS, Candidate, Validated, choose, eligible, preference, sweep
from errata.train import TuningEpoch

BEFORE = Validated(0.9, 900)  # with a standard error of .01


def candidates(*told: tuple[float, float, float]) -> list[Candidate]:
    """(strength, validation accuracy, tuning accuracy) of each."""
    return [Candidate(strength, 0, held, learnt) for strength, held, learnt in told]


def test_the_standard_error_and_the_published_strengths_by_hand():
    assert BEFORE.floor == pytest.approx(0.89)  # sqrt(.9 * .1 / 900) below
    assert Validated(1.0, 5).floor == 1
    assert len(STRENGTHS) == 17
    assert (STRENGTHS[0], STRENGTHS[-1]) == (1e-10, 1000)
    assert list(STRENGTHS) == sorted(STRENGTHS)


def test_no_harm_is_at_most_a_standard_error():
    told = candidates((0.1, 0.9, 0.2), (1, 0.8901, 0.6), (10, 0.8899, 0.9), (100, 0.95, 0.1))
    assert eligible(told, BEFORE, "no-harm").tolist() == [True, True, False, True]
    assert choose(told, BEFORE, "no-harm") == 1


def test_where_all_do_harm_the_one_that_does_least_is_taken():
    told = candidates((0.1, 0.5, 0.2), (1, 0.7, 0.1), (10, 0.6, 0.9))
    assert eligible(told, BEFORE, "no-harm").tolist() == [False, True, False]
    assert choose(told, BEFORE, "no-harm") == 1


def test_by_validation_the_most_accurate_is_taken_as_published():
    """Whatever it learnt of the regions; of equal ones what was learnt decides."""
    told = candidates((0.1, 0.93, 0.1), (1, 0.92, 0.9))
    assert eligible(told, BEFORE, "validation").tolist() == [True, False]
    assert choose(told, BEFORE, "validation") == 0
    assert choose(candidates((0.1, 0.93, 0.1), (1, 0.93, 0.9)), BEFORE, "validation") == 1


@pytest.mark.parametrize(
    ("told", "chosen"),
    [
        (((0.1, 0.9, 0.8), (1, 0.9, 0.8), (10, 0.9, 0.7)), 0),  # of equal ones the weakest
        (((10, 0.9, 0.8), (1, 0.9, 0.8)), 1),  # in whatever order
        (((0.1, 0.9, 0.8), (1, 0.95, 0.8)), 1),  # but validation counts before strength
    ],
)
def test_equals_are_settled(told, chosen):
    assert choose(candidates(*told), BEFORE, "no-harm") == chosen


def test_an_epoch_is_preferred_as_a_strength_is_chosen():
    """Harmless ones by what they learnt of the regions, others by validation alone; or all by it, as published."""
    told = [(0.8901, 0.6), (0.8899, 0.9), (0.95, 0.5), (0.7, 1.0)]
    epochs = [TuningEpoch(j, 1.0, *one) for j, one in enumerate(told)]
    for selection, order in (("no-harm", [0, 2, 1, 3]), ("validation", [2, 0, 1, 3])):
        prefer = preference(BEFORE, selection)
        assert [one.number for one in sorted(epochs, key=prefer, reverse=True)] == order
        best = sweep(lambda strength: (Net(strength), epochs), [1.0], BEFORE, selection=selection).candidates[0]
        assert (best.epoch, best.validation_accuracy, best.tuning_accuracy) == (order[0], *told[order[0]])


class Net:
    """Stands for a model."""

    def __init__(self, strength: float):
        self.strength = strength


def tuner(table: dict[float, tuple[float, float]]) -> Callable[[float], Any]:
    return lambda strength: (Net(strength), [TuningEpoch(0, 1.0, *table[strength])])


@pytest.mark.parametrize(("selection", "chosen"), [("no-harm", 1), ("validation", 3)])
def test_a_sweep_keeps_the_model_that_is_chosen(selection, chosen):
    table = {0.1: (0.7, 0.3), 1.0: (0.9, 0.8), 10.0: (0.6, 1.0), 100.0: (0.91, 0.5)}
    shares: list[float] = []
    visited: list[tuple[float, float]] = []
    found = sweep(
        tuner(table), list(table), BEFORE, selection=selection, progress=lambda stage, share: shares.append(share),
        visit=lambda candidate, model: visited.append((candidate.strength, model.strength)),  # type: ignore[arg-type]
    )  # fmt: skip
    assert found.chosen == chosen
    assert found.model.strength == list(table)[chosen]
    assert [(one.strength, (one.validation_accuracy, one.tuning_accuracy)) for one in found.candidates] == [
        *table.items()
    ]
    assert visited == [(strength, strength) for strength in table]
    assert shares == [0.25, 0.5, 0.75, 1.0]
    assert found.selection == selection


def test_a_candidate_is_its_best_epoch_of_equal_ones_the_last():
    history = [
        TuningEpoch(0, 1.0, 0.8, 0.1),
        TuningEpoch(1, 0.5, 0.9, 0.3),
        TuningEpoch(2, 0.4, 0.9, 0.3),
        TuningEpoch(3, 0.3, 0.7, 0.9),
    ]
    found = sweep(lambda strength: (Net(strength), history), [1.0], BEFORE)
    assert found.candidates == (Candidate(1.0, 2, 0.9, 0.3),)


@pytest.mark.parametrize("selection", ["no-harm", "validation"])
def test_who_falls_behind_never_comes_back(selection):
    """So that its model need not be kept: in 200 sweeps of ten."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        told = candidates(*zip(range(10), rng.normal(0.89, 0.02, 10), rng.random(10), strict=True))
        able = [eligible(told[: j + 1], BEFORE, selection) for j in range(10)]
        for before, after in pairwise(able):
            assert not (after[: len(before)] & ~before).any()


def test_models_that_fell_behind_are_let_go():
    alive: list[weakref.ref[Net]] = []

    def tune(strength: float) -> Any:
        net = Net(strength)
        alive.append(weakref.ref(net))
        assert sum(one() is not None for one in alive) <= 3  # the best so far, the last, and this one
        return net, [TuningEpoch(0, 1.0, strength / 100, 0.5)]

    assert sweep(tune, range(1, 20), BEFORE, selection="validation").chosen == 18  # type: ignore[arg-type]


def test_no_strength_is_refused():
    with pytest.raises(InputError, match="a correction needs at least one strength; give some, such as"):
        sweep(tuner({}), [], BEFORE)


# --- the settings of a whole run --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"shown": 0}, "`shown` must be a whole number, at least 1; got 0"),
        ({"testing": 0}, "`testing` must be a whole number, at least 1"),
        ({"rho": 1.0}, r"`rho` must be a finite number, in \[0, 1\); got 1.0"),
        ({"selection": "best"}, "`selection` must be `no-harm` or `validation`; got 'best'"),
    ],
)
def test_settings_that_cannot_be_are_refused(more, words):
    with pytest.raises(InputError, match=words):
        DefuseSettings(**more)


def test_the_published_settings_are_those_of_the_paper():
    paper = DefuseSettings.as_published(seed=3)
    assert (paper.a, paper.b, paper.scale, paper.centred) == (50, 50, 1, False)
    assert (paper.beta, paper.epochs, paper.batch, paper.latent) == (4, 800, 2048, 10)
    assert (paper.q, paper.cap, paper.most, paper.components, paper.least) == (500, 100, 50_000, 100, 0.01)
    assert (paper.tau, paper.shown, paper.rho, paper.tuning, paper.testing) == (0.5, 10, 0.5, 256, 256)
    assert (paper.tune_lr, paper.tune_batch, paper.tune_epochs, paper.selection) == (1e-3, 256, 3, "validation")
    assert len(paper.strengths) == 17
    assert paper.seed == 3


@pytest.mark.parametrize(
    ("n", "expected"),  # images -> batch, epochs, anneal, tune_batch, tune_epochs
    [(60_000, (1024, 150, 500, 256, 3)), (12_000, (240, 150, 500, 256, 15)), (450, (32, 150, 225, 32, 20)),
     (40, (32, 150, 30, 32, 20)), (2_000_000, (1024, 10, 500, 256, 3))],
)  # fmt: skip
def test_the_trainings_follow_the_data(n, expected):
    found = DefuseSettings().for_data(n)
    assert (found.batch, found.epochs, found.anneal, found.tune_batch, found.tune_epochs) == expected
    assert found.anneal <= found.epochs * -(-n // found.batch) / 10


@pytest.mark.parametrize("settings", [DefuseSettings(anneal=5000, epochs=12), DefuseSettings.as_published(epochs=12)])
def test_annealing_that_is_longer_than_the_training_is_told(settings):
    steps = 12 * -(-600 // (settings.batch or 32))
    told = settings.for_data(600).unfinished_annealing(600)
    assert told.startswith(
        f"KL never counted in full: `anneal` asks for {settings.anneal:,} steps and training had {steps}"
    )
    assert f"ended at {steps / settings.anneal:.1%} of `beta`" in told
    assert DefuseSettings().for_data(600).unfinished_annealing(600) == ""
    assert DefuseSettings.as_published().for_data(600).unfinished_annealing(600) == ""
    assert DefuseSettings(anneal=228, epochs=12).for_data(600).unfinished_annealing(600) == ""  # 19 batches


def test_annealing_ends_inside_the_run_and_what_was_asked_for_stays():
    short = DefuseSettings(epochs=3, batch=64).for_data(640)
    assert (short.epochs, short.batch, short.anneal) == (3, 64, 3)
    assert DefuseSettings(anneal=77).for_data(640).anneal == 77
    stored = {"epochs": 150, "batch": 1024, "anneal": 500}
    resumed = DefuseSettings(batch=8).for_data(640, stored)  # a run of before has its own
    assert (resumed.epochs, resumed.batch, resumed.anneal) == (150, 8, 500)
    assert DefuseSettings.as_published().for_data(640).epochs == 800
