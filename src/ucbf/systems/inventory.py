"""A store: order, meet the demand, keep what is left; demand that finds no stock is lost or waits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import numbers, one_of, real, whole
from ucbf.disturbance import Disturbance
from ucbf.rules import up_to
from ucbf.systems.base import Preset, best_policy
from ucbf.systems.pipelines import Store, only_at_reviews
from ucbf.world import World

MOST_LEAD_TIME = 1000  # steps
MOST_UNITS_OF_ROOM = 512  # of a capacity that is chosen for dear orders: tables grow with its square


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
    pack
        Orders are multiples of it; multiples of ``unit`` if None.
    min_order
        The least that can be ordered: an order is 0, or at least so much.
    review
        Orders can be placed at every so many steps: the first step of an episode, and every ``review`` steps after it.
    price
        What customers pay for each unit sold.
    unit_cost
        Cost of each unit ordered.
    price_breaks
        Pairs (quantity, unit cost): from that quantity on every unit of an order costs so much. unit_cost applies below
        the first. None: it applies to all orders.
    order_cost
        Cost of placing an order, whatever its size.
    holding
        Cost of each unit left at the end of a step.
    storage
        Cost of each unit in stock right after ordering.
    penalty
        Cost of each unit missing at the end of a step, lost or owed.
    salvage
        Value of each unit left after the last step; if None the lowest unit cost, so that nobody buys for the end.
    horizon
        Number of steps of an episode.
        None: there is no end; ``period`` then says after how many steps everything comes round again.
    lead_time
        An order of step t can be sold from step t + lead_time on; 0: at once. Where customers wait (backlog), the
        state is the stock with all that is under way, less what is owed, so that a lead time of 30 costs no more than
        one of 1; holding and penalty are those of the step in which the order has come. Else the state is the stock,
        with what came this step, and each order under way; what comes and does not fit into ``capacity`` is thrown
        away.
    shelf_life
        How many steps a unit can be sold, the step in which it comes included; None: for ever. A unit that is then left
        costs ``waste``. Nobody waits then (backlog 0).
    issue
        Where stock ages: "first" (what came first is sold first) or "last".
    waste
        Cost of each unit that is thrown away because of its age.
    fast_cost
        Cost of each unit from a second supplier, who is faster; None: there is none.
    fast_lead_time
        The lead time of the second supplier, shorter than ``lead_time``.
    max_fast
        The most that can be ordered from the second supplier at once; max_order if None.
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
    said_if_used = ("period", "lead_time", "issue", "waste", "fast_lead_time")
    multiples_of_unit = ("capacity", "backlog", "max_order", "pack", "min_order", "max_fast")
    money = (
        "price", "unit_cost", "price_breaks", "order_cost", "holding", "storage", "penalty", "salvage", "waste",
        "fast_cost",
    )  # fmt: skip
    raising_verb = "order"
    total_name = "stock and orders under way"

    horizon: int | None = 7
    capacity: float = 20
    max_demand: float = 15
    backlog: float = 0
    max_order: float | None = None
    pack: float | None = None
    min_order: float = 0
    review: int = 1
    price: float = 9
    unit_cost: float = 4
    price_breaks: tuple[tuple[float, float], ...] | None = None
    order_cost: float = 0
    holding: float = 0.5
    storage: float = 0
    penalty: float = 0
    salvage: float | None = None
    lead_time: int = 0
    shelf_life: int | None = None
    issue: str = "first"
    waste: float = 0
    fast_cost: float | None = None
    fast_lead_time: int = 0
    max_fast: float | None = None

    @staticmethod
    def service_level_costs(service_level: float, holding: float = 1.0, review: int = 1) -> dict[str, float]:
        """Costs for which the best stock meets all demand with this probability, until the next order can be placed.

        By the critical ratio: penalty / (penalty + review · holding) = service_level, where price and unit cost are 0.

        >>> Inventory.service_level_costs(0.75)
        {'price': 0.0, 'unit_cost': 0.0, 'holding': 1.0, 'penalty': 3.0}
        """
        if not 0 < service_level < 1:
            raise ValueError(
                f"service_level is {service_level:g}; it must be above 0 and below 1, such as 0.95: the probability of "
                "no stock-out in a step"
            )
        held = whole("review", review, 1) * real("holding", holding, 0, open_low=True)
        penalty = held * service_level / (1 - service_level)
        return {"price": 0.0, "unit_cost": 0.0, "holding": float(holding), "penalty": penalty}

    def check(self) -> None:
        """Raise an error for a parameter that makes no sense."""
        self.check_at_least(0, "max_demand", "backlog", "price", "unit_cost", "order_cost")
        self.check_at_least(0, "holding", "storage", "penalty", "min_order")
        self.check_at_least(self.unit, "capacity", *(["max_order"] if self.max_order is not None else []))
        whole("review", self.review, 1)
        self._check_supply()
        self._check_sizes_of_orders()
        if self.price_breaks is not None:
            self._check_price_breaks()

    def _check_supply(self) -> None:
        """Lead times, ages, and the second supplier."""
        whole("lead_time", self.lead_time, 0, MOST_LEAD_TIME)
        self.check_at_least(0, "waste")
        one_of("issue", self.issue, ("first", "last"))
        if self.shelf_life is not None:
            whole("shelf_life", self.shelf_life, 1 if self.lead_time else 2, MOST_LEAD_TIME)
            if self.backlog or self.fast_cost is not None:
                raise ValueError(
                    "shelf_life is given with a backlog or a second supplier; stock that ages is sold to customers who "
                    "do not wait, from one supplier: set backlog=0 and fast_cost=None"
                )
        if self.fast_cost is not None:
            real("fast_cost", self.fast_cost, 0)
            whole("fast_lead_time", self.fast_lead_time, 0)
            if self.fast_lead_time >= self.lead_time:
                raise ValueError(
                    f"fast_lead_time is {self.fast_lead_time} and lead_time {self.lead_time}; the second supplier must "
                    "be the faster one: raise lead_time, or leave out fast_cost"
                )
        elif self.max_fast is not None:
            raise ValueError(f"max_fast is {self.max_fast:g} without a fast_cost; give the second supplier's unit cost")
        if self.horizon is None and self.period % self.review:
            raise ValueError(
                f"review is {self.review} and period {self.period}; without an end the period must be a multiple of "
                "review: set period"
            )

    def _check_sizes_of_orders(self) -> None:
        pack = self.unit if self.pack is None else real("pack", self.pack, 0, open_low=True)
        least = max(float(np.ceil(self.min_order / pack - 1e-9)), 1.0) * pack
        most = min(self.capacity + self.backlog, np.inf if self.max_order is None else self.max_order)
        if least > most + 1e-9 * self.unit:
            raise ValueError(
                f"no order is possible: the smallest is {least:g} (pack, min_order), and at most {most:g} can be "
                "ordered (capacity, backlog, max_order); lower the one or raise the other"
            )

    def _check_price_breaks(self) -> None:
        table = numbers("price_breaks", self.price_breaks)  # type: ignore[arg-type]
        if table.ndim != 2 or table.shape[1] != 2 or not len(table):
            raise ValueError(
                f"price_breaks is {self.price_breaks!r:.60}; give pairs (quantity, unit cost), such as ((10, 3.5),), "
                "or None"
            )
        quantities, costs = table.T
        for low, high in zip([0.0, *quantities], quantities, strict=False):
            if high <= low:
                raise ValueError(
                    f"price_breaks has quantity {high:g} after {low:g}; the quantities must be above 0 and increase: "
                    "put them in order, each once"
                )
        if costs.min() < 0:
            raise ValueError(f"price_breaks has the unit cost {costs.min():g}; it must be 0 or more")

    @property
    def beyond_a_line(self) -> bool:
        """Where orders are under way, or stock ages."""
        return bool(self.lead_time) or self.shelf_life is not None

    @property
    def amount_range(self) -> tuple[float, float]:
        """From no demand to max_demand."""
        return 0.0, self.max_demand

    @property
    def action_quantities(self) -> NDArray[Any]:
        """[A] how much each action orders: nothing, or one of the orders that exist; [A, 2] of two suppliers."""
        return (self._orders if self.fast_cost is None else self._both_orders) * self.unit

    def filled_by(self, quantities: NDArray[Any]) -> NDArray[np.bool_]:
        """[...] whether orders [..., H, S] at once fill the store from its lowest state, as far as packs let them."""
        most = quantities[..., 0].max(axis=-1)
        step = float(self.unit if self.pack is None else self.pack)
        full: NDArray[np.bool_] = (most > 0) & (most - self.backlog + step > self.capacity + 1e-9 * self.unit)
        return full

    @property
    def _both_orders(self) -> NDArray[np.int64]:
        """[A, 2] the orders from the first and from the second supplier, in multiples of ``unit``."""
        fast = np.zeros(1, np.int64)
        if self.fast_cost is not None:
            most = self._orders.max() if self.max_fast is None else self.units_of("max_fast")
            fast = np.arange(most + 1)
        regular, second = np.meshgrid(self._orders, fast, indexing="ij")
        return np.stack([regular.ravel(), second.ravel()], axis=1)

    @property
    def _orders(self) -> NDArray[np.int64]:
        """[A] 0 and the orders that exist, in multiples of ``unit``."""
        most = self.units_of("capacity") + self.units_of("backlog")
        if self.max_order is not None:
            most = min(most, self.units_of("max_order"))
        orders: NDArray[np.int64] = np.arange(0, most + 1, 1 if self.pack is None else self.units_of("pack"))
        exists: NDArray[np.bool_] = (orders == 0) | (orders >= self.units_of("min_order"))
        return orders[exists]

    @property
    def _unit_costs(self) -> NDArray[np.float64]:
        """[A] what each unit of an order costs."""
        quantities, costs = np.reshape(() if self.price_breaks is None else self.price_breaks, (-1, 2)).T
        reached = np.searchsorted(quantities - 1e-9 * self.unit, self._orders * self.unit)
        return np.array([self.unit_cost, *costs])[reached]

    @property
    def lowest_unit_cost(self) -> float:
        """What a unit costs in the order in which it costs least."""
        return float(self._unit_costs.min())

    @property
    def _salvage(self) -> float:
        """The value of each unit left after the last step."""
        return self.lowest_unit_cost if self.salvage is None else self.salvage

    def own_rules(self, world: World) -> dict[str, NDArray[np.int64]]:
        """Base-stock levels by the critical ratio; where small orders are costly or none, the best (s, S) policy."""
        if self.beyond_a_line:
            return self._rules_of_the_total(world)
        demand = self.amount_distribution(world.law)
        levels = [self._base_stock_level(demand, h) for h in range(self.n_steps)]
        rules = {"base-stock": up_to(self.system, levels)}
        if self.order_cost > 0 or self.min_order > 0 or self.price_breaks is not None:
            rules["(s, S)"] = best_policy(world, self._reorder_policies())
        return rules

    def _rules_of_the_total(self, world: World) -> dict[str, NDArray[np.int64]]:
        """The best order-up-to level of all that is in stock and under way, and the best with a largest order."""
        if self.fast_cost is not None:
            return {}
        system, orders = self.system, self._orders
        points = np.reshape(np.asarray(system.states), (system.n_states, -1)).sum(axis=1)
        steps = np.zeros((system.n_steps, 1), np.int64)

        def up_to_total(level: int, most: int) -> NDArray[np.int64]:
            wanted = np.clip(level - points, 0, most)
            policy = np.searchsorted(orders, wanted, side="right") - 1 + steps
            exists = np.take_along_axis(system.allowed, policy[:, :, None], axis=2)[:, :, 0]
            return np.where(exists, policy, 0)

        levels = range(0, points.max() + 1, max(1, points.max() // 40))
        base = best_policy(world, [up_to_total(level, orders.max()) for level in levels])
        caps = [orders.max() * share // 8 for share in range(1, 9)]
        capped = best_policy(world, [up_to_total(level, most) for level in levels for most in caps])
        return {"base-stock": base, "capped base-stock": capped}

    def _base_stock_level(self, demand: Disturbance, h: int) -> int:
        """The stock at a review, step h, that meets all demand until the next as often as the critical ratio says."""
        steps = range(h, min(h + self.review, self.n_steps))
        lost = self.penalty if self.backlog else self.price + self.penalty - self.unit_cost
        over = self.unit_cost + self.holding * len(steps) - self._salvage + self.storage
        short = lost - self.storage
        ratio = short / (short + over) if short > 0 and short + over > 0 else 0.0 if short <= 0 else 1.0
        pmf = reduce(np.convolve, [demand.pmf[t % len(demand.pmf)] for t in steps])
        enough = np.cumsum(pmf) >= ratio - 1e-12
        met = int(enough.argmax()) if enough.any() else len(enough) - 1
        return min(len(steps) * int(demand.low) + met, self.units_of("capacity"))

    def _reorder_policies(self) -> list[NDArray[np.int64]]:
        """(s, S) policies: order up to S when below s, the same at every step. Some 40 levels of each are tried."""
        states = self.system.states
        grid, stock = states[:: max(1, len(states) // 40)], np.array(states)
        idle = up_to(self.system, states[0])
        raised = {top: up_to(self.system, top) for top in grid}
        return [np.where(stock < below, raised[top], idle) for top in grid for below in grid if below <= top]

    @classmethod
    def suggested_sizes(cls, least: float, mean: float, most: float, **given: Any) -> dict[str, Any]:
        """Room for twice the largest demand so far; a demand may be half as large again.

        Where orders are dear or come in packs, there is room for the largest demand and an order: a quarter more
        than the economic order quantity, sqrt(2 order_cost mean / (holding + storage)), and twice the smallest order
        that there is. Where stock costs nothing it is what an episode sells; and it never makes a table large.
        """

        def known(name: str) -> Any:
            value = given.get(name)
            return getattr(cls, name) if value is None else value

        unit, held = float(known("unit")), float(known("holding") + known("storage"))
        dear = 2 * float(known("order_cost")) * max(mean, 0.0)
        steps = max(known("period"), 1 if given.get("period", 1) > 1 else known("horizon"))
        economic = 1.25 * np.sqrt(dear / held) if held else mean * steps if dear else 0.0
        pack, least_order = float(known("pack") or 0), float(known("min_order"))
        smallest = max(pack, float(np.ceil(least_order / pack - 1e-9)) * pack if pack > 0 else least_order)
        room = max(most, MOST_UNITS_OF_ROOM * unit - most)
        return {"max_demand": 1.5 * most, "capacity": most + max(most, min(economic, room) + 2 * smallest)}

    def mechanics(self) -> dict[str, Any]:
        """The arguments of the System that differ from preset to preset."""
        if self.lead_time and self.backlog and self.fast_cost is None:
            return self._position()
        if self.lead_time or self.shelf_life is not None:
            return self._pipeline()
        return self._shelf()

    def _pipeline(self) -> dict[str, Any]:
        """Every order under way, or every age, on an axis of its own."""
        both = self._both_orders
        regular = np.searchsorted(self._orders, both[:, 0])
        spent = self._unit_costs[regular] * both[:, 0] * self.unit + self.order_cost * (both[:, 0] > 0)
        if self.fast_cost is not None:
            spent = spent + self.fast_cost * both[:, 1] * self.unit
        store = Store(
            capacity=self.units_of("capacity"),
            backlog=self.units_of("backlog"),
            lead_time=self.lead_time,
            fast_lead_time=None if self.fast_cost is None else self.fast_lead_time,
            shelf_life=self.shelf_life,
            last_in_first_out=self.issue == "last",
            orders=both,
            spent=spent,
            unit=self.unit,
            price=self.price,
            holding=self.holding,
            storage=self.storage,
            penalty=self.penalty,
            waste=self.waste,
            expected=self.expected_amount,
            salvage=self._salvage,
        )
        made = store.mechanics()
        if self.review > 1:
            made["allowed"] = only_at_reviews(made["allowed"], self.review)
        return made

    def _position(self) -> dict[str, Any]:
        """Customers wait: the stock with all that is under way, on one axis; its costs come lead_time steps later."""
        made, u = self._shelf(), self.unit

        def late(z: NDArray[np.int64]) -> NDArray[Any]:
            cost: NDArray[Any] = -u * (self.holding * np.maximum(z, 0) + self.penalty * np.maximum(-z, 0))
            return cost

        def lost(z: NDArray[np.int64]) -> NDArray[Any]:
            unsold: NDArray[Any] = -u * self.price * np.maximum(z, -self.units_of("backlog"))
            return unsold

        return {**made, "landing": lost, "late_landing": late, "lag": self.lead_time}

    def _shelf(self) -> dict[str, Any]:
        """Orders come at once."""
        capacity, backlog, u = self.units_of("capacity"), self.units_of("backlog"), self.unit
        expected, orders, salvage = self.expected_amount, self._orders, self._salvage
        spent = self._unit_costs * self._orders * self.unit + self.order_cost * (orders > 0)

        def reward(stock: NDArray[np.int64], a: NDArray[np.int64]) -> NDArray[Any]:
            full = (stock + orders[a]) * u
            paid: NDArray[Any] = (
                self.price * full - self.storage * np.maximum(full, 0) - spent[a]
            )  # as if all were sold
            return paid

        def landing(z: NDArray[np.int64]) -> NDArray[Any]:
            unsold = self.price * np.maximum(z, -backlog)
            cost = unsold + self.holding * np.maximum(z, 0) + self.penalty * np.maximum(-z, 0)
            paid: NDArray[Any] = -u * cost
            return paid

        def fits(stock: NDArray[np.int64], a: NDArray[np.int64]) -> Any:
            return stock + orders[a] <= capacity

        def fits_now(h: int, stock: NDArray[np.int64], a: NDArray[np.int64]) -> Any:
            return fits(stock, a) & ((orders[a] == 0) | (h % self.review == 0))

        return {
            "f": lambda h, stock, a: stock + orders[a] - expected[h],
            "reward": reward,
            "landing": landing,
            "allowed": fits if self.review == 1 else fits_now,
            "terminal": lambda stock: salvage * stock * u,
            "state_offset": -backlog,
            "n_states": capacity + backlog + 1,
            "n_actions": len(orders),
        }
