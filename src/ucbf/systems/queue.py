"""A queue: choose how fast to serve; faster service costs more, and so does waiting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import whole
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
    start_cost
        Cost of each choice up from that of the step before: a server that is started. The state is then who waits, and
        the number of the choice before.
    stop_cost
        Cost of each choice down from that of the step before: a server that is stopped.
    max_change
        By how many choices a step may differ from the one before; None: by any.
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
    said_if_used = ("period", "start_cost", "stop_cost")
    money = ("service_cost", "waiting_cost", "rejection_cost", "end_cost", "start_cost", "stop_cost")

    horizon: int = 12
    capacity: float = 20
    max_arrivals: float = 8
    service: tuple[float, ...] = (0, 2, 4, 6)
    service_cost: tuple[float, ...] = (0, 2, 5, 9)
    waiting_cost: float = 1.0
    rejection_cost: float = 20.0
    end_cost: float = 0.0
    start_cost: float = 0.0
    stop_cost: float = 0.0
    max_change: int | None = None

    def check(self) -> None:
        """Raise an error for a parameter that makes no sense."""
        self.check_at_least(0, "max_arrivals", "service", "waiting_cost", "rejection_cost", "end_cost")
        self.check_at_least(self.unit, "capacity")
        self.check_at_least(0, "start_cost", "stop_cost")
        if self.max_change is not None:
            whole("max_change", self.max_change, 1)
        choices, costs = np.size(self.service), np.size(self.service_cost)
        if choices != costs or np.ndim(self.service) != 1 or np.ndim(self.service_cost) != 1 or not choices:
            raise ValueError(f"service has {choices} choices and service_cost {costs}; give each its cost")

    @property
    def amount_range(self) -> tuple[float, float]:
        """From no arrivals to max_arrivals."""
        return 0.0, self.max_arrivals

    @property
    def beyond_a_line(self) -> bool:
        """Where it matters what was chosen before."""
        return bool(self.start_cost or self.stop_cost) or self.max_change is not None

    @property
    def action_quantities(self) -> NDArray[Any]:
        """[A] how many each action serves."""
        return np.array(self.service, dtype=np.float64)

    def own_rules(self, world: World) -> dict[str, NDArray[np.int64]]:
        """Always the same service, the best of all choices."""
        if self.max_change is not None:
            return {}
        shape = self.system.f.shape[:2]
        return {"one service": best_policy(world, [np.full(shape, a) for a in range(len(self.service))])}

    @classmethod
    def suggested_sizes(cls, least: float, mean: float, most: float, **given: Any) -> dict[str, Any]:
        """Room for three times the largest arrivals; services from none to twice the mean."""
        return {"max_arrivals": 1.5 * most, "capacity": 3 * most, "service": (0.0, mean / 2, mean, 2 * mean)}

    def mechanics(self) -> dict[str, Any]:
        """The arguments of the System that differ from preset to preset."""
        capacity, expected, served = self.units_of("capacity"), self.expected_amount, self.to_units(self.service)
        costs = np.array(self.service_cost, dtype=np.float64)

        def landing(z: NDArray[np.int64]) -> NDArray[Any]:
            waiting = self.waiting_cost * np.clip(z, 0, capacity)
            return -self.unit * (waiting + self.rejection_cost * np.maximum(z - capacity, 0))

        if self.beyond_a_line:
            return self._with_choice_before(landing)
        return {
            "f": lambda h, waiting, a: np.maximum(waiting - served[a], 0) + expected[h],
            "reward": lambda waiting, a: -costs[a],
            "landing": landing,
            "terminal": lambda waiting: -self.end_cost * self.unit * waiting,
            "n_states": capacity + 1,
            "n_actions": len(costs),
        }

    def _with_choice_before(self, landing: Callable[..., Any]) -> dict[str, Any]:
        """State: who waits, and the choice before, which changing costs."""
        capacity, expected, served = self.units_of("capacity"), self.expected_amount, self.to_units(self.service)
        costs = np.array(self.service_cost, dtype=np.float64)

        def reward(s: NDArray[np.int64], a: NDArray[np.int64]) -> NDArray[Any]:
            more, fewer = np.maximum(a - s[:, 1], 0), np.maximum(s[:, 1] - a, 0)
            paid: NDArray[Any] = -costs[a] - self.start_cost * more - self.stop_cost * fewer
            return paid

        def lead(h: int, s: NDArray[np.int64], a: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.stack([np.maximum(s[:, 0] - served[a], 0) + expected[h], a], axis=1)

        def near(s: NDArray[np.int64], a: NDArray[np.int64]) -> Any:
            return np.abs(a - s[:, 1]) <= (len(costs) if self.max_change is None else self.max_change)

        return {
            "f": lead,
            "reward": reward,
            "landing": lambda z: landing(z[:, 0]),
            "allowed": near,
            "terminal": lambda s: -self.end_cost * self.unit * s[:, 0],
            "low": [0, 0],
            "high": [capacity, len(costs) - 1],
            "actions": np.arange(len(costs)),
            "raw_axes": 2,
        }
