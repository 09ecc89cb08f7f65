"""The Gymnasium view of a world: one environment, and one that steps many copies at once.

Observations and actions are Discrete; an episode has exactly H steps and ends with ``terminated``. The reward of a step
is r + landing, the last one's also γ times the terminal reward, so that discounted by γ^h they add up to the value of
:func:`ucbf.evaluate`. ``info`` holds
``h`` (the step about to be taken), ``action_mask`` (actions allowed now) and, after a step, ``disturbance`` (W).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ucbf.checks import integers, numbers, one_of, whole

if TYPE_CHECKING:
    from ucbf.disturbance import Disturbance
    from ucbf.grid import Grid
    from ucbf.world import World


def random_env(render_mode: str | None = None, world_seed: int = 0, **world: Any) -> WorldEnv:
    """Build "ucbf/Random-v0": the paper's random world; keywords as of :func:`ucbf.random_world`."""
    return WorldEnv(_random(world_seed, world), render_mode)


def random_vector_env(num_envs: int = 1, render_mode: None = None, world_seed: int = 0, **world: Any) -> WorldVectorEnv:
    """The same world, many copies at once; they are not rendered."""
    return WorldVectorEnv(_random(world_seed, world), num_envs)


def given_env(world: World, render_mode: str | None = None) -> WorldEnv:
    """Build "ucbf/World-v0": any world, passed as ``world=``."""
    return WorldEnv(world, render_mode)


def given_vector_env(world: World, num_envs: int = 1, render_mode: None = None) -> WorldVectorEnv:
    """Many copies of any world at once; they are not rendered."""
    return WorldVectorEnv(world, num_envs)


def system_env(
    kind: str, render_mode: str | None = None, law: Disturbance | None = None, start: Any = None, **parameters: Any
) -> WorldEnv:
    """Build "ucbf/Inventory-v0" and the like: a ready system; keywords are its own and those of its ``world``."""
    return WorldEnv(_system(kind, law, start, parameters), render_mode)


def system_vector_env(
    kind: str,
    num_envs: int = 1,
    render_mode: None = None,
    law: Disturbance | None = None,
    start: Any = None,
    **parameters: Any,
) -> WorldVectorEnv:
    """Many copies of a ready system at once; they are not rendered."""
    return WorldVectorEnv(_system(kind, law, start, parameters), num_envs)


def _system(kind: str, law: Disturbance | None, start: Any, parameters: dict[str, Any]) -> World:
    from ucbf.systems import SYSTEMS

    return SYSTEMS[kind](**parameters).world(law, start)


def _random(seed: int, arguments: dict[str, Any]) -> World:
    from ucbf.world import random_world

    if "seed" in arguments:
        raise TypeError("seed is taken by reset(seed=); pass world_seed= to choose the world")
    return random_world(seed=seed, **arguments)


class WorldEnv(gymnasium.Env[np.int64, np.int64]):
    """A world, one episode at a time.

    ``reset(options={"state": s})`` starts in state s instead of drawing it.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - Gymnasium's own way

    def __init__(self, world: World, render_mode: str | None = None) -> None:
        if render_mode is not None:
            one_of("render_mode", render_mode, self.metadata["render_modes"])
        self._many = _Copies(world, 1)
        system = world.system
        self.world = world
        self.render_mode = render_mode
        self.observation_space = Discrete(system.n_states, start=system.state_offset)
        self.action_space = Discrete(system.n_actions)
        self._last = ""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        states = self._many.first_states(self.np_random, options)
        self._many.begin(np.ones(1, bool), states)
        self._last = f"step 0: state {self._many.names()[0]}"
        return self._many.names()[0], self._info()

    def step(self, action: Any) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Take one step."""
        h, before = int(self._many.h[0]), self._many.names()[0]
        if h >= self.world.system.horizon:
            raise RuntimeError("the episode is over: call reset() before the next step()")
        w, reward = self._many.advance(np.array([action]), self.np_random.random(1))
        state = self._many.names()[0]
        self._last = (
            f"step {h}: state {before}, action {action}, disturbance {w[0]} -> state {state}, reward {reward[0]:g}"
        )
        over = bool(self._many.h[0] == self.world.system.horizon)
        return state, float(reward[0]), over, False, {**self._info(), "disturbance": int(w[0])}

    def render(self) -> str | None:
        """One line on the last step."""
        return self._last if self.render_mode == "ansi" else None

    def _info(self) -> dict[str, Any]:
        return {"h": int(self._many.h[0]), "action_mask": self._many.masks()[0]}


class WorldVectorEnv(VectorEnv[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]):
    """Many independent copies of a world, stepped together in a few array operations.

    A copy whose episode ended starts again at its next step (``AutoresetMode.NEXT_STEP``): that step's action is
    ignored, its reward is 0 and ``info["_disturbance"]`` is false for it.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, world: World, num_envs: int = 1) -> None:
        self._many = _Copies(world, whole("num_envs", num_envs, 1))
        system = world.system
        self.world = world
        self.num_envs = num_envs
        self.single_observation_space = Discrete(system.n_states, start=system.state_offset)
        self.single_action_space = Discrete(system.n_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Start every copy. ``options={"state": s}`` takes one state for all, or one for each."""
        if isinstance(seed, list | tuple | np.ndarray):
            raise TypeError("the copies share one random stream; pass one seed, not a list")
        super().reset(seed=seed)
        everyone = np.ones(self.num_envs, bool)
        self._many.begin(everyone, self._many.first_states(self.np_random, options))
        return self._many.names(), self._info()

    def step(self, actions: NDArray[np.int64]) -> tuple[Any, ...]:
        """Take one step in every copy."""
        if np.shape(actions) != (self.num_envs,):
            raise ValueError(f"actions has shape {np.shape(actions)}; give one for each of {self.num_envs} copies")
        if not self._many.begun:
            raise RuntimeError("the copies have not begun: call reset() before the first step()")
        over = self._many.h == self.world.system.horizon
        uniforms = self.np_random.random((2, self.num_envs))
        w, reward = np.zeros(self.num_envs, np.int64), np.zeros(self.num_envs)
        playing = ~over
        if playing.any():
            w[playing], reward[playing] = self._many.advance(
                np.asarray(actions)[playing], uniforms[0, playing], playing
            )
        if over.any():
            self._many.begin(over, self._many.draw(uniforms[1]))
        terminated = playing & (self._many.h == self.world.system.horizon)
        info = {**self._info(), "disturbance": w, "_disturbance": playing}
        return self._many.names(), reward, terminated, np.zeros(self.num_envs, bool), info

    def _info(self) -> dict[str, Any]:
        shown = np.ones(self.num_envs, bool)
        return {"h": self._many.h.copy(), "_h": shown, "action_mask": self._many.masks(), "_action_mask": shown.copy()}


class GridEnv(gymnasium.Env[NDArray[np.float64], np.int64]):
    """Build "ucbf/Grid-v0": a continuous system whose disturbances are drawn by a function of the user's.

    Parameters
    ----------
    grid
        The system; observations are its states, actions the numbers of its actions.
    noise
        W [d] of a step: a function of a numpy random generator and the step.
    start
        The first state [d], or a function of a random generator that gives one; uniform over the box if None.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - Gymnasium's own way

    def __init__(self, grid: Grid, noise: Callable[[np.random.Generator, int], Any], start: Any = None) -> None:
        from ucbf.grid import Grid

        if not isinstance(grid, Grid):
            raise TypeError(f"grid is {grid!r:.60}; give a ucbf.Grid")
        self.grid, self.noise, self.start = grid, noise, start
        self.observation_space = Box(grid.low, grid.high, dtype=np.float64)
        self.action_space = Discrete(grid.n_actions)
        self._state, self._h = grid.low, grid.horizon

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Start an episode; ``options={"state": s}`` starts in state s."""
        super().reset(seed=seed)
        given = self.start(self.np_random) if callable(self.start) else self.start
        if options:
            given = options["state"]
        drawn = self.np_random.uniform(self.grid.low, self.grid.high) if given is None else np.ravel(given)
        self._state, self._h = self.grid.rows("the first state", drawn)[0], 0
        return self._state.copy(), self._info()

    def step(self, action: Any) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """Take one step."""
        grid, h = self.grid, self._h
        if h >= grid.horizon:
            raise RuntimeError("the episode is over: call reset() before the next step()")
        a = whole("action", action, 0, grid.n_actions - 1)
        chosen = grid.actions[a][None]
        if not grid.allowed(h, self._state[None], chosen)[0]:
            raise ValueError(
                f"action {a} is not allowed in state {self._state} at step {h}; "
                'info["action_mask"] shows those that are'
            )
        w = np.ravel(numbers("noise", self.noise(self.np_random, h)))
        grid.shared(w[None])  # an error if it is not of the right shape, or outside the declared range
        after, paid = grid.step(h, self._state[None], chosen, w)
        reward = float(paid[0])
        self._state, self._h = after[0], h + 1
        over = self._h == grid.horizon
        if over:
            reward += grid.discount * float(grid.terminal(after)[0])
        return self._state.copy(), reward, over, False, {**self._info(), "disturbance": w}

    def _info(self) -> dict[str, Any]:
        """The step about to be taken, and the actions allowed in it; at the end of an episode those of the first."""
        grid = self.grid
        states = np.repeat(self._state[None], grid.n_actions, axis=0)
        mask = grid.allowed(self._h % grid.horizon, states, grid.actions)
        return {"h": self._h, "action_mask": mask.astype(np.int8)}


class _Copies:
    """States and steps of n copies of a world; both environments are views of it."""

    def __init__(self, world: World, n: int) -> None:
        from ucbf.world import World

        if not isinstance(world, World):
            raise TypeError(f"world is {world!r:.60}; give a ucbf.World: a system and the law of its disturbances")
        self.world = world
        self.begun = False
        self.s = np.zeros(n, np.int64)  # state indices
        self.h = np.full(n, world.system.horizon)  # over until reset

    def names(self) -> NDArray[np.int64]:
        return self.s + self.world.system.state_offset

    def masks(self) -> NDArray[np.int8]:
        """[n, A] actions allowed now; at the end of an episode those of the first step."""
        system = self.world.system
        masks: NDArray[np.int8] = system.allowed[self.h % system.horizon, self.s].astype(np.int8)
        return masks

    def draw(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        from ucbf.disturbance import invert

        return invert(self.world.start, uniforms)

    def first_states(self, rng: np.random.Generator, options: dict[str, Any] | None) -> NDArray[np.int64]:
        """[n] state indices, drawn or as the user asked."""
        drawn = self.draw(rng.random(len(self.s)))
        for key in options or ():
            one_of("option", key, ["state"])
        if not options:
            return drawn
        states = self.world.system.states
        asked = [whole('options["state"]', s, states[0], states[-1]) for s in np.ravel(options["state"])]
        if len(asked) not in (1, len(self.s)):
            raise ValueError(f'options["state"] has {len(asked)} states; give one, or one for each of {len(self.s)}')
        return np.broadcast_to(np.array(asked) - states[0], self.s.shape)

    def begin(self, which: NDArray[np.bool_], states: NDArray[np.int64]) -> None:
        self.begun = True
        self.s[which] = states[which]
        self.h[which] = 0

    def advance(
        self, actions: NDArray[np.int64], uniforms: NDArray[np.float64], which: NDArray[np.bool_] | slice = slice(None)
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Move the copies ``which``; their disturbances and rewards."""
        from ucbf.disturbance import invert

        system, law = self.world.system, self.world.law
        s, h = self.s[which], self.h[which]
        actions = integers("action", actions)
        outside = actions[(actions < 0) | (actions >= system.n_actions)]
        if len(outside):
            whole("action", outside[0], 0, system.n_actions - 1)
        wrong = np.flatnonzero(~system.allowed[h, s, actions])
        if len(wrong):
            i = wrong[0]
            raise ValueError(
                f"action {actions[i]} is not allowed in state {s[i] + system.state_offset} at step {h[i]}; "
                'info["action_mask"] shows those that are'
            )
        w = np.empty(len(s), np.int64)
        for step in np.unique(h):
            at = h == step
            w[at] = law.low + invert(law.pmf[step % len(law.pmf)], uniforms[at])
        s_next, reward = system.step(h, s, actions, w)
        last = h == system.horizon - 1
        reward = reward + np.where(last, system.discount * system.terminal[s_next], 0.0)
        self.s[which], self.h[which] = s_next, h + 1
        return w, reward
