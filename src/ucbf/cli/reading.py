"""What ``ucbf learn`` is told of the series, and where the results go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from ucbf import data
from ucbf.cli.output import can_draw, check_can_draw
from ucbf.errors import UserError


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """What every command is told of the series, and where the results go.

    Parameters
    ----------
    column
        The column with the series; needed if several columns have numbers.
    time
        The column of dates; found by itself if not given.
    date_format
        How dates are written, such as %d.%m.%Y; found by itself if not given.
    time_zone
        Such as Europe/Berlin. Dates without an offset from UTC are read as local times of this zone; dates with one are
        converted to it.
    gaps
        What a missing date means: an error (refuse), that the amount was 0 (zero), or that it is not known and is
        drawn from what other days show (unknown).
    forecast
        CSV or Parquet file with a forecast for each step, known before its episode: columns date and forecast. The
        policy then plans with the forecast of each episode and learns its error. Columns of quantiles, such as q10, q50
        and q90, are used whole where they would have predicted better.
    forecast_column
        The column of that file with the forecast; if not given, the one named forecast, or the median (q50).
    promotions
        The column of the file that marks promoted steps, which are known beforehand: 1 or 0, x or nothing, true or
        false. The mean of each step is then multiplied by what promotions did in the past.
    in_stock
        The column of the file that says whether the stock lasted: 1 if all demand was met, 0 if it sold out, so that
        the demand was at least what was sold. Such demand is drawn from what other days show.
    available
        In place of in_stock: the column with what could be sold in each step, or several columns that add up to it,
        such as stock and received. A step in which all of it was sold counts as sold out.
    item
        The column of the file with the names of items, where a long file has many: each item gets a folder of its own
        in OUT, and OUT/page.html and OUT/items.csv have a row for each. Items that are done are skipped when the
        command is given again; --forecast needs this column, too.
    pictures
        Write pictures; the default, except with --item.
    train
        Share of the episodes to learn from; the policy is judged by the others.
    pool
        Learn one distribution for all steps, around the mean of each step. This is the default with fewer than 20
        episodes of a kind to learn from (where an episode is a day, weekdays and weekends are two kinds).
    half_life
        After how many episodes one counts half as much as the last. If not given, chosen by what it would have
        predicted; all count alike unless another is clearly better. inf: all count alike.
    config
        TOML file with costs and sizes, such as order_cost = 150; flags override it.
    out
        Folder of the results; results/NAME if not given.
    """

    column: str | None = None
    time: str | None = None
    date_format: str | None = None
    time_zone: str | None = None
    gaps: Literal["refuse", "zero", "unknown"] = "refuse"
    forecast: Path | None = None
    forecast_column: str | None = None
    promotions: str | None = None
    in_stock: str | None = None
    available: Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative=())] = ()
    item: str | None = None
    pictures: bool | None = None
    train: float = 0.7
    pool: bool | None = None
    half_life: float | None = None
    config: Path | None = None
    out: Path | None = None

    @property
    def files(self) -> list[Path]:
        """The inputs among these."""
        return [path for path in (self.forecast, self.config) if path is not None]

    def check(self) -> None:
        """A UserError for flags that do not go together, and for pictures that cannot be drawn."""
        if self.pictures:
            check_can_draw()
        if self.forecast_column is not None and self.forecast is None:
            raise UserError(
                f"forecast_column is {self.forecast_column!r} without a forecast; give its file (--forecast)"
            )
        if self.promotions is not None and self.forecast is not None:
            raise UserError(
                f"promotions ({self.promotions!r}) and a forecast ({self.forecast}) are both given; give one of them: "
                "a forecast should know of promotions"
            )

        if self.in_stock is not None and self.available:
            raise UserError(
                f"in_stock ({self.in_stock!r}) and available ({', '.join(self.available)}) are both given; give one of "
                "them: both say in which steps the stock ran out"
            )

    def draws(self, usually: bool = True) -> bool:
        """Whether to write pictures, where nothing that draws is missing."""
        return usually and can_draw() if self.pictures is None else self.pictures

    def series(self, source: Any, column: str | None, least: float | None) -> data.Series:
        """A column of a file."""
        return data.read_series(
            source,
            column,
            self.time,
            least=least,
            gaps=self.gaps,
            date_format=self.date_format,
            time_zone=self.time_zone,
        )

    def known_series(self, source: Any, column: str | None, flag: str) -> data.Series:
        """A column with what is known beforehand, such as a price; flag: the one that names the column."""
        time = self.time if self.time is None or self.time in data.column_names(source) else None
        return data.read_known(source, column, flag, time, date_format=self.date_format, time_zone=self.time_zone)
