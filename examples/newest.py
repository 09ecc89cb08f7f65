"""An algorithm of one's own, outside the package: it takes part in studies as "newest:Newest" (study.toml)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import ucbf


class Newest(ucbf.Agent):
    """Plans as if the law of each step were the last few disturbances, each equally likely.

    Parameters
    ----------
    system
        The mechanics it is told.
    patience
        How many disturbances it remembers.
    """

    name = "newest"

    def __init__(self, system: ucbf.System, *, patience: int = 3) -> None:
        super().__init__(system, patience=patience)
        self.memory = np.zeros((system.n_steps, patience), np.int64)  # indices into system.residuals
        self.seen = np.zeros(system.n_steps, np.int64)
        self.plan = np.zeros(system.f.shape[:2], np.int64)
        self.stale = np.ones(1, np.int64)

    @property
    def policy(self) -> NDArray[np.int64]:
        """[H, S]: the best plan for the law that it remembers."""
        self.renew()
        return self.plan.copy()

    def renew(self) -> None:
        """Plan again if there is news."""
        if not self.stale[0]:
            return
        self.stale[0] = 0
        residuals = self.system.residuals
        counts = np.stack([np.bincount(row, minlength=len(residuals)) for row in self.memory])
        law = ucbf.Disturbance(counts / counts.sum(axis=1, keepdims=True), low=residuals[0])
        self.plan[...] = ucbf.Optimal(self.system, law=law).policy

    def update(self, seen: Any) -> None:
        """Remember the disturbance; the oldest is forgotten."""
        self.memory[seen.h, self.seen[seen.h] % self.memory.shape[1]] = seen.low
        self.seen[seen.h] += 1
        self.stale[0] = 1

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """What saving keeps."""
        return {"memory": self.memory, "seen": self.seen, "plan": self.plan, "stale": self.stale}
