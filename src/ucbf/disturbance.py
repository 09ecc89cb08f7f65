"""The distribution of W: a probability for each of its values, the same at every step or one row a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import frozen, numbers, whole
from ucbf.spaces import Bins


@dataclass(frozen=True, init=False, eq=False)
class Disturbance:
    """P(W_h = values[i]) = pmf[h, i].

    Parameters
    ----------
    pmf
        [n], or [H, n] for a distribution that differs by step. Each row is non-negative and sums to one. All values
        alike, if None.
    low
        On a line: the smallest value of W, which then takes the whole numbers from it on; it may be negative.
    values
        In a box: [n, d] the values of W. Samples, for instance.
    contexts
        Where W depends on an observed context e: [E, E] the probabilities of the next context given the present one,
        or [E, n, E] given the present one and W. pmf is then [E, n], or [H, E, n].

    Examples
    --------
    >>> demand = Disturbance([0.25, 0.5, 0.25], low=-2)     # W = -demand, demand in 0..2
    >>> demand.low, demand.high, demand.mean()
    (-2, 0, -1.0)
    >>> Disturbance(values=[[0.1, 0.0], [0.3, -0.2]]).mean()
    array([ 0.2, -0.1])
    """

    pmf: NDArray[np.float64]  # [1 or H, n]; with contexts a row for each, and E times n columns
    values: NDArray[Any]  # [n] whole numbers, or [n, d]; with contexts the same for every next context
    n_contexts: int  # E
    next_context: NDArray[np.int64]  # [n] the context that follows

    def __init__(
        self,
        pmf: ArrayLike | None = None,
        low: int = 0,
        values: ArrayLike | None = None,
        contexts: ArrayLike | None = None,
    ) -> None:
        places: NDArray[Any] | None = None if values is None else numbers("values", values)
        if places is not None:
            if places.ndim != 2 or not places.size:
                raise ValueError(f"values has shape {places.shape}; give [n, d]: a row for each value of W")
            if low:
                raise TypeError("low and values were both given; values says where W begins")
            if pmf is None:
                pmf = np.full(len(places), 1 / len(places))
        elif pmf is None:
            raise TypeError("neither pmf nor values was given; give the probabilities of W, or its values")
        table = numbers("pmf", pmf)
        if contexts is not None:
            self._put_contexts(table, low, places, numbers("contexts", contexts))
            return
        if table.ndim not in (1, 2) or table.size == 0:
            raise ValueError(f"pmf has shape {table.shape}; give [n], or [H, n] for a law per step")
        table = np.atleast_2d(table)
        if places is not None and table.shape[1] != len(places):
            raise ValueError(f"pmf has {table.shape[1]} probabilities for {len(places)} values; give one for each")
        if (table < 0).any():
            h, i = np.argwhere(table < 0)[0]
            raise ValueError(f"pmf[{h}, {i}] is {table[h, i]:g}; probabilities must not be negative")
        sums = table.sum(axis=1)
        wrong = np.flatnonzero(np.abs(sums - 1) > 1e-9)
        if len(wrong):
            h = wrong[0]
            raise ValueError(f"row {h} of pmf sums to {sums[h]:.12g}; it must sum to 1: divide it by its sum")
        if places is None:
            places = np.arange(table.shape[1]) + whole("low", low)
        self._put(table, np.asarray(places), 1, np.zeros(len(places), np.int64))

    def _put(
        self, pmf: NDArray[np.float64], values: NDArray[Any], n_contexts: int, next_context: NDArray[np.int64]
    ) -> None:
        for name, value in (("pmf", pmf), ("values", values), ("next_context", next_context)):
            object.__setattr__(self, name, frozen(value))
        object.__setattr__(self, "n_contexts", n_contexts)

    def _put_contexts(
        self, pmf: NDArray[np.float64], low: int, places: NDArray[Any] | None, follows: NDArray[np.float64]
    ) -> None:
        """The joint distribution of W and the next context, given the present one."""
        E = len(follows)
        if follows.ndim not in (2, 3) or follows.shape[-1] != E:
            raise ValueError(
                f"contexts has shape {follows.shape}; give [E, E], the probabilities of the next context given the "
                "present one, or [E, n, E], given W too"
            )
        if pmf.ndim not in (2, 3) or pmf.shape[-2] != E:
            raise ValueError(f"pmf has shape {pmf.shape}; with {E} contexts it must be [E, n] or [H, E, n]")
        n = pmf.shape[-1]
        if follows.ndim == 3 and follows.shape[1] != n:
            raise ValueError(f"contexts has shape {follows.shape}; with {n} values of W it must be {(E, n, E)}")
        for name, table in (("pmf", pmf), ("contexts", follows)):
            wrong = np.argwhere((table < 0).any(axis=-1) | (np.abs(table.sum(axis=-1) - 1) > 1e-9))
            if len(wrong):
                raise ValueError(
                    f"row {wrong[0].tolist()} of {name} sums to {table[tuple(wrong[0])].sum():.12g}; its entries must "
                    "be probabilities that sum to 1"
                )
        joint = pmf.reshape(-1, E, n, 1) * (follows[:, None, :] if follows.ndim == 2 else follows)
        pmf = np.swapaxes(joint, 2, 3).reshape(-1, E * n)  # a row for each step and context, a block for each next one
        one = Disturbance(np.full(n, 1 / n), low=low, values=places)
        tiled = np.concatenate([one.values] * E)
        self._put(pmf / pmf.sum(axis=1, keepdims=True), tiled, E, np.repeat(np.arange(E), n))

    @classmethod
    def over(cls, bins: Bins, pmf: NDArray[np.float64], n_contexts: int = 1) -> Disturbance:
        """A distribution over the disturbances that a system tells apart, and over the next context."""
        if n_contexts > 1:
            made, E = object.__new__(cls), n_contexts
            made._put(np.array(pmf), np.concatenate([bins.values] * E), E, np.repeat(np.arange(E), bins.n))
            return made
        return cls(pmf, low=int(bins.values[0])) if bins.is_line else cls(pmf, values=bins.values)

    @property
    def is_line(self) -> bool:
        """Whether W is a number, not a row."""
        return self.values.ndim == 1

    @property
    def low(self) -> Any:
        """The smallest value of W; of each part, [d], if it is a row."""
        return int(self.values[0]) if self.is_line else self.values.min(axis=0)

    @property
    def high(self) -> Any:
        """The largest value of W; of each part, [d], if it is a row."""
        return int(self.values[-1]) if self.is_line else self.values.max(axis=0)

    def mean(self, h: int = 0) -> Any:
        """E[W_h]: a number, or a row [d]."""
        mean = self.pmf[h % len(self.pmf)] @ self.values
        return float(mean) if self.is_line else mean

    def row(self, h: int, context: int = 0) -> NDArray[np.float64]:
        """[n] the probabilities of the values at step h, given the present context."""
        steps = len(self.pmf) // self.n_contexts
        row: NDArray[np.float64] = self.pmf[h % steps * self.n_contexts + context]
        return row

    def draw_indices_by_context(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """[K, H, E] indices of values from [K, H] uniform numbers: which one, if the context is e."""
        drawn, E = np.empty((*uniforms.shape, self.n_contexts), dtype=np.int64), self.n_contexts
        for h, e in np.ndindex(uniforms.shape[1], E):
            drawn[:, h, e] = invert(self.row(h, e), uniforms[:, h])
        return drawn

    def draw_from_step(self, begin: int, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """[T, E] indices of values from [T] uniform numbers, those of the steps from ``begin`` on."""
        drawn, steps = np.empty((len(uniforms), self.n_contexts), np.int64), len(self.pmf) // self.n_contexts
        for h, e in np.ndindex(steps, self.n_contexts):
            first = (h - begin) % steps
            drawn[first::steps, e] = invert(self.row(h, e), uniforms[first::steps])
        return drawn

    def draw_indices(self, uniforms: ArrayLike) -> NDArray[np.int64]:
        """[K, H] indices of values from [K, H] uniform numbers in [0, 1), column h by the distribution of step h."""
        uniforms = numbers("uniforms", uniforms)
        if uniforms.ndim != 2 or ((uniforms < 0) | (uniforms >= 1)).any():
            raise ValueError(f"uniforms has shape {uniforms.shape}; give [K, H] numbers in [0, 1)")
        drawn = np.empty(uniforms.shape, dtype=np.int64)
        for h in range(uniforms.shape[1]):
            drawn[:, h] = invert(self.pmf[h % len(self.pmf)], uniforms[:, h])
        return drawn

    def draw(self, uniforms: ArrayLike) -> NDArray[Any]:
        """[K, H] disturbances, or [K, H, d], from [K, H] uniform numbers in [0, 1)."""
        return self.values[self.draw_indices(uniforms)]


def invert(pmf: NDArray[np.float64], uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """The index that each uniform number in [0, 1) falls on; never one of probability zero."""
    possible = np.flatnonzero(pmf)
    edges = np.cumsum(pmf[possible])
    found = np.searchsorted(edges, uniforms, side="right")
    return possible[np.minimum(found, len(possible) - 1)]
