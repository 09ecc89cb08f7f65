"""Results on disk: two tidy tables in Parquet shards, each written whole or not at all, and a manifest.

::

    DIR/manifest.json             the study, versions, when and where
    DIR/runs/SHARD-DIGEST.parquet      a row a run
    DIR/curves/SHARD-DIGEST.parquet    run, episode, gap

A shard's name ends with the digest of its bytes: a damaged one is known by it. Equal runs give equal bytes, so that two
processes that compute the same shard write the same file.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ucbf.errors import UserError
from ucbf.studies.spec import Study, runs_of

TABLES = ("curves", "runs")  # in the order in which a shard's files appear: its runs come last


class Results(NamedTuple):
    """What a study has given so far: its tables in the order of its runs."""

    study: Study
    runs: pa.Table  # a row a run
    curves: pa.Table  # run, episode, gap


class Store:
    """A folder of results of one study."""

    def __init__(self, folder: Path, study: Study) -> None:
        self.folder, self.study = folder, study

    @classmethod
    def create(cls, folder: Path, study: Study) -> Store:
        """The store at ``folder``, new or of the same study; another study's is refused with the difference."""
        manifest = folder / "manifest.json"
        try:
            for table in TABLES:
                (folder / table).mkdir(parents=True, exist_ok=True)
            if not manifest.exists():
                about = {"study": study.model_dump(mode="json", exclude_none=True), **_circumstances()}
                write_whole(manifest, json.dumps(about, indent=1, ensure_ascii=False).encode())
        except OSError as error:
            raise UserError(f"{folder} cannot be written: {error.strerror}; pass another --out") from None
        there = cls.open(folder)
        if there.study != study:
            raise UserError(
                f"{folder} holds another study ({_difference(there.study, study)}); pass another --out, or remove it"
            )
        return there

    @classmethod
    def open(cls, folder: Path) -> Store:
        """The store at ``folder``."""
        try:
            content = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
            return cls(folder, Study.model_validate(content["study"]))
        except FileNotFoundError:
            raise UserError(f"{folder} holds no results (no manifest.json); pass the folder of a study") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{folder}/manifest.json is damaged ({error!s:.80}); remove the folder and run again"
            ) from None

    def write(self, shard: str, tables: dict[str, pa.Table]) -> None:
        """Keep one shard."""
        for name in TABLES:
            sink = pa.BufferOutputStream()
            pq.write_table(tables[name], sink, compression="zstd")
            content = sink.getvalue().to_pybytes()
            write_whole(self.folder / name / f"{shard}-{_digest(content)}.parquet", content)

    def shards(self) -> tuple[dict[str, dict[str, Path]], list[Path]]:
        """The files of every shard that is whole, by table, and the files that are damaged."""
        found: dict[str, dict[str, Path]] = {}
        damaged = []
        for name in TABLES:
            for path in sorted((self.folder / name).glob("*.parquet")):
                shard, _, digest = path.stem.rpartition("-")
                if _digest(path.read_bytes()) == digest:
                    found.setdefault(shard, {})[name] = path
                else:
                    damaged.append(path)
        return {shard: paths for shard, paths in found.items() if len(paths) == len(TABLES)}, damaged


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name and rename it: nobody ever sees half of it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def read_results(*folders: str | os.PathLike[str]) -> Results:
    """The tables of a study, from one folder or from several that hold shards of it."""
    if not folders:
        raise TypeError("read_results() needs a folder of results")
    stores = [Store.open(Path(folder)) for folder in folders]
    study = stores[0].study
    for store in stores[1:]:
        if store.study != study:
            raise UserError(f"{store.folder} holds another study ({_difference(study, store.study)})")
    order = {run.id: i for i, run in enumerate(runs_of(study))}
    found = {shard: paths for store in stores for shard, paths in store.shards()[0].items()}
    tables = {name: [pq.read_table(paths[name]) for paths in found.values()] for name in TABLES}
    runs, curves = (_in_order(pa.concat_tables(tables[name]), order) if found else None for name in ("runs", "curves"))
    if runs is None or runs.num_rows == 0:
        raise UserError(f"{folders[0]} holds no finished runs yet; run the study first")
    return Results(study, runs, curves)


def _in_order(table: pa.Table, order: dict[str, int]) -> pa.Table:
    """The rows of the study's own runs, in its order; rows of a run keep theirs."""
    encoded = table["run"].combine_chunks().dictionary_encode()
    place = np.array([order.get(run, -1) for run in encoded.dictionary.to_pylist()])[encoded.indices.to_numpy()]
    rows = np.argsort(place, kind="stable")
    return table.take(rows[place[rows] >= 0])


def _circumstances() -> dict[str, Any]:
    packages = ("ucbf", "numpy", "numba", "pyarrow", "gymnasium")
    return {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "machine": {"system": platform.platform(), "processor": platform.machine(), "cores": os.cpu_count()},
    }


def _difference(there: Study, here: Study) -> str:
    """What differs, key by key: there -> here."""
    one, other = there.model_dump(mode="json"), here.model_dump(mode="json")
    return "; ".join(f"{k}: {one[k]!r:.120} there, {other[k]!r:.120} here" for k in one if one[k] != other[k])
