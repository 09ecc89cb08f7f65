"""The best action in each of many states, by what pairs are worth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ucbf.large import LargeSystem, Rows

Worth = Callable[[Rows, Rows], NDArray[np.float64]]  # of states [N, d] and actions [N, m]

SOME = 8  # of all actions, evenly spread
HALVINGS = 5  # of the steps by which continuous actions are moved
MOVES = 60  # at most so many


def best_actions(
    system: LargeSystem, h: int, s: Rows, a: Rows, worth: Worth, all_tried: int = 0
) -> tuple[Rows, NDArray[np.float64]]:
    """[N, m] the best actions that were found in states [N, d], and what they are worth [N].

    Actions that may be kinds are all tried, and so are ``all_tried`` or fewer. Of many, those near the given ones
    [N, m] are, and near the best of these, and so on until none is better; and the first of all, which does nothing in
    most systems. Where that is best, or was given, what is worth doing may be far away: some of all are tried, and from
    the best of them on. Continuous actions are moved by steps that are halved.
    """
    if system.continuous:
        return _moved(system, h, s, a, worth)
    A, n = len(system.actions), len(s)
    if system.may_be_kinds or all_tried >= A:
        found, value = _best_of(system, h, s, np.broadcast_to(np.arange(A), (n, A)), worth)
        return system.actions[found], value
    index = system.at_most(a)
    found, value = _best_of(system, h, s, system.neighbours[index], worth)
    found, value = _climbed(system, h, s, found, value, worth, np.flatnonzero(found != index))
    first, at_first = _best_of(system, h, s, np.zeros((n, 1), np.int64), worth)
    found, value = np.where(at_first > value, first, found), np.maximum(value, at_first)
    idle = np.flatnonzero(found == 0)
    if len(idle):
        some = np.broadcast_to(np.linspace(0, A - 1, SOME + 1).astype(np.int64)[1:], (len(idle), SOME))
        there, better = _best_of(system, h, s[idle], some, worth)
        there, better = _climbed(system, h, s[idle], there, better, worth, np.arange(len(idle)))
        gains = better > value[idle]
        found[idle[gains]], value[idle[gains]] = there[gains], better[gains]
    return system.actions[found], value


def _climbed(
    system: LargeSystem,
    h: int,
    s: Rows,
    found: NDArray[np.int64],
    value: NDArray[np.float64],
    worth: Worth,
    moving: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """[N] the numbers of the actions that are reached from those found by going to the best nearby, and their worth.

    moving: the rows in which there may be better ones nearby
    """
    found, value = np.array(found), np.array(value)
    for _ in range(MOVES):
        if not len(moving):
            break
        there, better = _best_of(system, h, s[moving], system.neighbours[found[moving]][:, 1:], worth)
        gains = better > value[moving]
        moving, there, better = moving[gains], there[gains], better[gains]
        found[moving], value[moving] = there, better
    return found, value


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
