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

QUANTILE = re.compile(r"[qp]_?(\d+(?:\.\d+)?)")  # names of columns with quantiles: q10, q0.1 or q025
OR_NAME = "name the column with one number for each step (--forecast-column)"


class ForecastColumns(NamedTuple):
    """Which columns of a table hold a forecast."""

    middle: str | None  # the one with one number for each step; None: whichever has numbers, or between the quantiles
    quantiles: dict[float, str]  # by their shares, in order; none if there are less than two


def forecast_columns(source: Any, asked: str | None = None) -> ForecastColumns:
    """The column that was asked for, by itself; else the one named forecast, or the median, and those with quantiles.

    Quantiles are named such as q10, q50 and q90, or p0.1, p0.5 and p0.9, or q025 and q975 for 2.5 % and 97.5 %. A
    UserError for names that look so and cannot be used, unless a column was asked for.
    """
    if asked is not None:
        return ForecastColumns(asked, {})
    found, names = dict[float, str](), column_names(source)
    for name in names:
        share = _share(name.lower())
        if share is None:
            continue
        if not 0 < share < 1:
            raise UserError(f"column {name!r} is no quantile between 0 and 100 %; leave it out, or {OR_NAME}")
        if share in found:
            raise UserError(
                f"columns {found[share]!r} and {name!r} are the same quantile, {100 * share:g} %; leave one out, or "
                f"{OR_NAME}"
            )
        found[share] = name
    if len(found) == 1 and 0.5 not in found:
        share, name = found.popitem()
        raise UserError(f"column {name!r} is the only quantile, {100 * share:g} %; give another, or {OR_NAME}")
    middle = next((name for name in names if name.lower() == "forecast"), found.get(0.5))
    return ForecastColumns(middle, dict(sorted(found.items())) if len(found) > 1 else {})


def _share(name: str) -> float | None:
    """The share that a column is the quantile of, by its name; None if that looks like none.

    Digits alone are decimals: q05 is 0.05, q975 is 0.975, but q5 is 5 %, and q100 is all.
    """
    if name == "median":
        return 0.5
    match = QUANTILE.fullmatch(name)
    if match is None:
        return None
    digits = match[1]
    if "." in digits:
        return float(digits) / (1 if float(digits) < 1 else 100)
    return 1.0 if digits == "100" else int(digits) / 10 ** max(len(digits), 2)


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
