"""One agent for K episodes: in a world (exact gap of every episode), or in any Gymnasium environment."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.base import Agent
from ucbf.agents.informed import LOOKS, InformedAgent
from ucbf.checks import real, whole
from ucbf.kernels import Draws
from ucbf.planning import arena_of, optimal
from ucbf.system import System
from ucbf.world import World

Progress = Callable[[int, int], object]
BLOCK_SECONDS = 0.1  # how long a progress report, or Ctrl-C, waits


@dataclass(frozen=True, eq=False)
class Run:
    """What an agent did in K episodes."""

    gap: NDArray[np.float64]  # [K] V*_1 - V^{π_k}_1, exact, averaged over the first state
    reward: NDArray[np.float64]  # [K] the discounted return it actually collected
    switched: NDArray[np.bool_]  # [K] whether the policy was another than in the episode before

    @property
    def switches(self) -> int:
        """How often the policy changed from one episode to the next."""
        return int(self.switched.sum())

    @property
    def regret(self) -> NDArray[np.float64]:
        """[K] the cumulative gap."""
        return np.cumsum(self.gap)


def simulate(
    agent: Agent,
    world: World,
    episodes: int,
    seed: int = 0,
    progress: Progress | None = None,
    stop_when: float | None = None,
) -> Run:
    """Let ``agent`` act and learn in ``world``; it goes on from what it knows already.

    All first states and disturbances are drawn from ``seed`` before the first episode, so that every agent
    meets the same ones. Where a clipped boundary hides a disturbance the agent is shown it, as ``info`` of the
    Gymnasium view does. Now and then an agent that is told f is asked whether its model holds, and warns if not.

    Parameters
    ----------
    progress
        Called with (episodes done, episodes) about ten times a second.
    stop_when
        ε: stop as soon as ``agent.certificate()``, averaged over the first state, is at most that; it is looked at
        whenever the number of episodes has grown by a twentieth. The run is then shorter.
    """
    K = whole("episodes", episodes, 1)
    if not isinstance(world, World):
        raise TypeError(f"world is {world!r:.60}; give a ucbf.World")
    if not isinstance(agent, Agent):
        raise TypeError(f"agent is {agent!r:.60}; give an agent, such as ucbf.UCBf(system)")
    _check_told(agent.system, world)
    looks = _looks(agent, world, K, stop_when)
    starts, w = world.draw(K, whole("seed", seed, 0))
    j = world.system.fold(w)
    measured = agent.system.fold(w) if world.system.boundary == "clip" else j  # elsewhere s' says it
    best = float(world.start @ optimal(world).v[0])
    arena = arena_of(world.system, world.law, world.start, best)
    gap, reward, switched = np.empty(K), np.empty(K), np.empty(K, np.bool_)
    acted = np.array(agent.policy)
    done, block, stopped = 0, 16, False
    while done < K and not stopped:
        end = min(done + block, K, next(iter(look for look in looks if look > done), K))
        part, begun = slice(done, end), time.perf_counter()
        draws = Draws(starts[part], j[part], measured[part])
        agent.run(arena, draws, acted, gap[part], reward[part], switched[part])
        done = part.stop
        took = max(time.perf_counter() - begun, 1e-9)
        block = max(1, min(4 * block, int(block * BLOCK_SECONDS / took)))
        if done in looks:
            stopped = looks[done]()
        if progress is not None:
            progress(done, K)
    return Run(gap[:done], reward[:done], switched[:done])


def _looks(agent: Agent, world: World, K: int, stop_when: float | None) -> dict[int, Callable[[], bool]]:
    """What to look at after which episodes, in order; each says whether to stop."""

    def check() -> bool:
        if isinstance(agent, InformedAgent):
            agent.look()
        return False

    looks: dict[int, Callable[[], bool]] = {k: check for k in sorted(LOOKS) if k < K} | {K: check}
    if stop_when is None:
        return looks
    wanted = real("stop_when", stop_when, 0, open_low=True)
    if not isinstance(agent, InformedAgent):
        raise TypeError(f"stop_when needs a certificate, and {agent.name} gives none; use UCBVI-f or UCB-f")
    agent.check_certifiable(K)

    def certified() -> bool:
        check()
        return agent.certificate().average(world.start) <= wanted

    k = 1
    while k < K:
        looks[k] = certified
        k = max(k + 1, k + k // 20)
    return dict(sorted(looks.items()))


def learn(
    agent: Agent, env: Any, episodes: int, seed: int | None = None, progress: Progress | None = None
) -> NDArray[np.float64]:
    """Let ``agent`` act and learn in a Gymnasium environment with Discrete spaces; returns the rewards [K].

    ``agent.system`` states the mechanics of ``env``: its states are the observations, its actions the actions. The
    agent learns for the rewards of that system, not for those that ``env`` pays, which are only added up,
    discounted: state the system's rewards as ``env`` pays them. An episode ends when the environment ends it, or
    after ``horizon`` steps; steps that it cuts off are not learned. ``info["disturbance"]`` is used where the
    environment gives it.
    """
    K = whole("episodes", episodes, 1)
    if not isinstance(agent, Agent):
        raise TypeError(f"agent is {agent!r:.60}; give an agent, such as ucbf.UCBf(system), and then the environment")
    if not all(hasattr(env, name) for name in ("reset", "step", "observation_space", "action_space")):
        raise TypeError(f"env is {env!r:.60}; give a Gymnasium environment, such as gymnasium.make(...)")
    system = agent.system
    _check_space("observation_space", env.observation_space, system.n_states, system.state_offset)
    _check_space("action_space", env.action_space, system.n_actions, 0)
    collected = np.zeros(K)
    for k in range(K):
        s, _ = env.reset(seed=seed if k == 0 else None)
        for h in range(system.horizon):
            a = agent.act(h, s)
            next_s, reward, terminated, truncated, info = env.step(a)
            agent.observe(h, s, a, next_s, disturbance=info.get("disturbance"))
            collected[k] += system.discount**h * float(reward)
            s = next_s
            if terminated or truncated:
                break
        if progress is not None:
            progress(k + 1, K)
    return collected


def _check_told(told: System, world: World) -> None:
    """What the agent was told must speak of this world, before any work is done."""
    true = world.system
    for what in ("n_states", "n_actions", "horizon", "boundary", "state_offset"):
        if getattr(told, what) != getattr(true, what):
            raise ValueError(
                f"the agent was told {what} = {getattr(told, what)!r}, but the world has "
                f"{getattr(true, what)!r}; build both from one system"
            )
    if not np.array_equal(told.allowed, true.allowed):
        raise ValueError("the agent and the world do not allow the same actions; build both from one system")
    paid = [(s.reward, s.terminal, s.discount, _landing_within(s, true, told)) for s in (told, true)]
    if not all(np.array_equal(mine, theirs) for mine, theirs in zip(*paid, strict=True)):
        warnings.warn("the agent was told other rewards or another discount than the world's", stacklevel=3)
    if told.disturbance_range is not None:
        errors = np.unique((told.f - true.f)[true.allowed])
        occurs = world.law.values[(world.law.pmf > 0).any(axis=0)]
        residuals = (occurs[:, None] - errors).ravel()
        declared = told.declared_residuals
        if true.boundary == "wrap":
            residuals = declared[0] + (residuals - declared[0]) % true.n_states
        outside = residuals[(residuals < declared[0]) | (residuals > declared[-1])]
        if len(outside):
            raise ValueError(
                f"in this world the agent would see a residual of {outside[0]}, outside {declared[0]}..{declared[-1]} "
                "(its disturbance_range, widened by ζ/2); declare a wider range, or a larger model_error"
            )


def _landing_within(system: System, one: System, other: System) -> NDArray[np.float64]:
    """Landing rewards over the raw states that both systems have; zero where there are none."""
    z = np.arange(max(one.raw_states[0], other.raw_states[0]), min(one.raw_states[-1], other.raw_states[-1]) + 1)
    return np.zeros((1, len(z))) if system.landing is None else system.landing[:, z - system.raw_states[0]]


def _check_space(name: str, space: Any, n: int, start: int) -> None:
    if getattr(space, "n", None) != n or getattr(space, "start", 0) != start:
        raise ValueError(
            f"the environment's {name} is {space}, but the agent's system has {n} starting at {start}; "
            "state the system with the environment's sizes, or wrap the environment"
        )
