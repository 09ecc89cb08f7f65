"""A forecast of demand whose level drifts: a mixture of discounted levels, of demands and of their roots.

Each level forgets at its own rate; those of roots that forget soon also fade a little. What a level says of the next
demand is Student's t; its weight is the likelihood of what came. How much older likelihoods count is not chosen
beforehand either: the levels are weighed twice, once with all that came and once with the last twenty steps or so, and
the two are weighed by what they foretold. So a long series that does not change is foretold by its mean, and one that
changes by what came last. Nothing is fitted.

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
Herbster and Warmuth (1998), Tracking the Best Expert: some belief is spread anew at every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import real
from ucbf.kernels.levels import LevelsState, draw_paths, take_in

Floats = NDArray[np.float64]
CLOSED = 0.1  # steps of which a smaller share of a usual demand is expected say nothing of the level
STEADY = 0.95  # levels with this discount or a higher one hardly move: they do not fade, and share one prior weight


@dataclass(frozen=True)
class LevelSettings:
    """What is fixed before the first demand.

    discounts         of the levels, each used on both scales
    variance_discount what a squared error counts for one step later, or the level's own discount, if that is higher
    freedom           how many errors the first guess of the variance is worth
    spread            that guess: standard deviation / mean
    forgetting        what a log-likelihood counts for one step later, in each way of weighing the levels
    switch            share of the belief in these ways that is spread evenly at every step
    fade              share of a demand that is gone one step later, in the levels of roots
    drift             how much of the drift that a discount implies a path carries on with
    ceiling           the largest demand drawn, as a multiple of the largest seen
    """

    discounts: Sequence[float] = (1.0, 0.99, 0.98, 0.95, 0.8, 0.6, 0.4, 0.2)
    variance_discount: float = 0.97
    freedom: float = 2.0
    spread: float = 0.4
    forgetting: Sequence[float] = (0.95, 1.0)
    switch: float = 0.002
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
        for forgetting in self.forgetting:
            real("each forgetting", forgetting, 0, 1)
        if not self.forgetting:
            raise ValueError("forgetting is empty; give at least one, such as (1.0,)")
        real("switch", self.switch, 0, 1)
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
        self.settings = s = settings or LevelSettings()
        self.scale = scale
        self.seen = 0
        self.whole = True  # so far all demands were whole numbers
        rests, rooted, discount = (each.ravel() for each in np.meshgrid([0, 1], [0, 1], s.discounts, indexing="ij"))
        steady, n, ways = discount >= STEADY, len(discount), len(s.forgetting)
        self.state = LevelsState(
            rooted=rooted.astype(np.int64),
            rests=rests.astype(np.int64),
            discount=discount.astype(float),
            variance_discount=np.maximum(discount, s.variance_discount),
            keeps=np.where((rooted == 1) & ~steady, np.sqrt(1 - s.fade), 1.0),
            prior=np.where(steady, -np.log(max(steady.sum() / 4, 1)), 0.0),
            forgetting=np.asarray(s.forgetting, float),
            mean=np.zeros(n),
            behind=np.zeros(n),
            scatter=np.zeros(n),
            freedom=np.full(n, s.freedom),
            zeros=np.zeros(n),
            counted=np.zeros(n),
            likelihood=np.zeros(n),
            weight=np.zeros((ways, n)),
            trust=np.full(ways, 1 / ways),
            highest=np.zeros(1),
        )

    def add(self, demand: float, factor: float = 1.0) -> None:
        """Take in the next demand, 0 or more; factor: how much of a usual demand is expected of its step.

        A day on which the shop is closed, or nearly so, tells nothing of the others: it is passed over.
        """
        given = real("demand", demand, 0)
        if factor < CLOSED:
            return
        self.whole = self.whole and given == np.rint(given)
        demand = given / factor
        if self.seen == 0:
            usual = max(1.0, demand if self.scale is None else self.scale)
            raw, root = (
                (self.settings.spread * usual) ** 2,
                self.settings.spread**2 * usual / 4,
            )  # sd of √d: sd / 2√mean
            self.state.scatter[:] = self.settings.freedom * np.where(self.state.rooted == 1, root, raw)
        take_in(self.state, demand, 1 / factor if self.whole else 0.0, self.seen == 0, self.settings.switch)
        self.seen += 1

    @property
    def weights(self) -> Floats:
        """[K] the probability of each level: those of demands first, then those of roots."""
        odds = self.state.prior + self.state.weight
        odds = np.exp(odds - odds.max(axis=1, keepdims=True))
        return np.asarray(self.state.trust @ (odds / odds.sum(axis=1, keepdims=True)))

    def paths(self, uniforms: ArrayLike, normals: ArrayLike, factors: ArrayLike = 1.0) -> Floats:
        """[N, n] demands of n steps ahead, whole numbers if all were.

        uniforms [N] choose the level, normals [N, 2 + 2n] draw the rest; factors [n] are those of the steps
        """
        if self.seen == 0:
            raise ValueError("no demand was taken in; call add before paths")
        u, z = np.asarray(uniforms, float), np.asarray(normals, float)
        if z.ndim != 2 or len(z) != len(u) or z.shape[1] < 4 or z.shape[1] % 2:
            raise ValueError(f"normals has shape {z.shape} for {len(u)} uniforms; give [N, 2 + 2n], n steps ahead")
        chosen = np.minimum(np.searchsorted(np.cumsum(self.weights), u), len(self.state.mean) - 1)
        out = np.empty((len(u), z.shape[1] // 2 - 1))
        draw_paths(self.state, chosen.astype(np.int64), z, self.settings.drift, self.settings.ceiling, out)
        out *= np.asarray(factors, float)
        return np.rint(out) if self.whole else out
