"""The published search on a device gives the light of the CPU's search, here on CPU tensors and in an interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import errata
from errata.bench.loss_problems import blobs, heavy_tails, planted
from errata.core import InputError
from errata.engine import Local, open_engine
from errata.slicers import make
from errata.slicers.spotlight.reader import Reader
from errata.slicers.spotlight.slicer import AdamSettings, Schedule, published_sphere

torch = pytest.importorskip("torch")

from errata.slicers.spotlight.device import DeviceRows, DeviceSearch, FusedSearch, PlainSearch  # noqa: E402

CPU = torch.device("cpu")


class Tensors(Local):
    """An engine whose device is the CPU's tensors."""

    device = CPU


def light_on_tensors(X, losses, settings):
    return DeviceSearch(DeviceRows(X, CPU), settings).light(losses)


def states(X, losses, settings):
    """Before each step of the search on the CPU: mu, log tau, Adam's moments, rate, best, bad; and after the last."""
    reader = Reader(X)
    schedule = Schedule(settings, reader.n)
    at = np.append(-reader.centre, np.log(settings.initial_precision or 1e-4))
    zeros = np.zeros_like(at)
    for i, width in enumerate(schedule.widths):
        first = zeros + schedule.first
        yield at, first, zeros + schedule.second, schedule.rate, schedule.best, schedule.bad
        tau = np.exp(at[-1])
        sums = reader.moments(at[:-1], tau, losses)
        objective, a, b = schedule.slopes(sums.total, sums.mean, float(width))
        pull = 2 * tau * (a * sums.loss_pull + b * sums.pull)
        at = at + schedule.step(i, np.append(pull, -tau * (a * sums.loss_reach + b * sums.reach)))
        schedule.watch(objective)
    yield at, zeros + schedule.first, zeros + schedule.second, schedule.rate, schedule.best, schedule.bad


def follow(search, losses, path, load, read):
    """The largest error of one step, over all steps, each from the CPU's state.

    Free runs part after some hundred steps: the late steps amplify rounding, on the CPU as well.
    """
    search.start(torch.as_tensor(losses))
    worst = 0.0
    for before, after in pairwise(path):
        load(search, before)
        search.step()
        for mine, expected in zip(read(search), after, strict=True):
            if np.all(np.isfinite(expected)):
                worst = max(worst, float(np.abs(np.asarray(mine) - expected).max()))
            else:
                assert np.array_equal(np.isfinite(mine), np.isfinite(expected))
    return worst


def load_plain(search, state):
    names = ("at", "first", "second", "rate", "best", "bad")
    for name, value in zip(names, state, strict=True):
        getattr(search, name).copy_(torch.as_tensor(value))


def read_plain(search):
    return [getattr(search, name).numpy() for name in ("at", "first", "second", "rate", "best", "bad")]


@pytest.mark.parametrize("precision", [None, 0.02])
@pytest.mark.parametrize("make_problem", [lambda: blobs("", 0, True), heavy_tails])
def test_each_plain_step_is_the_published_one(make_problem, precision):
    _, X, losses = make_problem()
    settings = AdamSettings(0.02 * len(X), 1.0, 5e-2, 4, 300, precision)
    path = list(states(X, losses, settings))
    assert path[-1][3] < 5e-2  # a plateau was met
    search = PlainSearch(DeviceRows(X, CPU), settings)
    assert follow(search, losses, path, load_plain, read_plain) < 1e-8


def test_a_free_run_ends_where_the_cpus_does_while_rounding_is_small():
    _, X, losses = blobs("", 0, True)
    settings = AdamSettings(0.02 * len(X), 1.0, 1e-2, 10, 100, None)
    expected = published_sphere(Reader(X), losses, settings)
    light = light_on_tensors(X, losses, settings)
    np.testing.assert_allclose(light.centre, expected.centre, atol=1e-9)
    np.testing.assert_allclose(light.factor, expected.factor, rtol=1e-9)


def test_a_light_that_goes_out_is_kept_as_it_last_shone():
    X = np.random.default_rng(0).normal(50, 1, (200, 3))
    settings = AdamSettings(4.0, 1.0, 1e-2, 10, 50, 1.0)
    light = light_on_tensors(X, np.ones(200), settings)
    np.testing.assert_allclose(light.centre, 0, atol=1e-12)
    assert light.factor == pytest.approx(1.0)


def test_a_light_that_leaves_all_rows_goes_back_to_the_last_one_that_shone():
    _, X, losses = heavy_tails()
    search = PlainSearch(DeviceRows(X, CPU), AdamSettings(120.0, 1.0, 1e-2, 10, 50, 0.01))
    search.start(torch.as_tensor(losses))
    search.step()
    search.step()
    shone = search.last.clone()
    search.at[:-1] += 1e6
    for _ in range(2):
        search.step()
        assert bool(search.dark)
        assert torch.equal(search.at, shone)


def test_a_second_search_starts_afresh():
    _, X, losses = heavy_tails()
    search = DeviceSearch(DeviceRows(X, CPU), AdamSettings(0.02 * len(X), 1.0, 1e-2, 10, 100, None))
    first = search.light(losses)
    search.light(losses[::-1].copy())
    again = search.light(losses)
    assert np.array_equal(first.centre, again.centre)
    assert first.factor == again.factor


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_weights_are_those_of_the_light(kind):
    _, X, losses = heavy_tails()
    X = X.astype(kind)
    rows = DeviceRows(X, CPU)
    light = DeviceSearch(rows, AdamSettings(120.0, 1.0, 1e-2, 10, 100, 0.01)).light(losses)
    assert 0 < np.count_nonzero(rows.weights(light)) < len(X)
    np.testing.assert_allclose(rows.weights(light), light.weights(X.astype(np.float64)), atol=1e-12)


def test_an_engine_with_a_device_finds_the_same_slices():
    X, rate, _ = planted(2000, 16, 8, {0.05: 0.7, 0.08: 0.6}, seed=0)
    rng = np.random.default_rng(1)
    ev = errata.Evaluation(losses=rng.gamma(2.0, rate), representations={"e": X.astype(np.float32)})
    options = {"slices": 2, "advanced.steps": 60, "advanced.learning_rate": 0.1, "advanced.initial_precision": 0.01}
    here = make("spotlight:as_published", options=options).fit(ev)
    there = make("spotlight:as_published", options=options)
    there.engine = Tensors()
    there.fit(ev)
    np.testing.assert_allclose(there.membership(ev), here.membership(ev), atol=1e-7)
    assert [rule["mass"] for rule in there.rules_] == pytest.approx([rule["mass"] for rule in here.rules_])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_the_engine_says_that_there_is_no_gpu():
    with pytest.raises(InputError, match="needs a GPU, and torch finds none here; use the engine `local`"):
        open_engine("cuda")


def load_fused(search, state):
    at, first, second, rate, best, bad = state
    places = search.kernels
    search.mu.copy_(torch.as_tensor(at[:-1]))
    search.first.copy_(torch.as_tensor(first[:-1]))
    search.second.copy_(torch.as_tensor(second[:-1]))
    for name, value in (
        ("LOG_TAU", at[-1]),
        ("TAU", np.exp(at[-1])),
        ("RADIUS", np.exp(-at[-1] / 2)),
        ("FIRST", first[-1]),
        ("SECOND", second[-1]),
        ("RATE", rate),
        ("BEST", best),
        ("BAD", bad),
    ):
        search.numbers[getattr(places, name).value] = float(value)


def read_fused(search):
    number = {
        name: float(search.numbers[getattr(search.kernels, name).value])
        for name in ("LOG_TAU", "FIRST", "SECOND", "RATE", "BEST", "BAD")
    }
    at = np.append(search.mu.numpy(), number["LOG_TAU"])
    first = np.append(search.first.numpy(), number["FIRST"])
    second = np.append(search.second.numpy(), number["SECOND"])
    return [at, first, second, number["RATE"], number["BEST"], number["BAD"]]


def follow_the_kernel():
    """Run by itself with TRITON_INTERPRET, which Triton reads when it is imported."""
    X, _, cluster = planted(300, 6, 5, {0.1: 0.6, 0.15: 0.5}, seed=0)
    X = X.astype(np.float32) + 1
    losses = (cluster == 0) + 0.2 * np.random.default_rng(1).random(len(X))
    settings = AdamSettings(0.05 * len(X), 1.0, 1e-1, 2, 80, 1e-2)  # of 300 lit rows 72 are left
    path = list(states(X, losses, settings))
    search = FusedSearch(DeviceRows(X, CPU, fused=True), settings)
    worst = follow(search, losses, path, load_fused, read_fused)
    lit = int((search.sides > 0).sum())
    assert path[-1][3] < 1e-1
    assert 0 < lit < len(X)
    assert int(search.sums[2 * search.columns]) == lit
    assert worst < 1e-8, worst
    jump = 1e3
    search.start(torch.as_tensor(losses))
    search.step()
    shone = search.last_mu.clone()
    search.mu += jump
    search.numbers[search.kernels.TRAVELLED.value] += jump * X.shape[1]
    search.step()
    assert search.numbers[search.kernels.DARK.value] == 1
    assert torch.equal(search.mu, shone)


def test_the_kernel_follows_the_published_steps_in_tritons_interpreter():
    pytest.importorskip("triton")
    environment = {
        **os.environ,
        "TRITON_INTERPRET": "1",
        "PYTHONPATH": str(Path(errata.__file__).parents[1]),
    }
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    follow_the_kernel()
