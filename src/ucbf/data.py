"""Measured series: read and checked, cut into episodes, tested for the independence that is assumed of W.

A file is CSV (comma, semicolon or tab) or Parquet; pandas tables and columns, and arrays, are taken as well. Every
error names the file, the row as a text editor counts it, and the column.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers, one_of, real, whole
from ucbf.errors import UserError

FORMATS = (
    "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%B %d, %Y", "%m/%d/%Y %I:%M %p",
    "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m",
    "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d/%m/%Y", "%d/%m/%Y %H:%M", "%m/%d/%Y", "%m/%d/%Y %H:%M", "%Y%m%d", "%Y/%m/%d",
    "%Y", "ISO 8601",
)  # fmt: skip
MISSING = {"", "na", "n/a", "nan", "null", "none", "-", "."}
GAPS = ("refuse", "zero")
LAGS, SHUFFLES = 10, 999
WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
YEAR = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True, eq=False)
class Series:
    """Numbers in the order of time."""

    values: NDArray[np.float64]  # [N]
    times: tuple[datetime, ...] | None  # [N], where the file says them
    name: str  # of the column
    source: str  # where it is from
    rows: tuple[int | None, ...] | None = None  # [N] of the file, where there is one; None for a gap that was filled

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        span = "" if self.times is None else f", {self.times[0]} to {self.times[-1]}"
        return f"Series({len(self)} values of {self.name!r} from {self.source}{span})"

    def part(self, first: int, stop: int) -> Series:
        """The values from one to another."""
        times = None if self.times is None else self.times[first:stop]
        rows = None if self.rows is None else self.rows[first:stop]
        return Series(self.values[first:stop], times, self.name, self.source, rows)

    def place(self, i: int) -> str:
        """Where value i stands: its row, and its date where there is one."""
        row = None if self.rows is None else self.rows[i]
        date = "" if self.times is None else str(self.times[i]).removesuffix(" 00:00:00")
        if row is None:
            return date or f"value {i + 1}"
        return f"row {row} ({date})" if date else f"row {row}"

    @property
    def spacing(self) -> str | None:
        """Whether times are a half-hour, hour, day, week, month or year apart; None where there are none."""
        if self.times is None or len(self) < 2:
            return None
        return _spacing(self.times)


@dataclass(frozen=True, eq=False)
class Episodes:
    """A series cut into episodes of H steps."""

    amounts: NDArray[np.float64]  # [K, H]
    names: tuple[str, ...] | None  # [H] of the steps, where the calendar gives them some
    starts: tuple[str, ...]  # [K] when each began
    kinds: tuple[str, ...]  # [K] of each: "weekday" or "weekend" where an episode is a day, else ""
    dropped: int  # values before the first whole episode and after the last
    series: Series
    begin: int = 0  # where in the series the first of them begins

    def __len__(self) -> int:
        return len(self.amounts)

    def __repr__(self) -> str:
        return f"Episodes({len(self)} of {self.amounts.shape[1]} steps, from {self.starts[0] if len(self) else 'none'})"

    def split(self, share: float) -> tuple[Episodes, Episodes]:
        """The first ``share`` of the episodes, to learn from, and the rest, to judge by."""
        share = real("share", share, 0, 1, open_low=True)
        cut = min(max(round(share * len(self)), 1), len(self))
        return self.part(0, cut), self.part(cut, len(self))

    def part(self, first: int, stop: int) -> Episodes:
        """The episodes from one to another."""
        cut = slice(first, stop)
        begin = self.begin + first * self.amounts.shape[1]
        return Episodes(
            self.amounts[cut], self.names, self.starts[cut], self.kinds[cut], self.dropped, self.series, begin
        )

    def place(self, k: int, h: int) -> str:
        """Where step h of episode k stands in the series."""
        return self.series.place(self.begin + k * self.amounts.shape[1] + h)

    @property
    def profile(self) -> NDArray[np.float64]:
        """[H] the mean of every step."""
        mean: NDArray[np.float64] = self.amounts.mean(axis=0)
        return mean


# -- reading ------------------------------------------------------------------------------------------------


def read_series(
    source: Any,
    column: str | None = None,
    time: str | None = None,
    *,
    least: float | None = None,
    gaps: str = "refuse",
    date_format: str | None = None,
    rows: int = 2,
) -> Series:
    """Read one column of a file, of a pandas table, or an array.

    Parameters
    ----------
    source
        A path to a CSV or Parquet file, a pandas DataFrame or Series, or an array [N].
    column
        Which one; needed if there are several with numbers.
    time
        The column with dates; the first that holds dates, if None. Without one, rows follow each other step by step.
    least
        A number below it is an error: 0 for a demand.
    gaps
        What a missing date means: "refuse" it, or "zero", as where days without sales are not written down.
    date_format
        As of ``datetime.strptime``; one that fits all rows is found if None.
    rows
        Fewer are an error.
    """
    one_of("gaps", gaps, GAPS)
    table = _table(source)
    dates = _date_column(table, time, column, date_format)
    name = _value_column(table, column, dates)
    values = _numbers(table, name, least)
    if len(values) < whole("rows", rows, 1):
        raise UserError(f"{table.source}, column {name!r}: {len(values)} rows; at least {rows} are needed")
    in_file = isinstance(source, str | os.PathLike)
    if dates is None:
        return Series(values, None, name, table.source, tuple(table.rows) if in_file else None)
    times = _times(table, dates, date_format)
    values, times, numbered = _regular(table, dates, values, times, gaps)
    return Series(values, tuple(times), name, table.source, tuple(numbered) if in_file else None)


@dataclass(frozen=True, eq=False)
class _Table:
    source: str
    columns: dict[str, list[Any]]
    rows: Sequence[int]  # what a text editor calls the row of each value; counted from 0 where there is no text

    def error(self, i: int, column: str, message: str) -> UserError:
        return UserError(f"{self.source}, row {self.rows[i]}, column {column!r}: {message}")


def _table(source: Any) -> _Table:
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_dir():
            raise UserError(f"{path} is a folder; give a file")
        if not path.is_file():
            raise UserError(f"there is no file {str(path)!r}")
        return _parquet(path) if path.suffix.lower() in {".parquet", ".pq"} else _csv(path)
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):  # a pandas table, by its manners
        columns = {str(name): list(source[name]) for name in source.columns}
        if type(getattr(source, "index", None)).__name__ == "DatetimeIndex":
            columns = {"index": list(source.index), **columns}
        return _Table("the table", columns, range(len(source)))
    if hasattr(source, "index") and hasattr(source, "to_numpy"):  # a pandas column
        columns = {str(source.name or "value"): list(source.to_numpy())}
        if type(source.index).__name__ == "DatetimeIndex":
            columns = {"index": list(source.index), **columns}
        return _Table("the series", columns, range(len(source)))
    values = numbers("series", source)
    if values.ndim != 1:
        raise ValueError(f"series has shape {values.shape}; give [N]")
    return _Table("the array", {"value": list(values)}, range(len(values)))


def _csv(path: Path) -> _Table:
    if path.read_bytes()[:2] == b"PK":
        raise UserError(f"{path} is a workbook, not a CSV file; save it as CSV in UTF-8")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path} is not text in UTF-8; save it as a CSV file in UTF-8") from None
    if not text.strip():
        raise UserError(f"{path}, row 1: empty; a CSV file begins with the names of its columns")
    delimiter = max(",;\t", key=text.lstrip("\n").split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        lines = [(reader.line_num, [cell.strip() for cell in row]) for row in reader]
    except csv.Error as error:
        raise UserError(f"{path}, row {reader.line_num}: {error}; is it a CSV file?") from None
    lines = [(row, cells) for row, cells in lines if any(cells)]
    (first, header), body = lines[0], lines[1:]
    if all(_number(cell) is not None for cell in header):
        raise UserError(f"{path}, row {first}: numbers instead of the names of columns; put a line of names before it")
    for row, cells in body:
        if len(cells) != len(header):
            raise UserError(
                f"{path}, row {row}: {len(cells)} cells under {len(header)} names; does {delimiter!r} separate them?"
            )
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"{path}, row {first}: two columns are named {twice!r}; give each its name")
    if any(_number(cell) is not None for cell in header) and any(_fits(cell, FORMATS) for cell in header):
        raise UserError(f"{path}, row {first}: values instead of the names of columns; put a line of names before it")
    if not body:
        raise UserError(f"{path}, row {first}: names of columns and nothing below them")
    columns = {name: [cells[i] for _, cells in body] for i, name in enumerate(header)}
    return _Table(str(path), columns, [row for row, _ in body])


def _parquet(path: Path) -> _Table:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise UserError(f"{path} is not a Parquet file that can be read: {error}") from None
    columns = {name: table[name].to_pylist() for name in table.column_names}
    return _Table(str(path), columns, range(table.num_rows))


def _number(cell: Any) -> float | None:
    if isinstance(cell, bool) or cell is None:
        return None
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def _holds_numbers(cells: Sequence[Any]) -> bool:
    """Whether any cell is a number: the first may be empty."""
    found = (_number(cell) for cell in cells)
    return any(number is not None and math.isfinite(number) for number in found)


def _value_column(table: _Table, column: str | None, dates: str | None) -> str:
    names = [name for name in table.columns if name != dates]
    if column is not None:
        if column not in table.columns:
            raise UserError(f"{table.source} has no column {column!r}; it has {', '.join(map(repr, table.columns))}")
        return column
    if len(names) == 1:
        return names[0]
    numeric = [n for n in names if _holds_numbers(table.columns[n])]
    if len(numeric) != 1:
        found = ", ".join(map(repr, numeric or names)) or "none"
        if not numeric:
            raise UserError(f"{table.source}: no column holds numbers; there are {found}")
        raise UserError(f"{table.source}: which column? Those with numbers are {found}; say which (column, --column)")
    return numeric[0]


def _numbers(table: _Table, name: str, least: float | None) -> NDArray[np.float64]:
    cells = table.columns[name]
    values = np.empty(len(cells))
    for i, cell in enumerate(cells):
        value = _number(cell)
        nothing = cell is None or (isinstance(cell, str) and cell.lower() in MISSING)
        if nothing or (value is not None and np.isnan(value)):
            raise table.error(
                i,
                name,
                "no value; fill it in, or leave the row out and say that a gap means zero (gaps='zero' or --gaps zero)",
            )
        if value is None:
            hint = (
                "; write numbers with a decimal point and without separators of thousands" if "," in str(cell) else ""
            )
            raise table.error(i, name, f"{str(cell)[:40]!r} is not a number{hint}")
        if not np.isfinite(value):
            raise table.error(i, name, f"{value} is not a finite number")
        if least is not None and value < least:
            raise table.error(i, name, f"{value:g} is below {least:g}, the least that makes sense here; correct it")
        values[i] = value
    return values


def _date_column(table: _Table, time: str | None, column: str | None, date_format: str | None) -> str | None:
    if time is not None:
        if time not in table.columns:
            raise UserError(f"{table.source} has no column {time!r}; it has {', '.join(map(repr, table.columns))}")
        return time
    formats = FORMATS if date_format is None else (date_format,)
    for name, cells in table.columns.items():
        if name == column or not cells:
            continue
        if _fits(cells[0], formats) and (not _is_plain(cells[0]) or name.lower() in {"date", "day", "time", "year"}):
            return name
    for name, cells in table.columns.items():  # a column that looks like one and is not understood is not passed over
        text = cells and name != column and isinstance(cells[0], str) and not _is_plain(cells[0])
        if text and (any(word in name.lower() for word in DATE_WORDS) or any(c.isdigit() for c in cells[0])):
            raise table.error(0, name, f"{cells[0][:40]!r} is not a date that is understood; say how it is written "
                              "(date_format, --date-format), or leave the column out")  # fmt: skip
    return None


DATE_WORDS = ("date", "time", "day", "week", "month", "year", "hour", "period")


def _is_plain(cell: Any) -> bool:
    """A number, which may be a year or a day, or just a number."""
    return _number(cell) is not None


def _fits(cell: Any, formats: Iterable[str]) -> list[str]:
    if hasattr(cell, "year"):
        return ["datetime"]
    return [form for form in formats if _parsed(cell, form) is not None]


def _parsed(cell: Any, form: str) -> datetime | None:
    """A date without a time zone: what has one is turned into universal time."""
    try:
        if hasattr(cell, "year"):
            found = cell if isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)
        else:
            text = f"{cell:g}" if isinstance(cell, float) else str(cell)
            found = datetime.fromisoformat(text) if form == "ISO 8601" else datetime.strptime(text, form)
    except ValueError:
        return None
    if found != found:  # pandas' way of saying that there is none
        return None
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


def _times(table: _Table, name: str, date_format: str | None) -> list[datetime]:
    """The dates of all rows, in the one format that fits them all."""
    cells = table.columns[name]
    formats = FORMATS if date_format is None else (date_format,)
    possible = _fits(cells[0], formats) if cells else []
    if not possible:
        how = (
            f"written as {date_format}" if date_format else "that is understood; say how it is written (--date-format)"
        )
        raise table.error(0, name, f"{str(cells[0])[:40]!r} is not a date {how}")
    read = {form: [_parsed(cell, form) for cell in cells] for form in possible}
    whole_ones = {form: times for form, times in read.items() if None not in times}
    if not whole_ones:
        form = max(read, key=lambda form: _first_bad(read[form]))
        i = _first_bad(read[form])
        raise table.error(
            i, name, f"{str(cells[i])[:40]!r} is not a date like the first, {str(cells[0])!r}; write all in one way"
        )
    whole_ones = {form: times for form, times in whole_ones.items() if form != "ISO 8601" or len(whole_ones) == 1}
    if len(whole_ones) > 1 and len({tuple(times) for times in whole_ones.values()}) > 1:
        raise table.error(
            0, name, f"{cells[0]!r} may mean {' or '.join(whole_ones)}; say which (date_format, --date-format)"
        )
    return [t for t in next(iter(whole_ones.values())) if t is not None]


def _first_bad(times: Sequence[datetime | None]) -> int:
    return next(i for i, t in enumerate(times) if t is None)


STEPS = {"half-hour": timedelta(minutes=30), "hour": timedelta(hours=1), "day": timedelta(1), "week": timedelta(7)}


def _start(t: datetime, spacing: str) -> datetime:
    """The beginning of a month or a year, where one is all that a date stands for."""
    return t.replace(day=1) if spacing == "month" else t.replace(month=1, day=1) if spacing == "year" else t


def _next(t: datetime, spacing: str) -> datetime:
    if spacing == "month":
        return t.replace(year=t.year + t.month // 12, month=t.month % 12 + 1)
    return t.replace(year=t.year + 1) if spacing == "year" else t + STEPS[spacing]


def _spacing(times: Sequence[datetime], smallest: bool = False) -> str | None:
    """What most of the first rows are apart, or the smallest that any are; None for one without a name."""
    steps = sorted(b - a for a, b in itertools.pairwise(times if smallest else times[:50]))
    usual = steps[0 if smallest else len(steps) // 2]
    if timedelta(28) <= usual <= timedelta(31):
        return "month"
    if timedelta(365) <= usual <= timedelta(366):
        return "year"
    return next((name for name, step in STEPS.items() if step == usual), None)


def _regular(
    table: _Table, name: str, values: NDArray[np.float64], times: list[datetime], gaps: str
) -> tuple[NDArray[np.float64], list[datetime], list[int | None]]:
    """The same with gaps filled, or refused, and the row of each; None for a gap."""
    if len(times) < 2:
        return values, times, list(table.rows)
    for i, (a, b) in enumerate(itertools.pairwise(times)):
        if b <= a:
            order = "the same time again" if a == b else f"before the row above ({a})"
            raise table.error(i + 1, name, f"{b}: {order}; sort the rows, one for each time")
    spacing = _spacing(times, smallest=gaps == "zero")
    if spacing is None:
        raise table.error(
            1, name, f"rows are {times[1] - times[0]} apart; half-hours, hours, days, weeks, months, years"
        )
    times = [_start(t, spacing) for t in times]
    filled, at = [values[0]], [times[0]]
    rows: list[int | None] = [table.rows[0]]
    for i in range(1, len(times)):
        due = _next(at[-1], spacing)
        while due < times[i]:
            if gaps == "refuse":
                raise table.error(
                    i,
                    name,
                    f"{due} is missing before {times[i]}; fill it in, or say that it means zero (gaps='zero' or "
                    "--gaps zero)",
                )
            filled.append(0.0)
            at.append(due)
            rows.append(None)
            due = _next(due, spacing)
        if due != times[i]:
            raise table.error(i, name, f"{times[i]} is not a whole {spacing} after the row above")
        filled.append(float(values[i]))
        at.append(times[i])
        rows.append(table.rows[i])
    return np.array(filled), at, rows


# -- episodes -----------------------------------------------------------------------------------------------


def episodes(series: Series, horizon: int, least: int = 2) -> Episodes:
    """Cut a series into episodes of ``horizon`` steps, from the first Monday, midnight or January where that fits."""
    H = whole("horizon", horizon, 1)
    first, names = 0, None
    spacing = series.spacing
    if series.times is not None and spacing is not None:
        begins = {("day", 7): _is_monday, ("hour", 24): _is_midnight, ("half-hour", 48): _is_midnight,
                  ("month", 12): _is_january, ("hour", 168): _is_monday_midnight}.get((spacing, H))  # fmt: skip
        if begins is not None:
            found = next((i for i, t in enumerate(series.times) if begins(t)), None)
            if found is not None:
                first, names = found, _step_names(spacing, H)
    K = (len(series) - first) // H
    if whole("least", least, 1) > K:
        raise UserError(
            f"{series.source}, column {series.name!r}: {len(series)} rows make {max(K, 0)} whole episodes of {H} "
            f"steps; at least {least} are needed: give more rows, or a shorter horizon"
        )
    part = series.part(first, first + K * H)
    starts = tuple(str(i * H + 1) if part.times is None else str(part.times[i * H]) for i in range(K))
    kinds = ("",) * K
    if part.times is not None and (spacing, H) in {("hour", 24), ("half-hour", 48)}:
        kinds = tuple("weekend" if part.times[i * H].weekday() >= 5 else "weekday" for i in range(K))
    return Episodes(part.values.reshape(K, H), names, starts, kinds, len(series) - K * H, series, first)


def _is_monday(t: datetime) -> bool:
    return t.weekday() == 0


def _is_midnight(t: datetime) -> bool:
    return t.hour == t.minute == 0


def _is_monday_midnight(t: datetime) -> bool:
    return _is_monday(t) and _is_midnight(t)


def _is_january(t: datetime) -> bool:
    return t.month == 1


def _step_names(spacing: str, H: int) -> tuple[str, ...]:
    if spacing == "day":
        return WEEK
    if spacing == "month":
        return YEAR
    if H == 168:
        return tuple(f"{day} {hour:02d}:00" for day in WEEK for hour in range(24))
    minutes = 1440 // H
    return tuple(f"{h * minutes // 60:02d}:{h * minutes % 60:02d}" for h in range(H))


# -- laws ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Independence:
    """Whether what is left after the profile is independent from step to step, as is assumed of W."""

    lag_one: float  # correlation of neighbours
    strongest: tuple[int, float]  # the lag with the largest correlation, and that
    p: float  # how often a random order of the same numbers looks as dependent
    n: int

    @property
    def ok(self) -> bool | None:
        """Whether nothing speaks against it, at 1 %; None where there is too little to tell."""
        return None if np.isnan(self.p) else self.p >= 0.01

    def __str__(self) -> str:
        lag, correlation = self.strongest
        found = f"neighbouring steps correlate by {self.lag_one:.2f}"
        if lag != 1:
            found += f", steps {lag} apart by {correlation:.2f}"
        often = f"a random order looks as dependent {self.p:.1%} of the time" if self.p > 0.001 else (
            "not one random order in a thousand looks as dependent"
        )  # fmt: skip
        if self.ok is None:
            return "independence cannot be tested from one episode"
        if self.ok:
            return f"nothing speaks against independence: {found} ({self.n} steps; {often})"
        return f"the steps are NOT independent: {found} ({self.n} steps; {often})"


def independence(amounts: ArrayLike, kinds: Sequence[str] | None = None, seed: int = 0) -> Independence:
    """Test the independence of [K, H] amounts or disturbances, once each step's mean and spread are taken out.

    The sum of the squared correlations at lags 1 to 10, against the same when every step is given to another episode,
    at random: exact, whatever the law of each step.

    Parameters
    ----------
    kinds
        [K] of each episode: only those of a kind, weekdays or weekends, are taken to be alike.
    """
    table = numbers("amounts", amounts)
    if table.ndim != 2 or table.size < 4:
        raise ValueError(f"amounts has shape {table.shape}; give [K, H] with at least four numbers")
    of = np.array(kinds if kinds is not None else [""] * len(table))
    alike = [np.flatnonzero(of == kind) for kind in dict.fromkeys(of.tolist())]
    left = np.zeros_like(table)
    for members in alike:
        part = table[members]
        spread = part.std(axis=0)
        left[members] = (part - part.mean(axis=0)) / np.where(spread > 0, spread, 1)
    lags = min(LAGS, left.size // 2)
    found = _correlations(left.ravel(), lags)
    rng = np.random.default_rng(whole("seed", seed, 0))
    testable = max(map(len, alike)) > 1
    as_strong = 0.0 if testable else np.nan
    for _ in range(SHUFFLES if testable else 0):
        shuffled = np.empty_like(left)
        for members in alike:
            shuffled[members] = rng.permuted(left[members], axis=0)
        as_strong += float(np.sum(_correlations(shuffled.ravel(), lags) ** 2)) >= float(np.sum(found**2))
    top = int(np.abs(found).argmax())
    return Independence(float(found[0]), (top + 1, float(found[top])), (1 + as_strong) / (1 + SHUFFLES), left.size)


def _correlations(x: NDArray[np.float64], lags: int) -> NDArray[np.float64]:
    x = x - x.mean()
    total = float(x @ x) or 1.0
    return np.array([float(x[:-lag] @ x[lag:]) / total for lag in range(1, lags + 1)])
