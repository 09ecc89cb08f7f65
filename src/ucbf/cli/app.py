"""The commands put together, and ``main``, which runs the one that was asked for."""

from __future__ import annotations

import os
import re
import signal
import sys
import traceback

from cyclopts import App, CycloptsError

from ucbf import __version__
from ucbf.cli import interrupts, morning, paper, plot, studies, table1
from ucbf.errors import UserError, place_name

app = App(
    name="ucbf",
    help="Control of systems whose mechanics are known and whose disturbances are not: S' = f(S, A) + W.",
    version=__version__,
)
COMMANDS = (paper.figure1, paper.figure2, paper.figure3, table1.table1, studies.run, studies.status, plot.plot)
for _command in (*COMMANDS, morning.observe, morning.act):
    app.command(_command)
app.command(  # by its name: the file is heavy, and imported when it is asked for
    "ucbf.cli.learn:learn",
    name="learn",
    help="From a measured series to a policy: inventory, battery, reservoir, queue.",
)


def main() -> None:
    """The ``ucbf`` command: exit code 2 and one line for a user's mistake, a traceback only for ours."""
    signal.signal(signal.SIGINT, interrupts.interrupt)
    try:
        app(exit_on_error=False, print_error=False)
    except UserError as error:
        if error.__cause__ is not None:  # in code of the user's own
            traceback.print_exception(error.__cause__)
        place = place_name(error.place)
        _refuse(f"{place}: {error}" if place else str(error))
    except CycloptsError as error:
        _refuse(_with_a_point(str(error)))
    except BrokenPipeError:
        os._exit(0)  # whoever read our output has had enough
    except OSError as error:
        _refuse(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    except MemoryError as error:
        _refuse(f"this needs more memory than there is ({error}); choose smaller sizes")
    except KeyboardInterrupt:
        sys.stdout.flush()
        os._exit(130)  # not waiting for threads that compile: what is stored is whole


def _with_a_point(message: str) -> str:
    """The message, and how to write a number that was written with a decimal comma."""
    found = re.search(r'convert "([+-]?[\d.]*),(\d+)"', message)
    return message if found is None else f"{message} Write {found[1].replace('.', '')}.{found[2]}"


def _refuse(message: str) -> None:
    """Print a message in one line and exit with code 2."""
    if interrupts.INTERRUPTED.is_set():  # what failed is what Ctrl-C cut short
        os._exit(130)
    print(f"ucbf: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(2)
