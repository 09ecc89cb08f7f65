"""Many items from a file to plans: items a second, memory, and how near that is to what C and Parquet alone would take.

    python benchmarks/fleet.py [items]
    python benchmarks/fleet.py --long [items]
    python benchmarks/fleet.py --kills [items]

The first makes a file of two years of days of every item (100,000 unless told otherwise), learns a plan for each, and
says where the time goes. S = 60, A = 30, H = 7. The bound is reading the file, the same plans in C and writing the
tables, and nothing else. Some items are learned by agents of their own, to compare.

The second makes a file of 800 days of 250,000 items, 200 million rows, and says how much memory learning from it takes.
The third kills a run over 10,000 items at twenty random moments, gives the command again each time, and compares the
tables with those of a run that nobody killed.
"""

from __future__ import annotations

import ctypes
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ucbf

DAYS = 730
SHOP = ucbf.systems.Inventory(capacity=59, max_order=29, max_demand=29, horizon=7)
COSTS = {"price": (5, 20), "unit_cost": (1, 5), "holding": (0.1, 2), "order_cost": (0, 5)}

C = """
/* Backward induction of one item after the other: rewards [S, A], landing [Z], law [H, R], values of the first step. */
void plan(long N, long H, long S, long A, long R, const double *reward, const double *landing, const int *after,
          const int *next, const double *law, double *value, short *policy, double *v, double *raw, double *ahead) {
  long Z = S + R - 1;
  for (long i = 0; i < N; i++) {
    for (long s = 0; s < S; s++) v[s] = 0;
    for (long h = H - 1; h >= 0; h--) {
      const double *p = law + (i * H + h) * R;
      for (long z = 0; z < Z; z++) raw[z] = landing[z] + v[next[z]];
      for (long x = 0; x < S; x++) ahead[x] = 0;
      for (long j = 0; j < R; j++)
        if (p[j] > 0)
          for (long x = 0; x < S; x++) ahead[x] += p[j] * raw[x + j];
      for (long s = 0; s < S; s++) {
        double best = -1e300;
        long best_a = 0;
        for (long a = 0; a < A; a++) {
          double q = reward[s * A + a] + ahead[after[s * A + a]];
          if (q > best) { best = q; best_a = a; }
        }
        v[s] = best;
        policy[(i * H + h) * S + s] = best_a;
      }
    }
    for (long s = 0; s < S; s++) value[i * S + s] = v[s];
  }
}
"""


def written(folder: Path, n: int, n_days: int = DAYS) -> None:
    """A file of demand, and one of costs."""
    rng, days = np.random.default_rng(0), np.arange(n_days) + 19_000
    schema = pa.schema([("item", pa.string()), ("date", pa.date32()), ("demand", pa.int16())])
    with pq.ParquetWriter(folder / "demand.parquet", schema) as file:
        for begin in range(0, n, 1000):
            names = [f"sku{i:08d}" for i in range(begin, min(begin + 1000, n))]
            demand = rng.poisson(rng.uniform(2, 12, len(names))[:, None], (len(names), n_days)).clip(0, 29)
            dates = pa.array(np.tile(days, len(names)).astype("datetime64[D]"))
            codes = pa.array(np.repeat(np.arange(len(names), dtype=np.int32), n_days))
            items = pa.DictionaryArray.from_arrays(codes, pa.array(names)).cast(pa.string())
            columns = [items, dates, demand.ravel().astype(np.int16)]
            file.write_table(pa.table(columns, schema=schema))
    costs = {name: rng.uniform(*ends, n) for name, ends in COSTS.items()}
    pq.write_table(pa.table({"item": [f"sku{i:08d}" for i in range(n)], **costs}), folder / "items.parquet")


def small(folder: Path) -> tuple[Path, Path, Path]:
    """Files of a hundred items."""
    (few := folder / "few").mkdir()
    written(few, 100)
    return files_in(few)


def files_in(folder: Path) -> tuple[Path, Path, Path]:
    """Where the demand, the plans and the costs are."""
    return folder / "demand.parquet", folder / "out", folder / "items.parquet"


def seconds(call: Any) -> float:
    """Processor time of the quickest of five calls."""
    found = []
    for _ in range(5):
        begin = time.process_time()
        call()
        found.append(time.process_time() - begin)
    return min(found)


def kernels(n: int = 2000) -> tuple[float, float | None]:
    """Microseconds an item, of the package and of C."""
    rng = np.random.default_rng(1)
    fleet = ucbf.Fleet(SHOP, {name: rng.uniform(*ends, n) for name, ends in COSTS.items()}, workers=1)
    k = 728 * n
    fleet.add(np.repeat(np.arange(n), 728), np.tile(np.arange(728) % 7, n), -rng.poisson(7, k).clip(0, 29))

    def renew() -> None:
        fleet._stale[:] = True
        fleet.renew()

    renew()
    ours = seconds(renew) / n * 1e6
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return ours, None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "plan.c", Path(folder) / "plan.so"
        source.write_text(C)
        flags = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, "-o", str(library), str(source)], check=True)
        plan = ctypes.CDLL(str(library)).plan
        m, H, S = fleet.system.mechanics, 7, fleet.system.n_states
        law = fleet.believed(np.arange(n), True)
        reward = np.where(np.isfinite(m.reward[0]), m.reward[0], -1e200)
        value, policy = np.zeros((n, S)), np.zeros((n, H, S), np.int16)
        arrays = [reward, m.landing[0], m.after[0], m.next_state, law, value, policy,
                  np.zeros(S), np.zeros(len(m.next_state)), np.zeros(m.n_after)]  # fmt: skip
        sizes = [ctypes.c_long(x) for x in (n, H, S, fleet.system.n_actions, m.n_residuals)]
        given = [array.ctypes.data_as(ctypes.c_void_p) for array in map(np.ascontiguousarray, arrays)]
        return ours, seconds(lambda: plan(*sizes, *given)) / n * 1e6


def files_only(folder: Path, n: int) -> float:
    """Seconds of work an item, of reading the demand and writing the plans, which are there."""
    begin = time.process_time()
    with pq.ParquetFile(folder / "demand.parquet", read_dictionary=["item"]) as file:
        for _ in file.iter_batches(1 << 18):
            pass
    work, again = time.process_time() - begin, folder / "again.parquet"
    for path in (folder / "out").glob("*.parquet"):
        plans = pq.read_table(path)
        begin = time.process_time()
        pq.write_table(plans, again, compression="zstd", use_dictionary=False)
        work += time.process_time() - begin
    again.unlink()
    return work / n


def compared(folder: Path, n: int, sample: int = 20) -> int:
    """How many of some items have the very policy of an agent that saw them alone."""
    plans = pq.read_table(sorted((folder / "out").glob("*.parquet")), columns=["item", "action", *COSTS])
    same = 0
    for i in np.random.default_rng(2).choice(n, min(sample, n), replace=False):
        row = plans.slice(int(i), 1).to_pylist()[0]
        rows = pq.read_table(folder / "demand.parquet", filters=[("item", "==", row["item"])])
        demand, days = rows["demand"].to_numpy(), rows["date"].cast(pa.int32()).to_numpy()
        shop = SHOP.replace(**{name: row[name] for name in COSTS})
        agent = ucbf.UCBVIf(shop.system)
        first = int((4 - days[0]) % 7)  # whole weeks from a Monday, and what is left before and after
        whole = (len(days) - first) // 7 * 7
        agent.warm_start(-demand[first : first + whole].reshape(-1, 7).astype(np.int64))
        for k in (*range(first), *range(first + whole, len(days))):
            agent.learner.law.counts[(days[k] - 4) % 7, -int(demand[k]) - shop.system.residuals[0]] += 1
            agent.learner.stale[0] = 1
        same += bool((shop.action_quantities[agent.policy].ravel() == np.array(row["action"])).all())
    return same


def held() -> float:
    """GB that this process held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def long(n: int, n_days: int = 800) -> None:
    """Learn from a long file, and print the memory that it takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder, n, n_days)
        size, made = (folder / "demand.parquet").stat().st_size, held()
        work = time.process_time()
        ucbf.learn_fleet(SHOP, *files_in(folder), gains=False)
        work = time.process_time() - work
    print(
        f"{n} items x {n_days} days, {n * n_days:,} rows, {size / 1e6:,.0f} MB: {work:.0f} s of work, "
        f"{held():.2f} GB held at most, {made:.2f} of them to make the file"
    )


def kills(n: int, times: int = 20) -> None:
    """Kill a run at random moments, give it again, and print whether the tables are equal."""
    with tempfile.TemporaryDirectory() as name:
        folder, moments = Path(name), np.random.default_rng(3)
        written(folder, n)
        process, begin = started(folder), time.perf_counter()
        process.communicate()
        took, whole = time.perf_counter() - begin, plans_in(folder)
        equal, unfinished = 0, 0
        for _ in range(times):
            shutil.rmtree(folder / "out")
            process = started(folder)
            time.sleep(moments.uniform(0, took))
            process.kill()
            process.communicate()
            unfinished += not (folder / "out" / "plans.json").exists()
            equal += started(folder).wait() == 0 and plans_in(folder) == whole
    print(
        f"{n} items in {len(whole)} files, killed at {times} random moments, {unfinished} of them before the end, and "
        f"given again: {equal} times the same tables, byte for byte"
    )


def started(folder: Path) -> subprocess.Popen[str]:
    """A process that learns, which has imported what it needs."""
    process = subprocess.Popen([sys.executable, __file__, "--learn", str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def plans_in(folder: Path) -> dict[str, bytes]:
    """The tables, by their names."""
    return {path.name: path.read_bytes() for path in (folder / "out").glob("*.parquet")}


def main() -> None:
    """Print what is asked for."""
    kind = next((one for one in sys.argv[1:] if one.startswith("--")), "")
    asked = [one for one in sys.argv[1:] if not one.startswith("--")]
    if kind == "--learn":
        print("ready", flush=True)
        ucbf.learn_fleet(SHOP, *files_in(Path(asked[0])), gains=False)
    elif kind == "--kills":
        kills(int(asked[0]) if asked else 10_000)
    elif kind == "--long":
        long(int(asked[0]) if asked else 250_000)
    else:
        table(int(asked[0]) if asked else 100_000)


def table(n: int) -> None:
    """Print a table."""
    ours, theirs = kernels()
    print(f"plans only, one thread: {ours:.1f} µs an item (costs and counts of its own included)", end="")
    print(
        "" if theirs is None else f"; the same loops in C: {theirs:.1f} µs, a ratio of {theirs / ours:.2f}", flush=True
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder, n)
        size = (folder / "demand.parquet").stat().st_size
        print(f"a file of {n * DAYS:,} rows, {size / 1e6:,.0f} MB", flush=True)
        files = files_in(folder)
        ucbf.learn_fleet(SHOP, *small(folder))  # to compile
        for again, gains in (("with gains", True), ("plans only", False), ("again, with all done", False)):
            begin, work = time.perf_counter(), time.process_time()
            ucbf.learn_fleet(SHOP, *files, gains=gains)
            took, work = time.perf_counter() - begin, time.process_time() - work
            print(
                f"{n} items x {DAYS} days, {again}: {took:.1f} s ({n / took:,.0f} items a second), "
                f"{work:.1f} s of work, {work / n * 1e6:.0f} µs an item",
                flush=True,
            )
            if again == "plans only":
                whole = work / n * 1e6
        print(f"peak memory of the process: {held():.2f} GB")
        bound = files_only(folder, n) * 1e6
        print(f"reading the rows and writing the plans alone: {bound:.0f} µs an item", end="")
        if theirs is not None:
            print(f"; with the plans in C {bound + theirs:.0f} µs, a ratio of {(bound + theirs) / whole:.2f}", end="")
        sample = min(20, n)
        print(f"\n{compared(folder, n)} of {sample} items have the very policy of an agent of their own")


if __name__ == "__main__":
    main()
