"""Everyone who is compared: the learned policy, simple rules, and a learner that goes on learning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.history import History
from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.disturbance import Disturbance
from ucbf.planning import Plan, endless_mix, plan
from ucbf.policies import Policy
from ucbf.simulation import Player
from ucbf.system import System
from ucbf.systems.base import Ready

LEARNED, LEARNING = "learned", "still learning"
MOST_DAYS = 40  # past days that stand for those to come, where every day differs


@dataclass(frozen=True, eq=False)
class Day:
    """What to do on one kind of day."""

    ready: Ready
    system: System  # where business goes on, with the worth of what follows
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


class Field:
    """Everyone who is compared, each in the system of the day; all are told the same law.

    Where business goes on, an episode ends with the worth of those that follow. Without changes those are of the kinds
    there are, as often as each came after the other; with changes, of which the next are not known, any of the past.
    """

    def __init__(self, history: History, laws: dict[str, Disturbance], ongoing: bool) -> None:
        self.history, self.laws, self.ongoing = history, laws, ongoing
        self._days: dict[tuple[int, str], Day] = {}
        self.names = [LEARNED, *self.day(0).rules, LEARNING]

    def law_on(self, k: int) -> Disturbance:
        """The law of W in episode k, around its profile, without amounts that cannot be."""
        return self._law(self.history.on(k), self.history.episodes.kinds[k])

    def _law(self, ready: Ready, kind: str) -> Disturbance:
        return ready.within_range(self.laws[kind])

    @cached_property
    def _coming(self) -> tuple[list[int], NDArray[np.float64]]:
        """Episodes that stand for those to come, and [n, n] how often one comes after another."""
        history = self.history
        if history.changes is None:
            return history.kinds(len(history.episodes) - 1), history.follow()
        n = len(history.first)
        days = np.arange(n) if n <= MOST_DAYS else np.random.default_rng(0).choice(n, MOST_DAYS, replace=False)
        return sorted(days.tolist()), np.full((len(days), len(days)), 1 / len(days))

    @cached_property
    def _worth(self) -> dict[str, NDArray[np.float64]]:
        """[S] what follows an episode is worth, by its kind."""
        days, follow = self._coming
        on = self.history.on
        made = endless_mix([on(k).system for k in days], [self.law_on(k) for k in days], follow)
        kinds = self.history.episodes.kinds
        found = {kinds[k]: system.terminal for k, system in zip(days, made, strict=True)}
        return found if self.history.changes is None else dict.fromkeys(kinds, made[0].terminal)

    def system_of(self, ready: Ready, kind: str) -> System:
        """A day's system; where business goes on, with the worth of the episodes after it."""
        return ready.system.replace(terminal=self._worth[kind]) if self.ongoing else ready.system

    def system(self, k: int) -> System:
        """That of episode k."""
        return self.day(k).system

    def day(self, k: int) -> Day:
        """What to do in episode k."""
        history, kind = self.history, self.history.episodes.kinds[k]
        key = id(history.on(k)), kind
        if key not in self._days:
            name = kind if history.changes is None else history.episodes.starts[k]
            self._days[key] = self.day_of(history.on(k), kind, name)
        return self._days[key]

    def day_of(self, ready: Ready, kind: str, name: str) -> Day:
        """What to do on a day with this system."""
        law, system, episodes = self._law(ready, kind), self.system_of(ready, kind), self.history.episodes
        made = plan(system, law)

        def worded(given: Any) -> Policy:
            return ready.policy(given, episodes.names, episodes.series.spacing)

        rules = {n: worded(rule) for n, rule in ready.rules(law, system).items()}
        return Day(ready, system, law, made, worded(made), rules, name, kind)

    def value(self, start: int) -> float:
        """What an episode is expected to bring, on average; where business goes on, beyond what it leaves behind."""
        history = self.history
        first = start - history.on(0).system.state_offset
        if not self.ongoing:
            return float(np.mean([self.day(k).plan.v[0, first] for k in range(len(history.first))]))
        days, follow = self._coming
        after = float(follow[0] @ [self.day(k).plan.v[0, first] for k in days])
        system = self.system(days[0])
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
        return UCBVIf(self.system(k), prior=self.law_on(k), prior_weight=len(self.history.first))
