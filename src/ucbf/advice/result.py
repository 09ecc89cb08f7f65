"""What ``ucbf.learn`` gives."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ucbf.advice.judging import BY_LEVEL, Rewards, compare
from ucbf.advice.planner import EpisodeAdvice, Planner
from ucbf.advice.promotions import Promotions
from ucbf.advice.quantiles import QuantileScores
from ucbf.advice.recency import Recency
from ucbf.advice.regimes import RegimeAdvice
from ucbf.advice.service import Service
from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.certificates import Certificate
from ucbf.controller import Controller
from ucbf.data import Episodes, Independence
from ucbf.following.known import PROFILE, PROMOTED, QUANTILES
from ucbf.planning import Plan
from ucbf.policies import Policy
from ucbf.systems.base import Preset


@dataclass(frozen=True, eq=False)
class Advice:
    """What was learned from a series, and how it does in the episodes that followed."""

    by_kind: dict[str, EpisodeAdvice]  # what to do in each kind of episode; one, named "", where all are alike
    training: Episodes  # from which the policy was learned that was judged
    test: Episodes  # judged by
    rewards: Rewards  # of every policy in the test episodes; empty if there are none
    service: Service | None  # how the learned policy met the demand in the test episodes, where there is one
    independence: Independence  # of W from step to step, as tested in all episodes
    pooled: bool  # whether all steps share one distribution of W
    recency: Recency  # how much of the past counts
    ongoing: bool  # whether episodes follow each other, so that none has an end to plan for
    value: float  # the reward expected of an episode, on average over the kinds of episodes
    value_judged: float  # the same, as it was expected of the policy that was judged
    certificate: Certificate | None  # a proved bound on how far from optimal the policy of the last episode is, if any
    loss: float  # an estimate of how far it is; 95 % of resampled histories lose less; nan for too few episodes
    start: float  # the first state, for which value, loss and certificate are quoted
    agents: dict[str, UCBVIf] = field(repr=False)  # by the names of ``by_kind``: agents to go on with
    planner: Planner = field(repr=False)  # has learned from every episode
    judged: Planner = field(repr=False)  # from ``training`` only
    quantile_scores: QuantileScores | None = None  # where quantiles were forecast: how well they predict
    by_level: RegimeAdvice | None = None  # what to do by the level of the last steps, where that predicts better
    promotions: Promotions | None = None  # what they do, where they are known beforehand
    variants: tuple[str, ...] = ()  # of ``rewards``: learned without the forecast, say; no rules
    is_coming: bool = False  # whether ``by_kind`` is of the episode that comes, where every episode differs

    def __repr__(self) -> str:
        return f"Advice({self.preset.kind}, {len(self.learned)} episodes learned from, {len(self.test)} judged by)"

    @property
    def learned(self) -> Episodes:
        """The episodes that the advice was learned from: all of them."""
        return self.planner.training.training_episodes

    @property
    def has_forecast(self) -> bool:
        """Whether every episode has a profile of its own, known before it."""
        return self.planner.training.forecast is not None

    @property
    def varies(self) -> tuple[str, ...]:
        """What differs from episode to episode and is known beforehand, by the names that act has for it."""
        training = self.planner.training
        names = {name for change in training.changes or () for name in change}
        if self.promotions is not None:
            names = names - {PROFILE} | {PROMOTED}
        return tuple(sorted(names if training.quantiles is None else names | {QUANTILES}))

    @property
    def follows_level(self) -> bool:
        """Whether the level of the last steps is to be followed: it predicts better, and was not judged to be worse."""
        rows = [row for row in self.comparison() if row["policy"] == BY_LEVEL]
        return self.by_level is not None and not any(row["low"] > 0 for row in rows)

    @property
    def errors(self) -> tuple[Episodes, Episodes]:
        """The training and the test episodes, less their forecasts where they have them."""
        errors_of = self.judged.training.errors_of
        return errors_of(self.training, 0), errors_of(self.test, len(self.training))

    @property
    def learned_errors(self) -> Episodes:
        """All episodes, less their forecasts where they have them."""
        return self.planner.training.errors_of(self.learned, 0)

    @property
    def last(self) -> EpisodeAdvice:
        """The last of ``by_kind``, whose kinds are in alphabetical order."""
        return next(reversed(self.by_kind.values()))

    @property
    def preset(self) -> Preset:
        """The preset of :attr:`last`."""
        return self.last.preset

    @property
    def rounded(self) -> int:
        """How many amounts were rounded to multiples of the unit."""
        amounts = self.learned.values / self.preset.unit
        return int((np.abs(amounts - np.rint(amounts)) > 1e-9).sum())

    @property
    def policy(self) -> Policy:
        """The policy of :attr:`last`."""
        return self.last.policy

    @property
    def plan(self) -> Plan:
        """The plan of :attr:`last`."""
        return self.last.plan

    @property
    def agent(self) -> UCBVIf:
        """An agent to go on with, for :attr:`last`. It counts in units, and numbers actions as the preset does."""
        return self.agents[self.last.name]

    def controllers(self) -> dict[str, Controller]:
        """Agents to go on with in the user's units, one for each kind of episode."""
        return {name: Controller(each.preset, self.agents[name]) for name, each in self.by_kind.items()}

    def save(self, folder: str | os.PathLike[str], time_zone: str | None = None) -> list[str]:
        """Save the agents and what else :func:`ucbf.follow` needs; the names of the files, ``model.json`` last.

        time_zone: that of the series, where it was named
        """
        from ucbf.advice.model_file import save_advice

        return save_advice(self, Path(folder), time_zone)

    def policy_for(self, **changes: Any) -> Policy:
        """What to do in an episode in which some parameters differ: tomorrow's prices, say."""
        return self.planner.advice_for(self.preset.replace(**changes), self.last.kind).policy

    def comparison(self) -> list[dict[str, Any]]:
        """A row for each policy: its mean reward in an episode, and how much more the learned one gets, with 95 %."""
        return compare(self.rewards)
