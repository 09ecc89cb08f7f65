"""Whether the amounts of a series stay as they are: a change from one part to the next, and a trend."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.data import Episodes

SIGNIFICANT = 0.001  # the largest p-value at which a drift is reported
FEWEST_FOR_TREND = 8  # episodes


class Drift(NamedTuple):
    """How far the amounts moved."""

    share: float  # of the mean; nan where the mean is 0
    p: float  # the p-value: how likely a drift as large is by chance

    @property
    def significant(self) -> bool:
        """Whether it is more than chance."""
        return bool(self.p < SIGNIFICANT)


def change(before: Episodes, after: Episodes) -> Drift:
    """How the amounts after differ from those before: Welch's test of the levels of the episodes."""
    one, other = _levels(before, before), _levels(after, before)
    if min(len(one), len(other)) < 3 or not max(one.std(), other.std()):
        return Drift(np.nan, 1.0)
    squares = np.array([levels.var(ddof=1) / len(levels) for levels in (one, other)])
    freedom = squares.sum() ** 2 / (squares**2 / [len(one) - 1, len(other) - 1]).sum()  # Welch and Satterthwaite
    p = _chance((one.mean() - other.mean()) / np.sqrt(squares.sum()), freedom)
    return Drift(_share_of_mean(float(other.mean() - one.mean()), before), p)


def trend(episodes: Episodes) -> Drift:
    """How the amounts move from the first episode to the last: a line through the levels of the episodes."""
    levels = _levels(episodes, episodes)
    if len(levels) < FEWEST_FOR_TREND or not levels.std():
        return Drift(np.nan, 1.0)
    steps, together, _, spread = np.cov(np.arange(len(levels)), levels, bias=True).flat
    r = np.clip(together / np.sqrt(steps * spread), -1, 1)
    p = _chance(r * np.sqrt((len(levels) - 2) / max(1 - r**2, 1e-20)), len(levels) - 2)
    return Drift(_share_of_mean(float(together / steps) * (len(levels) - 1), episodes), p)


def _chance(t: float, freedom: float) -> float:
    """How likely Student's t is as far from 0 by chance. scipy.stats takes half a second to import."""
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(t)))


def _share_of_mean(difference: float, episodes: Episodes) -> float:
    mean = abs(float(episodes.values[~episodes.outliers].mean()))
    return difference / mean if mean else np.nan


def _levels(episodes: Episodes, usual: Episodes) -> NDArray[np.float64]:
    """[K] the level of every episode: how far its steps are above the usual means, on average, outliers left out.

    usual: the episodes whose means are subtracted, step by step, those of the same kind of day where there are any
    """
    if not len(episodes):
        return np.empty(0)
    table = np.where(usual.outliers, np.nan, usual.values)
    left = np.where(episodes.outliers, np.nan, episodes.values)
    for kind in dict.fromkeys(episodes.kinds):
        alike = table[[k == kind for k in usual.kinds]]
        alike = alike if len(alike) else table
        n = np.maximum(np.isfinite(alike).sum(axis=0), 1)
        left[[k == kind for k in episodes.kinds]] -= np.nansum(alike, axis=0) / n
    levels: NDArray[np.float64] = np.nansum(left, axis=1) / np.maximum(np.isfinite(left).sum(axis=1), 1)
    return levels
