"""Rules that order up to levels: a base and a yardstick for values that are fitted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ucbf.disturbance import Disturbance
from ucbf.large import LargeSystem, Rows
from ucbf.values.paths import Outcomes, middle, walk

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

    def __str__(self) -> str:
        parts = []
        for level, weights, most, gap in zip(self.level, self.weights, self.most, self.gap, strict=True):
            n = int((weights != 0).sum())
            text = (
                f"{level:g}" if n == 0 else f"up to {level:g} of " + ("all" if n == len(weights) else f"the first {n}")
            )
            text += f", at most {most:g}" if n else ""
            parts.append(text + (f", nothing below {gap:g}" if gap > 0 else ""))
        return "; ".join(parts)


@dataclass(frozen=True)
class Trial:
    """Common random numbers for all the rules that are compared."""

    system: LargeSystem
    w: Rows  # [N, T, k]
    warm_up: int

    def worth(self, rules: list[UpTo]) -> NDArray[np.float64]:
        """[P] what each rule earns: a step, or in an episode, or discounted."""
        system = self.system
        n, steps = self.w.shape[:2]
        s, w = middle(system, n * len(rules)), np.concatenate([self.w] * len(rules))
        stacked = Stacked(rules, n)
        earned, s = walk(system, stacked, s, w)
        if system.horizon is None and system.discount == 1:
            return np.asarray(earned[:, self.warm_up :].mean(axis=1).reshape(-1, n).mean(axis=1))
        total = earned @ system.discount ** np.arange(steps)
        if system.horizon is not None:
            total = total + system.discount**steps * system.ended(s)
        return np.asarray(total.reshape(-1, n).mean(axis=1))


class Stacked:
    """Several rules, each for its own n rows."""

    def __init__(self, rules: list[UpTo], n: int) -> None:
        self.system = rules[0].system
        self.level, self.most, self.gap = (
            np.repeat(np.stack([getattr(rule, name) for rule in rules]), n, axis=0) for name in ("level", "most", "gap")
        )
        self.weights, self.n = [rule.weights for rule in rules], n

    def __call__(self, h: int, s: Rows) -> Rows:
        """[N, m] actions in states [N, d]."""
        held = np.concatenate([s[i * self.n : (i + 1) * self.n] @ w.T for i, w in enumerate(self.weights)])
        return _ordered(self, h, s, held)


def _ordered(rule: UpTo | Stacked, h: int, s: Rows, held: Rows) -> Rows:
    """[N, m] the actions of rules that hold so much [N, m] already."""
    system, wanted = rule.system, rule.level - held
    wanted = np.where((rule.gap > 0) & (wanted < rule.gap), 0.0, wanted)
    wanted = np.clip(wanted, system.action_low, np.minimum(rule.most, system.action_high))
    return system.existing(h, s, wanted if system.continuous else system.actions[system.at_most(wanted)])


def search(
    system: LargeSystem, law: Disturbance, *, kind: str = "capped", chains: int = 100, steps: int = 250, seed: int = 0
) -> tuple[UpTo, float]:
    """The best rule of a kind that was found, and what it earned on common random numbers.

    kind: "constant", "base-stock", "capped" (base-stock with a largest order), "(s, S)", "weighted" (each coordinate
    of the state has a weight of its own)
    """
    kinds = {"constant", "base-stock", "capped", "(s, S)", "weighted"}
    if kind not in kinds:
        raise ValueError(f"kind is {kind!r}; give one of {', '.join(sorted(kinds))}")
    warm_up = steps // 5
    if system.horizon is not None:
        steps = system.horizon
    elif system.discount < 1:
        steps = min(int(np.ceil(np.log(1e-2) / np.log(system.discount))), 500)
    w = Outcomes(system, law).draw(np.random.default_rng(seed), chains, steps)
    trial, m, d = Trial(system, w, warm_up), system.n_parts, system.n_axes
    starts = [np.zeros((m, d))] if kind == "constant" else _starts(m, d, system.free_parts)
    looked = Trial(system, w[: max(chains // 4, 20)], warm_up)  # where to begin
    blank = UpTo(system, np.zeros(m), np.zeros((m, d)), np.array(system.action_high, float), np.zeros(m))
    found = [_looked(looked, replace(blank, weights=weights)) for weights in starts]
    rule, worth = _climbed(trial, max(found, key=lambda one: one[1])[0], kind)
    if kind == "weighted":
        rule, worth = _weighted(trial, rule, worth)
    return rule, worth


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


def _weighted(trial: Trial, rule: UpTo, best: float, rounds: int = 15, drawn: int = 24) -> tuple[UpTo, float]:
    """Weights that are drawn around the best few, ever narrower (the cross-entropy method), levels with them."""
    rng, (m, d) = np.random.default_rng(0), rule.weights.shape
    centre = np.concatenate([rule.level, rule.most, rule.weights.ravel()])
    spread = np.concatenate([np.full(m, 2.0), np.full(m, 1.0), np.full(m * d, 0.15)])

    def made(row: NDArray[np.float64]) -> UpTo:
        return replace(rule, level=row[:m], most=np.maximum(row[m : 2 * m], 0), weights=row[2 * m :].reshape(m, d))

    for _ in range(rounds):
        rows = centre + spread * rng.standard_normal((drawn, len(centre)))
        rows[0] = centre
        worths = trial.worth([made(row) for row in rows])
        elite = rows[np.argsort(-worths)[: drawn // 4]]
        if worths.max() > best:
            rule, best = made(rows[worths.argmax()]), float(worths.max())
        centre, spread = elite.mean(axis=0), 0.5 * spread + 0.5 * elite.std(axis=0)
    return rule, best


def imitated(system: LargeSystem, s: Rows, a: Rows) -> UpTo:
    """The rule that does about the same as actions [N, m] in states [N, d]: each part linear, within bounds."""
    m, d = system.n_parts, system.n_axes
    level, weights, most = np.zeros(m), np.zeros((m, d)), np.array(a.max(axis=0), float)
    for i in system.free_parts:
        inside = (a[:, i] > system.action_low[i]) & (a[:, i] < most[i])
        rows = inside if inside.sum() > 10 * d else np.ones(len(a), np.bool_)
        x = np.concatenate([np.ones((len(s), 1)), s], axis=1)[rows]
        gram = x.T @ x / len(x) + 1e-8 * np.eye(d + 1)
        found = np.linalg.solve(gram, x.T @ a[rows, i] / len(x))
        level[i], weights[i] = found[0], -found[1:]
        if not system.continuous:
            level[i] += 0.5 * np.diff(np.unique(system.actions[:, i])).min()  # the nearest, not the one below
    return UpTo(system, level, weights, most, np.zeros(m))
