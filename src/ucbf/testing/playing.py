"""Agents that play, and whether two of them do the same: what several rules need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.agents import Agent
from ucbf.controller import load
from ucbf.simulation import simulate
from ucbf.system import System
from ucbf.testing.contract import a_file, require_equal
from ucbf.testing.worlds import state_name
from ucbf.world import World

Make = Callable[[System], Agent]
Arrays = dict[str, NDArray[Any]]
Transition = tuple[int, Any, int, Any, Any]  # h, s, a, next_s, W: what ``observe`` takes

EPISODES = 10  # that most rules take


def learned(make: Make, world: World) -> Agent:
    """A new agent after a few episodes."""
    agent = make(world.system)
    simulate(agent, world, EPISODES)
    return agent


def stages(make: Make, world: World) -> Iterator[Agent]:
    """A new agent, and one after a few episodes."""
    yield make(world.system)
    yield learned(make, world)


def known(agent: Agent) -> Arrays:
    """Copies of all that learning changes."""
    return {name: np.array(array) for name, array in agent.state.items()}


def episode(policy: NDArray[np.int64], world: World, episodes: int, k: int, seed: int = 0) -> list[Transition]:
    """Episode k of so many, as ``simulate`` draws them, under a policy."""
    system = world.system
    starts, w = world.draw(episodes, seed)
    s, steps = int(starts[k]), []
    for h in range(system.n_steps):
        a = int(policy[h, s])
        after = int(system.advance(h, s, a, w[k, h])[0])
        steps.append((h, state_name(system, s), a, state_name(system, after), w[k, h]))
        s = after
    return steps


def require_same(one: Agent, other: Agent, world: World, what: str, remedy: str, seed: int = 9) -> None:
    """An error unless two agents choose and value alike, and go on alike; they are taught some more."""
    require_equal(one.policy, other.policy, f"the policies of {what}", remedy)
    if hasattr(one, "q") and hasattr(other, "q"):
        require_equal(one.q, other.q, f"q of {what}", remedy)
    runs = [simulate(agent, world, EPISODES // 2, seed) for agent in (one, other)]
    require_equal(runs[0].gap, runs[1].gap, f"the gaps that follow of {what}", remedy)


def require_same_state(one: Arrays, other: Arrays, what: str, remedy: str) -> None:
    """An error unless two agents, or one at two times, know the same."""
    for name, array in one.items():
        require_equal(array, other.get(name, ()), f"{name} of {what}", remedy)


def reloaded(agent: Agent) -> Any:
    """The agent, saved and loaded."""
    with a_file() as path:
        agent.save(path)
        return load(path, agent=type(agent))


def show(agent: Agent, steps: list[Transition]) -> None:
    """Let the agent observe transitions, W measured; it is asked to act before each, whatever it answers."""
    for h, s, a, next_s, w in steps:
        agent.act(h, s)
        agent.observe(h, s, a, next_s, disturbance=w)
