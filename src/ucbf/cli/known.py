"""What is known beside the series, for ``ucbf learn``: prices, a forecast, promotions, whether the stock lasted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf import data
from ucbf.advice import Remark, forecast_remark
from ucbf.advice.forecasts import quantile_remark
from ucbf.advice.promotions import promotions
from ucbf.advice.quantiles import Quantiles
from ucbf.advice.result import Advice
from ucbf.cli.matching import matched
from ucbf.cli.reading import Reading
from ucbf.errors import UserError
from ucbf.systems import Preset
from ucbf.wording import show_count

FEWEST_PROMOTED = 10  # steps: an uplift from fewer is a caveat
NEARLY = 1e-9  # amounts that differ by less, as a share, are the same
MEDIANS = ("q50", "p50", "q0.5", "p0.5", "q_50", "median")  # names of a column with the median
QUANTILE = re.compile(r"[qp]_?(\d+(?:\.\d+)?)")  # names of columns with quantiles: q10 or q0.1


class Known(NamedTuple):
    """What is known before each episode."""

    changes: list[dict[str, Any]] | None = None  # [K]
    relearned: list[dict[str, Any]] | None = None  # [K] the same, with what all episodes teach; None: the same
    without: str | None = None  # the name of the policy that does without it, in the comparison
    remarks: tuple[Remark, ...] = ()
    quantiles: Quantiles | None = None
    columns: str = ""  # the names of the columns of these

    @property
    def ongoing(self) -> bool | None:
        """Episodes follow each other, unless prices, too, change from one to the next."""
        return True if self.without is not None and not any("prices" in each for each in self.changes or ()) else None

    def remarks_on(self, found: Advice) -> tuple[Remark, ...]:
        """What the page says of it."""
        if self.without != WITHOUT_FORECAST:
            return self.remarks
        quantiles = () if self.quantiles is None else (quantile_remark(found, self.columns),)
        return (*self.remarks, forecast_remark(found), *quantiles)


WITHOUT_FORECAST = "without the forecast"


def with_prices(prices: data.Series, episodes: data.Episodes) -> list[dict[str, Any]]:
    """The prices of every episode."""
    return [{"prices": tuple(day)} for day in matched(prices, episodes, "price", "demand").tolist()]


def with_forecast(reading: Reading, source: Any, episodes: data.Episodes, preset: Preset) -> Known:
    """The forecast of every episode, clipped to the range of the amount."""
    column = column_of_forecast(source, reading.forecast_column)
    named = quantile_columns(source) if reading.forecast_column is None else {}
    remarks: tuple[Remark, ...] = ()

    def table_of(name: str | None) -> NDArray[np.float64]:
        return matched(reading.known_series(source, name), episodes, "forecast", preset.amount_name)

    low, high = preset.amount_range
    values = np.stack([np.clip(table_of(name), low, high) for name in named.values()], axis=2) if named else None
    table = table_of(column) if column is not None or values is None else _middle(np.array(list(named)), values)
    beyond = int(((table < low) | (table > high)).sum())
    if beyond:
        said = f"{show_count(beyond, 'forecast')} outside {low:g}..{high:g} clipped to it."
        remarks = (*remarks, Remark(said))
    changes = [{"profile": tuple(row)} for row in np.clip(table, low, high).tolist()]
    if values is None:
        return Known(changes, None, WITHOUT_FORECAST, remarks)
    crossed = int((np.diff(values, axis=2) < 0).any(axis=2).sum())
    if crossed:
        remarks = (*remarks, Remark(f"Quantiles that cross, in {show_count(crossed, 'step')}, were put in order."))
    quantiles = Quantiles(np.array(list(named)), np.sort(values, axis=2), preset.unit / 2)
    return Known(changes, None, WITHOUT_FORECAST, remarks, quantiles, ", ".join(named.values()))


def with_promotions(reading: Reading, source: Any, episodes: data.Episodes, preset: Preset) -> Known:
    """The mean of each step, times the uplift where it is promoted."""
    assert reading.promotions is not None
    promoted = episodes.of_steps(data.read_marks(source, reading.promotions, episodes.series))
    judged, found = (promotions(episodes, promoted, train) for train in (reading.train, 1.0))
    few = found.steps < FEWEST_PROMOTED
    remark = Remark(
        f"Promotions, column {reading.promotions!r}: {show_count(int(promoted.sum()), 'step')} promoted. A promotion "
        f"multiplies the {preset.amount_name} by {found.uplift:.3g}; {found.seen:.3g} was seen in "
        f"{show_count(found.steps, 'step')}{', too few to be believed in full' if few else ''}. The policy that was "
        f"judged had {judged.uplift:.3g}, from the episodes that it was learned from.",
        first=few,
    )
    changes, relearned = (
        [{"profile": tuple(row)} for row in np.clip(each.profiles, *preset.amount_range).tolist()]
        for each in (judged, found)
    )
    return Known(changes, relearned, "without promotions", (remark,))


def lasted(sold: data.Series, parts: Sequence[data.Series]) -> NDArray[np.bool_]:
    """[N] whether the stock lasted: less was sold than there was. parts: what there was, added up."""
    available: NDArray[np.float64] = np.sum([part.values for part in parts], axis=0)
    names = " + ".join(part.name for part in parts)
    given = np.full(len(sold), True) if sold.filled is None else ~sold.filled
    beyond = given & (sold.values > available + NEARLY * (1 + available))
    if beyond.any():
        i = int(beyond.argmax())
        raise UserError(
            f"{sold.source}, {sold.place(i)}: {sold.values[i]:g} were sold ({sold.name}) of {available[i]:g} that were "
            f"there ({names}), in {show_count(int(beyond.sum()), 'step')} in all; name every column that adds to what "
            "could be sold, such as what came that day"
        )
    left: NDArray[np.bool_] = sold.values < available - NEARLY * (1 + available)
    return left | ~given


def quantile_columns(source: Any) -> dict[float, str]:
    """By their shares, in order: the names of columns with quantiles, such as q10, q50 and q90; none if only one."""
    found: dict[float, str] = {}
    for name in data.column_names(source):
        match = QUANTILE.fullmatch(name.lower())
        share = 0.5 if name.lower() == "median" else float(match[1]) if match else 0.0
        share = share / 100 if share >= 1 else share
        if 0 < share < 1:
            found.setdefault(share, name)
    return dict(sorted(found.items())) if len(found) > 1 else {}


def _middle(shares: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """[K, H] the median, between the quantiles [K, H, m] that are nearest to it."""
    flat = np.sort(values, axis=2).reshape(-1, len(shares))
    return np.array([np.interp(0.5, shares, row) for row in flat]).reshape(values.shape[:2])


def column_of_forecast(source: Any, asked: str | None) -> str | None:
    """The column that was asked for; else the one named forecast, or the median. None: whichever has numbers."""
    if asked is not None:
        return asked
    names = {name.lower(): name for name in reversed(data.column_names(source))}
    return next((names[name] for name in ("forecast", *MEDIANS) if name in names), None)
