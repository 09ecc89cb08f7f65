"""Dates of a column: times of the clock they were written by, and how far that is ahead of universal time."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ucbf.data.series import STEPS, Seconds
from ucbf.data.text import is_number
from ucbf.data.zones import ahead_of, zone_of

if TYPE_CHECKING:
    from ucbf.data.tables import Column, Table

FORMATS = (
    "ISO 8601", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%B %d, %Y", "%m/%d/%Y %I:%M %p",
    "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m",
    "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d/%m/%Y", "%d/%m/%Y %H:%M", "%m/%d/%Y", "%m/%d/%Y %H:%M", "%Y%m%d", "%Y/%m/%d",
    "%Y",
)  # fmt: skip
DATE_WORDS = ("date", "time", "day", "week", "month", "year", "hour", "period")
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
PARTS = {
    "Y": r"\d{4}", "m": r"\d{1,2}", "d": r"\d{1,2}", "H": r"\d{1,2}", "I": r"\d{1,2}", "M": r"\d{1,2}", "S": r"\d{1,2}",
    "b": "[A-Za-z]{3}", "B": "[A-Za-z]+", "p": "[AaPp][Mm]",
}  # fmt: skip
ZONE = r"^(?P<clock>.*\d:\d\d(?::\d\d(?:[.,]\d+)?)?) ?(?P<zone>[Zz]|[+-]\d\d(?::?[0-5]\d)?)$"
RANGE = "correct it; is this a range of hours? Then give its beginning"
ONE_WAY = "write all rows in one way"
FIRST, LAST = -62_135_596_800, 253_402_300_799  # the first second of the year 1, the last of 9999
NEVER = FIRST - 1  # what is not a date, within this file
IN_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
Dates = tuple[Seconds, Seconds | None]


def date_column(table: Table, column: str | None, date_format: str | None) -> str | None:
    """The first column that holds dates, by its first cell; None if there is none."""
    others = {name: cells for name, cells in table.columns.items() if name != column and len(cells)}
    of_numbers = {"date", "day", "time", "year"} if date_format is None else DATE_WORDS
    for name, cells in others.items():
        text = _first(cells)
        if text is None:
            if _is_time(cells.type):
                return name
        elif _possible(text, date_format) and (not is_number(text) or name.lower() in of_numbers):
            return name
    for name, cells in others.items() if len(table.columns) > 1 else ():  # one that looks like it is not passed over
        if _looks_like_dates(name, _first(cells)):
            raise table.error(0, name, f"{table.shown(0, name)} is not a date that is understood; say how it is "
                              "written (date_format, --date-format), or leave the column out")  # fmt: skip
    return None


def _looks_like_dates(name: str, text: str | None) -> bool:
    """Whether a column, by its name and its first cell, is one of dates. Numbers below 10,000 count rows or hours."""
    if text is None:
        return False
    if is_number(text):
        return name.lower() in DATE_WORDS and abs(float(text)) >= 10_000
    return any(word in name.lower() for word in DATE_WORDS) or any(c.isdigit() for c in text)


def is_date(cell: str) -> bool:
    """Whether a cell is a date in any way that is understood."""
    return bool(_possible(cell, None))


def dates_of(table: Table, name: str, date_format: str | None) -> Dates:
    """[N] seconds since 1970 of the clock, and [N] how far it is ahead of universal time where the rows say so."""
    column = table.columns[name]
    if column.null_count:
        raise table.error(int(pc.index(pc.is_null(column), True).as_py()), name, "no date; fill it in")
    if _is_time(column.type):
        return _from_times(table, name, column)
    text = _as_text(column)
    if text is None:
        raise table.error(0, name, f"{table.shown(0, name)} is not a date; give a column of dates (time, --time)")
    clock, zones = _split_zones(table, name, text)
    seconds = _from_text(table, name, clock, date_format)
    if zones is not None:
        changes = np.diff(zones) != 0
        near = seconds[2:] - seconds[:-2] <= 2 * STEPS["day"]  # between rows far apart a clock may well be set
        _refuse(table, name, np.pad(changes[:-1] & changes[1:] & near, (1, 0)), "an offset from universal time that "
                f"differs from those of the rows around it; {RANGE}")  # fmt: skip
    return seconds, zones


# -- columns of times -------------------------------------------------------------------------------------------


def _is_time(kind: Any) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _from_times(table: Table, name: str, column: Column) -> Dates:
    kind = column.type
    if pa.types.is_date32(kind):
        seconds, rest = column.cast(pa.int32()).to_numpy().astype(np.int64) * STEPS["day"], np.zeros(1, np.int64)
    else:
        parts = IN_A_SECOND["ms" if pa.types.is_date64(kind) else kind.unit]
        seconds, rest = np.divmod(column.cast(pa.int64()).to_numpy(), parts)
    zone = zone_of(kind.tz, f"{table.source}, column {name!r}") if getattr(kind, "tz", None) else None
    _refuse(table, name, (seconds < FIRST) | (seconds > LAST), "a time outside of the years 1 to 9999; correct it")
    _refuse(table, name, rest != 0, "a part of a second; round times to whole seconds")
    if zone is None:
        return seconds, None
    offsets = ahead_of(seconds, zone)
    return seconds + offsets, offsets


def _refuse(table: Table, name: str, wrong: NDArray[np.bool_], message: str) -> None:
    if wrong.any():
        raise table.error(int(wrong.argmax()), name, message)


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


def _first(column: Column) -> str | None:
    """The first cell as text, where the column has text or whole numbers."""
    first = _as_text(column[:1])
    return None if first is None else first[0].as_py() or ""


def _split_zones(table: Table, name: str, text: Column) -> tuple[Column, Seconds | None]:
    """The clock of every row, and [N] its offset from universal time; None where the first row has none."""
    if not len(text) or not re.match(ZONE, text[0].as_py()):
        return text, None
    parts = [pc.extract_regex(chunk, ZONE) for chunk in text.chunks]
    without = np.concatenate([part.is_null().to_numpy(zero_copy_only=False) for part in parts])
    _refuse(table, name, without, f"no offset from universal time, which the first has: {text[0]}; {ONE_WAY}")
    clock = pa.chunked_array([part.field("clock") for part in parts])
    zones = pa.chunked_array([part.field("zone").dictionary_encode() for part in parts]).unify_dictionaries()
    known = np.array([_offset(zone) for zone in zones.chunk(0).dictionary.to_pylist()])
    offsets: Seconds = np.concatenate([known[chunk.indices.to_numpy()] for chunk in zones.chunks])
    far = np.abs(offsets) > 14 * STEPS["hour"]
    _refuse(table, name, far, f"an offset from universal time of more than 14 hours; {RANGE}")
    return clock, offsets


def _offset(zone: str) -> int:
    """Seconds ahead of universal time: of Z, +01, +0100 and +01:00."""
    if zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return (-1 if zone[0] == "-" else 1) * (3600 * int(digits[:2]) + 60 * int(digits[2:]))


def _from_text(table: Table, name: str, text: Column, date_format: str | None) -> Seconds:
    """The dates of all rows, in the one format that fits them all."""
    first = text[0].as_py()
    possible = _possible(first, date_format)
    if not possible:
        how = f"written as {date_format}" if date_format else (
            "that is understood; say how it is written (date_format, --date-format)"
        )  # fmt: skip
        raise table.error(0, name, f"{first[:40]!r} is not a date {how}")
    fits, farthest = {}, 0
    for form in possible:
        seconds, bad = _read(text, form)
        if bad is None and form == "ISO 8601":
            return seconds
        if bad is None:
            fits[form] = seconds
        else:
            farthest = max(farthest, bad)
    if not fits:
        odd = text[farthest].as_py()
        if re.match(ZONE, odd):
            raise table.error(farthest, name, f"{odd!r} has an offset from universal time, the first, {first!r}, none; "
                              f"{ONE_WAY}")  # fmt: skip
        raise table.error(farthest, name, f"{odd[:40]!r} is not a date like the first, {first!r}; {ONE_WAY}")
    found = next(iter(fits.values()))
    if any(not np.array_equal(found, other) for other in fits.values()):
        raise table.error(0, name, f"{first!r} may mean {' or '.join(fits)}; say which (date_format, --date-format)")
    return found


def _possible(text: str, date_format: str | None) -> list[str]:
    """The formats that a text may be written in, the quickest first."""
    clock = re.match(ZONE, text)
    one = pa.chunked_array([[clock["clock"] if clock else text]], pa.string())
    return [form for form in (FORMATS if date_format is None else (date_format,)) if _read(one, form)[1] is None]


def _read(text: Column, form: str) -> tuple[Seconds, int | None]:
    """[N] the seconds of rows in one format, or nothing and the first row that is not written in it."""
    read, parts, done = _reader(form), [np.empty(0, np.int64)], 0
    for chunk in text.chunks:
        seconds = read(chunk)
        wrong = (seconds < FIRST) | (seconds > LAST)
        if wrong.any():
            return np.empty(0, np.int64), done + int(wrong.argmax())
        parts.append(seconds)
        done += len(chunk)
    return np.concatenate(parts), None


@cache
def _reader(form: str) -> Callable[[Any], Seconds]:
    """What turns an array of text into seconds, and into NEVER where it is not written so."""
    if form == "ISO 8601":
        return _iso
    form = form.removesuffix("%z").rstrip()  # the zone is read apart
    letters = [token[1] for token in re.findall("%.", form)]
    if not set(letters) <= set(PARTS) or len(set(letters)) < len(letters):
        return lambda chunk: _by_cell(chunk, lambda cell: datetime.strptime(cell, form))
    pieces = re.split("(%.)", form)
    pattern = "".join(f"(?P<{p[1]}>{PARTS[p[1]]})" if p[:1] == "%" else re.escape(p) for p in pieces)
    return lambda chunk: _by_parts(pc.extract_regex(chunk, f"^{pattern}$"), letters)


def _iso(chunk: Any) -> Seconds:
    try:
        seconds: Seconds = pc.cast(pc.cast(chunk, pa.timestamp("s")), pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return _by_cell(chunk, datetime.fromisoformat)
    return seconds


def _by_cell(chunk: Any, read: Callable[[str], datetime]) -> Seconds:
    def seconds(cell: str) -> int:
        try:
            found = read(cell)
        except ValueError:
            return NEVER
        odd = found.microsecond or found.tzinfo is not None
        return NEVER if odd else (found - datetime(1970, 1, 1)) // timedelta(seconds=1)

    return np.array([seconds(cell) for cell in chunk.to_pylist()], np.int64)


def _by_parts(found: Any, letters: list[str]) -> Seconds:
    """Seconds from the parts of dates, a field for each letter."""
    none, one = np.zeros(len(found), np.int64), np.ones(len(found), np.int64)
    part = {"Y": 1900 * one, "m": one, "d": one, "H": none, "M": none, "S": none}
    for letter, cells in zip(letters, found.flatten(), strict=True):
        part[letter] = _whole(cells, letter)
    month = part.get("b", part.get("B", part["m"]))
    hour, good = part["H"], found.is_valid().to_numpy(zero_copy_only=False)
    if "I" in part:
        good = good & (part["I"] >= 1) & (part["I"] <= 12)
        hour = part["I"] % 12 + 12 * part.get("p", none)
    months = (part["Y"] - 1970) * 12 + month - 1
    days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + part["d"] - 1
    good &= (part["Y"] >= 1) & (month >= 1) & (month <= 12) & (part["d"] >= 1)
    good &= days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) == months
    good &= (hour < 24) & (part["M"] < 60) & (part["S"] < 60)
    return np.where(good, days * STEPS["day"] + hour * 3600 + part["M"] * 60 + part["S"], NEVER)


def _whole(cells: Any, letter: str) -> Seconds:
    """[n] a part of each date as a number; 0 where there is none."""
    if letter in "bB":
        names = pa.array([name[:3] if letter == "b" else name for name in MONTHS])
        number = pc.add(pc.index_in(pc.utf8_lower(cells), names), 1)
    elif letter == "p":
        number = pc.equal(pc.utf8_lower(cells), "pm").cast(pa.int64())
    else:
        number = cells.cast(pa.int64())
    found: Seconds = pc.fill_null(number, 0).to_numpy().astype(np.int64)
    return found
