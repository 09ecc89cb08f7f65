"""UCBVI-f: backward induction with what is known of W and of f."""

from __future__ import annotations

from typing import Any, NamedTuple

from ucbf.kernels.averaged import is_due
from ucbf.kernels.endless import charge, plan_ahead
from ucbf.kernels.jit import compiled, inlined
from ucbf.kernels.laws import add, add_censored, believe
from ucbf.kernels.learners import learn, registered
from ucbf.kernels.models import learn_disturbance, learn_pair, refit
from ucbf.kernels.parts import packed
from ucbf.kernels.seen import Seen, context_of
from ucbf.kernels.types import Floats, Ints, Mechanics
from ucbf.kernels.watch import CENSORED, Watch, watch


@packed
class UCBVIfState(NamedTuple):
    """Q_h(s, a) = r_h(s, a) + ahead_h(f(s, a)), planned with what is known of W and of f."""

    law: Any  # what is known of W: one of ucbf.kernels.laws
    model: Any  # what is known of f: one of ucbf.kernels.models
    end: Any  # whether there is one: one of ucbf.kernels.endless
    cost: Any  # when landing rewards are paid: one of ucbf.kernels.endless
    ahead: Floats  # [H, X] expectation of landing(x + w) + γ V_{h+1}(boundary(x + w))
    value: Floats  # [H+1, S]
    visits: Ints  # [H, E]
    policy: Ints  # [H, S]
    raw: Floats  # [Z] room for what follows each raw next state
    stale: Ints  # [1] whether anything was seen since the last plan
    watch: Watch
    eta: float  # the policy is renewed when the episodes have grown by 1 + eta; 0: before every episode
    due: Ints  # [1] the episode before which the policy is renewed


@inlined
def ucbvi_f_update(told: Mechanics, learner: UCBVIfState, seen: Seen, share: Floats) -> bool:
    """Take in what a transition says of f and of W; planning waits for the next episode."""
    if seen.low < seen.high:
        learner.watch.unused[CENSORED] += 1
        add_censored(told, learner.law, seen)
    else:
        j = min(max(seen.low, 0), told.n_residuals - 1)
        if learn_pair(told, learner.model, seen):
            watch(told, learner.watch, seen.h, seen.s, seen.a, j, share)
        add(told, learner.law, seen.h, context_of(told, seen.s), j, share)
    learner.visits[seen.h, context_of(told, seen.s)] += 1
    learner.stale[0] = 1
    return False


@inlined
def ucbvi_f_learn(told: Mechanics, learner: UCBVIfState, h: int, e: int, j: int, share: Floats) -> bool:
    """Take in disturbance j of step h and context e."""
    learn_disturbance(learner.model, h, j)
    add(told, learner.law, h, e, j, share)
    learner.visits[h, e] += 1
    learner.stale[0] = 1
    return False


@inlined
def ucbvi_f_prepare(told: Mechanics, learner: UCBVIfState) -> bool:
    """Whether there is news and a plan is due; if so, what is known of f and W is made ready for it."""
    if learner.stale[0] == 0 or not is_due(learner.visits, learner.due, learner.eta):
        return False
    learner.stale[0] = 0
    refit(told, learner.model, learner.watch)
    believe(learner.law, True)
    charge(told, learner.cost, learner.law.law)
    return True


@compiled
def prepare(told: Mechanics, learner: UCBVIfState) -> bool:
    """The same, called from Python."""
    return ucbvi_f_prepare(told, learner)


@inlined
def ucbvi_f_renew(told: Mechanics, learner: UCBVIfState) -> int:
    """Backward induction with what is known, if there is news; the last step whose policy changed, or -1."""
    if not ucbvi_f_prepare(told, learner):
        return -1
    law, model = learner.law.law, learner.model
    top: int = plan_ahead(
        told, learner.end, model, told.offsets, law, learner.value, learner.ahead, learner.policy, learner.raw
    )
    return top


registered(UCBVIfState, ucbvi_f_update, ucbvi_f_renew)
learn.state(UCBVIfState, ucbvi_f_learn)
