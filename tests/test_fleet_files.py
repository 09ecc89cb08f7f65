"""From a long file of many items to plans."""

import csv
import json
import random
import shutil
import subprocess
import sys
import time
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import ucbf
from commands import ucbf as run
from ucbf.data.outliers import outliers
from ucbf.errors import UserError
from ucbf.fleet import files as fleet_files
from ucbf.fleet import notes, reading, text
from ucbf.fleet.orders import orders_on
from ucbf.fleet.rows import Rows

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


def learned(folder, shop=SHOP, **given):
    counted = ucbf.learn_fleet(shop, folder / "demand.parquet", folder / "out", folder / "items.parquet", **given)
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
    assert notes["gap"] == "missing: 1 day"
    assert notes["huge"].startswith("refused: its largest demand is ")
    assert notes["ok"] is None
    assert notes["unpriced"].startswith("refused: no costs")
    assert [row["item"] for row in rows if row["action"] is None] == ["disordered", "huge", "unpriced"]


def test_what_was_read_is_not_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "ROWS", 4000)
    rng, days = np.random.default_rng(0), pa.array(MONDAY + np.arange(1000))
    path = tmp_path / "demand.parquet"
    with pq.ParquetWriter(path, rows_of("sku", [1.0]).schema) as file:
        for i in range(200):  # a row group for each item, of numbers that cannot be compressed
            file.write_table(pa.table({"item": [f"sku{i}"] * 1000, "date": days, "demand": rng.random(1000)}))
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in reading.chunks_of(path, reading.Columns(), 4)]
    assert len(held) == 50
    assert path.stat().st_size > 1.5e6
    assert max(held) < 0.5e6


def write(path, table):
    pq.write_table(table, path)


@pytest.mark.parametrize("kind", [pa.int16(), pa.uint8(), pa.float32(), pa.decimal128(5, 1)], ids=str)
def test_amounts_may_be_any_kind_of_number(tmp_path, kind):
    shop_file(tmp_path)
    as_floats = learned(tmp_path)[1]
    table = pq.read_table(tmp_path / "demand.parquet")
    write(tmp_path / "demand.parquet", table.set_column(2, "demand", table["demand"].cast(kind)))
    shutil.rmtree(tmp_path / "out")
    assert learned(tmp_path) == ({"learned": 7, "kept": 0, "refused": 0}, as_floats)


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


def test_a_large_file_that_nothing_but_commas_should_separate_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "LARGEST", 0)  # read a part at a time
    (tmp_path / "demand.csv").write_text("item;date;demand\na;2024-01-01;3\n")
    with pytest.raises(UserError, match="has no column 'item'; it has item;date;demand; separate the cells by commas"):
        list(reading.chunks_of(tmp_path / "demand.csv", reading.Columns(), 4))


def test_costs_that_cannot_be_used_are_refused(tmp_path):
    shop_file(tmp_path)
    write(tmp_path / "items.parquet", pa.table({"item": ["sku0", "sku0"], "price": [1.0, 2.0]}))
    with pytest.raises(UserError, match="item 'sku0' has two rows; keep one"):
        learned(tmp_path)
    write(tmp_path / "items.parquet", pa.table({"item": ["sku0"], "colour": [1.0]}))
    with pytest.raises(UserError, match="is no parameter of Inventory that items may differ in; those are unit"):
        learned(tmp_path)
    (tmp_path / "items.parquet").unlink()
    with pytest.raises(UserError, match="is not there"):
        learned(tmp_path)


# -- shapes, laws, forecasts ------------------------------------------------------------------------


def test_items_of_different_size_are_grouped_by_their_sizes(tmp_path):
    demand, costs = shop_file(tmp_path)
    sizes = {"capacity": [8, 8, 12, 12, 6, None, 8], "max_order": [5, 4, 5, 5, 5, 5, 5], "lead_time": [0] * 7}
    pq.write_table(pa.table({"item": list(demand), **costs, **sizes}), tmp_path / "items.parquet")
    counted, rows = learned(tmp_path)
    assert counted["learned"] == 7
    for i, row in enumerate(rows):
        shop = SHOP.replace(capacity=sizes["capacity"][i] or 8, max_order=sizes["max_order"][i])
        alone = ucbf.Fleet(shop, {name: values[i : i + 1] for name, values in costs.items()})
        alone.add(np.zeros(84, int), np.arange(84) % 7, -demand[row["item"]])
        np.testing.assert_array_equal(row["value"], alone.values[0])
        np.testing.assert_array_equal(row["action"], alone.policies[0].ravel())
        assert (row["capacity"], row["max_order"]) == (shop.capacity, shop.max_order)
    pq.write_table(pa.table({"item": list(demand), "max_order": [5, -1, 5, 5, 5, 5, 5]}), tmp_path / "items.parquet")
    counted, rows = learned(tmp_path)
    assert (counted["learned"], counted["refused"]) == (6, 1)
    assert rows[1]["note"].startswith("refused: max_order is -1")
    late = {"backlog": [0, 4, 0, 0, 0, 0, 0], "lead_time": [0, 2, 0, 0, 0, 0, 0], "max_order": [5, 5, None, 5, 5, 5, 5]}
    pq.write_table(pa.table({"item": list(demand), **late}), tmp_path / "items.parquet")
    counted, rows = learned(tmp_path)
    assert (counted["learned"], counted["refused"]) == (6, 1)
    assert rows[1]["note"].startswith("refused: a fleet is of systems")  # rewards are paid late there


def test_sizes_are_chosen_by_the_data_and_rounded_so_that_items_share_them(tmp_path):
    rng = np.random.default_rng(0)
    demand = {"large": 50 * rng.integers(0, 41, 84), "small": rng.integers(0, 5, 84), "zero": np.zeros(84),
              "tiny": rng.integers(0, 4, 84)}  # fmt: skip
    pq.write_table(pa.concat_tables([rows_of(*item) for item in demand.items()]), tmp_path / "demand.parquet")
    pq.write_table(pa.table({"item": list(demand), "price": [9.0] * 4}), tmp_path / "items.parquet")
    shop = ucbf.systems.Inventory(capacity=2, max_demand=1, horizon=7)
    fitted = ("unit", "max_demand", "capacity")
    ucbf.learn_fleet(shop, tmp_path / "demand.parquet", tmp_path / "out", tmp_path / "items.parquet", fitted=fitted)
    rows = {row["item"]: row for row in pq.read_table(list((tmp_path / "out").glob("*.parquet"))).to_pylist()}
    # Up to 4: 1.5 * 4 = 6 and 2 * 4 = 8 are steps of 1, 2, 3, 4, 6, 8, 12. Up to 3: 4.5 -> 6, 6.
    assert [rows["small"][name] for name in fitted] == [1, 6, 8]
    assert [rows["tiny"][name] for name in fitted] == [1, 6, 6]
    # 2000 in units of 50: 60 -> 64 and 80 -> 96 units.
    assert [rows["large"][name] for name in fitted] == [50, 64 * 50, 96 * 50]
    assert len(rows["large"]["value"]) == 97
    assert rows["zero"]["note"].startswith("refused: all amounts are 0")


def test_amounts_far_from_all_others_are_named_and_sizes_do_not_follow_them(tmp_path):
    usual = np.tile([3.0, 1, 2, 4, 0, 2, 40], 12)  # Sundays sell most
    tenfold, absurd = usual.copy(), usual.copy()
    tenfold[8] = 35  # a Tuesday, 2024-01-09, that sells less than a Sunday
    absurd[20] = 99_999
    parts = [rows_of(name, amounts) for name, amounts in (("odd", tenfold), ("ok", usual), ("typo", absurd))]
    pq.write_table(pa.concat_tables(parts), tmp_path / "demand.parquet")
    pq.write_table(pa.table({"item": ["odd", "ok", "typo"], "price": [9.0] * 3}), tmp_path / "items.parquet")
    odd, ok, typo = learned(tmp_path, fitted=("unit", "max_demand", "capacity"))[1]
    assert odd["note"] == "far from all others: 35 on 2024-01-09; the others go from 0 to 40"
    assert ok["note"] is None
    assert typo["note"] == (
        "refused: one demand is 99999 at 2024-01-21, the largest of the others 40; correct it, or say how far they"
        " go (max_demand)"
    )
    assert odd["capacity"] == ok["capacity"]
    assert typo["action"] is None


def test_an_outlier_is_named_where_sizes_are_given_and_days_are_missing(tmp_path):
    days = np.arange(84) % 3
    days[50] = 60
    part = rows_of("gap", days).take([0, *range(2, 84)])
    pq.write_table(part, tmp_path / "demand.parquet")
    pq.write_table(pa.table({"item": ["gap"], "price": [9.0]}), tmp_path / "items.parquet")
    (row,) = learned(tmp_path, SHOP.replace(max_demand=60))[1]
    assert row["note"] == "far from all others: 60 on 2024-02-20; the others go from 0 to 2; missing: 1 day"


def test_sizes_fit_packs_and_dear_orders_of_each_item(tmp_path):
    rng = np.random.default_rng(5)
    demand = {name: rng.integers(0, 2, 84) for name in ("bound", "dear", "loss", "never", "packs")}
    pq.write_table(pa.concat_tables([rows_of(*item) for item in demand.items()]), tmp_path / "demand.parquet")
    costs = {"price": [9, 9, 3, 4.5, 9], "unit_cost": [4.0] * 5, "order_cost": [40, 40, 0, 40, 0.0],
             "holding": [0.001, 0.1, 0.1, 9, 0.1], "pack": [None, None, None, None, 6.0]}  # fmt: skip
    pq.write_table(pa.table({"item": list(demand), **costs}), tmp_path / "items.parquet")
    bound, dear, loss, never, packs = learned(
        tmp_path,
        ucbf.systems.Inventory(capacity=2, max_demand=1, horizon=None, period=7),
        fitted=("unit", "max_demand", "capacity"),
    )[1]
    assert packs["note"] is None
    assert packs["capacity"] == 16  # the largest demand is 1, and two packs of 6 have room besides
    assert set(packs["action"]) == {0, 6}
    # 1.25 sqrt(2 * 40 * 0.5 / 0.1) = 25, more or less, and 1; rounded up.
    assert dear["capacity"] == 32
    assert dear["note"] is None
    assert max(dear["action"]) > 12
    assert never["note"].startswith("nothing is ever ordered, although its price (4.5) is above its unit cost (4)")
    assert loss["note"] == "nothing is ever ordered: its price (3) is not above its unit cost (4)"
    assert bound["note"] is None


def test_a_capacity_that_was_chosen_and_is_used_up_is_said(tmp_path):
    part = rows_of("bound", np.random.default_rng(5).integers(0, 2, 84))
    pq.write_table(part, tmp_path / "demand.parquet")
    shop = ucbf.systems.Inventory(capacity=20, max_demand=1, horizon=None, period=7, holding=0, order_cost=20)
    pq.write_table(pa.table({"item": ["bound"], "price": [9.0]}), tmp_path / "items.parquet")
    (row,) = learned(tmp_path, shop, fitted=("capacity",))[1]
    assert row["capacity"] == 6  # what a week sells, as nothing speaks against a large stock
    assert row["note"] == "its capacity of 6, which was chosen, is used up: a larger one may earn more"
    (row,) = learned(tmp_path, shop)[1]
    assert row["note"] is None  # it was given


def test_recent_demand_counts_more_where_that_predicts_better(tmp_path):
    rng = np.random.default_rng(1)
    fell = np.r_[rng.integers(4, 7, 7 * 40), rng.integers(0, 2, 7 * 40)]
    parts = [rows_of("fell", fell), rows_of("same", rng.integers(0, 7, 7 * 80))]
    pq.write_table(pa.concat_tables(parts), tmp_path / "demand.parquet")
    pq.write_table(pa.table({"item": ["fell", "same"], "price": [9.0, 9.0]}), tmp_path / "items.parquet")
    _, alike = learned(tmp_path)
    _, rows = learned(tmp_path, law="Recent")
    assert rows[0]["half_life"] < rows[1]["half_life"]
    assert alike[0]["half_life"] is None
    assert rows[0]["note"].endswith("what is recent counts more")
    assert sum(rows[0]["action"]) < sum(alike[0]["action"])


def test_forecasts_stand_beside_demand_and_go_on_after_it(tmp_path):
    rng = np.random.default_rng(2)
    forecast = rng.integers(1, 6, 91).astype(float)
    demand = np.clip(forecast + rng.integers(-1, 2, 91), 0, 6)
    days = pa.array(MONDAY + np.arange(91))
    known = [*demand[:84], *[None] * 7]
    tables = [
        pa.table({"item": [name] * n, "date": days[:n], "demand": pa.array(known[:n], pa.float64()),
                  "forecast": forecast[:n]}) for name, n in (("a", 91), ("short", 90))
    ]  # fmt: skip
    pq.write_table(pa.concat_tables(tables), tmp_path / "demand.parquet")
    pq.write_table(pa.table({"item": ["a", "short"], "price": [9.0, 9.0]}), tmp_path / "items.parquet")
    counted, rows = learned(tmp_path, columns=ucbf.fleet.Columns(forecast="forecast"), stationary=True)
    assert counted == {"learned": 1, "kept": 0, "refused": 1}
    alone = ucbf.Fleet(SHOP, {"price": [9.0]}, stationary=True, forecasts=True)
    alone.add(np.zeros(84, int), np.arange(84) % 7, -demand[:84].astype(int), -forecast[:84].astype(int))
    alone.expect(-forecast[None, 84:].astype(int))
    np.testing.assert_array_equal(rows[0]["value"], alone.values[0])
    np.testing.assert_array_equal(rows[0]["action"], alone.policies[0].ravel())
    assert (str(rows[0]["last"]), rows[0]["mean"]) == ("2024-03-24", demand[:84].mean())
    assert rows[1]["note"] == "refused: no forecast of the 7 days to come"
    (tmp_path / "stocks.csv").write_text("item,stock\na,0\n")
    for day, place in ((date(2024, 3, 31), 6), (date(2024, 4, 1), None)):  # the last that was forecast, and the next
        told, _ = next(orders_on(tmp_path / "out", tmp_path / "stocks.csv", day)).to_pylist()
        assert told["order"] == (None if place is None else rows[0]["action"][place * 9])
    assert told["note"] == "the day is after those of the forecast; learn again with one of it"


def test_gain_is_what_a_plan_for_the_mean_would_lose(tmp_path):
    demand, costs = shop_file(tmp_path, n=2, days=91)  # thirteen weeks: no mean is half-way between two numbers
    costs["holding"] = np.array([0.3, 0.7])  # so that nothing is as well ordered a day early
    pq.write_table(pa.table({"item": list(demand), **costs}), tmp_path / "items.parquet")
    _, rows = learned(tmp_path, certificate=0.1)
    for i, row in enumerate(rows):
        shop = SHOP.replace(**{name: float(values[i]) for name, values in costs.items()})
        w = -demand[row["item"]].reshape(-1, 7)
        agent = ucbf.UCBVIf(shop.system)
        agent.warm_start(w)
        law = agent.law
        means = np.rint(law.pmf @ law.values).astype(int)
        certain = ucbf.Disturbance(np.eye(7)[means + 6], low=-6)
        world = ucbf.World(shop.system, law)
        simple = ucbf.evaluate(world, ucbf.planning.plan(shop.system, certain).policy)[0, 0]
        assert row["gain"] == pytest.approx(ucbf.optimal(world).v[0, 0] - simple, abs=1e-9)
        assert row["gain"] > 0
        assert row["lost_at_most"] == pytest.approx(agent.certificate(0.1, "bernstein").gap[0])


@pytest.mark.parametrize("discount", [1.0, 0.97])
def test_without_an_end_gain_is_what_a_plan_for_the_mean_would_lose_in_the_long_run(tmp_path, discount):
    demand, costs = shop_file(tmp_path, n=3, days=91)
    costs["holding"] = np.array([0.3, 0.7, 0.5])
    pq.write_table(pa.table({"item": list(demand), **costs}), tmp_path / "items.parquet")
    store = SHOP.replace(horizon=None, period=7, discount=discount, order_cost=2)
    _, rows = learned(tmp_path, store)
    for i, row in enumerate(rows):
        shop = store.replace(**{name: float(values[i]) for name, values in costs.items()})
        agent = ucbf.UCBVIf(shop.system)
        agent.warm_start(-demand[row["item"]].reshape(-1, 7))
        law = agent.law
        means = np.rint(law.pmf @ law.values).astype(int)
        certain = ucbf.World(shop.system, ucbf.Disturbance(np.eye(7)[means + 6], low=-6))
        world, simple = ucbf.World(shop.system, law, start=0), ucbf.optimal(certain).policy
        if discount == 1:
            best, other = ucbf.optimal(world).gain, ucbf.planning.gain(world, simple)
        else:
            best, other = ucbf.optimal(world).v[0, 0], ucbf.evaluate(world, simple)[0, 0]
        assert row["expected"] == pytest.approx(best, abs=1e-6)
        assert row["gain"] == pytest.approx(best - other, abs=1e-6)
        assert row["gain"] > 0


def test_pipelines_are_learned_from_files_too(tmp_path):
    shop_file(tmp_path, n=2)
    shop = ucbf.systems.Inventory(capacity=6, max_order=3, max_demand=6, lead_time=2, horizon=None)
    ucbf.learn_fleet(shop, tmp_path / "demand.parquet", tmp_path / "out", tmp_path / "items.parquet", stationary=True)
    rows = pq.read_table(list((tmp_path / "out").glob("*.parquet"))).to_pylist()
    assert rows[0]["note"] is None
    assert len(rows[0]["action"]) == shop.system.n_states
    assert (rows[0]["gain"], rows[0]["expected"] != 0) == (None, True)


def test_a_part_that_was_cut_off_is_made_again(tmp_path):
    shop_file(tmp_path)
    _, first = learned(tmp_path)
    (part,) = (tmp_path / "out").glob("plans-*")
    part.write_bytes(part.read_bytes()[:-100])
    counted, again = learned(tmp_path)
    assert counted["learned"] == 7
    assert again == first


# -- the command ------------------------------------------------------------------------------------


def test_the_command_with_files_of_text(tmp_path):
    shop_file(tmp_path)
    for name in ("demand", "items"):
        pyarrow.csv.write_csv(pq.read_table(tmp_path / f"{name}.parquet"), tmp_path / f"{name}.csv")
    flags = ["--demand", tmp_path / "demand.csv", "--item", "item", "--items", tmp_path / "items.csv"]
    sizes = ["--capacity", 8, "--max-order", 5, "--max-demand", 6, "--unit", 1]
    out = tmp_path / "by_command"
    done = run("learn", "inventory", *flags, *sizes, "--half-life", "inf", "--out", out)
    assert "7 items: 7 with a plan, 0 refused; 0 with a note." in done.stdout
    assert (out / "summary.md").read_text() in done.stdout
    page = (out / "page.html").read_text()
    assert "Those that gain most" in page
    assert "sku3" in page
    assert "http" not in page
    _, rows = learned(tmp_path, SHOP.replace(horizon=None, period=7))  # weeks follow each other
    assert pq.read_table(list(out.glob("*.parquet"))).sort_by("item").to_pylist() == rows
    assert "without a column of items" in run("learn", "inventory", *flags[:2], *flags[4:], *sizes, check=False).stderr
    assert "give their file (--items)" in run("learn", "inventory", *flags[:2], "--jobs", 2, check=False).stderr


def german(folder, demand, costs):
    """Files as spreadsheets write them there: semicolons, days before months, decimal commas, Windows text."""
    rows = []
    for name, amounts in demand.items():
        dates = [date(2024, 1, 1) + timedelta(k) for k in range(len(amounts))]
        rows += [f"{day:%d.%m.%Y};{name};{amount}" for day, amount in zip(dates, amounts, strict=True) if amount != ""]
    (folder / "absatz.csv").write_bytes("\r\n".join(["Tag;Artikel;Menge", *rows]).encode("cp1252"))
    (folder / "artikel.csv").write_bytes("\r\n".join(["Artikel;price;holding", *costs]).encode("cp1252"))


def test_files_of_text_are_read_by_the_rules_of_a_single_series(tmp_path):
    usual = [str(k % 4) for k in range(84)]
    amounts = {"süß": usual, "typo": [*usual[:40], "k.A.", *usual[41:]], "0017": ["1,5", *usual[1:]]}
    german(tmp_path, amounts, ["süß;9,50;0,05", "typo;9,50;0,05", "0017;8;"])
    columns, shop = ucbf.fleet.Columns("Artikel", "Tag", "Menge"), SHOP.replace(unit=0.5)
    counted = ucbf.learn_fleet(
        shop, tmp_path / "absatz.csv", tmp_path / "out", tmp_path / "artikel.csv", columns=columns
    )
    assert counted == {"learned": 1, "kept": 0, "refused": 2}
    rows = {row["item"]: row for row in pq.read_table(list((tmp_path / "out").glob("*.parquet"))).to_pylist()}
    assert rows["süß"]["note"] is None
    assert (rows["süß"]["price"], rows["süß"]["mean"], str(rows["süß"]["first"])) == (9.5, 1.5, "2024-01-01")
    path = tmp_path / "absatz.csv"
    assert rows["typo"]["note"] == f"refused: {path}, row 126, column 'Menge': 'k.A.' is not a number"
    assert rows["0017"]["note"].startswith("refused: no costs")
    assert rows["0017"]["mean"] == (1.5 + 126) / 84  # 1,5 in place of the first 0, and 0 to 3 twenty-one times
    (tmp_path / "bestand.csv").write_text("Artikel;stock\nsüß;1,5\n", encoding="utf-8")
    found = pa.concat_tables(orders_on(tmp_path / "out", tmp_path / "bestand.csv")).to_pylist()
    assert found[0]["stock"] == 1.5
    assert found[0]["order"] > 0


def test_a_large_file_of_text_is_read_a_part_at_a_time_with_the_same_plans(tmp_path, monkeypatch):
    shop_file(tmp_path)
    pyarrow.csv.write_csv(pq.read_table(tmp_path / "demand.parquet"), tmp_path / "demand.csv")
    found = []
    for name, largest in (("whole", 10**9), ("parts", 0)):
        monkeypatch.setattr(text, "LARGEST", largest)
        ucbf.learn_fleet(SHOP, tmp_path / "demand.csv", tmp_path / name, tmp_path / "items.parquet")
        found.append(pq.read_table(list((tmp_path / name).glob("*.parquet"))).to_pylist())
        assert reading.table_of_item(tmp_path / "demand.csv", reading.Columns(), "none") is None
        alone = reading.table_of_item(tmp_path / "demand.csv", reading.Columns(), "sku3")
        assert ucbf.data.read_series(alone, "demand", "date").values.tolist() == demand_of(tmp_path, "sku3")
    assert found[0] == found[1]


def demand_of(folder, item):
    return pq.read_table(folder / "demand.parquet", filters=[("item", "==", item)])["demand"].to_pylist()


def test_a_file_that_no_item_can_be_read_from_is_refused(tmp_path):
    german(tmp_path, {"a": ["x"] * 9, "b": ["y"] * 9}, ["a;9;1"])
    with pytest.raises(UserError, match="row 2, column 'Menge': 'x' is not a number"):
        ucbf.learn_fleet(
            SHOP, tmp_path / "absatz.csv", tmp_path / "out", columns=ucbf.fleet.Columns("Artikel", "Tag", "Menge")
        )


def test_days_without_a_row_count_as_zero_where_that_is_said(tmp_path):
    usual = [str(1 + k % 3) for k in range(84)]
    german(tmp_path, {"a": ["", "", *usual[2:30], "", "", *usual[32:83], ""], "b": usual}, ["a;9;1", "b;9;1"])
    sold = 28 * 6 - (1 + 2) - 3 - (1 + 2)
    for gaps, days, note in (("unknown", 79, "missing: 2 days"), ("zero", 81, None)):
        ucbf.learn_fleet(
            SHOP,
            tmp_path / "absatz.csv",
            tmp_path / gaps,
            tmp_path / "artikel.csv",
            columns=ucbf.fleet.Columns("Artikel", "Tag", "Menge", gaps=gaps),
        )
        a, b = pq.read_table(list((tmp_path / gaps).glob("*.parquet"))).to_pylist()
        # 1 + 2 + 3 twenty-eight times, without the first two, the last and two in the middle.
        assert a["mean"] == pytest.approx(sold / days)
        assert (str(a["first"]), str(a["last"]), a["note"]) == ("2024-01-03", "2024-03-23", note)
        assert (b["mean"], b["note"]) == (2, None)


def test_missing_days_between_two_of_an_item_become_zeros_by_hand():
    rows = Rows(
        ["a", "b"], np.array([0, 3, 5]), np.array([10, 11, 14, 20, 22], np.int32), np.array([5.0, 4, 3, 2, 1]), None
    )
    filled = rows.with_zeros()
    assert filled.begins.tolist() == [0, 5, 8]  # from the 14th of a to the 20th of b nothing is missing
    assert filled.day.tolist() == [10, 11, 12, 13, 14, 20, 21, 22]
    assert filled.amount.tolist() == [5, 4, 0, 0, 3, 2, 0, 1]
    far = Rows(["a"], np.array([0, 2]), np.array([10, 10_000], np.int32), np.array([5.0, 4]), None)
    assert far.with_zeros() is far  # a wrong year


def test_what_to_order_for_every_item_on_a_day(tmp_path):
    shop_file(tmp_path)
    store = SHOP.replace(horizon=None, period=7)
    _, rows = learned(tmp_path, store)
    names = [f"sku{i}" for i in range(6)]
    stocks = pa.table({"item": [*names, "unknown"], "stock": [0, 3, 8, 9, -1, 2, 1]})
    pyarrow.csv.write_csv(stocks, tmp_path / "stocks.csv")
    printed = run("act", tmp_path / "out", "--stock-file", tmp_path / "stocks.csv", "--date", "2024-03-27").stdout
    told = {row["item"]: row for row in csv.DictReader(printed.splitlines())}
    for i in (0, 1, 2, 5):  # 2024-03-27 is a Wednesday, the third day of a week
        stock = int(stocks["stock"][i].as_py())
        assert float(told[names[i]]["order"]) == rows[i]["action"][2 * 9 + stock]
        assert told[names[i]]["note"] == ""
    assert [told[name]["order"] for name in ("sku3", "sku4", "sku6")] == ["", "", ""]
    assert told["sku3"]["note"] == "its stock is outside of what it was planned for"
    assert told["sku6"]["note"] == "its stock is not in the file"
    tomorrow = next(orders_on(tmp_path / "out", tmp_path / "stocks.csv")).to_pylist()  # a Monday
    assert (str(tomorrow[0]["date"]), tomorrow[0]["order"]) == ("2024-03-25", rows[0]["action"][0])
    wide = store.replace(unit=2, backlog=4, capacity=16, max_order=10, max_demand=12)
    _, rows = learned(tmp_path, wide)
    (owed, *_) = next(orders_on(tmp_path / "out", tmp_path / "stocks.csv", date(2024, 3, 26))).to_pylist()[4:5]
    assert owed["order"] == rows[4]["action"][11 + 2]  # -1 is nearest to 0, the third state; the second day of eleven
    assert "give a file with the stock of each" in run("act", tmp_path / "out", "--stock", 3, check=False).stderr
    assert "write it as 2024" in run("act", tmp_path / "out", "--stock-file", "x", "--date", "3.4.", check=False).stderr


def act(folder, *flags):
    return run("act", folder / "out", *flags, check=False)


@pytest.fixture
def planned(tmp_path):
    """Plans of three items for every day, from 2024-03-25 on, and a file of their stocks."""
    shop_file(tmp_path, n=3)
    learned(tmp_path, SHOP.replace(horizon=None, period=7))
    (tmp_path / "stocks.csv").write_text("item,stock\nsku0,0\nsku1,3\nsku2,8\n")
    return tmp_path


def test_a_run_that_was_killed_leaves_the_plans_before_it_or_none_to_follow(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_files, "CHUNK", 3)
    shop_file(tmp_path)
    store, out = SHOP.replace(horizon=None, period=7), tmp_path / "out"
    (tmp_path / "stocks.csv").write_text("item,stock\n" + "".join(f"sku{i},0\n" for i in range(7)))

    remove = Path.unlink

    def before_the_list(*_):
        raise KeyboardInterrupt

    def before_removal(path, **given):
        if path.name.startswith("plans-"):
            raise KeyboardInterrupt
        remove(path, **given)

    def stopped(at, by, shop):
        with monkeypatch.context() as patched:
            patched.setattr(at, by)
            with pytest.raises(KeyboardInterrupt):
                learned_alone(tmp_path, shop)

    stopped("ucbf.fleet.files._finish", before_the_list, store)
    refused = act(tmp_path, "--stock-file", tmp_path / "stocks.csv")
    assert refused.returncode == 2
    assert "are not finished (no plans.json): give the same ucbf learn command again" in refused.stderr
    assert learned_alone(tmp_path, store)["kept"] == 7
    flags = ["--stock-file", tmp_path / "stocks.csv", "--date", "2024-03-25"]
    before = act(tmp_path, *flags).stdout
    other = store.replace(holding=5)
    stopped("ucbf.fleet.files._finish", before_the_list, other)
    assert len(tables(out)) == 6  # old and new
    assert act(tmp_path, *flags).stdout == before
    stopped("pathlib.Path.unlink", before_removal, other)
    after = act(tmp_path, *flags).stdout
    assert [row["item"] for row in csv.DictReader(after.splitlines())] == [f"sku{i}" for i in range(7)]
    assert after != before
    (out / "plans-of-mine.parquet").write_bytes(b"not ours")
    assert learned_alone(tmp_path, other) == {"learned": 0, "kept": 7, "refused": 0}
    assert len(tables(out)) == 4
    assert act(tmp_path, *flags).stdout == after


def learned_alone(folder, shop):
    return ucbf.learn_fleet(shop, folder / "demand.parquet", folder / "out", folder / "items.parquet")


def test_plans_that_are_missing_or_damaged_are_said(planned):
    flags = ["--stock-file", planned / "stocks.csv"]
    (part,) = (planned / "out").glob("plans-*.parquet")
    part.write_bytes(part.read_bytes()[:-100])
    assert f"{part} is damaged: give the same ucbf learn command again" in act(planned, *flags).stderr
    part.unlink()
    assert f"{part} is missing, one of 1 files of plans" in act(planned, *flags).stderr
    (planned / "out" / "plans.json").write_text('{"parts": ["../x"]}')
    assert "plans.json is missing or damaged" in act(planned, *flags).stderr


def test_every_row_of_the_file_of_stocks_gets_a_line(planned):
    (planned / "stocks.csv").write_text("item,stock\nnew,4\nsku0,0\nsku1,3\n")
    printed = act(planned, "--stock-file", planned / "stocks.csv").stdout
    rows = {row["item"]: row for row in csv.DictReader(printed.splitlines())}
    assert list(rows) == ["sku0", "sku1", "sku2", "new"]
    assert (rows["new"]["date"], rows["new"]["stock"], rows["new"]["order"]) == ("", "4", "")
    assert rows["new"]["note"] == "there is no plan for it: learn again with its demand, or correct its name"
    lines = act(planned, "--stock-file", planned / "stocks.csv", "--date", "2024-04-01", "--json").stdout.splitlines()
    assert json.loads(lines[-1])["date"] == "2024-04-01"
    assert json.loads(lines[-1])["order"] is None


def test_what_act_does_not_use_in_a_fleet_is_refused_and_dates_are_of_days_to_come(planned):
    flags = ["--stock-file", planned / "stocks.csv"]
    for unused in (["--stock", 5], ["--step", 3], ["--forecast", "x.csv"]):
        assert "give a file with the stock of each (--stock-file), a --date if" in act(planned, *flags, *unused).stderr
    said = act(planned, *flags, "--date", "2019-03-27").stderr
    assert "date is 2019-03-27, and all items were learned from days up to 2024-03-24 or later; give one" in said
    german = act(planned, *flags, "--date", "27.03.2024", "--date-format", "%d.%m.%Y")
    assert german.returncode == 0
    assert german.stdout == act(planned, *flags, "--date", "2024-03-27").stdout
    more = pa.concat_tables([pq.read_table(planned / "demand.parquet"), rows_of("late", np.arange(91) % 4)])
    pq.write_table(more, planned / "demand.parquet")
    items = pq.read_table(planned / "items.parquet")
    late = pa.table({"item": ["late"], "price": [9.0], "unit_cost": [2.0]})
    pq.write_table(pa.concat_tables([items, late]), planned / "items.parquet")
    learned_alone(planned, SHOP.replace(horizon=None, period=7))
    (planned / "stocks.csv").write_text("item,stock\nsku0,0\nsku1,3\nsku2,8\nlate,1\n")
    for day in ("2024-03-27", "2024-03-31"):  # the last of the item
        rows = {row["item"]: row for row in csv.DictReader(act(planned, *flags, "--date", day).stdout.splitlines())}
        assert rows["sku0"]["note"] == ""
        assert rows["late"]["order"] == ""
        assert rows["late"]["note"] == "the day is one of those that it was learned from; give a later one"


@pytest.mark.parametrize("command", ["observe", "status"])
def test_a_fleet_keeps_no_journal_and_says_so(planned, command):
    done = run(command, planned / "out", check=False)
    assert done.returncode == 2
    assert "holds plans of many items, which keep no journal: ucbf act" in done.stderr
    assert "--stock-file FILE says what to order" in done.stderr


def test_plans_whose_states_are_more_than_a_stock_are_not_read_as_such(tmp_path):
    shop_file(tmp_path, n=2)
    (tmp_path / "stocks.csv").write_text("item,stock\nsku0,0\nsku1,3\n")
    small = ucbf.systems.Inventory(capacity=6, max_order=3, max_demand=6, horizon=None)
    for more in ({"lead_time": 2}, {"shelf_life": 2}):
        learned_alone(tmp_path, small.replace(**more))
        said = act(tmp_path, "--stock-file", tmp_path / "stocks.csv").stderr
        assert "holds plans whose states are more than a stock; read them with pyarrow" in said
    items = pq.read_table(tmp_path / "items.parquet").append_column("lead_time", pa.array([0.0, 2.0]))
    pq.write_table(items, tmp_path / "items.parquet")
    learned_alone(tmp_path, small)
    printed = act(tmp_path, "--stock-file", tmp_path / "stocks.csv").stdout
    rows = list(csv.DictReader(printed.splitlines()))
    assert (rows[0]["note"], rows[1]["order"]) == ("", "")
    assert rows[1]["note"] == "its states are more than a stock; read its plan with pyarrow"


def test_the_command_chooses_sizes_and_writes_a_page_of_an_item_on_demand(tmp_path):
    shop_file(tmp_path, days=7 * 30)
    flags = ["--demand", tmp_path / "demand.parquet", "--item", "item", "--items", tmp_path / "items.parquet"]
    flags += ["--out", tmp_path / "out", "--horizon", 7]
    done = run("learn", "inventory", *flags)
    assert "7 items: 7 with a plan" in done.stdout
    rows = pq.read_table(list((tmp_path / "out").glob("*.parquet"))).sort_by("item").to_pylist()
    assert {row["capacity"] for row in rows} == {12.0}
    done = run("learn", "inventory", *flags, "--only", "sku3", "--no-pictures")
    page = (tmp_path / "out" / "items" / "sku3" / "page.html").read_text()
    assert f"price {rows[3]['price']:g}" in page
    assert "sku3" in done.stdout
    assert "has no item 'sku9'" in run("learn", "inventory", *flags, "--only", "sku9", check=False).stderr


# -- killed at any moment ---------------------------------------------------------------------------

SCRIPT = """
import sys
from pathlib import Path
import ucbf
from ucbf.fleet import files
files.CHUNK = 3
shop = ucbf.systems.Inventory(capacity=8, max_order=5, max_demand=6, horizon=7)
given, out = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
ucbf.learn_fleet(shop, given / "demand.parquet", out, given / "items.parquet", **eval(sys.argv[3]))
"""


def started(folder, out, given=None):
    command = [sys.executable, "-c", SCRIPT, str(folder), str(out), repr(given or {})]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def tables(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.parquet"))}


def ended(process):
    """Whether a process ended as it should."""
    process.communicate()
    return process.returncode == 0


@pytest.mark.slow
def test_killed_at_twenty_random_moments_it_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_files, "CHUNK", 3)
    shop_file(tmp_path, n=150)
    learned(tmp_path)
    process, begin = started(tmp_path, tmp_path / "alone"), time.monotonic()
    assert ended(process)
    took, whole, moments = time.monotonic() - begin, tables(tmp_path / "out"), random.Random(0)
    assert len(whole) == 50
    assert tables(tmp_path / "alone") == whole
    unfinished = 0
    for _ in range(20):
        shutil.rmtree(tmp_path / "out")
        process = started(tmp_path, tmp_path / "out")
        time.sleep(moments.uniform(0, took))
        process.kill()
        ended(process)
        kept = tables(tmp_path / "out")
        assert kept.items() <= whole.items()
        unfinished += len(kept) < len(whole)
        learned(tmp_path)
        assert tables(tmp_path / "out") == whole
    assert unfinished >= 5


@pytest.mark.slow
def test_a_ray_cluster_gives_the_same_plans(tmp_path):
    shop_file(tmp_path, n=20)
    assert ended(started(tmp_path, tmp_path / "threads"))
    assert ended(started(tmp_path, tmp_path / "ray", {"engine": "ray", "workers": 2}))
    assert tables(tmp_path / "threads") == tables(tmp_path / "ray")
    assert len(tables(tmp_path / "ray")) == 7


def test_outliers_of_many_items_are_those_of_each(monkeypatch):
    # Items of other lengths; the days of each go on where those of the item before end, and begin anew now and then.
    monkeypatch.setattr(notes, "AT_ONCE", 3)
    rng = np.random.default_rng(2)
    lengths = rng.integers(1, 90, 11)
    day = np.cumsum(rng.choice([1, 1, 1, 1, 2, 9], lengths.sum())).astype(np.int32) + 19000
    amount = rng.poisson(9, len(day)).astype(float)
    begins = np.append(0, np.cumsum(lengths))
    amount[begins[:-1] + lengths // 2] = 400
    found = notes.outliers_of_rows(Rows([str(i) for i in range(11)], begins, day, amount, None), 7)
    assert found.sum() > 4
    for first, end in pairwise(begins):
        steps = (day[first:end] - notes.MONDAY) % 7
        table = np.full((7, end - first), np.nan)
        for k, step in enumerate(steps):
            table[step, k] = amount[first + k]
        table = np.sort(table, axis=1)  # as the rule does not look at the order
        odd = outliers(table.T)
        for k, step in enumerate(steps):
            at = np.flatnonzero(table[step] == amount[first + k])[0]
            assert found[first + k] == odd[at, step]
