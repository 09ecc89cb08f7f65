"""simulate_large: an agent that fits values, in a world that no table can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.fitted import FittedUCBVIf
from ucbf.checks import whole
from ucbf.disturbance import Disturbance
from ucbf.run import Progress
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
        return (
            f"{len(self.rewards)} steps; estimates by simulation: {self.worth} a step, told the law {self.told}, gap "
            f"{self.gap}"
        )


def simulate_large(
    agent: FittedUCBVIf,
    law: Disturbance,
    steps: int,
    *,
    seed: int = 0,
    measured: bool = False,
    progress: Progress | None = None,
) -> LargeRun:
    """Let an agent act for so many steps of a system without an end, whose W has this law.

    Parameters
    ----------
    agent
        Made by ``UCBVIf(system, values="fitted")``; it goes on from what it knows already.
    law
        The distribution of W, which the agent is not told.
    steps
        How many. The agent fits values anew now and then, which takes seconds each time.
    seed
        Of the disturbances, and of the estimates.
    measured
        Whether the agent is shown W where a boundary hides it.
    progress
        Called with (steps done, steps + 1) after every step, and once more when the gap has been estimated.
    """
    if not isinstance(agent, FittedUCBVIf):
        raise TypeError(f"agent is {agent!r:.60}; give a ucbf.UCBVIf(system, values='fitted'), or use ucbf.simulate")
    system, steps, seed = agent.system, whole("steps", steps, 1), whole("seed", seed, 0)
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
        if progress is not None:
            progress(t + 1, steps + 1)
    best = policy_iteration(system, law, **agent.options)
    worth, told = (best.measured(law, rule, seed=seed) for rule in (agent.rule, None))
    gap = Estimate(told.mean - worth.mean, float(np.hypot(told.error, worth.error)))
    if progress is not None:
        progress(steps + 1, steps + 1)
    return LargeRun(rewards, worth, told, gap)
