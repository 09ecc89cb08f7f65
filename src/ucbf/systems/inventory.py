"""A store: order, meet the demand, keep what is left; demand that finds no stock is lost or waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.rules import up_to
from ucbf.systems.base import Preset, best_policy
from ucbf.world import World


@dataclass(frozen=True, kw_only=True)
class Inventory(Preset):
    """Each step: order, and the order arrives at once. Then demand comes; what is not in stock is lost or owed.

    Parameters
    ----------
    capacity
        The most that can be in stock after ordering.
    max_demand
        The largest demand of a step.
    backlog
        The most that can be owed to waiting customers; demand beyond it is lost. 0: nobody waits.
    max_order
        The most that can be ordered at once; as much as fits if None.
    price
        What customers pay for each unit sold.
    unit_cost
        Cost of each unit ordered.
    order_cost
        Cost of placing an order, whatever its size.
    holding
        Cost of each unit left at the end of a step.
    storage
        Cost of each unit in stock right after ordering.
    penalty
        Cost of each unit missing at the end of a step, lost or owed.
    salvage
        Value of each unit left after the last step; unit_cost if None.
    horizon
        Number of steps of an episode.
    discount
        What a reward is worth if it comes one step later, at most 1.
    unit
        Stock, orders and demand are counted in multiples of it.
    profile
        The demand expected at each step. W is then by how much demand was lower, and steps may share a distribution.

    Examples
    --------
    >>> shop = Inventory(capacity=10, max_demand=6, horizon=5, unit_cost=2, order_cost=3, holding=1, penalty=9)
    >>> shop.system
    System(11 states 0..10, 11 actions, horizon 5, boundary 'clip', model_error 0)
    """

    kind = "inventory"
    amount_name, state_name, action_name, step_name = "demand", "stock", "order", "day"
    sign = -1
    range_parameters = ("max_demand",)
    multiples_of_unit = ("capacity", "backlog", "max_order")
    raising_verb = "order"

    horizon: int = 7
    capacity: float = 20
    max_demand: float = 15
    backlog: float = 0
    max_order: float | None = None
    price: float = 9
    unit_cost: float = 4
    order_cost: float = 0
    holding: float = 0.5
    storage: float = 0
    penalty: float = 0
    salvage: float | None = None

    def check(self) -> None:
        """Raise an error for a parameter that makes no sense."""
        self.check_at_least(0, "max_demand", "backlog", "price", "unit_cost", "order_cost")
        self.check_at_least(0, "holding", "storage", "penalty")
        self.check_at_least(self.unit, "capacity", *(["max_order"] if self.max_order is not None else []))

    @property
    def amount_range(self) -> tuple[float, float]:
        """From no demand to max_demand."""
        return 0.0, self.max_demand

    @property
    def action_quantities(self) -> NDArray[Any]:
        """[A] how much each action orders."""
        most = self.units_of("capacity") + self.units_of("backlog")
        if self.max_order is not None:
            most = min(most, self.units_of("max_order"))
        return np.arange(most + 1) * self.unit

    def own_rules(self, world: World) -> dict[str, NDArray[np.int64]]:
        """Base-stock levels by the critical ratio of every step; with an order_cost also the best (s, S) policy."""
        demand = self.amount_distribution(world.law)
        salvage = self.unit_cost if self.salvage is None else self.salvage
        lost = self.penalty if self.backlog else self.price + self.penalty - self.unit_cost
        short, over = lost - self.storage, self.unit_cost + self.holding - salvage + self.storage
        ratio = short / (short + over) if short > 0 and short + over > 0 else 0.0 if short <= 0 else 1.0
        enough = np.cumsum(demand.pmf, axis=1) >= ratio - 1e-12
        levels = demand.low + np.where(enough.any(axis=1), enough.argmax(axis=1), enough.shape[1] - 1)
        levels = np.minimum(levels, self.units_of("capacity"))
        rules = {"base-stock": up_to(self.system, levels)}
        if self.order_cost > 0:
            rules["(s, S)"] = best_policy(world, self._reorder_policies())
        return rules

    def _reorder_policies(self) -> list[NDArray[np.int64]]:
        """(s, S) policies: order up to S when below s, the same at every step. Some 40 levels of each are tried."""
        states = self.system.states
        grid, stock = states[:: max(1, len(states) // 40)], np.array(states)
        idle = up_to(self.system, states[0])
        raised = {top: up_to(self.system, top) for top in grid}
        return [np.where(stock < below, raised[top], idle) for top in grid for below in grid if below <= top]

    @classmethod
    def suggested_sizes(cls, least: float, mean: float, most: float) -> dict[str, Any]:
        """Room for twice the largest demand so far; a demand may be half as large again."""
        return {"max_demand": 1.5 * most, "capacity": 2 * most}

    def mechanics(self) -> dict[str, Any]:
        """The arguments of the System that differ from preset to preset."""
        capacity, backlog, u = self.units_of("capacity"), self.units_of("backlog"), self.unit
        expected, orders = self.expected_amount, self.action_quantities
        salvage = self.unit_cost if self.salvage is None else self.salvage

        def reward(stock: NDArray[np.int64], a: NDArray[np.int64]) -> NDArray[Any]:
            bought = self.unit_cost * orders[a] + self.order_cost * (a > 0)
            full = (stock + a) * u
            paid: NDArray[Any] = self.price * full - self.storage * np.maximum(full, 0) - bought  # as if all were sold
            return paid

        def landing(z: NDArray[np.int64]) -> NDArray[Any]:
            unsold = self.price * np.maximum(z, -backlog)
            cost = unsold + self.holding * np.maximum(z, 0) + self.penalty * np.maximum(-z, 0)
            paid: NDArray[Any] = -u * cost
            return paid

        return {
            "f": lambda h, stock, a: stock + a - expected[h],
            "reward": reward,
            "landing": landing,
            "allowed": lambda stock, a: stock + a <= capacity,
            "terminal": lambda stock: salvage * stock * u,
            "state_offset": -backlog,
            "n_states": capacity + backlog + 1,
            "n_actions": len(orders),
        }
