"""Which offsets of f can be dismissed for good, but for a small chance.

Let o(i) be the true offset of pair i, so that its residuals are o(i) + W, and let everything be counted from an anchor:
true offsets themselves, or those less that of one pair (what all offsets have in common is harmless). P_h is the law of
W_h, and Q_h that of what is left of a residual after its offset is taken off, as counted from the anchor.

**The pool** takes in the residuals of pairs whose offset is certain already when they are seen, less that offset. Which
residuals these are is decided before they are seen, so that with right offsets KT(pool of h) / Q_h(pool of h) is a
martingale with mean 1, KT being the mixture of Krichevsky and Trofimov. By Ville's inequality, at all times at once and
for all L laws, Q_h(pool of h) > KT(pool of h) δ / 2L, but for a chance of δ/2.

**A pair.** Let N(i) be the product, over the residuals of pair i, of how likely each was said to be by what was
believed just before it was seen. Whatever was believed, N(i) over the true chance of these residuals is a martingale
too, or falls on average. So the true offset has N(i) < (2P/δ) Π Q_h(residuals less it), at all times and for all P
pairs at once, but for a chance of δ/2. An offset with which this holds for none of the Q_h above is dismissed.

Together: but for a chance of δ no true offset is ever dismissed. As long as none was, the pool is right, Q_h is among
those above, and the true offset passes. What is largest over the Q_h is bounded from above: for any price λ >= 0,

    Σ c log Q <= λ (log(2L/δ) - log KT) + Σ (c + λn) log((c + λn) / (C + λN)),

c being the residuals less the offset, n the pool, C and N their sums.

**What is known for sure**, without a chance of being wrong: with W from the first to the last of its range, a pair that
has shown residuals from j to k has an offset from k - last to j - first. The first pair that is settled so is where the
pool begins, with true offsets. Where none is, it is the first with ``ENOUGH`` visits, whose own offset is then what all
are counted from.

Pairs from which a boundary may hide W are left out of the pool and are settled by what is known for sure only: which of
their residuals are seen depends on W.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ucbf.kernels.gamma import log_gamma
from ucbf.kernels.jit import compiled, inlined, inner
from ucbf.kernels.types import Mechanics

if TYPE_CHECKING:
    from ucbf.kernels.offsets import Offsets

CHANCE = 1e-3  # δ
ENOUGH = 40  # visits of a pair from whose offset all others are counted
GROWTH = 1.5  # of a pair's visits, after which its offsets are looked at again
PRICES = (1.0, 0.25, 0.0625, 0.015625, 0.00390625)  # λ
KIND, LEAST, MOST = range(3)
NO_ANCHOR, ABSOLUTE, RELATIVE = range(3)


@inner
def look(told: Mechanics, m: Offsets, pair: int) -> None:
    """Dismiss offsets of a pair, as far as what was seen allows."""
    least, most = known_for_sure(told, m, pair)
    enough = m.visits[pair] >= ENOUGH and (told.modular or is_declared(told, m))
    if m.anchor[KIND] == NO_ANCHOR and m.clear[pair] and (least == most or enough):
        m.anchor[KIND] = ABSOLUTE if least == most else RELATIVE
        if least < most:
            m.anchor[LEAST], m.anchor[MOST] = least, most
            for d in range(len(m.weights)):
                m.left[pair, d] = d == 2 * m.half
    if m.anchor[KIND] == NO_ANCHOR:
        return
    count, last = 0, 0
    for d in range(len(m.weights)):
        offset = d - 2 * m.half
        if offset < least - m.anchor[MOST] or offset > most - m.anchor[LEAST]:
            m.left[pair, d] = False
        elif m.left[pair, d] and m.clear[pair] and m.visits[pair] > 0:
            m.left[pair, d] = is_possible(told, m, pair, offset)
        if m.left[pair, d]:
            count, last = count + 1, d
    m.certain[pair] = last if count == 1 else -1


@inlined
def known_for_sure(told: Mechanics, m: Offsets, pair: int) -> tuple[int, int]:
    """The least and the most that an offset may be: its residuals are W and itself."""
    pairs = m.seen.shape[1]
    first, last, least, most = m.window[0], m.window[1], -m.half, m.half
    for step in range(pair // pairs, len(m.seen) if is_declared(told, m) else 0, len(m.f)):
        for j in range(told.n_residuals):
            if m.seen[step, pair % pairs, j] > 0:
                least, most = max(least, j - last), min(most, j - first)
    for d in range(m.half, 3 * m.half + 1):  # an edge said that it is not
        if m.barred[pair, d] < 0 and d - 2 * m.half == least:
            least += 1
    for d in range(3 * m.half, m.half - 1, -1):
        if m.barred[pair, d] < 0 and d - 2 * m.half == most:
            most -= 1
    return (least, most) if least <= most else (-m.half, m.half)


@inner
def is_possible(told: Mechanics, m: Offsets, pair: int, offset: int) -> bool:
    """Whether the residuals of a pair are likely enough, with that offset and some law that the pool allows."""
    R, L, pairs = told.n_residuals, len(m.pool), m.seen.shape[1]
    needed = m.said[pair] - math.log(2 * len(m.certain) / CHANCE)
    likely = 0.0
    first, last = support(told, m)
    for step in range(pair // pairs, len(m.seen), len(m.f)):
        row, n, total = min(step, L - 1), m.often[step, pair % pairs], 0.0
        if n == 0:
            continue
        for j in range(R):
            total += m.pool[row, j]
        slack = math.log(2 * L / CHANCE) - log_mixture(m, row, first, last, total)
        best = np.inf
        for i in range(len(PRICES) + 1):
            price = PRICES[i] if i < len(PRICES) else 0.0
            bound, inside = price * slack, 0
            for w in range(first, last + 1):
                j = w + offset
                j = j % R if told.modular else j
                c = m.seen[step, pair % pairs, j] if 0 <= j < R else 0
                inside += c
                if c + price * m.pool[row, w] > 0:
                    both = c + price * m.pool[row, w]
                    bound += both * math.log(both / (n + price * total))
            if inside < n:
                return False
            best = min(best, bound)
        likely += best
        if likely < needed:
            return False
    return True


@inlined
def support(told: Mechanics, m: Offsets) -> tuple[int, int]:
    """The first and the last disturbance that may occur, counted from the anchor."""
    if m.anchor[KIND] == ABSOLUTE:
        return m.window[0], m.window[1]
    if is_declared(told, m):
        return m.window[0] - m.half, m.window[1] + m.half
    return 0, told.n_residuals - 1


@inlined
def is_declared(told: Mechanics, m: Offsets) -> bool:
    """Whether W has a range, so that residuals outside of it tell of an offset."""
    declared: bool = m.window[1] - m.window[0] + 2 * m.half < told.n_residuals
    return declared


@inlined
def log_mixture(m: Offsets, row: int, first: int, last: int, total: float) -> float:
    """Logarithm of what a Dirichlet of weights 1/2 makes of the pool of one law."""
    k = last - first + 1
    found = log_gamma(k / 2) - log_gamma(total + k / 2)
    for w in range(first, last + 1):
        found += log_gamma(m.pool[row, w] + 0.5) - log_gamma(0.5)
    return found


@compiled
def look_at_all(told: Mechanics, m: Offsets) -> None:
    """Every pair that is in doubt, called from Python."""
    for pair in range(len(m.certain)):
        if m.certain[pair] < 0:
            look(told, m, pair)
