"""How strongly some rows speak against the rate of all: the currency in which candidates are compared and priced."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaln

from .blocks import Array


def log_evidence(n: Array | float, bad: Array | float, base: float) -> Any:
    """Logarithm of the Bayes factor of an unknown rate, uniform between 0 and 1, against the rate `base`.

    Minus infinity where the rows are not worse than `base`: a slice claims to be worse.

    Parameters
    ----------
    n
        Rows, of one set or of many.
    bad
        How many of them are bad.
    base
        The rate of the rows around them.
    """
    n = np.asarray(n, dtype=np.float64)
    bad = np.asarray(bad, dtype=np.float64)
    base = float(np.clip(base, 1e-6, 1 - 1e-6))
    evidence = betaln(bad + 1, n - bad + 1) - bad * np.log(base) - (n - bad) * np.log1p(-base)
    return np.where(bad > base * n, evidence, -np.inf)
