"""What a rule earns, by plain simulation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ucbf.checks import whole
from ucbf.disturbance import Disturbance
from ucbf.large import LargeSystem
from ucbf.values.given import the_first, the_rule
from ucbf.values.paths import Estimate, Outcomes, Rule, walk


def measured(
    system: LargeSystem,
    law: Disturbance,
    rule: Rule,
    *,
    start: Any = None,
    chains: int = 400,
    steps: int = 1000,
    warm_up: int = 200,
    seed: int = 0,
) -> Estimate:
    """What a rule earns, by plain simulation: a step in the long run, or in an episode, or discounted.

    start: [d] the first state; the one nearest to zero if None
    chains, steps, warm_up: how many paths, how many steps of each count, and how many before (without an end)
    """
    chains, steps, warm_up = whole("chains", chains, 2), whole("steps", steps, 1), whole("warm_up", warm_up, 0)
    outcomes, rng = Outcomes(system, law), np.random.default_rng(whole("seed", seed, 0))
    first = the_first(system, start)
    rule, s = the_rule("rule", system, outcomes, rule, first), np.repeat(first[None], chains, axis=0)
    if system.horizon is not None:
        earned, s = walk(system, rule, s, outcomes.draw(rng, chains, system.horizon))
        weights = system.discount ** np.arange(system.horizon)
        totals = earned @ weights + system.discount**system.horizon * system.ended(s)
    elif system.discount < 1:
        steps = int(np.ceil(np.log(1e-4) / np.log(system.discount)))
        earned, _ = walk(system, rule, s, outcomes.draw(rng, chains, steps))
        totals = earned @ system.discount ** np.arange(steps)
    else:
        _, s = walk(system, rule, s, outcomes.draw(rng, chains, warm_up))
        earned, _ = walk(system, rule, s, outcomes.draw(rng, chains, steps))
        totals = earned.mean(axis=1)
    return Estimate.of(totals)
