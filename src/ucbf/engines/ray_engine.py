"""A Ray cluster as an executor: the one file that imports Ray."""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, ParamSpec, TypeVar

import ray
from ray.exceptions import RayTaskError, WorkerCrashedError

from ucbf.engines.running import Engine
from ucbf.errors import FailedError

P = ParamSpec("P")
T = TypeVar("T")
ANSWER_SECONDS = 10.0  # within which an address must answer
START_SECONDS = 60.0  # within which a cluster must be joined or started
WATCH_SECONDS = 5.0  # between checks whether the cluster still answers; Ray itself ends the process after a minute
LEAVE_SECONDS = 5.0  # that leaving a cluster after a failure may take
RETRIES = 3  # of a task whose worker died, as it may on machines that are taken away


class RayExecutor(Engine):
    """Runs tasks on a Ray cluster; without an address one is started on this machine, and ended by ``shutdown``.

    Ray keeps its worker processes from task to task, so that each loads or compiles the kernels once. The tasks of a
    worker or a machine that dies are computed again by others.
    """

    def __init__(self, address: str | None, jobs: int | None) -> None:
        started: dict[str, Any] = {} if address else {"num_cpus": jobs, "include_dashboard": False}
        paths = os.pathsep.join(path for path in sys.path if path)  # workers import from the same folders
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_task_oom_retries", str(RETRIES))  # Ray's default is without end
        if address and (reason := _no_answer(address)):
            raise FailedError(f"no Ray cluster answers at {address} ({reason}); pass its address as HOST:PORT")
        self._pending: set[Future[Any]] = set()
        self._membership = _Membership(
            self._fail,
            address=address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env={"env_vars": {"PYTHONPATH": paths}},
            **started,
        )
        self._remotes: dict[Callable[..., Any], Any] = {}  # a function is sent to the cluster once

    @property
    def width(self) -> int:
        """How many cores the cluster has; one without any may grow."""
        return max(self._membership.cores, 1)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Compute fn(*args) on the cluster."""
        future: Future[T] = Future()
        if fn not in self._remotes:
            self._remotes[fn] = ray.remote(max_retries=RETRIES)(_named(fn))
        of_ray = self._remotes[fn].remote(*args, **kwargs).future()
        self._pending.add(future)
        of_ray.add_done_callback(lambda done: self._hand_over(done, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; one that was started here ends."""
        self._membership.leave.set()
        self._membership.join(None if wait else LEAVE_SECONDS)

    def _hand_over(self, done: Future[T], future: Future[T]) -> None:
        """Give a task's result or error to its future; the error as it was raised, without Ray's wrapper."""
        if not self._claim(future):
            return
        error = done.exception()
        if error is None:
            future.set_result(done.result())
        elif isinstance(error, RayTaskError):
            future.set_exception(error.cause)
        elif isinstance(error, WorkerCrashedError):
            future.set_exception(
                FailedError(f"a worker of the Ray cluster died {RETRIES + 1} times over the same runs")
            )
        else:
            future.set_exception(FailedError(f"the Ray cluster failed: {_first_line(error)}"))

    def _fail(self, reason: str) -> None:
        """Fail all tasks that have no result yet."""
        for future in filter(self._claim, list(self._pending)):
            future.set_exception(FailedError(f"the Ray cluster failed: {reason}"))

    def _claim(self, future: Future[Any]) -> bool:
        """Whether a future has no result yet; only one of the threads that ask is told so."""
        try:
            self._pending.remove(future)
        except KeyError:
            return False
        return True


def _named(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function, as Ray needs it, of anything that can be called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return call


def _cores() -> int:
    """How many cores the cluster has now: machines come and go."""
    known: Any = ray  # without types
    return int(known.cluster_resources().get("CPU", 0))


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _no_answer(address: str) -> str:
    """Why nothing answers at an address; empty if something does. Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdecimal():  # a name such as "auto": Ray itself fails at once
        return ""
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        return str(error)
    return ""


class _Membership(threading.Thread):
    """A thread that joins a cluster, watches it, and leaves it when ``leave`` is set.

    It is a thread because ``ray.init`` may wait for ever. It lives as long as the executor because a cluster that is
    started ends with the thread that started it.
    """

    def __init__(self, fail: Callable[[str], None], **options: Any) -> None:
        super().__init__(daemon=True)
        self.fail, self.options, self.failed, self.cores = fail, options, "", 1
        self.joined, self.leave = threading.Event(), threading.Event()
        self.start()
        if not self.joined.wait(START_SECONDS):
            self.failed = f"no answer within {START_SECONDS:g} seconds"
        if self.failed:
            what = f"be joined at {options['address']}" if options["address"] else "be started on this machine"
            raise FailedError(f"a Ray cluster could not {what}: {self.failed}")

    def run(self) -> None:
        """Join, stay while the head of the cluster answers, leave."""
        try:
            ray.init(**self.options)
            head = ray.get_runtime_context().gcs_address
            self.cores = _cores()
        except Exception as error:
            self.failed = _first_line(error)
            self.joined.set()
            return
        self.joined.set()
        by_proxy = str(self.options["address"]).startswith("ray://")  # which alone can reach the head
        while not self.leave.wait(WATCH_SECONDS):
            reason = "" if by_proxy else _no_answer(head)
            if reason:
                self.fail(f"its head at {head} does not answer any more ({reason})")
                return
            self.cores = _cores()
        ray.shutdown()
