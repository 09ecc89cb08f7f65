"""UBEV: optimistic planning with a bonus from the law of the iterated logarithm, not told f."""

from __future__ import annotations

import numpy as np

from ucbf.agents.blind import BlindAgent
from ucbf.bonuses import LARGEST_SCALE
from ucbf.checks import real
from ucbf.kernels import tabular
from ucbf.system import System


class UBEV(BlindAgent):
    """Plans before every episode with a bonus that holds for all episodes at once, however many there will be.

    ``φ = c sqrt((2 llnp(n) + log(18SAH/p)) / n)``, llnp(x) = log(log(max(x, e)));
    ``Q = r + min(max V_{h+1}, P̂V_{h+1} + (H-h-1) φ)``. Regret O(sqrt(H³SAT) + H²S³A²), and a bound on the number of
    episodes that are worse than any ε (uniform PAC); one plan an episode, S²AH memory. The choice among the planners
    where the number of episodes is not known.

    Parameters
    ----------
    system
        Sizes and rewards; f serves only to work out the landing reward that was paid.
    c
        Scale of the bonus; 1 is the paper's.
    p
        Probability with which the theorem may fail.

    Notes
    -----
    The program that its authors published has log(21SAH/p) for log(18SAH/p), and the range max V - min V for H-h-1.

    References
    ----------
    Dann, Lattimore, Brunskill (2017), Unifying PAC and regret, Algorithm 1.
    """

    name = "UBEV"

    def __init__(self, system: System, *, c: float = 1.0, p: float = 0.01) -> None:
        c, p = real("c", c, 0, LARGEST_SCALE), real("p", p, 0, 1, open_low=True)
        super().__init__(system, c=c, p=p)
        H, S, A = system.allowed.shape
        table = self.optimistic_table()
        del table["learned_steps"]
        # In the paper's units what follows step h spans H-h-1, and one more if a landing reward is part of it.
        span = H - 1.0 - np.arange(H) + (system.landing is not None) if self.units.scale == 1 else np.full(H, float(H))
        self.learner = tabular.UBEVState(
            **table,
            **self.counts(),
            phi=np.zeros((H, S, A)),
            span=span,
            c=c,
            log_term=float(np.log(18 * S * A * H / p)),
        )
        self.learner.stale[0] = 1  # the first plan needs no data
