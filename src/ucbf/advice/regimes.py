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
from ucbf.following.calendar import calendar_of
from ucbf.following.levels import Counted, Levels, Scale, law_of
from ucbf.planning import endless_mix, lowest_best, plan
from ucbf.policies import Policy
from ucbf.system import System

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CONTEXTS, MEMORIES = (2, 3), (0.0, 0.5, 0.8)  # that are tried
FEWEST = 8  # training episodes: with fewer, none are made
BETTER_BY = 5.0  # nats that contexts must predict better by than none: some chance, and the best of twelve


@dataclass(frozen=True)
class Regimes:
    """How the level of the last steps is counted, and cut into contexts."""

    memory: float  # as of :class:`ucbf.following.levels.Scale`
    cuts: tuple[float, ...]
    half_life: float  # in episodes: how much of the past counts in each context; infinite where all counts alike
    score: float  # the mean logarithm of the likelihood of a step, with these contexts
    score_without: float  # without any
    predicted: int  # steps that were predicted

    @property
    def scale(self) -> Scale:
        """How the level is counted, and cut."""
        return Scale(self.memory, self.cuts)

    @property
    def names(self) -> tuple[str, ...]:
        """[E] of the contexts."""
        return self.scale.names

    def contexts(self, residuals: Floats) -> Ints:
        """[K, H+1] the context of every step, and the one that followed. residuals: [K, H], nan counts as 0."""
        K, H = residuals.shape
        found = self.scale.contexts(levels(residuals.ravel(), self.memory))
        return np.concatenate([found[:-1].reshape(K, H), found[H::H, None]], axis=1).astype(np.int64)


def levels(residuals: Floats, memory: float) -> Floats:
    """[T+1] the level before each step, and after the last; 0 at first. residuals: [T], nan counts as 0."""
    found = np.zeros(len(residuals) + 1)
    scale = Scale(memory, (0.0,))
    for t, r in enumerate(np.nan_to_num(residuals)):
        found[t + 1] = scale.next(found[t], r)
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
    policies: dict[str, Policy]  # by the kind of an episode
    contexts: Ints  # [K, H+1] of all episodes
    levels: Levels  # what it takes to go on

    @property
    def now(self) -> int:
        """The context after the last step of the series."""
        return int(self.regimes.scale.contexts(self.levels.level))

    def expected(self) -> Floats:
        """[K, H] the mean of every amount at the level of the steps before it."""
        episodes, contexts = self.training.episodes, self.contexts[:, :-1]
        of_kinds = {
            kind: found.expected(self.training.preset_of(episodes.kinds.index(kind)))
            for kind, found in self.levels.kinds.items()
        }
        steps = np.arange(contexts.shape[1])
        return np.array([of_kinds[kind][steps, row] for kind, row in zip(episodes.kinds, contexts, strict=True)])


def advise_by_level(planner: Planner, regimes: Regimes) -> RegimeAdvice:
    """Plan with these contexts, counted in the episodes that the planner has learned from."""
    training, E = planner.training.with_half_life(regimes.half_life), len(regimes.names)
    planner = planner if training is planner.training else Planner(training, planner.ongoing)
    means = training.profiles_of(np.arange(len(training.training_episodes)))
    expected = np.array([means[kind] for kind in training.episodes.kinds])
    residuals = training.episodes.values - expected
    contexts = regimes.contexts(residuals)
    following, transitions = planner.following
    presets = [training.preset_of(k) for k in following]
    systems = [preset.system.replace(contexts=E) for preset in presets]
    counts = [_counts(training, k, system, contexts) for k, system in zip(following, systems, strict=True)]
    laws = [Disturbance.over(system.bins, law_of(found), E) for system, found in zip(systems, counts, strict=True)]
    policies, kinds = {}, {}
    ending = endless_mix(systems, laws, transitions)
    for k, preset, system, law, found in zip(following, presets, ending, laws, counts, strict=True):
        kind, episodes = training.episodes.kinds[k], training.episodes
        words = preset.policy(planner.episode(k).plan, episodes.names, episodes.series.spacing).words
        policies[kind] = Policy(system, lowest_best(plan(system, law).q), words)
        profile = preset.per_step("profile") if preset.has_profile else np.zeros(0)
        kinds[kind] = Counted(np.array(means[kind]), profile, found, system.terminal.reshape(E, -1))
    at_end = _level_at_end(training, regimes.memory, residuals, means)
    levels_now = Levels(regimes.scale, at_end, regimes.half_life, training.pooled, kinds)
    return RegimeAdvice(regimes, training, policies, contexts, levels_now)


def _level_at_end(training: Training, memory: float, residuals: Floats, means: dict[str, tuple[float, ...]]) -> float:
    """The level after the last step of the series, which may be after the last whole episode."""
    episodes, calendar = training.episodes, calendar_of(training.episodes)
    rest = episodes.rest
    numbers = range(1 - len(rest), 1)
    usual = [means.get(calendar.kind_of(n), next(iter(means.values())))[calendar.place_of(n)] for n in numbers]
    return float(levels(np.concatenate([residuals.ravel(), rest - usual]), memory)[-1])


def _counts(training: Training, k: int, system: System, contexts: Ints) -> Floats:
    """[H, E, E R] how often W and the next context came after each context, in episodes like episode k."""
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
        rows.append(np.bincount(at, weights[of], minlength=E * E * R).reshape(E, E * R))
    return np.array(rows)
