"""UCBVI-BF: optimistic planning with a Bernstein-Freedman bonus, not told f."""

from __future__ import annotations

import numpy as np

from ucbf.agents.blind import BlindAgent
from ucbf.bonuses import LARGEST_SCALE, horizon_log_term
from ucbf.checks import real, whole
from ucbf.kernels import tabular
from ucbf.system import System


class UCBVIBF(BlindAgent):
    """Plans like UCBVI, with a bonus that follows the variance of the next value.

    ``b = c ( sqrt(8ℓ Var_P̂(V)/N) + 14Hℓ/(3N) + sqrt(8 Σ_y P̂(y) min(100² H³S²Aℓ²/N'_{h+1}(y), H²) / N) )``,
    ℓ = log(5SAT/p), N' the visits of the next state, none after the last step. Regret O(sqrt(H²SAT) + H⁴S²A) where the
    law may differ by step; one plan an episode, S²AH memory. With the paper's constants the third term keeps it at
    the cap for a very long time: practical use wants a small c.

    Parameters
    ----------
    system
        Sizes and rewards; f serves only to work out the landing reward that was paid.
    c
        Scale of the bonus; 1 is the paper's.
    p
        Probability with which the theorem may fail.
    episodes
        The number of episodes K that the bonus shall hold for.

    Notes
    -----
    The paper counts N(s, a) over all steps, for a law that is the same at every step; here every step has counts of its
    own, for laws that differ. Its theorem is of the former.

    References
    ----------
    Azar, Osband, Munos (2017), Minimax regret bounds for reinforcement learning, Algorithm 4.
    """

    name = "UCBVI-BF"

    def __init__(self, system: System, *, c: float = 1.0, p: float = 0.01, episodes: int = 5000) -> None:
        c, p = real("c", c, 0, LARGEST_SCALE), real("p", p, 0, 1, open_low=True)
        super().__init__(system, c=c, p=p, episodes=whole("episodes", episodes, 1))
        H, S, _ = system.allowed.shape
        self.learner = tabular.UCBVIBFState(
            **self.optimistic_table(),
            **self.counts(),
            arrived=np.zeros((H + 1, S)),
            c=c,
            log_term=horizon_log_term(system, p, episodes),
        )
