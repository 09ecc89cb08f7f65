"""Small worlds to check in. Every step of each has the same distribution of W, so that agents may pool steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from ucbf.disturbance import Disturbance
from ucbf.system import System
from ucbf.world import World


def small_worlds() -> list[World]:
    """Worlds that between them have every feature of a system: boundaries, landing, terminal, discount, allowed."""
    rng = np.random.default_rng(0)
    H, S, A = 4, 6, 3
    allowed = rng.random((H, S, A)) < 0.6
    allowed[:, np.arange(S), rng.integers(0, A, S)] = True
    even = Disturbance([0.3, 0.4, 0.3], low=-1)
    store = System(
        lambda s, a: s + a, lambda s, a: -2.0 * a - 1.0 * (a > 0), 3, "clip", discount=0.9, terminal=lambda s: 1.5 * s,
        landing=lambda z: -0.5 * np.maximum(z, 0) - 4.0 * np.maximum(-z, 0), allowed=lambda s, a: s + a <= 3,
        disturbance_range=(-2, 0), state_offset=-1, n_states=5, n_actions=4,
    )  # fmt: skip
    ring = System(
        rng.integers(0, S, (H, S, A)) + 3, rng.random((H, S, A)), H, "wrap", allowed=allowed, state_offset=3
    )  # fmt: skip
    pipe = System(
        lambda s, a: np.clip(s + a - 1, 11, 13), lambda h, s, a: -100.0 * np.abs(s - 12) - 10.0 * h * a, 3, "strict",
        state_offset=10, n_states=5, n_actions=3,
    )  # fmt: skip
    wheel = System(
        lambda s, a: -4 + (s + 4 + a) % 5, lambda s, a: 0.1 * a, 3, "wrap", landing=lambda h, z: 0.2 * (z % 5 == h),
        disturbance_range=(-1, 1), state_offset=-4, n_states=5, n_actions=2,
    )  # fmt: skip
    once = System(
        lambda s, a: s + a, lambda s, a: -1.0 * a, 1, "clip", landing=lambda z: -3.0 * np.abs(z - 1),
        disturbance_range=(-1, 1), state_offset=-1, n_states=4, n_actions=3,
    )  # fmt: skip
    forced = System(lambda s, a: s + 0 * a, lambda s, a: 1.0 * s, 2, "wrap", state_offset=1, n_states=3, n_actions=1)
    return [
        World(store, Disturbance([0.3, 0.4, 0.3], low=-2), start=0),
        World(ring, Disturbance([0.5, 0.3, 0.2])),
        World(pipe, even),
        World(wheel, even),
        World(once, even),
        World(forced, Disturbance([0.5, 0.5])),
    ]


def leaning_worlds() -> list[World]:
    """One system twice, with W that mostly leads up and W that mostly leads down.

    A state pays the more the nearer it is to 0. Whatever a policy does, it loses in one of the two at least 0.59 times
    what choosing at random loses, unless it was learned there.
    """
    system = System(
        lambda s, a: s + a - 1, lambda s, a: 1 - np.abs(s) / 2 + 0.0 * a, 3, "clip", disturbance_range=(-1, 1),
        state_offset=-2, n_states=5, n_actions=3,
    )  # fmt: skip
    return [World(system, Disturbance(pmf, low=-1)) for pmf in ([0.1, 0.0, 0.9], [0.9, 0.0, 0.1])]


def tank(gain: int, model_error: float) -> System:
    """A tank to be kept half full; an action moves it by 0, 1 or 2 times ``gain``, down or up."""
    return System(
        lambda s, a: s + gain * (a - 2), lambda s, a: 1 - np.abs(s - 15) / 31 + 0.0 * a, 4, "clip",
        model_error=model_error, n_states=31, n_actions=5, disturbance_range=(-2, 2),
    )  # fmt: skip


def state_name(system: System, index: int) -> Any:
    """What a state is called in ``act`` and ``observe``: its number, or its row where states are vectors."""
    return system.states[index]


def states_outside(system: System) -> list[Any]:
    """Names just before the first and just after the last state."""
    return [state_name(system, 0) - 1, state_name(system, -1) + 1]
