"""A battery, or any load that can wait: prices are known for the day, the demand is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import real
from ucbf.rules import aim_at
from ucbf.systems.base import Preset, best_policy
from ucbf.systems.parameters import PerStep
from ucbf.world import World


@dataclass(frozen=True, kw_only=True)
class Battery(Preset):
    """Each step: buy or sell at a known price. Then the net demand comes, and the battery covers the difference.

    All amounts are counted at the battery: a purchase as it arrives there, a sale and the demand as they leave it. What
    is lost on the way changes what is paid, and nothing else: p · x / efficiency for a purchase of x at price p,
    p · x · discharge_efficiency for a sale. A demand that is measured behind the losses is to be divided by
    discharge_efficiency beforehand.

    ``max_buy`` and ``max_sell`` limit what goes through the connection to the grid in a step, ``max_charge`` and
    ``max_discharge`` what goes into and out of the battery: the purchase less the demand. What is beyond is short or
    spilled.

    Parameters
    ----------
    capacity
        The most that the battery holds.
    prices
        Price of a unit at each step, known for the whole day.
    max_buy
        The most that can be bought in a step.
    max_sell
        The most that can be sold in a step.
    max_charge
        The most that goes into the battery in a step; None: no limit. With one the state is a row of one number.
    max_discharge
        The most that goes out of the battery in a step; None: no limit. With one the state is a row of one number.
    min_demand
        The least net demand in a step; below zero where own generation may exceed the demand.
    max_demand
        The most net demand in a step.
    efficiency
        The share of a purchase that arrives at the battery; all of it is paid for.
    discharge_efficiency
        The share of a sale that arrives at the grid; only that is paid for.
    shortage_price
        Cost of each unit of demand that neither the purchase nor the battery covers.
    spill_price
        Reward for each unit that does not fit into the battery; below zero if it costs.
    end_value
        Value of each unit in the battery after the last step. None: the mean price of the day, or that of the training
        days where prices change from day to day.
    horizon
        Number of steps of an episode.
    discount
        What a reward is worth if it comes one step later, at most 1.
    unit
        Charge, purchases and demand are counted in multiples of it.
    profile
        The net demand expected at each step. W is then by how much it was lower, and steps may share a distribution.
    """

    kind = "battery"
    amount_name, state_name, action_name, step_name = "net demand", "charge", "purchase", "hour"
    sign = -1
    range_parameters = ("min_demand", "max_demand")
    multiples_of_unit = ("capacity", "max_buy", "max_sell", "max_charge", "max_discharge")
    money = ("prices", "shortage_price", "spill_price", "end_value")
    raising_verb = "buy"

    horizon: int = 24
    capacity: float = 20
    prices: PerStep = 1.0
    max_buy: float = 10
    max_sell: float = 0
    max_charge: float | None = None
    max_discharge: float | None = None
    min_demand: float = 0
    max_demand: float = 10
    efficiency: float = 1.0
    discharge_efficiency: float = 1.0
    shortage_price: float = 5.0
    spill_price: float = 0.0
    end_value: float | None = None

    def check(self) -> None:
        """Raise an error for a parameter that makes no sense."""
        self.check_at_least(self.unit, "capacity", "max_buy")
        self.check_at_least(
            0, "max_sell", *(n for n in ("max_charge", "max_discharge") if getattr(self, n) is not None)
        )
        for name in ("efficiency", "discharge_efficiency"):
            real(name, getattr(self, name), 0, 1, open_low=True)
        self.per_step("prices")

    @property
    def amount_range(self) -> tuple[float, float]:
        """From min_demand to max_demand."""
        return self.min_demand, self.max_demand

    @property
    def beyond_a_line(self) -> bool:
        """Where what goes into or out of the battery is limited."""
        return self.max_charge is not None or self.max_discharge is not None

    @property
    def action_quantities(self) -> NDArray[Any]:
        """[A] how much each action buys; below zero, sells."""
        return np.arange(-self.units_of("max_sell"), self.units_of("max_buy") + 1) * self.unit

    def with_defaults_fixed(self, training_changes: Sequence[dict[str, Any]]) -> Battery:
        """A copy whose end_value is the mean price of the training days, unless it was given.

        Otherwise what is left on an expensive day would count at the price of that day.
        """
        prices = [change["prices"] for change in training_changes if "prices" in change]
        if self.end_value is not None or not prices:
            return self
        return self.replace(end_value=float(np.mean(prices)))

    def own_rules(self, world: World) -> dict[str, NDArray[np.int64]]:
        """Buy what is expected to bring the battery to one level, whatever the price; the best of all levels."""
        if self.beyond_a_line:
            return {}
        capacity = self.units_of("capacity")
        return {"one level": best_policy(world, [aim_at(self.system, world.law, x) for x in range(capacity + 1)])}

    @classmethod
    def suggested_sizes(cls, least: float, mean: float, most: float, **given: Any) -> dict[str, Any]:
        """Room for twice the largest demand; a purchase may be one and a half times the largest demand."""
        below = {"min_demand": 1.5 * least} if least < 0 else {}
        return {"max_demand": 1.25 * most, "capacity": 2 * most, "max_buy": 1.5 * most, **below}

    def mechanics(self) -> dict[str, Any]:
        """The arguments of the System that differ from preset to preset."""
        capacity, u, prices = self.units_of("capacity"), self.unit, self.per_step("prices")
        bought, sold, expected = self.action_quantities, self.units_of("max_sell"), self.expected_amount
        at_grid = np.where(bought > 0, bought / self.efficiency, bought * self.discharge_efficiency)
        end_value = float(prices.mean()) if self.end_value is None else self.end_value

        def reward(h: int, charge: NDArray[np.int64], a: NDArray[np.int64]) -> NDArray[Any]:
            paid: NDArray[np.float64] = -prices[h] * at_grid
            return paid[a]

        def landing(z: NDArray[np.int64]) -> NDArray[Any]:
            return u * (self.spill_price * np.maximum(z - capacity, 0) - self.shortage_price * np.maximum(-z, 0))

        if self.beyond_a_line:
            return self._limited(reward, end_value)
        return {
            "f": lambda h, charge, a: charge + (a - sold) - expected[h],
            "reward": reward,
            "landing": landing,
            "allowed": lambda charge, a: charge + (a - sold) >= 0,  # what is sold must be there
            "terminal": lambda charge: end_value * u * charge,
            "n_states": capacity + 1,
            "n_actions": len(bought),
        }

    def _limited(self, reward: Any, end_value: float) -> dict[str, Any]:
        """The same with limits on what goes into and out of the battery.

        Raw next state: where purchase and demand lead, and the charge before, which says how far it can get.
        """
        capacity, sold, expected = self.units_of("capacity"), self.units_of("max_sell"), self.expected_amount
        most = capacity if self.max_charge is None else self.units_of("max_charge")
        least = capacity if self.max_discharge is None else self.units_of("max_discharge")

        def lead(h: int, charge: NDArray[np.int64], a: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.stack([charge[:, 0] + (a - sold) - expected[h], charge[:, 0]], axis=1)

        def reached(z: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.clip(np.clip(z[:, :1], z[:, 1:] - least, z[:, 1:] + most), 0, capacity)

        def landing(z: NDArray[np.int64]) -> NDArray[Any]:
            beyond = z[:, 0] - reached(z)[:, 0]
            cost = self.shortage_price * np.maximum(-beyond, 0) - self.spill_price * np.maximum(beyond, 0)
            paid: NDArray[Any] = -self.unit * cost
            return paid

        return {
            "f": lead,
            "reward": lambda h, charge, a: reward(h, charge[:, 0], a),
            "landing": landing,
            "boundary": reached,
            "allowed": lambda charge, a: charge[:, 0] + (a - sold) >= 0,
            "terminal": lambda charge: end_value * self.unit * charge[:, 0],
            "low": [0],
            "high": [capacity],
            "actions": np.arange(len(self.action_quantities)),
            "raw_axes": 2,
        }
