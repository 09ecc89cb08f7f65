"""Columns of marks, yes or no for each step: promoted, in stock."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.data.columns import required_column
from ucbf.data.series import Series
from ucbf.data.tables import table_of
from ucbf.errors import UserError

YES, NO = {"1", "1.0", "x", "true", "t", "yes", "y"}, {"0", "0.0", "", "false", "f", "no", "n"}


def read_marks(source: Any, column: str, series: Series, filled: bool = False) -> NDArray[np.bool_]:
    """[N] which steps of a series are marked in a column of the file that it was read from.

    1, x, true and yes are marks; 0, false, no and an empty cell are none. filled: what holds for steps in no row
    """
    table = table_of(source)
    cells = table.columns[required_column(table, column)]
    texts = [str(cell).lower() if cell is not None else "" for cell in cells.to_pylist()]
    wrong = next((i for i, text in enumerate(texts) if text not in YES and text not in NO), None)
    if wrong is not None:
        shown = table.shown(wrong, column)
        raise table.error(wrong, column, f"{shown} is neither yes nor no; write 1 or 0, x or nothing, true or false")
    marks = np.array([text in YES for text in texts], bool)
    if series.rows is None:
        if len(marks) != len(series):
            raise UserError(f"{table.source}, column {column!r}: {len(marks)} rows, the series has {len(series)}; "
                            "give both from one table")  # fmt: skip
        return marks
    found = marks[np.searchsorted(np.asarray(table.rows), np.asarray(series.rows))]
    return found if series.filled is None else np.where(series.filled, filled, found)
