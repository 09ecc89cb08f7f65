"""The Gymnasium view of a world: one environment, and one that steps many copies at once.

Actions are Discrete, observations too, or, if the states are rows [d], a Box. An episode has exactly H steps and ends
with ``terminated``. A world without an end is never terminated: pass ``max_episode_steps`` to ``gymnasium.make`` or
``make_vec`` to have it cut off (``truncated``). The reward of a step is r + landing, the last one's also γ times the
terminal reward, so that discounted by γ^h they add up to the value of :func:`ucbf.evaluate`. ``info`` holds ``h`` (the
step about to be taken; without an end, its place in the period), ``action_mask`` (actions allowed now), where the
system has contexts ``context`` (the present one) and, after a step, ``disturbance`` (W: with a boundary that is a
function, as many parts as f + W has).

Importing this module registers the environments with Gymnasium, as "ucbf/Random-v0" and so on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

import ucbf.registration  # noqa: F401
from ucbf.checks import integers, one_of, whole

if TYPE_CHECKING:
    from ucbf.disturbance import Disturbance
    from ucbf.system import System
    from ucbf.world import World


def random_env(render_mode: str | None = None, world_seed: int = 0, **world: Any) -> WorldEnv:
    """Build "ucbf/Random-v0": the paper's random world; keywords as of :func:`ucbf.random_world`."""
    return WorldEnv(_random(world_seed, world), render_mode)


def random_vector_env(
    num_envs: int = 1,
    render_mode: None = None,
    world_seed: int = 0,
    max_episode_steps: int | None = None,
    **world: Any,
) -> WorldVectorEnv:
    """The same world, many copies at once; they are not rendered."""
    return WorldVectorEnv(_random(world_seed, world), num_envs, max_episode_steps)


def given_env(world: World, render_mode: str | None = None) -> WorldEnv:
    """Build "ucbf/World-v0": any world, passed as ``world=``."""
    return WorldEnv(world, render_mode)


def given_vector_env(
    world: World, num_envs: int = 1, render_mode: None = None, max_episode_steps: int | None = None
) -> WorldVectorEnv:
    """Many copies of any world at once; they are not rendered."""
    return WorldVectorEnv(world, num_envs, max_episode_steps)


def system_env(
    kind: str, render_mode: str | None = None, law: Disturbance | None = None, start: Any = None, **parameters: Any
) -> WorldEnv:
    """Build "ucbf/Inventory-v0" and the like: a preset; keywords are its own and those of its ``world``."""
    return WorldEnv(_system(kind, law, start, parameters), render_mode)


def system_vector_env(
    kind: str,
    num_envs: int = 1,
    render_mode: None = None,
    law: Disturbance | None = None,
    start: Any = None,
    max_episode_steps: int | None = None,
    **parameters: Any,
) -> WorldVectorEnv:
    """Many copies of a preset at once; they are not rendered."""
    return WorldVectorEnv(_system(kind, law, start, parameters), num_envs, max_episode_steps)


def _system(kind: str, law: Disturbance | None, start: Any, parameters: dict[str, Any]) -> World:
    from ucbf.systems import PRESETS

    return PRESETS[kind](**parameters).world(law, start)


def _random(seed: int, arguments: dict[str, Any]) -> World:
    from ucbf.world import random_world

    if "seed" in arguments:
        raise TypeError("seed is taken by reset(seed=); pass world_seed= to choose the world")
    return random_world(seed=seed, **arguments)


class WorldEnv(gymnasium.Env[Any, np.int64]):
    """A world, one episode at a time.

    ``reset(options={"state": s, "context": e})`` starts in state s and context e; what is left out is drawn.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - Gymnasium's own way

    def __init__(self, world: World, render_mode: str | None = None) -> None:
        if render_mode is not None:
            one_of("render_mode", render_mode, self.metadata["render_modes"])
        self._many = _Copies(world, 1)
        system = world.system
        self.world = world
        self.render_mode = render_mode
        self.observation_space = _observation_space(system)
        self.action_space = Discrete(system.n_actions)
        self._last = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        states = self._many.first_states(self.np_random, options)
        self._many.begin(np.ones(1, bool), states)
        self._last = f"step 0: {self._many.said(0)}"
        return self._many.names()[0], self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step."""
        if self._many.over[0]:
            raise RuntimeError("the episode is over: call reset() before the next step()")
        t, before = int(self._many.t[0]), self._many.said(0)
        w, reward = self._many.advance(np.array([action]), self.np_random.random(1))
        state = self._many.names()[0]
        self._last = (
            f"step {t}: {before}, action {action}, disturbance {w[0]} -> {self._many.said(0)}, reward {reward[0]:g}"
        )
        info = {**self._info(), "disturbance": w[0] if w.ndim > 1 else int(w[0])}
        return state, float(reward[0]), bool(self._many.over[0]), False, info

    def render(self) -> str | None:
        """One line on the last step."""
        return self._last if self.render_mode == "ansi" else None

    def _info(self) -> dict[str, Any]:
        info = {"h": int(self._many.h[0]), "action_mask": self._many.masks()[0]}
        return info if self.world.system.n_contexts == 1 else {**info, "context": int(self._many.contexts[0])}


class WorldVectorEnv(VectorEnv[NDArray[Any], NDArray[np.int64], NDArray[Any]]):
    """Many independent copies of a world, stepped together in a few array operations.

    Parameters
    ----------
    world
        The world.
    num_envs
        How many copies.
    max_episode_steps
        After how many steps an episode is cut off (``truncated``); not at all if None.

    A copy whose episode ended starts again at its next step (``AutoresetMode.NEXT_STEP``): that step's action is
    ignored, its reward is 0 and ``info["_disturbance"]`` is false for it.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, world: World, num_envs: int = 1, max_episode_steps: int | None = None) -> None:
        self._many = _Copies(world, whole("num_envs", num_envs, 1))
        self._most = None if max_episode_steps is None else whole("max_episode_steps", max_episode_steps, 1)
        system = world.system
        self.world = world
        self.num_envs = num_envs
        self.single_observation_space = _observation_space(system)
        self.single_action_space = Discrete(system.n_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start every copy. ``options={"state": s, "context": e}``: each is one for all copies, or one for each."""
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
        over = self._many.over.copy()
        uniforms = self.np_random.random((2, self.num_envs))
        values = self.world.law.values
        w, reward = np.zeros((self.num_envs, *values.shape[1:]), values.dtype), np.zeros(self.num_envs)
        playing = ~over
        if playing.any():
            w[playing], reward[playing] = self._many.advance(
                np.asarray(actions)[playing], uniforms[0, playing], playing
            )
        if over.any():
            self._many.begin(over, self._many.draw(uniforms[1]))
        terminated = self._many.over.copy()
        truncated = np.zeros(self.num_envs, bool)
        if self._most is not None:
            truncated = (self._many.t >= self._most) & ~terminated
            self._many.over |= truncated
        info = {**self._info(), "disturbance": w, "_disturbance": playing}
        return self._many.names(), reward, terminated, truncated, info

    def _info(self) -> dict[str, Any]:
        parts = {"h": self._many.h, "action_mask": self._many.masks()}
        if self.world.system.n_contexts > 1:
            parts["context"] = self._many.contexts
        return {**parts, **{f"_{name}": np.ones(self.num_envs, bool) for name in parts}}


def _observation_space(system: System) -> Any:
    """Discrete on a line, else a Box."""
    space = system.space
    if space.is_line:
        return Discrete(space.n_states, start=system.state_offset)
    return Box(space.low, space.high, dtype=np.int64 if space.all_whole else np.float64)


class _Copies:
    """States and steps of n copies of a world; both environments are views of it."""

    def __init__(self, world: World, n: int) -> None:
        from ucbf.world import World

        if not isinstance(world, World):
            raise TypeError(f"world is {world!r:.60}; give a ucbf.World: a system and the law of its disturbances")
        if world.system.lag:
            raise ValueError(
                f"this world pays {world.system.lag} steps late (lag), which an environment cannot; use ucbf.simulate"
            )
        space = world.system.space
        self.world, self.space = world, space
        self.begun = False
        # Places: indices of states where all axes are whole, contexts included, else the states [n, d].
        self.s: NDArray[Any] = np.zeros(n, np.int64)
        if not space.all_whole:
            self.s = np.tile(space.low.astype(np.float64), (n, 1))
        self.t = np.zeros(n, np.int64)  # steps taken in this episode
        self.over = np.ones(n, np.bool_)  # until reset

    @property
    def h(self) -> NDArray[np.int64]:
        """[n] the steps about to be taken: H at the end of an episode; without an end, their places in the period."""
        return self.t.copy() if self.world.system.horizon is not None else self.t % self.world.system.n_steps

    @property
    def contexts(self) -> NDArray[np.int64]:
        """[n] the present contexts."""
        if self.world.system.n_contexts == 1:
            return np.zeros(len(self.t), np.int64)
        found: NDArray[np.int64] = self.s // self.space.n_states
        return found

    def names(self) -> NDArray[Any]:
        """[n] or [n, d] the states, as they are named."""
        if not self.space.all_whole:
            return self.s.copy()
        i = self.s % self.space.n_states
        return i + self.world.system.state_offset if self.space.is_line else self.space.points[i]

    def said(self, i: int) -> str:
        """Where copy i is, in words."""
        context = f", context {self.contexts[i]}" if self.world.system.n_contexts > 1 else ""
        return f"state {self.names()[i]}{context}"

    def masks(self) -> NDArray[np.int8]:
        """[n, A] actions allowed now; at the end of an episode those of the first step."""
        system = self.world.system
        h, masks = self.h % system.n_steps, np.empty((len(self.h), system.n_actions), np.int8)
        if self.space.all_whole:
            masks[...] = system.allowed[h, self.s]
            return masks
        for step in np.unique(h):
            at = h == step
            each = np.repeat(self.s[at], system.n_actions, axis=0)
            masks[at] = system.at_any_state.allowed(step, each, np.tile(np.arange(system.n_actions), at.sum())).reshape(
                at.sum(), -1
            )
        return masks

    def draw(self, uniforms: NDArray[np.float64]) -> NDArray[Any]:
        """[n] first places."""
        from ucbf.disturbance import invert

        drawn = invert(self.world.start, uniforms)
        if self.space.all_whole:
            return drawn
        always = self.world.start_state
        return self.space.points[drawn] if always is None else np.tile(always, (len(drawn), 1))

    def first_states(self, rng: np.random.Generator, options: dict[str, Any] | None) -> NDArray[Any]:
        """[n] first places, drawn or as the user asked."""
        drawn = self.draw(rng.random(len(self.s)))
        E, S, options = self.world.system.n_contexts, self.space.n_states, options or {}
        for key in options:
            one_of("option", key, ["state", "context"] if E > 1 else ["state"])
        if "state" in options:
            given = options["state"]
            rows = np.ravel(given) if self.space.is_line else np.atleast_2d(given)
            asked = self._for_each("state", [self.space.place('options["state"]', s) for s in rows], self.s.shape)
            drawn = asked if E == 1 else drawn // S * S + asked
        if "context" in options:
            chosen = [whole('options["context"]', e, 0, E - 1) for e in np.ravel(options["context"])]
            drawn = drawn % S + S * self._for_each("context", chosen, self.s.shape)
        return drawn

    def _for_each(self, what: str, asked: list[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """[n] or [n, d] what the user asked for, for each copy."""
        if len(asked) not in (1, len(self.s)):
            raise ValueError(f'options["{what}"] has {len(asked)} {what}s; give one, or one for each of {len(self.s)}')
        return np.broadcast_to(np.array(asked), shape)

    def begin(self, which: NDArray[np.bool_], states: NDArray[Any]) -> None:
        """Start the copies ``which`` at their places."""
        self.begun = True
        self.s[which] = states[which]
        self.t[which], self.over[which] = 0, False

    def advance(
        self, actions: NDArray[np.int64], uniforms: NDArray[np.float64], which: NDArray[np.bool_] | slice = slice(None)
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Move the copies ``which``; their disturbances and rewards."""
        from ucbf.disturbance import invert

        system, law = self.world.system, self.world.law
        s, h, e = self.s[which], self.h[which], self.contexts[which]
        actions = integers("action", actions)
        outside = actions[(actions < 0) | (actions >= system.n_actions)]
        if len(outside):
            whole("action", outside[0], 0, system.n_actions - 1)
        allowed = self.masks()[which]
        wrong = np.flatnonzero(allowed[np.arange(len(actions)), actions] == 0)
        if len(wrong):
            i = wrong[0]
            raise ValueError(
                f"action {actions[i]} is not allowed in state {self.names()[which][i]} at step {h[i]}; "
                'info["action_mask"] shows those that are'
            )
        w = np.empty((len(h), *law.values.shape[1:]), law.values.dtype)
        after, reward = np.empty_like(s), np.empty(len(h))
        for step, context in np.unique(np.stack([h, e]), axis=1).T:
            at = (h == step) & (e == context)
            drawn = invert(law.row(step, context), uniforms[at])
            w[at] = law.values[drawn]
            after[at], reward[at] = system.advance(int(step), s[at], actions[at], w[at])
            if system.n_contexts > 1:
                after[at] += self.space.n_states * law.next_context[drawn]
        last = h == system.n_steps - 1 if system.horizon is not None else np.zeros(len(h), np.bool_)
        if last.any():
            end = system.terminal[after] if self.space.all_whole else system.at_any_state.terminal(after)
            reward += np.where(last, system.discount * end, 0.0)
        self.s[which], self.t[which], self.over[which] = after, self.t[which] + 1, last
        return w, reward
