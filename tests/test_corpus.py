"""The corpus of bad inputs is large and its cases differ; a few seconds of the fuzzer, the kills and the writers."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import test_attacks
import test_bad_inputs

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def load_benchmark(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)  # as Python does for a script
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_corpus_has_at_least_300_distinct_inputs() -> None:
    """Each of these is one test elsewhere: exit 2, one sentence, nothing written."""
    distinct = set()
    for arrays in test_attacks.ARRAYS.values():
        digest = hashlib.sha256()
        for name, array in arrays.items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(repr(array.tolist()).encode("utf-8", "surrogatepass"))
        distinct.add(digest.hexdigest())
    assert len(distinct) == len(test_attacks.ARRAYS)
    damaged = {(place, data) for place in ("labels", "embedding") for data in test_attacks.MEMBERS.values()}
    classes = {(place, name) for place in ("labels", "predictions") for name in test_attacks.CLASSES}
    tables = (test_bad_inputs.AUDIT, test_bad_inputs.APPLY, test_attacks.FLAGS)
    assert len(distinct) + len(damaged) + len(classes) + sum(map(len, tables)) >= 300


def test_the_fuzzer_finds_no_fault_in_a_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three cases of each kind; `python benchmarks/fuzz.py --minutes 60` runs thousands."""
    fuzz = load_benchmark("fuzz", monkeypatch)
    monkeypatch.setenv("ERRATA_TRACEBACK", "1")
    numbers = (signal.SIGALRM, signal.SIGPROF)
    before = [signal.signal(number, fuzz._alarm) for number in numbers]
    try:
        assert fuzz.run_all(7, range(3 * len(fuzz.KINDS))) == 0
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def test_a_fault_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the fuzzer could be blind."""
    fuzz = load_benchmark("fuzz", monkeypatch)

    class Stock:
        root = tmp_path

    def broken(*_: Any) -> str:
        raise fuzz.FaultError("exit 70")

    fuzz.KINDS = {"broken": broken}
    assert fuzz.run_case(Stock(), 0, 0, Counter(), alone=False) == "FaultError: exit 70"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_kills_and_writers_leave_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python benchmarks/writers.py --kills 200 --writers 120` in small."""
    writers = load_benchmark("writers", monkeypatch)
    audit = writers._audit()
    writers.store.save(audit, tmp_path / "whole")
    whole = writers._contents(tmp_path / "whole")
    kills = writers._kills(audit, tmp_path / "kills", whole, 8, 0.05, np.random.default_rng(0))
    assert "'half': 0" in kills, kills
    four_twice = writers._writers(audit, tmp_path / "writers", whole, 8)
    assert "'half': 0" in four_twice, four_twice
    assert "'absent': 0" in four_twice, four_twice
