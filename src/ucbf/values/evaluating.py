"""What a rule is worth in the states that it visits, and what pairs are worth under it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ucbf.large import LargeSystem, Rows
from ucbf.values.ahead import Ahead
from ucbf.values.pairs import Q, Terms
from ucbf.values.paths import Estimate, Outcomes, Rule, walk

SHIFTED = 0.3  # of the actions that are learned from
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # the one that errs least on states left out is taken
FARTHEST = 40  # steps ahead that are looked at, to see how long an action takes to show
SHOWN = 0.8  # of what an action changes within them
ANEW = 10  # one path in so many begins in the first state
SPACING = 5  # steps from one state of a path that is kept to the next
MOST_SETTLING = 5_000  # steps


@dataclass(frozen=True)
class Judged:
    """How a rule did."""

    by_path: NDArray[np.float64]  # [N] what it earned
    residual: float  # standard deviation of c + γ E Q(s', π(s')) - Q(s, π(s)): how far Q is off

    @property
    def worth(self) -> Estimate:
        """What the rule earns."""
        return Estimate.of(self.by_path)

    def over(self, other: Judged) -> Estimate:
        """How much more it earns than another rule, judged on paths with the same disturbances."""
        return Estimate.of(self.by_path - other.by_path)


@dataclass(frozen=True)
class Equations:
    """``Σ ψ̃ [θᵀ(ψ - γ E ψ') + g - known] = 0``, ψ̃ = (ψ, 1): a row for each state."""

    left: NDArray[np.float64]  # [n, F + 1] ψ̃
    right: NDArray[np.float64]  # [n, F + 1] ψ - γ E ψ', 1
    known: NDArray[np.float64]  # [n]

    def and_also(self, other: Equations) -> Equations:
        """Those of more states."""
        return Equations(*(np.concatenate([getattr(one, name) for one in (self, other)]) for name in vars(self)))

    def solved(self) -> NDArray[np.float64]:
        """[F] θ, with the ridge that errs least on a fifth of the states, left out."""
        aside = np.arange(len(self.known)) % 5 == 0

        def errs(ridge: float) -> float:
            return float(np.var(self.known[aside] - self.right[aside] @ self._solved(~aside, ridge)))

        return self._solved(np.ones(len(aside), np.bool_), min(RIDGES, key=errs))[:-1]

    def _solved(self, rows: NDArray[np.bool_], ridge: float) -> NDArray[np.float64]:
        left, right, known = self.left[rows], self.right[rows], self.known[rows]
        matrix = left.T @ right / len(known) + ridge * np.eye(left.shape[1])
        return np.asarray(np.linalg.solve(matrix, left.T @ known / len(known)))


class Work:
    """Paths that rules are followed along, and the equations that they give."""

    def __init__(
        self, system: LargeSystem, outcomes: Outcomes, rng: np.random.Generator, start: Rows, samples: int
    ) -> None:
        self.system, self.outcomes, self.rng = system, outcomes, rng
        self.chains = max(50, samples // 20)
        self.kept = samples // self.chains  # states of each path
        self.start = start
        self.first = np.repeat(self.start[None], self.chains, axis=0)

    def begin(self, base: Rule) -> None:
        """Let paths begin, from now on, in states that the base visits, and some of them in the first state."""
        self.first = self._anew(self._settled(self.first, base, 200))

    def _anew(self, s: Rows) -> Rows:
        """States, one in so many of them replaced by the first: no rule may fail there, though it never comes back."""
        return np.where((np.arange(len(s)) % ANEW == 0)[:, None], self.start, s)

    @contextmanager
    def _drawing(self, seed: int) -> Iterator[None]:
        """All that is drawn within comes from a seed, so that rules meet the same disturbances."""
        before, self.rng = self.rng, np.random.default_rng(seed)
        try:
            yield
        finally:
            self.rng = before

    # -- paths ------------------------------------------------------------------------------------

    def visited(self, rule: Rule, seed: int, times: int = 1) -> Rows:
        """[samples, d] states that a rule visits, or some times as many; those of one path in one block of rows.

        seed: of the disturbances, the same for rules that are compared
        """
        with self._drawing(seed):
            s, kept = self._settled(self.first, rule, 40), []
            for _ in range(times * self.kept):
                kept.append(s)
                s, _ = self._walk(s, rule, SPACING)
        return np.stack(kept, axis=1).reshape(-1, self.system.n_axes)

    def around(self, rule: Rule, visited: Rows) -> Rows:
        """[samples, d] states that it leads to from those that it visits, some actions shifted."""
        s, kept = visited[self.rng.permutation(len(visited))[: self.chains]], []
        for _ in range(self.kept):
            s, _ = self._walk(s, rule, SPACING, shifted=SHIFTED)
            kept.append(s)
        return np.concatenate(kept)

    def _settled(self, s: Rows, rule: Rule, steps: int) -> Rows:
        """Where a rule leads in so many steps, or twice as many, and so on, until what it earns moves no more.

        That is seen in the later half of the steps, so that paths that begin anew do not count as moving.
        """
        while True:
            s, earned = self._walk(s, rule, steps)
            later, earlier = earned[:, -steps // 4 :], earned[:, -steps // 2 : -steps // 4]
            moved = later.mean(axis=1) - earlier.mean(axis=1)
            if abs(moved.mean()) <= 2 * moved.std() / np.sqrt(len(moved)) or 2 * steps > MOST_SETTLING:
                return s
            steps *= 2

    def _walk(self, s: Rows, rule: Rule, steps: int, shifted: float = 0.0) -> tuple[Rows, NDArray[np.float64]]:
        """Where a rule leads, and what it earns on the way [N, steps].

        Where later rewards count less, paths begin anew, with probability 1 - γ. shifted: the share of actions that are
        replaced by others nearby
        """
        earned = np.empty((len(s), steps))
        for t in range(steps):
            w = self.outcomes.draw(self.rng, len(s))
            earned[:, t], then = self.system.step(0, s, self.shifted(s, rule(0, s), shifted), w)
            again = self.rng.random(len(s)) >= self.system.discount
            s = np.where(again[:, None], self.start, then)
        return s, earned

    def shifted(self, s: Rows, a: Rows, share: float) -> Rows:
        """[N, m] actions, some of them replaced by others nearby."""
        system, rng = self.system, self.rng
        moved = rng.random(len(s)) < share
        if not moved.any():
            return a
        if system.continuous:
            near = a + rng.normal(size=a.shape) * (system.action_high - system.action_low) / 10
            other = np.clip(near, system.action_low, system.action_high)
        else:
            index = system.neighbours[system.at_most(a)]
            other = system.actions[index[np.arange(len(s)), rng.integers(index.shape[1], size=len(s))]]
        moved &= system.allows(0, s, other)
        return np.where(moved[:, None], other, a)

    def wins(self, one: Rule, other: Rule, steps: int = 300) -> bool:
        """Whether one rule earns more than another, by common random numbers; beyond chance."""
        w, first = self.outcomes.draw(self.rng, 4 * self.chains, steps), np.concatenate([self.first] * 4)
        weights = self.system.discount ** np.arange(steps)
        earned = [walk(self.system, rule, first, w)[0] @ weights for rule in (one, other)]
        gain = earned[0] - earned[1]
        return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))

    # -- what pairs are worth -----------------------------------------------------------------------

    def begun(self, base: Rule, paths: int) -> Q:
        """What pairs are worth under a base, with so many paths ahead; other rules begin where it leads."""
        self.begin(base)
        visited = self.visited(base, int(self.rng.integers(2**63)))
        q = self._looking_ahead(base, paths, self.around(base, visited))
        return q.weighted(self.equations(base, q, visited).solved())

    def far_ahead(self, base: Rule, paths: int) -> Q:
        """What pairs are worth by what the base earns after them alone, as many steps ahead as are ever looked at."""
        return self._looking_ahead(base, paths, self.around(base, self.first), far=True)

    def _looking_ahead(self, base: Rule, paths: int, s: Rows, far: bool = False) -> Q:
        """Q without weights yet, for states such as these."""
        system, rng = self.system, self.rng
        ahead = Ahead(system, base, self.outcomes, self.outcomes.paths(rng, paths, FARTHEST))
        ahead = ahead if far else self._long_enough(ahead, s)
        a = self.shifted(s, base(0, s), 1.0)
        terms = Terms.of(system.after(0, s, a), ahead.rewards(s, a))
        return Q(ahead, terms, np.zeros(len(terms.centre)))

    def _long_enough(self, ahead: Ahead, s: Rows) -> Ahead:
        """As many steps as an action takes to show most of what it changes."""
        system, rng = self.system, self.rng
        s = s[rng.integers(len(s), size=100)]
        a = ahead.rule(0, s)
        if system.continuous:
            low, high, size = system.action_low, system.action_high, (system.action_high - system.action_low) / 10
            other = np.clip(a + np.where(a + size > high, -size, size), low, high)
        else:
            index = system.neighbours[system.at_most(a)]
            other = system.actions[index[np.arange(len(s)), 1 + rng.integers(index.shape[1] - 1, size=len(s))]]
            other = np.where(system.allows(0, s, other)[:, None], other, a)
        changed = np.abs(ahead.rewards(s, a) - ahead.rewards(s, other)).mean(axis=0)
        changed *= system.discount ** np.arange(ahead.steps)
        if not changed.sum():
            return ahead.shortened(1)
        shown = np.cumsum(changed) / changed.sum()
        return ahead.shortened(int((shown >= SHOWN).argmax()) + 1)

    def _follows(self, rule: Rule, q: Q, s: Rows, a: Rows) -> tuple[NDArray[np.float64], ...]:
        """What pairs earn on average [N], and the means [N] and [N, F] of the two parts of Q that follow."""
        system, n = self.system, len(s)
        w, weight = self.outcomes.around(self.rng, n)
        M = len(weight)
        z = (system.after(0, s, a)[:, None, :] + w).reshape(n * M, -1)
        earned = system.paid(0, s, a) + system.landed(0, z).reshape(n, M) @ weight
        then, which = np.unique(system.met(z), axis=0, return_inverse=True)
        base, psi = q.parts(then, rule(0, then))
        which = which.reshape(n, M)
        return earned, base[which] @ weight, np.einsum("nmf,m->nf", psi[which], weight)

    def equations(self, rule: Rule, q: Q, visited: Rows) -> Equations:
        """What the weights of Q have to satisfy, under a rule that visits these states."""
        g, s = self.system.discount, self.around(rule, visited)
        a = self.shifted(s, rule(0, s), SHIFTED)
        (b, x), (c, base, psi) = q.parts(s, a), self._follows(rule, q, s, a)
        left, right = (np.concatenate([one, np.ones((len(x), 1))], axis=1) for one in (x, x - g * psi))
        return Equations(left, right, c + g * base - b)

    def judge(self, rule: Rule, q: Q, visited: Rows, seed: int) -> Judged:
        """How a rule does on states that it visits, and how far Q is off there.

        ``γ E Q(s', π(s')) - Q(s, π(s))`` is 0 on average, or known, and varies as the rewards of a path do: as much of
        it is added as makes the paths most alike.
        """
        g, a = self.system.discount, rule(0, visited)
        with self._drawing(seed):
            (b, x), (c, base, psi) = q.parts(visited, a), self._follows(rule, q, visited, a)
        off = g * (base + psi @ q.theta) - (b + x @ q.theta)
        earned, known = (one.reshape(self.chains, -1).mean(axis=1) for one in (c, off))
        if g < 1:
            first = self.start[None]
            earned, known = earned / (1 - g), known / (1 - g) + q(first, rule(0, first))
        away = known - known.mean()
        share = -float(earned @ away) / max(float(away @ away), 1e-300)
        return Judged(earned + share * known, float((c + off).std()))
