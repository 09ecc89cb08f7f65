"""The order that is best over common random paths, later orders following the rule of projected stock."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ucbf.kernels.jit import compiled
from ucbf.kernels.types import Floats, Ints


class Rollout(NamedTuple):
    """N paths of n steps, and what the rule that orders later knows."""

    stock: float  # on the shelf now
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
    profit: float
    holding: float


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


@compiled
def sold_off(r: Rollout, x: float, j: int) -> float:
    """What is left of x after the demand expected in step j."""
    return max(0.0, x - (r.mean[j] if j < len(r.mean) else 0.0))


@compiled
def projected_now(r: Rollout, kept: int) -> float:
    """The stock expected in step lag before its demand, if nothing is ordered now: van Jaarsveld and Arts (2024).

    Expected arrivals are added and expected demand is sold step by step, never below 0.
    """
    last, x = r.arrivals.shape[1] - 1, r.stock
    for k in range(r.lag + 1):
        for o in range(len(r.quantities)):
            if r.ages[o] <= last:
                x += r.arrivals[kept, r.ages[o], k] * r.quantities[o]
        if k < r.lag:
            x = sold_off(r, x, k)
    return x


@compiled
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


@compiled
def path_value(r: Rollout, first: float, cover: float, placed: Floats, i: int) -> float:
    """Reward of path i if ``first`` is ordered now and later stock is projected to cover · mean demand."""
    n, n_open, stock, total = r.demand.shape[1], len(r.quantities), r.stock, 0.0
    comes = 1.0 if r.kept[i] else max(r.arrivals[0, 0].sum(), 1e-9)
    for j in range(n):
        order = 0.0
        if j == 0:
            order = first
        elif j + r.lag < n:
            order = max(0.0, cover * r.mean[j + r.lag] - projected(r, i, j, stock, placed)) / comes
        placed[j] = order
        stock += r.brought[i, j]
        for o in range(j + 1):
            if r.fates[i, n_open + o] == j:
                stock += placed[o]
        sold = min(stock, r.demand[i, j])
        stock -= sold
        total += r.profit * sold - r.holding * stock
    return total


@compiled
def value(r: Rollout, first: float, cover: float, every: int = 1) -> float:
    """Mean reward over the paths, or over one in ``every`` of them."""
    placed, total, count = np.zeros(r.demand.shape[1]), 0.0, 0
    for i in range(every // 2, len(r.demand), every):
        total += path_value(r, first, cover, placed, i)
        count += 1
    return total / count


@compiled
def search(r: Rollout, covers: Floats, step: float, every: int) -> tuple[float, float, float]:
    """The best first order, the cover it was found with, and its value.

    First the cover whose rule, used now as well, is best over one in ``every`` paths; then the order alone, over all,
    in steps that shrink until below 1.
    """
    share = r.kept.mean()
    x = share * projected_now(r, 1) + (1 - share) * projected_now(r, 0)
    comes = max(share * r.arrivals[1, 0].sum() + (1 - share) * r.arrivals[0, 0].sum(), 1e-9)
    now = r.mean[r.lag] if r.lag < len(r.mean) else 0.0
    best, cover, most = 0.0, covers[0], -np.inf
    for c in covers:
        first = max(0.0, c * now - x) / comes
        v = value(r, first, c, every)
        if v > most:
            best, cover, most = first, c, v
    most = value(r, best, cover)
    while step >= 1:
        moved = False
        for side in (-1.0, 1.0):
            first = max(0.0, best + side * step)
            if first == best:
                continue
            v = value(r, first, cover)
            if v > most + 1e-9:
                best, most, moved = first, v, True
                break
        if not moved:
            step /= 2.5
    return best, cover, most
