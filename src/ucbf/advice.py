"""From a measured series to a policy: learn from its first part, judge by the rest, beside simple rules."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.certificates import Certificate
from ucbf.checks import real
from ucbf.data import Episodes, Independence, independence
from ucbf.disturbance import Disturbance
from ucbf.errors import UserError
from ucbf.model_check import ModelWarning
from ucbf.planning import Plan, endless_mix, evaluate, optimal, plan
from ucbf.policies import Policy
from ucbf.reports import markdown_table
from ucbf.simulation import Player, Progress, replay
from ucbf.system import System
from ucbf.systems.base import Ready
from ucbf.world import World

FEW = 20  # training episodes of a kind: with fewer, steps are pooled around their profile
LEAST = 8  # episodes: with fewer, nothing is estimated of a loss, and no verdict given
RESAMPLED = 100  # histories for the estimate of what is lost
LEARNED, LEARNING = "learned", "still learning"
# Student's t at 97.5 %, for 1, 2, ... degrees of freedom
STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Advice:
    """What was learned from a series, and how it does in the episodes that followed."""

    days: dict[str, Day]  # what to do, on each kind of day; one, named "", where all episodes are alike
    training: Episodes
    test: Episodes
    agent: UCBVIf  # to go on with, in the system of the last day
    rewards: dict[str, NDArray[np.float64]]  # [K] of the test episodes, for each policy; none if there are none
    independence: Independence
    pooled: bool
    ongoing: bool
    certificate: Certificate
    value: float  # what an episode is expected to bring, on average over the kinds of days
    loss: float  # an estimate: how far from optimal, at most, in 95 % of resampled histories; nan if there are too few
    start: float  # the state at which certificate and loss are quoted

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

    def policy_for(self, **changes: Any) -> Policy:
        """What to do on a day that differs: with tomorrow's prices, say."""
        day = self.ready.replace(**changes)
        return day.policy(plan(day.system, self.last.law), self.training.names, self.training.series.spacing)

    def comparison(self) -> list[dict[str, Any]]:
        """A row for each policy: its mean reward an episode, and how much more the learned one gets, with 95 %."""
        if not self.rewards:
            return []
        ours, rows = self.rewards[LEARNED], []
        for name, theirs in self.rewards.items():
            ahead, reach = float((ours - theirs).mean()), _reach(ours - theirs)
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


@dataclass(frozen=True, eq=False)
class Day:
    """What to do on one kind of day."""

    ready: Ready
    law: Disturbance  # of W
    plan: Plan
    policy: Policy
    rules: dict[str, Policy]
    name: str  # "weekday", "weekend", a date where every day differs, or nothing
    kind: str  # "weekday", "weekend" or nothing

    @property
    def amounts(self) -> Disturbance:
        """The learned law of the amount, in multiples of the unit."""
        return self.ready.amounts(self.law)


def _reach(differences: NDArray[np.float64]) -> float:
    """Half of a 95 % interval of a mean, by Student's t; infinite for one number."""
    n = len(differences)
    if n < 2:
        return np.inf
    t = STUDENT[n - 2] if n - 2 < len(STUDENT) else 1.96 + 2.5 / (n - 1)
    return float(t * differences.std(ddof=1) / np.sqrt(n))


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
        The share of the episodes that is learned from; 1 judges nothing.
    pooled
        Whether W is what is left after the profile, with one law for all steps; else every step has a law of its own.
        The profile is that of ``ready`` or ``changes`` if they give one, else the mean of every step. Where an episode
        is a day, weekdays and weekends are kept apart either way. None: pooled if there are fewer than 20 episodes of
        a kind to learn from.
    changes
        [K] parameters of the system that differ from episode to episode and are known before it: the day's prices, or
        a forecast as the day's ``profile``.
    ongoing
        Whether episodes follow each other, so that the end of one is no end to plan for (:func:`ucbf.endless`). None:
        unless there are changes, of which the next are not known.
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
    goes_on = changes is None if ongoing is None else ongoing
    history = _History(ready, episodes, train, pooled, changes)
    first = history.first
    counted = {kind: history.counted(first.amounts, kind) for kind in dict.fromkeys(episodes.kinds)}
    field = _Field(history, {kind: agent.law for kind, agent in counted.items()}, goes_on)
    start_index = _start(history.on(0), start)
    judged = field.names if len(history.rest) else []
    work = _Work(progress, (RESAMPLED if len(first) >= LEAST else 0) + len(judged))
    w, rewards = history.disturbances(), {}
    if judged:
        for name, player in field.players(len(first)).items():
            accounts = lambda k: history.on(len(first) + k).system  # noqa: E731 - a name of its own says no more
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ModelWarning)  # the page says it
                rewards[name] = replay(player, w[len(first) :], start=start_index, accounts=accounts).reward
            work.done()
    shown = len(episodes) - 1
    return Advice(
        days={day.name: day for day in (field.day(k) for k in history.kinds(shown))},
        training=first,
        test=history.rest,
        agent=field.learner(shown),
        rewards=rewards,
        independence=independence(w[: len(first)], first.kinds),
        pooled=history.together,
        ongoing=goes_on,
        certificate=counted[episodes.kinds[shown]].moved_to(field.system(shown)).certificate(p),
        value=field.value(start_index),
        loss=_estimated_loss(history, field, shown, start_index, work),
        start=start_index * ready.unit,
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
    begin = ready.system.home if start is None else int(ready.units(start))
    if begin not in states:
        raise UserError(f"start is {start}; states go from {states[0] * ready.unit:g} to {states[-1] * ready.unit:g}")
    return begin


def _check_amounts(ready: Ready, episodes: Episodes) -> None:
    """An error that names the first amount outside the range of the system, or a unit that hides them all."""
    low, high = ready.amount_range
    series = episodes.series
    wrong = np.argwhere((episodes.amounts < low - ready.unit / 2) | (episodes.amounts > high + ready.unit / 2))
    if len(wrong):
        k, h = wrong[0]
        raise UserError(
            f"{series.source}, column {series.name!r}: {ready.amount_name} {episodes.amounts[k, h]:g} (episode of "
            f"{episodes.starts[k]}, step {h + 1}) is outside {low:g}..{high:g}; declare a wider range ({ready.limits})"
        )
    if np.ptp(episodes.amounts) > 0 and not np.ptp(ready.units(episodes.amounts)):
        raise UserError(
            f"{series.source}, column {series.name!r}: a unit of {ready.unit:g} rounds every {ready.amount_name} to "
            f"{float(ready.units(episodes.amounts).flat[0] * ready.unit):g}; choose a smaller one"
        )


class _History:
    """A series as episodes of systems: what changes from one to the next, and what is learned from the first ones."""

    def __init__(
        self,
        ready: Ready,
        episodes: Episodes,
        train: float,
        pooled: bool | None,
        changes: Sequence[dict[str, Any]] | None,
    ) -> None:
        self.episodes, self.changes = episodes, changes
        self.first, self.rest = episodes.split(train)
        self.ready = ready if changes is None else ready.anchored(changes[: len(self.first)])
        fewest = min(self.first.kinds.count(kind) for kind in set(self.first.kinds))
        self.together = fewest < FEW if pooled is None else pooled
        given = ready.profiled or any("profile" in change for change in changes or ())
        self.profiles = self.profiles_of(self.first.amounts) if self.together and not given else {}
        self._seen: dict[tuple[Any, ...], Ready] = {}

    def profiles_of(self, amounts: NDArray[np.float64]) -> dict[str, tuple[float, ...]]:
        """The means of every kind of day, of training episodes [K, H]."""
        kinds = np.array(self.first.kinds)
        found = {}
        for kind in dict.fromkeys((*self.first.kinds, *self.rest.kinds)):
            members = amounts[kinds == kind]
            found[kind] = tuple((members if len(members) >= 5 else amounts).mean(axis=0).tolist())
        return found

    def on(self, k: int) -> Ready:
        """The system of episode k."""
        return self._with(k, self.profiles)

    def _with(self, k: int, profiles: dict[str, tuple[float, ...]]) -> Ready:
        change = {} if self.changes is None else dict(self.changes[k])
        if profiles:
            change["profile"] = profiles[self.episodes.kinds[k]]
        key = tuple((name, tuple(np.ravel(value).tolist())) for name, value in change.items())
        if key not in self._seen:
            self._seen[key] = self.ready.replace(**change) if change else self.ready
        return self._seen[key]

    def kinds(self, shown: int) -> list[int]:
        """An episode for each kind of day, the last ones; only ``shown`` where every day differs."""
        if self.changes is not None:
            return [shown]
        last = {kind: k for k, kind in enumerate(self.episodes.kinds)}
        return [last[kind] for kind in sorted(last)]

    def follow(self, n: int) -> NDArray[np.float64]:
        """[n, n] how often one kind of day came after another, of those that :meth:`kinds` gives."""
        if n == 1:
            return np.ones((1, 1))
        names = [self.episodes.kinds[k] for k in self.kinds(len(self.episodes) - 1)]
        counts = np.full((n, n), 1e-9)
        for before, after in itertools.pairwise(self.episodes.kinds):
            counts[names.index(before), names.index(after)] += 1
        share: NDArray[np.float64] = counts / counts.sum(axis=1, keepdims=True)
        return share

    def disturbances(self) -> NDArray[np.int64]:
        """[K, H] W of every episode, each around its own profile."""
        amounts = np.clip(self.episodes.amounts, *self.ready.amount_range)  # beyond it by less than half a unit
        return np.concatenate([self.on(k).disturbances(amounts[k : k + 1]) for k in range(len(amounts))])

    def counted(self, amounts: NDArray[np.float64], kind: str) -> UCBVIf:
        """An agent that has counted W of training episodes with these amounts: of all if pooled, else of one kind."""
        profiles = self.profiles_of(amounts) if self.profiles else {}
        amounts = np.clip(amounts, *self.ready.amount_range)
        counts = self.together or kind not in self.first.kinds
        days = {k: self._with(k, profiles) for k, each in enumerate(self.first.kinds) if counts or each == kind}
        agent = UCBVIf(next(reversed(days.values())).system, stationary=self.together)
        agent.warm_start(np.concatenate([day.disturbances(amounts[k : k + 1]) for k, day in days.items()]))
        return agent


class _Field:
    """Everyone who is compared, each in the system of the day; all are told the same law."""

    def __init__(self, history: _History, laws: dict[str, Disturbance], ongoing: bool) -> None:
        self.history, self.laws, self.ongoing = history, laws, ongoing
        self._days: dict[tuple[int, str], Day] = {}
        self._systems: dict[tuple[int, str], System] = {}
        self.names = [LEARNED, *self.day(0).rules, LEARNING]

    def law_on(self, k: int) -> Disturbance:
        """The law of W in episode k, around its profile, without amounts that cannot be."""
        return self.history.on(k).within_range(self.laws[self.history.episodes.kinds[k]])

    def _key(self, k: int) -> tuple[int, str]:
        """What episodes that are alike have in common."""
        return id(self.history.on(k)), self.history.episodes.kinds[k]

    def system(self, k: int) -> System:
        """That of episode k; where business goes on, with the worth of the episodes after it."""
        ready = self.history.on(k)
        if not self.ongoing:
            return ready.system
        if self._key(k) not in self._systems:
            alike = self.history.kinds(k)
            made = endless_mix(
                [self.history.on(i).system for i in alike],
                [self.law_on(i) for i in alike],
                self.history.follow(len(alike)),
            )
            self._systems.update({self._key(i): system for i, system in zip(alike, made, strict=True)})
        return self._systems[self._key(k)]

    def day(self, k: int) -> Day:
        """What to do in episode k."""
        history, ready = self.history, self.history.on(k)
        if self._key(k) not in self._days:
            law, system, episodes = self.law_on(k), self.system(k), history.episodes
            made = plan(system, law)
            names, spacing = episodes.names, episodes.series.spacing
            self._days[self._key(k)] = Day(
                ready=ready,
                law=law,
                plan=made,
                policy=ready.policy(made, names, spacing),
                rules={n: ready.policy(rule, names, spacing) for n, rule in ready.rules(law, system).items()},
                name=episodes.kinds[k] if history.changes is None else episodes.starts[k],
                kind=episodes.kinds[k],
            )
        return self._days[self._key(k)]

    def value(self, start: int) -> float:
        """What an episode is expected to bring, on average; where business goes on, beyond what it leaves behind."""
        history = self.history
        first = start - history.on(0).system.state_offset
        if not self.ongoing:
            return float(np.mean([self.day(k).plan.v[0, first] for k in range(len(history.first))]))
        last = history.kinds(len(history.episodes) - 1)
        after = float(history.follow(len(last))[0] @ [self.day(k).plan.v[0, first] for k in last])
        system = self.system(last[0])
        return after - float(system.terminal[first]) if system.discount == 1 else (
            after * (1 - system.discount**system.horizon)
        )  # fmt: skip

    def players(self, begin: int) -> dict[str, Callable[[int], Player]]:
        """By name: who plays in episode begin + k."""
        found: dict[str, Callable[[int], Player]] = {LEARNED: lambda k: self.day(begin + k).policy}
        for name in self.names[1:-1]:
            found[name] = self._follower(name, begin)
        now: dict[str, UCBVIf] = {}  # each kind of day has its own

        def learning(k: int) -> Player:
            system, kind = self.system(begin + k), self.history.episodes.kinds[begin + k]
            if kind not in now:
                now[kind] = self.learner(begin + k)
            elif now[kind].system is not system:
                now[kind] = now[kind].moved_to(system)
            return now[kind]

        return {**found, LEARNING: learning}

    def _follower(self, name: str, begin: int) -> Callable[[int], Player]:
        def player(k: int) -> Player:
            rules = self.day(begin + k).rules
            if name not in rules:
                raise ValueError(f"the rule {name!r} is not there in every episode; leave out the change that adds it")
            return rules[name]

        return player

    def learner(self, k: int) -> UCBVIf:
        """An agent that starts from what was learned, as a prior worth the episodes it is from."""
        episodes = len(self.history.first)
        return UCBVIf(self.system(k), prior=self.law_on(k), prior_weight=episodes)


def _estimated_loss(history: _History, field: _Field, k: int, start: int, work: _Work) -> float:
    """The bootstrap: what a plan from resampled episodes misses if the learned law is the truth; 95 % miss less."""
    n = len(history.first)
    if n < LEAST:
        return float("nan")
    ready, system = history.on(k), field.system(k)
    world, first = World(system, field.law_on(k)), start - ready.system.state_offset
    best, rng, missed = float(optimal(world).v[0, first]), np.random.default_rng(0), []
    kinds = np.array(history.first.kinds)
    for _ in range(RESAMPLED):
        drawn = np.empty(n, np.int64)
        for kind in set(kinds.tolist()):
            members = np.flatnonzero(kinds == kind)
            drawn[members] = rng.choice(members, len(members))
        other = history.counted(history.first.amounts[drawn], history.episodes.kinds[k])
        there = ready
        if history.profiles:
            profiles = history.profiles_of(history.first.amounts[drawn])
            there = ready.replace(profile=profiles[history.episodes.kinds[k]])
        told = there.system.replace(terminal=system.terminal)
        missed.append(best - float(evaluate(world, plan(told, there.within_range(other.law)).policy)[0, first]))
        work.done()
    return max(float(np.quantile(missed, 0.95)), 0.0)


# -- in words -----------------------------------------------------------------------------------------------


def summary(advice: Advice, given: Collection[str] | None = None) -> str:
    """One page in Markdown. given: the parameters that the user chose; the others are said to be assumed."""
    parts = [_of_the_data(advice, given), _of_the_policy(advice), _of_its_worth(advice), _of_the_comparison(advice)]
    return "\n\n".join(parts) + "\n"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")


def _of_the_data(advice: Advice, given: Collection[str] | None) -> str:
    ready, training, test, series = advice.ready, advice.training, advice.test, advice.training.series
    last = (test if len(test) else training).starts[-1]
    dropped = f" {_count(training.dropped, 'row')} at the ends left out." if training.dropped else ""
    amounts = np.concatenate([training.amounts, test.amounts])
    rounded = int((np.abs(amounts / ready.unit - np.rint(amounts / ready.unit)) > 1e-9).sum())
    note = f" {_count(rounded, 'value')} rounded to multiples of {ready.unit:g}." if rounded else ""
    chosen = {name: name in given if given is not None else True for name in ready.described()}
    said = [f"With {', '.join(ready.described(name) for name, mine in chosen.items() if mine) or 'nothing given'}."]
    if not all(chosen.values()):
        said.append(
            f"Not given, and assumed: {', '.join(ready.described(n) for n, mine in chosen.items() if not mine)}."
        )
    return (
        f"# {ready.kind.capitalize()}: a policy from {series.source}\n\n"
        f"Column {series.name!r}, {_count(len(series), 'row')}; episodes of {_count(ready.horizon, 'step')}, the first "
        f"from {_date(training.starts[0])}, the last from {_date(last)}: {len(training)} to learn from, {len(test)} to "
        "judge by."
        f"{dropped}{note}\n\n" + "\n\n".join(said)
    )


def _date(text: str) -> str:
    return text.removesuffix(" 00:00:00")


def _of_the_policy(advice: Advice) -> str:
    few = (
        f"Learned from {_count(len(advice.training), 'episode')}: take it as a first guess.\n\n"
        if len(advice.training) < LEAST
        else ""
    )
    parts = []
    for day in advice.days.values():
        title = f"### {_date(day.name)}\n\n" if day.name else ""
        parts.append(title + "\n".join(f"- {line}" for line in str(day.policy).splitlines()))
    return f"## What to do\n\n{few}" + "\n\n".join(parts)


def _of_its_worth(advice: Advice) -> str:
    amount, certificate = advice.ready.amount_name, advice.certificate
    bound = float(certificate.gap[round(advice.start / advice.ready.unit) - advice.ready.system.state_offset])
    lost = (
        f"{_number(advice.loss)} an episode at most, in 95 % of resampled histories."
        if np.isfinite(advice.loss)
        else f"not to be told from {_count(len(advice.training), 'episode')}."
    )
    lines = [
        f"Expected: {advice.value:.5g} an episode, if the future is like the past."
        + ("" if advice.ongoing else " The rest at the end of an episode is valued as stated, and no further."),
        f"Estimated loss from not knowing the law of the {amount} any better: {lost}",
        f"Proved, for independent steps: with {1 - certificate.p:.0%} probability no policy gets more than "
        f"{_number(bound)} an episode above it"
        + ("." if bound < abs(advice.value) else "; so few episodes prove next to nothing."),
        f"Assumed: {advice.independence}.",
    ]
    if advice.independence.ok is False:
        lines.append(
            f"What one step says of the next is not used. A forecast of the {amount} would use it: W is then its error."
        )
    lines.append(_of_the_spread(advice))
    return "## What it is worth\n\n" + "\n".join(f"- {line}" for line in lines)


def _of_the_spread(advice: Advice) -> str:
    """What pooling takes for granted, and whether the data look like it."""
    if not advice.pooled:
        return "Every step has a law of its own."
    amounts = advice.training.amounts[[kind == advice.last.kind for kind in advice.training.kinds]]
    spread = amounts.std(axis=0)
    text = (
        f"One law serves all steps, around the profile of the {advice.ready.amount_name}: the spread is taken to be "
        f"the same. In the data it is from {spread.min():.3g} to {spread.max():.3g}"
    )
    uneven = len(amounts) >= LEAST and spread.max() > 2 * max(float(spread.min()), advice.ready.unit / 4)
    return text + (": that is NOT the same. Try a law for every step (pooled=False, --no-pool)." if uneven else ".")


def _number(x: float) -> str:
    return "0" if abs(x) < 1e-9 else f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def _of_the_comparison(advice: Advice) -> str:
    rows, n = advice.comparison(), len(advice.test)
    if not rows:
        return "## Judged by\n\nNothing: all episodes were learned from."
    others = [row for row in rows if row["policy"] != LEARNED]
    groups = {
        "Better than the learned policy": [row["policy"] for row in others if row["high"] < 0],
        "not to be told apart from it": [row["policy"] for row in others if row["low"] <= 0 <= row["high"]],
        "worse": [row["policy"] for row in others if row["low"] > 0],
    }
    verdict = "; ".join(f"{what}: {', '.join(names) or 'none'}" for what, names in groups.items())
    if n < LEAST:
        verdict = f"So few episodes ({n}) do not settle who is better"

    def ahead(row: dict[str, Any]) -> str:
        if row["policy"] == LEARNED:
            return ""
        bounds = f"({row['low']:+.4g}, {row['high']:+.4g})" if np.isfinite(row["low"]) else "(unknown)"
        return f"{row['ahead']:+.4g} {bounds}"

    cells = [[row["policy"], f"{row['reward']:.5g}", ahead(row)] for row in rows]
    table = markdown_table(["policy", "reward an episode", "learned is ahead by (95 %)"], cells)
    return f"## In the {_count(n, 'episode')} that followed\n\n{verdict}.\n\n{table.strip()}"


# -- sensible parameters ------------------------------------------------------------------------------------


def nice(x: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... and 0.5, 0.2, ... that is not below x."""
    exponent = np.floor(np.log10(max(x, 1e-300)))
    return float(next(m * 10.0**exponent for m in (1, 2, 5, 10) if m * 10.0**exponent >= x * (1 - 1e-9)))


def suggested(kind: type[Ready], amounts: NDArray[np.float64], given: dict[str, Any]) -> dict[str, Any]:
    """Parameters for a series: those given, and for the sizes that were not, what the series suggests."""
    size = float(np.abs(amounts).max())
    if not size:
        raise ValueError("all amounts are 0, so that nothing can be learned from them; is it the right column?")
    whole_ones = bool(np.array_equal(amounts, np.rint(amounts)))
    unit = float(given.get("unit") or max(nice(size / 40), 1.0 if whole_ones else 0.0))

    def up(x: float) -> float:
        return float(np.ceil(x / unit - 1e-9) * unit)

    sizes = kind.sizes(float(amounts.min()), float(amounts.mean()), float(amounts.max()))
    fits = {name: tuple(map(up, x)) if isinstance(x, tuple) else up(x) for name, x in sizes.items()}
    return {"unit": unit, **fits, **{name: value for name, value in given.items() if value is not None}}
