"""The order that is best over common random paths, later orders following the rule of projected stock."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ucbf.kernels.jit import compiled
from ucbf.kernels.types import Floats, Ints


class Terms(NamedTuple):
    """What a store earns and pays, and which orders it may place. All but ``grain`` and ``most`` may be 0."""

    price: float  # of a unit sold
    unit_cost: float  # of a unit ordered
    order_cost: float  # of an order
    holding: float  # of a unit left at the end of a step
    penalty: float  # of a unit missing at the end of a step
    waste: float  # of a unit thrown away because of its age
    left: float  # what a unit on the shelf or under way is worth after the last step
    grain: float  # orders are multiples of it
    least: float  # the smallest order
    most: float  # the largest
    review: int  # orders are placed at every so many steps
    since: int  # steps since the last one at which they were: 0 if this is one
    life: int  # steps in which a unit can be sold, that of its arrival included; 0: for ever
    lifo: int  # 1: what came last is sold first
    waits: int  # 1: customers wait for what is missing; 0: they do not


class Rollout(NamedTuple):
    """N paths of n steps, and what the rule that orders later knows."""

    shelf: (
        Floats  # [max(life, 1)] on the shelf now, by the steps it still keeps, the oldest first; may be owed: below 0
    )
    quantities: Floats  # [O] of the open orders
    ages: Ints  # [O]
    demand: Floats  # [N, n]
    fates: Ints  # [N, O + n] the step in which each open order, and one placed in each step, comes; never: -1
    kept: Ints  # [N] 1: on this path the supplier keeps the promise
    arrivals: Floats  # [2, M + 1, M + 1] given kept, age, periods from now: the probability of coming then
    mean: Floats  # [n] expected demand
    lag: int  # the rule looks this far ahead
    batch: float  # and orders at least so much, where orders are dear
    terms: Terms


@compiled
def sized(terms: Terms, quantity: float) -> float:
    """The order nearest to what is wanted: none, or whole packs that are no less than the smallest order."""
    packs: float = np.floor(max(quantity, 0.0) / terms.grain + 0.5)
    fewest: float = np.ceil(terms.least / terms.grain - 1e-9)
    if packs < fewest:
        packs = fewest if quantity >= terms.least / 2 else 0.0
    most: float = np.floor(terms.most / terms.grain + 1e-9)
    return min(packs, most) * terms.grain


@compiled
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


@compiled
def grow_old(terms: Terms, shelf: Floats) -> float:
    """One step passes; what is thrown away, where stock ages."""
    if terms.life == 0:
        return 0.0
    thrown: float = shelf[0]
    for k in range(len(shelf) - 1):
        shelf[k] = shelf[k + 1]
    shelf[len(shelf) - 1] = 0.0
    return thrown


@compiled
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


@compiled
def projected(r: Rollout, i: int, j: int, stock: float, placed: Floats, kept: int) -> float:
    """The stock expected in step j + lag before its demand, if nothing is ordered in step j of path i.

    Expected arrivals are added and expected demand is sold step by step, never below 0 where customers do not wait: van
    Jaarsveld and Arts (2024).
    """
    last, n_open = r.arrivals.shape[1] - 1, len(r.quantities)
    x = stock
    for k in range(r.lag + 1):
        for o in range(n_open):
            age = r.ages[o] + j
            if age <= last and (j == 0 or r.fates[i, o] < 0 or r.fates[i, o] >= j):
                x += r.arrivals[kept, age, k] * r.quantities[o]
        for o in range(j):
            if j - o <= last and (r.fates[i, n_open + o] < 0 or r.fates[i, n_open + o] >= j):
                x += r.arrivals[kept, j - o, k] * placed[o]
        if k < r.lag:
            x -= r.mean[j + k] if j + k < len(r.mean) else 0.0
            if not r.terms.waits:
                x = max(0.0, x)
    return x


@compiled
def target(r: Rollout, j: int, cover: float) -> float:
    """The stock wanted when an order of step j comes: a multiple of the demand until that of the next review does."""
    wanted = 0.0
    for k in range(j + r.lag, j + r.lag + r.terms.review):
        wanted += r.mean[k] if k < len(r.mean) else 0.0
    return cover * wanted


@compiled
def path_value(r: Rollout, first: float, cover: float, placed: Floats, shelf: Floats, i: int) -> float:
    """Reward of path i if ``first`` is ordered now and later stock is projected to cover · mean demand."""
    n, n_open, total, kept, terms = r.demand.shape[1], len(r.quantities), 0.0, r.kept[i], r.terms
    top = len(shelf) - 1
    for k in range(top + 1):
        shelf[k] = r.shelf[k]
    for j in range(n):
        order = 0.0
        if j == 0:
            order = first
        elif j + r.lag < n and (terms.since + j) % terms.review == 0:
            stock = 0.0
            for k in range(top + 1):
                stock += shelf[k]
            short = (target(r, j, cover) - projected(r, i, j, stock, placed, kept)) / max(
                r.arrivals[kept, 0].sum(), 1e-9
            )
            if short > 0:
                order = sized(terms, max(short, r.batch))
        placed[j] = order
        for o in range(n_open):
            if r.fates[i, o] == j:
                shelf[top] += r.quantities[o]
        for o in range(j + 1):
            if r.fates[i, n_open + o] == j:
                shelf[top] += placed[o]
        total += step_value(terms, shelf, order, r.demand[i, j])
    if terms.left != 0:
        for k in range(top + 1):
            total += terms.left * shelf[k]
        for o in range(n_open):
            total += terms.left * r.quantities[o] * (r.fates[i, o] >= n)
        for o in range(n):
            total += terms.left * placed[o] * (r.fates[i, n_open + o] >= n)
    return total


@compiled
def value(r: Rollout, first: float, cover: float) -> float:
    """Mean reward over the paths."""
    placed, shelf, total = np.zeros(r.demand.shape[1]), np.zeros(len(r.shelf)), 0.0
    for i in range(len(r.demand)):
        total += path_value(r, first, cover, placed, shelf, i)
    return total / len(r.demand)


@compiled
def search(r: Rollout, covers: Floats, step: float) -> tuple[float, float, float]:
    """The best first order, the cover it was found with, and its value.

    First the cover whose rule, used now as well, is best; then the order alone, in steps that shrink until they are
    below a pack, and none at all.
    """
    terms, share, none = r.terms, r.kept.mean(), np.zeros(1)
    stock = r.shelf.sum()
    x = share * projected(r, 0, 0, stock, none, 1) + (1 - share) * projected(r, 0, 0, stock, none, 0)
    comes = max(share * r.arrivals[1, 0].sum() + (1 - share) * r.arrivals[0, 0].sum(), 1e-9)
    best, cover, most = 0.0, covers[0], -np.inf
    for c in covers:
        short = (target(r, 0, c) - x) / comes
        first = sized(terms, max(short, r.batch)) if short > 0 and terms.since == 0 else 0.0
        v = value(r, first, c)
        if v > most:
            best, cover, most = first, c, v
    if terms.since != 0:
        return 0.0, cover, most
    while step >= terms.grain:
        moved = False
        for side in (-1.0, 1.0):
            first = sized(terms, best + side * step)
            v = value(r, first, cover)
            if first != best and v > most + 1e-9:
                best, most, moved = first, v, True
                break
        if not moved:
            step /= 2.5
    v = value(r, 0.0, cover)
    return (0.0, cover, v) if v > most else (best, cover, most)
