"""The ``ucbf`` command for tests: within this process, because a new one takes seconds to import what it needs."""

import contextlib
import io
import signal
import subprocess
import sys
import warnings
from types import SimpleNamespace

from ucbf.cli import main

UCBF = [sys.executable, "-c", "from ucbf.cli import main; main()"]  # in a process of its own


def ucbf(*arguments, cwd=".", check=True, alone=False):
    """What `ucbf arguments` prints, and its exit code, like the result of subprocess.run.

    check: fail unless the exit code is 0
    alone: in a process of its own, for what a process can do but once, such as import a module `own`
    """
    arguments = [str(argument) for argument in arguments]
    if alone:
        done = subprocess.run([*UCBF, *arguments], capture_output=True, text=True, cwd=cwd)
    else:
        done = _within(arguments, cwd)
    if check:
        assert done.returncode == 0, done.stderr
    return done


def _within(arguments, cwd):
    out, err, code = io.StringIO(), io.StringIO(), 0
    before, handler = sys.argv, signal.getsignal(signal.SIGINT)
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.resetwarnings()
        warnings.filterwarnings("ignore", message="Cyclopts application invoked without tokens")
        sys.argv = ["ucbf", *arguments]
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        finally:
            sys.argv = before
            signal.signal(signal.SIGINT, handler)
    return SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue(), returncode=code)
