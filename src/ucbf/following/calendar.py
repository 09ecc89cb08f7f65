"""Steps after the end of a series: their numbers, their dates, their places in an episode."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np

from ucbf.checks import whole
from ucbf.errors import UserError

LONGEST_GAPS = {"half-hour": 35_088, "hour": 17_544, "day": 731, "week": 104, "month": 24, "year": 20}  # two years
MANY_STEPS = 10_000  # where they have no dates
EPOCH = datetime(1970, 1, 1)


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

    def date_of(self, number: int) -> datetime:
        """The date of a step."""
        last = self._last
        if self.seconds is not None:
            return last + number * timedelta(seconds=self.seconds)
        months = _months(last) + number * (12 if self.spacing == "year" else 1)
        return datetime(months // 12, months % 12 + 1, 1, last.hour, last.minute, last.second)

    def local_time(self, date: Any) -> datetime:
        """A date by the local clock of the series."""
        time = date if isinstance(date, datetime) else _read(str(date))
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

    # -- episodes ---------------------------------------------------------------------------------

    def place_of(self, number: int) -> int:
        """The place h of a step in its episode."""
        return (self.next_step + number - 1) % self.horizon

    def kind_of(self, number: int) -> str:
        """The kind of the episode of a step."""
        if self.weekday_kinds is None:
            return ""
        return self.weekday_kinds[self.date_of(number - self.place_of(number)).weekday()]

    # -- words ------------------------------------------------------------------------------------

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


def shown(time: datetime) -> str:
    """A time as people write it: midnight goes without saying."""
    return str(time).removesuffix(":00").removesuffix(" 00:00")


def _months(time: datetime) -> int:
    return 12 * time.year + time.month - 1


def _read(text: str) -> datetime:
    """A date in one of the formats that series have."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        pass
    import pyarrow as pa

    from ucbf.data.date_formats import fitting_formats, read_dates

    cell = pa.chunked_array([[text.strip()]], pa.string())
    read = {form: read_dates(cell, form) for form in fitting_formats(text.strip(), None)}
    found = {form: int(seconds[0]) for form, (seconds, bad) in read.items() if bad is None}
    if len(set(found.values())) != 1:
        why = f"may mean {' or '.join(found)}" if found else "is not a date that is understood"
        raise UserError(f"date is {text!r:.40}, which {why}; write it as 2024-03-05, or 2024-03-05 06:00")
    return datetime.fromtimestamp(next(iter(found.values())), UTC).replace(tzinfo=None)


def as_datetime(time: np.datetime64) -> datetime:
    """A time of a series."""
    seconds = int(np.asarray(time, "datetime64[s]").astype(np.int64))
    return EPOCH + timedelta(seconds=seconds)
