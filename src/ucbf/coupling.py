"""How far from optimal a policy can be, both sides under the same disturbances: bounds that say something early.

Two separate bounds, one of V* and one of V^π, waste what is common to both. V*_h(s) - V^π_h(s') is at most

    D_h(s, s') = max_a r(s, a) - r(s', b) + sup_Q E_Q[landing(x + w) - landing(y + w) + γ D_{h+1}(g(x + w), g(y + w))]

with b = π(s'), x = f(s, a), y = f(s', b) and the same w on both sides, if the law of W_h is among the Q. The bound is
D_0(s, s).

**The ball** ("coupled"): all Q with n KL(P̂_h, Q) <= log(L/p) + log(P̂_h(data) / KT(data)), KT being the mixture over the
possible disturbances of Krichevsky and Trofimov (1981), a Dirichlet of weights 1/2, and L the number of laws. KT(data)
over the probability of the data is a martingale, so that by Ville's inequality all L laws are in their balls at all
times, but for a probability p. It serves every function: pooled steps, uneven counts, contexts, prices chosen in view
of the data, no end. With a discount D + max(TD - D) / (1 - γ^H) is a bound, T being a period, whatever D is. So is
max(TD - D) / H for the average, gain* - gain^π: coupled, the reward of the best policy less that of π is at most that,
plus D here, less D at the next pair, and in the long run these two cancel.

**E-values** ("evalue"), where every step has counts of its own, as many as the others. Let d be what follows, which
depends on the disturbances of later steps only, and ν above it. F = Π_i (ν - d(w_i)) / (ν - E d) has mean 1, and since
log u <= log κ + u/κ - 1, E d <= B_ν + (κ/n) log F for every κ, with B_ν = ν - κ - κ P̂ log((ν - d)/κ). Take κ = λn at
all steps. The mean of F over several ν has mean 1 too, so that E d <= -λ log(mean of exp(-B_ν/λ)) + λ log of it. The
products E_h(s, s') = F (Σ_w P(w) E_{h+1}(g(x + w), g(y + w)))^γ again have means of at most 1, by Jensen's inequality,
so that p is paid once and not at every step: V* - V^π <= D^λ + λ log E_0. As b depends on the disturbances of its own
step, F is the mean over all that b could be, which costs λ log(after-states to choose from) a step.
By Markov's inequality log E_0 <= log(1/p) + KL(μ, uniform) at one n, for one λ and on average over a law μ of the first
state, for all μ at once. λ are tried from a list that is fixed beforehand, and all n share p: n gets
1/(2.2 (n + 1) log²(n + 1)) of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels import coupled
from ucbf.kernels.types import Mechanics

Array = NDArray[np.float64]
MOST_PAIRS = 2_000_000
MOST_WORK = 20_000_000  # disturbances of pairs of after-states, in all sweeps: about two seconds
SWEEPS = 100  # where there is no end, at most
PART = 0.7  # of the way that a sweep moves values, so that cycles die out: where the average counts
GUESSES = 3  # ν
PRICES = 2.0 ** -np.arange(2, 14, 0.75)  # λ sqrt(n), as shares of the largest difference of values


class TooLargeError(Exception):
    """There are more pairs of states than are looked at."""


class Coupling:
    """The pairs of states that a policy and the best one can be in, from equal first states on.

    told: the mechanics; policy: [H, S]; possible: [R] whether a disturbance may occur
    """

    def __init__(self, told: Mechanics, policy: NDArray[np.int64], possible: NDArray[np.bool_]) -> None:
        S, X = told.after.shape[1], told.n_after
        self.told, self.policy, self.possible = told, policy, np.flatnonzero(possible)
        self.moves = np.ascontiguousarray(told.offsets[self.possible])
        N = min(S * S, MOST_PAIRS)
        if N < S:
            raise TooLargeError(f"{S} states are more than {N} pairs")
        size = 1 << int(np.ceil(np.log2(min(S * S, 2 * N))))
        self.pairs = coupled.Pairs(
            first=np.empty(N, np.int64),
            second=np.empty(N, np.int64),
            sizes=np.zeros(told.horizon, np.int64),
            keys=np.full(size, -1),
            at=np.empty(size, np.int64),
        )
        self.room = coupled.Room(
            begins=np.empty(S + 1, np.int64),
            by_second=np.empty(N, np.int64),
            head=np.empty(X, np.int64),
            after_it=np.empty(S, np.int64),
            seen=np.empty(X, np.int64),
            ahead=np.empty(X),
            d=np.empty(len(self.moves)),
        )
        self.work = coupled.reach(told, policy, self.moves, self.pairs, self.room, MOST_WORK)
        if self.work < 0:
            raise TooLargeError(
                f"{S} states and {len(self.moves)} disturbances make more than {MOST_PAIRS} pairs of states or "
                f"{MOST_WORK} steps of work"
            )
        self.n = int(self.pairs.sizes.max())

    def shares(self, counts: Array) -> Array:
        """[L, n] of what was seen; 0 where nothing was."""
        seen = counts[:, self.possible]
        return np.ascontiguousarray(seen / np.maximum(seen.sum(axis=1, keepdims=True), 1))

    # -- over balls ---------------------------------------------------------------------------------

    def over_balls(self, counts: Array, p: float, value: Array) -> Array:
        """[S] V* - V^π is at most that; without an end and a discount, gain* - gain^π.

        counts: [L, R]; value: [S] about the values after the last step, of which the bound is better, if they are good
        """
        told = self.told
        radius = np.array([ball_radius(row[self.possible], len(counts), p) for row in counts])
        chances = coupled.Chances(self.moves, self.shares(counts), radius, 0.0, 0.0, 0, np.zeros(self.policy.shape))
        first, second = self.pairs.first[: self.n], self.pairs.second[: self.n]
        d = value[first] - value[second]
        if not told.endless:
            self._sweep(chances, d)
            return d[: len(self.policy[0])].copy()
        return self._settled(chances, d)

    def _settled(self, chances: coupled.Chances, d: Array) -> Array:
        """The same where there is no end: the best of some sweeps, from D = d [N] on."""
        told, S, bound = self.told, len(self.policy[0]), np.full(len(self.policy[0]), np.inf)
        decay = told.discount**told.horizon
        for _ in range(max(2, min(SWEEPS, MOST_WORK // max(self.work, 1)))):
            moved = d.copy()
            self._sweep(chances, moved)
            moved -= d
            most = float(moved.max())
            bound = np.minimum(bound, most / told.horizon if decay == 1 else d[:S] + most / (1 - decay))
            if np.ptp(moved) <= 1e-4 * (abs(most) + 1e-12):
                break
            d = d + (PART * (moved - moved[0]) if decay == 1 else moved)
        return bound

    def _sweep(self, chances: coupled.Chances, d: Array) -> None:
        coupled.sweep(self.told, self.policy, chances, self.pairs, self.room, d, np.empty_like(d))

    # -- with e-values ------------------------------------------------------------------------------

    def with_evalues(self, counts: Array, p: float, span: float) -> Tilted:
        """For an end, and as many counts [H, R] at every step. span: how much values can differ."""
        told, (H, S) = self.told, self.policy.shape
        n = float(counts[0].sum())
        shares, radius = self.shares(counts), np.zeros(H)
        toll = np.log(choices(told, H))
        if not np.ptp(told.terminal) and not np.ptp(told.landing[(H - 1) % len(told.landing)]):
            toll[-1] = 0  # nothing follows
        prices, found = span / np.sqrt(n) * PRICES, {}
        looks = np.log(2.2 * (n + 1) * np.log(n + 1) ** 2)
        beta = float(looks + np.log(len(prices) / p))

        def bound(i: int) -> float:
            if i not in found:
                price = float(prices[i])
                chances = coupled.Chances(self.moves, shares, radius, price * n, price, GUESSES, price * toll)
                d = np.zeros(self.n)
                self._sweep(chances, d)
                found[i] = d[:S].copy()
            return float(found[i].mean() + prices[i] * beta)

        i = len(prices) // 2
        for step in (-1, 1):  # downhill from the middle of the list: the others are hardly ever better
            while 0 <= i + step < len(prices) and bound(i + step) <= bound(i):
                i += step
        tried = sorted(found)
        return Tilted(np.array([found[i] for i in tried]), prices[tried], beta)


@dataclass(frozen=True, eq=False)
class Tilted:
    """V* - V^π <= D^λ + λ (β + KL(μ, uniform)) on average over a law μ of the first state, for all μ and λ at once."""

    d: Array  # [n, S] D^λ of every first state
    prices: Array  # [n] λ
    beta: float

    def at_states(self) -> Array:
        """[S] for every first state."""
        bounds: Array = (self.d + self.prices[:, None] * (self.beta + np.log(self.d.shape[1]))).min(axis=0)
        return bounds

    def average(self, weights: Array) -> float:
        """On average over a law [S] of the first state."""
        some = weights[weights > 0]
        divergence = float(some @ np.log(some * len(weights)))
        return float((self.d @ weights + self.prices * (self.beta + divergence)).min())

    def times(self, scale: float) -> Tilted:
        """In other units."""
        return Tilted(self.d * scale, self.prices * scale, self.beta)


def ball_radius(counts: Array, laws: int, p: float) -> float:
    """(log(L/p) + log(P̂(data) / KT(data))) / n; infinite where nothing was seen. counts: [n] of what may occur."""
    n, k = float(counts.sum()), len(counts)
    if n == 0:
        return float("inf")
    seen = counts[counts > 0]
    likely = float(seen @ np.log(seen / n))
    mixed = sum(lgamma(c + 0.5) - lgamma(0.5) for c in seen.tolist()) + lgamma(k / 2) - lgamma(n + k / 2)
    return (float(np.log(laws / p)) + likely - mixed) / n


def choices(m: Mechanics, H: int) -> Array:
    """[H, S] how many after-states there are to choose from in every state."""
    found = np.empty((H, m.after.shape[1]))
    for h in range(H):
        after = np.where(np.isfinite(m.reward[h % len(m.reward)]), m.after[h % len(m.after)], -1)
        after = np.sort(after, axis=1)
        fresh = np.concatenate([after[:, :1] >= 0, (np.diff(after, axis=1) != 0) & (after[:, 1:] >= 0)], axis=1)
        found[h] = fresh.sum(axis=1)
    return found
