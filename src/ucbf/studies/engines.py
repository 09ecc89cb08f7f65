"""Where runs are computed: threads of this process, or a Ray cluster. Both are a ``concurrent.futures.Executor``."""

from __future__ import annotations

import os
from concurrent.futures import Executor, ThreadPoolExecutor

from ucbf.errors import UserError

ENGINES = ("local", "ray")


def executor_of(name: str, jobs: int | None, ray_address: str | None) -> Executor:
    """The executor of an engine. On one machine threads suffice, because the kernels run without the GIL."""
    if name == "local":
        return ThreadPoolExecutor(jobs or os.cpu_count() or 1)
    try:
        from ucbf.studies.ray_engine import RayExecutor
    except ImportError:
        raise UserError("--engine ray needs Ray; install it: pip install 'ucbf[ray]'") from None
    return RayExecutor(ray_address, jobs)
