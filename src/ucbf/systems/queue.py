"""A queue: choose how fast to serve; faster service costs more, and so does waiting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.systems.base import Preset, best_policy
from ucbf.world import World


@dataclass(frozen=True, kw_only=True)
class Queue(Preset):
    """Each step: choose how many to serve. Then others arrive, and those who find no room are turned away.

    Parameters
    ----------
    capacity
        The most that can wait.
    max_arrivals
        The most that can arrive in a step.
    service
        The choices: how many are served in a step.
    service_cost
        Cost of each choice.
    waiting_cost
        Cost of each who waits at the end of a step.
    rejection_cost
        Cost of each who is turned away.
    end_cost
        Cost of each who waits after the last step.
    horizon
        Number of steps of an episode.
    discount
        What a reward is worth if it comes one step later, at most 1.
    unit
        Where there are many, count them in multiples of it.
    profile
        The arrivals expected at each step. W is then how many more came, and steps may share a distribution.
    """

    kind = "queue"
    amount_name, state_name, action_name, step_name = "arrivals", "waiting", "service", "hour"
    sign = 1
    range_parameters = ("max_arrivals",)
    multiples_of_unit = ("capacity", "service")

    horizon: int = 12
    capacity: float = 20
    max_arrivals: float = 8
    service: tuple[float, ...] = (0, 2, 4, 6)
    service_cost: tuple[float, ...] = (0, 2, 5, 9)
    waiting_cost: float = 1.0
    rejection_cost: float = 20.0
    end_cost: float = 0.0

    def check(self) -> None:
        """Raise an error for a parameter that makes no sense."""
        self.check_at_least(0, "max_arrivals", "service", "waiting_cost", "rejection_cost", "end_cost")
        self.check_at_least(self.unit, "capacity")
        choices, costs = np.size(self.service), np.size(self.service_cost)
        if choices != costs or np.ndim(self.service) != 1 or np.ndim(self.service_cost) != 1 or not choices:
            raise ValueError(f"service has {choices} choices and service_cost {costs}; give each its cost")

    @property
    def amount_range(self) -> tuple[float, float]:
        """From no arrivals to max_arrivals."""
        return 0.0, self.max_arrivals

    @property
    def action_quantities(self) -> NDArray[Any]:
        """[A] how many each action serves."""
        return np.array(self.service, dtype=np.float64)

    def own_rules(self, world: World) -> dict[str, NDArray[np.int64]]:
        """Always the same service, the best of all choices."""
        shape = self.system.f.shape[:2]
        return {"one service": best_policy(world, [np.full(shape, a) for a in range(len(self.service))])}

    @classmethod
    def suggested_sizes(cls, least: float, mean: float, most: float) -> dict[str, Any]:
        """Room for three times the largest arrivals; services from none to twice the mean."""
        return {"max_arrivals": 1.5 * most, "capacity": 3 * most, "service": (0.0, mean / 2, mean, 2 * mean)}

    def mechanics(self) -> dict[str, Any]:
        """The arguments of the System that differ from preset to preset."""
        capacity, expected, served = self.units_of("capacity"), self.expected_amount, self.to_units(self.service)
        costs = np.array(self.service_cost, dtype=np.float64)

        def landing(z: NDArray[np.int64]) -> NDArray[Any]:
            waiting = self.waiting_cost * np.clip(z, 0, capacity)
            return -self.unit * (waiting + self.rejection_cost * np.maximum(z - capacity, 0))

        return {
            "f": lambda h, waiting, a: np.maximum(waiting - served[a], 0) + expected[h],
            "reward": lambda waiting, a: -costs[a],
            "landing": landing,
            "terminal": lambda waiting: -self.end_cost * self.unit * waiting,
            "n_states": capacity + 1,
            "n_actions": len(costs),
        }
