"""How far from optimal a policy probably is: a Bayesian statement, and no certificate.

Laws of W are drawn from a posterior: a Dirichlet with weight 1/2 on every disturbance that may occur, before anything
was seen (Jeffreys' prior). In each the exact gap V* - V^π is computed. That a share 1-p of them is at most a bound
convinces those who believed the prior, and says nothing of how often it fails in a given world.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.disturbance import Disturbance
from ucbf.planning import evaluate, gain, plan
from ucbf.system import System

Array = NDArray[np.float64]
PRIOR = 0.5  # disturbances seen of every kind


class _Supposed(NamedTuple):
    """A system and what might be the law of W."""

    system: System
    law: Disturbance
    start: Array


def gaps_drawn(system: System, counts: Array, policy: NDArray[np.int64], start: Array, draws: int, seed: int) -> Array:
    """[draws] the gap of ``policy``, on average over a law of the first state [S], in laws drawn from the posterior.

    counts: [L, R] disturbances seen
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    possible = np.tile(system.bins.guess > 0, system.n_contexts)
    weights = np.maximum(counts + np.where(possible, PRIOR, 0.0), 0)
    gaps = np.empty(draws)
    for i in range(draws):
        pmf = rng.standard_gamma(weights)
        pmf = np.where(pmf.sum(axis=1, keepdims=True) > 0, pmf, weights)  # where all of it is too small for a number
        law = Disturbance.over(system.bins, pmf / pmf.sum(axis=1, keepdims=True), system.n_contexts)
        supposed, best = _Supposed(system, law, start), plan(system, law)
        if system.horizon is None and system.discount == 1:
            gaps[i] = best.gain - gain(supposed, policy)  # type: ignore[arg-type]  # it has all that is asked for
        else:
            gaps[i] = start @ (best.v[0] - evaluate(supposed, policy)[0])  # type: ignore[arg-type]
    return np.maximum(gaps, 0)
