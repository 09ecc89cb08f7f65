"""Exact values: the one backward induction, over after-states, for whole numbers and for lattices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ucbf.kernels.jit import compiled, inlined, signed, unsigned
from ucbf.kernels.models import explore, explores, may_change, value_pairs, with_ahead
from ucbf.kernels.parts import packed
from ucbf.kernels.seen import context_of, raw_of, row_of
from ucbf.kernels.types import Floats, Ints, Mechanics

BLOCK = 512  # after-states
SPARSE = 64  # after-states for each state


@packed
class Arena(NamedTuple):
    """A world for the compiled functions: the true mechanics and the law of W, one entry a possible disturbance."""

    mechanics: Mechanics
    model: Any  # its f, as one of ucbf.kernels.models
    j: Ints  # [n] how far each disturbance that occurs moves
    pmf: Floats  # [L, n] their probabilities; a row a context of every step, or of all
    start: Floats  # [S] law of the first state
    best: float  # V* averaged over the first state
    raw: Floats  # [Z] room for what follows each raw next state
    ahead: Floats  # [1, X] room for what follows each after-state


@inlined
def expect(m: Mechanics, h: int, moves: Ints, law: Floats, value: Floats, raw: Floats, ahead: Floats, row: int) -> None:
    """ahead[row, x] = E[landing_h(z) + γ V_{h+1}(next_state(z))], z = x + W_h, for every after-state x.

    moves: [n] how far each disturbance moves; law: [L, n] their probabilities, :func:`row_of`; value: [H+1, S]
    raw: [Z] room
    """
    fill(m, h, value, raw)
    for x in range(m.n_after):
        ahead[row, x] = 0
    length, runs = unsigned(m.length), len(m.rows)
    if m.stride < BLOCK:
        for e in range(m.n_contexts):
            p = row_of(m, len(law), h, e)
            for i in range(len(moves)):
                probability, move = law[p, i], moves[i]
                if probability > 0:
                    for k in range(runs):
                        begin, first = unsigned(m.rows[k] + move), unsigned(e * runs + k) * length
                        add_run(ahead, row, first, raw, begin, length, probability)
        return
    # What W reaches from one after-state is far apart: taken a block at a time, it stays in the cache.
    stride = unsigned(m.stride)
    for e in range(m.n_contexts):
        p = row_of(m, len(law), h, e)
        for k in range(runs):
            for t in range(0, m.stride, BLOCK):
                block = unsigned(min(BLOCK, m.stride - t))
                for y in range(length // stride):
                    first = unsigned(y) * stride + unsigned(t)
                    for i in range(len(moves)):
                        if law[p, i] > 0:
                            begin = unsigned(m.rows[k] + moves[i]) + first
                            add_run(ahead, row, unsigned(e * runs + k) * length + first, raw, begin, block, law[p, i])


@inlined
def fill(m: Mechanics, h: int, value: Floats, raw: Floats) -> None:
    """raw[z] = landing_h(z) + γ V_{h+1}(next_state(z)) for every raw next state z."""
    d = min(h, len(m.landing) - 1)
    for z in range(len(raw)):
        raw[z] = m.landing[d, z] + m.discount * value[h + 1, unsigned(m.next_state[z])]


@inlined
def delay(m: Mechanics, law: Floats, landing: Floats, paid: Floats, room: Floats) -> None:
    """landing_h(z) = paid_h(z) + γ^lag E[late(z + W_{h+1} + ... + W_{h+lag})]: with what is paid late.

    law: [L, R]; landing: [H, Z], filled; paid: [D, Z] what it pays at once; room: [2, Z + lag (R - 1)]
    """
    R, Z = law.shape[1], landing.shape[1]
    for h in range(len(landing)):
        for z in range(room.shape[1]):
            room[0, z] = m.late[z]
        for i in range(m.lag):  # from the last disturbance to the first
            p, n = (h + m.lag - i) % len(law), room.shape[1] - (i + 1) * (R - 1)
            for z in range(n):
                room[1, z] = 0
            for j in range(R):
                if law[p, j] > 0:
                    for z in range(n):
                        room[1, z] += law[p, j] * room[0, z + j]
            for z in range(n):
                room[0, z] = room[1, z]
        for z in range(Z):
            landing[h, z] = paid[min(h, len(paid) - 1), z] + m.discount**m.lag * room[0, z]


@inlined
def add_run(ahead: Floats, row: int, first: int, raw: Floats, begin: int, length: int, probability: float) -> None:
    """Add what a disturbance leads to from a run of after-states."""
    for x in range(length):
        ahead[row, first + x] += probability * raw[begin + x]


@inlined
def take_best(
    m: Mechanics,
    model: Any,
    ahead: Floats,
    value: Floats,
    policy: Ints,
    h: int,
    weight: float,
    bonus: float,
    cap: float,
    act: bool,
    e: int,
) -> bool:
    """V_h(s) = min(cap, max_a weight r + what follows + bonus), and its policy if ``act``; whether that changed.

    e: the context whose states are meant
    """
    f, r, changed = unsigned(min(h, len(m.after) - 1)), unsigned(min(h, len(m.reward) - 1)), False
    row, A = unsigned(h), unsigned(m.after.shape[2])
    s, last = unsigned(e * m.n_states), unsigned((e + 1) * m.n_states)
    while s < last:  # LLVM does not see through a range here, and would count twice
        best, best_a = -np.inf, unsigned(0)
        for a in range(A):
            q = with_ahead(m, model, weight * m.reward[r, s, a], h, f, s, a, ahead, row)
            if q > best:
                best, best_a = q, a
        value[row, s] = min(cap, best + bonus)
        if act:
            changed |= keep_best(policy, row, s, signed(best_a))
        s += unsigned(1)
    return changed


@inlined
def induction(
    m: Mechanics, model: Any, moves: Ints, law: Floats, value: Floats, ahead: Floats, policy: Ints, raw: Floats
) -> int:
    """Backward induction; the last step whose policy changed, or -1. Ties go to the lowest action.

    model: what is believed of f, one of :mod:`ucbf.kernels.models`; moves, law, raw: as of :func:`expect`
    value: [H+1, S], its last row the terminal reward; ahead: [H, X]; policy: [H, S]; all filled here
    """
    top = -1
    for h in range(m.horizon - 1, -1, -1):
        expect(m, h, moves, law, value, raw, ahead, h)
        value_pairs(m, model, ahead, h, 1.0)
        for e in range(m.n_contexts):
            if take_best(m, model, ahead, value, policy, h, 1.0, 0.0, np.inf, not explores(model), e) and top < 0:
                top = h
    explored: int = explore(m, model, ahead, policy)
    return max(top, explored)


@compiled
def plan(
    m: Mechanics, model: Any, moves: Ints, law: Floats, value: Floats, ahead: Floats, policy: Ints, raw: Floats
) -> None:
    """Backward induction, called from Python: :func:`induction`."""
    induction(m, model, moves, law, value, ahead, policy, raw)


@inlined
def evaluate(arena: Arena, policy: Ints, v: Floats, top: int) -> None:
    """Values of ``policy`` at steps top..0, given those of the later steps. v: [H+1, S], policy: [H, S]."""
    for h in range(top, -1, -1):
        follow(arena.mechanics, arena.model, arena.j, arena.pmf, v, arena.ahead, policy, arena.raw, h)


@inlined
def follow(
    m: Mechanics, model: Any, moves: Ints, law: Floats, v: Floats, ahead: Floats, policy: Ints, raw: Floats, h: int
) -> None:
    """Values of ``policy`` at step h, given those of the next. Other arguments: as of :func:`induction`.

    Where there are many more after-states than states, only those that the policy leads to are looked at.
    """
    f, r, row, S = min(h, len(m.after) - 1), min(h, len(m.reward) - 1), min(h, len(ahead) - 1), v.shape[1]
    if len(m.corners) > 1 or m.n_after < SPARSE * S or may_change(model):
        expect(m, h, moves, law, v, raw, ahead, row)
        value_pairs(m, model, ahead, h, 1.0)
        for s in range(S):
            a = policy[h, s]
            v[h, s] = with_ahead(m, model, m.reward[r, s, a], h, f, s, a, ahead, row)
        return
    fill(m, h, v, raw)
    for s in range(S):
        a, p, total = policy[h, s], row_of(m, len(law), h, context_of(m, s)), 0.0
        z = raw_of(m, m.after[f, s, a])
        for i in range(len(moves)):
            total += law[p, i] * raw[z + moves[i]]
        v[h, s] = m.reward[r, s, a] + total


@inlined
def gap_of(arena: Arena, v: Floats) -> float:
    """V* - V^π, averaged over the first state. v: [H+1, S]."""
    mean = 0.0
    for s in range(v.shape[1]):
        mean += arena.start[s] * v[0, s]
    return arena.best - mean


@inlined
def keep_best(policy: Ints, h: int, s: int, a: int) -> bool:
    """Write action a into a policy [H, S]; whether that changed it."""
    changed: bool = policy[h, s] != a
    policy[h, s] = a
    return changed


@inlined
def best_action(q: Floats, h: int, s: int) -> int:
    """The action with the largest q [H, S, A]; ties go to the lowest."""
    row, state, best = unsigned(h), unsigned(s), unsigned(0)
    most = q[row, state, best]
    for a in range(unsigned(q.shape[2])):
        if q[row, state, a] > most:
            best, most = a, q[row, state, a]
    return signed(best)


@inlined
def largest(table: Floats, row: int) -> float:
    """The largest number in a row of a table."""
    most: float = table[row, 0]
    for i in range(1, table.shape[1]):
        most = max(most, table[row, i])
    return most
