"""UCB-H: optimistic Q-learning that is not told f."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf import kernels
from ucbf.agents.base import CompiledAgent
from ucbf.bonuses import bonus_of, scale_of
from ucbf.checks import real
from ucbf.system import System

BONUSES = ("theorem", "experiment", "published")


class UCBH(CompiledAgent):
    """Optimistic Q-learning, one state and action at a time.

    At the t-th visit of (s, a) at step h: ``Q <- (1-α) Q + α [ r + V_{h+1}(s') + b ]``, α = (H+1)/(H+t),
    ``V = min(cap, max_a Q)``. Regret O(sqrt(H⁴SAT)); one update a step.

    Parameters
    ----------
    system
        Sizes and rewards; f serves only to work out the landing reward that was paid.
    c
        Scale of the bonus. None: 0.05, the paper's, for "experiment" and "published"; 1 for "theorem".
    p
        Probability with which the theorem may fail.
    bonus
        "theorem", "experiment" or "published": :mod:`ucbf.bonuses`.

    References
    ----------
    Jin, Allen-Zhu, Bubeck, Jordan (2018), Is Q-learning provably efficient?, Algorithm 1.
    """

    name = "UCB-H"

    def __init__(self, system: System, *, c: float | None = None, p: float = 0.01, bonus: str = "published") -> None:
        c, p = scale_of(bonus, BONUSES, c), real("p", p, 0, 1, open_low=True)
        super().__init__(system, c=c, p=p, bonus=bonus)
        table = optimistic_table(self, knows_last=bonus == "published")
        self.learner = kernels.UCBHState(
            **table,
            visits=np.zeros(system.f.shape, np.int64),
            width=bonus_of(bonus, system, self.units, c=c, p=p).width,
            cap=self.units.cap,
        )

    @property
    def uses_residual(self) -> bool:
        """Only to work out the landing reward that was paid."""
        return self.system.landing is not None

    @property
    def q(self) -> NDArray[np.float64]:
        """[H, S, A]; -inf where the action does not exist."""
        return self._in_user_units(self.learner.q)


def optimistic_table(agent: CompiledAgent, knows_last: bool) -> dict[str, Any]:
    """q, value, policy and learned_steps before anything is learned: the cap, or the known reward of the last step."""
    system, told, cap = agent.system, agent.told, agent.units.cap
    H = system.horizon
    known = knows_last and system.last_step_is_known
    q = np.where(system.allowed, cap[:, None, None], -np.inf)
    if known:
        q[-1] = told.reward[-1] + agent.paid_at_the_end
    return {
        "q": q,
        "value": np.vstack([np.minimum(cap[:, None], q.max(axis=2)), told.terminal]),
        "policy": q.argmax(axis=2),
        "learned_steps": H - 1 if known else H,
    }
