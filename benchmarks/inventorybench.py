"""A fixed policy played on InventoryBench (Baek, Fu, Ma, Peng, arXiv 2602.12631), its score and what its parts bring.

    python benchmarks/inventorybench.py DATA [--seeds 3] [--ablate] [--write FOLDER]

DATA is one file (columns instance, promised_lead_time, period, demand, lead_time, profit, holding) or the benchmark's
folder ({real,synthetic}_trajectory/lead_time_{0,4,stochastic}/.../{train,test}.csv). The policy is told profit,
holding, the promised lead time, the number of periods and the demands before the first; it sees the demands and which
orders came, never a lead time. Nothing passes from one instance to another. The constants are the defaults of
LevelSettings, Supplier and ucbf.rolling, and PATHS here.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ucbf.laws.mixtures import LevelMixture, LevelSettings
from ucbf.rolling import BEYOND, best_order, plain_terms
from ucbf.suppliers import Belief, Supplier, believe

PATHS = 256  # sampled futures for each order
PROMISED = {"lead_time_0": 0, "lead_time_4": 4, "lead_time_stochastic": 2}
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Instance:
    """One item. before [B] and demand [T]; lead_time [T], inf: the order of that period never comes."""

    name: str
    promised: int
    before: Floats
    demand: Floats
    lead_time: Floats
    profit: float
    holding: float

    @property
    def family(self) -> str:
        """The first two parts of the name."""
        return "/".join(self.name.split("/")[:2])


@dataclass(frozen=True)
class Variant:
    """A policy: the settings of its parts, and what is left out of it."""

    levels: LevelSettings
    learns_lead_times: bool = True  # False: an order comes when promised, an overdue one in this period
    gives_up: bool = True  # False: no order is lost; one older than any lag told apart comes in this period


def read(data: Path) -> list[Instance]:
    """The instances of a file or of the benchmark's folder; ends the program, saying why, where there are none."""
    if not data.exists():
        raise SystemExit(f"{data} does not exist; give the file, or the benchmark's folder")
    instances = read_folder(data) if data.is_dir() else read_file(data)
    if not instances:
        raise SystemExit(f"{data} has no {{real,synthetic}}_trajectory/lead_time_{{0,4,stochastic}}/.../test.csv")
    return instances


def read_file(path: Path) -> list[Instance]:
    """The instances of one csv file, periods of 0 and below known beforehand."""
    rows = defaultdict(list)
    for row in rows_of(path, ("instance", "promised_lead_time", "period", "demand", "lead_time", "profit", "holding")):
        rows[row["instance"]].append(row)
    instances = []
    for name, all_rows in rows.items():
        played = [row for row in all_rows if int(row["period"]) > 0]
        instances.append(Instance(
            name, int(played[0]["promised_lead_time"]),
            np.array([float(row["demand"]) for row in all_rows if int(row["period"]) <= 0]),
            np.array([float(row["demand"]) for row in played]), np.array([float(row["lead_time"]) for row in played]),
            float(played[0]["profit"]), float(played[0]["holding"])))  # fmt: skip
    return instances


def read_folder(folder: Path) -> list[Instance]:
    """The instances of the benchmark's own folder, whose columns end in the item: demand_{item}, lead_time_{item}."""
    instances = []
    for path in sorted(folder.glob("*_trajectory/lead_time_*/**/test.csv")):
        name = path.parent.relative_to(folder)
        if name.parts[1] not in PROMISED:
            raise SystemExit(f"{path}: no promised lead time is known for {name.parts[1]}; it is known for "
                             f"{', '.join(PROMISED)}")  # fmt: skip
        before = columns_of(path.with_name("train.csv"), ("demand",))
        played = columns_of(path, ("demand", "lead_time", "profit", "holding_cost"))
        instances.append(Instance(
            name.as_posix(), PROMISED[name.parts[1]], before["demand"], played["demand"], played["lead_time"],
            played["profit"][0], played["holding_cost"][0]))  # fmt: skip
    return instances


def columns_of(path: Path, names: tuple[str, ...]) -> dict[str, Floats]:
    """The numeric columns of a train.csv or test.csv, without the item in their names."""
    rows = rows_of(path)
    item = next((name[len("demand_") :] for name in rows[0] if name.startswith("demand_")), None)
    if item is None:
        raise SystemExit(f"{path} has no column demand_ITEM; it has {', '.join(rows[0])}")
    _check_columns(path, rows, tuple(f"{name}_{item}" for name in names))
    try:
        return {name: np.array([float(row[f"{name}_{item}"]) for row in rows]) for name in names}
    except (ValueError, TypeError) as error:
        raise SystemExit(f"{path}: a cell is no number: {error}") from None


def rows_of(path: Path, needed: tuple[str, ...] = ()) -> list[dict[str, str]]:
    """The rows of a csv file, of which there are some; needed: columns that it must have."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise SystemExit(f"{path} cannot be read: {error.strerror}") from None
    if not rows:
        raise SystemExit(f"{path} has no rows")
    _check_columns(path, rows, needed)
    return rows


def _check_columns(path: Path, rows: list[dict[str, str]], needed: tuple[str, ...]) -> None:
    missing = [name for name in needed if name not in rows[0]]
    if missing:
        raise SystemExit(f"{path} has no column {', '.join(missing)}; it has {', '.join(rows[0])}")


class Policy:
    """Orders for one item from what it is told and sees."""

    def __init__(self, told: Instance, periods: int, variant: Variant, rng: np.random.Generator) -> None:
        self.terms, self.periods = plain_terms(told.profit, told.holding), periods
        self.variant, self.rng = variant, rng
        lost = {} if variant.gives_up else {"lost": 1e-9}
        self.supplier = Supplier(told.promised, **lost)
        self.oldest = periods  # an older order counts as of this age
        if not variant.gives_up:
            self.oldest = self.supplier.n_lags - 1
        if not variant.learns_lead_times:
            self.oldest = told.promised
        self.levels = LevelMixture(variant.levels, scale=float(told.before.mean()))
        for demand in told.before:
            self.levels.add(demand)

    def belief(self, lags: list[int], ages: list[int]) -> Belief:
        """What is believed of lead times."""
        if self.variant.learns_lead_times:
            return believe(self.supplier, lags, ages)
        return replace(believe(self.supplier, [], []), kept=1.0)

    def order(self, t: int, stock: float, open_orders: dict[int, int], lags: list[int]) -> int:
        """The order of period t (from 0), given the open orders by period."""
        steps = min(self.periods - t, self.supplier.promised + 1 + BEYOND)
        ages = {u: min(t - u, self.oldest) for u in open_orders}
        belief = self.belief(lags, list(ages.values()))
        waited = [u for u in open_orders if ages[u] <= self.supplier.n_lags]
        even = (np.arange(PATHS) + self.rng.random()) / PATHS
        demand = self.levels.paths(even, self.rng.standard_normal((PATHS, 2 + 2 * steps)))
        found = best_order(
            stock, [open_orders[u] for u in waited], [ages[u] for u in waited], belief, demand,
            self.rng.permutation(even), self.rng.random((PATHS, len(waited) + steps)),
            self.terms)  # fmt: skip
        return int(found.quantity)


def play(instance: Instance, variant: Variant, seed: int) -> tuple[float, list[int]]:
    """The score of one instance, and the orders."""
    rng = np.random.default_rng([seed, zlib.crc32(instance.name.encode())])  # whatever else is played
    policy = Policy(instance, len(instance.demand), variant, rng)
    stock, reward, open_orders, lags, orders = 0.0, 0.0, {}, [], []  # type: ignore[var-annotated]
    for t, demand in enumerate(instance.demand):
        q = policy.order(t, stock, open_orders, lags)
        orders.append(q)
        if q > 0:
            open_orders[t] = q
        for u in [u for u in open_orders if u + instance.lead_time[u] == t]:
            stock += open_orders.pop(u)
            lags.append(t - u)
        sold = min(stock, demand)
        stock -= sold
        reward += instance.profit * sold - instance.holding * stock
        policy.levels.add(demand)
    best = instance.profit * instance.demand.sum()
    return (max(0.0, reward / best) if best > 0 else 0.0), orders


def play_all(instances: list[Instance], variant: Variant, seed: int, label: str) -> Iterator[tuple[float, list[int]]]:
    """Every instance, with a progress line."""
    for number, instance in enumerate(instances):
        yield play(instance, variant, seed)
        print(f"\r{label}: {number + 1} of {len(instances)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def line(label: str, instances: list[Instance], scores: Floats) -> str:
    """One line of results: overall, then by family."""
    by = defaultdict(list)
    for instance, score in zip(instances, scores, strict=True):
        by[instance.family].append(score)
    families = "  ".join(f"{name} {np.mean(values):.4f}" for name, values in sorted(by.items()))
    return f"{label:24} {scores.mean():.4f}  {families}"


def write(folder: Path, instance: Instance, orders: list[int]) -> None:
    """results.csv of one instance, laid out as the benchmark expects."""
    path = folder / instance.name / "results.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(f"{t},{q}\n" for t, q in enumerate(orders, 1))
    path.write_text("period,order_quantity\n" + rows)


def main() -> None:
    """Play, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--ablate", action="store_true", help="leave out one part at a time, seed 0")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the orders of seed 0 there")
    given = parser.parse_args()
    instances = read(given.data)
    whole = Variant(LevelSettings())
    overall = []
    for seed in range(given.seeds):
        began = time.perf_counter()
        results = list(play_all(instances, whole, seed, f"seed {seed}"))
        scores = np.array([score for score, _ in results])
        overall.append(scores.mean())
        print(line(f"seed {seed}", instances, scores), f" {time.perf_counter() - began:.0f} s", flush=True)
        if given.write and seed == 0:
            for instance, (_, orders) in zip(instances, results, strict=True):
                write(given.write, instance, orders)
    print(f"mean over seeds {np.mean(overall):.4f}, standard deviation {np.std(overall):.4f}")
    if given.ablate:
        variants = {
            "no level forgets": replace(whole, levels=LevelSettings(discounts=(1.0,))),
            "lead times not learned": replace(whole, learns_lead_times=False),
            "nothing given up": replace(whole, gives_up=False),
        }
        for label, variant in variants.items():
            scores = np.array([score for score, _ in play_all(instances, variant, 0, label)])
            print(line(label, instances, scores), flush=True)


if __name__ == "__main__":
    main()
