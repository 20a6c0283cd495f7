"""`spotlight`: a contiguous region of the representation space where the loss is high, several in turn.

d'Eon, d'Eon, Wright and Leyton-Brown, "The Spotlight", 2022. A light at mu with precision tau gives row i
the weight k_i = max(0, 1 - tau |x_i - mu|^2). It maximises the weighted mean loss sum(k l) / sum(k) while
sum(k) stays at S rows or more. Further lights follow after l <- l (1 - k / max k), or a stronger dimming.

`as_published` follows the code behind the paper's numbers: Adam on mu and log tau for 5,000 steps with a
one-sided quadratic barrier whose width shrinks geometrically from N - S to .05 S. `recommended` solves the
same problem with the size as an equation: for any mu there is one tau with sum(k) = S, found without
reading X, so only mu is searched, by L-BFGS, while S shrinks from half of the rows, and also from a few
places where high losses crowd. It works in units of the data's own spread, so neither scale nor shift of X
matters, and the light always shrinks. It searches a few principal axes, by a loss that is bounded, at a size that
holds on rows left aside (`choice`).

A published light that has converged holds 1.05 S, where its barrier ends. `rule["mass"]` is sum(k) / S of the search
rows; one far from 1 belongs to a light that left the data or never shrank, and a warning says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from ...core import Array, Evaluation, Matrix
from ...core.blocks import blocks
from ...core.membership import threshold
from ...core.split import discover_mask
from ..contract import BaseSlicer, check_columns
from ..numerics import principal_axes, unconverged
from ..options import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, SHARE, Interval
from .choice import Light, bounded_losses, brightest, choose_size, members_mean, sizes_to_try
from .reader import Reader
from .shape import Ellipse, Sphere, precision_for, published_ellipse, recommended_ellipse, weighted_mean

STAGES = 12  # sizes between half of the rows and the one asked for
STAGE_STEPS = 10
SKETCH_ROWS = 10_000  # enough to shrink on; the polishing reads all rows
SKETCH_LIT = 200  # of them at least must be under the final light
CROWD_ROWS = 2000  # drawn in proportion to loss; their clusters are where further searches may start
CROWDS = 16
STARTS = 3
START_STEPS = 15
FINAL_STEPS = 60
MOST_LIT = 0.5  # share of the rows that all lights together may hold
GROW = 4  # times its size that a light may grow or shrink
WINDOW = 10  # rows
MOST_READS = 900.0  # of X by one recommended light; the published one reads X 5,000 times
ENOUGH = 1e-4  # relative gain of a final round below which it is the last
CONVERGED = (0.5, 2.0)  # sum(k) / S of a light that ended near its size; the published barrier ends at 1.05


@dataclass(frozen=True)
class SpotlightAdvanced:
    """Options of `spotlight` that are rarely set. `barrier` to `initial_precision` belong to the solver `adam`.

    Parameters
    ----------
    solver
        `smooth` solves with the size as an equation; `adam` follows the published code.
    dimming
        What a light takes from the losses before the next one: `by_peak` k / max k, as published, which leaves so
        much that a large group is found again and again; `members` all of its members' loss, and of the others' in
        proportion to their weight.
    barrier
        The paper's C: how much a light that is too small costs.
    learning_rate
        Of Adam at the start.
    patience
        Steps without gain after which the learning rate is halved.
    steps
        Steps of Adam.
    initial_precision
        The paper's tau at the start; null for 1e-4, or 1e-3 of every axis of an ellipsoid.
    loss
        `bounded`: one minus the probability of the label, or the error where predictions are hard, so that no single
        row draws a light to itself; `given`: the losses as they are.
    grow
        Let a light that was found at `size` end where the losses around it fall half way back to the mean. Of the
        solver `smooth`.
    widen
        Try wider lights where those of `size` do not hold on half of the search rows that were left aside. Of the
        solver `smooth`.
    drop_below
        Lights whose mean loss is below this share of the best light's are left out.
    """

    solver: Literal["smooth", "adam"] = "smooth"
    dimming: Literal["members", "by_peak"] = "members"
    barrier: float = 1.0
    learning_rate: float = 1e-2
    patience: int = 10
    steps: int = 5000
    initial_precision: float | None = None
    loss: Literal["bounded", "given"] = "bounded"
    grow: bool = True
    widen: bool = True
    drop_below: float = 0.7


class Spotlight(BaseSlicer):
    """Balls (or ellipsoids) of high loss in a representation, the first the brightest.

    Parameters
    ----------
    size
        Share of the rows that a light holds.
    slices
        Lights to search for.
    axes
        Principal axes that the representation is reduced to; null for all columns as they are.
    side
        `easy` looks for low loss instead.
    shape
        Of a light: `sphere` or `ellipse`.
    advanced
        Options that are rarely set.
    representation
        The representation that is searched. Default: the first.
    seed
        Of the rows that searches start from.
    """

    name = "spotlight"
    needs = frozenset({"representations", "losses"})
    presets: ClassVar = {
        "recommended": {},
        "as_published": {
            "size": 0.02,
            "slices": 5,
            "axes": None,
            "advanced": {"solver": "adam", "dimming": "by_peak", "loss": "given", "drop_below": 0.0},
        },
    }
    limits: ClassVar = {
        "size": SHARE,
        "slices": AT_LEAST_ONE,
        "axes": AT_LEAST_ONE,
        "drop_below": Interval(0, 1),
        "barrier": POSITIVE,
        "learning_rate": POSITIVE,
        "patience": NOT_NEGATIVE,
        "steps": AT_LEAST_ONE,
        "initial_precision": POSITIVE,
    }
    advanced_type: ClassVar = SpotlightAdvanced
    renamed: ClassVar = {"count": "slices", "dim": "advanced.dimming", "grow": "advanced.grow"}
    fitted_arrays: ClassVar[tuple[str, ...]] = ("centres_", "shapes_", "origin_", "axes_")

    centres_: Array  # (s, r)
    shapes_: Array  # (s,) square roots of precisions; (s, r, r) factors M with distance |(x - mu) M|^2
    origin_: Array = np.empty(0)  # (d,) of the principal axes
    axes_: Array = np.empty((0, 0))  # (d, r); empty where columns are searched as they are, as 0.2.0 did

    def __init__(
        self,
        size: float = 0.01,
        slices: int = 10,
        axes: int | None = 16,
        side: Literal["hard", "easy"] = "hard",
        shape: Literal["sphere", "ellipse"] = "sphere",
        advanced: Mapping[str, Any] | None = None,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.size = size
        self.slices = slices
        self.axes = axes
        self.side = side
        self.shape = shape
        self.advanced = advanced
        self.representation = representation
        self.seed = seed

    @property
    def _rare(self) -> SpotlightAdvanced:
        return SpotlightAdvanced(**(self.advanced or {}))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the slices should know: how many lights did not converge."""
        masses = [rule["mass"] for rule in self.rules_ if not rule.get("converged", True)]
        if not masses:
            return ()
        return (
            f"{len(masses)} of {len(self.rules_)} lights of `{self.name}` did not converge: they hold "
            f"{min(masses):.2g} to {max(masses):.2g} times the rows asked for, where one that converged holds about 1. "
            "Use the preset `recommended`, or `advanced.loss=bounded`.",
        )

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        from sklearn.exceptions import ConvergenceWarning

        X = self._reduce(self.matrix(evaluation))
        losses = _brightness(self._losses(evaluation), self.side)
        size = self.size
        if self._rare.solver == "smooth" and self._rare.widen:
            searched = discover_mask(evaluation, 0.5)
            if searched.any() and not searched.all():
                size = choose_size(sizes_to_try(size), X, losses, searched, self._solve_rows)
        lights, masses = self._search(X, losses, size)
        self.centres_ = np.stack([light.centre for light in lights])
        self.shapes_ = np.stack([np.asarray(light.factor) for light in lights])
        kind = "ball" if self.shape == "sphere" else "ellipsoid"
        rule = {"kind": kind, "representation": self.representation_, "side": self.side, "size": size}
        low, high = CONVERGED
        solved = self._rare.solver == "smooth"  # the size is an equation there; only copies of one row can break it
        self.rules_ = tuple(
            {**rule, "light": j, "mass": float(f"{mass:.4g}"), "converged": solved or low <= mass <= high}
            for j, mass in enumerate(masses)
        )
        for note in self.notes:
            warnings.warn(note, ConvergenceWarning, stacklevel=3)

    def _reduce(self, X: Matrix) -> Any:
        """Fit the principal axes, and return the rows along them; X itself where there are few columns."""
        d = X.shape[1]
        self.origin_ = np.zeros(d)
        self.axes_ = np.empty((d, 0))
        if self.axes is not None and self.axes < d:
            self.origin_, self.axes_ = principal_axes(X, self.axes, None, self.engine)
        return self._along_axes(X)

    def _along_axes(self, X: Matrix) -> Any:
        """(n, r); each row by itself, so that neither order nor company changes it."""
        if not self.axes_.size:
            return X
        Z = np.empty((len(X), self.axes_.shape[1]))
        for rows, block in blocks(X):
            np.einsum("ij,jk->ik", block - self.origin_, self.axes_, out=Z[rows])
        return Z

    def _losses(self, evaluation: Evaluation) -> Array:
        assert evaluation.losses is not None
        if self._rare.loss == "bounded":
            return bounded_losses(evaluation)
        return evaluation.losses.astype(np.float64)

    def _search(self, X: Matrix, losses: Array, size: float) -> tuple[list[Light], list[float]]:
        """Lights in turn, each on what those before it left, and sum(k) / S of each; the dim ones are left out."""
        lights: list[Light] = []
        masses: list[float] = []
        means: list[float] = []
        solve, weigh = self._solver(X, size)
        left = losses.copy()
        count = max(1, min(self.slices, int(MOST_LIT / size)))
        for j in range(count):
            light, rows = solve(left)
            k = weigh(light)
            lights.append(light)
            masses.append(float(k.sum()) / rows)
            means.append(members_mean(k, losses))
            self.report_progress(self.name, (j + 1) / count)
            left *= 1 - self._covered(k)
        bright = brightest(means, self._rare.drop_below)
        return [lights[j] for j in bright], [masses[j] for j in bright]

    def _solver(self, X: Matrix, size: float) -> tuple[Callable[[Array], tuple[Light, float]], Callable[[Any], Array]]:
        """What finds a light (and S) for given losses, and what gives a light's weight of every row."""
        device = getattr(self.engine, "device", None)
        if device is None or self._rare.solver != "adam" or self.shape != "sphere":
            reader = Reader(X)
            return lambda losses: self._solve(reader, losses, size), lambda light: light.weights(X)
        from .device import DeviceRows, DeviceSearch

        rows = DeviceRows(X, device)
        settings = self._adam(max(1.0, size * rows.n))
        search = DeviceSearch(rows, settings)
        return lambda losses: (search.light(losses), settings.size), rows.weights

    def _solve_rows(self, X: Matrix, losses: Array, share: float) -> Light:
        return self._solve(Reader(X), losses, share)[0]

    def _solve(self, reader: Reader, losses: Array, share: float) -> tuple[Light, float]:
        """A light and S, the rows that it should hold."""
        size = max(1.0, share * reader.n)
        rare = self._rare
        if rare.solver == "smooth":
            light = recommended_sphere(reader, losses, size, self.seed)
            if rare.grow:
                size, light = grown(reader, losses, size, light)
            if self.shape == "sphere":
                return light, size
            return recommended_ellipse(reader, losses, size, light), size
        adam = self._adam(size)
        if self.shape == "sphere":
            return published_sphere(reader, losses, adam), size
        return published_ellipse(reader, losses, Schedule(adam, reader.n)), size

    def _adam(self, size: float) -> AdamSettings:
        rare = self._rare
        return AdamSettings(size, rare.barrier, rare.learning_rate, rare.patience, rare.steps, rare.initial_precision)

    def _covered(self, k: Array) -> Array:
        """(n,) how much of each row's loss this light has dealt with."""
        full = k.max() if self._rare.dimming == "by_peak" else threshold(k)
        if not np.isfinite(full):
            return np.zeros_like(k)
        return np.minimum(1.0, k / max(float(full), 1e-12))

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) weights that fall from the centre of a light to its edge."""
        X = self.matrix(evaluation)
        check_columns(X, len(self.axes_) or self.centres_.shape[1], "method `spotlight`")
        X = self._along_axes(X)
        make = Sphere if self.shapes_.ndim == 1 else Ellipse
        pairs = zip(self.centres_, self.shapes_, strict=True)
        return np.stack([make(centre, factor).weights(X) for centre, factor in pairs], axis=1)


def _brightness(losses: Array, side: str) -> Array:
    """What a light looks for: the loss, or on the easy side how far it lies below the worst. Never negative,
    since a light dims what it covers by scaling it towards zero."""
    bright = losses.astype(np.float64)
    if side == "easy":
        return np.asarray(bright.max() - bright)
    return np.asarray(bright - min(0.0, float(bright.min())))


# --- recommended -------------------------------------------------------------------------------------------


def recommended_sphere(reader: Reader, losses: Array, size: float, seed: int = 0) -> Sphere:
    """The best light of exactly this size.

    One search starts diffuse, as the published one does, and shrinks from half of the rows to `size`; a few
    start where high losses crowd. The best of them is polished until it stops gaining.
    """
    spread = float(losses.std())
    if spread > 0:
        standard = (losses - losses.mean()) / spread
    else:
        standard = np.zeros(len(losses))
    at_size = partial(light_value, reader, standard, size)
    limit = reader.reads + MOST_READS
    start = _sketched_start(reader, standard, size, seed)
    lights = [_climb(at_size, start, reader.scale, START_STEPS)]
    crowds = _crowds(reader, losses, seed)
    brightness = np.array([at_size(crowd)[0] for crowd in crowds])
    for j in np.argsort(-brightness, kind="stable")[:STARTS]:
        lights.append(_climb(at_size, crowds[j], reader.scale, START_STEPS))
    mu, value = max(lights, key=lambda light: light[1])
    while reader.reads < limit:
        mu, better = _climb(at_size, mu, reader.scale, FINAL_STEPS)
        if better - value <= ENOUGH * max(abs(value), 1e-12):
            break
        value = better
    tau = precision_for(reader.distances(mu), size)
    return Sphere(mu + reader.centre, np.sqrt(tau))


def grown(reader: Reader, losses: Array, size: float, light: Sphere) -> tuple[float, Sphere]:
    """The size at which a light leaves its group, and the light of that size.

    Outwards from the centre, the loss in a window of rows falls where the group ends: the light ends where it
    has come half way from the loss around the centre to the mean.
    """
    distances = reader.distances(light.centre - reader.centre)
    fewest = max(1, int(size / GROW))
    most = min(int(GROW * size), reader.n // 4)
    window = max(WINDOW, fewest)
    near = losses[np.argsort(distances, kind="stable")[: most + window]]
    level = float(near[: max(fewest, WINDOW)].mean())
    mean = float(losses.mean())
    sums = np.concatenate([[0.0], np.cumsum(np.minimum(near, level))])  # one huge loss must not carry its window
    around = (sums[window:] - sums[:-window]) / window
    outside = np.flatnonzero(around[fewest:] < (level + mean) / 2)
    if len(outside):
        best = float(min(most, fewest + outside[0] + window // 2))
    else:
        best = float(most)
    return best, Sphere(light.centre, np.sqrt(precision_for(distances, best)))


def _sketched_start(reader: Reader, losses: Array, size: float, seed: int) -> Array:
    """Where the shrinking light ends; on some of the rows where there are many, since only the end needs all."""
    rows = max(SKETCH_ROWS, int(SKETCH_LIT * reader.n / size))
    if rows >= reader.n:
        return _shrink(reader, losses, size)
    index = np.sort(np.random.default_rng(seed).choice(reader.n, rows, replace=False))
    few = reader.sketch(index)
    start = _shrink(few, losses[index], size * rows / reader.n)
    reader.reads += few.reads * rows / reader.n
    return start


def _shrink(reader: Reader, losses: Array, size: float) -> Array:
    """From a light on half of the rows to one of this size, following the best place."""
    mu = np.zeros(reader.d)
    for stage in map(float, np.geomspace(max(size, reader.n / 2), size, STAGES)):
        mu, _ = _climb(partial(light_value, reader, losses, stage), mu, reader.scale, STAGE_STEPS)
    return mu


def _crowds(reader: Reader, losses: Array, seed: int) -> Array:
    """(c, d) centres of clusters of rows drawn in proportion to their loss."""
    from sklearn.cluster import KMeans

    mass = losses - losses.min()
    count = min(CROWD_ROWS, int(np.count_nonzero(mass)))
    if count < 1:
        return np.empty((0, reader.d))
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(reader.n, count, replace=False, p=mass / mass.sum()))
    reader.forget()  # its copy of near rows and this one need not be held together
    positions = np.subtract(reader.X[rows], reader.centre)
    positions /= reader.scale
    with unconverged():
        clusters = KMeans(min(CROWDS, count), n_init=1, max_iter=30, random_state=seed, copy_x=False).fit(positions)
    centres: Array = clusters.cluster_centers_ * reader.scale
    return centres


def _climb(
    value_and_slope: Callable[[Array], tuple[float, Array]], start: Array, scale: float, steps: int
) -> tuple[Array, float]:
    """Maximise by L-BFGS in units of the data's spread; never worse than the start."""

    from scipy.optimize import minimize

    def downhill(u: Array) -> tuple[float, Array]:
        value, slope = value_and_slope(start + scale * u)
        return -value, -scale * slope

    options = {"maxiter": steps, "maxfun": steps + steps // 2 + 5, "ftol": 1e-9, "gtol": 1e-12}
    best = minimize(downhill, np.zeros_like(start), jac=True, method="L-BFGS-B", options=options)
    return start + scale * best.x, -float(best.fun)


def light_value(reader: Reader, losses: Array, size: float, mu: Array) -> tuple[float, Array]:
    """Weighted mean loss of the light of this size at `mu` (relative to the reader's centre), and its slope."""
    rows, tau = reader.lit(mu, lambda distances: precision_for(distances, size))
    value, pull = weighted_mean(rows.distances, losses[rows.index], tau)
    return value, 2 * tau * (reader.weighted_sum(rows.X, pull) - mu * pull.sum())


# --- as published ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AdamSettings:
    """Hyper-parameters of the published search; `size` is in rows, the others as in `SpotlightAdvanced`."""

    size: float
    barrier: float
    learning_rate: float
    patience: int
    steps: int
    initial_precision: float | None


class Schedule:
    """Adam, the shrinking barrier, and the halving of the learning rate at each plateau.

    After each halving the plateau's memory is reset, since the barrier has moved meanwhile; an objective
    counts as better by torch's rule for a relative threshold of 1e-4.
    """

    def __init__(self, settings: AdamSettings, n: int):
        self.settings = settings
        self.rate = settings.learning_rate
        self.widths = np.geomspace(max(n - settings.size, 1e-9), 0.05 * settings.size, settings.steps)
        self.first: Any = 0.0
        self.second: Any = 0.0
        self.best = np.inf
        self.bad = 0

    def slopes(self, total: float, mean: float, width: float) -> tuple[float, float, float]:
        """Objective, and the factors a, b with d objective / d k_i = a l_i + b."""
        short = max(self.settings.size + width - total, 0.0) / width
        objective = mean - self.settings.barrier * short * short
        return objective, 1 / total, 2 * self.settings.barrier * short / width - mean / total

    def step(self, i: int, slope: Array) -> Array:
        """How far to move the parameters, uphill."""
        self.first = 0.9 * self.first + 0.1 * slope
        self.second = 0.999 * self.second + 0.001 * slope * slope
        first = self.first / (1 - 0.9 ** (i + 1))
        second = self.second / (1 - 0.999 ** (i + 1))
        move: Array = self.rate * first / (np.sqrt(second) + 1e-8)
        return move

    def watch(self, objective: float) -> None:
        """Remember the best objective; after too many steps without a better one, halve the learning rate."""
        cost = -objective
        if self.best == np.inf or cost < self.best * (1 - 1e-4):
            self.best = cost
            self.bad = 0
        else:
            self.bad += 1
        if self.bad > self.settings.patience:
            if self.rate / 2 > 1e-8:
                self.rate /= 2
            self.best = np.inf
            self.bad = 0


def published_sphere(reader: Reader, losses: Array, settings: AdamSettings) -> Sphere:
    """Adam on mu and log tau, in the user's own coordinates, with one read of X a step at most."""
    schedule = Schedule(settings, reader.n)
    mu = -reader.centre  # the published start, the origin, seen from the reader's centre
    log_tau = float(np.log(settings.initial_precision or 1e-4))
    last = Sphere(mu + reader.centre, np.exp(log_tau / 2))
    for i, width in enumerate(schedule.widths):
        tau = float(np.exp(log_tau))
        sums = reader.moments(mu, tau, losses)
        if sums.total <= 0:  # the published code ends in NaN here: keep the last light that shone
            return last
        objective, a, b = schedule.slopes(sums.total, sums.mean, float(width))
        pull_mu = a * sums.loss_pull + b * sums.pull
        slope = np.append(2 * tau * pull_mu, -tau * (a * sums.loss_reach + b * sums.reach))
        move = schedule.step(i, slope)
        last = Sphere(mu + reader.centre, np.exp(log_tau / 2))
        mu = mu + move[:-1]
        log_tau += float(move[-1])
        schedule.watch(objective)
    return Sphere(mu + reader.centre, np.exp(log_tau / 2))
