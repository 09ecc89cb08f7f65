"""What is known of lead times from what arrived and what has not.

Two hypotheses: the supplier keeps the promise, always; or each order's lag is drawn from an unknown distribution over
0, 1, ..., M - 1 and "lost", with a Dirichlet prior around the promise. An open order is shared out among the lags that
its age leaves, in proportion to what is believed of them, until that agrees with itself.

>>> believe(Supplier(promised=2), lags=[2] * 20, ages=[1, 2]).kept > 0.99
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import real, whole

Floats = NDArray[np.float64]
ROUNDS = 20  # of sharing out open orders


@dataclass(frozen=True)
class Supplier:
    """What is believed before the first order.

    promised   lead time; 0: in the period of the order
    trust      probability that the promise is always kept
    prior      how many orders the prior over lags is worth
    decay      what a lag one further from the promise is worth in it
    lost       how many lost orders it is worth
    """

    promised: int
    trust: float = 0.9
    prior: float = 1.5
    decay: float = 0.5
    lost: float = 0.3

    def __post_init__(self) -> None:
        whole("promised", self.promised, 0)
        real("trust", self.trust, 0, 1)
        real("prior", self.prior, 0, open_low=True)
        real("decay", self.decay, 0, 1, open_low=True)
        real("lost", self.lost, 0, open_low=True)

    @property
    def n_lags(self) -> int:
        """M: lags from 0 to M - 1 are told apart; a longer one counts as M - 1."""
        return 2 * self.promised + 3

    def dirichlet(self) -> Floats:
        """[M + 1] the prior; the last entry is "lost"."""
        near = self.decay ** np.abs(np.arange(self.n_lags) - self.promised)
        return np.append(self.prior * near / near.sum(), self.lost)


@dataclass(frozen=True)
class Belief:
    """What is believed now.

    promised  the promise
    kept      probability that it is always kept
    lags      [M + 1] if it is not: probability of each lag; the last entry is "lost"
    """

    promised: int
    kept: float
    lags: Floats

    def arrivals(self) -> Floats:
        """[2, M + 1, M + 1] of an order of age a, not here yet: the probability that it comes k periods from now.

        First if the promise is not always kept, then if it is. The age of the order about to be placed is 0.
        """
        m = len(self.lags) - 1
        come = np.zeros((2, m + 1, m + 1))
        for age in range(m):
            tail = self.lags[age:].sum()
            if tail > 0:
                come[0, age, : m - age] = self.lags[age:m] / tail
            if age <= self.promised:
                come[1, age, self.promised - age] = 1.0
        return come

    def expected_lag(self) -> float:
        """Mean lag of an order that is not lost."""
        m = len(self.lags) - 1
        drawn = np.arange(m) @ self.lags[:m] / self.lags[:m].sum()
        return float(self.kept * self.promised + (1 - self.kept) * drawn)

    def fates(self, ages: Sequence[int], steps: int, hypothesis: Floats, uniforms: Floats) -> NDArray[np.int64]:
        """[N, O + n] the step in which each open order, and one placed in each of n steps, comes; never: -1.

        hypothesis [N] and uniforms [N, O + n] are uniform draws; the first decides whether the promise is kept.
        """
        m = len(self.lags) - 1
        total = np.append(0.0, np.cumsum(self.lags))
        out = np.empty(uniforms.shape, np.int64)
        kept = hypothesis < self.kept
        for o in range(uniforms.shape[1]):
            age, placed = (ages[o], -ages[o]) if o < len(ages) else (0, o - len(ages))
            below = total[min(age, m)]
            lag = np.searchsorted(total[1:], below + uniforms[:, o] * (total[-1] - below), side="right")
            drawn = np.where(lag < m, placed + np.maximum(lag, age), -1)
            out[:, o] = np.where(kept, placed + self.promised, drawn)
        return out


def believe(supplier: Supplier, lags: Sequence[int], ages: Sequence[int]) -> Belief:
    """The belief after orders that came with these lags, while others of these ages have not come.

    An order placed a periods ago has age a if it had not come by the end of the last period: its lag is a or more.
    """
    prior, promised, m = supplier.dirichlet(), supplier.promised, supplier.n_lags
    came = prior.copy()
    for lag in lags:
        came[min(lag, m - 1)] += 1
    post = prior / prior.sum()
    of_age = np.bincount(np.minimum(np.asarray(ages, np.int64), m), minlength=m + 1)
    for _ in range(ROUNDS):
        left = np.cumsum(post[::-1])[::-1]  # P(lag >= age)
        shared = came + post * np.cumsum(of_age / left)
        post = shared / shared.sum()
    return Belief(promised, _kept(supplier, lags, ages, post), post)


def _kept(supplier: Supplier, lags: Sequence[int], ages: Sequence[int], post: Floats) -> float:
    """The probability that the promise is always kept: 0 once it was broken, else by Bayes' rule."""
    promised = supplier.promised
    if any(lag != promised for lag in lags) or any(age > promised for age in ages):
        return 0.0
    if supplier.trust in (0.0, 1.0):
        return supplier.trust
    prior = supplier.dirichlet()
    log_odds = math.log(supplier.trust / (1 - supplier.trust))
    for i in range(len(lags)):
        log_odds -= math.log((prior[promised] + i) / (prior.sum() + i))
    for age in ages:
        log_odds -= math.log(post[age:].sum())
    return 1 / (1 + math.exp(-min(log_odds, 700.0)))
