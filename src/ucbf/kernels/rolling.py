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
    arrivals: Floats  # [2, M + 1, M + 1] given kept, age, periods from now: the probability of coming then
    mean: Floats  # [n] expected demand
    lag: int  # the rule looks this far ahead
    profit: float
    holding: float


@compiled
def projected(r: Rollout, i: int, j: int, stock: float, placed: Floats, kept: int) -> float:
    """The stock expected in step j + lag before its demand, if nothing is ordered in step j of path i.

    Expected arrivals are added and expected demand is sold step by step, never below 0: van Jaarsveld and Arts (2024).
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
            x = max(0.0, x - (r.mean[j + k] if j + k < len(r.mean) else 0.0))
    return x


@compiled
def path_value(r: Rollout, first: float, cover: float, placed: Floats, i: int) -> float:
    """Reward of path i if ``first`` is ordered now and later stock is projected to cover · mean demand."""
    n, n_open, stock, total, kept = r.demand.shape[1], len(r.quantities), r.stock, 0.0, r.kept[i]
    for j in range(n):
        order = 0.0
        if j == 0:
            order = first
        elif j + r.lag < n:
            short = cover * r.mean[j + r.lag] - projected(r, i, j, stock, placed, kept)
            order = max(0.0, short) / max(r.arrivals[kept, 0].sum(), 1e-9)
        placed[j] = order
        for o in range(n_open):
            if r.fates[i, o] == j:
                stock += r.quantities[o]
        for o in range(j + 1):
            if r.fates[i, n_open + o] == j:
                stock += placed[o]
        sold = min(stock, r.demand[i, j])
        stock -= sold
        total += r.profit * sold - r.holding * stock
    return total


@compiled
def value(r: Rollout, first: float, cover: float) -> float:
    """Mean reward over the paths."""
    placed, total = np.zeros(r.demand.shape[1]), 0.0
    for i in range(len(r.demand)):
        total += path_value(r, first, cover, placed, i)
    return total / len(r.demand)


@compiled
def search(r: Rollout, covers: Floats, step: float) -> tuple[float, float, float]:
    """The best first order, the cover it was found with, and its value.

    First the cover whose rule, used now as well, is best; then the order alone, in steps that shrink until below 1.
    """
    share, none = r.kept.mean(), np.zeros(1)
    x = share * projected(r, 0, 0, r.stock, none, 1) + (1 - share) * projected(r, 0, 0, r.stock, none, 0)
    comes = max(share * r.arrivals[1, 0].sum() + (1 - share) * r.arrivals[0, 0].sum(), 1e-9)
    now = r.mean[r.lag] if r.lag < len(r.mean) else 0.0
    best, cover, most = 0.0, covers[0], -np.inf
    for c in covers:
        first = max(0.0, c * now - x) / comes
        v = value(r, first, c)
        if v > most:
            best, cover, most = first, c, v
    while step >= 1:
        moved = False
        for side in (-1.0, 1.0):
            first = max(0.0, best + side * step)
            v = value(r, first, cover)
            if first != best and v > most + 1e-9:
                best, most, moved = first, v, True
                break
        if not moved:
            step /= 2.5
    return best, cover, most
