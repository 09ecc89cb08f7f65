"""Orders that take time, and stock that ages: what a store knows of them, as a state with several axes.

Of every supply the *slots* are kept: slot 0 is on the shelf, slot i comes in i steps. An order is put into the slot of
its lead time, demand is taken from slot 0, and then all slots move up by one. What the state needs to say are the slots
before the order: as many as the lead time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.stores import Pipeline

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Store:
    """What the systems of this file are made from, in multiples of the unit but for money."""

    capacity: int
    backlog: int
    lead_time: int
    fast_lead_time: int | None  # of a second supplier
    shelf_life: int | None
    last_in_first_out: bool
    orders: NDArray[np.int64]  # [A, 2] from the first and from the second supplier
    spent: NDArray[np.float64]  # [A] what an action costs
    unit: float
    price: float
    holding: float
    storage: float
    penalty: float
    waste: float
    expected: NDArray[np.int64]  # [H] the demand that is expected at each step
    salvage: float

    def mechanics(self) -> dict[str, Any]:
        """The arguments of the System."""
        if self.shelf_life is not None:
            return self._ageing()
        return self._pipeline()

    # -- stock that does not age ------------------------------------------------------------------

    def _pipeline(self) -> dict[str, Any]:
        """State: the slots 0 .. L-1. Raw next state: the slots 0 .. L, the order among them, less the demand."""
        L, fast, orders = self.lead_time, self.fast_lead_time, self.orders
        most, most_fast = orders[:, 0].max(), orders[:, 1].max()
        high = [self.capacity] + [int(most + (most_fast if fast is not None and i < fast else 0)) for i in range(1, L)]

        def slots(h: int, s: Rows, a: Rows) -> Rows:
            x = np.concatenate([s, np.zeros((len(s), 1), np.int64)], axis=1)
            x[:, L] += a[:, 0]
            if fast is not None:
                x[:, fast] += a[:, 1]
            x[:, 0] -= self.expected[h]
            return x

        def move_up(z: Rows) -> Rows:
            shelf = np.clip(np.maximum(z[:, 0], -self.backlog) + z[:, 1], -self.backlog, self.capacity)
            return np.concatenate([shelf[:, None], z[:, 2:]], axis=1)

        def reward(s: Rows, a: Rows) -> Any:
            shelf = (s[:, 0] + (a[:, 1] if fast == 0 else 0)) * self.unit
            return self.price * shelf - self.storage * np.maximum(shelf, 0) - self._spent(a)  # as if all were sold

        def landing(z: Rows) -> Any:
            unsold = self.price * np.maximum(z[:, 0], -self.backlog)
            cost = unsold + self.holding * np.maximum(z[:, 0], 0) + self.penalty * np.maximum(-z[:, 0], 0)
            return -self.unit * cost

        def fits(s: Rows, a: Rows) -> NDArray[np.bool_]:
            return (a[:, 1] == 0) | (s[:, 0] + a[:, 1] <= self.capacity) if fast == 0 else np.ones(len(s), np.bool_)

        return {
            "f": slots,
            "reward": reward,
            "landing": landing,
            "boundary": move_up,
            "allowed": fits,
            "terminal": lambda s: self.salvage * self.unit * s.sum(axis=1),
            "low": [-self.backlog] + [0] * (L - 1),
            "high": high,
            "actions": orders,
            "raw_axes": L + 1,
            "compiled": self._compiled(),
        }

    def _compiled(self) -> Pipeline:
        """The same for kernels, with money for one unit."""
        u, spent = self.unit, np.zeros(self.orders.max(axis=0) + 1)
        spent[self.orders[:, 0], self.orders[:, 1]] = self.spent
        return Pipeline(
            fast=-1 if self.fast_lead_time is None else self.fast_lead_time,
            capacity=self.capacity,
            backlog=self.backlog,
            price=self.price * u,
            holding=self.holding * u,
            storage=self.storage * u,
            penalty=self.penalty * u,
            spent=spent,
        )

    # -- stock that ages --------------------------------------------------------------------------

    def _ageing(self) -> dict[str, Any]:
        """State: stock by the steps it still keeps, the oldest first, then what is under way.

        Raw next state: minus the demand, the stock that can be sold, by the steps it still keeps, what is under way,
        and the order.
        """
        L, life, most = self.lead_time, int(self.shelf_life or 0), int(self.orders[:, 0].max())
        kept = life - 1 if L == 0 else life  # ages in the state: an order that comes at once is not yet there
        n = kept + max(L - 1, 0)
        high = [most] * n

        def arrive(h: int, s: Rows, a: Rows) -> Rows:
            x = np.concatenate([np.zeros((len(s), 1), np.int64), s, a[:, :1]], axis=1)
            x[:, 0] -= self.expected[h]
            return x

        def sold(z: Rows) -> tuple[Rows, Rows, Rows]:
            """What is left of every age [N, life], the demand that was not met [N], what comes after [N, ...]."""
            stock, demand = np.maximum(z[:, 1 : 1 + life], 0), np.maximum(-z[:, 0], 0)
            in_turn = stock[:, ::-1] if self.last_in_first_out else stock
            before = np.cumsum(in_turn, axis=1) - in_turn
            left = in_turn - np.clip(demand[:, None] - before, 0, in_turn)
            left = left[:, ::-1] if self.last_in_first_out else left
            return left, np.maximum(demand - stock.sum(axis=1), 0), z[:, 1 + life :]

        def grow_old(z: Rows) -> Rows:
            left, _, coming = sold(z)
            return np.concatenate([left[:, 1:], coming], axis=1)

        def landing(z: Rows) -> Any:
            left, missed, _ = sold(z)
            served = np.maximum(-z[:, 0], 0) - missed
            kept_on = left[:, 1:].sum(axis=1)
            return self.unit * (
                self.price * served - self.holding * kept_on - self.waste * left[:, 0] - self.penalty * missed
            )

        def reward(s: Rows, a: Rows) -> Any:
            shelf = s[:, :kept].sum(axis=1) + (a[:, 0] if L == 0 else 0)
            return -self.storage * self.unit * shelf - self._spent(a)

        return {
            "f": arrive,
            "reward": reward,
            "landing": landing,
            "boundary": grow_old,
            "allowed": lambda s, a: s.sum(axis=1) + a[:, 0] <= self.capacity,
            "terminal": lambda s: self.salvage * self.unit * s.sum(axis=1),
            "low": [0] * n,
            "high": high,
            "actions": self.orders,
            "raw_axes": 1 + n + 1,
        }

    def _spent(self, a: Rows) -> Any:
        """[N] what actions [N, 2] cost."""
        wide = int(self.orders[:, 1].max()) + 1
        table = np.zeros((int(self.orders[:, 0].max()) + 1) * wide)
        table[self.orders[:, 0] * wide + self.orders[:, 1]] = self.spent
        return table[a[:, 0] * wide + a[:, 1]]


def only_at_reviews(allowed: Callable[..., Any], review: int) -> Callable[..., Any]:
    """The actions that exist where orders can be placed at every so many steps only."""

    def at_reviews(h: int, s: Rows, a: Rows) -> Any:
        return allowed(s, a) & ((a.sum(axis=1) == 0) | (h % review == 0))

    return at_reviews
