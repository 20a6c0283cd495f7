"""A Gaussian mixture with a Dirichlet-process prior, by variational inference (Blei, Jordan 2006; Bishop 2006, 10.2).

The model, priors and start are those of scikit-learn's BayesianGaussianMixture at its defaults; all components
are updated at once, by two matrix products per step, on a GPU where there is one. Tests compare it with that library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from ..core import Array

FLOOR = 1e-6  # added to every variance
TOLERANCE = 1e-3  # change of the lower bound, in nats of all rows, at which it stops


@dataclass(frozen=True, eq=False)
class Mixture:
    """A fitted mixture of k components."""

    weights: Array  # (k,)
    means: Array  # (k, d)
    covariances: Array  # (k, d, d)
    belongs: Array  # (n,) the likeliest component of each row
    steps: int  # of inference that were taken


@dataclass(frozen=True, eq=False)
class _Prior:
    concentration: float
    mean: torch.Tensor  # (d,); it counts as one row
    covariance: torch.Tensor  # (d, d); it has as many degrees of freedom as there are dimensions


@dataclass(frozen=True, eq=False)
class _Posterior:
    """Of every component: a stick's Beta(a, b), a mean as certain as from `strength` rows, a Wishart with `freedom`."""

    a: torch.Tensor  # (k,)
    b: torch.Tensor
    strength: torch.Tensor
    freedom: torch.Tensor
    means: torch.Tensor  # (k, d)
    covariances: torch.Tensor  # (k, d, d)

    @property
    def weights(self) -> torch.Tensor:
        """Expected lengths of the broken stick, which sum to one."""
        taken = self.a / (self.a + self.b)
        left = torch.cat([taken.new_ones(1), torch.cumprod(1 - taken, 0)[:-1]])
        return taken * left / (taken * left).sum()


def fit_mixture(
    rows: Array, components: int, *, steps: int = 100, seed: int = 0, device: torch.device | str | None = None
) -> Mixture:
    """A mixture of at most `components` Gaussians of rows (n, d), at least two. device: Default: a GPU if available."""
    from sklearn.cluster import KMeans

    with threadpool_limits(limits=1):  # the same start whatever the number of cores
        start = KMeans(components, n_init=1, random_state=seed).fit(rows).labels_
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float64)).to(device)
    centre = x.mean(dim=0)
    x = x - centre  # squares of large numbers would lose the digits that matter
    prior = _Prior(1 / components, torch.zeros_like(centre), torch.cov(x.T).reshape(x.shape[1], -1))
    terms = _terms(x)
    posterior = _update(terms, torch.nn.functional.one_hot(torch.from_numpy(start).long(), components).to(x), prior)
    bound = -math.inf
    taken = 0
    while taken < steps:
        taken += 1
        shares, entropy = _shares(terms, posterior)
        posterior = _update(terms, shares, prior)
        previous = bound
        bound = _bound(posterior, entropy)
        if abs(bound - previous) < TOLERANCE:
            break
    belongs = _shares(terms, posterior)[0].argmax(dim=1)  # by the posterior that is returned, not the one before it
    return Mixture(
        weights=posterior.weights.cpu().numpy(),
        means=(posterior.means + centre).cpu().numpy(),
        covariances=posterior.covariances.cpu().numpy(),
        belongs=belongs.cpu().numpy(),
        steps=taken,
    )


def _update(terms: torch.Tensor, shares: torch.Tensor, prior: _Prior) -> _Posterior:
    d = len(prior.mean)
    sums = shares.T @ terms  # (k, t): of squares, of rows, of ones
    counts = sums[:, -1] + 10 * torch.finfo(terms.dtype).eps
    means = sums[:, -1 - d : -1] / counts[:, None]
    spread = _symmetric(sums[:, : -1 - d], d) - counts[:, None, None] * (_outer(means) - FLOOR * _eye(prior.covariance))
    strength = 1 + counts
    freedom = d + counts
    shift = _outer(means - prior.mean) * (counts / strength)[:, None, None]
    covariances = (prior.covariance + spread + shift) / freedom[:, None, None]
    after = torch.cat([counts.flip(0).cumsum(0).flip(0)[1:], counts.new_zeros(1)])
    return _Posterior(
        a=1 + counts,
        b=prior.concentration + after,
        strength=strength,
        freedom=freedom,
        means=(prior.mean + counts[:, None] * means) / strength[:, None],
        covariances=covariances,
    )


def _terms(x: torch.Tensor) -> torch.Tensor:
    """(n, t): products of every two columns, the columns, and one. A Gaussian's log density is linear in them."""
    i, j = torch.triu_indices(x.shape[1], x.shape[1])
    return torch.cat([x[:, i] * x[:, j], x, x.new_ones(len(x), 1)], dim=1)


def _symmetric(upper: torch.Tensor, d: int) -> torch.Tensor:
    """(k, d, d) from the upper triangles (k, d (d + 1) / 2)."""
    i, j = torch.triu_indices(d, d)
    whole = upper.new_empty(len(upper), d, d)
    whole[:, i, j] = upper
    whole[:, j, i] = upper
    return whole


def _shares(terms: torch.Tensor, now: _Posterior) -> tuple[torch.Tensor, float]:
    """(n, k) how much of each row every component takes, and the entropy of it."""
    logs = terms @ _coefficients(now)
    logs -= logs.logsumexp(dim=1, keepdim=True)
    shares = logs.exp()
    return shares, -float((shares * logs.clamp_(min=-1e300)).sum())


def _coefficients(now: _Posterior) -> torch.Tensor:
    """(t, k): times a row's terms, its expected log density under every component, with the component's weight."""
    d = now.means.shape[1]
    roots = _roots(now)
    precision = roots @ roots.transpose(1, 2)
    i, j = torch.triu_indices(d, d)
    squares = -precision[:, i, j] * torch.where(i == j, 0.5, 1.0).to(precision)
    linear = (precision @ now.means[:, :, None])[:, :, 0]
    halves = torch.arange(d, device=linear.device, dtype=linear.dtype)
    log_lambda = d * math.log(2) + torch.digamma(0.5 * (now.freedom[:, None] - halves)).sum(dim=1)
    plain = _log_det(roots) - 0.5 * (d * math.log(2 * math.pi) + (linear * now.means).sum(dim=1))
    constant = plain - 0.5 * d * now.freedom.log() + 0.5 * (log_lambda - d / now.strength) + _log_sticks(now)
    return torch.cat([squares, linear, constant[:, None]], dim=1).T


def _roots(now: _Posterior) -> torch.Tensor:
    """(k, d, d) upper triangular R with R R' the inverse of each covariance."""
    lower = torch.linalg.cholesky(now.covariances)
    inverse: torch.Tensor = torch.linalg.solve_triangular(lower, _eye(lower[0]).expand_as(lower), upper=False)
    return inverse.transpose(1, 2)


def _log_det(roots: torch.Tensor) -> torch.Tensor:
    return roots.diagonal(dim1=1, dim2=2).log().sum(dim=1)


def _log_sticks(now: _Posterior) -> torch.Tensor:
    whole = torch.digamma(now.a + now.b)
    left = (torch.digamma(now.b) - whole).cumsum(0)
    return torch.digamma(now.a) - whole + torch.cat([left.new_zeros(1), left[:-1]])


def _bound(now: _Posterior, entropy: float) -> float:
    """The lower bound, up to a constant."""
    d = now.means.shape[1]
    halves = torch.arange(d, device=now.a.device, dtype=now.a.dtype)
    log_det = _log_det(_roots(now)) - 0.5 * d * now.freedom.log()
    wishart = -(
        now.freedom * (log_det + 0.5 * d * math.log(2)) + torch.lgamma(0.5 * (now.freedom[:, None] - halves)).sum(dim=1)
    )
    sticks = torch.lgamma(now.a) + torch.lgamma(now.b) - torch.lgamma(now.a + now.b)
    return entropy - float(wishart.sum()) + float(sticks.sum()) - 0.5 * d * float(now.strength.log().sum())


def _outer(rows: torch.Tensor) -> torch.Tensor:
    return rows[:, :, None] * rows[:, None, :]


def _eye(like: torch.Tensor) -> torch.Tensor:
    return torch.eye(like.shape[-1], dtype=like.dtype, device=like.device)
