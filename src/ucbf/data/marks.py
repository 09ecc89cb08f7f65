"""Columns of marks, yes or no for each step: promoted, in stock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ucbf.data.columns import required_column
from ucbf.data.series import Series
from ucbf.data.tables import Table, table_of
from ucbf.errors import UserError

NEITHER, EMPTY = -1, -2
YES, NO = {"1", "1.0", "x", "true", "t", "yes", "y"}, {"0", "0.0", "false", "f", "no", "n"}


def read_marks(
    source: Any, column: str, series: Series, filled: bool = False, explicit: bool = False
) -> NDArray[np.bool_]:
    """[N] which steps of a series are marked in a column of the file that it was read from.

    1, x, true and yes are marks; 0, false, no and an empty cell are none.

    filled: what holds for steps in no row; explicit: whether an empty cell is an error where others say 0 or no
    """
    table = table_of(source)
    marks = marks_of(table, required_column(table, column), explicit)
    if series.rows is None:
        if len(marks) != len(series):
            raise UserError(f"{table.source}, column {column!r}: {len(marks)} rows, the series has {len(series)}; "
                            "give both from one table")  # fmt: skip
        return marks
    found: NDArray[np.bool_] = marks[np.searchsorted(np.asarray(table.rows), np.asarray(series.rows))]
    return found if series.filled is None else np.where(series.filled, filled, found)


def marks_of(table: Table, column: str, explicit: bool = False) -> NDArray[np.bool_]:
    """[N] which rows of a table are marked in a column. explicit: as of :func:`read_marks`."""
    read = np.concatenate([np.zeros(0, np.int8), *map(_read, table.columns[column].chunks)])
    if (read == NEITHER).any():
        wrong = int((read == NEITHER).argmax())
        shown = table.shown(wrong, column)
        raise table.error(wrong, column, f"{shown} is neither yes nor no; write 1 or 0, x or nothing, true or false")
    if explicit and (read == EMPTY).any() and (read == 0).any():
        wrong = int((read == EMPTY).argmax())
        raise table.error(wrong, column, "the cell is empty, and others say 0 or no; write 1 or 0 in every row")
    marks: NDArray[np.bool_] = read == 1
    return marks


def _read(cells: Any) -> NDArray[np.int8]:
    """[N] 1 for yes, 0 for no, EMPTY or NEITHER; each different cell is looked at once, whatever the number of rows."""
    try:
        coded = cells.dictionary_encode(null_encoding="encode")
        different, which = coded.dictionary, coded.indices.to_numpy()
    except pa.ArrowException:  # lists and the like
        different, which = cells, np.arange(len(cells))
    read: NDArray[np.int8] = np.array([_read_one(cell) for cell in different], np.int8)[which]
    return read


def _read_one(cell: Any) -> int:
    try:
        value = cell.as_py()
    except (ValueError, KeyError, OverflowError, pa.ArrowException):  # a time that Python does not know
        return NEITHER
    text = "" if value is None else str(value).lower()
    return 1 if text in YES else 0 if text in NO else EMPTY if text == "" else NEITHER
