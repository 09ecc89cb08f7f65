"""Every compiled function: arrays in, arrays out; no classes, no randomness, no files.

Letters: h step, s state index, a action, x after-state index, z raw next state index, j index of a disturbance
among those told apart (z = x + j). Arrays with a step axis have H rows, or one row that serves every step:
``table[h % len(table)]`` reads both. Compiled functions that call one another stand in this one file, because
numba's cache on disk notices an edit only in the file of the function it loads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from ucbf.system import CLIP, WRAP, Mechanics

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile on first use, keep on disk, run without the GIL; IEEE arithmetic, so interpreted means the same."""
    return _jit(function)


def inlined(function: Function) -> Function:
    """The same, merged into the compiled functions that call it: passing two dozen arrays costs more than a loop."""
    return _jit(function, forceinline=True)


def _jit(function: Function, **options: bool) -> Function:
    jit: Any = numba.njit
    try:
        return cast(Function, jit(cache=True, nogil=True, error_model="numpy", **options)(function))
    except RuntimeError:  # nowhere to keep compiled code: a read-only installation without a home
        return cast(Function, jit(nogil=True, error_model="numpy", **options)(function))


# -- the world: one step, one episode, exact values ---------------------------------------------------


class Draws(NamedTuple):
    """What befalls K episodes, drawn before the first."""

    starts: Ints  # [K] first states
    j: Ints  # [K, H] disturbances, as the world counts them
    measured: Ints  # [K, H] the same, as the learner counts them


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
    for z in range(arena.j.min(), arena.j.max() + m.n_after):
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
def walk(arena: Arena, policy: Ints, start: int, j: Ints, states: Ints, actions: Ints) -> float:
    """One episode. j: [H] disturbances; states: [H+1] and actions: [H] are filled; returns the discounted return."""
    m = arena.mechanics
    collected: float = 0.0
    weight = 1.0
    states[0] = start
    for h in range(m.horizon):
        s = states[h]
        a = policy[h, s]
        z = m.after[h % len(m.after), s, a] + j[h]
        actions[h] = a
        states[h + 1] = m.next_state[z]
        collected += weight * (m.reward[h % len(m.reward), s, a] + m.landing[h % len(m.landing), z])
        weight *= m.discount
    collected += weight * m.terminal[states[m.horizon]]
    return collected


@inlined
def is_edge(told: Mechanics, s_next: int) -> bool:
    """Whether state index s_next may hide the disturbance that led to it."""
    return told.boundary == CLIP and (s_next == 0 or s_next == told.after.shape[1] - 1)


@inlined
def residual(told: Mechanics, h: int, s: int, a: int, s_next: int, measured: int) -> int:
    """The disturbance that explains s, a -> s_next, as an index.

    The transition is believed wherever it determines W; ``measured`` serves at the two edges of a clipped space.
    """
    if is_edge(told, s_next):
        return measured
    j: int = s_next + told.shift - told.after[h % len(told.after), s, a]
    return j % told.after.shape[1] if told.boundary == WRAP else j


@compiled
def episode(
    arena: Arena,
    told: Mechanics,
    policy: Ints,
    draws: Draws,
    k: int,
    v: Floats,
    top: int,
    states: Ints,
    actions: Ints,
    residuals: Ints,
) -> tuple[float, float]:
    """Play episode k of the draws; its gap and what was collected.

    top: last step at which ``policy`` is not the one that v [H+1, S] belongs to
    states: [H+1], actions, residuals: [H], filled here
    """
    evaluate(arena, policy, v, top)
    collected = walk(arena, policy, draws.starts[k], draws.j[k], states, actions)
    for h in range(told.horizon):
        residuals[h] = residual(told, h, states[h], actions[h], states[h + 1], draws.measured[k, h])
    return gap_of(arena, v[0]), collected


# -- learners: arrays that learning changes, and the two functions that change them -------------------
#
# ``update(told, learner, h, s, a, s_next, j) -> bool`` takes in one transition and says whether the policy of step h
# changed. ``renew(told, learner) -> int`` is called before an episode and returns the last step whose policy it
# changed, or -1. Both are chosen by the learner's type, when compiled and when interpreted.

_UPDATES: dict[type, Callable[..., bool]] = {}
_RENEWALS: dict[type, Callable[..., int]] = {}
_IMPROVEMENTS: dict[type, Callable[..., None]] = {}


def update(told: Mechanics, learner: Any, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """Take one transition in; whether the policy of step h changed."""
    return _UPDATES[type(learner)](told, learner, h, s, a, s_next, j)


def renew(told: Mechanics, learner: Any) -> int:
    """Prepare the policy of the next episode; the last step that changed, or -1."""
    return _RENEWALS[type(learner)](told, learner)


def improve(told: Mechanics, learner: Any, h: int) -> None:
    """Renew q of step h, for a learner that plans."""
    _IMPROVEMENTS[type(learner)](told, learner, h)


@overload(update, strict=False, jit_options={"forceinline": True})
def _compiled_update(told: Any, learner: Any, h: Any, s: Any, a: Any, s_next: Any, j: Any) -> Any:
    kernel = _UPDATES[learner.instance_class]
    return lambda told, learner, h, s, a, s_next, j: kernel(told, learner, h, s, a, s_next, j)


@overload(renew, strict=False, jit_options={"forceinline": True})
def _compiled_renew(told: Any, learner: Any) -> Any:
    kernel = _RENEWALS[learner.instance_class]
    return lambda told, learner: kernel(told, learner)


@overload(improve, strict=False, jit_options={"forceinline": True})
def _compiled_improve(told: Any, learner: Any, h: Any) -> Any:
    kernel = _IMPROVEMENTS[learner.instance_class]
    return lambda told, learner, h: kernel(told, learner, h)


@inlined
def renew_nothing(told: Mechanics, learner: Any) -> int:
    """For learners whose policy is right after every update."""
    return -1


@compiled
def run(arena: Arena, told: Mechanics, learner: Any, draws: Draws, v: Floats, gap: Floats, reward: Floats) -> None:
    """Act, then learn, for K episodes. v: [H+1, S], its last row the terminal reward; gap, reward: [K], filled here."""
    H = told.horizon
    states, actions, w = np.empty(H + 1, np.int64), np.empty(H, np.int64), np.empty(H, np.int64)
    top = H - 1
    for k in range(len(gap)):
        top = max(top, renew(told, learner))
        gap[k], reward[k] = episode(arena, told, learner.policy, draws, k, v, top, states, actions, w)
        top = -1
        for h in range(H):
            if update(told, learner, h, states[h], actions[h], states[h + 1], w[h]):
                top = h


@compiled
def run_update(told: Mechanics, learner: Any, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """One update, called from Python."""
    return update(told, learner, h, s, a, s_next, j)


@compiled
def run_renewal(told: Mechanics, learner: Any) -> int:
    """One renewal, called from Python."""
    return renew(told, learner)


@compiled
def replay(told: Mechanics, learner: Any, j: Ints) -> None:
    """Learn from disturbances alone. j: [K, H]."""
    for k in range(j.shape[0]):
        for h in range(j.shape[1]):
            update(told, learner, h, 0, 0, 0, j[k, h])


@compiled
def relearn(told: Mechanics, learner: Any, states: Ints, actions: Ints, j: Ints) -> None:
    """Learn from recorded episodes, as in :func:`run` but without the world. states: [K, H+1], actions, j: [K, H]."""
    for k in range(len(actions)):
        renew(told, learner)
        for h in range(told.horizon):
            update(told, learner, h, states[k, h], actions[k, h], states[k, h + 1], j[k, h])


@inlined
def keep_best(policy: Ints, h: int, s: int, a: int) -> bool:
    """Write action a into a policy [H, S]; whether that changed it."""
    changed: bool = policy[h, s] != a
    policy[h, s] = a
    return changed


# -- a policy that stays --------------------------------------------------------------------------------


class Fixed(NamedTuple):
    """Learns nothing."""

    policy: Ints  # [H, S]


@inlined
def fixed_update(told: Mechanics, learner: Fixed, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """Nothing to do."""
    return False


# -- UCB-f ------------------------------------------------------------------------------------------------


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


@inlined
def ucb_f_update(told: Mechanics, learner: UCBfState, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """Replay disturbance j at every state and action of step h. Algorithm 1, lines 8-14."""
    if h >= learner.learned_steps:
        return False
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
    return ucb_f_greedy(told, learner, h)


@inlined
def ucb_f_greedy(told: Mechanics, learner: UCBfState, h: int) -> bool:
    """Renew value and policy of step h; whether the policy changed."""
    after, reward, average = told.after, told.reward, learner.average
    f, r = h % len(after), h % len(reward)
    weight, bonus, cap = learner.weight[h], learner.bonus[h], learner.cap[h]
    changed = False
    for s in range(after.shape[1]):
        best, best_a = -np.inf, 0
        for a in range(after.shape[2]):
            q = weight * reward[r, s, a] + average[h, after[f, s, a]]
            if q > best:
                best, best_a = q, a
        learner.value[h, s] = min(cap, best + bonus)
        changed |= keep_best(learner.policy, h, s, best_a)
    return changed


# -- UCB-H ------------------------------------------------------------------------------------------------


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
def ucb_h_update(told: Mechanics, learner: UCBHState, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """Jin et al. (2018), Algorithm 1. The landing reward counts as part of the reward that was paid."""
    if h >= learner.learned_steps:
        return False
    H, q = told.horizon, learner.q[h, s]
    learner.visits[h, s, a] += 1
    t = learner.visits[h, s, a]
    alpha = (H + 1) / (H + t)
    paid = told.reward[h % len(told.reward), s, a]
    paid += told.landing[h % len(told.landing), told.after[h % len(told.after), s, a] + j]
    target = paid + told.discount * learner.value[h + 1, s_next] + learner.width[h] / math.sqrt(t)
    q[a] = (1 - alpha) * q[a] + alpha * target
    best = q.argmax()
    learner.value[h, s] = min(learner.cap[h], q[best])
    return keep_best(learner.policy, h, s, best)


# -- UCBVI ------------------------------------------------------------------------------------------------


class UCBVIState(NamedTuple):
    """Optimistic planning with counted transitions."""

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
    width: Floats  # [H]
    learned_steps: int


@inlined
def count(told: Mechanics, learner: Any, h: int, s: int, a: int, s_next: int, j: int) -> None:
    """Take a transition into the counts of a learner that plans."""
    learner.seen[h, s_next, s * learner.q.shape[2] + a] += 1
    learner.visits[h, s, a] += 1
    z = told.after[h % len(told.after), s, a] + j
    learner.landed[h, s, a] += told.landing[h % len(told.landing), z]
    learner.share[h, s, a] = 1 / learner.visits[h, s, a]
    learner.stale[0] = 1


@inlined
def sum_ahead(told: Mechanics, learner: Any, h: int) -> None:
    """learner.ahead[pair] = Σ_{s'} N_h(pair, s') γ V_{h+1}(s')."""
    learner.ahead[:] = 0
    for s_next in range(learner.value.shape[1]):
        v = told.discount * learner.value[h + 1, s_next]
        for pair in range(len(learner.ahead)):
            learner.ahead[pair] += v * learner.seen[h, s_next, pair]


@compiled
def plan_again(told: Mechanics, learner: Any) -> int:
    """Backward induction with the counts, if there is news; the last step whose policy changed, or -1."""
    top = -1
    if learner.stale[0]:
        learner.stale[0] = 0
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
        best = 0
        for a in range(learner.q.shape[2]):
            if learner.q[h, s, a] > learner.q[h, s, best]:
                best = a
        learner.value[h, s] = learner.q[h, s, best]
        changed |= keep_best(learner.policy, h, s, best)
    return changed


@inlined
def ucbvi_improve(told: Mechanics, learner: UCBVIState, h: int) -> None:
    """Azar et al. (2017), Algorithm 2: Q = min(Q before, cap, r + P̂V + b); pairs never visited keep the cap."""
    q, r, A = learner.q, h % len(told.reward), learner.q.shape[2]
    for s in range(q.shape[1] if h < learner.learned_steps else 0):
        for a in range(A):
            if learner.visits[h, s, a] > 0:
                mean = (learner.landed[h, s, a] + learner.ahead[s * A + a]) * learner.share[h, s, a]
                q[h, s, a] = min(q[h, s, a], told.reward[r, s, a] + mean + learner.bonus[h, s, a])


@inlined
def ucbvi_update(told: Mechanics, learner: UCBVIState, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """Count; planning waits for the next episode."""
    if h < learner.learned_steps:
        count(told, learner, h, s, a, s_next, j)
        learner.bonus[h, s, a] = learner.width[h] / math.sqrt(learner.visits[h, s, a])
    return False


# -- UCBVI-BF ---------------------------------------------------------------------------------------------


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
def ucbvi_bf_update(told: Mechanics, learner: UCBVIBFState, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """Count; planning waits for the next episode."""
    count(told, learner, h, s, a, s_next, j)
    learner.arrived[h, s] += 1
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
            paid = told.reward[h % len(told.reward), s, a] + learner.landed[h, s, a] * learner.share[h, s, a]
            q[h, s, a] = min(q[h, s, a], paid + mean + learner.c * bonus)


# -- UBEV -------------------------------------------------------------------------------------------------


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
def ubev_update(told: Mechanics, learner: UBEVState, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """Count; planning waits for the next episode."""
    count(told, learner, h, s, a, s_next, j)
    n = learner.visits[h, s, a]
    llnp = math.log(math.log(max(float(n), math.e)))
    learner.phi[h, s, a] = learner.c * math.sqrt((2 * llnp + learner.log_term) / n)
    return False


@inlined
def ubev_improve(told: Mechanics, learner: UBEVState, h: int) -> None:
    """Dann et al. (2017), Algorithm 1: Q = r + min(max V_{h+1}, P̂V + span φ); landing is part of what follows."""
    q, r, A = learner.q, h % len(told.reward), learner.q.shape[2]
    most = told.discount * learner.value[h + 1].max() + told.landing[h % len(told.landing)].max()
    for s in range(q.shape[1]):
        for a in range(A):
            follows = most
            if learner.visits[h, s, a] > 0:
                mean = (learner.landed[h, s, a] + learner.ahead[s * A + a]) * learner.share[h, s, a]
                follows = min(most, mean + learner.span[h] * learner.phi[h, s, a])
            q[h, s, a] = told.reward[r, s, a] + follows


# -- UCB-B ------------------------------------------------------------------------------------------------


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
def ucb_b_update(told: Mechanics, learner: UCBBState, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """Jin et al. (2018), Algorithm 2; both constants are c."""
    H, (S, A), iota = told.horizon, learner.q.shape[1:], learner.log_term
    learner.visits[h, s, a] += 1
    t = learner.visits[h, s, a]
    alpha = (H + 1) / (H + t)
    follows = told.landing[h % len(told.landing), told.after[h % len(told.after), s, a] + j]
    follows += told.discount * learner.value[h + 1, s_next]
    learner.total[h, s, a] += follows
    learner.squares[h, s, a] += follows * follows
    variance = max(learner.squares[h, s, a] / t - (learner.total[h, s, a] / t) ** 2, 0.0)
    bernstein = math.sqrt(H / t * (variance + H) * iota) + math.sqrt(float(H) ** 7 * S * A) * iota / t
    beta = learner.c * min(bernstein, math.sqrt(H**3 * iota / t))
    bonus = (beta - (1 - alpha) * learner.beta[h, s, a]) / (2 * alpha)
    learner.beta[h, s, a] = beta
    target = told.reward[h % len(told.reward), s, a] + follows + bonus
    q = learner.q[h, s]
    q[a] = (1 - alpha) * q[a] + alpha * target
    best = q.argmax()
    learner.value[h, s] = min(learner.cap[h], q[best])
    return keep_best(learner.policy, h, s, best)


# -- Q-EarlySettled-Advantage -------------------------------------------------------------------------------


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
def early_settled_update(
    told: Mechanics, learner: EarlySettledState, h: int, s: int, a: int, s_next: int, j: int
) -> bool:
    """Li et al. (2021), Algorithm 1. The landing reward counts as part of the reward that was paid."""
    H, c, iota, gamma = told.horizon, learner.c, learner.log_term, told.discount
    learner.visits[h, s, a] += 1
    n = learner.visits[h, s, a]
    eta = (H + 1) / (H + n)
    paid = told.reward[h % len(told.reward), s, a]
    paid += told.landing[h % len(told.landing), told.after[h % len(told.after), s, a] + j]
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
    best = learner.q[h, s].argmax()
    learner.value[h, s] = learner.q[h, s, best]
    learner.value_low[h, s] = max(learner.lower[h, s].max(), learner.value_low[h, s])
    if learner.value[h, s] - learner.value_low[h, s] > 1:
        learner.value_ref[h, s] = learner.value[h, s]
    elif learner.unsettled[h, s] == 1:
        learner.value_ref[h, s] = learner.value[h, s]
        learner.unsettled[h, s] = 0
    return keep_best(learner.policy, h, s, best)


_UPDATES.update(
    {
        Fixed: fixed_update,
        UCBfState: ucb_f_update,
        UCBHState: ucb_h_update,
        UCBBState: ucb_b_update,
        EarlySettledState: early_settled_update,
        UCBVIState: ucbvi_update,
        UCBVIBFState: ucbvi_bf_update,
        UBEVState: ubev_update,
    }
)
_RENEWALS.update(
    dict.fromkeys((Fixed, UCBfState, UCBHState, UCBBState, EarlySettledState), renew_nothing)
    | dict.fromkeys((UCBVIState, UCBVIBFState, UBEVState), plan_again)
)
_IMPROVEMENTS.update({UCBVIState: ucbvi_improve, UCBVIBFState: ucbvi_bf_improve, UBEVState: ubev_improve})
