"""Wrong arguments at every door: a ValueError or TypeError that says something, or a right answer; never a crash."""

from __future__ import annotations

import contextlib
import random
import resource
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ucbf
from attack.case import Case, refused_or
from ucbf import data, systems

MANY = 20_000
MEMORY = 8 << 30  # bytes
LARGE = 10**9
WILD: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 7, 255, LARGE, -LARGE, 2**31, 2**53, 2**53 + 1, -(2**63), 2**63, 10**30,
    0.0, -0.0, 0.5, 1.5, -1e-300, 1e308, -1e308, float("nan"), float("inf"), -float("inf"), 1j,
    "", "a", "wrap", "clip", b"x", (), [], [[]], [1], [0.5, 0.5], [[1, 2], [3]], {}, {"name": "OffsetPosterior"},
    {1, 2}, object(), range(3), np.zeros(0), np.zeros((2, 2)), np.zeros((3, 2, 2)), np.zeros((0, 3)), np.array(None),
    np.array(["a"]), np.full((4, 2), np.nan), np.full((4, 2), 2**62), np.int8(3), np.uint64(2**63), np.float32(2.5),
    np.datetime64("NaT"), lambda *given: given[0], lambda *given: None, lambda s, a: s * np.nan,
)  # fmt: skip


class Tamper:
    """Passes values on, and now and then another instead."""

    def __init__(self, draw: random.Random, often: float) -> None:
        self.draw, self.often = draw, often

    def __call__(self, good: Any) -> Any:
        """The value, or another."""
        return self.draw.choice(WILD) if self.draw.random() < self.often else good

    def each(self, good: dict[str, Any]) -> dict[str, Any]:
        """The same for every entry; some may be left out."""
        return {name: self(value) for name, value in good.items() if self.draw.random() > self.often / 2}


def system_of(draw: random.Random, tamper: Tamper) -> ucbf.System:
    """A system of any kind, tampered with."""
    S, A, H = draw.randint(1, 6), draw.randint(1, 3), draw.randint(1, 4)
    rng = np.random.default_rng(draw.randrange(2**32))
    offset = draw.choice((0, 0, -3, 5, 2**31 - 2, -(2**40)))
    f = rng.integers(0, S, draw.choice(((S, A), (H, S, A)))) + offset
    low = draw.randint(-3, 1)
    given = {
        "f": f, "reward": rng.normal(size=draw.choice(((S, A), (H, S, A)))), "horizon": H,
        "boundary": draw.choice(("wrap", "clip", "strict")), "model_error": draw.choice((0, 0, 2, 4)),
        "landing": draw.choice((None, lambda z: -np.abs(z) * 0.1)), "discount": draw.choice((1.0, 0.9)),
        "terminal": draw.choice((None, rng.normal(size=S))), "disturbance_range": draw.choice((None, (low, low + 2))),
        "state_offset": offset,
    }  # fmt: skip
    return ucbf.System(**tamper.each(given))


def agent_of(draw: random.Random, tamper: Tamper, system: ucbf.System) -> ucbf.Agent:
    """An agent of any kind, tampered with."""
    name = draw.choice(sorted(ucbf.AGENTS.keys() - {"optimal"}))
    params: dict[str, Any] = {}
    if name in ("UCB-f", "UCBVI-f"):
        few = {"renewal": draw.choice(("episode", "few")), "eta": draw.choice((None, 0.1))}
        wrong = draw.choice((None, "OffsetPosterior")) if system.model_error else None
        params = {"estimator": wrong, **few}
    if name == "UCBVI-f":
        params |= {"stationary": draw.random() < 0.3, "prior_weight": 1.0}
    return ucbf.make_agent(name, system, **tamper.each(params))


def use(draw: random.Random, tamper: Tamper, agent: Any) -> None:
    """Call an agent's methods some twenty times, rightly and wrongly."""
    system = agent.system
    steps, states, actions = range(system.n_steps), system.states, range(system.n_actions)

    def observe() -> None:
        w = {"disturbance": tamper(draw.randint(-3, 3))} if draw.random() < 0.4 else {}
        given = (tamper(draw.choice(some)) for some in (steps, states, actions, states))
        agent.observe(*given, **w)

    calls: list[Callable[[], object]] = [
        *[observe] * 3,
        lambda: agent.act(tamper(draw.choice(steps)), tamper(draw.choice(states))),
        lambda: agent.warm_start(tamper([[draw.randint(-3, 3)] * system.n_steps] * 2)),
        lambda: agent.policy,
    ]
    if isinstance(agent, ucbf.UCBf | ucbf.UCBVIf):
        calls += [
            lambda: agent.q,
            lambda: agent.certificate(tamper(0.05)),
            lambda: agent.model_check(tamper(0.01)),
        ]
    for _ in range(20):
        with contextlib.suppress(ValueError, TypeError):
            draw.choice(calls)()


def an_agent(seed: str) -> str:
    """A system, an agent in it, calls, a simulation; then it must still be whole."""
    draw = random.Random(seed)
    tamper = Tamper(draw, draw.choice((0.0, 0.02, 0.1, 0.3)))

    def attempt() -> str:
        system = system_of(draw, tamper)
        assert system.n_steps * system.n_states <= LARGE
        agent = agent_of(draw, tamper, system)
        use(draw, tamper, agent)
        low, high = system.disturbance_range or (0, 2)
        world = ucbf.World(system, ucbf.Disturbance(np.full(high - low + 1, 1 / (high - low + 1)), low=low))
        ucbf.simulate(agent, world, tamper(3), seed=tamper(0))
        policy = agent.policy
        assert policy.shape == (system.n_steps, system.n_states)
        ucbf.evaluate(world, policy)
        with tempfile.TemporaryDirectory() as folder:
            agent.save(Path(folder) / "agent.npz")
            np.testing.assert_array_equal(ucbf.load(Path(folder) / "agent.npz").policy, policy)
        return "works"

    return refused_or(attempt, ValueError, TypeError)


def a_door(seed: str) -> str:
    """Functions that users call, with arguments tampered with."""
    draw = random.Random(seed)
    tamper = Tamper(draw, draw.choice((0.1, 0.3, 0.6)))
    law = ucbf.Disturbance([0.5, 0.5])
    shop = systems.Inventory(capacity=6, max_demand=3, horizon=2)
    kind = draw.choice(sorted(systems.PRESETS))
    box: dict[str, Any] = {
        "f": lambda s, a: s, "reward": lambda s, a: s[:, 0], "low": 0, "high": 1, "points": 3, "actions": [0.0, 1.0],
        "horizon": 2, "boundary": "clip", "disturbance_range": (-0.5, 0.5),
    }  # fmt: skip
    world = {"n_states": 5, "n_actions": 2, "horizon": 3, "max_disturbance": 2, "lipschitz": 0.25, "seed": 0}
    common = {"capacity": 6, "horizon": 2, "unit": 1, "max_demand": 4, "price": 3.0, "holding": 0.5}
    controller = ucbf.Controller(shop, ucbf.UCBVIf(shop.system))
    series, in_a_box = data.read_series(np.arange(30.0)), ucbf.UCBVIf(ucbf.System(**box))
    doors: tuple[Callable[[], object], ...] = (
        lambda: ucbf.random_world(**tamper.each(world)),
        lambda: ucbf.Disturbance(tamper([0.5, 0.5]), low=tamper(0)),
        lambda: ucbf.World(tamper(shop.system), tamper(law), start=tamper(0)),
        lambda: ucbf.optimal(tamper(shop.world())),
        lambda: ucbf.evaluate(shop.world(), tamper(np.zeros((2, 7), int))),
        lambda: ucbf.simulate(tamper(ucbf.UCBVIf(shop.system)), tamper(shop.world()), tamper(3), seed=tamper(0)),
        lambda: ucbf.corrupt(tamper(shop.system), tamper(2), seed=tamper(0)),
        lambda: systems.Inventory(**tamper.each(common)).system,
        lambda: systems.PRESETS[kind](**tamper.each({"horizon": 2, "unit": 1})).system,
        lambda: ucbf.System(**tamper.each(box)),
        lambda: in_a_box.observe(tamper(0), tamper([0.5]), tamper(0), tamper([0.6]), tamper([0.1])),
        lambda: controller.act(tamper(0), tamper(2.0)),
        lambda: controller.observe(tamper(0), tamper(2.0), tamper(1.0), tamper(2.0), tamper(1.0)),
        lambda: data.read_series(tamper([1.0, 2.0]), least=tamper(0), rows=tamper(2)),
        lambda: data.episodes(tamper(series), tamper(7), tamper(2)),
        lambda: data.independence(tamper(np.arange(20.0).reshape(4, 5)), seed=tamper(0)),
        lambda: ucbf.load(tamper("nowhere")),
        lambda: ucbf.estimators.OffsetPosterior(threshold=tamper(0.01), smoothing=tamper(0.1), iterations=tamper(3)),
    )  # fmt: skip

    def attempt() -> str:
        draw.choice(doors)()
        return "works"

    return refused_or(attempt, ValueError, TypeError, FileNotFoundError)


def cases(seed: int) -> Iterator[Case]:
    """Agents and doors in turn."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for i in range(MANY):
        for kind in (an_agent, a_door):
            name = f"{kind.__name__} {i} of seed {seed}"
            yield Case(name, partial(kind, name))
