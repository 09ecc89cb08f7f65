"""The contract of an agent, and the base of those whose learning is compiled.

To add an algorithm, subclass :class:`Agent` and give ``name``, ``policy`` and ``update``; everything else
(acting, validation, simulation, saving) is inherited. ``state`` lists the arrays that learning changes.
"""

from __future__ import annotations

import os
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import whole
from ucbf.kernels import loop
from ucbf.kernels.seen import Seen, explain, residual_of
from ucbf.limits import Limits, copy_into, learner_limits
from ucbf.saving import Preset, Saved, write
from ucbf.system import System
from ucbf.units import in_units, units_of


class CensoredWarning(UserWarning):
    """A clipped boundary hid a disturbance from an agent that learns the law of the disturbances."""


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


class Agent(ABC):
    """Chooses actions and learns from transitions.

    Parameters
    ----------
    system
        What the agent is told. It is never changed.
    params
        The hyper-parameters, as the subclass's constructor takes them; they are saved with the agent.
    """

    name: ClassVar[str]
    tables: ClassVar[dict[str, str]] = {}  # of ``state``, by their axes H, S, A: what a file must hold to be believed

    def __init__(self, system: System, **params: Any) -> None:
        if not isinstance(system, System):
            raise TypeError(
                f"{type(self).__name__} is built from a ucbf.System, not {system!r:.60}; "
                "pass world.system, or what the learner is told of it"
            )
        self.system = system
        self.params = params
        self.units = units_of(system)
        self.told = in_units(system.mechanics, self.units)
        self._warned: set[type] = set()
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

    @property
    def uses_residual(self) -> bool:
        """Whether ``update`` looks at W; if not, transitions need not agree with f."""
        return True

    @property
    def reads_censored(self) -> bool:
        """Whether ``update`` may be given bounds on W where a clipped boundary hides it."""
        return False

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that learning changes, by name: what is saved."""
        return {}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from what ``state`` said; an error if that was of another agent, or cannot be."""
        copy_into(self.state, state, self.limits)

    def limits(self, stored: dict[str, NDArray[Any]]) -> Limits:
        """What the arrays of ``state`` may hold, by name; what is not named is only checked for nan."""
        return {}

    def renew(self) -> None:  # noqa: B027 - most agents have nothing to prepare
        """Prepare the policy of the next episode. Called when an episode starts or the policy is asked for."""

    # -- use, step by step ------------------------------------------------------------------------

    def act(self, h: int, s: int) -> int:
        """The action for state s at step h."""
        h, s = self._step(h), self._index("state", s)
        with self.lock:
            if h == 0:
                self.renew()
            return int(self._choice(h, s))

    def observe(self, h: int, s: int, a: int, next_s: int, disturbance: int | None = None) -> None:
        """Learn from a transition, whoever chose the action and whenever it was made.

        Parameters
        ----------
        disturbance
            W itself, where it was measured; it must agree with the transition, give or take ζ/2. It is needed only
            where next_s does not determine it: at an edge of a clipped space, where s' says no more than that W was
            at least, or at most, something.
        """
        h, s, s_next = self._step(h), self._index("state", s), self._index("next state", next_s)
        a = whole("action", a, 0, self.system.n_actions - 1)
        if not self.system.allowed[h, s, a]:
            raise ValueError(f"action {a} is not allowed in state {s + self.system.state_offset} at step {h}")
        with self.lock:
            moved = Seen(h, s, a, s_next, 0, 0)
            seen = self._explain(moved, disturbance) if self.uses_residual else moved
            if seen is not None:
                self.update(seen)

    def warm_start(self, disturbances: ArrayLike) -> None:
        """Learn from a history of disturbances [K, H] alone, without states or actions."""
        raise TypeError(
            f"{self.name} does not learn the law of W, so disturbances alone teach it nothing; "
            "feed it transitions with observe(h, s, a, next_s)"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to one file; :func:`ucbf.load` goes on from it bit for bit."""
        write(path, self.saved())

    def saved(self, preset: Preset | None = None) -> Saved:
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
        """Whether a clipped edge hides anything from it where W is not measured; an error if it needs W there."""
        return self.reads_censored

    def check_certifiable(self, episodes: int, p: float = 0.05) -> None:
        """An error if nothing can be certified now, or after so many more episodes."""
        raise TypeError(f"stop_when needs a certificate, and {self.name} gives none; use UCBVI-f or UCB-f")

    def warn_if_contradicted(self) -> None:  # noqa: B027 - most agents are told nothing that could be wrong
        """Warn, once, if what was seen contradicts what the agent was told."""

    # -- checks -----------------------------------------------------------------------------------

    def _choice(self, h: int, s: int) -> int:
        return int(self.policy[h, s])

    def _step(self, h: int) -> int:
        return whole("step h", h, 0, self.system.horizon - 1)

    def _index(self, what: str, s: int) -> int:
        return whole(what, s, self.system.states[0], self.system.states[-1]) - self.system.state_offset

    def _explain(self, seen: Seen, disturbance: int | None) -> Seen | None:
        """What a transition says of W; None for one that nothing is learned from."""
        (h, s, a, s_next), system, told = seen[:4], self.system, self.told
        last, first = len(system.declared_residuals) - 1, system.mechanics.after
        edge = bool(told.hides[s_next])
        lower, upper = edge and s_next == 0, edge and s_next == system.n_states - 1
        j = int(residual_of(told, first, h, s, a, s_next))
        if (j < 0 and not upper) or (j > last and not lower):
            self._meet_outside(
                f"{self._named(h, s, a)} to {s_next + system.state_offset} the residual is {j + system.residuals[0]}, "
                f"outside {system.residuals[0]}..{system.residuals[0] + last} (disturbance_range, widened by ζ/2); "
                "correct f, or declare a wider disturbance_range or a larger model_error"
            )
            return None
        if disturbance is not None:
            measured = int(system.fold(whole("disturbance", disturbance)))
            self._check_agreement(h, s, a, s_next, disturbance)
            return Seen(*explain(told, h, s, a, s_next, measured, False))  # by f as it may have been repaired since
        if edge and not self.reads_censored:
            if system.slack or (lower and j > 0) or (upper and j < last):
                self._meet_censored(h, s, a, s_next)
            nearest = min(max(j, system.slack), last - system.slack)
            return Seen(h, s, a, s_next, nearest, nearest)
        return Seen(*explain(told, h, s, a, s_next, 0, True))

    def _meet_outside(self, message: str) -> None:
        """A residual that the declared range excludes."""
        raise ValueError(message)

    def _named(self, h: int, s: int, a: int) -> str:
        return f"from state {s + self.system.state_offset}, action {a} at step {h} (f = {self.system.f[h, s, a]})"

    def _check_agreement(self, h: int, s: int, a: int, s_next: int, disturbance: int) -> None:
        """An error unless f + W, give or take ζ/2, leads to the next state."""
        system, slack = self.system, self.system.slack
        raw = int(system.f[h, s, a]) + disturbance
        around = raw + np.arange(-slack, slack + 1)
        landed = around - system.state_offset if system.boundary == "strict" else system.meet_boundary(around)
        if s_next not in landed:
            raise ValueError(
                f"{self._named(h, s, a)} the disturbance {disturbance} leads to {raw}, not to the next state "
                f"{s_next + system.state_offset} that was given; correct one of them, or declare a larger model_error"
            )

    def _meet_censored(self, h: int, s: int, a: int, s_next: int) -> None:
        """A clipped edge, and W was not measured."""
        o = self.system.state_offset
        bound = s_next + o - int(self.system.f[h, s, a])
        side = "at most" if s_next == 0 else "at least"
        self._warn(
            CensoredWarning,
            f"{self._named(h, s, a)} the next state {s_next + o} is a clipped edge: it says only that W was {side} "
            f"{bound}. {self.name} takes it for the nearest such W, which biases what it learns; pass disturbance=W to "
            "observe where W can be measured",
            stacklevel=5,
        )

    def _warn(self, kind: type[Warning], message: str, stacklevel: int) -> None:
        """Once for each kind of warning."""
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(message, kind, stacklevel=stacklevel + 1)


def _arrays(learner: Any, prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays of a NamedTuple that can change, those of its parts under "part.name"."""
    for name, value in learner._asdict().items():
        if isinstance(value, tuple):
            yield from _arrays(value, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray) and value.flags.writeable:
            yield prefix + name, value


class CompiledAgent(Agent):
    """An agent whose learning is two compiled functions, chosen by the type of its ``learner``."""

    tables: ClassVar[dict[str, str]] = {"policy": "HS"}
    learner: Any  # a NamedTuple of arrays, one of those in ucbf.kernels

    @property
    def policy(self) -> NDArray[np.int64]:
        """[H, S] the actions it would take now."""
        with self.lock:
            self.renew()
            return np.array(self.learner.policy)

    def update(self, seen: Seen) -> None:
        """Learn from one transition between state indices."""
        with self.lock:
            loop.run_update(self.told, self.learner, seen)

    def renew(self) -> None:
        """Prepare the policy of the next episode."""
        with self.lock:
            loop.run_renewal(self.told, self.learner)

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

    def _choice(self, h: int, s: int) -> int:
        return int(self.learner.policy[h, s])

    def _in_user_units(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """[H, S, A] from the learner's units to the user's."""
        return q * self.units.scale

    @property
    def paid_at_the_end(self) -> float:
        """What follows the last action where that is known, in the learner's units."""
        return float(self.told.landing[-1, 0] + self.told.discount * self.told.terminal[0])
