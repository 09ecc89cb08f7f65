"""The shower: a small control problem with which reinforcement learning is often taught."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.systems.base import Preset


@dataclass(frozen=True, kw_only=True)
class Shower(Preset):
    """Each step: turn the tap by -1, 0 or 1 degrees. Then the temperature drifts, by -1, 0 or 1 degrees.

    Parameters
    ----------
    coldest, hottest
        The lowest and the highest temperature.
    target_low, target_high
        A step that ends between them pays 1, any other costs 1.
    drift
        The most by which the temperature drifts in a step, either way.
    horizon
        Number of steps of an episode.
    discount
        What a reward is worth if it comes one step later, at most 1.
    unit
        Temperatures are counted in multiples of it; the tap turns by one unit.
    profile
        The drift expected at each step. W is then how much warmer it became.
    """

    kind = "shower"
    amount_name, state_name, action_name, step_name = "drift", "temperature", "turn", "second"
    sign = 1
    range_parameters = ("drift",)
    multiples_of_unit = ("coldest", "hottest")

    horizon: int = 60
    coldest: float = 0
    hottest: float = 100
    target_low: float = 37
    target_high: float = 39
    drift: float = 1

    def check(self) -> None:
        """Raise an error for a parameter that makes no sense."""
        self.check_at_least(0, "drift")
        if not self.coldest <= self.target_low <= self.target_high <= self.hottest:
            raise ValueError(
                f"the target {self.target_low:g}..{self.target_high:g} is not within {self.coldest:g}..{self.hottest:g}"
            )

    @property
    def amount_range(self) -> tuple[float, float]:
        """From -drift to drift."""
        return -self.drift, self.drift

    @property
    def action_quantities(self) -> NDArray[Any]:
        """[A] how many degrees each action turns the tap."""
        return np.array([-1.0, 0.0, 1.0]) * self.unit

    def mechanics(self) -> dict[str, Any]:
        """The arguments of the System that differ from preset to preset."""
        coldest, hottest, u, expected = (
            self.units_of("coldest"),
            self.units_of("hottest"),
            self.unit,
            self.expected_amount,
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
