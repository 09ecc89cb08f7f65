"""Problems with known answers: each gives a world, its value from the first state, and what is known of its policy."""

import math

import numpy as np

import ucbf
from ucbf.systems import Inventory, Reservoir
from worlds import bertsekas_inventory


def puterman():
    """Puterman, Markov Decision Processes, 3.2.2 and 4.6.1: V_1 = (67/16, 129/16, 97/8, 227/16)."""
    store = Inventory(
        capacity=3, max_demand=2, horizon=3, price=8, unit_cost=2, order_cost=4, holding=0, storage=1, salvage=0
    )
    return store.world(ucbf.Disturbance([0.25, 0.5, 0.25]), start=0), 67 / 16


def bertsekas():
    """Bertsekas, Dynamic Programming and Optimal Control I, Example 1.3.2: J_0 = (3.7, 2.7, 2.818)."""
    world = bertsekas_inventory()
    return ucbf.World(world.system, world.law, start=0), -3.7


def newsvendor():
    """One period, holding 1, penalty 4, Poisson(6): stock 8, cost 3.5701069457709."""
    store = Inventory(capacity=30, max_demand=40, horizon=1, price=0, unit_cost=0, holding=1, penalty=4, salvage=0)
    pmf = np.array([math.exp(-6) * 6**d / math.factorial(d) for d in range(41)])
    return store.world(ucbf.Disturbance(pmf / pmf.sum()), start=0), -3.5701069457709


def reservoir():
    """Stock 0..1 in thirtieths, release at most a half, cost (sin 3t - 1)u, inflow 0..0.3: value 1.332454 from 0.5."""
    worth = tuple(1 - np.sin(3 * np.arange(1, 6)))
    dam = Reservoir(
        unit=1 / 30, capacity=1, max_inflow=0.3, max_release=0.5, horizon=5, value=worth,
        target=0, shortage_cost=0, water_value=0,
    )  # fmt: skip
    return dam.world(ucbf.Disturbance(np.full(10, 0.1)), start=0.5), 1.332454


def normal(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def snyder_shen():
    """Fundamentals of Supply Chain Theory, Problem 4.29: order up to 23 always; cost 234.8279376.

    The cost of a period is that of the normal law itself, g(y) = h(y-μ) + (h+p)σ(φ(z) - z(1-Φ(z))); demand moves the
    stock by its rounded law.
    """
    mean, sd, hold, short = 18, 3, 1, 25

    def period(y):
        z = (y - mean) / sd
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return hold * (y - mean) + (hold + short) * sd * (density - z * (1 - normal(z)))

    demand = np.arange(mean - 4 * sd, mean + 4 * sd + 1)
    pmf = np.array([normal((d + 0.5 - mean) / sd) - normal((d - 0.5 - mean) / sd) for d in demand])
    store = Inventory(
        capacity=60, backlog=60, max_demand=30, horizon=10, price=0, unit_cost=1, holding=0, penalty=0, discount=0.98
    )
    system = store.system.replace(
        reward=lambda stock, order: -1.0 * order - np.vectorize(period)(stock + order),
        terminal=lambda stock: -(hold * np.maximum(stock, 0) + short * np.maximum(-stock, 0)),
    )
    law = store.disturbance_distribution(ucbf.Disturbance(pmf / pmf.sum(), low=int(demand[0])))
    return ucbf.World(system, law, start=0), -234.8279376


def riccati(steps):
    """P_0, ..., P_steps from the end: 0, 1, 1.5, 1.6, ..."""
    p = [0.0]
    for _ in range(steps):
        p.append(1 + p[-1] - p[-1] ** 2 / (1 + p[-1]))
    return p


INSTANCES = {
    "puterman-inventory": puterman,
    "bertsekas-inventory": bertsekas,
    "snyder-shen-4.29": snyder_shen,
    "reservoir": reservoir,
    "newsvendor": newsvendor,
}
