"""A model of f with one whole offset for each pair."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.fitting import HARDLY, NEVER, bar_of, fit_offsets
from ucbf.kernels.jit import inlined, inner
from ucbf.kernels.models import (
    always,
    is_settled,
    lead_with_ahead,
    learn_disturbance,
    learn_pair,
    may_change,
    note_residual,
    place,
    refit,
    value_pairs,
    with_ahead,
)
from ucbf.kernels.parts import packed
from ucbf.kernels.seen import Seen
from ucbf.kernels.types import Floats, Ints, Mechanics


@packed
class Offsets(NamedTuple):
    """A whole offset of f for every pair, and how sure it is.

    P = F·S·A pairs, F being 1 where f is the same at every step; E = 2 half + 1 offsets of a pair, and 2E - 1 with room
    to move all of them by a constant; L rows of the law, 1 or H; M rows of what was seen, 1 only if F and L are.
    """

    first: NDArray[np.int32]  # [F, S, A] after-states as they were told
    f: NDArray[np.int32]  # [F, S, A] after-states now; the learner's mechanics hold the same array
    low: NDArray[np.int32]  # [F, S, A] the truth is believed to be from low to high, not yet wrapped
    high: NDArray[np.int32]  # [F, S, A]
    residuals: Floats  # [H, R] how often each residual of f as it was told was seen
    lead: Floats  # [H, S, A] what is taken to follow every pair
    half: int  # the largest offset, ζ/2
    threshold: float  # offsets less likely than this are dismissed, at first
    smoothing: float  # added to every count of the law; 0: it follows the data
    iterations: int  # of expectation and maximisation at a time
    seen: NDArray[np.int32]  # [M, S·A, R] residuals of f as it was told
    known: Floats  # [L, R] disturbances that were measured: at an edge, or before the start
    barred: Floats  # [P, E] what an edge said of the offsets
    likelihood: Floats  # [P, 2E-1] of every offset, given the law that other pairs showed
    posterior: Floats  # [P, E] of every offset
    belief: Floats  # [E] logarithm of how likely offsets are before a pair is seen: what the others have
    counts: Floats  # [L, R] the law: the expected number of times that each disturbance occurred
    prior: Floats  # [L, R] counts before any observation
    logs: Floats  # [L, R + 4 half] logarithm of the law when last fitted, continued at both ends
    apart: Floats  # [4 half + 1] by how much one residual tells apart offsets that differ by -2 half .. 2 half
    weights: Floats  # [E] room for the posterior of one pair
    own: Floats  # [R] room for what one pair adds to the law
    visits: Ints  # [P] observations of every pair
    stale: Ints  # [P] pairs with news since the last renewal
    spare: Floats  # [L, R] room for the law while another fit is tried
    spare_posterior: Floats  # [P, E]
    amount: Floats  # [1] the smoothing now
    clock: Ints  # [3] observations so far; those at which the law is fitted again, and from the beginning


@inlined
def offsets_learn_pair(told: Mechanics, m: Offsets, seen: Seen) -> bool:
    """Take in what a transition says of f; whether there is no doubt left about its pair."""
    h, s, a = seen.h, seen.s, seen.a
    as_told = note_residual(told, m, seen)
    if as_told >= 0:
        S, A = told.after.shape[1:]
        f, width = min(h, len(m.f) - 1), m.barred.shape[1]
        pair = (f * S + s) * A + a
        m.clock[0] += 1
        m.visits[pair] += 1
        m.stale[pair] = 1
        if told.hides[seen.s_next]:  # W is known, and the offset must lead to the boundary
            m.known[min(h, len(m.known) - 1), as_told] += 1
            for d in range(width):
                z = m.first[f, s, a] + d - m.half + as_told
                if not (0 <= z < len(told.next_state)) or told.next_state[z] != seen.s_next:
                    m.barred[pair, d] += NEVER
        else:
            m.seen[min(h, len(m.seen) - 1), s * A + a, as_told] += 1
            for d in range(2 * width - 1):
                m.likelihood[pair, d] += m.logs[min(h, len(m.logs) - 1), as_told + 4 * m.half - d]
    return is_settled(m, seen)


@inlined
def offsets_learn_disturbance(m: Offsets, h: int, j: int) -> None:
    """Take in a disturbance of which neither state nor action is known."""
    m.residuals[h, j] += 1
    m.clock[0] += 1
    m.known[min(h, len(m.known) - 1), j] += 1


@inner
def offsets_value_pairs(told: Mechanics, m: Offsets, ahead: Floats, h: int, weight: float) -> None:
    """What follows every pair of step h: the mean over its offsets; the best plausible one if that is worth trying."""
    for s in range(m.f.shape[1]):
        best = -np.inf
        for a in range(m.f.shape[2]):
            m.lead[h, s, a] = mean_ahead(told, m, ahead, h, s, a)
            best = max(best, weight * told.reward[min(h, len(told.reward) - 1), s, a] + m.lead[h, s, a])
        try_pairs(told, m, ahead, h, s, weight, best)


@inlined
def mean_ahead(told: Mechanics, m: Offsets, ahead: Floats, h: int, s: int, a: int) -> float:
    """What follows a pair, on average over its offsets."""
    f = min(h, len(m.f) - 1)
    if m.low[f, s, a] == m.high[f, s, a]:
        known: float = ahead[h, m.f[f, s, a]]
        return known
    pair, total = (f * m.f.shape[1] + s) * m.f.shape[2] + a, 0.0
    for d in range(len(m.weights)):
        if m.posterior[pair, d] > HARDLY:
            total += m.posterior[pair, d] * ahead[h, place(told, m.first[f, s, a] + d - m.half)]
    return total


@inlined
def try_pairs(told: Mechanics, m: Offsets, ahead: Floats, h: int, s: int, weight: float, best: float) -> None:
    """Take the best plausible offset of a pair in state s that may be better than the best one and is worth trying.

    It is, if what may be gained in as many visits of the state as there have been is at least what it costs to find
    out: for every offset with which it is worse, what a visit then costs, as often as it takes to dismiss the best.
    """
    f, (S, A) = min(h, len(m.f) - 1), m.f.shape[1:]
    visits = 0
    for a in range(A):
        visits += m.visits[(f * S + s) * A + a]
    threshold = bar_of(m)
    for a in range(A):
        if m.low[f, s, a] == m.high[f, s, a]:
            continue
        paid, pair = weight * told.reward[min(h, len(told.reward) - 1), s, a], (f * S + s) * A + a
        if paid + m.lead[h, s, a] == best:
            continue
        origin, top, hope = m.first[f, s, a] - m.half, best, -1
        for d in range(m.low[f, s, a] - origin, m.high[f, s, a] - origin + 1):
            q = paid + ahead[h, place(told, origin + d)]
            if q > top:
                top, hope = q, d
        if hope < 0:
            continue
        gain, cost, likely = 0.0, 0.0, m.posterior[pair, hope]
        for d in range(len(m.weights)):
            chance = m.posterior[pair, d]
            if chance > HARDLY:
                q = paid + ahead[h, place(told, origin + d)]
                if q > best:
                    gain += chance * (q - best)
                else:
                    told_apart = max(m.apart[hope - d + 2 * m.half], HARDLY)
                    visits_needed = 1 + max(math.log(max(likely, HARDLY) / (chance * threshold)), 0.0) / told_apart
                    cost += chance * (best - q) * visits_needed
        if visits * gain >= cost:
            m.lead[h, s, a] = top - paid


learn_pair.state(Offsets, offsets_learn_pair)
learn_disturbance.state(Offsets, offsets_learn_disturbance)
refit.state(Offsets, fit_offsets)
value_pairs.state(Offsets, offsets_value_pairs)
with_ahead.state(Offsets, lead_with_ahead)
may_change.state(Offsets, always)
