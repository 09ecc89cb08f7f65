"""Orders that take time, from a series of demand: a store run forward with rolling orders, and with simple rules."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.judging import LEARNED, ROLLING, Rewards, compare
from ucbf.advice.service import Service
from ucbf.advice.ways_to_order import (
    MOST_PLAYED,
    Adapting,
    ByValues,
    Played,
    Rule,
    UpToCover,
    WhatWasSold,
    best_cover,
    play,
)
from ucbf.checks import real, whole
from ucbf.data import Episodes
from ucbf.data.cutting import require_known
from ucbf.fitted_orders import FittedOrders, pairs, store_to_fit
from ucbf.following.calendar import Calendar, calendar_of
from ucbf.kernels.shelves import sized
from ucbf.rolling import Rolling, terms_of
from ucbf.run import Progress
from ucbf.suppliers import Supplier
from ucbf.systems.inventory import Inventory

Floats = NDArray[np.float64]
MOST_LEAD_TIME = 60  # steps
FEWEST_OF_A_PHASE = 4  # episodes, for a season to be looked for
SHRUNK = 4.0  # episodes that "no season" is worth
CHANCE = 0.001  # that a step is open in which nothing was ever asked for, if it is said to be closed
LEAST_FACTOR = 1e-6  # of a step that is, before factors are scaled
CLOSED_BELOW = 1e-4  # a factor that only a closed step has
LEAST_AIM, MOST_AIM = -1.0, 2.0  # standard deviations that a service is aimed below or above what is asked for
HALVINGS = 6  # of the range between them
FIRST_PART = 0.7  # of the training episodes, to which values are fitted that are tried in the others
MOST_RULES = 5  # that are played
FIT = 4  # times as long as all rules are played, about: what a fit takes


@dataclass(frozen=True)
class Trial:
    """How orders by fitted values did against rolling orders, in the last of the training episodes."""

    n_pairs: float  # of states and orders, that a table would have to hold
    n_demands: int  # to which values were fitted
    ahead: float  # how much more they got in an episode
    low: float  # the 95 % interval of that
    high: float

    @property
    def won(self) -> bool:
        """Whether they got more."""
        return self.ahead > 0


@dataclass(frozen=True, eq=False)
class OrderAdvice:
    """What to order, what was learned of demand and how the orders did in the episodes that followed."""

    shop: Inventory
    training: Episodes  # from which that was learned that was judged
    test: Episodes  # judged by
    learned: Episodes  # all, from which what goes on was learned
    season: Floats | None  # [H] factors of the steps; None if they predict no better
    season_scores: tuple[float, float]  # mean absolute error of the next step, without and with them
    demands: Floats = field(repr=False)  # of the whole series, from the first episode on
    rolling: Rolling = field(repr=False)  # has seen them
    played: dict[str, Played] = field(repr=False)  # by policy, in the test episodes
    asked: float = 0.0  # the share of the steps in which the stock is to last; 0: what earns most is ordered
    aims: tuple[float, float] = (0.0, 0.0)  # the share of the sampled steps aimed at for it: as judged, and now
    trial: Trial | None = None  # of orders by fitted values; None: none were fitted
    fitted: FittedOrders | None = field(default=None, repr=False)  # if they did better
    refitted: bool = False  # whether these were fitted again to all demands; else they are as they were tried

    @property
    def variants(self) -> tuple[str, ...]:
        """Policies that were learned from less: none are compared."""
        return ()

    @property
    def preset(self) -> Inventory:
        """The store."""
        return self.shop

    @property
    def value(self) -> float:
        """The reward of an episode, as it came in those that followed; nan if none did."""
        return float(self.rewards[LEARNED].mean()) if self.played else float("nan")

    @property
    def rounded(self) -> int:
        """No demand is rounded."""
        return 0

    @property
    def rewards(self) -> Rewards:
        """By policy: [K] of the test episodes."""
        H = self.training.values.shape[1]
        return {name: played.earned(H) for name, played in self.played.items()}

    @property
    def service(self) -> Service | None:
        """How the demand was met in the test episodes; None if there are none."""
        return self.played[LEARNED].service if self.played else None

    def comparison(self) -> list[dict[str, Any]]:
        """A row for each policy: its mean reward in an episode, and how much more the learned one gets, with 95 %."""
        return compare(self.rewards)

    @property
    def closed(self) -> tuple[str, ...]:
        """The steps of an episode in which nothing was ever asked for, nor is expected."""
        if self.season is None:
            return ()
        names = self.learned.names or [f"step {h + 1}" for h in range(len(self.season))]
        return tuple(name for name, factor in zip(names, self.season, strict=True) if factor < CLOSED_BELOW)

    @property
    def order_step(self) -> int:
        """The number of the first step after the series in which can be ordered: 1, unless no review is due."""
        return 1 + self.rolling.wait

    def order(self, stock: Any, under_way: Sequence[tuple[float, int]] = (), step: int = 1) -> float:
        """What to order in a step after the series, by fitted values or by :meth:`ucbf.rolling.Rolling.order`.

        stock, under_way: in that step; of the demand of the steps before it nothing is known
        """
        if self.fitted is not None:
            return sized(terms_of(self.shop), self.fitted.order(float(stock), under_way))
        then = copy(self.rolling)
        for _ in range(whole("step", step, 1) - 1):
            then.skip()
        return then.order(stock, under_way).quantity

    @property
    def calendar(self) -> Calendar:
        """The steps after the series."""
        return calendar_of(self.learned)

    def forecast(self, steps: int) -> list[dict[str, Any]]:
        """The demand of the steps to come: the mean, and the 10 % and 90 % quantiles; with dates, if the series has."""
        paths, calendar = self.rolling.forecast(steps), self.calendar
        low, high = np.quantile(paths, [0.1, 0.9], axis=0)
        return [
            {
                "step": k + 1,
                **({"date": calendar.when(k + 1)} if calendar.is_dated else {}),
                "mean": float(paths[:, k].mean()),
                "low": float(low[k]),
                "high": float(high[k]),
            }
            for k in range(steps)
        ]


def learn_orders(
    shop: Inventory,
    episodes: Episodes,
    train: float = 0.7,
    supplier: Supplier | None = None,
    service: float = 0.0,
    progress: Progress | None = None,
) -> OrderAdvice:
    """Order for a store whose orders take time, whose stock ages or that is reviewed now and then, demand as it comes.

    Nothing is fitted to the test episodes: at every step the forecast is made from the demands before it, and so is the
    order (:class:`ucbf.rolling.Rolling`). The rules that it is compared with are told the same. What is ordered after
    the series has learned the season again from all episodes.

    Where no table would hold the states and steps are alike, values are fitted too (``ucbf.fitted_orders``), to the
    first part of the training episodes. They take the place of rolling orders if they get more in the last part; after
    the series they are fitted to all demands, if sizes that suit these allow it (``OrderAdvice.refitted``).

    Parameters
    ----------
    shop
        Costs, lead time, packs, reviews, shelf life. Its capacity and max_demand play no part.
    episodes
        The demand, cut into episodes (:func:`ucbf.data.episodes`): weeks, say, which give the season its steps.
    train
        The share of the episodes from which the season and the base-stock level are learned that are judged. The others
        judge.
    supplier
        What is believed of lead times; None: that the promise is kept while it is judged, and after the series what
        :class:`ucbf.suppliers.Supplier` believes of it.
    service
        The share of the steps in which the stock is to last. What is aimed at over the sampled futures is chosen so
        that it did in the episodes that were learned from. 0: order what earns most.
    progress
        Called with (steps of work done, steps of work).
    """
    if not isinstance(shop, Inventory):
        raise TypeError(f"shop is {shop!r:.60}; give a ucbf.systems.Inventory")
    require_known(episodes)
    real("train", train, 0, 1, open_low=True)
    real("service", service, 0, 1)
    if shop.lead_time > MOST_LEAD_TIME:
        raise ValueError(
            f"lead_time is {shop.lead_time}; rolling orders look at most {MOST_LEAD_TIME} steps ahead: cut the series "
            "into longer steps, weeks in place of days"
        )
    training, after = episodes.split(train)
    H = episodes.values.shape[1]
    test = after.part(0, min(len(after), max(MOST_PLAYED // H, 1)))
    season, _ = _season(_usual(training))
    before, demands = training.values.ravel(), test.values.ravel()
    aim = aimed_at(shop, season, before, H, service) if service and len(demands) else 0.0
    # The shelf fills in the last episodes before those that judge.
    lead = H * min(-(-(shop.lead_time + shop.review) // H), len(training) - 1)
    first, played_on = len(before) - lead, np.append(before[len(before) - lead :], demands)
    rolling = Rolling(shop, season=season, supplier=supplier, service=aim)
    for demand in before[:first]:
        rolling.observe(demand)
    factors = np.ones(H) if season is None else season
    may_fit = season is None and not service and store_to_fit(shop, before) is not None
    plays = len(played_on) * MOST_RULES
    work = _Work(progress, plays * (1 + 2 * FIT * may_fit))
    trial, orders = _fitted(shop, before, H, work.part(FIT * plays)) if may_fit else (None, None)
    rules: dict[str, Rule] = {
        **({LEARNED: Adapting(rolling)} if orders is None else {LEARNED: orders, ROLLING: Adapting(rolling)}),
        "base-stock": UpToCover(shop, before[:first], factors, best_cover(shop, before, factors)),
        "certainty-equivalent": UpToCover(shop, before[:first], factors, 1.0),
        "order what was sold": WhatWasSold(before[:first]),
    }
    played = {}
    if len(demands):
        played = {name: play(shop, played_on, first, rule, work.one_more).after(lead) for name, rule in rules.items()}
    rest = np.concatenate([after.values[len(test) :].ravel(), episodes.rest])
    whole_series = np.concatenate([before, demands, rest])
    season, scores = _season(_usual(episodes))
    aims = aim, aimed_at(shop, season, whole_series, H, service) if service else 0.0
    supplier = Supplier(shop.lead_time) if supplier is None else supplier
    rolling = Rolling(shop, season=season, supplier=supplier, service=aims[1])
    for demand in whole_series:
        rolling.observe(demand)
    fitted = None if orders is None else orders.orders
    store = None if fitted is None else store_to_fit(shop, whole_series)
    if store is not None:
        fitted = FittedOrders.fitted(store, whole_series, progress=work.part(FIT * plays))
    work.finish()
    return OrderAdvice(
        shop, training, test, episodes, season, scores, whole_series, rolling, played, service, aims, trial, fitted,
        store is not None,
    )  # fmt: skip


def aimed_at(shop: Inventory, season: Floats | None, past: Floats, horizon: int, service: float) -> float:
    """The share of the sampled steps to aim at, so that in the past the stock lasted in so many steps as asked for.

    The least that did, between bounds; orders come when promised. The first four episodes are only learned from.
    """
    normal, skipped = NormalDist(), shop.lead_time + shop.review
    begin = max(min(4 * horizon, len(past) // 2), len(past) - MOST_PLAYED)
    if len(past) - begin <= skipped:
        return service

    def aim(moved: float) -> float:
        return normal.cdf(normal.inv_cdf(min(max(service, 1e-6), 1 - 1e-6)) + moved)

    def lasted(moved: float) -> float:
        rolling = Rolling(shop, season=season, service=aim(moved))
        for demand in past[:begin]:
            rolling.observe(demand)
        return play(shop, past[begin:], begin, Adapting(rolling)).after(skipped).service.without_stock_out

    low, high = LEAST_AIM, MOST_AIM
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if lasted(middle) >= service else (middle, high)
    return aim(high)


class _Work:
    """Tells how much of the work is done."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def _told(self, done: int) -> None:
        self.done = min(done, self.total)
        if self.progress is not None:
            self.progress(self.done, self.total)

    def one_more(self) -> None:
        """A step of it."""
        self._told(self.done + 1)

    def part(self, steps: int) -> Progress:
        """What tells how much is done of a part of it."""
        begin = self.done
        return lambda done, total: self._told(begin + steps * done // total)

    def finish(self) -> None:
        """All of it."""
        self._told(self.total)


def _fitted(
    shop: Inventory, past: Floats, H: int, progress: Progress | None = None
) -> tuple[Trial | None, ByValues | None]:
    """How fitted values did in the last of the training episodes, and orders by them, if they won."""
    n = H * int(FIRST_PART * len(past) / H)
    store = store_to_fit(shop, past[:n])
    if store is None or len(past) - n < 2 * H:
        return None, None
    orders = FittedOrders.fitted(store, past[:n], progress=progress)
    rolling = Rolling(shop)
    for demand in past[:n]:
        rolling.observe(demand)
    last = past[n:][: min(len(past) - n, MOST_PLAYED) // H * H]
    rules: dict[str, Rule] = {LEARNED: ByValues(orders), ROLLING: Adapting(rolling)}
    each = {name: play(shop, last, n, rule).earned(H) for name, rule in rules.items()}
    row = next(row for row in compare(each) if row["policy"] == ROLLING)
    trial = Trial(pairs(store), n, row["ahead"], row["low"], row["high"])
    return trial, ByValues(orders) if trial.won else None


# -- the season -----------------------------------------------------------------------------------------


def _usual(episodes: Episodes) -> Floats:
    """[K, H] the amounts, nan where one is far from all others."""
    return np.where(episodes.outliers, np.nan, episodes.values)


def _season(past: Floats) -> tuple[Floats | None, tuple[float, float]]:
    """[H] factors of the steps, if the next step would have been predicted better with them; and both errors.

    past: [K, H], nan where an amount is far from all others. Factors of every episode are from those before it.
    """
    K, H = past.shape
    if H == 1 or K < 2 * FEWEST_OF_A_PHASE:
        return None, (np.nan, np.nan)
    plain, seasonal = [], []
    for k in range(FEWEST_OF_A_PHASE, K):
        level = np.nanmean(past[max(k - 4, 0) : k])
        factors = _factors(past[:k])
        plain.append(np.abs(past[k] - level))
        seasonal.append(np.abs(past[k] - level * factors))
    errors = float(np.nanmean(plain)), float(np.nanmean(seasonal))
    return (_factors(past) if errors[1] < 0.99 * errors[0] else None), errors


def _factors(past: Floats) -> Floats:
    """[H] the mean of every step, as a multiple of the mean of all, drawn towards 1 where episodes are few.

    A step in which nothing was ever asked for is closed, if that would hardly be so by chance, were it like the others.
    """
    mean = np.nanmean(past)
    if not mean > 0:
        return np.ones(past.shape[1])
    seen, sold = np.isfinite(past).sum(axis=0), (past > 0).sum(axis=0)
    raw = np.where(seen > 0, np.nansum(past, axis=0) / np.maximum(seen, 1) / mean, 1.0)
    without = 1 - (sold.sum() - sold) / np.maximum(seen.sum() - seen, 1)  # of the other steps: the share
    closed = (sold == 0) & (seen > 0) & (without**seen < CHANCE)
    factors: Floats = np.where(closed, LEAST_FACTOR, np.maximum((seen * raw + SHRUNK) / (seen + SHRUNK), 0.02))
    scaled: Floats = factors / factors.mean()
    return scaled
