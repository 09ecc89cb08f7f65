"""UCB-f's whole kernel, the gap of every episode included, and the same loop in C (ucb_f.c), if a compiler is there.

Processor time, both in turn; the gaps are compared, bit for bit.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import ucbf
from ucbf.kernels import loop
from ucbf.planning import arena_of

SIZES = {(25, 8, 10): 3000, (1000, 32, 10): 100}  # (S, A, H): episodes
ROUNDS = 15
FLAGS = ["-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC"]  # no fused multiplications: the same bits


def library(folder: Path) -> Any:
    """The loop in C; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    built = folder / "ucb_f.so"
    source = Path(__file__).with_name("ucb_f.c")
    subprocess.run([compiler, *FLAGS, str(source), "-o", str(built), "-lm"], check=True)
    return ctypes.CDLL(str(built)).ucb_f


class Race:
    """One world, one set of draws, and a new learner for every run."""

    def __init__(self, shape: tuple[int, int, int], episodes: int) -> None:
        S, A, H = shape
        self.world = ucbf.random_world(n_states=S, n_actions=A, horizon=H, lipschitz=None)
        self.K = episodes
        system = self.world.system
        self.starts, drawn = self.world.draw_indices(episodes, 0)
        j = system.indices_of(self.world.law)
        self.moves = np.ascontiguousarray(system.mechanics.offsets[j][drawn])
        measured = np.ascontiguousarray(j[drawn])
        self.draws = loop.Draws(self.starts, self.moves[..., None], measured[..., None], False)
        self.arena = arena_of(system, self.world.law, self.world.start, self.world.best)

    def new(self) -> tuple[ucbf.UCBf, Any, Any, Any, Any]:
        """A learner, and room for what happens."""
        system = self.world.system
        v = np.tile(system.terminal, (system.n_steps + 1, 1))
        return ucbf.UCBf(system), v, np.empty(self.K), np.empty(self.K), np.empty(self.K, np.bool_)

    def ours(self) -> tuple[float, Any]:
        """Seconds, and the gaps."""
        agent, v, gap, reward, switched = self.new()
        acted = np.array(agent.policy)
        begin = time.process_time()
        loop.run(self.arena, agent.told, agent.learner, self.draws, v, acted, gap, reward, switched)
        return time.process_time() - begin, gap

    def theirs(self, function: Any) -> tuple[float, Any]:
        """The same in C."""
        agent, v, gap, reward, _ = self.new()
        m, one, world = agent.told, agent.learner, self.arena
        if not (m.modular and len(m.after) == len(m.reward) == len(m.landing) == 1 and one.by_update):
            raise SystemExit("the loop in C is for worlds that wrap and are the same at every step")
        H, S, A = m.horizon, m.n_states, m.after.shape[2]
        pmf = np.ascontiguousarray(np.broadcast_to(world.pmf, (H, world.pmf.shape[1])))
        sizes = (self.K, H, S, A, m.n_after, len(m.next_state), len(world.j), one.learned_steps, m.shift)
        arrays = (
            m.after, m.reward, m.landing, m.next_state, m.terminal, one.how.width, one.cap, one.average, one.weight,
            one.bonus, one.value, one.visits, one.policy, world.j, pmf, world.start, v, world.raw, world.ahead,
            self.starts, self.moves, gap, reward, np.empty(H + 1, np.int64), np.empty(H, np.int64),
        )  # fmt: skip
        if not all(array.flags.c_contiguous for array in arrays):
            raise AssertionError("an array is not contiguous")
        numbers: list[Any] = [ctypes.c_int64(n) for n in sizes]
        numbers += [ctypes.c_double(x) for x in (m.discount, world.best, one.how.floor)]
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        begin = time.process_time()
        function(*numbers, *pointers)
        return time.process_time() - begin, gap


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        function = library(Path(folder))
        if function is None:
            print("\nno C compiler: UCB-f is not compared with the same loop in C")
            return
        print("\nUCB-f's whole kernel, the gap of every episode included, and the same loop in C: us an episode")
        print(f"{'S, A, H':16}{'C':>10}{'ucbf':>10}{'C/ucbf':>10}")
        for shape, episodes in SIZES.items():
            race = Race(shape, episodes)
            if not np.array_equal(race.ours()[1], race.theirs(function)[1]):
                raise SystemExit("the gaps of both differ")
            times = [(race.theirs(function)[0], race.ours()[0]) for _ in range(ROUNDS)]
            theirs, ours = (min(one) / episodes * 1e6 for one in zip(*times, strict=True))
            print(f"{shape!s:16}{theirs:10.2f}{ours:10.2f}{theirs / ours:10.2f}")


if __name__ == "__main__":
    main()
