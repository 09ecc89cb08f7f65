"""The order to place now: the best over sampled futures, when later orders follow a simple rule.

Every candidate meets the same demands and the same lead times (common random numbers), so that candidates differ by
the order alone. Later orders bring the stock projected at their arrival up to the demand then expected and a safety
stock: so many standard deviations of the demand until what is ordered next comes. How many is chosen over the same
paths. What is left after the last step is worth its cost.

A larger stock never means a larger order (:mod:`ucbf.kernels.rolling` says why).

References
----------
Bertsekas (2020), Rollout, Policy Iteration, and Distributed Reinforcement Learning.
van Jaarsveld and Arts (2024), Projected inventory-level policies for lost sales inventory systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers, real, whole
from ucbf.kernels.rolling import Rollout, count_open, decide
from ucbf.kernels.shelves import Terms
from ucbf.laws.mixtures import LevelMixture
from ucbf.suppliers import Belief, Supplier, believe
from ucbf.systems.inventory import Inventory

Floats = NDArray[np.float64]
BEYOND, LONGEST = 3, 14  # steps looked ahead after the one in which an order is promised: at least, and for a batch
EVERY = 4  # one path in so many is enough to choose the safety of later orders
SAFETIES = tuple(-1.5 + 0.5 * i for i in range(13))  # -1.5, -1, ..., 4.5


@dataclass(frozen=True)
class Order:
    """The order to place now.

    quantity  what to order
    safety    standard deviations of demand that later orders keep as safety stock
    lasts     share of the sampled steps, from the arrival of the order until the next one's, in which the stock lasts
    """

    quantity: float
    safety: float
    lasts: float


def best_order(
    shelf: ArrayLike, quantities: Sequence[float], ages: Sequence[int], belief: Belief, demand: ArrayLike,
    hypothesis: ArrayLike, uniforms: ArrayLike, terms: Terms, *,
    safeties: Sequence[float] = SAFETIES, step: float = 0.25,
) -> Order:  # fmt: skip
    """The order that earns most over N paths of n steps.

    Parameters
    ----------
    shelf
        What is there before this step's arrivals; where stock ages [life], by the steps it still keeps.
    quantities, ages
        Of the O open orders, [O] each.
    belief
        What is known of lead times.
    demand
        [N, n] sampled demands of this step and the next n - 1.
    hypothesis, uniforms
        [N] and [N, O + n] uniform draws, from which lead times are made.
    terms
        What is earned and paid, and which orders there are.
    safeties
        Standard deviations tried for later orders.
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
    stock = np.atleast_1d(np.asarray(shelf, float))
    if len(stock) != max(terms.life, 1):
        raise ValueError(f"shelf has {len(stock)} entries; give {max(terms.life, 1)}: one for each step that it keeps")
    r = rollout(quantities, ages, belief, paths, told, draws, terms)
    every, first = min(EVERY, len(paths)), step * float(r.mean[0])
    found = decide(r, stock, usual_safety(terms), np.asarray(safeties, float), first, every)
    return Order(*map(float, found))


def usual_safety(terms: Terms) -> float:
    """The safety of a store whose missing demand waits and whose orders are free: by the critical ratio."""
    missing = terms.price - terms.unit_cost + terms.penalty
    kept = terms.holding * terms.review
    ratio = missing / (missing + kept) if missing > 0 and kept > 0 else float(missing > 0)
    return NormalDist().inv_cdf(min(max(ratio, 0.1), 0.9999))


def rollout(
    quantities: Sequence[float], ages: Sequence[int], belief: Belief, demand: Floats, hypothesis: Floats,
    uniforms: Floats, terms: Terms,
) -> Rollout:  # fmt: skip
    """The paths that :func:`best_order` searches over, with what is the same for every candidate."""
    n, lag, mean = demand.shape[1], int(belief.expected_lag() + 0.5), demand.mean(axis=0)
    dear = 2 * terms.order_cost * float(mean.mean()) / terms.holding if terms.holding > 0 else 0.0
    until = [demand[:, j : j + lag + terms.review].sum(axis=1) for j in range(n)]
    r = Rollout(
        quantities=np.asarray(quantities, float),
        ages=np.asarray(ages, np.int64),
        demand=demand,
        fates=belief.fates(ages, n, hypothesis, uniforms),
        kept=(hypothesis < belief.kept).astype(np.int64),
        promised=belief.promised,
        arrivals=belief.arrivals(),
        mean=mean,
        spread=np.std(until, axis=1),
        lag=lag,
        brought=np.empty((len(demand), n)),
        hoped=np.empty((len(demand), n, lag + 1)),
        batch=dear**0.5,
        terms=terms,
    )
    count_open(r)
    return r


def plain_terms(profit: float, holding: float) -> Terms:
    """A store that earns so much with each unit sold, and pays for each unit left; what is left at the end is lost."""
    return Terms(
        price=real("profit", profit, 0), unit_cost=0.0, order_cost=0.0, holding=real("holding", holding, 0),
        penalty=0.0, waste=0.0, left=0.0, unit=1.0, grain=1.0, least=0.0, most=np.inf, review=1, since=0, life=0,
        lifo=0, waits=0, service=0.0,
    )  # fmt: skip


def terms_of(shop: Inventory, since: int = 0, service: float = 0.0) -> Terms:
    """The terms of a preset. A unit left after the paths is worth what it cost, so that nobody sells out for the end.

    since: steps since the last one at which orders could be placed
    service: share of the steps in which the stock is to last; 0: what earns most
    """
    if shop.fast_cost is not None or shop.price_breaks is not None or shop.storage:
        given = {"fast_cost": shop.fast_cost, "price_breaks": shop.price_breaks, "storage": shop.storage or None}
        names = ", ".join(name for name, value in given.items() if value is not None)
        raise ValueError(
            f"{names} is given; where orders take time or stock ages one supplier, one unit cost and no storage are "
            "known: leave it out"
        )
    grain = shop.unit if shop.pack is None else shop.pack
    return Terms(
        price=shop.price,
        unit_cost=shop.unit_cost,
        order_cost=shop.order_cost,
        holding=shop.holding,
        penalty=shop.penalty,
        waste=shop.waste,
        left=shop.unit_cost,
        unit=shop.unit,
        grain=grain,
        least=shop.min_order,
        most=np.inf if shop.max_order is None else shop.max_order,
        review=shop.review,
        since=since,
        life=shop.shelf_life or 0,
        lifo=int(shop.issue == "last"),
        waits=int(shop.backlog > 0),
        service=service,
    )


class Rolling:
    """Orders for a store whose demand drifts and whose supplier takes time: decided anew at every step.

    What the steps ahead may bring is sampled from :class:`ucbf.laws.mixtures.LevelMixture`, when orders will come from
    :func:`ucbf.suppliers.believe`; the order is the best over these paths (:func:`best_order`). The same history gives
    the same order.

    Parameters
    ----------
    shop
        Costs and sizes; its ``lead_time`` is what the supplier promises. Capacity and max_demand play no part.
    season
        [period] the demand expected at each step of a period, as a multiple of its mean; None: all alike.
    supplier
        What is believed of lead times before the first order; None: that the promise is kept, always.
    first
        The step of the period, from 0, of the first demand.
    paths
        How many futures are sampled.
    seed
        Of the draws.
    service
        The share of the steps in which the stock is to last, by the forecast; 0: order what earns most.

    Examples
    --------
    >>> import ucbf
    >>> shop = ucbf.systems.Inventory(lead_time=3, pack=6, price=5, unit_cost=2, holding=0.1)
    >>> orders = Rolling(shop)
    >>> for demand in (9, 12, 10, 8, 11, 10): orders.observe(demand)
    >>> orders.order(stock=20, under_way=[(12, 1)]).quantity % 6
    0.0
    """

    def __init__(
        self,
        shop: Inventory,
        *,
        season: ArrayLike | None = None,
        supplier: Supplier | None = None,
        first: int = 0,
        paths: int = 256,
        seed: int = 0,
        service: float = 0.0,
    ) -> None:
        if not isinstance(shop, Inventory):
            raise TypeError(f"shop is {shop!r:.60}; give a ucbf.systems.Inventory")
        self.shop, self.paths, self.seed = shop, whole("paths", paths, 8, 100_000), whole("seed", seed, 0)
        self.season = np.ones(1) if season is None else numbers("season", season)
        if self.season.ndim != 1 or not (self.season > 0).all():
            raise ValueError(f"season is {season!r:.60}; give one factor above 0 for each step of a period")
        self.supplier = Supplier(shop.lead_time, trust=1.0) if supplier is None else supplier
        self.levels, self.lags = LevelMixture(), list[int]()
        self.t = whole("first", first, 0)  # the step to come
        self.service = real("service", service, 0, 1)
        self._first = self.t
        terms_of(shop)

    def observe(self, demand: float, lags: Sequence[int] = (), sold_out: bool = False) -> None:
        """Take in a step: its demand, and the lead times of the orders that came in it.

        sold_out: demand is what was sold, and more was asked for; what is expected of such a demand is taken in
        """
        given = real("demand", demand, 0)
        if sold_out and self.levels.seen:
            given = self._expected_above(given)
        self.levels.add(given, self._factor(self.t))
        self.lags.extend(whole("lag", lag, 0) for lag in lags)
        self.t += 1

    def _expected_above(self, sold: float) -> float:
        """The demand that is expected where so much was sold, and more was asked for.

        Where all demands so far are whole numbers, so is this one: one of the two beside it, with the chances that make
        its mean right.
        """
        drawn = self.forecast(1)[:, 0]
        above = drawn[drawn >= sold]
        if not len(above):
            return sold
        counts = self.levels.whole and sold == np.rint(sold)
        expected = float(above.mean())
        return (
            float(np.floor(expected + np.random.default_rng([self.seed, self.t, 2]).random())) if counts else expected
        )

    def skip(self) -> None:
        """Pass over a step of which nothing is known."""
        self.t += 1

    @property
    def wait(self) -> int:
        """In how many steps orders can be placed: 0 where they can be now."""
        return (self._first - self.t) % self.shop.review

    @property
    def steps_until_next(self) -> int:
        """How many steps there are until the order of the next review after this step comes, by the promise."""
        return self.shop.lead_time + (self.wait or self.shop.review)

    def _factor(self, t: int) -> float:
        return float(self.season[t % len(self.season)])

    def forecast(self, steps: int) -> Floats:
        """[paths, steps] sampled demands of the steps to come; how many are asked for does not change the first."""
        rng = np.random.default_rng([self.seed, self.t, 0])
        even = (np.arange(self.paths) + rng.random()) / self.paths
        factors = [self._factor(self.t + k) for k in range(steps)]
        return self.levels.paths(even, rng.standard_normal((2 + 2 * steps, self.paths)).T, factors)

    @property
    def look_ahead(self) -> int:
        """How many steps are looked ahead: until what is ordered now has come, and then BEYOND, or two reviews.

        Where orders cost something, at least as many as a batch of the cheapest size lasts, up to LONGEST: else it
        would not be seen that a large order saves the next.
        """
        shop, lasts = self.shop, 0.0
        if shop.order_cost > 0 and shop.holding > 0:
            mean = max(float(self.forecast(len(self.season)).mean()), 1e-9)
            lasts = min((2 * shop.order_cost / (shop.holding * mean)) ** 0.5, LONGEST)
        return self.supplier.promised + 1 + max(BEYOND, 2 * shop.review, int(np.ceil(lasts)))

    def order(self, stock: Any, under_way: Sequence[tuple[float, int]] = ()) -> Order:
        """The order to place now.

        Parameters
        ----------
        stock
            On the shelf, before what comes today; where stock ages, [life] by the steps that it still keeps, the oldest
            first. Below 0: owed.
        under_way
            (quantity, age) of every order that has not come: age 1 was placed the step before.
        """
        terms, steps = terms_of(self.shop, (self.t - self._first) % self.shop.review, self.service), self.look_ahead
        ages = [whole("age", age, 1) for _, age in under_way]
        belief = believe(self.supplier, self.lags, ages)
        waited = [(real("quantity", q, 0), age) for q, age in under_way if age <= self.supplier.n_lags]
        shelf = np.atleast_1d(numbers("stock", stock)).astype(float)
        if terms.life and len(shelf) == 1:
            shelf = np.append(np.zeros(terms.life - 1), shelf)  # all of it fresh
        rng = np.random.default_rng([self.seed, self.t, 1])
        told = rng.permutation((np.arange(self.paths) + rng.random()) / self.paths)
        uniforms = rng.random((self.paths, len(waited) + steps))
        return best_order(
            shelf, [q for q, _ in waited], [age for _, age in waited], belief, self.forecast(steps), told, uniforms,
            terms,
        )  # fmt: skip
