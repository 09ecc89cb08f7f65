"""Something scarce that the items of a fleet share: a price on it, so that they can be planned one by one again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import one_of, real
from ucbf.kernels import fleet as kernels

if TYPE_CHECKING:
    from ucbf.fleet.items import Fleet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST = 1e12  # multiplier that is tried


@dataclass(frozen=True)
class Shared:
    """The best plans of many items that share something scarce, but for ``gap``."""

    multiplier: float  # what one more unit of it is worth
    used: float  # of it, expected in an episode, at most what there is
    reward: float  # expected of all items together
    bound: float  # no plans that keep to it on average bring more than this

    @property
    def gap(self) -> float:
        """How much better other plans may be, at most."""
        return self.bound - self.reward


@dataclass(frozen=True)
class _Planned:
    """What comes of the plans of all items with one multiplier."""

    used: Floats  # [N] of what is scarce
    reward: Floats  # [N] without the multiplier
    bound: float  # on what plans that keep to the limit bring
    values: Floats  # [N, S]
    policies: NDArray[np.int16]  # [N, H, S]


def share(
    fleet: Fleet, cost: str, most: float, start: ArrayLike | None, tolerance: float, weight: ArrayLike | None
) -> Shared:
    """:meth:`ucbf.Fleet.share`."""
    if fleet.system.horizon is None:
        raise ValueError("what is scarce is shared within an episode, and this system has no end; give a horizon")
    one_of("cost", cost, fleet.names)
    most, tolerance = real("most", most, 0), real("tolerance", tolerance, 0, open_low=True)
    weights = np.ones(len(fleet)) if weight is None else np.asarray(weight, np.float64)
    if weights.shape != (len(fleet),) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"weight is {weight!r:.60}; give numbers from 0 on, one for each of the {len(fleet)} items")
    first = np.full(len(fleet), fleet.system.nearest_to_zero) if start is None else start
    at = np.arange(len(fleet)), fleet.places(first, np.arange(len(fleet)))
    free = _planned(fleet, cost, weights, 0.0, most, at)
    if free.used.sum() < 0:
        raise ValueError(f"cost is {cost!r}, which is earned and not paid; name a cost")
    if free.used.sum() <= most:
        return Shared(0.0, float(free.used.sum()), float(free.reward.sum()), free.bound)
    low, high, above, within = 0.0, 1.0, free, _planned(fleet, cost, weights, 1.0, most, at)
    while within.used.sum() > most:
        low, high, above = high, 4 * high, within
        if high > MOST:
            raise ValueError(
                f"most is {most:g}, and the items use {within.used.sum():g} whatever that costs them; give more, or "
                "other first states"
            )
        within = _planned(fleet, cost, weights, high, most, at)
    while high - low > tolerance * high:
        middle = (low + high) / 2
        tried = _planned(fleet, cost, weights, middle, most, at)
        if tried.used.sum() > most:
            low, above = middle, tried
        else:
            high, within = middle, tried
    chosen = _filled(within.used, above.used, most)
    fleet.charge(cost, high * weights)
    fleet.renew()
    fleet.take(chosen, above.values, above.policies)
    used, reward = (
        np.where(chosen, ours, theirs) for ours, theirs in ((above.used, within.used), (above.reward, within.reward))
    )
    return Shared(high, float(used.sum()), float(reward.sum()), within.bound)


def _planned(
    fleet: Fleet, cost: str, weights: Floats, multiplier: float, most: float, at: tuple[Ints, Ints]
) -> _Planned:
    """Plan for all items with a multiplier on top of their costs. at: items [N] and their first states [N]."""
    fleet.charge(cost, multiplier * weights)
    value = np.array(fleet.values)
    used = weights * _used(fleet, fleet.names.index(cost))[at]
    paid = value[at]
    bound = float(paid.sum() + multiplier * most)
    return _Planned(used, paid + multiplier * used, bound, value, np.array(fleet.policies))


def _filled(within: Floats, above: Floats, most: float) -> NDArray[np.bool_]:
    """[N] which items may follow the plan that uses more, of two that are best at nearly the same multiplier.

    The largest are tried first.
    """
    chosen, left = np.zeros(len(within), np.bool_), most - within.sum()
    more = above - within
    for i in np.argsort(-more, kind="stable"):
        if 0 < more[i] <= left:
            chosen[i] = True
            left -= more[i]
    return chosen


def _used(fleet: Fleet, c: int) -> Floats:
    """[N, S] how much of what cost c is paid for every item uses from every first state on."""
    only = np.zeros((len(fleet), len(fleet.names)))
    only[:, c] = -1  # what is paid counts as negative
    tables = [np.where(np.isfinite(table), table, 0) for table in fleet.parts.tables]
    for table in tables:
        table[0] = 0
    reward, landing, terminal = tables
    parts = kernels.Parts(reward, landing, terminal, fleet.parts.pays)
    policies, value = fleet.policies, np.zeros((len(fleet), fleet.system.n_states))

    def follow(items: Ints) -> Ints:
        found, (m, model, *room) = value[items], fleet.room()
        law = fleet.believed(items, True)
        nothing = np.zeros(len(items))  # there is an end
        kernels.follow_items(m, model, parts, only[items], law, policies[items], nothing, found, nothing, *room)
        value[items] = found
        return items

    for _ in fleet.in_blocks(follow, np.arange(len(fleet))):
        pass
    return value
