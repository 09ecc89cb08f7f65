"""Numbers of the README and the manual that are cheap to make again are those that their commands print."""

import re
import runpy

import pytest

from commands import ucbf
from pages import ROOT

BENCHMARKS = (ROOT / "docs" / "benchmarks.md").read_text()


def section(title):
    """The text below a heading of the benchmarks."""
    return re.split(r"^## ", BENCHMARKS.split(f"\n## {title}\n")[1], flags=re.MULTILINE)[0]


def rows(text):
    """The cells of every row of the tables in a text, without headings."""
    lines = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_readme_has_the_regrets_of_the_table():
    regrets = {agent: cells[1].split()[0] for panel, agent, *cells in rows(section("The paper's figure as a table"))
               if panel == "H = 5, A = 8"}  # fmt: skip
    told, blind, other = (float(regrets[agent]) for agent in ("UCB-f, ζ = 0", "UCBVI", "UCB-H"))
    assert f"regret {told:.1f} against {blind:.0f} and {other:.0f} (A = 8, H = 5" in (ROOT / "README.md").read_text()


def test_every_number_has_a_command_that_exists():
    makefile = (ROOT / "Makefile").read_text()
    commands = re.findall(r"`([^`]+)`", BENCHMARKS.split("\n## ")[0])
    assert len(commands) > 12
    for command in commands:
        program, *words = command.split()
        if program == "make":
            assert f"\n{words[0]}:" in makefile, command
        elif program == "python":
            assert (ROOT / words[0]).exists(), command
        elif program.endswith(".py"):  # beside the one before
            assert (ROOT / "examples" / program).exists(), command
        else:
            assert program == "ucbf", command


@pytest.mark.slow
def test_figure1_prints_the_table(tmp_path):
    ucbf("figure1", "--out", tmp_path / "figure")
    made = (tmp_path / "figure" / "summary.md").read_text()
    assert rows(made)[1:] == rows(section("The paper's figure as a table"))[1:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "series"), [("retail", ("CDs",)), ("battery", ("Power",)), ("dam", ("Fulda", "Nile"))]
)
def test_real_series_give_the_rewards_of_the_table(example, series, tmp_path, capsys):
    found = runpy.run_path(str(ROOT / "examples" / f"{example}.py"))["main"](tmp_path / "picture.png")
    said = {row[0].split()[0]: row for row in rows(section("Real series"))[1:]}
    for name, advice in zip(series, found if isinstance(found, list) else [found], strict=True):
        made = {row["policy"]: row for row in advice.comparison()}
        assert said[name][2].split()[0] == f"{made['learned']['reward']:.0f}"
        shown = re.findall(r"(\(s, S\)|[a-zA-Z][^+,(]*?) ([+-]\d+) \(", said[name][3])
        assert len(shown) >= 3 or name == "Nile"
        for policy, ahead in shown:
            assert f"{made[policy.strip()]['ahead']:+.0f}" == ahead, (name, policy)


@pytest.mark.slow
def test_repair_prints_its_table(capsys, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    runpy.run_path(str(ROOT / "benchmarks" / "evidence.py"))["repair"]()
    printed = capsys.readouterr().out
    block = re.search(r"```text\n(repair, H = 5.*?)```", section("Repair of a wrong f"), flags=re.DOTALL)[1]
    for line in block.splitlines():
        assert line.split() in [made.split() for made in printed.splitlines()], line
