"""The best action in each of many states, by what pairs are worth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ucbf.large import LargeSystem, Rows

Worth = Callable[[Rows, Rows], NDArray[np.float64]]  # of states [N, d] and actions [N, m]

ALL_TRIED = 8  # so many actions, or fewer, are all tried
HALVINGS = 5  # of the steps by which continuous actions are moved
MOVES = 60  # at most so many


def best_actions(
    system: LargeSystem, h: int, s: Rows, a: Rows, worth: Worth, all_tried: int = ALL_TRIED
) -> tuple[Rows, NDArray[np.float64]]:
    """[N, m] the best actions that were found in states [N, d], and what they are worth [N].

    Few actions are all tried. Of many, those near the given ones [N, m] are, and near the best of these, and so on
    until none is better; and then the first of all, which does nothing in most systems. Continuous actions are moved
    by steps that are halved.
    """
    if system.continuous:
        return _moved(system, h, s, a, worth)
    if len(system.actions) <= all_tried:
        near = np.broadcast_to(np.arange(len(system.actions)), (len(s), len(system.actions)))
        found, value = _best_of(system, h, s, near, worth)
        return system.actions[found], value
    index = system.at_most(a)
    found, value = _best_of(system, h, s, system.neighbours[index], worth)
    moving = np.flatnonzero(found != index)
    for _ in range(MOVES):
        if not len(moving):
            break
        there, better = _best_of(system, h, s[moving], system.neighbours[found[moving]][:, 1:], worth)
        gains = better > value[moving]
        moving, there, better = moving[gains], there[gains], better[gains]
        found[moving], value[moving] = there, better
    first, at_first = _best_of(system, h, s, np.zeros((len(s), 1), np.int64), worth)
    return system.actions[np.where(at_first > value, first, found)], np.maximum(value, at_first)


def _best_of(
    system: LargeSystem, h: int, s: Rows, near: NDArray[np.int64], worth: Worth
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """[N] the best of the actions numbered near [N, B], and what it is worth [N]; -inf where none exists."""
    n, B = near.shape
    rows, a = np.repeat(s, B, axis=0), system.actions[near.ravel()]
    exists = system.allows(h, rows, a)
    value = np.full(n * B, -np.inf)
    value[exists] = worth(rows[exists], a[exists])
    best = value.reshape(n, B).argmax(axis=1)
    return near[np.arange(n), best], value.reshape(n, B)[np.arange(n), best]


def _moved(system: LargeSystem, h: int, s: Rows, a: Rows, worth: Worth) -> tuple[Rows, NDArray[np.float64]]:
    """The same for continuous actions: from those given, part by part, in ever smaller steps."""
    low, high, m = system.action_low, system.action_high, system.n_parts
    here, value = np.array(a, float), worth(s, a)
    moves = np.concatenate([np.eye(m), -np.eye(m)])
    size = (high - low) / 16
    for _ in range(HALVINGS):
        moving = np.arange(len(s))
        for _ in range(MOVES):
            tried = np.clip(here[moving, None, :] + moves * size, low, high)
            worths = worth(np.repeat(s[moving], len(moves), axis=0), tried.reshape(-1, m)).reshape(len(moving), -1)
            best = worths.argmax(axis=1)
            gain = worths[np.arange(len(moving)), best] > value[moving]
            at = moving[gain]
            here[at] = tried[np.arange(len(moving)), best][gain]
            value[at] = worths[np.arange(len(moving)), best][gain]
            moving = at
            if not len(moving):
                break
        size = size / 2
    return here, value
