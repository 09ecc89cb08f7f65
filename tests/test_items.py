"""``ucbf learn --item``: many items in one file."""

import csv
import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import commands
import ucbf
from ucbf import data
from ucbf.advice.judging import NOT_RULES
from ucbf.cli.items import _learned_row, folder_names
from ucbf.cli.learning import Learned

K = 12  # weeks
DAYS = np.datetime64("2024-01-01") + np.arange(7 * K)
PRICES = ["--price", 9, "--unit-cost", 4]


def rows_of(item, amounts):
    return [f"{item},{day},{amount}" for day, amount in zip(DAYS, amounts, strict=True)]


def items():
    rng = np.random.default_rng(0)
    good, other = rng.poisson(6, 7 * K), rng.poisson(3, 7 * K)
    bad = good.copy()
    bad[40] = -5
    mixed = [row for pair in zip(rows_of("4/1 pt", good), rows_of(7, bad), strict=True) for row in pair]
    return [*mixed, *rows_of("B", other), "short,2024-01-01,3", "short,2024-01-02,4"]


def write(path, rows):
    path.write_text("sku,date,units\n" + "\n".join(rows) + "\n")


def run(*arguments, cwd):
    given = ["--demand", "sales.csv", "--item", "sku", *PRICES, *arguments]
    return commands.ucbf("learn", "inventory", *given, cwd=cwd, check=False)


def table(folder):
    with (folder / "results" / "inventory" / "items.csv").open() as file:
        return {row["item"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    here = tmp_path_factory.mktemp("items")
    write(here / "sales.csv", items())
    done = run(cwd=here)
    assert done.returncode == 0, done.stderr
    return here, done.stdout


def test_each_item_has_a_folder_and_a_row(shop):
    here, printed = shop
    out, rows = here / "results" / "inventory", table(here)
    assert sorted(path.name for path in out.iterdir()) == ["4-1-pt", "B", "items.csv", "page.html", "summary.md"]
    names = "agent.npz comparison.csv inputs.json law.csv model.json page.html policy.csv summary.md"
    assert " ".join(sorted(path.name for path in (out / "B").iterdir())) == names
    assert list(rows)[:2] == ["7", "short"]  # what was refused stands first
    row = next(i for i, line in enumerate(items()) if line.endswith(",-5")) + 2
    assert rows["7"]["status"] == (
        f"refused: sales.csv, item '7', row {row}, column 'units': -5 is below 0, the least that makes sense here; "
        "correct it"
    )
    assert rows["short"]["status"].startswith("refused: sales.csv, item 'short', column 'units': 2 rows make 0 whole")
    assert rows["B"]["status"] == "done"
    assert rows["B"]["rows"] == "84"
    assert "4 items: 2 done, 1 of them with things to read first; 2 refused. Assumed, because not given:" in printed
    assert "| [4/1 pt](4-1-pt/summary.md) | 84 |" in printed
    assert "sales.csv, item 'B'" in (out / "B" / "summary.md").read_text()
    page = (out / "page.html").read_text()
    assert '<a href="4-1-pt/page.html">4/1 pt</a>' in page
    assert '<tr><th scope="row">short</th><td>refused: sales.csv, item &#39;short&#39;' in page
    assert "Assumed, because not given:" in page


def test_an_item_is_learned_as_if_it_were_alone(shop):
    here, _ = shop
    lines = [line.removeprefix("B,") for line in items() if line.startswith("B,")]
    (here / "alone.csv").write_text("date,units\n" + "\n".join(lines) + "\n")
    alone = ["--demand", "alone.csv", *PRICES, "--no-pictures", "--out", "alone"]
    commands.ucbf("learn", "inventory", *alone, cwd=here)
    for name in ("policy.csv", "law.csv", "comparison.csv"):
        together = (here / "results" / "inventory" / "B" / name).read_text()
        assert together == (here / "alone" / name).read_text()
    assert not list((here / "alone").glob("policy.p*g"))
    agent = ucbf.load(here / "results" / "inventory" / "B" / "agent.npz")
    with (here / "alone" / "comparison.csv").open() as file:
        best = next(row for row in csv.DictReader(file) if row["policy"] not in ("learned", "still learning"))
    row = table(here)["B"]
    assert (row["best_rule"], float(row["learned_ahead"])) == (best["policy"], float(best["ahead"]))
    assert agent.act(0, 0) > 0


def test_what_is_done_is_skipped_until_its_rows_or_parameters_change(shop, tmp_path):
    shutil.copytree(shop[0], tmp_path, dirs_exist_ok=True)
    pages = {name: tmp_path / "results" / "inventory" / name / "summary.md" for name in ("B", "4-1-pt")}
    for page in pages.values():
        page.write_text("kept")
    before = table(tmp_path)
    assert run(cwd=tmp_path).returncode == 0
    assert {page.read_text() for page in pages.values()} == {"kept"}
    assert table(tmp_path) == before
    rows = items()
    rows[-3] = rows[-3].rsplit(",", 1)[0] + ",2"  # the last day of B
    rows[2 * 40 + 1] = rows[2 * 40 + 1].replace("-5", "5")
    write(tmp_path / "sales.csv", rows)
    assert run(cwd=tmp_path).returncode == 0
    assert pages["4-1-pt"].read_text() == "kept"
    assert pages["B"].read_text() != "kept"
    assert table(tmp_path)["7"]["status"] == "done"
    pages["B"].unlink()  # as if it had been stopped before the end
    assert run("--holding", 0.5, cwd=tmp_path).returncode == 0
    assert pages["4-1-pt"].read_text() != "kept"
    assert pages["B"].is_file()


def test_the_best_simple_rule_is_a_simple_rule():
    rows = [{"policy": name, "ahead": -1.0} for name in NOT_RULES] + [{"policy": "base-stock", "ahead": 2.0}]
    found, told = (
        SimpleNamespace(comparison=lambda: rows, value=5.0),
        SimpleNamespace(rules=(), own_caveats=(), assumed=()),
    )
    row = _learned_row("cola", 84, Learned(found, told))
    assert (row["best_rule"], row["learned_ahead"], row["expected_reward"]) == ("base-stock", 2, 5)


def test_the_command_fails_only_if_every_item_does(tmp_path):
    write(tmp_path / "sales.csv", ["a,2024-01-01,3", "a,2024-01-02,4", "b,2024-01-01,3", "b,2024-01-03,4"])
    done = run(cwd=tmp_path)
    assert done.returncode == 2
    assert "none of the 2 items could be learned from; item 'a': refused: sales.csv, item 'a', " in done.stderr
    assert set(table(tmp_path)) == {"a", "b"}


def test_names_of_folders_are_safe_and_differ():
    assert folder_names(["a b", "../etc", "1.5", "Ä/ö"]) == {"a b": "a-b", "../etc": "-etc", "1.5": "1.5", "Ä/ö": "Ä-ö"}
    with pytest.raises(data.UserError, match="item 'A b' and item 'a-b' would have the same folder 'A-b'; rename one"):
        folder_names(["a-b", "A b"])
    with pytest.raises(data.UserError, match="item 'items.csv' and the file items.csv would have the same"):
        folder_names(["items.csv"])


def test_a_row_without_an_item_is_refused(tmp_path):
    write(tmp_path / "sales.csv", ["a,2024-01-01,3", ",2024-01-02,4"])
    done = run(cwd=tmp_path)
    assert done.returncode == 2
    assert "sales.csv, row 3, column 'sku': no item; fill it in, or leave the row out" in done.stderr


def test_items_keep_the_order_and_the_numbers_of_their_rows(tmp_path):
    write(tmp_path / "sales.csv", ["a,2024-01-01,3", "b,2024-01-01,9", "a,2024-01-02,4"])
    parts = data.split_items(tmp_path / "sales.csv", "sku")
    assert list(parts) == ["a", "b"]
    series = data.read_series(parts["a"])
    assert series.values.tolist() == [3, 4]
    assert [series.place(i) for i in range(2)] == ["row 2 (2024-01-01)", "row 4 (2024-01-02)"]


def test_an_item_without_a_forecast_is_refused_and_others_are_not(shop, tmp_path):
    write(tmp_path / "sales.csv", items())
    lines = [line for line in items() if line.startswith("B,")]
    (tmp_path / "forecast.csv").write_text("sku,date,forecast\n" + "\n".join(lines) + "\n")
    done = run("--forecast", "forecast.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = table(tmp_path)
    assert rows["4/1 pt"]["status"] == "refused: forecast.csv has no forecast of item '4/1 pt'; add its rows"
    assert rows["B"]["status"] == "done"


def test_of_items_whose_orders_take_time_it_is_said_what_their_numbers_are(tmp_path):
    amounts = np.random.default_rng(0).poisson(8, 7 * K)
    write(tmp_path / "sales.csv", [*rows_of("cola", amounts), *rows_of("bread", amounts + 3)])
    (tmp_path / "days.csv").write_text("date,sku,demand,order,received\n2024-03-25,cola,9,12,0\n")
    (tmp_path / "stock.csv").write_text("sku,stock\ncola,9\n")
    for train in (0.7, 1):
        done = run("--lead-time", 2, "--train", train, "--no-pictures", cwd=tmp_path)
        assert "where orders take time, it is what an episode got, of those that followed" in done.stdout
        assert [row["expected_reward"] != "" for row in table(tmp_path).values()] == [train < 1] * 2
        assert "nan" not in done.stdout
    assert morning("observe", "--file", "days.csv", cwd=tmp_path).stdout.startswith(
        "cola: 2024-03-25 (Mon): taken in, demand 9"
    )
    row = printed_rows(morning("act", "--stock-file", "stock.csv", cwd=tmp_path))["cola"]
    alone = commands.ucbf("act", "results/inventory/cola", "--stock", "9", cwd=tmp_path).stdout
    assert alone.startswith(f"2024-03-26 (Tue): order {row['order']} (9 in stock, 12 under way")
    assert row["date"] == "2024-03-26"


def printed_rows(done):
    assert done.returncode == 0, done.stderr
    return {row["item"]: row for row in csv.DictReader(done.stdout.splitlines())}


def morning(name, *arguments, cwd):
    return commands.ucbf(name, "results/inventory", *arguments, cwd=cwd, check=False)


def test_every_morning_one_file_asks_for_all_items_and_one_tells_what_happened(shop, tmp_path):
    shutil.copytree(shop[0], tmp_path, dirs_exist_ok=True)
    (tmp_path / "stock.csv").write_text("sku;stock\nB;2\n4/1 pt;3\nB2;4\n")
    rows = printed_rows(morning("act", "--stock-file", "stock.csv", cwd=tmp_path))
    assert list(rows) == ["4/1 pt", "7", "B", "short", "B2"]
    alone = commands.ucbf("act", "results/inventory/B", "--stock", "2", cwd=tmp_path).stdout
    assert alone.startswith(f"2024-03-25 (Mon), stock 2: order {rows['B']['order']}\n")
    assert (rows["B"]["date"], rows["B"]["stock"], rows["B"]["note"]) == ("2024-03-25", "2", "")
    assert "below 0" in rows["7"]["note"]
    assert rows["B2"]["note"].startswith("nothing was learned of it")

    (tmp_path / "days.csv").write_text(
        "date,sku,stock,order,demand\n2024-03-25,B,2,4,1\n2024-03-26,B,5,0,9\n2024-03-25,4/1 pt,3,6,7\n"
    )
    for said in ("taken in", "already there, the same"):
        done = morning("observe", "--file", "days.csv", cwd=tmp_path)
        assert done.stdout.splitlines() == [
            f"B: 2024-03-25 (Mon), 2024-03-26 (Tue): {said}",
            f"4/1 pt: 2024-03-25 (Mon): {said}",
        ], done.stderr
    rows = printed_rows(morning("act", "--stock-file", "stock.csv", cwd=tmp_path))
    assert (rows["4/1 pt"]["date"], rows["B"]["date"]) == ("2024-03-26", "2024-03-27")
    later = printed_rows(morning("act", "--stock-file", "stock.csv", "--date", "2024-03-28", cwd=tmp_path))
    assert later["B"]["note"] == "2024-03-27 is not in the journal: take in what happened (ucbf observe)"


def test_an_item_that_is_refused_in_the_morning_does_not_stop_the_others(shop, tmp_path):
    shutil.copytree(shop[0], tmp_path, dirs_exist_ok=True)
    (tmp_path / "days.csv").write_text(
        "date,sku,stock,order,demand\n2024-03-25,B,2,4,-1\n2024-03-25,4/1 pt,3,6,7\n2024-03-25,7,3,6,7\n"
    )
    done = morning("observe", "--file", "days.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "4/1 pt: 2024-03-25 (Mon): taken in\n")
    assert done.stderr.startswith("ucbf: 2 items refused, and the others taken in; ")
    assert "item 'B': days.csv, item 'B', row 2" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    (tmp_path / "stock.csv").write_text("name,stock\nnobody,2\n")
    for given, message in (
        (
            ["act", "--stock-file", "stock.csv"],
            "stock.csv: no column holds the names of items, such as '4/1 pt'; it has ",
        ),
        (
            ["act", "--stock", "3"],
            "holds folders of 2 items; give that of one, such as results/inventory/4-1-pt, or a ",
        ),
        (["observe", "--file", "days.csv", "--stock", "3"], "give nothing else but --correct and --unusual"),
    ):
        done = morning(*given, cwd=tmp_path)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert message in done.stderr
