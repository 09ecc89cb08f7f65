"""Whether the quantiles of a forecast predict better than the one in the middle with its errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ucbf.data.quantiles import Quantiles

Floats = NDArray[np.float64]
SHARES = np.linspace(0.05, 0.95, 19)  # of the quantiles that are scored
FEWEST = 4  # episodes before the first that is scored


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
