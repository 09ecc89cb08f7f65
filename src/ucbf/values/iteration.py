"""Least-squares policy iteration, for systems without an end.

What a pair (s, a) is worth is ``Q(s, a) = Σ_{j<J} γ^j r_j(s, a) + θᵀψ(f(s, a))``: r_j is what step j earns, on average
over fixed paths of W, if a simple rule (the base) acts after a; J is how long an action takes to show. ψ are the linear
and quadratic terms of the after-state, which account for what comes later and for acting better than the base.

Each round evaluates the present rule: θ and the gain g solve ``Σ ψ̃ [Q(s, a) - c(s, a) + g - γ E Q(s', π(s'))] = 0``,
ψ̃ = (ψ, 1), over states that the rule visits, some of the actions shifted. c and E are over all values of W (or some
drawn for each state), so that nothing but the states is random. The next rule is greedy for Q.

A rule is judged on states that it visits itself: ``mean of c + γ E Q(s', π(s')) - Q(s, π(s))`` is its gain, whatever Q
is, and its variance is small where Q is nearly right. What is returned is the best rule, the base among them, and its
gain is measured once more.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import whole
from ucbf.disturbance import Disturbance
from ucbf.large import LargeSystem, Rows
from ucbf.values.ahead import Ahead
from ucbf.values.choosing import ALL_TRIED, best_actions
from ucbf.values.paths import Estimate, FitWarning, Outcomes, Rule, middle, walk
from ucbf.values.up_to import UpTo, imitated, search

SHIFTED = 0.3  # of the actions that are learned from
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)  # the one that errs least on states left out is taken
FARTHEST = 40  # steps ahead that are looked at, to see how long an action takes to show
REBASED = 2  # times that the base may be replaced by a better one
POOR = 0.05  # an estimate whose standard error is a larger share says little
SHOWN = 0.8  # of what an action changes within them


@dataclass(frozen=True)
class Terms:
    """ψ: linear and quadratic terms of after-states, and what each step ahead earns; of mean 0 and deviation 1."""

    axes: NDArray[np.int64]  # the coordinates of after-states that vary
    mean: NDArray[np.float64]  # of these
    scale: NDArray[np.float64]
    centre: NDArray[np.float64]  # [F] of the terms
    spread: NDArray[np.float64]

    @classmethod
    def of(cls, x: Rows, ahead: NDArray[np.float64]) -> Terms:
        """The terms that suit after-states [N, k] and what the steps ahead earn [N, J]."""
        axes = np.flatnonzero(x.std(axis=0) > 0)
        plain = cls(axes, x[:, axes].mean(axis=0), x[:, axes].std(axis=0), np.zeros(0), np.zeros(0))
        terms = plain._terms(x, ahead)
        spread = terms.std(axis=0)
        return cls(axes, plain.mean, plain.scale, terms.mean(axis=0), np.where(spread > 1e-9, spread, np.inf))

    def _terms(self, x: Rows, ahead: NDArray[np.float64]) -> NDArray[np.float64]:
        y = (x[:, self.axes] - self.mean) / self.scale
        first, second = np.triu_indices(len(self.axes))
        return np.concatenate([y, y[:, first] * y[:, second], ahead], axis=1)

    def __call__(self, x: Rows, ahead: NDArray[np.float64]) -> NDArray[np.float64]:
        """[N, F] of after-states [N, k]."""
        return (self._terms(x, ahead) - self.centre) / self.spread


@dataclass(frozen=True)
class Q:
    """What pairs are worth, but for a constant."""

    ahead: Ahead
    terms: Terms
    theta: NDArray[np.float64]  # [F]

    def parts(self, s: Rows, a: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[N] what the next J steps earn with the base after actions [N, m], and ψ [N, F]."""
        system, earned = self.ahead.system, self.ahead.rewards(s, a)
        return earned @ system.discount ** np.arange(self.ahead.steps), self.terms(system.after(0, s, a), earned)

    def __call__(self, s: Rows, a: Rows) -> NDArray[np.float64]:
        """[N] of states [N, d] and actions [N, m]."""
        base, psi = self.parts(s, a)
        return base + psi @ self.theta


@dataclass(frozen=True)
class Greedy:
    """The rule that takes the best action, by Q; actions near those of the base are tried first."""

    q: Q

    def __call__(self, h: int, s: Rows) -> Rows:
        """[N, m] actions in states [N, d]."""
        system = self.q.ahead.system
        return best_actions(system, 0, s, self.q.ahead.rule(0, s), self.q)[0]


@dataclass(frozen=True)
class Fitted:
    """A rule that was found by fitting, and how it was judged.

    Call it with a step and states [N, d] for actions [N, m].
    """

    rule: Rule
    base: Rule
    q: Q  # by which the rule was judged
    worth: Estimate  # of the rule: a step, or discounted from the first state
    base_worth: Estimate
    rounds: tuple[Estimate, ...]  # of the base, and of the rule of each round; of few actions, again from any action
    residual: float  # standard deviation of c + γ E V(s') - V(s), on states that were not fitted to
    steps_ahead: int  # J

    def __call__(self, h: int, s: Rows) -> Rows:
        """[N, m] actions in states [N, d]."""
        return self.rule(h, s)

    @property
    def is_base(self) -> bool:
        """Whether nothing that was fitted did better than the base."""
        return self.rule is self.base

    def measured(
        self, law: Disturbance, rule: Rule | None = None, *, start: Any = None, samples: int = 2000, seed: int = 0
    ) -> Estimate:
        """What this rule earns, or another, under a distribution of W, with a small standard error.

        The mean of ``c + γ E Q(s', π(s')) - Q(s, π(s))`` over states that the rule visits: right whatever Q is, and
        precise where Q is nearly right. It is of the states after 240 steps of the rule; discounted, of those from
        ``start`` on.
        """
        rule, system = self.rule if rule is None else rule, self.q.ahead.system
        work = _Work(system, Outcomes(system, law), np.random.default_rng(seed), start, samples)
        work.begin(rule)
        return work.judge(rule, self.q)[0]

    def __str__(self) -> str:
        found = "no fitted rule did better than the base" if self.is_base else "a fitted rule"
        return (
            f"{found}: {self.worth} by simulation (an estimate), the base {self.base_worth}; looks {self.steps_ahead} "
            f"steps ahead, residual {self.residual:.3g}"
        )


def policy_iteration(
    system: LargeSystem,
    law: Disturbance,
    *,
    base: Rule | None = None,
    start: Any = None,
    rounds: int = 3,
    samples: int | None = None,
    paths: int | None = None,
    seed: int = 0,
) -> Fitted:
    """A rule for a system without an end, by least-squares policy iteration.

    Parameters
    ----------
    system, law
        The system, and the distribution of W, the same at every step.
    base
        A rule to begin with and to look ahead with, from the step and states [N, d] to actions [N, m]. None: one that
        orders up to levels, the best that a search finds.
    start
        [d] the first state; the one nearest to zero if None.
    rounds
        How often the rule is improved.
    samples
        States in which a rule is evaluated in a round. None: some 20 for each of the terms, 300 to 1,000.
    paths
        Fixed paths over which steps ahead are averaged. None: 512 where a preset has compiled mechanics, else 32.
    seed
        Of all that is drawn.
    """
    if system.horizon is not None:
        raise ValueError(f"horizon is {system.horizon}; use values.backward_induction where there is an end")
    k = system.n_raw
    samples = int(np.clip(10 * (k + 4) * (k + 5), 300, 1000)) if samples is None else whole("samples", samples, 100)
    rounds = whole("rounds", rounds, 1)
    outcomes, rng = Outcomes(system, law), np.random.default_rng(seed)
    if base is None:
        base = search(system, law, seed=seed)[0]
    K = whole("paths", paths, 1) if paths is not None else 32 if system.compiled is None else 512
    work = _Work(system, outcomes, rng, start, samples)
    work.begin(base)
    q = work.looking_ahead(base, K)
    for _ in range(REBASED):
        better = work.linear(Greedy(work.round(base, q)))
        if not work.wins(better, base):
            break
        base = better
        q = work.looking_ahead(base, K)
    tried = work.improved(base, q, rounds)
    if not system.continuous and len(system.actions) <= ALL_TRIED:  # few actions may be kinds, of which no level says
        plain = _Work(system, outcomes, rng, start, samples)
        anything = AnyAction(system, np.random.default_rng(rng.integers(2**63)))
        plain.begin(anything)
        tried += plain.improved(anything, plain.looking_ahead(anything, K, farthest=1), rounds)
    first, best = tried[0], max(tried, key=lambda one: one.worth.at_least)
    base_worth, residual = first.work.judge(base, first.q)
    worth = base_worth
    if best is not first:
        worth, residual = best.work.judge(best.rule, best.q)
    if worth.mean <= base_worth.mean:
        best, worth = first, base_worth
    if worth.error > POOR * abs(worth.mean):
        warnings.warn(
            f"what the rule earns is known as {worth} only: values are not fitted well here; give a base of your own",
            FitWarning,
            stacklevel=2,
        )
    worths = tuple(one.worth for one in tried)
    return Fitted(best.rule, base, best.q, worth, base_worth, worths, residual, best.q.ahead.steps)


@dataclass(frozen=True)
class AnyAction:
    """Any action that exists, each alike: to begin with where no simple rule is known."""

    system: LargeSystem
    rng: np.random.Generator

    def __call__(self, h: int, s: Rows) -> Rows:
        """[N, m] actions in states [N, d]."""
        drawn = self.system.actions[self.rng.integers(len(self.system.actions), size=len(s))]
        return self.system.existing(h, s, drawn)


@dataclass(frozen=True)
class Tried:
    """A rule, how it was judged, by which Q, and on which paths."""

    rule: Rule
    q: Q
    worth: Estimate
    work: _Work


class _Work:
    """Paths that a rule is followed along, and the equations that they give."""

    def __init__(
        self, system: LargeSystem, outcomes: Outcomes, rng: np.random.Generator, start: Any, samples: int
    ) -> None:
        self.system, self.outcomes, self.rng, self.samples = system, outcomes, rng, samples
        self.chains = max(50, samples // 20)
        self.start = middle(system, 1)[0] if start is None else np.asarray(start)
        self.s = self.tried = np.repeat(self.start[None], self.chains, axis=0)

    def begin(self, base: Rule, steps: int = 200) -> None:
        """Let the base act until its first state is forgotten."""
        self.s, _ = self._walk(self.s, base, steps)
        self.tried, _ = self._walk(self.s, base, 50, shifted=SHIFTED)

    def improved(self, base: Rule, q: Q, rounds: int) -> list[Tried]:
        """The base and the rule of each round."""
        q = self.round(base, q)
        tried = [Tried(base, q, self.judge(base, q)[0], self)]
        for left in reversed(range(rounds)):
            rule = Greedy(q)
            tried.append(Tried(rule, q, self.judge(rule, q)[0], self))
            if not left:
                break
            q = self.round(rule, q)
            best = max(tried, key=lambda one: one.worth.at_least)
            if best is not tried[-1]:  # the last step led down: go half the way
                q = Q(q.ahead, q.terms, (q.theta + best.q.theta) / 2)
        return tried

    def looking_ahead(self, base: Rule, paths: int, farthest: int = FARTHEST) -> Q:
        """Q with so many paths of a base, and no terms yet."""
        system, rng = self.system, self.rng
        ahead = Ahead(system, base, self.outcomes, self.outcomes.paths(rng, paths, farthest))
        ahead = _long_enough(ahead, self.tried, rng)
        s = np.concatenate(self._walk(self.tried, base, 20, 1, SHIFTED)[1])
        a = self.shifted(s, base(0, s), 1.0)
        terms = Terms.of(system.after(0, s, a), ahead.rewards(s, a))
        return Q(ahead, terms, np.zeros(len(terms.centre)))

    def linear(self, rule: Rule) -> UpTo:
        """A rule that does about the same and is quick to ask."""
        s = self.visited(rule)
        return imitated(self.system, s, rule(0, s))

    def wins(self, one: Rule, other: Rule, steps: int = 300) -> bool:
        """Whether one rule earns more than another, by common random numbers; beyond chance."""
        w, first = self.outcomes.draw(self.rng, 4 * self.chains, steps), np.concatenate([self.s] * 4)
        weights = self.system.discount ** np.arange(steps)
        earned = [walk(self.system, rule, first, w)[0] @ weights for rule in (one, other)]
        gain = earned[0] - earned[1]
        return bool(gain.mean() > gain.std() / np.sqrt(len(gain)))

    def _walk(
        self, s: Rows, rule: Rule, steps: int, keep_every: int = 0, shifted: float = 0.0
    ) -> tuple[Rows, list[Rows]]:
        """Where a rule leads from states, and some states on the way; where later rewards count less, paths begin anew.

        They do so with probability 1 - γ. shifted: the share of actions that are replaced by others nearby
        """
        kept: list[Rows] = []
        for t in range(steps):
            if keep_every and t % keep_every == 0:
                kept.append(s)
            w = self.outcomes.draw(self.rng, self.chains)
            s_next = self.system.step(0, s, self.shifted(s, rule(0, s), shifted), w)[1]
            again = self.rng.random(self.chains) >= self.system.discount
            s = np.where(again[:, None], self.start, s_next)
        return s, kept

    def visited(self, rule: Rule) -> Rows:
        """[samples, d] states that a rule visits, those of one path in one block of rows."""
        self.s, _ = self._walk(self.s, rule, 40)
        self.s, kept = self._walk(self.s, rule, 5 * (self.samples // self.chains), 5)
        return np.stack(kept, axis=1).reshape(-1, self.system.n_axes)

    def around(self, rule: Rule) -> Rows:
        """[samples, d] states that it visits if some of its actions are shifted."""
        self.tried, _ = self._walk(self.tried, rule, 20, shifted=SHIFTED)
        self.tried, kept = self._walk(self.tried, rule, 5 * (self.samples // self.chains), 5, SHIFTED)
        return np.concatenate(kept)

    def shifted(self, s: Rows, a: Rows, share: float) -> Rows:
        """[N, m] actions, some of them replaced by others nearby."""
        system, rng = self.system, self.rng
        moved = rng.random(len(s)) < share
        if system.continuous:
            near = a + rng.normal(size=a.shape) * (system.action_high - system.action_low) / 10
            other = np.clip(near, system.action_low, system.action_high)
        else:
            index = system.neighbours[system.at_most(a)]
            other = system.actions[index[np.arange(len(s)), rng.integers(index.shape[1], size=len(s))]]
        moved &= system.allows(0, s, other)
        return np.where(moved[:, None], other, a)

    def follows(self, rule: Rule, q: Q, s: Rows, a: Rows) -> tuple[NDArray[np.float64], ...]:
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

    def round(self, rule: Rule, q: Q) -> Q:
        """What pairs are worth under a rule."""
        g, s = self.system.discount, self.around(rule)
        a = self.shifted(s, rule(0, s), SHIFTED)
        (b, x), (c, base, psi) = q.parts(s, a), self.follows(rule, q, s, a)
        left, right = (np.concatenate([one, np.ones((len(x), 1))], axis=1) for one in (x, x - g * psi))
        known = c + g * base - b
        aside = np.arange(len(x)) % 5 == 0

        def solved(rows: NDArray[np.bool_], ridge: float) -> NDArray[np.float64]:
            matrix = left[rows].T @ right[rows] / rows.sum() + ridge * np.eye(left.shape[1])
            return np.asarray(np.linalg.solve(matrix, left[rows].T @ known[rows] / rows.sum()))

        def errs(ridge: float) -> float:
            return float(np.var(known[aside] - right[aside] @ solved(~aside, ridge)))

        theta = solved(np.ones(len(x), np.bool_), min(RIDGES, key=errs))
        return Q(q.ahead, q.terms, theta[:-1])

    def judge(self, rule: Rule, q: Q) -> tuple[Estimate, float]:
        """How a rule does, on states that it visits, and how far Q is off there."""
        s = self.visited(rule)
        a = rule(0, s)
        return self._judged(q, q.parts(s, a), self.follows(rule, q, s, a))

    def _judged(self, q: Q, now: tuple[Any, ...], after: tuple[Any, ...]) -> tuple[Estimate, float]:
        """From Q of pairs, what they earn, and Q of what follows."""
        g, (b, x), (c, base, psi) = self.system.discount, now, after
        gained = c + g * (base + psi @ q.theta) - (b + x @ q.theta)
        by_path = gained.reshape(self.chains, -1).mean(axis=1)
        mean, error = float(by_path.mean()), float(by_path.std(ddof=1) / np.sqrt(self.chains))
        if g < 1:
            first = self.start[None]
            mean, error = mean / (1 - g) + float(q(first, q.ahead.rule(0, first))[0]), error / (1 - g)
        return Estimate(mean, error), float(gained.std())


def _long_enough(ahead: Ahead, s: Rows, rng: np.random.Generator) -> Ahead:
    """As many steps as an action takes to show most of what it changes."""
    system = ahead.system
    s = s[rng.integers(len(s), size=100)]
    a = ahead.rule(0, s)
    if system.continuous:
        size = (system.action_high - system.action_low) / 10
        other = np.clip(a + np.where(a + size > system.action_high, -size, size), system.action_low, system.action_high)
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
