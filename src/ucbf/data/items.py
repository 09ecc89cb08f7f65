"""A long file with the rows of many items: one table for each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ucbf.data.columns import required_column
from ucbf.data.tables import Table, table_of


def split_items(source: Any, column: str) -> dict[str, Table]:
    """The rows of each item, by its name in a column, in the order in which items first appear.

    Rows of an item keep their order and their numbers in the file. The tables are sources for
    :func:`ucbf.data.read_series`.
    """
    table = table_of(source)
    cells = table.columns[required_column(table, column)].cast(pa.string())
    missing = pc.or_(pc.is_null(cells), pc.equal(pc.fill_null(cells, ""), ""))
    if pc.any(missing).as_py():
        raise table.error(int(pc.index(missing, True).as_py()), column, "no item; fill it in, or leave the row out")
    codes = cells.combine_chunks().dictionary_encode()
    if isinstance(codes, pa.ChunkedArray):
        codes = codes.unify_dictionaries().combine_chunks()
    number, names = codes.indices.to_numpy(), codes.dictionary.to_pylist()
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number, minlength=len(names)))
    rows, others = np.asarray(table.rows), {name: cells for name, cells in table.columns.items() if name != column}
    found = {}
    for name, begin, end in zip(names, [0, *ends], ends, strict=False):
        which = order[begin:end]
        columns = {other: cells.take(pa.array(which)) for other, cells in others.items()}
        found[name] = replace(table, source=f"{table.source}, item {name!r}", columns=columns, rows=rows[which])
    return found
