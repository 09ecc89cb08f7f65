"""The order that is best over common random paths, later orders following the rule of projected stock."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ucbf.kernels.jit import compiled, inner
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
    promised: int  # lead time
    arrivals: Floats  # [2, M + 1, M + 1] given kept, age, periods from now: the probability of coming then
    mean: Floats  # [n] expected demand
    lag: int  # the rule looks this far ahead
    brought: Floats  # [N, n] what open orders bring in each step
    hoped: Floats  # [N, n, lag + 1] what they are expected in step j to bring k steps later, if they have not come
    batch: float  # and orders at least so much, where orders are dear
    terms: Terms


@inner
def sized(terms: Terms, quantity: float) -> float:
    """The order nearest to what is wanted: none, or whole packs that are no less than the smallest order."""
    packs: float = np.floor(max(quantity, 0.0) / terms.grain + 0.5)
    fewest: float = np.ceil(terms.least / terms.grain - 1e-9)
    if packs < fewest:
        packs = fewest if quantity >= terms.least / 2 else 0.0
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


@compiled
def count_open(r: Rollout) -> None:
    """Fill ``brought`` and ``hoped``: they are the same whatever is ordered from now on."""
    last = r.arrivals.shape[1] - 1
    r.brought[:] = 0
    r.hoped[:] = 0
    for i in range(len(r.demand)):
        for o in range(len(r.quantities)):
            comes = r.fates[i, o]
            if 0 <= comes < r.brought.shape[1]:
                r.brought[i, comes] += r.quantities[o]
            for j in range(r.hoped.shape[1]):
                age = r.ages[o] + j
                if age <= last and (j == 0 or comes < 0 or comes >= j):
                    for k in range(r.hoped.shape[2]):
                        r.hoped[i, j, k] += r.arrivals[r.kept[i], age, k] * r.quantities[o]


@inner
def sold_off(r: Rollout, x: float, j: int) -> float:
    """What is left of x after the demand expected in step j: never below 0, where customers do not wait."""
    left: float = x - (r.mean[j] if j < len(r.mean) else 0.0)
    return left if r.terms.waits else max(0.0, left)


@inner
def projected_now(r: Rollout, kept: int) -> float:
    """The stock expected in step lag before its demand, if nothing is ordered now: van Jaarsveld and Arts (2024).

    Expected arrivals are added and expected demand is sold step by step.
    """
    last, x = r.arrivals.shape[1] - 1, float(r.shelf.sum())
    for k in range(r.lag + 1):
        for o in range(len(r.quantities)):
            if r.ages[o] <= last:
                x += r.arrivals[kept, r.ages[o], k] * r.quantities[o]
        if k < r.lag:
            x = sold_off(r, x, k)
    return x


@inner
def projected(r: Rollout, i: int, j: int, stock: float, placed: Floats) -> float:
    """The same in step j + lag, if nothing is ordered in step j of path i; placed [j] are the orders before."""
    last, n_open, x = r.arrivals.shape[1] - 1, len(r.quantities), stock
    for k in range(r.lag + 1):
        x += r.hoped[i, j, k]
        if r.kept[i]:
            if 0 <= j + k - r.promised < j:
                x += placed[j + k - r.promised]
        else:
            for o in range(max(0, j - last), j):
                if r.fates[i, n_open + o] < 0 or r.fates[i, n_open + o] >= j:
                    x += r.arrivals[0, j - o, k] * placed[o]
        if k < r.lag:
            x = sold_off(r, x, j + k)
    return x


@inner
def target(r: Rollout, j: int, cover: float) -> float:
    """The stock wanted when an order of step j comes: a multiple of the demand until that of the next review does."""
    wanted = 0.0
    for k in range(j + r.lag, j + r.lag + r.terms.review):
        wanted += r.mean[k] if k < len(r.mean) else 0.0
    return cover * wanted


@inner
def path_value(r: Rollout, first: float, cover: float, placed: Floats, shelf: Floats, i: int) -> float:
    """Reward of path i if ``first`` is ordered now and later stock is projected to cover · mean demand."""
    n, n_open, total, terms, top = r.demand.shape[1], len(r.quantities), 0.0, r.terms, len(shelf) - 1
    comes = 1.0 if r.kept[i] else max(r.arrivals[0, 0].sum(), 1e-9)
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
            short = (target(r, j, cover) - projected(r, i, j, stock, placed)) / comes
            if short > 0:
                order = sized(terms, max(short, r.batch))
        placed[j] = order
        shelf[top] += r.brought[i, j]
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


@inner
def value(r: Rollout, first: float, cover: float, every: int = 1) -> float:
    """Mean reward over the paths, or over one in ``every`` of them."""
    placed, shelf, total, count = np.zeros(r.demand.shape[1]), np.zeros(len(r.shelf)), 0.0, 0
    for i in range(every // 2, len(r.demand), every):
        total += path_value(r, first, cover, placed, shelf, i)
        count += 1
    return total / count


@compiled
def search(r: Rollout, covers: Floats, step: float, every: int) -> tuple[float, float, float]:
    """The best first order, the cover it was found with, and its value.

    First the cover whose rule, used now as well, is best over one in ``every`` paths; then the order alone, over all,
    in steps that shrink until they are below a pack, and none at all.
    """
    terms, share = r.terms, r.kept.mean()
    x = share * projected_now(r, 1) + (1 - share) * projected_now(r, 0)
    comes = max(share * r.arrivals[1, 0].sum() + (1 - share) * r.arrivals[0, 0].sum(), 1e-9)
    best, cover, most = 0.0, covers[0], -np.inf
    for c in covers:
        short = (target(r, 0, c) - x) / comes
        first = sized(terms, max(short, r.batch)) if short > 0 and terms.since == 0 else 0.0
        v = value(r, first, c, every)
        if v > most:
            best, cover, most = first, c, v
    most = value(r, best, cover)
    if terms.since != 0:
        return 0.0, cover, most
    while step >= terms.grain:
        moved = False
        for side in (-1.0, 1.0):
            first = sized(terms, best + side * step)
            if first == best:
                continue
            v = value(r, first, cover)
            if v > most + 1e-9:
                best, most, moved = first, v, True
                break
        if not moved:
            step /= 2.5
    v = value(r, 0.0, cover)
    return (0.0, cover, v) if v > most else (best, cover, most)
