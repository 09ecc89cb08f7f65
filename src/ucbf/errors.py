"""What the commands say to their users."""

from __future__ import annotations

Place = tuple[str | int, ...]


class UserError(ValueError):
    """A mistake in what somebody asked a command for: one line and exit code 2. ``place`` is where it stands."""

    def __init__(self, message: str, place: Place = ()) -> None:
        super().__init__(message)
        self.place = place


def place_name(place: Place) -> str:
    """A place as people write it: agents[0].c."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
