"""UCB-H: optimistic Q-learning that is not told f."""

from __future__ import annotations

import numpy as np

from ucbf.agents.blind import BlindAgent
from ucbf.bonuses import bonus_of, scale_of
from ucbf.checks import real
from ucbf.kernels import tabular
from ucbf.system import System

BONUSES = ("theorem", "experiment", "published")


class UCBH(BlindAgent):
    """Optimistic Q-learning, one state and action at a time.

    At the t-th visit of (s, a) at step h: ``Q <- (1-α) Q + α [ r + V_{h+1}(s') + b ]``, α = (H+1)/(H+t),
    ``V = min(cap, max_a Q)``. Regret O(sqrt(H⁴SAT)); one update a step, SAH memory. The cheapest baseline, and the
    simplest to reason about, where nothing is known of f.

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

    Notes
    -----
    The paper's logarithm is ι = log(SAT/p), with T = HK known beforehand; here it is UCB-f's, ι = log(SAH/p). The
    theorem is for "c large enough" and gives no number: c = 1 is not a theorem's constant.

    References
    ----------
    Jin, Allen-Zhu, Bubeck, Jordan (2018), Is Q-learning provably efficient?, Algorithm 1.
    """

    name = "UCB-H"

    def __init__(self, system: System, *, c: float | None = None, p: float = 0.01, bonus: str = "published") -> None:
        c, p = scale_of(bonus, BONUSES, c), real("p", p, 0, 1, open_low=True)
        super().__init__(system, c=c, p=p, bonus=bonus)
        self.learner = tabular.UCBHState(
            **self.optimistic_table(knows_last=bonus == "published"),
            visits=np.zeros(system.allowed.shape, np.int64),
            width=bonus_of(bonus, system, self.units, c=c, p=p).width,
            cap=self.units.cap,
        )
