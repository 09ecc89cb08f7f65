"""The most that the mean of a function of W may be, given what was seen: over a ball of laws, and by an e-value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ucbf.kernels.jit import apart
from ucbf.kernels.types import Floats

if TYPE_CHECKING:
    from ucbf.kernels.coupled import Chances

STEPS = 12  # of Newton's method, at most; fewer than four are usual
CLOSE = 1e-3  # of what a bound adds to the mean


@apart
def over_ball(d: Floats, shares: Floats, row: int, radius: float, top: float, bottom: float) -> float:
    """The largest mean of d over distributions Q with KL(shares, Q) <= radius; not below it, and above it hardly.

    It is the least of ν - exp(Σ p log(ν - d) - radius) over ν >= top, and every ν gives an upper bound. Where
    ν is large, what has to be radius, Σ p log(ν - d) + log Σ p / (ν - d), is about variance / (2 (ν - mean)²): Newton's
    steps are taken on its inverse root, which is nearly straight.
    """
    if radius == np.inf or top == bottom:
        return top
    mean, variance, seen = 0.0, 0.0, -np.inf
    for j in range(len(d)):
        if shares[row, j] > 0:
            mean, seen = mean + shares[row, j] * d[j], max(seen, d[j])
    for j in range(len(d)):
        variance += shares[row, j] * (d[j] - mean) ** 2
    best = top
    if seen < top:
        logs = 0.0
        for j in range(len(d)):
            if shares[row, j] > 0:
                logs += shares[row, j] * np.log(top - d[j])
        best = min(best, top - np.exp(logs - radius))
    nu = max(mean + np.sqrt(variance / (2 * radius)), top + 1e-3 * (top - mean))
    if nu <= top:  # all that was seen is as good as the best there is
        return best
    for _ in range(STEPS):
        logs, ones, twos = 0.0, 0.0, 0.0
        for j in range(len(d)):
            if shares[row, j] > 0:
                one = 1 / (nu - d[j])
                logs -= shares[row, j] * np.log(one)
                ones += shares[row, j] * one
                twos += shares[row, j] * one * one
        found = nu - np.exp(logs - radius)
        settled = abs(found - best) <= CLOSE * (best - mean)
        best = min(best, found)
        level, slope = logs + np.log(ones), ones - twos / ones
        if settled or level <= 0 or slope >= 0:
            break
        moved = nu + (radius**-0.5 - level**-0.5) / (-0.5 * level**-1.5 * slope)
        nu = max(moved, top + 0.1 * (nu - top))
    return max(best, mean)


@apart
def over_flat(d: Floats, chances: Chances, row: int, price: float, top: float, bottom: float) -> float:
    """B = -λ log ∫ exp(-B_ν/λ) dν/κ + λ level, or little more; λ = ``price``, κ = λn.

    B_ν = ν - κ - κ Σ p log((ν - d) / κ), and ν runs from ``top`` on. With a = κ/(ν - d) at the ν where B_ν is least, or
    at any other, the integrand at ν + κt is exp(-B_ν/λ + nΣ p log(1 + at) - nt). For t > 0, log(1 + at) is at least
    at - (at)²/2; for -t, log(1 - at) is at least -at - (at)²/(2 (1 - at)), where t = ``side`` at most. So the integral
    is at least that of exp(gt - ct²/2) over all t > 0 and that of exp(-gt - c't²/2) over the others, with g about 0: if
    it is not below 0 it does no harm to their sum; else exp(gt) >= 1 + gt, or Birnbaum's (1942) bound, serves.
    """
    if top == bottom:
        return top
    n, shares = chances.samples, chances.shares
    kappa, mean, square = price * n, 0.0, 0.0
    for j in range(len(d)):
        mean += shares[row, j] * d[j]
        square += shares[row, j] * d[j] * d[j]
    nu = max(kappa + mean + (square - mean * mean) / kappa, top + 0.05 * kappa)
    twos = 1.0
    for _ in range(STEPS):
        ones, twos = 0.0, 0.0
        for j in range(len(d)):
            one = kappa / (nu - d[j])
            ones += shares[row, j] * one
            twos += shares[row, j] * one * one
        nu = max(nu + kappa * (ones - 1) / twos, top + 0.5 * (nu - top))
        if n * (ones - 1) ** 2 < twos:  # less than a standard deviation was missing, so that hardly anything is now
            break
    free = (nu - top) / kappa
    side = min(0.5 * free, 1.5 / math.sqrt(n * twos / 2))
    logs, ones, twos, more = 0.0, 0.0, 0.0, 0.0
    for j in range(len(d)):
        if shares[row, j] > 0:
            one = kappa / (nu - d[j])
            logs += shares[row, j] * math.log(one)
            ones += shares[row, j] * one
            twos += shares[row, j] * one * one
            more += shares[row, j] * one * one / (1 - one * side)
    g, c = n * (ones - 1), n * twos
    right = max(math.sqrt(math.pi / (2 * c)) + min(g, 0.0) / c, 2 / (math.sqrt(g * g + 4 * c) + abs(g)))
    left = math.sqrt(math.pi / (2 * n * more)) * math.erf(side * math.sqrt(n * more / 2))
    return nu - kappa + kappa * logs - price * (math.log(right + left) - chances.level)
