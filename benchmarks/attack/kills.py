"""Kills and faults at every call by which a study, a fleet, a saved agent, or a step taken in changes the disk."""

from __future__ import annotations

import builtins
import errno
import itertools
import os
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ucbf
from attack.case import Case
from ucbf import data
from ucbf.errors import UserError
from ucbf.fleet import files as fleet_files
from ucbf.studies.reading import make_study
from ucbf.studies.runner import run_study
from ucbf.studies.store import Store

STUDY = make_study(
    {
        "name": "tiny", "episodes": 20, "worlds": 2, "record": 5,
        "world": {"n_states": 5, "n_actions": 2, "horizon": [2, 3], "max_disturbance": 2, "lipschitz": 0.25},
        "agents": [{"name": "UCB-f"}, {"name": "UCBVI-f"}],
    }
)  # fmt: skip
CALLS = ("open", "replace", "link", "unlink", "mkdir", "fsync", "rename", "remove", "write", "ftruncate")  # of os
FAULTS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE)
PATIENCE = 60.0  # seconds of a child
Strike = Callable[[], None]


class Disk:
    """Calls that change the disk, counted; ``strike`` happens at the one that is chosen, 0 for none."""

    def __init__(self, chosen: int, strike: Strike) -> None:
        self.chosen, self.strike, self.calls = chosen, strike, 0

    def count(self) -> bool:
        """Whether it is this call's turn."""
        self.calls += 1
        return self.calls == self.chosen

    def watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, struck when it is its turn."""

        def watching(*given: Any, **named: Any) -> Any:
            if self.count():
                self.strike()
            return call(*given, **named)

        return watching

    def opened(self, file: Any, mode: str = "r", *given: Any, **named: Any) -> Any:
        """A file whose writing is struck half-way."""
        if not set(mode) & set("wax+"):
            return REAL_OPEN(file, mode, *given, **named)
        if self.count():
            self.strike()
        found = REAL_OPEN(file, mode, *given, **named)
        return HalfWritten(found, self)

    def __enter__(self) -> Disk:
        for name in CALLS:
            setattr(os, name, self.watched(getattr(os, name)))
        builtins.open = self.opened
        return self

    def __exit__(self, *_: object) -> None:
        """Only ever in a process that ends next."""


REAL_OPEN = builtins.open


class HalfWritten:
    """A file that can be struck when half of a piece is written."""

    def __init__(self, file: Any, disk: Disk) -> None:
        self.file, self.disk = file, disk

    def write(self, content: Any) -> Any:
        """Write, or half of it and then the strike."""
        if self.disk.count():
            self.file.write(content[: len(content) // 2])
            self.file.flush()
            self.disk.strike()
        return self.file.write(content)

    def truncate(self, size: int | None = None) -> Any:
        """Cut it off, or be struck before."""
        if self.disk.count():
            self.disk.strike()
        return self.file.truncate(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> HalfWritten:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def killed() -> None:
    """As by the system, for want of memory: nothing can be done about it."""
    os.kill(os.getpid(), signal.SIGKILL)


def fault(number: int) -> Strike:
    """The error that the system gives."""

    def strike() -> None:
        raise OSError(number, os.strerror(number))

    return strike


def in_child(work: Callable[[], object], disk: Disk | None = None) -> int:
    """Do it in a process of its own: 0 if it went well, 3 if it was refused, 4 if it broke, 9 if it was killed."""
    pid = os.fork()
    if pid == 0:
        code = 4
        try:
            if disk is None:
                work()
            else:
                with disk:
                    work()
            code = 0
        except (UserError, OSError):
            code = 3
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError(f"it still went on after {PATIENCE:g} seconds")


def calls_of(work: Callable[[], object]) -> int:
    """How often it changes the disk."""
    reading, writing = os.pipe()
    disk = Disk(0, killed)

    def counted() -> None:
        work()
        os.write(writing, str(disk.calls).encode())

    assert in_child(counted, disk) == 0
    os.close(writing)
    with os.fdopen(reading) as file:
        return int(file.read())


def tables(folder: Path) -> dict[str, bytes]:
    """The files of results by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*.parquet"))
        if not path.name.startswith(".")
    }


def run(folder: Path) -> None:
    """The whole study."""
    run_study(STUDY, folder, jobs=2)


def study_case(folder: Path, whole: dict[str, bytes], chosen: int, strike: Strike, expected: int) -> str:
    """A study that is struck keeps what is finished, damages nothing, and is completed by the next run."""
    shutil.rmtree(folder, ignore_errors=True)
    ended = in_child(lambda: run(folder), Disk(chosen, strike))
    assert ended in (0, expected), f"it ended with {ended}, not {expected}"
    kept = tables(folder) if folder.exists() else {}
    assert kept.items() <= whole.items(), "what was kept is not what a whole run gives"
    if (folder / "manifest.json").exists():
        assert not Store.open(folder).shards()[1], "a file is damaged"
    assert in_child(lambda: run(folder)) == 0, "the next run fails"
    assert tables(folder) == whole, "the next run gives other tables"
    return {0: "unharmed", 3: "said so", 9: "killed"}[ended] + ", completed"


def items(folder: Path) -> None:
    """A long file of five items, and one of their costs."""
    folder.mkdir()
    names, days = [f"item{i}" for i in range(5)], np.datetime64("2024-01-01") + np.arange(20)
    demand = {"item": np.repeat(names, 20), "date": np.tile(days, 5), "demand": np.arange(100.0) % 4}
    pq.write_table(pa.table(demand), folder / "demand.parquet")
    pq.write_table(pa.table({"item": names, "price": np.arange(5.0) + 3}), folder / "items.parquet")


def run_fleet(given: Path, folder: Path) -> None:
    """Plans for all items, two at a time."""
    fleet_files.CHUNK = 2
    shop = ucbf.systems.Inventory(horizon=2, capacity=4, max_demand=3)
    ucbf.learn_fleet(shop, given / "demand.parquet", folder, given / "items.parquet", workers=1)


def fleet_case(given: Path, folder: Path, whole: dict[str, bytes], chosen: int, strike: Strike, expected: int) -> str:
    """A fleet that is struck keeps what is finished, and is completed by the next run."""
    shutil.rmtree(folder, ignore_errors=True)
    ended = in_child(lambda: run_fleet(given, folder), Disk(chosen, strike))
    assert ended in (0, expected), f"it ended with {ended}, not {expected}"
    assert (tables(folder) if folder.exists() else {}).items() <= whole.items(), "what was kept is not what was due"
    assert in_child(lambda: run_fleet(given, folder)) == 0, "the next run fails"
    assert tables(folder) == whole, "the next run gives other tables"
    return {0: "unharmed", 3: "said so", 9: "killed"}[ended] + ", completed"


def save_case(path: Path, old: ucbf.UCBVIf, new: ucbf.UCBVIf, chosen: int, strike: Strike) -> str:
    """An agent saved over an earlier one: either is there whole."""
    old.save(path)
    ended = in_child(lambda: new.save(path), Disk(chosen, strike))
    assert ended in (0, 3, 9), f"it ended with {ended}"
    seen = int(ucbf.load(path).state["visits"].flat[0])
    assert seen == 20 or (seen == 10 and ended != 0), f"an agent of {seen} episodes, saved with {ended}"
    return "new" if seen == 20 else "old"


def learned(folder: Path) -> Path:
    """A folder as ``ucbf learn`` writes it, without its pages and pictures."""
    shop = ucbf.systems.Inventory(horizon=2, capacity=6, max_demand=3)
    series = data.Series(np.tile([1.0, 2.0], 10), np.datetime64("2024-01-01") + np.arange(20), "units", "memory")
    folder.mkdir()
    ucbf.learn(shop, data.episodes(series, 2)).save(folder)
    return folder


def observe(folder: Path, day: int) -> None:
    """Take in a day after the series."""
    ucbf.follow(folder).observe(3, 1, 2, 2, date=f"2024-01-{20 + day}")


def observe_case(folder: Path, chosen: int, strike: Strike) -> str:
    """A step that is taken in after another: it is there whole or not at all, and the same again counts it once."""
    (folder / "journal.jsonl").unlink(missing_ok=True)
    observe(folder, 1)
    ended = in_child(lambda: observe(folder, 2), Disk(chosen, strike))
    assert ended in (0, 3, 9), f"it ended with {ended}"
    steps = ucbf.follow(folder).status().steps
    assert steps == 2 or (steps == 1 and ended != 0), f"{steps} steps, taken in with {ended}"
    for day in (2, 3):
        observe(folder, day)
    follower = ucbf.follow(folder)
    knowledge = follower.learned()
    follower.replay(knowledge, follower.entries().values())
    assert knowledge.controllers[""].agent.learner.visits.ravel().tolist() == [2, 1], "a step is lost, or counts twice"
    return "taken in" if steps == 2 else "not taken in"


def cases(seed: int) -> Iterator[Case]:
    """Every call, killed and failing."""
    room = Path(tempfile.mkdtemp(prefix="ucbf-attack-"))
    assert in_child(lambda: run(room / "whole")) == 0
    whole = tables(room / "whole")
    world = ucbf.random_world(n_states=5, n_actions=2, horizon=2, max_disturbance=2, seed=seed)
    old, new = ucbf.UCBVIf(world.system), ucbf.UCBVIf(world.system)
    for agent, episodes in ((old, 10), (new, 20)):
        agent.warm_start([[1, 2]] * episodes)
    strikes = [("kill", killed, 9), *((errno.errorcode[number], fault(number), 3) for number in FAULTS)]
    of_a_study = calls_of(lambda: run(room / "counted"))
    of_a_save = calls_of(lambda: new.save(room / "counted.npz"))
    shop = learned(room / "shop")
    observe(shop, 1)
    of_a_step = calls_of(lambda: observe(shop, 2))
    for chosen, (name, strike, _) in itertools.product(range(1, of_a_step + 1), strikes):
        yield Case(f"step, {name} at call {chosen}", partial(observe_case, shop, chosen, strike))
    given = room / "items"
    assert in_child(lambda: items(given)) == 0
    assert in_child(lambda: run_fleet(given, room / "plans")) == 0
    plans = tables(room / "plans")
    of_a_fleet = calls_of(lambda: run_fleet(given, room / "counted plans"))
    for chosen, (name, strike, expected) in itertools.product(range(1, of_a_fleet + 1), strikes):
        struck = partial(fleet_case, given, room / "struck plans", plans, chosen, strike, expected)
        yield Case(f"fleet, {name} at call {chosen}", struck)
    for chosen, (name, strike, expected) in itertools.product(range(1, of_a_study + 1), strikes):
        struck = partial(study_case, room / "struck", whole, chosen, strike, expected)
        yield Case(f"study, {name} at call {chosen}", struck)
    for chosen, (name, strike, _) in itertools.product(range(1, of_a_save + 1), strikes):
        yield Case(f"save, {name} at call {chosen}", partial(save_case, room / "a.npz", old, new, chosen, strike))
    shutil.rmtree(room)
