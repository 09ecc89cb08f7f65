"""What is known beforehand of the steps to come, where it was learned with: forecasts, prices, promotions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import numbers
from ucbf.errors import UserError
from ucbf.following.calendar import Calendar, as_datetime
from ucbf.following.model import Model
from ucbf.wording import show_count

if TYPE_CHECKING:
    from ucbf.data import Series

PROFILE, QUANTILES, PROMOTED, PRICES = "profile", "quantiles", "promoted", "prices"
CALLED = {PROFILE: "forecasts", QUANTILES: "forecasts by quantiles", PROMOTED: "promotions"}  # in messages
FLAGS = {PROFILE: "--forecast", QUANTILES: "--forecast", PROMOTED: "--promotions", PRICES: "--price-file"}
OPTIONAL = {PROMOTED: set[str](), PROFILE: {QUANTILES}}  # what may be left out; what must be there in its place
Known = Mapping[str, Any]  # by name: [H], or [n] from a step on to the end of its episode, or a series with dates
Ahead = dict[str, NDArray[np.float64]]  # by name: [n], of quantiles [n, m], from a step on to the end of its episode


def ahead_of(folder: Path, model: Model, number: int, known: Known | None) -> Ahead:
    """What is known from a step on, of its episode; an error that says what is missing or too much."""
    known = {} if known is None else known
    _check_names(folder, model, known)
    found: Ahead = {}
    for name in model.varies:
        given = known.get(name)
        if name == PROMOTED:
            found[name] = _promoted(model.calendar, given, number)
        elif name == QUANTILES:
            found[name] = _by_quantiles(model, given, number)
        elif given is not None:
            found[name] = rest_of_episode(model.calendar, CALLED.get(name, name), given, number)
    return found


def as_record(ahead: Ahead) -> dict[str, Any]:
    """The same for a line of a journal."""
    return {name: values.tolist() for name, values in ahead.items()}


def of_record(model: Model, number: int, given: Any) -> Ahead | None:
    """What a line of a journal says was known from its step on; None where that is not what is needed now.

    A line from before anything was needed says nothing. A ValueError where it cannot be.
    """
    given = {} if given is None else given
    if not isinstance(given, dict):
        raise ValueError("what was known is not a table")
    n, found = len(model.calendar.rest_of(number)), Ahead()
    for name in model.varies:
        if name not in given:
            if name == PROMOTED:
                found[name] = np.zeros(n)
            elif not _may_be_left_out(name, set(given)):
                return None
            continue
        values = numbers(name, given[name])
        if values.shape != ((n, len(model.shares)) if name == QUANTILES else (n,)):
            return None  # of episodes of another length, or of other quantiles
        found[name] = values
    return found


def learned_with(folder: Path, model: Model) -> str:
    """The beginning of a message: what differs from episode to episode."""
    names = dict.fromkeys(CALLED.get(name, name) for name in model.varies)
    return f"{folder} was learned with {' and '.join(names)} that differ from episode to episode"


def _may_be_left_out(name: str, given: set[str]) -> bool:
    return name in OPTIONAL and given >= OPTIONAL[name]


def _check_names(folder: Path, model: Model, known: Known) -> None:
    """An error unless what is known is what differed in the episodes that were learned from."""
    varies, given = set(model.varies), {name for name, value in known.items() if value is not None}
    beyond = sorted(given - varies)
    if beyond:
        called, flags = (" and ".join(dict.fromkeys(by.get(name, name) for name in beyond)) for by in (CALLED, FLAGS))
        raise UserError(f"{folder} was learned without {called}; leave out {flags}")
    missing = [name for name in model.varies if name not in given and not _may_be_left_out(name, given)]
    if missing:
        needed = [f"{CALLED.get(name, name)} ({FLAGS.get(name, name)})" for name in missing]
        raise UserError(
            f"{learned_with(folder, model)}: give {' and '.join(needed)} from the step on, to the end of its episode"
        )


def _promoted(calendar: Calendar, given: Any, number: int) -> NDArray[np.float64]:
    """[n] 1 for steps that are promoted; none are where nothing is said of them."""
    if given is None:
        return np.zeros(len(calendar.rest_of(number)))
    marks: NDArray[np.bool_] = rest_of_episode(calendar, CALLED[PROMOTED], given, number, missing=0.0) != 0
    return marks.astype(np.float64)


def _by_quantiles(model: Model, given: Any, number: int) -> NDArray[np.float64]:
    """[n, m] the quantiles of each step, in order."""
    if isinstance(given, Mapping):
        if tuple(sorted(given)) != model.shares:
            theirs, ours = (", ".join(f"q{100 * share:g}" for share in each) for each in (sorted(given), model.shares))
            raise UserError(
                f"the forecast has {f'the quantiles {theirs}' if theirs else 'no quantiles'}, and it was learned with "
                f"{ours}; give a column for each of these"
            )
        columns = [rest_of_episode(model.calendar, CALLED[QUANTILES], given[share], number) for share in model.shares]
        return np.sort(np.stack(columns, axis=1), axis=1)
    values = numbers(QUANTILES, given)
    if values.ndim != 2 or values.shape[1] != len(model.shares):
        raise UserError(f"quantiles has shape {values.shape}; give a row for each step, with {len(model.shares)} each")
    columns = [rest_of_episode(model.calendar, CALLED[QUANTILES], column, number) for column in values.T]
    return np.sort(np.stack(columns, axis=1), axis=1)


def rest_of_episode(
    calendar: Calendar, called: str, given: Any, number: int, missing: float | None = None
) -> NDArray[np.float64]:
    """[n] what is given of a step and of those after it in its episode. missing: what a date without a row means."""
    rest, H = calendar.rest_of(number), calendar.horizon
    series: Series | None = given if hasattr(given, "times") else None
    if series is None or series.times is None or not calendar.is_dated:
        values = numbers(called, given) if series is None else series.values
        if values.shape not in {(H,), (len(rest),)}:
            many = show_count(len(values), "row") if values.ndim == 1 else f"shape {values.shape}"
            whole = "" if len(rest) == H else f", or {H}, one for each step of the episode"
            raise UserError(
                f"{called}: {many} without dates; give {len(rest)}, from {calendar.when(number)} to the end of its "
                f"episode{whole}, or a column of dates"
            )
        last: NDArray[np.float64] = values[-len(rest) :]
        return last
    first, end, month = (*(calendar.date_of(n).date() for n in (number, rest[-1])), np.timedelta64(31, "D"))
    near = (series.times >= np.datetime64(first) - month) & (series.times <= np.datetime64(end) + month)
    dated = zip(series.times[near], series.values[near], strict=True)
    found = {calendar.number_of(as_datetime(time)): float(x) for time, x in dated}
    lacking = [n for n in rest if n not in found]
    if lacking and missing is None:
        raise UserError(
            f"{series.source}, column {series.name!r}: nothing for {calendar.when(lacking[0])}; give the {called} from "
            f"{calendar.when(number)} to {calendar.when(rest[-1])}"
        )
    return np.array([found.get(n, missing) for n in rest], np.float64)
