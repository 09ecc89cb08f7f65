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

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ucbf.checks import whole
from ucbf.disturbance import Disturbance
from ucbf.errors import warn
from ucbf.large import LargeSystem, Rows, require_large
from ucbf.run import Progress
from ucbf.values.evaluating import Equations, Judged, Work
from ucbf.values.given import the_first, the_rule
from ucbf.values.pairs import Greedy, Q
from ucbf.values.paths import Estimate, FitWarning, Outcomes, Rule
from ucbf.values.searching import imitated, simple_rule

REBASED = 8  # times that the base may be replaced by a better one
PRECISE = 0.01  # an estimate whose standard error is a smaller share says enough
POOR = 0.05  # one whose standard error is a larger share says little


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
    rounds: tuple[Estimate, ...]  # of the base, and of the rule of each round
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

        The mean of what it earns in states that it visits, less ``Q(s, π(s)) - γ E Q(s', π(s'))``, which is 0 on
        average: right whatever Q is, and precise where Q is nearly right. It is of the states after 240 steps of the
        rule, or more, until what it earns moves no more; discounted, of those from ``start`` on.
        """
        rule, system = self.rule if rule is None else rule, self.q.ahead.system
        seed, outcomes, first = whole("seed", seed, 0), Outcomes(system, law), the_first(system, start)
        if rule is not self.rule:
            the_rule("rule", system, outcomes, rule, first)
        work = Work(system, outcomes, np.random.default_rng(seed), first, whole("samples", samples, 100))
        work.begin(rule)
        return work.judge(rule, self.q, work.visited(rule, seed), seed).worth

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
    progress: Progress | None = None,
) -> Fitted:
    """A rule for a system without an end, by least-squares policy iteration.

    Parameters
    ----------
    system, law
        The system, and the distribution of W, the same at every step.
    base
        A rule to begin with and to look ahead with, from the step and states [N, d] to actions [N, m]. None: the best
        that a search finds, of those that go up to levels, and, where actions are few, of those that give each of them
        a score.
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
    progress
        Called with (steps of work done, steps of work).
    """
    if require_large(system).horizon is not None:
        raise ValueError(f"horizon is {system.horizon}; use values.backward_induction where there is an end")
    k = system.n_raw
    samples = int(np.clip(10 * (k + 4) * (k + 5), 300, 1000)) if samples is None else whole("samples", samples, 100)
    rounds, seed = whole("rounds", rounds, 1), whole("seed", seed, 0)
    K = whole("paths", paths, 1) if paths is not None else 32 if system.compiled is None else 512
    outcomes, first = Outcomes(system, law), the_first(system, start)
    base = None if base is None else the_rule("base", system, outcomes, base, first)
    count = _Count(progress, REBASED + rounds + 2)
    base = simple_rule(system, law, seed) if base is None else base
    count.one_more()
    work = Work(system, outcomes, np.random.default_rng(seed), first, samples)
    q, tried, before, rebased, far = work.begun(base, K), list[_Tried](), list[_Tried](), 0, False
    fitted = q
    equations: Equations | None = None
    while len(tried) <= rounds:
        rule = Greedy(q)
        visited = work.visited(rule, seed + 1)
        count.one_more()
        if rebased < REBASED:
            copy = imitated(system, visited, rule(0, visited))
            if work.wins(copy, base):
                base, q, before, tried, rebased = copy, work.begun(copy, K), before + tried[1:], [], rebased + 1
                equations, fitted, far = None, q, False
                continue
        if not tried:
            there = work.visited(base, seed + 1)
            tried.append(_Tried(base, q, there, work.judge(base, q, there, seed + 1)))
        tried.append(_Tried(rule, q, visited, work.judge(rule, q, visited, seed + 1)))
        best = _best(tried)
        if best is tried[0] and not far:  # what is fitted may mislead: a long look ahead alone
            before.append(tried.pop())
            q, far = work.far_ahead(base, K), True
            continue
        if best is tried[0]:  # a step too far: half of it
            q = fitted = fitted.weighted(fitted.theta / 2)
            continue
        new = work.equations(best.rule, q, best.visited)  # later rules are much alike: what is known of all is used
        equations = new if equations is None else equations.and_also(new)
        theta = equations.solved()
        q = fitted = q.weighted(theta if best is tried[-1] else (theta + best.q.theta) / 2)
    best = _best(tried + before)
    for times in (1, 2, 4, 8, 16):  # once more, on other paths, and longer ones where they say little
        by_base, by_best = (
            work.judge(one.rule, one.q, work.visited(one.rule, seed + 2, times), seed + 2) for one in (tried[0], best)
        )
        if by_best.worth.error <= PRECISE * abs(by_best.worth.mean):
            break
    if by_best.over(by_base).mean <= 0:
        best, by_best = tried[0], by_base
    count.done()
    judged = [one.judged for one in tried]
    _say(by_best.worth, [one.over(judged[0]) for one in judged[1:]])
    worths, steps = tuple(one.worth for one in judged), best.q.ahead.steps
    return Fitted(best.rule, base, best.q, by_best.worth, by_base.worth, worths, by_best.residual, steps)


def _say(worth: Estimate, gains: list[Estimate]) -> None:
    """Warn where fitting failed."""
    if worth.error > POOR * abs(worth.mean):
        warn(
            f"what the rule earns is known only as {worth}: rewards vary too much for so few states; give more "
            "samples, or a base of your own",
            FitWarning,
        )
    elif all(gain.mean + 2 * gain.error < -PRECISE * abs(worth.mean) for gain in gains):
        warn(
            f"every rule that was fitted earns less than the base, the best of them by "
            f"{-max(gain.mean for gain in gains):.4g}: values are not fitted well here, and the base is returned; give "
            "more samples, or a base of your own",
            FitWarning,
        )


class _Tried(NamedTuple):
    """A rule, and how it is judged by a Q on states that it visits."""

    rule: Rule
    q: Q
    visited: Rows
    judged: Judged


def _best(tried: list[_Tried]) -> _Tried:
    """The rule that most surely earns more than the first."""
    return max(tried, key=lambda one: one.judged.over(tried[0].judged).at_least)


class _Count:
    """Tells how much of the work is done, at most as much as there is."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.so_far = progress, total, 0

    def one_more(self) -> None:
        """A step of it."""
        self.so_far = min(self.so_far + 1, self.total - 1)
        if self.progress is not None:
            self.progress(self.so_far, self.total)

    def done(self) -> None:
        """All of it."""
        if self.progress is not None:
            self.progress(self.total, self.total)
