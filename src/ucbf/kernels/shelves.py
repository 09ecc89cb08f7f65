"""A store, step by step: which orders there are, what is sold, what grows old, what is paid."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ucbf.kernels.jit import inner
from ucbf.kernels.types import Floats


class Terms(NamedTuple):
    """What a store earns and pays, and which orders it may place. Only ``unit``, ``grain`` and ``most`` are never 0."""

    price: float  # of a unit sold
    unit_cost: float  # of a unit ordered
    order_cost: float  # of an order
    holding: float  # of a unit left at the end of a step
    penalty: float  # of a unit missing at the end of a step
    waste: float  # of a unit thrown away because of its age
    left: float  # what a unit on the shelf or under way is worth after the last step
    unit: float  # the smallest quantity that matters
    grain: float  # orders are multiples of it
    least: float  # the smallest order
    most: float  # the largest
    review: int  # orders are placed at every so many steps
    since: int  # steps since the last one at which they were: 0 if this is one
    life: int  # steps in which a unit can be sold, that of its arrival included; 0: for ever
    lifo: int  # 1: what came last is sold first
    waits: int  # 1: customers wait for what is missing; 0: they do not
    service: float  # the share of the steps in which the stock is to last; 0: what earns most


@inner
def smallest(terms: Terms) -> float:
    """The smallest order that there is."""
    return max(float(np.ceil(terms.least / terms.grain - 1e-9)), 1.0) * terms.grain


@inner
def sized(terms: Terms, quantity: float, up: bool = False) -> float:
    """The order nearest to what is wanted, or the next larger one: none, or whole packs, no less than the smallest."""
    wanted = max(quantity, 0.0) / terms.grain
    packs: float = np.ceil(wanted - 1e-9) if up else np.floor(wanted + 0.5)
    fewest: float = np.ceil(terms.least / terms.grain - 1e-9)
    if packs < fewest:
        packs = fewest if quantity >= terms.least / 2 or (up and quantity > 0) else 0.0
    most: float = np.floor(terms.most / terms.grain + 1e-9)
    return min(packs, most) * terms.grain


@inner
def serve(terms: Terms, shelf: Floats, demand: float) -> tuple[float, float]:
    """Sell from the shelf, in place; what was sold, and what was missing, which is owed where customers wait."""
    sold, last = 0.0, len(shelf) - 1
    for i in range(len(shelf)):
        k = last - i if terms.lifo else i
        take = min(max(shelf[k], 0.0), demand - sold)
        shelf[k] -= take
        sold += take
    missing = demand - sold
    if terms.waits:
        shelf[last] -= missing
    return sold, missing


@inner
def grow_old(terms: Terms, shelf: Floats) -> float:
    """One step passes; what is thrown away, where stock ages."""
    if terms.life == 0:
        return 0.0
    thrown: float = shelf[0]
    for k in range(len(shelf) - 1):
        shelf[k] = shelf[k + 1]
    shelf[len(shelf) - 1] = 0.0
    return thrown


@inner
def step_value(terms: Terms, shelf: Floats, order: float, demand: float) -> float:
    """What a step pays, after its arrivals came; the shelf moves on. An owed unit is paid for when it is asked for."""
    sold, missing = serve(terms, shelf, demand)
    owed = 0.0
    if terms.waits:
        sold = demand
        for k in range(len(shelf)):
            owed += max(-shelf[k], 0.0)
        missing = owed
    thrown, stock = grow_old(terms, shelf), 0.0
    for k in range(len(shelf)):
        stock += max(shelf[k], 0.0)
    paid = terms.price * sold - terms.holding * stock - terms.penalty * missing - terms.waste * thrown
    if order > 0:
        paid -= terms.unit_cost * order + terms.order_cost
    return paid
