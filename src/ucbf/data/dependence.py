"""Whether the deviations of a series from its profile are independent from step to step, as is assumed of W."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers, whole

LAGS, SHUFFLES = 10, 999
MOST_TESTED = 50_000  # steps; more would take longer and hardly change the answer


@dataclass(frozen=True)
class Independence:
    """Whether deviations from the profile are independent from step to step, as is assumed of W: a test's result."""

    lag_one: float  # correlation of neighbours
    strongest: tuple[int, float]  # the lag with the largest correlation, and this correlation
    p: float  # how often a random order of the same numbers looks as dependent
    n: int  # steps

    @property
    def ok(self) -> bool | None:
        """Whether independence is not rejected, at 1 %; None where there is too little data to tell."""
        return None if np.isnan(self.p) else self.p >= 0.01

    def __str__(self) -> str:
        lag, correlation = self.strongest
        found = f"neighbouring steps correlate by {self.lag_one:.2f}"
        if lag != 1:
            found += f", steps {lag} apart by {correlation:.2f}"
        often = f"a random order looks as dependent {self.p:.1%} of the time" if self.p > 0.001 else (
            "not one random order in a thousand looks as dependent"
        )  # fmt: skip
        if self.ok is None:
            return "independence cannot be tested from one episode"
        if self.ok:
            return f"nothing speaks against independence: {found} ({self.n} steps; {often})"
        return f"the steps are NOT independent: {found} ({self.n} steps; {often})"


def independence(amounts: ArrayLike, kinds: Sequence[str] | None = None, seed: int = 0) -> Independence:
    """Test the independence of [K, H] amounts or disturbances, after each step's mean and spread are removed.

    A permutation test: the sum of the squared correlations at lags 1 to 10 is compared with that of random orders, in
    which the values of each step are exchanged among the episodes. It is exact, whatever the distribution of each
    step. Of a longer series the last 50,000 steps are tested.

    Parameters
    ----------
    kinds
        [K] the kind of each episode, such as "weekday" or "weekend": means and spreads are those of its kind, and
        values are exchanged only within a kind.
    """
    table = numbers("amounts", amounts)
    if table.ndim != 2 or table.size < 4:
        raise ValueError(f"amounts has shape {table.shape}; give [K, H] with at least four numbers")
    tested = max(MOST_TESTED // table.shape[1], 2)
    kind_of = np.array(kinds if kinds is not None else [""] * len(table))[-tested:]
    table = table[-tested:]
    groups = [np.flatnonzero(kind_of == kind) for kind in dict.fromkeys(kind_of.tolist())]
    deviations = np.zeros_like(table)
    for members in groups:
        part = table[members]
        spread = part.std(axis=0)
        deviations[members] = (part - part.mean(axis=0)) / np.where(spread > 0, spread, 1)
    lags = min(LAGS, deviations.size // 2)
    found = _correlations(deviations.ravel(), lags)
    rng = np.random.default_rng(whole("seed", seed, 0))
    testable = max(map(len, groups)) > 1
    as_strong = 0.0 if testable else np.nan
    for _ in range(SHUFFLES if testable else 0):
        shuffled = np.empty_like(deviations)
        for members in groups:
            shuffled[members] = rng.permuted(deviations[members], axis=0)
        as_strong += float(np.sum(_correlations(shuffled.ravel(), lags) ** 2)) >= float(np.sum(found**2))
    top = int(np.abs(found).argmax())
    p = (1 + as_strong) / (1 + SHUFFLES)
    return Independence(float(found[0]), (top + 1, float(found[top])), p, deviations.size)


def _correlations(x: NDArray[np.float64], lags: int) -> NDArray[np.float64]:
    x = x - x.mean()
    total = _dot(x, x) or 1.0
    return np.array([_dot(x[:-lag], x[lag:]) / total for lag in range(1, lags + 1)])


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The dot product, without the threads of ``@``: starting them takes longer than the sum."""
    return float(np.einsum("i,i->", a, b))
