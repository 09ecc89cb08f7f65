"""Progress of a long command, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(what: str = "runs") -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, a line for every few percent elsewhere; both on standard error."""
    if not sys.stderr.isatty():
        last = -1

        def say(done: int, total: int) -> None:
            nonlocal last
            percent = 5 * (20 * done // total)
            if percent > last:
                last = percent
                print(f"{done} of {total} {what} ({percent} %)", file=sys.stderr, flush=True)

        yield say
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    parts = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"))
    with Progress(*parts, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=None, rate="")
        first: list[int] = []

        def show(done: int, total: int) -> None:
            first.append(done)
            elapsed = bar.tasks[task].elapsed or 0.0
            rate = f"{(done - first[0]) / elapsed:.1f} a second" if elapsed and done > first[0] else ""
            bar.update(task, completed=done, total=total, rate=rate)

        yield show
