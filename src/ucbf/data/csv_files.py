"""CSV files as columns of text, and the row of each cell as a text editor counts it."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from ucbf.data.date_formats import is_date
from ucbf.data.text import is_number
from ucbf.errors import UserError

BLOCK = 1 << 22  # bytes that are read at once
ROWS_AT_ONCE = 50_000  # that are turned into columns, line by line
DECLARED = re.compile(r"sep=([,;\t|])\s*", re.IGNORECASE)  # a first line that says what separates cells
END = "\0end of the file"  # a line after the last: within a cell, a quote before it is not closed
UTF_8, WESTERN = "utf-8-sig", "cp1252"
Rows = Sequence[int] | NDArray[np.int64]


def read_csv(path: Path) -> tuple[dict[str, Any], Rows, str, str]:
    """The columns, as trimmed text; the row number of every cell; the delimiter; a note on how it was read, or none.

    What is not UTF-8 is read as Windows writes text in the west (cp1252, which is latin-1 with more), if it can be.
    """
    if _starts_with(path, b"PK"):
        raise UserError(f"{path} is a workbook, not a CSV file; save it as CSV in UTF-8")
    try:
        return *_read(path, UTF_8), ""
    except UnicodeDecodeError:
        pass
    try:
        if not _has_zeros(path):
            return *_read(path, WESTERN), "The file is not UTF-8 and was read as Windows text (cp1252, or latin-1)."
    except UnicodeDecodeError:
        pass
    raise UserError(f"{path} is not text in UTF-8; save it as a CSV file in UTF-8")


def _read(path: Path, encoding: str) -> tuple[dict[str, Any], Rows, str]:
    lines = _lines(path, encoding)
    first, header, delimiter = next(lines, (1, [], ","))
    _check_header(path, first, header)
    plain = _read_plain(path, first, header, delimiter, encoding)
    return *(plain or _read_lines(path, lines, first, header)), delimiter


def _has_zeros(path: Path) -> bool:
    """Whether there are zero bytes, which no text in single bytes has."""
    with path.open("rb") as file:
        return any(b"\0" in block for block in iter(lambda: file.read(BLOCK), b""))


def _starts_with(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def _lines(path: Path, encoding: str) -> Iterator[tuple[int, list[str], str]]:
    """Row number, cells and delimiter of every row that is not blank. Reads whatever is quoted, but is slow."""
    with path.open(encoding=encoding, newline="") as file:
        opening = next((line for line in file if line.strip()), "")
        declared = DECLARED.fullmatch(opening)
        delimiter = declared[1] if declared else max(",;\t", key=opening.count)
        file.seek(0)
        reader, above = csv.reader(itertools.chain(file, [END]), delimiter=delimiter), 0
        try:
            for row in reader:
                if row and row[-1].endswith(END):
                    if len(row) > 1 or row[0] != END:
                        raise UserError(
                            f"{path}, row {above + 1}: a quote that is not closed; close it, or take it out"
                        )
                    return
                above = reader.line_num
                cells = [cell.strip() for cell in row]
                if any(cells) and not declared:
                    yield reader.line_num, cells, delimiter
                declared = declared if not any(cells) else None  # the line that declares is not one of the table
        except csv.Error as error:
            raise UserError(f"{path}, row {reader.line_num}: {error}; is it a CSV file?") from None


def _check_header(path: Path, row: int, header: list[str]) -> None:
    where = f"{path}, row {row}"
    if not header:
        raise UserError(f"{where}: empty; a CSV file begins with the names of its columns")
    if all(map(is_number, header)):
        raise UserError(f"{where}: numbers instead of the names of columns; put a line of names before it")
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"{where}: two columns are named {twice!r}; give each its name")
    if any(map(is_number, header)) and any(map(is_date, header)):
        raise UserError(f"{where}: values instead of the names of columns; put a line of names before it")


def _read_plain(
    path: Path, first: int, header: list[str], delimiter: str, encoding: str
) -> tuple[dict[str, Any], Rows] | None:
    """Columns and row numbers of a plain file, in which every line is a row; quick. None for any other file."""
    n = _number_of_lines(path)
    if n is None or first != 1 or n < 2:
        return None
    try:
        table = pa.csv.read_csv(
            path,
            read_options=pa.csv.ReadOptions(
                skip_rows=1, column_names=header, encoding="utf8" if encoding == UTF_8 else encoding
            ),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter),
            convert_options=pa.csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string())),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != n - 1:  # blank lines, or rows of several lines
        return None
    chunks = {name: table[name].chunks for name in header}
    del table  # so that the memory of a chunk is free once it has been trimmed
    for each in chunks.values():
        for i in range(len(each)):
            each[i] = pc.utf8_trim_whitespace(each[i])
    columns = {name: pa.chunked_array(each, pa.string()) for name, each in chunks.items()}
    return None if _has_blank_row(columns) else (columns, range(2, n + 1))


def _number_of_lines(path: Path) -> int | None:
    """How many lines there are; None if a quote is left open, or a lone carriage return ends a line."""
    count, quotes, last = 0, 0, b""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            if block.count(b"\r") != block.count(b"\r\n") + block.endswith(b"\r"):
                return None
            count += block.count(b"\n")
            quotes += block.count(b'"')
            last = block[-1:]
    return None if quotes % 2 else count + (last != b"\n")


def _has_blank_row(columns: dict[str, Any]) -> bool:
    """Whether all cells of any row are empty."""
    empty: Any = None
    for column in columns.values():
        here = pc.equal(column, "")
        empty = here if empty is None else pc.and_(empty, here)
        if not pc.any(empty).as_py():
            return False
    return True


def _read_lines(path: Path, lines: Iterator[Any], first: int, header: list[str]) -> tuple[dict[str, Any], Rows]:
    """Columns and row numbers of any file, from its lines after the header."""
    parts: dict[str, list[Any]] = {name: [] for name in header}
    rows: list[NDArray[np.int64]] = []
    while some := list(itertools.islice(lines, ROWS_AT_ONCE)):
        for row, cells, delimiter in some:
            if len(cells) != len(header):
                title = f", and is row {first} a title, to be taken out?" if len(header) == 1 and not rows else "?"
                raise UserError(
                    f"{path}, row {row}: {len(cells)} cells, but the header has {len(header)}; does {delimiter!r} "
                    f"separate them{title}"
                )
        rows.append(np.array([row for row, _, _ in some]))
        for name, cells in zip(header, zip(*(cells for _, cells, _ in some), strict=True), strict=True):
            parts[name].append(pa.array(cells, pa.string()))
    if not rows:
        raise UserError(f"{path}, row {first}: a header and no rows below it; give the rows")
    return {name: pa.chunked_array(each) for name, each in parts.items()}, np.concatenate(rows)
