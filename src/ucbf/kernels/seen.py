"""What a transition says of the disturbance, and where a boundary hides it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.jit import inlined
from ucbf.kernels.types import CLIP, WRAP, Mechanics


@inlined
def is_edge(told: Mechanics, s_next: int) -> bool:
    """Whether state index s_next may hide the disturbance that led to it."""
    return told.boundary == CLIP and (s_next == 0 or s_next == told.after.shape[1] - 1)


@inlined
def residual(told: Mechanics, h: int, s: int, a: int, s_next: int, measured: int) -> int:
    """The disturbance that explains s, a -> s_next, as an index.

    The transition is believed wherever it determines W; ``measured`` serves at the two edges of a clipped space.
    """
    return measured if is_edge(told, s_next) else residual_of(told, told.after, h, s, a, s_next)


@inlined
def residual_of(told: Mechanics, after: NDArray[np.int32], h: int, s: int, a: int, s_next: int) -> int:
    """s_next less the after-state that ``after`` [F, S, A] gives, as the index of a disturbance."""
    j: int = s_next + told.shift - after[h % len(after), s, a]
    return j % told.after.shape[1] if told.boundary == WRAP else j


@inlined
def as_seen(told: Mechanics, h: int, s: int, a: int, s_next: int, measured: int, hidden: bool) -> int:
    """:func:`residual`, or ~j where an edge hides it and says only that it was at most (at least, above) j."""
    if not (hidden and is_edge(told, s_next)):
        return residual(told, h, s, a, s_next, measured)
    last = told.n_residuals - 1
    j = min(max(residual_of(told, told.after, h, s, a, s_next), 0), last)
    if told.after.shape[1] == 1:  # an edge on both sides says nothing
        return ~last
    pinned = j == 0 if s_next == 0 else j == last
    return j if pinned else ~j
