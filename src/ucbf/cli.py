"""The commands: each parses its arguments, calls one function and prints what it wrote."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, CycloptsError, Parameter, Token

from ucbf import __version__
from ucbf.cli_output import progress_bar, publish, save
from ucbf.errors import FailedError, UserError, in_a_line, place_name

if TYPE_CHECKING:
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
    publish(folder, "table1", list(rows[0]), cells, numbers, title, pictures)


@app.command
def run(study: Path, /, *, running: Running = HERE, trust: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Run the study in a TOML file, or what is missing of it.

    Parameters
    ----------
    study
        The file.
    trust
        Run the code that the file names (module:Class), installed or beside it; without, such a file is refused.
    """
    from ucbf.studies.spec import read_study

    with redirect_stdout(sys.stderr):  # what the code that it names says
        asked = read_study(study, trust=trust)
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
    missing = len(wanted - stored_runs(store))
    print(f"{store.study.name}: {len(wanted) - missing} of {len(wanted)} runs are stored in {folder}")
    for path in store.shards()[1]:
        remedy = "the next run computes what is missing" if missing else "no run is missing, so that it can be deleted"
        print(f"damaged: {path}; {remedy}")


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
        with redirect_stdout(sys.stderr), progress_bar() as progress:  # of what agents and Ray say
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
    except Exception as error:
        if isinstance(error, UserError) and not isinstance(error, FailedError):
            raise  # a refusal of what was asked for
        raise UserError(_explained(error, folder)) from None
    for path in outcome.damaged:
        print(f"{path} was damaged; its runs were computed again", file=sys.stderr)
    print(f"{outcome.computed} runs computed, {outcome.total - outcome.computed} were there: {folder}")
    return running.shard == "1/1"


def _explained(error: Exception, folder: Path) -> str:
    """What failed, what is kept and how to go on."""
    said, remedy = f"the study failed: {in_a_line(error)}", "the same command goes on from there"
    if isinstance(error, FailedError):
        print(error.trace, file=sys.stderr, end="")
        said = str(error)
        remedy = "code that is changed needs another --out" if error.trace else "mend it, and the same command goes on"
    elif isinstance(error, OSError):
        said = f"a result could not be written: {error.strerror or error}"
        remedy = "make room, or mend what is wrong there, and the same command goes on"
    return f"{said}; finished runs are kept in {folder}: {remedy}"


def _draw(folder: Path, band: str, scale: str, *more: Path) -> None:
    """Write figure.png, figure.svg, figure.pdf, summary.csv and summary.md, and print the table."""
    from ucbf import reports
    from ucbf.studies.store import read_results

    results = read_results(folder, *more)
    columns, rows = reports.heading(results), reports.summary(results)
    title = f"{results.study.name}: {results.study.episodes} episodes"
    pictures = save(folder, "figure", lambda figures: figures.gap_figure(results, band, scale))
    publish(
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
    publish(
        folder, "paired", list(columns.values()), [reports.cells(row, columns) for row in rows], rows, title, pictures
    )


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
