"""Files of agents as somebody with bad intent would write them, their digests right: refused, or a working agent."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import forging
import ucbf
from attack.case import Case
from worlds import VARIANTS, make_variant


class Original(NamedTuple):
    """An honest file, and what is needed to load it."""

    name: str
    path: Path
    given: dict[str, Any]


def originals(room: Path, seed: int) -> Iterator[Original]:
    """Every agent that has learned a little, in a space of every kind; a controller; an agent in a box."""
    world = ucbf.random_world(n_states=6, n_actions=2, horizon=3, max_disturbance=2, lipschitz=None, seed=seed)
    law = ucbf.Disturbance([0.3, 0.3, 0.4])
    for boundary in ("wrap", "clip"):
        system = world.system.replace(boundary=boundary, disturbance_range=(0, 2))
        made = {name: ucbf.make_agent(name, system) for name in ucbf.AGENTS.keys() - {"optimal"}}
        made |= {"optimal": ucbf.make_agent("optimal", system, law=law)}
        made |= {name: agent for name in VARIANTS if (agent := make_variant(name, system)) is not None}
        for name, agent in sorted(made.items()):
            ucbf.simulate(agent, ucbf.World(agent.system, law), 8, seed=seed)
            path = room / f"{name.replace('/', ' ')} {boundary}.npz"
            agent.save(path)
            yield Original(f"{name}, {boundary}", path, {})
    shop = ucbf.systems.Inventory(capacity=6, max_demand=3, horizon=2)
    ucbf.Controller(shop, ucbf.UCBVIf(shop.system)).save(room / "controller.npz")
    yield Original("controller", room / "controller.npz", {})
    box = ucbf.System(lambda s, a: s, lambda s, a: s[:, 0], low=[0], high=[1], points=4, actions=[0.0], horizon=2,
                      boundary="clip", disturbance_range=([-0.5], [0.5]))  # fmt: skip
    agent = ucbf.UCBVIf(box)
    agent.warm_start(np.array([[[0.1], [-0.2]]]))
    agent.save(room / "box.npz")
    yield Original("agent in a box", room / "box.npz", {"system": box})


def tried(original: Original, content: bytes) -> str:
    """Load it, and use what comes of it."""
    path = original.path.with_suffix(".forged")
    path.write_bytes(content)
    agent, why = forging.load(path, **original.given)
    if agent is None:
        assert len(why) > 20, why
        return "refused"
    forging.use(agent)
    return "works"


def cases(seed: int) -> Iterator[Case]:
    """Every array, header and container of every original, in an order drawn from the seed."""
    room, draw = Path(tempfile.mkdtemp(prefix="ucbf-attack-")), random.Random(seed)
    open_ones = [(original, forging.forgeries(original.path)) for original in originals(room, seed)]
    while open_ones:
        chosen = draw.randrange(len(open_ones))
        original, forgeries = open_ones[chosen]
        found = next(forgeries, None)
        if found is None:
            del open_ones[chosen]
            continue
        name, content = found
        yield Case(f"{original.name}: {name}", partial(tried, original, content))
    shutil.rmtree(room)
