"""UCB-f: every disturbance averaged into what follows each after-state."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ucbf.kernels.backward import take_best
from ucbf.kernels.jit import apart, by_type, inlined, unsigned
from ucbf.kernels.laws import counts_add
from ucbf.kernels.learners import learn, registered
from ucbf.kernels.models import (
    averaged,
    explore,
    explores,
    learn_disturbance,
    learn_pair,
    may_change,
    refit,
    value_pairs,
)
from ucbf.kernels.parts import packed
from ucbf.kernels.seen import Seen, context_of, nearest
from ucbf.kernels.types import Floats, Ints, Mechanics
from ucbf.kernels.watch import CENSORED, Watch, watch

# average_in(told, learner, how, h, e, j, share): take in what disturbance j says of every after-state of step h and
# context e, with the bonus. how: learner.how
average_in = by_type(2)
# recount(how): the counts of disturbances were changed by what is believed of f.
recount = by_type(0)


@packed
class UCBfState(NamedTuple):
    """Q_h(s, a) = weight_h r_h(s, a) + average_h(f(s, a)) + bonus_h: Algorithm 1 in after-state form."""

    model: Any  # what is known of f: one of ucbf.kernels.models
    average: Floats  # [H, X] running average of landing(x + w) + γ V_{h+1}(boundary(x + w))
    weight: Floats  # [H, E] ρ: the weight that the reward has got so far, 1 once α was 1
    bonus: Floats  # [H, E] running average of the bonuses, with what is left of the initial value
    value: Floats  # [H+1, S]
    visits: Ints  # [H, E] updates of each step and context
    counts: Floats  # [H·E, R] disturbances seen, for certificates
    policy: Ints  # [H, S]
    how: Any  # with which bonus a disturbance is averaged in: Hoeffding, or one of ucbf.kernels.sharper
    cap: Floats  # [H] the largest possible return
    by_update: bool  # the clock n: (k-1)H + h + 1 if true, else k
    learned_steps: int  # H, or H-1 if the last step is known
    span: float  # the H of the learning rate (H+1)/(H+n); where there is no end, the effective one
    discount: float  # γ; where the average counts, that of the effective horizon
    watch: Watch
    eta: float  # the policy is renewed when the episodes have grown by 1 + eta; 0: it follows every update
    due: Ints  # [1] the episode before which the policy is renewed
    made: Ints  # [1] how many episodes had been seen when it last was


@inlined
def ucb_f_update(told: Mechanics, learner: UCBfState, seen: Seen, share: Floats) -> bool:
    """Replay the disturbance of a transition at every state and action of its step."""
    if seen.low < seen.high:
        learner.watch.unused[CENSORED] += 1
    j = min(max(nearest(told, seen), 0), told.n_residuals - 1)
    if learn_pair(told, learner.model, seen):
        watch(told, learner.watch, seen.h, seen.s, seen.a, j, share)
    j = averaged(told, learner.model, seen, j)
    return replay_everywhere(told, learner, seen.h, context_of(told, seen.s), j, share)


@inlined
def ucb_f_learn(told: Mechanics, learner: UCBfState, h: int, e: int, j: int, share: Floats) -> bool:
    """The same with a disturbance of which neither state nor action is known."""
    learn_disturbance(learner.model, h, j)
    return replay_everywhere(told, learner, h, e, j, share)


@inlined
def replay_everywhere(told: Mechanics, learner: UCBfState, h: int, e: int, j: int, share: Floats) -> bool:
    """Algorithm 1, lines 8-14. Where f as believed may change, values wait for the next episode."""
    counts_add(told, learner, h, e, j, share)
    if h >= learner.learned_steps:
        return False
    average_in(told, learner, learner.how, h, e, j, share)
    if may_change(learner.model):
        return False
    return ucb_f_greedy(told, learner, h, e, learner.eta == 0)


@inlined
def tick(told: Mechanics, learner: UCBfState, h: int, e: int) -> int:
    """Count an update of step h and context e; the clock n."""
    learner.visits[h, e] += 1
    visits: int = learner.visits[h, e]
    return (visits - 1) * told.horizon + h + 1 if learner.by_update else visits


@packed
class Hoeffding(NamedTuple):
    """The paper's bonus, the same for all after-states: width / sqrt(n) + floor."""

    width: Floats  # [H]
    floor: float


@inlined
def hoeffding_average_in(
    told: Mechanics, learner: UCBfState, how: Hoeffding, h: int, e: int, j: int, share: Floats
) -> None:
    """What disturbance j says of every after-state of step h and context e, averaged in."""
    H, n = learner.span, tick(told, learner, h, e)
    alpha = (H + 1) / (H + n)
    bonus = how.width[h] / math.sqrt(n) + how.floor
    learner.weight[h, e] = (1 - alpha) * learner.weight[h, e] + alpha
    learner.bonus[h, e] = (1 - alpha) * learner.bonus[h, e] + alpha * bonus
    average, landing, d, kept = learner.average, told.landing, min(h, len(told.landing) - 1), 1 - alpha
    length, runs = unsigned(told.length), len(told.rows)
    for c in range(len(share)):
        move, weight = told.offsets[j + told.bin_corners[c]], alpha * share[c]
        for k in range(runs):
            z, first = unsigned(told.rows[k] + move), unsigned(e * runs + k) * length
            for x in range(length):
                target = landing[d, z + x] + learner.discount * learner.value[h + 1, unsigned(told.next_state[z + x])]
                average[h, first + x] = kept * average[h, first + x] + weight * target
        kept = 1.0


@inlined
def recount_nothing(how: Any) -> None:
    """Nothing to do: no disturbances are counted."""


@inlined
def ucb_f_greedy(told: Mechanics, learner: UCBfState, h: int, e: int, act: bool) -> bool:
    """Renew the values of context e at step h, and its policy if ``act``; whether the policy changed."""
    weight, bonus, cap = learner.weight[h, e], learner.bonus[h, e], learner.cap[h]
    average, value, policy = learner.average, learner.value, learner.policy
    changed = take_best(told, learner.model, average, value, policy, h, weight, bonus, cap, act, e)
    if told.endless and h == 0:  # what comes after the last step of a period
        for s in range(value.shape[1]):
            value[told.horizon, s] = value[0, s]
    return changed


@inlined
def is_due(visits: Ints, due: Ints, eta: float) -> bool:
    """Whether to renew the policy: always, or when the episodes have grown by the factor 1 + eta."""
    k = 1
    for h in range(len(visits)):
        n = 1
        for e in range(visits.shape[1]):
            n += visits[h, e]
        k = max(k, n)
    if eta > 0 and k < due[0]:
        return False
    due[0] = max(k + 1, math.ceil(k * (1 + eta)))
    return True


@inlined
def ucb_f_follow(told: Mechanics, learner: UCBfState) -> int:
    """Renew the policy, unless every update has done it; the last step whose policy changed, or -1."""
    if not may_change(learner.model) and learner.eta == 0:
        return -1
    return ucb_f_renew(told, learner)


@apart
def ucb_f_renew(told: Mechanics, learner: UCBfState) -> int:
    """Follow what is believed of f, and the schedule of switches; the last step whose policy changed, or -1."""
    top, waits = -1, may_change(learner.model)
    due = is_due(learner.visits, learner.due, learner.eta)
    if due:
        learner.made[0] = learner.visits[0, 0]
        for h in range(told.horizon):
            for e in range(told.n_contexts):
                learner.made[0] = min(learner.made[0], learner.visits[h, e])
        refit(told, learner.model, learner.watch)
        if waits:
            recount(learner.how)
    for h in range(told.horizon if due or waits else 0):
        value_pairs(told, learner.model, learner.average, h, learner.weight[h, 0])
        for e in range(told.n_contexts):
            if ucb_f_greedy(told, learner, h, e, due and not explores(learner.model)):
                top = h
    return max(top, explore(told, learner.model, learner.average, learner.policy)) if due else top


average_in.state(Hoeffding, hoeffding_average_in)
recount.state(Hoeffding, recount_nothing)
registered(UCBfState, ucb_f_update, ucb_f_follow)
learn.state(UCBfState, ucb_f_learn)
