"""One agent for K episodes: in a world, in episodes that really happened, or in any Gymnasium environment."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.agents.base import Agent
from ucbf.certificates import Certificate
from ucbf.checks import integers, real, whole
from ucbf.grid import GridAgent
from ucbf.kernels import loop
from ucbf.kernels.backward import Arena
from ucbf.planning import arena_of, checked_policy
from ucbf.policies import Policy
from ucbf.system import LARGEST_TABLE, System
from ucbf.world import World

Progress = Callable[[int, int], object]
BLOCK_SECONDS = 0.1  # how long a progress report, or Ctrl-C, waits
CHECKED_AFTER = frozenset(50 * 2**i for i in range(40))  # episodes: whether what the agent was told is contradicted


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
    censored: bool = False,
) -> Run:
    """Let ``agent`` act and learn in ``world``; it goes on from what it knows already.

    All first states and disturbances are drawn from ``seed`` before the first episode, so that every agent
    meets the same ones. Where a clipped boundary hides a disturbance the agent is shown it, as ``info`` of the
    Gymnasium view does, unless ``censored``. Now and then an agent that is told f is asked whether its model holds,
    and warns if not.

    Parameters
    ----------
    progress
        Called with (episodes done, episodes) about ten times a second.
    stop_when
        ε: stop as soon as ``agent.certificate()``, averaged over the first state, is at most that; it is looked at
        whenever the number of episodes has grown by a twentieth. The run is then shorter.
    censored
        Whether a clipped edge hides W: an agent that is told f then learns there only that W was at most, or at least,
        something, as in a shop that does not count the customers it sends away. Others see what they are paid, as ever.
    """
    K = whole("episodes", episodes, 1)
    if not isinstance(world, World):
        raise TypeError(f"world is {world!r:.60}; give a ucbf.World")
    if not isinstance(agent, Agent):
        raise TypeError(f"agent is {agent!r:.60}; give an agent, such as ucbf.UCBf(system)")
    if K * (world.system.horizon + 1) > LARGEST_TABLE:
        raise ValueError(
            f"{K} episodes of {world.system.horizon} steps are more than {LARGEST_TABLE} draws at a time; simulate "
            "fewer, and again with another seed: the agent goes on from what it has learned"
        )
    _check_told(agent.system, world)
    hidden = censored and world.system.boundary == "clip" and agent.hides_at_edges()
    if hidden and stop_when is not None:
        raise ValueError("stop_when needs a certificate, and nothing can be certified of what an edge hides; drop one")
    stops = _stops(agent, world, K, stop_when)
    pauses = sorted({k for k in CHECKED_AFTER if k < K} | {K} | set(stops))
    starts, w = world.draw(K, whole("seed", seed, 0))
    j = world.system.fold(w)
    measured = agent.system.fold(w) if world.system.boundary == "clip" else j  # elsewhere s' says it
    arena = arena_of(world.system, world.law, world.start, world.best)
    gap, reward, switched = np.empty(K), np.empty(K), np.empty(K, np.bool_)
    acted, v = np.array(agent.policy), np.tile(world.system.terminal, (world.system.horizon + 1, 1))
    done, block, stopped = 0, 16, False
    while done < K and not stopped:
        end = min(done + block, next(k for k in pauses if k > done))
        part, begun = slice(done, end), time.perf_counter()
        draws = loop.Draws(starts[part], j[part], measured[part], hidden)
        _play(agent, arena, draws, v, acted, gap[part], reward[part], switched[part])
        done = part.stop
        took = max(time.perf_counter() - begun, 1e-9)
        block = max(1, min(4 * block, int(block * BLOCK_SECONDS / took)))
        stopped = done in stops and stops[done]()
        if done in CHECKED_AFTER or done == K or stopped:
            agent.warn_if_contradicted()
        if progress is not None:
            progress(done, K)
    return Run(gap[:done], reward[:done], switched[:done])


def _play(
    agent: Agent,
    arena: Arena,
    draws: loop.Draws,
    v: NDArray[np.float64],
    acted: NDArray[np.int64],
    gap: NDArray[np.float64],
    reward: NDArray[np.float64],
    switched: NDArray[np.bool_],
) -> None:
    """Act, then learn, for K episodes; fills gap, reward and switched, [K] each.

    v: [H+1, S] room for the values of a policy, its last row the terminal reward
    acted: [H, S] the policy of the episode before the first, and in the end that of the last
    """
    if agent.compiled is not None:
        with agent.lock:
            loop.run(arena, agent.told, agent.compiled, draws, v, acted, gap, reward, switched)
        return
    H, policy = agent.system.horizon, np.empty((0, 0), np.int64)
    states, actions = np.empty(H + 1, np.int64), np.empty(H, np.int64)
    for k in range(len(gap)):
        with agent.lock:
            agent.renew()
            now, top = agent.policy, -1
            if not np.array_equal(now, policy):
                policy, top = checked_policy(agent.system, now), H - 1
            switched[k] = not np.array_equal(acted, policy)
            acted[...] = policy
            gap[k], reward[k] = loop.episode(arena, policy, draws, k, v, top, states, actions)
            for h in range(H):
                agent.update(loop.seen_at(agent.told, draws, k, h, states, actions))


def _stops(agent: Agent, world: World, K: int, stop_when: float | None) -> dict[int, Callable[[], bool]]:
    """After which episodes to look whether to stop, in order; each says so."""
    if stop_when is None:
        return {}
    wanted = real("stop_when", stop_when, 0, open_low=True)
    agent.check_certifiable(K)

    def certified() -> bool:
        found: Certificate = agent.certificate()  # type: ignore[attr-defined]  # it has one: it was checked
        return found.average(world.start) <= wanted

    stops, k = {}, 1
    while k < K:
        stops[k] = certified
        k = max(k + 1, k + k // 20)
    return stops


@dataclass(frozen=True, eq=False)
class Replay:
    """What was done, and paid, in episodes that really happened."""

    reward: NDArray[np.float64]  # [K] the discounted return
    states: NDArray[np.int64]  # [K, H+1]
    actions: NDArray[np.int64]  # [K, H]


Player = Agent | Policy


def replay(
    player: Player | Callable[[int], Player],
    disturbances: ArrayLike,
    start: int | None = None,
    carry: bool = True,
    censored: bool = False,
    accounts: Callable[[int], System] | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Run an agent, which learns as it goes, or a fixed policy through episodes that happened, in their order.

    Parameters
    ----------
    player
        An agent, a :class:`ucbf.Policy`, or a function of the episode that gives one: for prices that change every day.
    disturbances
        [K, H] W of every step.
    start
        The first state; the one nearest to 0 if None.
    carry
        Whether an episode starts where the one before ended. What is there at its start is then charged at what was
        paid for it, as the terminal reward, at the end of the one before: each is judged by what it added.
    censored
        Whether clipped edges hide W from an agent.
    accounts
        A function of the episode: the system whose rewards are counted; that of the player, if None.
    """
    w = integers("disturbances", disturbances)
    choose: Callable[[int], Player] = player if callable(player) else lambda k: player
    system = _player(choose(0)).system
    if w.ndim != 2 or w.shape[1] != system.horizon or not len(w):
        raise ValueError(f"disturbances has shape {w.shape}; give [K, H] with H = {system.horizon}")
    first, last = system.states[0], system.states[-1]
    begin = system.home if start is None else whole("start", start, first, last)
    K, H = w.shape
    reward, states, actions = np.zeros(K), np.empty((K, H + 1), np.int64), np.empty((K, H), np.int64)
    s, worth = begin, None
    for k in range(K):
        now = _player(choose(k))
        system = now.system if accounts is None else accounts(k)
        system.fold(w[k])
        states[k, 0] = s = s if carry else begin
        worth = system.terminal if worth is None else worth  # what was paid for it at the end of the episode before
        paid = -float(worth[s - first]) if carry else 0.0
        worth = system.terminal
        for h in range(H):
            a = now.act(h, s)
            landed, earned = system.step(h, s - first, a, w[k, h])
            after = int(landed) + first
            paid += system.discount**h * float(earned)
            now.observe(h, s, a, after, disturbance=None if censored else int(w[k, h]))
            actions[k, h], states[k, h + 1] = a, after
            s = after
        reward[k] = paid + system.discount**H * float(system.terminal[s - first])
        if progress is not None:
            progress(k + 1, K)
    return Replay(reward, states, actions)


def _player(given: Any) -> Player:
    if not isinstance(given, Agent | Policy):
        raise TypeError(f"player is {given!r:.60}; give an agent, or a ucbf.Policy")
    return given


def learn(
    agent: Agent | GridAgent, env: Any, episodes: int, seed: int | None = None, progress: Progress | None = None
) -> NDArray[np.float64]:
    """Let ``agent`` act and learn in a Gymnasium environment; returns the rewards [K].

    An agent of a :class:`ucbf.System` needs Discrete spaces. A :class:`ucbf.GridAgent` needs observations in a Box;
    actions may be Discrete, or a Box of which the grid's actions are points.

    ``agent.system`` states the mechanics of ``env``: its states are the observations, its actions the actions. The
    agent learns for the rewards of that system, not for those that ``env`` pays, which are only added up,
    discounted: state the system's rewards as ``env`` pays them. An episode ends when the environment ends it, or
    after ``horizon`` steps; steps that it cuts off are not learned. ``info["disturbance"]``, where the environment
    gives it, is used at clipped edges, which hide W.
    """
    K = whole("episodes", episodes, 1)
    if not isinstance(agent, Agent | GridAgent):
        raise TypeError(f"agent is {agent!r:.60}; give an agent, such as ucbf.UCBf(system), and then the environment")
    if not all(hasattr(env, name) for name in ("reset", "step", "observation_space", "action_space")):
        raise TypeError(f"env is {env!r:.60}; give a Gymnasium environment, such as gymnasium.make(...)")
    system = agent.system
    move = _checked_spaces(agent, env)
    collected = np.zeros(K)
    for k in range(K):
        s, _ = deepcopy(env.reset(seed=seed if k == 0 else None))  # it may go on in the same array
        for h in range(system.horizon):
            a = agent.act(h, s)
            next_s, reward, terminated, truncated, info = env.step(move(a))
            next_s = deepcopy(next_s)
            agent.observe(h, s, a, next_s, disturbance=info.get("disturbance") if system.hides(next_s) else None)
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


def _checked_spaces(agent: Agent | GridAgent, env: Any) -> Callable[[int], Any]:
    """What to hand the environment for an action; an error if its spaces are not those of the agent's system."""
    observed, acted = env.observation_space, env.action_space
    if isinstance(agent, Agent):
        _check_space("observation_space", observed, agent.system.n_states, agent.system.state_offset)
        _check_space("action_space", acted, agent.system.n_actions, 0)
        return lambda a: a
    grid = agent.system
    if getattr(observed, "shape", None) != grid.low.shape or hasattr(observed, "n"):
        raise ValueError(f"the environment observes {observed}, but the grid has states of shape {grid.low.shape}")
    if hasattr(acted, "n"):
        _check_space("action_space", acted, grid.n_actions, getattr(acted, "start", 0))
        first = int(getattr(acted, "start", 0))
        return lambda a: a + first
    if np.size(grid.actions[0]) != int(np.prod(acted.shape)):
        raise ValueError(
            f"the grid's actions have {grid.actions.shape[1]} parts, the environment's {acted}; state them alike"
        )
    moves = [grid.actions[a].astype(acted.dtype).reshape(acted.shape) for a in range(grid.n_actions)]
    outside = [move for move in moves if not acted.contains(move)]
    if outside:
        raise ValueError(f"the grid's action {outside[0]} is not in the environment's action_space {acted}")
    return moves.__getitem__


def _check_space(name: str, space: Any, n: int, start: int) -> None:
    if getattr(space, "n", None) != n or getattr(space, "start", 0) != start:
        raise ValueError(
            f"the environment's {name} is {space}, but the agent's system has {n} starting at {start}; "
            "state the system with the environment's sizes, or wrap the environment"
        )
