"""Read a file, a table or an array as a checked series."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import pyarrow

from ucbf.checks import one_of, whole
from ucbf.data.calendar import regular
from ucbf.data.columns import has_decimal_commas, point_remark, required_column, value_column, values_of
from ucbf.data.dates import date_column, dates_of, other_dates
from ucbf.data.series import STEPS, Seconds, Series, written
from ucbf.data.steps import Steps
from ucbf.data.tables import Table, table_of
from ucbf.data.zones import offsets_at, offsets_by_clock, zone_of
from ucbf.errors import UserError

GAPS = ("refuse", "zero", "unknown")


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
    mean of its two neighbours, one that comes twice the mean of its values. The ``notes`` of the series say so.

    Parameters
    ----------
    source
        A path to a CSV or Parquet file, a pandas DataFrame or Series, or an array [N].
    column
        The column with the values; needed if several hold numbers.
    time
        The column with dates; the first that holds dates, if None. Without one, rows follow each other step by step.
    least
        The least value that is accepted, such as 0 for a demand.
    gaps
        What a missing date means: an error ("refuse"); 0 ("zero"), for files without a row for days without sales; or
        that the value is not known ("unknown"), so that :func:`ucbf.data.uncensored` draws it from what others show.
        A gap of two years at most is filled (of twenty, where rows are years), and ten million rows in all.
    date_format
        As for ``datetime.strptime``. None: one of :data:`ucbf.data.FORMATS` that fits all rows.
    time_zone
        Such as "Europe/Berlin": the zone of dates without an offset from universal time. Dates with an offset are
        converted to it.
    rows
        The least number of rows that is accepted.
    """
    one_of("gaps", gaps, GAPS)
    zone = None if time_zone is None else zone_of(time_zone, "time_zone")
    table = table_of(source)
    dates = date_column(table, column, date_format) if time is None else required_column(table, time)
    name = value_column(table, column, dates)
    said = ("Commas were read as decimal points.",) if has_decimal_commas(table, name) else ()
    said = (*([table.note] if table.note else []), *said, *point_remark(table, name))
    if dates is not None and time is None:
        said = (*said, *(f"Dates are those of column {dates!r}; {other!r} has dates too (time, --time)."
                         for other in other_dates(table, dates, name, date_format)))  # fmt: skip
    values = values_of(table, name, least)
    if len(values) < whole("rows", rows, 1):
        raise UserError(f"{table.source}, column {name!r}: {len(values)} rows; at least {rows} are needed")
    numbered = table.rows if table.in_file else None
    if dates is None:
        return Series(values, None, name, table.source, numbered, notes=said)
    clock, offsets = dates_of(table, dates, date_format)
    table.columns.clear()  # ten million dates as text are large
    pyarrow.default_memory_pool().release_unused()
    offsets_of_zone = zone is not None and offsets is None
    if zone is not None and offsets is None:
        offsets = offsets_by_clock(clock, zone)
    elif zone is not None and offsets is not None:
        clock, offsets = converted(table, dates, clock, offsets, zone)
    steps = Steps(values, clock, offsets, table.rows, offsets_of_zone=offsets_of_zone)
    done = regular(steps, gaps, zone, lambda i, message: table.error(i, dates, message))
    numbered = done.rows if table.in_file else None
    times = done.clock.astype("datetime64[s]")
    notes = (*said, *done.notes)
    return Series(done.values, times, name, table.source, numbered, done.offsets, done.filled, done.unknown, notes)


def converted(table: Table, dates: str, clock: Seconds, offsets: Seconds, zone: tzinfo) -> tuple[Seconds, Seconds]:
    """[N] the local times in a zone, and [N] its offsets, of rows that have offsets of their own."""
    in_zone = offsets_at(clock - offsets, zone)
    there = clock - offsets + in_zone
    moved = there % STEPS["day"] != 0
    if len(clock) > 1 and moved.any() and not (clock % STEPS["day"]).any():
        i = int(moved.argmax())
        raise table.error(i, dates, f"all rows are at midnight, which is {written(int(there[i]))} in {zone}: they are "
                          "days of another calendar; leave out the time zone (time_zone, --time-zone)")  # fmt: skip
    return there, in_zone
