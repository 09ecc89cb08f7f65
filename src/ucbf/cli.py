"""The commands: each parses its arguments, calls one function and prints what it wrote."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter, Token

from ucbf import __version__
from ucbf.errors import UserError, place_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ucbf.studies.spec import Study

app = App(
    name="ucbf",
    help="Control of systems whose mechanics are known and whose disturbances are not: S' = f(S, A) + W.",
    version=__version__,
)

Out = Annotated[Path | None, Parameter(help="Folder of the results; results/NAME if not given.")]


def read_whole(_: object, tokens: Sequence[Token]) -> int:
    """A flag that is a whole number; 2.5 is none."""
    try:
        return int(tokens[0].value)
    except ValueError:
        raise ValueError(f"{tokens[0].value} is not a whole number") from None


Seed = Annotated[int, Parameter(converter=read_whole, help="Everything random follows from it.")]
Quick = Annotated[bool, Parameter(negative=(), help="Few worlds and episodes, in seconds.")]
Band = Annotated[Literal["sd", "ci"], Parameter(help="±0.5 standard deviation, as in the paper, or a 95 % interval.")]
Scale = Annotated[Literal["linear", "log", "loglog"], Parameter(help="Of the episodes, or of the gap as well.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Running:
    """How and where a study is run.

    Parameters
    ----------
    out
        Folder of the results; results/NAME if not given.
    jobs
        Workers; as many as there are cores if not given.
    engine
        Threads of this process, or a Ray cluster.
    ray_address
        Of a running cluster; one is started here if not given.
    shard
        i/N: do the i-th of N parts, for batch queues.
    """

    out: Path | None = None
    jobs: Annotated[int | None, Parameter(converter=read_whole)] = None
    engine: Literal["local", "ray"] = "local"
    ray_address: str | None = None
    shard: str = "1/1"


HERE = Running()


@app.command
def figure1(
    *,
    running: Running = HERE,
    seed: Seed = 0,
    quick: Quick = False,
    band: Band = "sd",
    scale: Scale = "linear",
) -> None:
    """Reproduce the paper's figure: run its 1,500 runs, draw the six panels, print the table."""
    from ucbf.studies.paper import figure1

    study = figure1(quick=quick, seed=seed)
    folder = running.out or Path("results") / ("figure1-quick" if quick else "figure1")
    if _run(study, folder, running):
        _draw(folder, band, scale)


@app.command
def figure2(
    *,
    running: Running = HERE,
    seed: Seed = 0,
    quick: Quick = False,
) -> None:
    """Beyond the paper: UCB-f and UCBVI-f in its worlds, with f as told and repaired; regrets compared world by world.

    The exact f (ζ = 0) is repaired as if it could be wrong by ζ = 4.
    """
    from ucbf.studies.paper import figure2

    study = figure2(quick=quick, seed=seed)
    folder = running.out or Path("results") / ("figure2-quick" if quick else "figure2")
    if _run(study, folder, running):
        _draw_paired(folder)


@app.command
def table1(*, out: Out = None, seed: Seed = 0, quick: Quick = False) -> None:
    """Measure what the paper's Table 1 states: how time, memory and regret grow with states and actions."""
    from ucbf import table1

    folder = out or Path("results") / ("table1-quick" if quick else "table1")
    folder.mkdir(parents=True, exist_ok=True)
    sizes = table1.QUICK if quick else table1.FULL
    with progress_bar("algorithms") as progress:
        measured = table1.measure_all(sizes, seed, progress)
    rows = table1.rows(measured)
    title = f"H = {table1.HORIZON}, regret of {sizes.episodes} episodes; ± two standard errors"
    pictures = save(folder, "table1", lambda figures: figures.growth_figure(measured, sizes))
    cells, numbers = [list(row.values()) for row in rows], table1.numbers(measured, sizes)
    _publish(folder, "table1", list(rows[0]), cells, numbers, title, pictures)


@app.command
def run(study: Path, /, *, running: Running = HERE) -> None:
    """Run the study in a TOML file, or what is missing of it.

    Parameters
    ----------
    study
        The file.
    """
    from ucbf.studies.spec import read_study

    asked = read_study(study)
    _run(asked, running.out or Path("results") / asked.name, running)


@app.command
def status(folder: Path, /) -> None:
    """Say what of a study is stored.

    Parameters
    ----------
    folder
        Of the results.
    """
    from ucbf.studies.spec import runs_of
    from ucbf.studies.store import Store, stored_runs

    store = Store.open(folder)
    wanted = {run.id for run in runs_of(store.study)}
    print(f"{store.study.name}: {len(wanted & stored_runs(store))} of {len(wanted)} runs are stored in {folder}")
    for path in store.shards()[1]:
        print(f"damaged: {path}; the next run computes it again")


@app.command
def plot(
    folder: Path,
    /,
    *more: Path,
    band: Band = "sd",
    scale: Scale = "linear",
    paired: Annotated[bool, Parameter(negative=(), help="Regrets, compared world by world, as figure2 does.")] = False,
) -> None:
    """Draw the figure and print the table again from stored results.

    Parameters
    ----------
    folder
        Of the results; the figure and the table are written there.
    more
        Folders with other shards of the same study.
    """
    if paired:
        _draw_paired(folder, *more)
    else:
        _draw(folder, band, scale, *more)


app.command(
    "ucbf.cli_learn:learn",
    name="learn",
    help="From a measured series to a policy: inventory, battery, reservoir, queue.",
)


def _run(study: Study, folder: Path, running: Running) -> bool:
    """Run what is missing; whether the whole study is there now."""
    from ucbf.studies.runner import run_study

    try:
        with progress_bar() as progress:
            outcome = run_study(
                study,
                folder,
                jobs=running.jobs,
                engine=running.engine,
                ray_address=running.ray_address,
                shard=running.shard,
                progress=progress,
                stop=INTERRUPTED,
            )
    except KeyboardInterrupt:
        print(f"stopped; finished runs are kept in {folder}: the same command goes on from there", file=sys.stderr)
        raise
    except OSError as error:
        raise UserError(
            f"a result could not be written: {error.strerror or error}; finished runs are kept in {folder}: make room, "
            "or mend what is wrong there, and the same command goes on"
        ) from None
    for path in outcome.damaged:
        print(f"{path} was damaged; its runs were computed again", file=sys.stderr)
    print(f"{outcome.computed} runs computed, {outcome.total - outcome.computed} were there: {folder}")
    return running.shard == "1/1"


def _draw(folder: Path, band: str, scale: str, *more: Path) -> None:
    """Write figure.png, figure.svg, figure.pdf, summary.csv and summary.md, and print the table."""
    from ucbf import reports
    from ucbf.studies.store import read_results

    results = read_results(folder, *more)
    columns, rows = reports.heading(results), reports.summary(results)
    title = f"{results.study.name}: {results.study.episodes} episodes"
    pictures = save(folder, "figure", lambda figures: figures.gap_figure(results, band, scale))
    _publish(
        folder, "summary", list(columns.values()), [reports.cells(row, columns) for row in rows], rows, title, pictures
    )


def _draw_paired(folder: Path, *more: Path) -> None:
    """Write regret.png, regret.svg, regret.pdf, paired.csv and paired.md, and print the table."""
    from ucbf import reports
    from ucbf.studies.store import read_results

    results = read_results(folder, *more)
    columns, rows = reports.PAIRED, reports.paired(results)
    title = f"{results.study.name}: {results.study.episodes} episodes"
    pictures = save(folder, "regret", lambda figures: figures.regret_figure(results))
    _publish(
        folder, "paired", list(columns.values()), [reports.cells(row, columns) for row in rows], rows, title, pictures
    )


def _publish(
    folder: Path,
    name: str,
    columns: list[str],
    shown: list[list[str]],
    rows: list[dict[str, Any]],
    title: str,
    pictures: list[str],
) -> None:
    """Write a table as Markdown, as shown, and as CSV, every number in full; print it, and what was written."""
    from ucbf import reports
    from ucbf.files import write_whole

    write_whole(folder / f"{name}.md", reports.markdown_table(columns, shown).encode())
    write_whole(folder / f"{name}.csv", reports.comma_separated(rows).encode())
    _print_table(columns, shown, title)
    print(f"written to {folder}: {', '.join([f'{name}.md', f'{name}.csv', *pictures])}")


def _print_table(columns: list[str], rows: list[list[str]], title: str) -> None:
    """A table on the terminal; a first cell that repeats is left out."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(*columns, box=None, title=title)
    last = ""
    for row in rows:
        table.add_row("" if row[0] == last else escape(row[0]), *map(escape, row[1:]))
        last = row[0]
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def save(folder: Path, name: str, draw: Callable[[ModuleType], Figure]) -> list[str]:
    """Draw a figure and write it as PNG, SVG and PDF; the names of the files."""
    import io

    from ucbf.files import write_whole

    try:
        from ucbf import figures
    except ImportError:
        raise UserError("pictures need matplotlib; install it: pip install 'ucbf[plot]'") from None
    figure = draw(figures)
    names = []
    for kind in ("png", "svg", "pdf"):
        content = io.BytesIO()
        figure.savefig(content, format=kind, dpi=160)
        names.append(f"{name}.{kind}")
        write_whole(folder / names[-1], content.getvalue())
    return names


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


INTERRUPTED = threading.Event()
PATIENCE = 5.0  # seconds after Ctrl-C within which everything has ended


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C once: stop. Twice: at once.

    Python drops the exception where it comes at a bad moment, as it may while numba compiles: the flag is for that, and
    a thread that ends it all, since what is stored is whole at any time.
    """
    if INTERRUPTED.is_set():
        os._exit(130)
    INTERRUPTED.set()
    last = threading.Timer(PATIENCE, os._exit, (130,))
    last.daemon = True
    last.start()
    raise KeyboardInterrupt


def main() -> None:
    """The ``ucbf`` command: exit code 2 and one line for a user's mistake, a traceback only for ours."""
    signal.signal(signal.SIGINT, _interrupt)
    try:
        app(exit_on_error=False, print_error=False)
    except UserError as error:
        if error.__cause__ is not None:  # in code of the user's own
            traceback.print_exception(error.__cause__)
        place = place_name(error.place)
        _refuse(f"{place}: {error}" if place else str(error))
    except CycloptsError as error:
        _refuse(str(error))
    except BrokenPipeError:
        os._exit(0)  # whoever read our output has had enough
    except OSError as error:
        _refuse(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    except MemoryError as error:
        _refuse(f"this needs more memory than there is ({error}); choose smaller sizes")
    except KeyboardInterrupt:
        sys.stdout.flush()
        os._exit(130)  # not waiting for threads that compile: what is stored is whole


def _refuse(message: str) -> None:
    if INTERRUPTED.is_set():  # what failed is what Ctrl-C cut short
        os._exit(130)
    print(f"ucbf: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(2)
