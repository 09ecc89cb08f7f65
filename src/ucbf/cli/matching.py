"""Prices and forecasts for ``ucbf learn``: which of them holds at each step of the series."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ucbf import data
from ucbf.errors import UserError


def matched(given: data.Series, episodes: data.Episodes, noun: str, amount: str) -> NDArray[np.float64]:
    """[K, H] the price or forecast of every step, matched by date where both have dates, else row by row.

    noun: what is given, such as "price"; amount: what it is given for, such as "demand"
    """
    (K, H), series = episodes.values.shape, episodes.series
    where = f"{given.source}, column {given.name!r}"
    at = np.arange(episodes.begin, episodes.begin + K * H)
    if given.times is not None and series.times is not None:
        if given.spacing != series.spacing:
            raise UserError(
                f"{where}: a {noun} every {given.spacing}, a {amount} every {series.spacing}; make them alike"
            )
        if (given.offsets is None) != (series.offsets is None):
            known, unknown = (given, series) if series.offsets is None else (series, given)
            raise UserError(
                f"{known.source} says how far its dates are from universal time, {unknown.source} does not; name the "
                "zone of its clock (time_zone, --time-zone)"
            )
        at = _matched(given, series.part(episodes.begin, episodes.begin + K * H), where, (noun, amount))
    elif series.times is not None and len(given) != len(series):
        raise UserError(
            f"{where}: {len(given)} rows without dates, and the {amount} has {len(series)} steps with dates; give the "
            f"{noun}s dates, or as many rows"
        )
    if len(given) < at[-1] + 1:
        raise UserError(
            f"{where}: {len(given)} rows, but the {amount} needs {at[-1] + 1} of them; give a {noun} for every step"
        )
    return given.values[at].reshape(K, H)


def _matched(given: data.Series, series: data.Series, where: str, words: tuple[str, str]) -> NDArray[np.int64]:
    """[N] the index of what is given for each step: of the same instant where zones are known, else the same time."""
    noun, amount = words
    have, want = (each.times if each.instants is None else each.instants for each in (given, series))
    assert have is not None
    assert want is not None
    at = np.searchsorted(have, want, side="right") - 1
    first = int(at[0])
    if first < 0 or have[first] != want[0]:
        raise UserError(
            f"{where}: no {noun} for {series.when(0)}, where the first episode begins; give a {noun} for every step of "
            f"the {amount}"
        )
    if have[-1] < want[-1]:
        last = int((want > have[-1]).argmax())
        raise UserError(
            f"{where}: the {noun}s end at {given.when(-1)}, the {amount} at {series.when(-1)}; the first without is "
            f"{series.when(last)}: give a {noun} for every step of the {amount}"
        )
    wrong = have[at] != want
    if wrong.any():
        raise UserError(
            f"{where}: no {noun} for {series.when(int(wrong.argmax()))}; bring both to one clock (--time-zone)"
        )
    return at
