"""Whether what is left of a series after its profile is independent from step to step, as is assumed of W."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import numbers, whole

LAGS, SHUFFLES = 10, 999
MOST_TESTED = 50_000  # steps: more say no more


@dataclass(frozen=True)
class Independence:
    """Whether what is left after the profile is independent from step to step, as is assumed of W."""

    lag_one: float  # correlation of neighbours
    strongest: tuple[int, float]  # the lag with the largest correlation, and that
    p: float  # how often a random order of the same numbers looks as dependent
    n: int

    @property
    def ok(self) -> bool | None:
        """Whether nothing speaks against it, at 1 %; None where there is too little to tell."""
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
    """Test the independence of [K, H] amounts or disturbances, once each step's mean and spread are taken out.

    The sum of the squared correlations at lags 1 to 10, against the same when every step is given to another episode,
    at random: exact, whatever the law of each step. Of more than 50,000 steps, the last so many are tested.

    Parameters
    ----------
    kinds
        [K] of each episode: only those of a kind, weekdays or weekends, are taken to be alike.
    """
    table = numbers("amounts", amounts)
    if table.ndim != 2 or table.size < 4:
        raise ValueError(f"amounts has shape {table.shape}; give [K, H] with at least four numbers")
    tested = max(MOST_TESTED // table.shape[1], 2)
    of = np.array(kinds if kinds is not None else [""] * len(table))[-tested:]
    table = table[-tested:]
    alike = [np.flatnonzero(of == kind) for kind in dict.fromkeys(of.tolist())]
    left = np.zeros_like(table)
    for members in alike:
        part = table[members]
        spread = part.std(axis=0)
        left[members] = (part - part.mean(axis=0)) / np.where(spread > 0, spread, 1)
    lags = min(LAGS, left.size // 2)
    found = _correlations(left.ravel(), lags)
    rng = np.random.default_rng(whole("seed", seed, 0))
    testable = max(map(len, alike)) > 1
    as_strong = 0.0 if testable else np.nan
    for _ in range(SHUFFLES if testable else 0):
        shuffled = np.empty_like(left)
        for members in alike:
            shuffled[members] = rng.permuted(left[members], axis=0)
        as_strong += float(np.sum(_correlations(shuffled.ravel(), lags) ** 2)) >= float(np.sum(found**2))
    top = int(np.abs(found).argmax())
    return Independence(float(found[0]), (top + 1, float(found[top])), (1 + as_strong) / (1 + SHUFFLES), left.size)


def _correlations(x: NDArray[np.float64], lags: int) -> NDArray[np.float64]:
    x = x - x.mean()
    total = _dot(x, x) or 1.0
    return np.array([_dot(x[:-lag], x[lag:]) / total for lag in range(1, lags + 1)])


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Without the threads of ``@``, which wait for each other longer than they work."""
    return float(np.einsum("i,i->", a, b))
