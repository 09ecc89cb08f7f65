"""What a transition says of the disturbance: the one place that knows where a boundary censors it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.jit import inlined
from ucbf.kernels.types import Mechanics


class Seen(NamedTuple):
    """One transition between state indices, and what it says of W: that its index lies in low..high.

    Exact where low = high. Elsewhere a boundary censored it: W was at most ``high`` at the lower one (next state 0), at
    least ``low`` at the upper one.
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
    j = residual_of(told, told.after, h, s, a, s_next)
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
def nearest(seen: Seen) -> int:
    """W, or where it is censored the nearest that explains the transition."""
    return seen.high if seen.s_next == 0 else seen.low


@inlined
def residual_of(told: Mechanics, after: NDArray[np.int32], h: int, s: int, a: int, s_next: int) -> int:
    """s_next less the after-state that ``after`` [F, S, A] gives, as the index of a disturbance."""
    j: int = s_next + told.shift - after[h % len(after), s, a]
    return j % told.after.shape[1] if told.wraps else j
