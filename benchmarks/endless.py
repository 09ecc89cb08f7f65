"""Systems without an end and with contexts, measured: lost sales with a lead time, regret, two regimes, a large plan.

    python benchmarks/endless.py [seeds]

Prints the figures of docs/howto/lead_times.md, no_end.md and contexts.md, and draws docs/lost_sales.png.
"""

from __future__ import annotations

import resource
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

import ucbf
from ucbf.figures.style import STYLES, legend_above, quiet
from ucbf.planning import gain, plan
from ucbf.systems import Inventory

DOCS = Path(__file__).parents[1] / "docs"
MYOPIC2 = {1: 4.04, 2: 4.41, 3: 4.64}  # as Zipkin (2008) printed them, Poisson demand, penalty 4
LEAST = 1e-3  # % that is drawn; what is smaller is drawn there
AT = [50, 100, 200, 300, 500, 1000, 1999]


def poisson(most: int) -> ucbf.Disturbance:
    """Poisson demand of mean 5, cut off."""
    pmf = stats.poisson(5).pmf(np.arange(most + 1))
    pmf[-1] += 1 - pmf.sum()
    return ucbf.Disturbance(pmf)


def lost_sales(seeds: int) -> None:
    """How soon the demand is learned, beside the heuristics of those who know it."""
    figure = Figure(figsize=(12, 4.2), layout="constrained")
    panels, slowest = figure.subplots(1, 3, sharey=True), 0
    for lead_time, panel in zip((1, 2, 3), panels, strict=True):
        shop = Inventory(lead_time=lead_time, penalty=4, holding=1, price=0, unit_cost=0, horizon=None, capacity=30,
                         max_order=12, max_demand=25)  # fmt: skip
        world = shop.world(poisson(25))
        best = -world.best
        position, shelf = world.system.space.points.sum(axis=1), range(8, 36)
        base = {level: -gain(world, np.clip(level - position, 0, 12)) for level in shelf}
        capped = min(-gain(world, np.clip(level - position, 0, cap)) for level in range(10, 31) for cap in range(4, 9))
        lines = {"base-stock": min(base.values()), "myopic-2": MYOPIC2[lead_time], "capped base-stock": capped}
        print(f"lead time {lead_time}: optimal {best:.4f}, " + ", ".join(f"{k} {v:.4f}" for k, v in lines.items()))
        agents: dict[str, Any] = {"UCBVI-f": ucbf.UCBVIf, "UCB-f": ucbf.UCBf}
        if (
            lead_time < 3
        ):  # its policy changes at every step, and each is evaluated exactly: with 5,239 states, for hours
            agents["UCB-f, c = 0.005"] = partial(ucbf.UCBf, c=0.005)
        for (name, make), (colour, dashes) in zip(agents.items(), STYLES[4:1:-1], strict=False):
            runs = [ucbf.simulate(make(shop.system), world, steps=2000, seed=seed) for seed in range(seeds)]
            gaps = np.array([100 * run.gap / best for run in runs])
            median = np.median(gaps, axis=0)
            above = np.flatnonzero(median > 1)
            since = above[-1] + 1 if len(above) else 0
            slowest = max(slowest, since if name == "UCBVI-f" else 0)
            shown = ", ".join(f"{t + 1}: {median[t]:.2f}" for t in AT)
            print(f"  {name}: median gap in % of the cost after {shown}; below 1 % for good after {since} periods")
            periods, middle = np.arange(1, 2001), np.quantile(gaps, [0.25, 0.75], axis=0)
            panel.plot(periods, np.maximum(median, LEAST), color=colour, linestyle=dashes, label=name)
            panel.fill_between(periods, *np.maximum(middle, LEAST), color=colour, alpha=0.2, linewidth=0)
        for (name, cost), style in zip(lines.items(), (":", "--", "-."), strict=True):
            panel.axhline(
                max(100 * (cost / best - 1), LEAST), color="0.4", linestyle=style, label=f"{name}, demand known"
            )
        panel.set(xscale="log", yscale="log", title=f"lead time {lead_time}", xlabel="period", xlim=(1, 2000))
        panel.set_ylim(LEAST, 1e3)
        quiet(panel)
    panels[0].set_ylabel("cost above the optimum, %")
    figure.supxlabel(f"median of {seeds} runs; band: the middle half", fontsize=10)
    found = f"UCBVI-f comes within 1 % of the optimal cost in {slowest} periods; the bonus of UCB-f takes far longer"
    legend_above(figure, panels[0], found)
    figure.savefig(DOCS / "lost_sales.png", dpi=130)


def slopes(worlds: int) -> None:
    """Whether regret stops growing: its slope over the last decade, on log-log axes; and γ -> 1."""
    for discount in (0.9, 0.99, 1.0):
        sums: dict[str, list[NDArray[np.float64]]] = {"UCBVI-f": [], "UCB-f": []}
        for seed in range(worlds):
            drawn = ucbf.random_world(seed=seed, lipschitz=None)
            system = ucbf.System(drawn.system.f[0], drawn.system.reward[0], None, "wrap", discount=discount)
            world = ucbf.World(system, ucbf.Disturbance(drawn.law.pmf[0]))
            for name, kind in (("UCBVI-f", ucbf.UCBVIf), ("UCB-f", ucbf.UCBf)):
                sums[name].append(ucbf.simulate(kind(system), world, steps=8000).regret)
        for name, regrets in sums.items():
            mean = np.mean(regrets, axis=0)
            slope = np.log(mean[-1] / mean[799]) / np.log(10)
            print(f"discount {discount:g}, {name}: regret after 8,000 steps {mean[-1]:.1f}, slope {slope:.2f}")


def regimes() -> None:
    """A demand with two regimes: what ignoring them costs, and how soon they are learned; and ten."""
    for E in (2, 10):
        chances = np.linspace(0.15, 0.75, E)
        pmf = stats.binom(10, chances[:, None]).pmf(np.arange(11))[:, ::-1]
        stay = 0.9 * np.eye(E) + 0.1 / E
        args: dict[str, Any] = {
            "f": lambda s, a: s + a,
            "reward": 0.0,
            "horizon": None,
            "boundary": "clip",
            "n_states": 21,
            "n_actions": 11,
            "allowed": lambda s, a: s + a <= 20,
            "disturbance_range": (-10, 0),
            "landing": lambda z: -1.0 * np.maximum(z, 0) - 9.0 * np.maximum(-z, 0),
        }
        system = ucbf.System(**args, contexts=E)
        world = ucbf.World(system, ucbf.Disturbance(pmf, low=-10, contexts=stay))
        blind = ucbf.World(ucbf.System(**args), ucbf.Disturbance(pmf.mean(axis=0), low=-10))
        ignoring = gain(world, np.tile(ucbf.optimal(blind).policy[0], E))
        runs = [ucbf.simulate(ucbf.UCBVIf(system), world, steps=20_000, seed=seed) for seed in range(10)]
        median = np.median([run.gap / -world.best for run in runs], axis=0)
        above, regret = np.flatnonzero(median > 0.01), np.mean([run.regret[-1] for run in runs])
        print(
            f"{E} contexts: optimal {-world.best:.4f}, ignoring them costs {100 * (ignoring / world.best - 1):.1f} % "
            f"more; UCBVI-f within 1 % after {above[-1] + 1} steps (median of 10), its regret after 20,000 steps is "
            f"{regret:.0f}"
        )


def large() -> None:
    """One step of induction over a million states and twenty actions, beside what memory can do."""
    rows = 20
    system = ucbf.System(
        lambda s, a: np.stack([s[:, 0] + a, s[:, 1]], axis=1), lambda s, a: -0.1 * a, 2, low=[0, 0], high=[999, 999],
        actions=np.arange(rows), boundary=["clip", "clip"], disturbance_range=([-20, 0], [0, 0]),
        landing=lambda z: -np.abs(z[:, 0] - 500.0))  # fmt: skip
    law = ucbf.Disturbance(np.full(21, 1 / 21), values=[[-w, 0] for w in range(21)])
    _ = system.mechanics
    plan(system, law)
    begun = time.perf_counter()
    plan(system, law)
    step = (time.perf_counter() - begun) / 2
    room = np.zeros(50_000_000)
    begun = time.perf_counter()
    room += 1.0
    bandwidth = 2 * room.nbytes / (time.perf_counter() - begun)
    m = system.mechanics
    touched = m.after[0].nbytes + m.reward[0].nbytes + 8 * (len(m.next_state) * 3 + 2 * 21 * m.n_after + 2 * m.n_after)
    print(
        f"a step of induction, 10^6 states x {rows} actions x 21 disturbances: {step * 1e3:.0f} ms; its "
        f"{touched / 1e9:.1f} GB would take {touched / bandwidth * 1e3:.0f} ms at the {bandwidth / 1e9:.1f} GB/s of a "
        f"sum in place; the process held {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB at most"
    )


if __name__ == "__main__":
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    lost_sales(seeds)
    slopes(seeds)
    regimes()
    large()
