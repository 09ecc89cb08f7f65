"""How far from optimal a policy can be, both sides under the same disturbances: bounds that say something early.

Two separate bounds, one of V* and one of V^π, waste what is common to both. V*_h(s) - V^π_h(s') is at most

    D_h(s, s') = max_a r(s, a) - r(s', b) + sup_Q E_Q[landing(x + w) - landing(y + w) + γ D_{h+1}(g(x + w), g(y + w))]

with b = π(s'), x = f(s, a), y = f(s', b) and the same w on both sides, if the law of W_h is among the Q. The bound is
D_0(s, s).

Where f is being repaired, an action may lead to several after-states, as long as its offset is not certain: D is the
most over all of them, of both sides; but what π does in a state leads both sides to the same one.

**The ball** ("coupled"): all Q with n KL(P̂_h, Q) <= log(L/p) + log(P̂_h(data) / KT(data)), KT being the mixture over the
possible disturbances of Krichevsky and Trofimov (1981), a Dirichlet of weights 1/2, and L the number of laws. KT(data)
over the probability of the data is a martingale, so that by Ville's inequality all L laws are in their balls at all
times, but for a probability p. It serves every function: pooled steps, uneven counts, contexts, prices chosen in view
of the data, no end. With a discount D + max(TD - D) / (1 - γ^H) is a bound, T being a period, whatever D is. So is
max(TD - D) / H for the average, gain* - gain^π: coupled, the reward of the best policy less that of π is at most that,
plus D here, less D at the next pair, and in the long run these two cancel.

**E-values** ("evalue"), where there is an end, every step has counts of its own, n of each, and the policy of a step
depends on the disturbances of that step and of later ones only; those of different steps are independent. An e-value
is a number that is not negative and whose mean over all that may be seen is at most 1. For every λ_0 > 0 there are D,
which is computed, and e-values E, with λ_h = γ^-h λ_0 and

    V*_h(s) - V^π_h(s') <= D_h(s, s') + λ_h log E_h(s, s').

This follows backwards from the last step, where both sides are the same. Let the disturbances of later steps be given.
What follows π*(s) and an after-state y is better by d(w) = landing(x + w) - landing(y + w) + γ D_{h+1}(g(x + w),
g(y + w)) on average, and by what E_{h+1} adds. Write λ for λ_h.

1. *One function.* For any t(w) let B_ν = ν - κ - κ P̂ log((ν - t)/κ), κ = λn, and F_ν = exp((E t - B_ν)/λ) for ν above
   t. This is the product of all (ν - t(w_i))/κ, times exp(-n(ν - κ - E t)/κ), so that its mean is ((1 + v) exp(-v))^n
   with v = (ν - κ - E t)/κ > -1. Hence F = 1/Z ∫ F_ν dν/κ is an e-value, if Z = ∫ ((1 + v) exp(-v))^n dv: with most ν
   the mean is so small that averaging over all of them costs nothing. And E t = B_λ(t) + λ log F, where
   B_λ(t) = -λ log(1/Z ∫ exp(-B_ν/λ) dν/κ), which is convex in t, since exp(-B_ν/λ) is log-concave in ν and t together
   (Prékopa 1973).
2. *Which y?* π chose y in view of the disturbances of this very step. Let u_y(w) be functions that were fixed before
   anything was seen, α (``SHARE``) between 0 and 1, q(y) in proportion to exp(α E u_y/λ), whatever that is, and ū their
   mean Σ_y q(y) u_y. By 1 there is an e-value for d with (1-α)λ, and another one for α(ū - u_y) with αλ. The two added
   say that, with an e-value F_y by Hölder's inequality,

       E d + α E(ū - u_y) = B_{(1-α)λ}(d) + B_{αλ}(α(ū - u_y)) + λ log F_y.

   By the choice of q, α E(ū - u_y) = -λ log q(y) - λ entropy(q). And B_{αλ}(αt) = α B_λ(t), which is convex, so that
   B_λ(ū - u_y) <= Σ_y' q(y') B_λ(u_y' - u_y). That and the entropy together are at most the same for every q:
   E d <= B_{(1-α)λ}(d) + T(y) + λ log(q(y) F_y), where T(y) = λ log Σ_y' exp(α B_λ(u_y' - u_y)/λ). This is small where
   few actions are nearly as good. u_y is what y is worth, with the reward, if all disturbances are alike at all steps.
3. *Both.* Let D_h(s, s') = max_a r(s, a) - r(s', b) + B_{(1-α)λ}(d) + T(y), and E_h the sum over all y that can be
   reached from s' of q(y) F_y Σ_w P(w) E_{h+1}(g(x + w), g(y + w)), x = f(s, π*(s)). Its mean is at most 1: given the
   disturbances of later steps that of F_y is, and q does not depend on what is seen. E_h is at least the term of the y
   that π chose, and the mean of γ λ_{h+1} log E_{h+1} = λ log E_{h+1} over w is at most λ times the log of that sum
   over w. Where nothing follows that depends on y, as at a last step without landing rewards, E is 1, without a T.
   Where γ λ_{h+1} is less than λ_h (``MOST_LATER``), that share of 1 as its exponent makes of E_{h+1} an e-value too.

So p is paid once, and not at every step. λ are tried from a list that is fixed beforehand, each with a weight:
Σ weight exp((V* - V^π - D)/λ) is at most an e-value, of a law of the first state that was fixed beforehand, or of all
of S states alike, which is S times less than that of each of them. By Markov's inequality it is below 1/δ but for a
probability of δ, and the δ of all n sum to p (:func:`log_looks`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels import coupled
from ucbf.kernels.types import Mechanics
from ucbf.mechanics import raw_starts
from ucbf.units import following

Array = NDArray[np.float64]
MOST_PAIRS = 2_000_000
MOST_WORK = 20_000_000  # disturbances of pairs of after-states, in all sweeps: about two seconds
SWEEPS = 100  # where there is no end, at most
PART = 0.7  # of the way that a sweep moves values, so that cycles die out: where the average counts
LEVELS = np.arange(2, 32)  # of λ: the range of values over sqrt(n), times 2^(-i/2)
USUAL, WIDTH = 15, 3.0  # of these: most weight is there, and so many on
NEWTON = 6  # steps
MOST_LATER = 1e100  # λ_h over λ_0, so that λ_h stays a number
ROUND = 0.8  # of p: for numbers of episodes with two digits followed by zeros


class TooLargeError(Exception):
    """There are more pairs of states than are looked at."""


class Coupling:
    """The pairs of states that a policy and the best one can be in, from equal first states on.

    told: the mechanics; policy: [H, S]; possible: [R] whether a disturbance may occur
    targets: the after-states that actions may lead to; None: those that are told
    """

    def __init__(
        self,
        told: Mechanics,
        policy: NDArray[np.int64],
        possible: NDArray[np.bool_],
        targets: coupled.Targets | None = None,
    ) -> None:
        S = told.after.shape[1]
        self.told, self.policy, self.possible = told, policy, np.flatnonzero(possible)
        self.targets = as_told(told) if targets is None else targets
        X, each = told.n_after + 2 * self.targets.pad, int(np.diff(self.targets.begins).max())
        self.moves = np.ascontiguousarray(told.offsets[self.possible])
        N = min(S * S, MOST_PAIRS)
        if N < S:
            raise TooLargeError(f"{S} states are more than {N} pairs")
        size = 1 << int(np.ceil(np.log2(min(S * S, 2 * N))))
        self.pairs = coupled.Pairs(
            first=np.empty(N, np.int64),
            second=np.empty(N, np.int64),
            before=np.empty(N, np.int64),
            last=np.full(S, -1),
            sizes=np.zeros(told.horizon, np.int64),
            keys=np.full(size, -1),
            at=np.empty(size, np.int64),
        )
        self.room = coupled.Room(
            head=np.empty(X, np.int64),
            after_it=np.empty(S * each, np.int64),
            state=np.empty(S * each, np.int64),
            seen=np.empty(X, np.int64),
            ahead=np.empty(X),
            guessed=np.full(X, -1),
            lead=np.empty(X),
            choice=np.full(X, -1),
            d=np.empty(len(self.moves)),
        )
        self.work = coupled.reach(told, self.targets, policy, self.moves, self.pairs, self.room, MOST_WORK)
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
        nothing = np.zeros(len(self.policy)), 0.0, 0.0, np.zeros((0, 0)), np.zeros(0, np.bool_)
        chances = coupled.Chances(self.moves, self.shares(counts), radius, *nothing)
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
        coupled.sweep(self.told, self.targets, self.policy, chances, self.pairs, self.room, d, np.empty_like(d))

    # -- with e-values ------------------------------------------------------------------------------

    def with_evalues(self, counts: Array, p: float, span: float) -> Tilted:
        """For an end, and as many counts [H, R] at every step. span: how much values can differ."""
        (H, S), n, shares, found = self.policy.shape, float(counts[0].sum()), self.shares(counts), {}
        with np.errstate(over="ignore"):
            later, nowhere = np.minimum(self.told.discount ** -np.arange(H), MOST_LATER), np.zeros(H)
        level = n + lgamma(n + 1) - (n + 1) * np.log(n)
        prices, weights = span / np.sqrt(n) * 2 ** (-LEVELS / 2), 1 / (1 + ((LEVELS - USUAL) / WIDTH) ** 2)
        weights, beta = weights / weights.sum(), log_looks(int(n)) - float(np.log(p))

        def bound(i: int) -> float:
            if i not in found:
                chances = coupled.Chances(self.moves, shares, nowhere, prices[i] * later, n, level, *self.guess)
                d = np.zeros(self.n)
                self._sweep(chances, d)
                found[i] = d[:S].copy()
            return float(found[i].mean() + prices[i] * (beta - np.log(weights[i])))

        i = USUAL - LEVELS[0]
        for step in (-1, 1):  # downhill: the others hardly count
            while 0 <= i + step < len(prices) and bound(i + step) <= bound(i):
                i += step
        tried = sorted(found)
        return Tilted(np.array([found[i] for i in tried]), prices[tried], np.log(weights[tried]), beta)

    @cached_property
    def guess(self) -> tuple[Array, NDArray[np.bool_]]:
        """[H, Z] what raw next states are worth if all disturbances are alike; [H] if a choice matters for the rest."""
        told, H = self.told, len(self.policy)
        worth, value, first = np.empty((H, len(told.next_state))), told.terminal, raw_starts(told)
        for h in range(H - 1, -1, -1):
            worth[h] = told.landing[h % len(told.landing)] + told.discount * value[told.next_state]
            ahead = np.mean([worth[h][first + move] for move in self.moves], axis=0)
            value = (told.reward[h % len(told.reward)] + following(told, ahead, h)).max(axis=1)
        matters = np.ones(H, np.bool_)
        matters[-1] = bool(np.ptp(worth[-1]))
        return worth, matters


@dataclass(frozen=True, eq=False)
class Settled:
    """What is certain of a wrong f, but for a chance that was spent already: :mod:`ucbf.kernels.settling`."""

    counts: Array  # [L, R] disturbances of pairs whose offset was certain before
    possible: NDArray[np.bool_]  # [R] whether a disturbance may occur
    targets: coupled.Targets  # where actions may lead to
    chance: float


@dataclass(frozen=True, eq=False)
class Tilted:
    """Σ_i weight_i exp((V* - V^π - D_i) / λ_i) <= exp(β), on average over a law of the first state."""

    d: Array  # [n, S] D of every first state
    prices: Array  # [n] λ
    logs: Array  # [n] log weight
    beta: float

    def at_states(self) -> Array:
        """[S] V* - V^π is at most that, for all first states at once."""
        return self._largest(self.d, self.beta + float(np.log(self.d.shape[1])))

    def average(self, weights: Array) -> float:
        """The same on average over a law [S] of the first state, one that was fixed beforehand."""
        return float(self._largest(self.d @ weights[:, None], self.beta)[0])

    def _largest(self, d: Array, beta: float) -> Array:
        """[m] the largest that V* - V^π can be, given D [n, m]: by Newton's method, from above."""
        prices, logs = self.prices[:, None], self.logs[:, None]
        most: Array = (d + prices * (beta - logs)).min(axis=0)
        for _ in range(NEWTON):
            each = np.exp((most - d) / prices + logs - beta)
            total = each.sum(axis=0)
            most = most - np.log(total) * total / (each / prices).sum(axis=0)
        return most

    def times(self, scale: float) -> Tilted:
        """In other units."""
        return replace(self, d=self.d * scale, prices=self.prices * scale)


def as_told(told: Mechanics) -> coupled.Targets:
    """One after-state for every state and action."""
    return coupled.Targets(np.arange(told.after.size + 1), told.after.ravel().astype(np.int64), 0)


def log_looks(n: int) -> float:
    """-log of the share of p for n episodes; the shares of all n sum to 1.

    Most of p is for numbers with two digits, followed by zeros; the j-th, from 0 on, gets 100 / ((100 + j)(101 + j)) of
    it. The numbers between two of them share what is left for these likewise.
    """
    zeros = len(str(n)) - 2
    unit = 10 ** max(zeros, 0)
    j = n // unit + 90 * max(zeros, 0) - 1
    share = 100 / ((100 + j) * (101 + j))
    return -float(np.log(share * ROUND if n % unit == 0 else share * (1 - ROUND) / (unit - 1)))


def looks(most: int) -> list[int]:
    """The numbers of episodes below ``most`` that have most of p, each at least a twentieth above the last."""
    found, n = [], 1
    while n < most:
        found.append(n)
        n += max(1, n // 20)
        unit = 10 ** max(len(str(n)) - 2, 0)
        n = -(-n // unit) * unit
    return found


def ball_radius(counts: Array, laws: int, p: float) -> float:
    """(log(L/p) + log(P̂(data) / KT(data))) / n; infinite where nothing was seen. counts: [n] of what may occur."""
    n, k = float(counts.sum()), len(counts)
    if n == 0:
        return float("inf")
    seen = counts[counts > 0]
    likely = float(seen @ np.log(seen / n))
    mixed = sum(lgamma(c + 0.5) - lgamma(0.5) for c in seen.tolist()) + lgamma(k / 2) - lgamma(n + k / 2)
    return (float(np.log(laws / p)) + likely - mixed) / n
