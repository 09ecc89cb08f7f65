"""What is known beside the series, for ``ucbf learn``: prices, a forecast, promotions, whether the stock lasted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf import data
from ucbf.advice import Remark, forecast_remark
from ucbf.advice.forecasts import quantile_remark
from ucbf.advice.promotions import Promotions, promotions
from ucbf.advice.result import Advice
from ucbf.cli.matching import matched
from ucbf.cli.reading import Reading
from ucbf.data.quantiles import Quantiles, middle
from ucbf.errors import UserError
from ucbf.following.calendar import calendar_of
from ucbf.following.known import rest_of_episode
from ucbf.systems import Preset
from ucbf.wording import show_count

FEWEST_PROMOTED = 10  # steps: an uplift from fewer is a caveat
NEARLY = 1e-9  # amounts that differ by less, as a share, are the same


class Known(NamedTuple):
    """What is known before each episode."""

    changes: list[dict[str, Any]] | None = None  # [K]
    relearned: list[dict[str, Any]] | None = None  # [K] the same, with what all episodes teach; None: the same
    without: str | None = None  # the name of the policy that does without it, in the comparison
    remarks: tuple[Remark, ...] = ()
    quantiles: Quantiles | None = None
    columns: str = ""  # the names of the columns of these
    promotions: Promotions | None = None
    coming: dict[str, Any] | None = None  # the same as one of the changes, of the episode that comes, if it is known

    @property
    def ongoing(self) -> bool | None:
        """Episodes follow each other, unless prices, too, change from one to the next."""
        return True if self.without is not None and not any("prices" in each for each in self.changes or ()) else None

    def and_prices(self, prices: data.Series, episodes: data.Episodes) -> Known:
        """The same, and the prices of every episode."""
        of_days, coming = with_prices(prices, episodes), _coming(prices, episodes)
        next_one = None if coming is None else {"prices": tuple(coming.tolist())}
        if self.changes is None:
            return Known(of_days, coming=next_one)
        return self._replace(
            changes=_merged(of_days, self.changes),
            relearned=None if self.relearned is None else _merged(of_days, self.relearned),
            coming=None if next_one is None or self.coming is None else {**next_one, **self.coming},
        )

    def remarks_on(self, found: Advice) -> tuple[Remark, ...]:
        """What the page says of it."""
        if self.without != WITHOUT_FORECAST:
            return self.remarks
        quantiles = () if self.quantiles is None else (quantile_remark(found, self.columns),)
        return (*self.remarks, forecast_remark(found), *quantiles)


WITHOUT_FORECAST = "without the forecast"


def _merged(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Both, episode by episode."""
    return [{**a, **b} for a, b in zip(one, other, strict=True)]


def with_prices(prices: data.Series, episodes: data.Episodes) -> list[dict[str, Any]]:
    """The prices of every episode."""
    return [{"prices": tuple(day)} for day in matched(prices, episodes, "price", "demand").tolist()]


def with_forecast(reading: Reading, source: Any, episodes: data.Episodes, preset: Preset) -> Known:
    """The forecast of every episode, clipped to the range of the amount."""
    column, named = data.forecast_columns(source, reading.forecast_column)
    remarks: tuple[Remark, ...] = ()
    shares, (low, high) = np.array(list(named)), preset.amount_range

    def both(name: str | None) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        series = reading.known_series(source, name, "--forecast-column")
        return matched(series, episodes, "forecast", preset.amount_name), _coming(series, episodes)

    tables, next_ones = zip(*map(both, named.values()), strict=True) if named else ((), ())
    values = np.stack([np.clip(table, low, high) for table in tables], axis=2) if named else None
    if column is not None or values is None:
        table, coming = both(column)
    else:
        table = middle(shares, values)
        coming = None if next_ones[0] is None else middle(shares, np.stack(next_ones, axis=1))
    beyond = int(((table < low) | (table > high)).sum())
    if beyond:
        said = f"{show_count(beyond, 'forecast')} outside {low:g}..{high:g} clipped to it."
        remarks = (*remarks, Remark(said))
    changes = [{"profile": tuple(row)} for row in np.clip(table, low, high).tolist()]
    next_one: dict[str, Any] | None = (
        None if coming is None else {"profile": tuple(np.clip(coming, low, high).tolist())}
    )
    if values is None:
        return Known(changes, None, WITHOUT_FORECAST, remarks, coming=next_one)
    crossed = int((np.diff(values, axis=2) < 0).any(axis=2).sum())
    if crossed:
        remarks = (*remarks, Remark(f"Quantiles that cross, in {show_count(crossed, 'step')}, were put in order."))
    quantiles = Quantiles(shares, np.sort(values, axis=2), preset.unit / 2)
    if next_one is not None and not any(each is None for each in next_ones):
        next_one["quantiles"] = np.sort(np.clip(np.stack(next_ones, axis=1), low, high), axis=1)
    return Known(changes, None, WITHOUT_FORECAST, remarks, quantiles, ", ".join(named.values()), coming=next_one)


def with_promotions(reading: Reading, source: Any, episodes: data.Episodes, preset: Preset) -> Known:
    """The mean of each step, times the uplift where it is promoted."""
    assert reading.promotions is not None
    promoted = episodes.of_steps(data.read_marks(source, reading.promotions, episodes.series))
    judged, found = (promotions(episodes, promoted, train, reading.promotions) for train in (reading.train, 1.0))
    few = found.steps < FEWEST_PROMOTED
    remark = Remark(
        f"Promotions, column {reading.promotions!r}: {show_count(int(promoted.sum()), 'step')} promoted. A promotion "
        f"multiplies the {preset.amount_name} by {found.uplift:.3g}; {found.seen:.3g} was seen in "
        f"{show_count(found.steps, 'step')}{', too few to be believed in full' if few else ''}. The policy that was "
        f"judged had {judged.uplift:.3g}, from the episodes that it was learned from.",
        first=few,
    )
    kind = calendar_of(episodes).kind_of(1)
    usual = found.means.get(kind, next(iter(found.means.values())))
    coming = {"profile": tuple(np.clip(usual, *preset.amount_range).tolist())}  # where nothing is promoted
    changes, relearned = (
        [{"profile": tuple(row)} for row in np.clip(each.profiles, *preset.amount_range).tolist()]
        for each in (judged, found)
    )
    return Known(changes, relearned, "without promotions", (remark,), promotions=found, coming=coming)


def _coming(given: data.Series, episodes: data.Episodes) -> NDArray[np.float64] | None:
    """[H] what is known of the episode that comes, if all of it is; steps that are past count as the first to come."""
    calendar, n = calendar_of(episodes), len(episodes.series)
    rest = len(calendar.rest_of(1))
    if given.times is None or episodes.series.times is None:
        values = given.values[n : n + rest]
    else:
        try:
            values = rest_of_episode(calendar, "", given, 1)
        except UserError:
            return None
    return np.concatenate([values[:1].repeat(calendar.place_of(1)), values]) if len(values) == rest else None


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
