"""Parts of an induction over a large system, for threads that share it: the same sums in the same order.

Arrays of one step: after, reward [S, A], ahead [1, X]. Every thread takes a share of the states or of the after-states,
so that the bits do not depend on how many there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.backward import BLOCK, add_run
from ucbf.kernels.jit import compiled, inlined, unsigned
from ucbf.kernels.types import Floats, Ints

CHUNK = 4096  # after-states that a thread takes at a time, with what W reaches from them
After = NDArray[np.int32]


@compiled
def expect_part(
    rows: Ints, length: int, stride: int, moves: Ints, law: Floats, raw: Floats, ahead: Floats, part: int, parts: int
) -> None:
    """ahead[0, x] = Σ_i law[i] raw[x + moves[i]] for the after-states x of one part of ``parts``.

    rows, length, stride: as of :class:`ucbf.kernels.types.Mechanics`; law, moves: [n]; raw: [Z]
    """
    near = stride < BLOCK
    chunk, span = (CHUNK, length) if near else (BLOCK, stride)
    chunks = (span + chunk - 1) // chunk
    for c in range(part, len(rows) * chunks, parts):
        k, t = c // chunks, c % chunks * chunk
        block = unsigned(min(chunk, span - t))
        for y in range(1 if near else length // stride):
            first = unsigned(y * stride + t)
            at = unsigned(k * length) + first
            for x in range(block):
                ahead[0, at + x] = 0
            for i in range(len(moves)):
                if law[i] > 0:
                    add_run(ahead, 0, at, raw, unsigned(rows[k] + moves[i]) + first, block, law[i])


@inlined
def scan(after: After, reward: Floats, ahead: Floats, s: int) -> tuple[float, int]:
    """The largest reward + what follows, over the actions of a state; ties go to the lowest."""
    best, best_a = -np.inf, 0
    for a in range(after.shape[1]):
        q = reward[s, a] + ahead[0, unsigned(after[s, a])]
        if q > best:
            best, best_a = q, a
    return best, best_a


@compiled
def best_part(
    after: After, reward: Floats, ahead: Floats, slack: float, value: Floats, policy: Ints, first: int, last: int
) -> bool:
    """V(s) and its policy, both [S], for the states first .. last - 1; whether the policy changed.

    slack: what is within it of the best is taken to tie with it; 0 where sums are exact
    """
    changed = False
    for s in range(first, last):
        best, best_a = scan(after, reward, ahead, s)
        if slack > 0:
            best_a = 0
            while reward[s, best_a] + ahead[0, unsigned(after[s, best_a])] < best - slack:
                best_a += 1
        value[s] = best + 0.0
        changed |= policy[s] != best_a
        policy[s] = best_a
    return changed


@compiled
def range_part(after: After, reward: Floats, least: Floats, most: Floats, first: int, last: int) -> tuple[float, float]:
    """The smallest reward + least and the largest reward + most, of the pairs that exist. least, most: [X]."""
    low, high = np.inf, -np.inf
    for s in range(first, last):
        for a in range(after.shape[1]):
            if reward[s, a] > -np.inf:
                x = unsigned(after[s, a])
                low, high = min(low, reward[s, a] + least[x]), max(high, reward[s, a] + most[x])
    return low, high


@compiled
def orders_of(after: After, reward: Floats, count: Ints) -> tuple[float, float, float]:
    """Whether action a raises the after-state by a, for a reward linear in a but for action 0; NaN if not.

    So that the actions of a state reach a window of after-states, and windows move up with the state. Returned are
    the slope of the reward, by how much it departs from a line, and the largest reward.
    count: [S] how many actions exist, the first ones; filled
    """
    S, A = after.shape
    longest, largest, before = 0, 0.0, -1
    for s in range(S):
        n = 0
        while n < A and reward[s, n] > -np.inf and after[s, n] == after[s, 0] + n:
            largest = max(largest, abs(reward[s, n]))
            n += 1
        for a in range(n, A):
            if reward[s, a] > -np.inf:
                return np.nan, 0.0, 0.0
        end = after[s, 0] + n
        if n == 0 or end < before or (s > 0 and after[s, 0] < after[s - 1, 0]):
            return np.nan, 0.0, 0.0
        count[s], before = n, end
        longest = s if n > count[longest] else longest
    n, slope, apart = count[longest], 0.0, 0.0
    if n > 2:
        slope = (reward[longest, n - 1] - reward[longest, 1]) / (n - 2)
    for s in range(S):
        for a in range(2, count[s]):
            apart = max(apart, abs(reward[s, a] - reward[s, 1] - slope * (a - 1)))
    return slope, apart, largest


@compiled
def slide(
    after: After,
    reward: Floats,
    ahead: Floats,
    lows: Ints,
    first: Floats,
    count: Ints,
    slope: float,
    doubt: float,
    room: Floats,
    queue: Ints,
    value: Floats,
    policy: Ints,
) -> bool:
    """As :func:`best_part` for all states, where :func:`orders_of` found a line: what follows x, and the line there.

    The largest of a window is the first of a queue from which what a later one exceeds was taken out. Where another is
    within ``doubt`` of it, rounding decides, and all actions of the state are compared as ever: the same bits.
    lows, first: [S] the after-state and the reward of action 0
    room: [2, X] of which row 1 is the largest that an after-state took out of the queue; queue: [X]
    """
    changed, head, tail, x = False, 0, 0, 0
    for s in range(after.shape[0]):
        low = lows[s]
        x = max(x, low + 1)
        while x < low + count[s]:
            room[0, x], room[1, x] = ahead[0, x] + slope * x, -np.inf
            while tail > head and room[0, queue[tail - 1]] < room[0, x]:
                tail -= 1
                room[1, x] = max(room[1, x], max(room[0, queue[tail]], room[1, queue[tail]]))
            queue[tail] = x
            tail += 1
            x += 1
        while head < tail and queue[head] <= low:
            head += 1
        best, best_a = first[s] + ahead[0, low], 0
        if count[s] > 1:
            top = queue[head]
            near = room[0, top] - doubt
            if room[1, top] >= near or (head + 1 < tail and room[0, queue[head + 1]] >= near):
                best, best_a = scan(after, reward, ahead, s)
            elif reward[s, top - low] + ahead[0, top] > best:
                best, best_a = reward[s, top - low] + ahead[0, top], top - low
        value[s] = best + 0.0
        changed |= policy[s] != best_a
        policy[s] = best_a
    return changed
