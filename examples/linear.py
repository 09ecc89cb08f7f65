"""A plant whose actuator is not what the data sheet says: f is linear in known features, its gain unknown.

The level s of a tank moves by s' = s + g(a) + W: valve a was sold as letting a litres through, but lets 3a - 4 through.
Told only that f may be wrong, and that what is wrong is an effect of each action, an agent finds the gain while it
acts. Prints the gaps, and draws them if matplotlib is there.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import ucbf

Numbers = NDArray[Any]
LEVELS, VALVES, HOURS, EPISODES, TANKS = 41, 5, 8, 3000, 20


def tank(seed: int) -> tuple[ucbf.World, ucbf.System]:
    """The world, and what the agent is told of it."""
    rng = np.random.default_rng(seed)
    wanted = rng.integers(8, 33, size=HOURS)  # level that is asked for, hour by hour
    law = ucbf.Disturbance(rng.dirichlet(np.ones(7), size=HOURS), low=-3)

    def reward(h: int, s: Numbers, a: Numbers) -> Numbers:
        near: Numbers = 1 - np.abs(s - wanted[h]) / LEVELS
        return near

    def plant(gain: int, offset: int, zeta: int) -> ucbf.System:
        return ucbf.System(
            lambda s, a: s + gain * a + offset, reward, HOURS, "clip", model_error=zeta, n_states=LEVELS,
            n_actions=VALVES, disturbance_range=(-3, 3),
        )  # fmt: skip

    return ucbf.World(plant(3, -4, 0), law), plant(1, 0, 10)


def agents(world: ucbf.World, told: ucbf.System) -> dict[str, ucbf.Agent]:
    """With f as sold, repaired, and right."""
    features = ucbf.estimators.LinearFeatures
    return {
        "UCB-f, as sold": ucbf.UCBf(told),
        "UCB-f, repaired": ucbf.UCBf(told, estimator=features("actions")),
        "UCBVI-f, repaired": ucbf.UCBVIf(told, estimator=features("actions")),
        "UCBVI-f, right f": ucbf.UCBVIf(world.system),
    }


def main(episodes: int = EPISODES, tanks: int = TANKS) -> None:
    """Gaps of every episode, averaged over tanks."""
    gaps: dict[str, Numbers] = {}
    for seed in range(tanks):
        world, told = tank(seed)
        for name, agent in agents(world, told).items():
            gap = ucbf.simulate(agent, world, episodes, seed).gap / tanks
            gaps[name] = gaps[name] + gap if name in gaps else gap
    shown = [k for k in (1, 10, 100, 1000) if k < episodes] + [episodes]
    print("gap after".rjust(20), *(f"{k:>8}" for k in shown))
    for name, gap in gaps.items():
        print(name.rjust(20), *(f"{gap[k - 1]:8.4f}" for k in shown))
    try:
        draw(gaps)
    except ImportError:
        print("no picture: it needs matplotlib")


def draw(gaps: dict[str, Numbers]) -> None:
    """linear.png: mean gap against episodes, and the order of Theorem 3."""
    from matplotlib.figure import Figure

    from ucbf.figures import STYLES

    figure = Figure(figsize=(6, 3.8), layout="constrained")
    ax = figure.subplots()
    k = np.arange(1, len(gaps["UCB-f, repaired"]) + 1)
    for (name, gap), (colour, dashes) in zip(gaps.items(), STYLES, strict=False):
        kept = np.unique(np.geomspace(1, len(k), 60).astype(int))
        parts = [gap[a - 1 : b].mean() for a, b in zip(kept, [*kept[1:], len(k) + 1], strict=True)]
        ax.plot(kept, parts, color=colour, linestyle=dashes, linewidth=1.8, label=name)
    ax.plot(
        k,
        gaps["UCB-f, repaired"][0] / np.sqrt(k),
        color="#999999",
        linestyle="-",
        linewidth=1,
        label="1/sqrt(k): Theorem 3",
    )
    ax.set(xscale="log", yscale="log", xlabel="episode", ylabel="gap to the optimal value, mean", ylim=(1e-5, None))
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#ececec")
    ax.legend(frameon=False, fontsize=9)
    ax.set_title("Repaired, the gap goes on falling; as sold it stays", loc="left", fontsize=11, fontweight="bold")
    figure.savefig("linear.png", dpi=160)
    print("linear.png")


if __name__ == "__main__":
    main()
