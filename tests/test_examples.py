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
