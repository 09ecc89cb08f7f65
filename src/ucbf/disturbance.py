"""The law of W: a probability for each integer, the same at every step or one row a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import frozen, numbers, whole


@dataclass(frozen=True, init=False, eq=False)
class Disturbance:
    """P(W_h = low + i) = pmf[h, i].

    Parameters
    ----------
    pmf
        [n], or [H, n] for a law that differs by step. Each row is non-negative and sums to one.
    low
        The smallest value of W; it may be negative.

    Examples
    --------
    >>> demand = Disturbance([0.25, 0.5, 0.25], low=-2)     # W = -demand, demand in 0..2
    >>> demand.low, demand.high, demand.mean()
    (-2, 0, -1.0)
    """

    pmf: NDArray[np.float64]  # [1 or H, n]
    low: int

    def __init__(self, pmf: ArrayLike, low: int = 0) -> None:
        table = numbers("pmf", pmf)
        if table.ndim not in (1, 2) or table.size == 0:
            raise ValueError(f"pmf has shape {table.shape}; give [n], or [H, n] for a law per step")
        table = np.atleast_2d(table)
        if (table < 0).any():
            h, i = np.argwhere(table < 0)[0]
            raise ValueError(f"pmf[{h}, {i}] is {table[h, i]:g}; probabilities must not be negative")
        sums = table.sum(axis=1)
        wrong = np.flatnonzero(np.abs(sums - 1) > 1e-9)
        if len(wrong):
            h = wrong[0]
            raise ValueError(f"row {h} of pmf sums to {sums[h]:.12g}; it must sum to 1: divide it by its sum")
        object.__setattr__(self, "pmf", frozen(table))
        object.__setattr__(self, "low", whole("low", low))

    @property
    def high(self) -> int:
        """The largest value of W."""
        return self.low + len(self.pmf[0]) - 1

    @property
    def values(self) -> NDArray[np.int64]:
        """[n]: low..high."""
        return np.arange(self.low, self.high + 1)

    def mean(self, h: int = 0) -> float:
        """E[W_h]."""
        return float(self.pmf[h % len(self.pmf)] @ self.values)

    def draw(self, uniforms: ArrayLike) -> NDArray[np.int64]:
        """[K, H] disturbances from [K, H] uniform numbers in [0, 1), column h by the law of step h."""
        uniforms = numbers("uniforms", uniforms)
        if uniforms.ndim != 2 or ((uniforms < 0) | (uniforms >= 1)).any():
            raise ValueError(f"uniforms has shape {uniforms.shape}; give [K, H] numbers in [0, 1)")
        drawn = np.empty(uniforms.shape, dtype=np.int64)
        for h in range(uniforms.shape[1]):
            drawn[:, h] = self.low + invert(self.pmf[h % len(self.pmf)], uniforms[:, h])
        return drawn


def invert(pmf: NDArray[np.float64], uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """The index that each uniform number in [0, 1) falls on; never one of probability zero."""
    possible = np.flatnonzero(pmf)
    edges = np.cumsum(pmf[possible])
    found = np.searchsorted(edges, uniforms, side="right")
    return possible[np.minimum(found, len(possible) - 1)]
