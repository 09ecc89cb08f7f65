"""The rows of many items in a file of text, read whole and by the rules of :mod:`ucbf.data`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ucbf.data.columns import optional_values, required_column, values_of
from ucbf.data.dates import dates_of
from ucbf.data.items import items_in_order
from ucbf.data.series import STEPS
from ucbf.data.tables import Table, table_of
from ucbf.errors import UserError
from ucbf.fleet.rows import Columns, Rows

LARGEST = 200_000_000  # bytes that are read at once; above, a part at a time, by the rules of pyarrow alone


def is_read_whole(path: Path) -> bool:
    """Whether a file of text is small enough."""
    return path.stat().st_size <= LARGEST


def rows_of_text(path: Path, columns: Columns) -> Rows:
    """All rows, item by item in the order in which items first appear.

    An item with a cell that cannot be read is refused by name; if that is every item, the file is.
    """
    table = table_of(path)
    for name in columns.all:
        required_column(table, name)
    names, order, begins = items_in_order(table, columns.item)
    taken = {name: table.columns[name].take(pa.array(order)) for name in columns.all if name != columns.item}
    table = replace(table, columns=taken, rows=np.asarray(table.rows)[order])
    refused: dict[str, str] = {}

    def each(read: Callable[[Table], NDArray[Any]]) -> NDArray[np.float64]:
        """[N] what is read of all rows, or where that cannot be of one item after the other."""
        try:
            return read(table).astype(np.float64, copy=False)
        except UserError as error:
            found, wrong = np.full(len(order), np.nan), 0
            for name, begin, end in zip(names, begins, begins[1:], strict=False):
                try:
                    found[begin:end] = read(_part(table, int(begin), int(end)))
                except UserError as own:
                    wrong += 1
                    refused.setdefault(name, " ".join(str(own).split()))
            if wrong == len(names):
                raise error from None
            return found

    amount, forecast = columns.amount, columns.forecast
    days = each(lambda part: dates_of(part, columns.time, columns.date_format)[0] // STEPS["day"])
    return Rows(
        names,
        begins,
        np.where(np.isfinite(days), days, 0).astype(np.int32),
        each(lambda part: values_of(part, amount, None) if forecast is None else optional_values(part, amount)),
        None if forecast is None else each(lambda part: values_of(part, forecast, None)),
        refused,
    )


def _part(table: Table, begin: int, end: int) -> Table:
    columns = {name: cells.slice(begin, end - begin) for name, cells in table.columns.items()}
    return replace(table, columns=columns, rows=table.rows[begin:end])
