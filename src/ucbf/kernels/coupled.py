"""Two policies side by side, under the same disturbances: how far the best one can be ahead of a given one.

D_h(s, s') is at least V*_h(s) - V^π_h(s'), and the same w moves both sides (:mod:`ucbf.coupling`). It is needed at the
pairs of states that can be reached from equal ones only, which are listed in the order in which they are found.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.bounds import over_ball, over_flat
from ucbf.kernels.jit import apart, compiled, inlined
from ucbf.kernels.parts import packed
from ucbf.kernels.seen import context_of, raw_of, row_of
from ucbf.kernels.types import Floats, Ints, Mechanics

SHARE = 0.1  # of an e-value, for which action the policy takes


@packed
class Pairs(NamedTuple):
    """Pairs (s, s') of states, and where to find them."""

    first: Ints  # [N] s
    second: Ints  # [N] s'
    before: Ints  # [N] the pair with the same s' that was listed before; -1: none
    last: Ints  # [S] the last pair of each s'
    sizes: Ints  # [H] how many of them, the first ones, matter at each step
    keys: Ints  # [a power of 2] s S + s', or -1 where there is none: open addressing
    at: Ints  # and the place in the list


@packed
class Targets(NamedTuple):
    """The after-states that a state and an action may lead to: one, where f is known."""

    begins: Ints  # [F·S·A + 1] where those of each state and action begin in ``members``
    members: Ints  # counted from -pad
    pad: int


@packed
class Room(NamedTuple):
    """Room to go through the pairs by the after-state y that π leads to from s', and for what is found about each y."""

    head: Ints  # [X] the first entry of an after-state; -1: none. With the pad at both ends, as wherever X follows
    after_it: Ints  # [S · the most after-states of an action] the next entry
    state: Ints  # and its s'
    seen: Ints  # [X] the last y that an after-state x was looked at with
    ahead: Floats  # [X] what follows x, with that y
    guessed: Ints  # [X] the last y that x was compared with under the guess
    lead: Floats  # [X] what x is better by than that y
    choice: Ints  # [X] the last s' from which x was counted as a choice
    d: Floats  # [n] what follows, by the disturbance


@packed
class Chances(NamedTuple):
    """What is known of W: the shares of what was seen, and how far the chances may be from them."""

    moves: Ints  # [n] how far each disturbance that may occur moves, among the raw next states
    shares: Floats  # [L, n]
    radius: Floats  # [L] of a ball: KL(shares, chances) is at most that
    prices: Floats  # [H] λ; 0: over the ball
    samples: float  # of every step
    level: float  # log ∫ ((1 + v) exp(-v))^samples dv
    worth: Floats  # [H, Z] with prices: what raw next states are worth, guessed before anything was seen
    matters: NDArray[np.bool_]  # [H] with prices: whether what follows a step depends on what is done there


@compiled
def reach(m: Mechanics, targets: Targets, policy: Ints, moves: Ints, pairs: Pairs, room: Room, work: int) -> int:
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
        group(m, targets, policy, h, room)
        for y in range(len(room.head)):
            i = room.head[y]
            while i >= 0:
                s2 = room.state[i]
                k = latest(pairs, s2, known)
                while k >= 0:
                    s = pairs.first[k]
                    for a in range(m.after.shape[2]):
                        if m.reward[h % len(m.reward), s, a] == -np.inf:
                            continue
                        begin, end = those_of(m, targets, h, s, a)
                        for one in range(begin, end):
                            x = targets.members[one]
                            if room.seen[x] == y or (x != y and s == s2 and a == policy[h, s]):
                                continue
                            room.seen[x] = y
                            spent += len(moves)
                            if spent > work:
                                return -1
                            if m.endless or t < m.horizon - 1:
                                n = followed(m, moves, x - targets.pad, y - targets.pad, S, pairs, n)
                                if n < 0:
                                    return -1
                    k = pairs.before[k]
                i = room.after_it[i]
        room.seen[:] = -1
        settled, t = settled + 1 if m.endless and n == known else 0, t + 1
    if m.endless:
        pairs.sizes[:] = n
    return spent


@apart
def followed(m: Mechanics, moves: Ints, x: int, y: int, S: int, pairs: Pairs, n: int) -> int:
    """List the pairs that after-states x, y lead to; n as of :func:`listed`."""
    zx, zy = raw_of(m, x), raw_of(m, y)
    for j in range(len(moves)):
        n = listed(pairs, S, m.next_state[within(m, zx + moves[j])], m.next_state[within(m, zy + moves[j])], n)
        if n < 0:
            return n
    return n


@apart
def listed(pairs: Pairs, S: int, s: int, s2: int, n: int) -> int:
    """List a pair of states unless it is; how many there are, or -1 where there is no room."""
    i = place(pairs, s * S + s2)
    if pairs.keys[i] < 0:
        if n == len(pairs.first):
            return -1
        pairs.keys[i], pairs.at[i], pairs.first[n], pairs.second[n] = s * S + s2, n, s, s2
        pairs.before[n], pairs.last[s2] = pairs.last[s2], n
        n += 1
    return n


@inlined
def place(pairs: Pairs, key: int) -> int:
    """Where a pair of states is among the keys, or would be."""
    last = len(pairs.keys) - 1
    i = key & last
    while pairs.keys[i] >= 0 and pairs.keys[i] != key:
        i = (i + 1) & last
    return i


@inlined
def latest(pairs: Pairs, s2: int, n: int) -> int:
    """The last pair of s' = ``s2`` among the first n; -1: none. The others follow in ``pairs.before``."""
    k: int = pairs.last[s2]
    while k >= n:
        k = pairs.before[k]
    return k


@inlined
def those_of(m: Mechanics, targets: Targets, h: int, s: int, a: int) -> tuple[int, int]:
    """Where the after-states of a state and an action begin and end."""
    pair = (h % len(m.after) * m.after.shape[1] + s) * m.after.shape[2] + a
    return targets.begins[pair], targets.begins[pair + 1]


@inlined
def within(m: Mechanics, z: int) -> int:
    """A raw next state; the last one where that is further out than any can be."""
    return min(max(z, 0), len(m.next_state) - 1)


@inlined
def group(m: Mechanics, targets: Targets, policy: Ints, h: int, room: Room) -> None:
    """Group the s' by the after-states that ``policy`` may lead to."""
    i = 0
    for y in range(len(room.head)):
        room.head[y] = -1
    for s in range(m.after.shape[1] - 1, -1, -1):
        begin, end = those_of(m, targets, h, s, policy[h, s])
        for one in range(begin, end):
            y = targets.members[one]
            room.state[i], room.after_it[i], room.head[y] = s, room.head[y], i
            i += 1


@compiled
def sweep(
    m: Mechanics,
    targets: Targets,
    policy: Ints,
    chances: Chances,
    pairs: Pairs,
    room: Room,
    value: Floats,
    ahead: Floats,
) -> None:
    """D of the first step, given that after the last one: from the last step to the first.

    value: [N] D where there is no end; where there is one the terminal rewards count, and it is only filled
    ahead: [N] room
    """
    for h in range(m.horizon - 1, -1, -1):
        for i in range(len(value)):
            ahead[i] = value[i]
        step_back(m, targets, policy, chances, pairs, room, h, ahead, value)


@apart
def step_back(
    m: Mechanics,
    targets: Targets,
    policy: Ints,
    chances: Chances,
    pairs: Pairs,
    room: Room,
    h: int,
    after: Floats,
    value: Floats,
) -> None:
    """D_h(s, s') = max_a r(s, a) - r(s', π(s')) + the most that the mean of what follows may be.

    Where an action may lead to several after-states, the most over all of them; but what π does in a state leads both
    sides to the same one.

    after, value: [N] D_{h+1} and D_h
    """
    n, r, price = pairs.sizes[h], h % len(m.reward), chances.prices[h]
    group(m, targets, policy, h, room)
    for k in range(n):
        value[k] = -np.inf
    for y in range(len(room.head)):
        i = room.head[y]
        while i >= 0:
            s2 = room.state[i]
            paid = m.reward[r, s2, policy[h, s2]]
            if price > 0 and chances.matters[h]:
                paid -= toll(m, chances, room, h, s2, y, price)
            k = latest(pairs, s2, n)
            while k >= 0:
                s, best = pairs.first[k], -np.inf
                for a in range(m.after.shape[2]):
                    if m.reward[r, s, a] == -np.inf:
                        continue
                    begin, end = those_of(m, targets, h, s, a)
                    for one in range(begin, end):
                        x = targets.members[one]
                        if x != y and s == s2 and a == policy[h, s]:
                            continue
                        if room.seen[x] != y:
                            room.seen[x] = y
                            row, pad = row_of(m, len(chances.shares), h, context_of(m, s)), targets.pad
                            room.ahead[x] = most(m, chances, pairs, room, h, row, x - pad, y - pad, price, after)
                        best = max(best, m.reward[r, s, a] + room.ahead[x])
                value[k] = max(value[k], best - paid)
                k = pairs.before[k]
            i = room.after_it[i]
    room.seen[:] = -1
    room.guessed[:] = -1
    room.choice[:] = -1


@inlined
def toll(m: Mechanics, chances: Chances, room: Room, h: int, s2: int, y: int, price: float) -> float:
    """What it costs that π could lead to any after-state y' from s' = ``s2``: λ log Σ_y' exp(SHARE B(u_y' - u_y) / λ).

    u_y(w) = reward + worth(y + w), of the first action that leads to y.
    """
    r, f, first = h % len(m.reward), h % len(m.after), 0
    while m.reward[r, s2, first] == -np.inf or m.after[f, s2, first] != y:
        first += 1
    highest, total = 0.0, 1.0  # y itself
    room.choice[y] = s2
    for a in range(m.after.shape[2]):
        x = m.after[f, s2, a]
        if m.reward[r, s2, a] == -np.inf or room.choice[x] == s2:
            continue
        room.choice[x] = s2
        if room.guessed[x] != y:
            room.guessed[x] = y
            room.lead[x] = lead(m, chances, room, h, x, y, price)
        log = SHARE / price * (m.reward[r, s2, a] - m.reward[r, s2, first] + room.lead[x])
        if log <= highest:
            total += math.exp(log - highest)
        else:
            highest, total = log, 1 + total * math.exp(highest - log)
    found: float = price * (highest + math.log(total))
    return found


@apart
def lead(m: Mechanics, chances: Chances, room: Room, h: int, x: int, y: int, price: float) -> float:
    """B of how much more what follows after-state x is worth than what follows y, as was guessed."""
    d, zx, zy, top, bottom = room.d, raw_of(m, x), raw_of(m, y), -np.inf, np.inf
    for j in range(len(d)):
        d[j] = chances.worth[h, zx + chances.moves[j]] - chances.worth[h, zy + chances.moves[j]]
        top, bottom = max(top, d[j]), min(bottom, d[j])
    return over_flat(d, chances, h % len(chances.shares), price, top, bottom)


@apart
def most(
    m: Mechanics,
    chances: Chances,
    pairs: Pairs,
    room: Room,
    h: int,
    row: int,
    x: int,
    y: int,
    price: float,
    after: Floats,
) -> float:
    """The most that the mean of what follows after-states x, y may be: landing(x + w) - landing(y + w) + γ D_{h+1}."""
    S, d, from_x, from_y = m.after.shape[1], room.d, raw_of(m, x), raw_of(m, y)
    last, top, bottom, i = not m.endless and h == m.horizon - 1, -np.inf, np.inf, h % len(m.landing)
    for j in range(len(d)):
        zx, zy = within(m, from_x + chances.moves[j]), within(m, from_y + chances.moves[j])
        s, s2 = m.next_state[zx], m.next_state[zy]
        follows = m.terminal[s] - m.terminal[s2] if last else after[pairs.at[place(pairs, s * S + s2)]]
        d[j] = m.landing[i, zx] - m.landing[i, zy] + m.discount * follows
        top, bottom = max(top, d[j]), min(bottom, d[j])
    if price > 0:
        return over_flat(d, chances, row, (1 - SHARE) * price, top, bottom)
    return over_ball(d, chances.shares, row, chances.radius[row], top, bottom)
