"""Kinds of worlds in which a wrong f is repaired, with wide, flat and sparse laws of W, which make it hard."""

from typing import Any

import numpy as np

import ucbf


def kinds_of_world() -> dict[str, Any]:
    """Where repair may go wrong: S, A, the law of W (of a generator and H), how far f is off, and is told to be."""

    def bell(sd: float, most: int) -> Any:
        x = np.arange(most + 1)
        return lambda rng, H: [np.exp(-((x - most / 2 - rng.uniform(-1, 1)) ** 2) / (2 * sd**2)) for _ in range(H)]

    def flat(most: int) -> Any:
        return lambda rng, H: np.ones((1, most + 1))

    def uneven(most: int) -> Any:
        return lambda rng, H: rng.random((H, most + 1))

    def sparse(most: int) -> Any:
        return lambda rng, H: [rng.permutation(np.r_[rng.random(3) + 0.2, np.zeros(most - 2)]) for _ in range(H)]

    def falling(most: int) -> Any:
        return lambda rng, H: 0.8 ** np.arange(most + 1)[None]

    def two_humps(most: int) -> Any:
        x = np.arange(most + 1)
        return lambda rng, H: [np.exp(-((x - 2) ** 2)) + np.exp(-((x - most + 2) ** 2)) for _ in range(H)]

    def comb(most: int) -> Any:
        return lambda rng, H: (np.arange(most + 1) % 2 == 0)[None] * 1.0

    def coin(most: int) -> Any:
        return lambda rng, H: [np.eye(most + 1)[0] * 0.5 + np.eye(most + 1)[most] * 0.5 for _ in range(H)]

    def one(most: int) -> Any:
        return lambda rng, H: np.eye(most + 1)[rng.integers(0, most + 1, H)]

    def heavy(most: int) -> Any:
        return lambda rng, H: ((1.0 + np.arange(most + 1)) ** -1.5)[None]

    def spiked(most: int) -> Any:
        return lambda rng, H: np.ones((H, most + 1)) + 8 * np.eye(most + 1)[rng.integers(0, most + 1, H)]

    return {
        "bell-shaped, sd 6": (60, 3, bell(6, 36), 4, 4),
        "bell-shaped, sd 6, f exact": (60, 3, bell(6, 36), 0, 4),
        "flat on 21": (150, 6, flat(20), 4, 4),
        "flat on 21, f exact": (150, 6, flat(20), 0, 4),
        "flat on 13, f exact": (40, 3, flat(12), 0, 2),
        "geometric": (50, 4, falling(25), 4, 4),
        "three of 21 values": (40, 4, sparse(20), 4, 4),
        "three of 21, f exact, told 8": (40, 4, sparse(20), 0, 8),
        "bell-shaped, sd 2, off by 4": (100, 4, bell(2, 16), 8, 8),
        "the paper's, A = 8": (25, 8, uneven(5), 4, 4),
        "the paper's, A = 8, f exact": (25, 8, uneven(5), 0, 4),
        "the paper's, A = 2, told 8": (25, 2, uneven(5), 4, 8),
        "the paper's, many states": (200, 2, uneven(5), 4, 4),
        "the paper's, off by 1": (25, 4, uneven(5), 2, 2),
        "a coin": (30, 3, coin(6), 4, 4),
        "a coin, f exact": (30, 3, coin(6), 0, 4),
        "no noise": (30, 3, one(6), 4, 4),
        "no noise, f exact": (30, 3, one(6), 0, 4),
        "even values only": (40, 4, comb(12), 4, 4),
        "even values only, f exact": (40, 4, comb(12), 0, 4),
        "heavy-tailed": (60, 4, heavy(30), 4, 4),
        "heavy-tailed, f exact": (60, 4, heavy(30), 0, 4),
        "two humps": (50, 4, two_humps(15), 4, 4),
        "two humps, f exact": (50, 4, two_humps(15), 0, 6),
        "flat with a spike": (60, 4, spiked(20), 4, 4),
        "flat with a spike, f exact": (60, 4, spiked(20), 0, 4),
        "flat on 31, many pairs": (200, 8, flat(30), 4, 4),
        "bell-shaped, sd 12, off by 1": (80, 4, bell(12, 60), 2, 2),
        "bell-shaped, sd 3, few pairs": (20, 2, bell(3, 14), 4, 4),
        "geometric, f exact, told 8": (50, 4, falling(25), 0, 8),
        "narrow bell, f exact, told 8": (40, 4, bell(1, 8), 0, 8),
    }


def made(kind: Any, seed: int) -> tuple[ucbf.World, ucbf.System]:
    """A world of a kind, and the system that agents are told."""
    S, A, law, off, told_off = kind
    rng = np.random.default_rng(seed)
    system = ucbf.System(rng.integers(0, S, (S, A)), rng.random(S), 5, "wrap")
    weights = np.array(law(rng, 5), dtype=float)
    world = ucbf.World(system, ucbf.Disturbance(weights / weights.sum(axis=1, keepdims=True)))
    return world, (ucbf.corrupt(system, off, seed) if off else system).replace(model_error=told_off)
