"""A simulated shop: what it costs to ignore each thing that shops have.

    python benchmarks/shop.py

In every row the world is the same, and the demand; one policy is told of the feature and one is not. Means of ten
simulated years of days, with the standard error of the difference. A second table compares rolling orders that know
the law of demand with the exact optimum, in stores small enough for it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ucbf
from ucbf.advice import LEARNED
from ucbf.advice.ways_to_order import Played, play
from ucbf.cli.learning import Task
from ucbf.cli.reading import Reading
from ucbf.kernels.shelves import sized, step_value
from ucbf.rolling import Rolling, terms_of
from ucbf.suppliers import Supplier
from ucbf.systems import Inventory

Floats = NDArray[np.float64]
YEARS, DAYS, BEFORE = 10, 364, 84
WEEK = np.array([0.8, 0.8, 0.9, 1.0, 1.3, 1.6, 0.6])
LAGS, CHANCES = (2, 3, 5, None), (0.6, 0.2, 0.1, 0.1)  # of a supplier that promises 2; None: the order never comes
MEAN, STEPS = 5.0, 3000  # of the demand of small stores; steps that they are run for


class Told:
    """Rolling orders of a shop that is told this much, in a world that may have more."""

    def __init__(self, rolling: Rolling) -> None:
        self.rolling = rolling

    def __call__(self, t: int, shelf: Floats, under_way: dict[int, float]) -> float:
        """What to order."""
        told = self.rolling.shop
        stock = shelf if told.shelf_life else shelf.sum()
        return self.rolling.order(stock, [(q, t - u) for u, q in under_way.items() if told.lead_time]).quantity

    def seen(self, demand: float) -> None:
        """What was asked for."""
        self.rolling.observe(demand)


class Sales(Told):
    """The same where what is asked for beyond the stock is not written down; ``marked``: sold-out days are."""

    def __init__(self, rolling: Rolling, marked: bool) -> None:
        super().__init__(rolling)
        self.marked, self.there = marked, 0.0

    def __call__(self, t: int, shelf: Floats, under_way: dict[int, float]) -> float:
        """What to order."""
        come = sum(q for u, q in under_way.items() if u + self.rolling.shop.lead_time <= t)
        self.there = float(shelf.sum()) + come
        return super().__call__(t, shelf, under_way)

    def seen(self, demand: float) -> None:
        """What was sold."""
        self.rolling.observe(min(demand, self.there), sold_out=self.marked and demand > self.there)


class Known(Rolling):
    """Rolling orders that know the law of demand."""

    def forecast(self, steps: int) -> Floats:
        """[paths, steps] sampled demands."""
        rng = np.random.default_rng([self.seed, self.t, 0])
        return rng.poisson(MEAN, (self.paths, steps)).astype(float)


def years(level: Callable[[int], float]) -> list[Floats]:
    """Days of demand, Poisson around a level times the week."""
    days = np.arange(BEFORE + DAYS)
    rngs = [np.random.default_rng([7, year]) for year in range(YEARS)]
    return [rng.poisson([level(int(d)) * WEEK[d % 7] for d in days]).astype(float) for rng in rngs]


def run(world: Inventory, told: Inventory, season: Floats | None, demand: Floats, discounts: bool = True) -> Played:
    """A year of orders by a shop that believes ``told``, in ``world``."""
    rolling = Rolling(told, season=season, paths=128)
    if not discounts:
        from ucbf.laws.mixtures import LevelMixture, LevelSettings

        rolling.levels = LevelMixture(LevelSettings(discounts=(1.0,)))
    for d in demand[:BEFORE]:
        rolling.observe(d)
    return play(world, demand[BEFORE:], BEFORE, Told(rolling))


def run_on_sales(shop: Inventory, demand: Floats, marked: bool) -> Played:
    """A year of orders by a shop that sees what it sold."""
    rolling = Rolling(shop, season=WEEK, paths=128)
    for d in demand[:BEFORE]:
        rolling.observe(d)
    return play(shop, demand[BEFORE:], BEFORE, Sales(rolling, marked))


def run_late(shop: Inventory, demand: Floats, supplier: Supplier | None, year: int) -> float:
    """The reward of a week where orders come late or never; supplier: what the shop believes at first."""
    rolling = Rolling(shop, season=WEEK, supplier=supplier, paths=128)
    for d in demand[:BEFORE]:
        rolling.observe(d)
    drawn = np.random.default_rng([8, year]).choice(len(LAGS), DAYS, p=CHANCES)
    terms, shelf, under_way, total = terms_of(shop), np.zeros(1), dict[int, float](), 0.0
    for t, asked in enumerate(demand[BEFORE:]):
        order = sized(terms, rolling.order(shelf.sum(), [(q, t - u) for u, q in under_way.items()]).quantity)
        if order > 0:
            under_way[t] = order
        came = [u for u in under_way if LAGS[drawn[u]] == t - u]
        shelf[-1] += sum(under_way.pop(u) for u in came)
        total += step_value(terms, shelf, order, float(asked))
        rolling.observe(float(asked), [t - u for u in came])
    return total / (DAYS / 7)


def learned(columns: dict[str, Any], without: str, **flags: Any) -> list[float]:
    """The mean reward of a week after ``ucbf learn``: with what is known beforehand, and without."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "days.csv"
        dates = np.datetime64("2023-01-02") + np.arange(BEFORE + DAYS)
        table = [["date", *columns], *zip(dates, *columns.values(), strict=True)]
        path.write_text("\n".join(",".join(map(str, row)) for row in table))
        task = Task(Inventory, Reading(column="demand", **flags), {"price": 9, "unit_cost": 4, "holding": 0.3}, 0)
        found = task.learn_from(path, path if "forecast" in columns else None).found
    return [float(found.rewards[name].mean()) for name in (LEARNED, without)]


def known_beforehand() -> None:
    """Promotions, which double the demand of one day in seven; a forecast that knows the level of each week."""
    promoted, foreseen = list[list[float]](), list[list[float]]()
    for year in range(YEARS):
        rng, n = np.random.default_rng([9, year]), BEFORE + DAYS
        mean, marks = 20 * np.tile(WEEK, n // 7), (rng.random(n) < 1 / 7).astype(int)
        demand = rng.poisson(mean * (1 + marks))
        promoted.append(learned({"demand": demand, "promo": marks}, "without promotions", promotions="promo"))
        level = np.repeat(rng.uniform(0.6, 1.4, n // 7), 7) * mean
        foreseen.append(
            learned(
                {"demand": rng.poisson(level), "forecast": np.round(level, 1)},
                "without the forecast",
                forecast_column="forecast",
            )
        )
    compare("promotions, demand doubled", promoted)
    compare("a forecast of one's own", foreseen)


def against_brute_force() -> None:
    """Rolling orders that know the law, beside the exact optimum of the average cost of a step."""
    d = np.arange(26)
    pmf = np.exp(d * np.log(MEAN) - MEAN - np.cumsum(np.log(np.maximum(d, 1))))
    pmf[-1] += 1 - pmf.sum()
    small = Inventory(
        price=0, unit_cost=0, holding=1, penalty=4, capacity=35, max_order=18, max_demand=25, horizon=None, lead_time=1
    )
    cases = {
        "lead time 1": small,
        "lead time 2": small.replace(lead_time=2, max_order=12),
        "packs of 6": small.replace(pack=6),
        "minimum order 9": small.replace(min_order=9),
        "order cost 10": small.replace(order_cost=10),
        "review every 2": small.replace(review=2, period=2),
        "shelf life 2, waste 2": small.replace(shelf_life=2, waste=2, max_order=12),
    }
    demand = np.random.default_rng(10).choice(d, (STEPS,), p=pmf).astype(float)
    print(f"\n{'the law known':28} {'optimum':>10} {'rolling':>10}   (cost of a step)")
    for name, shop in cases.items():
        best = -float(ucbf.optimal(shop.world(ucbf.Disturbance(pmf))).gain)
        cost = -play(shop, demand, 0, Told(Known(shop, paths=128))).reward[100:]
        parts = cost[: len(cost) // 20 * 20].reshape(20, -1).mean(axis=1)
        error = parts.std(ddof=1) / np.sqrt(20)
        print(f"{name:28} {best:10.3f} {cost.mean():10.3f} ± {error:.3f} ({cost.mean() / best - 1:+.1%})", flush=True)


def a_week(played: Played) -> float:
    """The reward of a week."""
    return float(played.reward.sum() / (DAYS / 7))


def compare(name: str, worlds: list[list[float]]) -> None:
    """A line: told, not told, what ignoring it costs."""
    table = np.array(worlds)
    lost = table[:, 0] - table[:, 1]
    share = lost.mean() / abs(table[:, 0].mean())
    print(
        f"{name:28} {table[:, 0].mean():10.1f} {table[:, 1].mean():10.1f}   "
        f"{lost.mean():8.1f} ± {lost.std(ddof=1) / np.sqrt(len(lost)):.1f} a week ({share:.1%})",
        flush=True,
    )


def main() -> None:
    """Every feature once."""
    steady, falling = years(lambda d: 20.0), years(lambda d: 40.0 if d < BEFORE + 100 else 15.0)
    plain = Inventory(price=9, unit_cost=4, holding=0.3, max_demand=200, capacity=400)
    cases = {
        "lead time 3": (plain.replace(lead_time=3), plain.replace(lead_time=0)),
        "packs of 24": (plain.replace(lead_time=1, pack=24), plain.replace(lead_time=1)),
        "minimum order 60": (plain.replace(lead_time=1, min_order=60), plain.replace(lead_time=1)),
        "review every 7 days": (plain.replace(lead_time=1, review=7), plain.replace(lead_time=1)),
        "order cost 60": (plain.replace(lead_time=1, order_cost=60), plain.replace(lead_time=1)),
        "shelf life 2, waste 3": (
            plain.replace(lead_time=1, shelf_life=2, waste=3),
            plain.replace(lead_time=1),
        ),
    }
    print(f"{'feature':28} {'told':>10} {'not told':>10}   ignoring it costs")
    for name, (world, told) in cases.items():
        compare(name, [
            [a_week(run(world, shop, WEEK, d)) for shop in (world, told)] for d in steady
        ])  # fmt: skip
    shop = plain.replace(lead_time=2)
    compare("days of the week", [
        [a_week(run(shop, shop, season, d)) for season in (WEEK, None)] for d in steady
    ])  # fmt: skip
    compare("a demand that falls", [
        [a_week(run(shop, shop, WEEK, d, forgets)) for forgets in (True, False)] for d in falling
    ])  # fmt: skip
    compare("sold-out days", [[a_week(run_on_sales(shop, d, marked)) for marked in (True, False)] for d in steady])
    compare("orders late or lost", [
        [run_late(shop, d, supplier, year) for supplier in (Supplier(2), None)] for year, d in enumerate(steady)
    ])  # fmt: skip
    known_beforehand()
    against_brute_force()


if __name__ == "__main__":
    main()
