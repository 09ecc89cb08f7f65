"""Offsets of f, fitted pair by pair to what the other pairs show of W."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ucbf.kernels.gamma import log_gamma
from ucbf.kernels.jit import inlined, inner
from ucbf.kernels.models import place
from ucbf.kernels.settling import GROWTH, look
from ucbf.kernels.types import Floats, Mechanics
from ucbf.kernels.watch import Watch, expect_residuals, forget_group

if TYPE_CHECKING:
    from ucbf.kernels.offsets import Offsets

HARDLY = 1e-12  # a chance that counts for nothing
NEVER = -40.0  # logarithm of the chance of what cannot be: small enough to settle a doubt, and finite
TRUST, TRUST_WORTH = 0.5, 4.0  # how likely f as told is taken to be right at first, and how many pairs that is worth
SMOOTHINGS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # that are tried where it follows the data


@inner
def fit_offsets(told: Mechanics, m: Offsets, watch: Watch) -> None:
    """The posterior of every pair with news; of all pairs, when observations have grown enough."""
    (S, A), everything = told.after.shape[1:], m.clock[0] >= m.clock[1]
    if everything:
        m.clock[1] = m.clock[0] + max(1, m.clock[0] // 20)
        for i in range(2):
            m.amount[i] = m.smoothing if m.smoothing > 0 else best_smoothing(told, m.raw if i == 0 else m.counts)
        for _ in range(m.sweeps - 1):
            for pair in range(len(m.stale)):
                if m.ends[pair, 0] < m.ends[pair, 1]:
                    believe(told, m, pair)
        expect_residuals(told, m.counts, watch)
        tell_apart(told, m)
        for pair in range(len(m.stale)):
            m.stale[pair] = 1
    m.exact[0] = 1 / (1 + math.exp(min(m.scores[1] - m.scores[0], 700.0)))
    threshold = m.threshold / math.sqrt(1 + m.clock[0] / len(m.stale))
    for pair in range(len(m.stale)):
        if m.stale[pair] == 0:
            continue
        m.stale[pair] = 0
        if everything or m.ends[pair, 0] < m.ends[pair, 1]:
            believe(told, m, pair)
        if m.certain[pair] < 0 and m.visits[pair] >= m.due[pair]:
            m.due[pair] = math.ceil(GROWTH * m.visits[pair])
            look(told, m, pair)
        best, least, most = 2 * m.half, len(m.weights), -1
        for d in range(m.ends[pair, 0], m.ends[pair, 1] + 1):
            if m.posterior[pair, d] > m.posterior[pair, best]:
                best = d
            if m.posterior[pair, d] >= threshold:
                least, most = min(least, d), d
        f, s, a = pair // (S * A), pair // A % S, pair % A
        x = m.first[f, s, a] - 2 * m.half
        now, low, high = place(told, x + best), x + min(least, best), x + max(most, best)
        if now != m.f[f, s, a]:  # what was held against the state and the action was about another f
            forget_group(watch, s)
            forget_group(watch, S + a)
        m.f[f, s, a], m.low[f, s, a], m.high[f, s, a] = now, low, high
    for row in range(len(m.counts)):
        for w in range(told.n_residuals):
            m.law[row, w] = m.exact[0] * m.raw[row, w] + (1 - m.exact[0]) * m.counts[row, w]


@inner
def believe(told: Mechanics, m: Offsets, pair: int) -> None:
    """Renew the posterior of a pair by what all others show of the offsets, and of W."""
    E, pairs, total, most, sum_of = len(m.weights), m.seen.shape[1], 0.0, -np.inf, 0.0
    if m.visits[pair] > 0:
        for d in range(E):
            m.believed[d] = max(m.believed[d] - m.posterior[pair, d], HARDLY)
    for d in range(E):
        total += m.believed[d]
    for d in range(E):
        m.weights[d] = m.barred[pair, d] + math.log(m.believed[d] / total)
    for step in range(pair // pairs, len(m.seen), len(m.f)):
        if m.often[step, pair % pairs] > 0:
            add_own(told, m, pair, step, -1.0)
            weigh(told, m, pair, step)
    for d in range(E):
        most = max(most, m.weights[d])
    for d in range(E):
        m.weights[d] = math.exp(m.weights[d] - most)
        sum_of += m.weights[d]
    m.ends[pair, 0], m.ends[pair, 1] = E, -1
    for d in range(E):
        m.posterior[pair, d] = m.weights[d] / sum_of if m.weights[d] > HARDLY * sum_of else 0.0
        if m.posterior[pair, d] > 0:
            m.ends[pair, 0], m.ends[pair, 1] = min(m.ends[pair, 0], d), d
    for step in range(pair // pairs, len(m.seen), len(m.f)):
        if m.often[step, pair % pairs] > 0:
            add_own(told, m, pair, step, 1.0)
    if m.visits[pair] > 0:
        for d in range(E):
            m.believed[d] += m.posterior[pair, d]


@inlined
def weigh(told: Mechanics, m: Offsets, pair: int, step: int) -> None:
    """m.weights: how likely what a pair showed at a step is, as draws from a law that the others showed."""
    R, own, row, amount = told.n_residuals, pair % m.seen.shape[1], min(step, len(m.counts) - 1), m.amount[1]
    n, others = m.often[step, own], amount * told.n_residuals
    for w in range(R):
        others += m.counts[row, w]
    for j in range(R):
        times = m.seen[step, own, j]
        for d in range(len(m.weights) if times > 0 else 0):
            w = j - (d - 2 * m.half)
            w = w % R if told.modular else w
            if not 0 <= w < R:
                m.weights[d] += NEVER
            elif times == 1:
                m.weights[d] += math.log(m.counts[row, w] + amount)
            else:
                before = m.counts[row, w] + amount
                m.weights[d] += log_gamma(before + times) - log_gamma(before)
    every = log_gamma(others + n) - log_gamma(others)
    for d in range(len(m.weights)):
        m.weights[d] -= every


@inlined
def add_own(told: Mechanics, m: Offsets, pair: int, step: int, sign: float) -> None:
    """Add what a pair showed at a step, less its offsets by their posterior, to the counts of W; or take it off."""
    R, own, row = told.n_residuals, pair % m.seen.shape[1], min(step, len(m.counts) - 1)
    for j in range(R):
        n = m.seen[step, own, j]
        for d in range(m.ends[pair, 0], m.ends[pair, 1] + 1 if n > 0 else 0):
            w = j - (d - 2 * m.half)
            w = w % R if told.modular else w
            if 0 <= w < R:
                m.counts[row, w] = max(m.counts[row, w] + sign * n * m.posterior[pair, d], 0.0)


@inlined
def best_smoothing(told: Mechanics, counts: Floats) -> float:
    """The smoothing with which the counts of the law are likeliest, as draws from a law that is itself unknown."""
    R, best, chosen = told.n_residuals, -np.inf, SMOOTHINGS[0]
    for amount in SMOOTHINGS:
        likely = 0.0
        for row in range(len(counts)):
            total = 0.0
            for w in range(R):
                n = counts[row, w]
                total += n
                if n > 0:
                    likely += log_gamma(n + amount) - log_gamma(amount)
            likely += log_gamma(R * amount) - log_gamma(total + R * amount)
        if likely > best + 1e-6:  # not for rounding
            best, chosen = likely, amount
    return chosen


@inlined
def tell_apart(told: Mechanics, m: Offsets) -> None:
    """m.overlap: the sum over w of 2 P(w) P(w - by) / (P(w) + P(w - by)), for every difference of two offsets."""
    R, E, amount = told.n_residuals, len(m.weights), m.amount[1]
    for row in range(len(m.counts)):
        total = amount * R
        for w in range(R):
            total += m.counts[row, w]
        for i in range(2 * E - 1):
            alike = 0.0
            for w in range(R):
                v = w - (i - E + 1)
                v = v % R if told.modular else v
                if 0 <= v < R:
                    one, other = m.counts[row, w] + amount, m.counts[row, v] + amount
                    alike += 2 * one * other / (one + other)
            m.overlap[row, i] = alike / total
