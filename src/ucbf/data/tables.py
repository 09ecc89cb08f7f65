"""A file, a pandas table or an array as a table of columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from numpy.typing import NDArray

from ucbf.checks import numbers
from ucbf.data.csv_files import read_csv
from ucbf.errors import UserError

Column = Any  # a pyarrow.ChunkedArray
MOST_ROWS = 50_000_000  # that are read into memory, some 5 GB
MOST_BYTES = 2_500_000_000  # of a file of text, which are about as many


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length."""

    source: str
    columns: dict[str, Column]
    rows: Sequence[int] | NDArray[np.int64]  # as a text editor counts them; from 0 for what is not a text file
    in_file: bool = False
    delimiter: str | None = None  # of a file of text
    note: str = ""  # on how it was read

    def error(self, i: int, column: str, message: str) -> UserError:
        """The error for a cell: its place, and what is wrong with it."""
        return UserError(f"{self.source}, row {self.rows[int(i)]}, column {column!r}: {message}")

    def shown(self, i: int, column: str) -> str:
        """A cell in a few characters."""
        cell = self.columns[column][int(i)]
        try:
            return f"{str(cell.as_py())[:40]!r}"
        except (ValueError, KeyError, OverflowError, pa.ArrowException):  # a time that Python does not know
            return f"a {cell.type}"


def table_of(source: Any) -> Table:
    """The columns of a file, a pandas table, a pandas column or an array; a table gets columns that may be cleared."""
    if isinstance(source, Table):
        return replace(source, columns=dict(source.columns))
    if isinstance(source, str | os.PathLike):
        return _file(Path(source))
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):  # a pandas table, known without importing pandas
        names = [str(name) for name in source.columns]
        refuse_doubled("the table", names)
        return _of_pandas("the table", source.index, dict(zip(names, (source[n] for n in source.columns), strict=True)))
    if hasattr(source, "index") and hasattr(source, "to_numpy"):  # a pandas column
        return _of_pandas("the series", source.index, {str(source.name or "value"): source})
    values = numbers("series", source)
    if values.ndim != 1:
        raise ValueError(f"series has shape {values.shape}; give [N]")
    return Table("the array", {"value": pa.chunked_array([pa.array(values)])}, range(len(values)))


def column_names(source: Any) -> list[str]:
    """The names of the columns of a file or a table."""
    return list(table_of(source).columns)


def refuse_doubled(where: str, names: Sequence[str]) -> None:
    """An error if two columns have the same name."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"{where}: two columns are named {twice!r}; give each its name")


def _file(path: Path) -> Table:
    if path.is_dir():
        raise UserError(f"{path} is a folder; give a file")
    if not path.is_file():
        raise UserError(f"there is no file {str(path)!r}; give the path of a CSV or Parquet file")
    if path.suffix.lower() not in {".parquet", ".pq"}:
        if path.stat().st_size > MOST_BYTES:
            raise _too_large(path, f"{path.stat().st_size / 1e9:.1f} GB of text", f"{MOST_BYTES / 1e9:.1f} GB")
        columns, rows, delimiter, note = read_csv(path)
        return Table(str(path), columns, rows, in_file=True, delimiter=delimiter, note=note)
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            rows = file.metadata.num_rows
            table = file.read() if rows <= MOST_ROWS else file.schema_arrow.empty_table()
        names = table.column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"{path} is not a Parquet file that can be read: {first}") from None
    if rows > MOST_ROWS:
        raise _too_large(path, f"{rows:,} rows", f"{MOST_ROWS:,}")
    refuse_doubled(str(path), names)
    columns = {name: _plain(table[name]) for name in names}
    return Table(str(path), columns, range(table.num_rows), in_file=True)


def _too_large(path: Path, found: str, most: str) -> UserError:
    return UserError(
        f"{path} has {found}; up to {most} are read at once. Where it holds many items, ucbf.learn_fleet (ucbf learn "
        "inventory --item COLUMN --items FILE) reads it a part at a time; else give a part of it"
    )


def _of_pandas(what: str, index: Any, given: dict[str, Any]) -> Table:
    dated = {"index": index} if type(index).__name__ == "DatetimeIndex" else {}
    columns = {name: _plain(_arrow(cells)) for name, cells in {**dated, **given}.items()}
    return Table(what, columns, range(len(index)))


def _arrow(cells: Any) -> Column:
    """A pandas column for pyarrow; one of mixed objects, such as dates with offsets that differ, becomes text."""
    try:
        if cells.dtype != object:
            return pa.chunked_array([pa.Array.from_pandas(cells)])
    except (pa.ArrowException, TypeError, ValueError):
        pass
    return pa.chunked_array([pa.array(_texts(cells), pa.string())])


def _texts(cells: Iterable[Any]) -> list[str | None]:
    return [None if cell is None or cell != cell else str(cell) for cell in cells]


def _plain(column: Column) -> Column:
    """The same cells without dictionary or run-end encoding; all kinds of text as plain text, trimmed."""
    chunked = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    kind = chunked.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(pa.chunked_array([chunk.storage for chunk in chunked.chunks], kind.storage_type))
    if pa.types.is_dictionary(kind):
        return _plain(chunked.cast(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(chunked))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_string(kind):
        return pa.chunked_array([pc.utf8_trim_whitespace(c.cast(pa.string())) for c in chunked.chunks], pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        try:
            return _plain(chunked.cast(pa.string()))
        except pa.ArrowException:  # bytes that are no text: no number and no date either
            return chunked
    return chunked
