"""What pairs (s, a) are worth: what the next steps earn with a simple rule, and terms of the after-state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ucbf.large import Rows
from ucbf.values.ahead import Ahead
from ucbf.values.choosing import best_actions

STATES_PER_TERM = 4  # or more are needed, for products of coordinates to be among the terms; else squares, or none


@dataclass(frozen=True)
class Terms:
    """ψ: linear and quadratic terms of after-states, and what each step ahead earns; of mean 0 and deviation 1."""

    axes: NDArray[np.int64]  # the coordinates of after-states that vary
    products: tuple[NDArray[np.int64], NDArray[np.int64]]  # which of these are multiplied by which
    mean: NDArray[np.float64]  # of these coordinates
    scale: NDArray[np.float64]
    centre: NDArray[np.float64]  # [F] of the terms
    spread: NDArray[np.float64]

    @classmethod
    def of(cls, x: Rows, ahead: NDArray[np.float64]) -> Terms:
        """The terms that suit after-states [N, k] and what the steps ahead earn [N, J]."""
        axes = np.flatnonzero(x.std(axis=0) > 0)
        n, room = len(axes), len(x) // STATES_PER_TERM - len(axes) - ahead.shape[1]
        each, none = np.arange(n), np.zeros(0, np.int64)
        products = np.triu_indices(n) if n * (n + 1) // 2 <= room else (each, each) if n <= room else (none, none)
        plain = cls(axes, products, x[:, axes].mean(axis=0), x[:, axes].std(axis=0), np.zeros(0), np.zeros(0))
        terms = plain._terms(x, ahead)
        spread = terms.std(axis=0)
        return replace(plain, centre=terms.mean(axis=0), spread=np.where(spread > 1e-9, spread, np.inf))

    def _terms(self, x: Rows, ahead: NDArray[np.float64]) -> NDArray[np.float64]:
        y = (x[:, self.axes] - self.mean) / self.scale
        first, second = self.products
        return np.concatenate([y, y[:, first] * y[:, second], ahead], axis=1)

    def __call__(self, x: Rows, ahead: NDArray[np.float64]) -> NDArray[np.float64]:
        """[N, F] of after-states [N, k]."""
        return (self._terms(x, ahead) - self.centre) / self.spread


@dataclass(frozen=True)
class Q:
    """What pairs are worth, but for a constant."""

    ahead: Ahead
    terms: Terms
    theta: NDArray[np.float64]  # [F]

    def parts(self, s: Rows, a: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[N] what the next J steps earn with the base after actions [N, m], and ψ [N, F]."""
        system, earned = self.ahead.system, self.ahead.rewards(s, a)
        return earned @ system.discount ** np.arange(self.ahead.steps), self.terms(system.after(0, s, a), earned)

    def weighted(self, theta: NDArray[np.float64]) -> Q:
        """The same with other weights."""
        return replace(self, theta=theta)

    def __call__(self, s: Rows, a: Rows) -> NDArray[np.float64]:
        """[N] of states [N, d] and actions [N, m]."""
        base, psi = self.parts(s, a)
        return base + psi @ self.theta


@dataclass(frozen=True)
class Greedy:
    """The rule that takes the best action, by Q; actions near those of the base are tried first."""

    q: Q

    def __call__(self, h: int, s: Rows) -> Rows:
        """[N, m] actions in states [N, d]."""
        system = self.q.ahead.system
        return best_actions(system, 0, s, self.q.ahead.rule(0, s), self.q)[0]
