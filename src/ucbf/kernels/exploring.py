"""Which pairs a learner that repairs f tries out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ucbf.kernels.backward import keep_best
from ucbf.kernels.jit import inlined, inner
from ucbf.kernels.models import place
from ucbf.kernels.types import Floats, Ints, Mechanics

if TYPE_CHECKING:
    from ucbf.kernels.offsets import Offsets

PRICE, BID, CHOSEN = range(3)
LITTLE_DOUBT = 1e-6  # that f is as told, at least: so that what costs nothing is tried in any case
AGAIN = 0.1  # visits of a state that are expected at every step, beyond as many as there have been


@inner
def offsets_value_pairs(told: Mechanics, m: Offsets, ahead: Floats, h: int, weight: float) -> None:
    """What follows every pair of step h: the mean over its offsets. And what is gained where one is known.

    Whatever the action, a state is worth as much more as is gained by knowing one of its pairs, as far as as many
    visits as there have been would tell it: so that states are visited of which more is to be hoped.
    """
    f, r, (S, A) = min(h, len(m.f) - 1), min(h, len(told.reward) - 1), m.f.shape[1:]
    doubt = max(1 - m.exact[0], LITTLE_DOUBT)
    for s in range(S):
        best, second, first = -np.inf, -np.inf, 0
        for a in range(A):
            pair, total, top, origin = (f * S + s) * A + a, 0.0, -np.inf, m.first[f, s, a] - 2 * m.half
            for d in range(m.ends[pair, 0], m.ends[pair, 1] + 1):
                follows = ahead[h, place(told, origin + d)]
                total += m.posterior[pair, d] * follows
                top = max(top, follows)
            total += m.exact[0] * (ahead[h, m.first[f, s, a]] - total)
            m.lead[h, s, a], m.gain[h, s, a] = total, top
            q = weight * told.reward[r, s, a] + total
            if q > best:
                best, second, first = q, best, a
            else:
                second = max(second, q)
        hope, visits = 0.0, AGAIN
        for i in range(f, told.horizon, len(m.f)):
            visits += m.met[i, s]
        for a in range(A):
            paid, rival, pair = weight * told.reward[r, s, a], second if a == first else best, (f * S + s) * A + a
            top, m.gain[h, s, a] = paid + m.gain[h, s, a], 0.0
            if m.ends[pair, 0] == m.ends[pair, 1] or top <= rival or rival == -np.inf:
                continue
            known, origin = 0.0, m.first[f, s, a] - 2 * m.half
            for d in range(m.ends[pair, 0], m.ends[pair, 1] + 1):
                known += m.posterior[pair, d] * max(paid + ahead[h, place(told, origin + d)], rival)
            known = doubt * known + (1 - doubt) * max(paid + ahead[h, m.first[f, s, a]], rival)
            if known > best:
                m.gain[h, s, a] = known - best
                hope = max(hope, m.gain[h, s, a] * (1 - math.pow(1 - resolved(m, h, pair), visits)))
        for a in range(A):
            m.lead[h, s, a] += hope


@inlined
def resolved(m: Offsets, h: int, pair: int) -> float:
    """How much of the doubt about a pair one residual of step h resolves, from 0 to 1."""
    E, row, doubt, left = len(m.weights), min(h, len(m.overlap) - 1), 0.0, 0.0
    for d in range(E):
        one = m.posterior[pair, d]
        if one > 0:
            for e in range(d):
                both = one * m.posterior[pair, e]
                doubt += both
                left += both * m.overlap[row, d - e + E - 1]
    return max(1 - left / doubt, 0.0) if doubt > 0 else 0.0


@inner
def offsets_explore(told: Mechanics, m: Offsets, ahead: Floats, policy: Ints) -> int:
    """The policy [H, S]: the best action by the means over offsets, or one whose pair is worth trying.

    The last step whose policy changed, or -1.
    """
    top, F, H, S = -1, len(m.f), told.horizon, told.after.shape[1]
    for s in range(S):
        for f in range(F):
            for h in range(f, H, F):
                m.bids[BID, h], m.bids[CHOSEN, h] = 0, greedy(told, m, h, s)
            for a in range(told.after.shape[2]):
                bid_for(told, m, f, s, a)
            for h in range(f, H, F):
                if keep_best(policy, h, s, int(m.bids[CHOSEN, h])):
                    top = max(top, h)
    return top


@inlined
def worth_of(told: Mechanics, m: Offsets, h: int, s: int, a: int) -> float:
    """Q of a pair, by the mean over its offsets."""
    q: float = told.reward[min(h, len(told.reward) - 1), s, a] + m.lead[h, s, a]
    return q


@inlined
def greedy(told: Mechanics, m: Offsets, h: int, s: int) -> int:
    """The best action of a state by the means over offsets."""
    best, chosen = -np.inf, 0
    for a in range(told.after.shape[2]):
        q = worth_of(told, m, h, s, a)
        if q > best:
            best, chosen = q, a
    return chosen


@inlined
def bid_for(told: Mechanics, m: Offsets, f: int, s: int, a: int) -> None:
    """Choose an action at those steps where it is worth its price, and more so than what was chosen before."""
    pair, H, F = (f * told.after.shape[1] + s) * told.after.shape[2] + a, told.horizon, len(m.f)
    total = 0.0
    for h in range(f, H, F):
        total += (m.met[h, s] + AGAIN) * m.gain[h, s, a]
    if total <= 0:
        return
    limit = np.inf
    for h in range(f, H, F):
        m.bids[PRICE, h] = worth_of(told, m, h, s, greedy(told, m, h, s)) - worth_of(told, m, h, s, a)
    for h in range(f, H, F):
        paid, times = total, 0.0
        for i in range(f, H, F):
            if m.bids[PRICE, i] <= m.bids[PRICE, h]:
                paid += (m.met[i, s] + AGAIN) * m.bids[PRICE, i]
                times += m.met[i, s] + AGAIN
        limit = min(limit, paid / times)
    for h in range(f, H, F):
        bid = min(total * resolved(m, h, pair), limit) - m.bids[PRICE, h]
        if bid > m.bids[BID, h]:
            m.bids[BID, h], m.bids[CHOSEN, h] = bid, a
