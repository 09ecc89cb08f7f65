"""A series: numbers in the order of time, when they were measured, and where in their file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.int64]  # since the first of January 1970
Times = NDArray[np.datetime64]
STEPS = {"half-hour": 1800, "hour": 3600, "day": 86_400, "week": 7 * 86_400}  # in seconds


@dataclass(frozen=True, eq=False)
class Series:
    """Numbers in the order of time."""

    values: NDArray[np.float64]  # [N]
    times: Times | None  # [N] local times, in whole seconds; None where the file has none
    name: str  # of the column
    source: str  # where it is from
    rows: Sequence[int] | NDArray[np.int64] | None = None  # [N] row numbers in the file, where there is one
    offsets: Seconds | None = None  # [N] how far the local clock is ahead of universal time, where that is known
    filled: NDArray[np.bool_] | None = None  # [N] which values are in no row: gaps, and hours that the clock skips
    unknown: NDArray[np.bool_] | None = None  # [N] which of these are not known, and 0 only for want of a number
    notes: tuple[str, ...] = ()  # sentences on what was done to the rows

    def __post_init__(self) -> None:
        if self.times is not None:
            object.__setattr__(self, "times", np.asarray(self.times, "datetime64[s]"))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        span = "" if self.times is None else f", {written(self.times[0])} to {written(self.times[-1])}"
        return f"Series({len(self)} values of {self.name!r} from {self.source}{span})"

    def part(self, first: int, stop: int) -> Series:
        """Values first to stop - 1."""
        cut = slice(first, stop)
        each = {name: getattr(self, name) for name in ("times", "rows", "offsets", "filled", "unknown")}
        parts: dict[str, Any] = {name: None if one is None else one[cut] for name, one in each.items()}
        return replace(self, values=self.values[cut], **parts)

    def when(self, i: int) -> str:
        """The time of value i as people write it, with its offset where that is known; nothing without times."""
        if self.times is None:
            return ""
        return written(self.times[i], None if self.offsets is None else int(self.offsets[i]))

    def place(self, i: int) -> str:
        """Where value i is found: its row, and its date where there is one."""
        date = "" if self.times is None else written(self.times[i]).removesuffix(" 00:00:00")
        if self.rows is None or (self.filled is not None and self.filled[i]):
            return date or f"value {i + 1}"
        return f"row {self.rows[i]} ({date})" if date else f"row {self.rows[i]}"

    @property
    def spacing(self) -> str | None:
        """How far times are apart: "half-hour", "hour", "day", "week", "month" or "year"; None if none of these."""
        if self.times is None or len(self) < 2:
            return None
        return spacing_of(self.times.astype(np.int64))

    @property
    def instants(self) -> Seconds | None:
        """[N] universal time, where it is known."""
        if self.times is None or self.offsets is None:
            return None
        found: Seconds = self.times.astype(np.int64) - self.offsets
        return found


def written(time: np.datetime64 | int, offset: int | None = None) -> str:
    """A time as people write it, with how far its clock is ahead of universal time where that is known."""
    text = str(np.asarray(time, "datetime64[s]")).replace("T", " ")
    if offset is None:
        return text
    minutes = abs(int(offset)) // 60
    return f"{text}{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def spacing_of(seconds: Seconds, smallest: bool = False) -> str | None:
    """The median spacing of the first rows, or the smallest of all; None if it is not one that has a name here."""
    apart = np.diff(seconds) if smallest else np.sort(np.diff(seconds[:50]))
    usual = int(apart.min() if smallest else apart[len(apart) // 2])
    days = usual / STEPS["day"]
    if 28 <= days <= 31:
        return "month"
    if 365 <= days <= 366:
        return "year"
    return next((name for name, step in STEPS.items() if step == usual), None)
