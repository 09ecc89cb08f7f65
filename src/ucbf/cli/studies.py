"""``ucbf run`` runs a study, except for what is stored already; ``ucbf status`` says how things stand."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ucbf.cli.flags import HERE, Running
from ucbf.cli.interrupts import INTERRUPTED
from ucbf.cli.progress import progress_bar
from ucbf.errors import FailedError, UserError, in_a_line

if TYPE_CHECKING:
    from ucbf.studies.spec import Study


def run(study: Path, /, *, running: Running = HERE, trust: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Run the study in a TOML file; runs that are stored already are not run again.

    Parameters
    ----------
    study
        The TOML file.
    trust
        Allow the file to name code (module:Class), installed or beside the file, and run it. Without this flag, such a
        file is refused.
    """
    from ucbf.studies.reading import read_study

    with redirect_stdout(sys.stderr):  # what the code that it names prints
        asked = read_study(study, trust=trust)
    run_missing(asked, running.out or Path("results") / asked.name, running)


def status(folder: Path, /, *, json: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Show how many runs of a study are stored, and which files are damaged; or how advice that is followed does.

    Parameters
    ----------
    folder
        Folder of the results, or one that ucbf learn wrote.
    json
        Print one JSON object; for a folder of ucbf learn.
    """
    if (folder / "model.json").is_file() or (folder / "store.json").is_file():
        from ucbf.cli.morning import show_status

        show_status(folder, json)
        return
    if not (folder / "manifest.json").is_file():
        from ucbf.following.model import nothing_learned

        raise nothing_learned(folder, ", or the folder of a study")
    if json:
        raise UserError(f"--json is for folders that ucbf learn wrote, and {folder} is none; leave it out")
    from ucbf.studies.runs import runs_of
    from ucbf.studies.store import Store, runs_in

    store = Store.open(folder)
    wanted = {run.id for run in runs_of(store.study)}
    shards, damaged = store.shards()
    missing = len(wanted - runs_in(shards))
    print(f"{store.study.name}: {len(wanted) - missing} of {len(wanted)} runs are stored in {folder}")
    for path in damaged:
        remedy = "the next run computes what is missing" if missing else "no run is missing, so that it can be deleted"
        print(f"damaged: {path}; {remedy}")


def run_missing(study: Study, folder: Path, running: Running) -> bool:
    """Compute the runs that are not stored yet; True if the whole study was asked for, not one shard of it."""
    from ucbf.studies.runner import run_study

    try:
        with redirect_stdout(sys.stderr), progress_bar() as progress:  # what agents and Ray print
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
