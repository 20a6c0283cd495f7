"""Two Triton kernels that are one step of the published search: which rows the light falls on, then Adam.

Imported by `device` where Triton and a GPU exist. All that a step needs of the rows is linear in the set of lit rows:
their count, and the sums of l, x, l x, |x|^2 and l |x|^2. So the sums are kept, and a row is read only when it may
have crossed the edge of the light: a row at distance r when the centre had travelled s in all stays lit while
r + (s' - s) is below the radius, and dark while r - (s' - s) is above it. One number a row, its key, holds both cases.

Distances are float64, and the sums are integers in units of a power of two: integers add up to the same total in any
order, so atomic additions give the same bytes in every run, and a row that comes and goes leaves nothing behind.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-decorators

from __future__ import annotations

import triton
import triton.language as tl

# Places in the array of a search's numbers.
LOG_TAU = tl.constexpr(0)
TAU = tl.constexpr(1)
RADIUS = tl.constexpr(2)
TRAVELLED = tl.constexpr(3)  # the length of the centre's path
RATE = tl.constexpr(4)
BEST = tl.constexpr(5)
BAD = tl.constexpr(6)
STEP = tl.constexpr(7)
DARK = tl.constexpr(8)  # 1 once no row is lit: nothing moves any more
LAST_LOG_TAU = tl.constexpr(9)
FIRST = tl.constexpr(10)  # Adam's moments of log tau; those of the centre have arrays of their own
SECOND = tl.constexpr(11)

# Places in the array of its constants.
SIZE = tl.constexpr(0)
BARRIER = tl.constexpr(1)
PATIENCE = tl.constexpr(2)
STEPS = tl.constexpr(3)
UNIT_X = tl.constexpr(4)  # how many integers one unit of x is, and so on
UNIT_LX = tl.constexpr(5)
UNIT_L = tl.constexpr(6)
UNIT_SQUARE = tl.constexpr(7)
UNIT_LSQUARE = tl.constexpr(8)

SLACK = tl.constexpr(2e-6)  # of radius and path: more than the rounding of a float32 key


@triton.jit
def _read_rows(X, losses, keys, sides, middle, light, index, used, was_lit, tau, path, d, D: tl.constexpr):
    """x about the centre and the loss of some rows; and 1 for each that became lit, -1 for each that became dark.

    sides: (n,) 1 for a lit row, -1 for a dark one.
    """
    column = tl.arange(0, D)
    where = index.to(tl.int64)[:, None] * d + column[None, :]
    x = tl.load(X + where, mask=used[:, None] & (column < d)[None, :], other=0.0).to(tl.float64) - middle[None, :]
    y = tl.load(losses + index, mask=used, other=0.0)
    away = x - light[None, :]
    distance = tl.sum(away * away, axis=1)
    lit = (tau * distance < 1.0) & used
    reach = tl.sqrt(distance)
    tl.store(keys + index, (tl.where(lit, reach, -reach) - path).to(tl.float32), mask=used)
    tl.store(sides + index, tl.where(lit, 1.0, -1.0), mask=used)
    return x, y, lit.to(tl.int64) - was_lit.to(tl.int64)


@triton.jit
def _add_rows(sums, constants, x, y, sign, d, D: tl.constexpr):
    """Add rows to the sums, or take them away. sums: (2 D + 4,) of x, l x; then count, l, |x|^2, l |x|^2."""
    column = tl.arange(0, D)
    square = tl.sum(x * x, axis=1)
    pull = sign[:, None] * (x * tl.load(constants + UNIT_X)).to(tl.int64)
    loss_pull = sign[:, None] * (y[:, None] * x * tl.load(constants + UNIT_LX)).to(tl.int64)
    loss = sign * (y * tl.load(constants + UNIT_L)).to(tl.int64)
    reach = sign * (square * tl.load(constants + UNIT_SQUARE)).to(tl.int64)
    loss_reach = sign * (y * square * tl.load(constants + UNIT_LSQUARE)).to(tl.int64)
    tl.atomic_add(sums + column, tl.sum(pull, axis=0), mask=column < d, sem="relaxed")
    tl.atomic_add(sums + D + column, tl.sum(loss_pull, axis=0), mask=column < d, sem="relaxed")
    tl.atomic_add(sums + 2 * D, tl.sum(sign, axis=0), sem="relaxed")
    tl.atomic_add(sums + 2 * D + 1, tl.sum(loss, axis=0), sem="relaxed")
    tl.atomic_add(sums + 2 * D + 2, tl.sum(reach, axis=0), sem="relaxed")
    tl.atomic_add(sums + 2 * D + 3, tl.sum(loss_reach, axis=0), sem="relaxed")


@triton.jit
def update_lit_rows(
    X,
    losses,
    centre,
    mu,
    keys,
    sides,
    sums,
    numbers,
    constants,
    n,
    d,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
    D: tl.constexpr,
):
    """Read the rows that may have crossed the edge of the light; those that did change the sums."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    tau = tl.load(numbers + TAU)
    radius = tl.load(numbers + RADIUS).to(tl.float32)
    path = tl.load(numbers + TRAVELLED)
    travelled = path.to(tl.float32)
    key = tl.load(keys + row, mask=row < n, other=float("-inf"))
    side = tl.load(sides + row, mask=row < n, other=0.0)
    near = (key >= side * radius - travelled - SLACK * (radius + travelled)) & (row < n)
    count = tl.sum(near.to(tl.int32), axis=0)
    if count > 0:
        place = tl.cumsum(near.to(tl.int32), axis=0) - 1
        column = tl.arange(0, D)
        middle = tl.load(centre + column, mask=column < d, other=0.0)
        light = tl.load(mu + column, mask=column < d, other=0.0)
        for start in range(0, count, TILE):
            slot = start + tl.arange(0, TILE)
            match = (place[None, :] == slot[:, None]) & near[None, :]
            index = tl.sum(tl.where(match, row[None, :], 0), axis=1)
            was_lit = tl.sum(tl.where(match, side[None, :], 0.0), axis=1) > 0
            x, y, sign = _read_rows(
                X, losses, keys, sides, middle, light, index, slot < count, was_lit, tau, path, d, D
            )
            if tl.sum((sign != 0).to(tl.int32), axis=0) > 0:
                _add_rows(sums, constants, x, y, sign, d, D)


@triton.jit
def _slopes(sums, at, width, tau, constants, d, D: tl.constexpr):
    """sum k, the objective, and its slopes in mu and in log tau; as `Schedule.slopes` and `published_sphere`."""
    column = tl.arange(0, D)
    x = tl.load(sums + column, mask=column < d, other=0).to(tl.float64) * (1.0 / tl.load(constants + UNIT_X))
    lx = tl.load(sums + D + column, mask=column < d, other=0).to(tl.float64) * (1.0 / tl.load(constants + UNIT_LX))
    count = tl.load(sums + 2 * D).to(tl.float64)
    loss = tl.load(sums + 2 * D + 1).to(tl.float64) * (1.0 / tl.load(constants + UNIT_L))
    square = tl.load(sums + 2 * D + 2).to(tl.float64) * (1.0 / tl.load(constants + UNIT_SQUARE))
    loss_square = tl.load(sums + 2 * D + 3).to(tl.float64) * (1.0 / tl.load(constants + UNIT_LSQUARE))
    barrier = tl.load(constants + BARRIER)
    pull = x - count * at
    loss_pull = lx - loss * at
    reach = square - tl.sum(at * (x + pull), axis=0)
    loss_reach = loss_square - tl.sum(at * (lx + loss_pull), axis=0)
    total = count - tau * reach
    shining = tl.where(total > 0, total, 1.0)
    mean = (loss - tau * loss_reach) / shining
    short = tl.maximum(tl.load(constants + SIZE) + width - total, 0.0) / width
    a = 1.0 / shining
    b = 2.0 * barrier * short / width - mean / shining
    objective = mean - barrier * short * short
    return total, objective, 2.0 * tau * (a * loss_pull + b * pull), -tau * (a * loss_reach + b * reach)


@triton.jit
def _watch(objective, rate, numbers, constants):
    """The next learning rate, best objective and count of bad steps; as `Schedule.watch`."""
    best = tl.load(numbers + BEST)
    better = (best == float("inf")) | (-objective < best * (1.0 - 1e-4))
    bad = tl.where(better, 0.0, tl.load(numbers + BAD) + 1.0)
    plateau = bad > tl.load(constants + PATIENCE)
    rate = tl.where(plateau & (rate / 2.0 > 1e-8), rate / 2.0, rate)
    best = tl.where(plateau, float("inf"), tl.where(better, -objective, best))
    return rate, best, tl.where(plateau, 0.0, bad)


@triton.jit
def move_light(sums, mu, last_mu, first, second, schedule, numbers, constants, d, D: tl.constexpr):
    """One step of Adam on mu and log tau; nothing after the last one, or once no row is lit.

    schedule: (steps, 3) the barrier's width, and what corrects the bias of each of Adam's moments.
    """
    i = tl.load(numbers + STEP)
    if (i < tl.load(constants + STEPS)) & (tl.load(numbers + DARK) == 0.0):
        column = tl.arange(0, D)
        line = schedule + 3 * i.to(tl.int64)
        tau = tl.load(numbers + TAU)
        log_tau = tl.load(numbers + LOG_TAU)
        rate = tl.load(numbers + RATE)
        path = tl.load(numbers + TRAVELLED)
        at = tl.load(mu + column, mask=column < d, other=0.0)
        total, objective, slope, tau_slope = _slopes(sums, at, tl.load(line), tau, constants, d, D)
        if total > 0:
            mu_first = 0.9 * tl.load(first + column, mask=column < d, other=0.0) + 0.1 * slope
            mu_second = 0.999 * tl.load(second + column, mask=column < d, other=0.0) + 0.001 * slope * slope
            tau_first = 0.9 * tl.load(numbers + FIRST) + 0.1 * tau_slope
            tau_second = 0.999 * tl.load(numbers + SECOND) + 0.001 * tau_slope * tau_slope
            for_first = 1.0 / tl.load(line + 1)
            for_second = 1.0 / tl.load(line + 2)
            move = rate * (mu_first * for_first) / (tl.sqrt(mu_second * for_second) + 1e-8)
            tau_move = rate * (tau_first * for_first) / (tl.sqrt(tau_second * for_second) + 1e-8)
            tl.store(first + column, mu_first, mask=column < d)
            tl.store(second + column, mu_second, mask=column < d)
            tl.store(last_mu + column, at, mask=column < d)
            tl.store(mu + column, at + move, mask=column < d)
            new_rate, best, bad = _watch(objective, rate, numbers, constants)
            path += tl.sqrt(tl.sum(move * move, axis=0))
            tl.debug_barrier()  # all threads have read the numbers before one of them writes
            _store_numbers(numbers, log_tau, log_tau + tau_move, path, tau_first, tau_second, new_rate, best, bad, i)
        else:  # the published code ends in NaN here: keep the last light that shone
            tl.store(mu + column, tl.load(last_mu + column, mask=column < d, other=0.0), mask=column < d)
            tl.store(numbers + LOG_TAU, tl.load(numbers + LAST_LOG_TAU))
            tl.store(numbers + DARK, 1.0)


@triton.jit
def _store_numbers(numbers, last_log_tau, log_tau, path, first, second, rate, best, bad, i):
    tau = tl.exp(log_tau)
    tl.store(numbers + LAST_LOG_TAU, last_log_tau)
    tl.store(numbers + LOG_TAU, log_tau)
    tl.store(numbers + TAU, tau)
    tl.store(numbers + RADIUS, 1.0 / tl.sqrt(tau))
    tl.store(numbers + TRAVELLED, path)
    tl.store(numbers + FIRST, first)
    tl.store(numbers + SECOND, second)
    tl.store(numbers + RATE, rate)
    tl.store(numbers + BEST, best)
    tl.store(numbers + BAD, bad)
    tl.store(numbers + STEP, i + 1.0)
