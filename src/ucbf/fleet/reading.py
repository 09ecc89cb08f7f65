"""A long file of many items, and one of their costs and sizes: read a part at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ucbf.data.columns import optional_values, required_column
from ucbf.data.items import split_items
from ucbf.data.tables import Table, table_of
from ucbf.errors import UserError
from ucbf.fleet.rows import Columns, Rows
from ucbf.fleet.text import is_read_whole, rows_of_text
from ucbf.systems.base import Preset

ROWS = 1 << 18  # that are read at once
OF_ALL = ("horizon", "period", "profile", "price_breaks")  # parameters that items may not differ in
Floats = NDArray[np.float64]


def chunks_of(path: Path, columns: Columns, size: int) -> Iterator[Rows]:
    """The rows of a file, ``size`` items at a time. The rows of an item stand together, in order of time."""
    waiting: list[Rows] = []
    n = 0
    for rows in _runs(path, columns):
        waiting.append(rows)
        n += len(rows.names)
        if n > size:  # the last may go on in the next rows
            joined = _joined(waiting)
            while len(joined.names) > size:
                yield _part(joined, 0, size)
                joined = _part(joined, size, len(joined.names))
            waiting, n = [joined], len(joined.names)
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Rows]) -> Rows:
    """Rows that follow one another; an item that goes on is one item."""
    names: list[str] = []
    counts: list[int] = []
    for part in parts:
        goes_on = bool(names) and names[-1] == part.names[0]
        rows = np.diff(part.begins).tolist()
        if goes_on:
            counts[-1] += rows[0]
        names += part.names[goes_on:]
        counts += rows[goes_on:]
    forecasts = [part.forecast for part in parts if part.forecast is not None]
    return Rows(
        names,
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.day for part in parts]),
        np.concatenate([part.amount for part in parts]),
        np.concatenate(forecasts) if forecasts else None,
        {name: why for part in parts for name, why in part.refused.items()},
    )


def _part(rows: Rows, first: int, end: int) -> Rows:
    """The rows of some of the items, one after the other."""
    begin, stop = rows.begins[first], rows.begins[end]
    refused = {name: rows.refused[name] for name in rows.names[first:end] if name in rows.refused}
    return Rows(
        rows.names[first:end],
        rows.begins[first : end + 1] - begin,
        rows.day[begin:stop],
        rows.amount[begin:stop],
        None if rows.forecast is None else rows.forecast[begin:stop],
        refused,
    )


# -- files ---------------------------------------------------------------------------------------------


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet; an error if it is not there."""
    if not path.is_file():
        raise UserError(f"{path} is not there; give a Parquet or CSV file")
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def n_rows(path: Path) -> int:
    """How many rows there are, where that is known beforehand; else 0."""
    if not is_parquet(path):
        return 0
    with _readable(path), pq.ParquetFile(path) as file:
        return int(file.metadata.num_rows)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None


def _runs(path: Path, columns: Columns) -> Iterator[Rows]:
    """Parts of the file, as they come."""
    if is_parquet(path):
        with _readable(path), pq.ParquetFile(path) as file:
            kinds = dict(zip(file.schema_arrow.names, file.schema_arrow.types, strict=True))
        _check_columns(path, list(kinds), columns.all)
        text = [columns.item] if pa.types.is_string(kinds[columns.item]) else []  # each name is then read once
        with _readable(path), pq.ParquetFile(path, read_dictionary=text, pre_buffer=False) as file:
            for batch in file.iter_batches(ROWS, columns=columns.all):
                if len(batch):
                    yield _read(path, batch, columns)
    elif is_read_whole(path):
        yield rows_of_text(path, columns)
    else:
        with csv_reader(path, columns.item) as reader:
            _check_columns(path, reader.schema.names, columns.all)
            with _readable(path):
                for batch in reader:
                    if len(batch):
                        yield _read(path, batch, columns)


def table_of_item(path: Path, columns: Columns, item: str) -> Table | None:
    """The rows of one item, as a source of a series; None if there are none."""
    if not is_parquet(path) and is_read_whole(path):
        return split_items(path, columns.item).get(item)
    found = _rows_of(path, columns, item)
    cells = {name: found[name] for name in found.column_names}
    return Table(f"{path}, item {item!r}", cells, range(len(found))) if len(found) else None


def _rows_of(path: Path, columns: Columns, item: str) -> Any:
    """The rows of one item, as a table of the columns but that of items."""
    wanted = [name for name in columns.all if name != columns.item]
    if is_parquet(path):
        with _readable(path):
            kind = pq.read_schema(path)
            _check_columns(path, kind.names, columns.all)
            try:
                name = pa.scalar(item).cast(kind.field(columns.item).type).as_py()
            except pa.ArrowException:  # no number, where items are numbers
                return pq.read_table(path, columns=wanted).slice(0, 0)
            return pq.read_table(path, columns=columns.all, filters=[(columns.item, "==", name)]).select(wanted)
    with csv_reader(path, columns.item) as reader, _readable(path):
        _check_columns(path, reader.schema.names, columns.all)
        parts = [pa.Table.from_batches([], reader.schema)]
        parts += [pa.Table.from_batches([batch]).filter(pc.field(columns.item) == item) for batch in reader]
        return pa.concat_tables(parts).select(wanted)


def _read(path: Path, batch: Any, columns: Columns) -> Rows:
    """Rows of the file as rows of items; their numbers are those of the file, not copied."""
    needed = [columns.item, columns.time, columns.forecast or columns.amount]
    for name in needed:
        if batch[name].null_count:
            raise UserError(f"{path}: a row has no {name!r}; fill it in, or leave the row out")
    time = batch[columns.time]
    if not (pa.types.is_date(time.type) or pa.types.is_timestamp(time.type)):
        raise UserError(f"{path}: column {columns.time!r} is {time.type}, not dates; write them as 2026-01-31")
    codes = batch[columns.item]
    if not pa.types.is_dictionary(codes.type):
        codes = codes.dictionary_encode()
    number = np.asarray(codes.indices)
    first = np.append(0, np.flatnonzero(number[1:] != number[:-1]) + 1)
    names = codes.dictionary.cast(pa.string()).take(codes.indices.take(pa.array(first))).to_pylist()
    return Rows(
        names,
        np.append(first, len(number)),
        np.asarray(time.cast(pa.date32(), safe=False).cast(pa.int32())),
        finite(path, batch, columns.amount, may_miss=columns.forecast is not None),
        None if columns.forecast is None else finite(path, batch, columns.forecast),
    )


def finite(path: Any, table: Any, name: str, may_miss: bool = False) -> NDArray[Any]:
    """A column of finite numbers, of the kind that they are; may_miss: nulls are not a number."""
    column = table[name]
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise UserError(f"{path}: column {name!r} is {column.type}, not numbers")
    values = np.asarray(column)
    if values.dtype.kind == "f":
        good = np.isfinite(values) | np.isnan(values) if may_miss else np.isfinite(values)
        if not good.all():
            raise UserError(f"{path}: column {name!r} has something that is no finite number; correct it")
    return values


def numbers_of(path: Any, table: Any, name: str, may_miss: bool = False) -> Floats:
    """The same as floats."""
    return finite(path, table, name, may_miss).astype(np.float64, copy=False)


def _check_columns(path: Path, names: list[str], wanted: list[str]) -> None:
    missing = [name for name in wanted if name not in names]
    if missing:
        commas = (
            "; separate the cells by commas" if len(names) == 1 and any(mark in names[0] for mark in ";\t|") else ""
        )
        raise UserError(f"{path} has no column {missing[0]!r}; it has {', '.join(names)}{commas}")


def csv_reader(path: Path, item: str) -> Any:
    """A CSV file, read a part at a time; items are text, such as 0017."""
    options = pa.csv.ConvertOptions(column_types={item: pa.string()})
    with _readable(path):
        return pa.csv.open_csv(path, convert_options=options)


class ItemTable(NamedTuple):
    """A file with a row for each item."""

    columns: list[str]  # but that of the items
    names: list[str]  # of the items
    numbers: Callable[[str], Floats]  # the numbers of a column; not a number where a cell is empty

    @classmethod
    def read(cls, path: Path, item: str) -> ItemTable:
        """From Parquet, or from text of any kind that :mod:`ucbf.data` reads; a UserError if an item stands twice."""
        if is_parquet(path):
            with _readable(path):
                table = pq.read_table(path)
            _check_columns(path, table.column_names, [item])
            columns, cells = table.column_names, table[item].cast(pa.string())
            numbers = partial(numbers_of, path, table, may_miss=True)
        else:
            text = table_of(path)
            columns, cells = list(text.columns), text.columns[required_column(text, item)]
            numbers = partial(optional_values, text)
        names = cells.to_pylist()
        twice = next((name for name, n in Counter(names).items() if n > 1), None)
        if twice is not None:
            raise UserError(f"{path}: item {twice!r} has two rows; keep one")
        return cls([name for name in columns if name != item], names, numbers)


# -- costs and sizes ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Items:
    """A row for each item, of what is its own: costs, and parameters that make its shape."""

    row: dict[str, int] = field(default_factory=dict)  # by item
    costs: dict[str, Floats] = field(default_factory=dict)  # by name, [N]
    shape: dict[str, Floats] = field(default_factory=dict)  # by name, [N]; not a number where it is as for all

    @classmethod
    def read(cls, path: str | Path | None, item: str, preset: Preset) -> Items:
        """From a file; a UserError if it cannot be used."""
        if path is None:
            return cls()
        table = ItemTable.read(Path(path), item)
        others = table.columns
        known = [name for name, x in preset.parameters().items() if name not in OF_ALL and not isinstance(x, str)]
        unknown = [name for name in others if name not in known]
        if unknown:
            raise UserError(
                f"{path}: column {unknown[0]!r} is no parameter of {type(preset).__name__} that items may differ in; "
                f"those are {', '.join(known)}"
            )
        row = {name: i for i, name in enumerate(table.names)}
        tables = {name: table.numbers(name) for name in others}
        costs = {name: values for name, values in tables.items() if name in preset.money}
        return cls(row, costs, {name: values for name, values in tables.items() if name not in costs})

    def of(self, names: list[str]) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Costs and shapes of some items, by name; not a number where there are none."""
        rows = np.array([self.row.get(name, -1) for name in names])

        def taken(tables: dict[str, Floats]) -> dict[str, Floats]:
            return {name: np.where(rows >= 0, values[rows], np.nan) for name, values in tables.items()}

        return taken(self.costs), taken(self.shape)
