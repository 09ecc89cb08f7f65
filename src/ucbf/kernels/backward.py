"""Exact values: backward induction over after-states, for integers and for lattices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.jit import compiled, inlined
from ucbf.kernels.types import Floats, Ints, Mechanics


class Arena(NamedTuple):
    """A world for the compiled functions: the true mechanics and the law of W, one entry a possible disturbance."""

    mechanics: Mechanics
    j: Ints  # [n] disturbances that occur
    pmf: Floats  # [1 or H, n] their probabilities
    start: Floats  # [S] law of the first state
    best: float  # V* averaged over the first state
    raw: Floats  # [Z] room for what follows each raw next state
    ahead: Floats  # [X] room for what follows each after-state


@inlined
def look_ahead(arena: Arena, h: int, v: Floats) -> None:
    """arena.ahead[x] = E[landing(z) + γ V_{h+1}(boundary(z))], z = x + W_h, for every after-state. v: [H+1, S]."""
    m, raw, ahead = arena.mechanics, arena.raw, arena.ahead
    d, p = h % len(m.landing), h % len(arena.pmf)
    first, last = arena.j[0], arena.j[0]
    for i in range(len(arena.j)):
        first, last = min(first, arena.j[i]), max(last, arena.j[i])
    for z in range(first, last + m.n_after):
        raw[z] = m.landing[d, z] + m.discount * v[h + 1, m.next_state[z]]
    ahead[:] = 0
    for i in range(len(arena.j)):
        j, probability = arena.j[i], arena.pmf[p, i]
        for x in range(m.n_after):
            ahead[x] += probability * raw[x + j]


@compiled
def plan(arena: Arena, q: Floats, v: Floats, policy: Ints) -> None:
    """Backward induction. q: [H, S, A], v: [H+1, S], policy: [H, S], all filled here. Ties go to the lowest action."""
    m = arena.mechanics
    v[m.horizon] = m.terminal
    for h in range(m.horizon - 1, -1, -1):
        look_ahead(arena, h, v)
        f, r = h % len(m.after), h % len(m.reward)
        for s in range(v.shape[1]):
            v[h, s] = -np.inf
            for a in range(q.shape[2]):
                q[h, s, a] = m.reward[r, s, a] + arena.ahead[m.after[f, s, a]]
                if q[h, s, a] > v[h, s]:
                    v[h, s] = q[h, s, a]
                    policy[h, s] = a


@inlined
def evaluate(arena: Arena, policy: Ints, v: Floats, top: int) -> None:
    """Values of ``policy`` at steps top..0, given those of the later steps. v: [H+1, S], policy: [H, S]."""
    m = arena.mechanics
    for h in range(top, -1, -1):
        look_ahead(arena, h, v)
        f, r = h % len(m.after), h % len(m.reward)
        for s in range(v.shape[1]):
            a = policy[h, s]
            v[h, s] = m.reward[r, s, a] + arena.ahead[m.after[f, s, a]]


@inlined
def gap_of(arena: Arena, v_first: Floats) -> float:
    """V* - V^π, averaged over the first state."""
    mean = 0.0
    for s in range(len(v_first)):
        mean += arena.start[s] * v_first[s]
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
    best = 0
    for a in range(1, q.shape[2]):
        if q[h, s, a] > q[h, s, best]:
            best = a
    return best


@inlined
def largest(table: Floats, row: int) -> float:
    """The largest number in a row of a table."""
    most: float = table[row, 0]
    for i in range(1, table.shape[1]):
        most = max(most, table[row, i])
    return most


@inlined
def take_best(
    told: Mechanics,
    ahead: Floats,
    value: Floats,
    policy: Ints,
    h: int,
    weight: float,
    bonus: float,
    cap: float,
    act: bool,
) -> bool:
    """V_h(s) = min(cap, max_a weight r + ahead_h(f(s, a)) + bonus), and its policy if ``act``; whether that changed."""
    after, reward = told.after, told.reward
    f, r = h % len(after), h % len(reward)
    changed = False
    for s in range(after.shape[1]):
        best, best_a = -np.inf, 0
        for a in range(after.shape[2]):
            q = weight * reward[r, s, a] + ahead[h, after[f, s, a]]
            if q > best:
                best, best_a = q, a
        value[h, s] = min(cap, best + bonus)
        if act:
            changed |= keep_best(policy, h, s, best_a)
    return changed


class Lattice(NamedTuple):
    """A continuous system on a lattice. F, P, D are 1 (the same at every step) or H; C = 2^d corners of a cell."""

    cell: NDArray[np.int32]  # [F, S, A] the cell of after-states that f(s, a) is in, by its first corner
    share: Floats  # [F, S, A, C] what each corner counts for
    corners: Ints  # [C] how far each corner is from the first, in memory
    reward: Floats  # [P, S, A] -inf where the action does not exist
    landing: Floats  # [D, Z] reward of the raw next states
    next_state: NDArray[np.int32]  # [Z] the boundary rule
    rows: Ints  # where each row of after-states, along the last axis, begins among the raw next states
    bins: Ints  # [R] how far each disturbance moves, among the raw next states
    terminal: Floats  # [S]
    discount: float
    horizon: int
    origin: Ints  # [d] index of the first after-state
    shape: Ints  # [d] after-states along each axis


@compiled
def plan_lattice(m: Lattice, law: Floats, value: Floats, ahead: Floats, policy: Ints, raw: Floats) -> None:
    """Backward induction. law: [1 or H, R]; value: [H+1, S], ahead: [H, X], policy: [H, S] filled here; raw: [Z]."""
    value[m.horizon] = m.terminal
    length = ahead.shape[1] // len(m.rows)
    for h in range(m.horizon - 1, -1, -1):
        d, row = h % len(m.landing), h % len(law)
        for z in range(len(raw)):
            raw[z] = m.landing[d, z] + m.discount * value[h + 1, m.next_state[z]]
        ahead[h] = 0
        for j in range(law.shape[1]):
            p = law[row, j]
            if p > 0:
                for i in range(len(m.rows)):
                    begin = m.rows[i] + m.bins[j]
                    for x in range(length):
                        ahead[h, i * length + x] += p * raw[begin + x]
        choose_on_lattice(m, h, value, ahead, policy)


@inlined
def choose_on_lattice(m: Lattice, h: int, value: Floats, ahead: Floats, policy: Ints) -> None:
    """V_h(s) = max_a r + ahead_h(f(s, a)), interpolated; ties go to the lowest action."""
    f, r = h % len(m.cell), h % len(m.reward)
    for s in range(value.shape[1]):
        best, best_a = -np.inf, 0
        for a in range(m.reward.shape[2]):
            q = m.reward[r, s, a]
            if q > -np.inf:
                for c in range(len(m.corners)):
                    q += m.share[f, s, a, c] * ahead[h, m.cell[f, s, a] + m.corners[c]]
                if q > best:
                    best, best_a = q, a
        value[h, s] = best
        policy[h, s] = best_a
