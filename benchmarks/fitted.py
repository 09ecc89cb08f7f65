"""Values that are fitted, where a table would not fit: measured. One call, nothing chosen for any of the problems.

python benchmarks/fitted.py [lost exact learned allowed others bounds growth] [--seed N] [--runs N] [--series N,N]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

import ucbf
from ucbf import values
from ucbf.agents.fitted import FittedUCBVIf
from ucbf.planning import gain
from ucbf.systems import Inventory

DEEP = {(4, 6): 4.872, (4, 8): 4.951, (4, 10): 5.024, (19, 6): 9.648, (19, 8): 10.175, (19, 10): 10.574}
EXACT = {(4, 3): 4.5987, (4, 4): 4.7285, (19, 3): 8.3625, (19, 4): 8.8872}


def poisson(mean: float) -> ucbf.Disturbance:
    """Demand, cut where less than 1e-9 is left."""
    pmf = stats.poisson(mean).pmf(np.arange(int(stats.poisson(mean).isf(1e-9)) + 1))
    return ucbf.Disturbance(pmf / pmf.sum())


def lost_sales(lead_time: int, penalty: float, demand: ucbf.Disturbance) -> Inventory:
    """A store whose customers do not wait."""
    return Inventory(
        lead_time=lead_time, penalty=penalty, horizon=None, capacity=60, max_order=20,
        max_demand=len(demand.values) - 1, price=0, unit_cost=0, holding=1,
    )  # fmt: skip


class Clock:
    """Seconds of processor time, of all threads."""

    def __init__(self) -> None:
        self.begin = time.process_time()

    def __str__(self) -> str:
        return f"{time.process_time() - self.begin:.0f} s of processor time"


def store(lead_time: int, penalty: float, known: float, seed: int) -> None:
    """One row: the law is known."""
    demand, clock = poisson(5), Clock()
    shop = lost_sales(lead_time, penalty, demand)
    law = shop.large_law(demand)
    found = values.policy_iteration(shop.large, law, seed=seed)
    took, worth = str(clock), found.worth  # measured on paths of its own, after the rule was chosen
    print(
        f"p {penalty:>2} L {lead_time:>2}: cost {-worth.mean:.4f} ± {worth.error:.4f}, {-worth.mean / known - 1:+.2%} "
        f"of {known}; base {-found.base_worth.mean:.3f}; {took}",
        flush=True,
    )


def lost(options: argparse.Namespace) -> None:
    """Lost sales, Poisson demand of mean 5, against the costs of Deep Controlled Learning."""
    for (penalty, lead_time), known in DEEP.items():
        if options.only and [penalty, lead_time] not in options.only:
            continue
        store(lead_time, penalty, known, options.seed)


def exact(options: argparse.Namespace) -> None:
    """The same where the optimum is known."""
    for (penalty, lead_time), known in EXACT.items():
        store(lead_time, penalty, known, options.seed)


def learned_once(
    lead_time: int, penalty: float, told: Callable[..., Any], run: int, seed: int
) -> tuple[list[values.Estimate], str]:
    """What is earned by an agent that saw 1,000 periods, by capped base-stock found with its law, and by another rule.

    And the mean of what was seen, and the time.
    """
    demand, clock = poisson(5), Clock()
    shop = lost_sales(lead_time, penalty, demand)
    seen = demand.draw(np.random.default_rng([seed, run]).random((1, 1000)))[0]
    agent = FittedUCBVIf(shop.large, values={"seed": run})
    agent.warm_start(np.pad(-seen[:, None], [(0, 0), (0, lead_time)]))
    found = agent.rule
    note = f"mean {seen.mean():.3f}, {clock}"
    capped = values.search(shop.large, agent.law, chains=400, steps=500)[0]
    law = shop.large_law(demand)
    return [found.measured(law, rule, samples=1000) for rule in (None, capped, told)], note


def learned(options: argparse.Namespace) -> None:
    """The same, W learned from 1,000 periods; beside it capped base-stock, found with the same law and told the law."""
    for (penalty, lead_time), known in DEEP.items():
        if options.only and [penalty, lead_time] not in options.only:
            continue
        shop = lost_sales(lead_time, penalty, poisson(5))
        told = values.search(shop.large, shop.large_law(poisson(5)), chains=400, steps=500)[0]
        runs = options.series or range(options.runs)
        away = np.empty((len(runs), 3))  # shares of what is known
        for i, run in enumerate(runs):
            worths, note = learned_once(lead_time, penalty, told, run, options.seed)
            away[i] = [-worth.mean / known - 1 for worth in worths]
            print(
                f"  p {penalty} L {lead_time} run {run:>2}: {away[i, 0]:+.2%} ± {worths[0].error / known:.2%}; "
                f"capped base-stock learned {away[i, 1]:+.2%}, told {away[i, 2]:+.2%}; {note}",
                flush=True,
            )
        behind = (away[:, :1] > away[:, 1:]).sum(axis=0)
        (mean, capped, told_mean), (worst, capped_worst, _) = away.mean(axis=0), away.max(axis=0)
        print(
            f"p {penalty:>2} L {lead_time:>2}, learned: {mean:+.2%} of {known} on average, worst {worst:+.2%}, "
            f"{(away[:, 0] > 0.01).sum()} of {len(runs)} above 1 %; capped base-stock learned {capped:+.2%}, worst "
            f"{capped_worst:+.2%}, told the law {told_mean:+.2%}; behind these in {behind[0]} and {behind[1]} runs",
            flush=True,
        )


def allowed(options: argparse.Namespace) -> None:
    """What 1,000 periods allow: exact plans of tables, lead time 3, made from the same periods, under the true law."""
    demand = poisson(5)
    for penalty in (4, 19):
        shop = Inventory(
            lead_time=3, penalty=penalty, horizon=None, capacity=32, max_order=12, max_demand=len(demand.values) - 1,
            price=0, unit_cost=0, holding=1,
        )  # fmt: skip
        true = shop.world(demand, start=[0, 0, 0])
        best, lost = ucbf.optimal(true).gain, np.empty((options.runs, 2))
        for run in range(options.runs):
            seen = demand.draw(np.random.default_rng([options.seed, run]).random((1, 1000)))[0]
            counted = np.bincount(seen, minlength=len(demand.values)) / len(seen)
            mean = stats.poisson(seen.mean()).pmf(np.arange(len(counted)))
            for i, pmf in enumerate((counted, mean / mean.sum())):
                plan = ucbf.optimal(shop.world(ucbf.Disturbance(pmf), start=[0, 0, 0]))
                lost[run, i] = gain(true, np.asarray(plan.policy)[0]) / best - 1
        for name, each in zip(("counted", "Poisson's of the mean"), lost.T, strict=True):
            print(
                f"p {penalty:>2} L 3, exact with the distribution {name}: {each.mean():+.2%} of {-best:.4f} on "
                f"average, worst {each.max():+.2%} (run {each.argmax()}); {(each > 0.01).sum()} of {len(each)} "
                "above 1 %",
                flush=True,
            )


# -- other systems --------------------------------------------------------------------------------


def dual_sourcing() -> tuple[ucbf.LargeSystem, ucbf.Disturbance, dict[str, Any]]:
    """Gijsbrechts et al. 2022 with a regular lead time of 6; the dual index rule is the usual one."""
    shop = Inventory(
        lead_time=6, fast_cost=105, fast_lead_time=0, unit_cost=100, holding=5, penalty=495, price=0, backlog=30,
        capacity=40, max_demand=4, max_order=8, max_fast=8, horizon=None,
    )  # fmt: skip
    system, law = shop.large, shop.large_law(ucbf.Disturbance([0.2] * 5))

    def dual_index(low: int, high: int) -> Callable[..., Any]:
        def rule(h: int, s: Any) -> Any:
            fast = np.clip(low - s[:, 0], 0, 8)
            return np.stack([np.clip(high - s.sum(axis=1) - fast, 0, 8), fast], axis=1)

        return rule

    rules = {f"dual index {a}, {b}": dual_index(a, b) for a in range(2, 8) for b in range(12, 24)}
    best = max(rules, key=lambda name: values.measured(system, law, rules[name], chains=100, steps=300).mean)
    return system, law, {best: rules[best]}


def perishable() -> tuple[ucbf.LargeSystem, ucbf.Disturbance, dict[str, Any]]:
    """Five days of life, lead time 1, demand of mean 4; base-stock is the usual rule."""
    demand = ucbf.Disturbance(np.append(stats.nbinom(8, 2 / 3).pmf(np.arange(20)), stats.nbinom(8, 2 / 3).sf(19)))
    shop = Inventory(
        lead_time=1, shelf_life=5, issue="first", waste=7, holding=1, penalty=5, unit_cost=3, price=0, capacity=60,
        max_order=12, max_demand=20, horizon=None,
    )  # fmt: skip
    system, law = shop.large, shop.large_law(demand)
    rule = values.search(system, law, kind="base-stock", chains=200, steps=400)[0]
    return system, law, {f"base-stock ({rule})": rule}


def network() -> tuple[ucbf.LargeSystem, ucbf.Disturbance, dict[str, Any]]:
    """Three stations in a row, one server that chooses where to work; what waits costs 1, 2 and 4.

    W: an arrival (0.28), and how many the server would finish at each station, of success 0.9.
    """
    rate = np.array([0.9, 0.9, 0.9])
    rows, pmf = [], []
    for bits in np.ndindex(2, 2, 2, 2):
        rows.append([*bits[:1], 0, 0, *bits[1:]])
        pmf.append(np.prod([p if bit else 1 - p for bit, p in zip(bits, [0.28, *rate], strict=True)]))

    def served(z: Any) -> Any:
        at = z[:, 3:] >= 2  # chosen, and finished
        out = at & (z[:, :3] > 0)
        moved = out.astype(np.int64)
        return np.clip(
            z[:, :3] - moved + np.concatenate([np.zeros((len(z), 1), np.int64), moved[:, :2]], axis=1), 0, 30
        )

    system = ucbf.LargeSystem(
        lambda s, a: np.concatenate([s, (np.arange(3) == a[:, None]).astype(np.int64)], axis=1),
        lambda s, a: -(s @ np.array([1.0, 2.0, 4.0])), horizon=None, boundary=served, low=[0] * 3, high=[30] * 3,
        actions=np.arange(3),
    )  # fmt: skip

    def last_first(h: int, s: Any) -> Any:
        return np.where(s[:, 2] > 0, 2, np.where(s[:, 1] > 0, 1, 0))[:, None]

    def longest(h: int, s: Any) -> Any:
        return s.argmax(axis=1)[:, None]

    return system, ucbf.Disturbance(pmf, values=rows), {"last station first": last_first, "longest queue": longest}


def others(options: argparse.Namespace) -> None:
    """The same call elsewhere, beside the usual heuristics."""
    for make in (network, perishable, dual_sourcing):
        if options.system and make.__name__ != options.system:
            continue
        clock = Clock()
        system, law, rules = make()
        found = values.policy_iteration(system, law, seed=options.seed)
        took = str(clock)
        worth = found.measured(law, seed=options.seed + 1)
        print(f"{make.__name__}: {worth}; base {found.base_worth}; {took}", flush=True)
        for name, rule in rules.items():
            print(f"  {name}: {found.measured(law, rule, seed=options.seed + 1)}", flush=True)


# -- against bounds -------------------------------------------------------------------------------

ITEMS = {"rate": np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]), "lost": np.array([9, 8, 7, 6, 5, 4, 3, 2.0])}
BATCH, SHELF = 6, 12


def eight_items() -> tuple[ucbf.LargeSystem, ucbf.Disturbance, dict[str, Any]]:
    """Eight items, one of which can be filled up by a batch each day; lost sales; demand 0 or 1 of each, common noise.

    W: one of 400 draws of the eight demands. The usual rule fills up the item that lasts least, if that is for fewer
    days than some, the best number of days.
    """
    rate, missed = ITEMS["rate"], ITEMS["lost"]
    drawn = (np.random.default_rng(0).random((400, 8)) < rate).astype(np.int64)
    system = ucbf.LargeSystem(
        lambda s, a: np.minimum(s + BATCH * (np.arange(8) == a[:, None]), SHELF),
        lambda s, a: np.zeros(len(s)), horizon=None, boundary="clip", low=[0] * 8, high=[SHELF] * 8,
        actions=np.arange(9), landing=lambda z: -0.1 * np.maximum(z, 0).sum(axis=1) - np.maximum(-z, 0) @ missed,
    )  # fmt: skip

    def least_cover(days: float) -> Callable[..., Any]:
        def rule(h: int, s: Any) -> Any:
            cover = s / rate
            return np.where(cover.min(axis=1) > days, 8, cover.argmin(axis=1))[:, None]

        return rule

    law = ucbf.Disturbance(values=-drawn)
    rules = {f"least cover, below {days:g} days": least_cover(days) for days in np.arange(0.5, 5, 0.5)}
    best = max(rules, key=lambda name: values.measured(system, law, rules[name], chains=100, steps=300).mean)
    return system, law, {best: rules[best]}


def relaxed(law: ucbf.Disturbance) -> float:
    """What no rule can exceed: each item by itself, filled up whenever it pays the price λ; the lowest such sum."""

    def bound(price: float) -> float:
        total = price
        for i, missed in enumerate(ITEMS["lost"]):
            rate = float(-law.values[:, i].mean())
            one = ucbf.System(
                lambda s, a: np.minimum(s + BATCH * a, SHELF), lambda s, a: -price * a, horizon=None, boundary="clip",
                n_states=SHELF + 1, n_actions=2, disturbance_range=(-1, 0),
                landing=lambda z, missed=missed: -0.1 * np.maximum(z, 0) - missed * np.maximum(-z, 0),
            )  # fmt: skip
            total += float(ucbf.optimal(ucbf.World(one, ucbf.Disturbance([rate, 1 - rate], low=-1))).gain)
        return total

    return min(bound(price) for price in np.linspace(0, 6, 25))


def regulator() -> tuple[ucbf.LargeSystem, ucbf.Disturbance, float]:
    """Linear, with four states and two continuous actions, costs quadratic; Riccati's equation is the bound."""
    A = np.array([[0.9, 0.2, 0, 0], [0, 0.8, 0.3, 0], [0, 0, 0.9, 0.1], [0.1, 0, 0, 0.7]])
    B = np.array([[1.0, 0], [0.2, 0.1], [0, 1.0], [0, 0.5]])
    side = np.array([-1.0, 1.0]) * 0.5
    rows = np.stack(np.meshgrid(*[side] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
    system = ucbf.LargeSystem(
        lambda s, a: s @ A.T + a @ B.T, lambda s, a: -(s**2).sum(axis=1) - 0.5 * (a**2).sum(axis=1), horizon=None,
        boundary="clip", low=[-20.0] * 4, high=[20.0] * 4, action_low=[-5, -5], action_high=[5, 5],
    )  # fmt: skip
    P = np.eye(4)
    for _ in range(2000):
        gain = np.linalg.solve(0.5 * np.eye(2) + B.T @ P @ B, B.T @ P @ A)
        P = np.eye(4) + A.T @ P @ (A - B @ gain)
    return system, ucbf.Disturbance(values=rows), -float(np.trace(P) * 0.25)


def bounds(options: argparse.Namespace) -> None:
    """Eight axes, and a continuous action of two parts, against bounds."""
    clock = Clock()
    system, law, bound = regulator()
    found = values.policy_iteration(system, law, seed=options.seed)
    worth = found.measured(law, seed=options.seed + 1)
    print(f"regulator, two continuous actions: {worth}; no rule exceeds {bound:.4f} (Riccati); {clock}", flush=True)
    clock = Clock()
    items, law, rules = eight_items()
    found = values.policy_iteration(items, law, samples=200, rounds=1, seed=options.seed)  # the default takes minutes
    took, usual = str(clock), next(iter(rules))
    worth = found.measured(law, samples=500, seed=options.seed + 1)
    other = values.measured(items, law, rules[usual], chains=100, seed=options.seed + 1)
    print(
        f"eight items: {worth}; base {found.base_worth}; {usual} {other}; no rule exceeds {relaxed(law):.4f} (each "
        f"item by itself); {took}",
        flush=True,
    )


def growth(options: argparse.Namespace) -> None:
    """Time and memory as axes are added: lost sales, p = 4, few samples."""
    for lead_time in (2, 4, 8, 16, 32):
        clock, demand = Clock(), poisson(5)
        shop = lost_sales(lead_time, 4, demand)
        found = values.policy_iteration(shop.large, shop.large_law(demand), samples=300, rounds=1, seed=options.seed)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        cost, base = -found.worth.mean, -found.base_worth.mean
        print(
            f"L {lead_time:>2}: {cost:.3f}, base {base:.3f}; {len(found.q.theta)} terms; {clock}; at most {most:.0f} MB"
        )


PARTS = {f.__name__: f for f in (lost, exact, learned, allowed, others, bounds, growth)}


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--series", type=lambda text: [int(x) for x in text.split(",")], help="of the runs, these")
    parser.add_argument("--only", type=lambda text: [[int(x) for x in one.split("-")] for one in text.split(",")])
    parser.add_argument("--system", help="of the others: network, perishable or dual_sourcing")
    options = parser.parse_args()
    for name in options.parts or PARTS:
        print(f"-- {name}: {(PARTS[name].__doc__ or '').splitlines()[0]}", flush=True)
        PARTS[name](options)
    print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
