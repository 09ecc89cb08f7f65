"""A learner with a model of f beside it.

The mechanics it was told have f as it is believed now, so that residuals follow it; ``lead`` is what is taken to follow
every pair, given what f may still be.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ucbf.kernels.averaged import UCBfState, is_due, ucb_f_average
from ucbf.kernels.backward import expect, keep_best
from ucbf.kernels.counted import UCBVIfState, believe, ucbvi_f_learn
from ucbf.kernels.jit import inlined, inner
from ucbf.kernels.learners import registered
from ucbf.kernels.offsets import HARDLY, Model, bar_of, fit_offsets, learn_disturbance, learn_pair, place
from ucbf.kernels.seen import Seen
from ucbf.kernels.types import Floats, Ints, Mechanics
from ucbf.kernels.watch import watch


class RepairedUCBf(NamedTuple):
    """UCB-f with a model of f."""

    policy: Ints  # the learner's
    learner: UCBfState
    model: Model
    lead: Floats  # [H, S, A] what is taken to follow every pair


class RepairedUCBVIf(NamedTuple):
    """UCBVI-f with a model of f. The model's counts are the learner's."""

    policy: Ints  # the learner's
    learner: UCBVIfState
    model: Model
    lead: Floats  # [H, S, A]


@inlined
def repaired_ucb_f_update(told: Mechanics, learner: RepairedUCBf, seen: Seen) -> bool:
    """Learn f from the transition, then from the disturbance it is taken for; values wait for the next episode."""
    inside, j = learner.learner, min(max(seen.low, 0), told.n_residuals - 1)
    if learn_pair(told, learner.model, seen):
        watch(told, inside.watch, seen.h, seen.s, seen.a, j)
    if seen.h < inside.learned_steps:
        ucb_f_average(told, inside, seen.h, j)
    return False


@inlined
def repaired_ucb_f_learn(told: Mechanics, learner: RepairedUCBf, h: int, j: int) -> bool:
    """Learn from a disturbance; values wait for the next episode."""
    learn_disturbance(learner.model, h, j)
    if h < learner.learner.learned_steps:
        ucb_f_average(told, learner.learner, h, j)
    return False


@inlined
def repaired_ucbvi_f_update(told: Mechanics, learner: RepairedUCBVIf, seen: Seen) -> bool:
    """Learn f from the transition, then count the disturbance it is taken for."""
    inside, j = learner.learner, min(max(seen.low, 0), told.n_residuals - 1)
    if learn_pair(told, learner.model, seen):
        watch(told, inside.watch, seen.h, seen.s, seen.a, j)
    return ucbvi_f_learn(told, inside, seen.h, j)


@inlined
def repaired_ucbvi_f_learn(told: Mechanics, learner: RepairedUCBVIf, h: int, j: int) -> bool:
    """Count a disturbance."""
    learn_disturbance(learner.model, h, j)
    return ucbvi_f_learn(told, learner.learner, h, j)


@inner
def repaired_ucb_f_renew(told: Mechanics, learner: RepairedUCBf) -> int:
    """Follow what is believed of f; the last step whose policy changed, or -1."""
    m, inside = learner.model, learner.learner
    due = is_due(inside.visits, inside.due, inside.eta)
    if m.offsets and due:
        move_average(told, inside.average, -fit_offsets(told, m, inside.watch.steps, inside.watch.groups))
    top = -1
    for h in range(told.horizon):
        weight, bonus, cap = inside.weight[h], inside.bonus[h], inside.cap[h]
        look_ahead_of_pairs(told, m, learner.lead, inside.average, h, weight)
        if take_best_pair(told, learner.lead, inside.value, inside.policy, h, weight, bonus, cap, due):
            top = h
    return top


@inlined
def move_average(told: Mechanics, average: Floats, by: int) -> None:
    """Where all after-states were moved, what follows them moves along. average: [H, X]."""
    X = told.n_after
    for h in range(average.shape[0] if by else 0):
        for _ in range(abs(by)):
            end = 0 if by > 0 else X - 1
            carried = average[h, X - 1 - end] if told.modular else average[h, end]
            for i in range(X):
                x = i if by > 0 else X - 1 - i
                average[h, x], carried = carried, average[h, x]


@inner
def repaired_ucbvi_f_renew(told: Mechanics, learner: RepairedUCBVIf) -> int:
    """Backward induction with the law and f as believed; the last step whose policy changed, or -1."""
    m, inside = learner.model, learner.learner
    if inside.stale[0] == 0 or not is_due(inside.visits, inside.due, inside.eta):
        return -1
    inside.stale[0] = 0
    if m.offsets:
        fit_offsets(told, m, inside.watch.steps, inside.watch.groups)
    believe(told, inside, True)
    top = -1
    for h in range(told.horizon - 1, -1, -1):
        expect(told, h, told.offsets, inside.law, inside.value, inside.raw, inside.ahead, h)
        look_ahead_of_pairs(told, m, learner.lead, inside.ahead, h, 1.0)
        if take_best_pair(told, learner.lead, inside.value, inside.policy, h, 1.0, 0.0, np.inf, True) and top < 0:
            top = h
    return top


@inlined
def take_best_pair(
    told: Mechanics,
    lead: Floats,
    value: Floats,
    policy: Ints,
    h: int,
    weight: float,
    bonus: float,
    cap: float,
    act: bool,
) -> bool:
    """As :func:`take_best`, from what follows the pairs themselves, lead [H, S, A]."""
    reward, r, changed = told.reward, h % len(told.reward), False
    for s in range(lead.shape[1]):
        best, best_a = -np.inf, 0
        for a in range(lead.shape[2]):
            q = weight * reward[r, s, a] + lead[h, s, a]
            if q > best:
                best, best_a = q, a
        value[h, s] = min(cap, best + bonus)
        if act:
            changed |= keep_best(policy, h, s, best_a)
    return changed


@inner
def look_ahead_of_pairs(told: Mechanics, m: Model, lead: Floats, ahead: Floats, h: int, weight: float) -> None:
    """Lead of step h: what follows every pair, over what f may still be.

    Where f is fitted here, the mean over the offsets; but the best of the plausible ones for a pair that is worth
    trying. Where an estimator in Python says no more than bounds, the best within them.
    """
    f = h % len(m.f)
    for s in range(m.f.shape[1]):
        best = -np.inf
        for a in range(m.f.shape[2]):
            if m.offsets:
                lead[h, s, a] = mean_ahead(told, m, ahead, h, s, a)
                best = max(best, weight * told.reward[h % len(told.reward), s, a] + lead[h, s, a])
            else:
                lead[h, s, a] = -np.inf
                for x in range(m.low[f, s, a], m.high[f, s, a] + 1):
                    lead[h, s, a] = max(lead[h, s, a], ahead[h, place(told, x)])
        if m.offsets:
            try_pairs(told, m, lead, ahead, h, s, weight, best)


@inlined
def mean_ahead(told: Mechanics, m: Model, ahead: Floats, h: int, s: int, a: int) -> float:
    """What follows a pair, on average over its offsets."""
    f = h % len(m.f)
    if m.low[f, s, a] == m.high[f, s, a]:
        known: float = ahead[h, m.f[f, s, a]]
        return known
    pair, total = (f * m.f.shape[1] + s) * m.f.shape[2] + a, 0.0
    for d in range(len(m.weights)):
        if m.posterior[pair, d] > HARDLY:
            total += m.posterior[pair, d] * ahead[h, place(told, m.first[f, s, a] + d - m.half)]
    return total


@inlined
def try_pairs(
    told: Mechanics, m: Model, lead: Floats, ahead: Floats, h: int, s: int, weight: float, best: float
) -> None:
    """Take the best plausible offset of a pair in state s that may be better than the best one and is worth trying.

    It is, if what may be gained in as many visits of the state as there have been is at least what it costs to find
    out: for every offset with which it is worse, what a visit then costs, as often as it takes to dismiss the best.
    """
    f, (S, A) = h % len(m.f), m.f.shape[1:]
    visits = 0
    for a in range(A):
        visits += m.visits[(f * S + s) * A + a]
    threshold = bar_of(m)
    for a in range(A):
        if m.low[f, s, a] == m.high[f, s, a]:
            continue
        paid, pair = weight * told.reward[h % len(told.reward), s, a], (f * S + s) * A + a
        if paid + lead[h, s, a] == best:
            continue
        origin, top, hope = m.first[f, s, a] - m.half, best, -1
        for d in range(m.low[f, s, a] - origin, m.high[f, s, a] - origin + 1):
            q = paid + ahead[h, place(told, origin + d)]
            if q > top:
                top, hope = q, d
        if hope < 0:
            continue
        gain, cost, likely = 0.0, 0.0, m.posterior[pair, hope]
        for d in range(len(m.weights)):
            chance = m.posterior[pair, d]
            if chance > HARDLY:
                q = paid + ahead[h, place(told, origin + d)]
                if q > best:
                    gain += chance * (q - best)
                else:
                    told_apart = max(m.apart[hope - d + 2 * m.half], HARDLY)
                    visits_needed = 1 + max(math.log(max(likely, HARDLY) / (chance * threshold)), 0.0) / told_apart
                    cost += chance * (best - q) * visits_needed
        if visits * gain >= cost:
            lead[h, s, a] = top - paid


registered(RepairedUCBf, repaired_ucb_f_update, repaired_ucb_f_renew, repaired_ucb_f_learn)
registered(RepairedUCBVIf, repaired_ucbvi_f_update, repaired_ucbvi_f_renew, repaired_ucbvi_f_learn)
