"""From a long file of many items to plans."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import ucbf
from commands import ucbf as run
from ucbf.errors import UserError
from ucbf.fleet import files as fleet_files
from ucbf.fleet import reading

SHOP = ucbf.systems.Inventory(capacity=8, max_order=5, max_demand=6, horizon=7)
MONDAY = np.datetime64("2024-01-01")


def rows_of(name, amounts, first=MONDAY):
    days = first + np.arange(len(amounts))
    return pa.table({"item": [name] * len(amounts), "date": pa.array(days), "demand": np.asarray(amounts, float)})


def shop_file(folder, n=7, seed=0, days=84):
    rng = np.random.default_rng(seed)
    demand = {f"sku{i}": rng.integers(0, 7, days) for i in range(n)}
    pq.write_table(pa.concat_tables([rows_of(*item) for item in demand.items()]), folder / "demand.parquet")
    costs = {"price": rng.uniform(5, 20, n), "unit_cost": rng.uniform(1, 5, n)}
    pq.write_table(pa.table({"item": list(demand), **costs}), folder / "items.parquet")
    return demand, costs


def learned(folder, **given):
    counted = ucbf.learn_fleet(SHOP, folder / "demand.parquet", folder / "out", folder / "items.parquet", **given)
    return counted, pq.read_table(list((folder / "out").glob("*.parquet"))).sort_by("item").to_pylist()


def test_each_item_gets_the_plan_that_a_fleet_of_one_gives_it(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_files, "CHUNK", 3)
    monkeypatch.setattr(reading, "ROWS", 100)  # rows of an item come in several parts
    demand, costs = shop_file(tmp_path)
    counted, rows = learned(tmp_path)
    assert counted == {"learned": 7, "kept": 0, "refused": 0}
    assert len(list((tmp_path / "out").glob("plans-*.parquet"))) == 3
    for i, row in enumerate(rows):
        alone = ucbf.Fleet(SHOP, {name: values[i : i + 1] for name, values in costs.items()})
        alone.add(np.zeros(84, int), np.arange(84) % 7, -demand[row["item"]])  # a week begins on Monday
        np.testing.assert_array_equal(row["value"], alone.values[0])
        np.testing.assert_array_equal(row["action"], alone.policies[0].ravel())
        assert row["expected"] == alone.values[0, 0]
        assert (row["rows"], str(row["first"]), str(row["last"])) == (84, "2024-01-01", "2024-03-24")
        assert row["mean"] == demand[row["item"]].mean()
        assert row["note"] is None


def test_what_is_done_is_kept_and_what_changed_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_files, "CHUNK", 3)
    shop_file(tmp_path)
    first = learned(tmp_path)[1]
    (tmp_path / "out" / ".plans-000001-x.parquet.0.part").write_bytes(b"left by a process that was killed")
    next((tmp_path / "out").glob("plans-000002*")).unlink()
    counted, again = learned(tmp_path)
    assert counted == {"learned": 1, "kept": 6, "refused": 0}
    assert again == first
    costs = pq.read_table(tmp_path / "items.parquet").to_pydict()
    costs["price"][0] += 1
    pq.write_table(pa.table(costs), tmp_path / "items.parquet")
    counted, changed = learned(tmp_path)
    assert counted == {"learned": 3, "kept": 4, "refused": 0}
    assert len(changed) == 7
    assert changed[0]["expected"] > first[0]["expected"]
    assert changed[3:] == first[3:]


def test_what_looks_wrong_is_noted_and_what_cannot_be_used_is_refused(tmp_path):
    usual = np.arange(84) % 4
    swapped = rows_of("disordered", usual).take([1, 0, *range(2, 84)])
    gap = rows_of("gap", usual).take([0, *range(2, 84)])
    parts = [
        rows_of("changed", np.r_[usual[:42], usual[:42] + 3]), swapped, rows_of("few", usual[:20]), gap,
        rows_of("huge", np.r_[usual, 7]), rows_of("ok", usual), rows_of("unpriced", usual),
    ]  # fmt: skip
    pq.write_table(pa.concat_tables(parts), tmp_path / "demand.parquet")
    priced = ["changed", "disordered", "few", "gap", "huge", "ok"]
    pq.write_table(pa.table({"item": priced, "price": [9.0] * 6}), tmp_path / "items.parquet")
    counted, rows = learned(tmp_path)
    assert counted == {"learned": 4, "kept": 0, "refused": 3}
    notes = {row["item"]: row["note"] for row in rows}
    assert notes["changed"].startswith("its demand rose from 1.4")
    assert notes["disordered"].startswith("refused: its days are not in order")
    assert notes["few"] == "learned from 20 days: take it as a first guess"
    assert notes["gap"] == "1 days are missing"
    assert notes["huge"].startswith("refused: a demand outside 0..6")
    assert notes["ok"] is None
    assert notes["unpriced"].startswith("refused: no costs")
    assert [row["item"] for row in rows if row["action"] is None] == ["disordered", "huge", "unpriced"]


def write(path, table):
    pq.write_table(table, path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: pa.concat_tables([t, t.slice(0, 3)]),
            "the rows of item 'sku0' do not stand together; sort",
        ),
        (lambda t: t.rename_columns(["sku", "date", "demand"]), "has no column 'item'; it has sku, date, demand"),
        (lambda t: t.set_column(1, "date", pa.array(range(len(t)))), "column 'date' is int64, not dates"),
        (lambda t: t.set_column(2, "demand", pa.array(["x"] * len(t))), "column 'demand' is string, not numbers"),
        (lambda t: t.set_column(2, "demand", pa.array([None] * len(t), pa.float64())), "a row has no 'demand'"),
        (lambda t: t.set_column(2, "demand", pa.array([np.inf] * len(t))), "no finite number"),
        (lambda t: t.slice(0, 0), "has no rows"),
    ],
)
def test_files_that_cannot_be_read_are_refused_in_one_line(tmp_path, change, message):
    shop_file(tmp_path)
    write(tmp_path / "demand.parquet", change(pq.read_table(tmp_path / "demand.parquet")))
    with pytest.raises(UserError, match=message):
        learned(tmp_path)


def test_costs_that_cannot_be_used_are_refused(tmp_path):
    shop_file(tmp_path)
    write(tmp_path / "items.parquet", pa.table({"item": ["sku0", "sku0"], "price": [1.0, 2.0]}))
    with pytest.raises(UserError, match="item 'sku0' has two rows; keep one"):
        learned(tmp_path)
    write(tmp_path / "items.parquet", pa.table({"item": ["sku0"], "colour": [1.0]}))
    with pytest.raises(UserError, match="column 'colour' is no parameter of Inventory; those are horizon"):
        learned(tmp_path)
    (tmp_path / "items.parquet").unlink()
    with pytest.raises(UserError, match="is not there"):
        learned(tmp_path)


def test_the_command_with_files_of_text(tmp_path):
    shop_file(tmp_path)
    for name in ("demand", "items"):
        pyarrow.csv.write_csv(pq.read_table(tmp_path / f"{name}.parquet"), tmp_path / f"{name}.csv")
    flags = ["--demand", tmp_path / "demand.csv", "--item", "item", "--items", tmp_path / "items.csv"]
    sizes = ["--capacity", 8, "--max-order", 5, "--max-demand", 6]
    done = run("learn", "inventory", *flags, *sizes, "--out", tmp_path / "by_command")
    assert "7 items: 7 with a plan, 0 refused; 0 with a note." in done.stdout
    assert (tmp_path / "by_command" / "summary.md").read_text() in done.stdout
    _, rows = learned(tmp_path)
    assert pq.read_table(list((tmp_path / "by_command").glob("*.parquet"))).sort_by("item").to_pylist() == rows
    assert "capacity and max_demand not given" in run("learn", "inventory", *flags, check=False).stderr
    assert "without a column of items" in run("learn", "inventory", *flags[:2], *flags[4:], *sizes, check=False).stderr
