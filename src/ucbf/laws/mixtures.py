"""A forecast of demand whose level drifts: a mixture of discounted levels, of demands and of their roots.

Each level forgets at its own rate; those of roots also fade a little. What a level says of the next demand is
Student's t; its weight is the likelihood of what came, older steps counting less. Nothing is fitted beforehand.

>>> import numpy as np
>>> levels = LevelMixture()
>>> for demand in (98, 105, 101, 95, 102, 99): levels.add(demand)
>>> draws = np.random.default_rng(0)
>>> paths = levels.paths(draws.random(512), draws.standard_normal((512, 8)))  # three steps ahead
>>> bool(90 < np.median(paths) < 110), bool(paths.min() >= 0)
(True, True)

References
----------
West and Harrison (1997), Bayesian Forecasting and Dynamic Models, chapters 2 and 12: discounts, mixtures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import real
from ucbf.kernels.levels import LevelsState, draw_paths, take_in

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LevelSettings:
    """What is fixed before the first demand.

    discounts         of the levels, each used on both scales
    variance_discount what a squared error counts for one step later
    freedom           how many errors the first guess of the variance is worth
    spread            that guess: standard deviation / mean
    forgetting        what a log-likelihood counts for one step later
    fade              share of a demand that is gone one step later, in the levels of roots
    drift             how much of the drift that a discount implies a path carries on with
    ceiling           the largest demand drawn, as a multiple of the largest seen
    """

    discounts: Sequence[float] = (0.95, 0.8, 0.6, 0.4, 0.2)
    variance_discount: float = 0.97
    freedom: float = 2.0
    spread: float = 0.4
    forgetting: float = 0.95
    fade: float = 0.01
    drift: float = 0.5
    ceiling: float = 3.0

    def __post_init__(self) -> None:
        for discount in self.discounts:
            real("each discount", discount, 0, 1, open_low=True)
        if not self.discounts:
            raise ValueError("discounts is empty; give at least one, such as (0.9,)")
        real("variance_discount", self.variance_discount, 0, 1, open_low=True)
        real("freedom", self.freedom, 0, open_low=True)
        real("spread", self.spread, 0, open_low=True)
        real("forgetting", self.forgetting, 0, 1)
        real("fade", self.fade, 0, 1)


class LevelMixture:
    """Takes in demands one by one; gives paths of the demands ahead.

    Parameters
    ----------
    settings
        Discounts and first guesses.
    scale
        Size of a usual demand, for the first guess of the variance; None: the first demand.
    """

    def __init__(self, settings: LevelSettings | None = None, scale: float | None = None) -> None:
        self.settings = settings or LevelSettings()
        self.scale = scale
        self.seen = 0
        n = len(self.settings.discounts)
        self.state = LevelsState(
            rooted=np.repeat([0, 1], n).astype(np.int64),
            discount=np.tile(np.asarray(self.settings.discounts, float), 2),
            keeps=np.repeat([1.0, np.sqrt(1 - self.settings.fade)], n),
            mean=np.zeros(2 * n),
            behind=np.zeros(2 * n),
            scatter=np.zeros(2 * n),
            freedom=np.full(2 * n, self.settings.freedom),
            weight=np.zeros(2 * n),
            highest=np.zeros(1),
        )

    def add(self, demand: float) -> None:
        """Take in the next demand, 0 or more."""
        demand = real("demand", demand, 0)
        if self.seen == 0:
            usual = max(1.0, demand if self.scale is None else self.scale)
            raw, root = (
                (self.settings.spread * usual) ** 2,
                self.settings.spread**2 * usual / 4,
            )  # sd of √d: sd / 2√mean
            self.state.scatter[:] = self.settings.freedom * np.where(self.state.rooted == 1, root, raw)
        s = self.settings
        take_in(self.state, demand, self.seen == 0, s.variance_discount, s.forgetting)
        self.seen += 1

    @property
    def weights(self) -> Floats:
        """[K] the probability of each level: those of demands first, then those of roots."""
        odds = np.exp(self.state.weight - self.state.weight.max())
        return np.asarray(odds / odds.sum())

    def paths(self, uniforms: ArrayLike, normals: ArrayLike) -> Floats:
        """[N, n] demands of n steps ahead, from uniforms [N], which choose the level, and normals [N, 2 + 2n]."""
        if self.seen == 0:
            raise ValueError("no demand was taken in; call add before paths")
        u, z = np.asarray(uniforms, float), np.asarray(normals, float)
        if z.ndim != 2 or len(z) != len(u) or z.shape[1] < 4 or z.shape[1] % 2:
            raise ValueError(f"normals has shape {z.shape} for {len(u)} uniforms; give [N, 2 + 2n], n steps ahead")
        chosen = np.minimum(np.searchsorted(np.cumsum(self.weights), u), len(self.state.mean) - 1)
        out = np.empty((len(u), z.shape[1] // 2 - 1))
        draw_paths(self.state, chosen.astype(np.int64), z, self.settings.drift, self.settings.ceiling, out)
        return out
