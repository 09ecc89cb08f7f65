"""Large systems: processor seconds and memory, beside something measured in the same run. ``make bench``.

    python benchmarks/large.py [--pipelines]

Every figure of a whole system is of a fresh process that has compiled before. Pipelines take some minutes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import ucbf
from ucbf.induction import Best, Large
from ucbf.kernels import wide
from ucbf.planning import induction, occurring

S, A, H, W = 100_000, 100, 20, 100


def shop(states: int, actions: int, horizon: int, demand: int) -> ucbf.World:
    """A stock of many pieces: f = s + a, so much a piece."""
    system = ucbf.System(
        lambda s, a: s + a,
        lambda s, a: -2.0 * a,
        horizon,
        "clip",
        landing=lambda z: -1.0 * np.maximum(z, 0) - 9.0 * np.maximum(-z, 0),
        allowed=lambda s, a: s + a < states,
        n_states=states,
        n_actions=actions,
        disturbance_range=(-demand, 0),
    )
    return ucbf.World(system, ucbf.Disturbance(np.full(demand + 1, 1 / (demand + 1)), low=-demand), start=0)


def anything(states: int, actions: int, horizon: int, most: int) -> ucbf.World:
    """An f that is drawn for each pair, as in the paper's worlds."""
    rng = np.random.default_rng(0)
    system = ucbf.System(
        rng.integers(0, states, (states, actions)), rng.random(states), horizon, "wrap", disturbance_range=(0, most)
    )
    return ucbf.World(system, ucbf.Disturbance(np.full(most + 1, 1 / (most + 1))), start=0)


KINDS: dict[str, Callable[..., ucbf.World]] = {"shop": shop, "anything": anything}


def held() -> float:
    """GB that this process held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def one_episode(kind: str) -> None:
    """A system, an agent and one episode, printed: seconds of each, and memory at the end."""
    ucbf.simulate(ucbf.UCBVIf((small := KINDS[kind](50, 20, 2, 5)).system), small, 1)
    before, times = held(), [time.process_time()]
    world = KINDS[kind](S, A, H, W)
    times.append(time.process_time())
    agent = ucbf.UCBVIf(world.system)
    times.append(time.process_time())
    ucbf.simulate(agent, world, episodes=1)
    times.append(time.process_time())
    system, made, played = np.diff(times)
    print(
        f"{kind}, S = {S:,}, A = {A}, H = {H}, W = {W}: system {system:.2f} s, agent {made:.2f} s, simulate "
        f"{played:.2f} s, together {times[-1] - times[0]:.2f} s; {held():.2f} GB, of which {before:.2f} before"
    )


def seconds(work: Callable[[], Any], repeat: int = 3) -> float:
    """The least processor time of a few runs, after one to compile and warm up."""
    work()
    times = []
    for _ in range(repeat):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def sliding(actions: int) -> None:
    """The best actions of a step by sliding maxima, and by comparing all."""
    m = shop(S, actions, 1, W).system.mechanics
    best, value, policy = Best(m), np.empty(S), np.zeros(S, np.int64)
    ahead = -(np.abs(np.linspace(-3, 5, m.n_after)[None]) ** 1.5)
    slid = seconds(lambda: best(0, ahead, value, policy))
    compared = seconds(lambda: wide.best_part(m.after[0], m.reward[0], ahead, 0.0, value, policy, 0, S))
    print(
        f"sliding maxima, A = {actions}: {slid * 1e3:.1f} ms a step, {compared / slid:.0f} times faster than all pairs"
    )


def fourier(demand: int) -> None:
    """What follows all after-states by Fourier transforms, and by sums."""
    world = shop(S, 1, 1, demand)
    m, (moves, pmf) = world.system.mechanics, occurring(world.system, world.law)
    raw, ahead, summed = np.empty(len(m.next_state)), np.empty((1, m.n_after)), np.empty((1, m.n_after))
    value, one = np.sqrt(np.arange(S, dtype=np.float64)), Large(m, moves, pmf)
    times = {}
    for one.fourier, out in ((True, ahead), (False, summed)):
        times[one.fourier] = seconds(lambda out=out: one.expect(0, value, raw, out), 1)  # type: ignore[misc]
    apart = np.abs(ahead - summed).max() / np.ptp(raw)
    print(
        f"Fourier transforms, S = {S:,}, W = {demand}: {times[True] * 1e3:.1f} ms a step, "
        f"{times[False] / times[True]:.1f} times faster than sums; they differ by {apart:.0e} of the spread of values"
    )


def draws() -> None:
    """What the draws of many episodes hold."""
    world = ucbf.random_world(lipschitz=None)
    for episodes in (100_000, 1_000_000):
        draw = world.drawing(0)
        tracemalloc.start()
        for _ in range(0, episodes, 50_000):
            draw(50_000)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"draws of {episodes:,} episodes, 50,000 at a time: {peak / 1e6:.0f} MB")


def a_million() -> None:
    """One step of induction over a million states and twenty actions, beside what memory can do."""
    begin = time.process_time()
    system = ucbf.System(
        lambda s, a: np.stack([s[:, 0] + a, s[:, 1]], axis=1), lambda s, a: -0.1 * a, 2, low=[0, 0], high=[999, 999],
        actions=np.arange(20), boundary=["clip", "clip"], disturbance_range=([-20, 0], [0, 0]),
        landing=lambda z: -np.abs(z[:, 0] - 500.0))  # fmt: skip
    law = ucbf.Disturbance(np.full(21, 1 / 21), values=[[-w, 0] for w in range(21)])
    m, moves = system.mechanics, occurring(system, law)
    built = time.process_time() - begin
    step = seconds(lambda: induction(m, *moves)) / 2
    room = np.zeros(50_000_000)
    moved = 2 * room.nbytes / seconds(lambda: np.add(room, 1.0, out=room))
    touched = m.after[0].nbytes + m.reward[0].nbytes + 8 * (len(m.next_state) * 3 + 2 * 21 * m.n_after + 2 * m.n_after)
    print(
        f"10^6 states x 20 actions x 21 disturbances: built in {built:.1f} s; a step of induction {step * 1e3:.0f} ms; "
        f"its {touched / 1e9:.1f} GB would take {touched / moved * 1e3:.0f} ms at the {moved / 1e9:.1f} GB/s of a sum "
        f"in place; {held():.2f} GB held at most, {room.nbytes / 1e9:.1f} of them for that sum"
    )


def pipeline(most: int, capacity: int, max_order: int, planned: bool) -> None:
    """Lost sales with geometric demand and a lead time of four: building, and the plan without an end."""
    from scipy import stats

    from ucbf.systems import Inventory

    pmf = stats.geom(1 / 6).pmf(np.arange(1, most + 2))
    pmf[-1] += 1 - pmf.sum()
    begin = time.process_time()
    shop = Inventory(lead_time=4, penalty=9, holding=1, price=0, unit_cost=0, horizon=None, capacity=capacity,
                     max_order=max_order, max_demand=most)  # fmt: skip
    world = shop.world(ucbf.Disturbance(pmf))
    _ = world.system.mechanics
    built = time.process_time() - begin
    said = f"pipeline of {world.system.n_states:,} states x {world.system.n_actions}: built in {built:.1f} s"
    if planned:
        begin = time.process_time()
        said += f", costs {-world.best:.4f}, planned in {time.process_time() - begin:.1f} s"
    print(f"{said}; {held():.2f} GB")


def alone(call: str) -> None:
    """A function of this file in a process of its own, the second time, when all is compiled."""
    for keep in (False, True):
        run = subprocess.run([sys.executable, __file__, "--call", call], capture_output=True, text=True, check=True)
        if keep:
            print(run.stdout, end="", flush=True)


def main() -> None:
    """Measure and print."""
    if "--call" in sys.argv:
        name, *arguments = sys.argv[-1].split()
        numbers = [int(one) if one.isdigit() else one for one in arguments]
        globals()[name](*numbers)
        return
    print("Large systems; processor seconds of all threads together")
    for kind in KINDS:
        alone(f"one_episode {kind}")
    for actions in (100, 1000):
        alone(f"sliding {actions}")
    for demand in (256, 512, 1000, 10_000):
        fourier(demand)
    draws()
    alone("a_million")
    if "--pipelines" in sys.argv:
        alone("pipeline 120 60 12 1")
        alone("pipeline 25 70 20 0")


if __name__ == "__main__":
    main()
