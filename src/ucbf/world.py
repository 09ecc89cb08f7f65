"""What is really out there: a system, the law of its disturbances and of the first state.

Learners never see this module: the import contracts of the project forbid it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ucbf.checks import frozen, numbers, real, sealed, whole
from ucbf.disturbance import Disturbance, invert
from ucbf.planning import Plan, check_law, plan_with
from ucbf.system import System
from ucbf.tables import LARGEST_TABLE, distinct_steps

MOST_DRAWS = 10_000
DRAWN_AT_ONCE = 2**17  # numbers of a simulation
MOST_ENDLESS_DRAWS = 20  # each that has no gain costs a plan that does not settle


class _FirstDraws(NamedTuple):
    """What befell the first episodes of a seed: the next agent in this world meets the same."""

    seed: int
    episodes: int
    starts: NDArray[np.int64]
    drawn: NDArray[np.int64]


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
        [S] probabilities of the first state, or one state; uniform if None. On continuous axes they are of the points.
    start_context
        [E] probabilities of the first context, or one; uniform if None.
    """

    system: System
    law: Disturbance
    start: NDArray[np.float64]  # [S]
    start_state: Any  # on continuous axes, the first state [d], if it is always the same; else None

    def __init__(
        self,
        system: System,
        law: Disturbance,
        start: ArrayLike | None = None,
        start_context: ArrayLike | None = None,
    ) -> None:
        for name, value, kind in (("system", system, System), ("law", law, Disturbance)):
            if not isinstance(value, kind):
                raise TypeError(f"{name} is {value!r:.60}; give a ucbf.{kind.__name__}")
        check_law(system, law)
        always = None
        if not system.space.all_whole and start is not None and _is_state(system, start):
            always = system.space.place("start", start)
        first = _start(system, start)
        if system.n_contexts > 1:
            first = frozen(np.outer(_first_context(system, start_context), first).ravel())
        elif start_context is not None:
            raise ValueError(f"start_context is {start_context!r:.40}, and the system has no contexts; leave it out")
        self.__dict__.update(system=system, law=law, start=first, start_state=always)
        if "strict" in system.space.rules:
            self._check_inside()

    @cached_property
    def plan(self) -> Plan:
        """The optimal plan: :func:`ucbf.optimal`."""
        made = plan_with(self.system, self.law)
        return Plan(self.system, sealed(made.v), sealed(made.ahead), sealed(made.policy), made.bounds)

    @property
    def best(self) -> float:
        """V* of an episode, averaged over the first state; the best long-run average, where that counts."""
        if self.system.horizon is None and self.system.discount == 1:
            return self.plan.gain
        return float(self.start @ self.plan.v[0])

    def draw(self, episodes: int, seed: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Indices of first states [K] and disturbances [K, H] or [K, H, d]; a longer draw begins with the shorter."""
        starts, drawn = self.draw_indices(episodes, seed)
        return starts, self.law.values[drawn]

    def draw_indices(self, episodes: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same, with indices of the law's values [K, H], or with contexts [K, H, E]: which one, if that is it."""
        return self.drawing(seed)(episodes)

    def drawing(self, seed: int, expected: int = 0) -> Callable[[int], tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """A function that draws so many episodes, each time the next ones: the same numbers as all at once.

        expected: how many in all; many are then drawn at once, and the first of them kept for others with this seed
        """
        rng, H = np.random.default_rng(np.random.SeedSequence(seed)), self.system.n_steps
        draw = self.law.draw_indices if self.law.n_contexts == 1 else self.law.draw_indices_by_context
        at_once = min(expected, max(1, DRAWN_AT_ONCE // ((H + 1) * self.law.n_contexts)))
        starts, drawn = np.empty(0, np.int64), draw(np.empty((0, H)))
        made = 0

        def make(episodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            nonlocal made
            kept: _FirstDraws | None = self.__dict__.get("_first_draws")
            first, made = made == 0, made + episodes
            if first and kept is not None and (kept.seed, kept.episodes) == (seed, episodes):
                rng.bit_generator.advance(episodes * (H + 1))  # type: ignore[attr-defined]  # PCG64 has it
                return kept.starts, kept.drawn
            uniforms = rng.random((episodes, H + 1))
            new = invert(self.start, uniforms[:, 0]), draw(uniforms[:, 1:])
            if first and episodes == at_once:
                self.__dict__["_first_draws"] = _FirstDraws(seed, episodes, *map(sealed, new))
            return new

        def next_ones(episodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            nonlocal starts, drawn
            missing = episodes - len(starts)
            if missing > 0:
                more = make(max(missing, min(at_once, expected - made)))
                starts, drawn = np.concatenate([starts, more[0]]), np.concatenate([drawn, more[1]])
            now = starts[:episodes], drawn[:episodes]
            starts, drawn = starts[episodes:], drawn[episodes:]
            return now

        return next_ones

    def draw_steps(self, steps: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where there is no end: the index of the first state [1], and indices of the law's values [T, E]."""
        first, drawn = self.drawing_steps(seed)
        return first, drawn(0, steps)

    def drawing_steps(self, seed: int) -> tuple[NDArray[np.int64], Callable[[int, int], NDArray[np.int64]]]:
        """The first state [1], and a function that draws the steps from one to another, in their order."""
        rng = np.random.default_rng(np.random.SeedSequence(seed))

        def drawn(begin: int, end: int) -> NDArray[np.int64]:
            return self.law.draw_from_step(begin, rng.random(end - begin))

        return invert(self.start, rng.random(1)), drawn

    def _check_inside(self) -> None:
        """Along strict axes f + W must stay among the states."""
        system, space = self.system, self.system.space
        strict = np.array([rule == "strict" for rule in space.rules])
        margin = np.where(space.is_whole, 0, 1e-9 * (space.high - space.low))
        S = space.n_states
        for h, e in np.ndindex(system.n_steps, system.n_contexts):
            occurs = self.law.values[self.law.row(h, e) > 0].reshape(-1, space.n_axes)
            of_context = slice(e * S, (e + 1) * S)
            x = system.f[h, of_context].reshape(S, system.n_actions, space.n_axes)
            for w in (occurs.min(axis=0), occurs.max(axis=0)):
                outside = strict & ((x + w < space.low - margin) | (x + w > space.high + margin))
                wrong = np.argwhere(system.allowed[h, of_context] & outside.any(axis=2))
                if len(wrong):
                    s, a = wrong[0]
                    shown = (str(r[0]) if space.is_line else str(r) for r in (w, x[s, a] + w, space.low, space.high))
                    w_, landed, first, last = shown
                    raise ValueError(
                        f"from state {system.state_name(e * S + s)}, action {a} at step {h} a disturbance of {w_} "
                        f"leads to {landed}, outside {first}..{last}; pass boundary='clip' or 'wrap', or correct f"
                    )


def _start(system: System, given: ArrayLike | None) -> NDArray[np.float64]:
    S = system.space.n_states
    if given is None:
        return frozen(np.full(S, 1 / S))
    if _is_state(system, given):
        place = system.space.place("start", given)
        return (
            sealed((np.arange(S) == place).astype(float))
            if system.space.all_whole
            else frozen(system.space.shares_of_points(place))
        )
    start = numbers("start", given)
    if start.shape != (S,):
        raise ValueError(f"start has shape {start.shape}; it must be one state, or probabilities [S] = {(S,)}")
    if (start < 0).any() or abs(start.sum() - 1) > 1e-9:
        raise ValueError(
            f"start has smallest entry {start.min():g} and sum {start.sum():.12g}; "
            "probabilities must not be negative and must sum to 1"
        )
    return frozen(start)


def _first_context(system: System, given: ArrayLike | None) -> NDArray[np.float64]:
    """[E] probabilities of the first context."""
    E = system.n_contexts
    if given is None:
        return np.full(E, 1 / E)
    chances: NDArray[np.float64]
    if np.ndim(given) == 0:
        chances = (np.arange(E) == whole("start_context", given, 0, E - 1)).astype(np.float64)
        return chances
    chances = numbers("start_context", given)
    if chances.shape != (E,) or (chances < 0).any() or abs(chances.sum() - 1) > 1e-9:
        raise ValueError(f"start_context is {given!r:.60}; give one context, or {E} probabilities that sum to 1")
    return chances


def _is_state(system: System, given: Any) -> bool:
    """Whether a start is one state, not probabilities [S]."""
    space = system.space
    if space.is_line or np.ndim(given) == 0:
        return np.ndim(given) == 0
    if space.n_axes == space.n_states and np.shape(given) == (space.n_axes,):
        raise ValueError(
            f"start is {given!r:.40}: a state, or probabilities of {space.n_states} states? Give it as [[...]]"
        )
    return np.shape(given) in {(space.n_axes,), (1, space.n_axes)} and np.shape(given) != (space.n_states,)


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
    _check_sizes(S, A, H, W)
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


def random_endless_world(
    n_states: int = 25,
    n_actions: int = 8,
    period: int = 1,
    max_disturbance: int = 5,
    discount: float = 1.0,
    seed: int = 0,
) -> World:
    """A random world without an end, drawn as :func:`random_world` draws; rewards stay uniform on [0, 1].

    The law has a row for each step of a period. Without a discount, worlds are drawn until the best long-run average is
    the same from every first state.
    """
    S, A, P = whole("n_states", n_states, 1), whole("n_actions", n_actions, 1), whole("period", period, 1)
    W = whole("max_disturbance", max_disturbance, 0)
    _check_sizes(S, A, P, W)
    rng = np.random.default_rng(np.random.SeedSequence(whole("seed", seed, 0)))
    for _ in range(MOST_ENDLESS_DRAWS):
        f, pmf, reward = rng.integers(0, S, size=(S, A)), rng.random((P, W + 1)), rng.random(S)
        law = Disturbance(pmf / pmf.sum(axis=1, keepdims=True))
        world = World(System(f, reward, None, "wrap", discount=discount, period=P), law)
        if world.system.discount < 1 or _has_a_gain(world):
            return world
    raise ValueError(
        f"in none of {MOST_ENDLESS_DRAWS} random worlds with {S} states, {A} actions and max_disturbance={W} the best "
        "average is the same from every first state; pass more actions, a larger max_disturbance, or a discount below 1"
    )


def _has_a_gain(world: World) -> bool:
    """Whether the best long-run average is the same from every first state."""
    try:
        return bool(np.isfinite(world.best))
    except ValueError:
        return False


def _check_sizes(S: int, A: int, H: int, W: int) -> None:
    if max(S * A, H * (W + 1)) > LARGEST_TABLE:
        raise ValueError(
            f"{S} states x {A} actions, or {H} steps x {W + 1} disturbances, are more than {LARGEST_TABLE} numbers; "
            "choose smaller sizes"
        )


def corrupt(system: System, model_error: float, seed: int = 0) -> System:
    """The same system with a wrong f: f̂ = clip(f + e), e a uniform integer in [-ζ/2, ζ/2] for each pair.

    f̂ stays among the states (or within the range of f, where that is wider), as in the paper's experiments.
    """
    if not isinstance(system, System):
        raise TypeError(f"system is {system!r:.60}; give a ucbf.System")
    if not system.space.is_line:
        raise ValueError(
            "a wrong f is counted in states on a line, and this system is a box; state its f as it should be"
        )
    half = int(real("model_error (ζ)", model_error, 0, LARGEST_TABLE) // 2)
    f = distinct_steps(system.f)
    rng = np.random.default_rng(np.random.SeedSequence(whole("seed", seed, 0)))
    error = rng.integers(-half, half + 1, size=f.shape)
    low, high = system.states[0], system.states[-1]
    if system.boundary != "strict":
        reached = (int(ends[0]) + system.state_offset for ends in system.reached_ends)
        low, high = min(low, next(reached)), max(high, next(reached))
    return system.replace(f=np.clip(f + error, low, high), model_error=model_error)
