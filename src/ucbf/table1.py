"""Table 1 of the paper, measured: how time, memory and regret grow with the numbers of states and actions."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ucbf.agents import AGENTS
from ucbf.kernels import loop
from ucbf.simulation import simulate
from ucbf.world import World, random_world

PAPER = {  # regret, time, space as the paper states them; the last two are not in its table
    "UCBVI": ("sqrt(H²SAT) + H⁴S²A", "S²AT", "S²AH"),
    "UBEV": ("sqrt(H³SAT) + H²S³A²", "S²AT", "S²AH"),
    "UCB-H": ("sqrt(H⁴SAT)", "T", "SAH"),
    "Q-EarlySettled-Advantage": ("sqrt(H²SAT) + H⁶SA", "T", "SAH"),
    "UCB-f": ("sqrt(H⁶T)", "SAT", "SAH"),
    "UCB-B": ("sqrt(H³SAT) + sqrt(H⁹S³A³)", "T", "SAH"),
    "UCBVI-BF": ("sqrt(H²SAT) + H⁴S²A", "S²AT", "S²AH"),
}
# Scales of the bonus with which these learn within the episodes measured here. The others do with their defaults.
PRACTICAL = {"UCB-B": 0.01, "Q-EarlySettled-Advantage": 0.005, "UBEV": 0.02, "UCBVI-BF": 0.001}
HORIZON = 5


class Sizes(NamedTuple):
    """The sizes of the worlds, and how long they are measured."""

    states: tuple[int, ...]  # with actions[0] actions
    actions: tuple[int, ...]  # with states[0] states
    regret_states: tuple[int, ...]
    regret_actions: int
    episodes: int
    worlds: int
    seconds: float  # that every timing takes


FULL = Sizes((32, 64, 128, 256), (4, 8, 16, 32, 64), (10, 20, 40, 80), 4, 3000, 12, 0.3)
QUICK = Sizes((16, 32, 64), (4, 8, 16), (10, 20, 40), 4, 400, 3, 0.03)


class Fit(NamedTuple):
    """y ~ x^exponent, by least squares on logarithms, with a 95 % interval (two standard errors)."""

    exponent: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.exponent:.2f} ± {self.half_width:.2f}"


class Measurement(NamedTuple):
    """One algorithm: what was measured at each size, and the exponents fitted to it."""

    agent: str
    time_states: NDArray[np.float64]  # seconds a step
    time_actions: NDArray[np.float64]
    memory_states: NDArray[np.float64]  # bytes
    memory_actions: NDArray[np.float64]
    regret: NDArray[np.float64]  # [sizes, worlds]
    fits: dict[str, Fit]


def fit(x: NDArray[np.float64], y: NDArray[np.float64]) -> Fit:
    """The exponent of a power law."""
    u, v = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    centred = u - u.mean()
    slope = float(centred @ v / (centred @ centred))
    residual = v - v.mean() - slope * centred
    error = np.sqrt(residual @ residual / max(len(u) - 2, 1) / (centred @ centred))
    return Fit(slope, 2 * float(error))


def measure(name: str, sizes: Sizes, seed: int = 0) -> Measurement:
    """Time, memory and regret of one algorithm over the sizes."""
    S0, A0 = sizes.states[0], sizes.actions[0]
    by_states = [_cost(name, S, A0, sizes.seconds, seed) for S in sizes.states]
    by_actions = [_cost(name, S0, A, sizes.seconds, seed) for A in sizes.actions]
    regret = np.array(
        [
            [_regret(name, S, sizes.regret_actions, sizes.episodes, seed + i) for i in range(sizes.worlds)]
            for S in sizes.regret_states
        ]
    )
    (time_s, memory_s), (time_a, memory_a) = (np.array(costs).T for costs in (by_states, by_actions))
    pairs = np.repeat(np.array(sizes.regret_states) * sizes.regret_actions, sizes.worlds)
    fits = {
        "time, S": fit(np.array(sizes.states), time_s),
        "time, A": fit(np.array(sizes.actions), time_a),
        "memory, S": fit(np.array(sizes.states), memory_s),
        "memory, A": fit(np.array(sizes.actions), memory_a),
        "regret, SA": fit(pairs, regret.ravel()),
    }
    return Measurement(name, time_s, time_a, memory_s, memory_a, regret, fits)


def _agent(name: str, world: World) -> Any:
    return AGENTS[name](world.system, **({"c": PRACTICAL[name]} if name in PRACTICAL else {}))


def _world(n_states: int, n_actions: int, seed: int) -> World:
    return random_world(n_states, n_actions, HORIZON, max_disturbance=5, lipschitz=None, seed=seed)


def _cost(name: str, n_states: int, n_actions: int, seconds: float, seed: int) -> tuple[float, float]:
    """Seconds per step of learning alone, from episodes of a random policy; bytes of the arrays that learning changes.

    The arrays of the model check are not counted: they do not grow with S times A, and the paper's table has none.
    """
    world = _world(n_states, n_actions, seed)
    agent = _agent(name, world)
    rng = np.random.default_rng(seed)
    episodes = 16
    starts, w = world.draw(episodes, seed)
    j = world.system.bins.index(w)
    actions = rng.integers(n_actions, size=j.shape)
    states = np.empty((episodes, HORIZON + 1), np.int64)
    states[:, 0] = starts
    for h in range(HORIZON):
        states[:, h + 1] = (world.system.f[h, states[:, h], actions[:, h]] + w[:, h]) % n_states
    loop.relearn(agent.told, agent.learner, states, actions, j)
    begun, spent, rounds = time.thread_time(), 0.0, 0  # of this thread, which other programs do not lengthen
    while spent < seconds:
        for _ in range(20):
            loop.relearn(agent.told, agent.learner, states, actions, j)
        rounds += 20
        spent = time.thread_time() - begun
    kept = [array.nbytes for name, array in agent.state.items() if not name.startswith("watch.")]
    return spent / (rounds * episodes * HORIZON), float(sum(kept))


def _regret(name: str, n_states: int, n_actions: int, episodes: int, seed: int) -> float:
    world = _world(n_states, n_actions, seed)
    return float(simulate(_agent(name, world), world, episodes, seed).gap.sum())


def measure_all(sizes: Sizes, seed: int = 0, progress: Callable[[int, int], object] | None = None) -> list[Measurement]:
    """Every algorithm of the table, those of the paper first."""
    found = []
    for done, name in enumerate(PAPER):
        found.append(measure(name, sizes, seed))
        if progress is not None:
            progress(done + 1, len(PAPER))
    return found


def rows(measured: list[Measurement]) -> list[dict[str, str]]:
    """The paper's table with the measured columns beside it."""
    return [
        {
            "algorithm": m.agent,
            "regret (paper)": PAPER[m.agent][0],
            "time": PAPER[m.agent][1],
            "space": PAPER[m.agent][2],
            "time ~ S^": str(m.fits["time, S"]),
            "time ~ A^": str(m.fits["time, A"]),
            "memory ~ S^": f"{m.fits['memory, S'].exponent:.2f}",
            "memory ~ A^": f"{m.fits['memory, A'].exponent:.2f}",
            "regret ~ (SA)^": str(m.fits["regret, SA"]),
        }
        for m in measured
    ]


def numbers(measured: list[Measurement], sizes: Sizes) -> list[dict[str, Any]]:
    """Everything that was measured, one row per number."""
    found: list[dict[str, Any]] = []
    for m in measured:
        for what, axis, n, values in (
            ("seconds a step", "S", sizes.states, m.time_states),
            ("seconds a step", "A", sizes.actions, m.time_actions),
            ("bytes", "S", sizes.states, m.memory_states),
            ("bytes", "A", sizes.actions, m.memory_actions),
            ("regret", "SA", [s * sizes.regret_actions for s in sizes.regret_states], m.regret.mean(axis=1)),
        ):
            found += [
                {"algorithm": m.agent, "what": what, "axis": axis, "size": size, "value": float(value)}
                for size, value in zip(n, values, strict=True)
            ]
    return found
