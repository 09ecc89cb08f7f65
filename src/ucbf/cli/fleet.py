"""``ucbf learn inventory --item COLUMN --items FILE``: a plan for each item of a long file, each with its own costs."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from ucbf import advice
from ucbf.advice.items_page import COLUMNS, PAGE, SUMMARY, fleet_page, items_html, items_markdown
from ucbf.cli.costs import inventory_costs
from ucbf.cli.flags import Workers
from ucbf.cli.interrupts import INTERRUPTED
from ucbf.cli.items import folder_names, learn_items
from ucbf.cli.learn_files import write_files
from ucbf.cli.learning import Task
from ucbf.cli.output import write
from ucbf.cli.progress import progress_bar
from ucbf.cli.reading import Reading
from ucbf.cli.results import WRITTEN, refuse_inputs
from ucbf.errors import UserError
from ucbf.fleet import Columns, learn_fleet
from ucbf.fleet.files import OWN_FILES, finished_parts
from ucbf.fleet.reading import Items, table_of_item
from ucbf.systems import Inventory

PAGES = "items"  # the folder of pages of items
FITTED = ("unit", "max_demand", "capacity")  # sizes that are chosen by the data of each item, where they are not given
BY_THEMSELVES = {"lead_time", "shelf_life", "max_fast"}  # parameters of stores whose states are too many for a table
UNUSED = ("forecast", "promotions", "in_stock", "available", "time_zone", "pictures")


def learn_with_costs_of_items(
    given: dict[str, Any],
    reading: Reading,
    demand: Path,
    items: Path,
    only: str | None = None,
    workers: Workers | None = None,
) -> None:
    """Learn a plan for each item; write the plans and a page over all. only: an item that gets a page of its own."""
    if reading.item is None:
        raise UserError(f"items is {items} without a column of items; name it (--item)")
    unused = [name for name in UNUSED if getattr(reading, name) not in (None, ()) and not (only and name == "pictures")]
    if unused:
        raise UserError(f"--{unused[0].replace('_', '-')} does not go with --items; leave it out, or leave out --items")
    folder = reading.out or Path("results") / "items"
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; give a folder (--out)")
    names = reading.time or Columns.time, reading.column or Columns.amount
    columns = Columns(
        reading.item,
        *names,
        forecast=reading.forecast_column,
        date_format=reading.date_format,
        gaps="zero" if reading.gaps == "zero" else "unknown",
    )
    fitted = tuple(name for name in FITTED if name not in given)
    try:
        preset = Inventory(
            **{name: size for name, size in _any_sizes(given).items() if name in fitted}
            | {name: value for name, value in given.items() if name != "horizon"}
            | {"horizon": None, "period": given.get("horizon", Inventory.horizon)}  # one week follows another
        )
        known = Items.read(items, columns.item, preset)
        if only is None and (preset.beyond_a_line or BY_THEMSELVES & known.shape.keys()):
            learn_items(reading, partial(_task_of, known, given, reading, columns), demand, folder, (items,))
        elif only is None:
            refuse_inputs((demand, items, *reading.files), folder, (*OWN_FILES, PAGE, SUMMARY))
            _learn_all(preset, fitted, reading, demand, items, columns, folder, workers or Workers())
        else:
            refuse_inputs((demand, items, *reading.files), folder / PAGES, WRITTEN, below=1)
            _learn_one(preset, given, reading, demand, items, columns, folder, only)
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None


def _any_sizes(given: dict[str, Any]) -> dict[str, float]:
    """Sizes that stand where each item gets its own: large enough for an order."""
    return {"capacity": max(2.0, *(float(given.get(name) or 0) for name in ("pack", "min_order"))), "max_demand": 1.0}


def _learn_all(
    preset: Inventory,
    fitted: tuple[str, ...],
    reading: Reading,
    demand: Path,
    items: Path,
    columns: Columns,
    folder: Path,
    workers: Workers,
) -> None:
    """Plans for all, and a page."""
    alike = reading.half_life is not None and np.isinf(reading.half_life)
    law: dict[str, Any] = {"name": "Counts"} if alike else {"name": "Recent", "half_life": reading.half_life}
    try:
        with progress_bar("rows") as progress:
            counted = learn_fleet(
                preset,
                demand,
                folder,
                items,
                columns=columns,
                law={**law, "stationary": bool(reading.pool)},
                fitted=fitted,
                engine=workers.engine,
                workers=workers.jobs,
                ray_address=workers.ray_address,
                progress=progress,
                stop=INTERRUPTED,
            )
    except KeyboardInterrupt:
        print(f"stopped; finished plans are kept in {folder}: the same command goes on from there", file=sys.stderr)
        raise
    parts = finished_parts(folder)
    recent = {
        True: "All of the past counts alike (--half-life inf).",
        False: "For each item the half-life was chosen that would have predicted its demand best.",
    }
    done = [
        f"{counted['kept']} items were done before, {counted['learned'] + counted['refused']} now.",
        recent[alike] if alike or reading.half_life is None else f"The half-life is {reading.half_life:g} episodes.",
        *([f"Chosen for each item by its data: {', '.join(fitted)}; they are columns of the table."] if fitted else []),
        *([f"Demand is learned around the forecasts in {columns.forecast!r}."] if columns.forecast else []),
        "How the plans would have done on days that they were not learned from was not tried; add --only ITEM to the "
        "command for a page on one item that does.",
    ]
    told = fleet_page(str(demand), pq.read_table(parts, columns=list(COLUMNS)), done, preset)
    text = items_markdown(told)
    write(folder / PAGE, items_html(told).encode())
    write(folder / SUMMARY, text.encode())
    print(text)
    print(
        f"written to {folder}: {PAGE}, {SUMMARY}, and the plans of all items, one table in {len(parts)} Parquet file(s)"
    )


def _learn_one(
    preset: Inventory,
    given: dict[str, Any],
    reading: Reading,
    demand: Path,
    items: Path,
    columns: Columns,
    folder: Path,
    only: str,
) -> None:
    """The page of one item, as ``ucbf learn`` writes it for a file of its own, with its costs and sizes."""
    if columns.forecast is not None:
        raise UserError("--only does not know forecasts in a column; leave one of --only and --forecast-column out")
    known = Items.read(items, columns.item, preset)
    task = _task_of(known, given, reading, columns, only)
    source = table_of_item(demand, columns, only)
    if source is None:
        raise UserError(f"{demand} has no rows of item {only!r}; give one that it has (--only)")
    with progress_bar("steps") as progress:
        learned, told = task.learn_from(source, None, progress)
    room = folder / PAGES / folder_names([only])[only]
    names = write_files(room, learned, told, None, reading.draws())
    print(advice.markdown(told))
    print(f"written to {room}: {', '.join(names)}")


def _task_of(known: Items, given: dict[str, Any], reading: Reading, columns: Columns, name: str) -> Task:
    """What is learned of an item by itself, with its own costs and sizes."""
    if known.row and name not in known.row:
        raise UserError(f"the file of items (--items) has no item {name!r}; add a row for it")
    own = {parameter: float(values[0]) for tables in known.of([name]) for parameter, values in tables.items()}
    stated = {**given, **{parameter: int(x) if x.is_integer() else x for parameter, x in own.items() if np.isfinite(x)}}
    costs, remarks = inventory_costs(stated, None)
    named = replace(reading, item=None, time=columns.time, column=columns.amount)
    return Task(Inventory, named, costs, 0, remarks)
