"""What to order for every item on a day, from the plans in a folder and a file of what is in stock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ucbf.errors import UserError
from ucbf.fleet.files import MANIFEST, parts_in
from ucbf.fleet.learning import MONDAY
from ucbf.fleet.reading import csv_reader, is_parquet, numbers_of

EPOCH = date(1970, 1, 1)
STOCK = "stock"  # the column of the file of stocks


def orders_on(folder: Path, stocks: Path, day: date | None = None) -> Iterator[pa.Table]:
    """A row for each item of a folder that ``ucbf.learn_fleet`` wrote: item, date, stock, order and note; part by part.

    stocks: a Parquet or CSV file with a row for each item: its name, in the column that the demand had it in, and its
    stock; day: the day after the last one of the item, if None
    """
    told = _manifest(folder)
    there = _stocks(stocks, told["columns"]["item"])
    for path in parts_in(folder):
        yield _orders(pq.read_table(path), told["parameters"], there, day)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        told: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if told["preset"] != "Inventory" or told["parameters"]["lead_time"] or told["parameters"]["shelf_life"]:
            raise UserError(f"{folder} holds plans whose states are more than a stock; read them with pyarrow")
        return told
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{folder / MANIFEST} is missing or damaged; learn again into this folder") from None


def _stocks(path: Path, item: str) -> dict[str, float]:
    """What is in stock, by item."""
    table = pq.read_table(path) if is_parquet(path) else csv_reader(path, item).read_all()
    for name in (item, STOCK):
        if name not in table.column_names:
            raise UserError(f"{path} has no column {name!r}; it has {', '.join(table.column_names)}")
    names = table[item].cast(pa.string()).to_pylist()
    found = dict(zip(names, numbers_of(path, table, STOCK).tolist(), strict=True))
    if len(found) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise UserError(f"{path}: item {twice!r} has two rows; keep one")
    return found


def _orders(plans: Any, given: dict[str, Any], there: dict[str, float], day: date | None) -> pa.Table:
    """The orders of the items of one part."""
    names = plans["item"].to_pylist()
    stock = np.array([there.get(name, np.nan) for name in names])
    last = plans["last"].cast(pa.int32()).to_numpy()
    on = last + 1 if day is None else np.full(len(names), (day - EPOCH).days, np.int32)
    planned = plans["action"].is_valid().to_numpy()
    states, numbers = (_lengths(plans[name]) for name in ("value", "action"))
    unit, backlog = (_of_each(plans, given, name) for name in ("unit", "backlog"))
    s = np.rint(np.where(np.isfinite(stock), stock, 0) / unit) + np.rint(backlog / unit)  # what is owed counts below 0
    known, inside = np.isfinite(stock), (s >= 0) & (s < states)
    usable = planned & known & inside
    h = (on - MONDAY) % np.maximum(numbers // np.maximum(states, 1), 1)
    first = np.concatenate([[0], np.cumsum(numbers)])[:-1]
    flat = pa.concat_arrays([chunk.flatten() for chunk in plans["action"].chunks]).to_numpy(zero_copy_only=False)
    at = np.where(usable, first + h * states + s, 0).astype(np.int64)
    order = np.where(usable, flat[at] if len(flat) else 0.0, np.nan)
    beyond = "its stock is outside of what it was planned for"
    notes = [
        note or "" if fine or not there_is_a_plan else "its stock is not in the file" if not counted else beyond
        for note, fine, there_is_a_plan, counted in zip(plans["note"].to_pylist(), usable, planned, known, strict=True)
    ]
    return pa.table(
        {
            "item": plans["item"],
            "date": pa.array(on, pa.int32()).cast(pa.date32()),
            "stock": pa.array(stock, from_pandas=True),
            "order": pa.array(order, from_pandas=True),
            "note": notes,
        }
    )


def _lengths(lists: Any) -> Any:
    """[n] how many numbers a list has; 0 where there is none."""
    return pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)


def _of_each(plans: Any, given: dict[str, Any], name: str) -> Any:
    """[n] a parameter of each item: its own, or that of all."""
    if name not in plans.column_names:
        return np.full(len(plans), float(given[name]))
    return pc.fill_null(plans[name], float(given[name])).to_numpy()
