"""From a file, a table or an array to a series that is checked."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import pyarrow

from ucbf.checks import one_of, whole
from ucbf.data.calendar import Steps, regular
from ucbf.data.columns import named, value_column, values_of
from ucbf.data.dates import date_column, dates_of
from ucbf.data.series import STEPS, Seconds, Series, written
from ucbf.data.tables import Table, table_of
from ucbf.data.zones import ahead_by_clock, ahead_of, zone_of
from ucbf.errors import UserError

GAPS = ("refuse", "zero")


def read_series(
    source: Any,
    column: str | None = None,
    time: str | None = None,
    *,
    least: float | None = None,
    gaps: str = "refuse",
    date_format: str | None = None,
    time_zone: str | None = None,
    rows: int = 2,
) -> Series:
    """Read one column of a file, of a pandas table, or an array.

    Hours and weekdays are those of the local clock that the dates were written by. Where their offset from universal
    time is known, every day of half-hours or hours gets 24 hours: one that the clock skips for daylight saving is the
    mean of its two neighbours, one that comes twice the mean of its values. ``notes`` of the series says so.

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
        What a missing date means: "refuse" it, or "zero", as where days without sales are not written down. Zeros fill
        a gap of two years at most (of twenty, where rows are years), and ten million rows in all.
    date_format
        As of ``datetime.strptime``; one that fits all rows is found if None.
    time_zone
        Such as "Europe/Berlin": the zone in which dates without an offset from universal time were written, or to whose
        clock dates with one are brought.
    rows
        Fewer are an error.
    """
    one_of("gaps", gaps, GAPS)
    zone = None if time_zone is None else zone_of(time_zone, "time_zone")
    table = table_of(source)
    dates = date_column(table, column, date_format) if time is None else named(table, time)
    name = value_column(table, column, dates)
    values = values_of(table, name, least)
    if len(values) < whole("rows", rows, 1):
        raise UserError(f"{table.source}, column {name!r}: {len(values)} rows; at least {rows} are needed")
    numbered = table.rows if table.in_file else None
    if dates is None:
        return Series(values, None, name, table.source, numbered)
    clock, offsets = dates_of(table, dates, date_format)
    table.columns.clear()  # ten million dates as text are large
    pyarrow.default_memory_pool().release_unused()
    by_clock = zone is not None and offsets is None
    if zone is not None and offsets is None:
        offsets = ahead_by_clock(clock, zone)
    elif zone is not None and offsets is not None:
        clock, offsets = _brought(table, dates, clock, offsets, zone)
    steps = Steps(values, clock, offsets, table.rows, by_clock=by_clock)
    done = regular(steps, gaps, zone, lambda i, message: table.error(i, dates, message))
    numbered = done.rows if table.in_file else None
    times = done.clock.astype("datetime64[s]")
    return Series(done.values, times, name, table.source, numbered, done.offsets, done.filled, done.notes)


def _brought(table: Table, dates: str, clock: Seconds, offsets: Seconds, zone: tzinfo) -> tuple[Seconds, Seconds]:
    """[N] the clock of a zone and its offsets, of rows with offsets of their own."""
    ahead = ahead_of(clock - offsets, zone)
    there = clock - offsets + ahead
    moved = there % STEPS["day"] != 0
    if len(clock) > 1 and moved.any() and not (clock % STEPS["day"]).any():
        i = int(moved.argmax())
        raise table.error(i, dates, f"midnight, as in all rows, is {written(int(there[i]))} in {zone}: these are days "
                          "of their own calendar; leave the zone away (time_zone, --time-zone)")  # fmt: skip
    return there, ahead
