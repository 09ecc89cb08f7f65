"""What UCB-f and its sharper forms have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.informed import InformedAgent
from ucbf.bonuses import effective_discount, effective_horizon
from ucbf.checks import one_of
from ucbf.kernels import averaged
from ucbf.system import System
from ucbf.units import extreme_returns, following

CLOCKS = ("episode", "update")


class AveragingAgent(InformedAgent):
    """Averages what each disturbance says of every after-state; a bonus keeps that above the optimal value.

    Parameters
    ----------
    clock
        What n counts: "episode" or "update", n = (k-1)H + h + 1. Where there is no end, always the steps of a kind that
        were seen.
    params
        The others, and those of :class:`ucbf.agents.informed.InformedAgent`.
    """

    plans = False
    averaged = "average"

    def __init__(self, system: System, *, clock: str, **params: Any) -> None:
        super().__init__(system, clock=one_of("clock", clock, CLOCKS), **params)
        if self.params["renewal"] == "few" and not system.space.all_whole:
            raise ValueError(
                f"renewal='few' keeps a table of actions, but between the points of continuous axes {self.name} acts "
                "by its averages, which every step changes; use renewal='episode', or UCBVI-f"
            )

    def begin(self, how: Any, counts: NDArray[np.float64], known: bool) -> None:
        """Make the learner.

        Parameters
        ----------
        how
            With which bonus disturbances are averaged in: one of :mod:`ucbf.kernels.averaged` and
            :mod:`ucbf.kernels.sharper`.
        counts
            [L, R] where a model that repairs f keeps the distribution of W.
        known
            Whether the last step is taken for known.
        """
        system = self.system
        H, S, E = system.n_steps, system.n_states, system.n_contexts
        endless, cap = system.horizon is None, self.units.cap
        parts = self.attached(counts, np.zeros(counts.shape))
        self.learner = learner = averaged.UCBfState(
            average=np.zeros((H, self.told.n_after)),
            weight=np.zeros((H, E)),
            bonus=np.repeat(cap[:, None], E, axis=1),
            value=np.vstack([np.tile(cap[:, None], S), self.told.terminal]),
            visits=np.zeros((H, E), np.int64),
            counts=np.zeros((H * E, self.told.n_residuals)),
            policy=system.first_allowed(),
            how=how,
            cap=cap,
            by_update=self.params["clock"] == "update" and not endless,
            learned_steps=H - 1 if known else H,
            span=effective_horizon(system) if endless else float(H),
            discount=effective_discount(system) if endless else system.discount,
            made=np.zeros(1, np.int64),
            **parts,
        )
        if endless:
            learner.value[-1] = learner.value[0]
        if known:
            learner.weight[-1], learner.bonus[-1] = 1, 0
            learner.average[-1] = self.paid_at_the_end
            q = self.told.reward[-1] + following(self.told, learner.average[-1], H - 1)
            learner.value[-2], learner.policy[-1] = np.minimum(cap[-1], q.max(axis=1)), q.argmax(axis=1)

    def begin_at_best(self) -> None:
        """Where there is an end, begin with what the best disturbances would lead to: at least Q*, and no constant."""
        if self.system.horizon is None:
            return
        learner, told = self.learner, self.told
        learner.value[...], learner.average[...] = extreme_returns(np.maximum, self.system, told)
        learner.weight[...], learner.bonus[...] = 1, 0
        for h in range(told.horizon):
            q = told.reward[h % len(told.reward)] + following(told, learner.average[h], h)
            learner.policy[h] = q.argmax(axis=1)

    def counted(self) -> NDArray[np.float64]:
        """[H, R] disturbances seen, from which a certificate can be made."""
        found: NDArray[np.float64] = self.learner.model.residuals if self.model.repairs else self.learner.counts
        return found

    @property
    def _has_news(self) -> bool:
        return self.learner.eta > 0 or self.model.repairs

    def _weights_and_bonuses(self, h: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.learner.weight[h], self.learner.bonus[h]
