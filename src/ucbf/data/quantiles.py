"""A forecast by quantiles, corrected by where amounts stood among them in the past.

The quantiles of a step are corners of a line from amounts to places: the place of the 10 % quantile is 0.1, and beyond
the outermost the line goes on. What is expected of a step to come is every place of the past, turned back into an
amount by the quantiles of that step. So a wide forecast gives a wide distribution, and a forecast that is always too
narrow, or too low, is corrected. It is the calibration of forecasts by their probability integral transform (Dawid
1984), with places outside of 0..1 where an amount was beyond all quantiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers

if TYPE_CHECKING:
    from ucbf.disturbance import Disturbance
    from ucbf.systems.base import Preset

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Quantiles:
    """Quantiles that were forecast for each step.

    shares: [m] such as 0.1, 0.5, 0.9, increasing; values: [K, H, m], not decreasing; gap: the least difference of
    neighbours, so that no two amounts have the same place
    """

    shares: Floats
    values: Floats
    gap: float = 1e-9

    def __post_init__(self) -> None:
        shares, values = numbers("shares", self.shares), numbers("values", self.values)
        if shares.ndim != 1 or len(shares) < 2 or not (np.diff(shares) > 0).all() or not 0 < shares[0] < shares[-1] < 1:
            raise ValueError(f"shares is {self.shares!r:.60}; give at least two that increase, between 0 and 1")
        if values.ndim != 3 or values.shape[2] != len(shares) or (np.diff(values, axis=2) < 0).any():
            raise ValueError(f"values has shape {values.shape}; give [K, H, {len(shares)}], none below the one before")
        apart = self.gap * np.arange(len(shares))
        object.__setattr__(self, "values", np.maximum.accumulate(values - apart, axis=2) + apart)

    def of_one(self, values: ArrayLike) -> Quantiles:
        """Quantiles of one other episode, [H, m]."""
        return Quantiles(self.shares, np.asarray(values, float)[None], self.gap)

    def places(self, amounts: ArrayLike) -> Floats:
        """[K, H] where amounts [K, H] stand among the quantiles of their steps."""
        given = np.asarray(amounts, float)
        return np.array([[self.place(k, h, given[k, h]) for h in range(given.shape[1])] for k in range(len(given))])

    def place(self, k: int, h: int, amount: float) -> float:
        """Where an amount stands among the quantiles of step h of episode k."""
        return float(self._line(k, h, amount, False))

    def amounts(self, k: int, h: int, places: Floats) -> Floats:
        """[n] the amounts at these places [n] among the quantiles of step h of episode k."""
        return np.asarray(self._line(k, h, places, True))

    def _line(self, k: int, h: int, at: ArrayLike, backward: bool) -> Floats:
        """The line through the corners, which goes on beyond the outermost."""
        x, y = self.values[k, h], self.shares
        x, y = (y, x) if backward else (x, y)
        at = np.asarray(at, float)
        i = np.clip(np.searchsorted(x, at) - 1, 0, len(x) - 2)
        found: Floats = y[i] + (at - x[i]) * (y[i + 1] - y[i]) / (x[i + 1] - x[i])
        return found


def middle(shares: Floats, values: Floats) -> Floats:
    """[...] the median, between the quantiles [..., m] that are nearest to it."""
    flat = np.sort(values, axis=-1).reshape(-1, len(shares))
    return np.array([np.interp(0.5, shares, row) for row in flat]).reshape(values.shape[:-1])


def distribution_by_places(
    preset: Preset, quantiles: Quantiles, k: int, places: Floats, weights: Floats, pooled: bool
) -> Disturbance:
    """The distribution of W in episode k, by the places that the amounts of other episodes had.

    places: [n, H] of these episodes, nan where there is none; weights: [n] what each counts; pooled: whether the places
    of all steps count at every step
    """
    amounts, counts, H = [], [], places.shape[1]
    for h in range(H):
        at, weight = (places.ravel(), np.repeat(weights, H)) if pooled else (places[:, h], weights)
        there = np.isfinite(at)
        amounts.append(quantiles.amounts(k, h, at[there]))
        counts.append(weight[there])
    return preset.distribution_of(amounts, counts)
