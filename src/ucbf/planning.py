"""Exact dynamic programming in a world: the optimal plan, the values of a policy, the greedy policy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import frozen, integers, numbers, whole
from ucbf.disturbance import Disturbance
from ucbf.induction import Large, is_large, is_sparse
from ucbf.kernels.types import Mechanics
from ucbf.mechanics import raw_starts
from ucbf.system import System
from ucbf.units import following

MOST_SWEEPS = 20_000  # of a plan without an end
MOST_EPISODES = 500  # that an endless plan looks ahead

if TYPE_CHECKING:
    from ucbf.kernels.backward import Arena
    from ucbf.world import World


@dataclass(frozen=True, eq=False)
class Plan:
    """What is optimal, and its worth. Ties go to the lowest action."""

    system: System
    v: NDArray[np.float64]  # [H+1, S]
    ahead: NDArray[np.float64]  # [H, X] what follows each after-state
    policy: NDArray[np.int64]  # [H, S]
    bounds: tuple[float, float] | None = None  # without an end: what the average of a step, or V* itself, lies between

    @property
    def gain(self) -> float:
        """The best average reward of a step in the long run, where there is no end and no discount."""
        if self.system.horizon is not None or self.system.discount < 1:
            raise AttributeError("a gain is of systems with horizon=None and discount=1; V* is in v")
        low, high = self.bounds or (np.nan, np.nan)
        return (low + high) / 2

    @cached_property
    def q(self) -> NDArray[np.float64]:
        """[H, S, A], -inf where the action does not exist."""
        m = self.system.mechanics
        return np.stack([m.reward[h % len(m.reward)] + following(m, self.ahead[h], h) for h in range(m.horizon)])

    # -- in a box, at any state -------------------------------------------------------------------

    def value_at(self, h: int, states: ArrayLike) -> Any:
        """The values of states [d] or [N, d] at step h, interpolated between points."""
        if self.system.n_contexts > 1:
            raise TypeError("with contexts, values are looked up: v[h, e * S + s]")
        space, h = self.system.space, whole("step h", h, 0, self.system.n_steps)
        found = space.interpolated(self.v[h], space.rows("state", states))
        return float(found[0]) if space.is_one(states) else found

    def q_at(self, h: int, states: ArrayLike) -> NDArray[np.float64]:
        """[N, A] for states [N, d]: the reward at the very state, and what follows f, interpolated."""
        h = self.system.step(h)
        if self.system.n_contexts > 1:
            raise TypeError("with contexts, values are looked up: q[h, e * S + s]")
        return self.system.q_at(h, states, self.ahead[h])

    def act(self, h: int, states: ArrayLike, context: int | None = None) -> Any:
        """Indices of the best actions at step h: in states [d] or [N, d] of a box, or in a state of a line."""
        space = self.system.space
        if space.is_line or self.system.n_contexts > 1:
            return int(self.policy[self.system.step(h), self.system.place("state", states, context)])
        best = self.q_at(h, states).argmax(axis=1)
        return int(best[0]) if space.is_one(states) else best

    def observe(
        self,
        h: int,
        s: Any,
        a: int,
        next_s: Any,
        disturbance: Any = None,
        context: int | None = None,
        next_context: int | None = None,
    ) -> None:
        """Learn nothing: a plan can be played like an agent."""

    def rollout(self, starts: ArrayLike, disturbances: ArrayLike) -> NDArray[np.float64]:
        """[N] discounted returns of N episodes in a box, from states [N, d] with disturbances [N, H, d]."""
        system = self.system
        s, w = system.space.rows("starts", starts), numbers("disturbances", disturbances)
        if w.shape != (len(s), system.n_steps, system.space.n_axes):
            raise ValueError(f"disturbances has shape {w.shape}; give {(len(s), system.n_steps, system.space.n_axes)}")
        if system.space.all_whole:
            raise TypeError("rollout is of boxes with continuous axes; use ucbf.evaluate, which is exact")
        total = np.zeros(len(s))
        for h in range(system.n_steps):
            s, paid = system.advance(h, s, self.act(h, s), w[:, h])
            total += system.discount**h * paid
        return total + system.discount**system.n_steps * system.at_any_state.terminal(s)


def optimal(world: World) -> Plan:
    """The optimal plan, by backward induction with the true law."""
    _check_world(world)
    return world.plan


def plan(system: System, law: Disturbance) -> Plan:
    """The best plan in ``system`` if W follows ``law``."""
    check_law(system, law)
    return plan_with(system, law)


def plan_with(system: System, law: Disturbance) -> Plan:
    """The same with a law that was checked already."""
    if system.horizon is None:
        return _plan_without_end(system, law)
    v, ahead, policy = induction(charged(system, law), *occurring(system, law))
    return Plan(system, v, ahead, policy)


def _plan_without_end(system: System, law: Disturbance) -> Plan:
    from ucbf.kernels import endless
    from ucbf.kernels.models import as_told

    m, (moves, pmf) = charged(system, law), occurring(system, law)
    value, ahead = np.zeros((m.horizon + 1, system.n_states)), np.empty((m.horizon, m.n_after))
    policy, raw = np.zeros((m.horizon, system.n_states), np.int64), np.empty(len(m.next_state))
    wanted = tolerance(system)
    model = as_told(m)
    low, high, _ = endless.solve(m, model, moves, pmf, value, ahead, policy, raw, wanted, most_sweeps(system))
    if not high - low <= wanted:
        raise ValueError(_unsettled(system, law, policy, low, high))
    return Plan(system, value, ahead, policy, _per_step(system, low, high))


def charged(system: System, law: Disturbance) -> Mechanics:
    """The mechanics, with what landing rewards that are paid late come to if W follows ``law``."""
    from ucbf.kernels import backward

    m = system.mechanics
    if not m.lag:
        return m
    table = np.zeros((len(law.pmf), m.n_residuals))
    table[:, system.indices_of(law)] += law.pmf
    landing = np.empty((m.horizon, m.landing.shape[1]))
    backward.delay(m, table, landing, m.landing, np.empty((2, len(m.late))))
    return m._replace(landing=frozen(landing))


def _per_step(system: System, low: float, high: float) -> tuple[float, float]:
    """From bounds on what a period pays to bounds on the average of a step; or on how far V* is from v."""
    if system.discount == 1:
        return low / system.n_steps, high / system.n_steps
    half = (high - low) / 2 / (1 - system.discount**system.n_steps)
    return -half, half


def most_sweeps(system: System) -> int:
    """After how many sweeps a plan without an end that has not settled is given up."""
    if system.discount == 1:
        return MOST_SWEEPS
    return max(MOST_SWEEPS, math.ceil(40 / (1 - system.discount)))


def tolerance(system: System) -> float:
    """How far the bounds on what a period pays may be apart where there is no end."""
    m = system.mechanics
    paid = float(np.abs(m.reward[np.isfinite(m.reward)]).max(initial=0) + np.abs(m.landing).max(initial=0))
    wanted = 1e-9 * system.n_steps * (1 - system.discount**system.n_steps if system.discount < 1 else 1.0)
    return max(wanted, 1e-13 * paid)


def _unsettled(system: System, law: Disturbance, policy: NDArray[np.int64], low: float, high: float) -> str:
    """Why no plan without an end was found."""
    closed = recurrent_classes(system, law, policy)
    if system.discount == 1 and len(closed) > 1:
        one, other = (system.state_name(int(states[0])) for states in closed[:2])
        return (
            f"the best average in the long run depends on the first state: whoever is in state {one} never gets to "
            f"{other}, nor the other way round, and per step they get from {low / system.n_steps:g} to "
            f"{high / system.n_steps:g}; state a system in which every state can be reached, or a discount below 1"
        )
    return (
        f"the plan did not settle in {most_sweeps(system)} sweeps: a period pays from {low:g} to {high:g}; pass a "
        "smaller discount, or check that every state can be left"
    )


def recurrent_classes(system: System, law: Disturbance, policy: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The sets of states, at the first step of a period, that a policy [H, S] never leaves."""
    from scipy.sparse import csr_array, eye_array
    from scipy.sparse.csgraph import connected_components

    m, (moves, pmf) = system.mechanics, occurring(system, law)
    S, E, chain = system.n_states, system.n_contexts, eye_array(system.n_states, format="csr")
    context = np.arange(S) // (S // E)
    for h in range(m.horizon):
        z = raw_starts(m)[m.after[h % len(m.after)][np.arange(S), policy[h]]]
        goes = pmf[h % (len(pmf) // E) * E + context] > 0
        to = m.next_state[z[:, None] + moves]
        step = csr_array((goes[goes], (np.nonzero(goes)[0], to[goes])), shape=(S, S), dtype=np.float64)
        chain = (chain @ step > 0).astype(np.float64)
    n, label = connected_components(chain, directed=True, connection="strong")
    begin, end = chain.nonzero()
    left = np.zeros(n, np.bool_)
    left[label[begin[label[begin] != label[end]]]] = True
    return [np.flatnonzero(label == c) for c in np.flatnonzero(~left)]


def induction(m: Mechanics, moves: NDArray[np.int64], law: NDArray[np.float64]) -> tuple[NDArray[Any], ...]:
    """Backward induction: values [H+1, S], what follows the after-states [H, X], policy [H, S].

    moves: [n] how far each disturbance moves among the raw next states; law: [1 or H, n] their probabilities
    """
    from ucbf.kernels import backward
    from ucbf.kernels.models import as_told

    value, ahead = np.empty((m.horizon + 1, len(m.terminal))), np.empty((m.horizon, m.n_after))
    policy = np.zeros((m.horizon, len(m.terminal)), np.int64)
    value[-1] = m.terminal
    raw = np.empty(len(m.next_state))
    if is_large(m, moves):
        Large(m, moves, law).induction(value, ahead, policy, raw)
    else:
        backward.plan(m, as_told(m), moves, law, value, ahead, policy, raw)
    return value, ahead, policy


def follow(arena: Arena, policy: NDArray[np.int64], v: NDArray[np.float64], top: int) -> None:
    """Values of ``policy`` [H, S] at steps top..0, given those of the later steps, in v [H+1, S]."""
    from ucbf.kernels import backward

    m = arena.mechanics
    if is_large(m, arena.j) and not is_sparse(m):
        Large(m, arena.j, arena.pmf).evaluate(policy, v, arena.raw, arena.ahead, top)
    else:
        backward.evaluate(arena, policy, v, top)


def occurring(system: System, law: Disturbance) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """How far each disturbance that may occur moves among the raw next states [n], and their probabilities [1 or H, n].

    On continuous axes each is shared out among the bins around it.
    """
    occurs, m = np.flatnonzero((law.pmf > 0).any(axis=0)), system.mechanics
    if system.space.all_whole:
        return frozen(m.offsets[system.indices_of(law)[occurs]]), np.ascontiguousarray(law.pmf[:, occurs])
    j, share = system.bins.spread(law.values[occurs])
    pmf = np.stack(
        [np.bincount(j.ravel(), (share * row[:, None]).ravel(), system.bins.n) for row in law.pmf[:, occurs]]
    )
    return m.offsets, pmf / pmf.sum(axis=1, keepdims=True)


def endless(system: System, law: Disturbance, tolerance: float = 1e-4) -> System:
    """The system with, for its terminal reward, what the episodes that follow are worth if W follows ``law``.

    For business that goes on: a plan of one episode then has no end to prepare for. With γ = 1 that worth is relative
    to the state nearest to 0 (relative value iteration, halfway each time, so that cycles die out).

    Parameters
    ----------
    tolerance
        How far the worth of states may still move, as a share of how much they differ.
    """
    return endless_mix([system], [law], np.ones((1, 1)), tolerance)[0]


def endless_mix(
    systems: list[System], laws: list[Disturbance], follow: NDArray[np.float64], tolerance: float = 1e-4
) -> list[System]:
    """As :func:`endless`, for several kinds of episodes: follow[i, j] is how often j comes after i."""
    for system, law in zip(systems, laws, strict=True):
        if not system.space.all_whole:
            raise ValueError("endless plans need whole axes: the worth of what follows is a table over all states")
        check_law(system, law)
    discount, zero = systems[0].discount, systems[0].space.place("state", systems[0].nearest_to_zero)
    ahead = np.stack([system.terminal for system in systems])
    for _ in range(MOST_EPISODES):
        days = zip(systems, ahead, laws, strict=True)
        renewed = follow @ np.stack([plan(ending_with(system, worth), law).v[0] for system, worth, law in days])
        if discount == 1:
            renewed += ahead[0, zero] - renewed[0, zero]
        moved = float(np.abs(renewed - ahead).max())
        ahead = (ahead + renewed) / 2 if discount == 1 else renewed
        if moved <= tolerance * max(float(np.ptp(renewed)), 1e-300):
            break
    return [ending_with(system, worth) for system, worth in zip(systems, ahead, strict=True)]


def ending_with(system: System, worth: NDArray[np.float64]) -> System:
    """The system with another terminal reward: [S], with contexts [E S]."""
    E = system.n_contexts
    return system.replace(terminal=worth if E == 1 else worth.reshape(E, -1))


def evaluate(world: World, policy: ArrayLike) -> NDArray[np.float64]:
    """[H+1, S]: the exact value of a policy [H, S], or [S] for the same at every step.

    Where there is no end: [P+1, S] over the steps of a period, discounted or, where the average counts, relative to the
    first state; the average itself is :func:`gain`.
    """
    from ucbf.kernels import endless

    _check_world(world)
    system = world.system
    if system.horizon is None:
        v, wanted = np.zeros((system.n_steps + 1, system.n_states)), tolerance(system)
        actions = checked_policy(system, policy)
        low, high = endless.evaluate_and_raise(arena_of(system, world.law), actions, v, wanted, most_sweeps(system))
        if not high - low <= wanted:
            raise ValueError(
                f"the long-run average of this policy depends on the first state: a period pays from {low:g} to "
                f"{high:g}; ucbf.planning.gain gives that of the world's first state"
            )
        return v
    v = np.empty((system.n_steps + 1, system.n_states))
    v[-1] = system.terminal
    follow(arena_of(system, world.law), checked_policy(system, policy), v, system.n_steps - 1)
    return v


def gain(world: World, policy: ArrayLike) -> float:
    """The average reward of a step in the long run, of a policy [P, S] or [S], from the world's first state on."""
    from ucbf.kernels import endless

    _check_world(world)
    system = world.system
    if system.horizon is not None or system.discount < 1:
        raise ValueError("a gain is of systems with horizon=None and discount=1; use ucbf.evaluate")
    v = np.zeros((system.n_steps + 1, system.n_states))
    arena, actions = arena_of(system, world.law, world.start), checked_policy(system, policy)
    endless.evaluate(arena, actions, v, tolerance(system), most_sweeps(system))
    return float(endless.worth(arena, v))


def worth(world: World, policy: ArrayLike) -> float:
    """What a policy is worth from the world's first state on: its value, or its average reward in the long run."""
    return worths(world, [policy])[0]


def worths(world: World, policies: Sequence[ArrayLike]) -> list[float]:
    """The same of many policies."""
    from ucbf.kernels import backward

    _check_world(world)
    system = world.system
    if system.horizon is None and system.discount == 1:
        return [gain(world, policy) for policy in policies]
    if system.horizon is None:
        return [float(world.start @ evaluate(world, policy)[0]) for policy in policies]
    arena, v, found = arena_of(system, world.law), np.empty((system.n_steps + 1, system.n_states)), []
    v[-1] = system.terminal
    for policy in policies:
        backward.evaluate(arena, checked_policy(system, policy), v, system.n_steps - 1)
        found.append(float(world.start @ v[0]))
    return found


def lowest_best(q: NDArray[np.float64]) -> NDArray[np.int64]:
    """[H, S]: the lowest of the actions that are best but for rounding. q: [H, S, A]."""
    finite = q[np.isfinite(q)]
    slack = 1e-10 * max(float(np.abs(finite).max()), 1e-300)
    lowest: NDArray[np.int64] = (q >= q.max(axis=2, keepdims=True) - slack).argmax(axis=2)
    return lowest


def greedy(system: System) -> NDArray[np.int64]:
    """[H, S]: the action with the largest immediate reward r(s, a), whatever follows.

    In the paper's worlds the reward does not depend on the action, and ties go to the lowest: this is the
    dashed line of its figure.
    """
    m = system.mechanics
    actions = np.stack([reward.argmax(axis=1) for reward in m.reward])
    return np.broadcast_to(actions, (system.n_steps, system.n_states)).copy()


def arena_of(system: System, law: Disturbance, start: NDArray[Any] | None = None, best: float = 0.0) -> Arena:
    """The arrays that the compiled functions need of a world; disturbances that never occur are left out."""
    from ucbf.kernels.backward import Arena
    from ucbf.kernels.models import as_told

    m, (j, pmf) = charged(system, law), occurring(system, law)
    start = np.zeros(system.n_states) if start is None else start
    room = {"raw": np.empty(len(m.next_state)), "ahead": np.empty((1, m.n_after))}
    return Arena(m, as_told(m), j, pmf, frozen(start), float(best), **room)


def check_law(system: System, law: Disturbance) -> None:
    """A law must have a row for every step, or one for all, and give only disturbances that the system admits."""
    if law.n_contexts != system.n_contexts:
        raise ValueError(
            f"the law has {law.n_contexts} contexts and the system {system.n_contexts}; state as many contexts in both"
        )
    steps = len(law.pmf) // law.n_contexts
    if steps not in (1, system.n_steps):
        raise ValueError(
            f"the law has {steps} steps and the system {system.n_steps}; give one row, or one for each step"
        )
    if law.is_line != system.space.is_line:
        kinds = ("a number: give values=[[...], ...] for rows", "a row [d]: give pmf and low for whole numbers")
        raise ValueError(f"the law does not fit the system: in it W is {kinds[0 if law.is_line else 1]}")
    try:
        system.bins.spread(law.values[(law.pmf > 0).any(axis=0)])
    except ValueError as error:
        raise ValueError(f"the law does not fit the system: {error}") from None


def _check_world(world: Any) -> None:
    if not isinstance(getattr(world, "system", None), System) or not hasattr(world, "law"):
        raise TypeError(f"world is {world!r:.60}; give a ucbf.World: a system and the law of its disturbances")


def checked_policy(system: System, policy: ArrayLike) -> NDArray[np.int64]:
    """[H, S] actions that all exist, or a readable error."""
    if hasattr(policy, "policy"):
        raise TypeError(f"policy is a {type(policy).__name__}; pass its .policy")
    actions = integers("policy", policy)
    H, S, A = system.allowed.shape
    if actions.shape not in {(S,), (H, S)}:
        raise ValueError(f"policy has shape {actions.shape}; it must be [H, S] = {(H, S)} or [S] = {(S,)}")
    actions = np.broadcast_to(actions, (H, S)).copy()
    outside = np.argwhere((actions < 0) | (actions >= A))
    if len(outside):
        h, s = outside[0]
        raise ValueError(
            f"policy takes action {actions[h, s]} in state {system.state_name(s)} at step {h}; actions are 0..{A - 1}"
        )
    missing = np.argwhere(~np.take_along_axis(system.allowed, actions[:, :, None], axis=2)[:, :, 0])
    if len(missing):
        h, s = missing[0]
        raise ValueError(
            f"policy takes action {actions[h, s]} in state {system.state_name(s)} at step {h}, where it is not allowed"
        )
    return actions
