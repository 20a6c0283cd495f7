"""What the benchmarks on one GPU share."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch


def seconds(work: Callable[[], object], times: int = 5) -> float:
    """The median of some runs, each until the device has done its work."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - began)
    return float(np.median(taken))
