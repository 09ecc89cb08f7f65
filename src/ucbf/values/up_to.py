"""Rules for actions that are amounts: each part goes up to a level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ucbf.large import LargeSystem, Rows
from ucbf.values.paths import Rule
from ucbf.values.trials import Trial, narrowed

MOST_GAPS = 40  # that are tried
REACHED = 0.05  # of the actions, or more: the largest is a bound, and no chance
SEARCHED = {"capped": ["most"], "weighted": ["most"], "(s, S)": ["gap"]}  # besides levels


@dataclass(frozen=True, eq=False)
class UpTo:
    """Every part i of the action is ``level[i] - weights[i] @ s``, between 0 and ``most[i]``, cut to what exists.

    With all weights 1 it is a base-stock rule, with a ``most`` below the largest action a capped one, with other
    weights a weighted-pipeline rule, with weights 0 a constant action. With ``gap[i]`` above 0 nothing less than that
    is ordered: an (s, S) rule with S = level and s = level - gap.
    """

    system: LargeSystem
    level: NDArray[np.float64]  # [m]
    weights: NDArray[np.float64]  # [m, d]
    most: NDArray[np.float64]  # [m]
    gap: NDArray[np.float64]  # [m]

    def __call__(self, h: int, s: Rows) -> Rows:
        """[N, m] actions in states [N, d]."""
        return _ordered(self, h, s, s @ self.weights.T)

    @classmethod
    def stacked(cls, rules: Sequence[UpTo], n: int) -> Rule:
        """Several rules as one, each for its own n rows."""
        level, most, gap = (
            np.repeat(np.stack([getattr(rule, name) for rule in rules]), n, axis=0) for name in ("level", "most", "gap")
        )
        weights = np.stack([rule.weights for rule in rules]).transpose(0, 2, 1)
        one = UpTo(rules[0].system, level, weights, most, gap)
        return lambda h, s: _ordered(one, h, s, (s.reshape(len(rules), n, -1) @ weights).reshape(len(s), -1))

    def __str__(self) -> str:
        parts = []
        for level, weights, most, gap in zip(self.level, self.weights, self.most, self.gap, strict=True):
            held = np.flatnonzero(weights)
            of = "all" if len(held) == len(weights) else f"the first {len(held)}"
            of += "" if (weights[held] == 1).all() else ", weighted by " + ", ".join(f"{x:.3g}" for x in weights[held])
            text = f"up to {level:g} of {of}, at most {most:g}" if len(held) else f"{level:g}"
            parts.append(text + (f", nothing below {gap:g}" if gap > 0 else ""))
        return "; ".join(parts)


def _ordered(rule: UpTo, h: int, s: Rows, held: Rows) -> Rows:
    """[N, m] the actions of rules that hold so much [N, m] already."""
    system, wanted = rule.system, rule.level - held
    wanted = np.where((rule.gap > 0) & (wanted < rule.gap), 0.0, wanted)
    wanted = np.clip(wanted, system.action_low, np.minimum(rule.most, system.action_high))
    return system.existing(h, s, wanted if system.continuous else system.actions[system.at_most(wanted)])


def search_up_to(trial: Trial, kind: str) -> tuple[UpTo, float]:
    """The best rule of a kind that was found, and what it earned."""
    system = trial.system
    m, d = system.n_parts, system.n_axes
    starts = [np.zeros((m, d))] if kind == "constant" else _starts(m, d, system.free_parts)
    shares = np.linspace(0, 1, 5) if kind == "(s, S)" else [0.0]  # of the largest action: nothing less is ordered
    gaps = [np.floor(share * np.maximum(system.action_high, 0)) for share in shares]
    looked = trial.of_first(max(len(trial.w) // 4, 20))  # where to begin
    blank = UpTo(system, np.zeros(m), np.zeros((m, d)), np.array(system.action_high, float), np.zeros(m))
    found = [_looked(looked, replace(blank, weights=weights, gap=gap)) for weights in starts for gap in gaps]
    rule, worth = _climbed(trial, max(found, key=lambda one: one[1])[0], kind)
    return _weighted(trial, rule, worth) if kind == "weighted" else (rule, worth)


def _starts(m: int, d: int, free: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    """Which coordinates each part of the action looks at: all; of two parts also none, or the first."""
    looks = [np.ones(d), np.eye(d)[0], np.zeros(d)]
    found = []
    for index in np.ndindex(*[3] * len(free)) if len(free) == 2 else [(0,) * len(free)]:
        weights = np.zeros((m, d))
        weights[free] = [looks[i] for i in index]
        found.append(weights)
    return found


def _span(rule: UpTo) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[m] the least level that makes a difference, and how far the largest is from it."""
    system = rule.system
    span = np.abs(rule.weights) @ (system.high - system.low) + (system.action_high - system.action_low)
    return rule.weights @ system.low + system.action_low, span


def _looked(trial: Trial, rule: UpTo) -> tuple[UpTo, float]:
    """The best levels of a few, one part after another: far from the best all are alike, and no step would help."""
    low, span = _span(rule)
    rule, whole = replace(rule, level=low + span / 2), not rule.system.continuous
    best = float(trial.worth([rule])[0])
    for i in rule.system.free_parts:
        grid = np.linspace(low[i], low[i] + span[i], 33)
        rule, best = _better(trial, rule, best, [_with(rule, "level", i, x, whole) for x in grid])
    return rule, best


def _climbed(trial: Trial, rule: UpTo, kind: str) -> tuple[UpTo, float]:
    """Levels, largest actions and gaps, one after another, by steps that are halved."""
    system, free = rule.system, rule.system.free_parts
    _, span = _span(rule)
    names = ["level", *SEARCHED.get(kind, [])]
    whole = not system.continuous
    sizes: dict[str, NDArray[np.float64]] = {
        "level": span / 16,
        "most": (system.action_high - system.action_low) / 2,
        "gap": (system.action_high - system.action_low) / 4,
    }
    best = float(trial.worth([rule])[0])
    while True:
        moved = False
        for name in names:
            for i in free:
                size = max(sizes[name][i], 1.0) if whole else sizes[name][i]
                tried = [_with(rule, name, i, getattr(rule, name)[i] + x * size, whole) for x in (-2, -1, 1, 2)]
                if name == "most":  # a lower cap wants a higher level
                    tried += [_with(one, "level", i, one.level[i] + 2 * size, whole) for one in tried[:2]]
                if name == "gap":  # s alone moves, or S alone
                    tried += [_with(one, "level", i, one.level[i] + one.gap[i] - rule.gap[i], whole) for one in tried]
                before = best
                rule, best = _better(trial, rule, best, tried)
                moved |= best > before
        if not moved:
            smallest = 1.0 if whole else 1e-3
            if all((sizes[name] <= np.maximum(smallest, 1e-3 * span)).all() for name in names):
                return rule, best
            for name in names:
                sizes[name] = sizes[name] / 2


def _with(rule: UpTo, name: str, i: int, x: float, whole: bool) -> UpTo:
    """The rule with another number in one place."""
    values = np.array(getattr(rule, name), float)
    values[i] = np.rint(x) if whole else x
    if name in ("most", "gap"):
        values[i] = np.clip(values[i], max(rule.system.action_low[i], 0.0), rule.system.action_high[i])
    return UpTo(**{**vars(rule), name: values})


def _better(trial: Trial, rule: UpTo, best: float, tried: list[UpTo]) -> tuple[UpTo, float]:
    worths = trial.worth(tried)
    i = int(worths.argmax())
    return (tried[i], float(worths[i])) if worths[i] > best else (rule, best)


def _weighted(trial: Trial, rule: UpTo, best: float) -> tuple[UpTo, float]:
    """Weights, and levels with them, that are drawn around those of a rule."""
    (m, d), width = rule.weights.shape, rule.system.action_high - rule.system.action_low
    centre = np.concatenate([rule.level, rule.most, rule.weights.ravel()])
    spread = np.concatenate([width / 10, width / 20, np.full(m * d, 0.15)])

    def made(row: NDArray[np.float64]) -> UpTo:
        return replace(rule, level=row[:m], most=np.maximum(row[m : 2 * m], 0), weights=row[2 * m :].reshape(m, d))

    found = narrowed(lambda rows: trial.worth([made(row) for row in rows]), centre, spread, drawn=24, rounds=15)
    return _better(trial, rule, best, [made(row) for row in found])


def imitated_up_to(system: LargeSystem, s: Rows, a: Rows) -> UpTo:
    """The rule that does about the same as actions [N, m] in states [N, d]: each part linear, within bounds."""
    m, d = system.n_parts, system.n_axes
    level, weights, most = np.zeros(m), np.zeros((m, d)), a.max(axis=0)
    most = np.where((a == most).mean(axis=0) >= REACHED, most, system.action_high).astype(float)
    for i in system.free_parts:
        inside = (a[:, i] > system.action_low[i]) & (a[:, i] < most[i])
        rows = inside if inside.sum() > 10 * d else np.ones(len(a), np.bool_)
        x = np.concatenate([np.ones((len(s), 1)), s], axis=1)[rows]
        gram = x.T @ x / len(x) + 1e-8 * np.eye(d + 1)
        found = np.linalg.solve(gram, x.T @ a[rows, i] / len(x))
        level[i], weights[i] = found[0], -found[1:]
        if not system.continuous:
            level[i] += 0.5 * np.diff(np.unique(system.actions[:, i])).min()  # the nearest, not the one below
    rule = UpTo(system, level, weights, most, np.zeros(m))
    for i in system.free_parts:  # the gap with which it is wrong by least
        gaps = [0.0, *np.unique(a[:, i][a[:, i] > 0])[:MOST_GAPS]]
        rules = [_with(rule, "gap", i, gap, not system.continuous) for gap in gaps]
        rule = min(rules, key=lambda one: float(np.abs(one(0, s)[:, i] - a[:, i]).mean()))
    return rule
