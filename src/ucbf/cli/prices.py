"""Prices for ``ucbf learn battery``: which price holds at each step of the demand."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf import data
from ucbf.errors import UserError


def prices_by_episode(prices: data.Series, episodes: data.Episodes) -> list[dict[str, Any]]:
    """The prices of every episode, matched by date where both have dates, else row by row."""
    (K, H), demand = episodes.values.shape, episodes.series
    where = f"{prices.source}, column {prices.name!r}"
    at = np.arange(K * H)
    if prices.times is not None and demand.times is not None:
        if prices.spacing != demand.spacing:
            raise UserError(
                f"{where}: a price every {prices.spacing}, a demand every {demand.spacing}; make them alike"
            )
        if (prices.offsets is None) != (demand.offsets is None):
            known, unknown = (prices, demand) if demand.offsets is None else (demand, prices)
            raise UserError(
                f"{known.source} says how far its dates are from universal time, {unknown.source} does not; name the "
                "zone of its clock (time_zone, --time-zone)"
            )
        at = _matched(prices, demand.part(episodes.begin, episodes.begin + K * H), where)
    if len(prices) < at[-1] + 1:
        raise UserError(
            f"{where}: {len(prices)} rows, but the demand needs {at[-1] + 1} of them; give a price for every step"
        )
    return [{"prices": tuple(day)} for day in prices.values[at].reshape(K, H).tolist()]


def _matched(prices: data.Series, demand: data.Series, where: str) -> NDArray[np.int64]:
    """[N] the index of the price of each step: of the same instant where zones are known, else of the same time."""
    have, want = (series.times if series.instants is None else series.instants for series in (prices, demand))
    assert have is not None
    assert want is not None
    at = np.searchsorted(have, want, side="right") - 1
    first = int(at[0])
    if first < 0 or have[first] != want[0]:
        raise UserError(f"{where}: no price for {demand.when(0)}, where the first episode begins")
    if have[-1] < want[-1]:
        raise UserError(
            f"{where}: the prices end at {prices.when(-1)}, the demand at {demand.when(-1)}; give a price for every "
            "step of the demand"
        )
    wrong = have[at] != want
    if wrong.any():
        raise UserError(
            f"{where}: no price for {demand.when(int(wrong.argmax()))}; bring both to one clock (--time-zone)"
        )
    return at
