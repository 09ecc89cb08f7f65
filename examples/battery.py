"""A storage beside a grid: real demand and real day-ahead prices, hour by hour.

Every hour so much is bought at the price of that hour, which is known for the day; the storage takes up what demand
leaves, and what neither covers costs 200 EUR/MWh. Demand is what is not known: W is what it differs by from the mean of
its hour, weekdays and weekends apart. Run it with ``python examples/battery.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import ucbf
from ucbf import advice, data, figures, systems

DATA = Path(__file__).parent / "data"


def main(picture: Path = Path("results") / "battery.png") -> ucbf.Advice:
    """Learn, print the page, draw the picture."""
    days = data.episodes(data.read_series(DATA / "power.csv", "demand_gwh"), horizon=24)
    prices = data.episodes(data.read_series(DATA / "power.csv", "price_eur_per_mwh"), horizon=24)
    storage = systems.Battery(capacity=20, max_buy=45, min_demand=15, max_demand=45, shortage_price=200)
    found = ucbf.learn(storage, days, changes=[{"prices": tuple(day)} for day in prices.values.tolist()])
    print(advice.summary(found))
    picture.parent.mkdir(parents=True, exist_ok=True)
    figures.advice_figure(found).savefig(picture, dpi=160)
    print(f"picture: {picture}")
    return found


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
