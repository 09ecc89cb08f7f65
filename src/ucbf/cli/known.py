"""What is known before an episode, for ``ucbf learn``: prices, a forecast, promotions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ucbf import data
from ucbf.advice import Remark, forecast_remark
from ucbf.advice.promotions import promotions
from ucbf.advice.result import Advice
from ucbf.cli.matching import matched
from ucbf.cli.reading import Reading
from ucbf.systems import Preset
from ucbf.wording import show_count

FEWEST_PROMOTED = 10  # steps: an uplift from fewer is a caveat
MEDIANS = ("q50", "p50", "q0.5", "p0.5", "q_50", "median")  # names of a column with the median


class Known(NamedTuple):
    """What is known before each episode."""

    changes: list[dict[str, Any]] | None = None  # [K]
    without: str | None = None  # the name of the policy that does without it, in the comparison
    remarks: tuple[Remark, ...] = ()

    @property
    def ongoing(self) -> bool | None:
        """Episodes follow each other, unless prices, too, change from one to the next."""
        return True if self.without is not None and not any("prices" in each for each in self.changes or ()) else None

    def remarks_on(self, found: Advice) -> tuple[Remark, ...]:
        """What the page says of it."""
        return self.remarks if self.without != WITHOUT_FORECAST else (*self.remarks, forecast_remark(found))


WITHOUT_FORECAST = "without the forecast"


def with_prices(prices: data.Series, episodes: data.Episodes) -> list[dict[str, Any]]:
    """The prices of every episode."""
    return [{"prices": tuple(day)} for day in matched(prices, episodes, "price", "demand").tolist()]


def with_forecast(reading: Reading, source: Any, episodes: data.Episodes, preset: Preset) -> Known:
    """The forecast of every episode, clipped to the range of the amount."""
    column, remarks = _forecast_column(source, reading.forecast_column)
    table = matched(reading.known_series(source, column), episodes, "forecast", preset.amount_name)
    low, high = preset.amount_range
    beyond = int(((table < low) | (table > high)).sum())
    if beyond:
        said = f"{show_count(beyond, 'forecast')} outside {low:g}..{high:g} clipped to it."
        remarks = (*remarks, Remark(said))
    return Known([{"profile": tuple(row)} for row in np.clip(table, low, high).tolist()], WITHOUT_FORECAST, remarks)


def with_promotions(reading: Reading, source: Any, episodes: data.Episodes, preset: Preset) -> Known:
    """The mean of each step, times the uplift where it is promoted."""
    assert reading.promotions is not None
    promoted = episodes.of_steps(data.read_marks(source, reading.promotions, episodes.series))
    found = promotions(episodes, promoted, reading.train)
    few = found.steps < FEWEST_PROMOTED
    remark = Remark(
        f"Promotions, column {reading.promotions!r}: {show_count(int(promoted.sum()), 'step')} promoted. A promotion "
        f"multiplies the {preset.amount_name} by {found.uplift:.3g}; {found.seen:.3g} was seen in "
        f"{show_count(found.steps, 'step')} of those learned from{', too few to be believed in full' if few else ''}.",
        first=few,
    )
    profiles = np.clip(found.profiles, *preset.amount_range).tolist()
    return Known([{"profile": tuple(row)} for row in profiles], "without promotions", (remark,))


def _forecast_column(source: Any, asked: str | None) -> tuple[str | None, tuple[Remark, ...]]:
    """The column that was asked for; else the one named forecast, or the median. None: whichever has numbers."""
    if asked is not None:
        return asked, ()
    names = {name.lower(): name for name in reversed(data.column_names(source))}
    if "forecast" in names:
        return names["forecast"], ()
    median = next((names[name] for name in MEDIANS if name in names), None)
    if median is None:
        return None, ()
    return median, (Remark(f"The forecast is the median, column {median!r}; other quantiles were not used."),)
