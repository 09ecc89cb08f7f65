"""Compute the runs of a study that are not stored yet: divide them into shards, distribute them, store them."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ucbf.engines.running import Engine, check_engine, executor_of, results_of
from ucbf.engines.shared import SharedFolder
from ucbf.errors import UserError
from ucbf.studies.names import STUDY_FOLDERS
from ucbf.studies.runs import Run, build_agent, build_world, runs_of
from ucbf.studies.spec import Study
from ucbf.studies.store import MANIFEST, Store, run_schema, runs_in, shard_name
from ucbf.studies.worker import Task, compute_shard

SECONDS_PER_SHARD = 1.5  # about: what is lost when a worker is killed
MOST_WORLDS_PER_SHARD = 10
# About how long agents take in Python for a step, compiled for an episode and for each entry of f, and where these
# repair f. Measured once: what a shard holds must not depend on the machine.
STEP, EPISODE, ENTRY, ENTRY_REPAIRED = 5e-5, 3e-6, 2e-9, 5e-8

Progress = Callable[[int, int], object]


class Outcome(NamedTuple):
    """What a call of :func:`run_study` computed and found."""

    computed: int  # runs
    total: int  # runs of the study, or of the share of it that was asked for
    damaged: list[Path]  # files that were deleted, and computed again


def tasks_of(study: Study) -> list[Task]:
    """All runs, divided into shards. The division depends on the study alone."""
    tasks, schema = [], run_schema(study)
    for _, of_panel in itertools.groupby(runs_of(study), key=lambda run: run.panel):
        worlds = [list(group) for _, group in itertools.groupby(of_panel, key=lambda run: run.world)]
        seconds = _seconds(worlds[0])
        size = int(min(max(1, SECONDS_PER_SHARD // sum(seconds)), MOST_WORLDS_PER_SHARD))
        for first in range(0, len(worlds), size):
            for part in _parts(seconds):
                runs = [run for world in worlds[first : first + size] for run in world[part]]
                tasks.append(Task(shard_name(run.id for run in runs), runs, schema))
    return tasks


def _seconds(runs: list[Run]) -> list[float]:
    """About how long each of the runs of a world takes."""
    world = build_world(runs[0])
    (H, S, A), found = world.system.allowed.shape, []
    for run in runs:
        agent = build_agent(run, world)
        steps = 1 if run.by_step else H
        entry = ENTRY if getattr(agent, "estimator", None) is None else ENTRY_REPAIRED
        each = STEP * steps if agent.compiled is None else EPISODE + entry * steps * S * A
        found.append(run.episodes * each)
    return found


def _parts(seconds: list[float]) -> list[slice]:
    """The runs of a world in parts that take about as long as a shard may; in one, if all of them do."""
    begins, spent = [0], 0.0
    for i, each in enumerate(seconds):
        if i and spent + each > SECONDS_PER_SHARD:
            begins.append(i)
            spent = 0.0
        spent += each
    return [slice(*ends) for ends in itertools.pairwise([*begins, len(seconds)])]


def _without(task: Task, stored: set[str]) -> Task:
    """What is left of a task: shards of another version, which hold other runs together, count as well."""
    runs = [run for run in task.runs if run.id not in stored]
    return task if len(runs) == len(task.runs) else Task(shard_name(run.id for run in runs), runs, task.schema)


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
    """Compute the runs that ``folder`` does not hold yet. Shards that are finished stay, however the call ends.

    Parameters
    ----------
    study, folder
        What to run, and where to keep it.
    jobs
        Workers; as many as there are cores if None.
    engine, ray_address
        "local": threads of this process; "ray": a cluster, started here if no address is given.
    shard
        "i/N": compute only the i-th of N parts.
    progress
        Called with (runs done, runs in all) as they are stored.
    stop
        An event; when it is set, the call ends with KeyboardInterrupt.
    """
    check_engine(engine, jobs, ray_address)
    store = Store.create(Path(folder), study)
    tasks = share_of(tasks_of(store.study), shard)
    shards, damaged = store.shards()
    damaged = [path for path in damaged if path.stem[:16] in {task.shard for task in tasks}]
    for path in damaged:
        path.unlink(missing_ok=True)
    stored = runs_in(shards)
    missing = [rest for rest in (_without(task, stored) for task in tasks) if rest.runs]
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
    tasks: list[Task], store: Store, engine: Engine, stop: threading.Event | None, report: Callable[[int], object]
) -> None:
    """Have the tasks computed and stored by workers, who write them."""
    work = partial(compute_shard, SharedFolder.of(store.folder, MANIFEST), tuple(STUDY_FOLDERS.folders))
    done, written = 0, dict[str, set[str]]()
    try:
        with closing(results_of(engine, work, tasks, stop)) as results:
            for task, names in results:
                written[task.shard] = names
                done += len(task.runs)
                report(done)
    finally:
        store.remove_others(written)
