"""Amounts that are far from all others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

APART = 3.0  # an outlier is so many times as far from the median as all values that are not
FEWEST = 8  # amounts, of which some can be outliers


def outliers(amounts: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which amounts [K, H], or [K] of one step, are far from all others: at most one in a hundred, or a single one.

    Distances are from the median of the step. They are sorted and cut where one is the largest multiple of the next;
    those above the cut are outliers, if this multiple is more than three.
    """
    table = np.reshape(amounts, (len(amounts), -1))
    found: NDArray[np.bool_] = outliers_of_each(table.T[None])[0].T.reshape(np.shape(amounts))
    return found


def outliers_of_each(tables: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The same for the amounts [n, H, K] of many items; not a number where there is none."""
    n, there = len(tables), np.isfinite(tables)
    known = there.sum(axis=2)
    ordered, middle = (
        np.sort(tables, axis=2),
        (np.maximum(known - 1, 0) // 2, np.minimum(known // 2, len(tables.T) - 1)),
    )
    low, high = (np.take_along_axis(ordered, k[:, :, None], axis=2) for k in middle)
    away = np.where(there, np.abs(tables - (low + high) / 2), -1.0).reshape(n, -1)
    total = known.sum(axis=1)
    if not n or away.shape[1] < FEWEST:
        return np.zeros(tables.shape, np.bool_)
    few, every = np.maximum(1, total // 100), np.arange(n)
    least = away.shape[1] - few.max() - 1
    far = np.sort(np.partition(away, least, axis=1)[:, least:], axis=1)[:, ::-1]
    few = np.where(far[every, few] > 0, few, 1)
    with np.errstate(over="ignore"):
        ratios = far[:, :-1] / np.maximum(far[:, 1:], 1e-300)
    ratios[np.arange(ratios.shape[1]) >= few[:, None]] = 0
    cut = ratios.argmax(axis=1)
    some = (ratios[every, cut] > APART) & (total >= FEWEST)
    found: NDArray[np.bool_] = (some[:, None] & (away >= far[every, cut][:, None])).reshape(tables.shape)
    return found
