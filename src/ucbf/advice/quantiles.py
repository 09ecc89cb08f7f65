"""A forecast by quantiles, corrected by where amounts stood among them in the past.

The quantiles of a step are corners of a line from amounts to places: the place of the 10 % quantile is 0.1, and beyond
the outermost the line goes on. What is expected of a step to come is every place of the past, turned back into an
amount by the quantiles of that step. So a wide forecast gives a wide distribution, and a forecast that is always too
narrow, or too low, is corrected. It is the calibration of forecasts by their probability integral transform (Dawid
1984), with places outside of 0..1 where an amount was beyond all quantiles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers

Floats = NDArray[np.float64]
SHARES = np.linspace(0.05, 0.95, 19)  # of the quantiles that are scored
FEWEST = 4  # episodes before the first that is scored


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

    def places(self, amounts: ArrayLike) -> Floats:
        """[K, H] where amounts [K, H] stand among the quantiles of their steps."""
        given = np.asarray(amounts, float)
        return np.array(
            [[self._line(k, h, given[k, h], False) for h in range(given.shape[1])] for k in range(len(given))]
        )

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


def pinball(quantiles: Floats, came: float) -> float:
    """The mean pinball loss of the quantiles SHARES [19] where this came."""
    miss = came - quantiles
    return float(np.maximum(SHARES * miss, (SHARES - 1) * miss).mean())


@dataclass(frozen=True)
class QuantileScores:
    """The mean pinball loss of a step, predicted from the episodes before its own: lower is better."""

    quantiles: float  # of all quantiles, corrected
    middle: float  # of the forecast in the middle, with its errors
    steps: int  # that were predicted

    @property
    def are_better(self) -> bool:
        """Whether all quantiles predict better than the one in the middle."""
        return self.quantiles < self.middle * (1 - 1e-9)


def scores(quantiles: Quantiles, middle: Floats, amounts: Floats) -> QuantileScores:
    """Both ways in the episodes after the first third, each predicted from those before it, all steps alike.

    middle, amounts: [K, H] the forecast in the middle, and what came
    """
    places, errors = quantiles.places(amounts), amounts - middle
    whole, plain = [], []
    for k in range(max(len(amounts) // 3, min(FEWEST, len(amounts) - 1)), len(amounts)):
        at, off = np.quantile(places[:k], SHARES), np.quantile(errors[:k], SHARES)
        for h in range(amounts.shape[1]):
            whole.append(pinball(quantiles.amounts(k, h, at), amounts[k, h]))
            plain.append(pinball(middle[k, h] + off, amounts[k, h]))
    return QuantileScores(float(np.mean(whole)), float(np.mean(plain)), len(whole))
