"""What the commands say to their users."""

from __future__ import annotations

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
    """An error in one line: "KeyError: 'x'"."""
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0]}" if first else type(error).__name__


def place_name(place: Place) -> str:
    """A place as people write it: agents[0].c."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
