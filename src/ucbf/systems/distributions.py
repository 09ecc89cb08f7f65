"""Distributions of whole numbers, as presets need them: measured ones, moved ones, and one to try a preset with."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ucbf.disturbance import Disturbance


def empirical(measured: NDArray[np.int64], pooled: bool) -> Disturbance:
    """The shares of the numbers in [K, H]: a distribution for every step, or one for all steps if ``pooled``."""
    low = int(measured.min())
    rows = [measured.ravel()] if pooled else list(measured.T)
    counts = np.stack([np.bincount(row - low, minlength=int(np.ptp(measured)) + 1) for row in rows])
    return Disturbance(counts / counts.sum(axis=1, keepdims=True), low=low)


def at_values(distribution: Disturbance, values: NDArray[np.int64]) -> Disturbance:
    """The same probabilities at other values [1 or H, n]; those that come to the same value add up."""
    rows = np.broadcast_to(values, (max(len(values), len(distribution.pmf)), values.shape[1]))
    pmf = np.zeros((len(rows), int(np.ptp(values)) + 1))
    for h, row in enumerate(rows):
        np.add.at(pmf[h], row - values.min(), distribution.pmf[h % len(distribution.pmf)])
    return Disturbance(pmf, low=int(values.min()))


def binomial(low: int, high: int) -> Disturbance:
    """A bell-shaped distribution of low..high, with its mean a third of the way up."""
    n = high - low
    ways = [math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in range(n + 1)]
    pmf = np.array([math.exp(ways[i] + i * math.log(1 / 3) + (n - i) * math.log(2 / 3)) for i in range(n + 1)])
    return Disturbance(pmf / pmf.sum(), low=low)
