"""What an attack is made of."""

from __future__ import annotations

import importlib
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CHECKED = ("forged", "fuzz")  # sections in which the bounds of arrays are checked


class Case(NamedTuple):
    """One thing that is tried."""

    name: str
    attempt: Callable[[], str]  # a word on what came of it; whatever it raises is a failure


def refused_or(attempt: Callable[[], str], *refusals: type[Exception]) -> str:
    """What came of an attempt, or "refused" if it ended in one of these errors, in one line that says something."""
    try:
        return attempt()
    except refusals as error:
        text = str(error)
    assert len(text) > 20, f"a refusal that says nothing: {text!r}"
    return "refused"


def play(section: str, seed: int, skip: int, seconds: float, pipe: Connection) -> None:
    """Try the cases of a section from one on, in a process of its own."""
    sys.path.insert(0, str(ROOT / "tests"))
    if section in CHECKED:  # compiled apart from the rest
        os.environ |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(ROOT / "results" / "bounds-checked")}
    warnings.simplefilter("ignore")
    until = None
    for i, case in enumerate(importlib.import_module(f"attack.{section}").cases(seed)):
        if i < skip:
            continue
        until = until or time.monotonic() + seconds  # from the first case on: functions may have to be compiled first
        if time.monotonic() > until:
            pipe.send(("end", False))
            return
        pipe.send(("begin", case.name))
        try:
            pipe.send(("done", case.attempt()))
        except BaseException:
            pipe.send(("failed", traceback.format_exc(limit=-6)))
    pipe.send(("end", True))
