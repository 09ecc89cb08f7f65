"""UCB-f: the paper's algorithm."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf import kernels
from ucbf.agents.base import CompiledAgent
from ucbf.bonuses import bonus_of, scale_of
from ucbf.checks import integers, one_of, real
from ucbf.system import System

BONUSES = ("theorem", "online", "experiment", "published")
CLOCKS = ("episode", "update")


class UCBf(CompiledAgent):
    """Optimistic Q-learning that replays each observed disturbance at every state and action.

    After s, a -> s' at step h the residual w = s' - f(s, a) teaches every pair at once:
    ``Q_h(s,a) <- (1-α) Q_h(s,a) + α [ r_h(s,a) + V_{h+1}(f(s,a) + w) + b ]``, ``V_h = min(cap, max_a Q_h)``,
    α = (H+1)/(H+n). Q depends on the pair only through r and f(s, a), so that an average over after-states is
    kept instead of Q: memory S·H instead of S·A·H. Regret O(sqrt(H⁶T) + LζHT), free of S and A; time SA a step. The one
    to use wherever the mechanics are known.

    Parameters
    ----------
    system
        The mechanics and rewards the learner is told.
    c
        Scale of the bonus. None: 0.05, the paper's, for "experiment" and "published"; 1 for the theorems'.
    p
        Probability with which the theorem may fail.
    bonus
        "theorem", "online", "experiment" or "published": :mod:`ucbf.bonuses`.
    clock
        What n counts: "episode" (the paper's text) or "update" (the authors' code), n = (k-1)H + h + 1.
    d
        For the bonus "online": an estimate of f improves like sqrt(d/k).

    References
    ----------
    Alharbi, Roozbehani, Dahleh (2024), Algorithm 1.
    """

    name = "UCB-f"

    def __init__(
        self,
        system: System,
        *,
        c: float | None = None,
        p: float = 0.01,
        bonus: str = "published",
        clock: str = "update",
        d: float = 1.0,
    ) -> None:
        c, p = scale_of(bonus, BONUSES, c), real("p", p, 0, 1, open_low=True)
        one_of("clock", clock, CLOCKS)
        super().__init__(system, c=c, p=p, bonus=bonus, clock=clock, d=real("d", d, 0))
        H, S, cap = system.horizon, system.n_states, self.units.cap
        chosen = bonus_of(bonus, system, self.units, c=c, p=p, d=d if bonus == "online" else 0.0)
        known = bonus == "published" and system.last_step_is_known
        self.learner = kernels.UCBfState(
            average=np.zeros((H, self.told.n_after)),
            weight=np.zeros(H),
            bonus=np.array(cap),
            value=np.vstack([np.tile(cap[:, None], S), self.told.terminal]),
            visits=np.zeros(H, np.int64),
            policy=system.allowed.argmax(axis=2),
            width=chosen.width,
            floor=chosen.floor,
            cap=cap,
            by_update=clock == "update",
            learned_steps=H - 1 if known else H,
        )
        if known:
            self.learner.weight[-1], self.learner.bonus[-1] = 1, 0
            self.learner.average[-1] = self.paid_at_the_end
            kernels.ucb_f_greedy(self.told, self.learner, H - 1)

    @property
    def q(self) -> NDArray[np.float64]:
        """[H, S, A], built from the after-states; -inf where the action does not exist."""
        told, learner = self.told, self.learner
        q = np.full(self.system.f.shape, -np.inf)
        for h in range(told.horizon):
            reward, exists = told.reward[h % len(told.reward)], self.system.allowed[h]
            ahead = learner.average[h][told.after[h % len(told.after)]]
            q[h][exists] = (learner.weight[h] * reward[exists] + ahead[exists]) + learner.bonus[h]
        return self._in_user_units(q)

    def warm_start(self, disturbances: ArrayLike) -> None:
        """Learn from a history of disturbances [K, H] alone, row by row."""
        w = integers("disturbances", disturbances)
        if w.ndim != 2 or w.shape[1] != self.system.horizon:
            raise ValueError(f"disturbances has shape {w.shape}; give [K, H] with H = {self.system.horizon}")
        kernels.replay(self.told, self.learner, self.system.fold(w))
