"""From rows with times to one value for each step of a calendar: the spacing of the rows, their order, gaps."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, tzinfo

import numpy as np
from numpy.typing import NDArray

from ucbf.data.daylight_saving import LARGEST_CHANGE, add_second_hours, days_of_24_hours
from ucbf.data.series import STEPS, Seconds, spacing_of, written
from ucbf.data.steps import RowError, Steps
from ucbf.data.zones import offsets_at
from ucbf.errors import UserError
from ucbf.wording import show_count

HOURLY = ("half-hour", "hour")  # counted in universal time, where it is known; longer steps follow the local clock
LONGEST_GAP = {"half-hour": 35_088, "hour": 17_544, "day": 731, "week": 104, "month": 24, "year": 20}  # rows: two years
MOST_FILLED = 10_000_000  # rows in all
OR_ELSE = ", or say what it means: zero (--gaps zero, gaps='zero'), or that it is not known (--gaps unknown)"
SEVERAL = "; many items in one file? Name their column (--item); hours in a column of their own? Join them to the date"
ZONE_HINT = "; if the clock was set for daylight saving, name its zone (time_zone, --time-zone)"


def regular(given: Steps, gaps: str, zone: tzinfo | None, error: RowError) -> Steps:
    """One value for each step of the calendar.

    Half-hours and hours are counted in universal time where it is known; days, weeks, months and years by the local
    clock. Days of half-hours or hours then get 24 hours, where daylight saving gives them 23 or 25.

    Parameters
    ----------
    gaps
        Whether missing rows are an error ("refuse"), 0 ("zero") or not known ("unknown"). A gap of more than two years
        (twenty, where rows are years), or ten million rows in all, are an error in each case: a date is probably wrong.
    zone
        The time zone of the local clock, where it is known.
    error
        Makes the error for a row and a message.
    """
    if len(given.values) < 2:
        return given
    _check_order(given, error)
    spacing = spacing_of(given.instants, smallest=gaps != "refuse")
    if spacing not in HOURLY:
        spacing = spacing_of(given.clock, smallest=gaps != "refuse")
    if spacing is None:
        apart = timedelta(seconds=int(given.instants[1] - given.instants[0]))
        raise error(1, f"rows are {apart} apart; give half-hours, hours, days, weeks, months or years")
    if given.offsets_of_zone and zone is not None and spacing in HOURLY:
        given = add_second_hours(given, zone, STEPS[spacing])

    def wrong(i: int, message: str) -> UserError:
        return error(i - int(np.isnan(given.values[: i + 1]).sum()), message)

    full = given
    if not _has_every_step(given, spacing):
        number = _step_numbers(given, spacing, wrong)
        if len(number) <= number[-1]:
            _check_gaps(given, number, spacing, gaps, zone, wrong)
            if zone is None and given.offsets is not None and spacing in HOURLY:
                _check_clock_in_gaps(given, given.offsets, number, wrong)
        full = _fill_gaps(given, number, spacing, gaps, zone)
    if spacing not in HOURLY or full.offsets is None:
        return full
    return days_of_24_hours(full, STEPS[spacing], zone, error)


def _check_order(given: Steps, error: RowError) -> None:
    apart = np.diff(given.instants)
    if (apart > 0).all():
        return
    i = int((apart <= 0).argmax()) + 1
    if apart[i - 1] < 0:
        why = f"before the row above ({given.when(i - 1)})"
    elif given.clock[i] == given.clock[i - 1]:
        why = "the same time again"
    else:
        why = f"the same time as the row above ({given.when(i - 1)}), which the clock skips; leave that row out"
    hint = ""
    if 2 * len(np.unique(given.instants)) <= len(apart) + 1:
        hint = SEVERAL
    elif given.offsets is None and apart[i - 1] > -LARGEST_CHANGE and (given.clock % STEPS["day"]).any():
        hint = ZONE_HINT
    raise error(i, f"{given.when(i)}: {why}; sort the rows, one for each time{hint}")


def _timeline(given: Steps, spacing: str) -> Seconds:
    """[N] the times in which steps are counted: universal time for half-hours and hours, else local time."""
    return given.instants if spacing in HOURLY else given.clock


def _has_every_step(given: Steps, spacing: str) -> bool:
    """Whether each row is one step after the row above. Months and years, which differ in length, are not looked at."""
    return spacing in STEPS and bool((np.diff(_timeline(given, spacing)) == STEPS[spacing]).all())


def _step_numbers(given: Steps, spacing: str, error: RowError) -> Seconds:
    """[N] how many steps of the calendar each row is after the first."""
    if spacing in STEPS:
        times = _timeline(given, spacing)
        passed = times - times[0]
        number: Seconds = passed // STEPS[spacing]
        off = np.diff(passed) % STEPS[spacing] != 0
    else:
        number = _months_or_years(given.clock, spacing)
        off = (np.diff(number) < 1) | (np.diff(given.clock % STEPS["day"]) != 0)
        number = number - number[0]
    if off.any():
        i = int(off.argmax()) + 1
        raise error(i, f"{given.when(i)} is not a whole {spacing} after the row above")
    return number


def _months_or_years(clock: Seconds, spacing: str) -> Seconds:
    """[N] months or years since 1970."""
    found: Seconds = clock.astype("datetime64[s]").astype(f"datetime64[{spacing[0].upper()}]").astype(np.int64)
    return found


def _check_gaps(given: Steps, number: Seconds, spacing: str, gaps: str, zone: tzinfo | None, error: RowError) -> None:
    missing = np.diff(number) - 1
    first = int((missing > 0).argmax()) + 1
    if gaps == "refuse":
        at, offset = _times_of(given, number[first - 1 : first] + 1, spacing), None
        due = int(at[0])
        if given.offsets is not None:
            hourly = spacing in HOURLY
            offset = int(given.offsets[first - 1] if zone is None or not hourly else offsets_at(at, zone)[0])
            due += offset if hourly else 0
        hint = ZONE_HINT if given.offsets is None and spacing in HOURLY and missing[first - 1] < 5 else ""
        raise error(
            first,
            f"{written(due, offset)} is missing before {given.when(first)}; fill it in{OR_ELSE}{hint}",
        )
    longest = int(missing.argmax()) + 1
    if missing[longest - 1] > LONGEST_GAP[spacing]:
        raise error(
            longest,
            f"{missing[longest - 1]} {spacing}s are missing before {given.when(longest)}; a gap of at most "
            f"{LONGEST_GAP[spacing]} is filled: correct the date, give the rows, or give only those after the gap",
        )
    if missing.sum() > MOST_FILLED:
        raise error(
            first,
            f"{missing.sum()} {spacing}s are missing from here on; at most {MOST_FILLED} in all are filled: give the "
            "rows that are missing",
        )


def _check_clock_in_gaps(given: Steps, offsets: Seconds, number: Seconds, error: RowError) -> None:
    """An error if the clock is set within a gap: it is not known at which of the missing hours."""
    set_in_gap = (np.diff(number) > 1) & (np.diff(offsets) != 0)
    if set_in_gap.any():
        i = int(set_in_gap.argmax()) + 1
        raise error(i, f"{given.when(i)}: the clock was set in the gap after {given.when(i - 1)}, at an unknown "
                    "time; name its zone (time_zone, --time-zone)")  # fmt: skip


def _times_of(given: Steps, number: NDArray[np.int64], spacing: str) -> Seconds:
    """The times of steps of the calendar, by their numbers: on the time line in which they are counted."""
    if spacing in STEPS:
        begin = int(_timeline(given, spacing)[0])
        return np.asarray(begin + number * STEPS[spacing])
    begins = (_months_or_years(given.clock[0], spacing) + number).astype(f"datetime64[{spacing[0].upper()}]")
    found: Seconds = begins.astype("datetime64[s]").astype(np.int64) + given.clock[0] % STEPS["day"]
    return found


def _fill_gaps(given: Steps, number: Seconds, spacing: str, gaps: str, zone: tzinfo | None) -> Steps:
    """The same with zeros in the gaps, and months and years dated at their first day."""
    n = int(number[-1]) + 1
    if n == len(number):
        return given if spacing in STEPS else replace(given, clock=_times_of(given, number, spacing))
    filled = np.ones(n, np.bool_)
    filled[number] = False
    above = np.cumsum(~filled) - 1  # the last row before each step, or its own
    at, offsets = _times_of(given, np.arange(n), spacing), None
    clock = at
    if given.offsets is not None:
        offsets = given.offsets[above] if zone is None or spacing not in HOURLY else offsets_at(at, zone)
        clock = at + offsets if spacing in HOURLY else at
    missing, one = show_count(n - len(number), spacing), n == len(number) + 1
    counted = f"count{'s' * one} as 0" if gaps == "zero" else f"{'is' if one else 'are'} taken as not known"
    first = written(int(clock[filled][0]))
    note = f"{missing} {'is' if one else 'are'} missing and {counted}, {'' if one else 'the first '}{first}."
    values = np.where(filled, 0.0, given.values[above])
    unknown = filled if gaps == "unknown" else None
    return Steps(values, clock, offsets, np.asarray(given.rows)[above], filled, unknown, (note,))
