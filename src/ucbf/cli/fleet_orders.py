"""``ucbf act`` in a folder of many items: what to order for each of them."""

from __future__ import annotations

import io
from datetime import datetime
from pathlib import Path

import pyarrow.csv

from ucbf.fleet.orders import orders_on
from ucbf.following.calendar import read_date


def act_for_many(folder: Path, stocks: Path, day: str | datetime | None, json: bool) -> None:
    """Print a line for each item, as CSV or as JSON."""
    on = read_date(day) if isinstance(day, str) else day
    for number, table in enumerate(orders_on(folder, stocks, None if on is None else on.date())):
        if json:
            from json import dumps

            for row in table.to_pylist():
                print(dumps(row, ensure_ascii=False, default=str))
        else:
            options = pyarrow.csv.WriteOptions(include_header=number == 0, quoting_style="needed")
            text = io.BytesIO()
            pyarrow.csv.write_csv(table, text, options)
            print(text.getvalue().decode(), end="")
