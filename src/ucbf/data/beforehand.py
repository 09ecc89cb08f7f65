"""What is known of steps beforehand, from files: forecasts, by one number or by quantiles, prices, promotions."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from ucbf.data.calendar import OR_ELSE
from ucbf.data.columns import WHICH, required_column
from ucbf.data.dates import date_column, dates_of
from ucbf.data.marks import marks_of
from ucbf.data.reading import converted, read_series
from ucbf.data.series import Series
from ucbf.data.tables import column_names, table_of
from ucbf.data.zones import zone_of
from ucbf.errors import UserError

MEDIANS = ("q50", "p50", "q0.5", "p0.5", "q_50", "median")  # names of a column with the median
QUANTILE = re.compile(r"[qp]_?(\d+(?:\.\d+)?)")  # names of columns with quantiles: q10 or q0.1


class ForecastColumns(NamedTuple):
    """Which columns of a table hold a forecast."""

    middle: str | None  # the one with one number for each step; None: whichever has numbers, or between the quantiles
    quantiles: dict[float, str]  # by their shares, in order; none if there are less than two


def forecast_columns(source: Any, asked: str | None = None) -> ForecastColumns:
    """The column that was asked for, by itself; else the one named forecast, or the median, and those with quantiles.

    Quantiles are named such as q10, q50 and q90, or p0.1, p0.5 and p0.9.
    """
    if asked is not None:
        return ForecastColumns(asked, {})
    found, names = dict[float, str](), column_names(source)
    for name in names:
        match = QUANTILE.fullmatch(name.lower())
        share = 0.5 if name.lower() == "median" else float(match[1]) if match else 0.0
        share = share / 100 if share >= 1 else share
        if 0 < share < 1:
            found.setdefault(share, name)
    known = {name.lower(): name for name in reversed(names)}
    middle = next((known[name] for name in ("forecast", *MEDIANS) if name in known), None)
    return ForecastColumns(middle, dict(sorted(found.items())) if len(found) > 1 else {})


def read_known(source: Any, column: str | None, flag: str, time: str | None = None, **how: Any) -> Series:
    """A column with what is known of each step beforehand; one row will do, and a gap is an error.

    flag: the one that names the column, such as --forecast-column; time, how: as of :func:`ucbf.data.read_series`
    """
    try:
        return read_series(source, column, time, rows=1, **how)
    except UserError as error:
        text = str(error).replace(OR_ELSE, "").replace(WHICH, flag)
        raise UserError(text) from None


def read_marked(source: Any, column: str, *, date_format: str | None = None, time_zone: str | None = None) -> Series:
    """1 for each row that is marked in a column, and 0 for the others; rows may be missing, in any order."""
    table = table_of(source)
    marks = marks_of(table, required_column(table, column)).astype(np.float64)
    dates = date_column(table, column, date_format)
    if dates is None:
        return Series(marks, None, column, table.source)
    clock, offsets = dates_of(table, dates, date_format)
    if time_zone is not None and offsets is not None:
        clock, _ = converted(table, dates, clock, offsets, zone_of(time_zone, "time_zone"))
    return Series(marks, clock.astype("datetime64[s]"), column, table.source)
