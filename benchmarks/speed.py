"""How fast the kernels are: every figure beside something measured in the same run. ``make bench``.

"Update" means one (s, a) pair of Algorithm 1: an episode of UCB-f updates S·A·H of them.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import in_c
import numpy as np

import ucbf
from ucbf.kernels import loop
from ucbf.kernels.jit import compiled
from ucbf.kernels.types import Floats, Ints, Mechanics
from ucbf.planning import plan
from ucbf.units import units_of

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import reference  # type: ignore[import-not-found]  # the literal transcription that the tests judge by

SIZES = {"small": (25, 8, 10), "large": (1000, 32, 10)}


@compiled
def table_form(told: Mechanics, q: Floats, v: Floats, policy: Ints, width: Floats, j: Ints) -> None:
    """Algorithm 1 as it is written, with a table of Q, compiled. j: [K, H]."""
    H, S, A = q.shape
    for k in range(len(j)):
        for h in range(H):
            n = k * H + h + 1
            alpha = (H + 1) / (H + n)
            bonus = width[h] / np.sqrt(n)
            after, reward = told.after[h % len(told.after)], told.reward[h % len(told.reward)]
            for s in range(S):
                best, best_a = -np.inf, 0
                for a in range(A):
                    target = reward[s, a] + v[h + 1, told.next_state[after[s, a] + j[k, h]]] + bonus
                    q[h, s, a] = (1 - alpha) * q[h, s, a] + alpha * target
                    if q[h, s, a] > best:
                        best, best_a = q[h, s, a], a
                v[h, s] = min(H, best)
                policy[h, s] = best_a


WHOLE = np.ones((1, 1, 1))  # disturbances are whole numbers


def world_of(size: str) -> ucbf.World:
    """A random world of that size."""
    S, A, H = SIZES[size]
    return ucbf.random_world(n_states=S, n_actions=A, horizon=H, lipschitz=None)


def seconds(work: Callable[[], Any], repeat: int = 5) -> float:
    """The quickest of a few times, after one to compile and warm up."""
    work()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def per_update(size: str, episodes: int) -> tuple[float, float, float]:
    """Seconds per update: of simulate, of learning alone, of the compiled table form."""
    world = world_of(size)
    system = world.system
    H, S, A = system.f.shape
    j = system.bins.index(world.draw(episodes, 0)[1])
    learner, told = ucbf.UCBf(system).learner, system.mechanics
    q, v, policy = np.full((H, S, A), float(H)), np.full((H + 1, S), float(H)), np.zeros((H, S), np.int64)
    v[H] = 0
    whole = seconds(lambda: ucbf.simulate(ucbf.UCBf(system), world, episodes))
    alone = seconds(lambda: loop.replay(told, learner, 0 * j, j, WHOLE))
    table = seconds(lambda: table_form(told, q, v, policy, learner.how.width, j))
    # The last step is known and not learned by UCB-f: count the updates that each really does.
    updates = episodes * S * A * (H - 1)
    return whole / updates, alone / updates, table / (episodes * S * A * H)


def per_literal_update(size: str, episodes: int = 3) -> float:
    """Seconds per update of the transcription in Python."""
    world = world_of(size)
    system = world.system
    units = units_of(system)
    formula = reference.bonus("published", system, units, told_f=True)
    literal = reference.LiteralUCBf(system, units, formula, "update", True)
    w = world.draw(episodes, 0)[1]
    begin = time.perf_counter()
    for k in range(episodes):
        for h in range(system.n_steps):
            literal.observe(h, int(w[k, h]))
    return (time.perf_counter() - begin) / (episodes * system.n_states * system.n_actions * (system.n_steps - 1))


def peak_memory(size: str) -> tuple[int, int]:
    """Bytes at the peak of building an agent and learning a little, with and without the mechanics as arrays."""
    world = world_of(size)
    j = world.system.bins.index(world.draw(3, 0)[1])
    peaks = []
    for shared in (False, True):
        system = world.system.replace()
        if shared:
            _ = system.mechanics
        tracemalloc.start()
        agent = ucbf.UCBf(system)
        loop.replay(agent.told, agent.learner, 0 * j, j, WHOLE)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return peaks[0], peaks[1]


def craft(points: int, horizon: int) -> ucbf.System:
    """A double integrator on a lattice."""
    return ucbf.System(
        lambda s, u: np.stack([s[:, 0] + 0.25 * s[:, 1], s[:, 1] + 0.25 * u], axis=1),
        lambda s, u: -(s**2).sum(axis=1),
        horizon,
        "clip",
        low=[-3, -3],
        high=[3, 3],
        points=points,
        actions=np.linspace(-2, 2, 9),
        disturbance_range=([-0.1, -0.5], [0.1, 0.5]),
    )


def per_lattice_pair() -> tuple[float, float, float]:
    """Seconds of a plan on 61 x 61 points; seconds per pair and step of it, and of the transcription on 5 x 5."""
    samples = np.random.default_rng(0).uniform([-0.1, -0.5], [0.1, 0.5], (1000, 2))
    grid, small = craft(61, 24), craft(5, 2)
    law = ucbf.Disturbance(values=samples)
    whole = seconds(lambda: plan(grid, law))
    begin = time.perf_counter()
    reference.literal_box_plan(small, samples[:20])
    literal = time.perf_counter() - begin
    return whole, whole / (grid.n_states * 9 * 24), literal / (small.n_states * 9 * 2)


def import_seconds(modules: str) -> float:
    """Median wall time of a fresh Python that imports ``modules``."""
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def per_step(name: str, episodes: int = 2000) -> tuple[float, float]:
    """Seconds a step with act and observe, and in simulate."""
    world = ucbf.random_world(n_states=25, n_actions=4, horizon=5, seed=0)
    f, (starts, w) = world.system.f, world.draw(episodes, 0)
    table, first, moves = f.tolist(), starts.tolist(), w.tolist()  # numbers of Python, as most loops have them

    def play(agent: Any, known: int) -> None:
        for k in range(known):
            s = first[k]
            for h in range(5):
                a = agent.act(h, s) if agent is not None else 0
                s_next = (table[h][s][a] + moves[k][h]) % 25
                if agent is not None:
                    agent.observe(h, s, a, s_next)
                s = s_next

    times = []
    for work in (
        lambda: play(ucbf.make_agent(name, world.system), episodes),
        lambda: play(None, episodes),
        lambda: ucbf.simulate(ucbf.make_agent(name, world.system), world, episodes),
    ):
        work()
        found = []
        for _ in range(5):
            begin = time.process_time()
            work()
            found.append(time.process_time() - begin)
        times.append(min(found) / (5 * episodes))
    return times[0] - times[1], times[2]


def main() -> None:
    """Measure and print."""
    print("UCB-f, nanoseconds per (s, a) update, and how many times faster simulate is")
    print(f"{'S, A, H':16}{'simulate':>10}{'learning':>10}{'table form':>12}{'Python':>10}")
    for size, episodes in (("small", 5000), ("large", 300)):
        whole, alone, table = per_update(size, episodes)
        row, ratios = (
            f"{SIZES[size]!s:16}{whole * 1e9:10.2f}{alone * 1e9:10.2f}{table * 1e9:12.2f}",
            f"{table / whole:11.1f}x",
        )
        if size == "small":
            literal = per_literal_update(size)
            row, ratios = f"{row}{literal * 1e9:10.0f}", f"{ratios}{literal / whole:9.0f}x"
        print(f"{row}\n{'':36}{ratios}")
    print("simulate: all of it, with drawing and the exact gap of every episode. learning: its updates alone.")
    print("table form: Algorithm 1 as written, updates alone, compiled. Python: the transcription that tests judge by.")
    S, A, H = SIZES["large"]
    table_bytes = S * A * H * 8
    with_tables, alone_bytes = peak_memory("large")
    print(f"\npeak memory at {SIZES['large']}, against the {table_bytes / 1e6:.2f} MB of a table of Q:")
    print(f"the agent {alone_bytes / 1e6:.2f} MB ({alone_bytes / table_bytes:.2f}); with the arrays of the system,")
    print(f"which agents share, {with_tables / 1e6:.2f} MB ({with_tables / table_bytes:.2f})")
    whole, pair, literal = per_lattice_pair()
    print(
        f"\na continuous box, 61 x 61 points, 9 actions, 24 steps, 1000 samples of W: a plan in {1000 * whole:.0f} ms,"
    )
    print(f"{pair * 1e9:.0f} ns a pair; {literal / pair:.0f} times faster than the transcription with 20 samples")
    in_c.main()
    print("\nact and observe, step by step: microseconds a step, steps a second, and times as long as in simulate")
    for name in ("UCBVI-f", "UCB-f", "UCB-H"):
        alone, within = per_step(name)
        print(f"{name:16}{alone * 1e6:10.2f}{1 / alone:12,.0f}{alone / within:10.0f}x")
    base, ours = import_seconds("numpy"), import_seconds("numpy, ucbf")
    print(f"\nimport ucbf: {ours - base:.3f} s more than import numpy ({base:.3f} s)")


if __name__ == "__main__":
    main()
