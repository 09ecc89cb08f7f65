"""``ucbf act``, ``observe`` and ``status`` where orders take time."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ucbf.cli.output import refused, show
from ucbf.errors import UserError
from ucbf.following.happened import read_states
from ucbf.following.store_steps import Told, read_told, step_of
from ucbf.following.stores import StoreFollower

When = tuple[Any, int | None, str | None]  # date, step, and how dates are written


class Marks(NamedTuple):
    """What is asked for besides."""

    unusual: bool
    correct: bool
    remove: bool


def observe(folder: Path, single: dict[str, Any], file: Path | None, when: When, marks: Marks, json: bool) -> None:
    """Take in a step, or those of a file, or take one out."""
    date, step, date_format = when
    typed = any(value is not None for value in single.values())
    follower = refused(lambda: StoreFollower(folder))

    def done() -> str:
        if marks.remove:
            if file is not None or marks.correct or typed:
                raise UserError("--remove takes out the step of a date; give only that (--date, or --step)")
            return follower.remove(date, step)
        if file is None:
            given = {**single, "sold_out": bool(single["sold_out"])}
            happened, note = step_of(follower.shop, **given)
            told = [Told(happened, date, step, note)]
        else:
            if typed or date is not None or step is not None:
                raise UserError(f"--file {file} is given with flags for a single step; give one or the other")
            told = read_told(file, follower.shop, date_format)
        return follower.observe_all(told, marks.correct, marks.unusual)

    said = refused(done)
    show(said, {"taken_in": said}, json)


def act(folder: Path, stock: float | None, file: Path | None, when: When, json: bool) -> None:
    """Say what to order now, or on each of the dates of a file."""
    date, step, date_format = when
    if (stock is None) == (file is None):
        raise UserError("give what is in stock (--stock), or a file of it (--stock-file), and not both")
    follower = refused(lambda: StoreFollower(folder))
    asked: list[tuple[Any, Any, int | None]] = [(stock, date, step)]
    if file is not None:
        asked = refused(lambda: read_states(file, follower.shop, date_format))
    found = refused(lambda: [follower.act(*each) for each in asked])
    plain = [asdict(each) for each in found]
    show("\n".join(map(str, found)), plain[0] if file is None else {"advice": plain}, json)


def status(folder: Path, json: bool) -> None:
    """How things stand."""
    told = refused(lambda: StoreFollower(folder).status())
    show("\n".join(f"{name}: {_plain(value)}" for name, value in told.items()), told, json)


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_plain(each)}" for key, each in value.items()) or "none"
    return "; ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
