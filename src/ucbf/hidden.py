"""What a next state says of a W that the boundary hides: the set of disturbances that lead there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import frozen
from ucbf.kernels.types import Ints, Mechanics
from ucbf.mechanics import raw_starts

AT_ONCE = 2**22  # comparisons of next states
LARGEST = 2**26  # after-states times disturbances squared, that are compared in all


class HiddenSets(NamedTuple):
    """The sets of two or more disturbances that lead from one after-state to one state. M of them."""

    which: NDArray[np.int32]  # [X, R] the set that a disturbance, moving an after-state, belongs to; -1 where alone
    begins: Ints  # [M + 1] where each set begins in members
    members: Ints  # indices of disturbances, set by set


def tells_bounds(m: Mechanics) -> bool:
    """Whether all that the boundary hides of W, on one axis, is that it was at most, or at least, something."""
    for _, led in _next_states(m, AT_ONCE // m.n_residuals):
        same = led[:, 1:] == led[:, :-1]
        below, above = np.cumprod(same, axis=1), np.cumprod(same[:, ::-1], axis=1)[:, ::-1]
        if (same & ~(below | above).astype(bool)).any():
            return False
        ordered = np.sort(led, axis=1)
        if ((ordered[:, 1:] == ordered[:, :-1]).sum(axis=1) != same.sum(axis=1)).any():  # the same again later
            return False
    return True


def hidden_sets(m: Mechanics) -> HiddenSets | None:
    """The sets of disturbances that a next state does not tell apart; None if there are none, or too many to list."""
    R = m.n_residuals
    if m.n_after * R * R > LARGEST:
        return None
    which, found = np.full((m.n_after, R), -1, np.int32), dict[bytes, int]()
    for x, led in _next_states(m, AT_ONCE // R**2):
        alike = led[:, :, None] == led[:, None, :]  # [x, R, R] row j: those that lead where j does
        several = alike.sum(axis=2) > 1
        rows, back = np.unique(np.packbits(alike[several], axis=1), axis=0, return_inverse=True)
        numbers = np.array([found.setdefault(row.tobytes(), len(found)) for row in rows], np.int32)
        part = np.full(several.shape, -1, np.int32)
        part[several] = numbers[back.ravel()]
        which[x] = part
    if not found:
        return None
    sets = [np.flatnonzero(np.unpackbits(np.frombuffer(row, np.uint8), count=R)) for row in found]
    begins = np.cumsum([0] + [len(one) for one in sets])
    return HiddenSets(frozen(which), frozen(begins), frozen(np.concatenate(sets)))


def _next_states(m: Mechanics, rows: int) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """The after-states that actions lead to, block by block, and [x, R] the state that each disturbance leads to."""
    after = np.unique(m.after[:, np.isfinite(m.reward).any(axis=0)])
    begins = raw_starts(m)
    for i in range(0, len(after), max(1, rows)):
        x = after[i : i + max(1, rows)]
        yield x, m.next_state[begins[x, None] + m.offsets]
