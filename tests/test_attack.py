"""The attack on the package, in a shorter form: ``make attack``."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "attack"


@pytest.mark.slow
@pytest.mark.parametrize("section", ["kills", "damage", "forged", "mutated", "spoiled", "fuzz"])
def test_nothing_breaks_under_attack(section):
    command = [sys.executable, str(PROGRAM), section, "--seconds", "30", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
