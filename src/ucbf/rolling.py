"""The order to place now: the best over sampled futures, when later orders follow a simple rule.

Every candidate meets the same demands and the same lead times (common random numbers), so that candidates differ by
the order alone. Later orders bring the stock projected at their arrival up to a multiple of the demand then expected;
the multiple is chosen over the same paths. What is left after the last step is worth nothing.

References
----------
Bertsekas (2020), Rollout, Policy Iteration, and Distributed Reinforcement Learning.
van Jaarsveld and Arts (2024), Projected inventory-level policies for lost sales inventory systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ucbf.checks import real
from ucbf.kernels.rolling import Rollout, count_open, search
from ucbf.kernels.types import Floats
from ucbf.suppliers import Belief

EVERY = 4  # one path in so many is enough to choose the cover
COVERS = tuple(round(0.4 + 0.2 * i, 1) for i in range(10))  # 0.4, 0.6, ..., 2.2


@dataclass(frozen=True)
class Order:
    """The quantity to order now, the cover that later orders had, and the mean reward over the paths."""

    quantity: float
    cover: float
    value: float


def best_order(
    stock: float, quantities: Sequence[float], ages: Sequence[int], belief: Belief, demand: ArrayLike,
    hypothesis: ArrayLike, uniforms: ArrayLike, *, profit: float, holding: float,
    covers: Sequence[float] = COVERS, step: float = 0.25,
) -> Order:  # fmt: skip
    """The order that earns most over N paths of n steps.

    Parameters
    ----------
    stock
        On the shelf before this period's arrivals.
    quantities, ages
        Of the O open orders, [O] each.
    belief
        What is known of lead times.
    demand
        [N, n] sampled demands of this period and the next n - 1.
    hypothesis, uniforms
        [N] and [N, O + n] uniform draws, from which lead times are made.
    profit, holding
        Of a unit sold; of a unit left at the end of a period.
    covers
        Multiples tried for later orders.
    step
        First step of the search, as a share of the mean demand.
    """
    paths, told = np.ascontiguousarray(demand, float), np.asarray(hypothesis, float)
    draws = np.asarray(uniforms, float)
    if draws.shape != (len(paths), len(ages) + paths.shape[1]) or len(told) != len(paths):
        need = (len(paths), len(ages) + paths.shape[1])
        raise ValueError(f"uniforms has shape {draws.shape}; give {need}: one for each open order and each step")
    if len(quantities) != len(ages):
        raise ValueError(f"{len(quantities)} quantities and {len(ages)} ages; give one age for each open order")
    r = rollout(stock, quantities, ages, belief, paths, told, draws, profit, holding)
    every = min(EVERY, len(paths))
    quantity, cover, value = search(r, np.asarray(covers, float), max(1.0, step * float(r.mean[0])), every)
    return Order(float(quantity), float(cover), float(value))


def rollout(
    stock: float, quantities: Sequence[float], ages: Sequence[int], belief: Belief, demand: Floats,
    hypothesis: Floats, uniforms: Floats, profit: float, holding: float,
) -> Rollout:  # fmt: skip
    """The paths that ``best_order`` searches over, with what is the same for every candidate."""
    n, lag = demand.shape[1], int(belief.expected_lag() + 0.5)
    r = Rollout(
        stock=real("stock", stock, 0),
        quantities=np.asarray(quantities, float),
        ages=np.asarray(ages, np.int64),
        demand=demand,
        fates=belief.fates(ages, n, hypothesis, uniforms),
        kept=(hypothesis < belief.kept).astype(np.int64),
        promised=belief.promised,
        arrivals=belief.arrivals(),
        mean=demand.mean(axis=0),
        lag=lag,
        brought=np.empty((len(demand), n)),
        hoped=np.empty((len(demand), n, lag + 1)),
        profit=real("profit", profit, 0),
        holding=real("holding", holding, 0),
    )
    count_open(r)
    return r
