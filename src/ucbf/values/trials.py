"""Simple rules compared on common random numbers, and drawn around the best of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ucbf.disturbance import Disturbance
from ucbf.large import LargeSystem, Rows
from ucbf.values.paths import Outcomes, Rule, middle, walk

Floats = NDArray[np.float64]


class Simple(Protocol):
    """A rule that is quick to ask."""

    def __call__(self, h: int, s: Rows, /) -> Rows:
        """[N, m] actions in states [N, d]."""

    @classmethod
    def stacked(cls, rules: Sequence[Self], n: int, /) -> Rule:
        """Several rules as one, each for its own n rows."""


@dataclass(frozen=True)
class Trial:
    """Common random numbers for all the rules that are compared."""

    system: LargeSystem
    w: Rows  # [N, T, k]
    warm_up: int

    @classmethod
    def drawn(cls, system: LargeSystem, law: Disturbance, chains: int, steps: int, seed: int) -> Trial:
        """So many paths; of so many steps where there is no end and all rewards count alike."""
        warm_up = steps // 5
        if system.horizon is not None:
            steps = system.horizon
        elif system.discount < 1:
            steps = min(int(np.ceil(np.log(1e-2) / np.log(system.discount))), 500)
        return cls(system, Outcomes(system, law).draw(np.random.default_rng(seed), chains, steps), warm_up)

    def of_first(self, chains: int) -> Trial:
        """The same with the first of the paths only."""
        return replace(self, w=self.w[:chains])

    def worth(self, rules: Sequence[Simple]) -> Floats:
        """[P] what each rule of a kind earns: a step, or in an episode, or discounted."""
        system = self.system
        n, steps = self.w.shape[:2]
        s, w = middle(system, n * len(rules)), np.concatenate([self.w] * len(rules))
        earned, s = walk(system, type(rules[0]).stacked(rules, n), s, w)
        if system.horizon is None and system.discount == 1:
            return np.asarray(earned[:, self.warm_up :].mean(axis=1).reshape(-1, n).mean(axis=1))
        total = earned @ system.discount ** np.arange(steps)
        if system.horizon is not None:
            total = total + system.discount**steps * system.ended(s)
        return np.asarray(total.reshape(-1, n).mean(axis=1))


def narrowed(
    worth: Callable[[Floats], Floats],
    centre: Floats,
    spread: Floats,
    drawn: int,
    rounds: int,
    elite: float = 0.25,
    kept: float = 0.5,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """The best numbers [D] that were found, and the middle of those drawn last [D].

    They are drawn around the best of the last round, ever narrower (the cross-entropy method).

    worth: of rows [P, D]
    elite: the share of the rows that are the best
    kept: how much of the spread of a round the next one keeps, whatever that of the best is
    """
    rng = np.random.default_rng(seed)
    best, most = centre, -np.inf
    for _ in range(rounds):
        rows = centre + spread * rng.standard_normal((drawn, len(centre)))
        rows[0], rows[1] = best, centre
        worths = worth(rows)
        if worths.max() > most:
            best, most = rows[worths.argmax()], worths.max()
        few = rows[np.argsort(-worths, kind="stable")[: int(drawn * elite)]]
        centre, spread = few.mean(axis=0), kept * spread + (1 - kept) * few.std(axis=0)
    return best, centre
