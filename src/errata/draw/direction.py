"""From a caption towards a failure direction (Jain et al. 2023, appendix A.7): embeddings that a decoder can draw.

Rows and texts lie on the sphere of unit length, so one turns from the one to the other instead of adding them.
Positive is easy and negative is hard, as everywhere: the hard side of a direction w is -w.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..core import Array, Audit, InputError, Slice

ALPHA = 0.1  # the paper's, which goes from 0 to .3
SAME = 1e-9  # of a vector of length one beside another: below this there is no way to turn

Side = Literal["hard", "easy"]


def slerp(reference: Array, direction: Array, alpha: float) -> Array:
    """(d,) of length one: turned from `reference` (d,) by the share alpha of the angle to `direction` (d,)."""
    start = _unit_vector("reference", reference)
    end = _unit_vector("direction", direction)
    if len(start) != len(end):
        raise InputError(
            f"`direction` has {len(end)} columns where `reference` has {len(start)}; take both from the same space"
        )
    if not 0 <= alpha <= 1:
        raise InputError(f"`alpha` must be from 0 to 1, a share of the angle; got {alpha!r}")
    cosine = float(start @ end)
    across = end - cosine * start
    sine = float(np.linalg.norm(across))
    if sine < SAME and cosine < 0:
        raise InputError("`direction` is the opposite of `reference`: no way round is nearer; give another reference")
    if sine < SAME:
        return start
    angle = alpha * np.arctan2(sine, cosine)
    turned: Array = np.cos(angle) * start + np.sin(angle) * (across / sine)
    turned /= np.linalg.norm(turned)  # rounding
    return turned


def walk(reference: Array, normal: Array, alphas: Sequence[float] | Array = (ALPHA,), side: Side = "hard") -> Array:
    """(a, d) of length one, an embedding for each alpha between a reference caption's (d,) and one side of a direction.

    normal: (d,) points to easy, in the space of the reference itself: see `normal_of`.
    """
    if side not in ("hard", "easy"):
        raise InputError(f'`side` must be "hard" or "easy"; got {side!r}')
    shares = np.asarray(alphas, dtype=np.float64)
    if shares.ndim != 1 or not len(shares):
        raise InputError(f"`alphas` must be a list of shares, at least one; got shape {shares.shape}")
    sign = -1.0 if side == "hard" else 1.0
    towards = np.asarray(normal, dtype=np.float64) * sign
    return np.stack([slerp(reference, towards, float(alpha)) for alpha in shares])


def normal_of(audit: Audit, slice_: Slice) -> Array:
    """(d,) of length one, from hard to easy: the direction of a slice in the space of its representation.

    A direction that was fitted to standardised columns points elsewhere in the space itself, and is refused.
    """
    if slice_.rule.get("kind") != "direction":
        raise InputError(
            f"slice `{slice_.id}` is no side of a direction (its rule is of kind {slice_.rule.get('kind')!r}); "
            "give one that method `directions` found"
        )
    names = slice_.rule["arrays"]
    arrays = audit.slicers[slice_.slicer].to_state().arrays
    if (arrays[names["centre"]] != 0).any() or (arrays[names["scale"]] != 1).any():
        raise InputError(
            f"the direction of slice `{slice_.id}` was fitted to standardised columns, which no decoder knows; "
            "fit `directions` with standardise=False"
        )
    normal: Array = arrays[names["direction"]][slice_.column]
    return normal


def _unit_vector(name: str, values: Array) -> Array:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1:
        raise InputError(f"`{name}` must be one embedding, shape (d,); got shape {vector.shape}")
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length == 0:
        what = "is all zeros" if length == 0 else "has NaN or infinity"
        raise InputError(f"`{name}` {what} and points nowhere; give an embedding")
    scaled: Array = vector / length
    return scaled
