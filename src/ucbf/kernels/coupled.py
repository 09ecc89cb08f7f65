"""Two policies side by side, under the same disturbances: how far the best one can be ahead of a given one.

D_h(s, s') is at least V*_h(s) - V^π_h(s'), and the same w moves both sides (:mod:`ucbf.coupling`). It is needed at the
pairs of states that can be reached from equal ones only, which are listed in the order in which they are found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ucbf.kernels.jit import compiled, inner
from ucbf.kernels.seen import context_of, raw_of, row_of
from ucbf.kernels.types import Floats, Ints, Mechanics

STEPS = 12  # of Newton's method, at most; fewer than four are usual
CLOSE = 1e-3  # of what a bound adds to the mean


class Pairs(NamedTuple):
    """Pairs (s, s') of states, and where to find them."""

    first: Ints  # [N] s
    second: Ints  # [N] s'
    sizes: Ints  # [H] how many of them, the first ones, matter at each step
    keys: Ints  # [a power of 2] s S + s', or -1 where there is none: open addressing
    at: Ints  # and the place in the list


class Room(NamedTuple):
    """Room to sort the pairs in: by s', and those by the after-state y that π leads to from them."""

    begins: Ints  # [S + 1]
    by_second: Ints  # [N]
    head: Ints  # [X] the first s' of an after-state; -1: none
    after_it: Ints  # [S] the next one
    seen: Ints  # [X] the last y that an after-state x was looked at with
    ahead: Floats  # [X] what follows x, with that y
    d: Floats  # [n] what follows, by the disturbance


class Chances(NamedTuple):
    """What is known of W: the shares of what was seen, and how far the chances may be from them."""

    moves: Ints  # [n] how far each disturbance that may occur moves, among the raw next states
    shares: Floats  # [L, n]
    radius: Floats  # [L] of a ball: KL(shares, chances) is at most that
    kappa: float  # 0: over the ball; else what a unit of KL costs instead
    price: float  # λ: κ over the number of samples
    guesses: int  # how many ν are tried, with kappa
    toll: Floats  # [H, S] what each step adds at s'


@compiled
def reach(m: Mechanics, policy: Ints, moves: Ints, pairs: Pairs, room: Room, work: int) -> int:
    """List the pairs reachable from the diagonal; how much work a sweep over them is, or -1 if more than ``work``.

    policy: [H, S]; moves: [n] as of :class:`Chances`; also -1 if the pairs are more than there is room for
    """
    S, spent, n = m.after.shape[1], 0, 0
    room.seen[:] = -1
    for s in range(S):
        n = listed(pairs, S, s, s, n)
    t, settled = 0, 0
    while settled < m.horizon and (m.endless or t < m.horizon):
        h, known = t % m.horizon, n
        spent = 0 if h == 0 else spent
        pairs.sizes[h] = n
        group(m, policy, h, pairs, room, n)
        for y in range(m.n_after):
            s2 = room.head[y]
            while s2 >= 0:
                for i in range(room.begins[s2], room.begins[s2 + 1]):
                    s = pairs.first[room.by_second[i]]
                    for a in range(m.after.shape[2]):
                        x = m.after[h % len(m.after), s, a]
                        if m.reward[h % len(m.reward), s, a] == -np.inf or room.seen[x] == y:
                            continue
                        room.seen[x] = y
                        spent += len(moves)
                        if spent > work:
                            return -1
                        if m.endless or t < m.horizon - 1:
                            n = followed(m, moves, x, y, S, pairs, n)
                            if n < 0:
                                return -1
                s2 = room.after_it[s2]
        room.seen[:] = -1
        settled, t = settled + 1 if m.endless and n == known else 0, t + 1
    if m.endless:
        pairs.sizes[:] = n
    return spent


@inner
def followed(m: Mechanics, moves: Ints, x: int, y: int, S: int, pairs: Pairs, n: int) -> int:
    """List the pairs that after-states x, y lead to; n as of :func:`listed`."""
    zx, zy = raw_of(m, x), raw_of(m, y)
    for j in range(len(moves)):
        n = listed(pairs, S, m.next_state[zx + moves[j]], m.next_state[zy + moves[j]], n)
        if n < 0:
            return n
    return n


@inner
def listed(pairs: Pairs, S: int, s: int, s2: int, n: int) -> int:
    """List a pair of states unless it is; how many there are, or -1 where there is no room."""
    i = place(pairs, s * S + s2)
    if pairs.keys[i] < 0:
        if n == len(pairs.first):
            return -1
        pairs.keys[i], pairs.at[i], pairs.first[n], pairs.second[n] = s * S + s2, n, s, s2
        n += 1
    return n


@inner
def place(pairs: Pairs, key: int) -> int:
    """Where a pair of states is among the keys, or would be."""
    last = len(pairs.keys) - 1
    i = key & last
    while pairs.keys[i] >= 0 and pairs.keys[i] != key:
        i = (i + 1) & last
    return i


@inner
def group(m: Mechanics, policy: Ints, h: int, pairs: Pairs, room: Room, n: int) -> None:
    """Sort the first n pairs by s', and the s' by the after-state that ``policy`` leads to."""
    S = m.after.shape[1]
    room.begins[:] = 0
    for i in range(n):
        room.begins[pairs.second[i] + 1] += 1
    for s in range(S):
        room.begins[s + 1] += room.begins[s]
    for i in range(n - 1, -1, -1):
        s = pairs.second[i]
        room.begins[s + 1] -= 1
        room.by_second[room.begins[s + 1]] = i
    for s in range(S):
        room.begins[s] = room.begins[s + 1]
    room.begins[S] = n
    room.head[:] = -1
    for s in range(S - 1, -1, -1):
        y = m.after[h % len(m.after), s, policy[h, s]]
        room.after_it[s], room.head[y] = room.head[y], s


@compiled
def sweep(m: Mechanics, policy: Ints, chances: Chances, pairs: Pairs, room: Room, value: Floats, ahead: Floats) -> None:
    """D of the first step, given that after the last one: from the last step to the first.

    value: [N] D where there is no end; where there is one the terminal rewards count, and it is only filled
    ahead: [N] room
    """
    for h in range(m.horizon - 1, -1, -1):
        for i in range(len(value)):
            ahead[i] = value[i]
        step_back(m, policy, chances, pairs, room, h, ahead, value)


@inner
def step_back(
    m: Mechanics, policy: Ints, chances: Chances, pairs: Pairs, room: Room, h: int, after: Floats, value: Floats
) -> None:
    """D_h(s, s') = max_a r(s, a) - r(s', π(s')) + the most that the mean of what follows may be.

    after, value: [N] D_{h+1} and D_h
    """
    n, r, f = pairs.sizes[h], h % len(m.reward), h % len(m.after)
    group(m, policy, h, pairs, room, n)
    for y in range(m.n_after):
        s2 = room.head[y]
        while s2 >= 0:
            paid = m.reward[r, s2, policy[h, s2]] - chances.toll[h, s2]
            for i in range(room.begins[s2], room.begins[s2 + 1]):
                k = room.by_second[i]
                s, best = pairs.first[k], -np.inf
                for a in range(m.after.shape[2]):
                    if m.reward[r, s, a] == -np.inf:
                        continue
                    x = m.after[f, s, a]
                    if room.seen[x] != y:
                        room.seen[x] = y
                        row = row_of(m, len(chances.shares), h, context_of(m, s))
                        room.ahead[x] = most(m, chances, pairs, room, h, row, x, y, after)
                    best = max(best, m.reward[r, s, a] + room.ahead[x])
                value[k] = best - paid
            s2 = room.after_it[s2]
    room.seen[:] = -1


@inner
def most(
    m: Mechanics, chances: Chances, pairs: Pairs, room: Room, h: int, row: int, x: int, y: int, after: Floats
) -> float:
    """The most that the mean of what follows after-states x, y may be: landing(x + w) - landing(y + w) + γ D_{h+1}."""
    S, d, zx, zy = m.after.shape[1], room.d, raw_of(m, x), raw_of(m, y)
    last, top, bottom, i = not m.endless and h == m.horizon - 1, -np.inf, np.inf, h % len(m.landing)
    for j in range(len(d)):
        s, s2 = m.next_state[zx + chances.moves[j]], m.next_state[zy + chances.moves[j]]
        follows = m.terminal[s] - m.terminal[s2] if last else after[pairs.at[place(pairs, s * S + s2)]]
        d[j] = m.landing[i, zx + chances.moves[j]] - m.landing[i, zy + chances.moves[j]] + m.discount * follows
        top, bottom = max(top, d[j]), min(bottom, d[j])
    if top == bottom:
        return top
    if chances.kappa > 0:
        return over_guesses(d, chances.shares, row, chances.kappa, chances.price, chances.guesses, top, bottom)
    return over_ball(d, chances.shares, row, chances.radius[row], top)


@inner
def over_ball(d: Floats, shares: Floats, row: int, radius: float, top: float) -> float:
    """The largest mean of d over distributions Q with KL(shares, Q) <= radius; not below it, and above it hardly.

    It is the least of ν - exp(Σ p log(ν - d) - radius) over ν >= top, and every ν gives an upper bound. Where
    ν is large, what has to be radius, Σ p log(ν - d) + log Σ p / (ν - d), is about variance / (2 (ν - mean)²): Newton's
    steps are taken on its inverse root, which is nearly straight.
    """
    if radius == np.inf:
        return top
    mean, variance, seen = 0.0, 0.0, -np.inf
    for j in range(len(d)):
        if shares[row, j] > 0:
            mean, seen = mean + shares[row, j] * d[j], max(seen, d[j])
    for j in range(len(d)):
        variance += shares[row, j] * (d[j] - mean) ** 2
    best = top
    if seen < top:
        logs = 0.0
        for j in range(len(d)):
            if shares[row, j] > 0:
                logs += shares[row, j] * np.log(top - d[j])
        best = min(best, top - np.exp(logs - radius))
    nu = max(mean + np.sqrt(variance / (2 * radius)), top + 1e-3 * (top - mean))
    if nu <= top:  # all that was seen is as good as the best there is
        return best
    for _ in range(STEPS):
        logs, ones, twos = 0.0, 0.0, 0.0
        for j in range(len(d)):
            if shares[row, j] > 0:
                one = 1 / (nu - d[j])
                logs -= shares[row, j] * np.log(one)
                ones += shares[row, j] * one
                twos += shares[row, j] * one * one
        found = nu - np.exp(logs - radius)
        settled = abs(found - best) <= CLOSE * (best - mean)
        best = min(best, found)
        level, slope = logs + np.log(ones), ones - twos / ones
        if settled or level <= 0 or slope >= 0:
            break
        moved = nu + (radius**-0.5 - level**-0.5) / (-0.5 * level**-1.5 * slope)
        nu = max(moved, top + 0.1 * (nu - top))
    return max(best, mean)


@inner
def over_guesses(
    d: Floats, shares: Floats, row: int, kappa: float, price: float, guesses: int, top: float, bottom: float
) -> float:
    """-λ log of the mean of exp(-B_ν/λ) over some ν that do not depend on the shares p.

    B_ν = ν - κ - κ Σ p log((ν - d) / κ). The result is at least the least B_ν, and at most that and λ log(guesses).
    """
    least, total = np.inf, 0.0  # the total is that of exp((least - B_ν)/λ)
    for i in range(guesses):
        at = (i + 0.5) / guesses
        nu = max(kappa + bottom + at * (top - bottom), top + at * kappa)
        logs = 0.0
        for j in range(len(d)):
            if shares[row, j] > 0:
                logs += shares[row, j] * np.log1p((nu - kappa - d[j]) / kappa)
        bound = nu - kappa - kappa * logs
        if bound < least:
            least, total = bound, 1 + total * np.exp((bound - least) / price)
        else:
            total += np.exp((least - bound) / price)
    return least - price * np.log(total / guesses)
