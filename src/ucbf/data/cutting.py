"""A series cut into episodes that begin on Mondays, at midnight or in January, where that fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import real, whole
from ucbf.data.outliers import outliers
from ucbf.data.series import Seconds, Series, Times
from ucbf.errors import UserError
from ucbf.wording import show_count

WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
YEAR = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
DAYS = {("hour", 24), ("half-hour", 48)}  # episodes that are a day
KINDS = ("weekday",) * 5 + ("weekend",) * 2  # of episodes that are a day, from Monday on


@dataclass(frozen=True, eq=False)
class Episodes:
    """A series cut into episodes of H steps."""

    values: NDArray[np.float64]  # [K, H]
    names: tuple[str, ...] | None  # [H] of the steps, where the calendar has names for them
    starts: tuple[str, ...]  # [K] when each began
    kinds: tuple[str, ...]  # [K] of each: "weekday" or "weekend" where an episode is a day, else ""
    dropped: int  # values before the first whole episode and after the last
    series: Series
    begin: int = 0  # index in the series at which the first episode begins
    drawn: int = 0  # how many amounts, in all episodes, were hidden or missing and are draws

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Episodes({len(self)} of {self.values.shape[1]} steps, from {self.starts[0] if len(self) else 'none'})"

    def split(self, share: float) -> tuple[Episodes, Episodes]:
        """The first ``share`` of the episodes, to learn from, and the rest, to judge by."""
        share = real("share", share, 0, 1, open_low=True)
        cut = min(max(round(share * len(self)), 1), len(self))
        return self.part(0, cut), self.part(cut, len(self))

    def part(self, first: int, stop: int) -> Episodes:
        """Episodes first to stop - 1."""
        cut = slice(first, stop)
        begin = self.begin + first * self.values.shape[1]
        return replace(self, values=self.values[cut], starts=self.starts[cut], kinds=self.kinds[cut], begin=begin)

    def place(self, k: int, h: int) -> str:
        """Where step h of episode k stands in the series."""
        return self.series.place(self.begin + k * self.values.shape[1] + h)

    def of_steps(self, values: NDArray[Any]) -> NDArray[Any]:
        """[K, H] what belongs to the steps of these episodes, of values [N] for all steps of the series."""
        table: NDArray[Any] = values[self.begin : self.begin + self.values.size].reshape(self.values.shape)
        return table

    @property
    def end(self) -> int:
        """The index in the series after the last of these episodes."""
        return self.begin + self.values.size

    @property
    def rest(self) -> NDArray[np.float64]:
        """[M] the amounts of the series after the last of these episodes."""
        return self.series.values[self.end :]

    @property
    def kinds_of_rest(self) -> tuple[str, ...]:
        """[M] of the steps after the last of these episodes: the kind of the one that each is in."""
        H, M = self.values.shape[1], len(self.rest)
        begun = None if self.series.times is None else self.series.times[self.end :: H]
        kinds = _kinds(begun, -(-M // H), self.series.spacing, H)
        return tuple(kinds[i // H] for i in range(M))

    @cached_property
    def outliers(self) -> NDArray[np.bool_]:
        """[K, H] which amounts are far from all others."""
        return outliers(self.values)

    @property
    def profile(self) -> NDArray[np.float64]:
        """[H] the mean of every step."""
        mean: NDArray[np.float64] = self.values.mean(axis=0)
        return mean


def episodes(series: Series, horizon: int, least: int = 2) -> Episodes:
    """Cut a series into episodes of ``horizon`` steps, from the first Monday, midnight or January where that fits."""
    if not isinstance(series, Series):
        raise TypeError(f"series is {series!r:.60}; read one with ucbf.data.read_series")
    H = whole("horizon", horizon, 1)
    spacing = series.spacing
    first, names = 0, None
    if series.times is not None and spacing is not None:
        begins = _begins(series.times[:H], spacing, H)  # each comes round in H steps
        if begins is not None and begins.any():
            first, names = int(begins.argmax()), _step_names(spacing, H)
    K = (len(series) - first) // H
    if whole("least", least, 1) > K:
        raise UserError(
            f"{series.source}, column {series.name!r}: {len(series)} rows make "
            f"{show_count(max(K, 0), 'whole episode')} of {H} steps; at least {least} are needed: give more rows, or a "
            "shorter horizon"
        )
    values = series.values[first : first + K * H].reshape(K, H)
    starts: tuple[str, ...] = tuple(str(i * H + 1) for i in range(K))
    begun = None if series.times is None else series.times[first : first + K * H : H]
    if begun is not None:
        starts = tuple(text.replace("T", " ") for text in np.datetime_as_string(begun).tolist())
    return Episodes(values, names, starts, _kinds(begun, K, spacing, H), len(series) - K * H, series, first)


def require_known(episodes: object) -> None:
    """An error unless these are episodes of which every step is known, and every one after them in their series."""
    if not isinstance(episodes, Episodes):
        raise TypeError(
            f"episodes is {episodes!r:.60}; give what ucbf.data.episodes(ucbf.data.read_series(...), ...) returns"
        )
    if episodes.series.unknown is not None and episodes.series.unknown[episodes.begin :].any():
        raise ValueError(
            "some steps of the episodes, or after them, are not known (gaps='unknown'); draw them from what the others "
            "show: give ucbf.data.uncensored(episodes).episodes"
        )


def _kinds(begun: Times | None, K: int, spacing: str | None, H: int) -> tuple[str, ...]:
    """[K] the kinds of episodes that began then."""
    if begun is None or (spacing, H) not in DAYS:
        return ("",) * K
    return tuple(KINDS[day] for day in _weekday(begun).tolist())


def kinds_of_weekdays(spacing: str, horizon: int) -> tuple[str, ...] | None:
    """[7] the kind of an episode that begins on a Monday, a Tuesday, ...; None where all episodes are alike."""
    return KINDS if (spacing, horizon) in DAYS else None


def _begins(times: Times, spacing: str, H: int) -> NDArray[np.bool_] | None:
    """[N] at which times an episode may begin; None where the calendar does not say."""
    monday = _weekday(times) == 0
    midnight: NDArray[np.bool_] = times.astype("datetime64[m]") == times.astype("datetime64[D]")
    if (spacing, H) in DAYS:
        return midnight
    january = times.astype("datetime64[M]").astype(np.int64) % 12 == 0
    found = {("day", 7): monday, ("hour", 168): monday & midnight, ("month", 12): january}
    return found.get((spacing, H))


def _weekday(times: Times) -> Seconds:
    """[N] 0 for a Monday; the first of January 1970 was a Thursday."""
    day: Seconds = (times.astype("datetime64[D]").astype(np.int64) + 3) % 7
    return day


def _step_names(spacing: str, H: int) -> tuple[str, ...]:
    if spacing == "day":
        return WEEK
    if spacing == "month":
        return YEAR
    if H == 168:
        return tuple(f"{day} {hour:02d}:00" for day in WEEK for hour in range(24))
    minutes = 1440 // H
    return tuple(f"{h * minutes // 60:02d}:{h * minutes % 60:02d}" for h in range(H))
