"""The contract of an estimator: a way of learning f while acting.

An agent that is given one is told a first guess of f and how far it may be off (``model_error``, ζ). The estimator sees
the residuals of that guess, s' - f(s, a) = correction(s, a) + W, and says what it makes of the correction and how far
off that may be. The agent takes the best after-state within the bound: Theorem 3's bonus, at most L times the bound.

To add one, subclass :class:`Estimator` and give ``name``, ``observe`` and ``estimate``, and ``state`` if it shall be
saved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.coupling import Settled
from ucbf.kernels import models
from ucbf.kernels.seen import Seen
from ucbf.kernels.types import Mechanics
from ucbf.kernels.watch import Watch, forget_all
from ucbf.model_check import Finding, Sums, watched
from ucbf.named import Named
from ucbf.seen import residual_of
from ucbf.system import System
from ucbf.tables import distinct_steps


class Estimate(NamedTuple):
    """What is believed of the correction to f as it was told, in states. Rows: 1 or H."""

    correction: NDArray[np.float64]  # [rows, S, A]
    error: NDArray[np.float64]  # [rows, S, A] how far off it may be


class Model(Named):
    """What an agent that is told f believes of it. Each agent needs one of its own."""

    repairs: ClassVar[bool] = True  # whether f as believed may change
    asked_in_python: ClassVar[bool] = False  # whether it is asked between steps, so that no loop runs compiled

    def attach(
        self, system: System, told: Mechanics, counts: NDArray[np.float64], prior: NDArray[np.float64]
    ) -> tuple[Mechanics, Any]:
        """The mechanics with f as believed, and the arrays of the model, one of :mod:`ucbf.kernels.models`.

        counts: [L, R] where the distribution of W is kept; prior: [L, R] what it was before anything was seen
        """
        raise NotImplementedError

    def notice(self, system: System, told: Mechanics, model: Any, seen: Seen) -> None:
        """Learn from a transition, in Python. model: its arrays."""

    def follow(self, system: System, told: Mechanics, model: Any, watch: Watch) -> None:
        """Write what is believed now into the arrays, before the policy is renewed."""

    def settled(self, told: Mechanics, model: Any) -> Settled | None:
        """What is certain of a wrong f; None if nothing ever is."""
        return None

    def deviations(self, system: System, told: Mechanics, model: Any, watch: Watch) -> list[Sums]:
        """What the residuals say of the model, for each axis of W: :mod:`ucbf.model_check`."""
        return watched(system, watch)

    def findings(self, model: Any, p: float) -> list[Finding]:
        """What else speaks against the model, right ones being accused with a chance of p."""
        return []


def require_repairable(name: str, system: System) -> None:
    """An error where f cannot be moved."""
    if not system.slack:
        raise ValueError(
            f"model_error (ζ) is {system.model_error:g}, so that {name} may not move f at all; "
            "declare how far f may be off: it is moved by ζ/2 at most"
        )


class Estimator(Model, ABC):
    """Learns a correction to f, in Python. Each agent needs one of its own."""

    asked_in_python = True

    started = False  # whether it belongs to an agent

    def start(self, system: System) -> int:
        """Prepare for what the agent is told; the rows of its estimates, 1 or H."""
        return 1

    @abstractmethod
    def observe(self, h: int, s: int, a: int, residual: int) -> None:
        """Learn from one residual s' - f(s, a), f as it was told, between state indices.

        Pairs from which W could lead to a clipped edge, which would hide it, are left out.
        """

    @abstractmethod
    def estimate(self) -> Estimate | None:
        """What is believed now; None if nothing has changed since it was last asked."""

    # -- as a model of an agent -------------------------------------------------------------------

    def attach(
        self, system: System, told: Mechanics, counts: NDArray[np.float64], prior: NDArray[np.float64]
    ) -> tuple[Mechanics, Any]:
        """The mechanics with f as believed, and bounds on it."""
        require_repairable(self.name, system)
        if self.started:
            raise ValueError(f"{self!r:.60} already belongs to an agent; give each agent one of its own")
        self.started = True
        if system.boundary == "clip" and system.disturbance_range is None:
            raise ValueError(
                f"{self.name} needs to know W's range where states are clipped, to leave out the pairs from which W "
                "may be censored; pass disturbance_range to System"
            )
        low, high = system.disturbance_range or (0, 0)
        first, last, f = system.states[0], system.states[-1], distinct_steps(system.f)
        clear = (f - system.slack + low > first) & (f + system.slack + high < last)
        # Leaving out what ended at a boundary would select by W; leaving out the pair does not.
        self._shows_all = clear | (system.boundary != "clip")
        told = with_own_f(told, self.start(system))
        return told, models.Bounded(
            first=np.array(told.after),
            f=told.after,
            low=told.after - np.int32(system.slack),
            high=told.after + np.int32(system.slack),
            residuals=np.zeros((system.n_steps, told.n_residuals)),
            lead=np.zeros(system.f.shape),
        )

    def notice(self, system: System, told: Mechanics, model: Any, seen: Seen) -> None:
        """Show the residual to the estimator, unless the pair may hide W."""
        h, s, a, s_next, _, _ = seen
        if self._shows_all[h % len(self._shows_all), s, a]:
            residual = residual_of(told, model.first, h, s, a, s_next)
            self.observe(h, s, a, system.residuals[0] + int(residual))

    def follow(self, system: System, told: Mechanics, model: Any, watch: Watch) -> None:
        """Write what the estimator believes into the arrays."""
        estimate, m, half = self.estimate(), model, system.slack
        if estimate is None:
            return
        for name, array in estimate._asdict().items():
            if not np.isfinite(array).all():
                raise ValueError(f"the {name} that {self.name} estimates is not finite; check its features")
        around, error = estimate
        sure = error < 0.25  # near enough for fractions to mean something; in doubt by a state till then
        precise = bool(sure.all())
        exists = system.allowed[: len(around)]
        around = around + _constant(around[exists], error[exists], half, precise)
        error = error if precise else error + 0.5
        middle, low, high = (
            np.clip(x, -half, half).astype(np.int32)
            for x in (np.rint(around), np.ceil(around - error), np.floor(around + error))
        )
        f = m.first + middle
        if not told.modular:
            f = np.clip(f, 0, told.n_after - 1)
        new = f % system.n_states if told.modular else f
        if not np.array_equal(new, m.f):  # what was held against it was about another f
            forget_all(watch)
        m.f[...] = new
        m.high[...] = np.maximum(m.first + high, f)
        m.low[...] = np.minimum(m.first + low, np.where(sure, f, m.high - 1))


def with_own_f(told: Mechanics, rows: int) -> Mechanics:
    """The same mechanics with an f that may be written to, of at least so many rows."""
    shape = (max(rows, len(told.after)), *told.after.shape[1:])
    return told._replace(after=np.broadcast_to(told.after, shape).copy())


def require_plain_residuals(name: str, system: System) -> None:
    """An error where residuals are known only modulo S, so that there is no line to fit through them."""
    if system.boundary == "wrap" and system.disturbance_range is None:
        raise ValueError(
            f"{name} needs to know W's range where states wrap: 24 could be -1; pass disturbance_range to System"
        )
    if system.boundary == "wrap" and len(system.declared_residuals) > system.n_states:
        raise ValueError(
            f"{name} cannot tell {len(system.declared_residuals)} residuals apart where {system.n_states} states wrap; "
            "declare a narrower disturbance_range or a smaller model_error"
        )


def _constant(correction: NDArray[np.float64], error: NDArray[np.float64], half: int, precise: bool) -> float:
    """What to add to all corrections, harmless if it is whole, so that they are within ±half and, if precise, whole."""
    fraction = -float(np.angle(np.exp(2j * np.pi * correction).mean())) / (2 * np.pi) if precise else 0.0
    middle = (correction.max() + correction.min()) / 2 + fraction
    beyond = max((np.abs(correction + fraction) - error).max() - half, 0.0)  # without a doubt
    return fraction - float(np.sign(middle) * np.ceil(min(abs(middle), beyond) - 1e-6))
