"""What happened in a step, as people tell it: by flags, or in a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ucbf.checks import real
from ucbf.errors import UserError
from ucbf.systems.base import Preset

if TYPE_CHECKING:
    from ucbf.data.tables import Table

    Source = str | os.PathLike[str] | Table  # a file, or what was read from one

FIELDS = ("state", "action", "amount", "next_state")
OPTIONAL = ("amount", "next_state")


@dataclass(frozen=True)
class Happened:
    """One step, in the user's units.

    state: before it; action: what was done, whoever decided it; amount: what came, or was asked for, where that was
    measured; next_state: after it; date, step: when, by one of the two; where: the row of a file
    """

    state: float
    action: float
    next_state: float | None = None  # None: what the amount tells
    amount: float | None = None
    date: Any = None
    step: int | None = None
    where: str = ""

    def error(self, message: str) -> UserError:
        """The error for this step."""
        return UserError(f"{self.where}: {message}" if self.where else message)

    def record(self) -> dict[str, Any]:
        """What a journal says of it, besides when it was."""
        return {name: getattr(self, name) for name in FIELDS}

    def is_same(self, other: Happened) -> bool:
        """Whether both say the same of a step."""
        return self.record() == other.record()


def of_record(record: dict[str, Any], words: dict[str, str]) -> Happened:
    """What a line of a journal says."""
    state, action, next_state, amount = (record[name] for name in ("state", "action", "next_state", "amount"))
    if next_state is None:
        raise ValueError(f"no {words['next_state']}")
    return checked(words, state, action, next_state, amount)


def checked(
    words: dict[str, str],
    state: Any,
    action: Any,
    next_state: Any,
    amount: Any,
    date: Any = None,
    step: int | None = None,
) -> Happened:
    """A step of finite numbers; next_state and amount may be None."""
    given = {"state": state, "action": action, "next_state": next_state, "amount": amount}
    needed = {
        name: None if x is None and name in OPTIONAL else real(words[name], x, -np.inf) for name, x in given.items()
    }
    return Happened(**needed, date=date, step=step)  # type: ignore[arg-type]


def words_of(preset: Preset) -> dict[str, str]:
    """What the parts of a step are called."""
    return {
        "state": preset.state_name,
        "action": preset.action_name,
        "amount": preset.amount_name,
        "next_state": f"next {preset.state_name}",
    }


def column_names(preset: Preset) -> dict[str, tuple[str, ...]]:
    """The names that columns of a file may have, the preset's own first."""
    state, action, amount = (
        text.replace(" ", "_") for text in (preset.state_name, preset.action_name, preset.amount_name)
    )
    last = amount.rpartition("_")[2]  # demand, of net_demand
    return {
        "state": (state, "state"),
        "action": (action, "action"),
        "amount": tuple(dict.fromkeys((amount, last, "amount"))),
        "next_state": (f"next_{state}", "left", "next_state"),
    }


def read_happened(source: Source, preset: Preset, date_format: str | None = None) -> list[Happened]:
    """The steps in a CSV or Parquet file, or a table: a row for each, in the order of the file."""
    names = column_names(preset)
    columns, dates, steps, rows = read_rows(source, names, ("state", "action"), OPTIONAL, date_format)
    return [
        Happened(
            float(columns["state"][i]),
            float(columns["action"][i]),
            **{part: None if np.isnan(columns[part][i]) else float(columns[part][i]) for part in OPTIONAL},
            date=None if dates is None else dates[i],
            step=None if steps is None else steps[i],
            where=where,
        )
        for i, where in enumerate(rows)
    ]


def read_states(source: Source, preset: Preset, date_format: str | None = None) -> list[tuple[float, Any, int | None]]:
    """The states in a file, each with its date or its step, or with neither."""
    columns, dates, steps, rows = read_rows(source, column_names(preset), ("state",), (), date_format)
    if len(rows) > 1 and dates is None and steps is None:
        where = rows[0].rpartition(", row ")[0]
        raise UserError(f"{where} has {len(rows)} rows without dates; give one row, or a column of dates")
    return [
        (float(state), None if dates is None else dates[i], None if steps is None else steps[i])
        for i, state in enumerate(columns["state"])
    ]


def read_rows(
    source: Source,
    names: Mapping[str, tuple[str, ...]],
    needed: tuple[str, ...],
    optional: tuple[str, ...],  # of which one must be there
    date_format: str | None,
) -> tuple[dict[str, Any], list[Any] | None, list[int] | None, list[str]]:
    """By name: [N] numbers, nan where an optional one is missing; dates; steps; and where each row is.

    names: that the column of each part may have, the first being the usual one
    """
    from ucbf.data.columns import optional_values, values_of
    from ucbf.data.dates import date_column, dates_of
    from ucbf.data.tables import table_of
    from ucbf.following.calendar import as_datetime

    table = table_of(source)
    lowered = {name.strip().lower().replace("-", "_").replace(" ", "_"): name for name in table.columns}
    found = {}
    for part in (*needed, *optional):
        known = [lowered[name] for name in names[part] if name in lowered]
        if len(known) > 1:
            raise UserError(f"{table.source} has {known[0]!r} and {known[1]!r}, which mean the same; leave one out")
        if not known and part in needed:
            raise UserError(
                f"{table.source} has no column {names[part][0]!r} (or {', '.join(map(repr, names[part][1:]))}); it has "
                f"{', '.join(map(repr, table.columns))}"
            )
        found[part] = known[0] if known else None
    if optional and not any(found[part] for part in optional):
        wanted = " or ".join(repr(names[part][0]) for part in optional)
        raise UserError(f"{table.source} has no column {wanted}; it has {', '.join(map(repr, table.columns))}")
    n = len(table.rows)
    if not n:
        raise UserError(f"{table.source} has no rows; give one for each step")
    columns = {
        part: np.full(n, np.nan) if name is None else
        values_of(table, name, None) if part in needed else optional_values(table, name)
        for part, name in found.items()
    }  # fmt: skip
    steps = None
    if "step" in lowered:
        given = values_of(table, lowered["step"], 1)
        odd = np.flatnonzero(given != np.rint(given))
        if len(odd):
            raise table.error(
                int(odd[0]), lowered["step"], f"{given[odd[0]]:g} is not a whole number; count steps from 1"
            )
        steps = [int(number) for number in given]
    taken = {*(name for name in found.values() if name is not None), lowered.get("step")}
    others = replace(table, columns={n: c for n, c in table.columns.items() if n not in taken})
    dated, dates = date_column(others, None, date_format), None
    if dated is not None:
        clock, offsets = dates_of(others, dated, date_format)
        dates = [as_datetime(time) for time in clock.astype("datetime64[s]")]
        if offsets is not None:
            from datetime import timedelta, timezone

            dates = [d.replace(tzinfo=timezone(timedelta(seconds=int(o)))) for d, o in zip(dates, offsets, strict=True)]
    return columns, dates, steps, [f"{table.source}, row {row}" for row in table.rows]
