"""Induction over large systems: by all cores, by Fourier transforms where W is wide, by sliding maxima where f = s + a.

Threads share the states of a step, and sliding maxima compare as ever where rounding could matter: both give the bits
of :func:`ucbf.kernels.backward.induction`. Fourier transforms round otherwise, by about 1e-15 of the largest value, so
that actions within ``SLACK`` of the best tie, and the lowest is taken.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ucbf.kernels import wide
from ucbf.kernels.backward import SPARSE
from ucbf.kernels.types import Mechanics

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LARGE = 2**22  # pairs, and after-states times disturbances, of one step: from here on it pays to call Python
FOURIER = 512  # disturbances, from the first that occurs to the last
SLACK = 1e-12  # of how far values are apart
MANY = 16  # actions, from which on sliding maxima pay
ROUNDING = 64 * float(np.finfo(np.float64).eps)


def is_large(m: Mechanics, moves: Ints) -> bool:
    """Whether a step has so much to do that it is done here: f as told, on whole axes, without contexts.

    moves: [n] how far each disturbance moves
    """
    work = m.after.shape[1] * m.after.shape[2] + m.n_after * len(moves)
    return work >= LARGE and len(m.corners) == 1 and m.n_contexts == 1


def by_fourier(m: Mechanics, moves: Ints) -> bool:
    """Whether W is so wide that its sums are found by Fourier transforms."""
    return len(m.rows) == 1 and m.stride == 1 and int(moves.max() - moves.min()) >= FOURIER


class Large:
    """A system in which steps are valued one by one, from Python, by several threads.

    Parameters
    ----------
    moves
        [n] how far each disturbance moves among the raw next states.
    law
        [L, n] their probabilities.
    """

    def __init__(self, m: Mechanics, moves: Ints, law: Floats) -> None:
        self.m, self.moves, self.law = m, moves, law
        self.fourier = by_fourier(m, moves)
        self.best = Best(m)

    def induction(self, value: Floats, ahead: Floats, policy: Ints, raw: Floats) -> int:
        """Backward induction: :func:`ucbf.kernels.backward.induction`; the last step whose policy changed, or -1."""
        top = -1
        for h in range(self.m.horizon - 1, -1, -1):
            self.expect(h, value[h + 1], raw, ahead[h : h + 1])
            slack = SLACK * float(np.ptp(raw)) if self.fourier else 0.0
            if self.best(h, ahead[h : h + 1], value[h], policy[h], slack) and top < 0:
                top = h
        return top

    def evaluate(self, policy: Ints, v: Floats, raw: Floats, ahead: Floats, top: int) -> None:
        """Values of ``policy`` at steps top..0: :func:`ucbf.kernels.backward.evaluate`. ahead: [1, X] room."""
        m, each = self.m, np.arange(v.shape[1])
        for h in range(top, -1, -1):
            self.expect(h, v[h + 1], raw, ahead)
            after, reward = (table[min(h, len(table) - 1)] for table in (m.after, m.reward))
            v[h] = reward[each, policy[h]] + ahead[0, after[each, policy[h]]]

    def expect(self, h: int, following: Floats, raw: Floats, ahead: Floats) -> None:
        """ahead[0] = E[landing + γ V(next state)] of every after-state: :func:`ucbf.kernels.backward.expect`.

        following: [S]; ahead: [1, X]; raw: [Z] room
        """
        m, law = self.m, self.law[min(h, len(self.law) - 1)]
        np.take(following, m.next_state, out=raw, mode="clip")
        raw *= m.discount
        raw += m.landing[min(h, len(m.landing) - 1)]
        if self.fourier:
            self._transform(law, raw, ahead[0])
            return
        n = threads()
        shared(lambda i: wide.expect_part(m.rows, m.length, m.stride, self.moves, law, raw, ahead, i, n), n)

    def _transform(self, law: Floats, raw: Floats, ahead: Floats) -> None:
        """The same by Fourier transforms of pieces that overlap, of numbers about 0.

        By numpy: what scipy has for it takes a second to import.
        """
        first, last = int(self.moves.min()), int(self.moves.max())
        weights, middle = np.zeros(last - first + 1), 0.5 * (float(raw.max()) + float(raw.min()))
        weights[last - self.moves] = law
        size = piece_length(len(ahead), len(weights))
        step = size - len(weights) + 1  # of a piece, the first entries are mixed with its last ones
        pieces = np.zeros((-(-len(ahead) // step) - 1) * step + size)
        pieces[: len(ahead) + last - first] = raw[first : len(ahead) + last] - middle
        found = np.fft.rfft(sliding_window_view(pieces, size)[::step]) * np.fft.rfft(weights, size)
        ahead[...] = np.fft.irfft(found, size)[:, len(weights) - 1 :].ravel()[: len(ahead)]
        ahead += middle


def piece_length(n: int, weights: int) -> int:
    """How long the pieces are in which sums of so many weights at n places are found most quickly: 2^i or 3 2^i."""
    lengths = [factor << i for factor in (2, 3) for i in range(1 + (n + weights).bit_length())]
    able = [size for size in lengths if size >= weights]
    return min(able, key=lambda size: -(-n // (size - weights + 1)) * size * math.log2(size))


class Best:
    """The best actions of every state, of one step after the other."""

    def __init__(self, m: Mechanics) -> None:
        self.m, self.rows = m, (-1, -1)
        self.count = np.empty(m.after.shape[1], np.int64)
        self.first: Any = None  # [S] twice: the after-state and the reward of action 0
        self.room: Any = None  # [2, X] and [X]
        self.slope = self.apart = self.largest = np.nan

    def __call__(self, h: int, ahead: Floats, value: Floats, policy: Ints, slack: float = 0.0) -> bool:
        """Fill the values and the policy, [S] each, given what follows after-states [1, X]; whether it changed.

        slack: what is within it of the best is taken to tie with it
        """
        m = self.m
        rows = min(h, len(m.after) - 1), min(h, len(m.reward) - 1)
        after, reward = m.after[rows[0]], m.reward[rows[1]]
        if rows != self.rows:
            self.rows = rows
            self._look(after, reward)
        if slack == 0 and not np.isnan(self.slope):
            most = self.largest + max(-float(ahead.min()), float(ahead.max())) + abs(self.slope) * m.n_after
            doubt = 2 * self.apart + ROUNDING * most
            (lows, first), (room, queue), line = self.first, self.room, (self.count, self.slope, doubt)
            return bool(wide.slide(after, reward, ahead, lows, first, *line, room, queue, value, policy))
        ends = parts_of(len(value))
        found = shared(
            lambda i: wide.best_part(after, reward, ahead, slack, value, policy, ends[i], ends[i + 1]), len(ends) - 1
        )
        return any(found)

    def _look(self, after: NDArray[np.int32], reward: Floats) -> None:
        """Whether the actions are orders whose costs are linear, but for rounding."""
        self.slope = np.nan
        if after.shape[1] < MANY:
            return
        slope, apart, largest = wide.orders_of(after, reward, self.count)
        if apart <= ROUNDING * (largest + abs(slope) * after.shape[1]):
            self.slope, self.apart, self.largest = slope, apart, largest
            self.first = after[:, 0].astype(np.int64), np.array(reward[:, 0])
            if self.room is None:
                self.room = np.empty((2, self.m.n_after)), np.empty(self.m.n_after, np.int64)


def ranges(m: Mechanics, h: int, least: Floats, most: Floats) -> tuple[float, float]:
    """The smallest reward + least and the largest reward + most of step h, over the pairs. least, most: [X]."""
    after, reward = (table[h % len(table)] for table in (m.after, m.reward))
    ends = parts_of(len(after))
    found = shared(lambda i: wide.range_part(after, reward, least, most, ends[i], ends[i + 1]), len(ends) - 1)
    return min(low for low, _ in found), max(high for _, high in found)


def is_sparse(m: Mechanics) -> bool:
    """Whether a policy is valued more quickly by what it leads to alone: :func:`ucbf.kernels.backward.follow`."""
    return bool(m.n_after >= SPARSE * m.after.shape[1])


def threads() -> int:
    """How many share the work of a step."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parts_of(n: int) -> list[int]:
    """Where the parts of n states begin, and end."""
    return [n * i // threads() for i in range(threads() + 1)]


def shared(work: Callable[[int], Any], n: int) -> list[Any]:
    """What each of n parts gives, by a thread each."""
    if n == 1:
        return [work(0)]
    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(work, range(n)))
