"""Where runs are computed: threads of this process, or a Ray cluster. Both are a ``concurrent.futures.Executor``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from ucbf.errors import UserError

ENGINES = ("local", "ray")


@contextmanager
def executor_of(name: str, jobs: int | None, ray_address: str | None) -> Iterator[Executor]:
    """An executor; threads suffice on one machine, because the kernels run without the GIL."""
    if name == "ray":
        try:
            from ucbf.studies.ray_engine import RayExecutor
        except ImportError:
            raise UserError("--engine ray needs Ray; install it: pip install 'ucbf[ray]'") from None
        with RayExecutor(ray_address, jobs) as executor:
            yield executor
        return
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as executor:
        yield executor
