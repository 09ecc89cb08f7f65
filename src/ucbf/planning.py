"""Exact dynamic programming in a world: the optimal plan, the values of a policy, the greedy policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import frozen, integers
from ucbf.disturbance import Disturbance
from ucbf.system import System

MOST_EPISODES = 500  # that an endless plan looks ahead

if TYPE_CHECKING:
    from ucbf.kernels.backward import Arena
    from ucbf.world import World


@dataclass(frozen=True, eq=False)
class Plan:
    """What is optimal, and its worth. Ties go to the lowest action."""

    q: NDArray[np.float64]  # [H, S, A], -inf where the action does not exist
    v: NDArray[np.float64]  # [H+1, S]
    policy: NDArray[np.int64]  # [H, S]


def optimal(world: World) -> Plan:
    """The optimal plan, by backward induction with the true law."""
    _check_world(world)
    return plan(world.system, world.law)


def plan(system: System, law: Disturbance) -> Plan:
    """The best plan in ``system`` if W follows ``law``."""
    from ucbf.kernels import backward

    check_law(system, law)
    H, S, A = system.f.shape
    made = Plan(np.empty((H, S, A)), np.empty((H + 1, S)), np.empty((H, S), dtype=np.int64))
    backward.plan(arena_of(system, law), made.q, made.v, made.policy)
    return made


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
        check_law(system, law)
    discount, home = systems[0].discount, systems[0].home - systems[0].state_offset
    ahead = np.stack([system.terminal for system in systems])
    for _ in range(MOST_EPISODES):
        days = zip(systems, ahead, laws, strict=True)
        renewed = follow @ np.stack([plan(system.replace(terminal=worth), law).v[0] for system, worth, law in days])
        if discount == 1:
            renewed += ahead[0, home] - renewed[0, home]
        moved = float(np.abs(renewed - ahead).max())
        ahead = (ahead + renewed) / 2 if discount == 1 else renewed
        if moved <= tolerance * max(float(np.ptp(renewed)), 1e-300):
            break
    return [system.replace(terminal=worth) for system, worth in zip(systems, ahead, strict=True)]


def evaluate(world: World, policy: ArrayLike) -> NDArray[np.float64]:
    """[H+1, S]: the exact value of a policy [H, S], or [S] for the same at every step."""
    from ucbf.kernels import backward

    _check_world(world)
    system = world.system
    v = np.empty((system.horizon + 1, system.n_states))
    v[-1] = system.terminal
    backward.evaluate(arena_of(system, world.law), checked_policy(system, policy), v, system.horizon - 1)
    return v


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
    actions: NDArray[np.int64] = np.where(system.allowed, system.reward, -np.inf).argmax(axis=2)
    return actions


def arena_of(system: System, law: Disturbance, start: NDArray[Any] | None = None, best: float = 0.0) -> Arena:
    """The arrays that the compiled functions need of a world; disturbances that never occur are left out."""
    from ucbf.kernels.backward import Arena

    occurs = np.flatnonzero((law.pmf > 0).any(axis=0))
    start = np.zeros(system.n_states) if start is None else start
    return Arena(
        mechanics=system.mechanics,
        j=frozen(system.fold(law.values[occurs])),
        pmf=frozen(law.pmf[:, occurs]),
        start=frozen(start),
        best=float(best),
        raw=np.empty(len(system.raw_states)),
        ahead=np.empty(len(system.after_states)),
    )


def check_law(system: System, law: Disturbance) -> None:
    """A law must have a row for every step, or one for all, and give only disturbances that the system admits."""
    if len(law.pmf) not in (1, system.horizon):
        raise ValueError(
            f"the law has {len(law.pmf)} steps and the system {system.horizon}; give one row, or one for each step"
        )
    try:
        system.fold(law.values[(law.pmf > 0).any(axis=0)])
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
    H, S, A = system.f.shape
    if actions.shape not in {(S,), (H, S)}:
        raise ValueError(f"policy has shape {actions.shape}; it must be [H, S] = {(H, S)} or [S] = {(S,)}")
    actions = np.array(np.broadcast_to(actions, (H, S)), order="C")
    outside = np.argwhere((actions < 0) | (actions >= A))
    if len(outside):
        h, s = outside[0]
        raise ValueError(
            f"policy takes action {actions[h, s]} in state {s + system.state_offset} at step {h}; "
            f"actions are 0..{A - 1}"
        )
    missing = np.argwhere(~np.take_along_axis(system.allowed, actions[:, :, None], axis=2)[:, :, 0])
    if len(missing):
        h, s = missing[0]
        raise ValueError(
            f"policy takes action {actions[h, s]} in state {s + system.state_offset} at step {h}, "
            "where it is not allowed"
        )
    return actions
