"""simulate_large: an agent that fits values, in a world that no table can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.fitted import FittedUCBVIf
from ucbf.checks import whole
from ucbf.disturbance import Disturbance
from ucbf.values import Estimate, Outcomes, policy_iteration
from ucbf.values.paths import middle


@dataclass(frozen=True)
class LargeRun:
    """What an agent earned, and how far its last rule is from one that was told the law. Both worths are estimates."""

    rewards: NDArray[np.float64]  # [T]
    worth: Estimate  # of the agent's last rule, under the true law
    told: Estimate  # of a rule that was fitted with the true law
    gap: Estimate  # told - worth

    def __str__(self) -> str:
        return f"{len(self.rewards)} steps; an estimate by simulation: {self.worth}, told the law {self.told}"


def simulate_large(
    agent: FittedUCBVIf, law: Disturbance, steps: int, *, seed: int = 0, measured: bool = False
) -> LargeRun:
    """Let an agent act for so many steps of a system without an end, whose W has this law.

    measured: whether the agent is shown W where a boundary hides it
    """
    system, steps = agent.system, whole("steps", steps, 1)
    if system.horizon is not None:
        raise ValueError(f"horizon is {system.horizon}; simulate_large is for systems without an end: horizon=None")
    drawn, s = Outcomes(system, law).draw(np.random.default_rng(seed), steps), middle(system, 1)
    rewards = np.empty(steps)
    for t, w in enumerate(drawn):
        a: Any = np.asarray(agent.act(0, s[0])).reshape(1, -1)
        earned, then = system.step(0, s, a, w[None])
        rewards[t] = earned[0]
        agent.observe(0, s[0], a[0], then[0], disturbance=w if measured else None)
        s = then
    best = policy_iteration(system, law, **agent.options)
    worth, told = (best.measured(law, rule, seed=seed) for rule in (agent.rule, None))
    gap = Estimate(told.mean - worth.mean, float(np.hypot(told.error, worth.error)))
    return LargeRun(rewards, worth, told, gap)
