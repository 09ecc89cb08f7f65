"""How fast another revision is, and how fast this working tree is, measured in turn: ``make bench AGAINST=revision``.

Both sources are copied to a temporary folder. Every measurement is a fresh process, old and new in turn, so that what
else the machine does meets both. Times are processor time, which does not count waiting for a core.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ucbf as imported

ucbf: Any = imported  # of either revision: names may be missing
ROOT = Path(__file__).parents[1]
ROUNDS = 5  # processes of each revision for the first table
REPEAT, AT_LEAST = 5, 0.3  # each of them does everything so often, and for so many seconds; the best time counts
SIZES = {"small": ((25, 8, 10), 5000), "large": ((1000, 32, 10), 300)}  # as in speed.py: (S, A, H), episodes
Work = Callable[[], object]
Times = dict[str, float | str]  # seconds, or why there are none


# -- the child process: one revision -----------------------------------------------------------------------------------


def tasks() -> Iterator[tuple[str, Callable[[], Work]]]:
    """What is timed: its name, and a function that prepares it."""
    for agent in ("UCB-f", "UCBVI-f"):
        for size, (shape, episodes) in SIZES.items():
            yield f"simulate {agent} {shape}, {episodes} episodes", partial(simulation, agent, size)
    yield "100 renewals of UCBVI-f (1000, 32, 10)", renewals
    yield "simulate UCBVI-f with OffsetPosterior (25, 8, 10), 200 episodes", repair
    yield "optimal (1000, 32, 10)", plan
    yield "plan of a continuous system, 61 x 61 points", continuous_plan
    yield "1000 calls of observe at a clipped edge", observations


def world_of(size: str) -> Any:
    """A random world of that size."""
    S, A, H = SIZES[size][0]
    return ucbf.random_world(n_states=S, n_actions=A, horizon=H, lipschitz=None)


def simulation(agent: str, size: str) -> Work:
    """A whole run."""
    world = world_of(size)
    return lambda: ucbf.simulate(ucbf.make_agent(agent, world.system), world, SIZES[size][1])


def renewals() -> Work:
    """Plans of UCBVI-f, each after one more transition."""
    world = world_of("large")
    agent = ucbf.UCBVIf(world.system)
    ucbf.simulate(agent, world, 20)  # it would plan with every W that a range allows, as long as it has seen none
    next_s = int(world.system.f[0, 0, 0])

    def work() -> None:
        for _ in range(100):
            agent.observe(0, 0, 0, next_s)
            agent.act(0, 0)

    return work


def repair() -> Work:
    """A whole run of an agent that is told a wrong f, and repairs it."""
    world = world_of("small")
    told = ucbf.corrupt(world.system, 2)
    return lambda: ucbf.simulate(ucbf.UCBVIf(told, estimator="OffsetPosterior"), world, 200)


def plan() -> Work:
    """Values and policy. The world is new each time, because a world may keep its plan."""
    world = world_of("large")
    return lambda: ucbf.optimal(ucbf.World(world.system, world.law))


def continuous_plan() -> Work:
    """A double integrator, 24 steps, 9 actions, 1000 samples of W."""
    low, high, actions = [-0.1, -0.5], [0.1, 0.5], np.linspace(-2, 2, 9)
    samples = np.random.default_rng(0).uniform(low, high, (1000, 2))
    arguments: dict[str, Any] = {
        "f": lambda s, u: np.stack([s[:, 0] + 0.25 * s[:, 1], s[:, 1] + 0.25 * np.ravel(u)], axis=1),
        "reward": lambda s, u: -(s**2).sum(axis=1),
        "horizon": 24,
        "low": [-3, -3],
        "high": [3, 3],
        "points": 61,
        "actions": actions,
        "disturbance_range": (low, high),
    }
    if hasattr(ucbf, "Grid"):
        grid = ucbf.Grid(**arguments)
        return lambda: grid.plan(samples)
    system = ucbf.System(**arguments, boundary="clip")
    return lambda: ucbf.optimal(ucbf.World(system, ucbf.Disturbance(values=samples)))


def observations() -> Work:
    """Transitions of UCBVI-f to an edge that hides W, one by one."""
    stock = np.arange(25)
    f = np.minimum(stock[:, None] + np.arange(8), 24)
    agent = ucbf.UCBVIf(ucbf.System(f, 0.0, 10, boundary="clip", disturbance_range=(-10, 0)))

    def work() -> None:
        for _ in range(1000):
            agent.observe(0, 3, 2, 0)

    return work


def time_all() -> Times:
    """The best processor time of everything, once compiled."""
    found: Times = {}
    for name, prepare in tasks():
        try:
            work = prepare()
            work()
            times: list[float] = []
            while len(times) < REPEAT or sum(times) < AT_LEAST:
                begin = time.process_time()
                work()
                times.append(time.process_time() - begin)
            found[name] = min(times)
        except Exception as error:  # whatever a revision makes of names that it does not have
            found[name] = f"{type(error).__name__}: {error}"
    return found


def time_first(agent: str, *estimator: str) -> Times:
    """The processor time of the first simulation of an agent: it is that of compiling."""
    try:
        world = ucbf.random_world(5, 2, 3, 2, lipschitz=None)
        system = ucbf.corrupt(world.system, 2) if estimator else world.system
        params = {"estimator": estimator[0]} if estimator else {"law": world.law} if agent == "optimal" else {}
        make_agent, simulate = ucbf.make_agent, ucbf.simulate  # imported here, not while the clock runs
        begin = time.process_time()
        simulate(make_agent(agent, system, **params), world, 2)
        return {agent: time.process_time() - begin}
    except Exception as error:
        return {agent: f"{type(error).__name__}: {error}"}


# -- the parent process: both revisions --------------------------------------------------------------------------------


def unpack(revision: str, folder: Path) -> None:
    """The sources of a revision, in ``folder``/src."""
    done = subprocess.run(["git", "-C", str(ROOT), "archive", revision, "src"], capture_output=True)
    if done.returncode:
        raise SystemExit(f"git has no sources of {revision!r}: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


def measured(sources: Path, cache: Path, *arguments: str) -> Times:
    """What a fresh process says of the revision in ``sources``; its compiled code is kept in ``cache``."""
    environment = {**os.environ, "PYTHONPATH": str(sources), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, __file__, "--child", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{sources.parent.name} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    if not Path(found["package"]).is_relative_to(sources):
        raise SystemExit(f"imported {found['package']}, not the copy in {sources}; uninstall ucbf, or install it anew")
    return dict(found["times"])


def table(title: str, unit: float, old: list[Times], new: list[Times]) -> None:
    """Print the best of all rounds, by how much the slowest was slower if there are several, and the ratio."""
    width, several = max(map(len, [title, *new[0]])), len(new) > 1
    heads = "".join(f"{side:>10}" + f"{'spread':>9}" * several for side in ("old", "new"))
    print(f"\n{title:{width}}{heads}{'new/old':>9}")
    reasons = []
    for name in new[0]:
        best, cells = [], ""
        for side, rounds in (("old", old), ("new", new)):
            times = [found[name] for found in rounds]
            numbers = [t for t in times if isinstance(t, float)]
            if len(numbers) < len(times):
                reasons += [f"{name}, {side}: {next(t for t in times if isinstance(t, str))}"]
                cells += f"{'-':>10}" + f"{'-':>9}" * several
            else:
                best += [min(numbers)]
                spread = f"{max(numbers) / min(numbers) - 1:9.0%}" * several
                cells += f"{min(numbers) * unit:10.4g}{spread}"
        print(f"{name:{width}}{cells}" + (f"{best[1] / best[0]:9.2f}" if len(best) == 2 else f"{'-':>9}"))
    for reason in reasons:
        print(reason)


def main(revision: str) -> None:
    """Measure both, print both tables."""
    with tempfile.TemporaryDirectory() as temporary:
        folders = [Path(temporary).resolve() / side for side in ("old", "new")]
        unpack(revision, folders[0])
        shutil.copytree(ROOT / "src", folders[1] / "src", ignore=shutil.ignore_patterns("__pycache__"))
        print(f"old: {revision}. new: this working tree. Processor time; spread: the slowest round above the best.")
        warm = [[measured(folder / "src", folder / "cache") for folder in folders] for _ in range(ROUNDS)]
        title = f"milliseconds, best of {ROUNDS} rounds"
        table(title, 1e3, *([found[i] for found in warm] for i in (0, 1)))
        cold: list[list[Times]] = [[{}], [{}]]
        repairing = [("UCB-f", "OffsetPosterior"), ("UCBVI-f", "OffsetPosterior")]
        for agent in [*((name,) for name in ucbf.AGENTS), *repairing]:
            for folder, rounds in zip(folders, cold, strict=True):
                with tempfile.TemporaryDirectory() as empty:
                    found = measured(folder / "src", Path(empty), *agent)
                rounds[0] |= {" with ".join(agent): found[agent[0]]}
        table("seconds to compile an agent, once", 1, *cold)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        given = time_first(*sys.argv[2:]) if sys.argv[2:] else time_all()
        print(json.dumps({"package": imported.__file__, "times": given}))
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        raise SystemExit("usage: python benchmarks/against.py REVISION")
