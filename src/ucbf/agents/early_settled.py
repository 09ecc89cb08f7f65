"""Q-EarlySettled-Advantage: Q-learning with a reference that settles early, not told f."""

from __future__ import annotations

import numpy as np

from ucbf.agents.blind import BlindAgent
from ucbf.bonuses import LARGEST_SCALE, log_term
from ucbf.checks import real
from ucbf.kernels import tabular
from ucbf.system import System


class EarlySettled(BlindAgent):
    """Q-learning whose targets are taken against a reference value, so that they vary less.

    It keeps an upper bound Q^U (as UCB-H), a lower bound Q^L, and a bound Q^R from the advantage V - V^R over a
    reference V^R; Q is the smallest upper bound seen. V^R follows V until upper and lower value are within 1, and then
    settles. Regret O(sqrt(H²SAT) + H⁶SA); one update a step, SAH memory. The best guarantee among the algorithms that
    are not told f and do not plan; its constants make it slow to start.

    Parameters
    ----------
    system
        Sizes and rewards; f serves only to work out the landing reward that was paid.
    c
        The constant of the bonuses.
    p
        Probability with which the theorem may fail.

    Notes
    -----
    The paper's logarithm is ι = log(SAT/p), with T = HK known beforehand; here it is UCB-f's, ι = log(SAH/p). The
    theorem is for "c large enough" and gives no number: c = 1 is not a theorem's constant.

    References
    ----------
    Li, Shi, Chen, Chi (2021), Breaking the sample complexity barrier to regret-optimal model-free reinforcement
    learning, Algorithm 1.
    """

    name = "Q-EarlySettled-Advantage"

    def __init__(self, system: System, *, c: float = 1.0, p: float = 0.01) -> None:
        c, p = real("c", c, 0, LARGEST_SCALE), real("p", p, 0, 1, open_low=True)
        super().__init__(system, c=c, p=p)
        table = self.optimistic_table()
        q, value, floor = table["q"], table["value"], self.units.floor
        lower = np.where(system.allowed, floor[:, None, None], -np.inf)

        def zeros() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
            return np.zeros(system.allowed.shape)

        self.learner = tabular.EarlySettledState(
            q=q,
            upper=q.copy(),
            lower=lower,
            reference=q.copy(),
            value=value,
            value_low=np.vstack([lower.max(axis=2), self.told.terminal]),
            value_ref=value.copy(),
            unsettled=np.ones(system.allowed.shape[:2], np.int64),
            visits=np.zeros(system.allowed.shape, np.int64),
            mean_ref=zeros(),
            square_ref=zeros(),
            mean_adv=zeros(),
            square_adv=zeros(),
            bonus_ref=zeros(),
            policy=table["policy"],
            c=c,
            log_term=log_term(system, p),
        )
