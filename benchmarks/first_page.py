"""From a file of three years of days to the page: how long ``ucbf learn inventory`` takes, and where it goes.

    python benchmarks/first_page.py [--flags "--lead-time 3"]

Seconds of processor time. The first run finds no compiled kernels and no list of fonts, as on a fresh machine; the
others find them. What is compiled is the difference of the first two, pictures that of the second and third.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

WEEK = np.array([20, 18, 19, 22, 30, 40, 25])  # mean demand, Monday to Sunday
COMMAND = "from ucbf.cli import main; main()"
COSTS = ("--price", "9", "--unit-cost", "4", "--order-cost", "30")


def seconds(code: str, *words: str, folder: Path) -> float:
    """Processor time of a fresh process that keeps what it compiles in ``folder``."""
    places = {name: str(folder / name) for name in ("HOME", "NUMBA_CACHE_DIR", "MPLCONFIGDIR")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *words], env=os.environ | places, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flags", default="", help="further flags of the command")
    parser.add_argument("--times", type=int, default=3, help="runs of what is not first; the least counts")
    given = parser.parse_args()
    days = np.arange("2021-01-04", "2024-01-01", dtype="datetime64[D]")
    demand = np.random.default_rng(1).poisson(WEEK[np.arange(len(days)) % 7])
    with TemporaryDirectory() as name:
        folder = Path(name)
        rows = "".join(f"{day},{units}\n" for day, units in zip(days, demand, strict=True))
        (folder / "demand.csv").write_text("date,units\n" + rows)
        words = ("learn", "inventory", "--demand", str(folder / "demand.csv"), *COSTS, *shlex.split(given.flags))
        words = (*words, "--out", str(folder / "out"))

        def again(code: str, *words: str) -> float:
            return min(seconds(code, *words, folder=folder) for _ in range(given.times))

        first = seconds(COMMAND, *words, folder=folder)
        warm, plain = again(COMMAND, *words), again(COMMAND, *words, "--no-pictures")
        imports = again("import ucbf.cli.learn")
    parts = {
        "the first time": first,
        "compiling, and finding fonts": first - warm,
        "every other time": warm,
        "pictures, with importing matplotlib": warm - plain,
        "importing what learns": imports,
        "reading, learning, judging, writing": plain - imports,
    }
    for part, spent in parts.items():
        print(f"{part:40s}{spent:6.1f}")


if __name__ == "__main__":
    main()
