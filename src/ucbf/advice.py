"""From a measured series to a policy: learn from its first part, judge by the rest, beside simple rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from ucbf.planning import Plan, endless, evaluate, optimal, plan
from ucbf.policies import Policy
from ucbf.reports import interval, markdown_table
from ucbf.simulation import Player, replay
from ucbf.systems.base import Ready
from ucbf.world import World

FEW = 50  # training episodes: with fewer, steps are pooled around their profile
RESAMPLED = 100  # histories for the estimate of what is lost
LEARNED, LEARNING = "learned", "learned, and learning on"


@dataclass(frozen=True, eq=False)
class Advice:
    """What was learned from a series, and how it does in the episodes that followed."""

    ready: Ready  # as it is on the last day of training
    training: Episodes
    test: Episodes
    agent: UCBVIf
    plan: Plan
    policy: Policy
    rules: dict[str, Policy]
    rewards: dict[str, NDArray[np.float64]]  # [K] of the test episodes, for each policy; none if there are none
    independence: Independence
    pooled: bool
    ongoing: bool
    certificate: Certificate
    loss: float  # an estimate: how far from optimal, at most, in 95 % of resampled histories
    start: float  # the state at which all this is quoted

    @property
    def first(self) -> int:
        """The index of that state."""
        return round(self.start / self.ready.unit) - self.ready.system.state_offset

    @property
    def value(self) -> float:
        """What an episode is expected to bring; where business goes on, beyond what it leaves to the next."""
        worth = float(self.plan.v[0, self.first])
        return worth - float(self.agent.system.terminal[self.first]) if self.ongoing else worth

    @property
    def demand(self) -> Disturbance:
        """The learned law of the amount, in multiples of the unit."""
        return self.ready.amounts(self.agent.law)

    def comparison(self) -> list[dict[str, Any]]:
        """A row for each policy: its mean reward an episode, and how much more the learned one gets, with 95 %."""
        if not self.rewards:
            return []
        ours = self.rewards[LEARNED]
        rows = []
        for name, theirs in self.rewards.items():
            low, high = interval((ours - theirs)[:, None])
            rows.append(
                {
                    "policy": name,
                    "reward": float(theirs.mean()),
                    "ahead": float((ours - theirs).mean()),
                    "low": float(low[0]),
                    "high": float(high[0]),
                }
            )
        return sorted(rows, key=lambda row: -row["reward"])


def advise(
    ready: Ready,
    episodes: Episodes,
    train: float = 0.7,
    pooled: bool | None = None,
    changes: Sequence[dict[str, Any]] | None = None,
    ongoing: bool | None = None,
    start: float | None = None,
    p: float = 0.05,
) -> Advice:
    """Learn the law of W from the first episodes of a series, and judge the policy by the others.

    Parameters
    ----------
    train
        The share of the episodes that is learned from; 1 judges nothing.
    pooled
        Whether W is what is left after the mean of every step (of weekdays and weekends apart, where an episode is a
        day), with one law for all steps; else every step has a law of its own. None: pooled if there are such kinds of
        days, or fewer than 50 episodes to learn from.
    changes
        [K] parameters of the system that differ from episode to episode and are known before it: the day's prices.
    ongoing
        Whether episodes follow each other, so that the end of one is no end to plan for (:func:`ucbf.endless`). None:
        unless they differ, as where prices change.
    start
        The first state, in the user's units; the one nearest to 0 if None.
    p
        Chance with which the certificate may fail.
    """
    real("train", train, 0, 1, open_low=True)
    if changes is not None and len(changes) != len(episodes):
        raise ValueError(f"changes has {len(changes)} entries; give one for each of the {len(episodes)} episodes")
    _check_amounts(ready, episodes)
    first, rest = episodes.split(train)
    mixed = len(set(first.kinds)) > 1  # weekdays and weekends, which one law a step would mix up
    together = mixed or len(first) < FEW if pooled is None else pooled
    profiles = {kind: tuple(mean.tolist()) for kind, mean in first.profiles().items()} if together else {}
    seen: dict[tuple[Any, ...], Ready] = {}

    def on(k: int) -> Ready:
        """The system of episode k."""
        change = {} if changes is None else dict(changes[k])
        if together:
            change["profile"] = profiles.get(episodes.kinds[k], tuple(first.profile.tolist()))
        key = tuple((name, tuple(np.ravel(value).tolist())) for name, value in change.items())
        if key not in seen:
            seen[key] = ready.replace(**change)
        return seen[key]

    last = on(len(first) - 1)
    amounts = np.clip(episodes.amounts, *ready.amount_range)  # beyond it by less than half a unit
    w = np.concatenate([on(k).disturbances(amounts[k : k + 1]) for k in range(len(episodes))])
    agent = UCBVIf(last.system, stationary=together)
    agent.warm_start(w[: len(first)])
    goes_on = len(seen) == 1 if ongoing is None else ongoing
    if goes_on:
        agent = agent.moved_to(endless(last.system, agent.law))
    states = last.system.states
    begin = min(max(0, states[0]), states[-1]) if start is None else int(last.units(start))
    if begin not in states:
        raise UserError(f"start is {start}; states go from {states[0] * last.unit:g} to {states[-1] * last.unit:g}")
    rewards: dict[str, NDArray[np.float64]] = {}
    if len(rest):
        players = _Field(agent, lambda k: on(len(first) + k), goes_on).players()
        tested = w[len(first) :]
        rewards = {
            name: replay(player, tested, start=begin, accounts=lambda k: on(len(first) + k).system).reward
            for name, player in players.items()
        }
    made = plan(agent.system, agent.law)
    rules = last.rules(agent.law, agent.system)
    return Advice(
        ready=last,
        training=first,
        test=rest,
        agent=agent,
        plan=made,
        policy=last.policy(made, episodes.names, episodes.series.spacing),
        rules={name: last.policy(rule, episodes.names, episodes.series.spacing) for name, rule in rules.items()},
        rewards=rewards,
        independence=independence(w[: len(first)]),
        pooled=together,
        ongoing=goes_on,
        certificate=agent.certificate(p),
        loss=_estimated_loss(agent, w[: len(first)], begin - states[0]),
        start=begin * last.unit,
    )


def _estimated_loss(agent: UCBVIf, w: NDArray[np.int64], first: int) -> float:
    """The bootstrap: what a plan from a resampled history misses if the learned law is the truth; 95 % miss less."""
    world = World(agent.system, agent.law)
    best, rng = float(optimal(world).v[0, first]), np.random.default_rng(0)
    missed = []
    for _ in range(RESAMPLED):
        other = UCBVIf(agent.system, stationary=agent.params["stationary"])
        other.warm_start(w[rng.integers(0, len(w), len(w))])
        missed.append(best - float(evaluate(world, other.policy)[0, first]))
    return float(np.quantile(missed, 0.95))


def _check_amounts(ready: Ready, episodes: Episodes) -> None:
    """An error that names the first amount outside the range of the system."""
    low, high = ready.amount_range
    wrong = np.argwhere((episodes.amounts < low - ready.unit / 2) | (episodes.amounts > high + ready.unit / 2))
    if len(wrong):
        k, h = wrong[0]
        series = episodes.series
        raise UserError(
            f"{series.source}, column {series.name!r}: {ready.amount_name} {episodes.amounts[k, h]:g} (episode of "
            f"{episodes.starts[k]}, step {h + 1}) is outside {low:g}..{high:g}; declare a wider range"
        )


class _Field:
    """Everyone who is compared, each in the system of the day."""

    def __init__(self, agent: UCBVIf, on: Callable[[int], Ready], ongoing: bool) -> None:
        self.agent, self.on, self.law = agent, on, agent.law
        self.ahead = agent.system if ongoing else None  # where business goes on, all days are alike
        self._made: dict[int, dict[str, Policy]] = {}

    def policies(self, today: Ready) -> dict[str, Policy]:
        """As learned, and the rules, all told the same law."""
        if id(today) not in self._made:
            system = self.ahead or today.system
            actions = {LEARNED: plan(system, self.law).policy, **today.rules(self.law, system)}
            self._made[id(today)] = {name: today.policy(policy) for name, policy in actions.items()}
        return self._made[id(today)]

    def players(self) -> dict[str, Callable[[int], Player]]:
        """By name: who plays in an episode."""
        names = self.policies(self.on(0))
        return {name: self._follower(name) for name in names} | {LEARNING: self._learner()}

    def _follower(self, name: str) -> Callable[[int], Player]:
        return lambda k: self.policies(self.on(k))[name]

    def _learner(self) -> Callable[[int], Player]:
        """The agent, which goes on learning and takes what it knows into the next day's system."""
        now = [self.agent.moved_to(self.agent.system)]

        def learner(k: int) -> Player:
            system = self.ahead or self.on(k).system
            if now[0].system is not system:
                now[0] = now[0].moved_to(system)
            return now[0]

        return learner


# -- in words -----------------------------------------------------------------------------------------------


def summary(advice: Advice) -> str:
    """One page in Markdown."""
    parts = [_of_the_data(advice), _of_the_policy(advice), _of_its_worth(advice)]
    if advice.rewards:
        parts.append(_of_the_comparison(advice))
    return "\n\n".join(parts) + "\n"


def _of_the_data(advice: Advice) -> str:
    ready, training, test, series = advice.ready, advice.training, advice.test, advice.training.series
    last = (test if len(test) else training).starts[-1]
    return (
        f"# {ready.kind.capitalize()}: a policy from {series.source}\n\n"
        f"Column {series.name!r}, {len(series)} rows; episodes of {ready.horizon} steps, the first from "
        f"{training.starts[0]}, the last from {last}. {len(training)} were learned from, {len(test)} kept to judge by. "
        f"Amounts are in multiples of {ready.unit:g}."
    )


def _of_the_policy(advice: Advice) -> str:
    rules = "\n".join(f"- {line}" for line in str(advice.policy).splitlines())
    return f"## What to do\n\n{rules}\n\nThe whole table is in policy.csv, a picture of it in policy.png."


def _of_its_worth(advice: Advice) -> str:
    ready, amount, certificate = advice.ready, advice.ready.amount_name, advice.certificate
    bound = float(certificate.gap[advice.first])
    share = (
        f"One law serves all steps, around the mean {amount} of each: the spread is taken to be the same."
        if advice.pooled
        else "Every step has a law of its own."
    )
    lines = [
        f"Expected: {advice.value:.5g} an episode"
        + ("" if advice.ongoing else f" from a {ready.state_name} of {advice.start:g}")
        + f", if the {amount} goes on as it was.",
        f"Estimated loss from not knowing the law of the {amount} any better: {advice.loss:.3g} an episode at most, in "
        "95 % of resampled histories.",
        f"Proved, for independent steps: with {1 - certificate.p:.0%} probability no policy gets more than {bound:.4g} "
        "an episode above it" + ("." if bound < abs(advice.value) else "; so few episodes prove next to nothing."),
        f"Assumed: {advice.independence}. {share}",
    ]
    if not advice.independence.ok:
        lines.append(
            f"What one step says of the next is not used. A forecast of the {amount} would use it: W is then its error."
        )
    return "## What it is worth\n\n" + "\n".join(f"- {line}" for line in lines)


def _of_the_comparison(advice: Advice) -> str:
    rows, n = advice.comparison(), len(advice.test)
    others = [row for row in rows if row["policy"] != LEARNED]
    groups = {
        "Better than the learned policy": [row["policy"] for row in others if row["high"] < 0],
        "not to be told apart from it": [row["policy"] for row in others if row["low"] <= 0 <= row["high"]],
        "worse": [row["policy"] for row in others if row["low"] > 0],
    }
    verdict = "; ".join(f"{what}: {', '.join(names) or 'none'}" for what, names in groups.items())
    cells = [
        [r["policy"], f"{r['reward']:.5g}", f"{r['ahead']:+.4g} ({r['low']:+.4g}, {r['high']:+.4g})"] for r in rows
    ]
    table = markdown_table(["policy", "reward an episode", "learned is ahead by (95 %)"], cells)
    return f"## In the {n} episodes that followed\n\n{verdict}.\n\n{table.strip()}"


# -- sensible parameters ------------------------------------------------------------------------------------


def nice(x: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... and 0.5, 0.2, ... that is not below x."""
    exponent = np.floor(np.log10(max(x, 1e-300)))
    return float(next(m * 10.0**exponent for m in (1, 2, 5, 10) if m * 10.0**exponent >= x * (1 - 1e-9)))


def suggested(kind: type[Ready], amounts: NDArray[np.float64], given: dict[str, Any]) -> dict[str, Any]:
    """Parameters for a series: those given, and for the sizes that were not, what the series suggests."""
    size = float(np.abs(amounts).max()) or 1.0
    whole_ones = bool(np.array_equal(amounts, np.rint(amounts)))
    unit = float(given.get("unit") or max(nice(size / 40), 1.0 if whole_ones else 0.0))

    def up(x: float) -> float:
        return float(np.ceil(x / unit - 1e-9) * unit)

    sizes = kind.sizes(float(amounts.min()), float(amounts.mean()), float(amounts.max()))
    fits = {name: tuple(map(up, x)) if isinstance(x, tuple) else up(x) for name, x in sizes.items()}
    return {"unit": unit, **fits, **{name: value for name, value in given.items() if value is not None}}
