"""W whose level drifts: a mixture of discounted levels, and what it foretells of each of the steps to come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import real, whole
from ucbf.laws.base import Floats, Law
from ucbf.laws.mixtures import LevelMixture, LevelSettings
from ucbf.limits import MOST_SEEN, Limit, Limits

# The arrays of the mixture that learning changes.
LEARNED = ("mean", "behind", "scatter", "freedom", "zeros", "counted", "weight", "trust", "highest")
LARGEST = 1e18  # of a sum of squares


class Levels(Law):
    """Believes that W has one level for all steps, which drifts, and plans with what that says of each step ahead.

    The disturbances are taken for demands: W, or -W where none is above 0, or where both signs occur how far W is above
    the least. What a :class:`ucbf.laws.mixtures.LevelMixture` foretells, one step ahead, two, ..., is sampled with
    fixed draws, rounded, and cut off at the ends of the bins. The step after the one that was seen last is one ahead.

    Parameters
    ----------
    discounts
        What a disturbance counts for one step later, in each of the levels; their likelihoods weigh them.
    paths
        How many futures are sampled.

    Examples
    --------
    >>> import ucbf
    >>> shop = ucbf.systems.Inventory(capacity=40, max_demand=30)
    >>> agent = ucbf.UCBVIf(shop.system, law=ucbf.laws.Levels())
    >>> agent.warm_start(shop.disturbances([[20] * 7, [21] * 7, [9, 8, 10, 9, 10, 8, 9]]))
    >>> bool(-11 < agent.law.mean(0) < -7)                             # 9 of late; the mean of all is 16.7
    True
    """

    name = "Levels"

    def __init__(self, *, discounts: Sequence[float] = LevelSettings().discounts, paths: int = 2048) -> None:
        chosen = [real("each discount", discount, 0, 1, open_low=True) for discount in discounts]
        super().__init__(discounts=chosen, paths=whole("paths", paths, 64, 1_000_000))
        self._settings = LevelSettings(discounts=tuple(chosen))

    def start(self) -> None:
        """Check the bins, and draw what the futures are made of."""
        values = self.bins.values
        if values.ndim != 1 or not self.bins.is_whole.all():
            raise ValueError("Levels knows disturbances that are whole numbers on one axis; use Counts or Recent here")
        possible = values[: self.bins.n_possible]
        self._sign = -1 if possible.max() <= 0 else 1
        self._zero = 0 if self._sign < 0 or possible.min() >= 0 else int(possible.min())
        self._mixture = LevelMixture(self._settings)
        self._clock = np.zeros(2, np.int64)  # disturbances seen; the step after the last
        rng, n = np.random.default_rng(0), self.params["paths"]
        self._uniforms = (np.arange(n) + 0.5) / n
        self._normals = rng.standard_normal((n, 2 + 2 * self.horizon))

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """The levels; how many disturbances were seen, and which step comes next."""
        return {**{name: getattr(self._mixture.state, name) for name in LEARNED}, "clock": self._clock}

    def limits(self, stored: dict[str, NDArray[Any]]) -> Limits:
        """Sums and counts are not negative, and what is divided by is not 0."""
        seen = int(stored["clock"].flat[0]) > 0
        return {
            "clock": Limit([0, 0], [MOST_SEEN, self.horizon - 1]),
            "mean": Limit(-LARGEST, LARGEST),
            "behind": Limit(0.5 if seen else 0, MOST_SEEN),
            "scatter": Limit(1e-300 if seen else 0, LARGEST),
            "freedom": Limit(1e-3, MOST_SEEN),
            "zeros": Limit(0, MOST_SEEN),
            "counted": Limit(0, MOST_SEEN),
            "weight": Limit(-LARGEST, LARGEST),
            "trust": Limit(0, 1),
            "highest": Limit(0, LARGEST),
        }

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from what ``state`` said."""
        super().restore(state)
        self._mixture.seen = int(self._clock[0])

    def add(self, h: int, j: NDArray[np.int64], share: Floats) -> None:
        """Take in the disturbance, as a demand."""
        self._mixture.add(float(self._sign * (self.bins.values[int(j[0])] - self._zero)))
        self._clock[:] = self._mixture.seen, (h + 1) % self.horizon

    def pmf(self) -> Floats:
        """[H, R] what is foretold of every step, as many ahead as it comes after the last that was seen."""
        H, R = self.horizon, self.bins.n
        if not self._mixture.seen:
            return np.tile(self.bins.guess, (H, 1))
        drawn = self._sign * np.rint(self._mixture.paths(self._uniforms, self._normals)) + self._zero
        j = np.clip(drawn - self.bins.values[0], 0, self.bins.n_possible - 1).astype(np.int64)
        counts = np.bincount((j + R * np.arange(H)).ravel(), minlength=H * R).reshape(H, R)
        ahead: Floats = np.roll(counts / len(drawn), int(self._clock[1]), axis=0)
        return ahead
