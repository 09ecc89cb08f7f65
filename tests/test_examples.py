"""The examples run, and print what they say they print."""

import runpy
from pathlib import Path

import matplotlib.image

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_inventory_example_shows_a_table_and_draws_a_picture(tmp_path, capsys):
    main = runpy.run_path(str(EXAMPLES / "inventory.py"))["main"]
    main(tmp_path / "new" / "picture.png", weeks=120, seeds=2)
    printed = capsys.readouterr().out
    assert "stock     day 1    day 2" in printed
    assert "UCB-f after 100 weeks earns 140.65 a week" in printed
    picture = matplotlib.image.imread(tmp_path / "new" / "picture.png")
    assert picture.shape[:2] == (672, 1760)
    assert picture[..., :3].std() > 0.1


def test_the_linear_example_repairs_the_valve(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / "linear.py"))["main"](episodes=150, tanks=1)
    printed = capsys.readouterr().out.splitlines()
    gaps = {line[:20].strip(): [float(x) for x in line[20:].split()] for line in printed[1:5]}
    assert gaps["UCBVI-f, repaired"][-1] < 0.1 * gaps["UCB-f, as sold"][-1]
    assert (tmp_path / "linear.png").stat().st_size > 10_000


def test_the_retail_example_reads_off_a_rule_and_reports_who_was_better(tmp_path, capsys):
    found = runpy.run_path(str(EXAMPLES / "retail.py"))["main"](tmp_path / "retail.png")
    printed = capsys.readouterr().out
    assert "- Sat to Sun: order up to" in printed
    assert "NOT independent" in printed
    rewards = {row["policy"]: row for row in found.comparison()}
    assert all(row["high"] >= 0 for row in rewards.values())  # no rule is ahead by more than chance
    assert rewards["learned"]["reward"] > rewards["base-stock"]["reward"]
    assert rewards["base-stock"]["low"] > 0
    assert (tmp_path / "retail.png").stat().st_size > 10_000


def test_the_battery_example_beats_rules_that_ignore_prices_or_doubt(tmp_path, capsys):
    found = runpy.run_path(str(EXAMPLES / "battery.py"))["main"](tmp_path / "battery.png")
    assert "What to do" in capsys.readouterr().out
    assert len(found.test) == 25
    worse = {row["policy"] for row in found.comparison() if row["low"] > 0}
    assert {"myopic", "one level", "certainty-equivalent"} <= worse


def test_the_dam_example_reads_both_rivers(tmp_path, capsys):
    fulda, nile = runpy.run_path(str(EXAMPLES / "dam.py"))["main"](tmp_path / "dam.png")
    assert "release 20, or what there is, and all beyond" in capsys.readouterr().out
    assert fulda.independence.ok
    assert not nile.independence.ok


def test_the_plant_example_is_near_the_optimum_in_a_few_flights(tmp_path, capsys):
    main = runpy.run_path(str(EXAMPLES / "plant.py"))["main"]
    above = main(tmp_path / "plant.png", seeds=1, episodes=(1, 20), fine=91)
    assert above[1] < 2 < above[0]
    assert "cost of the fine-grid optimum" in capsys.readouterr().out
