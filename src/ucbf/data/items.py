"""A long file with the rows of many items: one table for each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ucbf.data.columns import required_column
from ucbf.data.tables import Table, table_of


def split_items(source: Any, column: str) -> dict[str, Table]:
    """The rows of each item, by its name in a column, in the order in which items first appear.

    Rows of an item keep their order and their numbers in the file. The tables are sources for
    :func:`ucbf.data.read_series`.
    """
    table = table_of(source)
    names, order, begins = items_in_order(table, column)
    rows, others = np.asarray(table.rows), {name: cells for name, cells in table.columns.items() if name != column}
    found = {}
    for name, begin, end in zip(names, begins, begins[1:], strict=False):
        which = order[begin:end]
        columns = {other: cells.take(pa.array(which)) for other, cells in others.items()}
        found[name] = replace(table, source=f"{table.source}, item {name!r}", columns=columns, rows=rows[which])
    return found


def items_in_order(table: Table, column: str) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """[n] the items in the order in which they first appear; [N] their rows, item by item; [n + 1] where they begin."""
    cells = table.columns[required_column(table, column)].cast(pa.string())
    missing = pc.or_(pc.is_null(cells), pc.equal(pc.fill_null(cells, ""), ""))
    if pc.any(missing).as_py():
        raise table.error(int(pc.index(missing, True).as_py()), column, "no item; fill it in, or leave the row out")
    codes = cells.combine_chunks().dictionary_encode()
    if isinstance(codes, pa.ChunkedArray):
        codes = codes.unify_dictionaries().combine_chunks()
    number, names = codes.indices.to_numpy(), codes.dictionary.to_pylist()
    counts = np.bincount(number, minlength=len(names))
    return names, np.argsort(number, kind="stable"), np.concatenate([[0], np.cumsum(counts)])
