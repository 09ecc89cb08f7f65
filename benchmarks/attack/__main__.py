"""An attack on ucbf: kills, faults, damaged and forged files, wrong tables, wrong arguments. ``make attack``.

Each section runs in a process of its own. A case ends in a clear refusal or in a right answer; anything else, a crash
or a hang too, is a failure and is printed. The exit code says whether there were any.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
from attack.case import play

SECTIONS = {
    "kills": 0.3,
    "damage": 0.1,
    "forged": 0.25,
    "mutated": 0.1,
    "spoiled": 0.2,
    "fuzz": 0.25,
}  # shares of the time
AT_ONCE = 2
PATIENCE = 120.0  # seconds for one case


class Tally(NamedTuple):
    """What came of a section."""

    outcomes: Counter[str]
    failures: list[str]
    seconds: float
    whole: bool  # whether every case was tried


def attack(section: str, seed: int, seconds: float) -> Tally:
    """All cases of a section that there is time for; one that ends its process is a failure, and the rest goes on."""
    outcomes, failures, begun, at, began = Counter[str](), list[str](), 0, "", time.monotonic()
    while True:
        left = seconds - (time.monotonic() - began)
        mine, theirs = multiprocessing.Pipe(duplex=False)
        process = START.Process(target=play, args=(section, seed, begun, left, theirs))
        process.start()
        theirs.close()
        try:
            while mine.poll(PATIENCE):
                kind, said = mine.recv()
                if kind == "end":
                    process.join()
                    return Tally(outcomes, failures, time.monotonic() - began, said)
                if kind == "begin":
                    begun, at = begun + 1, said
                elif kind == "done":
                    outcomes[said] += 1
                else:
                    failures.append(f"{section}: {at}\n{said}")
            failures.append(f"{section}: {at} took more than {PATIENCE:g} seconds")
            process.kill()
        except EOFError:
            process.join()
            failures.append(f"{section}: {at} ended the process with {process.exitcode}")
        process.join()
        if begun == 0:
            return Tally(outcomes, failures, time.monotonic() - began, False)


START: Any = multiprocessing.get_context("spawn")


def main() -> int:
    """Attack, tell."""
    parser = argparse.ArgumentParser(prog="attack", description="Kills, faults, damage, forgeries and floods.")
    parser.add_argument("sections", nargs="*", default=[*SECTIONS], help=f"of {', '.join(SECTIONS)}; all if none")
    parser.add_argument("--seconds", type=float, default=480, help="in all, besides what compiling takes")
    parser.add_argument("--seed", type=int, default=0, help="of what is chosen at random")
    given = parser.parse_args()
    chosen = {name: SECTIONS[name] for name in given.sections}
    room, found, free = AT_ONCE * given.seconds / sum(chosen.values()), dict[str, Tally](), threading.Semaphore(AT_ONCE)

    def one(section: str) -> None:
        with free:
            print(f"{section}: begins", file=sys.stderr, flush=True)
            found[section] = attack(section, given.seed, min(room * chosen[section], given.seconds))
            print(f"{section}: {sum(found[section].outcomes.values())} cases", file=sys.stderr, flush=True)

    with TemporaryDirectory(prefix="ucbf-attack-") as folder:
        os.environ["TMPDIR"] = folder
        threads = [threading.Thread(target=one, args=(section,)) for section in chosen]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(f"seed {given.seed}")
    for section in chosen:
        tally = found[section]
        outcomes = ", ".join(f"{number} {word}" for word, number in sorted(tally.outcomes.items()))
        of = "all cases" if tally.whole else "as many as there was time for"
        print(f"{section}: {len(tally.failures)} failures; {outcomes} ({of}, {tally.seconds:.0f} s)")
    failures = [failure for section in chosen for failure in found[section].failures]
    for failure in failures:
        print(f"\nFAILED {failure}")
    print(f"\n{sum(sum(tally.outcomes.values()) for tally in found.values())} cases held, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
