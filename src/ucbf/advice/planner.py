"""The best policy of every episode for the learned distribution of W, and the rules that it is compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.training import Training
from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.disturbance import Disturbance
from ucbf.following.calendar import Calendar
from ucbf.laws import Recent
from ucbf.planning import Plan, endless_mix, plan
from ucbf.policies import Policy
from ucbf.system import System
from ucbf.systems.base import Preset

MOST_FOLLOWING = 40  # past episodes that stand for those to come, where every episode differs


@dataclass(frozen=True, eq=False)
class EpisodeAdvice:
    """What to do in one kind of episode."""

    preset: Preset
    system: System  # where episodes follow each other, its terminal reward is the value of those to come
    distribution: Disturbance  # of W
    plan: Plan
    policy: Policy
    rules: dict[str, Policy]  # by name: what it is compared with
    name: str  # "weekday", "weekend", a date where every episode differs, or ""
    kind: str  # "weekday", "weekend" or ""
    begins: int = 0  # the first of its steps that is still to come

    @property
    def amount_distribution(self) -> Disturbance:
        """The learned distribution of the amount, in multiples of the unit."""
        return self.preset.amount_distribution(self.distribution)


class Planner:
    """Plans episodes: each with its own preset, all with the learned distributions of W.

    Where episodes follow each other (``ongoing``), an episode ends with the value of those that follow. Without
    changes these are of the known kinds, as often as one came after the other. With changes, which are not known
    beforehand, these are like those of the past.
    """

    def __init__(self, training: Training, ongoing: bool) -> None:
        self.training, self.ongoing = training, ongoing
        self.distributions = {kind: training.distribution(kind) for kind in dict.fromkeys(training.episodes.kinds)}
        self._planned: dict[tuple[int, str, int], EpisodeAdvice] = {}  # by the number of the preset, kind, and episode

    def episode(self, k: int) -> EpisodeAdvice:
        """What to do in episode k."""
        training, kind = self.training, self.training.episodes.kinds[k]
        key = int(training.preset_numbers[k]), kind, -1 if training.quantiles is None else k
        if key not in self._planned:
            name = kind if training.changes is None else training.episodes.starts[k]
            self._planned[key] = self.advice_for(training.preset_of(k), kind, name, self._distribution_of(k))
        return self._planned[key]

    def renewed(self, k: int) -> Policy:
        """What to do in episode k, learned from all before it, where distributions are made from quantiles."""
        training, kind = self.training, self.training.episodes.kinds[k]
        before = np.array([i for i in range(k) if training.pooled or training.episodes.kinds[i] == kind])
        distribution = training.quantile_distribution(k, before, training.recency.weights(k)[before])
        return self.advice_for(training.preset_of(k), kind, "", distribution).policy

    def advice_for(
        self, preset: Preset, kind: str, name: str = "", distribution: Disturbance | None = None
    ) -> EpisodeAdvice:
        """What to do in an episode with this preset; distribution: of W in it, else what was counted of its kind."""
        episodes = self.training.episodes
        distribution = self._distribution(preset, kind) if distribution is None else distribution
        system = preset.system.replace(terminal=self._value_to_come[kind]) if self.ongoing else preset.system
        best = plan(system, distribution)

        def in_words(given: Any) -> Policy:
            return preset.policy(given, episodes.names, episodes.series.spacing)

        rules = {n: in_words(rule) for n, rule in preset.rules(distribution, system).items()}
        return EpisodeAdvice(preset, system, distribution, best, in_words(best), rules, name, kind)

    def coming(self, known: dict[str, Any], calendar: Calendar) -> EpisodeAdvice:
        """What to do in the episode that comes, by what is known of it: as of ``changes``, and its quantiles [H, m]."""
        training, kind, known = self.training, calendar.kind_of(1), dict(known)
        quantiles, profile = known.pop("quantiles", None), training.profiles.get(kind)
        preset = training.preset.replace(**({} if profile is None else {"profile": profile}), **known)
        distribution = None
        if training.quantiles is not None:
            distribution = training.distribution_by_quantiles(preset, training.quantiles.of_one(quantiles), 0, kind)
        found = self.advice_for(preset, kind, calendar.when(1), distribution)
        return replace(found, begins=calendar.place_of(1))

    def agent_for(self, now: EpisodeAdvice) -> UCBVIf:
        """An agent for an episode. What was learned is its prior, worth as many episodes as it was learned from.

        Where what is recent counts more, so it does for the agent.
        """
        return self._agent(now.system, now.distribution)

    def agent_of_kind(self, kind: str) -> tuple[Preset, UCBVIf]:
        """An agent for the last episode of a kind, which serves around every forecast.

        What it knows of W is not clipped to the amounts that are possible around that of one episode.
        """
        kinds = self.training.episodes.kinds
        now = self.episode(max(k for k, each in enumerate(kinds) if each == kind))
        return now.preset, self._agent(now.system, self.distributions[kind])

    def _agent(self, system: System, prior: Disturbance) -> UCBVIf:
        training = self.training
        if training.recency.counts_alike:
            return UCBVIf(system, prior=prior, prior_weight=len(training.training_episodes))
        law = Recent(half_life=training.recency.half_life, prior=prior, prior_weight=float(training.weights.sum()))
        return UCBVIf(system, law=law)

    def expected_value(self, start: int) -> float:
        """The mean reward of an episode from this state; where episodes follow each other, of this episode alone."""
        s = start - self.training.preset_of(0).system.state_offset
        if not self.ongoing:
            n = len(self.training.training_episodes)
            return float(np.mean([self.episode(k).plan.v[0, s] for k in range(n)]))
        following, transitions = self.following
        value = float(transitions[0] @ [self.episode(k).plan.v[0, s] for k in following])
        system = self.episode(following[0]).system
        if system.discount == 1:
            return value - float(system.terminal[s])
        return value * (1 - system.discount**system.n_steps)

    def _distribution_of(self, k: int) -> Disturbance:
        """The distribution of W in episode k."""
        training, kind = self.training, self.training.episodes.kinds[k]
        if training.quantiles is None:
            return self._distribution(training.preset_of(k), kind)
        return training.distribution_by_quantiles(training.preset_of(k), training.quantiles, k, kind)

    def _distribution(self, preset: Preset, kind: str) -> Disturbance:
        """The distribution of W around the profile of this preset, without impossible amounts."""
        return preset.clipped_to_amount_range(self.distributions[kind])

    @cached_property
    def following(self) -> tuple[list[int], NDArray[np.float64]]:
        """Episodes that stand for those to come, and [n, n] how often one comes after another."""
        training, n = self.training, len(self.training.training_episodes)
        if training.changes is None:
            return training.last_of_each_kind(), training.kind_transitions()
        chosen = np.arange(n)
        if n > MOST_FOLLOWING:
            chosen = np.random.default_rng(0).choice(n, MOST_FOLLOWING, replace=False)
        return sorted(chosen.tolist()), np.full((len(chosen), len(chosen)), 1 / len(chosen))

    @cached_property
    def _value_to_come(self) -> dict[str, NDArray[np.float64]]:
        """By the kind of an episode: [S] the value of the episodes that follow it."""
        following, transitions = self.following
        kinds, presets = self.training.episodes.kinds, [self.training.preset_of(k) for k in following]
        distributions = [self._distribution_of(k) for k in following]
        made = endless_mix([preset.system for preset in presets], distributions, transitions)
        if self.training.changes is not None:
            return dict.fromkeys(kinds, made[0].terminal)
        return {kinds[k]: system.terminal for k, system in zip(following, made, strict=True)}
