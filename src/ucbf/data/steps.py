"""Values and their times while they are put on a calendar: what calendar.py and daylight_saving.py work on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ucbf.data.series import Seconds, written
from ucbf.errors import UserError

RowError = Callable[[int, str], UserError]  # the error for a row and a message


@dataclass(frozen=True, eq=False)
class Steps:
    """Values and when they were measured."""

    values: NDArray[np.float64]  # [N]
    clock: Seconds  # [N] local time
    offsets: Seconds | None  # [N] how far the local clock is ahead of universal time
    rows: Sequence[int] | NDArray[np.int64]  # [N] of the file
    filled: NDArray[np.bool_] | None = None  # [N] which values are in no row of the file
    unknown: NDArray[np.bool_] | None = None  # [N] which of these are not known
    notes: tuple[str, ...] = ()
    offsets_of_zone: bool = False  # whether the rows have no offsets of their own, and these are those of the time zone

    @property
    def instants(self) -> Seconds:
        """[N] universal time where it is known, else local time."""
        return self.clock if self.offsets is None else self.clock - self.offsets

    def when(self, i: int) -> str:
        """The time of step i as people write it, with its offset where that is known."""
        return written(int(self.clock[i]), None if self.offsets is None else int(self.offsets[i]))
