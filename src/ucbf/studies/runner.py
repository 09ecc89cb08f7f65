"""Compute what a study asks for and is not stored yet."""

from __future__ import annotations

import itertools
import json
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ucbf.agents import AGENTS
from ucbf.checks import one_of
from ucbf.errors import FailedError, UserError, in_a_line
from ucbf.planning import evaluate, greedy
from ucbf.simulation import simulate
from ucbf.studies.engines import ENGINES, executor_of
from ucbf.studies.names import WORLDS
from ucbf.studies.spec import CHECKPOINTS, Run, Study, build_agent, build_world, runs_of
from ucbf.studies.store import CURVES, Store, run_schema, shard_name

UPDATES_PER_SHARD = 2e9  # a second or two of UCB-f: what a kill may cost a worker
MOST_WORLDS_PER_SHARD = 10
LOOK_SECONDS = 0.2  # how often to look whether to stop
SETTLED = 0.1  # of the greedy policy's gap

Progress = Callable[[int, int], object]


class StoppedError(Exception):
    """The rest of the work was called off."""


class Task(NamedTuple):
    """The runs of one shard: some worlds of one panel with all their agents."""

    shard: str
    runs: list[Run]
    schema: pa.Schema  # of the table of runs


class Outcome(NamedTuple):
    """What a call computed and found."""

    computed: int  # runs
    total: int  # runs of the study, or of the share of it that was asked for
    damaged: list[Path]


def tasks_of(study: Study) -> list[Task]:
    """All runs, in shards. The split depends on the study alone."""
    tasks, schema = [], run_schema(study)
    for _, of_panel in itertools.groupby(runs_of(study), key=lambda run: run.panel):
        worlds = [list(group) for _, group in itertools.groupby(of_panel, key=lambda run: run.world)]
        system = build_world(worlds[0][0]).system
        updates = len(worlds[0]) * study.episodes * system.f.size
        size = int(min(max(1, UPDATES_PER_SHARD // updates), MOST_WORLDS_PER_SHARD))
        for first in range(0, len(worlds), size):
            runs = [run for world in worlds[first : first + size] for run in world]
            tasks.append(Task(shard_name(run.id for run in runs), runs, schema))
    return tasks


def share_of(tasks: list[Task], shard: str) -> list[Task]:
    """Every N-th task, beginning with the i-th, for ``shard`` "i/N"."""
    try:
        part, parts = (int(number) for number in shard.split("/"))
    except ValueError:
        raise UserError(f"--shard is {shard!r}; give i/N, such as 1/4") from None
    if not 1 <= part <= parts:
        raise UserError(f"--shard is {shard!r}; i must be 1 to N")
    if parts > len(tasks):
        raise UserError(f"--shard is {shard!r}; this study can be divided into {len(tasks)} parts at most")
    return tasks[part - 1 :: parts]


def run_study(
    study: Study,
    folder: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    engine: str = "local",
    ray_address: str | None = None,
    shard: str = "1/1",
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Compute the runs that ``folder`` does not hold yet; what is finished is kept whatever happens.

    Parameters
    ----------
    study, folder
        What to run, and where to keep it.
    jobs
        Workers; as many as there are cores if None.
    engine, ray_address
        "local": threads of this process; "ray": a cluster, started here if no address is given.
    shard
        "i/N": only the i-th of N parts.
    progress
        Called with (runs done, runs in all) as they are stored.
    stop
        Set it to end early, with KeyboardInterrupt.
    """
    one_of("engine", engine, ENGINES)
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs is {jobs}; it must be 1 or more")
    if ray_address is not None and engine != "ray":
        raise UserError(f"--ray-address is {ray_address!r}, but the engine is {engine!r}; pass --engine ray")
    stop = threading.Event() if stop is None else stop
    store = Store.create(Path(folder), study)
    tasks = share_of(tasks_of(store.study), shard)
    there, damaged = store.shards()
    damaged = [path for path in damaged if path.stem[:16] in {task.shard for task in tasks}]
    for path in damaged:
        path.unlink(missing_ok=True)
    missing = [task for task in tasks if task.shard not in there]
    total, todo = (sum(len(task.runs) for task in some) for some in (tasks, missing))
    report = progress or (lambda done, of: None)
    report(total - todo, total)
    if missing:
        _compute(
            missing,
            store,
            executor_of(engine, jobs, ray_address),
            stop,
            lambda done: report(total - todo + done, total),
        )
    return Outcome(todo, total, damaged)


def _compute(
    tasks: list[Task], store: Store, executor: Executor, stop: threading.Event, report: Callable[[int], object]
) -> None:
    """Compute and store; whatever ends it, what is finished is stored and what is not is called off."""
    pending: dict[Future[dict[str, pa.Table]], Task] = {}
    called_off, done = threading.Event(), 0  # not ``stop``, which is the user's: a failure is no wish to stop
    try:
        shared = called_off if isinstance(executor, ThreadPoolExecutor) else None
        for task in tasks:
            pending[executor.submit(execute, task, shared)] = task
        while pending:
            if stop.is_set():
                raise KeyboardInterrupt
            finished, _ = wait(pending, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED)
            for future in sorted(finished, key=lambda future: future.exception() is not None):
                task = pending.pop(future)
                store.write(task.shard, future.result())
                done += len(task.runs)
                report(done)
    except BaseException:
        called_off.set()
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


def execute(task: Task, called_off: threading.Event | None = None) -> dict[str, pa.Table]:
    """The two tables of one shard."""
    rows, curves = [], []
    for _, group in itertools.groupby(task.runs, key=lambda run: run.world):
        runs = list(group)
        where = f"world {runs[0].world} with {runs[0].world_params}"
        with _named(f"{where} failed", runs[0].kind in WORLDS):
            world = build_world(runs[0])
            greedy_gap = world.best - float(world.start @ evaluate(world, greedy(world.system))[0])
        for run in runs:
            with _named(f"{run.label!r} failed in {where}", run.agent in AGENTS):
                done = simulate(build_agent(run, world), world, run.episodes, run.draw_seed, _stopper(called_off))
            rows.append(row_of(run, done.gap, done.switches, greedy_gap, world.best))
            kept = recorded(run.episodes, run.record)
            of_run = {"gap": done.gap[kept - 1], "regret": done.regret[kept - 1]}
            curves.append(pa.table({"run": [run.id] * len(kept), "episode": kept, **of_run}, schema=CURVES))
    return {"runs": pa.Table.from_pylist(rows, schema=task.schema), "curves": pa.concat_tables(curves)}


@contextmanager
def _named(what: str, ours: bool) -> Iterator[None]:
    """Say ``what`` failed if something does, and where, unless in code that is ours."""
    try:
        yield
    except StoppedError:
        raise
    except (Exception, SystemExit) as error:
        trace = "" if ours else "".join(traceback.format_exception(error))
        raise FailedError(f"{what}: {in_a_line(error)}", trace) from error


def row_of(run: Run, gap: NDArray[np.float64], switches: int, greedy_gap: float, best: float) -> dict[str, Any]:
    """A run and what came of it."""
    below = gap <= SETTLED * greedy_gap + 1e-12
    late = len(gap) - int(np.argmin(below[::-1])) if not below.all() else 0  # episodes until the last that is not below
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
        "settled": None if late == len(gap) else late + 1,
        "switches": switches,
    }


def recorded(episodes: int, points: int) -> NDArray[np.int64]:
    """About ``points`` episodes to keep, first and last among them: half spread evenly, half by ratio."""
    if episodes <= points:
        return np.arange(1, episodes + 1)
    even = np.linspace(1, episodes, points - points // 2)
    ratio = np.geomspace(1, episodes, points // 2)
    return np.unique(np.rint(np.concatenate([even, ratio, [1, episodes]])).astype(np.int64))


def _stopper(called_off: threading.Event | None) -> Callable[[int, int], None] | None:
    def look(done: int, total: int) -> None:
        if called_off is not None and called_off.is_set():
            raise StoppedError

    return look
