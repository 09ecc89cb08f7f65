"""Steps after the end of a series: their numbers, their dates, their places in an episode."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from ucbf.checks import whole
from ucbf.errors import UserError
from ucbf.wording import show_count

if TYPE_CHECKING:
    from ucbf.data import Episodes

LONGEST_GAPS = {"half-hour": 35_088, "hour": 17_544, "day": 731, "week": 104, "month": 24, "year": 20}  # two years
MANY_STEPS = 10_000  # where they have no dates
MANY = 3  # dates that are named one by one
EPOCH = datetime(1970, 1, 1)


class Dated(Protocol):
    """A step that says when it was, by its date or its number."""

    @property
    def date(self) -> Any:
        """Its date, if it has one."""

    @property
    def step(self) -> int | None:
        """Its number, if it has one."""


Each = TypeVar("Each", bound=Dated)


@dataclass(frozen=True)
class Calendar:
    """The steps that follow a series. The first has number 1.

    Attributes
    ----------
    horizon
        The number of steps of an episode.
    next_step
        The place in its episode of the first step after the series, from 0 on.
    last
        The time of the last value of the series, by the local clock; None where the series has no dates.
    spacing
        What a step is: "hour", "day", "month", ...; None where the series has no dates.
    seconds
        The length of a step; None for months and years, which differ, and where the series has no dates.
    time_zone
        The zone of that clock, where it was named.
    names
        [H] the names of the steps, such as the days of the week; None if they have none.
    weekday_kinds
        [7] the kind of an episode that begins on a Monday, a Tuesday, ...; None where all are alike.
    """

    horizon: int
    next_step: int
    last: str | None = None
    spacing: str | None = None
    seconds: int | None = None
    time_zone: str | None = None
    names: tuple[str, ...] | None = None
    weekday_kinds: tuple[str, ...] | None = None

    @property
    def is_dated(self) -> bool:
        """Whether steps have dates."""
        return self.last is not None and self.spacing is not None

    @property
    def step_word(self) -> str:
        """What a step is called."""
        return self.spacing or "step"

    @cached_property
    def _last(self) -> datetime:
        return datetime.fromisoformat(str(self.last))

    # -- numbers and dates ------------------------------------------------------------------------

    def number_of(self, date: Any) -> int:
        """The number of the step with this date; 0 and below for steps of the series itself.

        date: as text, or a datetime; for days and longer steps the time of day may be left out
        """
        if not self.is_dated:
            raise UserError(
                f"date is {date}, and the series that was learned from has no dates; give --step, or nothing"
            )
        time, last = self.local_time(date), self._last
        if self.seconds is None or self.seconds >= 86_400:
            day = timedelta(hours=last.hour, minutes=last.minute, seconds=last.second)
            time = time + day if time.time() == datetime.min.time() else time
        if self.seconds is not None:
            number, rest = divmod(int((time - last) / timedelta(seconds=1)), self.seconds)
        else:
            number, rest = _months(time) - _months(last), int(time.time() != last.time())
            if self.spacing == "year":
                number = time.year - last.year
        if rest:
            nearest = self.date_of(number)
            raise UserError(
                f"date is {date}, which is not a whole {self.spacing} after {shown(last)}, the end of the series; the "
                f"one before it is {shown(nearest)}"
            )
        return number

    def number_meant(self, date: Any, step: int | None, default: int | None) -> int:
        """The number of the step that a user means; default: where neither its date nor its number is given."""
        if date is not None and step is not None:
            raise UserError(f"date is {date} and step {step}; give one of them")
        if date is not None:
            return self.number_of(date)
        if step is not None:
            return whole("step", step, 1)
        if default is None:
            raise UserError("no date is given, and the series has dates; give it (--date, or a column of dates)")
        return default

    def in_order(self, told: Sequence[Each]) -> list[Each]:
        """Steps in the order of time, as a file need not have them; as they are, where one says not when it was."""
        try:
            return sorted(told, key=lambda each: self.number_meant(each.date, each.step, None))
        except ValueError:
            return [*told]

    def date_of(self, number: int) -> datetime:
        """The date of a step."""
        last = self._last
        if self.seconds is not None:
            return last + number * timedelta(seconds=self.seconds)
        months = _months(last) + number * (12 if self.spacing == "year" else 1)
        return datetime(months // 12, months % 12 + 1, 1, last.hour, last.minute, last.second)

    def local_time(self, date: Any) -> datetime:
        """A date by the local clock of the series."""
        time = date if isinstance(date, datetime) else read_date(str(date))
        if time.tzinfo is not None and self.time_zone is not None:
            from ucbf.data.zones import zone_of

            time = time.astimezone(zone_of(self.time_zone, "time_zone"))
        time = time.replace(tzinfo=None)
        if time.microsecond:
            raise UserError(f"date is {date}; give whole seconds")
        return time

    def check_number(self, what: str, number: int, before: int) -> None:
        """An error for a step of the series itself, or far from all others. before: the last one that is known."""
        if number < 1:
            raise UserError(
                f"{what} is in the series that was learned from, which ends {self.when(0)}; give one after it: the "
                f"first is {self.when(1)}"
            )
        longest = LONGEST_GAPS.get(self.step_word, MANY_STEPS)
        if number - before > longest:
            raise UserError(
                f"{what} is {number - before} {self.step_word}s after {self.when(before)}, the last that is known; at "
                f"most {longest} may be missing: correct it, or learn again from recent data"
            )

    def check_is_likely(self, what: str, number: int, before: int) -> None:
        """An error for a step that is far from the last one before it, or still to come: its date may be mistyped."""
        missing, sure = number - before - 1, "correct it, or say that it is right (unusual=True, --unusual)"
        if missing > self.likely_gap:
            raise UserError(
                f"{what} is far from the last that is known, {self.when(before)}: {missing} {self.step_word}s would be "
                f"missing between them; {sure}"
            )
        soon = now() + timedelta(days=1)  # somewhere it is that late by now
        if self.is_dated and self._last < soon < self.date_of(number):
            raise UserError(f"{what} is still to come, and what happened in it cannot be known; {sure}")

    @property
    def likely_gap(self) -> int:
        """How many steps may be missing before one whose date is not doubted: two episodes, and seven at least."""
        return max(2 * self.horizon, 7)

    # -- episodes ---------------------------------------------------------------------------------

    def place_of(self, number: int) -> int:
        """The place h of a step in its episode."""
        return (self.next_step + number - 1) % self.horizon

    def episode_of(self, number: int) -> int:
        """The number of the episode of a step: 0 for the one that the first step after the series is in."""
        return (self.next_step + number - 1) // self.horizon

    def rest_of(self, number: int) -> range:
        """The numbers of the steps of an episode from one on to its end."""
        return range(number, number + self.horizon - self.place_of(number))

    def kind_of(self, number: int) -> str:
        """The kind of the episode of a step."""
        if self.weekday_kinds is None:
            return ""
        return self.weekday_kinds[self.date_of(number - self.place_of(number)).weekday()]

    # -- words ------------------------------------------------------------------------------------

    def listed(self, numbers: Sequence[int]) -> str:
        """Steps by their names, few enough to be named, else from the first to the last; and the verb."""
        names = [self.when(number) for number in numbers]
        if len(names) > MANY:
            return f"{show_count(len(names), self.step_word)}, {names[0]} to {names[-1]}, are"
        return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"

    def when(self, number: int) -> str:
        """A step as people call it: by its date, else by its number."""
        return shown(self.date_of(number)) if self.is_dated else f"step {number}"

    def full_name(self, number: int) -> str:
        """The same with the name of its place in the episode: 2024-03-05 (Tue)."""
        name = "" if self.names is None else self.names[self.place_of(number)]
        date = self.when(number)
        return f"{date} ({name})" if name and name not in date else date

    def key(self, number: int) -> dict[str, Any]:
        """What identifies a step in a journal."""
        return {"date": str(self.date_of(number))} if self.is_dated else {"step": number}

    def number_of_key(self, record: dict[str, Any]) -> int:
        """The number of the step that a line of a journal is about."""
        if self.is_dated:
            return self.number_of(datetime.fromisoformat(str(record["date"])))
        return whole("step", record["step"])


def calendar_of(episodes: Episodes, time_zone: str | None = None) -> Calendar:
    """The steps that follow a series. time_zone: of the series, if it was named."""
    from ucbf.data.cutting import kinds_of_weekdays
    from ucbf.data.series import STEPS

    series, H = episodes.series, episodes.values.shape[1]
    next_step = (len(series) - episodes.begin) % H
    if series.times is None or series.spacing is None:
        return Calendar(H, next_step)
    return Calendar(
        horizon=H,
        next_step=next_step,
        last=str(as_datetime(series.times[-1])),
        spacing=series.spacing,
        seconds=STEPS.get(series.spacing),
        time_zone=time_zone,
        names=episodes.names,
        weekday_kinds=kinds_of_weekdays(series.spacing, H),
    )


def named(date: Any, number: int) -> str:
    """A step as it was asked for."""
    return f"step {number}" if date is None else f"date {date}"


def shown(time: datetime) -> str:
    """A time as people write it: midnight goes without saying."""
    return str(time).removesuffix(":00").removesuffix(" 00:00")


def now() -> datetime:
    """The time by the clock of this machine."""
    return datetime.now()


def _months(time: datetime) -> int:
    return 12 * time.year + time.month - 1


def read_date(text: str, date_format: str | None = None) -> datetime:
    """A date in a format, or if none is given in one of those that series have."""
    text = text.strip()
    if date_format is None:
        with contextlib.suppress(ValueError):
            return datetime.fromisoformat(text)
    import pyarrow as pa

    from ucbf.data.date_formats import fitting_formats, read_dates

    cell = pa.chunked_array([[text]], pa.string())
    read = {form: int(read_dates(cell, form)[0][0]) for form in fitting_formats(text, date_format)}
    found = {seconds: EPOCH + timedelta(seconds=seconds) for seconds in read.values()}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        meant = {form: shown(found[seconds]) for form, seconds in read.items()}
        form, first = next(iter(meant.items()))
        raise UserError(
            f"date is {text!r:.40}, which may mean {' or '.join(f'{date} ({f})' for f, date in meant.items())}; write "
            f"it as {first}, or say how dates are written (--date-format {form})"
        )
    why = "not a date that is understood" if date_format is None else f"not written as {date_format}"
    raise UserError(f"date is {text!r:.40}, which is {why}; write it as 2024-03-05, or 2024-03-05 06:00")


def as_datetime(time: np.datetime64) -> datetime:
    """A time of a series."""
    seconds = int(np.asarray(time, "datetime64[s]").astype(np.int64))
    return EPOCH + timedelta(seconds=seconds)
