"""UCB-f against a reference value: variance reduction."""

from __future__ import annotations

from typing import Any

import numpy as np

from ucbf.agents.averaging import AveragingAgent
from ucbf.bonuses import LARGEST_SCALE, scale_of_variances
from ucbf.checks import real
from ucbf.kernels.sharper import Reference
from ucbf.models import Model
from ucbf.system import System


class UCBfReference(AveragingAgent):
    """UCB-f that averages only what values exceed a reference by, so that its targets vary little.

    With counts P̂ of the disturbances and a reference V^R, which is renewed to V when a tenth more was seen, the target
    is ``r + (V - V^R)(x + w) + Σ_w P̂(w) V^R(x + w)`` and the bonus
    ``c ( sqrt(Var_ref ι/n) + sqrt(H Var_adv ι/n) + Hι/n )``: the variances of V^R over P̂, and of V - V^R as it is
    averaged. Otherwise as :class:`UCBf`, and where the last step is known it is not learned. Between UCB-f and UCBVI-f:
    it learns nearly as fast as the latter, from one pass over the after-states a step. Memory H(S + R) more.

    Parameters
    ----------
    system
        The mechanics and rewards the learner is told.
    c
        Scale of the bonus; 0.05 as published for UCB-f. For the theorem's scale take 1 or more.
    p
        Probability with which the bonus may fail: ι = log(SAH/p).
    clock
        What n counts: "episode" or "update", as of :class:`UCBf`.
    estimator, renewal, eta
        :class:`ucbf.agents.informed.InformedAgent`. While f is wrong by ζ and not repaired, cLζ is added to the bonus.

    Notes
    -----
    The reference of a step is made of values of later steps, which learn nothing from the disturbances of this one. So
    it is independent of the counts it is averaged over, and needs not settle as that of Q-EarlySettled-Advantage does.
    No constant is proved.

    References
    ----------
    Zhang, Zhou, Ji (2020), Almost optimal model-free reinforcement learning via reference-advantage decomposition.
    Li, Shi, Chen, Chi (2021), Breaking the sample complexity barrier to regret-optimal model-free reinforcement
    learning.
    """

    name = "UCB-f-Reference"

    def __init__(
        self,
        system: System,
        *,
        c: float = 0.05,
        p: float = 0.01,
        clock: str = "episode",
        estimator: Model | str | dict[str, Any] | None = None,
        renewal: str | None = None,
        eta: float | None = None,
    ) -> None:
        c, p = real("c", c, 0, LARGEST_SCALE), real("p", p, 0, 1, open_low=True)
        super().__init__(system, estimator=estimator, renewal=renewal, eta=eta, c=c, p=p, clock=clock)
        H, shape = system.n_steps, (system.n_steps, self.told.n_after)
        how = Reference(
            value_ref=np.zeros((H, system.n_states)),
            counts=np.zeros((H * system.n_contexts, self.told.n_residuals)),
            mean_ref=np.zeros(shape),
            variance_ref=np.zeros(shape),
            mean_adv=np.zeros(shape),
            variance_adv=np.zeros(shape),
            due_ref=np.zeros(H, np.int64),
            stale_ref=np.zeros(H, np.int64),
            scale=scale_of_variances(system, self.units, c=c, p=p, repairs=self.model.repairs),
        )
        self.begin(how, how.counts, system.last_step_is_known)
        self.begin_at_best()
