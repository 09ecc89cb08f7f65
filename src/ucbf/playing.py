"""An agent or a policy in episodes that really happened, or in any Gymnasium environment."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.agents.base import Agent
from ucbf.checks import integers, numbers, whole
from ucbf.run import Progress, Run
from ucbf.system import System


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
    shape = (system.n_steps,) if system.space.is_line else (system.n_steps, system.space.n_axes)
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
        for h in range(system.n_steps):
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
