"""What was done, and paid, in K episodes, or in T steps: the one result of every way of playing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Progress = Callable[[int, int], object]


class Run:
    """What was done, and paid, in K episodes: in a world, in episodes that happened, or in an environment.

    Where there is no end, steps take the place of episodes: [T] what each of them paid, and the gap of the policy by
    which it was taken.

    Parameters
    ----------
    reward
        [K] the discounted return that was collected.
    gap
        [K] V*_1 - V^{π_k}_1, exact, averaged over the first state; known only in a world (:func:`simulate`).
    switched
        [K] whether the policy was another than in the episode before; likewise.
    states, actions
        [K, H+1] and [K, H], in a box [K, H+1, d], where they are recorded (:func:`replay`); without an end [T+1], [T].
    by_step
        Whether there is no end, and entries are of steps.
    """

    def __init__(
        self,
        reward: NDArray[np.float64],
        gap: NDArray[np.float64] | None = None,
        switched: NDArray[np.bool_] | None = None,
        states: NDArray[Any] | None = None,
        actions: NDArray[np.int64] | None = None,
        by_step: bool = False,
    ) -> None:
        self.reward, self.by_step = reward, by_step
        self._known = {"gap": gap, "switched": switched, "states": states, "actions": actions}

    def __repr__(self) -> str:
        return f"Run({len(self.reward)} {'steps' if self.by_step else 'episodes'}, mean reward {self.reward.mean():g})"

    @property
    def gap(self) -> NDArray[np.float64]:
        """[K] V*_1 - V^{π_k}_1, exact, averaged over the first state."""
        return self._recorded("gap", "ucbf.simulate, in a ucbf.World")

    @property
    def switched(self) -> NDArray[np.bool_]:
        """[K] whether the policy was another than in the episode before."""
        return self._recorded("switched", "ucbf.simulate, in a ucbf.World")

    @property
    def states(self) -> NDArray[Any]:
        """[K, H+1] or [K, H+1, d]."""
        return self._recorded("states", "ucbf.replay")

    @property
    def actions(self) -> NDArray[np.int64]:
        """[K, H]."""
        return self._recorded("actions", "ucbf.replay")

    @property
    def switches(self) -> int:
        """How often the policy changed from one episode to the next."""
        return int(self.switched.sum())

    @property
    def regret(self) -> NDArray[np.float64]:
        """[K] the cumulative gap."""
        return np.cumsum(self.gap)

    def _recorded(self, name: str, by: str) -> NDArray[Any]:
        array = self._known[name]
        if array is None:
            raise AttributeError(f"{name} is not known of this run; only {by}, gives it")
        return array
