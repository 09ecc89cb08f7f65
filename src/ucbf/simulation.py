"""One agent for K episodes: in a world, in episodes that really happened, or in any Gymnasium environment."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.agents.base import Agent
from ucbf.certificates import Certificate
from ucbf.checks import integers, numbers, real, whole
from ucbf.kernels import backward, loop
from ucbf.kernels.backward import Arena
from ucbf.kernels.seen import Seen
from ucbf.planning import arena_of, checked_policy
from ucbf.system import System
from ucbf.tables import LARGEST_TABLE
from ucbf.world import World

Progress = Callable[[int, int], object]
BLOCK_SECONDS = 0.1  # how long a progress report, or Ctrl-C, waits
CHECKED_AFTER = frozenset(50 * 2**i for i in range(40))  # episodes: whether what the agent was told is contradicted


class Run:
    """What was done, and paid, in K episodes: in a world, in episodes that happened, or in an environment.

    Parameters
    ----------
    reward
        [K] the discounted return that was collected.
    gap
        [K] V*_1 - V^{π_k}_1, exact, averaged over the first state; known only in a world (:func:`simulate`).
    switched
        [K] whether the policy was another than in the episode before; likewise.
    states, actions
        [K, H+1] and [K, H], in a box [K, H+1, d], where they are recorded (:func:`replay`).
    """

    def __init__(
        self,
        reward: NDArray[np.float64],
        gap: NDArray[np.float64] | None = None,
        switched: NDArray[np.bool_] | None = None,
        states: NDArray[Any] | None = None,
        actions: NDArray[np.int64] | None = None,
    ) -> None:
        self.reward = reward
        self._known = {"gap": gap, "switched": switched, "states": states, "actions": actions}

    def __repr__(self) -> str:
        return f"Run({len(self.reward)} episodes, mean reward {self.reward.mean():g})"

    @property
    def gap(self) -> NDArray[np.float64]:
        """[K] V*_1 - V^{π_k}_1, exact, averaged over the first state."""
        return self._recorded("gap", "ucbf.simulate, in a ucbf.World")

    @property
    def switched(self) -> NDArray[np.bool_]:
        """[K] whether the policy was another than in the episode before."""
        return self._recorded("switched", "ucbf.simulate, in a ucbf.World")

    @property
    def states(self) -> NDArray[Any]:
        """[K, H+1] or [K, H+1, d]."""
        return self._recorded("states", "ucbf.replay")

    @property
    def actions(self) -> NDArray[np.int64]:
        """[K, H]."""
        return self._recorded("actions", "ucbf.replay")

    @property
    def switches(self) -> int:
        """How often the policy changed from one episode to the next."""
        return int(self.switched.sum())

    @property
    def regret(self) -> NDArray[np.float64]:
        """[K] the cumulative gap."""
        return np.cumsum(self.gap)

    def _recorded(self, name: str, by: str) -> NDArray[Any]:
        array = self._known[name]
        if array is None:
            raise AttributeError(f"{name} is not known of this run; only {by}, gives it")
        return array


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
    hidden = censored and bool(world.system.space.clips.any()) and agent.hides_at_edges()
    if hidden and stop_when is not None:
        raise ValueError("stop_when needs a certificate, and nothing can be certified of what an edge hides; drop one")
    stops = _stops(agent, world, K, stop_when)
    pauses = sorted({k for k in CHECKED_AFTER if k < K} | {K} | set(stops))
    starts, drawn = world.draw_indices(K, whole("seed", seed, 0))
    arena = arena_of(world.system, world.law, world.start, world.best)
    gap, reward, switched = np.empty(K), np.empty(K), np.empty(K, np.bool_)
    acted, v = np.array(agent.policy), np.tile(world.system.terminal, (world.system.horizon + 1, 1))
    played = Played(world, arena, v, acted, gap, reward, switched)
    moves, measured = _moves(world, agent.system) if world.system.space.all_whole else (drawn, drawn)
    done, block, stopped = 0, 16, False
    while done < K and not stopped:
        end = min(done + block, next(k for k in pauses if k > done))
        part, begun = slice(done, end), time.perf_counter()
        if world.system.space.all_whole:
            draws = loop.Draws(starts[part], moves[drawn[part]], measured[drawn[part]], hidden)
            _play(agent, played, draws, part)
        else:
            _play_between(agent, played, starts, drawn, part)
        done = part.stop
        took = max(time.perf_counter() - begun, 1e-9)
        block = max(1, min(4 * block, int(block * BLOCK_SECONDS / took)))
        stopped = done in stops and stops[done]()
        if done in CHECKED_AFTER or done == K or stopped:
            agent.warn_if_contradicted()
        if progress is not None:
            progress(done, K)
    return Run(reward[:done], gap[:done], switched[:done])


class Played(NamedTuple):
    """A world that is played in, and room for what happens."""

    world: World
    arena: Arena
    v: NDArray[np.float64]  # [H+1, S] for the values of a policy, its last row the terminal reward
    acted: NDArray[np.int64]  # [H, S] the policy of the episode before
    gap: NDArray[np.float64]  # [K] filled
    reward: NDArray[np.float64]  # [K]
    switched: NDArray[np.bool_]  # [K]


def _moves(world: World, told: System) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """[n] of the values of the law: how far each moves among the raw next states, and its index for the learner."""
    true, law = world.system, world.law
    occurs = np.flatnonzero((law.pmf > 0).any(axis=0))
    moves, measured = np.zeros(len(law.values), np.int64), np.zeros(len(law.values), np.int64)
    j = true.bins.index(law.values[occurs])
    moves[occurs] = true.mechanics.offsets[j]
    shown = told.space.clips.any() or not told.space.is_line  # elsewhere the next state says it
    measured[occurs] = told.bins.index(law.values[occurs]) if shown else j
    return moves, measured


def _play(agent: Agent, played: Played, draws: loop.Draws, part: slice) -> None:
    """Act, then learn, for the episodes of a part; fills gap, reward and switched."""
    _, arena, v, acted, gap, reward, switched = played
    gap, reward, switched = gap[part], reward[part], switched[part]
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
                agent.update(Seen(*loop.seen_at(agent.told, draws, k, h, states, actions)))


def _play_between(
    agent: Agent, played: Played, starts: NDArray[np.int64], drawn: NDArray[np.int64], part: slice
) -> None:
    """The same where axes are continuous: the states are what they are, the gap is that of the points."""
    world, arena, v, acted, gap, reward, switched = played
    system, policy = world.system, np.empty((0, 0), np.int64)
    for k in range(part.start, part.stop):
        agent.renew()
        now = checked_policy(system, agent.policy)
        if not np.array_equal(now, policy):
            policy = now
            backward.evaluate(arena, policy, v, system.horizon - 1)
        switched[k], acted[...] = not np.array_equal(acted, policy), policy
        gap[k], reward[k] = backward.gap_of(arena, v[0]), 0.0
        s = system.space.points[starts[k]] if world.start_state is None else world.start_state
        for h in range(system.horizon):
            a, w = agent.act(h, s), world.law.values[drawn[k, h]]
            after, paid = system.advance(h, s[None], np.array([a]), w)
            reward[k] += system.discount**h * float(paid[0])
            agent.observe(h, s, a, after[0], disturbance=w)
            s = after[0]
        reward[k] += system.discount**system.horizon * float(system.at_any_state.terminal(s[None])[0])


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


class Player(Protocol):
    """Who plays: an agent, a :class:`ucbf.Policy`, a :class:`ucbf.Plan`."""

    @property
    def system(self) -> System:
        """What it is told."""

    def act(self, h: int, s: Any, /) -> int:
        """The action for state s at step h."""

    def observe(self, h: int, s: Any, a: int, next_s: Any, disturbance: Any = None) -> None:
        """Learn from a transition, or not."""


def replay(
    player: Player | Callable[[int], Player],
    disturbances: ArrayLike,
    start: Any = None,
    carry: bool = True,
    censored: bool = False,
    accounts: Callable[[int], System] | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run an agent, which learns as it goes, or a fixed policy through episodes that happened, in their order.

    Parameters
    ----------
    player
        An agent, a :class:`ucbf.Policy` or a :class:`ucbf.Plan`, or a function of the episode that gives one: for
        prices that change every day.
    disturbances
        [K, H] W of every step; [K, H, d] in a box.
    start
        The first state; the one nearest to 0 if None.
    carry
        Whether an episode starts where the one before ended. What is there at its start is then charged at what was
        paid for it, as the terminal reward, at the end of the one before: each is judged by what it added.
    censored
        Whether clipped boundaries hide W from an agent.
    accounts
        A function of the episode: the system whose rewards are counted; that of the player, if None.
    """
    choose: Callable[[int], Player] = player if _is_choice(player) else lambda k: player  # type: ignore[assignment,return-value]
    system = _player(choose(0)).system
    w: NDArray[Any] = (integers if system.space.all_whole else numbers)("disturbances", disturbances)
    shape = (system.horizon,) if system.space.is_line else (system.horizon, system.space.n_axes)
    if w.ndim != 1 + len(shape) or w.shape[1:] != shape or not len(w):
        kind = "[K, H]" if system.space.is_line else "[K, H, d]"
        raise ValueError(f"disturbances has shape {w.shape}; give {kind} = [K, {', '.join(map(str, shape))}]")
    begin = system.space.place("start", system.nearest_to_zero if start is None else start)
    K, H = w.shape[:2]
    reward, visited, actions = np.zeros(K), [], np.empty((K, H), np.int64)
    place, worth = begin, None
    for k in range(K):
        now = _player(choose(k))
        system = now.system if accounts is None else accounts(k)
        system.bins.spread(w[k])
        place = place if carry else begin
        visited.append(_named(system, place))
        worth = system if worth is None else worth  # what was paid for it at the end of the episode before
        paid = -_terminal(worth, place) if carry else 0.0
        worth = system
        for h in range(H):
            s = _named(system, place)
            a = now.act(h, s)
            landed, earned = _advanced(system, h, place, a, w[k, h])
            paid += system.discount**h * earned
            now.observe(h, s, a, _named(system, landed), disturbance=None if censored else w[k, h])
            actions[k, h], place = a, landed
            visited.append(_named(system, place))
        reward[k] = paid + system.discount**H * _terminal(system, place)
        if progress is not None:
            progress(k + 1, K)
    return Run(reward, states=np.array(visited).reshape(K, H + 1, *shape[1:]), actions=actions)


def _is_choice(player: Any) -> bool:
    return callable(player) and not hasattr(player, "act")


def _player(given: Any) -> Player:
    if not all(hasattr(given, name) for name in ("system", "act", "observe")):
        raise TypeError(f"player is {given!r:.60}; give an agent, or a ucbf.Policy")
    return given  # type: ignore[no-any-return]


def _named(system: System, place: Any) -> Any:
    """A place as a state is named."""
    return system.space.state(place) if system.space.all_whole else np.array(place)


def _advanced(system: System, h: int, place: Any, a: int, w: Any) -> tuple[Any, float]:
    """Where one step ends, and what it pays."""
    if system.space.all_whole:
        landed, paid = system.advance(h, place, a, w)
        return int(landed), float(paid)
    rows, paid = system.advance(h, place[None], np.array([a]), w)
    return rows[0], float(paid[0])


def _terminal(system: System, place: Any) -> float:
    if system.space.all_whole:
        return float(system.terminal[place])
    return float(system.at_any_state.terminal(place[None])[0])


def train(agent: Agent, env: Any, episodes: int, seed: int | None = None, progress: Progress | None = None) -> Run:
    """Let ``agent`` act and learn in a Gymnasium environment.

    Where states are whole numbers on a line the environment needs Discrete spaces, in a box a Box of observations;
    actions may be Discrete, or a Box of which the system's actions are points.

    ``agent.system`` states the mechanics of ``env``: its states are the observations, its actions the actions. The
    agent learns for the rewards of that system, not for those that ``env`` pays, which are only added up,
    discounted: state the system's rewards as ``env`` pays them. An episode ends when the environment ends it, or
    after ``horizon`` steps; steps that it cuts off are not learned. ``info["disturbance"]``, where the environment
    gives it, is used at clipped boundaries, which hide W.
    """
    K = whole("episodes", episodes, 1)
    if not isinstance(agent, Agent):
        raise TypeError(f"agent is {agent!r:.60}; give an agent, such as ucbf.UCBf(system), and then the environment")
    if not all(hasattr(env, name) for name in ("reset", "step", "observation_space", "action_space")):
        raise TypeError(f"env is {env!r:.60}; give a Gymnasium environment, such as gymnasium.make(...)")
    system = agent.system
    move = _checked_spaces(system, env)
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
    return Run(collected)


def _check_told(told: System, world: World) -> None:
    """What the agent was told must speak of this world, before any work is done."""
    true = world.system
    for what in ("n_states", "n_actions", "horizon", "boundary", "state_offset"):
        if getattr(told, what) != getattr(true, what):
            raise ValueError(
                f"the agent was told {what} = {getattr(told, what)!r}, but the world has "
                f"{getattr(true, what)!r}; build both from one system"
            )
    if repr(told.space) != repr(true.space) or not np.array_equal(told.actions, true.actions):
        raise ValueError("the agent and the world do not have the same states and actions; build both from one system")
    if not np.array_equal(told.allowed, true.allowed):
        raise ValueError("the agent and the world do not allow the same actions; build both from one system")
    paid = [(s.reward, s.terminal, s.discount, _landing_within(s, true, told)) for s in (told, true)]
    if not all(np.array_equal(mine, theirs) for mine, theirs in zip(*paid, strict=True)):
        warnings.warn("the agent was told other rewards or another discount than the world's", stacklevel=3)
    if told.disturbance_range is not None:
        _check_residuals(told, world)


def _check_residuals(told: System, world: World) -> None:
    """The residuals that the agent would see must be within the range that it was told."""
    true, d = world.system, world.system.space.n_axes
    errors = np.unique((told.f - true.f)[true.allowed].reshape(-1, d), axis=0)
    occurs = world.law.values[(world.law.pmf > 0).any(axis=0)].reshape(-1, d)
    residuals = np.concatenate([occurs - error for error in errors])
    low, high = (np.ravel(side) for side in told.disturbance_range)
    low, high = low - told.slack, high + told.slack
    turned = true.space.wraps & true.space.is_whole
    residuals = np.where(turned, low + (residuals - low) % true.space.shape, residuals)
    margin = np.where(true.space.is_whole, 0, true.space.spacing / 2)
    outside = residuals[((residuals < low - margin) | (residuals > high + margin)).any(axis=1)]
    if len(outside):
        shown = [str(row[0]) if true.space.is_line else str(row) for row in (outside[0], low, high)]
        raise ValueError(
            f"in this world the agent would see a residual of {shown[0]}, outside {shown[1]}..{shown[2]} "
            "(its disturbance_range, widened by ζ/2); declare a wider range, or a larger model_error"
        )


def _landing_within(system: System, one: System, other: System) -> NDArray[np.float64]:
    """Landing rewards over the raw states that both systems have; zero where there are none."""
    if not system.space.is_line:
        return np.zeros((1, 1)) if system.landing is None else system.landing
    z = np.arange(max(one.raw_states[0], other.raw_states[0]), min(one.raw_states[-1], other.raw_states[-1]) + 1)
    return np.zeros((1, len(z))) if system.landing is None else system.landing[:, z - system.raw_states[0]]


def _checked_spaces(system: System, env: Any) -> Callable[[int], Any]:
    """What to hand the environment for an action; an error if its spaces are not those of the agent's system."""
    observed, acted = env.observation_space, env.action_space
    if system.space.is_line:
        _check_space("observation_space", observed, system.n_states, system.state_offset)
        _check_space("action_space", acted, system.n_actions, 0)
        return lambda a: a
    if getattr(observed, "shape", None) != system.space.low.shape or hasattr(observed, "n"):
        raise ValueError(
            f"the environment observes {observed}, but the system has states of shape {system.space.low.shape}"
        )
    if hasattr(acted, "n"):
        _check_space("action_space", acted, system.n_actions, getattr(acted, "start", 0))
        first = int(getattr(acted, "start", 0))
        return lambda a: a + first
    if np.size(system.actions[0]) != int(np.prod(acted.shape)):
        raise ValueError(
            f"the system's actions have {np.size(system.actions[0])} parts, the environment's {acted}; state them alike"
        )
    moves = [np.asarray(action).astype(acted.dtype).reshape(acted.shape) for action in system.actions]
    outside = [move for move in moves if not acted.contains(move)]
    if outside:
        raise ValueError(f"the system's action {outside[0]} is not in the environment's action_space {acted}")
    return moves.__getitem__


def _check_space(name: str, space: Any, n: int, start: int) -> None:
    if getattr(space, "n", None) != n or getattr(space, "start", 0) != start:
        raise ValueError(
            f"the environment's {name} is {space}, but the agent's system has {n} starting at {start}; "
            "state the system with the environment's sizes, or wrap the environment"
        )
