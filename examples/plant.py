"""A craft in the wind: continuous position and speed, learned within a percent or two in a few dozen flights.

The craft is a double integrator: its motors push, and gusts, whose law is not known, push as well. It is told its own
mechanics and learns the gusts, as they are, on a lattice. The yardstick is a plan on a lattice three times as fine that
knows the gusts. Run it with ``python examples/plant.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ucbf

STEP, STEPS = 0.25, 24  # seconds, and how many of them a flight has
SHOWN = (1, 2, 5, 10, 20, 40)
Floats = NDArray[np.float64]


def craft(points: int, pushes: int) -> ucbf.System:
    """What is known: position and speed follow the motors, and being away from the middle costs."""

    def f(s: Floats, u: Floats) -> Floats:
        position = s[:, 0] + STEP * s[:, 1] + STEP**2 / 2 * u
        return np.stack([position, s[:, 1] + STEP * u], axis=1)

    return ucbf.System(
        f,
        reward=lambda s, u: -(s[:, 0] ** 2 + 0.1 * s[:, 1] ** 2 + 0.1 * u**2),
        terminal=lambda s: -(4 * s[:, 0] ** 2 + s[:, 1] ** 2),
        horizon=STEPS,
        low=[-3, -3],
        high=[3, 3],
        points=points,
        actions=np.linspace(-2, 2, pushes),
        boundary="clip",
        disturbance_range=([-0.1, -0.5], [0.1, 0.5]),
    )


def wind(rng: np.random.Generator, h: int = 0) -> Floats:
    """What is not known: gusts from one side, which change the speed, and the position by half as much in a step."""
    gust = min(0.12 * rng.gamma(2.0) - 0.12, 0.5)
    return np.array([STEP / 2 * gust, gust])


def start(rng: np.random.Generator) -> Floats:
    """Somewhere around the middle."""
    return rng.uniform([-2, -0.5], [2, 0.5])


def learn(seed: int, episodes: tuple[int, ...], judge: tuple[Floats, Floats], points: int = 61) -> list[float]:
    """Mean return of the policy after so many flights, in flights that it did not see."""
    agent = ucbf.UCBVIf(craft(points, 17))
    rng, done, worth = np.random.default_rng(seed), 0, []
    for k in episodes:
        for _ in range(done, k):
            ucbf.replay(agent, [[wind(rng) for _ in range(STEPS)]], start=start(rng))
        done = k
        worth.append(float(agent.plan.rollout(*judge).mean()))
    return worth


def known(system: ucbf.System, gusts: list[Floats]) -> ucbf.Plan:
    """The best plan, if the wind is one of these gusts."""
    return ucbf.optimal(ucbf.World(system, ucbf.Disturbance(values=gusts)))


def draw(above: Floats, episodes: tuple[int, ...], path: Path) -> None:
    """How far above the optimum, over flights."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    ax.fill_between(episodes, above.min(axis=0), above.max(axis=0), color="#0072B2", alpha=0.2, linewidth=0)
    ax.plot(episodes, np.median(above, axis=0), color="#0072B2", marker="o", label="learning the wind")
    ax.axhline(2, color="black", linewidth=0.8, linestyle=":")
    ax.text(episodes[-1], 2.1, "2 %", ha="right", va="bottom")
    ax.set(xscale="log", yscale="log", xticks=episodes, xlabel="flights", ylabel="cost above the fine-grid optimum (%)")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.set_yticks([0.5, 1, 2, 5, 10])
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#ececec")
    ax.legend(frameon=False)
    near = [k for k, x in zip(episodes, np.median(above, axis=0), strict=True) if x < 2]
    if near:
        title = f"Told its mechanics, the craft is within 2 % of the optimum after {near[0]} flights"
        ax.set_title(title, loc="left", fontsize=11, fontweight="bold")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160)
    plt.close(figure)


def main(
    picture: Path = Path("results") / "plant.png", seeds: int = 10, episodes: tuple[int, ...] = SHOWN, fine: int = 181
) -> list[float]:
    """Learn several times over; returns how far above the optimum, in percent, the median is."""
    rng = np.random.default_rng(0)
    gusts = np.array([[wind(rng) for _ in range(STEPS)] for _ in range(1000)])
    judge = np.array([start(rng) for _ in range(1000)]), gusts
    best = known(craft(fine, 33), [wind(rng) for _ in range(20_000)]).rollout(*judge).mean()
    worth = np.array([learn(seed, episodes, judge) for seed in range(seeds)])
    above = 100 * (worth - best) / best
    print(f"cost of the fine-grid optimum, which knows the wind: {-best:.3f} a flight")
    print("flights       " + "".join(f"{k:9d}" for k in episodes))
    print("above it (%)  " + "".join(f"{x:9.2f}" for x in np.median(above, axis=0)) + f"   (median of {seeds})")
    draw(above, episodes, picture)
    print(f"picture: {picture}")
    return list(np.median(above, axis=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("results") / "plant.png")
