"""What agents that are not told f have in common."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.base import CompiledAgent
from ucbf.system import System


class BlindAgent(CompiledAgent):
    """An agent with a table of Q that uses f only to work out the landing reward that was paid."""

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
