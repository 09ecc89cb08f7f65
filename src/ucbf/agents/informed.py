"""What agents that are told f have in common: what they believe of it, whether that holds, when they switch policy."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.agents.base import CensoredWarning, CompiledAgent
from ucbf.certificates import FORMS, Certificate, Evidence, certify, checked_start
from ucbf.checks import integers, numbers, one_of, real, whole
from ucbf.credible import gaps_drawn
from ucbf.errors import warn
from ucbf.kernels import loop, watch
from ucbf.kernels.seen import Seen
from ucbf.limits import copy_into
from ucbf.model_check import ACCUSED, ModelCheck, ModelWarning, check_model
from ucbf.models import Exact, Model, make_estimator
from ucbf.named import of_prefix, with_prefix
from ucbf.system import System
from ucbf.units import following

RENEWALS = ("episode", "few")
CHECK_EVERY = 10  # episodes that are observed step by step; from 200 on 20, from 400 on 40, and so on


class InformedAgent(CompiledAgent):
    """Told f, exactly or about, and learning from residuals s' - f(s, a).

    Parameters
    ----------
    estimator
        How f is repaired while acting, where ``model_error`` says that it is wrong: one of :mod:`ucbf.estimators`, its
        name, or a table of its name and parameters. None: f stays as told.
    renewal
        "episode": the policy follows what is learned; where there is no end, every step. "few": it is renewed only when
        the number of episodes (where there is no end, of periods) has grown by the factor 1 + eta, at most
        1 + log(K)/log(1 + eta) times in K. None: "episode", but "few" for a planner where there is no end.
    eta
        For "few". None: for UCB-f 1/(2H(H+1)), for which the regret of Q-learning stays of the same order (Bai et al.
        2019); for UCBVI-f 0.05, since a plan is as good as the episodes it was made from, and regret grows by
        sqrt(1 + eta) at most.
    """

    plans: ClassVar[bool]  # whether a renewal makes a plan
    averaged: ClassVar[str]  # the learner's array of what follows each after-state [H, X]

    def __init__(
        self,
        system: System,
        *,
        estimator: Model | str | dict[str, Any] | None,
        renewal: str | None,
        eta: float | None,
        **params: Any,
    ) -> None:
        if renewal is None:
            renewal = "few" if getattr(system, "horizon", 1) is None and self.plans else "episode"
        eta = None if eta is None else real("eta", eta, 0, 1e6, open_low=True)
        self.model = Exact() if estimator is None else make_estimator(estimator)
        super().__init__(system, renewal=one_of("renewal", renewal, RENEWALS), eta=eta, estimator=None, **params)
        if self.model.repairs and (system.horizon is None or system.n_contexts > 1):
            raise ValueError(
                f"{self.model.name} repairs f in systems with an end and without contexts only; state f exactly "
                "(estimator=None), or give the system a horizon"
            )
        if self.model.repairs and not system.space.is_line:
            raise ValueError(
                f"{self.model.name} moves f by whole states on a line, and this system is a box; state f exactly "
                "(estimator=None), or state the system with n_states"
            )
        self._told_first = self.told

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that learning changes, the estimator's under "estimator.name"."""
        return {**super().state, **with_prefix("estimator", self.model.state)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from what ``state`` said."""
        copy_into(super().state, state, self.limits)
        self.model.restore(of_prefix("estimator", state))

    @property
    def estimator(self) -> Model | None:
        """What repairs f; None if f stays as told."""
        return self.model if self.model.repairs else None

    # -- the parts of a learner -------------------------------------------------------------------

    def attached(self, counts: NDArray[np.float64], prior: NDArray[np.float64]) -> dict[str, Any]:
        """The fields of a learner that hold what is believed of f, watch the residuals and say when to switch policy.

        counts: [L, R] where the distribution of W is kept; prior: [L, R] what it was before anything was seen
        """
        system, eta = self.system, self.params["eta"]
        H, S, A = system.allowed.shape
        self.told, model = self.model.attach(system, self.told, counts, prior)
        if self.model.repairs:
            self.params["estimator"] = self.model.description()
        return {
            "model": model,
            "watch": watch.new_watch(len(self.told.bins), 1 if len(counts) == 1 else H, S, A),
            "eta": 0.0 if self.params["renewal"] == "episode" else self._usual_eta(H) if eta is None else eta,
            "due": np.zeros(1, np.int64),
        }

    # -- learning ---------------------------------------------------------------------------------

    def update_between(self, seen: Seen, share: NDArray[np.float64]) -> None:
        """Learn from one transition between state indices; share: [B], of a W between bins."""
        super().update_between(seen, share)
        self.model.notice(self.system, self.told, self.learner.model, seen)

    def renew(self) -> None:
        """Prepare the policy of the next episode."""
        with self.lock:
            self.model.follow(self.system, self.told, self.learner.model, self.learner.watch)
            super().renew()

    def warm_start(self, disturbances: ArrayLike, contexts: ArrayLike | None = None) -> None:
        """Learn from a history of disturbances [K, H] alone, row by row; in a box [K, H, d].

        Where there is no end, H is the period. contexts: [K, H + 1], with the one that followed, where there are any
        """
        system = self.system
        read, H = integers if system.space.all_whole else numbers, system.n_steps
        w: NDArray[Any] = read("disturbances", disturbances)
        shape = (H,) if system.space.is_line else (H, system.raw_space.n_axes)
        if w.ndim != 1 + len(shape) or w.shape[1:] != shape:
            kind = "[K, H]" if len(shape) == 1 else "[K, H, d]"
            raise ValueError(f"disturbances has shape {w.shape}; give {kind} = [K, {', '.join(map(str, shape))}]")
        j, share = system.bins.spread(w.reshape(-1, *shape[1:]))
        j = np.ascontiguousarray(j[:, 0]).reshape(-1, H)
        share = np.ones((1, 1, 1)) if share.shape[1] == 1 else share.reshape(-1, H, share.shape[1])
        now = self._contexts(contexts, len(j))
        with self.lock:
            self._learn_history(now[:, :-1], j + now[:, 1:] * system.bins.n, share)

    def _contexts(self, given: ArrayLike | None, K: int) -> NDArray[np.int64]:
        """[K, H + 1] the contexts of a history; 0 where there are none."""
        E, H = self.system.n_contexts, self.system.n_steps
        if (given is None) != (E == 1):
            raise TypeError(f"the system has {E} context(s), and contexts was {'not ' if given is None else ''}given")
        if given is None:
            return np.zeros((K, H + 1), np.int64)
        contexts = integers("contexts", given)
        if contexts.shape != (K, H + 1) or contexts.min(initial=0) < 0 or contexts.max(initial=0) >= E:
            raise ValueError(f"contexts has shape {contexts.shape}; give [K, H + 1] = {(K, H + 1)} of 0..{E - 1}")
        return contexts

    def _learn_history(self, contexts: NDArray[np.int64], j: NDArray[np.int64], share: NDArray[np.float64]) -> None:
        loop.replay(self.told, self.learner, contexts, j, share)
        if not self.model.repairs and self.system.n_contexts == 1:
            watch.watch_history(self.told, self.learner.watch, j, share)

    @property
    def compiled(self) -> Any:
        """The learner, unless a part of it is asked in Python between steps."""
        return None if self.model.asked_in_python or not self.system.space.all_whole else self.learner

    def _choice(self, h: int, place: Any) -> int:
        if self.system.space.all_whole:
            return super()._choice(h, place)
        return int(self._q_between(h, place[None])[0].argmax())

    def _q_between(self, h: int, states: NDArray[Any]) -> NDArray[np.float64]:
        """[N, A] at states [N, d] of a box, but for a constant, in the user's units."""
        ahead = getattr(self.learner, self.averaged)[h] * self.units.scale
        return self.system.q_at(h, states, ahead, self._weight_and_bonus(h)[0])

    def hides_at_edges(self) -> bool:
        """Always; one that is misled by it says so, and one that repairs f cannot do without W there."""
        if self.model.repairs:
            raise ValueError(
                f"censored=True hides W at the boundaries, and {self.model.name} needs it there; leave f as told "
                "(estimator=None), or let W be measured"
            )
        if not self.system.says_of_hidden:
            raise ValueError(
                "censored=True needs whole axes, and few enough after-states and disturbances to list which of them a "
                "boundary hides; elsewhere what it says of W is not used: let W be measured"
            )
        if not self.reads_censored:
            warn(
                f"{self.name} takes a W that a boundary hides for the nearest that explains it, which biases what it "
                "learns; UCBVI-f does not",
                CensoredWarning,
            )
        return True

    def _is_checked_after(self, h: int) -> bool:
        if h < self.system.n_steps - 1:
            return False
        seen = int(self.learner.watch.steps[0, -1, watch.SEEN])
        return seen % (CHECK_EVERY << max(0, (seen // (10 * CHECK_EVERY)).bit_length() - 1)) == 0

    @property
    def hidden_disturbances(self) -> int:
        """How many disturbances an edge hid from it."""
        return int(self.learner.watch.unused[watch.CENSORED])

    def warn_if_contradicted(self) -> None:
        """Warn, once, if the residuals contradict the model."""
        if ModelWarning in self._warned:
            return
        found = self.model_check()
        if not found.ok:
            holds = "what it learned no longer holds" if found.drifts else "its policy may stay wrong"
            self._warn(
                ModelWarning,
                f"{self.name} was told a model that does not explain what it sees. {found}. It goes on, but {holds}, "
                f"and nothing is certified: {self._remedy(found)}; see agent.model_check()",
            )

    def _remedy(self, found: ModelCheck) -> str:
        """What to do about a model that the check rejects."""
        if found.drifts:
            remedy = "begin anew, with a new agent and a warm_start from recent data"
        elif self.system.space.is_line:
            remedy = "correct f, give the state what W depends on, or declare a larger model_error"
        else:  # where model_error cannot be declared
            remedy = "correct f, or give the state what W depends on"
        pooled = self.learner.watch.steps.shape[1] < self.system.n_steps
        return remedy + ("; if W differs between steps, drop stationary=True" if pooled else "")

    def _meet_outside(self, message: str) -> None:
        self.learner.watch.unused[watch.OUTSIDE] += 1
        self._warn(ModelWarning, f"{message}. Nothing is learned from such transitions")

    def _meet_censored(self, message: str) -> None:
        self.learner.watch.unused[watch.CENSORED] += 1
        super()._meet_censored(message)

    def check_certifiable(self, episodes: int, p: float = 0.05) -> None:
        """An error if nothing can be certified now, or after so many more episodes."""
        if self.system.lag:
            raise ValueError("nothing is certified of rewards that are paid late (lag); leave the certificate out")
        outside, hidden = (int(n) for n in self.learner.watch.unused)
        if hidden:
            raise ValueError(
                f"a boundary hid {hidden} disturbance(s) that were not measured, so that nothing can be certified; "
                "pass disturbance=W to observe"
            )
        if outside:
            raise ValueError(
                f"{outside} residuals were outside the declared range and left out, so that nothing can be certified; "
                "correct f, or declare a wider disturbance_range"
            )
        found = self.model_check()
        if not found.ok:
            raise ValueError(
                f"what was seen contradicts the model, so that nothing can be certified: {found}; {self._remedy(found)}"
            )

    # -- what it knows ----------------------------------------------------------------------------

    @property
    def f(self) -> NDArray[Any]:
        """[H, S, A] f as it is believed now; modulo S where states wrap. In a box as told, [H, S, A, d]."""
        self.renew()
        if not self.system.space.is_line:
            return self.system.f
        f = self.told.after.astype(np.int64) + self.system.after_states[0]
        return np.broadcast_to(f, self.system.f.shape)

    @property
    def q(self) -> NDArray[np.float64]:
        """[H, S, A], built from the after-states; -inf where the action does not exist."""
        self.renew()
        told, ahead = self.told, getattr(self.learner, self.averaged)
        q = np.full(self.system.allowed.shape, -np.inf)
        for h in range(told.horizon):
            reward, exists = told.reward[h % len(told.reward)], self.system.allowed[h]
            follows = self.learner.model.lead[h] if self.model.repairs else following(told, ahead[h], h)
            weight, bonus = (np.repeat(one, len(reward) // len(one))[:, None] for one in self._weights_and_bonuses(h))
            q[h] = np.where(exists, (weight * np.where(exists, reward, 0) + follows) + bonus, -np.inf)
        return self._in_user_units(q)

    def q_at(self, h: int, states: Any) -> NDArray[np.float64]:
        """[N, A] at states [N, d] of a box, also between points; -inf where an action does not exist."""
        self.renew()
        h = self.system.step(h)
        return self._q_between(h, states) + self._weight_and_bonus(h)[1] * self.units.scale

    def _weight_and_bonus(self, h: int) -> tuple[float, float]:
        """Of a system without contexts."""
        weight, bonus = self._weights_and_bonuses(h)
        return float(weight[0]), float(bonus[0])

    def _weights_and_bonuses(self, h: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[E] twice: what the reward counts for at step h, and what is added."""
        return np.ones(1), np.zeros(1)

    def _usual_eta(self, H: int) -> float:
        return 1 / (2 * H * (H + 1))

    @abstractmethod
    def counted(self) -> NDArray[np.float64]:
        """[L, R] disturbances seen, or residuals where f is being repaired, from which a certificate can be made."""

    def certificate(self, p: float = 0.05, form: str = "best") -> Certificate:
        """How far from optimal the policy can be, for every first state: :mod:`ucbf.certificates`.

        Where there is no end it is of the long-run average, or of the discounted value. Where f may be wrong, the bound
        is of what ``model_error`` allows; with ``OffsetPosterior`` it tightens as offsets become certain.

        Parameters
        ----------
        p
            Probability with which the bound may fail, at all episodes together.
        form
            "best": the smallest of those that follow, p being shared among them. "evalue" and "coupled": both sides
            under the same disturbances (:mod:`ucbf.coupling`). "bernstein" and "hoeffding": two separate bounds, of V*
            and of V^π; without an end and with contexts there is one. Only "coupled" holds for a system that was
            chosen in view of the data.
        """
        p, form = real("p", p, 0, 1, open_low=True), one_of("form", form, FORMS)
        self.check_certifiable(0, p)
        self.renew()
        counts, value = np.maximum(self.counted(), 0), np.array(self.learner.value[0])
        settled = self.model.settled(self.told, self.learner.model)
        evidence = Evidence(counts, self.learner.policy, value, settled)
        return certify(self.system, self.units, self._told_first, evidence, p, form)

    def credible_gap(
        self, p: float = 0.05, *, start: ArrayLike | None = None, draws: int = 200, seed: int = 0
    ) -> float:
        """How far from optimal the policy probably is. A Bayesian statement, not a proof: :mod:`ucbf.credible`.

        In a share 1-p of laws of W drawn from what is believed after what was seen, the gap is at most that. It is far
        smaller than :meth:`certificate`, which holds whatever the law of W is.

        Parameters
        ----------
        p
            The share of laws in which the gap is larger.
        start
            A law of the first state [S]; uniform if None.
        draws, seed
            How many laws, and from which seed.
        """
        system, p = self.system, real("p", p, 0, 1, open_low=True)
        weights = checked_start(start, system.n_states)
        draws, seed = whole("draws", draws, 1), whole("seed", seed, 0)
        self.check_certifiable(0, p)
        if system.slack:
            raise ValueError(
                f"model_error is {system.model_error:g}: where f may be wrong nobody knows what W was; state f exactly"
            )
        gaps = gaps_drawn(system, self.counted(), self.policy, weights, draws, seed)
        return float(np.quantile(gaps, 1 - p, method="higher"))

    def model_check(self, p: float = ACCUSED) -> ModelCheck:
        """Whether the residuals bear out what the agent was told: :mod:`ucbf.model_check`.

        Parameters
        ----------
        p
            The chance, about, with which a right model may be accused, at all times together.
        """
        p, seen = real("p", p, 0, 1, open_low=True), self.learner.watch
        sums = self.model.deviations(self.system, self.told, self.learner.model, seen)
        more = self.model.findings(self.learner.model, p)
        return check_model(self.system, seen, sums, p, settled=self.model.repairs, more=more)
