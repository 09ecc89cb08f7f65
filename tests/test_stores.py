"""A store whose orders take time, every morning: the journal, what is under way, what to order."""

import json

import numpy as np
import pytest

import commands
import ucbf
from ucbf.errors import UserError
from ucbf.following.store_steps import StoreStep, Told, step_of
from ucbf.following.stores import StoreFollower
from ucbf.rolling import Rolling
from ucbf.suppliers import Supplier

FLAGS = ["--lead-time", "2", "--pack", "5", "--price", "9", "--unit-cost", "4", "--holding", "0.5"]


@pytest.fixture
def folder(tmp_path):
    days = np.datetime64("2024-01-01") + np.arange(70)
    demand = np.random.default_rng(0).poisson(20, 70)
    text = "date,units\n" + "".join(f"{day},{d}\n" for day, d in zip(days, demand, strict=True))
    (tmp_path / "demand.csv").write_text(text)
    commands.ucbf("learn", "inventory", "--demand", "demand.csv", *FLAGS, "--out", "shop", cwd=tmp_path)
    return tmp_path / "shop"


def observe(folder, *flags, check=True):
    return commands.ucbf("observe", folder, *flags, check=check)


def test_what_is_under_way_by_hand(folder):
    store = StoreFollower(folder)
    store.observe(StoreStep(demand=20, order=30), date="2024-03-11")
    store.observe(StoreStep(demand=21, order=10), date="2024-03-12")
    assert store.act(15).under_way == [(30, 2), (10, 1)]
    store.observe(StoreStep(demand=19, received=30), date="2024-03-13")  # the oldest order, after two days
    found = store.act(15)
    assert found.under_way == [(10, 2)]
    store.observe(StoreStep(demand=22, received=4), date="2024-03-14")  # a part of it
    assert store.act(15).under_way == [(6, 3)]
    assert "overdue: 6 ordered 3 steps ago" in str(store.act(15))
    assert store.status()["lead times seen"] == {"2": 1}
    assert store.status()["overdue"] == 6


def test_the_page_and_the_first_morning_order_the_same(folder):
    rows = [line.split(",") for line in (folder / "orders.csv").read_text().splitlines()[1:]]
    said = {float(stock): float(order) for stock, order in rows}
    assert {stock: StoreFollower(folder).act(stock).order for stock in list(said)[::8]} == {
        stock: said[stock] for stock in list(said)[::8]
    }


def test_the_order_is_that_of_rolling_orders_that_saw_the_same(folder):
    store = StoreFollower(folder)
    for day, step in enumerate([StoreStep(20, 30), StoreStep(25, 20), StoreStep(18, 25, 30)]):
        store.observe(step, date=f"2024-03-{11 + day}")
    shop = ucbf.systems.Inventory(**store.store.parameters)
    other = Rolling(shop, season=store.store.season, supplier=Supplier(2))
    for demand in store.store.demands:
        other.observe(demand)
    for demand, lags in ((20, []), (25, []), (18, [2])):
        other.observe(demand, lags)
    assert store.act(12).order == other.order(12, [(20, 2), (25, 1)]).quantity
    assert StoreFollower(folder).act(12) == store.act(12)


def test_the_same_again_changes_nothing_and_another_is_refused(folder):
    assert "taken in" in observe(folder, "--date", "2024-03-11", "--demand", "20", "--order", "30").stdout
    before = (folder / "journal.jsonl").read_bytes()
    assert "already there" in observe(folder, "--date", "2024-03-11", "--demand", "20", "--order", "30").stdout
    assert (folder / "journal.jsonl").read_bytes() == before
    refused = observe(folder, "--date", "2024-03-11", "--demand", "22", check=False)
    assert refused.returncode == 2
    assert "was taken in with demand 20, order 30, received 0" in refused.stderr
    assert "corrected" in observe(folder, "--date", "2024-03-11", "--demand", "22", "--correct").stdout
    assert StoreFollower(folder).status()["mean demand"] == 22


def test_the_commands_of_a_morning(folder):
    observe(folder, "--demand", "31", "--order", "40", "--sold-out")
    done = commands.ucbf("act", folder, "--stock", "5", "--json")
    told = json.loads(done.stdout)
    assert told["order"] % 5 == 0
    assert told["under_way"] == [[40, 1]]
    assert "order" in commands.ucbf("act", folder, "--stock", "5").stdout
    status = commands.ucbf("status", folder).stdout
    assert "steps sold out: 1" in status
    assert "under way: 40" in status


def test_days_that_are_missing_are_said(folder):
    observe(folder, "--date", "2024-03-13", "--demand", "20")
    said = commands.ucbf("act", folder, "--stock", "5", "--date", "2024-03-15").stdout
    assert "2024-03-14 is missing: take in what happened" in said
    for date, why in (("2024-03-13", "is in the journal already"), ("2024-01-05", "is in the series"),
                      ("2034-01-05", "at most 731 may be missing")):  # fmt: skip
        refused = commands.ucbf("act", folder, "--stock", "5", "--date", date, check=False)
        assert refused.returncode == 2
        assert why in refused.stderr


def test_bad_input_is_refused_before_anything_is_written(folder):
    for flags, said in (
        (["--demand", "-3"], "demand is -3"),
        (["--demand", "500"], "demand is 500, and the largest so far "),
        ([], "demand not given"),
        (["--stock", "3", "--left", "4"], "4 were left, and no more than 3 were there"),
        (["--demand", "3", "--cancelled", "-1"], "cancelled is -1"),
        (["--demand", "3", "--date", "2024-03-12", "--correct"], "is not in the journal, so that there is nothing to"),
        (["--demand", "3", "--date", "2024-05-12"], "62 days would be missing between them"),
        (["--remove"], "say which is to be taken out"),
        (["--remove", "--date", "2024-03-12"], "there is nothing to take out"),
        (["--demand", "3", "--forecast", "f.csv"], "no forecast, prices or promotions are taken"),
        (["--demand", "3", "--date", "2024-01-05"], "is in the series that was learned from"),
        (["--demand", "3", "--date", "yesterday"], "not a date that is understood"),
    ):
        refused = observe(folder, *flags, check=False)
        assert refused.returncode == 2, flags
        assert said in refused.stderr
    assert not (folder / "journal.jsonl").exists()


def test_a_damaged_store_is_refused(folder):
    path = folder / "store.json"
    path.write_text(path.read_text().replace('"lead_time": 2', '"lead_time": 3'))
    with pytest.raises(UserError, match="was changed or damaged"):
        StoreFollower(folder)


def test_a_demand_far_above_all_others_is_said_however_it_was_told(folder):
    most = max(StoreFollower(folder).store.demands)
    said = observe(folder, "--stock", f"{2 * most:g}", "--left", "0", "--order", "0").stdout.splitlines()
    twice = f"2024-03-11: demand {2 * most:g} is 2 times the largest so far ({most:g}); if that is not right"
    assert [line.startswith(twice) for line in said] == [False, True]
    usual = observe(folder, "--demand", f"{most:g}")
    assert len(usual.stdout.splitlines()) == 1


def test_days_of_which_nothing_is_known_do_not_wear_the_forecast_away(folder):
    store = StoreFollower(folder)
    soon, later = (store.act(20, date=date) for date in ("2024-03-11", "2025-03-10"))  # both Mondays
    assert later.expected == pytest.approx(soon.expected, rel=0.15)


def test_what_is_odd_about_a_step_is_said_at_once(folder):
    said = observe(folder, "--demand", "20", "--order", "7", "--received", "50").stdout
    assert "order 7 is none that this store has" in said
    assert "43 came that were not under way" in said
    assert "taken in" in observe(folder, "--demand", "500", "--unusual").stdout
    refused = commands.ucbf("act", folder, "--stock", "-5", check=False)
    assert "customers do not wait" in refused.stderr


def test_learning_in_another_way_leaves_nothing_old_to_follow(folder):
    here = folder.parent
    plain = ["--price", "9", "--unit-cost", "4", "--no-pictures"]
    commands.ucbf("learn", "inventory", "--demand", "demand.csv", *plain, "--out", "shop", cwd=here)
    names = {path.name for path in folder.iterdir()}
    assert "model.json" in names
    assert not names & {"store.json", "orders.csv", "forecast.csv"}
    commands.ucbf("learn", "inventory", "--demand", "demand.csv", *FLAGS, "--out", "shop", cwd=here)
    names = {path.name for path in folder.iterdir()}
    assert "store.json" in names
    assert not names & {"model.json", "agent.npz", "policy.csv", "law.csv"}


def test_the_page_and_the_morning_say_the_same(folder):
    rows = (folder / "orders.csv").read_text().splitlines()
    stock, order = map(float, rows[4].split(","))
    store = StoreFollower(folder)
    rolling = Rolling(store.shop, season=store.store.season, supplier=Supplier(store.shop.lead_time))
    for demand in store.store.demands:
        rolling.observe(demand)
    assert rolling.order(stock).quantity == order


def test_the_rest_of_a_short_delivery_is_cancelled_by_hand(folder):
    store = StoreFollower(folder)
    store.observe(StoreStep(demand=20, order=155), date="2024-03-11")
    store.observe(StoreStep(demand=20, order=40), date="2024-03-12")
    store.observe(StoreStep(demand=20, received=150), date="2024-03-13")
    assert store.act(90).under_way == [(5, 3), (40, 2)]
    assert "observe --cancelled" in str(store.act(90))
    said = observe(folder, "--demand", "21", "--cancelled", "5", "--received", "0").stdout
    assert "demand 21, order 0, received 0, cancelled 5" in said
    assert store.act(70).under_way == [(40, 3)]
    assert store.status()["lead times seen"] == {"2": 1}  # the day on which the 150 came, not that of the cancelling
    # what nothing came of says nothing of lead times
    assert "2 were cancelled that were not under way" in observe(folder, "--demand", "19", "--cancelled", "42").stdout
    assert store.act(70).under_way == []
    assert store.status()["lead times seen"] == {"2": 1}


def test_stock_and_left_tell_the_demand():
    shop = ucbf.systems.Inventory(lead_time=2)
    assert step_of(shop, stock=30, received=12, left=25) == (StoreStep(17.0, 0.0, 12.0), "")
    # nothing is left: 42 were sold, and more may have been asked for
    assert step_of(shop, stock=30, received=12, left=0)[0] == StoreStep(42.0, 0.0, 12.0, True)
    assert step_of(shop.replace(backlog=50), stock=30, left=-6)[0] == StoreStep(36.0)
    # decimals that leave a little are no difference
    assert step_of(shop, stock=0.7, received=0.1, left=0.8)[0] == StoreStep(0.0, 0.0, 0.1)
    assert step_of(shop, stock=1.1, received=2.2, left=0.3)[0].demand == 3
    assert step_of(shop, stock=1.1, received=2.2, left=0.25)[0].demand == pytest.approx(3.05)
    with pytest.raises(UserError, match=r"0\.81 were left, and no more than 0\.8 were there"):
        step_of(shop, stock=0.7, received=0.1, left=0.81)
    # what is told of both is compared, and the demand counts
    assert step_of(shop, demand=20, stock=30, left=10) == (StoreStep(20.0), "")
    assert step_of(shop, demand=40, stock=30, left=0) == (StoreStep(40.0), "")
    found, note = step_of(shop, demand=20, stock=30, left=9)
    assert found == StoreStep(20.0)
    assert "9 were left, where stock, received and demand leave 10" in note
    with pytest.raises(UserError, match="where stock ages; give --demand"):
        step_of(shop.replace(shelf_life=3), stock=30, left=9)
    with pytest.raises(ValueError, match="stock is -3"):
        step_of(shop, stock=-3, left=0)


def test_a_file_of_steps_and_one_of_stocks(folder):
    here = folder.parent
    rows = ["date,demand,order,received,sold_out,stock,left", "2024-03-11,20,30,,,,", "2024-03-12,,10,,,25,7",
            "2024-03-13,19,0,30,1,,", "2024-03-14,22,,4,,,"]  # fmt: skip
    (here / "steps.csv").write_text("\n".join(rows) + "\n")
    said = observe(folder, "--file", here / "steps.csv").stdout.splitlines()
    assert said[0] == "2024-03-11 (Mon): taken in, demand 20, order 30, received 0"
    assert said[1] == "2024-03-12 (Tue): taken in, demand 18, order 10, received 0"
    assert said[2] == "2024-03-13 (Wed): taken in, sold (sold out) 19, order 0, received 30"
    assert StoreFollower(folder).act(15).under_way == [(6, 3)]
    before = (folder / "journal.jsonl").read_bytes()
    assert "2024-03-13 (Wed): already there" in observe(folder, "--file", here / "steps.csv").stdout
    assert (folder / "journal.jsonl").read_bytes() == before
    # all or none: the third row is refused, and nothing of the file is kept
    (here / "more.csv").write_text("date,demand\n2024-03-15,20\n2024-03-16,20\n2024-03-11,99\n")
    refused = observe(folder, "--file", here / "more.csv", check=False)
    assert refused.returncode == 2
    assert "more.csv, row 4: 2024-03-11 was taken in with demand 20" in refused.stderr
    (here / "odd.csv").write_text("date,demand,sold_out\n2024-03-15,20,7\n")
    assert "row 2: sold_out is 7; write 1" in observe(folder, "--file", here / "odd.csv", check=False).stderr
    assert (folder / "journal.jsonl").read_bytes() == before
    (here / "stock.csv").write_text("date,stock\n2024-03-15,12\n2024-03-16,3\n")
    found = json.loads(commands.ucbf("act", folder, "--stock-file", here / "stock.csv", "--json").stdout)["advice"]
    store = StoreFollower(folder)
    assert [each["order"] for each in found] == [store.act(12).order, store.act(3, date="2024-03-16").order]
    both = commands.ucbf("act", folder, "--stock", "3", "--stock-file", here / "stock.csv", check=False)
    assert "and not both" in both.stderr


def test_a_file_may_have_the_newest_step_first_and_each_step_once(folder):
    days = [Told(StoreStep(15 + i), f"{np.datetime64('2024-03-11') + i}", where=f"row {i}") for i in range(30)]
    store = StoreFollower(folder)
    said = store.observe_all(days[::-1]).splitlines()  # 29 days before the first row are missing, until the others come
    assert (len(said), said[0][:26], said[-1][:26]) == (30, "2024-03-11 (Mon): taken in", "2024-04-09 (Tue): taken in")
    before = (folder / "journal.jsonl").read_bytes()
    twice = [Told(StoreStep(10), "2024-03-11", where="row 2"), Told(StoreStep(30), "2024-03-11", where="row 3")]
    for correct in (False, True):
        new = twice if correct else [Told(each.happened, "2024-04-10", where=each.where) for each in twice]
        with pytest.raises(UserError, match=r"row 3: 2024-0.* comes twice, with other numbers; leave one of them out"):
            store.observe_all(new, correct=correct)
    assert (folder / "journal.jsonl").read_bytes() == before
    assert "2024-03-11 (Mon): corrected, demand 10" in store.observe_all([twice[0], twice[0]], correct=True)


def test_a_step_that_was_taken_in_by_mistake_is_taken_out(folder):
    store = StoreFollower(folder)
    store.observe_all([Told(StoreStep(20, 30), "2024-03-11"), Told(StoreStep(20), "2024-03-12")])
    before = store.act(15).under_way
    observe(folder, "--demand", "20", "--order", "15", "--date", "2024-03-18")
    assert "2024-03-18 (Mon): taken out" in observe(folder, "--remove", "--date", "2024-03-18").stdout
    assert store.act(15).under_way == before
    assert "taken in" in observe(folder, "--demand", "20", "--date", "2024-03-18").stdout


def relearned(folder, days):
    """The store learned again, from the series and as many days after it."""
    rows = [f"{np.datetime64('2024-03-11') + i},{12 + i % 5}" for i in range(days)]
    longer = folder.parent / "longer.csv"
    longer.write_text((folder.parent / "demand.csv").read_text() + "".join(f"{row}\n" for row in rows))
    commands.ucbf("learn", "inventory", "--demand", "longer.csv", *FLAGS, "--out", "shop", cwd=folder.parent)
    return StoreFollower(folder)


def test_steps_that_became_part_of_the_series_count_once(folder):
    store = StoreFollower(folder)
    steps = [StoreStep(12, 30), StoreStep(13, 20), StoreStep(14, 25, 30)]
    store.observe_all([Told(step, f"2024-03-{11 + i}") for i, step in enumerate(steps)])
    again = relearned(folder, 3)
    found = again.act(10)
    assert found.when == "2024-03-14 (Thu)"
    assert found.under_way == [(20, 2), (25, 1)]  # as they were ordered, by the journal
    alone = Rolling(again.shop, season=again.store.season, supplier=Supplier(2))
    for demand in again.store.demands:
        alone.observe(demand)
    alone.lags.append(2)
    assert found.order == alone.order(10, found.under_way).quantity
    assert (len(again.store.demands), again.act(10, date="2024-03-14")) == (73, found)
    told = again.status()
    assert (told["steps"], told["steps now in the series"], told["last"]) == (0, 3, None)
    assert told["lead times seen"] == {"2": 1}
    assert again.observe(StoreStep(15, 0, 20)).startswith("2024-03-14 (Thu): taken in")
    assert again.act(10).under_way == [(25, 2)]
    assert again.status()["lead times seen"] == {"2": 2}
    assert "taken out" in again.remove("2024-03-13")
    assert "2024-03-13 (Wed): was taken out before" in again.remove("2024-03-13")
    assert again.act(10).under_way == [(10, 4), (20, 3)]  # the 20 of the day after were of the oldest order
    later = relearned(folder, 12)
    assert "8 days, 2024-03-15 to 2024-03-22, are in the series and not in the journal" in str(later.act(10))
    assert later.act(10).when == "2024-03-23 (Sat)"


def test_a_journal_without_dates_belongs_to_one_series(tmp_path):
    demand = np.random.default_rng(0).poisson(20, 80)
    for n in (70, 80):
        (tmp_path / f"{n}.csv").write_text("units\n" + "".join(f"{d}\n" for d in demand[:n]))
    learn = ["learn", "inventory", *FLAGS, "--horizon", 7, "--out", "shop", "--demand"]
    commands.ucbf(*learn, "70.csv", cwd=tmp_path)
    observe(tmp_path / "shop", "--demand", 20, "--order", 30)
    commands.ucbf(*learn, "80.csv", cwd=tmp_path)
    with pytest.raises(UserError, match="is of rows 70, and what was learned is of 80; move the journal away"):
        StoreFollower(tmp_path / "shop").act(10)


def test_steps_that_no_calendar_has_are_refused(folder):
    for flags in (["--demand", "3"], ["--remove"]):
        refused = observe(folder, *flags, "--step", "99999999", check=False)
        assert refused.returncode == 2
        assert "step 99999999 is 99999999 days after 2024-03-10, the last that is known" in refused.stderr


def test_between_reviews_the_next_day_for_an_order_is_said(tmp_path):
    days = np.datetime64("2024-01-03") + np.arange(80)  # a Wednesday to a Friday; whole weeks begin on Mondays
    demand = np.random.default_rng(0).poisson(20, 80)
    rows = "".join(f"{day},{d}\n" for day, d in zip(days, demand, strict=True))
    (tmp_path / "demand.csv").write_text("date,units\n" + rows)
    learn = ["learn", "inventory", "--demand", "demand.csv", *FLAGS, "--review", 7, "--out", "shop"]
    page = commands.ucbf(*learn, cwd=tmp_path).stdout
    assert "counted from the first whole episode. The next can be placed: 2024-03-25 (Mon)." in page
    assert "2024-03-25 (Mon): with nothing under way, order " in page.replace("*", "")
    assert "No order can be placed before." in page
    store = StoreFollower(tmp_path / "shop")
    now, then = store.act(30), store.act(30, date="2024-03-25")
    assert now.order == 0
    assert "2024-03-23 (Sat): order 0" in str(now)
    assert "no order can be placed in this step; the next can be 2024-03-25 (Mon)" in now.notes
    assert then.order > 0
    assert not any("no order can be placed" in note for note in then.notes)
    # what is ordered on the Monday comes two days later, and that of the next Monday nine
    assert now.expected == pytest.approx(4 * 20, rel=0.15)
    assert then.expected == pytest.approx(9 * 20, rel=0.15)
    assert f"Expected demand: {now.expected:.3g} in the 4 steps until" in page.replace("*", "")
    orders = [line.split(",") for line in (tmp_path / "shop" / "orders.csv").read_text().splitlines()[1:]]
    stock, order = map(float, orders[5])
    assert store.act(stock, date="2024-03-25").order == order > 0
