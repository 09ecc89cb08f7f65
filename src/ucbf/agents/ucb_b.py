"""UCB-B: optimistic Q-learning with a Bernstein bonus, not told f."""

from __future__ import annotations

import numpy as np

from ucbf.agents.blind import BlindAgent
from ucbf.bonuses import LARGEST_SCALE, log_term
from ucbf.checks import real
from ucbf.kernels import tabular
from ucbf.system import System


class UCBB(BlindAgent):
    """Q-learning like UCB-H, whose bonus follows the variance of what came after the pair.

    With W the variance of the targets so far, ``β_t = c min( sqrt(H/t (W + H) ι) + sqrt(H⁷SA) ι/t, sqrt(H³ι/t) )`` and
    ``b_t = (β_t - (1-α) β_{t-1}) / (2α)``; ``Q <- (1-α) Q + α [ r + V_{h+1}(s') + b_t ]``, ``V = min(cap, max_a Q)``.
    Regret O(sqrt(H³SAT) + sqrt(H⁹S³A³)); one update a step, SAH memory. To be preferred to UCB-H where values vary
    little and there is time: its second term takes over only after about H⁴SA visits.

    Parameters
    ----------
    system
        Sizes and rewards; f serves only to work out the landing reward that was paid.
    c
        Both constants of the bonus.
    p
        Probability with which the theorem may fail.

    Notes
    -----
    The paper's logarithm is ι = log(SAT/p), with T = HK known beforehand; here it is UCB-f's, ι = log(SAH/p). The
    theorem is for "c large enough" and gives no number: c = 1 is not a theorem's constant.

    References
    ----------
    Jin, Allen-Zhu, Bubeck, Jordan (2018), Is Q-learning provably efficient?, Algorithm 2.
    """

    name = "UCB-B"

    def __init__(self, system: System, *, c: float = 1.0, p: float = 0.01) -> None:
        c, p = real("c", c, 0, LARGEST_SCALE), real("p", p, 0, 1, open_low=True)
        super().__init__(system, c=c, p=p)
        shape, table = system.allowed.shape, self.optimistic_table()
        del table["learned_steps"]
        self.learner = tabular.UCBBState(
            **table,
            visits=np.zeros(shape, np.int64),
            total=np.zeros(shape),
            squares=np.zeros(shape),
            beta=np.zeros(shape),
            cap=self.units.cap,
            c=c,
            log_term=log_term(system, p),
        )
