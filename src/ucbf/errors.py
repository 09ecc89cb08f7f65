"""Errors that a command reports in one line, and warnings that point at the line of the user's that led to them."""

from __future__ import annotations

import os
import sys
import warnings

PACKAGE = os.path.join(os.path.dirname(__file__), "")
Place = tuple[str | int, ...]


class UserError(ValueError):
    """A mistake in what the user gave: a command prints one line and exits with code 2. ``place``: where in a study."""

    def __init__(self, message: str, place: Place = ()) -> None:
        super().__init__(message)
        self.place = place


class FailedError(UserError):
    """Something failed while a study was computed. ``trace``: the traceback, if in the user's own code."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace


def warn(message: str, kind: type[Warning] = UserWarning) -> None:
    """Warn of the line outside this package that called it, by whatever way."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level)


def in_a_line(error: BaseException) -> str:
    """An error in one line, with the name that Python gives it: "KeyError: 'x'"."""
    kind, lines = type(error), str(error).strip().splitlines()
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    name = f"{module}{kind.__qualname__}"
    return f"{name}: {lines[0]}" if lines else name


def place_name(place: Place) -> str:
    """A place as people write it: agents[0].c."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
