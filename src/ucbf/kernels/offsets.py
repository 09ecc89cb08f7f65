"""A model of f with one whole offset for each pair."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.exploring import offsets_explore, offsets_value_pairs
from ucbf.kernels.fitting import NEVER, fit_offsets
from ucbf.kernels.jit import inlined
from ucbf.kernels.models import (
    always,
    averaged,
    explore,
    explores,
    is_settled,
    lead_with_ahead,
    learn_disturbance,
    learn_pair,
    may_change,
    note_residual,
    refit,
    value_pairs,
    with_ahead,
)
from ucbf.kernels.parts import packed
from ucbf.kernels.seen import Seen, residual_of
from ucbf.kernels.settling import ABSOLUTE, KIND, NO_ANCHOR
from ucbf.kernels.types import Floats, Ints, Mechanics

LITTLE = 1e-9  # of every prediction is shared among all residuals, so that none has chance 0


@packed
class Offsets(NamedTuple):
    """A whole offset of f for every pair, and how sure it is.

    P = F·S·A pairs, F being 1 where f is the same at every step. A pair has E = 4 half + 1 offsets, -ζ..ζ: what all
    have in common is not told apart from W, and differences are up to ζ. L rows of the law, 1 or H; M rows of what was
    seen, 1 only if F and L are.
    """

    first: NDArray[np.int32]  # [F, S, A] after-states as they were told
    f: NDArray[np.int32]  # [F, S, A] after-states now; the learner's mechanics hold the same array
    low: NDArray[np.int32]  # [F, S, A] the truth is believed to be from low to high, not yet wrapped
    high: NDArray[np.int32]  # [F, S, A]
    residuals: Floats  # [H, R] how often each residual of f as it was told was seen
    lead: Floats  # [H, S, A] what is taken to follow every pair
    gain: Floats  # [H, S, A] by how much the best action would be better if the offset of a pair were known
    half: int  # the largest error of f, ζ/2
    threshold: float  # offsets less likely than this are dismissed, at first
    smoothing: float  # added to every count of the law; 0: it follows the data
    sweeps: int  # over all pairs at a time
    seen: NDArray[np.int32]  # [M, S·A, R] residuals of f as it was told
    often: NDArray[np.int32]  # [M, S·A] how many
    barred: Floats  # [P, E] what an edge said of the offsets
    posterior: Floats  # [P, E] of every offset, unless f is as told
    ends: Ints  # [P, 2] the first and the last offset that is not ruled out by it
    believed: Floats  # [E] how many pairs have an offset, as far as that is known, and before any was seen
    raw: Floats  # [L, R] how often each disturbance occurred if f is as told, and before any was seen
    counts: Floats  # [L, R] how often it is expected to have occurred, given the offsets
    law: Floats  # [L, R] what is believed of both
    scores: Floats  # [2] logarithm of how likely all residuals were said to be, each before it was seen: by f as told,
    # and by offsets
    exact: Floats  # [1] how likely it is that f is as told
    amount: Floats  # [2] the smoothing now, with f as told and with offsets
    overlap: Floats  # [L, 2E-1] how alike laws are that are moved apart by -(E-1)..E-1, from 0 to 1: they are the same
    weights: Floats  # [E] room for the posterior of one pair
    bids: Floats  # [3, H] room to choose what to try
    visits: Ints  # [P] observations of every pair
    met: Ints  # [H, S] visits of every state
    stale: Ints  # [P] pairs with news since the last renewal
    clock: Ints  # [2] observations so far; those at which the law is fitted again
    # What certificates rely on: ucbf.kernels.settling
    window: Ints  # [2] the first and the last disturbance that may occur, among the residuals
    clear: NDArray[np.bool_]  # [P] whether no boundary may hide what a pair shows
    anchor: Ints  # [3] what offsets are counted from; the least and the most that this may be itself
    left: NDArray[np.bool_]  # [P, E] offsets that were not dismissed, but for a small chance
    certain: Ints  # [P] the one that is left; -1: several
    due: Ints  # [P] visits after which offsets are looked at again
    said: Floats  # [P] logarithm of how likely the residuals of a pair were said to be, each before it was seen
    pool: Floats  # [L, R] disturbances that pairs showed whose offset was certain before


@inlined
def offsets_learn_pair(told: Mechanics, m: Offsets, seen: Seen) -> bool:
    """Take in what a transition says of f; whether there is no doubt left about its pair."""
    h, s, a = seen.h, seen.s, seen.a
    as_told = note_residual(told, m, seen)
    if as_told >= 0:
        S, A = told.after.shape[1:]
        f, row, E, R = min(h, len(m.f) - 1), min(h, len(m.counts) - 1), len(m.weights), told.n_residuals
        pair = (f * S + s) * A + a
        m.clock[0] += 1
        m.met[h, s] += 1
        m.stale[pair] = 1
        for d in range(E if m.visits[pair] == 0 else 0):
            m.believed[d] += m.posterior[pair, d]
        m.visits[pair] += 1
        if told.hides[seen.s_next]:  # W is known, and the offset must lead to the boundary
            m.counts[row, as_told] += 1
            for d in range(E):
                z = m.first[f, s, a] + d - 2 * m.half + as_told
                if not (0 <= z < len(told.next_state)) or told.next_state[z] != seen.s_next:
                    m.barred[pair, d] += NEVER
        else:
            predict(told, m, row, pair, as_told)
            m.seen[min(h, len(m.seen) - 1), s * A + a, as_told] += 1
            m.often[min(h, len(m.seen) - 1), s * A + a] += 1
            for d in range(E):
                w = as_told - (d - 2 * m.half)
                w = w % R if told.modular else w
                if 0 <= w < R:
                    m.counts[row, w] += m.posterior[pair, d]
                    if d == m.certain[pair] and m.clear[pair]:
                        m.pool[row, w] += 1
        m.raw[row, as_told] += 1
    return is_settled(m, seen)


@inlined
def predict(told: Mechanics, m: Offsets, row: int, pair: int, as_told: int) -> None:
    """Note how likely a residual was, by f as told and by the offsets, before it is counted.

    Offsets may have begun to count after any of the residuals; that they did after n of them has weight 1/n².
    """
    R, as_is, total, chance = told.n_residuals, 0.0, 0.0, 0.0
    for w in range(R):
        as_is += m.raw[row, w]
        total += m.counts[row, w]
    for d in range(m.ends[pair, 0], m.ends[pair, 1] + 1):
        w = as_told - (d - 2 * m.half)
        w = w % R if told.modular else w
        if 0 <= w < R:
            chance += m.posterior[pair, d] * (m.counts[row, w] + m.amount[1])
    said = min(math.log((1 - LITTLE) * chance / (total + R * m.amount[1]) + LITTLE / R), 0.0)
    m.said[pair] += said
    m.scores[0] += math.log((m.raw[row, as_told] + m.amount[0]) / (as_is + R * m.amount[0]))
    before, since = m.scores[1] + said, m.scores[0] - 2 * math.log(m.clock[0])
    m.scores[1] = max(before, since) + math.log1p(math.exp(-abs(before - since)))


@inlined
def offsets_averaged(told: Mechanics, m: Offsets, seen: Seen, j: int) -> int:
    """Counted from f as told, where that is rather believed.

    Offsets may have any number in common, and disturbances that much less. Averages of disturbances serve either f as
    told or f with its offsets, and those that are read most are to be right.
    """
    if m.exact[0] < 0.5 or told.hides[seen.s_next]:
        return j
    as_told = residual_of(told, m.first, seen.h, seen.s, seen.a, seen.s_next)
    return as_told if 0 <= as_told < told.n_residuals else j


@inlined
def offsets_learn_disturbance(m: Offsets, h: int, j: int) -> None:
    """Take in a disturbance of which neither state nor action is known."""
    row = min(h, len(m.counts) - 1)
    m.residuals[h, j] += 1
    m.clock[0] += 1
    m.counts[row, j] += 1
    m.raw[row, j] += 1
    if m.anchor[KIND] == NO_ANCHOR:
        m.anchor[KIND] = ABSOLUTE
    if m.anchor[KIND] == ABSOLUTE:
        m.pool[row, j] += 1


learn_pair.state(Offsets, offsets_learn_pair)
averaged.state(Offsets, offsets_averaged)
learn_disturbance.state(Offsets, offsets_learn_disturbance)
refit.state(Offsets, fit_offsets)
value_pairs.state(Offsets, offsets_value_pairs)
with_ahead.state(Offsets, lead_with_ahead)
may_change.state(Offsets, always)
explores.state(Offsets, always)
explore.state(Offsets, offsets_explore)
