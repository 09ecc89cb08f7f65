"""Whether the residuals bear the model out."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ucbf.kernels.jit import compiled, inlined
from ucbf.kernels.parts import packed
from ucbf.kernels.types import Floats, Ints, Mechanics

BURN_IN = 30  # residuals of a step before any is held against the model
FURTHEST = 4.0  # standard deviations that a single residual counts for
SEEN, ORIGIN, MEAN, SQUARE = range(4)
VISITS, SHIFT, SPREAD = range(3)
COMPARED, SHIFTED, EXCESS, FOURTH = range(4)
OUTSIDE, CENSORED = range(2)
COUNT, SUM, SUM_OF_SQUARES = range(3)
PERIODS = 32  # that time is cut into


@packed
class Watch(NamedTuple):
    """Whether residuals depend on the state, the action or the time: by each axis of W, of which there are d.

    Deviations are in standard deviations of the step, and cut at ``FURTHEST`` of them. Where a law is lopsided, those
    that are cut have another mean than 0, and their squares than 1: so both are compared with what they were at the
    same step. T is H, or 1 where all steps share a law. Time is cut into
    ``PERIODS`` of equal length, so many residuals of each step; when the last is full, neighbours are joined and the
    length doubles.
    """

    steps: Floats  # [d, T, 4] residuals seen; the first, from which they are counted; their mean; squares about it
    groups: (
        Floats  # [d, S + A, 3] of every state, then every action: deviations; by how much they, and their squares, were
    )
    # above those of the same step before, summed
    tally: Floats  # [d, T, 4] deviations; their mean; that of their squares - 1; the squares of the latter about it
    unused: Floats  # [2] residuals outside the declared range; censored by a boundary
    periods: Floats  # [d, 1 + PERIODS, T, 3] of a prior, then of every period: residuals, their sum, that of squares
    length: Ints  # [1] residuals of a step in a period


def new_watch(d: int, T: int, S: int, A: int) -> Watch:
    """One that has seen nothing."""
    return Watch(
        steps=np.zeros((d, T, 4)),
        groups=np.zeros((d, S + A, 3)),
        tally=np.zeros((d, T, 4)),
        unused=np.zeros(2),
        periods=np.zeros((d, 1 + PERIODS, T, 3)),
        length=np.ones(1, np.int64),
    )


def believe_prior(told: Mechanics, seen: Watch, prior: Floats) -> None:
    """Take what a prior says, as counts [L, R], for residuals that were seen."""
    if not prior.any():
        return
    for k in range(len(told.bins)):
        steps = seen.steps[k]
        steps[:, SEEN] = prior.sum(axis=1) * len(prior) / len(steps)
        steps[:, ORIGIN] = [coordinate(told, k, int(j), told.whole) for j in prior.argmax(axis=1)]
    expect_residuals(told, prior, seen)
    for k in range(len(told.bins)):
        steps, before = seen.steps[k], seen.periods[k, 0]
        before[:, COUNT] = steps[:, SEEN]
        before[:, SUM] = steps[:, SEEN] * steps[:, MEAN]
        before[:, SUM_OF_SQUARES] = steps[:, SQUARE] + before[:, SUM] * steps[:, MEAN]


@inlined
def coordinate(told: Mechanics, k: int, j: int, share: Floats) -> float:
    """Where a disturbance lies along axis k, in bins; between bins, by its shares [B] of them."""
    if len(told.bins) == 1 and len(share) == 1:
        return float(j)
    apart = 1
    for i in range(k + 1, len(told.bins)):
        apart *= told.bins[i]
    x = 0.0
    for c in range(len(share)):
        x += share[c] * ((j + told.bin_corners[c]) // apart % told.bins[k])
    return x


@inlined
def watch(told: Mechanics, seen: Watch, h: int, s: int, a: int, j: int, share: Floats) -> None:
    """Compare residual j of a pair with those of its step so far. Not where contexts explain why they differ."""
    if told.n_contexts > 1:
        return
    row = min(h, seen.steps.shape[1] - 1)
    at = next_period(seen, row)
    for k in range(len(told.bins)):
        shift, spread = compare(told, seen, k, row, coordinate(told, k, j, share), at)
        if not math.isnan(shift):
            for group in (s, told.after.shape[1] + a):
                seen.groups[k, group, VISITS] += 1
                seen.groups[k, group, SHIFT] += shift
                seen.groups[k, group, SPREAD] += spread


@compiled
def watch_history(told: Mechanics, seen: Watch, j: Ints, share: Floats) -> None:
    """Compare residuals of which neither state nor action is known, one after the other.

    j: [K, H]; share: [K, H, B], or [1, 1, 1] where all are whole
    """
    for i in range(j.shape[0]):
        for h in range(j.shape[1]):
            row = min(h, seen.steps.shape[1] - 1)
            at = next_period(seen, row)
            for k in range(len(told.bins)):
                w = coordinate(told, k, j[i, h], share[min(i, len(share) - 1), min(h, share.shape[1] - 1)])
                compare(told, seen, k, row, w, at)


@inlined
def compare(told: Mechanics, seen: Watch, k: int, h: int, w: float, at: int) -> tuple[float, float]:
    """How far residual w is from the mean of its step so far, which it then joins; and its square.

    Both are less than what they were on average at this step before, over sqrt(1 + 1/n), so that they do not depend on
    each other; nan while there is too little.
    at: the period it was seen in
    """
    steps, tally, periods = seen.steps, seen.tally, seen.periods
    n = steps[k, h, SEEN]
    if n == 0:
        steps[k, h, ORIGIN] = w
    x = from_origin(w, steps[k, h, ORIGIN], modulus(told))
    periods[k, at, h, COUNT] += 1
    periods[k, at, h, SUM] += x
    periods[k, at, h, SUM_OF_SQUARES] += x * x
    before, shift, spread = x - steps[k, h, MEAN], math.nan, math.nan
    if n >= BURN_IN and steps[k, h, SQUARE] >= BURN_IN / 2:  # else it may be a rare thing that has not happened yet
        deviation = before / math.sqrt((steps[k, h, SQUARE] + 1) / n * (1 + 1 / n))
        deviation = min(max(deviation, -FURTHEST), FURTHEST)
        excess, c = deviation * deviation - 1, tally[k, h, COMPARED]
        more, above = deviation - tally[k, h, SHIFTED], excess - tally[k, h, EXCESS]
        known = math.sqrt(c / (c + 1))
        shift, spread = known * more, known * above
        tally[k, h, COMPARED] = c + 1
        tally[k, h, SHIFTED] += more / (c + 1)
        tally[k, h, EXCESS] += above / (c + 1)
        tally[k, h, FOURTH] += spread * spread
    steps[k, h, SEEN] = n + 1
    steps[k, h, MEAN] += before / (n + 1)
    steps[k, h, SQUARE] += before * (x - steps[k, h, MEAN])
    return shift, spread


@inlined
def next_period(seen: Watch, h: int) -> int:
    """The period of the next residual of step h; where none is left, every two periods are made one."""
    n = int(seen.steps[0, h, SEEN] - seen.periods[0, 0, h, COUNT])
    at: int = 1 + n // seen.length[0]
    if at > PERIODS:
        join_periods(seen)
        at = 1 + n // seen.length[0]
    return at


@inlined
def join_periods(seen: Watch) -> None:
    """Make every two periods one."""
    periods = seen.periods
    seen.length[0] *= 2
    for k in range(periods.shape[0]):
        for i in range(PERIODS):
            for step in range(periods.shape[2]):
                for c in range(periods.shape[3]):
                    pair = 0.0
                    if 2 * i < PERIODS:
                        pair = periods[k, 1 + 2 * i, step, c] + periods[k, 2 + 2 * i, step, c]
                    periods[k, 1 + i, step, c] = pair


@inlined
def from_origin(j: float, origin: float, around: int) -> float:
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
def expect_residuals(told: Mechanics, counts: Floats, seen: Watch) -> None:
    """What a law, by its counts [L, R], makes of the mean and the spread of each step's residuals."""
    steps = seen.steps
    for k in range(len(told.bins)):
        for h in range(steps.shape[1]):
            total, mean, square = 0.0, 0.0, 0.0
            for w in range(told.n_residuals):
                n = counts[min(h, len(counts) - 1), w]
                x = from_origin(coordinate(told, k, w, told.whole), steps[k, h, ORIGIN], modulus(told))
                total += n
                mean += n * x
                square += n * x * x
            if total > 0:
                mean /= total
                steps[k, h, MEAN] = mean
                steps[k, h, SQUARE] = max(square / total - mean * mean, 0.0) * steps[k, h, SEEN]


@inlined
def forget_group(seen: Watch, group: int) -> None:
    """Begin anew with a state or an action."""
    for k in range(seen.groups.shape[0]):
        for i in range(seen.groups.shape[2]):
            seen.groups[k, group, i] = 0


def forget_all(seen: Watch) -> None:
    """Begin anew to compare residuals; those that were left out stay known."""
    for array in (seen.steps, seen.groups, seen.periods, seen.tally):
        array[...] = 0
    seen.length[...] = 1
