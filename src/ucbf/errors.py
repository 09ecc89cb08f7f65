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
    """An error in one line, its kind named as Python does: "KeyError: 'x'"."""
    kind, said = type(error), str(error).strip().splitlines()
    of = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    name = f"{of}{kind.__qualname__}"
    return f"{name}: {said[0]}" if said else name


def place_name(place: Place) -> str:
    """A place as people write it: agents[0].c."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
