"""Flags of ``ucbf act`` and ``ucbf observe`` for what is known of steps beforehand: forecasts, prices, promotions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import Parameter

from ucbf.errors import UserError

if TYPE_CHECKING:
    from ucbf.following.model import Model


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Beforehand:
    """What is known beforehand of a step, and of the rest of its episode.

    Parameters
    ----------
    forecast
        After ucbf learn --forecast: CSV or Parquet file with the forecasts, by one number or by quantiles.
    forecast_column
        The column of that file; if not given, the one named forecast, or the median (q50), and those with quantiles.
    price_file
        After ucbf learn battery --price-file: CSV or Parquet file with the prices.
    price_column
        The column of that file with the prices.
    promotions
        After ucbf learn --promotions: CSV or Parquet file of dates, with the column that marks promoted steps. Steps
        that are not in it are not promoted; none is if it is not given.
    """

    forecast: Path | None = None
    forecast_column: str | None = None
    price_file: Path | None = None
    price_column: str | None = None
    promotions: Path | None = None

    @property
    def is_given(self) -> bool:
        """Whether anything is."""
        return any(value is not None for value in vars(self).values())

    def read(self, model: Model, date_format: str | None) -> dict[str, Any]:
        """The same by the names that act and observe have for it."""
        if not self.is_given:
            return {}
        from ucbf import data
        from ucbf.following.known import PRICES, PROFILE, PROMOTED, QUANTILES

        if self.forecast_column is not None and self.forecast is None:
            raise UserError(f"--forecast-column is {self.forecast_column!r} without a file; give it (--forecast)")
        if self.price_column is not None and self.price_file is None:
            raise UserError(f"--price-column is {self.price_column!r} without a file; give it (--price-file)")
        how = {"date_format": date_format, "time_zone": model.calendar.time_zone}
        known: dict[str, Any] = {}
        if self.forecast is not None:
            middle, quantiles = data.forecast_columns(self.forecast, self.forecast_column)
            flag = "--forecast-column"
            if QUANTILES in model.varies:
                known[QUANTILES] = {s: data.read_known(self.forecast, c, flag, **how) for s, c in quantiles.items()}
            if QUANTILES not in model.varies or middle is not None:
                known[PROFILE] = data.read_known(self.forecast, middle, flag, **how)
        if self.price_file is not None:
            known[PRICES] = data.read_known(self.price_file, self.price_column, "--price-column", **how)
        if self.promotions is not None:
            column = PROMOTED if model.promotions is None else model.promotions.column
            known[PROMOTED] = data.read_marked(self.promotions, column, **how)
        return known
