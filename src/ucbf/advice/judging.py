"""Who is compared with the learned policy, and how: every policy runs through the test episodes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.planner import Planner
from ucbf.advice.regimes import RegimeAdvice
from ucbf.agents.ucbvi_f import UCBVIf
from ucbf.model_check import ModelWarning
from ucbf.playing import Player, replay
from ucbf.run import Run

LEARNED, STILL_LEARNING, BY_LEVEL = "learned", "still learning", "by the level of the last steps"
ROLLING = "rolling orders"
NOT_RULES = (LEARNED, STILL_LEARNING, BY_LEVEL, ROLLING)
FEWEST_EPISODES = 8  # with fewer, no verdict is given and no loss is estimated
CONFIDENCE = 0.95  # of intervals
Rewards = dict[str, NDArray[np.float64]]  # by the name of a policy: [K] of the test episodes


def judged_policies(planner: Planner) -> list[str]:
    """The names of all that are compared: the learned policy, the rules, and an agent that goes on learning."""
    return [LEARNED, *planner.episode(0).rules, STILL_LEARNING]


def judge(planner: Planner, start: int, done: Callable[[], None]) -> dict[str, Run]:
    """What came of every policy in the test episodes, by its name; empty if there are none.

    start: the first state; done: called after every policy
    """
    training, runs = planner.training, {}
    first = len(training.training_episodes)
    if first == len(training.episodes):
        return {}
    for name in judged_policies(planner):
        player = _still_learning(planner, first) if name == STILL_LEARNING else _fixed(planner, first, name)
        runs[name] = _run_of(player, planner, start)
        done()
    return runs


def learned_rewards(planner: Planner, start: int) -> NDArray[np.float64]:
    """[K] the rewards of the learned policy in the test episodes."""
    return _run_of(_fixed(planner, len(planner.training.training_episodes), LEARNED), planner, start).reward


def rewards_by_level(advised: RegimeAdvice, start: int) -> NDArray[np.float64]:
    """[K] the rewards, in the test episodes, of what is advised by the level of the last steps."""
    training, first = advised.training, len(advised.training.training_episodes)
    E, kinds = len(advised.regimes.names), training.episodes.kinds
    systems = [preset.system.replace(contexts=E) for preset in training.presets]
    return replay(
        lambda k: advised.policies[kinds[first + k]],
        training.disturbances[first:],
        start=start,
        accounts=lambda k: systems[int(training.preset_numbers[first + k])],
        contexts=advised.contexts[first:],
    ).reward


def _run_of(player: Callable[[int], Player], planner: Planner, start: int) -> Run:
    """What came of a policy in the test episodes."""
    training, first = planner.training, len(planner.training.training_episodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # the page tells it
        return replay(
            player,
            training.disturbances[first:],
            start=start,
            accounts=lambda k: training.preset_of(first + k).system,
        )


def _fixed(planner: Planner, first: int, name: str) -> Callable[[int], Player]:
    """By the number of a test episode: the learned policy, or the rule of this name."""

    def player(k: int) -> Player:
        now = planner.episode(first + k)
        if name == LEARNED:
            return now.policy
        if name not in now.rules:
            raise ValueError(f"the rule {name!r} is not there in every episode; leave out the change that adds it")
        return now.rules[name]

    return player


def _still_learning(planner: Planner, first: int) -> Callable[[int], Player]:
    """By the number of a test episode: an agent that learns from each of them; each kind of episode has its own."""
    agents: dict[str, UCBVIf] = {}

    def player(k: int) -> Player:
        if planner.training.quantiles is not None:
            return planner.renewed(first + k)
        now = planner.episode(first + k)
        if now.kind not in agents:
            agents[now.kind] = planner.agent_for(now)
        elif agents[now.kind].system is not now.system:
            agents[now.kind] = agents[now.kind].moved_to(now.system)
        return agents[now.kind]

    return player


def compare(rewards: Rewards) -> list[dict[str, Any]]:
    """A row for each policy, the best first.

    policy: its name; reward: its mean reward in an episode; ahead: how much more the learned policy gets; low, high:
    the 95 % interval of that
    """
    rows = []
    for name, theirs in rewards.items():
        difference = rewards[LEARNED] - theirs
        ahead, reach = float(difference.mean()), half_interval(difference)
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


def half_interval(numbers: NDArray[np.float64], others: int = 0, confidence: float = CONFIDENCE) -> float:
    """Half the width of the confidence interval of a mean, by Student's t; infinite for a single number.

    others: if above 0, the interval of the difference to the mean of so many other numbers with the same spread
    """
    from scipy.special import stdtrit

    n = len(numbers)
    if n < 2:
        return np.inf
    error = float(numbers.std(ddof=1)) * np.sqrt(1 / n + (1 / others if others else 0))
    return float(stdtrit(n - 1, (1 + confidence) / 2) * error)
