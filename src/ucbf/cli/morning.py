"""``ucbf observe`` and ``ucbf act``: every morning, with what ``ucbf learn`` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ucbf.cli.beforehand import Beforehand
from ucbf.cli.flags import read_whole
from ucbf.cli.output import refused, show
from ucbf.errors import UserError
from ucbf.files import FLEET, ITEMS

if TYPE_CHECKING:
    from ucbf.following import Follower, Taken
    from ucbf.systems import Preset

# The presets' own words for the parts of a step, each beside the general one.
STATE = ("--state", "--stock", "--charge", "--storage", "--waiting")
ACTION = ("--action", "--order", "--purchase", "--release", "--service")
AMOUNT = ("--amount", "--demand", "--net-demand", "--inflow", "--arrivals")
NEXT_STATE = ("--next-state", "--left", "--next-stock", "--next-charge", "--next-storage", "--next-waiting")
STATE_FILE = tuple(f"{name}-file" for name in STATE)
Step = Annotated[int | None, Parameter(converter=read_whole)]
Json = Annotated[bool, Parameter(negative=())]


NOTHING = Beforehand()


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
    beforehand: Beforehand = NOTHING,
    received: float | None = None,
    cancelled: float | None = None,
    sold_out: Annotated[bool, Parameter(negative=())] = False,
    unusual: Annotated[bool, Parameter(negative=())] = False,
    correct: Annotated[bool, Parameter(negative=())] = False,
    remove: Annotated[bool, Parameter(negative=())] = False,
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
        What was there after the step. Left out, it is what the amount tells.
    date
        Date of the step; needed where the series has dates.
    step
        Number of the step since the end of the series, where it has no dates; the next one if not given.
    file
        CSV or Parquet file with a row for each step, and a column for each of these, named like the flags. In a folder
        of many items (ucbf learn --item): with the column of items, too.
    date_format
        How dates are written, in --date and in files, such as %d.%m.%Y; found by itself if not given.
    received
        What came of orders, where orders take time (ucbf learn inventory --lead-time). There the amount and what was
        ordered are enough; the amount may be left out where --stock (before what came) and --left tell it.
    cancelled
        There: what was under way and will not come, such as the rest of a short delivery.
    sold_out
        There: the amount is what was sold, and more was asked for.
    unusual
        What is unusual is right: a date far from the last, or still to come; where orders take time, a demand far above
        all others.
    correct
        Replace what was taken in for the same date before.
    remove
        Take out what was taken in for this date by mistake.
    json
        Print one JSON object.
    """
    date = _read_date(date, date_format)
    if file is not None and is_of_items(folder):
        from ucbf.cli import items_mornings, store_mornings

        alone = (state, action, amount, next_state, date, step, received, cancelled)
        if any(value is not None for value in alone) or sold_out or remove or json or beforehand.is_given:
            raise UserError(
                f"--file {file} is for all items of {folder}; give nothing else but --correct and --unusual"
            )
        items_mornings.observe(folder, file, date_format, store_mornings.Marks(unusual, correct, remove))
        return
    if is_store(folder):
        from ucbf.cli import store_mornings

        _check_nothing_beforehand(beforehand)
        amounts = {"demand": amount, "order": action, "received": received, "cancelled": cancelled}
        single = {**amounts, "stock": state, "left": next_state, "sold_out": sold_out or None}
        store_mornings.observe(
            folder, single, file, (date, step, date_format), store_mornings.Marks(unusual, correct, remove), json
        )
        return
    if received is not None or cancelled is not None or sold_out:
        raise UserError("--received, --cancelled and --sold-out are for stores whose orders take time; leave them out")
    from ucbf.following import read_happened

    follower = _follower(folder)
    single = {"state": state, "action": action, "next_state": next_state, "amount": amount}

    def done() -> Taken:
        if remove:
            if file is not None or correct or any(value is not None for value in single.values()):
                raise UserError("--remove takes out the step of a date; give only that (--date, or --step)")
            return follower.remove(date, step)
        known = beforehand.read(follower.model, date_format)
        if file is None:
            _check_single(single, follower.preset)
            return follower.observe(**single, date=date, step=step, correct=correct, known=known, unusual=unusual)  # type: ignore[arg-type]
        if any(value is not None for value in (*single.values(), date, step)):
            raise UserError(f"--file {file} is given with flags for a single step; give one or the other")
        return follower.observe_all(read_happened(file, follower.preset, date_format), correct, known, unusual)

    taken = refused(done)
    show(taken, taken.as_dict(), json)


def _check_nothing_beforehand(beforehand: Beforehand) -> None:
    if beforehand.is_given:
        raise UserError("where orders take time, no forecast, prices or promotions are taken; leave them out")


def _check_single(given: dict[str, float | None], preset: Preset) -> None:
    """An error that names the flags of this preset that are missing."""
    flags = own_flags(preset)
    missing = [flags[name] for name in ("state", "action") if given[name] is None]
    if given["next_state"] is None and given["amount"] is None:
        missing.append(f"{flags['next_state']} or {flags['amount']}")
    if missing:
        raise UserError(f"{', '.join(missing)} not given; give the step by flags, or a file of steps (--file)")


def own_flags(preset: Preset) -> dict[str, str]:
    """The flags for the parts of a step in the words of a preset."""
    state, action, amount = (
        f"--{name.replace(' ', '-')}" for name in (preset.state_name, preset.action_name, preset.amount_name)
    )
    after = "--left" if state == "--stock" else f"--next-{state[2:]}"
    return {"state": state, "action": action, "amount": amount, "next_state": after}


def _read_date(date: str | None, date_format: str | None) -> Any:
    """A date of a flag; as it is, where the program finds out by itself how it is written."""
    from ucbf.following.calendar import read_date

    return date if date is None or date_format is None else read_date(date, date_format)


def act(
    folder: Path,
    /,
    *,
    state: Annotated[float | None, Parameter(name=STATE)] = None,
    date: str | None = None,
    step: Step = None,
    state_file: Annotated[Path | None, Parameter(name=STATE_FILE)] = None,
    date_format: str | None = None,
    beforehand: Beforehand = NOTHING,
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
        CSV or Parquet file with the state, in one row or in one for each date. In a folder of many items (ucbf learn
        --item, with or without --items): with the stock of each item, in the columns of items and stock.
    date_format
        How dates are written, in --date and in files, such as %d.%m.%Y; found by itself if not given.
    json
        Print one JSON object.
    """
    from dataclasses import asdict

    date = _read_date(date, date_format)
    if (folder / FLEET).is_file():
        from ucbf.cli.fleet_orders import act_for_many

        if state_file is None or state is not None or step is not None or beforehand.is_given:
            raise UserError(
                f"{folder} holds plans of many items; give a file with the stock of each (--stock-file), a --date if "
                "it is for another day, and nothing else"
            )
        act_for_many(folder, state_file, date, json)
        return
    if state_file is not None and is_of_items(folder):
        from ucbf.cli import items_mornings

        if state is not None or step is not None or beforehand.is_given:
            raise UserError(
                f"{folder} holds folders of many items; give a file with the stock of each (--stock-file), a --date if "
                "it is for another day, and nothing else; what is known beforehand is given item by item"
            )
        items_mornings.act(folder, state_file, items_mornings.When(date, date_format), json)
        return
    if state_file is not None and (date is not None or step is not None):
        raise UserError("a file of what is there is given with a date or a step; they stand in a column of the file")
    if is_store(folder):
        _check_nothing_beforehand(beforehand)
        from ucbf.cli import store_mornings

        store_mornings.act(folder, state, state_file, (date, step, date_format), json)
        return
    follower = _follower(folder)
    if (state is None) == (state_file is None):
        flag = own_flags(follower.preset)["state"]
        raise UserError(f"give what is there now ({flag}), or a file of it ({flag}-file), and not both")
    asked: list[Any] = [(state, date, step)]
    if state_file is not None:
        from ucbf.following import read_states

        asked = refused(lambda: read_states(state_file, follower.preset, date_format))
    found = refused(lambda: follower.act_all(asked, beforehand.read(follower.model, date_format)))
    plain = [asdict(each) for each in found]
    show("\n".join(map(str, found)), plain[0] if state_file is None else {"advice": plain}, json)


def is_store(folder: Path) -> bool:
    """Whether a folder is of a store whose orders take time."""
    return (folder / "store.json").is_file()


def is_of_items(folder: Path) -> bool:
    """Whether a folder has one for each of many items (ucbf learn --item)."""
    return (folder / ITEMS).is_file() and not is_store(folder) and not (folder / "model.json").is_file()


def show_status(folder: Path, json: bool) -> None:
    """How things stand in a folder that ucbf learn wrote."""
    if is_store(folder):
        from ucbf.cli import store_mornings

        store_mornings.status(folder, json)
        return
    found = _follower(folder).status()
    show(found, found.as_dict(), json)


def _follower(folder: Path) -> Follower:
    from ucbf.following import follow

    return refused(lambda: follow(folder))
