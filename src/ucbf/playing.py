"""An agent or a policy in episodes that really happened, or in any Gymnasium environment."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.agents.base import Agent, CensoredWarning
from ucbf.checks import integers, length_of, numbers, whole
from ucbf.errors import warn
from ucbf.model_check import ModelWarning
from ucbf.run import Progress, Run
from ucbf.seen import Transition, explain, stated_reward
from ucbf.system import System

SAME_REWARD = 1e-5  # rewards that differ by less, as a share, are the same


class Player(Protocol):
    """Who plays: an agent, a :class:`ucbf.Policy`, a :class:`ucbf.Plan`."""

    @property
    def system(self) -> System:
        """What it is told."""

    def act(self, h: int, s: Any, /) -> int:
        """The action for state s at step h; given ``context=`` too, where the system has contexts."""

    def observe(self, h: int, s: Any, a: int, next_s: Any, disturbance: Any = None) -> None:
        """Learn from a transition, or not; given ``context=`` and ``next_context=`` too, where there are any."""


def replay(
    player: Player | Callable[[int], Player],
    disturbances: ArrayLike,
    start: Any = None,
    carry: bool = True,
    censored: bool = False,
    accounts: Callable[[int], System] | None = None,
    progress: Progress | None = None,
    contexts: ArrayLike | None = None,
) -> Run:
    """Run an agent, which learns as it goes, or a fixed policy through episodes that happened, in their order.

    Where the system has no end there is one long series in place of episodes, and the run has an entry for each of its
    T steps: what that step paid.

    Parameters
    ----------
    player
        An agent, a :class:`ucbf.Policy` or a :class:`ucbf.Plan`, or a function of the episode (without an end: of the
        step) that gives one: for prices that change every day.
    disturbances
        [K, H] W of every step; [K, H, d] in a box. Without an end: [T], or [T, d].
    start
        The first state; the one nearest to 0 if None.
    carry
        Whether an episode starts where the one before ended. What is there at its start is then charged at what was
        paid for it, as the terminal reward, at the end of the one before: each is judged by what it added.
    censored
        Whether clipped boundaries hide W from an agent.
    accounts
        A function of the episode (without an end: of the step): the system whose rewards are counted; that of the
        player, if None.
    contexts
        Where the system has contexts: [K, H+1] that of every step, and the one that followed the last. Without an end:
        [T+1].
    """
    choose: Callable[[int], Player] = player if _is_choice(player) else lambda k: player  # type: ignore[assignment,return-value]
    system = _player(choose(0)).system
    w = _read_disturbances(system, disturbances)
    begin = system.space.place("start", system.nearest_to_zero if start is None else start)
    context = _read_contexts(system, contexts, w)
    if system.horizon is None:
        if not carry:
            raise ValueError("carry is False, and the system has no end: every step goes on from the one before")
        return _replay_on(choose, w, begin, context, censored, accounts, progress)
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
            around = None if context is None else context[k, h : h + 2]
            actions[k, h], place, earned = _step(now, system, h, place, w[k, h], around, censored)
            paid += system.discount**h * earned
            visited.append(_named(system, place))
        reward[k] = paid + system.discount**H * _terminal(system, place)
        if progress is not None:
            progress(k + 1, K)
    return Run(reward, states=np.array(visited).reshape(K, H + 1, *np.shape(visited[0])), actions=actions)


def _replay_on(
    choose: Callable[[int], Player],
    w: NDArray[Any],
    place: Any,
    context: NDArray[np.int64] | None,
    censored: bool,
    accounts: Callable[[int], System] | None,
    progress: Progress | None,
) -> Run:
    """The same where there is no end: a series of T steps."""
    T = len(w)
    _player(choose(0)).system.bins.spread(w)
    reward, actions = np.zeros(T), np.empty(T, np.int64)
    visited = [_named(_player(choose(0)).system, place)]
    for t in range(T):
        now = _player(choose(t))
        system = now.system if accounts is None else accounts(t)
        around = None if context is None else context[t : t + 2]
        actions[t], place, reward[t] = _step(now, system, t % system.n_steps, place, w[t], around, censored)
        visited.append(_named(system, place))
        if progress is not None:
            progress(t + 1, T)
    return Run(reward, states=np.array(visited), actions=actions, by_step=True)


def _read_disturbances(system: System, given: ArrayLike) -> NDArray[Any]:
    """[K, H], or [K, H, d] in a box; without an end [T] or [T, d]."""
    w: NDArray[Any] = (integers if system.space.all_whole else numbers)("disturbances", given)
    parts = () if system.space.is_line else (system.raw_space.n_axes,)
    shape = parts if system.horizon is None else (system.n_steps, *parts)
    if w.ndim != 1 + len(shape) or w.shape[1:] != shape or not len(w):
        first, letters = ("T", "") if system.horizon is None else ("K", ", H")
        kind = f"[{first}{letters}{'' if system.space.is_line else ', d'}]"
        sizes = ", ".join([first, *map(str, shape)])
        raise ValueError(
            f"disturbances has shape {w.shape}; give {kind} = [{sizes}]"
            + (": the system has no end, and one series goes on" if system.horizon is None else "")
        )
    return w


def _read_contexts(system: System, given: ArrayLike | None, w: NDArray[Any]) -> NDArray[np.int64] | None:
    """[K, H+1], or without an end [T+1]; None where the system has no contexts."""
    E, parts = system.n_contexts, 0 if system.space.is_line else 1
    if E == 1:
        if given is not None:
            raise TypeError(f"contexts is {given!r:.60}, and the system has none; leave it out")
        return None
    sizes = w.shape[: w.ndim - parts]
    shape, kind = (*sizes[:-1], sizes[-1] + 1), "[T+1]" if system.horizon is None else "[K, H+1]"
    if given is None:
        raise TypeError(f"contexts is not given, and the system has {E}; give {kind}, the context of every step")
    contexts = integers("contexts", given)
    if contexts.shape != shape:
        raise ValueError(
            f"contexts has shape {contexts.shape}; give {kind} = {shape}: that of every step, and the one that followed"
        )
    outside = contexts[(contexts < 0) | (contexts >= E)]
    if len(outside):
        whole("contexts", outside[0], 0, E - 1)
    return contexts


def _step(
    now: Player, system: System, h: int, place: Any, w: Any, around: NDArray[np.int64] | None, censored: bool
) -> tuple[int, Any, float]:
    """Play one step: the action, where it ends, and what it pays. around: [2] the context then, and the next one.

    place: without a context
    """
    s, shown = _named(system, place), None if censored else w
    if around is None:
        a = now.act(h, s)
        landed, earned = _advanced(system, h, place, a, w)
        now.observe(h, s, a, _named(system, landed), disturbance=shown)
        return a, landed, earned
    e, e_next = (int(e) for e in around)
    a = now.act(h, s, context=e)  # type: ignore[call-arg]  # as where there are contexts it must take
    landed, earned = _advanced(system, h, system.place("state", s, e), a, w)
    now.observe(h, s, a, _named(system, landed), disturbance=shown, context=e, next_context=e_next)  # type: ignore[call-arg]
    return a, landed, earned


def _is_choice(player: Any) -> bool:
    return callable(player) and not hasattr(player, "act")


def _player(given: Any) -> Player:
    if not all(hasattr(given, name) for name in ("system", "act", "observe")):
        raise TypeError(f"player is {given!r:.60}; give an agent, or a ucbf.Policy")
    return given  # type: ignore[no-any-return]


def _named(system: System, place: Any) -> Any:
    """A place, without a context, as a state is named."""
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


def train(
    agent: Agent,
    env: Any,
    episodes: int | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    *,
    steps: int | None = None,
) -> Run:
    """Let ``agent`` act and learn in a Gymnasium environment.

    Where states are whole numbers on a line the environment needs Discrete spaces, in a box a Box of observations;
    actions may be Discrete, or a Box of which the system's actions are points.

    ``agent.system`` states the mechanics of ``env``: its states are the observations, its actions the actions. An agent
    that is told f learns for the rewards of that system, not for those that ``env`` pays, which are only added up,
    discounted: state the system's rewards as ``env`` pays them. One that is not told f (UCB-H, ...) learns from what
    ``env`` pays, and f need not be right. An episode ends when the environment ends it, or
    after ``horizon`` steps; steps that it cuts off are not learned. ``info["disturbance"]``, where the environment
    gives it, is used at clipped boundaries, which hide W, and under a boundary that is a function. Where the system has
    contexts, ``info["context"]`` of reset and step says the present one.

    A disturbance that is told and does not lead to the next state (which is then believed), rewards other than those
    that the system states (where an edge hides W: whatever W was), and episodes that the environment ends before their
    last step, are warned of, once each. So is an edge that hid W in most steps, so that the model was not tested.

    Parameters
    ----------
    seed
        That of the environment's first reset; None: whatever it draws. An agent that goes on needs another one: with
        the one that it had the environment may draw the same disturbances again, which it would count twice, and no
        certificate would hold.
    episodes, steps
        How long: episodes, or where the system has no end, steps. The run then has an entry for each step: what it
        paid. Where the environment is cut off (``truncated``), it is reset, and the period begins again.
    """
    if not isinstance(agent, Agent):
        raise TypeError(f"agent is {agent!r:.60}; give an agent, such as ucbf.UCBf(system), and then the environment")
    if not all(hasattr(env, name) for name in ("reset", "step", "observation_space", "action_space")):
        raise TypeError(f"env is {env!r:.60}; give a Gymnasium environment, such as gymnasium.make(...)")
    if hasattr(env, "num_envs"):
        raise TypeError(
            f"env is {env!r:.60}, many environments at once (make_vec), in which nothing is trained; give one of them "
            "(gymnasium.make), or step them all in a loop of your own with agent.act and agent.observe"
        )
    system = agent.system
    unending = system.horizon is None
    K = length_of(episodes, steps, unending, "the agent's system")
    played = _Environment(agent, env, _checked_spaces(system, env))
    collected, hidden = np.zeros(K), agent.hidden_disturbances
    for k in range(K):
        if not unending or k == 0 or played.over:
            played.reset(seed if k == 0 else None)
        if unending:
            collected[k] = played.step()
            if played.terminated:
                raise ValueError(
                    f"the environment ended (terminated) after {played.h} steps, and the agent's system has no end; "
                    "state the system with a horizon, or wrap the environment so that it only truncates"
                )
        else:
            while played.h < system.n_steps and not played.over:
                collected[k] += system.discount**played.h * played.step()
            played.warn_if_ended_early()
        if progress is not None:
            progress(k + 1, K)
    played.warn_if_untested(agent.hidden_disturbances - hidden)
    return Run(collected, by_step=unending)


class _Environment:
    """An agent in an environment: where it is, and what the next step does."""

    def __init__(self, agent: Agent, env: Any, move: Callable[[int], Any]) -> None:
        self.agent, self.env, self.move = agent, env, move
        self.episode, self.h, self.s, self.context = -1, 0, None, None
        self.steps = 0  # of all episodes
        self.terminated = self.over = False
        self._warned: set[str] = set()

    def reset(self, seed: int | None) -> None:
        s, info = self.env.reset(seed=seed)
        self.s, self.context = deepcopy(s), self._context(info, "reset()")  # it may go on in the same array
        self.episode, self.h, self.terminated, self.over = self.episode + 1, 0, False, False

    def step(self) -> float:
        """Act, and learn from what follows; what it pays."""
        agent, system, h = self.agent, self.agent.system, self.h
        before: dict[str, Any] = {} if self.context is None else {"context": self.context}
        a = agent.act(h, self.s, **before)
        s, reward, terminated, truncated, info = self.env.step(self.move(a))
        s, context = deepcopy(s), self._context(info, "step()")
        paid = float(reward)
        if not np.isfinite(paid):
            raise ValueError(f"the environment's reward is {paid} at step {h}, state {self.s}; rewards must be finite")
        here, there = system.place("state", self.s, self.context), system.place("next_state", s, context)
        moved = self._believed(Transition(h % system.n_steps, here, a, there, info.get("disturbance")))
        self._compare(moved, paid, bool(terminated))
        hidden = system.space.boundary is not None or system.hides(s)
        more: dict[str, Any] = {} if context is None else {**before, "next_context": context}
        if agent.learns_what_is_paid:
            more["reward"] = paid
        agent.observe(h, self.s, a, s, disturbance=moved.disturbance if hidden else None, **more)
        self.s, self.context, self.h, self.steps = s, context, h + 1, self.steps + 1
        self.terminated, self.over = bool(terminated), bool(terminated or truncated)
        return paid

    def _believed(self, moved: Transition) -> Transition:
        """What is to be learned from: without a W that contradicts the transition, of which it warns."""
        if moved.disturbance is None or self.agent.learns_what_is_paid:
            return moved._replace(disturbance=None)
        system = self.agent.system
        try:
            explain(system, system.mechanics, moved, self.agent.reads_censored)
        except ValueError as error:
            said = f"info['disturbance'] contradicts the system: {error}. The transition is believed, and W is not"
            self._warn_once("disturbance", f"{self._when()}: {said}")
            return moved._replace(disturbance=None)
        return moved

    def _compare(self, moved: Transition, paid: float, terminated: bool) -> None:
        """What the environment pays with what the system states."""
        system, blind = self.agent.system, self.agent.learns_what_is_paid
        if system.lag or (blind and system.landing is not None):  # it is paid later; or f says it, and is not asked
            return
        stated = stated_reward(system, moved)
        if stated is None:
            return
        low, high = stated
        ends = system.horizon is not None and (terminated or moved.h == system.n_steps - 1)
        at_end = system.discount * _terminal(system, moved.s_next) if ends else 0.0  # paid then, or not at all
        off = min(max(low - one, one - high) for one in (paid, paid - at_end))
        if off <= SAME_REWARD * max(1.0, abs(paid), abs(low), abs(high)):
            return
        least, most = f"{low:g}", f"{high:g}"
        says = least if least == most else f"between {least} and {most}, whatever W the edge hid"
        if blind:
            so = "The agent learns from what is paid, but how long it explores follows from the system's rewards"
        else:
            so = "The agent learns for the system's rewards"
        self._warn_once(
            "reward",
            f"{self._when()}: the environment paid {paid:g} for action {moved.a} in state {self.s}, and the system "
            f"says {says}. {so}: state them as the environment pays them",
        )

    def warn_if_ended_early(self) -> None:
        """Warn, once, if the environment ended an episode before the system does."""
        H = self.agent.system.n_steps
        if self.over and self.h < H:
            how = "terminated" if self.terminated else "truncated"
            self._warn_once(
                "end",
                f"the environment {how} an episode after {self.h} of {H} steps. The agent plans for {H}, and knows of "
                "no earlier end: state a shorter horizon, or a state that is never left and pays nothing",
            )

    def warn_if_untested(self, hidden: int) -> None:
        """Warn if an edge hid W in so many steps that they are most."""
        if 2 * hidden > self.steps:
            warn(
                f"an edge hid W in {hidden} of {self.steps} steps, so that the model was not tested: what was seen is "
                "a selection, which says nothing of whether f holds, and nothing is certified; let the environment "
                "tell W (info['disturbance'])",
                CensoredWarning,
            )

    def _when(self) -> str:
        """Which step it is, in a message."""
        return f"episode {self.episode}, step {self.h}"

    def _warn_once(self, of: str, message: str) -> None:
        if of not in self._warned:
            self._warned.add(of)
            warn(message, ModelWarning)

    def _context(self, info: dict[str, Any], of: str) -> Any:
        """The context that the environment says; None where the system has none."""
        E = self.agent.system.n_contexts
        if E == 1:
            return None
        if "context" not in info:
            raise ValueError(
                f"the info of {of} has no 'context', and the agent's system has {E} contexts; wrap the environment so "
                "that info['context'] is the present one"
            )
        return info["context"]


def _checked_spaces(system: System, env: Any) -> Callable[[int], Any]:
    """What to hand the environment for an action; an error if its spaces are not those of the agent's system."""
    observed, acted = env.observation_space, env.action_space
    if system.space.is_line:
        _check_space("observation_space", observed, system.space.n_states, system.state_offset)
        _check_space("action_space", acted, system.n_actions, 0)
        return lambda a: a
    if getattr(observed, "shape", None) != system.space.low.shape or hasattr(observed, "n"):
        raise ValueError(
            f"the environment observes {observed}, but the system has states of shape {system.space.low.shape}; wrap "
            "the environment (gymnasium.wrappers.TransformObservation) so that it observes such a row of numbers"
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
            "state the system with the environment's sizes, or wrap the environment "
            "(gymnasium.wrappers.TransformAction, TransformObservation)"
        )
