"""What a generator finds: cells of a space, some of which are slices, perhaps only beyond a plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit

from ...core import Array
from .space import Axes, nearest

NOWHERE = -1  # the owner of a cell that is in no slice


@dataclass(frozen=True, eq=False)
class Cells:
    """Disjoint regions of one scope: a row belongs to the slice that owns its nearest centre.

    Parameters
    ----------
    generator
        The name of what found them.
    scope
        The rows that are searched, as `rows_in_scope` takes it.
    local
        Axes of the scope within the shared space.
    centres
        (k, r) of the cells, on the local axes.
    owner
        (k,) the slice of each cell; -1 for none.
    risk
        (q + 1,) a linear score for being bad, on the shared axes, with its intercept last.
    cuts
        (s,) least risk of a member; minus infinity where cells alone decide.
    reach
        Largest squared distance of a member from its centre; infinity where cells alone decide.
    """

    generator: str
    scope: Mapping[str, Any]
    local: Axes
    centres: Array
    owner: Array
    risk: Array
    cuts: Array
    reach: float = np.inf

    def members(self, Z: Array) -> Array:
        """(n,) the slice of each row, -1 for none. Z: (n, q) in the shared space, of rows in the scope."""
        P = self.local.reduce(Z)
        cell = nearest(P, self.centres)
        owner: Array = self.owner[cell]
        if np.isfinite(self.reach):
            distance = np.square(P - self.centres[cell]).sum(axis=1)
            owner = np.where(distance <= self.reach, owner, NOWHERE)
        if np.isfinite(self.cuts).any():
            cut = np.append(self.cuts, np.inf)[owner]  # -1 reads the last
            owner = np.where(self.score(Z) >= cut, owner, NOWHERE)
        return owner

    def score(self, Z: Array) -> Array:
        """(n,) how likely a row is bad, on the scale of the logistic regression."""
        scores: Array = Z @ self.risk[:-1] + self.risk[-1]
        return scores

    def weights(self, Z: Array) -> Array:
        """(n, s) 0 outside; inside from .5 to 1, the higher the likelier a row is bad."""
        owner = self.members(Z)
        depth = 0.5 + 0.5 * expit(self.score(Z))
        inside = owner[:, None] == np.arange(len(self.cuts))
        return np.asarray(inside * depth[:, None])

    def to_arrays(self) -> dict[str, Array]:
        """What is saved beside the generator's name and the scope."""
        return {
            "centre": self.local.centre,
            "axes": self.local.axes,
            "centres": self.centres,
            "owner": self.owner,
            "risk": self.risk,
            "cuts": self.cuts,
            "reach": np.array(self.reach),
        }

    @classmethod
    def from_arrays(cls, generator: str, scope: Mapping[str, Any], arrays: Mapping[str, Array]) -> Self:
        """Cells from what was saved."""
        local = Axes(arrays["centre"], arrays["axes"])
        reach = float(arrays["reach"])
        return cls(generator, scope, local, arrays["centres"], arrays["owner"], arrays["risk"], arrays["cuts"], reach)
