"""``benchmarks/inventorybench.py``: the benchmark's folder as it is laid out, and what is wrong with one."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "inventorybench.py"
REAL, RANDOM = "real_trajectory/lead_time_4/77", "synthetic_trajectory/lead_time_stochastic/p01_iid/v1/r2_high"


def play(*arguments, cwd):
    return subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture
def folder(tmp_path):
    for name, item, leads in ((REAL, "77", "444"), (RANDOM, "x_1", ("1", "inf", "2"))):
        place = tmp_path / "benchmark" / name
        place.mkdir(parents=True)
        before = "".join(f'2019-01-0{day},{8 + day},"a shirt, blue"\n' for day in range(1, 6))
        (place / "train.csv").write_text(f"exact_dates_{item},demand_{item},description_{item}\n" + before)
        rows = "".join(f'2019-02-0{day},9,"a shirt, blue",{lead},4,1\n' for day, lead in enumerate(leads, 1))
        names = ("exact_dates", "demand", "description", "lead_time", "profit", "holding_cost")
        (place / "test.csv").write_text(",".join(f"{name}_{item}" for name in names) + "\n" + rows)
    return tmp_path / "benchmark"


def test_every_instance_of_the_folder_gets_its_orders(folder, tmp_path):
    done = play("benchmark", "--write", "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "real_trajectory/lead_time_4 0.0000  synthetic_trajectory/lead_time_stochastic " in done.stdout
    for name in (REAL, RANDOM):
        header, *rows = (tmp_path / "mine" / name / "results.csv").read_text().splitlines()
        assert header == "period,order_quantity"
        assert [row.split(",")[0] for row in rows] == ["1", "2", "3"]
        assert all(int(row.split(",")[1]) >= 0 for row in rows)
    assert (
        int(rows[0].split(",")[1]) > 0
    )  # what is ordered in the first of three periods comes in the third, as promised


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: (path / REAL / "train.csv").unlink(), "train.csv cannot be read: No such file or directory"),
        (lambda path: (path / REAL / "test.csv").write_text("demand_77\n"), "test.csv has no rows"),
        (
            lambda path: (path / REAL / "train.csv").write_text("demand\n5\n"),
            "has no column demand_ITEM; it has demand",
        ),
        (
            lambda path: (path / REAL / "test.csv").write_text("demand_77\n5\n"),
            "has no column lead_time_77, profit_77, holding_cost_77; it has demand_77",
        ),
        (
            lambda path: (path / REAL / "train.csv").write_text("demand_77\nx\n"),
            "a cell is no number: could not convert string to float: 'x'",
        ),
        (
            lambda path: (path / REAL).parent.rename(path / "real_trajectory" / "lead_time_3"),
            "is known for lead_time_3",
        ),
        (
            lambda path: [each.unlink() for each in path.rglob("test.csv")],
            "has no {real,synthetic}_trajectory/lead_time",
        ),
        (lambda path: path.rename(path.with_name("moved")), "benchmark does not exist; give the file, or the"),
    ],
)
def test_a_folder_that_is_laid_out_otherwise_is_refused_in_a_line(folder, spoil, said):
    spoil(folder)
    done = play("benchmark", cwd=folder.parent)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
