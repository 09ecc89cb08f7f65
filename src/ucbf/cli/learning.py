"""From one series to advice and what is said of it: what every ``ucbf learn`` command does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf import advice, data
from ucbf.checks import whole
from ucbf.cli.costs import service_remarks
from ucbf.cli.known import Known, lasted, with_forecast, with_promotions
from ucbf.cli.reading import Reading
from ucbf.errors import UserError
from ucbf.run import Progress
from ucbf.systems import Inventory, Preset
from ucbf.systems.parameters import MOST_UNITS

LEAST = 4  # episodes
BEYOND_A_LINE = ("lead_time", "shelf_life")  # with which an order is more than an answer to a stock
STEPS = {"day": 7, "hour": 24, "half-hour": 48, "month": 12}  # of an episode, by the spacing of the series


class Learned(NamedTuple):
    """Advice, and what is said of it."""

    found: advice.Advice | advice.OrderAdvice
    told: advice.Sections


@dataclass(frozen=True)
class Task:
    """What is learned, and what was given for it."""

    kind: type[Preset]
    reading: Reading
    given: dict[str, Any]  # parameters of the preset
    least: float | None  # the least amount that makes sense
    remarks: tuple[advice.Remark, ...] = ()  # on what was given
    prices: data.Series | None = None  # known for each step
    service_level: float | None = None  # that was asked for in place of costs

    def learn_from(self, source: Any, forecast: Any = None, progress: Progress | None = None) -> Learned:
        """Learn from the first part of a series, and judge by the rest.

        source: what the series is read from; forecast: what a forecast is read from, if there is one
        """
        reading = self.reading
        series = reading.series(source, reading.column, self.least)
        given = {"horizon": STEPS.get(series.spacing or "", 10), **self.given}
        try:
            episodes = data.episodes(series, whole("horizon", given["horizon"], 1), least=LEAST)
            episodes, hidden = self._uncensored(source, episodes)
            given |= self._ones(episodes.values)
            n = episodes.values.shape[1]
            sizes = advice.suggested_parameters(
                self.kind, episodes.values, given, place=lambda i: episodes.place(*divmod(i, n))
            )
            preset = self.kind(**sizes)
            if isinstance(preset, Inventory) and preset.beyond_a_line:
                return self._learn_orders(preset, episodes, forecast, hidden, progress)
            known = self._known(source, forecast, episodes, preset)
            found = advice.learn(
                preset,
                episodes,
                reading.train,
                reading.pool,
                known.changes,
                known.ongoing,
                half_life=reading.half_life,
                without=known.without,
                quantiles=known.quantiles,
                relearned=known.relearned,
                promotions=known.promotions,
                coming=known.coming,
                progress=progress,
            )
        except (TypeError, ValueError) as error:
            raise UserError(str(error)) from None
        chosen = {*self.given, *(() if self.prices is None else ("prices",))}
        remarks = (
            *service_remarks(found, self.service_level),
            *self._undated(series),
            *hidden,
            *known.remarks_on(found),
            *self.remarks,
        )
        return Learned(found, advice.sections_of(found, chosen, remarks))

    def _ones(self, demands: NDArray[np.float64]) -> dict[str, float]:
        """1 for the unit where orders take time or stock ages, and all demands are whole: no table has to be small."""
        if self.kind is not Inventory or self.given.get("unit") or not any(map(self.given.get, BEYOND_A_LINE)):
            return {}
        largest = Inventory.suggested_sizes(0.0, 0.0, float(demands.max()))["capacity"]
        return {"unit": 1.0} if np.array_equal(demands, np.rint(demands)) and largest <= MOST_UNITS else {}

    def _undated(self, series: data.Series) -> tuple[advice.Remark, ...]:
        """A caveat where nothing says how many steps an episode has."""
        if series.times is not None or "horizon" in self.given:
            return ()
        return (
            advice.Remark(
                "The file has no dates, so that episodes of 10 steps were assumed, and the days of a week share a "
                "mean. If a step is a day, give --horizon 7.",
                first=True,
            ),
        )

    def _learn_orders(
        self,
        shop: Inventory,
        episodes: data.Episodes,
        forecast: Any,
        remarks: tuple[advice.Remark, ...],
        progress: Progress | None,
    ) -> Learned:
        """The same where orders take time or stock ages."""
        reading = self.reading
        for flag, given in (
            ("forecast", forecast),
            ("promotions", reading.promotions),
            ("half-life", reading.half_life),
        ):
            if given is not None:
                raise UserError(
                    f"--{flag} is given, and not used where orders take time or stock ages, which has a forecast of "
                    "its own; leave it out"
                )
        found = advice.learn_orders(
            shop,
            episodes,
            reading.train,
            service=self.service_level or 0.0,
            progress=progress,
        )
        remarks = (*service_remarks(found, self.service_level), *remarks, *self.remarks)
        return Learned(found, advice.order_sections(found, set(self.given), remarks))

    def _uncensored(self, source: Any, episodes: data.Episodes) -> tuple[data.Episodes, tuple[advice.Remark, ...]]:
        """The episodes with amounts drawn where the shelf was empty or a step is missing, and what the page says."""
        reading, in_stock = self.reading, None
        if reading.in_stock is not None:
            in_stock = data.read_marks(source, reading.in_stock, episodes.series, filled=True, explicit=True)
        elif reading.available:
            in_stock = lasted(episodes.series, [reading.series(source, name, 0) for name in reading.available])
        if in_stock is None and episodes.series.unknown is None:
            return episodes, ()
        n = len(episodes.split(reading.train)[0])
        done = data.uncensored(episodes, in_stock, learned_from=n)
        remarks = []
        if in_stock is not None:
            remarks.append(advice.censored_remark(done, reading.in_stock or " + ".join(reading.available)))
        if done.unknown.any() or done.unknown_after.any():
            remarks.append(advice.missing_remark(done))
        return done.episodes, tuple(remarks)

    def _known(self, source: Any, forecast: Any, episodes: data.Episodes, preset: Preset) -> Known:
        """What is known before each episode: prices, and a forecast or promotions."""
        known = Known()
        if forecast is not None:
            known = with_forecast(self.reading, forecast, episodes, preset)
        elif self.reading.promotions is not None:
            known = with_promotions(self.reading, source, episodes, preset)
        return known if self.prices is None else known.and_prices(self.prices, episodes)
