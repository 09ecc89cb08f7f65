"""What a transition says of the disturbance: the one place that knows where a boundary censors it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.jit import inlined
from ucbf.kernels.types import Mechanics


class Seen(NamedTuple):
    """One transition between state indices, and what it says of W: that its index lies in low..high.

    Exact where low = high. Elsewhere the boundary of a line censored it: W <= high at the lower boundary (next state
    0), W >= low at the upper one. A disturbance between bins is named by the first of them.
    """

    h: int
    s: int
    a: int
    s_next: int
    low: int
    high: int


@inlined
def explain(told: Mechanics, h: int, s: int, a: int, s_next: int, measured: int, censored: bool) -> Seen:
    """What s, a -> s_next says of W.

    The transition is believed wherever it determines W. At a boundary that hides W, ``measured`` serves, its index, or
    else, if ``censored``, the bounds that the next state gives.
    """
    if told.searches:
        if censored:
            return find_bounds(told, h, s, a, s_next, measured)
        j = find_residual(told, h, s, a, s_next, measured)
        return Seen(h, s, a, s_next, j, j)
    return explain_residual(told, h, s, a, s_next, residual_of(told, told.after, h, s, a, s_next), measured, censored)


@inlined
def explain_residual(
    told: Mechanics, h: int, s: int, a: int, s_next: int, j: int, measured: int, censored: bool
) -> Seen:
    """On a line: what residual j says of W."""
    if not told.hides[s_next]:
        return Seen(h, s, a, s_next, j, j)
    if not censored:
        return Seen(h, s, a, s_next, measured, measured)
    last = told.n_residuals - 1
    j = min(max(j, 0), last)
    if told.after.shape[1] == 1:  # a boundary on both sides says nothing
        return Seen(h, s, a, s_next, 0, last)
    if s_next == 0:
        return Seen(h, s, a, s_next, 0, j)
    return Seen(h, s, a, s_next, j, last)


@inlined
def nearest(told: Mechanics, seen: Seen) -> int:
    """W, or where it is censored the nearest that explains the transition."""
    return seen.high if (seen.low == 0 if told.searches else seen.s_next == 0) else seen.low


@inlined
def residual_of(told: Mechanics, after: NDArray[np.int32], h: int, s: int, a: int, s_next: int) -> int:
    """On a line: s_next less the after-state that ``after`` [F, S, A] gives, as the index of a disturbance."""
    j: int = s_next + told.shift - after[min(h, len(after) - 1), s, a]
    return j % told.after.shape[1] if told.wraps else j


@inlined
def find_residual(told: Mechanics, h: int, s: int, a: int, s_next: int, measured: int) -> int:
    """The disturbance that leads to s_next: ``measured`` if it does, else the first that does, or else ``measured``."""
    z = raw_of(told, told.after[min(h, len(told.after) - 1), s, a])
    if told.next_state[z + told.offsets[measured]] == s_next:
        return measured
    for j in range(told.n_residuals):
        if told.next_state[z + told.offsets[j]] == s_next:
            return j
    return measured


@inlined
def find_bounds(told: Mechanics, h: int, s: int, a: int, s_next: int, measured: int) -> Seen:
    """The first and the last disturbance that lead to s_next; ``measured``, if none does."""
    z, low, high = raw_of(told, told.after[min(h, len(told.after) - 1), s, a]), -1, -1
    for j in range(told.n_residuals):
        if told.next_state[z + told.offsets[j]] == s_next:
            low, high = j if low < 0 else low, j
    return Seen(h, s, a, s_next, low if low >= 0 else measured, high if low >= 0 else measured)


@inlined
def raw_of(m: Mechanics, x: int) -> int:
    """The index of an after-state among the raw next states, before the disturbance moves it."""
    if m.n_after == m.length:
        return x
    row: int = m.rows[x // m.length % len(m.rows)]
    return row + x % m.length


@inlined
def landed(told: Mechanics, h: int, s: int, a: int, j: int) -> float:
    """The landing reward of a pair and a disturbance."""
    j = min(max(j, 0), told.n_residuals - 1)  # it may be any where nothing is paid
    z = raw_of(told, told.after[min(h, len(told.after) - 1), s, a]) + told.offsets[j]
    paid: float = told.landing[min(h, len(told.landing) - 1), z]
    return paid


@inlined
def context_of(told: Mechanics, s: int) -> int:
    """The context of a state index."""
    return s // told.n_states if told.n_contexts > 1 else 0


@inlined
def row_of(m: Mechanics, rows: int, h: int, e: int) -> int:
    """Which row of a table of distributions is that of step h and context e; steps may share one."""
    return h * m.n_contexts + e if rows > m.n_contexts else e
