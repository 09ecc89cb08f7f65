"""The shower that beginners in reinforcement learning start with, and often fail on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.systems.base import Ready


@dataclass(frozen=True, kw_only=True)
class Shower(Ready):
    """Each step: turn the tap by -1, 0 or 1 degrees; then the temperature moves by itself, by -1, 0 or 1.

    Parameters
    ----------
    coldest, hottest
        The range of temperatures.
    target_low, target_high
        Within them a step pays 1, outside it costs 1.
    drift
        The most by which the temperature moves by itself.
    horizon
        Steps of an episode.
    discount
        What a reward one step later is worth, at most 1.
    unit, profile
        Degrees that count as one; the drift expected at each step.
    """

    kind = "shower"
    amount_name, state_name, action_name, step_name = "drift", "temperature", "turn", "second"
    sign = 1
    limits = "drift"
    multiples = ("coldest", "hottest")

    horizon: int = 60
    coldest: float = 0
    hottest: float = 100
    target_low: float = 37
    target_high: float = 39
    drift: float = 1

    def check(self) -> None:
        """An error for a parameter that makes no sense."""
        self.at_least(0, "drift")
        if not self.coldest <= self.target_low <= self.target_high <= self.hottest:
            raise ValueError(
                f"the target {self.target_low:g}..{self.target_high:g} is not within {self.coldest:g}..{self.hottest:g}"
            )

    @property
    def amount_range(self) -> tuple[float, float]:
        """Colder by the drift, and hotter."""
        return -self.drift, self.drift

    @property
    def action_amounts(self) -> NDArray[Any]:
        """[A] turns."""
        return np.array([-1.0, 0.0, 1.0]) * self.unit

    def mechanics(self) -> dict[str, Any]:
        """The arguments of the System, but for what all kinds share."""
        coldest, hottest, u, expected = (
            self.multiple("coldest"),
            self.multiple("hottest"),
            self.unit,
            self.expected,
        )

        def landing(z: NDArray[np.int64]) -> NDArray[Any]:
            warm = np.clip(z, coldest, hottest) * u
            return np.where((warm >= self.target_low) & (warm <= self.target_high), 1.0, -1.0)

        return {
            "f": lambda h, warm, a: warm + (a - 1) + expected[h],
            "reward": lambda warm, a: 0.0 * a,
            "landing": landing,
            "state_offset": coldest,
            "n_states": hottest - coldest + 1,
            "n_actions": 3,
        }
