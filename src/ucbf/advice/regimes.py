"""Contexts made from a series: how high the amounts of the last steps were, beside what is expected of them.

Where one step says something of the next, a policy may look at that. The level of the last steps is an observed context
that moves by itself: z' = m z + (1 - m) r, where r is what the amount differs from the mean of its step by. It is cut
into a few contexts, low to high, and the distribution of W, and of the next context, is counted in each.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.planner import Planner
from ucbf.advice.recency import SMALLEST, Recency, given_recency, log_student
from ucbf.advice.training import Training
from ucbf.disturbance import Disturbance
from ucbf.planning import endless_mix, plan
from ucbf.policies import Policy
from ucbf.system import System

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CONTEXTS, MEMORIES = (2, 3), (0.0, 0.5, 0.8)  # that are tried
NAMES = {2: ("low", "high"), 3: ("low", "usual", "high")}
FEWEST = 8  # training episodes: with fewer, none are made
BETTER_BY = 5.0  # nats that contexts must predict better by than none: some chance, and the best of twelve
BORROWED = 5.0  # observations of the distribution without contexts that each context is given


@dataclass(frozen=True)
class Regimes:
    """How the level of the last steps is counted, and cut into contexts."""

    memory: float  # m: the share of the level that stays at each step; 0: only the last step counts
    cuts: tuple[float, ...]  # [E-1] the levels between contexts, in the user's units
    half_life: float  # in episodes: how much of the past counts in each context; infinite where all counts alike
    score: float  # the mean logarithm of the likelihood of a step, with these contexts
    score_without: float  # without any
    predicted: int  # steps that were predicted

    @property
    def names(self) -> tuple[str, ...]:
        """[E] of the contexts."""
        return NAMES[len(self.cuts) + 1]

    def contexts(self, residuals: Floats) -> Ints:
        """[K, H+1] the context of every step, and the one that followed. residuals: [K, H], nan counts as 0."""
        K, H = residuals.shape
        found = np.searchsorted(self.cuts, levels(residuals.ravel(), self.memory))
        return np.concatenate([found[:-1].reshape(K, H), found[H::H, None]], axis=1).astype(np.int64)


def levels(residuals: Floats, memory: float) -> Floats:
    """[T+1] the level before each step, and after the last; 0 at first. residuals: [T], nan counts as 0."""
    found = np.zeros(len(residuals) + 1)
    for t, r in enumerate(np.nan_to_num(residuals)):
        found[t + 1] = memory * found[t] + (1 - memory) * r
    return found


def chosen_regimes(training: Training) -> Regimes | None:
    """The contexts that predict the last two thirds of the training episodes best; None unless clearly better.

    What differs from the mean of a step, over the episodes before, is predicted by Student's t, with the mean and
    the variance of what differed before in the same context. Tried are contexts beside what was chosen of the past,
    and contexts in place of it, so that all of the past counts alike.
    """
    n = len(training.training_episodes)
    if n < FEWEST:
        return None
    first, H = max(n // 3, 3), training.training_episodes.values.shape[1]
    recencies = dict.fromkeys([training.recency.half_life, np.inf])
    differs = {half_life: _differences(training, given_recency(half_life)).ravel() for half_life in recencies}
    scored = np.arange(n * H) >= first * H
    none = _scores(differs[training.recency.half_life], np.zeros(n * H, np.int64), scored)
    best, gained = None, BETTER_BY
    for half_life, E, memory in product(recencies, CONTEXTS, MEMORIES):
        z = levels(differs[half_life], memory)[:-1]
        shares = np.arange(1, E) / E
        context = np.searchsorted(np.quantile(z[: first * H], shares), z)
        found = _scores(differs[half_life], context, scored)
        both = np.isfinite(found) & np.isfinite(none)
        total, without = float(found[both].sum()), float(none[both].sum())
        if total - without > gained:
            gained, cuts, steps = total - without, tuple(np.quantile(z, shares).tolist()), int(both.sum())
            best = Regimes(memory, cuts, half_life, total / steps, without / steps, steps)
    return None if best is None or len(set(best.cuts)) < len(best.cuts) else best


def _differences(training: Training, recency: Recency) -> Floats:
    """[n, H] what each amount differs from the mean of its step by, over the episodes of its kind before it."""
    episodes = training.training_episodes
    amounts, kinds = np.where(episodes.outliers, np.nan, episodes.values), np.array(episodes.kinds)
    found = np.zeros(amounts.shape)
    for k in range(1, len(amounts)):
        alike = np.flatnonzero(kinds[:k] == kinds[k])
        if len(alike):
            weights = np.where(np.isfinite(amounts[alike]), recency.weights(k)[alike, None], 0.0)
            total = np.maximum(weights.sum(axis=0), 1e-300)
            found[k] = amounts[k] - (weights * np.nan_to_num(amounts[alike])).sum(axis=0) / total
    return found


def _scores(r: Floats, context: Ints, scored: NDArray[np.bool_]) -> Floats:
    """[T] the logarithm of the density of each of r, given those before it in the same context; nan without three."""
    found = np.full(len(r), np.nan)
    for e in np.unique(context):
        at = np.flatnonzero((context == e) & np.isfinite(r))
        n, x = np.arange(len(at), dtype=float), r[at]
        mean = (np.cumsum(x) - x) / np.maximum(n, 1)
        square = (np.cumsum(x**2) - x**2) / np.maximum(n, 1) - mean**2
        scale = np.sqrt(np.maximum(square, SMALLEST * (1 + float(np.mean(x**2)))) * (1 + 1 / np.maximum(n, 1)))
        known = (n >= 3) & scored[at]
        density = [log_student(z, m - 1) for z, m in zip(((x - mean) / scale)[known], n[known], strict=True)]
        found[at[known]] = np.array(density) - np.log(scale[known])
    return found


@dataclass(frozen=True, eq=False)
class RegimeAdvice:
    """What to do by the level of the last steps."""

    regimes: Regimes
    training: Training  # from which it was learned
    now: int  # the context after the last step of the series
    policies: dict[str, Policy]  # by the kind of an episode
    contexts: Ints  # [K, H+1] of all episodes


def advise_by_level(planner: Planner, regimes: Regimes) -> RegimeAdvice:
    """Plan with these contexts, counted in the episodes that the planner has learned from."""
    training, E = planner.training.with_half_life(regimes.half_life), len(regimes.names)
    planner = planner if training is planner.training else Planner(training, planner.ongoing)
    means = training.profiles_of(np.arange(len(training.training_episodes)))
    expected = np.array([means[kind] for kind in training.episodes.kinds])
    contexts = regimes.contexts(training.episodes.values - expected)
    following, transitions = planner.following
    systems = [training.preset_of(k).system.replace(contexts=E) for k in following]
    laws = [_law(training, k, system, contexts) for k, system in zip(following, systems, strict=True)]
    policies = {}
    for k, system, law in zip(following, endless_mix(systems, laws, transitions), laws, strict=True):
        preset, episodes = training.preset_of(k), training.episodes
        words = preset.policy(planner.episode(k).plan, episodes.names, episodes.series.spacing).words
        policies[episodes.kinds[k]] = Policy(system, plan(system, law).policy, words)
    return RegimeAdvice(regimes, training, int(contexts[-1, -1]), policies, contexts)


def _law(training: Training, k: int, system: System, contexts: Ints) -> Disturbance:
    """The distribution of W and of the next context, given the present one, in episodes like episode k.

    Each context is given a few observations of what was counted in all of them.
    """
    preset, E, H = training.preset_of(k), system.n_contexts, system.n_steps
    counted = training.counted_episodes(training.episodes.kinds[k])
    w, R = training.disturbances[counted], len(system.residuals)
    now, then = contexts[counted, :-1], contexts[counted, 1:]
    weights = np.repeat(training.weights[counted], H)
    rows = []
    for h in range(H):
        steps = np.full(w.shape, training.pooled)
        steps[:, h] = True
        of = steps.ravel()
        possible = preset.nearest_possible(w.ravel()[of], preset.expected_amount[h])
        at = (now.ravel()[of] * E + then.ravel()[of]) * R + system.bins.index(possible)
        counts = np.bincount(at, weights[of], minlength=E * E * R).reshape(E, E * R)
        shared = counts.sum(axis=0) / counts.sum()
        rows.append((counts + BORROWED * shared) / (counts.sum(axis=1, keepdims=True) + BORROWED))
    pmf = np.concatenate(rows)
    return Disturbance.over(system.bins, pmf / pmf.sum(axis=1, keepdims=True), E)
