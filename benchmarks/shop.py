"""A simulated shop: what it costs to ignore each thing that shops have.

    python benchmarks/shop.py

In every row the world is the same, and the demand; one policy is told of the feature and one is not. Means of ten
simulated years of days, with the standard error of the difference.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.ordering import Played, play
from ucbf.rolling import Rolling
from ucbf.systems import Inventory

Floats = NDArray[np.float64]
YEARS, DAYS, BEFORE = 10, 364, 84
WEEK = np.array([0.8, 0.8, 0.9, 1.0, 1.3, 1.6, 0.6])


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


def years(level: Callable[[int], float]) -> list[Floats]:
    """Days of demand, Poisson around a level times the week."""
    days = np.arange(BEFORE + DAYS)
    rngs = [np.random.default_rng([7, year]) for year in range(YEARS)]
    return [rng.poisson([level(int(d)) * WEEK[d % 7] for d in days]).astype(float) for rng in rngs]


def run(world: Inventory, told: Inventory, season: Floats | None, demand: Floats, discounts: bool = True) -> Played:
    """A year of orders by a shop that believes ``told``, in ``world``."""
    rolling = Rolling(told, season=season, paths=128)
    if not discounts:
        from ucbf.laws.levels import Levels, LevelSettings

        rolling.levels = Levels(LevelSettings(discounts=(1.0,)))
    for d in demand[:BEFORE]:
        rolling.observe(d)
    return play(world, demand[BEFORE:], BEFORE, Told(rolling))


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


if __name__ == "__main__":
    main()
