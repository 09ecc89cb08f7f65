"""UCBVI-f: planning with the counted disturbances."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.informed import InformedAgent
from ucbf.certificates import FORMS, Certificate, Evidence, bracket
from ucbf.checks import frozen, one_of, real
from ucbf.disturbance import Disturbance
from ucbf.estimators.base import Named
from ucbf.kernels import counted, repaired, watch
from ucbf.planning import check_law
from ucbf.system import System


class UCBVIf(InformedAgent):
    """Counts the disturbances of every step and plans with them: the one to use wherever the mechanics are known.

    W does not depend on state or action, so that every step is a sample for every pair, and with the right f nothing
    needs to be explored: ``G_h(x) = Σ_w P̂_h(w) V_{h+1}(x + w)``, ``V_h(s) = max_a r + G_h(f(s, a))``. A bonus would be
    the same for all pairs and change no decision; the error of the means serves in the certificate. Regret
    O(H² sqrt(K)), free of S, A and L; a plan takes HS(W + A) time, and SH numbers of memory.

    At a clipped edge where W was not measured it uses what the edge says, that W was at most or at least something: the
    law is then the product-limit estimate (Kaplan, Meier 1958; where both edges hide, the self-consistent one of
    Turnbull 1974). What no state ever shows is believed at the end of W's range. Where far more disturbances
    were hidden than seen, the plan, though not ``law``, doubts what it says of them and puts more at that end, so that
    what was seen once and hidden ever since is looked at again.

    Parameters
    ----------
    system
        The mechanics and rewards the learner is told.
    stationary
        Whether W has the same law at every step; its samples are then pooled. Declare it only where it is so.
    prior, prior_weight
        A law that is believed before anything is seen, and how many episodes that belief is worth.
    estimator, renewal, eta
        :class:`ucbf.agents.informed.InformedAgent`.

    References
    ----------
    The model-based form that Alharbi, Roozbehani, Dahleh (2024) mention and leave open.
    """

    name = "UCBVI-f"
    averaged = "ahead"

    def __init__(
        self,
        system: System,
        *,
        stationary: bool = False,
        prior: Disturbance | None = None,
        prior_weight: float = 1.0,
        estimator: Named | str | dict[str, Any] | None = None,
        renewal: str = "episode",
        eta: float | None = None,
    ) -> None:
        if not isinstance(stationary, bool | np.bool_):
            raise TypeError(f"stationary is {stationary!r:.60}; give True or False")
        weight = real("prior_weight", prior_weight, 0, 1e9)
        super().__init__(
            system,
            estimator=estimator,
            renewal=renewal,
            eta=eta,
            stationary=bool(stationary),
            prior=prior,
            prior_weight=weight,
        )
        H, S, R = system.horizon, system.n_states, self.told.n_residuals
        self.prior = self._prior_counts(prior, weight, 1 if stationary else H)
        guess = np.zeros(R)
        guess[: system.n_possible] = 1 / system.n_possible
        learner = counted.UCBVIfState(
            counts=np.array(self.prior),
            below=np.zeros_like(self.prior),
            above=np.zeros_like(self.prior),
            law=np.tile(guess, (len(self.prior), 1)),
            room=np.zeros((2, R)),
            guess=frozen(guess),
            ahead=np.zeros((H, self.told.n_after)),
            value=np.vstack([np.zeros((H, S)), self.told.terminal]),
            visits=np.zeros(H, np.int64),
            policy=system.allowed.argmax(axis=2),
            raw=np.zeros(len(self.told.next_state)),
            stale=np.ones(1, np.int64),
            **self.alert(),
        )
        watch.believe_prior(self.told, learner.watch, self.prior)
        self.learner = self.repairing(learner, repaired.RepairedUCBVIf, learner.counts, self.prior)

    def _prior_counts(self, prior: Disturbance | None, weight: float, rows: int) -> NDArray[np.float64]:
        """[L, R] what the prior is worth, in disturbances counted."""
        system = self.system
        counts = np.zeros((rows, self.told.n_residuals))
        if prior is None:
            return frozen(counts)
        if not isinstance(prior, Disturbance):
            raise TypeError(f"prior is {prior!r:.60}; give a ucbf.Disturbance")
        check_law(system, prior)
        if rows == 1 and len(prior.pmf) > 1:
            raise ValueError(f"prior has {len(prior.pmf)} steps, but the law is declared stationary; give one row")
        episodes = weight * (system.horizon if rows == 1 else 1)
        for i in np.flatnonzero((prior.pmf > 0).any(axis=0)):
            counts[:, system.fold(prior.values[i])] += episodes * prior.pmf[:, i]
        return frozen(counts)

    def moved_to(self, system: System) -> UCBVIf:
        """An agent that knows of W what this one does, in another system: other prices, other costs, the same W."""
        if not isinstance(system, System):
            raise TypeError(f"system is {system!r:.60}; give a ucbf.System")
        if system.residuals != self.system.residuals or system.horizon != self.system.horizon:
            raise ValueError(
                f"the other system has W in {system.residuals} over {system.horizon} steps, this one in "
                f"{self.system.residuals} over {self.system.horizon}; declare the same disturbance_range and horizon"
            )
        if self.estimator is not None:
            raise ValueError("an agent that repairs f cannot be moved: another system has another f")
        moved = UCBVIf(system, **{name: value for name, value in self.params.items() if name != "estimator"})
        for mine, theirs in zip(
            (moved.inner.counts, moved.inner.below, moved.inner.above, moved.inner.visits),
            (self.inner.counts, self.inner.below, self.inner.above, self.inner.visits),
            strict=True,
        ):
            mine[...] = theirs
        for name, array in self.inner.watch._asdict().items():
            if name != "groups":  # of the states and actions of this system
                getattr(moved.inner.watch, name)[...] = array
        return moved

    def _usual_eta(self, H: int) -> float:
        return 0.05

    @property
    def reads_censored(self) -> bool:
        """Whether it learns from what a boundary says of a W that it hides; not while f is being repaired."""
        return self.estimator is None

    @property
    def law(self) -> Disturbance:
        """The law of W as it is believed now; uniform over what may occur where nothing was seen."""
        self.renew()
        law = np.empty_like(self.inner.law)
        counted.believe(self.told, self.inner._replace(law=law), False)
        return Disturbance(law / law.sum(axis=1, keepdims=True), low=self.system.residuals[0])

    def certificate(self, p: float = 0.05, form: str = "bernstein") -> Certificate:
        """How far from optimal the policy can be, for every first state: :mod:`ucbf.certificates`.

        With an estimator the bound is of what ``model_error`` allows: it holds, but repair does not tighten it.

        Parameters
        ----------
        p
            Probability with which the bound may fail, at all episodes together.
        form
            "bernstein" (tighter once there is data) or "hoeffding". For the smaller of the two ask each for p/2.
        """
        p, form = real("p", p, 0, 1, open_low=True), one_of("form", form, FORMS)
        self.check_certifiable(0, p)
        self.renew()
        counts = self.inner.counts - self.prior if self.estimator is None else self.learner.model.residuals
        evidence = Evidence(np.maximum(counts, 0), self.inner.policy)
        return bracket(self.system, self.units, self._told_first, evidence, p, form)
