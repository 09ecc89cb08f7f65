"""``ucbf act`` and ``observe`` in a folder of many items that ``ucbf learn --item`` wrote: a row of a file for each."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ucbf.cli.items import DONE, REFUSED, TABLE, folder_names
from ucbf.cli.store_mornings import Marks
from ucbf.data.calendar import HOURLY
from ucbf.data.columns import listed
from ucbf.data.items import split_items
from ucbf.data.tables import Table, table_of
from ucbf.errors import UserError
from ucbf.following import follow, read_happened, read_states
from ucbf.following.calendar import Calendar
from ucbf.following.store_steps import COLUMNS, read_told
from ucbf.following.stores import NAME as STORE
from ucbf.following.stores import StoreFollower
from ucbf.reports import comma_separated
from ucbf.wording import show_count

NOT_COUNTED = "its stock is not in the file"
NO_PLAN = "nothing was learned of it: learn again with its rows, or correct its name"
PARTS = {"step", "date", *(name for names in COLUMNS.values() for name in names)}  # columns that hold no items
Row = dict[str, Any]


class When(NamedTuple):
    """The day that is asked for, and how dates are written."""

    date: Any
    date_format: str | None


def act(folder: Path, file: Path, when: When, json: bool) -> None:
    """Print a row for each item: what to order, or why that cannot be said."""
    statuses = _statuses(folder)
    given = _by_item(file, statuses)
    rows = [row for name in statuses for row in _advised(folder, name, statuses[name], given.get(name), when)]
    rows += [_row(name, note=NO_PLAN) for name in given if name not in statuses]
    if not any(row["order"] != "" for row in rows):
        raise UserError(f"{folder}: there is no order for any of {show_count(len(rows), 'item')}; "
                        f"item {rows[0]['item']!r}: {rows[0]['note']}")  # fmt: skip
    if json:
        from json import dumps

        for row in rows:
            print(dumps({name: None if cell == "" else cell for name, cell in row.items()}, ensure_ascii=False))
    else:
        print(comma_separated(rows), end="")


def observe(folder: Path, file: Path, date_format: str | None, marks: Marks) -> None:
    """Take in the rows of each item, all or none of an item; an error that names an item that was refused."""
    statuses = _statuses(folder)
    refused = []
    for name, part in _by_item(file, statuses).items():
        said = _tried(lambda name=name, part=part: _taken(_learned(folder, name, statuses), part, date_format, marks))  # type: ignore[misc]
        if isinstance(said, UserError):
            refused.append(f"item {name!r}: {said}")
        else:
            print("\n".join(f"{name}: {line}" for line in said.splitlines()))
    if refused:
        raise UserError(
            f"{show_count(len(refused), 'item')} refused, and the others taken in; correct the rows, and give the file "
            f"again, which counts nothing twice where steps have dates or numbers. {'; '.join(refused[:3])}"
            + (f"; and {len(refused) - 3} more" if len(refused) > 3 else "")
        )


def _statuses(folder: Path) -> dict[str, str]:
    """By the name of an item, in the order of their names: done, or why it was refused."""
    with (folder / TABLE).open(encoding="utf-8", newline="") as file:
        return {row["item"]: row["status"] for row in sorted(csv.DictReader(file), key=lambda row: row["item"])}


def _by_item(file: Path, names: dict[str, str]) -> dict[str, Table]:
    """The rows of each item of a file; the column of items is the one that holds their names."""
    table = table_of(file)
    others = {name: cells for name, cells in table.columns.items() if name.strip().lower() not in PARTS}
    found = [name for name, cells in others.items() if not names.keys().isdisjoint(map(str, cells.to_pylist()))]
    if len(found) != 1:
        raise UserError(
            f"{file}: {'no' if not found else 'more than one'} column holds the names of items, such as "
            f"{next(iter(names), '')!r}; it has {listed(found or table.columns)}"
        )
    return split_items(table, found[0])


def _learned(folder: Path, name: str, statuses: dict[str, str]) -> Path:
    """The folder of an item."""
    status = statuses.get(name, NO_PLAN)
    if status != DONE:
        raise UserError(status.removeprefix(f"{REFUSED}: "))
    return folder / folder_names([name])[name]


def _tried(do: Callable[[], Any]) -> Any:
    """What comes of it, or the error."""
    try:
        return do()
    except (TypeError, ValueError) as error:
        return error if isinstance(error, UserError) else UserError(str(error))


def _row(name: str, date: str = "", stock: float | None = None, order: float | None = None, note: str = "") -> Row:
    numbers = ("" if x is None else int(x) if x == int(x) else x for x in (stock, order))
    return {"item": name, "date": date, **dict(zip(("stock", "order"), numbers, strict=True)),
            "note": " ".join(note.split())}  # fmt: skip


def _advised(folder: Path, name: str, status: str, part: Table | None, when: When) -> list[Row]:
    """The rows of an item."""
    if part is None:
        return [_row(name, note=NOT_COUNTED if status == DONE else status)]
    found = _tried(lambda: _orders(_learned(folder, name, {name: status}), name, part, when))
    return [_row(name, note=str(found))] if isinstance(found, UserError) else found


def _orders(folder: Path, name: str, part: Table, when: When) -> list[Row]:
    if (folder / STORE).is_file():
        store = StoreFollower(folder)
        told = [store.act(*each) for each in _asked(part, store.shop, when)]
        return [_row(name, _date(store.calendar, o.when), o.stock, o.order, "; ".join(o.notes)) for o in told]
    follower = follow(folder)
    found = follower.act_all(_asked(part, follower.preset, when), {})
    return [
        _row(
            name, _date(follower.calendar, each.when), each.state, each.action, "; ".join([*each.warnings, *each.notes])
        )
        for each in found
    ]


def _date(calendar: Calendar, when: str) -> str:
    """When it is, without the day of the week."""
    return when if calendar.spacing in HOURLY else when.partition(" (")[0]


def _asked(part: Table, preset: Any, when: When) -> list[tuple[float, Any, int | None]]:
    """The states of an item, with their dates."""
    asked = read_states(part, preset, when.date_format)
    if when.date is None:
        return asked
    if any(date is not None or step is not None for _, date, step in asked):
        raise UserError(f"{part.source} has dates, and --date is given; give one or the other")
    return [(state, when.date, None) for state, _, _ in asked]


def _taken(folder: Path, part: Table, date_format: str | None, marks: Marks) -> str:
    """Take in the steps of an item; what was done."""
    if (folder / STORE).is_file():
        store = StoreFollower(folder)
        return store.observe_all(read_told(part, store.shop, date_format), marks.correct, marks.unusual)
    follower = follow(folder)
    steps = read_happened(part, follower.preset, date_format)
    return str(follower.observe_all(steps, marks.correct, unusual=marks.unusual))
