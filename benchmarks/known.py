"""Problems with known answers: solved, learned, and learned without seeing lost sales. ``make known``.

Prints a table and draws docs/cost.png and docs/censored.png (or into the folder given as argument).
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import ucbf
from ucbf.planning import plan

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from instances import INSTANCES, riccati

SEEDS, MOST = 20, 20_000
COLOURS = {"UCBVI-f": "#0072B2", "UCB-f": "#56B4E9", "UCB-H": "#D55E00"}
Floats = NDArray[np.float64]


def settled(gap: Floats, bound: float) -> float:
    """The episode from which the gap stays within a bound; infinite if it does not."""
    outside = np.flatnonzero(gap > bound)
    return 1.0 if not len(outside) else float(outside[-1] + 2) if outside[-1] + 1 < len(gap) else np.inf


def learn_known() -> None:
    """Every instance: its value, and how soon agents are within 1 % of it."""
    print(f"known answers; gap: median of {SEEDS} seeds, in percent; then the episode from which it stays within 1 %")
    print(f"{'':22}{'published':>14}{'planned':>16}{'gap at 100':>12}{'UCBVI-f':>9}{'UCB-f':>8}{'UCB-H':>9}")
    for name, make in INSTANCES.items():
        world, value = make()
        planned = float(world.start @ ucbf.optimal(world).v[0])
        cells = []
        for agent, most in (("UCBVI-f", 1000), ("UCB-f", MOST), ("UCB-H", MOST)):
            runs = [ucbf.simulate(ucbf.make_agent(agent, world.system), world, most, seed=s) for s in range(SEEDS)]
            gap = np.median([run.gap for run in runs], axis=0)
            if agent == "UCBVI-f":
                at_100 = 100 * float(gap[99]) / abs(value)
            cells.append(settled(gap, 0.01 * abs(value)))
        shown = [f"{x:.0f}" if np.isfinite(x) else f">{MOST}" for x in cells]
        print(f"{name:22}{value:14.8g}{planned:16.10g}{at_100:10.3f} %{shown[0]:>9}{shown[1]:>8}{shown[2]:>9}")


def learn_hidden() -> None:
    """What edges hide is never shown: how far from optimal agents end, of all seeds."""
    inventory, battery = ucbf.systems.Inventory, ucbf.systems.Battery
    both = battery(
        horizon=3, capacity=6, max_buy=4, max_sell=2, min_demand=-3, max_demand=4, prices=(1.0, 3.0, 2.0),
        shortage_price=8, spill_price=-2,
    )  # fmt: skip
    systems: dict[str, tuple[ucbf.systems.Preset, list[float] | None]] = {
        "a week, bell-shaped demand": (inventory(), None),
        "a week, demand 0 to 8 alike": (inventory(max_demand=8), [1 / 9] * 9),
        "a week, mostly no demand": (inventory(max_demand=8), [0.6] + [0.05] * 8),
        "a battery that fills and empties": (both, None),
    }
    print(f"\nnothing is shown of what an edge hides: profit missed after 3000 episodes, of {SEEDS} seeds, in percent")
    print(f"{'':34}{'UCBVI-f, mean':>14}{'worst':>9}{'UCB-f, mean':>13}{'worst':>9}")
    for name, (preset, pmf) in systems.items():
        world = preset.world(None if pmf is None else ucbf.Disturbance(pmf))
        best, cells = abs(float(world.start @ ucbf.optimal(world).v[0])), []
        for agent in (ucbf.UCBVIf, ucbf.UCBf):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ucbf.CensoredWarning)  # UCB-f says that it is misled
                runs = [ucbf.simulate(agent(world.system), world, 3000, seed=s, censored=True) for s in range(SEEDS)]
            gaps = 100 * np.array([run.gap[-1] for run in runs]) / best
            cells += [gaps.mean(), gaps.max()]
        print(f"{name:34}{cells[0]:14.2f}{cells[1]:9.2f}{cells[2]:13.2f}{cells[3]:9.2f}")


def plan_from_sales() -> None:
    """Three years of sales with stock-outs, from a log: what the policy misses, and what the plan for the law does."""
    shop, days = ucbf.systems.Inventory(capacity=40, max_demand=30), 3 * 365
    d = np.arange(31)
    poisson = [np.array([float(r) ** k / math.factorial(k) for k in d]) for r in (2, 8)]
    demands = {
        "Poisson, 2 a day": poisson[0],
        "Poisson, 8 a day": poisson[1],
        "geometric, 8 a day": (8 / 9) ** d,
        "0 to 16 alike": 1.0 * (d <= 16),
        "2 or 14": 1.0 * ((d == 2) | (d == 14)),
        "mostly none": 0.7 * (d == 0) + 0.3 * poisson[1] / poisson[1].sum(),
    }
    shelves: dict[str, Callable[[np.random.Generator, Floats], int]] = {
        "the median demand, and a full shelf every fifth day": lambda rng, cdf: (
            40 if rng.random() < 0.2 else int(np.searchsorted(cdf, 0.5))
        ),
        "anything up to the 99.5 % quantile": lambda rng, cdf: int(rng.integers(1, np.searchsorted(cdf, 0.995) + 2)),
    }
    print(f"\nthree years of sales with stock-outs, a law for each weekday: profit missed in percent, {SEEDS} logs")
    print(f"{'':54}{'policy, mean':>13}{'worst':>8}{'plan for law':>14}{'worst':>8}")
    for shelf, level in shelves.items():
        missed = []
        for weights in demands.values():
            pmf = weights / weights.sum()
            cdf, world = np.cumsum(pmf), shop.world(ucbf.Disturbance(pmf), start=0)
            best = float(ucbf.optimal(world).v[0, 0])
            for seed in range(SEEDS):
                rng, agent, stock = np.random.default_rng(seed), ucbf.UCBVIf(shop.system), 0
                for day in range(days):
                    order, asked = max(level(rng, cdf) - stock, 0), int(rng.choice(31, p=pmf))
                    left = max(stock + order - asked, 0)
                    agent.observe(day % 7, stock, order, left)
                    stock = left
                plan = ucbf.optimal(ucbf.World(shop.system, agent.law)).policy
                missed.append([best - float(ucbf.evaluate(world, p)[0, 0]) for p in (agent.policy, plan)])
                missed[-1] = [100 * x / best for x in missed[-1]]
        (mean, mean_law), (worst, worst_law) = np.mean(missed, axis=0), np.max(missed, axis=0)
        print(f"{shelf:54}{mean:13.2f}{worst:8.2f}{mean_law:14.2f}{worst_law:8.2f}")


def regulate() -> None:
    """The scalar regulator: error against Riccati as the lattice is refined, planned and learned."""
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, (400, 1))
    noise -= noise.mean()
    p, x = riccati(8), np.linspace(-1, 1, 41)[:, None]
    truth = -(p[8] * x[:, 0] ** 2 + np.mean(noise**2) * sum(p[:8]))
    print("\nscalar-lqr, 8 steps: largest error of V_0 on [-1, 1] against Riccati, by spacing of the lattice")
    spacings, errors = [], []
    for points in (41, 81, 161, 321, 641):
        grid = regulator(points)
        errors.append(float(np.abs(plan(grid, ucbf.Disturbance(values=noise)).value_at(0, x) - truth).max()))
        spacings.append(float(grid.space.spacing[0]))
        print(f"  {spacings[-1]:7.4f}  {errors[-1]:.6f}")
    print(f"  order of convergence: {np.polyfit(np.log(spacings), np.log(errors), 1)[0]:.2f}")
    grid, rng = regulator(161), np.random.default_rng(1)
    starts, tests = np.full((2000, 1), 1.0), noise[rng.integers(0, 400, (2000, 8))]
    best = plan(grid, ucbf.Disturbance(values=noise)).rollout(starts, tests).mean()
    missed = []
    for seed in range(SEEDS):
        agent, drawn = ucbf.UCBVIf(grid), np.random.default_rng(100 + seed)
        agent.warm_start(noise[drawn.integers(0, 400, (100, 8))])
        missed.append(100 * (best - agent.plan.rollout(starts, tests).mean()) / abs(best))
    print(
        f"  learned from 100 episodes: cost {np.median(missed):.3f} % above that of the known law (median of {SEEDS})"
    )


def regulator(points: int) -> ucbf.System:
    """X' = x + u + w, cost x² + u²."""
    return ucbf.System(
        lambda x, u: x + u[:, None], lambda x, u: -(x[:, 0] ** 2 + u**2), 8, "clip", low=[-4], high=[4], points=points,
        actions=np.linspace(-3, 3, (points - 1) * 3 // 4 + 1), disturbance_range=(-0.6, 0.6),
    )  # fmt: skip


def cost_figure(path: Path) -> None:
    """Cost against days of data, with the optimum and the base-stock rule as lines."""
    shop = ucbf.systems.Inventory(order_cost=12)
    world = shop.world(start=0)
    best = float(ucbf.optimal(world).v[0, 0])
    rules = {name: float(ucbf.evaluate(world, rule)[0, 0]) for name, rule in shop.rules(world.law).items()}
    figure, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
    weeks = 3000
    days = 7 * np.arange(1, weeks + 1)
    since: dict[str, float] = {}
    for name, colour in COLOURS.items():
        runs = [ucbf.simulate(ucbf.make_agent(name, world.system), world, weeks, seed=s) for s in range(SEEDS)]
        profit = best - np.array([run.gap for run in runs])
        low, middle, high = np.quantile(profit, [0.1, 0.5, 0.9], axis=0)
        ax.fill_between(days, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(days, middle, color=colour, label=name)
        since[name] = 7 * settled(best - middle, 0.01 * best)
    ax.axhline(best, color="black", linewidth=1, label="optimum, which knows the law")
    for name, dashes in (("(s, S)", "--"), ("base-stock", ":")):
        ax.axhline(rules[name], color="#777777", linestyle=dashes, linewidth=1.4, label=f"{name}, which knows it too")
    ax.set(xscale="log", xlim=(7, days[-1]), ylim=(0, 1.05 * best))
    ax.set(xlabel=f"days of data   ({SEEDS} histories; band: 10 to 90 %)", ylabel="expected profit a week")
    title = f"UCBVI-f is within 1 % of the optimum after {since['UCBVI-f']:.0f} days, UCB-f after {since['UCB-f']:.0f}"
    ax.set_title(title, loc="left", fontsize=11, fontweight="bold")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#ececec")
    ax.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=160)
    print(f"\n{path}: optimum {best:.1f}, " + ", ".join(f"{name} {worth:.1f}" for name, worth in rules.items()))


def censored_figure(path: Path) -> None:
    """Half of all days end with an empty shelf: how near the law comes, estimated rightly and naively."""
    law = np.array([1, 2, 4, 6, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1.0])
    law /= law.sum()
    most = len(law) - 1
    shop = ucbf.systems.Inventory(horizon=1, capacity=most, max_demand=most, salvage=0)
    shown = np.unique(np.geomspace(10, 20_000, 25).astype(int))
    names = ("product limit (UCBVI-f)", "sales taken for demand", "full days only")
    estimates: dict[str, list[Floats]] = {name: [] for name in names}
    errors: dict[str, Floats] = {name: np.empty((SEEDS, len(shown))) for name in estimates}
    empty = 0.0
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        agent = ucbf.UCBVIf(shop.system)
        stock, demand = rng.integers(0, most + 1, shown[-1]), rng.choice(most + 1, shown[-1], p=law)
        left = np.maximum(stock - demand, 0)
        empty += float((left == 0).mean()) / SEEDS
        for n in range(1, shown[-1] + 1):
            agent.observe(0, int(stock[n - 1]), 0, int(left[n - 1]))
            if n in shown:
                i = int(np.searchsorted(shown, n))
                sold, full = (stock - left)[:n], left[:n] > 0
                each = (
                    agent.law.pmf[0][::-1],
                    np.bincount(sold, minlength=most + 1) / n,
                    np.bincount(sold[full], minlength=most + 1) / max(full.sum(), 1),
                )
                for name, estimate in zip(estimates, each, strict=True):
                    errors[name][seed, i] = np.abs(estimate - law).sum() / 2
                    if n == shown[-1]:
                        estimates[name].append(estimate)
    figure, (left_ax, right_ax) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for (name, table), (colour, dashes) in zip(
        errors.items(), (("#0072B2", "-"), ("#D55E00", "--"), ("#009E73", ":")), strict=True
    ):
        left_ax.fill_between(shown, table.min(axis=0), table.max(axis=0), color=colour, alpha=0.2, linewidth=0)
        left_ax.plot(shown, np.median(table, axis=0), color=colour, linestyle=dashes, label=name)
        right_ax.plot(np.mean(estimates[name], axis=0), color=colour, linestyle=dashes, marker=".", label=name)
    right_ax.bar(range(most + 1), law, color="#dddddd", label="the truth")
    left_ax.set(xscale="log", yscale="log", xlabel="days", ylabel="distance from the truth (total variation)")
    left_ax.set_title(f"{100 * empty:.0f} % of the days ended with an empty shelf", loc="left", fontsize=11)
    right_ax.set(xlabel="demand", ylabel="probability")
    right_ax.set_title(f"After {shown[-1]} days", loc="left", fontsize=11)
    right_ax.legend(frameon=False, fontsize=9)
    for ax in (left_ax, right_ax):
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#ececec")
        ax.set_axisbelow(True)
    title = "Days that sold out, counted as bounds, lead to the true demand; sales taken for demand do not"
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    figure.savefig(path, dpi=160)
    last = ", ".join(f"{name} {np.median(table[:, -1]):.3f}" for name, table in errors.items())
    print(f"\n{path}: distance from the truth after {shown[-1]} days, {100 * empty:.0f} % of them censored: {last}")


def main(folder: Path) -> None:
    """All of it."""
    folder.mkdir(parents=True, exist_ok=True)
    learn_known()
    learn_hidden()
    plan_from_sales()
    regulate()
    cost_figure(folder / "cost.png")
    censored_figure(folder / "censored.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs"))
