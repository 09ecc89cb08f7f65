"""What docs/benchmarks.md says of certificates, few switches, the model check and repair, measured.

Worlds are the paper's (25 states, f random, W on 0..5) unless said otherwise.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from repair_worlds import kinds_of_world, made

import ucbf
from ucbf.kernels import loop
from ucbf.model_check import ModelWarning

QUICK = False  # --quick
warnings.simplefilter("ignore", ModelWarning)  # counted here


def over(worlds: int, measure: Callable[[int], Any]) -> list[Any]:
    """measure(seed) for every world, on all cores."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(measure, range(worlds)))


def growing(last: int, factor: float) -> list[int]:
    """1, 2, 3, ... by a factor, up to last."""
    k, found = 1, []
    while k < last:
        found.append(k)
        k = max(k + 1, int(k * factor))
    return [*found, last]


def paper_world(A: int, H: int, seed: int) -> ucbf.World:
    """One of the paper's."""
    return ucbf.random_world(25, A, H, seed=seed)


def declared(world: ucbf.World, most: int) -> ucbf.World:
    """The same world, W known to be 0..most."""
    return ucbf.World(world.system.replace(disturbance_range=(0, most)), world.law)


FORMS = ("bernstein", "coupled", "evalue", "best")


def missed(world: ucbf.World, policy: Any) -> Any:
    """[S] what a policy misses from every first state on."""
    if world.system.horizon is None and world.system.discount == 1:
        return np.full(world.system.n_states, world.best - ucbf.planning.gain(world, policy))
    return world.plan.v[0] - ucbf.evaluate(world, policy)[0]


def certified_in(make: Any, p: float, episodes: list[int], params: dict[str, Any], forms: Any, seed: int) -> Any:
    """The true gap and certificates after growing numbers of episodes in a world [1 + F, P], and if they failed [F].

    A certificate fails if it is ever below the gap, on average or of any first state.
    """
    world, kind, zeta = make(seed), params.get("kind", ucbf.UCBVIf), params.get("zeta", 0)
    told = ucbf.corrupt(world.system, zeta, seed) if zeta else world.system
    agent = kind(told, **{name: value for name, value in params.items() if name not in ("kind", "zeta")})
    rows, done, below = [], 0, np.zeros(len(forms), bool)
    for k in episodes:
        length = (None, k - done) if world.system.horizon is None else (k - done, None)
        ucbf.simulate(agent, world, length[0], 1000 * seed + k, steps=length[1])
        done = k
        gap, bounds = missed(world, agent.policy), [agent.certificate(p, form) for form in forms]
        averages = [bound.average(world.start) for bound in bounds]
        rows.append([world.start @ gap, *averages])
        for i, bound in enumerate(bounds):
            below[i] |= (gap > bound.gap + 1e-9).any() or world.start @ gap > averages[i] + 1e-9
    return np.array(rows).T, below


def certificates() -> None:
    """How often a certificate was ever below the true gap, and how loose they are."""
    runs, p, last = (10, 0.05, 300) if QUICK else (250, 0.05, 1000)
    episodes = growing(last, 1.5)
    print(f"\ncertificates at p = {p}: runs of {last} episodes (steps), looked at {len(episodes)} times")
    forms, no_end = ("coupled", "evalue", "best"), ("coupled", "best")
    kinds: dict[str, Any] = {
        "the paper's, A = 2, H = 5": (lambda i: declared(paper_world(2, 5, i), 5), {}, forms),
        "the paper's, range not declared": (partial(paper_world, 2, 5), {}, forms),
        "small and noisy, H = 2": (lambda i: ucbf.random_world(6, 3, 2, 2, None, seed=i), {}, forms),
        "two values of W, H = 4": (coin_world, {}, forms),
        "a shop, H = 3": (shop_world, {}, forms),
        "a box, H = 3": (box_world, {}, forms),
        "small, pooled steps": (stationary_world, {"stationary": True}, no_end),
        "no end, discounted": (partial(endless_world, 0.8), {}, no_end),
        "no end, the average": (partial(endless_world, 1.0), {}, no_end),
        "UCB-f, two values of W, H = 4": (coin_world, {"kind": ucbf.UCBf}, forms),
        "UCB-f, no end, the average": (partial(endless_world, 1.0), {"kind": ucbf.UCBf}, no_end),
    }
    for name, (make, params, asked) in kinds.items():
        found = over(runs, partial(certified_in, make, p, episodes, params, asked))
        below = np.mean([one[1] for one in found], axis=0)
        said = ", ".join(f"{share:.4f} {form}" for form, share in zip(asked, below, strict=True))
        print(f"  {name}: ever below the true gap in {said} of {runs}", flush=True)
    worlds, marks = (6, [100, 1000]) if QUICK else (25, [100, 1000, 5000])
    print(f"  how loose, A = 4, W declared as 0..5, median over {worlds} worlds")
    for H in (5, 10):
        made = partial(certified_in, lambda i, H=H: declared(paper_world(4, H, i), 5), p, marks, {}, FORMS)
        curves = np.array([one[0] for one in over(worlds, made)])
        for at, k in enumerate(marks):
            gap, *bounds = np.median(curves[:, :, at], axis=0)
            said = ", ".join(f"{form} {bound:.3g}" for form, bound in zip(FORMS, bounds, strict=True))
            print(f"    H = {H}, after {k}: gap {gap:.2g}; {said}")
    stops = over(worlds, lambda i: stopped(declared(paper_world(4, 5, i), 5), 0.1, i))
    prior = ucbf.theory.episodes_to_certify(paper_world(4, 5, 0).system, 0.1)
    print(f"  stop_when=0.1 (A = 4, H = 5): after {np.median(stops):g} episodes (median), at most {max(stops)}; "
          f"a priori {prior}")  # fmt: skip
    believed = over(worlds, credible)
    print(f"  believed, not certain (95 % of laws from the posterior), H = 5, after 100: {np.median(believed):.2g}")
    shop = example_shop()
    best = float(shop.plan.v[0, 0])
    weeks = over(2 if QUICK else 10, lambda i: stopped(shop, 0.05 * best, i))
    print(f"  the shop of examples/inventory.py is within 5 % of its best profit after {np.median(weeks):g} weeks")


def repair_certificates() -> None:
    """The same of an agent that repairs f; and how loose they are, beside those with f known and as ζ allows."""
    runs, p, last = (10, 0.05, 300) if QUICK else (250, 0.05, 1000)
    episodes, forms = growing(last, 1.5), ("best",)
    print(f"\ncertificates under repair at p = {p}: runs of {last} episodes, looked at {len(episodes)} times")
    repaired: dict[str, Any] = {"estimator": "OffsetPosterior"}
    kinds: dict[str, Any] = {
        "small, ζ = 2": (lambda i: ucbf.random_world(6, 3, 2, 2, None, seed=i), 2),
        "small, W declared, ζ = 2": (lambda i: declared(ucbf.random_world(9, 2, 3, 2, None, seed=i), 2), 2),
        "two values of W, ζ = 2": (coin_world, 2),
        "the paper's, A = 2, W declared, ζ = 4": (lambda i: declared(paper_world(2, 5, i), 5), 4),
    }
    for name, (make, zeta) in kinds.items():
        found = over(runs, partial(certified_in, make, p, episodes, repaired | {"zeta": zeta}, forms))
        print(f"  {name}: ever below the true gap in {np.mean([one[1] for one in found]):.4f} of {runs}", flush=True)
    worlds, marks = (2, [100, 1000]) if QUICK else (15, [100, 1000, 5000, 20000])
    print(f"  how loose, A = 4, H = 5, W declared as 0..5, ζ = 2, median over {worlds} worlds")
    made = partial(declared_paper_world, 4)
    loose = [
        np.array([one[0] for one in over(worlds, partial(certified_in, made, p, marks, params, forms))])
        for params, forms in [
            (repaired | {"zeta": 2}, ("best", "bernstein")),
            ({}, ("coupled",)),
        ]
    ]
    for at, k in enumerate(marks):
        (gap, best, separate), known = np.median(loose[0][:, :, at], axis=0), np.median(loose[1][:, 1, at])
        print(f"    after {k}: gap {gap:.2g}; repaired {best:.3g}, as ζ allows {separate:.3g}; f known {known:.3g}")


def declared_paper_world(A: int, seed: int) -> ucbf.World:
    """One of the paper's, W known to be 0..5."""
    return declared(paper_world(A, 5, seed), 5)


def stopped(world: ucbf.World, epsilon: float, seed: int) -> int:
    """After how many episodes the certificate is at most ε."""
    return len(ucbf.simulate(ucbf.UCBVIf(world.system), world, 200_000, seed=seed, stop_when=epsilon).gap)


def credible(seed: int) -> float:
    """What is believed after 100 episodes in one of the paper's worlds."""
    world = declared(paper_world(4, 5, seed), 5)
    agent = ucbf.UCBVIf(world.system)
    ucbf.simulate(agent, world, 100, seed=seed)
    return agent.credible_gap(start=world.start)


def example_shop() -> ucbf.World:
    """The shop that the README begins with."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    import inventory

    return ucbf.World(inventory.shop(), inventory.demand(), start=0)


def stationary_world(seed: int) -> ucbf.World:
    """Small, with one law for all steps."""
    world = ucbf.random_world(6, 3, 2, 2, None, seed=seed)
    return ucbf.World(world.system, ucbf.Disturbance(world.law.pmf[0]))


def coin_world(seed: int) -> ucbf.World:
    """W is 0 or 1, often nearly even: the best action is easily taken for the second best."""
    rng = np.random.default_rng(seed)
    system = ucbf.System(rng.integers(0, 5, (5, 3)), rng.random((5, 3)), 4, "wrap", disturbance_range=(0, 1))
    chance = 0.5 + rng.choice([0.05, 0.4]) * (rng.random(4) - 0.5)
    return ucbf.World(system, ucbf.Disturbance(np.stack([chance, 1 - chance], axis=1)))


def shop_world(seed: int) -> ucbf.World:
    """Lost sales, holding, an order cost; any demand of 0..4."""
    rng = np.random.default_rng(seed)
    system = ucbf.System(
        lambda s, a: s + a, lambda s, a: -1.0 * a - 2.0 * (a > 0), 3, "clip", n_states=7, n_actions=7,
        landing=lambda z: -1.0 * np.maximum(z, 0) - 6.0 * np.maximum(-z, 0), allowed=lambda s, a: s + a <= 6,
        disturbance_range=(-4, 0),
    )  # fmt: skip
    return ucbf.World(system, ucbf.Disturbance(rng.dirichlet(np.full(5, 0.5), 3), low=-4))


def box_world(seed: int) -> ucbf.World:
    """Two axes, one that wraps and one that is clipped, moved by W of four values."""
    rng = np.random.default_rng(seed)
    reward = rng.random((3, 4, 2))
    system = ucbf.System(
        lambda s, a: np.stack([s[:, 0] + a, s[:, 1] + (s[:, 0] + a) % 2], axis=1),
        lambda s, a: reward[s[:, 0], s[:, 1], a], 3, ["wrap", "clip"], low=[0, 0], high=[2, 3], n_actions=2,
        disturbance_range=([0, -1], [1, 0]), discount=0.9,
    )  # fmt: skip
    values = [[0, -1], [0, 0], [1, -1], [1, 0]]
    return ucbf.World(system, ucbf.Disturbance(rng.dirichlet(np.ones(4), 3), values=values))


def endless_world(discount: float, seed: int) -> ucbf.World:
    """Small, without an end."""
    rng = np.random.default_rng(seed)
    system = ucbf.System(rng.integers(0, 5, (5, 3)), rng.random((5, 3)), None, "wrap", discount=discount,
                         disturbance_range=(0, 2))  # fmt: skip
    return ucbf.World(system, ucbf.Disturbance(rng.dirichlet(np.ones(3)) * 0.97 + 0.01))


def few_switches() -> None:
    """Regret, policies and time per episode with and without the schedule."""
    worlds, episodes = (6, 1000) if QUICK else (50, 5000)
    print(f"\nfew switches: {worlds} worlds, {episodes} episodes; time of the learner alone, microseconds an episode")
    for A, H in ((2, 5), (8, 10)):
        for kind in (ucbf.UCBVIf, ucbf.UCBf):
            shown = []
            for renewal in ("episode", "few"):

                def measure(i: int, kind: Any = kind, renewal: str = renewal, A: int = A, H: int = H) -> Any:
                    world = ucbf.random_world(25, A, H, seed=i)
                    run = ucbf.simulate(kind(world.system, renewal=renewal), world, episodes, seed=i)
                    return run.regret[-1], run.switches

                regret, switches = np.mean(over(worlds, measure), axis=0)
                shown.append((regret, switches, alone(kind, A, H, renewal, episodes)))
            (r0, s0, t0), (r1, s1, t1) = shown
            print(
                f"  {kind.name}, A = {A}, H = {H}: regret {r0:.3g} -> {r1:.3g} ({r1 / r0:.2f}), switches {s0:.0f} -> "
                f"{s1:.0f} ({s1 / np.log(episodes):.0f} log K), time {t0:.2f} -> {t1:.2f} (times {t1 / t0:.2f})"
            )


def alone(kind: Any, A: int, H: int, renewal: str, episodes: int) -> float:
    """Microseconds an episode of learning and planning, without the world."""
    world = ucbf.random_world(25, A, H, seed=0)
    j = world.system.bins.index(world.draw(episodes, 0)[1])
    states, actions = np.zeros((episodes, H + 1), np.int64), np.zeros((episodes, H), np.int64)
    least = np.inf
    for _ in range(6):
        agent = kind(world.system, renewal=renewal)
        begun = time.perf_counter()
        loop.relearn(agent.told, agent.learner, states, actions, j)
        least = min(least, time.perf_counter() - begun)
    return 1e6 * least / episodes


def model_check() -> None:
    """How soon a structural error is reported, and how often a right model is accused."""
    worlds, long = (20, 1000) if QUICK else (200, 5000)
    print(f"\nmodel check: accused within 100, 200, 400, 800 episodes and at the end of {long}, of {worlds} worlds")
    estimator = {"estimator": "OffsetPosterior"}
    cases: dict[str, Any] = {
        "right, UCBVI-f": (lambda w, i: w.system, {}, None),
        "right, UCB-f": (lambda w, i: w.system, {"kind": ucbf.UCBf}, None),
        "ζ = 4 as told, UCBVI-f": (lambda w, i: ucbf.corrupt(w.system, 4, i), {}, None),
        "ζ = 4 as told, repaired": (lambda w, i: ucbf.corrupt(w.system, 4, i), estimator, None),
        "ζ = 4 but 0 is told": (lambda w, i: ucbf.corrupt(w.system, 4, i).replace(model_error=0), {}, None),
        "ζ = 8 but 4 is told, repaired": (
            lambda w, i: ucbf.corrupt(w.system, 8, i).replace(model_error=4),
            estimator,
            None,
        ),
        "W depends on the state": (lambda w, i: w.system, {}, depends),
        "W depends on the state, repaired": (lambda w, i: w.system.replace(model_error=4), estimator, depends),
        "hardly any W": (lambda w, i: w.system, {"law": ucbf.Disturbance([0.99, 0.01])}, None),
    }
    for name, (told, params, law) in cases.items():
        marks = [100, 200, 400, 800] + ([long] if law is None else [])

        def measure(i: int, told: Any = told, params: Any = params, law: Any = law, marks: list[int] = marks) -> Any:
            world = ucbf.random_world(25, 4, 5, seed=i)
            kind = params.get("kind", ucbf.UCBVIf)
            world = ucbf.World(world.system, params.get("law", world.law))
            agent = kind(told(world, i), **{k: v for k, v in params.items() if k == "estimator"})
            if law is not None:
                return law(agent, world, marks, i)
            accused, done = [], 0
            for k in marks:
                ucbf.simulate(agent, world, k - done, seed=1000 * i + k)
                done = k
                accused.append(not agent.model_check().ok)
            return accused

        rates = np.mean(over(worlds if law is None else min(worlds, 60), measure), axis=0)
        print(f"  {name}: " + ", ".join(f"{rate:.3f}" for rate in rates))


def depends(agent: ucbf.UCBVIf, world: ucbf.World, marks: list[int], seed: int) -> list[bool]:
    """Step by step in a world where W is 0 or 5 in half of the states; when it was accused."""
    rng, accused = np.random.default_rng(seed), []
    f, pmf = world.system.f[0], world.law.pmf
    for k in range(1, marks[-1] + 1):
        s = int(rng.integers(25))
        for h in range(5):
            a = agent.act(h, s)
            w = rng.choice(6, p=pmf[h]) if s < 12 else 5 * rng.integers(2)
            s_next = int((f[s, a] + w) % 25)
            agent.observe(h, s, a, s_next)
            s = s_next
        if k in marks:
            accused.append(not agent.model_check().ok)
    return accused


def repair() -> None:
    """What repair costs, and saves, over knowing f and over believing it as told."""
    worlds, episodes = (2, 500) if QUICK else (10, 2000)
    print(f"\nrepair, H = 5: mean regret of UCBVI-f in {worlds} worlds, {episodes} episodes")
    print(f"{'':32}{'f known':>9}{'as told':>9}{'repaired':>10}{'over the better':>17}")
    for name, kind in kinds_of_world().items():
        found = np.mean(over(worlds, partial(repaired_in, kind, episodes)), axis=0)
        print(f"  {name:30}" + "".join(f"{x:9.1f}" for x in found) + f"{found[2] / min(found[:2]):17.2f}", flush=True)


def repair_panels() -> None:
    """Repair in a few worlds of each of the paper's panels: figure 2 in little."""
    worlds, episodes = (2, 500) if QUICK else (4, 5000)
    print(f"\nrepair in the paper's worlds, UCBVI-f: regret of {episodes} episodes, {worlds} worlds a panel")
    for H in (5, 10):
        for A in (2, 4, 8):
            exact, *wrong = (
                np.mean(over(worlds, partial(panel_world, A, H, zeta, episodes)), axis=0) for zeta in (0, 2, 4)
            )
            said = ", ".join(f"ζ = {zeta}: {mine / told:.3f}" for zeta, (told, mine) in zip((2, 4), wrong, strict=True))
            print(
                f"  H = {H}, A = {A}: over that with f as told, {said}; f exact but told as ζ = 4, over that with f "
                f"known: {exact[1] / exact[0]:.2f}",
                flush=True,
            )


def panel_world(A: int, H: int, zeta: int, episodes: int, seed: int) -> list[float]:
    """The regret in a world of a panel with f as told, and repaired; told ζ = 4 where it is exact."""
    world = paper_world(A, H, seed)
    told = ucbf.corrupt(world.system, zeta, seed) if zeta else world.system
    doubted = told if zeta else told.replace(model_error=4)
    agents = ucbf.UCBVIf(told), ucbf.UCBVIf(doubted, estimator="OffsetPosterior")
    return [float(ucbf.simulate(agent, world, episodes, seed).regret[-1]) for agent in agents]


def repaired_in(kind: Any, episodes: int, seed: int) -> list[float]:
    """The regret in one world with f known, as told, and repaired."""
    world, told = made(kind, seed)
    agents = (ucbf.UCBVIf(world.system), ucbf.UCBVIf(told), ucbf.UCBVIf(told, estimator="OffsetPosterior"))
    return [float(ucbf.simulate(agent, world, episodes, seed).regret[-1]) for agent in agents]


def prior_knowledge() -> None:
    """UCBVI-f against UCB-f at ζ = 0 where even the right prior is known: what any learner could hope for."""
    worlds = 6 if QUICK else 50
    print(
        f"\na prior, uniform on 0..5 like the worlds' own: regret of 5000 episodes over UCB-f's, ζ = 0, {worlds} worlds"
    )
    uniform = ucbf.Disturbance(np.full(6, 1 / 6))
    for H in (5, 10):
        for A in (2, 4, 8):

            def measure(i: int, A: int = A, H: int = H) -> list[float]:
                world = ucbf.random_world(25, A, H, seed=i)
                agents = (
                    ucbf.UCBf(world.system),
                    ucbf.UCBVIf(world.system),
                    ucbf.UCBVIf(world.system, prior=uniform, prior_weight=12),
                )
                return [ucbf.simulate(agent, world, 5000, seed=i).regret[-1] for agent in agents]

            base, plain, helped = np.mean(over(worlds, measure), axis=0)
            print(f"  A = {A}, H = {H}: UCBVI-f {plain / base:.2f}, with the prior {helped / base:.2f}")


def main() -> None:
    """All parts, or those that are named."""
    global QUICK
    parts = (certificates, repair_certificates, few_switches, model_check, repair, repair_panels, prior_knowledge)
    names = [part.__name__ for part in parts]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"one of {', '.join(names)}; all, if none is named")
    parser.add_argument("--quick", action="store_true", help="a look in a minute")
    asked = parser.parse_args()
    for name in set(asked.parts) - set(names):
        parser.error(f"there is no part {name!r}; the parts are {', '.join(names)}")
    QUICK = asked.quick
    for part in parts:
        if not asked.parts or part.__name__ in asked.parts:
            begun = time.perf_counter()
            part()
            print(f"  ({time.perf_counter() - begun:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
