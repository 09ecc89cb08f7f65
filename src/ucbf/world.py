"""What is really out there: a system, the law of its disturbances and of the first state.

Learners never see this module: the import contracts of the project forbid it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import frozen, numbers, real, whole
from ucbf.disturbance import Disturbance, invert
from ucbf.planning import Plan, check_law, plan
from ucbf.system import LARGEST_TABLE, System, once

MOST_DRAWS = 10_000


@dataclass(frozen=True, init=False, eq=False)
class World:
    """A system plus what the learner is not told.

    Parameters
    ----------
    system
        The true mechanics.
    law
        The law of W.
    start
        [S] probabilities of the first state, or one state; uniform if None.
    """

    system: System
    law: Disturbance
    start: NDArray[np.float64]  # [S]

    def __init__(self, system: System, law: Disturbance, start: ArrayLike | None = None) -> None:
        for name, value, kind in (("system", system, System), ("law", law, Disturbance)):
            if not isinstance(value, kind):
                raise TypeError(f"{name} is {value!r:.60}; give a ucbf.{kind.__name__}")
        check_law(system, law)
        self.__dict__.update(system=system, law=law, start=_start(system, start))
        if system.boundary == "strict":
            self._check_inside()

    @cached_property
    def plan(self) -> Plan:
        """The optimal plan: :func:`ucbf.optimal`."""
        made = plan(self.system, self.law)
        return Plan(self.system, frozen(made.v), frozen(made.ahead), frozen(made.policy))

    @property
    def best(self) -> float:
        """V* of an episode, averaged over the first state."""
        return float(self.start @ self.plan.v[0])

    def draw(self, episodes: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First states (indices) [K] and disturbances [K, H]; a longer draw begins with the shorter one."""
        rng = np.random.default_rng(np.random.SeedSequence(seed))
        uniforms = rng.random((episodes, self.system.horizon + 1))
        return invert(self.start, uniforms[:, 0]), self.law.draw(uniforms[:, 1:])

    def _check_inside(self) -> None:
        system, first, last = self.system, self.system.states[0], self.system.states[-1]
        for h in range(system.horizon):
            occurs = self.law.values[self.law.pmf[h % len(self.law.pmf)] > 0]
            for w in (occurs[0], occurs[-1]):
                landed = system.f[h] + w
                wrong = np.argwhere(system.allowed[h] & ((landed < first) | (landed > last)))
                if len(wrong):
                    s, a = wrong[0]
                    raise ValueError(
                        f"from state {s + first}, action {a} at step {h} a disturbance of {w} leads to "
                        f"{landed[s, a]}, outside {first}..{last}; pass boundary='clip' or 'wrap', or correct f"
                    )


def _start(system: System, given: ArrayLike | None) -> NDArray[np.float64]:
    S = system.n_states
    if given is None:
        return frozen(np.full(S, 1 / S))
    if np.ndim(given) == 0:
        state = whole("start", given, system.states[0], system.states[-1])
        return frozen(np.eye(S)[state - system.state_offset])
    start = numbers("start", given)
    if start.shape != (S,):
        raise ValueError(f"start has shape {start.shape}; it must be one state, or probabilities [S] = {(S,)}")
    if (start < 0).any() or abs(start.sum() - 1) > 1e-9:
        raise ValueError(
            f"start has smallest entry {start.min():g} and sum {start.sum():.12g}; "
            "probabilities must not be negative and must sum to 1"
        )
    return frozen(start)


def random_world(
    n_states: int = 25,
    n_actions: int = 8,
    horizon: int = 10,
    max_disturbance: int = 5,
    lipschitz: float | None = 0.25,
    seed: int = 0,
) -> World:
    """A world of the paper's experiments.

    f(s, a) is uniform on the states and the same at every step; the law of each step is max_disturbance + 1
    uniform numbers, normalised; the reward of a state is uniform on [0, 1]. Worlds are drawn until neighbouring
    states differ by at least ``lipschitz`` in V*_1, and the rewards are then multiplied so that the largest
    difference equals it (None: neither). States wrap; the first state is uniform.
    """
    S, A, H = whole("n_states", n_states, 1), whole("n_actions", n_actions, 1), whole("horizon", horizon, 1)
    W = whole("max_disturbance", max_disturbance, 0)
    if max(S * A, H * (W + 1)) > LARGEST_TABLE:
        raise ValueError(
            f"{S} states x {A} actions, or {H} steps x {W + 1} disturbances, are more than {LARGEST_TABLE} numbers; "
            "choose smaller sizes"
        )
    L = None if lipschitz is None else real("lipschitz", lipschitz, 0, open_low=True)
    rng = np.random.default_rng(np.random.SeedSequence(whole("seed", seed, 0)))
    for _ in range(MOST_DRAWS):
        f = rng.integers(0, S, size=(S, A))
        pmf = rng.random((H, W + 1))
        reward = rng.random(S)
        law = Disturbance(pmf / pmf.sum(axis=1, keepdims=True))
        world = World(System(f, reward, H, "wrap", lipschitz=L), law)
        if L is None:
            return world
        steepest = np.abs(np.diff(world.plan.v[0])).max(initial=0)
        if steepest >= L:
            return World(world.system.replace(reward=reward * (L / steepest)), law)
    raise ValueError(
        f"none of {MOST_DRAWS} random worlds with {S} states and horizon {H} is as steep as lipschitz={L:g}; "
        "pass a smaller one, or None"
    )


def corrupt(system: System, model_error: float, seed: int = 0) -> System:
    """The same system with a wrong f: f̂ = clip(f + e), e a uniform integer in [-ζ/2, ζ/2] for each pair.

    f̂ stays among the states (or within the range of f, where that is wider), as in the paper's experiments.
    """
    if not isinstance(system, System):
        raise TypeError(f"system is {system!r:.60}; give a ucbf.System")
    half = int(real("model_error (ζ)", model_error, 0, LARGEST_TABLE) // 2)
    f = once(system.f)
    rng = np.random.default_rng(np.random.SeedSequence(whole("seed", seed, 0)))
    error = rng.integers(-half, half + 1, size=f.shape)
    low, high = system.states[0], system.states[-1]
    if system.boundary != "strict":
        reached = system.f[system.allowed]
        low, high = min(low, int(reached.min())), max(high, int(reached.max()))
    return system.replace(f=np.clip(f + error, low, high), model_error=model_error)
