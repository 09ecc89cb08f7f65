"""What agents that are not told f have in common."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.base import CensoredWarning, CompiledAgent
from ucbf.checks import sealed
from ucbf.kernels import boxes
from ucbf.kernels.seen import Seen
from ucbf.kernels.types import Mechanics
from ucbf.system import System


class AsPaid:
    """Teaches a learner what was paid: it is told that landing pays so much wherever it lands. A copy begins anew."""

    def __init__(self) -> None:
        self._told: Mechanics | None = None

    def __reduce__(self) -> tuple[type[AsPaid], tuple[()]]:
        return AsPaid, ()

    def __call__(self, told: Mechanics, learner: Any, seen: Seen, landing: float) -> None:
        """Take a transition in, whose landing paid so much."""
        if told is not self._told:
            self._told, self._landing = told, np.empty((1, told.landing.shape[1]))
            self._shown = told._replace(landing=sealed(self._landing.view()))
            self._step_by_step = boxes.StepByStep()
        self._landing[...] = landing
        self._step_by_step(boxes.update_in, self._shown, learner, *seen)


class BlindAgent(CompiledAgent):
    """An agent with a table of Q that uses f only to work out the landing reward, where nobody says what was paid."""

    learns_what_is_paid = True

    tables: ClassVar[dict[str, str]] = {"policy": "HS", "q": "HSA"}

    def __init__(self, system: System, **params: Any) -> None:
        super().__init__(system, **params)
        if system.horizon is None:
            raise ValueError(f"{self.name} learns from episodes, and this system has no end; use UCBVI-f or UCB-f")
        if not system.space.all_whole:
            raise ValueError(
                f"{self.name} keeps a table of states and actions, and this system has continuous axes; make them "
                "whole (points=None), or use UCBVI-f or UCB-f"
            )
        self._as_paid = AsPaid()

    def update_paid(self, seen: Seen, reward: float) -> None:
        """Learn from a transition and from what was paid for it, in the user's units."""
        told, h = self.told, seen.h
        paid = reward / self.units.scale - told.reward[h % len(told.reward), seen.s, seen.a]
        if h == told.horizon - 1:  # the end was paid too, and the learner adds it by itself
            paid -= told.discount * told.terminal[seen.s_next]
        with self.lock:
            self._as_paid(told, self.learner, seen, float(paid))

    def _meet_outside(self, message: str) -> None:
        super()._meet_outside(f"{message}; or tell what was paid (reward=), and f is not asked")

    def _meet_censored(self, message: str) -> None:
        self._warn(
            CensoredWarning,
            f"{message}. {self.name} takes what the nearest W that explains it pays for what was paid, which biases "
            "what it learns; tell observe what was paid (reward=)",
        )

    @property
    def uses_residual(self) -> bool:
        """Only for landing rewards."""
        return self.system.landing is not None

    @property
    def q(self) -> NDArray[np.float64]:
        """[H, S, A]; -inf where the action does not exist."""
        self.renew()
        return self._in_user_units(self.learner.q)

    def optimistic_table(self, knows_last: bool = False) -> dict[str, Any]:
        """q, value, policy and learned_steps at the start: the cap everywhere, or the known reward of the last step."""
        system, told, cap = self.system, self.told, self.units.cap
        H = system.n_steps
        known = knows_last and system.last_step_is_known
        q = np.where(system.allowed, cap[:, None, None], -np.inf)
        if known:
            q[-1] = told.reward[-1] + self.paid_at_the_end
        return {
            "q": q,
            "value": np.vstack([np.minimum(cap[:, None], q.max(axis=2)), told.terminal]),
            "policy": q.argmax(axis=2),
            "learned_steps": H - 1 if known else H,
        }

    def counts(self) -> dict[str, Any]:
        """The arrays of a learner that counts transitions and plans."""
        H, S, A = self.system.allowed.shape
        return {
            "seen": np.zeros((H, S, S * A)),
            "visits": np.zeros((H, S, A), np.int64),
            "landed": np.zeros((H, S, A)),
            "share": np.zeros((H, S, A)),
            "stale": np.zeros(1, np.int64),
            "ahead": np.zeros(S * A),
        }
