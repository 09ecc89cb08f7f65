"""Daylight saving: hours that the local clock skips or shows twice, so that every day of a series has 24 hours."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, tzinfo
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.data.series import STEPS, Seconds, written
from ucbf.data.steps import RowError, Steps
from ucbf.data.zones import offsets_at

LARGEST_CHANGE = 2 * STEPS["hour"]  # by which daylight saving sets a clock


def add_second_hours(given: Steps, zone: tzinfo, step: int) -> Steps:
    """The same with the second of two equal hours added, where the clock shows an hour twice and it is written once.

    The values that are added are nan, so that no row seems to be missing there; :func:`days_of_24_hours` removes them.
    """
    assert given.offsets is not None
    places: list[int] = []
    twice: list[int] = []
    for j in np.flatnonzero(np.diff(given.offsets) < 0) + 1:  # the first row after the clock was set back
        before, after = given.offsets[j - 1], given.offsets[j]
        last = slice(max(0, j - (before - after) // step), j + 1)
        clock = given.clock[last]
        again = (offsets_at(clock - before, zone) == before) & (offsets_at(clock - after, zone) == after)
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


def days_of_24_hours(given: Steps, step: int, zone: tzinfo | None, error: RowError) -> Steps:
    """One value for each step of the local clock: an hour that it skips is added, one that it shows twice is merged.

    An hour that is skipped gets the mean of its two neighbours, one that comes twice the mean of its values: rounded,
    where all values are whole numbers. Of values that are not known, those that are count; without any it is not known.
    """
    given = _without(given, np.isnan(given.values))
    assert given.offsets is not None
    changes = np.diff(given.offsets)
    if not changes.any():
        return given
    _check_changes(given, changes, step, zone, error)
    slot = (given.clock - given.clock.min()) // step
    n = int(slot.max()) + 1
    count = np.bincount(slot, minlength=n)
    measured = np.ones(len(slot)) if given.unknown is None else np.where(given.unknown, 0.0, 1.0)
    known = np.bincount(slot, measured, n)  # how many values of each
    mean = np.bincount(slot, given.values * measured, n) / np.maximum(known, 1)
    own = np.zeros(n, np.int64)
    own[slot[::-1]] = np.arange(len(slot))[::-1]  # the first row of each
    here = np.flatnonzero(count > 0)
    skipped = np.flatnonzero(count == 0)
    above = np.searchsorted(here, skipped) - 1
    before, after = here[above], here[above + 1]
    known[skipped] = (known[before] > 0).astype(float) + (known[after] > 0)
    mean[skipped] = (mean[before] + mean[after]) / np.maximum(known[skipped], 1)
    own[skipped] = own[before]
    if np.array_equal(given.values, np.rint(given.values)):
        mean = np.rint(mean)
    filled = np.zeros(n, np.bool_) if given.filled is None else given.filled[own]
    filled[skipped] = True
    unknown = None if given.unknown is None else known == 0
    clock = given.clock.min() + step * np.arange(n)
    notes = (
        _note("forward", clock[skipped], changes > 0, "it skips is taken as the mean of its two neighbours"),
        _note("back", clock[count > 1], changes < 0, "comes twice is taken as the mean of its values"),
    )
    rows = np.asarray(given.rows)[own]
    return Steps(mean, clock, given.offsets[own], rows, filled, unknown, given.notes + sum(notes, ()))


def _without(given: Steps, removed: NDArray[np.bool_]) -> Steps:
    """The same without some steps."""
    if not removed.any():
        return given
    each = {name: getattr(given, name) for name in ("values", "clock", "offsets", "rows", "filled", "unknown")}
    parts: dict[str, Any] = {name: None if one is None else one[~removed] for name, one in each.items()}
    return replace(given, **parts)


def _check_changes(given: Steps, changes: Seconds, step: int, zone: tzinfo | None, error: RowError) -> None:
    """An error if a clock is set by more than daylight saving does, or not by whole steps. changes: [N-1]."""
    odd = (np.abs(changes) > LARGEST_CHANGE) | (changes % step != 0)
    if odd.any():
        i = int(odd.argmax()) + 1
        by = timedelta(seconds=abs(int(changes[i - 1])))
        remedy = "give the time zone to convert all rows to (time_zone, --time-zone)"
        if zone is not None:
            remedy = "a clock is set by whole steps and two hours at most; give the rows before that, or those after it"
        row = i if given.filled is None else i - int(given.filled[: i + 1].sum())  # among those that were read
        raise error(row, f"{given.when(i)}: its clock differs by {by} from that of {given.when(i - 1)}; {remedy}")


def _note(way: str, clock: Seconds, when: NDArray[np.bool_], what: str) -> tuple[str, ...]:
    if not len(clock):
        return ()
    times = "once, " if when.sum() == 1 else f"{when.sum()} times, first "
    return (f"The clock was set {way} {times}on {written(int(clock[0]))[:10]}: the hour that {what}.",)
