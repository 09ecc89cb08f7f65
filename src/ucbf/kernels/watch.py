"""Whether the residuals bear the model out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ucbf.kernels.jit import compiled, inlined
from ucbf.kernels.types import Floats, Ints, Mechanics

BURN_IN = 30  # residuals of a step before any is held against the model
FURTHEST = 4.0  # standard deviations that a single residual counts for
SEEN, ORIGIN, MEAN, SQUARE = range(4)
VISITS, SHIFT, SPREAD = range(3)
COMPARED, FOURTH, OUTSIDE, CENSORED = range(4)
COUNT, SUM, SUM_OF_SQUARES = range(3)
PERIODS = 32  # that time is cut into


class Watch(NamedTuple):
    """Whether residuals depend on the state, the action or the time. Deviations are in standard deviations of the step.

    Time is cut into ``PERIODS`` of equal length, so many residuals of each step; when the last is full, neighbours are
    joined and the length doubles.
    """

    steps: Floats  # [H, 4] residuals seen; the first, from which they are counted; their mean; sum of squares about it
    groups: Floats  # [S + A, 3] of every state, then every action: deviations, their sum, the sum of their squares - 1
    tally: Floats  # [4] deviations; sum of (square - 1)²; residuals outside the declared range; hidden by an edge
    periods: Floats  # [1 + PERIODS, H, 3] of a prior, then of every period: residuals, their sum, that of their squares
    length: Ints  # [1] residuals of a step in a period


def new_watch(H: int, S: int, A: int) -> Watch:
    """One that has seen nothing."""
    periods = np.zeros((1 + PERIODS, H, 3))
    return Watch(np.zeros((H, 4)), np.zeros((S + A, 3)), np.zeros(4), periods, np.ones(1, np.int64))


def believe_prior(told: Mechanics, seen: Watch, prior: Floats) -> None:
    """Take what a prior says, as counts [L, R], for residuals that were seen."""
    steps, before = seen.steps, seen.periods[0]
    steps[:, SEEN] = prior.sum(axis=1) * len(prior) / told.horizon
    steps[:, ORIGIN] = prior.argmax(axis=1)
    expect_residuals(told, prior, steps)
    before[:, COUNT] = steps[:, SEEN]
    before[:, SUM] = steps[:, SEEN] * steps[:, MEAN]
    before[:, SUM_OF_SQUARES] = steps[:, SQUARE] + before[:, SUM] * steps[:, MEAN]


@inlined
def watch(told: Mechanics, seen: Watch, h: int, s: int, a: int, j: int) -> None:
    """Compare residual j of a pair with those of its step so far."""
    deviation = compare(told, seen, h, j)
    if not math.isnan(deviation):
        for group in (s, told.after.shape[1] + a):
            seen.groups[group, VISITS] += 1
            seen.groups[group, SHIFT] += deviation
            seen.groups[group, SPREAD] += deviation * deviation - 1


@compiled
def watch_history(told: Mechanics, seen: Watch, j: Ints) -> None:
    """Compare residuals of which neither state nor action is known, one after the other. j: [K, H]."""
    for k in range(j.shape[0]):
        for h in range(j.shape[1]):
            compare(told, seen, h, j[k, h])


@inlined
def compare(told: Mechanics, seen: Watch, h: int, j: int) -> float:
    """How far residual j is from the mean of its step so far, which it then joins; nan while there is too little."""
    steps, tally = seen.steps, seen.tally
    n = steps[h, SEEN]
    if n == 0:
        steps[h, ORIGIN] = j
    x = from_origin(j, steps[h, ORIGIN], modulus(told))
    date(seen, h, x)
    before, deviation = x - steps[h, MEAN], math.nan
    if n >= BURN_IN and steps[h, SQUARE] >= BURN_IN / 2:  # else it may be a rare thing that has not happened yet
        deviation = before / math.sqrt((steps[h, SQUARE] + 1) / n * (1 + 1 / n))
        deviation = min(max(deviation, -FURTHEST), FURTHEST)
        excess = deviation * deviation - 1
        tally[COMPARED] += 1
        tally[FOURTH] += excess * excess
    steps[h, SEEN] = n + 1
    steps[h, MEAN] += before / (n + 1)
    steps[h, SQUARE] += before * (x - steps[h, MEAN])
    return deviation


@inlined
def date(seen: Watch, h: int, x: float) -> None:
    """Add a residual, counted from the first of its step, to the period it was seen in."""
    periods, length = seen.periods, seen.length
    n = seen.steps[h, SEEN] - periods[0, h, COUNT]
    at = 1 + int(n) // length[0]
    if at > PERIODS:
        join_periods(periods, length)
        at = 1 + int(n) // length[0]
    periods[at, h, COUNT] += 1
    periods[at, h, SUM] += x
    periods[at, h, SUM_OF_SQUARES] += x * x


@inlined
def join_periods(periods: Floats, length: Ints) -> None:
    """Make every two periods one."""
    length[0] *= 2
    for i in range(PERIODS):
        for h in range(periods.shape[1]):
            for k in range(periods.shape[2]):
                pair = periods[1 + 2 * i, h, k] + periods[2 + 2 * i, h, k] if 2 * i < PERIODS else 0.0
                periods[1 + i, h, k] = pair


@inlined
def from_origin(j: int, origin: float, around: int) -> float:
    """How far residual j is from the origin; the shorter way, where residuals are counted modulo ``around``."""
    x = j - origin
    if around > 0:
        x = x - around if 2 * x >= around else x + around if 2 * x < -around else x
    return x


@inlined
def modulus(told: Mechanics) -> int:
    """What residuals are counted modulo; 0 if they are not."""
    return told.n_residuals if told.modular else 0


@inlined
def expect_residuals(told: Mechanics, counts: Floats, steps: Floats) -> None:
    """What a law, by its counts [L, R], makes of the mean and the spread of each step's residuals."""
    for h in range(told.horizon):
        total, mean, square = 0.0, 0.0, 0.0
        for w in range(told.n_residuals):
            n, x = counts[h % len(counts), w], from_origin(w, steps[h, ORIGIN], modulus(told))
            total += n
            mean += n * x
            square += n * x * x
        if total > 0:
            mean /= total
            steps[h, MEAN] = mean
            steps[h, SQUARE] = max(square / total - mean * mean, 0.0) * steps[h, SEEN]
