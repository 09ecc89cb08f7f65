"""Measured series: read and checked, cut into episodes, tested for the independence that is assumed of W.

A file is CSV (comma, semicolon or tab) or Parquet; pandas tables and columns, and arrays, are taken as well. Every
error names the file, the row as a text editor counts it, and the column.
"""

from __future__ import annotations

from ucbf.data.beforehand import ForecastColumns, forecast_columns, read_known, read_marked
from ucbf.data.censored import Uncensored, product_limit, uncensored
from ucbf.data.cutting import Episodes, episodes
from ucbf.data.date_formats import FORMATS
from ucbf.data.dependence import Independence, independence
from ucbf.data.items import split_items
from ucbf.data.marks import read_marks
from ucbf.data.quantiles import Quantiles
from ucbf.data.reading import GAPS, read_series
from ucbf.data.series import Series
from ucbf.data.tables import column_names
from ucbf.errors import UserError

__all__ = [
    "FORMATS",
    "GAPS",
    "Episodes",
    "ForecastColumns",
    "Independence",
    "Quantiles",
    "Series",
    "Uncensored",
    "UserError",
    "column_names",
    "episodes",
    "forecast_columns",
    "independence",
    "product_limit",
    "read_known",
    "read_marked",
    "read_marks",
    "read_series",
    "split_items",
    "uncensored",
]
