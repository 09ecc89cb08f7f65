"""Files that were cut short or of which a bit was flipped: refused, or read as what they are."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ucbf
from attack.case import Case, refused_or
from attack.kills import STUDY, run, tables
from ucbf import data
from ucbf.errors import UserError
from ucbf.studies.reading import read_study
from ucbf.studies.store import Store, read_results

CUTS, FLIPS = 150, 300  # of each file
DAYS = [f"2023-{1 + i // 28:02d}-{1 + i % 28:02d}" for i in range(28)]
AMOUNTS = [float(i % 7) for i in range(28)]


class Target(NamedTuple):
    """A kind of file."""

    name: str
    path: Path
    read: Callable[[], Any]  # what it says, to be compared
    sealed: bool  # whether a damaged one must be refused, or say the same


def agent_state(path: Path, **given: Any) -> list[bytes]:
    """All that an agent in a file knows."""
    agent = ucbf.load(path, **given)
    agent = getattr(agent, "agent", agent)
    return [array.tobytes() for _, array in sorted(agent.state.items())]


def told(folder: Path) -> list[dict[str, Any]]:
    """The tables of a study."""
    return [table.to_pydict() for table in read_results(folder)[1:]]


def amounts(path: Path) -> list[float]:
    """The numbers of a series."""
    found: list[float] = data.read_series(path).values.tolist()
    return found


def targets(room: Path) -> Iterator[Target]:
    """One of every kind."""
    world = ucbf.random_world(n_states=5, n_actions=2, horizon=2, max_disturbance=2, seed=0)
    agent = ucbf.UCBVIf(world.system)
    agent.warm_start([[0, 1], [2, 1]])
    agent.save(room / "agent.npz")
    yield Target("agent", room / "agent.npz", lambda: agent_state(room / "agent.npz"), True)
    wrong = ucbf.UCBf(ucbf.corrupt(world.system, 2, seed=0), estimator="OffsetPosterior")
    ucbf.simulate(wrong, world, 5)
    wrong.save(room / "repairing.npz")
    yield Target("repairing agent", room / "repairing.npz", lambda: agent_state(room / "repairing.npz"), True)
    shop = ucbf.systems.Inventory(capacity=6, max_demand=3, horizon=2)
    ucbf.Controller(shop, ucbf.UCBVIf(shop.system)).save(room / "controller.npz")
    yield Target("controller", room / "controller.npz", lambda: agent_state(room / "controller.npz"), True)
    box = ucbf.System(lambda s, a: s, lambda s, a: s[:, 0], low=[0], high=[1], points=4, actions=[0.0], horizon=2,
                      boundary="clip", disturbance_range=([-0.5], [0.5]))  # fmt: skip
    in_a_box = ucbf.UCBVIf(box)
    in_a_box.warm_start(np.array([[[0.1], [-0.2]]]))
    in_a_box.save(room / "box.npz")
    path = room / "box.npz"
    yield Target("agent in a box", path, lambda: ucbf.load(path, system=box).learner.law.counts.tobytes(), True)
    whole = room / "study"
    run(whole)
    for kind in ("runs", "curves"):
        yield Target(f"shard of {kind}", next((whole / kind).glob("*.parquet")), partial(told, whole), True)
    yield Target("manifest", whole / "manifest.json", lambda: Store.open(whole).study, False)
    (room / "study.toml").write_text(STUDY.to_toml())
    yield Target("study", room / "study.toml", lambda: read_study(room / "study.toml"), False)
    lines = [f"{day},{amount:g}" for day, amount in zip(DAYS, AMOUNTS, strict=True)]
    (room / "series.csv").write_text("\n".join(["date,demand", *lines]) + "\n")
    yield Target("CSV", room / "series.csv", partial(amounts, room / "series.csv"), False)
    stamps = pa.array(np.array(DAYS, "datetime64[us]"))
    pq.write_table(pa.table({"date": stamps, "demand": AMOUNTS}), room / "series.parquet")
    yield Target("Parquet", room / "series.parquet", partial(amounts, room / "series.parquet"), False)


def tried(target: Target, content: bytes, before: Any) -> str:
    """Write the damaged content, read it, put the whole one back."""
    whole = target.path.read_bytes()
    target.path.write_bytes(content)

    def read() -> str:
        after = target.read()
        if after == before:
            return "the same"
        assert not target.sealed, "it is read as something else"
        return "another file"

    try:
        return refused_or(read, *((ValueError,) if target.path.suffix == ".npz" else (UserError,)))
    finally:
        target.path.write_bytes(whole)


def recomputed(room: Path, path: Path, content: bytes, before: dict[str, bytes]) -> str:
    """A damaged shard is computed again by the next run."""
    path.write_bytes(content)
    run(room)
    assert tables(room) == before, "other tables than before"
    return "computed again"


def cases(seed: int) -> Iterator[Case]:
    """Every kind of file, cut at many places and flipped at many."""
    room, draw = Path(tempfile.mkdtemp(prefix="ucbf-attack-")), random.Random(seed)
    found = list(targets(room))
    said = {target.name: target.read() for target in found}
    chosen = []
    for target in found:
        whole = target.path.read_bytes()
        for length in sorted(draw.sample(range(len(whole)), min(CUTS, len(whole)))):
            chosen.append((target, f"cut at {length}", whole[:length]))
        for _ in range(FLIPS):
            place, bit = draw.randrange(len(whole)), 1 << draw.randrange(8)
            flipped = whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :]
            chosen.append((target, f"bit {bit} of byte {place} flipped", flipped))
    draw.shuffle(chosen)
    for target, what, content in chosen:
        yield Case(f"{target.name}, {what}", partial(tried, target, content, said[target.name]))
    whole_tables = tables(room / "study")
    for name, content in whole_tables.items():
        path = room / "study" / name
        for broken in (content[:-1], content[:100], b"", b"junk"):
            again = partial(recomputed, room / "study", path, broken, whole_tables)
            yield Case(f"{name} of {len(broken)} bytes, and run again", again)
    shutil.rmtree(room)
