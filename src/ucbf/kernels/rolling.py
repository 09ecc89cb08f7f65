"""The order to place now, over common random paths, when later orders follow the rule of projected stock.

How often the stock is to last until the next order comes is decided at one usual stock: there the order is the one that
earns most. At any other stock the order is the one with which the stock lasts in as many of the sampled steps. So a
larger stock never means a larger order: on every path it leaves less to be ordered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ucbf.kernels.jit import compiled, inner
from ucbf.kernels.shelves import Terms, grow_old, serve, sized, smallest, step_value
from ucbf.kernels.types import Floats, Ints

HALVINGS = 8  # of the stocks between which an order begins to be worth its cost


class Rollout(NamedTuple):
    """N paths of n steps, and what the rule that orders later knows."""

    quantities: Floats  # [O] of the open orders
    ages: Ints  # [O]
    demand: Floats  # [N, n]
    fates: Ints  # [N, O + n] the step in which each open order, and one placed in each step, comes; never: -1
    kept: Ints  # [N] 1: on this path the supplier keeps the promise
    promised: int  # lead time
    arrivals: Floats  # [2, M + 1, M + 1] given kept, age, periods from now: the probability of coming then
    mean: Floats  # [n] expected demand
    spread: Floats  # [n] standard deviation of the demand from a step until what is ordered at the next review comes
    lag: int  # the rule looks this far ahead
    brought: Floats  # [N, n] what open orders bring in each step
    hoped: Floats  # [N, n, lag + 1] what they are expected in step j to bring k steps later, if they have not come
    batch: float  # where orders are dear, they are no smaller
    terms: Terms


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


# -- the rule that orders later -------------------------------------------------------------------------


@inner
def sold_off(r: Rollout, x: float, j: int) -> float:
    """What is left of x after the demand expected in step j: never below 0, where customers do not wait."""
    left: float = x - (r.mean[j] if j < len(r.mean) else 0.0)
    return left if r.terms.waits else max(0.0, left)


@inner
def projected_now(r: Rollout, stock: float, kept: int) -> float:
    """The stock expected in step lag before its demand, if nothing is ordered now: van Jaarsveld and Arts (2024).

    Expected arrivals are added and expected demand is sold step by step.
    """
    last, x = r.arrivals.shape[1] - 1, stock
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
def target(r: Rollout, j: int, safety: float) -> float:
    """The stock wanted when an order of step j comes: the demand until that of the next review does, and safety."""
    wanted: float = safety * r.spread[j]
    for k in range(j + r.lag, j + r.lag + r.terms.review):
        wanted += r.mean[k] if k < len(r.mean) else 0.0
    return wanted


@inner
def by_rule(r: Rollout, stock: float, safety: float) -> float:
    """What the rule would order now, in any quantity; 0 or less: nothing."""
    share = r.kept.mean()
    comes = share * r.arrivals[1, 0].sum() + (1 - share) * r.arrivals[0, 0].sum()
    there = share * projected_now(r, stock, 1) + (1 - share) * projected_now(r, stock, 0)
    short: float = (target(r, 0, safety) - there) / max(comes, 1e-9)
    return short


# -- what an order earns --------------------------------------------------------------------------------


@inner
def path_value(r: Rollout, start: Floats, first: float, safety: float, placed: Floats, shelf: Floats, i: int) -> float:
    """Reward of path i from the shelf ``start`` if ``first`` is ordered now and later orders follow the rule."""
    n, n_open, total, terms, top = r.demand.shape[1], len(r.quantities), 0.0, r.terms, len(shelf) - 1
    comes = 1.0 if r.kept[i] else max(r.arrivals[0, 0].sum(), 1e-9)
    shelf[:] = start
    for j in range(n):
        order = 0.0
        if j == 0:
            order = first
        elif j + r.lag < n and (terms.since + j) % terms.review == 0:
            stock = 0.0
            for k in range(top + 1):
                stock += shelf[k]
            short = (target(r, j, safety) - projected(r, i, j, stock, placed)) / comes
            if short > 0:
                order = sized(terms, max(short, r.batch))
        placed[j] = order
        shelf[top] += r.brought[i, j]
        for o in range(j + 1):
            if r.fates[i, n_open + o] == j:
                shelf[top] += placed[o]
        total += step_value(terms, shelf, order, r.demand[i, j])
        if r.fates[i, n_open + j] < 0:
            total += terms.unit_cost * order  # what never comes is not paid for
    if terms.left != 0:
        for k in range(top + 1):
            total += terms.left * shelf[k]
        for o in range(n_open):
            total += terms.left * r.quantities[o] * (r.fates[i, o] >= n)
        for o in range(n):
            total += terms.left * placed[o] * (r.fates[i, n_open + o] >= n)
    return total


@inner
def value(r: Rollout, start: Floats, first: float, safety: float, every: int = 1) -> float:
    """Mean reward over the paths, or over one in ``every`` of them."""
    placed, shelf, total, count = np.zeros(r.demand.shape[1]), np.zeros(len(start)), 0.0, 0
    for i in range(every // 2, len(r.demand), every):
        total += path_value(r, start, first, safety, placed, shelf, i)
        count += 1
    return total / count


@inner
def best_at(r: Rollout, start: Floats, safeties: Floats, step: float, every: int) -> tuple[float, float]:
    """The order that earns most from this shelf, in any quantity, and the safety of later orders it was found with.

    First the safety whose rule, used now as well, is best over one in ``every`` paths; then the order alone, over all,
    in steps that shrink. Where an order costs something, it is the best of those above 0.
    """
    unit, least = r.terms.unit, r.terms.unit if r.terms.order_cost > 0 else 0.0
    stock, best, safety, most = start.sum(), 0.0, safeties[0], -np.inf
    for s in safeties:
        short = by_rule(r, stock, s)
        first = max(short, r.batch) if short > 0 else least
        v = value(r, start, first, s, every)
        if v > most:
            best, safety, most = first, s, v
    best = np.floor(best / unit + 0.5) * unit
    most = value(r, start, best, safety)
    size = max(np.floor(step / unit), 1.0)
    while size >= 1:
        moved = False
        for side in (-1.0, 1.0):
            first = max(best + side * size * unit, least)
            if first == best:
                continue
            v = value(r, start, first, safety)
            if v > most + 1e-9:
                best, most, moved = first, v, True
                break
        if not moved:
            size = np.floor(size / 2)
    return best, safety


# -- how often the stock lasts --------------------------------------------------------------------------


@inner
def needs(r: Rollout, start: Floats, found: Floats) -> int:
    """What must be ordered now for the stock to last through a step, in increasing order; the number of such steps.

    The steps, on every path: from that in which the order comes, until the one before that of the next review does.
    """
    terms, n, n_open, count, top = r.terms, r.demand.shape[1], len(r.quantities), 0, len(start) - 1
    shelf = np.zeros(top + 1)
    for i in range(len(r.demand)):
        comes = r.fates[i, n_open]
        if comes < 0 or comes >= n:
            continue
        shelf[:] = start
        for j in range(comes):
            shelf[top] += r.brought[i, j]
            serve(terms, shelf, r.demand[i, j])
            grow_old(terms, shelf)
        need = -shelf.sum()
        for j in range(comes, min(comes + terms.review, n)):
            need += r.demand[i, j] - r.brought[i, j]
            found[count] = need
            count += 1
    found[:count].sort()
    return count


@inner
def lasting(found: Floats, count: int, quantity: float) -> float:
    """The share of the steps through which the stock lasts if so much is ordered."""
    return float(np.searchsorted(found[:count], quantity + 1e-9, side="right") / max(count, 1))


@inner
def filled(shelf: Floats, stock: float) -> Floats:
    """A shelf with so much on it, of the ages that this one has; all fresh if it is empty."""
    there, out = shelf.sum(), np.zeros(len(shelf))
    if there > 0 and stock >= 0:
        out[:] = shelf * (stock / there)
    else:
        out[len(out) - 1] = stock
    return out


@inner
def usual_stock(r: Rollout, safety: float) -> float:
    """The stock at which the rule orders what is asked for between two reviews; none, if it orders less even then."""
    between, most = 0.0, 2 * r.demand.max() * len(r.mean)
    for k in range(r.lag, min(r.lag + r.terms.review, len(r.mean))):
        between += r.mean[k]
    low, high = (-most if r.terms.waits else 0.0), most
    for _ in range(40):
        middle = (low + high) / 2
        if by_rule(r, middle, safety) >= between:
            low = middle
        else:
            high = middle
    return float(np.floor(low / r.terms.unit) * r.terms.unit)


@compiled
def decide(
    r: Rollout, shelf: Floats, usual: float, safeties: Floats, step: float, every: int
) -> tuple[float, float, float]:
    """The order, the safety of later ones, and the share of steps through which the stock then lasts.

    usual: the safety by which the usual stock is found
    """
    terms, here = r.terms, np.empty(len(r.demand) * r.terms.review)
    count = needs(r, shelf, here)
    if count == 0 or terms.since != 0:
        return 0.0, usual, lasting(here, count, 0.0)
    if terms.service > 0:
        short = here[max(int(np.ceil(terms.service * count - 1e-9)) - 1, 0)]
        order = sized(terms, max(short, r.batch), True) if short > 0 else 0.0
        return order, usual, lasting(here, count, order)
    start = filled(shelf, usual_stock(r, usual))
    best, safety = best_at(r, start, safeties, step, every)
    there = np.empty(len(here))
    needs(r, start, there)
    half = terms.unit / 2  # the middle one of those that are met by the same order
    below, above = np.searchsorted(there[:count], best - half), np.searchsorted(there[:count], best + half)
    rank = min(int(below + above) // 2, count - 1)
    beyond = best - there[rank]
    short = here[rank] + beyond
    order = sized(terms, short)
    if terms.order_cost > 0 or smallest(terms) > terms.unit:
        order = 0.0
        if short > 0 and is_worth_it(r, shelf, safety, rank, beyond):
            order = max(sized(terms, short), smallest(terms))
    return order, safety, lasting(here, count, order)


@inner
def is_worth_it(r: Rollout, shelf: Floats, safety: float, rank: int, beyond: float) -> bool:
    """Whether the stock is below the one from which on an order is not worth its cost, found by halving."""
    found, stock = np.empty(len(r.demand) * r.terms.review), shelf.sum()
    high = 2 * r.demand.max() * len(r.mean)
    low = -high if r.terms.waits else 0.0
    if not pays(r, filled(shelf, low), safety, rank, beyond, found):
        return False
    for _ in range(HALVINGS):
        if stock <= low or stock >= high:
            break
        middle = (low + high) / 2
        if pays(r, filled(shelf, middle), safety, rank, beyond, found):
            low = middle
        else:
            high = middle
    return bool(stock < high)


@inner
def pays(r: Rollout, start: Floats, safety: float, rank: int, beyond: float, found: Floats) -> bool:
    """Whether to order from this shelf earns more than to wait."""
    needs(r, start, found)
    short = found[rank] + beyond
    if short <= 0:
        return False
    order = max(sized(r.terms, short), smallest(r.terms))
    return value(r, start, order, safety) > value(r, start, 0.0, safety)
