"""A battery, or any load that can wait: buy at prices that are known for the day, against a demand that is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import real
from ucbf.rules import aim_at
from ucbf.systems.base import PerStep, Ready, best_of
from ucbf.world import World


@dataclass(frozen=True, kw_only=True)
class Battery(Ready):
    """Each step: buy (or sell) at a known price; then the net demand comes, and the battery takes up the difference.

    Parameters
    ----------
    capacity
        Of the battery.
    prices
        Of a unit at each step, known for the whole day.
    max_buy
        The most that can be bought in a step.
    max_sell
        The most that can be sold in a step.
    min_demand
        The least net demand; below zero where there is generation of one's own.
    max_demand
        The most.
    efficiency
        What is left of a unit that is paid for, once it has arrived; amounts bought are what arrives.
    shortage_price
        Of each unit that neither the purchase nor the battery covers.
    spill_price
        Paid for each unit that does not fit; below zero if it costs.
    end_value
        Worth of each unit in the battery after the last step; the mean price if None (over past days, where prices
        change from day to day).
    horizon
        Steps of an episode.
    discount
        What a reward one step later is worth, at most 1.
    unit
        All amounts are multiples of it.
    profile
        The net demand expected at each step; W is then how much less it was, and may be pooled over steps.
    """

    kind = "battery"
    amount_name, state_name, action_name, step_name = "net demand", "charge", "purchase", "hour"
    sign = -1
    limits = "min_demand, max_demand"
    multiples = ("capacity", "max_buy", "max_sell")
    raises = "buy"

    horizon: int = 24
    capacity: float = 20
    prices: PerStep = 1.0
    max_buy: float = 10
    max_sell: float = 0
    min_demand: float = 0
    max_demand: float = 10
    efficiency: float = 1.0
    shortage_price: float = 5.0
    spill_price: float = 0.0
    end_value: float | None = None

    def check(self) -> None:
        """An error for a parameter that makes no sense."""
        self.at_least(self.unit, "capacity", "max_buy")
        self.at_least(0, "max_sell")
        real("efficiency", self.efficiency, 0, 1, open_low=True)
        self.per_step("prices")

    @property
    def amount_range(self) -> tuple[float, float]:
        """The least and the most net demand."""
        return self.min_demand, self.max_demand

    @property
    def action_amounts(self) -> NDArray[Any]:
        """[A] how much is bought; below zero, sold."""
        return np.arange(-self.multiple("max_sell"), self.multiple("max_buy") + 1) * self.unit

    def anchored(self, changes: Sequence[dict[str, Any]]) -> Battery:
        """The same with the end valued by the mean price of those days: a dear day's rest is not sold at its price."""
        prices = [change["prices"] for change in changes if "prices" in change]
        if self.end_value is not None or not prices:
            return self
        return self.replace(end_value=float(np.mean(prices)))

    def own_rules(self, world: World) -> dict[str, NDArray[np.int64]]:
        """Buy what is expected to bring the battery to one level, the best of all, whatever the price."""
        capacity = self.multiple("capacity")
        return {"one level": best_of(world, [aim_at(self.system, world.law, x) for x in range(capacity + 1)])}

    @classmethod
    def sizes(cls, least: float, mean: float, most: float) -> dict[str, Any]:
        """Two steps of the largest demand in the battery, one and a half from the grid."""
        below = {"min_demand": 1.5 * least} if least < 0 else {}
        return {"max_demand": 1.25 * most, "capacity": 2 * most, "max_buy": 1.5 * most, **below}

    def mechanics(self) -> dict[str, Any]:
        """The arguments of the System, but for what all kinds share."""
        capacity, u, prices, expected = self.multiple("capacity"), self.unit, self.per_step("prices"), self.expected
        bought, sold = self.action_amounts, self.multiple("max_sell")
        end_value = float(prices.mean()) if self.end_value is None else self.end_value

        def reward(h: int, charge: NDArray[np.int64], a: NDArray[np.int64]) -> NDArray[Any]:
            paid: NDArray[np.float64] = -prices[h] * np.where(bought > 0, bought / self.efficiency, bought)
            return paid[a]

        def landing(z: NDArray[np.int64]) -> NDArray[Any]:
            return u * (self.spill_price * np.maximum(z - capacity, 0) - self.shortage_price * np.maximum(-z, 0))

        return {
            "f": lambda h, charge, a: charge + (a - sold) - expected[h],
            "reward": reward,
            "landing": landing,
            "allowed": lambda charge, a: charge + (a - sold) >= 0,  # what is sold must be there
            "terminal": lambda charge: end_value * u * charge,
            "n_states": capacity + 1,
            "n_actions": len(bought),
        }
