"""Learn from the first part of a series and judge by the rest."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.field import LEARNED, Day, Field
from ucbf.advice.history import History
from ucbf.advice.sizes import rounding
from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.certificates import Certificate
from ucbf.checks import real
from ucbf.controller import Controller
from ucbf.data import Episodes, Independence, independence
from ucbf.errors import UserError
from ucbf.model_check import ModelWarning
from ucbf.planning import Plan, evaluate, optimal, plan
from ucbf.policies import Policy
from ucbf.simulation import Progress, replay
from ucbf.systems.base import Ready
from ucbf.world import World

LEAST = 8  # episodes: with fewer, nothing is estimated of a loss, and no verdict given
RESAMPLED = 100  # histories for the estimate of what is lost
SURE = 0.95  # of intervals


@dataclass(frozen=True, eq=False)
class Advice:
    """What was learned from a series, and how it does in the episodes that followed."""

    days: dict[str, Day]  # what to do, on each kind of day; one, named "", where all episodes are alike
    training: Episodes
    test: Episodes
    rewards: dict[str, NDArray[np.float64]]  # [K] of the test episodes, for each policy; none if there are none
    independence: Independence
    pooled: bool
    ongoing: bool
    certificate: Certificate
    value: float  # what an episode is expected to bring, on average over the kinds of days
    loss: float  # an estimate: how far from optimal, at most, in 95 % of resampled histories; nan if there are too few
    start: float  # the state at which certificate and loss are quoted
    learners: dict[str, UCBVIf] = field(repr=False)  # by the name of the day: agents to go on with
    compared: Field = field(repr=False)

    def __repr__(self) -> str:
        return f"Advice({self.ready.kind}, {len(self.training)} episodes learned from, {len(self.test)} judged by)"

    @property
    def last(self) -> Day:
        """The most recent kind of day."""
        return next(reversed(self.days.values()))

    @property
    def ready(self) -> Ready:
        """The system of that day."""
        return self.last.ready

    @property
    def policy(self) -> Policy:
        """What to do on that day."""
        return self.last.policy

    @property
    def plan(self) -> Plan:
        """The plan of that day."""
        return self.last.plan

    @property
    def agent(self) -> UCBVIf:
        """An agent to go on with, in the system of that day; its states and actions are multiples of the unit."""
        return self.learners[self.last.name]

    def controllers(self) -> dict[str, Controller]:
        """Agents to go on with in the user's units, one for each kind of day."""
        return {name: Controller(day.ready, self.learners[name]) for name, day in self.days.items()}

    def policy_for(self, **changes: Any) -> Policy:
        """What to do on a day that differs: with tomorrow's prices, say."""
        return self.compared.day_of(self.ready.replace(**changes), self.last.kind, "").policy

    def comparison(self) -> list[dict[str, Any]]:
        """A row for each policy: its mean reward an episode, and how much more the learned one gets, with 95 %."""
        if not self.rewards:
            return []
        ours, rows = self.rewards[LEARNED], []
        for name, theirs in self.rewards.items():
            ahead, reach = float((ours - theirs).mean()), half_interval(ours - theirs)
            rows.append(
                {
                    "policy": name,
                    "reward": float(theirs.mean()),
                    "ahead": ahead,
                    "low": ahead - reach,
                    "high": ahead + reach,
                }
            )
        return sorted(rows, key=lambda row: -row["reward"])


def half_interval(numbers: NDArray[np.float64], others: int = 0, sure: float = SURE) -> float:
    """Half of an interval of a mean, of 95 % unless told otherwise, by Student's t; infinite for one number.

    others: of the difference to the mean of so many other numbers that are spread as these are
    """
    from scipy.stats import t

    n = len(numbers)
    if n < 2:
        return np.inf
    error = float(numbers.std(ddof=1)) * np.sqrt(1 / n + (1 / others if others else 0))
    return float(t.ppf((1 + sure) / 2, n - 1) * error)


def advise(
    ready: Ready,
    episodes: Episodes,
    train: float = 0.7,
    pooled: bool | None = None,
    changes: Sequence[dict[str, Any]] | None = None,
    ongoing: bool | None = None,
    start: float | None = None,
    p: float = 0.05,
    progress: Progress | None = None,
) -> Advice:
    """Learn the law of W from the first episodes of a series, and judge the policy by the others.

    Parameters
    ----------
    ready
        One of :mod:`ucbf.systems`, or a subclass of :class:`ucbf.systems.Ready` of your own.
    train
        The share of the episodes that is learned from; 1 judges nothing. Of the others, those within the next 50,000
        steps judge.
    pooled
        Whether W is what is left after the profile, with one law for all steps; else every step has a law of its own.
        The profile is that of ``ready`` or ``changes`` if they give one, else the mean of every step. Where an episode
        is a day, weekdays and weekends are kept apart either way. None: pooled if there are fewer than 20 episodes of
        a kind to learn from.
    changes
        [K] parameters of the system that differ from episode to episode and are known before it: the day's prices, or
        a forecast as the day's ``profile``.
    ongoing
        Whether episodes follow each other, so that the end of one is no end to plan for (:func:`ucbf.endless`). With
        changes, those of the episodes to come are taken to be like those of the past. None: unless there are changes.
    start
        The first state, in the user's units; the one nearest to 0 if None.
    p
        Chance with which the certificate may fail.
    progress
        Called with (steps done, steps).
    """
    if not isinstance(ready, Ready):
        raise TypeError(f"ready is {ready!r:.60}; give one of ucbf.systems, or a subclass of ucbf.systems.Ready")
    real("train", train, 0, 1, open_low=True)
    if changes is not None and len(changes) != len(episodes):
        raise ValueError(f"changes has {len(changes)} entries; give one for each of the {len(episodes)} episodes")
    if episodes.amounts.shape[1] != ready.horizon:
        raise ValueError(
            f"episodes have {episodes.amounts.shape[1]} steps, the system {ready.horizon}; make them alike"
        )
    if len(episodes) < 2:
        raise ValueError(f"there is {len(episodes)} episode; at least 2 are needed, to learn from and to judge by")
    _check_amounts(ready, episodes)
    history = History(ready, episodes, train, pooled, changes)
    first = history.first
    counted = {kind: history.counted(history.all, kind) for kind in dict.fromkeys(episodes.kinds)}
    goes_on = changes is None if ongoing is None else ongoing
    compared = Field(history, {kind: agent.law for kind, agent in counted.items()}, goes_on)
    begin = _start(history.on(0), start)
    judged = compared.names if len(history.rest) else []
    work = _Work(progress, (RESAMPLED if len(first) >= LEAST else 0) + len(judged))
    w, rewards = history.disturbances(), {}
    if judged:
        for name, player in compared.players(len(first)).items():
            accounts = lambda k: history.on(len(first) + k).system  # noqa: E731 - a name of its own says no more
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ModelWarning)  # the page says it
                rewards[name] = replay(player, w[len(first) :], start=begin, accounts=accounts).reward
            work.done()
    shown = len(history.episodes) - 1
    kinds = {compared.day(k).name: k for k in history.kinds(shown)}
    return Advice(
        days={name: compared.day(k) for name, k in kinds.items()},
        training=first,
        test=history.rest,
        rewards=rewards,
        independence=independence(w[: len(first)], first.kinds),
        pooled=history.together,
        ongoing=goes_on,
        certificate=counted[episodes.kinds[shown]].moved_to(compared.system(shown)).certificate(p),
        value=compared.value(begin),
        loss=_estimated_loss(history, compared, shown, begin, work),
        start=begin * ready.unit,
        learners={name: compared.learner(k) for name, k in kinds.items()},
        compared=compared,
    )


class _Work:
    """Counts the steps that are done."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.count = progress, total, 0

    def done(self) -> None:
        self.count += 1
        if self.progress is not None:
            self.progress(self.count, self.total)


def _start(ready: Ready, start: float | None) -> int:
    states = ready.system.states
    begin = ready.system.nearest_to_zero if start is None else int(ready.units(start))
    if begin not in states:
        raise UserError(f"start is {start}; states go from {states[0] * ready.unit:g} to {states[-1] * ready.unit:g}")
    return begin


def _check_amounts(ready: Ready, episodes: Episodes) -> None:
    """An error that names the first amount outside the range of the system, or a unit that changes them too much."""
    low, high = ready.amount_range
    series = episodes.series
    where = f"{series.source}, column {series.name!r}"
    wrong = np.argwhere((episodes.amounts < low - ready.unit / 2) | (episodes.amounts > high + ready.unit / 2))
    if len(wrong):
        k, h = wrong[0]
        raise UserError(
            f"{where}: {ready.amount_name} {episodes.amounts[k, h]:g} ({episodes.place(k, h)}) is outside "
            f"{low:g}..{high:g}; declare a wider range ({ready.limits})"
        )
    usual = episodes.amounts[~episodes.outliers]
    if np.ptp(usual) > 0 and not np.ptp(ready.units(usual)):
        raise UserError(
            f"{where}: a unit of {ready.unit:g} rounds every {ready.amount_name} to "
            f"{float(ready.units(usual).flat[0] * ready.unit):g}; choose a smaller one"
        )
    done = rounding(episodes.amounts, ready.unit)
    if done.useless:
        raise UserError(
            f"{where}: a unit of {ready.unit:g} rounds every {ready.amount_name} too: {done}. Choose a smaller one; a "
            "unit is what everything is counted in, not the size of a pack"
        )


def _estimated_loss(history: History, compared: Field, k: int, start: int, work: _Work) -> float:
    """The bootstrap: what a plan from resampled episodes misses if the learned law is the truth; 95 % miss less.

    Histories of more than 100,000 steps are resampled with so many, from which a plan misses more, not less.
    """
    n = len(history.first)
    if n < LEAST:
        return float("nan")
    ready, system, kind = history.on(k), compared.system(k), history.episodes.kinds[k]
    world, first = World(system, compared.law_on(k)), start - ready.system.state_offset
    best, rng, missed = float(optimal(world).v[0, first]), np.random.default_rng(0), []
    kinds = np.array(history.first.kinds)
    resampled = kinds[: history.resampled]
    for _ in range(RESAMPLED):
        drawn = np.empty(len(resampled), np.int64)
        for each in dict.fromkeys(resampled.tolist()):
            drawn[resampled == each] = rng.choice(np.flatnonzero(kinds == each), int((resampled == each).sum()))
        other = history.counted(drawn, kind)
        there = ready.replace(profile=history.profiles_of(drawn)[kind]) if history.profiles else ready
        told = there.system.replace(terminal=system.terminal)
        missed.append(best - float(evaluate(world, plan(told, there.within_range(other.law)).policy)[0, first]))
        work.done()
    return max(float(np.quantile(missed, SURE)), 0.0)
