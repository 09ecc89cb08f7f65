"""``ucbf learn inventory`` where orders take time or stock ages: orders that are decided anew at every step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ucbf.advice.model_file import calendar_of
from ucbf.advice.order_sections import order_sections
from ucbf.advice.ordering import OrderAdvice, learn_orders
from ucbf.advice.page import Pictures, html, markdown
from ucbf.cli.progress import progress_bar
from ucbf.data import Episodes
from ucbf.files import write_whole
from ucbf.following.stores import StoreFile, write_store
from ucbf.reports import comma_separated
from ucbf.systems.inventory import Inventory

STEPS_SHOWN = 14  # of the forecast


def counted_in_ones(shop: Inventory, episodes: Episodes, chosen: set[str]) -> Inventory:
    """The store with 1 for its unit, where that was not given and all demands are whole: no table has to be small."""
    whole = np.array_equal(episodes.values, np.rint(episodes.values))
    return shop.replace(unit=1.0) if whole and "unit" not in chosen and shop.unit > 1 else shop


def learn_and_write(
    shop: Inventory, episodes: Episodes, train: float, chosen: set[str], folder: Path, time_zone: str | None
) -> None:
    """Learn, judge, write all files into the folder, the pages last, and print the page."""
    with progress_bar("steps") as progress:
        found = learn_orders(shop, episodes, train, progress=progress)
    folder.mkdir(parents=True, exist_ok=True)
    tables = {"orders.csv": _orders(found), "forecast.csv": found.forecast(STEPS_SHOWN)}
    if found.played:
        tables["comparison.csv"] = found.comparison()
    for name, rows in tables.items():
        write_whole(folder / name, comma_separated(rows).encode())
    write_store(folder, store_of(found, time_zone))
    told = order_sections(found, chosen)
    pages = {"summary.md": markdown(told), "page.html": html(told, _pictures(found))}
    for name, text in pages.items():
        write_whole(folder / name, text.encode())
    print(pages["summary.md"])
    print(f"written to {folder}: {', '.join([*pages, *tables, 'store.json'])}")


def _orders(found: OrderAdvice) -> list[dict[str, float]]:
    """What to order in the step after the series, by what is in stock, if nothing is under way."""
    shop = found.shop
    mean = sum(row["mean"] for row in found.forecast(shop.lead_time + shop.review))
    step = max(shop.unit, float(shop.to_units(mean / 20)) * shop.unit)
    stocks = [i * step for i in range(41) if i * step <= 2 * mean + step]
    return [{"stock": stock, "order": found.order(stock)} for stock in stocks]


def store_of(found: OrderAdvice, time_zone: str | None) -> StoreFile:
    """What is needed to go on: the store, its season, and the demands so far."""
    series = found.training.series
    return StoreFile(
        parameters=found.shop.parameters(),
        season=None if found.season is None else tuple(found.season.tolist()),
        calendar=calendar_of(found.training, time_zone),
        demands=tuple(series.values[found.training.begin :].tolist()),
        source=series.source,
    )


def _pictures(found: OrderAdvice) -> Pictures:
    from ucbf.figures import order_pictures

    return order_pictures(found)
