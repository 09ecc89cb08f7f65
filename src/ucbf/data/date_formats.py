"""Dates written as text: the formats that are understood, and reading them as seconds since 1970."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ucbf.data.series import STEPS, Seconds

FORMATS = (
    "ISO 8601", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%B %d, %Y", "%m/%d/%Y %I:%M %p",
    "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m",
    "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d/%m/%Y", "%d/%m/%Y %H:%M", "%m/%d/%Y", "%m/%d/%Y %H:%M", "%Y%m%d", "%Y/%m/%d",
    "%d-%m-%Y", "%d-%m-%Y %H:%M", "%m-%d-%Y", "%m-%d-%Y %H:%M", "%Y",
)  # fmt: skip
MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
PARTS = {
    "Y": r"\d{4}", "m": r"\d{1,2}", "d": r"\d{1,2}", "H": r"\d{1,2}", "I": r"\d{1,2}", "M": r"\d{1,2}", "S": r"\d{1,2}",
    "b": "[A-Za-z]{3}", "B": "[A-Za-z]+", "p": "[AaPp][Mm]",
}  # fmt: skip
WITH_OFFSET = r"^(?P<clock>.*\d:\d\d(?::\d\d(?:[.,]\d+)?)?) ?(?P<offset>[Zz]|[+-]\d\d(?::?[0-5]\d)?)$"
FIRST, LAST = -62_135_596_800, 253_402_300_799  # the first second of the year 1, the last of 9999
NOT_A_DATE = FIRST - 1  # within this file


def is_date(cell: str) -> bool:
    """Whether a cell is a date in any of ``FORMATS``."""
    return bool(fitting_formats(cell, None))


def fitting_formats(text: str, date_format: str | None) -> list[str]:
    """The formats that fit a text, out of ``FORMATS`` or ``date_format`` alone; the quickest to read first."""
    clock = re.match(WITH_OFFSET, text)
    one = pa.chunked_array([[clock["clock"] if clock else text]], pa.string())
    return [form for form in (FORMATS if date_format is None else (date_format,)) if read_dates(one, form)[1] is None]


def read_dates(text: Any, form: str) -> tuple[Seconds, int | None]:
    """[N] the seconds of a column of text in one format, and None; else nothing, and the first row that does not fit.

    Offsets from universal time must have been split off before.
    """
    read, parts, done = _reader(form), [np.empty(0, np.int64)], 0
    for chunk in text.chunks:
        seconds = read(chunk)
        wrong = (seconds < FIRST) | (seconds > LAST)
        if wrong.any():
            return np.empty(0, np.int64), done + int(wrong.argmax())
        parts.append(seconds)
        done += len(chunk)
    return np.concatenate(parts), None


def offset_seconds(offset: str) -> int:
    """Seconds ahead of universal time, of an offset such as Z, +01, +0100 or +01:00."""
    if offset in "Zz":
        return 0
    digits = offset[1:].replace(":", "").ljust(4, "0")
    return (-1 if offset[0] == "-" else 1) * (3600 * int(digits[:2]) + 60 * int(digits[2:]))


@cache
def _reader(form: str) -> Callable[[Any], Seconds]:
    """A function that turns an array of text into seconds, or NOT_A_DATE where a cell does not have the format."""
    if form == "ISO 8601":
        return _read_iso
    form = form.removesuffix("%z").rstrip()  # the offset is read apart
    letters = [token[1] for token in re.findall("%.", form)]
    if not set(letters) <= set(PARTS) or len(set(letters)) < len(letters):
        return lambda chunk: _read_cells(chunk, lambda cell: datetime.strptime(cell, form))
    pieces = re.split("(%.)", form)
    pattern = "".join(f"(?P<{p[1]}>{PARTS[p[1]]})" if p[:1] == "%" else re.escape(p) for p in pieces)
    return lambda chunk: _seconds_of(pc.extract_regex(chunk, f"^{pattern}$"), letters)


def _read_iso(chunk: Any) -> Seconds:
    try:
        seconds: Seconds = pc.cast(pc.cast(chunk, pa.timestamp("s")), pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return _read_cells(chunk, datetime.fromisoformat)
    return seconds


def _read_cells(chunk: Any, read: Callable[[str], datetime]) -> Seconds:
    """Seconds, cell by cell: slow, for what cannot be read as a column."""

    def seconds(cell: str) -> int:
        try:
            found = read(cell)
        except ValueError:
            return NOT_A_DATE
        odd = found.microsecond or found.tzinfo is not None
        return NOT_A_DATE if odd else (found - datetime(1970, 1, 1)) // timedelta(seconds=1)

    return np.array([seconds(cell) for cell in chunk.to_pylist()], np.int64)


def _seconds_of(dates: Any, letters: list[str]) -> Seconds:
    """Seconds of dates that are split into their parts. dates: a struct array with a field for each letter."""
    none, one = np.zeros(len(dates), np.int64), np.ones(len(dates), np.int64)
    part = {"Y": 1900 * one, "m": one, "d": one, "H": none, "M": none, "S": none}
    for letter, cells in zip(letters, dates.flatten(), strict=True):
        part[letter] = _number_of(cells, letter)
    month = part.get("b", part.get("B", part["m"]))
    hour, good = part["H"], dates.is_valid().to_numpy(zero_copy_only=False)
    if "I" in part:
        good = good & (part["I"] >= 1) & (part["I"] <= 12)
        hour = part["I"] % 12 + 12 * part.get("p", none)
    months = (part["Y"] - 1970) * 12 + month - 1
    days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + part["d"] - 1
    good &= (part["Y"] >= 1) & (month >= 1) & (month <= 12) & (part["d"] >= 1)
    good &= days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) == months
    good &= (hour < 24) & (part["M"] < 60) & (part["S"] < 60)
    return np.where(good, days * STEPS["day"] + hour * 3600 + part["M"] * 60 + part["S"], NOT_A_DATE)


def _number_of(cells: Any, letter: str) -> Seconds:
    """[n] one part of each date as a number; 0 where it is missing."""
    if letter in "bB":
        names = pa.array([name[:3] if letter == "b" else name for name in MONTHS])
        number = pc.add(pc.index_in(pc.utf8_lower(cells), names), 1)
    elif letter == "p":
        number = pc.equal(pc.utf8_lower(cells), "pm").cast(pa.int64())
    else:
        number = cells.cast(pa.int64())
    found: Seconds = pc.fill_null(number, 0).to_numpy().astype(np.int64)
    return found
