"""UCBVI-f: planning with what is known of the disturbances."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.fitted import FittedUCBVIf
from ucbf.agents.informed import InformedAgent
from ucbf.disturbance import Disturbance
from ucbf.induction import Large, is_large
from ucbf.kernels import planned, watch
from ucbf.kernels.endless import SETTLED, AtOnce, End, Late, NoEnd
from ucbf.kernels.seen import Seen
from ucbf.large import LargeSystem
from ucbf.laws import Counts, Law, make_law
from ucbf.models import Model
from ucbf.named import of_prefix, with_prefix
from ucbf.planning import Plan, check_law
from ucbf.system import System


class UCBVIf(InformedAgent):
    """Counts the disturbances of every step and plans with them: the one to use wherever the mechanics are known.

    W does not depend on state or action, so that every step is a sample for every pair, and with the right f nothing
    needs to be explored: ``G_h(x) = Σ_w P̂_h(w) V_{h+1}(x + w)``, ``V_h(s) = max_a r + G_h(f(s, a))``. A bonus would be
    the same for all pairs and change no decision; the error of the means serves in the certificate. Regret
    O(H² sqrt(K)), free of S, A and L; a plan takes HS(W + A) time, and SH numbers of memory.

    At a clipped boundary where W was not measured it uses what the boundary says, that W was at most or at least
    something (:class:`ucbf.laws.Counts`). What no state ever shows is believed at the end of W's range. Where far more
    disturbances were hidden than seen, the plan, though not ``law``, doubts what it says of them and puts more at that
    end, so that what was seen once and hidden ever since is looked at again.

    Parameters
    ----------
    system
        The mechanics and rewards the learner is told.
    law
        How the distribution of W is learned: one of :mod:`ucbf.laws`, its name, or a table of its name and parameters.
        None: by counting, with the three parameters that follow.
    stationary
        Whether W has the same distribution at every step; its samples are then pooled. Declare it only where it is so.
    prior, prior_weight
        A distribution that is believed before anything is seen, and how many episodes that belief is worth. None: all
        of a declared range alike, worth what the counts say that it is (:class:`ucbf.laws.Counts`);
        ``prior_weight=0`` leaves the counts bare.
    estimator, renewal, eta
        :class:`ucbf.agents.informed.InformedAgent`.
    values
        For a :class:`ucbf.LargeSystem`: "fitted", or a dictionary of options of the fit. What is made is then a
        :class:`ucbf.agents.fitted.FittedUCBVIf`, and no other parameter is taken.

    References
    ----------
    The model-based form that Alharbi, Roozbehani, Dahleh (2024) mention and leave open.
    """

    name = "UCBVI-f"
    plans = True
    pays_late = True
    averaged = "ahead"

    def __new__(cls, system: Any = None, *, values: Any = None, **params: Any) -> Any:
        """An agent with tables; where values are fitted, or the system is a LargeSystem, one without."""
        if values is None and not isinstance(system, LargeSystem):
            return super().__new__(cls)
        return FittedUCBVIf(system, values="fitted" if values is None else values, **params)

    def __init__(
        self,
        system: System,
        *,
        law: Law | str | dict[str, Any] | None = None,
        stationary: bool = False,
        prior: Disturbance | None = None,
        prior_weight: float = 1.0,
        estimator: Model | str | dict[str, Any] | None = None,
        renewal: str | None = None,
        eta: float | None = None,
    ) -> None:
        if law is None:
            self.knowledge: Law = Counts(stationary=stationary, prior=prior, prior_weight=prior_weight)
            params: dict[str, Any] = dict(self.knowledge.params)
        elif stationary or prior is not None or prior_weight != 1:
            raise ValueError(
                "stationary, prior and prior_weight are of the counting that law=None does; give them to the law itself"
            )
        else:
            self.knowledge = make_law(law)
            params = {"law": self.knowledge.description()}
        super().__init__(system, estimator=estimator, renewal=renewal, eta=eta, **params)
        if prior is not None:
            check_law(system, prior)
        if self.model.repairs and self.knowledge.asked_in_python:
            raise ValueError(
                f"{self.model.name} needs W counted, and {self.knowledge.name} does it in another way; leave one out"
            )
        H, S, E = system.n_steps, system.n_states, system.n_contexts
        counts = self.knowledge.attach(system.bins, H, E, system.hidden_sets)
        first = self.knowledge.prior
        parts = self.attached(counts.counts if self.model.repairs else first, first)
        self.learner = planned.UCBVIfState(
            law=counts,
            cost=self._cost(),
            end=NoEnd(SETTLED) if system.horizon is None else End(self.told.terminal),
            ahead=np.zeros((H, self.told.n_after)),
            value=np.vstack([np.zeros((H, S)), self.told.terminal]),
            visits=np.zeros((H, E), np.int64),
            policy=system.first_allowed(),
            raw=np.zeros(len(self.told.next_state)),
            stale=np.ones(1, np.int64),
            **parts,
        )
        watch.believe_prior(self.told, self.learner.watch, first)

    def _cost(self) -> AtOnce | Late:
        """When landing rewards are paid; where some are late, the mechanics get an array that is filled."""
        told = self.told
        if not told.lag:
            return AtOnce(told.landing)
        landing = np.zeros((told.horizon, told.landing.shape[1]))
        self.told = told._replace(landing=landing)
        return Late(landing, told.landing, np.zeros((2, len(told.late))))

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that learning changes, those of a law in Python under "knowledge.name"."""
        return {**super().state, **with_prefix("knowledge", self.knowledge.state)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from what ``state`` said."""
        super().restore(state)
        self.knowledge.restore(of_prefix("knowledge", state))

    def moved_to(self, system: System) -> UCBVIf:
        """An agent that knows of W what this one does, in another system: other prices, other costs, the same W.

        If the other system was chosen in view of what was seen of W, ask for ``certificate(form="coupled")``: the other
        forms hold for prices that do not depend on it.
        """
        if not isinstance(system, System):
            raise TypeError(f"system is {system!r:.60}; give a ucbf.System")
        if not self.system.same_disturbances(system):
            raise ValueError(
                f"the other system has W in {system.residuals} over {system.n_steps} steps, this one in "
                f"{self.system.residuals} over {self.system.n_steps}; declare the same disturbance_range and horizon"
            )
        if self.model.repairs:
            raise ValueError("an agent that repairs f cannot be moved: another system has another f")
        moved = UCBVIf(system, law=self.knowledge.fresh(), renewal=self.params["renewal"], eta=self.params["eta"])
        known = [(moved.learner.law, self.learner.law), (moved.learner.watch, self.learner.watch)]
        for theirs, ours in known:
            for name, array in ours._asdict().items():
                learned = isinstance(array, np.ndarray) and array.flags.writeable
                if learned and name != "groups":  # which are of the states and actions of this system
                    getattr(theirs, name)[...] = array
        moved.learner.visits[...] = self.learner.visits
        moved.knowledge.restore(self.knowledge.state)
        return moved

    def update_between(self, seen: Seen, share: NDArray[np.float64]) -> None:
        """Learn from one transition between state indices; share: [B], of a W between bins."""
        super().update_between(seen, share)
        self.knowledge.notice(seen, share)

    def _learn_history(self, contexts: NDArray[np.int64], j: NDArray[np.int64], share: NDArray[np.float64]) -> None:
        super()._learn_history(contexts, j, share)
        self.knowledge.notice_all(j, share)

    def renew(self) -> None:
        """Plan with what is known, for the next episode."""
        with self.lock:
            if self.learner.stale[0]:
                self.knowledge.follow()
            if not self._is_large:
                super().renew()
            elif planned.prepare(self.told, self.learner):
                told, now = self.told, self.learner
                Large(told, told.offsets, now.law.law).induction(now.value, now.ahead, now.policy, now.raw)

    @property
    def compiled(self) -> Any:
        """The learner, unless a part of it is asked in Python between steps."""
        return None if self.knowledge.asked_in_python or self._is_large else super().compiled

    @cached_property
    def _is_large(self) -> bool:
        """Whether plans are made step by step, from Python, by several threads."""
        as_told = self.system.horizon is not None and not self.model.repairs
        return as_told and is_large(self.told, self.told.offsets)

    def _usual_eta(self, H: int) -> float:
        return 0.05

    @property
    def reads_censored(self) -> bool:
        """Whether it learns from what a boundary says of a W that it hides; not while f is being repaired."""
        return self.knowledge.reads_censored and not self.model.repairs and self.system.says_of_hidden

    @property
    def law(self) -> Disturbance:
        """The distribution of W as it is believed now; where nothing was seen, all that may occur alike."""
        self.renew()
        return Disturbance.over(self.system.bins, self.knowledge.believed(), self.system.n_contexts)

    @property
    def plan(self) -> Plan:
        """The plan with what is known now, in the user's units."""
        self.renew()
        learner, scale = self.learner, self.units.scale
        return Plan(self.system, learner.value * scale, learner.ahead * scale, np.array(learner.policy))

    def counted(self) -> NDArray[np.float64]:
        """[L, R] disturbances seen, or residuals where f is being repaired, from which a certificate can be made."""
        found: NDArray[np.float64] = self.learner.model.residuals if self.model.repairs else self.knowledge.counted()
        return found
