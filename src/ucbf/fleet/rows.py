"""The rows of many items, as they are handed on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST_GAP = 731  # days that are filled: a longer gap is a date with a wrong year


@dataclass(frozen=True)
class Columns:
    """What the columns of the file are called."""

    item: str = "item"
    time: str = "date"
    amount: str = "demand"
    forecast: str | None = None  # what was expected of each day, and is of those to come, which have no demand yet
    date_format: str | None = None  # how dates of text are written, as for strptime; None: it is found out
    gaps: str = "unknown"  # what a missing day between the first and the last of an item means: "unknown", or "zero"

    @property
    def all(self) -> list[str]:
        """The columns that are read."""
        return [self.item, self.time, self.amount, *([] if self.forecast is None else [self.forecast])]


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of some items, item by item."""

    names: list[str]  # [n]
    begins: NDArray[np.int64]  # [n + 1] where the rows of each begin
    day: NDArray[np.int32]  # [N] counted from 1970-01-01
    amount: NDArray[Any]  # [N] of the file's kind of number; not a number where it is still to come
    forecast: NDArray[Any] | None  # [N]
    refused: dict[str, str] = field(default_factory=dict)  # by item: why its rows cannot be used

    def __len__(self) -> int:
        return len(self.day)

    def in_floats(self) -> Rows:
        """The same, with amounts and forecasts as floats."""
        forecast = None if self.forecast is None else self.forecast.astype(np.float64, copy=False)
        return replace(self, amount=self.amount.astype(np.float64, copy=False), forecast=forecast)

    @property
    def item(self) -> NDArray[np.int64]:
        """[N] to which item each row belongs."""
        return np.repeat(np.arange(len(self.names)), np.diff(self.begins))

    def with_zeros(self) -> Rows:
        """The same with a row of 0 for every day that is missing between two of an item."""
        step = np.diff(self.day)
        step[self.begins[1:-1] - 1] = 1  # to the next item
        missing = np.where((step > 1) & (step <= LONGEST_GAP + 1), step - 1, 0)
        if not missing.any():
            return self
        rows = np.append(missing, 0) + 1  # that each row becomes
        at = np.concatenate([[0], np.cumsum(rows)])
        after = np.arange(at[-1]) - np.repeat(at[:-1], rows)
        amount = np.where(after > 0, 0, np.repeat(self.amount, rows))
        return replace(
            self, begins=at[self.begins], day=(np.repeat(self.day, rows) + after).astype(np.int32), amount=amount
        )
