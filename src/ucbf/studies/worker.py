"""What a worker computes and writes: the runs of one shard."""

from __future__ import annotations

import itertools
import json
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ucbf.agents import AGENTS
from ucbf.engines.shared import SharedFolder
from ucbf.errors import FailedError, in_a_line
from ucbf.planning import greedy, worth
from ucbf.simulation import simulate
from ucbf.studies.names import STUDY_FOLDERS, WORLDS, search_in
from ucbf.studies.runs import CHECKPOINTS, Run, build_agent, build_world
from ucbf.studies.store import CURVES, write_shard

SETTLED = 0.1  # an agent has settled when its gap stays below this share of the greedy policy's gap


class StoppedError(Exception):
    """The rest of the work was cancelled."""


class Task(NamedTuple):
    """One shard to compute: some worlds of one panel with all their agents."""

    shard: str  # its name
    runs: list[Run]
    schema: pa.Schema  # of the table of runs


def compute_shard(
    place: SharedFolder, code: tuple[str, ...], task: Task, cancelled: threading.Event | None = None
) -> set[str]:
    """Compute one shard and write it; the names of its files.

    code: folders of code that the study names
    """
    place.check()
    if not set(code) <= set(STUDY_FOLDERS.folders):
        search_in(code)
    return write_shard(Path(place.folder), task.shard, execute(task, cancelled))


def execute(task: Task, cancelled: threading.Event | None = None) -> dict[str, pa.Table]:
    """The two tables of one shard: runs and curves."""
    rows, curves = [], []
    for _, group in itertools.groupby(task.runs, key=lambda run: run.world):
        runs = list(group)
        where = f"world {runs[0].world} with {runs[0].world_params}"
        with _explained(f"{where} failed", runs[0].kind in WORLDS):
            world = build_world(runs[0])
            greedy_gap = world.best - worth(world, greedy(world.system))
        for run in runs:
            with _explained(f"{run.label!r} failed in {where}", run.agent in AGENTS):
                length: dict[str, Any] = {"steps" if run.by_step else "episodes": run.episodes}
                done = simulate(
                    build_agent(run, world), world, seed=run.draw_seed, progress=_stopper(cancelled), **length
                )
            rows.append(row_of(run, done.gap, done.switches, greedy_gap, world.best))
            kept = recorded(run.episodes, run.record)
            of_run = {"gap": done.gap[kept - 1], "regret": done.regret[kept - 1]}
            curves.append(pa.table({"run": [run.id] * len(kept), "episode": kept, **of_run}, schema=CURVES))
    return {"runs": pa.Table.from_pylist(rows, schema=task.schema), "curves": pa.concat_tables(curves)}


@contextmanager
def _explained(what: str, own: bool) -> Iterator[None]:
    """Turn any error into a FailedError that says what failed; with a trace, unless the code is ucbf's own."""
    try:
        yield
    except StoppedError:
        raise
    except (Exception, SystemExit) as error:
        trace = "" if own else "".join(traceback.format_exception(error))
        raise FailedError(f"{what}: {in_a_line(error)}", trace) from error


def row_of(run: Run, gap: NDArray[np.float64], switches: int, greedy_gap: float, best: float) -> dict[str, Any]:
    """A row of the table of runs: what determines the run, and its results."""
    below = gap <= SETTLED * greedy_gap + 1e-12
    unsettled = 0 if below.all() else len(gap) - int(np.argmin(below[::-1]))  # episodes up to the last not below
    return {
        "run": run.id,
        "panel": run.panel,
        "world": run.world,
        "label": run.label,
        "agent": run.agent,
        "model_error": run.model_error,
        "agent_params": json.dumps(run.agent_params, sort_keys=True),
        "kind": run.kind,
        **run.world_params,
        "world_seed": run.world_seed,
        "draw_seed": run.draw_seed,
        "episodes": run.episodes,
        "optimum": best,
        "greedy_gap": greedy_gap,
        "regret": float(gap.sum()),
        **{f"gap_{k}": float(gap[k - 1]) if k <= len(gap) else None for k in CHECKPOINTS},
        "settled": None if unsettled == len(gap) else unsettled + 1,
        "switches": switches,
    }


def recorded(episodes: int, points: int) -> NDArray[np.int64]:
    """About ``points`` episodes to keep, first and last among them: half of them evenly spaced, half geometrically."""
    if episodes <= points:
        return np.arange(1, episodes + 1)
    even = np.linspace(1, episodes, points - points // 2)
    ratio = np.geomspace(1, episodes, points // 2)
    return np.unique(np.rint(np.concatenate([even, ratio, [1, episodes]])).astype(np.int64))


def _stopper(cancelled: threading.Event | None) -> Callable[[int, int], None]:
    """A progress callback that ends a simulation once the work is cancelled."""

    def look(done: int, total: int) -> None:
        if cancelled is not None and cancelled.is_set():
            raise StoppedError

    return look
