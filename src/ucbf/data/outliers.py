"""Amounts that are far from all others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

APART = 3.0  # an outlier is so many times as far from the median as all values that are not


def outliers(amounts: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which amounts [K, H] are far from all others: at most one in a hundred, or a single one.

    Distances are from the median of the step. They are sorted and cut where one is the largest multiple of the next;
    those above the cut are outliers, if this multiple is more than three.
    """
    table = np.atleast_2d(amounts)
    away = np.abs(table - np.median(table, axis=0))
    none = np.zeros(np.shape(amounts), bool)
    if away.size < 8:
        return none
    few = max(1, away.size // 100)
    far = np.sort(np.partition(away, away.size - few - 1, axis=None)[-few - 1 :])[::-1]
    if not far[few]:
        far = far[:2]
    ratios = far[:-1] / np.maximum(far[1:], 1e-300)
    cut = int(ratios.argmax())
    return (away >= far[cut]).reshape(np.shape(amounts)) if ratios[cut] > APART else none
