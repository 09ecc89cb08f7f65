"""Orders that take time, learned from a series: play, season, rules, the page and the command."""

import json

import numpy as np
import pytest

import commands
import ucbf
from ucbf.advice import learn_orders, markdown, order_sections
from ucbf.advice.ordering import _factors, _season
from ucbf.advice.ways_to_order import Adapting, play
from ucbf.data import Series, episodes
from ucbf.rolling import Rolling
from ucbf.wording import show_number

SHOP = ucbf.systems.Inventory(price=7, unit_cost=3, order_cost=5, holding=0.5, penalty=2, lead_time=2, max_demand=90)


class Always:
    """Orders the same at every step."""

    def __init__(self, quantity):
        self.quantity, self.told = quantity, []

    def __call__(self, t, shelf, under_way):
        return self.quantity

    def seen(self, demand):
        self.told.append(demand)


def weeks(values):
    return episodes(Series(np.asarray(values, float), None, "units", "memory"), 7)


def test_days_of_a_store_by_hand():
    # 4 are ordered every day, and come two days later. Demand 1, 2, 3, 6, 1.
    # day 0: nothing there, 1 missing: -12 - 5 - 2 = -19; day 1: 2 missing: -17 - 4 = -21
    # day 2: 4 come, 3 sold, 1 left: -17 + 21 - 0.5 = 3.5; day 3: 4 come, 5 sold, 1 missing: -17 + 35 - 2 = 16
    # day 4: 4 come, 1 sold, 3 left: -17 + 7 - 1.5 = -11.5
    rule = Always(4.0)
    played = play(SHOP, np.array([1.0, 2, 3, 6, 1]), 0, rule)
    assert played.reward.tolist() == [-19, -21, 3.5, 16, -11.5]
    assert played.sold.tolist() == [0, 0, 3, 5, 1]
    assert played.left.tolist() == [0, 0, 1, 0, 3]
    assert played.service.met == pytest.approx(9 / 13)
    assert played.service.without_stock_out == pytest.approx(2 / 5)
    assert rule.told == [1, 2, 3, 6, 1]


def test_what_is_in_stock_and_under_way_at_the_end_of_an_episode_counts_at_its_cost():
    # The days of above, and a sixth with nothing asked for: 4 more come, 7 are left: -17 - 3.5 = -20.5. Episodes of
    # three days: at the end of the first 1 is in stock and 8 are under way: -19 - 21 + 3.5 + 3 * 9 = -9.5; at the end
    # of the second 7 and 8: 16 - 11.5 - 20.5 + 3 * (15 - 9) = 2.
    played = play(SHOP, np.array([1.0, 2, 3, 6, 1, 0]), 0, Always(4.0))
    assert played.worth.tolist() == [0, 12, 24, 27, 24, 33, 45]
    assert played.earned(3).tolist() == [-9.5, 2]
    assert played.after(3).earned(3).tolist() == [2]
    # An order earns nothing by itself: what is not sold is paid for once, whichever episode it is ordered in.
    assert play(SHOP.replace(order_cost=0, holding=0, penalty=0), np.zeros(6), 0, Always(4.0)).earned(3).tolist() == [
        0,
        0,
    ]
    # Owed units are to be bought yet: 3 are owed after the first day, and 4 under way.
    assert play(SHOP.replace(backlog=9), np.array([3.0]), 0, Always(4.0)).worth.tolist() == [0, 3]


def test_orders_are_placed_at_reviews_only():
    played = play(SHOP.replace(review=3), np.ones(7), 2, Always(4.0))  # steps 2 to 8: reviews at 3 and 6
    assert played.orders.tolist() == [0, 4, 0, 0, 4, 0, 0]


def test_factors_by_hand():
    # Two episodes of two steps: means 2 and 6 of 4: 0.5 and 1.5, drawn towards 1 as if four had been alike.
    np.testing.assert_allclose(_factors(np.array([[2.0, 6.0], [2.0, 6.0]])), [(2 * 0.5 + 4) / 6, (2 * 1.5 + 4) / 6])
    assert _factors(np.zeros((3, 2))).tolist() == [1, 1]


def test_a_step_in_which_nothing_was_ever_asked_for_is_closed_if_that_is_hardly_chance():
    # Ten episodes; in the last of three steps nothing was asked for, in the others always: 10 of 10 by chance is 0^10.
    # Means 2 and 4 of 2: (10 * 1 + 4) / 14 and (10 * 2 + 4) / 14, then scaled to a mean of 1.
    open_ones = np.array([14.0, 24.0]) / 14
    found = _factors(np.tile([2.0, 4.0, 0.0], (10, 1)))
    np.testing.assert_allclose(found[:2], open_ones / (open_ones.sum() / 3), rtol=1e-5)
    assert 0 < found[2] < 1e-5
    # In half of the other steps nothing was asked for either: 0.5^9 = 0.002 may be chance, 0.5^10 = 0.00098 is not.
    seldom = np.zeros((10, 3))
    seldom[::2, 0], seldom[1::2, 1] = 2, 2
    assert _factors(seldom)[2] < 1e-5
    assert _factors(seldom[1:])[2] > 0.3


def test_a_sale_on_a_closed_day_does_not_move_the_orders_of_the_others():
    rng = np.random.default_rng(4)
    week = np.array([1.2, 1.2, 1.1, 1.1, 1.6, 0.8, 0.0])
    weeks = rng.poisson(12 * week, (60, 7)).astype(float)
    shop = SHOP.replace(lead_time=3, pack=6, holding=0.1, order_cost=15)

    def order(sunday):
        rolling = Rolling(shop, season=_factors(weeks))
        for demand in [*weeks.ravel(), 14, 13, 15, 12, 20, 9, sunday]:
            rolling.observe(demand)
        return rolling.order(30).quantity

    assert order(12) == order(0) < 300


def test_the_page_says_on_which_days_nothing_is_expected():
    rng = np.random.default_rng(4)
    week = np.array([1.2, 1.2, 1.1, 1.1, 1.6, 0.8, 0.0])
    days = rng.poisson(12 * week, (20, 7)).ravel().astype(float)
    monday = np.datetime64("2024-01-01", "s")
    series = Series(days, monday + np.arange(len(days)) * np.timedelta64(1, "D"), "demand", "shop.csv")
    advice = learn_orders(SHOP.replace(lead_time=1), episodes(series, 7))
    assert advice.closed == ("Sun",)
    assert "Nothing is expected on Sun: nothing was ever asked for then." in markdown(order_sections(advice))


def test_a_season_is_found_where_there_is_one():
    rng = np.random.default_rng(0)
    flat, week = rng.poisson(20, (30, 7)).astype(float), np.array([1, 1, 1, 1, 1, 2, 0.5])
    assert _season(flat)[0] is None
    found, (without, with_season) = _season(rng.poisson(20 * week, (30, 7)).astype(float))
    assert with_season < without
    np.testing.assert_allclose(found, week / week.mean(), atol=0.2)
    assert _season(flat[:5])[0] is None


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(3)
    level = np.concatenate([np.full(140, 40.0), np.full(140, 20.0)])
    return learn_orders(SHOP.replace(pack=6, order_cost=0), weeks(rng.poisson(level)))


def test_orders_follow_a_demand_that_changes_and_are_not_behind_simple_rules(found):
    rows = {row["policy"]: row for row in found.comparison()}
    assert set(rows) == {"learned", "base-stock", "certainty-equivalent", "order what was sold"}
    assert all(row["high"] >= 0 for row in rows.values())
    assert found.played["learned"].orders.max() % 6 == 0
    assert 15 < found.forecast(3)[0]["mean"] < 25
    assert found.order(0) > found.order(60)
    assert found.order(0, [(60, 1)]) < found.order(0)


def test_nothing_of_the_test_episodes_is_used_before_it_has_come():
    rng = np.random.default_rng(1)
    series = rng.poisson(20, 140).astype(float)
    changed = series.copy()
    changed[-7:] = 60
    one, other = (learn_orders(SHOP, weeks(values)) for values in (series, changed))
    orders = [each.played["learned"].orders for each in (one, other)]
    np.testing.assert_array_equal(orders[0][:-6], orders[1][:-6])  # the first of the last seven is not seen either


def test_the_season_is_learned_again_from_all_episodes():
    # For fourteen weeks all days are alike; in the last six, which judge, Saturdays ask for five times as much.
    demand = np.random.default_rng(0).poisson(np.where((np.arange(140) >= 98) & (np.arange(140) % 7 == 5), 100, 20))
    found = learn_orders(SHOP, weeks(demand))
    assert (len(found.training), len(found.test), len(found.learned)) == (14, 6, 20)
    assert found.season.argmax() == 5
    np.testing.assert_allclose(found.season, _factors(demand.reshape(20, 7).astype(float)))
    np.testing.assert_array_equal(found.rolling.season, found.season)
    assert "then learned again from all 20 episodes" in markdown(order_sections(found))


def test_the_page_says_what_was_done_and_what_was_not(found):
    page = markdown(order_sections(found, {"lead_time", "pack", "capacity"}))
    assert "Given, and not used where orders take time: capacity." in page
    assert "of the demand was met at once" in page
    assert "All that was not given: horizon 7" in page
    assert "rounded" not in page
    assert "orders come after 2 steps, as promised" in page
    whole = learn_orders(SHOP, weeks(np.random.default_rng(1).poisson(9, 70)), train=1.0)
    assert "Not judged" in markdown(order_sections(whole))


def test_one_command(tmp_path):
    days = np.datetime64("2024-01-01") + np.arange(196)
    text = "date,units\n" + "".join(f"{day},{d}\n" for day, d in zip(days, [5, 9, 7, 8] * 49, strict=True))
    (tmp_path / "demand.csv").write_text(text)
    flags = ["--demand", "demand.csv", "--lead-time", "3", "--pack", "6", "--price", "9", "--unit-cost", "4"]
    done = commands.ucbf("learn", "inventory", *flags, "--out", "out", cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"summary.md", "page.html", "orders.csv", "forecast.csv", "comparison.csv", "store.json"}
    assert "With pack 6, price 9, unit_cost 4, lead_time 3." in done.stdout
    kept = json.loads((tmp_path / "out" / "store.json").read_text())
    assert kept["parameters"]["lead_time"] == 3
    assert len(kept["demands"]) == 196


def test_the_service_that_is_asked_for_is_delivered_on_what_it_is_learned_from():
    # The spread of demand grows with its weekday more than the forecast knows, so that the aim must be another.
    rng, days = np.random.default_rng(8), np.arange(280)
    demand = np.where(days % 7 == 5, rng.choice([0, 80], 280), 20)
    shop = SHOP.replace(price=0, unit_cost=0, order_cost=0, holding=1, penalty=19, pack=4)
    found = {asked: learn_orders(shop, weeks(demand), service=asked) for asked in (0.5, 0.95)}
    assert all(0 < aim < 1 for each in found.values() for aim in each.aims)
    for asked, each in found.items():
        rolling = ucbf.Rolling(shop, season=each.season, service=each.aims[1])
        for amount in demand[:28]:
            rolling.observe(amount)
        came = play(shop, demand[28:], 28, Adapting(rolling)).after(3).service.without_stock_out
        assert asked <= came < asked + 0.05
        assert each.order(0) == each.rolling.order(0).quantity
    assert found[0.95].order(0) > found[0.5].order(0)
    text = markdown(order_sections(found[0.95]))
    assert "it lasted in 95.0% of the steps of the series" in text
    assert learn_orders(shop, weeks(demand)).aims == (0, 0)


def test_a_service_that_was_missed_in_the_weeks_that_followed_stands_at_the_top(tmp_path):
    # For twenty weeks 20 are asked for a day; on one day in three of the last ten 60.
    days = np.datetime64("2024-01-01") + np.arange(210)
    demand = np.where((np.arange(210) >= 147) & (np.arange(210) % 3 == 0), 60, 20 + np.arange(210) % 5)
    (tmp_path / "d.csv").write_text("date,units\n" + "".join(f"{d},{x}\n" for d, x in zip(days, demand, strict=True)))
    flags = ["--demand", "d.csv", "--lead-time", "2", "--service-level", "0.95", "--no-pictures", "--out", "shop"]
    page = commands.ucbf("learn", "inventory", *flags, cwd=tmp_path).stdout
    first = page.split("Read this first")[1]
    assert "Asked for was no stock-out in 95.0% of the steps; in the episodes that followed it was" in first
    kept = json.loads((tmp_path / "shop" / "store.json").read_text())
    assert 0.5 < kept["service"] < 1


def test_the_page_and_the_file_say_the_same_of_the_steps_to_come_by_their_dates(tmp_path):
    days = np.datetime64("2024-01-01") + np.arange(143)  # until Wednesday, May 22nd
    demand = np.random.default_rng(0).poisson(20, 143)
    (tmp_path / "d.csv").write_text("date,units\n" + "".join(f"{d},{x}\n" for d, x in zip(days, demand, strict=True)))
    flags = ["--demand", "d.csv", "--lead-time", "2", "--price", "9", "--unit-cost", "4", "--no-pictures", "--out", "o"]
    page = commands.ucbf("learn", "inventory", *flags, cwd=tmp_path).stdout
    rows = [line.split(",") for line in (tmp_path / "o" / "forecast.csv").read_text().splitlines()]
    assert rows[0] == ["step", "date", "mean", "low", "high"]
    assert [row[1] for row in rows[1:4]] == ["2024-05-23", "2024-05-24", "2024-05-25"]
    mean, low, high = (show_number(float(x)) for x in rows[1][2:])
    three = show_number(sum(float(row[2]) for row in rows[1:4]))
    assert "- 2024-05-23 (Thu): with nothing under way, order " in page
    assert (
        f"- Expected demand: {three} in the 3 steps until what is ordered next comes (2024-05-25 (Sat)); the first of "
        f"them {mean} (80 %: {low} to {high})." in page
    )
    # what does not count is not named among what was assumed, and a parameter that was given is
    assumed = page.split("All that was not given: ")[1].splitlines()[0]
    assert "holding" in assumed
    assert not any(name in page for name in ("capacity", "max_demand", "storage 0", "discount"))
    given = commands.ucbf("learn", "inventory", *flags, "--capacity", "90", cwd=tmp_path).stdout
    assert "Given, and not used where orders take time: capacity." in given


def test_a_demand_that_halved_is_said():
    rng = np.random.default_rng(3)
    fell = learn_orders(SHOP, weeks(rng.poisson(np.repeat([40, 20], 70))))
    first = markdown(order_sections(fell)).split("Read this first")[1]
    assert "The demand was " in first
    assert "% lower in the episodes that followed than in those before them. Orders follow a demand" in first
    sank = markdown(order_sections(learn_orders(SHOP, weeks(rng.poisson(np.linspace(60, 20, 140))))))
    assert (
        "The demand falls in the episodes that were learned from, along a line from 1.3 to 0.71 times its mean" in sank
    )
    still = markdown(order_sections(learn_orders(SHOP, weeks(rng.poisson(30, 140)))))
    assert "lower in the episodes" not in still
    assert "learned from, from the first" not in still


def test_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match="give a ucbf.systems.Inventory"):
        learn_orders(ucbf.systems.Queue(), weeks(np.ones(70)))
    with pytest.raises(TypeError, match="give what ucbf.data.episodes"):
        learn_orders(SHOP, [1, 2])


def test_rows_after_the_last_whole_week_count():
    series = np.random.default_rng(2).poisson(20, 143).astype(float)
    series[-3:] = 90
    found = learn_orders(SHOP, weeks(series))
    assert found.rolling.t == 143
    assert found.demands.tolist() == series.tolist()
    assert found.forecast(1)[0]["mean"] > learn_orders(SHOP, weeks(series[:140])).forecast(1)[0]["mean"] + 10


def test_a_lead_time_that_is_too_long_is_refused_at_once():
    with pytest.raises(ValueError, match="lead_time is 600; rolling orders look at most 60 steps ahead"):
        learn_orders(SHOP.replace(lead_time=600), weeks(np.ones(140)))


def test_words_are_flags_too(tmp_path):
    days = np.datetime64("2024-01-01") + np.arange(84)
    (tmp_path / "d.csv").write_text("date,units\n" + "".join(f"{day},{5 + i % 4}\n" for i, day in enumerate(days)))
    flags = ["--demand", "d.csv", "--shelf-life", "3", "--issue", "last", "--price", "9", "--unit-cost", "4"]
    done = commands.ucbf("learn", "inventory", *flags, "--no-pictures", cwd=tmp_path)
    assert "issue 'last'" in done.stdout
    (tmp_path / "shop.toml").write_text('issue = "last"\nshelf_life = 3\nprice = 9\nunit_cost = 4\n')
    again = commands.ucbf(
        "learn", "inventory", "--demand", "d.csv", "--config", "shop.toml", "--no-pictures", cwd=tmp_path
    )
    assert "issue 'last'" in again.stdout
