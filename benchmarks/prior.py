"""Whether UCBVI-f should believe something of W before it has seen any: a prior over the declared range, measured.

Regret with Dirichlet priors of several weights on every value of the range, over that of bare counts, in worlds whose
laws are sparse or not; then the paper's panels, over UCB-f. ``--quick`` for a look.
"""

import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import ucbf

QUICK = "--quick" in sys.argv
warnings.simplefilter("ignore", ucbf.ModelWarning)  # a prior that what is seen contradicts is the point here
WEIGHTS: dict[str, Callable[[int], float]] = {  # on each of n values, in disturbances seen
    "1/n": lambda n: 1 / n,
    "1/2": lambda n: 0.5,
    "1": lambda n: 1.0,
    "2": lambda n: 2.0,
}


def over(worlds: int, measure: Callable[[int], Any]) -> Any:
    """measure(seed) for every world, on all cores, as an array."""
    with ThreadPoolExecutor() as pool:
        return np.array(list(pool.map(measure, range(worlds))))


def agents(system: ucbf.System) -> list[ucbf.UCBVIf]:
    """Bare counts, UCBVI-f as it is, then with each fixed weight."""
    low, high = system.disturbance_range
    n = high - low + 1
    uniform = ucbf.Disturbance(np.full(n, 1 / n), low=low)
    return [ucbf.UCBVIf(system, prior_weight=0), ucbf.UCBVIf(system)] + [
        ucbf.UCBVIf(system, prior=uniform, prior_weight=n * weight(n)) for weight in WEIGHTS.values()
    ]


def random_system(rng: np.random.Generator, S: int, A: int, H: int, most: int, smooth: bool = False) -> ucbf.System:
    """States that wrap, any f; rewards any, or neighbours alike."""
    x = 2 * np.pi * np.arange(S) / S
    reward = 0.5 + 0.5 * np.sin(x + rng.random() * 6) if smooth else rng.random(S)
    return ucbf.System(rng.integers(0, S, (S, A)), reward, H, "wrap", disturbance_range=(0, most))


def law_kinds() -> dict[str, Any]:
    """World of a seed, by name."""

    def of(pmf: Callable[[np.random.Generator], Any], S: int, most: int, smooth: bool = False) -> Any:
        def make(seed: int) -> ucbf.World:
            rng = np.random.default_rng(seed)
            system = random_system(rng, S, 4, 5, most, smooth)
            weight = np.array([pmf(rng) for _ in range(5)], float)
            return ucbf.World(system, ucbf.Disturbance(weight / weight.sum(axis=1, keepdims=True)))

        return make

    def two(most: int) -> Any:
        return lambda rng: np.bincount(rng.choice(most + 1, 2, False), rng.random(2) + 0.1, most + 1)

    def point(most: int) -> Any:
        return lambda rng: np.eye(most + 1)[rng.integers(most + 1)]

    def zipf(most: int) -> Any:
        return lambda rng: (1.0 + np.arange(most + 1)) ** -1.5

    def narrow(most: int) -> Any:
        return lambda rng: np.r_[rng.random(6), np.zeros(most - 5)]

    def bell(most: int) -> Any:
        return lambda rng: np.exp(-0.5 * ((np.arange(most + 1) - most * rng.uniform(0.3, 0.7)) / (most / 10)) ** 2)

    return {
        "any on 0..5 (the paper's)": of(lambda rng: rng.random(6), 25, 5),
        "two values of 0..5": of(two(5), 25, 5),
        "two values of 0..40": of(two(40), 60, 40),
        "one value of 0..5": of(point(5), 25, 5),
        "one value of 0..40": of(point(40), 60, 40),
        "one value of 0..40, smooth rewards": of(point(40), 60, 40, True),
        "heavy-tailed on 0..40": of(zipf(40), 60, 40),
        "0..5, declared 0..40": of(narrow(40), 60, 40),
        "0..5, declared 0..40, smooth rewards": of(narrow(40), 60, 40, True),
        "bell-shaped on 0..40": of(bell(40), 60, 40),
        "the shop of examples/inventory.py": lambda seed: example_shop(),
    }


def example_shop() -> ucbf.World:
    """The shop that the README begins with."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    import inventory

    return ucbf.World(inventory.shop(), inventory.demand(), start=0)


def main() -> None:
    """Print both tables."""
    worlds, episodes = (6, 300) if QUICK else (30, 1000)
    print(f"regret of UCBVI-f in {episodes} episodes, mean of {worlds} worlds; with a prior, over that without")
    print(f"  {'weight on each value':38}{'none':>9}{'as it is':>9}" + "".join(f"{name:>8}" for name in WEIGHTS))
    for name, make in law_kinds().items():

        def measure(i: int, make: Any = make) -> list[float]:
            world = make(i)
            return [float(ucbf.simulate(one, world, episodes, seed=i).regret[-1]) for one in agents(world.system)]

        bare, *helped = over(worlds, measure).mean(axis=0)
        ratios = [one / max(bare, 1e-12) for one in helped]
        print(f"  {name:38}{bare:9.3g}{ratios[0]:9.2f}" + "".join(f"{one:8.2f}" for one in ratios[1:]), flush=True)
    worlds, episodes = (6, 1000) if QUICK else (50, 5000)
    print(f"\nthe paper's panels, ζ = 0, W declared as 0..5, {episodes} episodes, {worlds} worlds: regret over UCB-f's")
    print(f"  {'weight on each value':38}{'none':>9}{'as it is':>9}" + "".join(f"{name:>8}" for name in WEIGHTS))
    for H in (5, 10):
        for A in (2, 4, 8):

            def panel(i: int, A: int = A, H: int = H) -> list[float]:
                world = ucbf.random_world(25, A, H, seed=i)
                system = world.system.replace(disturbance_range=(0, 5))
                played = [ucbf.UCBf(world.system), *agents(system)]
                return [float(ucbf.simulate(one, world, episodes, seed=i).regret[-1]) for one in played]

            base, *rest = over(worlds, panel).mean(axis=0)
            shown = f"{rest[0] / base:9.2f}{rest[1] / base:9.2f}" + "".join(f"{one / base:8.2f}" for one in rest[2:])
            print(f"  {f'A = {A}, H = {H}':38}{shown}", flush=True)


if __name__ == "__main__":
    main()
