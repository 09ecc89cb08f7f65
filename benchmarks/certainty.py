"""What certainty costs: certificates of the shop of examples/inventory.py after a year, price by price.

    python benchmarks/certainty.py

A floor for every certificate that is above the gap with 95 % probability in every world: it is above what is believed
with 90 % in at least half of the worlds drawn from the prior of that belief. Else it would fail in more than 5 %.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from evidence import example_shop, missed

import ucbf
from ucbf.coupling import Coupling, log_looks

YEARS, WEEKS, P = 20, 52, 0.05
PART = 0.95 * 2 / 3  # of p: what certificate() leaves to e-values


def learned(world: ucbf.World, seed: int) -> ucbf.UCBVIf:
    """An agent after a year."""
    agent = ucbf.UCBVIf(world.system)
    ucbf.simulate(agent, world, WEEKS, seed)
    return agent


def parts(world: ucbf.World, agent: ucbf.UCBVIf) -> list[float]:
    """The certificate of e-values, then without each price in turn, all those before it being left out too."""
    system, start = world.system, world.start
    span = float(agent.units.cap[0] - agent.units.floor[0])
    both = Coupling(agent.told, agent.policy, system.bins.guess > 0)
    found = []
    for chosen, weeks, levels in ((1, 1, 1), (0, 1, 1), (0, 0, 1), (0, 0, 0)):
        if not chosen:
            both.guess = both.guess[0], np.zeros(len(agent.policy), np.bool_)
        p = P * PART * (1.0 if weeks else float(np.exp(log_looks(WEEKS))))
        held = both.with_evalues(agent.counted(), p, span).times(agent.units.scale)
        if levels:
            found.append(held.average(start))
        else:
            bounds = [replace(held, d=held.d[i : i + 1], prices=held.prices[i : i + 1], logs=np.zeros(1)).average(start)
                      for i in range(len(held.d))]  # fmt: skip
            found.append(min(bounds))
    return found


def main() -> None:
    """Print both."""
    world = example_shop()
    best, agents = float(world.start @ world.plan.v[0]), [learned(world, seed) for seed in range(YEARS)]
    told = [[world.start @ missed(world, agent.policy), *(agent.credible_gap(p, start=world.start) for p in (P, 2 * P))]
            for agent in agents]  # fmt: skip
    gap, likely, even = 100 * np.median(told, axis=0) / best
    print(
        f"the shop of examples/inventory.py after {WEEKS} weeks, in percent of its best profit; median of {YEARS} years"
    )
    print(f"  true gap {gap:.2f}; believed with 95 % {likely:.2f}, with 90 % {even:.2f}")
    names = ("certified (e-values alone)", "... had the policy been chosen beforehand", "... for this one week",
             "... with the best λ known beforehand: log(1/p) alone is paid")  # fmt: skip
    for name, each in zip(names, np.median([parts(world, agent) for agent in agents], axis=0), strict=True):
        print(f"  {name}: {100 * each / best:.1f}")


if __name__ == "__main__":
    main()
