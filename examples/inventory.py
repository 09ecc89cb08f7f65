"""An inventory whose demand is not known: state the mechanics, learn the rest, look at the policy.

A shop orders in the morning and sells during the day; what is not in stock is lost. It knows its prices and its
storage, and learns from the demand it sees. Run it with ``make quickstart`` or ``python examples/inventory.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ucbf

CAPACITY, DAYS, MOST_DEMAND = 20, 7, 15
PRICE, UNIT_COST, ORDER_COST, HOLDING = 9.0, 4.0, 12.0, 0.5
BACKDROP = "#e8e8e8"


def shop() -> ucbf.System:
    """What the shop knows: all but the law of demand.

    W is minus the demand; the raw next state z is the stock less all that was asked for, negative if sales were lost.
    """

    def reward(stock: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.floating]:
        bought = UNIT_COST * order + ORDER_COST * (order > 0)
        return PRICE * (stock + order) - bought  # as if all were sold; what is left is taken off on landing

    return ucbf.System(
        f=lambda stock, order: stock + order,
        reward=reward,
        landing=lambda z: -(PRICE + HOLDING) * np.maximum(z, 0),
        allowed=lambda stock, order: stock + order <= CAPACITY,
        horizon=DAYS,
        boundary="clip",
        disturbance_range=(-MOST_DEMAND, 0),
        n_states=CAPACITY + 1,
        n_actions=CAPACITY + 1,
    )


def demand() -> ucbf.Disturbance:
    """What the shop does not know: busier towards the weekend."""
    d = np.arange(MOST_DEMAND, -1, -1)
    centre = np.array([4, 4, 4, 5, 7, 10, 8])[:, None]
    weight = np.exp(-0.5 * ((d - centre) / 2.2) ** 2)
    return ucbf.Disturbance(weight / weight.sum(axis=1, keepdims=True), low=-MOST_DEMAND)


def show(policy: NDArray[np.int64], best: NDArray[np.int64]) -> None:
    """The orders, day by day, with the optimal ones in brackets where they differ."""
    print("order, by day and stock in the morning (in brackets: the optimal order where it differs)\n")
    print("stock " + "".join(f"{'day ' + str(h + 1):>9}" for h in range(DAYS)))
    for s in range(0, CAPACITY + 1, 2):
        cells = [f"{a}" if a == b else f"{a} ({b})" for a, b in zip(policy[:, s], best[:, s], strict=True)]
        print(f"{s:5d} " + "".join(f"{cell:>9}" for cell in cells))


def draw(runs: dict[str, list[ucbf.Run]], policy: NDArray[np.int64], best_value: float, path: Path) -> None:
    """How fast each agent learns, and what UCB-f has learned."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=[1.3, 1], layout="constrained")
    colours = {"UCB-f": "#0072B2", "UCBVI": "#D55E00", "UCB-H": "#009E73"}
    for name, group in runs.items():
        gap = 100 * np.array([run.gap for run in group]) / best_value
        weeks, mean = np.arange(1, gap.shape[1] + 1), gap.mean(axis=0)
        left.fill_between(weeks, gap.min(axis=0), gap.max(axis=0), color=colours[name], alpha=0.2, linewidth=0)
        left.plot(weeks, mean, color=colours[name], linewidth=2)
        at = (weeks[-1], mean[-100:].mean())
        left.annotate(
            name, at, (6, 4), textcoords="offset points", color=colours[name], weight="bold", annotation_clip=False
        )
    weeks_seen = f"weeks of experience   ({len(runs['UCB-f'])} histories; band: all of them)"
    left.set(xscale="log", xlabel=weeks_seen, ylabel="profit missed (% of the optimum)")
    left.set(xlim=(1, weeks[-1]), ylim=(0, None))
    left.xaxis.set_major_formatter("{x:g}")
    found = "Told the mechanics, the learner needs weeks, not decades"
    left.set_title(found, loc="left", fontsize=11, fontweight="bold")
    left.spines[["top", "right"]].set_visible(False)
    left.grid(axis="y", color=BACKDROP)
    left.set_axisbelow(True)
    right.set_facecolor(BACKDROP)
    orders = np.ma.masked_equal(policy.T, 0)
    extent = (0.5, DAYS + 0.5, -0.5, CAPACITY + 0.5)
    image = right.imshow(orders, origin="lower", aspect="auto", cmap="viridis_r", extent=extent)
    right.text(DAYS / 2 + 0.5, 0.7 * CAPACITY, "no order", ha="center", color="#666666")
    right.set(xlabel="day of the week", ylabel="stock in the morning", yticks=range(0, CAPACITY + 1, 5))
    right.set_title("What UCB-f orders after 100 weeks", loc="left", fontsize=11)
    figure.colorbar(image, ax=right, label="units ordered")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def main(path: Path, weeks: int = 2000, seeds: int = 5) -> None:
    """Learn with three agents from the same demand, then show what came of it."""
    world = ucbf.World(shop(), demand(), start=0)
    plan = ucbf.optimal(world)
    best_value = float(plan.v[0, 0])
    runs: dict[str, list[ucbf.Run]] = {}
    for name in ("UCB-f", "UCBVI", "UCB-H"):
        print(f"{name:6} learns for {weeks} weeks, {seeds} times", file=sys.stderr)
        runs[name] = [ucbf.simulate(ucbf.make_agent(name, world.system), world, weeks, seed=s) for s in range(seeds)]
    agent = ucbf.UCBf(world.system)
    run = ucbf.simulate(agent, world, 100)
    show(agent.policy, plan.policy)
    print(f"\nUCB-f after 100 weeks earns {best_value - run.gap[-1]:.2f} a week; the optimum, which knows the law of")
    print(
        f"demand, earns {best_value:.2f}. Profit missed after 10, 100 and {weeks} weeks, mean of {seeds} histories:\n"
    )
    for name, group in runs.items():
        missed = [100 * float(np.mean([r.gap[k] for r in group])) / best_value for k in (9, 99, weeks - 1)]
        print(f"  {name:6}" + "".join(f"{percent:9.2f} %" for percent in missed))
    draw(runs, agent.policy, best_value, path)
    print(f"\npicture: {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("results") / "inventory.png")
