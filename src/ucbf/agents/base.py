"""The contract of an agent, and the base of those whose learning is compiled.

To add an algorithm, subclass :class:`Agent` and give ``name``, ``policy`` and ``update``; everything else
(acting, validation, simulation, saving) is inherited. ``state`` lists the arrays that learning changes.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import LARGEST_RETURN, real, whole
from ucbf.errors import warn
from ucbf.kernels import boxes, loop
from ucbf.kernels.seen import Seen
from ucbf.limits import Limits, learner_limits
from ucbf.named import HasState
from ucbf.saving import Saved, SavedPreset, write
from ucbf.seen import Transition, explain
from ucbf.system import System
from ucbf.units import in_units, units_of


class CensoredWarning(UserWarning):
    """A clipped boundary hid a disturbance from an agent that learns the distribution of the disturbances."""


class Lock:
    """Held while an agent learns or is saved, so that no file has half of an update. A copy gets one of its own."""

    def __init__(self) -> None:
        self._held = threading.RLock()

    def __enter__(self) -> None:
        self._held.acquire()

    def __exit__(self, *error: object) -> None:
        self._held.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


class Agent(HasState, ABC):
    """Chooses actions and learns from transitions.

    Parameters
    ----------
    system
        What the agent is told. It is never changed.
    params
        The hyper-parameters, as the subclass's constructor takes them; they are saved with the agent.
    """

    name: ClassVar[str]
    pays_late: ClassVar[bool] = False  # whether it plans for landing rewards that are paid late
    learns_what_is_paid: ClassVar[bool] = False  # from ``reward`` of :meth:`observe`, and from nothing that f says
    tables: ClassVar[dict[str, str]] = {}  # of ``state``, by their axes H, S, A: what a file must hold to be believed

    def __init__(self, system: System, **params: Any) -> None:
        if not isinstance(system, System):
            raise TypeError(
                f"{type(self).__name__} is built from a ucbf.System, not {system!r:.60}; "
                "pass world.system, or what the learner is told of it"
            )
        if system.lag and not self.pays_late:
            raise ValueError(
                f"the system has rewards that are paid {system.lag} steps late, and {self.name} learns only from what "
                "is paid at once; use UCBVI-f"
            )
        self.system = system
        self.params = params
        self.units = units_of(system)
        self.told = in_units(system.mechanics, self.units)
        self._warned: set[type] = set()
        self.met: set[str] = set()  # which disturbances were drawn for it, by digests of their laws and seeds
        self.lock = Lock()

    def __repr__(self) -> str:
        params = "".join(f", {name}={value!r:.40}" for name, value in self.params.items())
        return f"{type(self).__name__}({self.system!r}{params})"

    # -- what an algorithm supplies ---------------------------------------------------------------

    @property
    @abstractmethod
    def policy(self) -> NDArray[np.int64]:
        """[H, S] the actions it would take now; rows are steps, columns state - state_offset."""

    @abstractmethod
    def update(self, seen: Seen) -> None:
        """Learn from one transition: ``seen.h``, ``s``, ``a``, ``s_next``, state indices, and ``low`` and ``high``.

        low, high: the index of W in ``system.residuals`` is one of these or between them; they are the same but for
        agents that read censored transitions (:attr:`reads_censored`)
        """

    def update_between(self, seen: Seen, share: NDArray[np.float64]) -> None:
        """The same where axes are continuous: W is shared out, [B], among the bins that begin with ``seen.low``."""
        raise TypeError(f"{self.name} learns only where all axes are whole; give it `update_between`")

    def update_paid(self, seen: Seen, reward: float) -> None:
        """Learn from a transition and from what was paid for it, where the agent ``learns_what_is_paid``."""
        raise TypeError(f"{self.name} does not learn from what is paid; give it `update_paid`")

    @property
    def uses_residual(self) -> bool:
        """Whether ``update`` looks at W; if not, transitions need not agree with f."""
        return True

    @property
    def reads_censored(self) -> bool:
        """Whether ``update`` may be given bounds on W where a clipped boundary hides it."""
        return False

    def renew(self) -> None:
        """Prepare the policy of the next episode. Called when an episode starts or the policy is asked for."""

    # -- use, step by step ------------------------------------------------------------------------

    def act(self, h: int, s: Any, context: int | None = None) -> int:
        """The action for state s at step h: a number, or in a box a row [d]. context: where the system has them."""
        h, place = self.system.step(h), self.system.place("state", s, context)
        with self.lock:
            if h == 0 or self.system.horizon is None:
                self.renew()
            return self._choice(h, place)

    def observe(
        self,
        h: int,
        s: Any,
        a: int,
        next_s: Any,
        disturbance: Any = None,
        context: int | None = None,
        next_context: int | None = None,
        reward: float | None = None,
    ) -> None:
        """Learn from a transition, whoever chose the action and whenever it was made.

        Parameters
        ----------
        disturbance
            W itself, where it was measured; it must agree with the transition, give or take ζ/2. It is needed only
            where next_s does not determine it: at a clipped boundary, where s' says no more than that W was at least,
            or at most, something.
        context, next_context
            Where the system has contexts.
        reward
            What was paid, that of the end included. An agent that is not told f learns from it, and f is then not
            asked. Others know what each transition pays, and do not look at it.
        """
        paid = reward is not None and self.learns_what_is_paid
        plain = disturbance is None and context is None and next_context is None and not paid
        if plain and self._takes_in(h, s, a, next_s):
            if self._is_checked_after(int(h)):
                self.warn_if_contradicted()
            return
        system = self.system
        h, a = system.step(h), whole("action", a, 0, system.n_actions - 1)
        begin, end = system.place("state", s, context), system.place("next state", next_s, next_context)
        moved = Transition(h, begin, a, end, disturbance)
        if not system.is_allowed(h, moved.s, a):
            raise ValueError(f"action {a} is not allowed in state {s} at step {h}")
        with self.lock:
            if paid or not self.uses_residual:
                seen = Seen(h, system.space.index(begin), a, system.space.index(end), 0, 0)
                if paid:
                    self.update_paid(seen, real("reward", reward, -LARGEST_RETURN, LARGEST_RETURN))
                else:
                    self.update(seen)
                return
            reading = explain(system, self.told, moved, self.reads_censored)
            if reading.outside:
                self._meet_outside(reading.outside)
            if reading.censored:
                self._meet_censored(reading.censored)
            if reading.seen is not None:
                if system.space.all_whole:
                    self.update(reading.seen)
                else:
                    self.update_between(reading.seen, reading.share)
        if self._is_checked_after(h):
            self.warn_if_contradicted()

    def _takes_in(self, h: Any, s: Any, a: Any, next_s: Any) -> bool:
        """Take a transition in quickly, if nothing about it needs a closer look; whether it was taken in."""
        return False

    def warm_start(self, disturbances: ArrayLike) -> None:
        """Learn from a history of disturbances [K, H] alone, without states or actions."""
        raise TypeError(
            f"{self.name} does not learn the law of W, so disturbances alone teach it nothing; "
            "feed it transitions with observe(h, s, a, next_s)"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to one file; :func:`ucbf.load` goes on from it bit for bit."""
        write(path, self.saved())

    def saved(self, preset: SavedPreset | None = None) -> Saved:
        """What a file says of the agent as it is now: others may go on learning while it is written."""
        with self.lock:
            state = {name: np.array(array) for name, array in self.state.items()}
        return Saved(self.name, self.params, self.system, state, preset)

    # -- what a simulation asks of it -------------------------------------------------------------

    @property
    def compiled(self) -> Any:
        """The arrays with which acting and learning run in one compiled loop; None if it is asked step by step."""
        return None

    def hides_at_edges(self) -> bool:
        """Whether a clipped boundary hides anything from it where W is not measured; an error if it needs W there."""
        return self.reads_censored

    def check_certifiable(self, episodes: int, p: float = 0.05) -> None:
        """An error if nothing can be certified now, or after so many more episodes."""
        raise TypeError(f"stop_when needs a certificate, and {self.name} gives none; use UCBVI-f or UCB-f")

    @property
    def hidden_disturbances(self) -> int:
        """How many disturbances an edge hid from it, if it learns the distribution of W."""
        return 0

    def warn_if_contradicted(self) -> None:
        """Warn, once, if what was seen contradicts what the agent was told."""

    # -- checks -----------------------------------------------------------------------------------

    def _choice(self, h: int, place: Any) -> int:
        """The action at a place (:meth:`ucbf.spaces.Space.place`); between points, that of the nearest."""
        return self.system.nearest_allowed(h, place, self.policy[h])

    def _is_checked_after(self, h: int) -> bool:
        """Whether what the agent was told is checked after an observed step h: now and then, if it can be wrong."""
        return False

    def _meet_outside(self, message: str) -> None:
        """A residual that the declared range excludes."""
        raise ValueError(message)

    def _meet_censored(self, message: str) -> None:
        """A clipped boundary, and W was not measured."""
        self._warn(
            CensoredWarning,
            f"{message}. {self.name} takes W for the nearest that explains it, which biases what it learns; pass "
            "disturbance=W to observe where W can be measured",
        )

    def _warn(self, kind: type[Warning], message: str) -> None:
        """Once for each kind of warning."""
        if kind not in self._warned:
            self._warned.add(kind)
            warn(message, kind)


def _arrays(learner: Any, prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays of a NamedTuple that can change, those of its parts under "part.name"."""
    for name, value in learner._asdict().items():
        if isinstance(value, tuple):
            yield from _arrays(value, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray) and value.flags.writeable:
            yield prefix + name, value


def _is_whole(number: Any) -> bool:
    """Whether it is a whole number, and no truth value."""
    return type(number) is int or isinstance(number, np.integer)


class CompiledAgent(Agent):
    """An agent whose learning is two compiled functions, chosen by the type of its ``learner``."""

    tables: ClassVar[dict[str, str]] = {"policy": "HS"}
    learner: Any  # a NamedTuple of arrays, one of those in ucbf.kernels

    def __init__(self, system: System, **params: Any) -> None:
        super().__init__(system, **params)
        self._step_by_step = boxes.StepByStep()

    @property
    def policy(self) -> NDArray[np.int64]:
        """[H, S] the actions it would take now."""
        with self.lock:
            self.renew()
            return np.array(self.learner.policy)

    def _takes_in(self, h: Any, s: Any, a: Any, next_s: Any) -> bool:
        last = self._last_residual
        plain = type(h) is type(s) is type(a) is type(next_s) is int
        if last is None or not (plain or all(map(_is_whole, (h, s, a, next_s)))):
            return False
        first, told, learner = self.system.state_offset, self.told, self.learner
        with self.lock:
            try:
                return bool(
                    self._step_by_step(boxes.update_if_plain, told, learner, last, h, s - first, a, next_s - first)
                )
            except OverflowError:  # there is no such number
                return False

    @cached_property
    def _last_residual(self) -> int | None:
        """The largest index that W may have, -1 if none is looked at; None where a transition has to be searched."""
        system, told = self.system, self.told
        on_a_line = system.space.is_line and system.n_contexts == 1 and not told.searches
        if not on_a_line or self.compiled is None or told.after is not system.mechanics.after:
            return None
        return len(system.declared_residuals) - 1 if self.uses_residual else -1

    def update(self, seen: Seen) -> None:
        """Learn from one transition between state indices."""
        with self.lock:
            self.update_between(seen, self.told.whole)

    def update_between(self, seen: Seen, share: NDArray[np.float64]) -> None:
        """The same, with the shares [B] of a W between bins; whoever calls it holds the lock."""
        if share is self.told.whole:
            self._step_by_step(boxes.update_in, self.told, self.learner, *seen)
        else:
            loop.run_update(self.told, self.learner, seen, share)

    def renew(self) -> None:
        """Prepare the policy of the next episode."""
        with self.lock:
            if self._has_news:
                self._step_by_step(boxes.renew_in, self.told, self.learner)

    @property
    def _has_news(self) -> bool:
        """Whether there may be something to renew: for learners that plan, anything seen since the last plan."""
        return bool(self.learner.stale[0]) if hasattr(self.learner, "stale") else False

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """Every array of the learner that can change."""
        return dict(_arrays(self.learner))

    def limits(self, stored: dict[str, NDArray[Any]]) -> Limits:
        """What the arrays of the learner may hold."""
        return learner_limits(self.system, self.told, self.learner, stored)

    @property
    def compiled(self) -> Any:
        """The learner."""
        return self.learner

    def _choice(self, h: int, place: Any) -> int:
        return self.system.nearest_allowed(h, place, self.learner.policy[h])

    def _in_user_units(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """[H, S, A] from the learner's units to the user's."""
        return q * self.units.scale

    @property
    def paid_at_the_end(self) -> float:
        """What follows the last action where that is known, in the learner's units."""
        return float(self.told.landing[-1, 0] + self.told.discount * self.told.terminal[0])
