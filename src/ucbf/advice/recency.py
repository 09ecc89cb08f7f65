"""How much of the past counts: the half-life, in episodes, whose predictions of the training episodes were best."""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log, pi

import numpy as np
from numpy.typing import NDArray

from ucbf.laws.recent import best_half_life

Floats = NDArray[np.float64]
HALF_LIVES = (np.inf, 64.0, 32.0, 16.0, 8.0, 4.0, 2.0)  # episodes
FEWEST = 8  # training episodes: with fewer, all count alike
MOST_PREDICTED = 200  # episodes, the last ones
SMALLEST = 1e-6  # variance, as a share of the square of the mean


@dataclass(frozen=True)
class Recency:
    """How much of the past counts."""

    half_life: float  # in episodes; infinite where all count alike
    scores: dict[
        float, float
    ]  # by half-life: the mean logarithm of the probability of a step; empty if none was chosen
    predicted: int  # steps that were predicted

    def weights(self, n: int) -> Floats:
        """[n] what each of n episodes counts, the last one 1."""
        weights: Floats = 0.5 ** (np.arange(n - 1, -1, -1) / self.half_life)
        return weights

    @property
    def counts_alike(self) -> bool:
        """Whether every episode counts alike."""
        return bool(np.isinf(self.half_life))


def given_recency(half_life: float) -> Recency:
    """One that the user chose."""
    return Recency(half_life, {}, 0)


def chosen_recency(amounts: Floats, kinds: tuple[str, ...], pooled: bool | None) -> Recency:
    """The half-life whose predictions of the last two thirds of the episodes were best.

    Every episode is predicted from those before it: the amounts of a step around their weighted mean, with the weighted
    distribution of what differed from it, of the step or of all, smoothed. All count alike unless a half-life is better
    clearly better (:func:`ucbf.laws.recent.best_half_life`).

    amounts: [K, H] without outliers, which are nan; kinds: [K]; pooled: whether all steps share one distribution around
    their means; None: as it is decided for few episodes
    """
    n = len(amounts)
    first = max(n // 3, n - MOST_PREDICTED, 3)
    if n < FEWEST:
        return Recency(np.inf, {}, 0)
    which, totals, predicted = np.array(kinds), np.zeros(len(HALF_LIVES)), 0
    for k in range(first, n):
        alike = np.flatnonzero(which[:k] == which[k])
        if len(alike) < 3:
            continue
        past, ages = amounts[alike], k - alike
        totals += [_log_probability(past, 0.5 ** (ages / half_life), amounts[k], pooled) for half_life in HALF_LIVES]
        predicted += int(np.isfinite(amounts[k]).sum())
    best = HALF_LIVES[int(best_half_life(np.array(HALF_LIVES), totals, predicted))]
    return Recency(best, dict(zip(HALF_LIVES, (totals / max(predicted, 1)).tolist(), strict=True)), predicted)


def _log_probability(past: Floats, weights: Floats, came: Floats, pooled: bool | None) -> float:
    """The logarithm of the density of what came [H], predicted from past episodes [n, H] with these weights [n].

    What differs from the weighted mean of a step is taken to be normal, with the weighted variance of that step, or of
    all if pooled. Both are estimates, from (Σ w)² / Σ w² samples: so the prediction is Student's t.
    """
    w = np.where(np.isfinite(past), weights[:, None], 0.0)
    total = np.maximum(w.sum(axis=0), 1e-300)
    mean = (w * np.nan_to_num(past)).sum(axis=0) / total
    square = (w * np.where(w > 0, past - mean, 0.0) ** 2).sum(axis=0)
    n = max(float(weights.sum() ** 2 / (weights**2).sum()), 1.0)
    shared = pooled is None or pooled
    variance = np.full(len(came), square.sum() / total.sum()) if shared else square / total
    freedom = max((n - 1) * (len(came) if shared else 1), 1.0)
    scale = np.sqrt(np.maximum(variance, SMALLEST * (1 + mean**2)) * (1 + 1 / n))
    seen = np.isfinite(came)
    return float(log_student(((came - mean) / scale)[seen], freedom).sum() - np.log(scale[seen]).sum())


def log_student(z: Floats, freedom: float) -> Floats:
    """The logarithm of the density of Student's t. That of scipy spends nearly all of its time on checks."""
    constant = lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - log(freedom * pi) / 2
    density: Floats = constant - (freedom + 1) / 2 * np.log1p(z**2 / freedom)
    return density
