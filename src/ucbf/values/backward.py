"""Fitted backward induction, for systems with an end.

``U_h(x) = E[landing(x + W) + γ V_{h+1}(g(x + W))]`` is worked out at some after-states x, the anchors, and fitted to
the others; ``V_h(s) = max_a r(s, a) + U_h(f(s, a))``. With an anchor at every after-state it is the exact plan. How
well it fits is measured at after-states that were left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.checks import whole
from ucbf.disturbance import Disturbance
from ucbf.errors import warn
from ucbf.large import LargeSystem, Rows, require_large
from ucbf.run import Progress
from ucbf.values.choosing import best_actions
from ucbf.values.fits import Fit, Hats, Linear, Nearest, Predict
from ucbf.values.given import the_first, the_rule, the_states
from ucbf.values.paths import Estimate, FitWarning, Outcomes, Rule
from ucbf.values.searching import simple_rule
from ucbf.values.simulating import measured

ALL_WEIGHED = 256  # values of W
TRIED = 64  # so many actions, or fewer, are all tried
POOR = 0.3  # a fit whose error is this share of what there is to fit says little


@dataclass(frozen=True)
class Backward:
    """A plan that was fitted, and how well. Call it with a step and states [N, d] for actions [N, m]."""

    system: LargeSystem
    follows: tuple[Predict, ...]  # [H] U_h
    error: NDArray[np.float64]  # [H] root mean square error of U_h at held-out anchors, in units of reward
    share: NDArray[np.float64]  # [H] the same as a share of the standard deviation of U_h
    worth: Estimate  # of the rule, by simulation from the first state
    base: Rule
    base_worth: Estimate
    promised: float  # what the fit says that it is worth

    def __call__(self, h: int, s: Rows) -> Rows:
        """[N, m] actions in states [N, d]."""
        return self.chosen(h, s)[0]

    def chosen(self, h: int, s: Rows) -> tuple[Rows, NDArray[np.float64]]:
        """[N, m] the best actions in states [N, d], and V_h there [N], both by the fit."""
        return _best(self.system, h, s, self.follows[h])

    def __str__(self) -> str:
        return (
            f"fitted over {len(self.follows)} steps: {self.worth} by simulation (an estimate), the base "
            f"{self.base_worth}; error at held-out anchors at most {self.share.max():.1%} of what there is to fit"
        )


def _best(system: LargeSystem, h: int, s: Rows, follows: Predict) -> tuple[Rows, NDArray[np.float64]]:
    def worth(s: Rows, a: Rows) -> NDArray[np.float64]:
        return system.paid(h, s, a) + follows(system.after(h, s, a))

    if system.continuous:
        first: Rows = np.repeat(((system.action_low + system.action_high) / 2)[None], len(s), axis=0)
    else:
        first = np.repeat(system.actions[len(system.actions) // 2][None], len(s), axis=0)
    return best_actions(system, h, s, first, worth, TRIED)


def backward_induction(
    system: LargeSystem,
    law: Disturbance,
    *,
    fit: Fit | None = None,
    anchors: int = 3000,
    states: Rows | None = None,
    base: Rule | None = None,
    start: Any = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Backward:
    """A plan for a system with an end, fitted at anchors.

    Parameters
    ----------
    system, law
        The system, and the distribution of W, the same at every step.
    fit
        One of ``values.Hats``, ``Nearest``, ``Linear``, ``Regressor``. None: of the first three the one that errs least
        at held-out anchors of the last step.
    anchors
        How many after-states are drawn: from paths of the base with some of its actions replaced, and from states
        anywhere.
    states
        [N, d] states whose after-states, under every action, are taken instead.
    base
        A rule to begin with and to compare with. None: the best simple rule that a search finds.
    start
        [d] the first state; the one nearest to zero if None.
    seed
        Of all that is drawn.
    progress
        Called with (steps of work done, steps of work).
    """
    H = require_large(system).horizon
    if H is None:
        raise ValueError("horizon is None; use values.policy_iteration where there is no end")
    if fit is not None and not isinstance(fit, Fit):
        raise TypeError(
            f"fit is {fit!r:.60}; give values.Hats(), values.Nearest(), values.Linear(), or values.Regressor(what has "
            "fit and predict)"
        )
    n, seed = whole("anchors", anchors, 10), whole("seed", seed, 0)
    outcomes, first = Outcomes(system, law), the_first(system, start)
    states = None if states is None else the_states("states", system, states)
    base = None if base is None else the_rule("base", system, outcomes, base, first)
    rng = np.random.default_rng(seed)
    base = simple_rule(system, law, seed) if base is None else base
    sampled = _sampled(system, outcomes, base, first, n, rng) if states is None else _all_after(system, states)
    held_out = _sampled(system, outcomes, base, first, max(n // 5, 100), rng)
    follows: list[Predict] = [lambda x: np.zeros(len(x))] * H
    error, share = np.zeros(H), np.zeros(H)
    for h in reversed(range(H)):

        def exact(x: Rows, h: int = h) -> NDArray[np.float64]:
            return _expected(system, outcomes, rng, h, x, follows[h + 1] if h + 1 < H else None)

        aside = exact(held_out[h])
        if fit is None:
            fit = _least_error(sampled[h], exact, held_out[h], aside)
        places = fit.anchors(sampled[h])
        follows[h] = fit.at(places, exact(places))
        error[h] = np.sqrt(np.mean((follows[h](held_out[h]) - aside) ** 2))
        share[h] = error[h] / max(float(aside.std()), 1e-300) if error[h] else 0.0
        if progress is not None:
            progress(H - h, H + 1)
    plan = Backward(system, tuple(follows), error, share, Estimate(0, 0), base, Estimate(0, 0), 0.0)
    worth, base_worth = (measured(system, law, rule, start=first, chains=2000, seed=seed + 1) for rule in (plan, base))
    promised = float(plan.chosen(0, first[None])[1][0])
    if progress is not None:
        progress(H + 1, H + 1)
    plan = Backward(system, tuple(follows), error, share, worth, base, base_worth, promised)
    _say(plan)
    return plan


def _say(plan: Backward) -> None:
    """Warn where fitting failed."""
    if plan.worth.mean < plan.base_worth.mean - 2 * plan.base_worth.error:
        warn(
            f"the fitted plan earns {plan.worth}, less than the base, {plan.base_worth}; use plan.base, more anchors, "
            "or another fit",
            FitWarning,
        )
    elif plan.share.max() > POOR:
        warn(
            f"the fit errs by {plan.share.max():.0%} of what there is to fit, at step {int(plan.share.argmax())}; use "
            "more anchors, or another fit",
            FitWarning,
        )


def _least_error(sampled: Rows, exact: Any, held_out: Rows, aside: NDArray[np.float64]) -> Fit:
    """The way of fitting that errs least."""
    fits: list[Fit] = [Nearest(), Linear()]
    points = int(20_000 ** (1 / max(int((np.ptp(sampled, axis=0) > 0).sum()), 1)))
    if points >= 4:
        fits.append(Hats(points))

    def errs(fit: Fit) -> float:
        places = fit.anchors(sampled)
        return float(np.mean((fit.at(places, exact(places))(held_out) - aside) ** 2))

    return min(fits, key=errs)


def _expected(
    system: LargeSystem, outcomes: Outcomes, rng: np.random.Generator, h: int, x: Rows, follows: Predict | None
) -> NDArray[np.float64]:
    """[N] U_h at after-states [N, k], some of them at a time."""
    out = np.empty(len(x))
    for i in range(0, len(x), 2000):
        part = x[i : i + 2000]
        w, weight = outcomes.around(rng, len(part), ALL_WEIGHED)
        z = (part[:, None, :] + w).reshape(-1, x.shape[1])
        s, which = np.unique(system.met(z), axis=0, return_inverse=True)
        v = system.ended(s) if follows is None else _best(system, h + 1, s, follows)[1]
        total = system.landed(h, z) + system.discount * v[which.reshape(-1)]
        out[i : i + 2000] = total.reshape(len(part), -1) @ weight
    return out


def _all_after(system: LargeSystem, states: Rows) -> list[Rows]:
    """[H] the after-states of states [N, d] under every action that exists."""
    if system.continuous:
        raise ValueError("states are given, and actions are continuous; give anchors instead: how many")
    s = np.repeat(states, len(system.actions), axis=0)
    a = np.tile(system.actions, (len(states), 1))
    found = []
    for h in range(system.horizon or 0):
        exists = system.allows(h, s, a)
        found.append(np.unique(system.after(h, s[exists], a[exists]), axis=0))
    return found


def _sampled(
    system: LargeSystem, outcomes: Outcomes, base: Rule, first: Rows, n: int, rng: np.random.Generator
) -> list[Rows]:
    """[H] after-states: half of paths of the base with a third of the actions replaced, half of states anywhere."""
    s, found = np.repeat(first[None], n // 2, axis=0), []

    def replaced(h: int, s: Rows, a: Rows, share: float) -> Rows:
        if system.continuous:
            other: Rows = rng.uniform(system.action_low, system.action_high, a.shape)
        else:
            other = system.actions[rng.integers(len(system.actions), size=len(s))]
        return np.where(((rng.random(len(s)) < share) & system.allows(h, s, other))[:, None], other, a)

    for h in range(system.horizon or 0):
        anywhere = rng.uniform(system.low, system.high, (n - n // 2, system.n_axes))
        anywhere = np.rint(anywhere).astype(np.int64) if system.whole_states else anywhere
        a = replaced(h, s, base(h, s), 1 / 3)
        other = replaced(h, anywhere, system.existing(h, anywhere, base(h, anywhere)), 1.0)
        found.append(np.concatenate([system.after(h, s, a), system.after(h, anywhere, other)]))
        s = system.step(h, s, a, outcomes.draw(rng, len(s)))[1]
    return found
