"""What agents that are told f have in common: what they believe of it, whether that holds, when they switch policy."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.agents.base import CensoredWarning, CompiledAgent
from ucbf.certificates import Certificate
from ucbf.checks import integers, one_of, real
from ucbf.estimators import Estimator, OffsetPosterior, make_estimator
from ucbf.estimators.base import Named
from ucbf.kernels import loop, offsets, watch
from ucbf.kernels.seen import Seen, residual_of
from ucbf.limits import copy_into
from ucbf.model_check import ModelCheck, ModelWarning, check_model, recounted, watched
from ucbf.system import System, once

RENEWALS = ("episode", "few")
CHECK_EVERY = 10  # episodes that are observed step by step


class InformedAgent(CompiledAgent):
    """Told f, exactly or about, and learning from residuals s' - f(s, a).

    Parameters
    ----------
    estimator
        How f is repaired while acting, where ``model_error`` says that it is wrong: one of :mod:`ucbf.estimators`, its
        name, or a table of its name and parameters. None: f stays as told.
    renewal
        "episode": the policy follows what is learned. "few": it is renewed only when the number of episodes has grown
        by the factor 1 + eta, at most 1 + log(K)/log(1 + eta) times in K episodes.
    eta
        For "few". None: for UCB-f 1/(2H(H+1)), for which the regret of Q-learning stays of the same order (Bai et al.
        2019); for UCBVI-f 0.05, since a plan is as good as the episodes it was made from, and regret grows by
        sqrt(1 + eta) at most.
    """

    averaged: ClassVar[str]  # the learner's array of what follows each after-state [H, X]
    inner: Any  # the learner without the model of f beside it

    def __init__(
        self,
        system: System,
        *,
        estimator: Named | str | dict[str, Any] | None,
        renewal: str,
        eta: float | None,
        **params: Any,
    ) -> None:
        eta = None if eta is None else real("eta", eta, 0, 1e6, open_low=True)
        self.estimator = None if estimator is None else make_estimator(estimator)
        super().__init__(system, renewal=one_of("renewal", renewal, RENEWALS), eta=eta, estimator=None, **params)
        self._told_first = self.told

    @property
    def state(self) -> dict[str, NDArray[Any]]:
        """Every array that learning changes, the estimator's under "estimator.name"."""
        own = self.estimator.state if isinstance(self.estimator, Estimator) else {}
        return {**super().state, **{f"estimator.{name}": array for name, array in own.items()}}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from what ``state`` said."""
        copy_into(super().state, state, self.limits)
        if isinstance(self.estimator, Estimator):
            own = {n.removeprefix("estimator."): array for n, array in state.items() if n.startswith("estimator.")}
            self.estimator.restore(own)

    # -- the parts of a learner -------------------------------------------------------------------

    def alert(self) -> dict[str, Any]:
        """The fields of a learner that watch the residuals and say when to switch policy."""
        (H, S, A), eta = self.system.f.shape, self.params["eta"]
        return {
            "watch": watch.new_watch(H, S, A),
            "eta": 0.0 if self.params["renewal"] == "episode" else self._usual_eta(H) if eta is None else eta,
            "due": np.zeros(1, np.int64),
        }

    def repairing(self, learner: Any, both: Any, counts: NDArray[np.float64], prior: NDArray[np.float64]) -> Any:
        """``learner``, with a model of f beside it if there is an estimator.

        both: the NamedTuple of the two; counts: [L, R] where the model keeps the law; prior: [L, R] its first counts
        """
        self.inner = learner
        if self.estimator is None:
            return learner
        system, half = self.system, np.int32(self.system.slack)
        if not half:
            raise ValueError(
                f"model_error (ζ) is {system.model_error:g}, so that {self.estimator.name} may not move f at all; "
                "declare how far f may be off: it is moved by ζ/2 at most"
            )
        rows = self._start(self.estimator) if isinstance(self.estimator, Estimator) else 1
        self.params["estimator"] = self.estimator.description()
        after = np.array(np.broadcast_to(self.told.after, (max(rows, len(self.told.after)), *system.f.shape[1:])))
        self.told = self.told._replace(after=after)
        table, no_pairs, no_numbers = np.zeros((0, 0)), np.zeros((0, 0, 0), np.int32), np.zeros(0, np.int64)
        model = offsets.Model(
            first=np.array(after),
            f=after,
            low=after - half,
            high=after + half,
            residuals=np.zeros((system.horizon, self.told.n_residuals)),
            offsets=False, half=system.slack, threshold=0.0, smoothing=0.0, iterations=0, seen=no_pairs, known=table,
            barred=table, likelihood=table, posterior=table, belief=np.zeros(0), counts=table, prior=table, logs=table,
            apart=np.zeros(0), weights=np.zeros(0), own=np.zeros(0), visits=no_numbers, stale=no_numbers, spare=table,
            spare_posterior=table, amount=np.zeros(0), clock=no_numbers,
        )  # fmt: skip
        if isinstance(self.estimator, OffsetPosterior):
            model = self.estimator.model(system, self.told, model, counts, prior)
        return both(learner.policy, learner, model, np.zeros(system.f.shape))

    def _start(self, estimator: Estimator) -> int:
        """Give the system to an estimator in Python; the rows of its estimates."""
        system = self.system
        if estimator.started:
            raise ValueError(f"{estimator!r:.60} already belongs to an agent; give each agent one of its own")
        estimator.started = True
        if system.boundary == "clip" and system.disturbance_range is None:
            raise ValueError(
                f"{estimator.name} needs to know W's range where states are clipped, to leave out the pairs that an "
                "edge may hide W from; pass disturbance_range to System"
            )
        low, high = system.disturbance_range or (0, 0)
        first, last, f = system.states[0], system.states[-1], once(system.f)
        clear = (f - system.slack + low > first) & (f + system.slack + high < last)
        # Leaving out what ended at an edge would select by W; leaving out the pair does not.
        self._shows_all = clear | (system.boundary != "clip")
        return estimator.start(system)

    # -- learning ---------------------------------------------------------------------------------

    def update(self, seen: Seen) -> None:
        """Learn from one transition between state indices."""
        h, s, a, s_next, _, _ = seen
        with self.lock:
            super().update(seen)
            if isinstance(self.estimator, Estimator) and self._shows_all[h % len(self._shows_all), s, a]:
                told = residual_of(self.told, self.learner.model.first, h, s, a, s_next)
                self.estimator.observe(h, s, a, self.system.residuals[0] + int(told))

    def renew(self) -> None:
        """Prepare the policy of the next episode."""
        with self.lock:
            if isinstance(self.estimator, Estimator):
                self._follow(self.estimator)
            super().renew()

    def _follow(self, estimator: Estimator) -> None:
        """Write what the estimator believes into the model."""
        estimate, m, half = estimator.estimate(), self.learner.model, self.system.slack
        if estimate is None:
            return
        for name, array in estimate._asdict().items():
            if not np.isfinite(array).all():
                raise ValueError(f"the {name} that {estimator.name} estimates is not finite; check its features")
        around, error = estimate
        sure = error < 0.25  # near enough for fractions to mean something; in doubt by a state till then
        precise = bool(sure.all())
        exists = self.system.allowed[: len(around)]
        around = around + _constant(around[exists], error[exists], half, precise)
        error = error if precise else error + 0.5
        middle, low, high = (
            np.clip(x, -half, half).astype(np.int32)
            for x in (np.rint(around), np.ceil(around - error), np.floor(around + error))
        )
        f = m.first + middle
        if not self.told.modular:
            f = np.clip(f, 0, self.told.n_after - 1)
        new = f % self.system.n_states if self.told.modular else f
        if not np.array_equal(new, m.f):  # what was held against it was about another f
            self._forget_what_was_watched()
        m.f[...] = new
        m.high[...] = np.maximum(m.first + high, f)
        m.low[...] = np.minimum(m.first + low, np.where(sure, f, m.high - 1))

    def _forget_what_was_watched(self) -> None:
        """Begin anew to compare residuals; those that were left out stay known."""
        seen = self.inner.watch
        for array in (seen.steps, seen.groups, seen.periods, seen.tally[: watch.OUTSIDE]):
            array[...] = 0
        seen.length[...] = 1

    def warm_start(self, disturbances: ArrayLike) -> None:
        """Learn from a history of disturbances [K, H] alone, row by row."""
        w = integers("disturbances", disturbances)
        if w.ndim != 2 or w.shape[1] != self.system.horizon:
            raise ValueError(f"disturbances has shape {w.shape}; give [K, H] with H = {self.system.horizon}")
        j = self.system.fold(w)
        with self.lock:
            loop.replay(self.told, self.learner, j)
            if self.estimator is None:
                watch.watch_history(self.told, self.inner.watch, j)

    @property
    def compiled(self) -> Any:
        """The learner, unless an estimator in Python is asked between steps."""
        return None if isinstance(self.estimator, Estimator) else self.learner

    def hides_at_edges(self) -> bool:
        """Always; one that is misled by it says so, and one that repairs f cannot do without W there."""
        if self.estimator is not None:
            raise ValueError(
                f"censored=True hides W at the edges, and {self.estimator.name} needs it there; leave f as told "
                "(estimator=None), or let W be measured"
            )
        if not self.reads_censored:
            warnings.warn(
                f"{self.name} takes a W that an edge hides for the nearest that explains it, which biases what it "
                "learns; UCBVI-f does not",
                CensoredWarning,
                stacklevel=4,
            )
        return True

    def observe(self, h: int, s: int, a: int, next_s: int, disturbance: int | None = None) -> None:
        """As :meth:`Agent.observe`; now and then the model is checked, and a warning given if it is contradicted."""
        super().observe(h, s, a, next_s, disturbance)
        if h == self.system.horizon - 1 and int(self.inner.watch.steps[-1, watch.SEEN]) % CHECK_EVERY == 0:
            self.warn_if_contradicted()

    def warn_if_contradicted(self) -> None:
        """Warn, once, if the residuals contradict the model."""
        if ModelWarning in self._warned:
            return
        found = self.model_check()
        if found.drifts:
            remedy = "what it learned no longer holds: begin anew, with a new agent and a warm_start from recent data"
        else:
            remedy = "its policy may stay wrong: correct f, or declare a larger model_error"
        if not found.ok:
            self._warn(
                ModelWarning,
                f"{self.name} was told a model that does not explain what it sees. {found}. It goes on, but {remedy}; "
                "see agent.model_check()",
                stacklevel=3,
            )

    def _meet_outside(self, message: str) -> None:
        self.inner.watch.tally[watch.OUTSIDE] += 1
        self._warn(ModelWarning, f"{message}. Nothing is learned from such transitions", stacklevel=5)

    def _meet_censored(self, h: int, s: int, a: int, s_next: int) -> None:
        self.inner.watch.tally[watch.CENSORED] += 1
        super()._meet_censored(h, s, a, s_next)

    def check_certifiable(self, episodes: int, p: float = 0.05) -> None:
        """An error if nothing can be certified now, or after so many more episodes."""
        hidden, outside = (int(self.inner.watch.tally[i]) for i in (watch.CENSORED, watch.OUTSIDE))
        if hidden:
            raise ValueError(
                f"an edge hid {hidden} disturbance(s) that were not measured, so that nothing can be certified; pass "
                "disturbance=W to observe"
            )
        if outside:
            raise ValueError(
                f"{outside} residuals were outside the declared range and left out, so that nothing can be certified; "
                "correct f, or declare a wider disturbance_range"
            )

    # -- what it knows ----------------------------------------------------------------------------

    @property
    def f(self) -> NDArray[np.int64]:
        """[H, S, A] f as it is believed now; modulo S where states wrap."""
        self.renew()
        f = self.told.after.astype(np.int64) + self.system.after_states[0]
        return np.broadcast_to(f, self.system.f.shape)

    @property
    def q(self) -> NDArray[np.float64]:
        """[H, S, A], built from the after-states; -inf where the action does not exist."""
        self.renew()
        told, ahead = self.told, getattr(self.inner, self.averaged)
        q = np.full(self.system.f.shape, -np.inf)
        for h in range(told.horizon):
            reward, exists = told.reward[h % len(told.reward)], self.system.allowed[h]
            follows = ahead[h][told.after[h % len(told.after)]] if self.estimator is None else self.learner.lead[h]
            weight, bonus = self._weight_and_bonus(h)
            q[h][exists] = (weight * reward[exists] + follows[exists]) + bonus
        return self._in_user_units(q)

    def _weight_and_bonus(self, h: int) -> tuple[float, float]:
        return 1.0, 0.0

    def _usual_eta(self, H: int) -> float:
        return 1 / (2 * H * (H + 1))

    @abstractmethod
    def certificate(self, p: float = 0.05, form: str = "bernstein") -> Certificate:
        """How far from optimal the policy can be, for every first state."""

    def model_check(self, p: float = 0.001) -> ModelCheck:
        """Whether the residuals bear out what the agent was told: :mod:`ucbf.model_check`.

        Parameters
        ----------
        p
            The chance, about, with which a right model may be accused, at all times together.
        """
        p, seen = real("p", p, 0, 1, open_low=True), self.inner.watch
        if isinstance(self.estimator, OffsetPosterior) and self.system.boundary != "clip":
            sums = recounted(self.told, self.learner.model, seen)
        else:
            sums = watched(self.system, seen)
        return check_model(self.system, seen, sums, p, settled=self.estimator is not None)


def _constant(correction: NDArray[np.float64], error: NDArray[np.float64], half: int, precise: bool) -> float:
    """What to add to all corrections, harmless if it is whole, so that they are within ±half and, if precise, whole."""
    fraction = -float(np.angle(np.exp(2j * np.pi * correction).mean())) / (2 * np.pi) if precise else 0.0
    middle = (correction.max() + correction.min()) / 2 + fraction
    beyond = max((np.abs(correction + fraction) - error).max() - half, 0.0)  # without a doubt
    return fraction - float(np.sign(middle) * np.ceil(min(abs(middle), beyond) - 1e-6))
