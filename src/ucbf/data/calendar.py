"""Rows in the order of time, one for each step of a calendar: no gaps, and every day has 24 hours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta, tzinfo
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.data.series import STEPS, Seconds, spacing_of, written
from ucbf.data.zones import ahead_of
from ucbf.errors import UserError

Error = Callable[[int, str], UserError]  # of a row, and what is wrong with it
BY_THE_HOUR = ("half-hour", "hour")  # what follows universal time when the clock is set; days follow the clock
LONGEST_GAP = {"half-hour": 35_088, "hour": 17_544, "day": 731, "week": 104, "month": 24, "year": 20}  # rows: two years
MOST_FILLED = 10_000_000  # rows in all
MOST_SET = 2 * STEPS["hour"]  # by which daylight saving sets a clock
ZONE_HINT = "; if the clock was set for daylight saving, name its zone (time_zone, --time-zone)"


@dataclass(frozen=True, eq=False)
class Steps:
    """Values and when they were measured."""

    values: NDArray[np.float64]  # [N]
    clock: Seconds  # [N] of the local clock
    offsets: Seconds | None  # [N] how far it is ahead of universal time
    rows: Sequence[int] | NDArray[np.int64]  # [N] of the file
    filled: NDArray[np.bool_] | None = None  # [N] which stand in no row
    notes: tuple[str, ...] = ()
    by_clock: bool = False  # whether the rows have no offsets of their own: these are those of the zone

    @property
    def instants(self) -> Seconds:
        """[N] universal time where it is known, else the clock."""
        return self.clock if self.offsets is None else self.clock - self.offsets

    def said(self, i: int) -> str:
        """When step i is."""
        return written(int(self.clock[i]), None if self.offsets is None else int(self.offsets[i]))


def regular(given: Steps, gaps: str, zone: tzinfo | None, error: Error) -> Steps:
    """One value for each step of the calendar.

    Half-hours and hours are counted in universal time where it is known; days, weeks, months and years by the clock.

    Parameters
    ----------
    gaps
        Whether missing rows are an error ("refuse") or 0 ("zero"). A gap of more than two years (twenty, where rows are
        years), or ten million rows in all, are not filled: a date is wrong then.
    zone
        Whose clock it is, where that is known.
    """
    if len(given.values) < 2:
        return given
    _check_order(given, error)
    spacing = spacing_of(given.instants, smallest=gaps == "zero")
    if spacing not in BY_THE_HOUR:
        spacing = spacing_of(given.clock, smallest=gaps == "zero")
    if spacing is None:
        apart = timedelta(seconds=int(given.instants[1] - given.instants[0]))
        raise error(1, f"rows are {apart} apart; half-hours, hours, days, weeks, months, years")
    if given.by_clock and zone is not None and spacing in BY_THE_HOUR:
        given = _once_for_twice(given, zone, STEPS[spacing])

    def wrong(i: int, message: str) -> UserError:
        return error(i - int(np.isnan(given.values[: i + 1]).sum()), message)

    full = given
    if not _follow_each_other(given, spacing):
        number = _numbered(given, spacing, wrong)
        if len(number) <= number[-1]:
            _check_gaps(given, number, spacing, gaps, zone, wrong)
            if zone is None and given.offsets is not None and spacing in BY_THE_HOUR:
                _check_offsets(given, given.offsets, number, wrong)
        full = _filled(given, number, spacing, zone)
    if spacing not in BY_THE_HOUR or full.offsets is None:
        return full
    return _one_clock(_without(full, np.isnan(full.values)), STEPS[spacing], zone, error)


def _check_order(given: Steps, error: Error) -> None:
    apart = np.diff(given.instants)
    if (apart > 0).all():
        return
    i = int((apart <= 0).argmax()) + 1
    if apart[i - 1] < 0:
        why = f"before the row above ({given.said(i - 1)})"
    elif given.clock[i] == given.clock[i - 1]:
        why = "the same time again"
    else:
        why = f"the same time as the row above ({given.said(i - 1)}), which the clock skips; leave that row out"
    hint = ZONE_HINT if given.offsets is None and apart[i - 1] > -MOST_SET else ""
    raise error(i, f"{given.said(i)}: {why}; sort the rows, one for each time{hint}")


def _counted_in(given: Steps, spacing: str) -> Seconds:
    """[N] universal time for half-hours and hours, the clock for all others."""
    return given.instants if spacing in BY_THE_HOUR else given.clock


def _follow_each_other(given: Steps, spacing: str) -> bool:
    """Whether nothing needs to be done."""
    return spacing in STEPS and bool((np.diff(_counted_in(given, spacing)) == STEPS[spacing]).all())


def _numbered(given: Steps, spacing: str, error: Error) -> Seconds:
    """[N] the steps of the calendar, counted from the first row."""
    if spacing in STEPS:
        times = _counted_in(given, spacing)
        passed = times - times[0]
        number: Seconds = passed // STEPS[spacing]
        off = np.diff(passed) % STEPS[spacing] != 0
    else:
        number = _calendar(given.clock, spacing)
        off = (np.diff(number) < 1) | (np.diff(given.clock % STEPS["day"]) != 0)
        number = number - number[0]
    if off.any():
        i = int(off.argmax()) + 1
        raise error(i, f"{given.said(i)} is not a whole {spacing} after the row above")
    return number


def _calendar(clock: Seconds, spacing: str) -> Seconds:
    """[N] months or years since 1970."""
    found: Seconds = clock.astype("datetime64[s]").astype(f"datetime64[{spacing[0].upper()}]").astype(np.int64)
    return found


def _check_gaps(given: Steps, number: Seconds, spacing: str, gaps: str, zone: tzinfo | None, error: Error) -> None:
    missing = np.diff(number) - 1
    first = int((missing > 0).argmax()) + 1
    if gaps == "refuse":
        at, offset = _at(given, number[first - 1 : first] + 1, spacing), None
        due = int(at[0])
        if given.offsets is not None:
            hourly = spacing in BY_THE_HOUR
            offset = int(given.offsets[first - 1] if zone is None or not hourly else ahead_of(at, zone)[0])
            due += offset if hourly else 0
        hint = ZONE_HINT if given.offsets is None and spacing in BY_THE_HOUR and missing[first - 1] < 5 else ""
        raise error(
            first,
            f"{written(due, offset)} is missing before {given.said(first)}; fill it in, or say that it means zero "
            f"(gaps='zero' or --gaps zero){hint}",
        )
    longest = int(missing.argmax()) + 1
    if missing[longest - 1] > LONGEST_GAP[spacing]:
        raise error(
            longest,
            f"{missing[longest - 1]} {spacing}s are missing before {given.said(longest)}, and zeros fill a gap of at "
            f"most {LONGEST_GAP[spacing]}; is the date right? Else give the rows, or only those after the gap",
        )
    if missing.sum() > MOST_FILLED:
        raise error(
            first,
            f"{missing.sum()} {spacing}s are missing from here on, and zeros fill at most {MOST_FILLED}; give the rows "
            "that were left out",
        )


def _check_offsets(given: Steps, offsets: Seconds, number: Seconds, error: Error) -> None:
    """An error if the clock is set within a gap: which of the missing hours are before that is not known."""
    set_unseen = (np.diff(number) > 1) & (np.diff(offsets) != 0)
    if set_unseen.any():
        i = int(set_unseen.argmax()) + 1
        raise error(i, f"{given.said(i)}: the clock was set in the gap after {given.said(i - 1)}, and when is not "
                    "known; name its zone (time_zone, --time-zone)")  # fmt: skip


def _at(given: Steps, number: NDArray[np.int64], spacing: str) -> Seconds:
    """Seconds of steps of the calendar: in universal time where that is counted in, else by the clock."""
    if spacing in STEPS:
        begin = int(_counted_in(given, spacing)[0])
        return np.asarray(begin + number * STEPS[spacing])
    begins = (_calendar(given.clock[0], spacing) + number).astype(f"datetime64[{spacing[0].upper()}]")
    found: Seconds = begins.astype("datetime64[s]").astype(np.int64) + given.clock[0] % STEPS["day"]
    return found


def _filled(given: Steps, number: Seconds, spacing: str, zone: tzinfo | None) -> Steps:
    """The same with zeros in the gaps, and months and years from their first day on."""
    n = int(number[-1]) + 1
    if n == len(number):
        return given if spacing in STEPS else replace(given, clock=_at(given, number, spacing))
    filled = np.ones(n, np.bool_)
    filled[number] = False
    above = np.cumsum(~filled) - 1  # the last row before each step, or its own
    at, offsets = _at(given, np.arange(n), spacing), None
    clock = at
    if given.offsets is not None:
        offsets = given.offsets[above] if zone is None or spacing not in BY_THE_HOUR else ahead_of(at, zone)
        clock = at + offsets if spacing in BY_THE_HOUR else at
    note = f"{n - len(number)} {spacing}s stand in no row and count as 0, the first {written(int(clock[filled][0]))}."
    values = np.where(filled, 0.0, given.values[above])
    return Steps(values, clock, offsets, np.asarray(given.rows)[above], filled, (note,))


# -- daylight saving --------------------------------------------------------------------------------------------


def _once_for_twice(given: Steps, zone: tzinfo, step: int) -> Steps:
    """The same with a second row for each of an hour that comes twice and is written once.

    Its value is nan, and it goes once the gaps are known: until then it stands where a row would be missed.
    """
    assert given.offsets is not None
    places: list[int] = []
    twice: list[int] = []
    for j in np.flatnonzero(np.diff(given.offsets) < 0) + 1:  # the first row after the clock was set back
        before, after = given.offsets[j - 1], given.offsets[j]
        last = slice(max(0, j - (before - after) // step), j + 1)
        clock = given.clock[last]
        again = (ahead_of(clock - before, zone) == before) & (ahead_of(clock - after, zone) == after)
        if not again[-1]:  # else the hour is written twice
            found = np.flatnonzero(again) + last.start
            places += [int(j)] * len(found)
            twice += found.tolist()
    if not places:
        return given
    return replace(
        given,
        values=np.insert(given.values, places, np.nan),
        clock=np.insert(given.clock, places, given.clock[twice]),
        offsets=np.insert(given.offsets, places, given.offsets[places]),
        rows=np.insert(np.asarray(given.rows), places, np.asarray(given.rows)[twice]),
    )


def _without(given: Steps, these: NDArray[np.bool_]) -> Steps:
    """The same but for some steps."""
    if not these.any():
        return given
    each = {name: getattr(given, name) for name in ("values", "clock", "offsets", "rows", "filled")}
    parts: dict[str, Any] = {name: None if one is None else one[~these] for name, one in each.items()}
    return replace(given, **parts)


def _one_clock(given: Steps, step: int, zone: tzinfo | None, error: Error) -> Steps:
    """Every day with 24 hours, as the clock has them: an hour that it skips is made up, one that comes twice is one.

    An hour that is skipped gets the mean of its two neighbours, one that comes twice the mean of its values: rounded,
    where all values are whole numbers.
    """
    assert given.offsets is not None
    moved = np.diff(given.offsets)
    if not moved.any():
        return given
    odd = (np.abs(moved) > MOST_SET) | (moved % step != 0)
    if odd.any():
        i = int(odd.argmax()) + 1
        by = timedelta(seconds=abs(int(moved[i - 1])))
        remedy = "name the zone to whose clock all are to be brought (time_zone, --time-zone)"
        if zone is not None:
            remedy = "a clock is set by whole steps and two hours at most; give the rows before that, or those after it"
        raise error(
            _row(given, i), f"{given.said(i)}: its clock differs by {by} from that of {given.said(i - 1)}; {remedy}"
        )
    slot = (given.clock - given.clock.min()) // step
    n = int(slot.max()) + 1
    count = np.bincount(slot, minlength=n)
    mean = np.bincount(slot, given.values, n) / np.maximum(count, 1)
    own = np.zeros(n, np.int64)
    own[slot[::-1]] = np.arange(len(slot))[::-1]  # the first row of each
    here = np.flatnonzero(count > 0)
    skipped = np.flatnonzero(count == 0)
    above = np.searchsorted(here, skipped) - 1
    mean[skipped] = (mean[here[above]] + mean[here[above + 1]]) / 2
    own[skipped] = own[here[above]]
    if np.array_equal(given.values, np.rint(given.values)):
        mean = np.rint(mean)
    filled = np.zeros(n, np.bool_) if given.filled is None else given.filled[own]
    filled[skipped] = True
    clock = given.clock.min() + step * np.arange(n)
    notes = (
        _note("forward", clock[skipped], moved > 0, "it skips is taken as the mean of its two neighbours"),
        _note("back", clock[count > 1], moved < 0, "comes twice is taken as the mean of its values"),
    )
    return Steps(mean, clock, given.offsets[own], np.asarray(given.rows)[own], filled, given.notes + sum(notes, ()))


def _row(given: Steps, i: int) -> int:
    """The row, among those that were read, of step i."""
    return i if given.filled is None else i - int(given.filled[: i + 1].sum())


def _note(way: str, clock: Seconds, when: NDArray[np.bool_], what: str) -> tuple[str, ...]:
    if not len(clock):
        return ()
    times = "once, " if when.sum() == 1 else f"{when.sum()} times, first "
    return (f"The clock was set {way} {times}on {written(int(clock[0]))[:10]}: the hour that {what}.",)
