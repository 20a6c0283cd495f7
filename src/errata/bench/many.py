"""Two hundred groups, six of them bad: does an audit of many rows find the six, and what does it cost?"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, Evaluation, InputError, MissingInput, Source
from .captured import run_audit
from .metrics import mean_and_error
from .planted import match_group

GROUPS = 200
BAD = 6
DIMENSIONS = 64
BAD_RATE = 0.60
RATE = 0.08
SPREAD = 1.0  # of the groups' centres, in standard deviations of a group
FEWEST_ROWS = 4000  # ten held-out rows a group
WARM_UP_ROWS = 600
BLOCK = 10_000  # rows made at a time, so that making them takes no memory beside them


@dataclass(frozen=True, eq=False)
class ManyGroups:
    """The rows, and which of them are in each of the bad groups."""

    evaluation: Evaluation
    group: Array  # (n,) int; the bad ones are 0 to BAD - 1


def make_groups(n: int, seed: int) -> ManyGroups:
    """Normal groups around random centres in a foreign representation; labels are fair coins."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0, SPREAD, (GROUPS, DIMENSIONS)).astype(np.float32)
    group = rng.permutation(np.arange(n) % GROUPS)
    X = np.empty((n, DIMENSIONS), dtype=np.float32)
    for start in range(0, n, BLOCK):
        rows = slice(start, start + BLOCK)
        X[rows] = rng.standard_normal(X[rows].shape, dtype=np.float32)
        X[rows] += centres[group[rows]]
    labels = rng.integers(0, 2, n)
    wrong = rng.random(n) < np.where(group < BAD, BAD_RATE, RATE)
    evaluation = Evaluation(
        labels=labels,
        predictions=labels ^ wrong,
        representations={"x": X},
        sources={"x": Source(from_model=False)},
    )
    return ManyGroups(evaluation, group)


def check_rows(n: int) -> None:
    """Raise InputError for too few rows to hold two hundred groups."""
    if n < FEWEST_ROWS:
        raise InputError(f"`many` needs at least {FEWEST_ROWS:,} rows; got {n:,}")


def judge_many(n: int, method: str, seed: int, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """One audit, in a process of its own: the most memory that a process ever held is all that it can tell."""
    check_rows(n)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure_many, n, method, seed, options).result()


def measure_many(n: int, method: str, seed: int, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """How many of the bad groups an audit finds, by slices of which precision and recall, at which cost.

    memory: the most that the process held while it audited, beyond what it held before the rows were made, over the
    size of the representation, which is counted too.
    """
    facts = {"n": n, "method": method, "seed": seed, "groups": BAD}
    try:
        # What is imported on the way is no cost of the rows.
        run_audit(make_groups(WARM_UP_ROWS, seed).evaluation, method, seed, options)
    except MissingInput as error:
        return {**facts, "note": str(error)}
    before = memory_now()
    made = make_groups(n, seed)
    start = time.perf_counter()
    result = run_audit(made.evaluation, method, seed, options)
    seconds = time.perf_counter() - start
    size = n * DIMENSIONS * np.dtype(np.float32).itemsize
    matches = [match_group(result, made.group == bad) for bad in range(BAD)]
    precision, _ = mean_and_error([match.precision for match in matches])
    recall, _ = mean_and_error([match.recall for match in matches])
    return {
        **facts,
        "found": sum(match.found for match in matches),
        "precision": precision,
        "recall": recall,
        "slices": len(result.confirmed),
        "seconds": seconds,
        "memory": (most_memory() - before) / size,
        "note": None,
    }


def most_memory() -> int:
    """Bytes: the most that this process has held."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def memory_now() -> int:
    """Bytes that this process holds; where the system does not say, the most that it has held."""
    status = Path("/proc/self/status")
    if not status.exists():
        return most_memory()
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024
