"""What the commands say to their users."""

from __future__ import annotations

import traceback

Place = tuple[str | int, ...]


class UserError(ValueError):
    """A mistake in what somebody asked a command for: one line and exit code 2. ``place`` is where it stands."""

    def __init__(self, message: str, place: Place = ()) -> None:
        super().__init__(message)
        self.place = place


class FailedError(UserError):
    """Work that was under way failed. ``trace`` says where, if in code of the user's own."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace


def in_a_line(error: BaseException) -> str:
    """What Python says of an error in the last line: "KeyError: 'x'"."""
    return traceback.format_exception_only(error)[-1].strip()


def place_name(place: Place) -> str:
    """A place as people write it: agents[0].c."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
