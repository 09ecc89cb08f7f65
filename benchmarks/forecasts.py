"""How well demand is foretold: the levels of ucbf.laws.mixtures beside the models of statsforecast, out of sample.

    python benchmarks/forecasts.py DATA [--column units] [--season 7] [--every 1] [--models AutoETS AutoTheta]

DATA is a file of InventoryBench (columns instance, period, demand), of which every different series counts once, or a
CSV file with one series. At every step, from the ninth on, the demands 1 and 4 steps ahead are foretold from those
before; the score is the mean pinball loss of the quantiles 10 %, 20 %, ..., 90 %, as a share of the mean demand of the
series. Lower is better. Models are fitted anew at every step. statsforecast is no dependency of ucbf: without it only
the levels are scored.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ucbf.laws.mixtures import LevelMixture

FIRST, AHEAD = 8, (1, 4)  # demands before the first forecast; steps ahead that are scored
SHARES = np.linspace(0.1, 0.9, 9)
MODELS = ("AutoETS", "AutoTheta", "AutoARIMA")
Floats = NDArray[np.float64]
Foretell = Callable[[Floats], Floats]  # demands so far [t] -> [n, 9] quantiles of the n = max(AHEAD) steps ahead


def read(path: Path, column: str | None) -> list[Floats]:
    """The different series of a file."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    if column is None and "instance" in rows[0]:
        series = defaultdict(list)
        for row in rows:
            series[row["instance"]].append(float(row["demand"]))
        return [np.array(each) for each in dict.fromkeys(map(tuple, series.values()))]
    name = column if column is not None else list(rows[0])[-1]
    return [np.array([float(row[name]) for row in rows])]


def pinball(quantiles: Floats, came: float) -> float:
    """The mean loss of quantiles [9] where this came."""
    miss = came - quantiles
    return float(np.maximum(SHARES * miss, (SHARES - 1) * miss).mean())


def scores(foretell: Foretell, demand: Floats, every: int) -> Floats:
    """[2] the mean losses 1 and 4 steps ahead, as shares of the mean demand."""
    found: list[list[float]] = [[], []]
    for t in range(FIRST, len(demand) - max(AHEAD) + 1, every):
        quantiles = foretell(demand[:t])
        for losses, n in zip(found, AHEAD, strict=True):
            losses.append(pinball(quantiles[n - 1], float(demand[t + n - 1])))
    return np.array([np.mean(losses) for losses in found]) / max(float(demand.mean()), 1e-9)


def levels(season: int) -> Foretell:
    """Ours. With a season, demands are divided by the means of their steps of the period so far, drawn towards 1."""

    def foretell(past: Floats) -> Floats:
        factors = np.ones(season)
        if season > 1 and past.mean() > 0:
            for i in range(season):
                mine = past[i::season]
                factors[i] = (mine.sum() / past.mean() + 4) / (len(mine) + 4)
        at = np.arange(len(past) + max(AHEAD)) % season
        mixture = LevelMixture()
        for d, factor in zip(past, factors[at], strict=False):
            mixture.add(d, factor)
        rng = np.random.default_rng(0)
        even = (np.arange(1024) + 0.5) / 1024
        paths = mixture.paths(even, rng.standard_normal((1024, 2 + 2 * max(AHEAD))), factors[at[len(past) :]])
        return np.asarray(np.quantile(paths, SHARES, axis=0).T)

    return foretell


def of_statsforecast(name: str, season: int) -> Foretell:
    """A model of statsforecast, fitted anew; its normal intervals give the quantiles, below 0 they are 0."""
    kind: Any = getattr(import_module("statsforecast.models"), name)

    def foretell(past: Floats) -> Floats:
        y, n = past.astype(np.float64), max(AHEAD)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = kind(season_length=season).forecast(y=y, h=n, level=[20, 40, 60, 80])
        columns = [made[f"lo-{level}"] for level in (80, 60, 40, 20)] + [made["mean"]]
        columns += [made[f"hi-{level}"] for level in (20, 40, 60, 80)]
        return np.asarray(np.maximum(np.stack(columns, axis=1), 0.0))

    return foretell


def main() -> None:
    """Score all, print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--column")
    parser.add_argument("--season", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--models", nargs="*", default=MODELS)
    given = parser.parse_args()
    series = read(given.data, given.column)
    ways = {"levels (ucbf)": levels(given.season)}
    try:
        ways |= {name: of_statsforecast(name, given.season) for name in given.models}
    except ImportError:
        print("statsforecast is not installed: only the levels are scored (pip install statsforecast)")
    print(f"{len(series)} series of {min(map(len, series))} to {max(map(len, series))} steps")
    print("| model | 1 ahead | 4 ahead | levels better by, 1 and 4 ahead (95 %) | seconds |\n|---|---|---|---|---|")
    ours: Floats | None = None
    for name, foretell in ways.items():
        begin = time.perf_counter()
        found = np.array([scores(foretell, each, given.every) for each in series])
        ours = found if ours is None else ours
        ahead = found - ours
        reach = 1.96 * ahead.std(axis=0, ddof=1) / len(series) ** 0.5 if len(series) > 1 else np.full(2, np.nan)
        apart = "" if name in list(ways)[:1] else ", ".join(
            f"{m:+.4f} ± {r:.4f}" for m, r in zip(ahead.mean(axis=0), reach, strict=True))  # fmt: skip
        one, four = found.mean(axis=0)
        print(f"| {name} | {one:.4f} | {four:.4f} | {apart} | {time.perf_counter() - begin:.0f} |", flush=True)


if __name__ == "__main__":
    main()
