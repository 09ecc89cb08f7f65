"""UCB-f: every disturbance averaged into what follows each after-state."""

from __future__ import annotations

import math
from typing import NamedTuple

from ucbf.kernels.backward import take_best
from ucbf.kernels.jit import inlined
from ucbf.kernels.learners import registered
from ucbf.kernels.seen import Seen, nearest
from ucbf.kernels.types import Floats, Ints, Mechanics
from ucbf.kernels.watch import CENSORED, Watch, watch


class UCBfState(NamedTuple):
    """Q_h(s, a) = weight_h r_h(s, a) + average_h(f(s, a)) + bonus_h: Algorithm 1 in after-state form."""

    average: Floats  # [H, X] running average of landing(x + w) + γ V_{h+1}(boundary(x + w))
    weight: Floats  # [H] ρ: the weight that the reward has got so far, 1 once α was 1
    bonus: Floats  # [H] running average of the bonuses, with what is left of the initial value
    value: Floats  # [H+1, S]
    visits: Ints  # [H] updates of each step
    policy: Ints  # [H, S]
    width: Floats  # [H] the bonus is width / sqrt(n) + floor
    floor: float
    cap: Floats  # [H] the largest possible return
    by_update: bool  # the clock n: (k-1)H + h + 1 if true, else k
    learned_steps: int  # H, or H-1 if the last step is known
    watch: Watch
    eta: float  # the policy is renewed when the episodes have grown by 1 + eta; 0: it follows every update
    due: Ints  # [1] the episode before which the policy is renewed
    made: Ints  # [1] how many episodes had been seen when it last was


@inlined
def ucb_f_update(told: Mechanics, learner: UCBfState, seen: Seen) -> bool:
    """Replay the disturbance of a transition at every state and action of its step."""
    if seen.low < seen.high:
        learner.watch.tally[CENSORED] += 1
    j = nearest(seen)
    watch(told, learner.watch, seen.h, seen.s, seen.a, j)
    return ucb_f_learn(told, learner, seen.h, j)


@inlined
def ucb_f_learn(told: Mechanics, learner: UCBfState, h: int, j: int) -> bool:
    """Replay disturbance j at every state and action of step h. Algorithm 1, lines 8-14."""
    if h >= learner.learned_steps:
        return False
    ucb_f_average(told, learner, h, j)
    return ucb_f_greedy(told, learner, h, learner.eta == 0)


@inlined
def ucb_f_average(told: Mechanics, learner: UCBfState, h: int, j: int) -> None:
    """What disturbance j says of every after-state of step h, averaged in."""
    H = told.horizon
    learner.visits[h] += 1
    n = (learner.visits[h] - 1) * H + h + 1 if learner.by_update else learner.visits[h]
    alpha = (H + 1) / (H + n)
    bonus = learner.width[h] / math.sqrt(n) + learner.floor
    learner.weight[h] = (1 - alpha) * learner.weight[h] + alpha
    learner.bonus[h] = (1 - alpha) * learner.bonus[h] + alpha * bonus
    average, landing, d = learner.average, told.landing, h % len(told.landing)
    for x in range(told.n_after):
        target = landing[d, x + j] + told.discount * learner.value[h + 1, told.next_state[x + j]]
        average[h, x] = (1 - alpha) * average[h, x] + alpha * target


@inlined
def ucb_f_greedy(told: Mechanics, learner: UCBfState, h: int, act: bool) -> bool:
    """Renew the value of step h, and its policy if ``act``; whether the policy changed."""
    weight, bonus, cap = learner.weight[h], learner.bonus[h], learner.cap[h]
    return take_best(told, learner.average, learner.value, learner.policy, h, weight, bonus, cap, act)


@inlined
def is_due(visits: Ints, due: Ints, eta: float) -> bool:
    """Whether to renew the policy: always, or when the episodes have grown by the factor 1 + eta."""
    k = 1
    for h in range(len(visits)):
        k = max(k, visits[h] + 1)
    if eta > 0 and k < due[0]:
        return False
    due[0] = max(k + 1, math.ceil(k * (1 + eta)))
    return True


@inlined
def ucb_f_renew(told: Mechanics, learner: UCBfState) -> int:
    """Follow the schedule of switches, if there is one; the last step whose policy changed, or -1."""
    top = -1
    if learner.eta > 0 and is_due(learner.visits, learner.due, learner.eta):
        learner.made[0] = learner.visits[0]
        for h in range(told.horizon):
            learner.made[0] = min(learner.made[0], learner.visits[h])
            if ucb_f_greedy(told, learner, h, True):
                top = h
    return top


registered(UCBfState, ucb_f_update, ucb_f_renew, ucb_f_learn)
