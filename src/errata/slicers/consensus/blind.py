"""Errors first: the region in which most neighbours are bad, and the groups that it consists of.

Where a model is blind nearly every row of a region is bad. The region is drawn by a vote of neighbours, which never
counts a row's own outcome; its groups are what several mixtures agree on (evidence accumulation, Fred and Jain 2005).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core import Array
from ..numerics import pick, unconverged

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

NEIGHBOURS = 10
VOTE = 0.5
LEAST_RATE = 0.75  # of a region by the votes of others: below it a model errs often, but is not blind
BLIND_RATE = 0.9  # from which its groups enter the choice first, and stay
MOST_VOTERS = 8000
FEWEST_BAD = 8
FEWEST_ROWS = 12  # of a group
MOST_ROWS = 1500  # of the region, that mixtures are fitted to
MOST_AROUND = 4000  # rows of the scope, that mixtures of all rows are fitted to
COMPONENTS = (12, 24, 40)  # of mixtures of all rows, which count twice
ITERATIONS = 12  # of those; a mixture that still drifts parts rows as well
LOCAL_AXES = (3, 4, 6, 8)  # of mixtures of the region, whose components are counted by BIC
MOST_COMPONENTS = 8
DISAGREE = 0.4  # share of mixtures that may part two rows of one group, on average


def vote(P: Array, search: Array, bad: Array, seed: int) -> Array:
    """(n,) share of bad ones among the nearest search rows, itself left out.

    Parameters
    ----------
    P
        (n, r) rows on local axes.
    search
        (m,) positions of the search rows in P.
    bad
        (m,) bool.
    seed
        Of the voters, where there are many search rows.
    """
    from sklearn.neighbors import NearestNeighbors

    some = pick(len(search), MOST_VOTERS, seed)
    voters = search[some]
    k = min(NEIGHBOURS, len(voters) - 1)
    near = NearestNeighbors(n_neighbors=k + 1).fit(P[voters]).kneighbors(P, return_distance=False)
    own = np.full(len(P), -1)
    own[voters] = np.arange(len(voters))
    themselves = near == own[:, None]
    counted = ~themselves
    counted[~themselves.any(axis=1), -1] = False  # a row that is no voter loses its farthest neighbour
    votes = (bad[some][near] & counted).sum(axis=1)
    return np.asarray(votes / np.maximum(counted.sum(axis=1), 1))


def vote_across(P: Array, bad: Array, seed: int) -> Array:
    """(m,) share of bad ones among the nearest search rows of the other half.

    Neighbours that vote for each other would speak for a region that chance made.
    """
    from sklearn.neighbors import NearestNeighbors

    shares = np.zeros(len(P))
    half = np.random.default_rng(seed).permutation(len(P)) % 2 == 0
    for voting in (half, ~half):
        voters = np.flatnonzero(voting)
        voters = voters[pick(len(voters), MOST_VOTERS // 2, seed)]
        asked = np.flatnonzero(~voting)
        k = min(NEIGHBOURS // 2, len(voters))
        if k and len(asked):
            near = NearestNeighbors(n_neighbors=k).fit(P[voters]).kneighbors(P[asked], return_distance=False)
            shares[asked] = bad[voters][near].mean(axis=1)
    return shares


def find_groups(P: Array, region: Array, seed: int) -> Array:
    """(n,) the group of each row, -1 for none: what mixtures of the region and of all rows agree on.

    Parameters
    ----------
    P
        (n, r) rows on local axes.
    region
        (n,) bool.
    seed
        Of samples and mixtures.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    group = np.full(len(P), -1)
    rows = np.flatnonzero(region)
    if len(rows) < FEWEST_ROWS:
        return group
    rows = rows[pick(len(rows), MOST_ROWS, seed)]
    together = _agreement(P, rows, seed)
    apart = np.clip(1 - together, 0, 1)
    np.fill_diagonal(apart, 0)
    found = fcluster(linkage(squareform(apart, checks=False), "average"), DISAGREE, "distance")
    sizes = np.bincount(found)
    large = np.flatnonzero(sizes >= FEWEST_ROWS)
    for j, value in enumerate(large):
        group[rows[found == value]] = j
    return group


def _agreement(P: Array, rows: Array, seed: int) -> Array:
    """(m, m) how often mixtures put two rows into one component."""
    around = P[pick(len(P), MOST_AROUND, seed)].astype(np.float64)
    inside = P[rows].astype(np.float64)
    total = np.zeros((len(rows), len(rows)))
    weight = 0.0
    for components in COMPONENTS:
        if len(around) >= 10 * components:
            shares = _mixture(around, components, seed, ITERATIONS).predict_proba(inside)
            total += 2 * shares @ shares.T
            weight += 2
    for axes in LOCAL_AXES:
        shares = _by_bic(_leading(inside, axes), (seed + axes) % 2**32).astype(np.float64)
        total += shares @ shares.T
        weight += 1
    together: Array = (total + total.T) / (2 * weight)
    return together


def _leading(rows: Array, axes: int) -> Array:
    """(m, r) coordinates on the leading axes of these rows."""
    centred = rows - rows.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(centred @ directions[: min(axes, max(1, len(rows) // 6))].T)


def _by_bic(L: Array, seed: int) -> Array:
    """(m, g) responsibilities of the mixture with the best BIC."""
    best = _mixture(L, 1, seed)
    lowest = best.bic(L)
    for components in range(2, MOST_COMPONENTS + 1):
        if len(L) < FEWEST_ROWS * components:
            break
        tried = _mixture(L, components, seed)
        if tried.bic(L) < lowest:
            best = tried
            lowest = tried.bic(L)
    return np.asarray(best.predict_proba(L))


def _mixture(rows: Array, components: int, seed: int, iterations: int = 40) -> GaussianMixture:
    from sklearn.mixture import GaussianMixture

    floor = 1e-4 * max(float(rows.var(axis=0).mean()), 1e-12)
    mixture = GaussianMixture(components, random_state=seed, reg_covar=floor, max_iter=iterations)
    with unconverged():
        return mixture.fit(rows)
