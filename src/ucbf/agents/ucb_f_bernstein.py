"""UCB-f with a bonus that follows the variance of what comes after."""

from __future__ import annotations

from typing import Any

import numpy as np

from ucbf.agents.averaging import AveragingAgent
from ucbf.bonuses import LARGEST_SCALE, scale_of_variances
from ucbf.checks import real
from ucbf.kernels.sharper import Bernstein
from ucbf.models import Model
from ucbf.system import System


class UCBfBernstein(AveragingAgent):
    """UCB-f whose bonus follows the variance of the targets, after-state by after-state.

    With Var(x) the variance of V_{h+1}(x + w) over the disturbances so far,
    ``β_n(x) = c min( sqrt(H (Var(x) + H) ι/n) + H³ι/n, sqrt(H³ι/n) )`` and ``b = (β_n - (1-α) β_{n-1}) / 2α``;
    otherwise as :class:`UCBf`, and where the last step is known it is not learned. The first form is the smaller only
    after about H³ι updates: in a short run this is UCB-f with half of the theorem's bonus.

    Parameters
    ----------
    system
        The mechanics and rewards the learner is told.
    c
        Scale of the bonus; 0.05 as published for UCB-f. For the theorem's scale take 1 or more.
    p
        Probability with which the bonus may fail: ι = log(SAH/p).
    clock
        What n counts: "update" or "episode", as of :class:`UCBf`.
    estimator, renewal, eta
        :class:`ucbf.agents.informed.InformedAgent`. While f is wrong by ζ and not repaired, cLζ is added to b.

    Notes
    -----
    The paper proposes Bernstein's inequality and proves nothing of it. The form is that of UCB-B; its sqrt(H⁷SA) is
    H³ here, since every disturbance teaches all pairs. No constant is proved.

    References
    ----------
    Jin, Allen-Zhu, Bubeck, Jordan (2018), Is Q-learning provably efficient?, Algorithm 2.
    """

    name = "UCB-f-Bernstein"

    def __init__(
        self,
        system: System,
        *,
        c: float = 0.05,
        p: float = 0.01,
        clock: str = "update",
        estimator: Model | str | dict[str, Any] | None = None,
        renewal: str | None = None,
        eta: float | None = None,
    ) -> None:
        c, p = real("c", c, 0, LARGEST_SCALE), real("p", p, 0, 1, open_low=True)
        super().__init__(system, estimator=estimator, renewal=renewal, eta=eta, c=c, p=p, clock=clock)
        shape = (system.n_steps, self.told.n_after)
        scale = scale_of_variances(system, self.units, c=c, p=p, repairs=self.model.repairs)
        how = Bernstein(np.zeros(shape), np.zeros(shape), np.zeros(shape), scale)
        self.begin(how, np.zeros((system.n_steps, self.told.n_residuals)), system.last_step_is_known)
        self.begin_at_best()
