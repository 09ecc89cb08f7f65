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


# A function is optimised and turned to machine code once more inside each function that calls it, and inside each way
# in to that one. So there is one way in, from Python, and only for what Python calls.
_ALL: Any = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER: Any = {"no_cpython_wrapper": True}
_UNCOUNTED: Any = {"_nrt": False}
_MERGED: Any = {"forceinline": True} | _UNCOUNTED


def compiled(function: Function) -> Function:
    """Compile on first use, keep on disk, run without the GIL; IEEE arithmetic, so interpreted means the same."""
    return _jit(function)


def inlined(function: Function) -> Function:
    """The same, merged into the compiled functions that call it, and without counting references to arrays.

    Passing and counting two dozen arrays costs more than a loop. Such a function must not make or slice an array, nor
    call a method of one.
    """
    return _jit(function, **_MERGED)


def inner(function: Function) -> Function:
    """For a function that only compiled functions call: it is not prepared for Python, which would take longer."""
    return _jit(function, **_INNER)


def _jit(function: Function, **options: bool) -> Function:
    jit: Any = numba.njit
    try:
        return cast(Function, jit(cache=True, **_ALL, **options)(function))
    except RuntimeError:  # nowhere to keep compiled code: a read-only installation without a home
        return cast(Function, jit(**_ALL, **options)(function))


# -- the world: one step, one episode, exact values ---------------------------------------------------


class Draws(NamedTuple):
    """What befalls K episodes, drawn before the first."""

    starts: Ints  # [K] first states
    j: Ints  # [K, H] disturbances, as the world counts them
    measured: Ints  # [K, H] the same, as the learner counts them
    hidden: bool  # whether a clipped edge hides them from the learner


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
    return measured if is_edge(told, s_next) else residual_of(told, told.after, h, s, a, s_next)


@inlined
def residual_of(told: Mechanics, after: NDArray[np.int32], h: int, s: int, a: int, s_next: int) -> int:
    """s_next less the after-state that ``after`` [F, S, A] gives, as the index of a disturbance."""
    j: int = s_next + told.shift - after[h % len(after), s, a]
    return j % told.after.shape[1] if told.boundary == WRAP else j


@inlined
def as_seen(told: Mechanics, h: int, s: int, a: int, s_next: int, measured: int, hidden: bool) -> int:
    """:func:`residual`, or ~j where an edge hides it and says only that it was at most (at least, above) j."""
    if not (hidden and is_edge(told, s_next)):
        return residual(told, h, s, a, s_next, measured)
    last = told.n_residuals - 1
    j = min(max(residual_of(told, told.after, h, s, a, s_next), 0), last)
    if told.after.shape[1] == 1:  # an edge on both sides says nothing
        return ~last
    pinned = j == 0 if s_next == 0 else j == last
    return j if pinned else ~j


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
        measured, hidden = draws.measured[k, h], draws.hidden
        residuals[h] = as_seen(told, h, states[h], actions[h], states[h + 1], measured, hidden)
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


@overload(update, strict=False, jit_options=_MERGED | _INNER)
def _compiled_update(told: Any, learner: Any, h: Any, s: Any, a: Any, s_next: Any, j: Any) -> Any:
    return _source(_UPDATES[learner.instance_class])


@overload(renew, strict=False, jit_options=_UNCOUNTED | _INNER)  # not merged: it can be long
def _compiled_renew(told: Any, learner: Any) -> Any:
    return _source(_RENEWALS[learner.instance_class])


@overload(improve, strict=False, jit_options=_MERGED | _INNER)
def _compiled_improve(told: Any, learner: Any, h: Any) -> Any:
    return _source(_IMPROVEMENTS[learner.instance_class])


def _source(kernel: Any) -> Any:
    """What a kernel was compiled from: it is compiled again into its caller."""
    return getattr(kernel, "py_func", kernel)


@inlined
def renew_nothing(told: Mechanics, learner: Any) -> int:
    """For learners whose policy is right after every update."""
    return -1


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
    states, actions, w = np.empty(H + 1, np.int64), np.empty(H, np.int64), np.empty(H, np.int64)
    top = H - 1
    for k in range(len(gap)):
        top = max(top, renew(told, learner))
        switched[k] = top >= 0 and replace_policy(acted, learner.policy)
        gap[k], reward[k] = episode(arena, told, learner.policy, draws, k, v, top, states, actions, w)
        top = -1
        for h in range(H):
            if update(told, learner, h, states[h], actions[h], states[h + 1], w[h]):
                top = h


@inlined
def replace_policy(acted: Ints, policy: Ints) -> bool:
    """Copy ``policy`` to ``acted``, both [H, S]; whether they differed."""
    changed = False
    for h in range(policy.shape[0]):
        for s in range(policy.shape[1]):
            changed |= keep_best(acted, h, s, policy[h, s])
    return changed


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
            update(told, learner, h, -1, 0, 0, j[k, h])


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


# -- a policy that stays --------------------------------------------------------------------------------


class Fixed(NamedTuple):
    """Learns nothing."""

    policy: Ints  # [H, S]


@inlined
def fixed_update(told: Mechanics, learner: Fixed, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """Nothing to do."""
    return False


# -- whether the residuals bear the model out ---------------------------------------------------------------

BURN_IN = 30  # residuals of a step before any is held against the model
FURTHEST = 4.0  # standard deviations that a single residual counts for
SEEN, ORIGIN, MEAN, SQUARE = range(4)
VISITS, SHIFT, SPREAD = range(3)
COMPARED, FOURTH, OUTSIDE, CENSORED = range(4)
COUNT, SUM, SUM_OF_SQUARES = range(3)
PERIODS = 32  # that time is cut into


class Watch(NamedTuple):
    """Whether residuals depend on the state, the action or the time. Deviations are in standard deviations of the step.

    Time is cut into ``PERIODS`` of equal length, so many residuals of each step; when the last is full, neighbours are
    joined and the length doubles.
    """

    steps: Floats  # [H, 4] residuals seen; the first, from which they are counted; their mean; sum of squares about it
    groups: Floats  # [S + A, 3] of every state, then every action: deviations, their sum, the sum of their squares - 1
    tally: Floats  # [4] deviations; sum of (square - 1)²; residuals outside the declared range; hidden by an edge
    periods: Floats  # [1 + PERIODS, H, 3] of a prior, then of every period: residuals, their sum, that of their squares
    length: Ints  # [1] residuals of a step in a period


def new_watch(H: int, S: int, A: int) -> Watch:
    """One that has seen nothing."""
    periods = np.zeros((1 + PERIODS, H, 3))
    return Watch(np.zeros((H, 4)), np.zeros((S + A, 3)), np.zeros(4), periods, np.ones(1, np.int64))


@inlined
def watch(told: Mechanics, seen: Watch, h: int, s: int, a: int, j: int) -> None:
    """Compare residual j with those of its step so far; not where s < 0, and j is all there is."""
    if s < 0:
        return
    deviation = compare(told, seen, h, j)
    if not math.isnan(deviation):
        for group in (s, told.after.shape[1] + a):
            seen.groups[group, VISITS] += 1
            seen.groups[group, SHIFT] += deviation
            seen.groups[group, SPREAD] += deviation * deviation - 1


@compiled
def watch_history(told: Mechanics, seen: Watch, j: Ints) -> None:
    """Compare residuals of which neither state nor action is known, one after the other. j: [K, H]."""
    for k in range(j.shape[0]):
        for h in range(j.shape[1]):
            compare(told, seen, h, j[k, h])


@inlined
def compare(told: Mechanics, seen: Watch, h: int, j: int) -> float:
    """How far residual j is from the mean of its step so far, which it then joins; nan while there is too little."""
    steps, tally = seen.steps, seen.tally
    n = steps[h, SEEN]
    if n == 0:
        steps[h, ORIGIN] = j
    x = from_origin(j, steps[h, ORIGIN], turn(told))
    date(seen, h, x)
    before, deviation = x - steps[h, MEAN], math.nan
    if n >= BURN_IN and steps[h, SQUARE] >= BURN_IN / 2:  # else it may be a rare thing that has not happened yet
        deviation = before / math.sqrt((steps[h, SQUARE] + 1) / n * (1 + 1 / n))
        deviation = min(max(deviation, -FURTHEST), FURTHEST)
        excess = deviation * deviation - 1
        tally[COMPARED] += 1
        tally[FOURTH] += excess * excess
    steps[h, SEEN] = n + 1
    steps[h, MEAN] += before / (n + 1)
    steps[h, SQUARE] += before * (x - steps[h, MEAN])
    return deviation


@inlined
def date(seen: Watch, h: int, x: float) -> None:
    """Add a residual, counted from the first of its step, to the period it was seen in."""
    periods, length = seen.periods, seen.length
    n = seen.steps[h, SEEN] - periods[0, h, COUNT]
    at = 1 + int(n) // length[0]
    if at > PERIODS:
        join_periods(periods, length)
        at = 1 + int(n) // length[0]
    periods[at, h, COUNT] += 1
    periods[at, h, SUM] += x
    periods[at, h, SUM_OF_SQUARES] += x * x


@inlined
def join_periods(periods: Floats, length: Ints) -> None:
    """Make every two periods one."""
    length[0] *= 2
    for i in range(PERIODS):
        for h in range(periods.shape[1]):
            for k in range(periods.shape[2]):
                pair = periods[1 + 2 * i, h, k] + periods[2 + 2 * i, h, k] if 2 * i < PERIODS else 0.0
                periods[1 + i, h, k] = pair


@inlined
def from_origin(j: int, origin: float, around: int) -> float:
    """How far residual j is from the origin; the shorter way, where residuals are counted modulo ``around``."""
    x = j - origin
    if around > 0:
        x = x - around if 2 * x >= around else x + around if 2 * x < -around else x
    return x


@inlined
def turn(told: Mechanics) -> int:
    """What residuals are counted modulo; 0 if they are not."""
    return told.n_residuals if told.modular else 0


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
    watch: Watch
    eta: float  # the policy is renewed when the episodes have grown by 1 + eta; 0: it follows every update
    due: Ints  # [1] the episode before which the policy is renewed
    made: Ints  # [1] how many episodes had been seen when it last was


@inlined
def ucb_f_update(told: Mechanics, learner: UCBfState, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """Replay disturbance j at every state and action of step h. Algorithm 1, lines 8-14. s < 0: j is all there is."""
    if j < 0:  # hidden by an edge: taken for the nearest that explains it
        j = ~j
        learner.watch.tally[CENSORED] += 1
    watch(told, learner.watch, h, s, a, j)
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


# -- UCBVI-f ----------------------------------------------------------------------------------------------

ENOUGH = 10.0  # hidden disturbances for each that was seen
PASSES = 500  # over a law that both edges hide, at most


class UCBVIfState(NamedTuple):
    """Q_h(s, a) = r_h(s, a) + ahead_h(f(s, a)), planned with the counted disturbances."""

    counts: Floats  # [L, R] disturbances seen at each step, or at any
    below: Floats  # [L, R] how often an edge said no more than that W was at most this one
    above: Floats  # [L, R] or at least
    law: Floats  # [L, R] what follows from them
    guess: Floats  # [R] the law where nothing was counted
    room: Floats  # [2, R]
    ahead: Floats  # [H, X] expectation of landing(x + w) + γ V_{h+1}(boundary(x + w))
    value: Floats  # [H+1, S]
    visits: Ints  # [H]
    policy: Ints  # [H, S]
    raw: Floats  # [Z] room for what follows each raw next state
    stale: Ints  # [1] whether anything was seen since the last plan
    watch: Watch
    eta: float
    due: Ints  # [1]


@inlined
def ucbvi_f_update(told: Mechanics, learner: UCBVIfState, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """Count the disturbance, or what an edge says of it; planning waits for the next episode.

    s < 0: j is all there is. j < 0: it was hidden, and at most (at the low edge) or at least ~j.
    """
    row = h % len(learner.counts)
    if j >= 0:
        watch(told, learner.watch, h, s, a, j)
        learner.counts[row, j] += 1
    else:
        learner.watch.tally[CENSORED] += 1
        if s_next > 0:
            learner.above[row, ~j] += 1
        elif told.after.shape[1] > 1:  # else both edges are one, and it says nothing
            learner.below[row, ~j] += 1
    learner.visits[h] += 1
    learner.stale[0] = 1
    return False


@inner
def ucbvi_f_renew(told: Mechanics, learner: UCBVIfState) -> int:
    """Backward induction with the counted law, if there is news; the last step whose policy changed, or -1."""
    top = -1
    if learner.stale[0] and is_due(learner.visits, learner.due, learner.eta):
        learner.stale[0] = 0
        believe(told, learner, True)
        for h in range(told.horizon - 1, -1, -1):
            expect(told, learner, h)
            if ucbvi_f_greedy(told, learner, h) and top < 0:
                top = h
    return top


@compiled
def believe(told: Mechanics, learner: UCBVIfState, curious: bool) -> None:
    """The law of every row: shares of what was counted, or the product-limit estimate where edges hid some.

    curious: where an edge hides, doubt it as far as too little was seen beyond the edge (:func:`doubt`).
    """
    counts, below, above, law = learner.counts, learner.below, learner.above, learner.law
    R = told.n_residuals
    for row in range(len(counts)):
        seen, at_most, at_least = 0.0, 0.0, 0.0
        for j in range(R):
            seen += counts[row, j]
            at_most += below[row, j]
            at_least += above[row, j]
        if at_most == 0 and at_least == 0:
            for j in range(R):
                law[row, j] = counts[row, j] / seen if seen > 0 else learner.guess[j]
        elif at_least == 0:
            product_limit(counts, row, below, law, row, -1)
        elif at_most == 0:
            product_limit(counts, row, above, law, row, 1)
        else:
            self_consistent(learner, row)
        if curious and at_most + at_least > 0:
            share_out(learner, row)
            if at_most > 0:
                doubt(learner.room, 0, below, law, row, -1)
            if at_least > 0:
                doubt(learner.room, 1, above, law, row, 1)


@inlined
def product_limit(counts: Floats, c: int, hidden: Floats, law: Floats, row: int, step: int) -> None:
    """Kaplan and Meier (1958): the law in ``row`` from the counts in row c, in the direction of ``step``, 1 or -1.

    hidden: [L, R] how many are known only to be this one or one further on, in that direction. Each j takes its share
    of those still at risk: seen there or further on, or hidden from further on. What nothing ever showed is put at the
    far end.
    """
    R = counts.shape[1]
    at_risk = 0.0
    for j in range(R):
        at_risk += counts[c, j] + hidden[row, j]
    left, j = 1.0, 0 if step > 0 else R - 1
    for _ in range(R):
        at_risk -= hidden[row, j]  # it may be this very one: no longer known to be further on
        share = min(max(counts[c, j] / at_risk, 0.0), 1.0) if counts[c, j] > 0 else 0.0
        at_risk -= counts[c, j]
        law[row, j] = left * share
        left *= 1 - share
        j += step
    law[row, j - step] += left


@inlined
def share_out(learner: UCBVIfState, row: int) -> None:
    """learner.room: counts with what the upper edge hid, and with what the lower one did, where the law believes it."""
    law, room, R = learner.law, learner.room, learner.law.shape[1]
    up, weight = 1.0, 0.0
    for j in range(R):
        weight += learner.above[row, j] / up if up > 1e-12 else 0.0
        room[0, j] = learner.counts[row, j] + law[row, j] * weight
        up -= law[row, j]
    up, weight = 1.0, 0.0
    for j in range(R - 1, -1, -1):
        weight += learner.below[row, j] / up if up > 1e-12 else 0.0
        room[1, j] = learner.counts[row, j] + law[row, j] * weight
        up -= law[row, j]


@inlined
def doubt(counts: Floats, c: int, hidden: Floats, law: Floats, row: int, step: int) -> None:
    """Believe less of what the law in ``row`` says beyond an edge where too little was seen; the far end gets the rest.

    counts: [.., R] what was seen in row c. hidden: [L, R] what the edge hid, as of :func:`product_limit`. Of those m
    are believed to have been at j or further on, and r were seen to be, which is enough for 1 + r² hidden ones each,
    but not for more than ``ENOUGH``. Where m is more than that, up to log(1 + n) more than r are taken to have been at
    risk at j, n being all that the edge hid. What is seen once and then hidden for ever would else be believed for
    ever.
    """
    R = law.shape[1]
    at_risk, mass, n = 0.0, 0.0, 0.0
    for j in range(R):
        at_risk += counts[c, j] + hidden[row, j]
        mass += law[row, j]
        n += hidden[row, j]
    left, believed, j = mass, 0.0, 0 if step > 0 else R - 1
    for _ in range(R - 1):
        at_risk -= hidden[row, j]
        believed += hidden[row, j]
        share = min(law[row, j] / mass, 1.0) if mass > 1e-12 else 0.0
        mass -= law[row, j]
        trusted = share
        enough = at_risk * min(ENOUGH, 1 + at_risk * at_risk)
        if believed > enough:
            more = math.log(1 + n) * (1 - enough / believed)
            trusted *= max(at_risk, 0.0) / (max(at_risk, 0.0) + more)
        believed *= 1 - share
        at_risk -= counts[c, j]
        law[row, j] = left * trusted
        left *= 1 - trusted
        j += step
    law[row, j] = left


@inlined
def self_consistent(learner: UCBVIfState, row: int) -> None:
    """Where both edges hide: what the upper one hid is shared out by the law so far, the rest is a product limit."""
    law, above, room = learner.law, learner.above, learner.room
    R = law.shape[1]
    for j in range(R):
        law[row, j] = learner.counts[row, j] + 1e-3  # what both edges agree on may be where nothing was seen
    law[row, 0] += 1  # the ends, where what is never seen may be
    law[row, R - 1] += 1
    for _ in range(PASSES):
        tail, weight, moved = 0.0, 0.0, 0.0
        for j in range(R - 1, -1, -1):
            tail += law[row, j]
            room[0, j] = above[row, j] / tail if above[row, j] > 0 else 0.0
        for j in range(R):
            weight += room[0, j]
            room[0, j] = learner.counts[row, j] + law[row, j] * weight
            room[1, j] = law[row, j]
        product_limit(room, 0, learner.below, law, row, -1)
        for j in range(R):
            moved = max(moved, abs(law[row, j] - room[1, j]))
        if moved < 1e-9:
            break


@inlined
def expect(told: Mechanics, learner: UCBVIfState, h: int) -> None:
    """learner.ahead of step h: the mean over the believed disturbances of what follows each after-state."""
    raw, ahead, d, row = learner.raw, learner.ahead, h % len(told.landing), h % len(learner.law)
    for z in range(len(raw)):
        raw[z] = told.landing[d, z] + told.discount * learner.value[h + 1, told.next_state[z]]
    for x in range(told.n_after):
        ahead[h, x] = 0
    for j in range(told.n_residuals):
        p = learner.law[row, j]
        if p > 0:
            for x in range(told.n_after):
                ahead[h, x] += p * raw[x + j]


@inlined
def ucbvi_f_greedy(told: Mechanics, learner: UCBVIfState, h: int) -> bool:
    """Renew value and policy of step h; whether the policy changed."""
    return take_best(told, learner.ahead, learner.value, learner.policy, h, 1.0, 0.0, np.inf, True)


# -- repairing f ------------------------------------------------------------------------------------------
#
# A repairing learner is one of the two above with a model of f beside it. The mechanics it was told have f as it is
# believed now, so that residuals follow it; ``lead`` is what is taken to follow every pair, given what f may still be.

NEVER = -40.0  # logarithm of the chance of what cannot be: small enough to settle a doubt, and finite
HARDLY = 1e-12  # a chance that counts for nothing
TRUST, TRUST_WORTH = 0.5, 4.0  # how likely f as told is taken to be right at first, and how many pairs that is worth
SMOOTHINGS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # that are tried where it follows the data


class Model(NamedTuple):
    """An f that is believed, and how far it may be off.

    P = F·S·A pairs, F being 1 where f is the same at every step; E = 2 half + 1 offsets of a pair, and 2E - 1 with room
    to move all of them by a constant; L rows of the law, 1 or H; M rows of what was seen, 1 only if F and L are. The
    arrays from ``seen`` on are empty if f is fitted outside, by an estimator in Python.
    """

    first: NDArray[np.int32]  # [F, S, A] after-states as they were told
    f: NDArray[np.int32]  # [F, S, A] after-states now; the learner's mechanics hold the same array
    low: NDArray[np.int32]  # [F, S, A] the truth is believed to be from low to high, not yet wrapped
    high: NDArray[np.int32]  # [F, S, A]
    residuals: Floats  # [H, R] residuals of f as it was told
    offsets: bool  # whether f is fitted here
    half: int  # the largest offset, ζ/2
    threshold: float  # offsets less likely than this are dismissed, at first
    smoothing: float  # added to every count of the law; 0: it follows the data
    iterations: int  # of expectation and maximisation at a time
    seen: NDArray[np.int32]  # [M, S·A, R] residuals of f as it was told
    known: Floats  # [L, R] disturbances that were measured: at an edge, or before the start
    barred: Floats  # [P, E] what an edge said of the offsets
    likelihood: Floats  # [P, 2E-1] of every offset, given the law that other pairs showed
    posterior: Floats  # [P, E] of every offset
    belief: Floats  # [E] logarithm of how likely offsets are before a pair is seen: what the others have
    counts: Floats  # [L, R] the law: the expected number of times that each disturbance occurred
    prior: Floats  # [L, R] counts before any observation
    logs: Floats  # [L, R + 4 half] logarithm of the law when last fitted, continued at both ends
    apart: Floats  # [4 half + 1] by how much one residual tells apart offsets that differ by -2 half .. 2 half
    weights: Floats  # [E] room for the posterior of one pair
    own: Floats  # [R] room for what one pair adds to the law
    visits: Ints  # [P] observations of every pair
    stale: Ints  # [P] pairs with news since the last renewal
    spare: Floats  # [L, R] room for the law while another fit is tried
    spare_posterior: Floats  # [P, E]
    amount: Floats  # [1] the smoothing now
    clock: Ints  # [3] observations so far; those at which the law is fitted again, and from the beginning


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
def repaired_ucb_f_update(told: Mechanics, learner: RepairedUCBf, h: int, s: int, a: int, s_next: int, j: int) -> bool:
    """Learn f from the transition, then from the disturbance it is taken for; values wait for the next episode."""
    settled, inside = look(told, learner.model, h, s, a, s_next, j), learner.learner
    j = min(max(j, 0), told.n_residuals - 1)
    watch(told, inside.watch, h, settled, a, j)
    if h < inside.learned_steps:
        ucb_f_average(told, inside, h, j)
    return False


@inlined
def repaired_ucbvi_f_update(
    told: Mechanics, learner: RepairedUCBVIf, h: int, s: int, a: int, s_next: int, j: int
) -> bool:
    """Learn f from the transition, then count the disturbance it is taken for."""
    settled = look(told, learner.model, h, s, a, s_next, j)
    return ucbvi_f_update(told, learner.learner, h, settled, a, s_next, min(max(j, 0), told.n_residuals - 1))


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
        expect(told, inside, h)
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


@inlined
def place(told: Mechanics, x: int) -> int:
    """An after-state that an offset leads to, brought back among those there are."""
    X = told.n_after
    return x % X if told.modular else min(max(x, 0), X - 1)


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


@inlined
def bar_of(m: Model) -> float:
    """The chance below which an offset is dismissed; it falls with observations, so that none is given up for good."""
    return m.threshold / math.sqrt(1 + m.clock[0] / len(m.stale))


@inlined
def look(told: Mechanics, m: Model, h: int, s: int, a: int, s_next: int, j: int) -> int:
    """What a transition says of f; s if there is no doubt left about the pair, else -1. s < 0: j is all there is."""
    R = told.n_residuals
    if s < 0:
        m.residuals[h, j] += 1
        if m.offsets:
            m.clock[0] += 1
            m.known[h % len(m.known), j] += 1
        return -1
    f = h % len(m.f)
    edge = is_edge(told, s_next)
    as_told = j if edge else residual_of(told, m.first, h, s, a, s_next)
    if 0 <= as_told < R:
        m.residuals[h, as_told] += 1
        if m.offsets:
            S, A = told.after.shape[1:]
            pair, width = (f * S + s) * A + a, m.barred.shape[1]
            m.clock[0] += 1
            m.visits[pair] += 1
            m.stale[pair] = 1
            if edge:  # W is known, and the offset must lead to the edge
                m.known[h % len(m.known), j] += 1
                for d in range(width):
                    z = m.first[f, s, a] + d - m.half + j
                    if not (0 <= z < len(told.next_state)) or told.next_state[z] != s_next:
                        m.barred[pair, d] += NEVER
            else:
                m.seen[h % len(m.seen), s * A + a, as_told] += 1
                for d in range(2 * width - 1):
                    m.likelihood[pair, d] += m.logs[h % len(m.logs), as_told + 4 * m.half - d]
    return s if m.low[f, s, a] == m.high[f, s, a] else -1


@inner
def fit_offsets(told: Mechanics, m: Model, steps: Floats, groups: Floats) -> int:
    """Expectation and maximisation, and what they make of every pair with news; how far all of f was moved back."""
    S, A = told.after.shape[1:]
    moved_by = 0
    threshold = bar_of(m)
    if m.clock[0] >= m.clock[1]:
        m.clock[1] = m.clock[0] + max(1, m.clock[0] // 20)
        m.amount[0] = m.smoothing if m.smoothing > 0 else best_smoothing(told, m)
        moved_by = climb(told, m, 1.0)
        if m.clock[0] >= m.clock[2]:
            m.clock[2] = 2 * m.clock[0]
            if start_over(told, m):
                moved_by = common_move(told, m)
        expect_residuals(told, m.counts, steps)
        tell_apart(told, m)
        for pair in range(len(m.stale)):
            m.stale[pair] = 1
    for pair in range(len(m.stale)):
        if m.stale[pair] == 0:
            continue
        m.stale[pair] = 0
        best, least, most = likeliest(m, pair), len(m.weights), -1
        for d in range(len(m.weights)):
            m.posterior[pair, d] = m.weights[d]
            if m.weights[d] >= threshold:
                least, most = min(least, d), d
        f, s, a = pair // (S * A), pair // A % S, pair % A
        x = m.first[f, s, a] - m.half
        now, low, high = x + best, x + min(least, best), x + max(most, best)
        unmoved = m.f[f, s, a] - moved_by
        if told.modular:
            now, unmoved = now % S, unmoved % S
        if now != unmoved:  # what was held against the state and the action was about another f
            for group in (s, S + a):
                for i in range(groups.shape[1]):
                    groups[group, i] = 0
        m.f[f, s, a], m.low[f, s, a], m.high[f, s, a] = now, low, high
    return moved_by


@inner
def climb(told: Mechanics, m: Model, faith: float) -> int:
    """Expectation and maximisation, m.iterations times at full faith; how far all of f was moved back.

    The belief in f as told is learned only where the fit goes on: one from the beginning is held to the same belief.
    """
    goes_on, moved_by, rounds = faith >= 1, 0, 0
    while rounds < m.iterations:
        weigh(told, m)
        move = best_move(told, m) if faith >= 1 else 0
        moved_by += move
        recount(told, m, move, min(faith, 1.0))
        if goes_on:
            learn_belief(m)
        rounds += faith >= 1
        faith *= 1.3
    weigh(told, m)
    return moved_by


@inner
def start_over(told: Mechanics, m: Model) -> bool:
    """Fit again from the beginning, taking what was seen more and more for what it says; whether that fit is better.

    The fit as it goes on can be caught where the pairs that one step visits most are off together, and the law of that
    step with them.
    """
    before = evidence(told, m, 0)
    copy_to(m.spare, m.counts)
    copy_to(m.spare_posterior, m.posterior)
    recount(told, m, 0, 0.0)
    climb(told, m, 0.01)
    better: bool = evidence(told, m, 0) > before + 1
    if not better:
        copy_to(m.counts, m.spare)
        copy_to(m.posterior, m.spare_posterior)
        weigh(told, m)
    return better


@inlined
def copy_to(table: Floats, source: Floats) -> None:
    """Fill a table with another."""
    for i in range(table.shape[0]):
        for k in range(table.shape[1]):
            table[i, k] = source[i, k]


@inner
def common_move(told: Mechanics, m: Model) -> int:
    """How far back a new fit moved most of f, by how often the pairs were seen."""
    S, A = told.after.shape[1:]
    pairs, most, chosen = m.seen.shape[1], 0, 0
    for move in range(-2 * m.half, 2 * m.half + 1):
        total = 0
        for first in range(len(m.likelihood)):
            f, pair = first // pairs, first % pairs
            now = m.first[f, pair // A, pair % A] - m.half + likeliest(m, first)
            back = m.f[f, pair // A, pair % A] - now
            if back == move or (told.modular and (back - move) % S == 0):
                for step in range(f, len(m.seen), len(m.f)):
                    for j in range(told.n_residuals):
                        total += m.seen[step, pair, j]
        if total > most:
            most, chosen = total, move
    return chosen


@inlined
def likeliest(m: Model, pair: int) -> int:
    """Index of the pair's likeliest offset, in m.weights; none, if that is as likely."""
    posterior(m, pair, 0, 1.0)
    best = m.half
    for d in range(len(m.weights)):
        if m.weights[d] > m.weights[best]:
            best = d
    return best


@inner
def weigh(told: Mechanics, m: Model) -> None:
    """m.likelihood of every pair's offsets from all that was seen, given the law that the other pairs showed."""
    for row in range(len(m.counts)):
        take_logs(told, m.counts, m.logs, row, m.amount[0], 2 * m.half)
    for pair in range(len(m.likelihood)):
        for d in range(m.likelihood.shape[1]):
            m.likelihood[pair, d] = 0
    pairs = m.seen.shape[1]
    for step in range(len(m.seen)):
        row, first_pair = step % len(m.counts), (step % len(m.f)) * pairs
        total = 0.0
        for w in range(told.n_residuals):
            total += m.counts[row, w]
        for pair in range(pairs):
            if m.visits[first_pair + pair] > 0:
                weigh_pair(told, m, step, row, pair, first_pair + pair, total)


@inlined
def weigh_pair(told: Mechanics, m: Model, step: int, row: int, pair: int, place: int, total: float) -> None:
    """What one step's residuals of a pair add to its likelihood, by the law without the pair's own share of it.

    log(c - own) is log c - own / c as long as the share is small.
    """
    R, last, E, amount = told.n_residuals, 4 * m.half, len(m.weights), m.amount[0]
    n = 0
    for j in range(R):
        m.own[j] = 0
        n += m.seen[step, pair, j]
    if n == 0:
        return
    for j in range(R):
        for d in range(E if m.seen[step, pair, j] > 0 else 0):
            w = j - (d - m.half)
            w = w % R if told.modular else w
            if 0 <= w < R:
                m.own[w] += m.seen[step, pair, j] * m.posterior[place, d]
    scale = math.log((total + amount * R) / (max(total - n, 0.0) + amount * R))
    for j in range(R):
        times = m.seen[step, pair, j]
        for d in range(2 * E - 1 if times > 0 else 0):
            score, w = m.logs[row, j + last - d], j - (d - 2 * m.half)
            w = w % R if told.modular else w
            if 0 <= w < R:
                share = m.own[w] / (m.counts[row, w] + amount)
                if share < 0.1:
                    score += scale - share
                else:
                    score += scale + math.log(max(1 - share, amount / (m.counts[row, w] + amount)))
            m.likelihood[place, d] += times * score


@inlined
def best_smoothing(told: Mechanics, m: Model) -> float:
    """The smoothing with which the counts of the law are likeliest, as draws from a law that is itself unknown."""
    R, best, chosen = told.n_residuals, -np.inf, SMOOTHINGS[0]
    for amount in SMOOTHINGS:
        likely = 0.0
        for row in range(len(m.counts)):
            total = 0.0
            for w in range(R):
                n = m.counts[row, w]
                total += n
                if n > 0:
                    likely += math.lgamma(n + amount) - math.lgamma(amount)
            likely += math.lgamma(R * amount) - math.lgamma(total + R * amount)
        if likely > best + 1e-6:  # not for rounding, which lgamma does as it likes
            best, chosen = likely, amount
    return chosen


@inlined
def learn_belief(m: Model) -> None:
    """m.belief: how often offsets are found, over the pairs that were seen; at first f as told is trusted."""
    E, total = len(m.belief), 0.0
    for d in range(E):
        m.belief[d] = TRUST_WORTH * (TRUST if d == m.half else (1 - TRUST) / (E - 1))
    for pair in range(len(m.posterior)):
        for d in range(E if m.visits[pair] > 0 else 0):
            m.belief[d] += m.posterior[pair, d]
    for d in range(E):
        total += m.belief[d]
    for d in range(E):
        m.belief[d] = math.log(m.belief[d] / total)


@inlined
def tell_apart(told: Mechanics, m: Model) -> None:
    """m.apart: the mean over w of log P(w) - log P(w - by), for every difference of two offsets, over all steps."""
    reach, rows = 2 * m.half, len(m.logs)
    for i in range(len(m.apart)):
        m.apart[i] = 0
        for row in range(rows):
            for w in range(told.n_residuals):
                log = m.logs[row, w + reach]
                m.apart[i] += math.exp(log) * (log - m.logs[row, w - (i - reach) + reach]) / rows


@inlined
def take_logs(told: Mechanics, counts: Floats, logs: Floats, row: int, smoothing: float, reach: int) -> None:
    """One row of logs: logarithms of the chances of w = -reach .. R + reach - 1, by the counts."""
    R = told.n_residuals
    total = smoothing * R
    for w in range(R):
        total += counts[row, w]
    for w in range(R):
        logs[row, w + reach] = math.log((counts[row, w] + smoothing) / total)
    for i in range(reach):
        logs[row, i] = logs[row, reach + (i - reach) % R] if told.modular else NEVER
        logs[row, R + reach + i] = logs[row, reach + i % R] if told.modular else NEVER


@inlined
def posterior(m: Model, pair: int, move: int, faith: float) -> float:
    """m.weights of the pair's offsets if all of them moved by ``move``; the logarithm of their common chance.

    What is believed of offsets moves along, since a constant is harmless; of those that were out of range it is the
    least that is believed of any. faith: 1, or less to take what was seen for less than it says
    """
    width, most, total, least = m.barred.shape[1], -np.inf, 0.0, 0.0
    for d in range(width):
        least = min(least, m.belief[d])
    for d in range(width):
        belief = m.belief[d + move] if 0 <= d + move < width else least
        m.weights[d] = faith * m.likelihood[pair, d + m.half + move] + m.barred[pair, d] + belief
        most = max(most, m.weights[d])
    for d in range(width):
        m.weights[d] = math.exp(m.weights[d] - most)
        total += m.weights[d]
    for d in range(width):
        m.weights[d] /= total
    return most + math.log(total)


@inner
def best_move(told: Mechanics, m: Model) -> int:
    """The constant by which to move all offsets so that what was seen is likelier, by a factor e at least; else 0.

    A constant is harmless in itself, but next to a wrong one the offsets at the end of their range have no room.
    """
    best, chosen = -np.inf, 0
    for i in range(2 * m.half + 1):
        move = (i + 1) // 2 * (1 if i % 2 else -1)  # 0, 1, -1, 2, -2, ...
        total = evidence(told, m, move)
        if total > best + 1:
            best, chosen = total, move
    return chosen


@inner
def evidence(told: Mechanics, m: Model, move: int) -> float:
    """The logarithm of the chance of all that was seen, by m.likelihood and m.logs, if all offsets moved."""
    total = 0.0
    for row in range(len(m.known)):
        for w in range(told.n_residuals):
            if m.known[row, w] > 0:
                total += m.known[row, w] * m.logs[row, w - move + 2 * m.half]
    for pair in range(len(m.likelihood)):
        total += posterior(m, pair, move, 1.0)
    return total


@inner
def recount(told: Mechanics, m: Model, move: int, faith: float) -> None:
    """m.counts: what was measured, and what was seen less the offsets, by their posterior."""
    R, pairs = told.n_residuals, m.seen.shape[1]
    for row in range(len(m.counts)):
        for w in range(R):
            m.counts[row, w] = m.prior[row, w] + m.known[row, w]
    for first in range(len(m.likelihood)):
        posterior(m, first, move, faith)
        for d in range(len(m.weights)):
            m.posterior[first, d] = m.weights[d]
        f, pair = first // pairs, first % pairs
        for step in range(f, len(m.seen), len(m.f)):
            row = step % len(m.counts)
            for j in range(R):
                n = m.seen[step, pair, j]
                if n > 0:
                    for d in range(len(m.weights)):
                        w = j - (d - m.half)
                        if told.modular:
                            w %= R
                        if 0 <= w < R:
                            m.counts[row, w] += n * m.weights[d]


@inlined
def expect_residuals(told: Mechanics, counts: Floats, steps: Floats) -> None:
    """What a law, by its counts [L, R], makes of the mean and the spread of each step's residuals."""
    for h in range(told.horizon):
        total, mean, square = 0.0, 0.0, 0.0
        for w in range(told.n_residuals):
            n, x = counts[h % len(counts), w], from_origin(w, steps[h, ORIGIN], turn(told))
            total += n
            mean += n * x
            square += n * x * x
        if total > 0:
            mean /= total
            steps[h, MEAN] = mean
            steps[h, SQUARE] = max(square / total - mean * mean, 0.0) * steps[h, SEEN]


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
    H, q = told.horizon, learner.q
    learner.visits[h, s, a] += 1
    t = learner.visits[h, s, a]
    alpha = (H + 1) / (H + t)
    paid = told.reward[h % len(told.reward), s, a]
    paid += told.landing[h % len(told.landing), told.after[h % len(told.after), s, a] + j]
    target = paid + told.discount * learner.value[h + 1, s_next] + learner.width[h] / math.sqrt(t)
    q[h, s, a] = (1 - alpha) * q[h, s, a] + alpha * target
    best = best_action(q, h, s)
    learner.value[h, s] = min(learner.cap[h], q[h, s, best])
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


@inner
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
        best = best_action(learner.q, h, s)
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
    most = told.discount * largest(learner.value, h + 1) + largest(told.landing, h % len(told.landing))
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
    q = learner.q
    q[h, s, a] = (1 - alpha) * q[h, s, a] + alpha * target
    best = best_action(q, h, s)
    learner.value[h, s] = min(learner.cap[h], q[h, s, best])
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


# -- continuous boxes -------------------------------------------------------------------------------------


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


_UPDATES.update(
    {
        Fixed: fixed_update,
        UCBfState: ucb_f_update,
        UCBVIfState: ucbvi_f_update,
        RepairedUCBf: repaired_ucb_f_update,
        RepairedUCBVIf: repaired_ucbvi_f_update,
        UCBHState: ucb_h_update,
        UCBBState: ucb_b_update,
        EarlySettledState: early_settled_update,
        UCBVIState: ucbvi_update,
        UCBVIBFState: ucbvi_bf_update,
        UBEVState: ubev_update,
    }
)
_RENEWALS.update(
    {
        UCBfState: ucb_f_renew,
        UCBVIfState: ucbvi_f_renew,
        RepairedUCBf: repaired_ucb_f_renew,
        RepairedUCBVIf: repaired_ucbvi_f_renew,
    }
)
_RENEWALS.update(dict.fromkeys((Fixed, UCBHState, UCBBState, EarlySettledState), renew_nothing))
_RENEWALS.update(dict.fromkeys((UCBVIState, UCBVIBFState, UBEVState), plan_again))
_IMPROVEMENTS.update({UCBVIState: ucbvi_improve, UCBVIBFState: ucbvi_bf_improve, UBEVState: ubev_improve})
