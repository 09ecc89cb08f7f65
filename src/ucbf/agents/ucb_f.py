"""UCB-f: the paper's algorithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from ucbf.agents.averaging import AveragingAgent
from ucbf.bonuses import LARGEST_SCALE, bonus_of, scale_of
from ucbf.certificates import FORMS, Certificate, Evidence, bracket, error_bounds, proved, valid_scale
from ucbf.checks import one_of, real
from ucbf.kernels import averaged
from ucbf.models import Model
from ucbf.system import System
from ucbf.units import in_paper_units

BONUSES = ("theorem", "online", "experiment", "published")


class UCBf(AveragingAgent):
    """Optimistic Q-learning that replays each observed disturbance at every state and action.

    After s, a -> s' at step h the residual w = s' - f(s, a) teaches every pair at once:
    ``Q_h(s,a) <- (1-α) Q_h(s,a) + α [ r_h(s,a) + V_{h+1}(f(s,a) + w) + b ]``, ``V_h = min(cap, max_a Q_h)``,
    α = (H+1)/(H+n). Q depends on the pair only through r and f(s, a), so that an average over after-states is
    kept instead of Q: memory S·H instead of S·A·H. Regret O(sqrt(H⁶T) + LζHT), free of S and A; time SA a step.

    Parameters
    ----------
    system
        The mechanics and rewards the learner is told.
    c
        Scale of the bonus. None: 0.05, the paper's, for "experiment" and "published"; 1 for the theorems', which only
        ask for a large enough one: :func:`ucbf.certificates.valid_scale` gives the smallest that is proved.
    p
        Probability with which the theorem may fail.
    bonus
        "theorem", "online", "experiment" or "published": :mod:`ucbf.bonuses`.
    clock
        What n counts: "episode" (the paper's text) or "update" (the authors' code), n = (k-1)H + h + 1. Where there is
        no end, always the steps of a kind that were seen.
    d
        For the bonus "online": an estimate of f improves like sqrt(d/k).
    estimator, renewal, eta
        :class:`ucbf.agents.informed.InformedAgent`. With an estimator the bonus has no part for ζ.

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
        estimator: Model | str | dict[str, Any] | None = None,
        renewal: str | None = None,
        eta: float | None = None,
    ) -> None:
        c, p = scale_of(bonus, BONUSES, c), real("p", p, 0, 1, open_low=True)
        d = real("d", d, 0, LARGEST_SCALE)
        super().__init__(system, estimator=estimator, renewal=renewal, eta=eta, c=c, p=p, bonus=bonus, clock=clock, d=d)
        chosen = bonus_of(bonus, system, self.units, c=c, p=p, d=d if bonus == "online" else 0.0)
        if self.model.repairs:
            chosen = chosen._replace(floor=0.0)
        law = np.zeros((system.n_steps, self.told.n_residuals))  # a model of f keeps it
        self.begin(averaged.Hoeffding(*chosen), law, bonus == "published" and system.last_step_is_known)

    def certificate(self, p: float = 0.05, form: str = "best") -> Certificate:
        """How far from optimal the policy can be, for every first state: :meth:`InformedAgent.certificate`.

        Parameters
        ----------
        p
            Probability with which the bound may fail, at all episodes together.
        form
            As of UCBVI-f, or "theorem": Σ_h P_h^t / sqrt(t) of the paper's proof, the same for all states. It is much
            looser, and only for the bonus "theorem" with the clock "episode", with c large enough for the proof to hold
            at every episode so far.
        """
        if one_of("form", form, (*FORMS, "theorem")) != "theorem":
            return super().certificate(p, form)
        p = real("p", p, 0, 1, open_low=True)
        self.check_certifiable(0, p)
        self.check_proof(0, p)
        self.renew()
        learner, params = self.learner, self.params
        nothing = Evidence(np.zeros((1, self.told.n_residuals)), learner.policy)
        possible = bracket(self.system, self.units, self._told_first, nothing, p, "hoeffding")
        seen = np.array([learner.visits.min(), learner.visits.min() if learner.eta == 0 else learner.made[0]])
        now, acted = error_bounds(self.system, seen, params["c"], params["p"])
        return proved(possible, np.array(learner.value[0]), now, acted)

    def check_proof(self, episodes: int, p: float = 0.05) -> None:
        """An error if the paper's proof does not hold now, or after so many more episodes, with probability 1-p."""
        params, system = self.params, self.system
        if system.horizon is None or system.n_contexts > 1:
            raise ValueError("the paper's proof is of systems with an end and without contexts; use form='best'")
        if self.model.repairs:
            raise ValueError(
                "nothing is proved of UCB-f's bonus while f is being repaired; use form='best', which holds for any f "
                "within model_error"
            )
        if params["bonus"] != "theorem" or params["clock"] != "episode":
            raise ValueError(
                f"the proof is of bonus 'theorem' with clock 'episode', not {params['bonus']!r} with "
                f"{params['clock']!r}; build the agent with those, or use form='best'"
            )
        if not in_paper_units(system):
            raise ValueError("the proof is of rewards between 0 and 1 and nothing at the end; use form='best'")
        t = max(int(self.learner.visits.max()) + episodes, 1)
        least = valid_scale(system, t, params["p"], p)
        if params["c"] < least:
            raise ValueError(
                f"c is {params['c']:g}; for {t} episodes the proof needs {least:.3g} at p = {p:g}: build the agent "
                "with a larger c"
            )
