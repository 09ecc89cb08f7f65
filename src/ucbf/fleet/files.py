"""From a long file with many items to a folder of plans, a part of the items at a time.

The rows of an item stand together, in order of time. Items are read, learned from and written ``CHUNK`` at a time, so
that memory does not grow with the file. Each part is a Parquet file that is written whole, and its name ends with a
digest of all that it follows from: a run that was killed goes on where it stopped, and a part whose rows or costs have
changed is made again. All parts together are one table for whatever reads Parquet folders.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ucbf import __version__
from ucbf.errors import UserError
from ucbf.files import digest, remove_parts, write_whole
from ucbf.fleet.items import Fleet
from ucbf.run import Progress
from ucbf.systems.base import Preset

CHUNK = 2048  # items that are learned from at once
ROWS = 1 << 18  # that are read at once
FEWEST = 8  # episodes below which a plan is a first guess
CHANGED = 5.0  # standard errors between the halves of a series that are no chance
MONDAY = 4  # 1970-01-05, in days from 1970-01-01


@dataclass(frozen=True)
class Columns:
    """What the columns of the file are called."""

    item: str = "item"
    time: str = "date"
    amount: str = "demand"


@dataclass(frozen=True, eq=False)
class Chunk:
    """The rows of some items, item by item."""

    names: list[str]  # [n]
    item: NDArray[np.int64]  # [N] which of them
    day: NDArray[np.int64]  # [N] counted from 1970-01-01
    amount: NDArray[np.float64]  # [N]


def learn_fleet(
    preset: Preset,
    source: str | Path,
    out: str | Path,
    costs: str | Path | None = None,
    *,
    columns: Columns | None = None,
    stationary: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> dict[str, int]:
    """Learn a plan for every item of a long file, and write them to a folder of Parquet files.

    Parameters
    ----------
    preset
        What all items have in common: sizes, and the costs that are not given for each.
    source
        A Parquet or CSV file with a row for each item and day, the rows of an item together and in order.
    out
        The folder. A row an item: ``expected`` is the reward that is expected of an episode from the state nearest to
        0, ``action`` [H · S] the best quantity at every step and state, ``value`` [S] what every first state is worth,
        ``note`` what looks wrong. Items that cannot be used have a ``note`` and no plan.
    costs
        A Parquet or CSV file with a row an item, and a column for each parameter of the preset that differs.
    columns
        What the columns are called: item, date and demand unless told otherwise.
    stationary
        Whether all steps share one distribution. Else step h of an episode is the h-th day of a period of
        ``preset.horizon`` days, counted from Monday 1970-01-05.
    progress
        Called with (rows done, rows).

    Returns
    -------
    How many items were ``learned`` anew, ``kept`` from an earlier run and ``refused``.
    """
    named, folder = columns or Columns(), Path(out)
    prices = _Costs.read(costs, named.item, preset)
    folder.mkdir(parents=True, exist_ok=True)
    remove_parts(folder)
    total, done, seen, kept = _n_rows(Path(source)), 0, set[str](), set[str]()
    counted = {"learned": 0, "kept": 0, "refused": 0}
    for number, chunk in enumerate(_chunks(Path(source), named)):
        doubled = seen.intersection(chunk.names)
        if doubled:
            raise UserError(
                f"{source}: the rows of item {min(doubled)!r} do not stand together; sort the file by {named.item!r} "
                f"and {named.time!r}"
            )
        seen.update(chunk.names)
        given = prices.of(chunk.names)
        key = _key(preset, stationary, chunk, given)
        path = folder / f"plans-{number:06d}-{key}.parquet"
        kept.add(path.name)
        if path.is_file():
            counted["kept"] += len(chunk.names)
        else:
            refused = _learn(preset, chunk, given, stationary, workers, path)
            counted["learned"] += len(chunk.names) - refused
            counted["refused"] += refused
        done += len(chunk.item)
        if progress is not None:
            progress(done, max(total, done))
    if not kept:
        raise UserError(f"{source} has no rows")
    for path in folder.glob("plans-*.parquet"):
        if path.name not in kept:  # of rows or costs that have changed
            path.unlink()
    return counted


def _learn(
    preset: Preset,
    chunk: Chunk,
    costs: dict[str, NDArray[np.float64]],
    stationary: bool,
    workers: int | None,
    path: Path,
) -> int:
    """Learn from some items and write their plans; how many were refused."""
    n, low, high = len(chunk.names), *preset.amount_range
    outside = (chunk.amount < low - preset.unit / 2) | (chunk.amount > high + preset.unit / 2)
    wrong = np.bincount(chunk.item, outside, n) > 0
    noted = _notes(preset, chunk, wrong, costs)
    usable = np.array([note is None or not note.startswith("refused") for note in noted])
    fleet = Fleet(preset, {name: np.where(usable, values, 0) for name, values in costs.items()}, n,
                  stationary=stationary, workers=workers)  # fmt: skip
    good = usable[chunk.item]
    w = preset.sign * preset.to_units(chunk.amount[good])
    fleet.add(chunk.item[good], (chunk.day[good] - MONDAY) % preset.n_steps, w)
    rows = np.bincount(chunk.item, minlength=n)
    begins = np.concatenate([[0], np.cumsum(rows)[:-1]])
    missing = pa.array(~usable)
    start = preset.system.states.index(preset.system.nearest_to_zero)
    quantities = preset.action_quantities[fleet.policies].reshape(n, -1)
    columns = {
        "item": pa.array(chunk.names),
        "rows": pa.array(rows),
        "first": pa.array(chunk.day[begins].astype("datetime64[D]")),
        "last": pa.array(chunk.day[begins + rows - 1].astype("datetime64[D]")),
        "mean": pa.array(np.bincount(chunk.item, chunk.amount, n) / rows),
        **{name: pa.array(values) for name, values in costs.items()},
        "expected": pc.if_else(missing, None, pa.array(fleet.values[:, start])),
        "value": _lists(fleet.values, usable),
        "action": _lists(quantities, usable),
        "note": pa.array(noted, pa.string()),
    }
    file = BytesIO()
    pq.write_table(pa.table(columns), file, compression="zstd")
    write_whole(path, file.getvalue())
    return int((~usable).sum())


def _lists(table: NDArray[Any], usable: NDArray[np.bool_]) -> Any:
    """Rows of a table as lists, none for items that cannot be used."""
    flat = pa.array(table[usable].ravel())
    ends = np.concatenate([[0], np.cumsum(usable) * table.shape[1]])
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), flat, mask=pa.array(~usable))


def _notes(
    preset: Preset, chunk: Chunk, outside: NDArray[np.bool_], costs: dict[str, NDArray[np.float64]]
) -> list[str | None]:
    """[n] what looks wrong with each item; None where nothing does."""
    n, rows = len(chunk.names), np.bincount(chunk.item, minlength=len(chunk.names))
    place = np.arange(len(chunk.item)) - np.concatenate([[0], np.cumsum(rows)[:-1]])[chunk.item]
    late = place >= rows[chunk.item] // 2
    unpriced = np.zeros(n, np.bool_)
    for values in costs.values():
        unpriced |= ~np.isfinite(values)
    step = np.diff(chunk.day, prepend=chunk.day[:1])
    same = np.diff(chunk.item, prepend=-1) == 0
    disordered = np.bincount(chunk.item, same & (step <= 0), n) > 0
    gaps = np.bincount(chunk.item, np.where(same, np.maximum(step - 1, 0), 0), n)
    half = [_moments(chunk, part, n) for part in (~late, late)]
    spread = np.sqrt(half[0][1] + half[1][1])
    change = np.divide(half[1][0] - half[0][0], spread, out=np.zeros(n), where=spread > 0)
    found: list[str | None] = []
    low, high = preset.amount_range
    for i in range(n):
        if unpriced[i]:
            found.append("refused: no costs; add a row to the file of costs")
        elif disordered[i]:
            found.append("refused: its days are not in order, or one stands twice; sort the file, keep one row a day")
        elif outside[i]:
            found.append(f"refused: a {preset.amount_name} outside {low:g}..{high:g}; plan it with larger sizes")
        elif abs(change[i]) > CHANGED:
            word = "rose" if change[i] > 0 else "fell"
            means = f"from {half[0][0][i]:.3g} to {half[1][0][i]:.3g} a day"
            found.append(f"its {preset.amount_name} {word} {means}; all of the past counts alike here")
        elif rows[i] < FEWEST * preset.n_steps:
            found.append(f"learned from {rows[i]} days: take it as a first guess")
        elif gaps[i]:
            found.append(f"{gaps[i]:g} days are missing")
        else:
            found.append(None)
    return found


def _moments(chunk: Chunk, part: NDArray[np.bool_], n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[n] the mean of each item in a part of the rows, and the square of its standard error."""
    rows = np.maximum(np.bincount(chunk.item, part, n), 1)
    mean = np.bincount(chunk.item, part * chunk.amount, n) / rows
    square = np.bincount(chunk.item, part * (chunk.amount - mean[chunk.item]) ** 2, n)
    return mean, square / rows / np.maximum(rows - 1, 1)


def _key(preset: Preset, stationary: bool, chunk: Chunk, costs: dict[str, NDArray[np.float64]]) -> str:
    """A digest of all that the plans of some items follow from."""
    stated = [__version__, type(preset).__name__, preset.parameters(), stationary, sorted(costs), chunk.names]
    arrays = [chunk.item, chunk.day, chunk.amount, *(costs[name] for name in sorted(costs))]
    return digest(json.dumps(stated, default=str).encode() + b"".join(array.tobytes() for array in arrays))


# -- costs ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Costs:
    """A row of costs for each item."""

    row: dict[str, int]  # by item
    columns: dict[str, NDArray[np.float64]]

    @classmethod
    def read(cls, path: str | Path | None, item: str, preset: Preset) -> _Costs:
        if path is None:
            return cls({}, {})
        table = pq.read_table(path) if _is_parquet(Path(path)) else _csv(Path(path), item).read_all()
        if item not in table.column_names:
            raise UserError(f"{path} has no column {item!r}; it has {', '.join(table.column_names)}")
        unknown = [name for name in table.column_names if name != item and name not in preset.money]
        if unknown:
            raise UserError(
                f"{path}: column {unknown[0]!r} is no cost of {type(preset).__name__}; those are "
                f"{', '.join(preset.money)}"
            )
        names = table[item].cast(pa.string()).to_pylist()
        row = {name: i for i, name in enumerate(names)}
        if len(row) < len(names):
            twice = next(name for i, name in enumerate(names) if row[name] != i)
            raise UserError(f"{path}: item {twice!r} has two rows; keep one")
        return cls(row, {name: _numbers(path, table, name) for name in table.column_names if name != item})

    def of(self, names: list[str]) -> dict[str, NDArray[np.float64]]:
        """By the name of a cost, [n] that of each item; not a number where there is none."""
        rows = np.array([self.row.get(name, -1) for name in names])
        return {name: np.where(rows >= 0, values[rows], np.nan) for name, values in self.columns.items()}


# -- reading -------------------------------------------------------------------------------------------


def _chunks(path: Path, columns: Columns) -> Iterator[Chunk]:
    """The file, ``CHUNK`` items at a time."""
    waiting: list[Any] = []
    n_waiting = 0
    for table in _tables(path, columns):
        waiting.append(table)
        n_waiting += len(pc.unique(table[columns.item]))
        while n_waiting > CHUNK:  # the last may go on in the next table
            joined = pa.concat_tables(waiting)
            begins = _begins(joined[columns.item])
            if len(begins) <= CHUNK:
                waiting, n_waiting = [joined], len(begins)
                break
            yield _chunk(path, joined.slice(0, begins[CHUNK]), columns)
            rest = joined.slice(begins[CHUNK])
            waiting, n_waiting = [rest], len(begins) - CHUNK
    if waiting and sum(len(table) for table in waiting):
        yield _chunk(path, pa.concat_tables(waiting), columns)


def _begins(items: Any) -> NDArray[np.int64]:
    """Where the rows of each item begin."""
    codes = items.combine_chunks().dictionary_encode()
    codes = codes.unify_dictionaries().combine_chunks() if isinstance(codes, pa.ChunkedArray) else codes
    number = codes.indices.to_numpy()
    return np.concatenate([[0], np.flatnonzero(np.diff(number)) + 1]) if len(number) else np.zeros(0, np.int64)


def _chunk(path: Path, table: Any, columns: Columns) -> Chunk:
    begins = _begins(table[columns.item])
    rows = np.diff(np.append(begins, len(table)))
    names = table[columns.item].take(pa.array(begins)).to_pylist()
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise UserError(
            f"{path}: the rows of item {twice!r} do not stand together; sort the file by {columns.item!r} and "
            f"{columns.time!r}"
        )
    days = table[columns.time].to_numpy().astype("datetime64[D]").astype(np.int64)
    return Chunk(names, np.repeat(np.arange(len(names)), rows), days, _numbers(path, table, columns.amount))


def _tables(path: Path, columns: Columns) -> Iterator[Any]:
    """Parts of the file, with items as text, days and numbers."""
    wanted = [columns.item, columns.time, columns.amount]
    if not path.is_file():
        raise UserError(f"{path} is not there; give a Parquet or CSV file")
    try:
        if _is_parquet(path):
            with pq.ParquetFile(path) as file:
                _check_columns(path, file.schema_arrow.names, wanted)
                for batch in file.iter_batches(ROWS, columns=wanted):
                    yield _typed(path, pa.Table.from_batches([batch]), columns)
        else:
            with _csv(path, columns.item) as reader:
                _check_columns(path, reader.schema.names, wanted)
                for batch in reader:
                    yield _typed(path, pa.Table.from_batches([batch]).select(wanted), columns)
    except pa.ArrowException as error:
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None


def _typed(path: Path, table: Any, columns: Columns) -> Any:
    for name in (columns.item, columns.time, columns.amount):
        if table[name].null_count:
            raise UserError(f"{path}: a row has no {name!r}; fill it in, or leave the row out")
    time = table[columns.time]
    if not (pa.types.is_date(time.type) or pa.types.is_timestamp(time.type)):
        raise UserError(f"{path}: column {columns.time!r} is {time.type}, not dates; write them as 2026-01-31")
    return table.set_column(
        table.column_names.index(columns.item), columns.item, table[columns.item].cast(pa.string())
    ).set_column(table.column_names.index(columns.time), columns.time, time.cast(pa.date32(), safe=False))


def _numbers(path: Any, table: Any, name: str) -> NDArray[np.float64]:
    kind = table[name].type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        raise UserError(f"{path}: column {name!r} is {kind}, not numbers")
    values: NDArray[np.float64] = table[name].cast(pa.float64(), safe=False).to_numpy()
    if not np.isfinite(values).all():
        raise UserError(f"{path}: column {name!r} has something that is no finite number; correct it")
    return values


def _check_columns(path: Path, names: list[str], wanted: list[str]) -> None:
    missing = [name for name in wanted if name not in names]
    if missing:
        raise UserError(f"{path} has no column {missing[0]!r}; it has {', '.join(names)}")


def _csv(path: Path, item: str) -> Any:
    options = pa.csv.ConvertOptions(column_types={item: pa.string()})
    try:
        return pa.csv.open_csv(path, convert_options=options)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None


def _is_parquet(path: Path) -> bool:
    if not path.is_file():
        raise UserError(f"{path} is not there; give a Parquet or CSV file")
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _n_rows(path: Path) -> int:
    """How many rows there are, where that is known beforehand; else 0."""
    if not _is_parquet(path):
        return 0
    with pq.ParquetFile(path) as file:
        return int(file.metadata.num_rows)
