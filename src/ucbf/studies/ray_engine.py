"""A Ray cluster as an executor: the one file that imports Ray."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

import ray

P = ParamSpec("P")
T = TypeVar("T")


class RayExecutor(Executor):
    """``submit`` gives a plain Future; without an address a cluster is started on this machine and ended again."""

    def __init__(self, address: str | None, jobs: int | None) -> None:
        started: dict[str, Any] = {} if address else {"num_cpus": jobs, "include_dashboard": False}
        paths = os.pathsep.join(path for path in sys.path if path)  # workers find a user's module where we found it
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env={"env_vars": {"PYTHONPATH": paths}},
            **started,
        )
        self._remote: Any = ray.remote(_call)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Compute fn(*args) on the cluster."""
        future: Future[T] = self._remote.remote(fn, args, kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; one that was started here ends."""
        ray.shutdown()


def _call(fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return fn(*args, **kwargs)
