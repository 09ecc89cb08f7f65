"""A wrong integer offset for each pair, repaired pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import frozen, real, whole
from ucbf.coupling import Settled
from ucbf.kernels import coupled, fitting, offsets, settling
from ucbf.kernels.types import Mechanics
from ucbf.kernels.watch import Watch
from ucbf.model_check import Finding, Sums, beyond_reach, recounted
from ucbf.models.base import Model, require_repairable, with_own_f
from ucbf.system import System
from ucbf.tables import LARGEST_TABLE

MOST_ITERATIONS = 1000


class OffsetPosterior(Model):
    """Knows that every f(s, a) may be off by a whole number of states, up to ζ/2, and finds out by how much.

    Residuals of a pair are its offset plus W, and all pairs of a step share one law of W. A pair's offset has a
    posterior, given the law that the *other* pairs show and how often they have offsets; the law is what all pairs
    show, less their offsets. What offsets have in common is not told apart from W, and harmless.

    Beside that stands the model that f is as told. Both foretell every residual before it is counted, and the share of
    each in what is planned with follows from how well they did; f as told is believed first.

    A pair is valued by the mean over its offsets. Another one is tried in place of the best if what may be gained by
    knowing it, in as many visits of its state as there have been, is at least what it costs to find out. Compiled.

    Parameters
    ----------
    threshold
        Once all other offsets of a pair have less posterior probability, its residuals count in the check of the model.
    smoothing
        Added to every count of the law, so that nothing is impossible for want of data. None: what suits the counts.
    iterations
        Over all pairs, each time that the observations have grown by a twentieth.

    Notes
    -----
    Memory H·S·A·R with R disturbances to tell apart: declare ``disturbance_range`` in a large system.
    """

    name = "OffsetPosterior"

    def __init__(self, *, threshold: float = 0.01, smoothing: float | None = None, iterations: int = 3) -> None:
        super().__init__(
            threshold=real("threshold", threshold, 0, 1, open_low=True),
            smoothing=None if smoothing is None else real("smoothing", smoothing, 0, open_low=True),
            iterations=whole("iterations", iterations, 1, MOST_ITERATIONS),
        )

    def attach(
        self, system: System, told: Mechanics, counts: NDArray[np.float64], prior: NDArray[np.float64]
    ) -> tuple[Mechanics, Any]:
        """The mechanics with f as believed, and the arrays of the model."""
        require_repairable(self.name, system)
        told = with_own_f(told, 1)
        (F, S, A), R, E, half = told.after.shape, told.n_residuals, 4 * system.slack + 1, system.slack
        steps = max(F, len(prior))
        if steps * S * A * R > LARGEST_TABLE:
            raise ValueError(
                f"OffsetPosterior would count {R} residuals for each of {steps * S * A} steps and pairs, more than "
                f"{LARGEST_TABLE}; declare a narrower disturbance_range"
            )
        if F * S * A * E > LARGEST_TABLE:
            raise ValueError(
                f"OffsetPosterior would tell {E} offsets apart for each of {F * S * A} pairs, more than "
                f"{LARGEST_TABLE}; declare a smaller model_error"
            )
        believed = np.full(E, fitting.TRUST_WORTH * (1 - fitting.TRUST) / (E - 1))
        believed[2 * half] = fitting.TRUST_WORTH * fitting.TRUST
        return told, offsets.Offsets(
            first=np.array(told.after),
            f=told.after,
            low=told.after - np.int32(2 * half),
            high=told.after + np.int32(2 * half),
            residuals=np.zeros((system.n_steps, R)),
            lead=np.zeros(system.f.shape),
            gain=np.zeros(system.f.shape),
            half=half,
            threshold=self.params["threshold"],
            smoothing=self.params["smoothing"] or 0.0,
            sweeps=self.params["iterations"],
            seen=np.zeros((steps, S * A, R), np.int32),
            often=np.zeros((steps, S * A), np.int32),
            barred=self._barred(system, told, E),
            posterior=np.tile(believed / believed.sum(), (F * S * A, 1)),
            ends=np.tile([0, E - 1], (F * S * A, 1)),
            believed=believed,
            raw=np.array(prior),
            counts=np.array(prior),
            law=counts,
            scores=np.zeros(2),
            exact=np.full(1, 0.5),
            overlap=np.zeros((len(prior), 2 * E - 1)),
            weights=np.zeros(E),
            bids=np.zeros((3, system.n_steps)),
            visits=np.zeros(F * S * A, np.int64),
            met=np.zeros((system.n_steps, S), np.int64),
            stale=np.zeros(F * S * A, np.int64),
            amount=np.full(2, self.params["smoothing"] or fitting.SMOOTHINGS[-1]),
            clock=np.zeros(2, np.int64),
            window=frozen(self._window(system, R)),
            clear=frozen(self._clear(system, told)),
            anchor=np.zeros(3, np.int64),
            left=np.ones((F * S * A, E), np.bool_),
            certain=np.full(F * S * A, -1),
            due=np.ones(F * S * A, np.int64),
            said=np.zeros(F * S * A),
            pool=np.zeros(prior.shape),
        )

    def settled(self, told: Mechanics, model: Any) -> Settled:
        """The offsets that are left now, and the disturbances of pairs that had one left only."""
        m = model._replace(left=model.left.copy(), certain=model.certain.copy(), anchor=model.anchor.copy())
        settling.look_at_all(told, m)
        first, last = settling.support(told, m)
        R, half, X = told.n_residuals, m.half, told.n_after
        possible = (first <= np.arange(R)) & (np.arange(R) <= last)
        left = m.left | ~m.left.any(axis=1, keepdims=True)  # where none is left, f is not what was told
        pair, d = np.nonzero(left)
        members = m.first.ravel()[pair].astype(np.int64) + d - 2 * half
        pad = 0 if told.modular else half
        members = members % X if told.modular else members + pad
        begins = np.append(0, np.cumsum(left.sum(axis=1)))
        return Settled(m.pool, possible, coupled.Targets(begins, members, pad), settling.CHANCE)

    def deviations(self, system: System, told: Mechanics, model: Any, watch: Watch) -> list[Sums]:
        """By pairs too, from what was counted; not where states are clipped."""
        if system.boundary == "clip":
            return super().deviations(system, told, model, watch)
        return [recounted(told, model, watch)]

    def findings(self, model: Any, p: float) -> list[Finding]:
        """Pairs that are off by more than ζ/2."""
        return beyond_reach(model, p)

    def _window(self, system: System, R: int) -> NDArray[np.int64]:
        """[2] the first and the last disturbance that may occur, among the residuals; all, where no range is told."""
        declared = len(system.declared_residuals)
        if system.disturbance_range is None or declared > R:
            return np.array([0, R - 1])
        return np.array([system.slack, declared - 1 - system.slack])

    def _clear(self, system: System, told: Mechanics) -> NDArray[np.bool_]:
        """[P] whether W can lead from a pair to no state that hides it."""
        first, last = self._window(system, told.n_residuals)
        z = told.after.reshape(-1, 1).astype(np.int64) + np.arange(first - system.slack, last + system.slack + 1)
        hides = told.hides[told.next_state[np.clip(z, 0, len(told.next_state) - 1)]]
        clear: NDArray[np.bool_] = np.logical_not(hides.any(axis=1))
        return clear

    def _barred(self, system: System, told: Mechanics, E: int) -> NDArray[np.float64]:
        """[P, E] under "strict" f is among the states, whatever its offset."""
        barred = np.zeros((told.after.size, E))
        if system.boundary == "strict":
            f = told.after.reshape(-1, 1).astype(np.int64) + system.after_states[0] + np.arange(E) - 2 * system.slack
            barred[(f < system.states[0]) | (f > system.states[-1])] = fitting.NEVER
        return barred
