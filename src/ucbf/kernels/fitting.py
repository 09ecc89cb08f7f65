"""Offsets of f, fitted by expectation and maximisation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ucbf.kernels.jit import inlined, inner
from ucbf.kernels.types import Floats, Mechanics
from ucbf.kernels.watch import Watch, expect_residuals, forget_group

if TYPE_CHECKING:
    from ucbf.kernels.offsets import Offsets

NEVER = -40.0  # logarithm of the chance of what cannot be: small enough to settle a doubt, and finite
HARDLY = 1e-12  # a chance that counts for nothing
TRUST, TRUST_WORTH = 0.5, 4.0  # how likely f as told is taken to be right at first, and how many pairs that is worth
SMOOTHINGS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # that are tried where it follows the data


@inlined
def bar_of(m: Offsets) -> float:
    """The chance below which an offset is dismissed; it falls with observations, so that none is given up for good."""
    return m.threshold / math.sqrt(1 + m.clock[0] / len(m.stale))


@inner
def fit_offsets(told: Mechanics, m: Offsets, watch: Watch) -> int:
    """Expectation and maximisation, and what they make of every pair with news; how far all of f was moved back."""
    S, A = told.after.shape[1:]
    moved_by = 0
    threshold = bar_of(m)
    if m.clock[0] >= m.clock[1]:
        m.clock[1] = m.clock[0] + max(1, m.clock[0] // 20)
        m.amount[0] = m.smoothing if m.smoothing > 0 else best_smoothing(told, m)
        moved_by = climb(told, m, 1.0)
        if m.clock[0] >= m.clock[2]:
            m.clock[2] = 2 * m.clock[0]
            if start_over(told, m):
                moved_by = common_move(told, m)
        expect_residuals(told, m.counts, watch)
        tell_apart(told, m)
        for pair in range(len(m.stale)):
            m.stale[pair] = 1
    for pair in range(len(m.stale)):
        if m.stale[pair] == 0:
            continue
        m.stale[pair] = 0
        best, least, most = likeliest(m, pair), len(m.weights), -1
        for d in range(len(m.weights)):
            m.posterior[pair, d] = m.weights[d]
            if m.weights[d] >= threshold:
                least, most = min(least, d), d
        f, s, a = pair // (S * A), pair // A % S, pair % A
        x = m.first[f, s, a] - m.half
        now, low, high = x + best, x + min(least, best), x + max(most, best)
        unmoved = m.f[f, s, a] - moved_by
        if told.modular:
            now, unmoved = now % S, unmoved % S
        if now != unmoved:  # what was held against the state and the action was about another f
            forget_group(watch, s)
            forget_group(watch, S + a)
        m.f[f, s, a], m.low[f, s, a], m.high[f, s, a] = now, low, high
    return moved_by


@inner
def climb(told: Mechanics, m: Offsets, faith: float) -> int:
    """Expectation and maximisation, m.iterations times at full faith; how far all of f was moved back.

    The belief in f as told is learned only where the fit goes on: one from the beginning is held to the same belief.
    """
    goes_on, moved_by, rounds = faith >= 1, 0, 0
    while rounds < m.iterations:
        weigh(told, m)
        move = best_move(told, m) if faith >= 1 else 0
        moved_by += move
        recount(told, m, move, min(faith, 1.0))
        if goes_on:
            learn_belief(m)
        rounds += faith >= 1
        faith *= 1.3
    weigh(told, m)
    return moved_by


@inner
def start_over(told: Mechanics, m: Offsets) -> bool:
    """Fit again from the beginning, taking what was seen more and more for what it says; whether that fit is better.

    The fit as it goes on can be caught where the pairs that one step visits most are off together, and the law of that
    step with them.
    """
    before = evidence(told, m, 0)
    copy_to(m.spare, m.counts)
    copy_to(m.spare_posterior, m.posterior)
    recount(told, m, 0, 0.0)
    climb(told, m, 0.01)
    better: bool = evidence(told, m, 0) > before + 1
    if not better:
        copy_to(m.counts, m.spare)
        copy_to(m.posterior, m.spare_posterior)
        weigh(told, m)
    return better


@inlined
def copy_to(table: Floats, source: Floats) -> None:
    """Fill a table with another."""
    for i in range(table.shape[0]):
        for k in range(table.shape[1]):
            table[i, k] = source[i, k]


@inner
def common_move(told: Mechanics, m: Offsets) -> int:
    """How far back a new fit moved most of f, by how often the pairs were seen."""
    S, A = told.after.shape[1:]
    pairs, most, chosen = m.seen.shape[1], 0, 0
    for move in range(-2 * m.half, 2 * m.half + 1):
        total = 0
        for first in range(len(m.likelihood)):
            f, pair = first // pairs, first % pairs
            now = m.first[f, pair // A, pair % A] - m.half + likeliest(m, first)
            back = m.f[f, pair // A, pair % A] - now
            if back == move or (told.modular and (back - move) % S == 0):
                for step in range(f, len(m.seen), len(m.f)):
                    for j in range(told.n_residuals):
                        total += m.seen[step, pair, j]
        if total > most:
            most, chosen = total, move
    return chosen


@inlined
def likeliest(m: Offsets, pair: int) -> int:
    """Index of the pair's likeliest offset, in m.weights; none, if that is as likely."""
    posterior(m, pair, 0, 1.0)
    best = m.half
    for d in range(len(m.weights)):
        if m.weights[d] > m.weights[best]:
            best = d
    return best


@inner
def weigh(told: Mechanics, m: Offsets) -> None:
    """m.likelihood of every pair's offsets from all that was seen, given the law that the other pairs showed."""
    for row in range(len(m.counts)):
        take_logs(told, m.counts, m.logs, row, m.amount[0], 2 * m.half)
    for pair in range(len(m.likelihood)):
        for d in range(m.likelihood.shape[1]):
            m.likelihood[pair, d] = 0
    pairs = m.seen.shape[1]
    for step in range(len(m.seen)):
        row, first_pair = min(step, len(m.counts) - 1), min(step, len(m.f) - 1) * pairs
        total = 0.0
        for w in range(told.n_residuals):
            total += m.counts[row, w]
        for pair in range(pairs):
            if m.visits[first_pair + pair] > 0:
                weigh_pair(told, m, step, row, pair, first_pair + pair, total)


@inlined
def weigh_pair(told: Mechanics, m: Offsets, step: int, row: int, pair: int, place: int, total: float) -> None:
    """What one step's residuals of a pair add to its likelihood, by the law without the pair's own share of it.

    log(c - own) is log c - own / c as long as the share is small.
    """
    R, last, E, amount = told.n_residuals, 4 * m.half, len(m.weights), m.amount[0]
    n = 0
    for j in range(R):
        m.own[j] = 0
        n += m.seen[step, pair, j]
    if n == 0:
        return
    for j in range(R):
        for d in range(E if m.seen[step, pair, j] > 0 else 0):
            w = j - (d - m.half)
            w = w % R if told.modular else w
            if 0 <= w < R:
                m.own[w] += m.seen[step, pair, j] * m.posterior[place, d]
    scale = math.log((total + amount * R) / (max(total - n, 0.0) + amount * R))
    for j in range(R):
        times = m.seen[step, pair, j]
        for d in range(2 * E - 1 if times > 0 else 0):
            score, w = m.logs[row, j + last - d], j - (d - 2 * m.half)
            w = w % R if told.modular else w
            if 0 <= w < R:
                share = m.own[w] / (m.counts[row, w] + amount)
                if share < 0.1:
                    score += scale - share
                else:
                    score += scale + math.log(max(1 - share, amount / (m.counts[row, w] + amount)))
            m.likelihood[place, d] += times * score


@inlined
def best_smoothing(told: Mechanics, m: Offsets) -> float:
    """The smoothing with which the counts of the law are likeliest, as draws from a law that is itself unknown."""
    R, best, chosen = told.n_residuals, -np.inf, SMOOTHINGS[0]
    for amount in SMOOTHINGS:
        likely = 0.0
        for row in range(len(m.counts)):
            total = 0.0
            for w in range(R):
                n = m.counts[row, w]
                total += n
                if n > 0:
                    likely += math.lgamma(n + amount) - math.lgamma(amount)
            likely += math.lgamma(R * amount) - math.lgamma(total + R * amount)
        if likely > best + 1e-6:  # not for rounding, which lgamma does as it likes
            best, chosen = likely, amount
    return chosen


@inlined
def learn_belief(m: Offsets) -> None:
    """m.belief: how often offsets are found, over the pairs that were seen; at first f as told is trusted."""
    E, total = len(m.belief), 0.0
    for d in range(E):
        m.belief[d] = TRUST_WORTH * (TRUST if d == m.half else (1 - TRUST) / (E - 1))
    for pair in range(len(m.posterior)):
        for d in range(E if m.visits[pair] > 0 else 0):
            m.belief[d] += m.posterior[pair, d]
    for d in range(E):
        total += m.belief[d]
    for d in range(E):
        m.belief[d] = math.log(m.belief[d] / total)


@inlined
def tell_apart(told: Mechanics, m: Offsets) -> None:
    """m.apart: the mean over w of log P(w) - log P(w - by), for every difference of two offsets, over all steps."""
    reach, rows = 2 * m.half, len(m.logs)
    for i in range(len(m.apart)):
        m.apart[i] = 0
        for row in range(rows):
            for w in range(told.n_residuals):
                log = m.logs[row, w + reach]
                m.apart[i] += math.exp(log) * (log - m.logs[row, w - (i - reach) + reach]) / rows


@inlined
def take_logs(told: Mechanics, counts: Floats, logs: Floats, row: int, smoothing: float, reach: int) -> None:
    """One row of logs: logarithms of the chances of w = -reach .. R + reach - 1, by the counts."""
    R = told.n_residuals
    total = smoothing * R
    for w in range(R):
        total += counts[row, w]
    for w in range(R):
        logs[row, w + reach] = math.log((counts[row, w] + smoothing) / total)
    for i in range(reach):
        logs[row, i] = logs[row, reach + (i - reach) % R] if told.modular else NEVER
        logs[row, R + reach + i] = logs[row, reach + i % R] if told.modular else NEVER


@inlined
def posterior(m: Offsets, pair: int, move: int, faith: float) -> float:
    """m.weights of the pair's offsets if all of them moved by ``move``; the logarithm of their common chance.

    What is believed of offsets moves along, since a constant is harmless; of those that were out of range it is the
    least that is believed of any. faith: 1, or less to take what was seen for less than it says
    """
    width, most, total, least = m.barred.shape[1], -np.inf, 0.0, 0.0
    for d in range(width):
        least = min(least, m.belief[d])
    for d in range(width):
        belief = m.belief[d + move] if 0 <= d + move < width else least
        m.weights[d] = faith * m.likelihood[pair, d + m.half + move] + m.barred[pair, d] + belief
        most = max(most, m.weights[d])
    for d in range(width):
        m.weights[d] = math.exp(m.weights[d] - most)
        total += m.weights[d]
    for d in range(width):
        m.weights[d] /= total
    return most + math.log(total)


@inner
def best_move(told: Mechanics, m: Offsets) -> int:
    """The constant by which to move all offsets so that what was seen is likelier, by a factor e at least; else 0.

    A constant is harmless in itself, but next to a wrong one the offsets at the end of their range have no room.
    """
    best, chosen = -np.inf, 0
    for i in range(2 * m.half + 1):
        move = (i + 1) // 2 * (1 if i % 2 else -1)  # 0, 1, -1, 2, -2, ...
        total = evidence(told, m, move)
        if total > best + 1:
            best, chosen = total, move
    return chosen


@inner
def evidence(told: Mechanics, m: Offsets, move: int) -> float:
    """The logarithm of the chance of all that was seen, by m.likelihood and m.logs, if all offsets moved."""
    total = 0.0
    for row in range(len(m.known)):
        for w in range(told.n_residuals):
            if m.known[row, w] > 0:
                total += m.known[row, w] * m.logs[row, w - move + 2 * m.half]
    for pair in range(len(m.likelihood)):
        total += posterior(m, pair, move, 1.0)
    return total


@inner
def recount(told: Mechanics, m: Offsets, move: int, faith: float) -> None:
    """m.counts: what was measured, and what was seen less the offsets, by their posterior."""
    R, pairs = told.n_residuals, m.seen.shape[1]
    for row in range(len(m.counts)):
        for w in range(R):
            m.counts[row, w] = m.prior[row, w] + m.known[row, w]
    for first in range(len(m.likelihood)):
        posterior(m, first, move, faith)
        for d in range(len(m.weights)):
            m.posterior[first, d] = m.weights[d]
        f, pair = first // pairs, first % pairs
        for step in range(f, len(m.seen), len(m.f)):
            row = min(step, len(m.counts) - 1)
            for j in range(R):
                n = m.seen[step, pair, j]
                if n > 0:
                    for d in range(len(m.weights)):
                        w = j - (d - m.half)
                        if told.modular:
                            w %= R
                        if 0 <= w < R:
                            m.counts[row, w] += n * m.weights[d]
