"""Results on disk: two tidy tables in Parquet shards, each written whole or not at all, and a manifest.

::

    DIR/manifest.json                  the study, versions, time and machine
    DIR/runs/SHARD-DIGEST.parquet      one row per run
    DIR/curves/SHARD-DIGEST.parquet    run, episode (where there is no end: the step), gap, regret

The name of a file ends with the digest of its bytes: a damaged file is detected. Equal runs give equal bytes: two
processes that compute the same shard write the same file.
"""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ucbf.errors import UserError
from ucbf.files import digest, remove_parts, write_among_many, write_whole
from ucbf.studies.names import sources_of
from ucbf.studies.runs import COLUMNS, runs_of
from ucbf.studies.spec import Study

MANIFEST = "manifest.json"
TABLES = ("curves", "runs")  # in the order in which a shard's files are written: its runs come last
CURVES = pa.schema([("run", pa.string()), ("episode", pa.int32()), ("gap", pa.float64()), ("regret", pa.float64())])


def run_schema(study: Study) -> pa.Schema:
    """The schema of the table of runs: the same for all shards."""
    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    params = {}
    for key, given in study.world.extra().items():
        types = {type(value) for value in (given if isinstance(given, list) else [given])}
        params[key] = kinds[types.pop()] if len(types) == 1 else pa.float64() if types == {int, float} else pa.string()
    text = {"run", "label", "agent", "agent_params", "kind"}
    whole = {"panel", "world", "world_seed", "draw_seed", "episodes", "settled", "switches"}

    def kind(name: str) -> pa.DataType:
        return pa.string() if name in text else pa.int64() if name in whole else pa.float64()

    before, after = ([(name, kind(name)) for name in names] for names in COLUMNS)
    return pa.schema([*before, *params.items(), *after])


class Results(NamedTuple):
    """The results of a study so far, in the order of its runs."""

    study: Study
    runs: pa.Table  # one row per run
    curves: pa.Table  # run, episode, gap, regret


class Store:
    """A folder of results of one study."""

    def __init__(self, folder: Path, study: Study, sources: dict[str, str]) -> None:
        self.folder, self.study, self.sources = folder, study, sources

    @classmethod
    def create(cls, folder: Path, study: Study) -> Store:
        """The store at ``folder``, new or of the same study; an error that shows the difference if of another."""
        manifest, sources = folder / MANIFEST, sources_of(study)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not manifest.exists():
                about = {"study": study.model_dump(mode="json", exclude_none=True), "sources": sources}
                content = json.dumps({**about, **_environment()}, indent=1, ensure_ascii=False).encode()
                write_whole(manifest, content, keep=True)
            there = cls.open(folder)
            for table in TABLES:
                (folder / table).mkdir(exist_ok=True)
                remove_parts(folder / table)
        except OSError as error:
            raise UserError(f"{folder} cannot be written: {error.strerror}; pass another --out") from None
        if there.study != study:
            raise UserError(f"{folder} holds another study ({_difference(there.study, study)}); pass another --out")
        changed = [name for name, digest in sources.items() if there.sources.get(name) != digest]
        if changed:
            raise UserError(f"{changed[0]} has changed since the results in {folder} were computed; pass another --out")
        return there

    @classmethod
    def open(cls, folder: Path) -> Store:
        """The store at ``folder``."""
        try:
            content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
            return cls(folder, Study.model_validate(content["study"]), dict(content["sources"]))
        except (FileNotFoundError, NotADirectoryError):
            raise UserError(f"{folder} holds no results (no manifest.json); pass the folder of a study") from None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise UserError(
                f"{folder}/manifest.json is not the manifest of a study, or is damaged; pass another folder"
            ) from None

    def remove_others(self, written: dict[str, set[str]]) -> None:
        """Remove files of these shards that are not those written now, such as by another version of pyarrow."""
        for name in TABLES:
            for path in (self.folder / name).glob("*.parquet"):
                now = written.get(path.stem[:16])
                if now is not None and path.name not in now:
                    path.unlink(missing_ok=True)

    def shards(self) -> tuple[dict[str, dict[str, Path]], list[Path]]:
        """The files of every shard that is whole, by table, and the files that are damaged."""
        found: dict[str, dict[str, Path]] = {}
        damaged = []
        for name in TABLES:
            for path in sorted((self.folder / name).glob("*.parquet")):
                ours = re.fullmatch(r"([0-9a-f]{16})-([0-9a-f]{16})", path.stem)
                if ours is None:
                    continue
                if self._is_whole(path, name, *ours.groups()):
                    found.setdefault(ours[1], {})[name] = path
                else:
                    damaged.append(path)
        return {shard: paths for shard, paths in found.items() if len(paths) == len(TABLES)}, damaged

    def _is_whole(self, path: Path, table: str, shard: str, expected: str) -> bool:
        """Whether a file holds what its name says: these bytes, a table of this study, the runs of this shard."""
        try:
            content = path.read_bytes()
            if digest(content) != expected:
                return False
            rows = read_parquet(content)
        except (OSError, pa.ArrowException):
            return False
        if not rows.schema.equals(CURVES if table == "curves" else run_schema(self.study)):
            return False
        runs = rows["run"].unique().to_pylist()
        return shard_name(runs) == shard and (table == "curves" or len(runs) == rows.num_rows)


def write_shard(folder: Path, shard: str, tables: dict[str, pa.Table]) -> set[str]:
    """Write the files of one shard, without a look at what else is there; their names."""
    names = set()
    for name in TABLES:
        sink = pa.BufferOutputStream()
        pq.write_table(tables[name], sink, compression="zstd")
        content = sink.getvalue().to_pybytes()
        path = folder / name / f"{shard}-{digest(content)}.parquet"
        write_among_many(path, content)
        names.add(path.name)
    return names


def read_parquet(content: bytes) -> pa.Table:
    """A table, read by this thread alone: threads of ``pq.read_table`` may outlive the program and abort it."""
    return pq.ParquetFile(pa.BufferReader(content), pre_buffer=False).read(use_threads=False)


def shard_name(runs: Iterable[str]) -> str:
    """The name of the shard that holds the runs with these ids, in this order."""
    return digest("".join(map(str, runs)).encode())


def read_results(*folders: str | os.PathLike[str]) -> Results:
    """The tables of a study, from one folder or from several that hold shards of it.

    An error if a file is damaged and runs are missing.
    """
    if not folders:
        raise TypeError("read_results() needs a folder of results")
    stores = [Store.open(Path(folder)) for folder in folders]
    study = stores[0].study
    for store in stores[1:]:
        if store.study != study:
            raise UserError(f"{store.folder} holds another study ({_difference(study, store.study)})")
    order = {run.id: i for i, run in enumerate(runs_of(study))}
    found: dict[str, dict[str, Path]] = {}
    damaged: list[Path] = []
    for store in stores:
        whole, broken = store.shards()
        found |= whole
        damaged += broken
    tables = _each_run_once(found.values())
    runs, curves = (_in_order(pa.concat_tables(tables[name]), order) if found else None for name in ("runs", "curves"))
    if damaged and (runs is None or len(runs["run"].unique()) < len(order)):
        more = f" and {len(damaged) - 1} more are" if len(damaged) > 1 else " is"
        raise UserError(
            f"{damaged[0]}{more} damaged; run the study again, which computes what is missing, or delete what is "
            "damaged to do without"
        )
    if runs is None or runs.num_rows == 0:
        raise UserError(f"{folders[0]} holds no finished runs yet; run the study first")
    return Results(study, runs, curves)


def runs_in(shards: dict[str, dict[str, Path]]) -> set[str]:
    """The ids of the runs that shards hold."""
    tables = [read_parquet(paths["runs"].read_bytes()) for paths in shards.values()]
    return {run for table in tables for run in table["run"].to_pylist()}


def _each_run_once(shards: Iterable[dict[str, Path]]) -> dict[str, list[pa.Table]]:
    """The tables of shards, by name, without runs that are in an earlier one: versions divide a study differently."""
    tables: dict[str, list[pa.Table]] = {name: [] for name in TABLES}
    known = set[str]()
    for paths in shards:
        read = {name: read_parquet(paths[name].read_bytes()) for name in TABLES}
        runs = set(read["runs"]["run"].to_pylist())
        again = pa.array(runs & known, pa.string())
        for name, table in read.items():
            kept = table.filter(pc.invert(pc.is_in(table["run"], value_set=again))) if len(again) else table
            tables[name].append(kept)
        known |= runs
    return tables


def _in_order(table: pa.Table, order: dict[str, int]) -> pa.Table:
    """The rows of the runs in ``order``, sorted by it; the rows of a run keep their order."""
    encoded = table["run"].combine_chunks().dictionary_encode()
    place = np.array([order.get(run, -1) for run in encoded.dictionary.to_pylist()])[encoded.indices.to_numpy()]
    rows = np.argsort(place, kind="stable")
    return table.take(rows[place[rows] >= 0])


def _environment() -> dict[str, Any]:
    """Versions, time and machine."""
    packages = ("ucbf", "numpy", "numba", "pyarrow", "gymnasium")
    return {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
    }


def _difference(there: Study, here: Study) -> str:
    """The first three values that differ, with their places."""
    one, other = (dict(_leaves(study.model_dump(mode="json", exclude_none=True))) for study in (there, here))
    places = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    return "; ".join(f"{key}: {one.get(key)!r:.60} there, {other.get(key)!r:.60} here" for key in places[:3])


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The values and their places, such as ("agents[0].c", 0.05); a list of plain values is one value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for i, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{i}]")
    else:
        yield place, value
