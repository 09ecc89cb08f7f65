"""Measured series: read and checked, cut into episodes, tested for the independence that is assumed of W.

A file is CSV (comma, semicolon or tab) or Parquet; pandas tables and columns, and arrays, are taken as well. Every
error names the file, the row as a text editor counts it, and the column.
"""

from __future__ import annotations

from ucbf.data.cutting import Episodes, episodes
from ucbf.data.date_formats import FORMATS
from ucbf.data.dependence import Independence, independence
from ucbf.data.reading import GAPS, read_series
from ucbf.data.series import Series
from ucbf.errors import UserError

__all__ = [
    "FORMATS",
    "GAPS",
    "Episodes",
    "Independence",
    "Series",
    "UserError",
    "episodes",
    "independence",
    "read_series",
]
