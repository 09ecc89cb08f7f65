"""Which column of a table holds dates, and its times by the local clock that they were written by."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ucbf.data.date_formats import FIRST, LAST, WITH_OFFSET, fitting_formats, offset_seconds, read_dates
from ucbf.data.series import STEPS, Seconds
from ucbf.data.tables import Column, Table
from ucbf.data.text import WITH_COMMA, is_number
from ucbf.data.zones import offsets_at, zone_of

DATE_WORDS = ("date", "time", "day", "week", "month", "year", "hour", "period")
RANGE = "correct it; is this a range of hours? Then give its beginning"
ONE_FORMAT = "write all rows in one format"
PARTS_OF_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
Dates = tuple[Seconds, Seconds | None]


def date_column(table: Table, column: str | None, date_format: str | None) -> str | None:
    """The first column but ``column`` whose first cell is a date; None if there is none."""
    others = {name: cells for name, cells in table.columns.items() if name != column and len(cells)}
    of_numbers = {"date", "day", "time", "year"} if date_format is None else DATE_WORDS
    for name, cells in others.items():
        text = _first_cell(cells)
        if text is None:
            if _is_time(cells.type):
                return name
        elif fitting_formats(text, date_format) and (not is_number(text) or name.lower() in of_numbers):
            return name
    for name, cells in others.items() if len(table.columns) > 1 else ():  # dates that cannot be read are not ignored
        if _looks_like_dates(name, _first_cell(cells)):
            raise table.error(0, name, f"{table.shown(0, name)} is not a date that is understood; say how it is "
                              "written (date_format, --date-format), or leave the column out")  # fmt: skip
    return None


def other_dates(table: Table, dates: str, column: str, date_format: str | None) -> list[str]:
    """Further columns that begin with a date, and not with a number."""
    others = {name: cells for name, cells in table.columns.items() if name not in (dates, column) and len(cells)}
    return [name for name, cells in others.items() if _begins_with_date(cells, date_format)]


def _begins_with_date(cells: Column, date_format: str | None) -> bool:
    """Whether the first cell is a date, and not a number."""
    if _is_time(cells.type):
        return True
    text = _first_cell(cells)
    return bool(text and not is_number(text) and fitting_formats(text, date_format))


def _looks_like_dates(name: str, text: str | None) -> bool:
    """Whether name and first cell of a column suggest dates. Numbers below 10,000 count rows or hours."""
    if text is None:
        return False
    if re.match(WITH_COMMA, text):
        return False
    if is_number(text):
        return name.lower() in DATE_WORDS and abs(float(text)) >= 10_000
    return any(word in name.lower() for word in DATE_WORDS) or any(c.isdigit() for c in text)


def dates_of(table: Table, name: str, date_format: str | None) -> Dates:
    """[N] seconds since 1970 by the local clock; [N] how far it is ahead of universal time, or None if not written."""
    column = table.columns[name]
    if column.null_count:
        raise table.error(int(pc.index(pc.is_null(column), True).as_py()), name, "no date; fill it in")
    if _is_time(column.type):
        return _from_times(table, name, column)
    text = _as_text(column)
    if text is None:
        raise table.error(0, name, f"{table.shown(0, name)} is not a date; give a column of dates (time, --time)")
    clock, offsets = _split_offsets(table, name, text)
    seconds = _from_text(table, name, clock, date_format)
    if offsets is not None:
        changes = np.diff(offsets) != 0
        near = seconds[2:] - seconds[:-2] <= 2 * STEPS["day"]  # between rows far apart a clock may well be set
        _refuse(table, name, np.pad(changes[:-1] & changes[1:] & near, (1, 0)), "an offset from universal time that "
                f"differs from those of the rows around it; {RANGE}")  # fmt: skip
    return seconds, offsets


def _refuse(table: Table, name: str, wrong: NDArray[np.bool_], message: str) -> None:
    """An error that names the first row that is wrong, if any is."""
    if wrong.any():
        raise table.error(int(wrong.argmax()), name, message)


# -- columns of times -------------------------------------------------------------------------------------------


def _is_time(kind: Any) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _from_times(table: Table, name: str, column: Column) -> Dates:
    kind = column.type
    if pa.types.is_date32(kind):
        seconds, rest = column.cast(pa.int32()).to_numpy().astype(np.int64) * STEPS["day"], np.zeros(1, np.int64)
    else:
        parts = PARTS_OF_A_SECOND["ms" if pa.types.is_date64(kind) else kind.unit]
        seconds, rest = np.divmod(column.cast(pa.int64()).to_numpy(), parts)
    zone = zone_of(kind.tz, f"{table.source}, column {name!r}") if getattr(kind, "tz", None) else None
    _refuse(table, name, (seconds < FIRST) | (seconds > LAST), "a time outside of the years 1 to 9999; correct it")
    _refuse(table, name, rest != 0, "a part of a second; round times to whole seconds")
    if zone is None:
        return seconds, None
    offsets = offsets_at(seconds, zone)
    return seconds + offsets, offsets


# -- columns of text --------------------------------------------------------------------------------------------


def _as_text(column: Column) -> Column | None:
    """Text, or whole numbers such as years, as text; None for anything else."""
    if pa.types.is_string(column.type):
        return column
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        try:
            return column.cast(pa.int64()).cast(pa.string())
        except pa.ArrowInvalid:
            return None
    return None


def _first_cell(column: Column) -> str | None:
    """The first cell as text, where the column has text or whole numbers."""
    first = _as_text(column[:1])
    return None if first is None else first[0].as_py() or ""


def _split_offsets(table: Table, name: str, text: Column) -> tuple[Column, Seconds | None]:
    """The local time of every row as text, and [N] its offset from universal time; None if the first row has none."""
    if not len(text) or not re.match(WITH_OFFSET, text[0].as_py()):
        return text, None
    parts = [pc.extract_regex(chunk, WITH_OFFSET) for chunk in text.chunks]
    without = np.concatenate([part.is_null().to_numpy(zero_copy_only=False) for part in parts])
    _refuse(table, name, without, f"no offset from universal time, which the first row has: {text[0]}; {ONE_FORMAT}")
    clock = pa.chunked_array([part.field("clock") for part in parts])
    written = pa.chunked_array([part.field("offset").dictionary_encode() for part in parts]).unify_dictionaries()
    known = np.array([offset_seconds(offset) for offset in written.chunk(0).dictionary.to_pylist()])
    offsets: Seconds = np.concatenate([known[chunk.indices.to_numpy()] for chunk in written.chunks])
    far = np.abs(offsets) > 14 * STEPS["hour"]
    _refuse(table, name, far, f"an offset from universal time of more than 14 hours; {RANGE}")
    return clock, offsets


def _from_text(table: Table, name: str, text: Column, date_format: str | None) -> Seconds:
    """The dates of all rows, in the one format that fits them all."""
    first = text[0].as_py()
    possible = fitting_formats(first, date_format)
    if not possible:
        how = f"written as {date_format}" if date_format else (
            "that is understood; say how it is written (date_format, --date-format)"
        )  # fmt: skip
        raise table.error(0, name, f"{first[:40]!r} is not a date {how}")
    fits, farthest = {}, 0
    for form in possible:
        seconds, bad = read_dates(text, form)
        if bad is None and form == "ISO 8601":
            return seconds
        if bad is None:
            fits[form] = seconds
        else:
            farthest = max(farthest, bad)
    if not fits:
        odd = text[farthest].as_py()
        if re.match(WITH_OFFSET, odd):
            raise table.error(farthest, name, f"{odd!r} has an offset from universal time, the first row, {first!r}, "
                              f"has none; {ONE_FORMAT}")  # fmt: skip
        raise table.error(farthest, name, f"{odd[:40]!r} is not a date like the first, {first!r}; {ONE_FORMAT}")
    found = next(iter(fits.values()))
    if any(not np.array_equal(found, other) for other in fits.values()):
        raise table.error(0, name, f"{first!r} may mean {' or '.join(fits)}; say which (date_format, --date-format)")
    return found
