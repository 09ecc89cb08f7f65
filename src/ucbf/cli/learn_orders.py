"""The files of ``ucbf learn inventory`` where orders take time or stock ages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ucbf.advice import OrderAdvice, Pictures, Sections, html, markdown
from ucbf.cli.results import remove_results, results_in
from ucbf.files import write_whole
from ucbf.following.calendar import calendar_of
from ucbf.following.model import stored_as
from ucbf.following.stores import FITTED, StoreFile, write_store
from ucbf.following.stores import NAME as STORE
from ucbf.reports import comma_separated

STEPS_SHOWN = 14  # of the forecast


def write_order_files(
    folder: Path, found: OrderAdvice, told: Sections, time_zone: str | None, pictures: bool
) -> list[str]:
    """Write all files into the folder, summary.md last; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    old = results_in(folder)
    tables = {"orders.csv": _orders(found), "forecast.csv": found.forecast(STEPS_SHOWN)}
    if found.played:
        tables["comparison.csv"] = found.comparison()
    for name, rows in tables.items():
        write_whole(folder / name, comma_separated(rows).encode())
    store = store_of(found, time_zone)
    if found.fitted is not None:
        found.fitted.save(folder / FITTED)
        store = replace(store, fitted=stored_as(folder, FITTED))
    write_store(folder, store)
    names = [*tables, STORE, *([FITTED] if found.fitted is not None else [])]
    remove_results(folder, old.difference(names))
    pages = {"page.html": html(told, _pictures(found) if pictures else None), "summary.md": markdown(told)}
    for name, text in pages.items():
        write_whole(folder / name, text.encode())
    return [*reversed(pages), *names]


def _orders(found: OrderAdvice) -> list[dict[str, float]]:
    """What to order in the first step in which orders can be placed, by what is in stock, if nothing is under way."""
    shop = found.shop
    mean = sum(row["mean"] for row in found.forecast(shop.lead_time + shop.review))
    step = max(shop.unit, float(shop.to_units(mean / 20)) * shop.unit)
    stocks = [i * step for i in range(41) if i * step <= 2 * mean + step]
    return [{"stock": stock, "order": found.order(stock, step=found.order_step)} for stock in stocks]


def store_of(found: OrderAdvice, time_zone: str | None) -> StoreFile:
    """What is needed to go on: the store, its season, and the demands so far; without what is in other files."""
    series = found.training.series
    return StoreFile(
        parameters=found.shop.parameters(),
        season=None if found.season is None else tuple(found.season.tolist()),
        calendar=calendar_of(found.training, time_zone),
        demands=tuple(found.demands.tolist()),
        source=series.source,
        service=found.aims[1],
    )


def _pictures(found: OrderAdvice) -> Pictures:
    from ucbf.figures import order_pictures

    return order_pictures(found)
