"""What to order for every item on a day, from the plans in a folder and a file of what is in stock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ucbf.errors import UserError
from ucbf.fleet.files import AGAIN, finished_run
from ucbf.fleet.notes import MONDAY
from ucbf.fleet.reading import ItemTable

Floats = NDArray[np.float64]
EPOCH = date(1970, 1, 1)
STOCK = "stock"  # the column of the file of stocks
MORE = ("lead_time", "shelf_life")  # parameters with which a state is more than a stock
NOT_COUNTED = "its stock is not in the file"
BEYOND = "its stock is outside of what it was planned for"
NO_PLAN = "there is no plan for it: learn again with its demand, or correct its name"


def orders_on(folder: Path, stocks: Path, day: date | None = None) -> Iterator[pa.Table]:
    """A row for each item: item, date, stock, order and note; part by part, and then stocks of items without a plan.

    folder: that ``ucbf.learn_fleet`` wrote; stocks: a Parquet or CSV file with a row for each item: its name, in the
    column that the demand had it in, and its stock; day: the day after the last one of the item, if None
    """
    told = _run(folder)
    there = _stocks(stocks, told["columns"]["item"])
    parts = [folder / name for name in told["parts"]]
    if day is not None:
        _check_day(parts, day)
    without = dict(there)
    for path in parts:
        found = _orders(_read(path), told, there, day)
        for name in found["item"].to_pylist():
            without.pop(name, None)
        yield found
    if without:
        n, days = len(without), pa.array([day] * len(without), pa.date32())
        stock = np.array(list(without.values()))
        yield _table(pa.array(list(without)), days, stock, np.full(n, np.nan), [NO_PLAN] * n)


def _run(folder: Path) -> dict[str, Any]:
    told = finished_run(folder)
    try:
        preset, parameters, _ = told["preset"], told["parameters"], told["columns"]["item"]
        more = preset != "Inventory" or any(parameters[name] for name in MORE)
    except (KeyError, TypeError):
        raise UserError(f"what {folder} says of its plans is damaged: {AGAIN}") from None
    if more:
        raise UserError(f"{folder} holds plans whose states are more than a stock; read them with pyarrow")
    return told


def _read(path: Path, columns: list[str] | None = None) -> Any:
    try:
        return pq.read_table(path, columns=columns)
    except (OSError, pa.ArrowException):
        raise UserError(f"{path} is damaged: {AGAIN}") from None


def _check_day(parts: list[Path], day: date) -> None:
    """A UserError for a day that is past for every item."""
    read = (_read(path, ["last", "expected"]) for path in parts)
    last = [each for table in read for each in table["last"].filter(table["expected"].is_valid()).unique().to_pylist()]
    if last and day <= min(last):
        raise UserError(
            f"date is {day}, and all items were learned from days up to {min(last)} or later; give one after"
        )


def _stocks(path: Path, item: str) -> dict[str, float]:
    """What is in stock, by item."""
    table = ItemTable.read(path, item)
    if STOCK not in table.columns:
        raise UserError(f"{path} has no column {STOCK!r}; it has {', '.join([item, *table.columns])}")
    return dict(zip(table.names, table.numbers(STOCK).tolist(), strict=True))


def _orders(plans: Any, told: dict[str, Any], there: dict[str, float], day: date | None) -> pa.Table:
    """The orders of the items of one part, by what was told of the run."""
    names, given = plans["item"].to_pylist(), told["parameters"]
    stock = np.array([there.get(name, np.nan) for name in names])
    last = plans["last"].cast(pa.int32()).to_numpy()
    on = last + 1 if day is None else np.full(len(names), (day - EPOCH).days, np.int32)
    planned = plans["action"].is_valid().to_numpy()
    states, numbers = (_lengths(plans[name]) for name in ("value", "action"))
    unit, backlog = (_of_each(plans, given, name) for name in ("unit", "backlog"))
    s = np.rint(np.where(np.isfinite(stock), stock, 0) / unit) + np.rint(backlog / unit)  # what is owed counts below 0
    H, forecast = numbers // np.maximum(states, 1), told["columns"].get("forecast")
    wrong = {
        NOT_COUNTED: np.isnan(stock),
        "its states are more than a stock; read its plan with pyarrow": _more(plans),
        BEYOND: (s < 0) | (s >= states),
        "the day is one of those that it was learned from; give a later one": on <= last,
        "the day is after those of the forecast; learn again with one of it": (on > last + H) & (forecast is not None),
    }
    usable = planned & ~np.logical_or.reduce(list(wrong.values()))
    h = (on - MONDAY) % np.maximum(H, 1)
    first = np.concatenate([[0], np.cumsum(numbers)])[:-1]
    flat = pa.concat_arrays([chunk.flatten() for chunk in plans["action"].chunks]).to_numpy(zero_copy_only=False)
    at = np.where(usable, first + h * states + s, 0).astype(np.int64)
    order = np.where(usable, flat[at] if len(flat) else 0.0, np.nan)
    why = np.select(list(wrong.values()), list(wrong), "")
    notes = [
        note or "" if fine or not there_is_a_plan else str(reason)
        for note, fine, there_is_a_plan, reason in zip(plans["note"].to_pylist(), usable, planned, why, strict=True)
    ]
    return _table(plans["item"], pa.array(on, pa.int32()).cast(pa.date32()), stock, order, notes)


def _table(items: Any, days: Any, stock: Floats, order: Floats, notes: list[str]) -> pa.Table:
    """The answer; what is not a number is left empty."""
    stock_or_none, order_or_none = (pa.array(values, from_pandas=True) for values in (stock, order))
    return pa.table({"item": items, "date": days, "stock": stock_or_none, "order": order_or_none, "note": notes})


def _more(plans: Any) -> Any:
    """[n] whether a parameter of an item makes its states more than a stock."""
    found = np.zeros(len(plans), np.bool_)
    for name in MORE:
        if name in plans.column_names:
            found |= pc.fill_null(plans[name], 0.0).to_numpy() > 0
    return found


def _lengths(lists: Any) -> Any:
    """[n] how many numbers a list has; 0 where there is none."""
    return pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)


def _of_each(plans: Any, given: dict[str, Any], name: str) -> Any:
    """[n] a parameter of each item: its own, or that of all."""
    if name not in plans.column_names:
        return np.full(len(plans), float(given[name]))
    return pc.fill_null(plans[name], float(given[name])).to_numpy()
