"""Rolling orders where demand stays as it is, beside the rule that is right there in the long run.

    python benchmarks/steady.py [--seeds 6] [--first 0]

The rule: order up to a multiple of the mean demand until the next order comes, times the factors of the weekdays. Its
multiple is the one that cost least in the training weeks, its mean theirs. Both are told the same, and meet the same
demand. A line for each kind of demand: how much more rolling orders cost, in percent, and how often the stock lasted.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from ucbf.advice.ordering import _factors
from ucbf.advice.ways_to_order import Adapting, Played, play
from ucbf.rolling import Rolling
from ucbf.systems import Inventory

MEAN, SHAPE = 28.0, 8.0  # of demand; of its negative binomial distribution
WEEK = np.array([0.9, 0.85, 0.9, 1.0, 1.3, 1.6, 0.45])
BEFORE, FILLING, AFTER = 805, 21, 343  # days to learn from; in which the shelf fills; that judge
MULTIPLES = np.arange(0.8, 2.6, 0.05)
SHOP = Inventory(price=0, unit_cost=0, holding=1, penalty=19, lead_time=3, pack=6, capacity=6000, max_demand=3000)
Floats = NDArray[np.float64]


class UpTo:
    """Order up to so much on each day of the week, in whole packs."""

    def __init__(self, levels: Floats) -> None:
        self.levels = levels

    def __call__(self, t: int, shelf: Floats, under_way: dict[int, float]) -> float:
        """What to order."""
        short = self.levels[t % len(self.levels)] - shelf.sum() - sum(under_way.values())
        return float(np.ceil(max(short, 0.0) / 6) * 6)

    def seen(self, demand: float) -> None:
        """Nothing is learned any more."""


def draw(kind: str, weekdays: bool, seed: int) -> Floats:
    """Days of demand."""
    rng = np.random.default_rng([23, seed])
    mean = MEAN * (WEEK / WEEK.mean() if weekdays else np.ones(7))[np.arange(BEFORE + FILLING + AFTER) % 7]
    if kind == "Poisson":
        return rng.poisson(mean).astype(float)
    return rng.negative_binomial(SHAPE, SHAPE / (SHAPE + mean)).astype(float)


def both(demand: Floats, weekdays: bool) -> tuple[Played, Played]:
    """What came of rolling orders and of the rule."""
    before = demand[:BEFORE]
    factors = _factors(before.reshape(-1, 7)) if weekdays else np.ones(7)
    until = before.mean() * np.array([factors[np.arange(h, h + 4) % 7].sum() for h in range(7)])
    rules = {multiple: UpTo(multiple * until) for multiple in MULTIPLES}
    best = max(rules, key=lambda multiple: play(SHOP, before, 0, rules[multiple]).after(28).reward.sum())
    rolling = Rolling(SHOP, season=factors if weekdays else None)
    for amount in before:
        rolling.observe(amount)
    ours, theirs = (
        play(SHOP, demand[BEFORE:], BEFORE, rule).after(FILLING) for rule in (Adapting(rolling), rules[best])
    )
    return ours, theirs


def main() -> None:
    """A line for each kind of demand, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    everything = list[float]()
    for kind in ("Poisson", "negative binomial"):
        for weekdays in (True, False):
            dearer, lasted = list[float](), list[tuple[float, float]]()
            for seed in range(given.first, given.first + given.seeds):
                ours, theirs = both(draw(kind, weekdays, seed), weekdays)
                dearer.append(100 * float(ours.reward.sum() / theirs.reward.sum() - 1))
                lasted.append((ours.service.without_stock_out, theirs.service.without_stock_out))
            everything += dearer
            one, other = np.mean(lasted, axis=0)
            print(
                f"| {kind} | {'yes' if weekdays else 'no'} | {interval(dearer)} | {one:.1%}, {other:.1%} |", flush=True
            )
    print(f"all {len(everything)}: {interval(everything)}; dearer in {sum(x > 0 for x in everything)}")


def interval(percent: list[float]) -> str:
    """A mean with its 95 % interval."""
    return f"{np.mean(percent):+.1f} % ± {1.96 * np.std(percent, ddof=1) / len(percent) ** 0.5:.1f}"


if __name__ == "__main__":
    main()
