"""A wrong integer offset for each pair, repaired by expectation and maximisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import real, whole
from ucbf.kernels import fitting, offsets
from ucbf.kernels.types import Mechanics
from ucbf.kernels.watch import Watch
from ucbf.model_check import Sums, recounted
from ucbf.models.base import Model, require_repairable, with_own_f
from ucbf.system import System
from ucbf.tables import LARGEST_TABLE

MOST_ITERATIONS = 1000


class OffsetPosterior(Model):
    """Knows that every f(s, a) may be off by a whole number of states, up to ζ/2, and finds out by how much.

    Residuals of a pair are its offset plus W, and all pairs of a step share one law of W. Alternately: the posterior of
    every pair's offset, given the law that the other pairs show; the law, given those posteriors; and how often offsets
    occur at all, where f as told is trusted at first. A constant moved between offsets and law is harmless and is
    chosen so that no offset hits the end of its range. A pair is valued by the mean over its offsets. One that may be
    better than the best is tried if what may be gained in as many visits of its state as there have been is at least
    what it costs to find out. Compiled.

    Parameters
    ----------
    threshold
        Offsets with less posterior probability are dismissed (until the law is fitted again).
    smoothing
        Added to every count of the law, so that nothing is impossible for want of data. None: what suits the counts.
    iterations
        Of expectation and maximisation, each time that the observations have grown by a twentieth.

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
        (F, S, A), R, E, half = told.after.shape, told.n_residuals, 2 * system.slack + 1, system.slack
        steps = max(F, len(prior))
        if steps * S * A * R > LARGEST_TABLE:
            raise ValueError(
                f"OffsetPosterior would count {R} residuals for each of {steps * S * A} steps and pairs, more than "
                f"{LARGEST_TABLE}; declare a narrower disturbance_range"
            )
        if F * S * A * (2 * E - 1) > LARGEST_TABLE:
            raise ValueError(
                f"OffsetPosterior would tell {E} offsets apart for each of {F * S * A} pairs, more than "
                f"{LARGEST_TABLE}; declare a smaller model_error"
            )
        belief = np.full(E, np.log((1 - fitting.TRUST) / max(E - 1, 1)))
        belief[system.slack] = np.log(fitting.TRUST)
        return told, offsets.Offsets(
            first=np.array(told.after),
            f=told.after,
            low=told.after - np.int32(half),
            high=told.after + np.int32(half),
            residuals=np.zeros((system.n_steps, R)),
            lead=np.zeros(system.f.shape),
            half=half,
            threshold=self.params["threshold"],
            smoothing=self.params["smoothing"] or 0.0,
            iterations=self.params["iterations"],
            seen=np.zeros((steps, S * A, R), np.int32),
            known=np.zeros(prior.shape),
            barred=self._barred(system, told, E),
            likelihood=np.zeros((F * S * A, 2 * E - 1)),
            posterior=np.tile(np.exp(belief), (F * S * A, 1)),
            belief=belief,
            counts=counts,
            prior=np.array(prior),
            logs=np.zeros((len(prior), R + 4 * system.slack)),
            apart=np.zeros(4 * system.slack + 1),
            weights=np.zeros(E),
            own=np.zeros(R),
            visits=np.zeros(F * S * A, np.int64),
            stale=np.zeros(F * S * A, np.int64),
            spare=np.zeros(prior.shape),
            spare_posterior=np.zeros((F * S * A, E)),
            amount=np.full(1, self.params["smoothing"] or fitting.SMOOTHINGS[0]),
            clock=np.zeros(3, np.int64),
        )

    def deviations(self, system: System, told: Mechanics, model: Any, watch: Watch) -> list[Sums]:
        """By pairs too, from what was counted; not where states are clipped."""
        if system.boundary == "clip":
            return super().deviations(system, told, model, watch)
        return [recounted(told, model, watch)]

    def _barred(self, system: System, told: Mechanics, E: int) -> NDArray[np.float64]:
        """[P, E] under "strict" f is among the states, whatever its offset."""
        barred = np.zeros((told.after.size, E))
        if system.boundary == "strict":
            f = told.after.reshape(-1, 1).astype(np.int64) + system.after_states[0] + np.arange(E) - system.slack
            barred[(f < system.states[0]) | (f > system.states[-1])] = fitting.NEVER
        return barred
