"""How much is lost by not knowing the distribution of W any better: an estimate from resampled training episodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ucbf.advice.judging import CONFIDENCE, FEWEST_EPISODES
from ucbf.advice.planner import Planner
from ucbf.advice.training import Numbers, Profiles, Training, empirical_shares
from ucbf.disturbance import Disturbance
from ucbf.planning import evaluate, optimal, plan
from ucbf.world import World

HISTORIES = 100  # that are resampled
MOST_RESAMPLED = 100_000  # steps of a resampled history


def resampled_histories(training: Training) -> int:
    """How many histories :func:`estimated_loss` plans for; none where there are too few training episodes."""
    return HISTORIES if len(training.training_episodes) >= FEWEST_EPISODES else 0


def estimated_loss(planner: Planner, k: int, start: int, done: Callable[[], None]) -> float:
    """The bootstrap: what a plan for resampled episodes loses if the learned distribution is the truth.

    The loss is that of episode k from the first state ``start``. 95 % of the plans lose less than this; nan where there
    are too few training episodes. done: called after every resampled history

    A longer training than 100,000 steps is resampled with so many. A plan for those loses more, not less.
    """
    training, now = planner.training, planner.episode(k)
    if not resampled_histories(training):
        return float("nan")
    world, s = World(now.system, now.distribution), start - now.system.state_offset
    best, rng, losses = float(optimal(world).v[0, s]), np.random.default_rng(0), []
    for _ in range(HISTORIES):
        policy = plan(now.system, _distribution_for(training, k, draw(training, rng))).policy
        losses.append(best - float(evaluate(world, policy)[0, s]))
        done()
    return max(float(np.quantile(losses, CONFIDENCE)), 0.0)


def draw(training: Training, rng: np.random.Generator) -> Numbers:
    """[n] numbers of training episodes, drawn with replacement, by what they count.

    The i-th is of the same kind as training episode i, whose place it takes.
    """
    kinds = np.array(training.training_episodes.kinds)
    wanted = kinds[: max(MOST_RESAMPLED // training.preset.n_steps, 1)]
    drawn = np.empty(len(wanted), np.int64)
    for kind in dict.fromkeys(wanted.tolist()):
        alike = np.flatnonzero(kinds == kind)
        shares = None if training.recency.counts_alike else training.weights[alike] / training.weights[alike].sum()
        drawn[wanted == kind] = rng.choice(alike, int((wanted == kind).sum()), p=shares)
    return drawn


def _distribution_for(training: Training, k: int, drawn: Numbers) -> Disturbance:
    """The distribution of W that resampled episodes give for episode k, around the profile of episode k.

    Where profiles are learned, the resampled episodes have means of their own. A profile only moves W, so that their
    amounts can be stated around the profile of episode k, and one system serves all histories.
    """
    preset, kind = training.preset_of(k), training.episodes.kinds[k]
    if training.quantiles is not None:
        counted = training.counted_episodes(kind, len(drawn))
        return training.quantile_distribution(k, drawn[counted], training.weights[counted])
    if not training.profiles:
        return preset.clipped_to_amount_range(resampled_distribution(training, kind, drawn))
    profiles = training.profiles_of(drawn)
    resampled = preset.replace(profile=profiles[kind])
    distribution = resampled.clipped_to_amount_range(resampled_distribution(training, kind, drawn, profiles))
    return preset.disturbance_distribution(resampled.amount_distribution(distribution))


def resampled_distribution(
    training: Training, kind: str, drawn: Numbers, profiles: Profiles | None = None
) -> Disturbance:
    """The distribution of W in episodes of a kind, if the training episodes had been those drawn.

    The i-th takes the place of training episode i. W is what differs from the profile of that episode, or from
    ``profiles`` if they are given.
    """
    counted = training.counted_episodes(kind, len(drawn))
    preset = training.preset_of(counted[-1])
    if profiles is None:
        expected = training.expected_amounts[counted]
    else:
        means = {each: preset.to_units(profile) for each, profile in profiles.items()}
        expected = np.stack([means[training.training_episodes.kinds[k]] for k in counted])
    w = preset.sign * (preset.to_units(training.measured(drawn[counted])) - expected)
    return empirical_shares(w, preset.system, training.pooled, training.weights[counted])
