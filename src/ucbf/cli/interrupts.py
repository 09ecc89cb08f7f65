"""Ctrl-C: a study stops soon, whatever it is doing, and what it has stored is kept."""

from __future__ import annotations

import os
import threading
from types import FrameType

INTERRUPTED = threading.Event()
PATIENCE = 5.0  # seconds after Ctrl-C within which everything has ended


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handle SIGINT: the first one stops the command, the second one ends it at once.

    Python drops a KeyboardInterrupt that is raised at a bad moment, for instance while numba compiles. For that case
    INTERRUPTED is set, which the study looks at, and a thread ends the process after PATIENCE seconds. That is safe at
    any time, because files of results are written whole.
    """
    if INTERRUPTED.is_set():
        os._exit(130)
    INTERRUPTED.set()
    last = threading.Timer(PATIENCE, os._exit, (130,))
    last.daemon = True
    last.start()
    raise KeyboardInterrupt
