"""UCBVI: optimistic planning that is not told f."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.blind import BlindAgent
from ucbf.bonuses import bonus_of, scale_of
from ucbf.checks import real, whole
from ucbf.kernels import tabular
from ucbf.system import System

BONUSES = ("CH", "experiment", "published")


class UCBVI(BlindAgent):
    """Counts transitions for each step, state and action, and plans with a bonus before every episode.

    ``Q = min(Q before, cap, r + P̂V + b)``, backwards from the last step; pairs never visited keep the cap.
    Regret O(sqrt(H²SAT) + H⁴S²A); one plan an episode (S²AH time), S²AH numbers of memory. Makes more of every
    transition than Q-learning does, where the tables fit.

    Parameters
    ----------
    system
        Sizes and rewards; f serves only to work out the landing reward that was paid.
    c
        Scale of the bonus. None: 0.05, the paper's, for "experiment" and "published"; 1 for "CH".
    p
        Probability with which the theorem may fail.
    bonus
        "CH" (Chernoff-Hoeffding), "experiment" or "published": :mod:`ucbf.bonuses`.
    episodes
        For the bonus "CH": the number of episodes K it shall hold for.

    Notes
    -----
    The paper counts N(s, a) over all steps, for a law that is the same at every step; here every step has counts of its
    own, for laws that differ. Its theorem is of the former.

    References
    ----------
    Azar, Osband, Munos (2017), Minimax regret bounds for reinforcement learning, Algorithms 1-3.
    """

    name = "UCBVI"

    def __init__(
        self,
        system: System,
        *,
        c: float | None = None,
        p: float = 0.01,
        bonus: str = "published",
        episodes: int = 5000,
    ) -> None:
        c, p = scale_of(bonus, BONUSES, c), real("p", p, 0, 1, open_low=True)
        super().__init__(system, c=c, p=p, bonus=bonus, episodes=whole("episodes", episodes, 1))
        self.learner = tabular.UCBVIState(
            **self.optimistic_table(knows_last=bonus == "published"),
            **self.counts(),
            bonus=np.zeros(system.allowed.shape),
            chosen=np.zeros((system.n_steps, system.n_states, system.n_states)),
            plans=np.zeros(1, np.int64),
            known=np.zeros(system.allowed.shape, np.int64),
            width=bonus_of(bonus, system, self.units, c=c, p=p, episodes=episodes).width,
        )

    @property
    def q(self) -> NDArray[np.float64]:
        """[H, S, A]; -inf where the action does not exist. A plan works out the best pairs only; here all are."""
        with self.lock:
            self.renew()
            tabular.work_out_all(self.told, self.learner)
            return self._in_user_units(self.learner.q)
