"""``ucbf table1``: the paper's Table 1, measured."""

from __future__ import annotations

from pathlib import Path

from ucbf.cli.flags import Out, Quick, Seed
from ucbf.cli.output import check_can_draw, publish, save
from ucbf.cli.progress import progress_bar


def table1(*, out: Out = None, seed: Seed = 0, quick: Quick = False) -> None:
    """Measure what the paper's Table 1 states: how time, memory and regret grow with states and actions."""
    from ucbf import table1

    check_can_draw()
    folder = out or Path("results") / ("table1-quick" if quick else "table1")
    folder.mkdir(parents=True, exist_ok=True)
    sizes = table1.QUICK if quick else table1.FULL
    with progress_bar("algorithms") as progress:
        measured = table1.measure_all(sizes, seed, progress)
    rows = table1.rows(measured)
    title = f"H = {table1.HORIZON}, regret of {sizes.episodes} episodes; ± two standard errors"
    pictures = save(folder, "table1", lambda figures: figures.growth_figure(measured, sizes))
    cells, numbers = [list(row.values()) for row in rows], table1.numbers(measured, sizes)
    publish(folder, "table1", list(rows[0]), cells, numbers, title, pictures)
