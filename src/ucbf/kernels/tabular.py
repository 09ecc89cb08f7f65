"""The baselines that are not told f: one entry for each step, state and action."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ucbf.kernels.backward import best_action, keep_best, largest
from ucbf.kernels.jit import apart, compiled, inlined, signed, unsigned
from ucbf.kernels.learners import improve, registered
from ucbf.kernels.parts import packed
from ucbf.kernels.seen import Seen, landed
from ucbf.kernels.types import Floats, Ints, Mechanics


@packed
class UCBHState(NamedTuple):
    """Optimistic Q-learning, one pair at a time."""

    q: Floats  # [H, S, A] -inf where the action does not exist
    value: Floats  # [H+1, S]
    visits: Ints  # [H, S, A]
    policy: Ints  # [H, S]
    width: Floats  # [H]
    cap: Floats  # [H] the largest possible return
    learned_steps: int


@inlined
def ucb_h_update(told: Mechanics, learner: UCBHState, seen: Seen, share: Floats) -> bool:
    """Jin et al. (2018), Algorithm 1. The landing reward counts as part of the reward that was paid."""
    h, s, a, s_next, j, _ = seen
    if h >= learner.learned_steps:
        return False
    H, q = told.horizon, learner.q
    learner.visits[h, s, a] += 1
    t = learner.visits[h, s, a]
    alpha = (H + 1) / (H + t)
    paid = told.reward[min(h, len(told.reward) - 1), s, a]
    paid += landed(told, h, s, a, j)
    target = paid + told.discount * learner.value[h + 1, s_next] + learner.width[h] / math.sqrt(t)
    q[h, s, a] = (1 - alpha) * q[h, s, a] + alpha * target
    best = best_action(q, h, s)
    learner.value[h, s] = min(learner.cap[h], q[h, s, best])
    return keep_best(learner.policy, h, s, best)


@packed
class UCBVIState(NamedTuple):
    """Optimistic planning with counted transitions.

    A plan works out the pairs only that may be the best of their states. Until a pair is visited again, its bound
    r + P̂V + b can only fall from plan to plan, because V does: so q, which keeps the least bound, is not too low where
    it is old, and once it is worked out again it is what working it out in every plan would have left.
    """

    q: Floats  # [H, S, A] -inf where the action does not exist
    value: Floats  # [H+1, S]
    seen: Floats  # [H, S', S·A] transitions; the next state first, so that the sum over it runs along memory
    visits: Ints  # [H, S, A]
    landed: Floats  # [H, S, A] sum of landing rewards
    share: Floats  # [H, S, A] 1 / visits
    bonus: Floats  # [H, S, A] width / sqrt(visits)
    stale: Ints  # [1] whether anything was seen since the last plan
    policy: Ints  # [H, S]
    ahead: Floats  # [S·A] room for one step's sums
    chosen: Floats  # [H, S', S] those of ``seen`` of the pairs that the policy chooses
    plans: Ints  # [1] how many were made
    known: Ints  # [H, S, A] the last plan that q was worked out in
    width: Floats  # [H]
    learned_steps: int


@inlined
def count(told: Mechanics, learner: Any, seen: Seen) -> None:
    """Take a transition into the counts of a learner that plans."""
    h, s, a, s_next, j, _ = seen
    learner.seen[h, s_next, s * learner.q.shape[2] + a] += 1
    learner.visits[h, s, a] += 1
    learner.landed[h, s, a] += landed(told, h, s, a, j)
    learner.share[h, s, a] = 1 / learner.visits[h, s, a]
    learner.stale[0] = 1


@inlined
def sum_ahead(told: Mechanics, learner: Any, h: int) -> None:
    """learner.ahead[pair] = Σ_{s'} N_h(pair, s') γ V_{h+1}(s')."""
    for pair in range(len(learner.ahead)):
        learner.ahead[pair] = 0
    for s_next in range(learner.value.shape[1]):
        v = told.discount * learner.value[h + 1, s_next]
        for pair in range(len(learner.ahead)):
            learner.ahead[pair] += v * learner.seen[h, s_next, pair]


@inlined
def plan_again(told: Mechanics, learner: Any) -> int:
    """Backward induction with the counts, if there is news; the last step whose policy changed, or -1."""
    return plan_with_counts(told, learner) if learner.stale[0] else -1


@apart
def plan_with_counts(told: Mechanics, learner: Any) -> int:
    """Backward induction with the counts; the last step whose policy changed, or -1."""
    top, learner.stale[0] = -1, 0
    for h in range(told.horizon - 1, -1, -1):
        sum_ahead(told, learner, h)
        improve(told, learner, h)
        if settle(learner, h) and top < 0:
            top = h
    return top


@inlined
def settle(learner: Any, h: int) -> bool:
    """Renew value and policy of step h from q; whether the policy changed."""
    changed = False
    for s in range(learner.q.shape[1]):
        best = best_action(learner.q, h, s)
        learner.value[h, s] = learner.q[h, s, best]
        changed |= keep_best(learner.policy, h, s, best)
    return changed


@inlined
def ucbvi_plan_again(told: Mechanics, learner: UCBVIState) -> int:
    """Azar et al. (2017), Algorithm 2, if there is news; the last step whose policy changed, or -1."""
    return ucbvi_plan(told, learner) if learner.stale[0] else -1


@apart
def ucbvi_plan(told: Mechanics, learner: UCBVIState) -> int:
    """Q = min(Q before, cap, r + P̂V + b), backwards; the last step whose policy changed, or -1."""
    top, learner.stale[0] = -1, 0
    learner.plans[0] += 1
    for h in range(told.horizon - 1, -1, -1):
        if h < learner.learned_steps:
            work_out_chosen(told, learner, h)
        if settle_best(told, learner, h) and top < 0:
            top = h
    return top


@inlined
def work_out_chosen(told: Mechanics, learner: UCBVIState, h: int) -> None:
    """Q of the pairs that the policy of the last plan chose at step h, side by side: most are still the best."""
    ahead, S = learner.ahead, unsigned(learner.q.shape[1])
    for s in range(S):
        ahead[s] = 0
    for s_next in range(S):
        v = told.discount * learner.value[h + 1, s_next]
        for s in range(S):
            ahead[s] += v * learner.chosen[h, s_next, s]
    for s in range(S):
        lower(told, learner, unsigned(h), s, unsigned(learner.policy[h, s]), ahead[s])


@inlined
def settle_best(told: Mechanics, learner: UCBVIState, step: int) -> bool:
    """Value and policy of a step, with q of the best pair of every state worked out; whether the policy changed."""
    q, h, (S, A) = learner.q, unsigned(step), learner.q.shape[1:]
    changed, learned = False, step < learner.learned_steps
    for s in range(unsigned(S)):
        best = unsigned(best_action(q, h, s))
        while learned and learner.known[h, s, best] < learner.plans[0]:
            work_out(told, learner, h, s, best)
            best = unsigned(best_action(q, h, s))
        learner.value[h, s] = q[h, s, best]
        if keep_best(learner.policy, h, s, signed(best)):
            changed = True
            for s_next in range(unsigned(S) if learned else unsigned(0)):
                learner.chosen[h, s_next, s] = learner.seen[h, s_next, s * unsigned(A) + best]
    return changed


@inlined
def work_out(told: Mechanics, learner: UCBVIState, h: int, s: int, a: int) -> None:
    """Q of a pair by the values of the last plan, unless it was worked out since."""
    if learner.known[h, s, a] == learner.plans[0]:
        return
    pair, ahead = s * unsigned(learner.q.shape[2]) + a, 0.0
    for s_next in range(unsigned(learner.value.shape[1])):
        ahead += told.discount * learner.value[h + 1, s_next] * learner.seen[h, s_next, pair]
    lower(told, learner, h, s, a, ahead)


@inlined
def lower(told: Mechanics, learner: UCBVIState, h: int, s: int, a: int, ahead: float) -> None:
    """The least of q and r + P̂V + b; pairs never visited keep the cap. ahead: Σ_{s'} N_h(s, a, s') γ V_{h+1}(s')."""
    learner.known[h, s, a] = learner.plans[0]
    if learner.visits[h, s, a] > 0:
        mean = (learner.landed[h, s, a] + ahead) * learner.share[h, s, a]
        r = min(h, unsigned(len(told.reward) - 1))
        bound = told.reward[r, s, a] + mean + learner.bonus[h, s, a]
        learner.q[h, s, a] = min(learner.q[h, s, a], bound)


@compiled
def work_out_all(told: Mechanics, learner: UCBVIState) -> None:
    """Q of every pair by the values of the last plan."""
    for h in range(unsigned(learner.learned_steps)):
        for s in range(unsigned(learner.q.shape[1])):
            for a in range(unsigned(learner.q.shape[2])):
                work_out(told, learner, h, s, a)


@inlined
def ucbvi_update(told: Mechanics, learner: UCBVIState, seen: Seen, share: Floats) -> bool:
    """Count; planning waits for the next episode. What the last plan would have left in q is worked out before."""
    h, s, a = seen.h, seen.s, seen.a
    if h < learner.learned_steps:
        work_out(told, learner, unsigned(h), unsigned(s), unsigned(a))
        count(told, learner, seen)
        if a == learner.policy[h, s]:
            learner.chosen[h, seen.s_next, s] += 1
        learner.bonus[h, s, a] = learner.width[h] / math.sqrt(learner.visits[h, s, a])
    return False


@packed
class UCBVIBFState(NamedTuple):
    """As UCBVI, with a bonus from the variance of the next value."""

    q: Floats  # [H, S, A] -inf where the action does not exist
    value: Floats  # [H+1, S]
    seen: Floats  # [H, S', S·A]
    visits: Ints  # [H, S, A]
    landed: Floats  # [H, S, A]
    share: Floats  # [H, S, A]
    arrived: Floats  # [H+1, S] visits of each state
    stale: Ints  # [1]
    policy: Ints  # [H, S]
    ahead: Floats  # [S·A]
    c: float  # scale of the bonus
    log_term: float  # log(5SAT/p)
    learned_steps: int


@inlined
def ucbvi_bf_update(told: Mechanics, learner: UCBVIBFState, seen: Seen, share: Floats) -> bool:
    """Count; planning waits for the next episode."""
    count(told, learner, seen)
    learner.arrived[seen.h, seen.s] += 1
    return False


@inlined
def ucbvi_bf_improve(told: Mechanics, learner: UCBVIBFState, h: int) -> None:
    """Q = min(Q before, cap, r + P̂V + b) with the bonus of Algorithm 4 of Azar et al. (2017).

    b = c ( sqrt(8ℓ Var_P̂(V)/N) + 14Hℓ/(3N) + sqrt(8 Σ_y P̂(y) min(100² H³S²Aℓ²/N'_{h+1}(y), H²) / N) ): variance,
    range, and what the bonuses of the next states y may still be off; nothing follows the last step.
    """
    H, (S, A), log_term, q = told.horizon, learner.q.shape[1:], learner.log_term, learner.q
    for s in range(S):
        for a in range(A):
            n = learner.visits[h, s, a]
            if n == 0:
                continue
            mean, square, later = 0.0, 0.0, 0.0
            for y in range(S):
                p = learner.seen[h, y, s * A + a] / n
                if p > 0:
                    v = told.discount * learner.value[h + 1, y]
                    mean += p * v
                    square += p * v * v
                    if h + 1 < H:
                        later += p * min(1e4 * H**3 * S * S * A * log_term**2 / learner.arrived[h + 1, y], float(H * H))
            spread = math.sqrt(8 * log_term * max(square - mean * mean, 0.0) / n)
            bonus = spread + 14 * H * log_term / (3 * n) + math.sqrt(8 * later / n)
            paid = told.reward[min(h, len(told.reward) - 1), s, a] + learner.landed[h, s, a] * learner.share[h, s, a]
            q[h, s, a] = min(q[h, s, a], paid + mean + learner.c * bonus)


@packed
class UBEVState(NamedTuple):
    """Optimistic planning with a bonus from the law of the iterated logarithm."""

    q: Floats  # [H, S, A] -inf where the action does not exist
    value: Floats  # [H+1, S]
    seen: Floats  # [H, S', S·A]
    visits: Ints  # [H, S, A]
    landed: Floats  # [H, S, A]
    share: Floats  # [H, S, A]
    phi: Floats  # [H, S, A] sqrt((2 llnp(n) + log_term) / n)
    stale: Ints  # [1]
    policy: Ints  # [H, S]
    ahead: Floats  # [S·A]
    span: Floats  # [H] how far apart what follows a step can be
    c: float
    log_term: float  # log(18SAH/p)


@inlined
def ubev_update(told: Mechanics, learner: UBEVState, seen: Seen, share: Floats) -> bool:
    """Count; planning waits for the next episode."""
    h, s, a = seen.h, seen.s, seen.a
    count(told, learner, seen)
    n = learner.visits[h, s, a]
    llnp = math.log(math.log(max(float(n), math.e)))
    learner.phi[h, s, a] = learner.c * math.sqrt((2 * llnp + learner.log_term) / n)
    return False


@inlined
def ubev_improve(told: Mechanics, learner: UBEVState, h: int) -> None:
    """Dann et al. (2017), Algorithm 1: Q = r + min(max V_{h+1}, P̂V + span φ); landing is part of what follows."""
    q, r, A = learner.q, min(h, len(told.reward) - 1), learner.q.shape[2]
    most = told.discount * largest(learner.value, h + 1) + largest(told.landing, min(h, len(told.landing) - 1))
    for s in range(q.shape[1]):
        for a in range(A):
            follows = most
            if learner.visits[h, s, a] > 0:
                mean = (learner.landed[h, s, a] + learner.ahead[s * A + a]) * learner.share[h, s, a]
                follows = min(most, mean + learner.span[h] * learner.phi[h, s, a])
            q[h, s, a] = told.reward[r, s, a] + follows


@packed
class UCBBState(NamedTuple):
    """Optimistic Q-learning with a bonus from the variance of its targets."""

    q: Floats  # [H, S, A] -inf where the action does not exist
    value: Floats  # [H+1, S]
    visits: Ints  # [H, S, A]
    total: Floats  # [H, S, A] Σ of what followed
    squares: Floats  # [H, S, A] Σ of its squares
    beta: Floats  # [H, S, A] the bound after the last visit
    policy: Ints  # [H, S]
    cap: Floats  # [H]
    c: float
    log_term: float  # ι = log(SAH/p)


@inlined
def ucb_b_update(told: Mechanics, learner: UCBBState, seen: Seen, share: Floats) -> bool:
    """Jin et al. (2018), Algorithm 2; both constants are c."""
    h, s, a, s_next, j, _ = seen
    H, (S, A), iota = told.horizon, learner.q.shape[1:], learner.log_term
    learner.visits[h, s, a] += 1
    t = learner.visits[h, s, a]
    alpha = (H + 1) / (H + t)
    follows = landed(told, h, s, a, j)
    follows += told.discount * learner.value[h + 1, s_next]
    learner.total[h, s, a] += follows
    learner.squares[h, s, a] += follows * follows
    variance = max(learner.squares[h, s, a] / t - (learner.total[h, s, a] / t) ** 2, 0.0)
    bernstein = math.sqrt(H / t * (variance + H) * iota) + math.sqrt(float(H) ** 7 * S * A) * iota / t
    beta = learner.c * min(bernstein, math.sqrt(H**3 * iota / t))
    bonus = (beta - (1 - alpha) * learner.beta[h, s, a]) / (2 * alpha)
    learner.beta[h, s, a] = beta
    target = told.reward[min(h, len(told.reward) - 1), s, a] + follows + bonus
    q = learner.q
    q[h, s, a] = (1 - alpha) * q[h, s, a] + alpha * target
    best = best_action(q, h, s)
    learner.value[h, s] = min(learner.cap[h], q[h, s, best])
    return keep_best(learner.policy, h, s, best)


@packed
class EarlySettledState(NamedTuple):
    """Q-learning with a reference that settles once upper and lower bounds are close."""

    q: Floats  # [H, S, A] the smallest bound so far; -inf where the action does not exist
    upper: Floats  # [H, S, A] Q^U
    lower: Floats  # [H, S, A] Q^L
    reference: Floats  # [H, S, A] Q^R
    value: Floats  # [H+1, S] V
    value_low: Floats  # [H+1, S] V^L
    value_ref: Floats  # [H+1, S] V^R
    unsettled: Ints  # [H, S] the flag u
    visits: Ints  # [H, S, A]
    mean_ref: Floats  # [H, S, A]
    square_ref: Floats  # [H, S, A]
    mean_adv: Floats  # [H, S, A]
    square_adv: Floats  # [H, S, A]
    bonus_ref: Floats  # [H, S, A] B^R
    policy: Ints  # [H, S]
    c: float
    log_term: float  # ι = log(SAH/p)


@inlined
def early_settled_update(told: Mechanics, learner: EarlySettledState, seen: Seen, share: Floats) -> bool:
    """Li et al. (2021), Algorithm 1. The landing reward counts as part of the reward that was paid."""
    h, s, a, s_next, j, _ = seen
    H, c, iota, gamma = told.horizon, learner.c, learner.log_term, told.discount
    learner.visits[h, s, a] += 1
    n = learner.visits[h, s, a]
    eta = (H + 1) / (H + n)
    paid = told.reward[min(h, len(told.reward) - 1), s, a]
    paid += landed(told, h, s, a, j)
    v, v_low = gamma * learner.value[h + 1, s_next], gamma * learner.value_low[h + 1, s_next]
    v_ref = gamma * learner.value_ref[h + 1, s_next]
    width = c * math.sqrt(H**3 * iota / n)
    learner.upper[h, s, a] = (1 - eta) * learner.upper[h, s, a] + eta * (paid + v + width)
    learner.lower[h, s, a] = (1 - eta) * learner.lower[h, s, a] + eta * (paid + v_low - width)
    learner.mean_ref[h, s, a] = (1 - 1 / n) * learner.mean_ref[h, s, a] + v_ref / n
    learner.square_ref[h, s, a] = (1 - 1 / n) * learner.square_ref[h, s, a] + v_ref * v_ref / n
    learner.mean_adv[h, s, a] = (1 - eta) * learner.mean_adv[h, s, a] + eta * (v - v_ref)
    learner.square_adv[h, s, a] = (1 - eta) * learner.square_adv[h, s, a] + eta * (v - v_ref) ** 2
    var_ref = max(learner.square_ref[h, s, a] - learner.mean_ref[h, s, a] ** 2, 0.0)
    var_adv = max(learner.square_adv[h, s, a] - learner.mean_adv[h, s, a] ** 2, 0.0)
    bound = c * math.sqrt(iota / n) * (math.sqrt(var_ref) + math.sqrt(float(H)) * math.sqrt(var_adv))
    delta = bound - learner.bonus_ref[h, s, a]
    learner.bonus_ref[h, s, a] = bound
    bonus = bound + (1 - eta) * delta / eta + c * H**2 * iota / float(n) ** 0.75
    target = paid + v - v_ref + learner.mean_ref[h, s, a] + bonus
    learner.reference[h, s, a] = (1 - eta) * learner.reference[h, s, a] + eta * target
    best_bound = min(learner.reference[h, s, a], learner.upper[h, s, a])
    learner.q[h, s, a] = min(best_bound, learner.q[h, s, a])
    best = best_action(learner.q, h, s)
    learner.value[h, s] = learner.q[h, s, best]
    lowest = learner.lower[h, s, best_action(learner.lower, h, s)]
    learner.value_low[h, s] = max(lowest, learner.value_low[h, s])
    if learner.value[h, s] - learner.value_low[h, s] > 1:
        learner.value_ref[h, s] = learner.value[h, s]
    elif learner.unsettled[h, s] == 1:
        learner.value_ref[h, s] = learner.value[h, s]
        learner.unsettled[h, s] = 0
    return keep_best(learner.policy, h, s, best)


registered(UCBHState, ucb_h_update)
registered(UCBBState, ucb_b_update)
registered(EarlySettledState, early_settled_update)
registered(UCBVIState, ucbvi_update, ucbvi_plan_again)
registered(UCBVIBFState, ucbvi_bf_update, plan_again)
improve.state(UCBVIBFState, ucbvi_bf_improve)
registered(UBEVState, ubev_update, plan_again)
improve.state(UBEVState, ubev_improve)
