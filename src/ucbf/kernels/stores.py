"""What orders that take time lead to: a store followed along common paths of demand, later orders up to a level."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ucbf.kernels.jit import compiled, inlined
from ucbf.kernels.types import Floats, Ints


class Pipeline(NamedTuple):
    """A store whose state is the shelf, with what came this step, and each order under way; in multiples of its unit.

    Amounts of money are for one unit.
    """

    fast: int  # the slot that orders from a second supplier are put into; -1: there is none
    capacity: int
    backlog: int
    price: float
    holding: float
    storage: float
    penalty: float
    spent: Floats  # [orders, orders of the second] what an action costs


class Levels(NamedTuple):
    """A rule that orders up to levels: order i is ``level[i] - weights[i] @ s``, within bounds, cut to what exists."""

    level: Floats  # [m]
    weights: Floats  # [m, d]
    most: Floats  # [m]
    gap: Floats  # [m] nothing less is ordered
    existing: Ints  # [m, largest + 1] the largest order that exists and is at most so much


@compiled
def expected_on_shelf(store: Pipeline, values: Ints, pmf: Floats, out: Floats) -> None:
    """What a step earns on average, orders apart, by what is on the shelf, from -backlog on.

    values, pmf: [n] of W   out: [stocks]
    """
    for i in range(len(out)):
        shelf = i - store.backlog
        out[i] = -store.storage * max(shelf, 0)
        for k in range(len(values)):
            z = shelf + values[k]
            earned = store.price * (shelf - max(z, -store.backlog))
            out[i] += pmf[k] * (earned - store.holding * max(z, 0) - store.penalty * max(-z, 0))


@inlined
def wanted(rule: Levels, i: int, held: float) -> int:
    """The order i of a rule that holds so much already."""
    missing = rule.level[i] - held
    if missing < rule.gap[i]:
        return 0
    most = min(rule.most[i], rule.existing.shape[1] - 1.0)
    order: int = rule.existing[i, int(max(min(missing, most), 0.0) + 1e-9)]
    return order


@compiled
def look_ahead(
    store: Pipeline, later: Levels, shelf_earns: Floats, states: Ints, orders: Ints, paths: Ints, out: Floats
) -> None:
    """Mean rewards over paths, step by step, of first orders and then a rule.

    shelf_earns: [stocks] on average   states: [N, L]   orders: [N, 2]   paths: [K, J] W of each step   out: [N, J]
    """
    N, L = states.shape
    K, J = paths.shape
    due = np.zeros(J + L + 1)  # what comes in each step
    costly = store.spent.max() > 0  # else orders that come after the last step do not matter
    out[:] = 0.0
    for n in range(N):
        for k in range(K):
            for i in range(1, L):
                due[i] = states[n, i]
            shelf = states[n, 0]
            first, second = orders[n, 0], orders[n, 1]
            for j in range(J):
                if j > 0 and (costly or j + L < J):
                    held = later.weights[0, 0] * shelf
                    for i in range(1, L):
                        held += later.weights[0, i] * due[j + i]
                    first = wanted(later, 0, held)
                if j > 0 and store.fast >= 0:
                    held = later.weights[1, 0] * shelf
                    for i in range(1, L):
                        held += later.weights[1, i] * due[j + i]
                    second = wanted(later, 1, held)
                due[j + L] = first
                if store.fast == 0:
                    second = min(second, max(store.capacity - shelf, 0))
                    shelf += second
                elif store.fast > 0:
                    due[j + store.fast] += second
                out[n, j] += shelf_earns[shelf + store.backlog] - store.spent[first, second]
                left = max(shelf + paths[k, j], -store.backlog) + int(due[j + 1])
                shelf = min(max(left, -store.backlog), store.capacity)
        for j in range(J):
            out[n, j] /= K
