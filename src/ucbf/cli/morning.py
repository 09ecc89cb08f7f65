"""``ucbf observe`` and ``ucbf act``: every morning, with what ``ucbf learn`` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ucbf.cli.flags import read_whole
from ucbf.errors import UserError

if TYPE_CHECKING:
    from ucbf.following import Follower

# The presets' own words for the parts of a step, each beside the general one.
STATE = ("--state", "--stock", "--charge", "--storage", "--waiting")
ACTION = ("--action", "--order", "--purchase", "--release", "--service")
AMOUNT = ("--amount", "--demand", "--net-demand", "--inflow", "--arrivals")
NEXT_STATE = ("--next-state", "--left", "--next-stock", "--next-charge", "--next-storage", "--next-waiting")
STATE_FILE = tuple(f"{name}-file" for name in STATE)
Step = Annotated[int | None, Parameter(converter=read_whole)]
Json = Annotated[bool, Parameter(negative=())]


def observe(
    folder: Path,
    /,
    *,
    state: Annotated[float | None, Parameter(name=STATE)] = None,
    action: Annotated[float | None, Parameter(name=ACTION)] = None,
    amount: Annotated[float | None, Parameter(name=AMOUNT)] = None,
    next_state: Annotated[float | None, Parameter(name=NEXT_STATE)] = None,
    date: str | None = None,
    step: Step = None,
    file: Path | None = None,
    date_format: str | None = None,
    correct: Annotated[bool, Parameter(negative=())] = False,
    json: Json = False,
) -> None:
    """Take in what happened in a step, or in many, after ucbf learn.

    It is kept in the journal of the folder before the command ends. The same again changes nothing.

    Parameters
    ----------
    folder
        Folder that ucbf learn wrote.
    state
        What was there before the step.
    action
        What was done, whoever decided it.
    amount
        What was asked for, flowed in, arrived. Left out, it is what the next state tells; where nothing is left, that
        it was at least so much.
    next_state
        What was there after the step.
    date
        Date of the step; needed where the series has dates.
    step
        Number of the step since the end of the series, where it has no dates; the next one if not given.
    file
        CSV or Parquet file with a row for each step, and a column for each of these, named like the flags.
    date_format
        How dates of the file are written, such as %d.%m.%Y; found by itself if not given.
    correct
        Replace what was taken in for the same date before.
    json
        Print one JSON object.
    """
    from ucbf.following import read_happened

    single = {"state": state, "action": action, "next_state": next_state}
    if file is None:
        missing = [f"--{name.replace('_', '-')}" for name, value in single.items() if value is None]
        if missing:
            raise UserError(f"{', '.join(missing)} not given; give the step by flags, or a file of steps (--file)")
    elif any(value is not None for value in (*single.values(), amount, date, step)):
        raise UserError(f"--file {file} is given with flags for a single step; give one or the other")
    follower = _follower(folder)
    try:
        if file is None:
            taken = follower.observe(state, action, next_state, amount, date, step, correct)  # type: ignore[arg-type]
        else:
            taken = follower.observe_all(read_happened(file, follower.preset, date_format), correct)
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, UserError) else UserError(str(error)) from None
    _show(taken, taken.as_dict(), json)


def act(
    folder: Path,
    /,
    *,
    state: Annotated[float | None, Parameter(name=STATE)] = None,
    date: str | None = None,
    step: Step = None,
    state_file: Annotated[Path | None, Parameter(name=STATE_FILE)] = None,
    date_format: str | None = None,
    json: Json = False,
) -> None:
    """Say what to do now, with all that was learned and taken in.

    Parameters
    ----------
    folder
        Folder that ucbf learn wrote.
    state
        What is there now.
    date
        Date of the step; that after the last in the journal if not given.
    step
        Number of the step since the end of the series, where it has no dates.
    state_file
        CSV or Parquet file with the state, in one row or in one for each date.
    date_format
        How dates of the file are written, such as %d.%m.%Y; found by itself if not given.
    json
        Print one JSON object.
    """
    from dataclasses import asdict

    if (state is None) == (state_file is None):
        raise UserError("give what is there now (--state), or a file of it (--state-file), and not both")
    if state_file is not None and (date is not None or step is not None):
        raise UserError("--state-file is given with a date or a step; they stand in a column of the file")
    follower = _follower(folder)
    try:
        asked: list[Any] = [(state, date, step)]
        if state_file is not None:
            from ucbf.following import read_states

            asked = read_states(state_file, follower.preset, date_format)
        found = follower.act_all(asked)
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, UserError) else UserError(str(error)) from None
    plain = [asdict(each) for each in found]
    _show("\n".join(map(str, found)), plain[0] if state_file is None else {"advice": plain}, json)


def show_status(folder: Path, json: bool) -> None:
    """How things stand in a folder that ucbf learn wrote."""
    found = _follower(folder).status()
    _show(found, found.as_dict(), json)


def _follower(folder: Path) -> Follower:
    from ucbf.following import follow

    try:
        return follow(folder)
    except ValueError as error:
        raise error if isinstance(error, UserError) else UserError(str(error)) from None


def _show(text: object, plain: dict[str, Any], json: bool) -> None:
    if json:
        from json import dumps

        print(dumps(plain, ensure_ascii=False, allow_nan=False))
    else:
        print(text)
