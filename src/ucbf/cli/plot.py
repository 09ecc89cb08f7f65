"""``ucbf plot``: the figure and the table of stored results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ucbf.cli.flags import Band, Scale
from ucbf.cli.output import publish, save
from ucbf.errors import UserError


def plot(
    folder: Path,
    /,
    *more: Path,
    band: Band = "sd",
    scale: Scale = "linear",
    paired: Annotated[bool, Parameter(negative=(), help="Draw regrets, compared world by world, as figure2.")] = False,
    growth: Annotated[bool, Parameter(negative=(), help="Draw regrets over the horizon, as figure3.")] = False,
) -> None:
    """Draw the figure and print the table of stored results.

    Parameters
    ----------
    folder
        Folder of the results; the figure and the table are written there.
    more
        Folders with other shards of the same study.
    """
    if paired and growth:
        raise UserError("--paired and --growth are two figures; give one of them")
    if growth:
        draw_growth(folder, *more)
    elif paired:
        draw_regrets(folder, *more)
    else:
        draw_gaps(folder, band, scale, *more)


def draw_gaps(folder: Path, band: str, scale: str, *more: Path) -> None:
    """Write figure.png, figure.svg, figure.pdf, summary.csv and summary.md, and print the table."""
    from ucbf import reports
    from ucbf.studies.store import read_results

    results = read_results(folder, *more)
    columns, rows = reports.heading(results), reports.summary(results)
    title = f"{results.study.name}: {reports.length_of(results.study)}"
    pictures = save(folder, "figure", lambda figures: figures.gap_figure(results, band, scale))
    publish(
        folder, "summary", list(columns.values()), [reports.cells(row, columns) for row in rows], rows, title, pictures
    )


def draw_regrets(folder: Path, *more: Path) -> None:
    """Write regret.png, regret.svg, regret.pdf, paired.csv and paired.md, and print the table."""
    from ucbf import reports
    from ucbf.studies.store import read_results

    results = read_results(folder, *more)
    rows = reports.paired(results)
    columns = reports.paired_heading(rows)
    title = f"{results.study.name}: {reports.length_of(results.study)}"
    pictures = save(folder, "regret", lambda figures: figures.regret_figure(results))
    publish(
        folder, "paired", list(columns.values()), [reports.cells(row, columns) for row in rows], rows, title, pictures
    )


def draw_growth(folder: Path, *more: Path) -> None:
    """Write growth.png, growth.svg, growth.pdf, growth.csv and growth.md, and print the table."""
    from ucbf import exponents, reports
    from ucbf.studies.store import read_results

    results = read_results(folder, *more)
    found = exponents.growths(results)
    rows = exponents.rows(found)
    title = (
        f"{results.study.name}: {reports.length_of(results.study)}; mean regret (95 %), exponent ± two standard errors"
    )
    pictures = save(folder, "growth", lambda figures: figures.horizon_figure(results, found))
    publish(
        folder, "growth", list(rows[0]), [list(row.values()) for row in rows], exponents.numbers(found), title, pictures
    )
