"""Ways to order, and what comes of them: a store run forward over a series of demand."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.service import Service, service_of
from ucbf.fitted_orders import FittedOrders
from ucbf.kernels.shelves import sized, step_value
from ucbf.rolling import Rolling, terms_of
from ucbf.systems.inventory import Inventory

Floats = NDArray[np.float64]
COVERS = np.linspace(0.5, 3.0, 26)  # tried for base-stock levels: multiples of the demand until the next order comes
MOST_PLAYED = 1500  # steps


class Rule(Protocol):
    """A way to order: told the step, what is on the shelf, and by their steps the orders under way."""

    def __call__(self, t: int, shelf: Floats, under_way: dict[int, float], /) -> float:
        """What to order."""

    def seen(self, demand: float, /) -> None:
        """Told every demand, after its step."""


@dataclass(frozen=True)
class Played:
    """What came of a policy, step by step."""

    reward: Floats  # [T]
    demand: Floats  # [T]
    sold: Floats  # [T]
    orders: Floats  # [T]
    left: Floats  # [T] on the shelf at the end of each step
    worth: Floats  # [T + 1] before the first step and after each: what is on the shelf and under way, at cost

    def after(self, steps: int) -> Played:
        """The same without the first steps."""
        parts = (part[steps:] for part in (self.reward, self.demand, self.sold, self.orders, self.left, self.worth))
        return Played(*parts)

    def earned(self, horizon: int) -> Floats:
        """[K] the reward of every episode of so many steps, and how much more is there at its end, at cost."""
        earned: Floats = self.reward.reshape(-1, horizon).sum(axis=1) + np.diff(self.worth[::horizon])
        return earned

    @property
    def service(self) -> Service:
        """How the demand was met."""
        return service_of(self.demand, self.sold)


def play(shop: Inventory, demands: Floats, first: int, rule: Rule, done: Callable[[], object] = lambda: None) -> Played:
    """What comes of a rule when these demands [T] come, orders come when promised, and the shelf is empty at first.

    first: the number of the first step; done: called after every step
    """
    terms = terms_of(shop)
    shelf, under_way = np.zeros(max(terms.life, 1)), dict[int, float]()
    out, worth = np.zeros((4, len(demands))), np.zeros(len(demands) + 1)
    for i, demand in enumerate(demands):
        t = first + i
        can = t % shop.review == 0
        order = sized(terms, rule(t, shelf, under_way)) if can else 0.0
        if order > 0:
            under_way[t] = order
        for u in [u for u in under_way if u + shop.lead_time <= t]:
            shelf[-1] += under_way.pop(u)
        there = float(np.maximum(shelf, 0).sum())
        out[0, i] = step_value(terms, shelf, order, float(demand))
        out[1:, i] = min(there, demand), order, np.maximum(shelf, 0).sum()
        worth[i + 1] = shop.unit_cost * (shelf.sum() + sum(under_way.values()))  # below 0: owed
        rule.seen(float(demand))
        done()
    return Played(out[0], np.asarray(demands, float), out[1], out[2], out[3], worth)


class Adapting:
    """Rolling orders."""

    def __init__(self, rolling: Rolling) -> None:
        self.rolling = rolling

    def __call__(self, t: int, shelf: Floats, under_way: dict[int, float]) -> float:
        """What to order."""
        return self.rolling.order(shelf, [(q, t - u) for u, q in under_way.items()]).quantity

    def seen(self, demand: float) -> None:
        """What was asked for."""
        self.rolling.observe(demand)


class ByValues:
    """Orders by fitted values."""

    def __init__(self, orders: FittedOrders) -> None:
        self.orders = orders

    def __call__(self, t: int, shelf: Floats, under_way: dict[int, float]) -> float:
        """What to order."""
        return self.orders.order(float(shelf.sum()), [(q, t - u) for u, q in under_way.items()])

    def seen(self, demand: float) -> None:
        """Demand is taken to be as it was."""


class UpToCover:
    """Order up to a multiple of the demand until the next order comes, at the mean of the last four episodes."""

    def __init__(self, shop: Inventory, past: Floats, factors: Floats, cover: float) -> None:
        self.shop, self.factors, self.cover = shop, factors, cover
        self.recent = deque(past[-4 * len(factors) :].tolist(), maxlen=4 * len(factors))

    def __call__(self, t: int, shelf: Floats, under_way: dict[int, float]) -> float:
        """What to order."""
        H, mean = len(self.factors), sum(self.recent) / max(len(self.recent), 1)
        until = sum(self.factors[(t + k) % H] for k in range(self.shop.lead_time + self.shop.review))
        return float(self.cover * mean * until - shelf.sum() - sum(under_way.values()))

    def seen(self, demand: float) -> None:
        """What was asked for."""
        self.recent.append(demand)


class WhatWasSold:
    """Order what was asked for since the last order."""

    def __init__(self, past: Floats) -> None:
        self.since = float(past[-1]) if len(past) else 0.0

    def __call__(self, t: int, shelf: Floats, under_way: dict[int, float]) -> float:
        """What to order."""
        wanted, self.since = self.since, 0.0
        return wanted

    def seen(self, demand: float) -> None:
        """What was asked for."""
        self.since += demand


def best_cover(shop: Inventory, past: Floats, factors: Floats) -> float:
    """The multiple that would have been best in the training episodes, after the first four."""
    begin = 4 * len(factors)
    played = past[begin:][-MOST_PLAYED:]
    if not len(played):
        return 1.0
    first = len(past) - len(played)

    def earned(cover: float) -> float:
        return float(play(shop, played, first, UpToCover(shop, past[:first], factors, cover)).earned(len(played))[0])

    return float(max(COVERS, key=earned))
