"""What a task of a study costs the driver, with a thousand simulated workers and 100,000 tasks; and what a write costs.

``python benchmarks/cluster.py [tasks]``: the driver is the real one; the workers only wait, for random times, and say
that they are done. Then shards are written for real, into an empty folder and into one with as many files.
"""

from __future__ import annotations

import heapq
import itertools
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from ucbf.engines.running import Engine
from ucbf.studies import runner
from ucbf.studies.reading import make_study
from ucbf.studies.store import Store, write_shard
from ucbf.studies.worker import execute

WORKERS = 1000
MEAN_SECONDS = 0.02  # of a simulated task; a real one takes a second or two
WRITES = 100


class Simulated(Engine):
    """So many workers, each of which computes nothing for a random time."""

    def __init__(self, workers: int) -> None:
        self.workers, self.begun, self.most = workers, 0, 0
        self.free = [0.0] * workers  # when each worker is free again
        self.due: list[tuple[float, int, Future[Any]]] = []
        self.changed, self.ended = threading.Condition(), False
        self.seconds = np.random.default_rng(0).exponential(MEAN_SECONDS, 4096)
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def width(self) -> int:
        """How many workers there are."""
        return self.workers

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Give a task to the worker that is free first."""
        future: Future[Any] = Future()
        with self.changed:
            end = max(heapq.heappop(self.free), time.monotonic()) + self.seconds[self.begun % 4096]
            heapq.heappush(self.free, end)
            heapq.heappush(self.due, (end, self.begun, future))
            self.begun += 1
            self.most = max(self.most, len(self.due))
            self.changed.notify()
        return future

    def _run(self) -> None:
        while not self.ended:
            with self.changed:
                if not self.due:
                    self.changed.wait(0.01)
                    continue
                wait = self.due[0][0] - time.monotonic()
                if wait > 0:
                    self.changed.wait(wait)
                    continue
                _, _, future = heapq.heappop(self.due)
            future.set_result(set())

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the thread that hands results over."""
        self.ended = True


def study_of(worlds: int) -> Any:
    """A study whose tasks have one run each."""
    world = {"n_states": 25, "n_actions": 4, "horizon": 5, "max_disturbance": 3, "lipschitz": 0.25}
    return make_study(
        {"name": "many", "episodes": 100, "worlds": worlds, "world": world, "agents": [{"name": "UCB-f"}]}
    )


def drive(n: int) -> None:
    """Print what each task costs the driver, as they are done."""
    marks: list[tuple[int, float]] = []

    def progress(done: int, total: int) -> None:
        if done % max(total // 10, 1) == 0:
            marks.append((done, time.thread_time()))

    runner.MOST_WORLDS_PER_SHARD = 1
    for tasks in (1, n):  # once to load everything
        simulated = Simulated(WORKERS)
        marks.clear()
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(runner, "executor_of", return_value=simulated):
            begin, work = time.perf_counter(), time.thread_time()
            runner.run_study(study_of(tasks), folder, progress=progress)
            took, whole = time.perf_counter() - begin, time.thread_time() - work
    costs = [(later[1] - sooner[1]) / (later[0] - sooner[0]) * 1e3 for sooner, later in itertools.pairwise(marks)]
    print(
        f"{n} tasks on {WORKERS} simulated workers: {took:.1f} s; at most {simulated.most} tasks in flight\n"
        f"  the driver, in ms a task, tenth by tenth: {', '.join(f'{cost:.3f}' for cost in costs)}\n"
        f"  with the list of tasks made beforehand: {whole / n * 1e3:.3f} ms a task"
    )


def write(n: int) -> None:
    """Print what a write costs in folders of different sizes."""
    study = study_of(1)
    task = runner.tasks_of(study)[0]
    tables = execute(task)
    for there in (0, n):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            Store.create(folder, study)
            for i in range(there):
                (folder / "runs" / f"{i:016x}-{i:016x}.parquet").touch()
                (folder / "curves" / f"{i:016x}-{i:016x}.parquet").touch()
            begin, work = time.perf_counter(), time.process_time()
            for i in range(WRITES):
                write_shard(folder, f"{n + i:016x}", tables)
            took, work = time.perf_counter() - begin, time.process_time() - work
        print(
            f"a worker writes a shard into a folder of {there} others in {work / WRITES * 1e3:.2f} ms of work "
            f"({took / WRITES * 1e3:.1f} ms with the disk)"
        )


if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    drive(asked)
    write(asked)
