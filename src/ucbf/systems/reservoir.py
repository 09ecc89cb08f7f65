"""A reservoir: release water before the inflow is known; what does not fit is spilled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.systems.base import Preset
from ucbf.systems.parameters import PerStep
from ucbf.world import World


@dataclass(frozen=True, kw_only=True)
class Reservoir(Preset):
    """Each step: release some of the stored water. Then inflow comes, and what does not fit is spilled.

    Parameters
    ----------
    capacity
        The most that can be stored.
    max_inflow
        The largest inflow of a step.
    max_release
        The most that can be released in a step; all that is stored if None.
    value
        Value of each unit released; one number, or one for each step.
    target
        How much should be released at each step.
    shortage_cost
        Cost of each unit by which a release is below the target.
    spill_cost
        Cost of each unit that is spilled.
    water_value
        Value of each unit stored after the last step.
    horizon
        Number of steps of an episode.
    discount
        What a reward is worth if it comes one step later, at most 1.
    unit
        Storage, releases and inflow are counted in multiples of it.
    profile
        The inflow expected at each step. W is then how much more came, and steps may share a distribution.
    """

    kind = "reservoir"
    amount_name, state_name, action_name, step_name = "inflow", "storage", "release", "month"
    sign = 1
    range_parameters = ("max_inflow",)
    multiples_of_unit = ("capacity", "max_release")
    money = ("value", "shortage_cost", "spill_cost", "water_value")

    horizon: int = 12
    capacity: float = 30
    max_inflow: float = 15
    max_release: float | None = None
    value: PerStep = 0.0
    target: PerStep = 5.0
    shortage_cost: PerStep = 1.0
    spill_cost: float = 0.0
    water_value: float = 0.0

    def check(self) -> None:
        """Raise an error for a parameter that makes no sense."""
        self.check_at_least(0, "max_inflow", "target", "shortage_cost", "spill_cost")
        self.check_at_least(self.unit, "capacity", *(["max_release"] if self.max_release is not None else []))
        for name in ("value", "target", "shortage_cost"):
            self.per_step(name)

    @property
    def amount_range(self) -> tuple[float, float]:
        """From no inflow to max_inflow."""
        return 0.0, self.max_inflow

    @property
    def action_quantities(self) -> NDArray[Any]:
        """[A] how much each action releases."""
        most = self.units_of("capacity") if self.max_release is None else self.units_of("max_release")
        return np.arange(most + 1) * self.unit

    def own_rules(self, world: World) -> dict[str, NDArray[np.int64]]:
        """Release the target, or without a target the mean inflow, as far as there is water."""
        inflow = self.amount_distribution(world.law)
        mean = np.array([inflow.mean(h) for h in range(self.n_steps)])
        target = self.per_step("target")
        wanted = self.to_units(target) if target.any() else np.rint(mean).astype(np.int64)
        stored, most = np.array(self.system.states), len(self.action_quantities) - 1
        name = "release the target" if target.any() else "release the mean inflow"
        return {name: np.minimum(np.minimum(wanted[:, None], stored), most)}

    @classmethod
    def suggested_sizes(cls, least: float, mean: float, most: float, **given: Any) -> dict[str, Any]:
        """Room for five mean inflows; two of them can be released in a step, and one is the target."""
        return {"max_inflow": 1.5 * most, "capacity": 5 * mean, "max_release": 2 * mean, "target": mean}

    def mechanics(self) -> dict[str, Any]:
        """The arguments of the System that differ from preset to preset."""
        capacity, expected, released = self.units_of("capacity"), self.expected_amount, self.action_quantities
        value, target, shortage = (self.per_step(name) for name in ("value", "target", "shortage_cost"))

        def reward(h: int, stored: NDArray[np.int64], a: NDArray[np.int64]) -> NDArray[Any]:
            paid: NDArray[Any] = value[h] * released - shortage[h] * np.maximum(target[h] - released, 0)
            return paid[a]

        return {
            "f": lambda h, stored, a: stored - a + expected[h],
            "reward": reward,
            "landing": lambda z: -self.spill_cost * self.unit * np.maximum(z - capacity, 0),
            "allowed": lambda stored, a: a <= stored,
            "terminal": lambda stored: self.water_value * self.unit * stored,
            "n_states": capacity + 1,
            "n_actions": len(released),
        }
