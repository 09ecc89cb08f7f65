"""Time zones: how far a local clock is ahead of universal time."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
from numpy.typing import NDArray

from ucbf.data.series import STEPS, Seconds
from ucbf.errors import UserError

DAY = STEPS["day"]
EPOCH = datetime(1970, 1, 1)
FIRST_DAY, LAST_DAY = -719_160, 2_932_894  # since 1970: nearly the first and the last that Python has


def zone_of(name: str, where: str) -> tzinfo:
    """A time zone by its name, such as Europe/Berlin, or a fixed one, such as +01:00 or Z."""
    if name.upper() in {"Z", "UTC"}:
        return UTC
    fixed = re.fullmatch(r"([+-])(\d\d):?(\d\d)", name)
    if fixed and int(fixed[2]) < 24 and int(fixed[3]) < 60:
        minutes = 60 * int(fixed[2]) + int(fixed[3])
        return timezone(timedelta(minutes=-minutes if fixed[1] == "-" else minutes))
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        near = difflib.get_close_matches(name, available_timezones(), n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UserError(f"{where}: unknown time zone {name!r}; {hint}give one such as Europe/Berlin or UTC") from None


def offsets_at(instants: Seconds, zone: tzinfo) -> Seconds:
    """[N] seconds by which the clock of a zone is ahead of universal time, at times [N] in universal time."""

    def offset(second: int) -> int:
        return _seconds((EPOCH + timedelta(seconds=second)).replace(tzinfo=UTC).astimezone(zone).utcoffset())

    offsets, changing = _by_days(instants, offset)
    for i in np.flatnonzero(changing):
        offsets[i] = offset(int(instants[i]))
    return offsets


def offsets_by_clock(clock: Seconds, zone: tzinfo) -> Seconds:
    """[N] the same, at local times [N] of the zone, in their order.

    Where the clock shows an hour twice, rows belong to the first of the two until a row goes back in time, and to the
    second from that row on. A time that the clock skips counts as one before the change.
    """

    def offset(second: int, fold: int = 0) -> int:
        return _seconds((EPOCH + timedelta(seconds=second)).replace(tzinfo=zone, fold=fold).utcoffset())

    offsets, changing = _by_days(clock, offset)
    again = False
    for i in np.flatnonzero(changing):
        before, after = (offset(int(clock[i]), fold) for fold in (0, 1))
        again = bool(before > after and i > 0 and (again or clock[i] <= clock[i - 1]))
        offsets[i] = after if again else before
    return offsets


def _by_days(times: Seconds, offset: Callable[[int], int]) -> tuple[Seconds, NDArray[np.bool_]]:
    """[N] the offset at the beginning of each time's day, and [N] whether it changes on that day."""
    day = np.clip(times // DAY, FIRST_DAY, LAST_DAY)
    days, which = np.unique(day, return_inverse=True)
    begins, ends = (np.array([offset(DAY * int(d)) for d in days + more], np.int64) for more in (0, 1))
    outside = times // DAY != day  # of what Python knows; no zone changes there
    return begins[which], (begins != ends)[which] & ~outside


def _seconds(offset: timedelta | None) -> int:
    return 0 if offset is None else int(offset.total_seconds())
