"""Act, then learn, episode by episode: the one loop for all compiled learners."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.kernels.backward import Arena, evaluate, gap_of, keep_best
from ucbf.kernels.endless import evaluate as evaluate_endless
from ucbf.kernels.endless import worth
from ucbf.kernels.jit import compiled, inlined, inner, unsigned
from ucbf.kernels.learners import learn, renew, update
from ucbf.kernels.parts import packed
from ucbf.kernels.seen import Seen, context_of, explain, raw_of
from ucbf.kernels.types import Floats, Ints, Mechanics


@packed
class Draws(NamedTuple):
    """What befalls K episodes, drawn before the first."""

    starts: Ints  # [K] first states
    j: Ints  # [K, H, E] how far disturbances move, among the raw next states of the world, if the context is e
    measured: Ints  # [K, H, E] their indices among those that the learner tells apart
    censored: bool  # whether boundaries hide them from the learner


@inlined
def walk(arena: Arena, policy: Ints, draws: Draws, k: int, states: Ints, actions: Ints) -> float:
    """Episode k of the draws. states: [H+1] and actions: [H] are filled; returns the discounted return."""
    m = arena.mechanics
    collected: float = 0.0
    weight = 1.0
    states[0] = draws.starts[k]
    for h in range(m.horizon):
        s = states[h]
        a = policy[h, s]
        x = m.after[min(h, len(m.after) - 1), s, a]
        z = raw_of(m, x) + draws.j[k, h, context_of(m, s)]
        actions[h] = a
        states[h + 1] = m.next_state[z]
        collected += weight * (m.reward[min(h, len(m.reward) - 1), s, a] + m.landing[min(h, len(m.landing) - 1), z])
        weight *= m.discount
    collected += weight * m.terminal[states[m.horizon]]
    return collected


@inlined
def episode(
    arena: Arena,
    policy: Ints,
    draws: Draws,
    k: int,
    v: Floats,
    top: int,
    states: Ints,
    actions: Ints,
) -> tuple[float, float]:
    """Play episode k of the draws; its gap and what was collected.

    top: last step at which ``policy`` is not the one that v [H+1, S] belongs to
    states: [H+1], actions: [H], filled here
    """
    evaluate(arena, policy, v, top)
    collected = walk(arena, policy, draws, k, states, actions)
    return gap_of(arena, v), collected


@compiled
def run(
    arena: Arena,
    told: Mechanics,
    learner: Any,
    draws: Draws,
    v: Floats,
    acted: Ints,
    gap: Floats,
    reward: Floats,
    switched: NDArray[np.bool_],
) -> None:
    """Act, then learn, for K episodes.

    v: [H+1, S], its last row the terminal reward
    acted: [H, S] the policy of the episode before
    gap, reward, switched: [K], filled here
    """
    H = told.horizon
    states, actions = np.empty(H + 1, np.int64), np.empty(H, np.int64)
    top, whole = H - 1, told.whole
    for k in range(len(gap)):
        top = max(top, renew(told, learner))
        switched[k] = replace_policy(acted, learner.policy, top)
        gap[k], reward[k] = episode(arena, learner.policy, draws, k, v, top, states, actions)
        top = -1
        for h in range(H):
            if update(told, learner, seen_at(told, draws, k, h, states, actions), whole):
                top = h


@compiled
def run_on(
    arena: Arena,
    told: Mechanics,
    learner: Any,
    draws: Draws,
    first: int,
    v: Floats,
    acted: Ints,
    at: Ints,
    now: Floats,
    gap: Floats,
    reward: Floats,
    switched: NDArray[np.bool_],
) -> None:
    """Where there is no end: act and learn, step by step.

    draws: [T, 1, E], its first step being step ``first`` of the run
    at: [1] the state; now: [3] the gap of the policy ``acted``, how exact it has to be, and in how many sweeps
    gap, reward, switched: [T], filled here
    """
    m, changed, whole = arena.mechanics, True, told.whole  # the last step of the part before may have changed it
    for t in range(len(gap)):
        h, s = (first + t) % m.horizon, at[0]
        changed |= renew(told, learner) >= 0
        switched[t] = changed and replace_policy(acted, learner.policy, m.horizon - 1)
        if switched[t] or first + t == 0:
            now[0] = gap_without_end(arena, acted, v, now)
        a = acted[h, s]
        z = raw_of(m, m.after[min(h, len(m.after) - 1), s, a]) + draws.j[t, 0, context_of(m, s)]
        gap[t], reward[t] = now[0], m.reward[min(h, len(m.reward) - 1), s, a] + m.landing[min(h, len(m.landing) - 1), z]
        at[0] = m.next_state[z]
        measured = draws.measured[t, 0, context_of(told, s)]
        changed = update(told, learner, explain(told, h, s, a, at[0], measured, draws.censored), whole)


@inner
def gap_without_end(arena: Arena, policy: Ints, v: Floats, now: Floats) -> float:
    """How much less a policy is worth than the best; v: [H+1, S], from where the last one ended. now: as of run_on."""
    evaluate_endless(arena, policy, v, now[1], int(now[2]))
    return arena.best - worth(arena, v)


@inlined
def seen_at(told: Mechanics, draws: Draws, k: int, h: int, states: Ints, actions: Ints) -> Seen:
    """What the learner sees of step h of an episode."""
    measured = draws.measured[k, h, context_of(told, states[h])]
    return explain(told, h, states[h], actions[h], states[h + 1], measured, draws.censored)


@inlined
def replace_policy(acted: Ints, policy: Ints, top: int) -> bool:
    """Copy the steps 0..top of ``policy`` to ``acted``, both [H, S]; whether they differed."""
    changed = False
    for h in range(unsigned(top + 1)):
        for s in range(unsigned(policy.shape[1])):
            changed |= keep_best(acted, h, s, policy[h, s])
    return changed


@compiled
def run_update(told: Mechanics, learner: Any, seen: Seen, share: Floats) -> bool:
    """One update, called from Python. share: [B] how a disturbance between bins is shared out among them."""
    changed: bool = update(told, learner, seen, share)
    return changed


@compiled
def replay(told: Mechanics, learner: Any, contexts: Ints, j: Ints, share: Floats) -> None:
    """Learn from disturbances alone. contexts, j: [K, H]; share: [K, H, B], or [1, 1, 1] where all are whole."""
    for k in range(j.shape[0]):
        for h in range(j.shape[1]):
            learn(told, learner, h, contexts[k, h], j[k, h], share[min(k, len(share) - 1), min(h, share.shape[1] - 1)])


@compiled
def relearn(told: Mechanics, learner: Any, states: Ints, actions: Ints, j: Ints) -> None:
    """Learn from recorded episodes, as in :func:`run` but without the world. states: [K, H+1], actions, j: [K, H]."""
    for k in range(len(actions)):
        renew(told, learner)
        for h in range(told.horizon):
            update(told, learner, Seen(h, states[k, h], actions[k, h], states[k, h + 1], j[k, h], j[k, h]), told.whole)
