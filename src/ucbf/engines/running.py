"""Engines, and the one loop that sends tasks to them."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from ucbf.checks import one_of
from ucbf.errors import UserError

T = TypeVar("T")
R = TypeVar("R")
ENGINES = ("local", "ray")
AHEAD = 2  # tasks in flight for each worker: one that it computes and one that waits
POLL_SECONDS = 0.2  # how often to look whether to stop
NOTHING: Any = object()


class Engine(Executor):
    """An executor that says how many workers it has."""

    shares_memory = False  # whether its workers see the objects of this process

    @property
    @abstractmethod
    def width(self) -> int:
        """How many tasks can be computed at once, now."""


class Threads(ThreadPoolExecutor, Engine):
    """Threads of this process. On one machine they suffice, because the kernels run without the GIL."""

    shares_memory = True

    @property
    def width(self) -> int:
        """How many threads there are."""
        return self._max_workers


def check_engine(name: str, jobs: int | None, ray_address: str | None) -> None:
    """An error for what does not go together."""
    one_of("engine", name, ENGINES)
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs is {jobs}; it must be 1 or more")
    if ray_address is not None and name != "ray":
        raise UserError(f"--ray-address is {ray_address!r}, but the engine is {name!r}; pass --engine ray")


def executor_of(name: str, jobs: int | None, ray_address: str | None) -> Engine:
    """The executor of an engine; jobs: workers, as many as there are cores if None."""
    if name == "local":
        return Threads(jobs or os.cpu_count() or 1)
    try:
        from ucbf.engines.ray_engine import RayExecutor
    except ImportError:
        raise UserError("--engine ray needs Ray; install it: pip install 'ucbf[ray]'") from None
    return RayExecutor(ray_address, jobs)


def results_of(
    engine: Engine,
    work: Callable[[T, threading.Event | None], R],
    tasks: Iterable[T],
    stop: threading.Event | None = None,
) -> Generator[tuple[T, R], None, None]:
    """Compute ``work(task, cancelled)`` for every task; give each with its result, as they come, and shut down.

    If anything fails, or ``stop`` is set, what is not finished is cancelled; ``cancelled`` says so to workers that
    share the memory of this process.
    """
    cancelled, waiting = threading.Event(), iter(tasks)  # not ``stop``, which belongs to the caller
    pending: dict[Future[R], T] = {}
    finished: SimpleQueue[Future[R]] = SimpleQueue()
    try:
        task = next(waiting, NOTHING)
        while pending or task is not NOTHING:
            while task is not NOTHING and len(pending) < AHEAD * engine.width:
                future = engine.submit(work, task, cancelled if engine.shares_memory else None)
                pending[future] = task
                future.add_done_callback(finished.put)
                task = next(waiting, NOTHING)
            future = _next(finished, stop)
            yield pending.pop(future), future.result()
    except BaseException:
        cancelled.set()
        engine.shutdown(wait=False, cancel_futures=True)
        raise
    engine.shutdown()


def _next(finished: SimpleQueue[Future[R]], stop: threading.Event | None) -> Future[R]:
    """The next future that is finished; a KeyboardInterrupt if it is time to stop."""
    while True:
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        try:
            return finished.get(timeout=POLL_SECONDS)
        except Empty:
            pass
