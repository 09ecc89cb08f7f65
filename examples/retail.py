"""Ordering CDs: real retail demand, day by day, from the shelf of an online shop of 1997.

The shop buys at 8, sells at 12, pays 150 for every delivery and 0.05 a day for every CD on the shelf; who finds it
empty buys elsewhere. It learns from the first 70 % of all weeks and is judged by the rest. In the first three months
the customers were still being won; then sales fell by two thirds. So what is recent counts more, by a half-life that
the first weeks themselves choose, and the page says so. Run it with ``python examples/retail.py``; from a shell,
``ucbf learn inventory --demand FILE --price 12 --unit-cost 8 --order-cost 150 --holding 0.05`` does it for any file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import ucbf
from ucbf import advice, data, figures, systems

DATA = Path(__file__).parent / "data"


def main(picture: Path = Path("results") / "retail.png") -> ucbf.Advice:
    """Learn, print the page, draw the picture."""
    weeks = data.episodes(data.read_series(DATA / "cdnow.csv", least=0), horizon=7)
    shop = systems.Inventory(
        capacity=2400, max_demand=1800, unit=20, price=12, unit_cost=8, order_cost=150, holding=0.05
    )
    found = ucbf.learn(shop, weeks)
    print(advice.summary(found))
    picture.parent.mkdir(parents=True, exist_ok=True)
    figures.advice_figure(found).savefig(picture, dpi=160)
    print(f"picture: {picture}")
    return found


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
