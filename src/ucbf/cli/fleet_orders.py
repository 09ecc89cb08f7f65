"""``ucbf act`` in a folder of many items: what to order for each of them."""

from __future__ import annotations

import io
from datetime import date
from pathlib import Path

import pyarrow.csv

from ucbf.errors import UserError
from ucbf.fleet.orders import orders_on


def act_for_many(folder: Path, stocks: Path | None, day: str | None, json: bool) -> None:
    """Print a line for each item, as CSV or as JSON."""
    if stocks is None:
        raise UserError(f"{folder} holds plans of many items; give a file with the stock of each (--stock-file)")
    try:
        on = None if day is None else date.fromisoformat(day)
    except ValueError:
        raise UserError(f"date is {day!r:.40}; write it as 2026-01-31") from None
    for number, table in enumerate(orders_on(folder, stocks, on)):
        if json:
            from json import dumps

            for row in table.to_pylist():
                print(dumps({**row, "date": str(row["date"])}, ensure_ascii=False))
        else:
            options = pyarrow.csv.WriteOptions(include_header=number == 0, quoting_style="needed")
            text = io.BytesIO()
            pyarrow.csv.write_csv(table, text, options)
            print(text.getvalue().decode(), end="")
