"""From a long file with many items to a folder of plans, a part of the items at a time.

Items are read, learned from and written ``CHUNK`` at a time, so that memory does not grow with the file. Workers write
the parts: each is a Parquet file that is written whole, and its name ends with a digest of all that it follows from. A
run that was killed goes on where it stopped, and a part whose rows or costs have changed is made again. All parts
together are one table for whatever reads Parquet folders.

``fleet.json`` is written first: by it workers know the folder. ``plans.json`` is written last, with the names of all
parts of a run that was finished; parts that it does not name do not count, and are then removed.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ucbf import __version__
from ucbf.checks import one_of, real
from ucbf.engines.running import check_engine, executor_of, results_of
from ucbf.engines.shared import SharedFolder
from ucbf.errors import UserError
from ucbf.files import FLEET, remove_parts, write_among_many, write_whole
from ucbf.fleet.learning import Job, Part, key_of, table_of
from ucbf.fleet.notes import REFUSED
from ucbf.fleet.reading import Items, chunks_of, n_rows
from ucbf.fleet.rows import Columns
from ucbf.laws import Law, make_law
from ucbf.run import Progress
from ucbf.systems.base import Preset

CHUNK = 1024  # items that are learned from at once
FINISHED = "plans.json"
PART = re.compile(r"plans-\d{6,}-[0-9a-f]{16}\.parquet")
OWN_FILES = (FLEET, FINISHED, "plans-*.parquet")
AGAIN = "give the same ucbf learn command again, which goes on where it stopped"


class Done(NamedTuple):
    """What came of a part."""

    name: str  # of its file
    learned: int  # items
    kept: int
    refused: int


def learn_fleet(
    preset: Preset,
    source: str | Path,
    out: str | Path,
    costs: str | Path | None = None,
    *,
    columns: Columns | None = None,
    law: Law | str | dict[str, Any] | None = None,
    stationary: bool = False,
    fitted: tuple[str, ...] = (),
    gains: bool = True,
    certificate: float | None = None,
    engine: str = "local",
    workers: int | None = None,
    ray_address: str | None = None,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> dict[str, int]:
    """Learn a plan for every item of a long file, and write them to a folder of Parquet files.

    Parameters
    ----------
    preset
        What all items have in common: the costs and sizes that are not given for each.
    source
        A Parquet or CSV file with a row for each item and day, the rows of an item together and in order.
    out
        The folder. A row an item: ``expected`` is the reward that is expected of an episode from the state nearest to
        0 (without an end and a discount: of a step, in the long run), ``gain`` how much more that is than under the
        plan that believes the mean comes, ``action`` [H · S] the best quantity at every step and state, ``value`` [S]
        what every first state is worth, ``note`` what looks wrong. Items that cannot be used have a ``note`` that
        begins with "refused", and no plan.
    costs
        A Parquet or CSV file with a row an item, and a column for each parameter of the preset that differs: costs, and
        sizes. Items of one size are learned together; a size that is empty is as the preset has it.
    columns
        What the columns are called: item, date and demand unless told otherwise; a column of forecasts, if there is
        one. The days to come then stand after the others, with a forecast and no demand. Also how dates of text are
        written, and whether days without a row sold nothing (gaps="zero") or are not known.
    law
        How the distribution of W is learned, as of :class:`ucbf.Fleet`; None: by counting.
    stationary
        Without a law: whether all steps share one distribution. Else step h of an episode is the h-th day of a period
        of ``preset.horizon`` days, counted from Monday 1970-01-05.
    fitted
        Sizes to choose for each item by its data, such as ``("unit", "max_demand", "capacity")``, rounded up so that
        many items share them.
    gains
        Whether to find ``gain``, which takes as long as the plan.
    certificate
        p: add ``lost_at_most``, which what a plan loses against the best exceeds with probability p at most. A few
        milliseconds an item.
    engine, workers, ray_address
        "local": threads of this process; "ray": a cluster, whose machines share the folder.
    progress
        Called with (rows done, rows).
    stop
        An event; when it is set, the call ends with KeyboardInterrupt.

    Returns
    -------
    How many items were ``learned`` anew, ``kept`` from an earlier run and ``refused``.
    """
    check_engine(engine, workers, ray_address)
    named, folder = columns or Columns(), Path(out)
    one_of("gaps", named.gaps, ("unknown", "zero"))
    if named.gaps == "zero" and named.forecast is not None:
        raise UserError("gaps is zero with a column of forecasts, and a day without a row has none; write all rows")
    items = Items.read(costs, named.item, preset)
    known = make_law({"name": "Counts", "stationary": stationary} if law is None else law).description()
    share = None if certificate is None else real("certificate", certificate, 0, 1, open_low=True)
    job = Job(preset, known, tuple(fitted), gains, share)
    folder.mkdir(parents=True, exist_ok=True)
    remove_parts(folder)
    about = {"preset": type(preset).__name__, "parameters": preset.parameters(), "law": known, "fitted": list(fitted)}
    told = {**about, "columns": vars(named), "source": str(source), "version": __version__}
    write_whole(folder / FLEET, json.dumps(told, indent=1, default=str).encode())
    place = SharedFolder.of(folder, FLEET)
    total, done, counted, kept = n_rows(Path(source)), 0, {"learned": 0, "kept": 0, "refused": 0}, set[str]()
    parts = _parts(Path(source), named, items)
    workers_of = executor_of(engine, workers, ray_address)
    with closing(results_of(workers_of, partial(make_part, place, job), parts, stop)) as results:
        for part, made in results:
            kept.add(made.name)
            for name in counted:
                counted[name] += getattr(made, name)
            done += len(part.rows)
            if progress is not None:
                progress(done, max(total, done))
    if not kept:
        raise UserError(f"{source} has no rows")
    _finish(folder, told, kept)
    return counted


def _finish(folder: Path, told: dict[str, Any], kept: set[str]) -> None:
    """Say which parts count, and remove the others: of rows or costs that have changed."""
    write_whole(folder / FINISHED, json.dumps({**told, "parts": sorted(kept)}, indent=1, default=str).encode())
    for path in folder.iterdir():
        if PART.fullmatch(path.name) and path.name not in kept:
            path.unlink()


def finished_run(folder: Path) -> dict[str, Any]:
    """What was told of the last run that was finished, and its ``parts``; a UserError if one is not there."""
    path = folder / FINISHED
    if not path.is_file() and (folder / FLEET).is_file():
        raise UserError(f"the plans in {folder} are not finished (no {FINISHED}): {AGAIN}")
    try:
        told: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        names = told["parts"]
        if not names or not all(PART.fullmatch(name) for name in names):
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        raise UserError(f"{path} is missing or damaged: {AGAIN}") from None
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise UserError(f"{folder / missing[0]} is missing, one of {len(names)} files of plans: {AGAIN}")
    return told


def finished_parts(folder: Path) -> list[Path]:
    """The files of plans of the last run that was finished."""
    return [folder / name for name in finished_run(folder)["parts"]]


def _parts(source: Path, columns: Columns, items: Items) -> Iterator[Part]:
    """The file, part by part; an error if the rows of an item do not stand together."""
    seen: set[str] = set()
    for number, rows in enumerate(chunks_of(source, columns, CHUNK)):
        unique = set(rows.names)
        twice = seen & unique if len(unique) == len(rows.names) else {n for n in unique if rows.names.count(n) > 1}
        if twice:
            raise UserError(
                f"{source}: the rows of item {min(twice)!r} do not stand together; sort the file by {columns.item!r} "
                f"and {columns.time!r}"
            )
        seen |= unique
        filled = rows.with_zeros() if columns.gaps == "zero" else rows
        yield Part(number, filled, *items.of(rows.names))


@cache
def keep_memory() -> None:
    """Let glibc keep what is freed for the next part; getting it anew from the system took a quarter of the time.

    It keeps twice the largest array that was ever freed, of 32 MB at most. This one is never touched.
    """
    np.empty(2**25 - 2**16, np.uint8)


def make_part(place: SharedFolder, job: Job, part: Part, cancelled: threading.Event | None = None) -> Done:
    """Learn some items and write their plans, unless that is done."""
    keep_memory()
    place.check()
    path, n = Path(place.folder) / f"plans-{part.number:06d}-{key_of(job, part)}.parquet", len(part.rows.names)
    if _is_whole(path, n):
        return Done(path.name, 0, n, 0)
    table = table_of(job, part)
    file = pa.BufferOutputStream()
    pq.write_table(table, file, compression="zstd", use_dictionary=False)
    write_among_many(path, file.getvalue().to_pybytes())
    refused = sum(note is not None and note.startswith(REFUSED) for note in table["note"].to_pylist())
    return Done(path.name, n - refused, 0, refused)


def _is_whole(path: Path, n: int) -> bool:
    """Whether a part is there, with so many items."""
    try:
        return bool(pq.read_metadata(path).num_rows == n)
    except (OSError, pa.ArrowException):
        return False
