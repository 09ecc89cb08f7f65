"""``ucbf learn``, and what it is made of: from a file to a policy and a page."""

import csv
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import commands
import ucbf
from ucbf import advice, data
from ucbf.cli.costs import service_remarks
from ucbf.cli.parameters import given_parameters
from ucbf.systems import Battery, Inventory, Queue, Reservoir

PRICES = ["--price", 9, "--unit-cost", 4]
DATA = Path(__file__).parents[1] / "examples" / "data"


def run(*arguments, cwd):
    return commands.ucbf("learn", *arguments, cwd=cwd, check=False)


def weeks(K=40, mean=6, seed=0):
    """Poisson demand, day by day from a Monday."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2024-01-01") + np.arange(7 * K)
    return "\n".join(f"{day},{n}" for day, n in zip(days, rng.poisson(mean, 7 * K), strict=True))


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    here = tmp_path_factory.mktemp("shop")
    (here / "demand.csv").write_text(f"date,units\n{weeks()}\n")
    (here / "costs.toml").write_text("price = 10\nunit_cost = 4\norder_cost = 5\nholding = 0.5\n")
    done = run("inventory", "--demand", "demand.csv", "--config", "costs.toml", "--order-cost", 8, cwd=here)
    assert done.returncode == 0, done.stderr
    return here, done.stdout


def test_one_command_writes_policy_law_agent_picture_and_page(shop):
    here, printed = shop
    out = here / "results" / "inventory"
    names = "agent.npz comparison.csv law.csv model.json page.html policy.csv policy.png summary.md"
    assert " ".join(sorted(path.name for path in out.iterdir())) == names
    page = (out / "summary.md").read_text()
    assert page in printed
    assert "28 to learn from, 12 to judge by" in page
    assert "With price 10, unit_cost 4, order_cost 8, holding 0.5." in page
    assert "All that was not given: horizon 7, unit 1" in page
    assert "nothing speaks against independence" in page
    assert "order up to" in page
    with (out / "policy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["day", "stock", "order"]
    assert rows[0]["day"] == "Mon"
    with (out / "law.csv").open() as file:
        law = list(csv.DictReader(file))
    assert sum(float(row["probability"]) for row in law if row["day"] == "Tue") == pytest.approx(1)


def test_the_terms_of_a_supplier_are_flags_and_stand_in_files(shop):
    here, _ = shop
    (here / "terms.toml").write_text(
        "price = 9\nunit_cost = 4\npack = 6\nreview = 7\nprice_breaks = [[20, 3.5], [40, 3]]\ncapacity = 80\n"
    )
    common = ["--demand", "demand.csv", "--out", "terms"]
    done = run("inventory", *common, "--config", "terms.toml", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "With capacity 80, pack 6, review 7, price 9, unit_cost 4, price_breaks (20, 3.5) (40, 3)." in done.stdout
    flags = [
        "--price",
        9,
        "--unit-cost",
        4,
        "--pack",
        6,
        "--review",
        7,
        "--price-breaks",
        20,
        3.5,
        40,
        3,
        "--capacity",
        80,
    ]
    again = run("inventory", *common, *flags, cwd=here)
    assert again.stdout == done.stdout
    with (here / "terms" / "policy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {float(row["order"]) % 6 for row in rows} == {0}
    assert {row["day"] for row in rows if float(row["order"])} == {"Mon"}


def test_the_agent_it_writes_goes_on(shop):
    here, _ = shop
    agent = ucbf.load(here / "results" / "inventory" / "agent.npz")
    with (here / "results" / "inventory" / "policy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert agent.act(0, 0) == float(rows[0]["order"])
    agent.observe(0, 0, agent.act(0, 0), 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "price and unit_cost not given; give --price and --unit-cost (or price and unit_cost in --config), or, "),
        (["--price", 9], "unit_cost not given; give --price and --unit-cost"),
        (["--service-level", 0.9, "--price", 9], "service_level 0.9 is given with price; give prices and costs, or a"),
        (["--service-level", 95], "service_level is 95; it must be above 0 and below 1, such as 0.95"),
        (["--service-level", 0.9, "--holding", 0], "holding is 0; it must be above 0"),
    ],
)
def test_an_inventory_without_costs_is_refused_before_its_file_is_read(tmp_path, given, message):
    done = run("inventory", "--demand", "none.csv", *given, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_service_level_is_a_critical_ratio():
    # 0.9: a unit missing costs nine times one left; with two steps between orders, a unit left is held twice.
    assert Inventory.service_level_costs(0.9)["penalty"] == pytest.approx(9)
    assert Inventory.service_level_costs(0.9, holding=0.5, review=2)["penalty"] == pytest.approx(9)
    found = ucbf.learn(Inventory(**Inventory.service_level_costs(0.9)), poisson_weeks(), pooled=True)
    demand = found.last.amount_distribution
    for rule, h in zip(found.last.rules["base-stock"].rules(), range(7), strict=False):
        enough = np.cumsum(demand.pmf[h]) >= 0.9 - 1e-9
        assert rule.level == demand.values[enough.argmax()]


def test_a_service_level_that_was_missed_is_said_in_points():
    came = SimpleNamespace(
        service=SimpleNamespace(without_stock_out=0.8), test=SimpleNamespace(values=np.zeros((30, 7)))
    )
    (remark,) = service_remarks(came, 0.95)  # 2 · √(0.95 · 0.05 / 210) = 0.030
    assert "in 95.0% of the steps; in the episodes that followed it was 80.0%. Chance alone explains a " in remark.text
    assert "a difference of 3.0 points at most." in remark.text
    came.service.without_stock_out = 0.93
    assert service_remarks(came, 0.95) == ()


def test_the_page_of_a_service_level_says_what_rewards_are(shop):
    here, _ = shop
    (here / "level.toml").write_text("service_level = 0.75\norder_cost = 2\n")
    done = run("inventory", "--demand", "demand.csv", "--config", "level.toml", "--out", "level", cwd=here)
    assert done.returncode == 0, done.stderr
    first = done.stdout.split("## Read this first")[1].split("##")[0]
    assert "no stock-out in 75 % of the steps. It stands for a cost of 1 for each unit left" in first
    assert "and of 3 for each that is missing, with price and unit cost 0." in first
    assert "in multiples of the cost of holding a unit for a step" in first
    assert "Assumed, because not given: storage 0." in first


def test_costs_that_were_assumed_are_in_what_is_read_first(shop):
    _, printed = shop
    first = printed.split("## Read this first")[1].split("##")[0]
    assert "- Assumed, because not given: storage 0, penalty 0. Give what it is for you" in first
    found = ucbf.learn(Queue(horizon=7, capacity=30, max_arrivals=20), poisson_weeks(20))
    page = advice.summary(found, {"horizon", "service_cost"})
    assert "- Assumed, because not given: waiting_cost 1, rejection_cost 20, end_cost 0. Give" in page
    assert "because not given" not in advice.summary(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--demand", "none.csv"], "there is no file 'none.csv'"),
        (["--column", "sales"], "demand.csv has no column 'sales'; it has 'date', 'units'"),
        (["--holding", "-1"], "holding is -1; it must be 0 or more"),
        (["--config", "bad.toml"], "bad.toml: inventory has no parameter 'prize'"),
        (["--config", "broken.toml"], "broken.toml is not TOML"),
        (["--config", "text.toml"], "text.toml: price is '9'; it must be a number"),
        (["--config", "pairs.toml"], "pairs.toml: price_breaks is '3'; it must be a list of pairs of numbers"),
        (["--review", "1.5"], "1.5 is not a whole number"),
        (["--config", "dash.toml"], "did you mean 'max_demand'?"),
        (["--horizon", "0"], "horizon is 0; it must be 1 or more"),
        (["--unit", "1000"], "a unit of 1000 rounds every demand to 0"),
        (["--horizon", "300"], "280 rows make 0 whole episodes of 300 steps"),
        (["--train", "0"], "train is 0; it must be above 0"),
        (["--max-demand", "3"], "column 'units': demand"),
        (["--holding", "0,25"], 'unable to convert "0,25" into float. Write 0.25'),
        (["--penalty", "1.234,5"], "Write 1234.5"),
        (["--capacity", "7.5"], "capacity is 7.5, which is not a multiple of unit 1"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(shop, change, message):
    here, _ = shop
    (here / "bad.toml").write_text("prize = 3\n")
    (here / "broken.toml").write_text("price = \n")
    (here / "text.toml").write_text('price = "9"\n')
    (here / "pairs.toml").write_text('price_breaks = [[10, "3"]]\n')
    (here / "dash.toml").write_text("max-demand = 9\n")
    given = change if change[0] == "--demand" else ["--demand", "demand.csv", *change]
    given = [*PRICES, *given]
    done = run("inventory", *given, cwd=here)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_bad_file_is_told_by_the_command(tmp_path):
    (tmp_path / "bad.csv").write_text("date,units\n2024-01-01,3\n2024-01-02,-4\n")
    done = run("inventory", "--demand", "bad.csv", *PRICES, cwd=tmp_path)
    said = "ucbf: bad.csv, row 3, column 'units': -4 is below 0, the least that makes sense here; correct it\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.slow
def test_the_other_systems_have_their_commands(tmp_path):
    power = ["--demand", DATA / "power.csv", "--column", "demand_gwh", "--price-file", DATA / "power.csv"]
    prices = ["--price-column", "price_eur_per_mwh", "--unit", 2, "--shortage-price", 200]
    done = run("battery", *power, *prices, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "buy up to" in done.stdout
    done = run("reservoir", "--inflow", DATA / "fulda.csv", "--unit", 20, "--train", 1, cwd=tmp_path)
    assert "release" in done.stdout
    assert "Nothing: all episodes were learned from" in done.stdout


def test_a_queue_has_its_command(tmp_path):
    (tmp_path / "calls.csv").write_text("calls\n" + "\n".join(map(str, np.random.default_rng(0).poisson(4, 300))))
    service = ["--service", 0, 3, 6, "--service-cost", 0, 2, 9]
    done = run("queue", "--arrivals", "calls.csv", "--horizon", 5, *service, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "hour 1" in done.stdout


def test_a_price_is_needed_for_every_step(tmp_path):
    (tmp_path / "short.csv").write_text("time,price\n2000-06-05 00:00,3\n2000-06-05 01:00,4\n")
    power = ["--demand", DATA / "power.csv", "--column", "demand_gwh"]
    done = run("battery", *power, "--price-file", "short.csv", cwd=tmp_path)
    assert "short.csv, column 'price': the prices end at 2000-06-05 01:00:00, the demand at " in done.stderr


def poisson_weeks(K=60, mean=6):
    series = data.Series(np.random.default_rng(0).poisson(mean, 7 * K).astype(float), None, "units", "memory")
    return data.episodes(series, 7)


def test_advice_is_the_plan_with_the_counted_law():
    found = ucbf.learn(Inventory(), poisson_weeks(), pooled=False, ongoing=False)
    every = poisson_weeks().values
    counted = np.array([np.bincount(every[:, h].astype(int), minlength=16) / len(every) for h in range(7)])
    np.testing.assert_allclose(found.last.amount_distribution.pmf, counted, atol=1e-12)
    world = Inventory().world(ucbf.Disturbance(counted))
    np.testing.assert_array_equal(found.policy.actions, ucbf.optimal(world).policy)
    assert found.value == pytest.approx(ucbf.optimal(world).v[0, 0])
    assert found.certificate.gap[0] > found.loss >= 0
    assert "Advice(inventory, 60 episodes learned from, 18 judged by)" in repr(found)


def test_the_estimated_loss_is_what_95_of_100_resampled_histories_miss_less_than():
    found = ucbf.learn(Inventory(), poisson_weeks(), pooled=False, ongoing=False)
    amounts, rng, missed = found.learned.values.astype(int), np.random.default_rng(0), []
    shop = Inventory()

    def world(weeks):
        counted = [np.bincount(amounts[weeks, h], minlength=16) / len(weeks) for h in range(7)]
        return shop.world(ucbf.Disturbance(counted))

    truth = world(np.arange(len(amounts)))
    best = ucbf.optimal(truth).v[0, 0]
    for _ in range(100):
        weeks = rng.choice(len(amounts), len(amounts))
        missed.append(best - ucbf.evaluate(truth, ucbf.optimal(world(weeks)).policy)[0, 0])
    assert found.loss == pytest.approx(np.quantile(missed, 0.95))
    assert found.loss > 1.2 * np.median(missed)


def test_business_that_goes_on_has_no_last_day():
    # The law is the same every day, and so, without an end to plan for, nearly is the rule; with an end it is not.
    found = ucbf.learn(Inventory(order_cost=12), poisson_weeks(), pooled=False)
    again = ucbf.learn(Inventory(order_cost=12), poisson_weeks(), pooled=False, ongoing=False)
    spread = [np.ptp([rule.level for rule in each.policy.rules()]) for each in (found, again)]
    assert spread[0] < spread[1]


def test_an_endless_plan_by_hand():
    # One state, one action, reward 3 a step, two steps, discount 1/2: 3 + 1.5 + v/4 = v, v = 6.
    system = ucbf.System([[0]], [[3.0]], 2, discount=0.5)
    assert ucbf.endless(system, ucbf.Disturbance([1.0]), tolerance=1e-12).terminal == pytest.approx([6.0])
    # Two states, stay or go, reward 1 in state 1 only: without discount state 1 is worth one step more, for ever.
    system = ucbf.System([[0, 1], [1, 0]], [[0.0, 0.0], [1.0, 1.0]], 1, boundary="strict")
    assert np.ptp(ucbf.endless(system, ucbf.Disturbance([1.0])).terminal) == pytest.approx(1.0, abs=1e-3)


def test_pooling_takes_one_law_around_the_means():
    found = ucbf.learn(Inventory(), poisson_weeks(19))
    assert found.pooled
    assert found.agent.params["prior_weight"] == 19
    for h in range(7):
        assert found.last.amount_distribution.mean(h) == pytest.approx(found.learned.profile[h], abs=1)
    assert not ucbf.learn(Inventory(), poisson_weeks(20)).pooled


def test_judging_is_the_same_for_everyone():
    found = ucbf.learn(Inventory(), poisson_weeks(), pooled=False, ongoing=False)
    w = Inventory().disturbances(found.test.values)
    judged = found.judged.episode(0)
    np.testing.assert_allclose(found.rewards[advice.LEARNED], ucbf.replay(judged.policy, w).reward)
    for name, rule in judged.rules.items():
        np.testing.assert_allclose(found.rewards[name], ucbf.replay(rule, w).reward)


def test_prices_of_the_day_are_used_on_the_day():
    series = data.Series(np.full(40, 3.0), None, "kw", "memory")
    dear_first = [{"prices": (9.0, 1.0)}, {"prices": (1.0, 9.0)}] * 10
    store = Battery(horizon=2, capacity=6, max_buy=6, max_demand=4, shortage_price=20, end_value=0)
    found = ucbf.learn(store, data.episodes(series, 2), changes=dear_first, pooled=False)
    # Demand is 3 an hour: on days that begin dear 3 are bought at 9 and 3 at 1, on others 6 at 1.
    assert sorted(set(found.rewards[advice.LEARNED].round(6))) == [-30.0, -6.0]
    assert not found.ongoing
    with pytest.raises(ValueError, match="changes has 1 entries"):
        ucbf.learn(store, data.episodes(series, 2), changes=dear_first[:1])


def test_accounts_add_up_to_money_when_prices_change():
    # What is left is credited on one day and charged on the next: together they pay cash, and for the rest at the end.
    store = Battery(horizon=2, capacity=10, max_buy=6, max_demand=2, shortage_price=20)
    series = data.Series(np.ones(80), None, "kw", "memory")
    prices = [{"prices": (8.0, 10.0)}, {"prices": (0.5, 1.5)}] * 20
    found = ucbf.learn(store, data.episodes(series, 2), changes=prices, pooled=False)
    days = [store.replace(end_value=5.0, **change) for change in prices[28:]]
    w = np.full((12, 2), -1)
    policies = [day.policy(ucbf.optimal(ucbf.World(day.system, found.last.distribution))) for day in days]
    seen = ucbf.replay(lambda k: policies[k], w, start=0)
    bought = [[day.action_quantities[a] for a in row] for day, row in zip(days, seen.actions, strict=True)]
    cash = sum(-day.prices[h] * bought[k][h] for k, day in enumerate(days) for h in range(2))
    assert seen.reward.sum() == pytest.approx(cash + 5.0 * seen.states[-1, -1])
    np.testing.assert_allclose(seen.reward, found.rewards[advice.LEARNED])


def test_a_forecast_is_not_thrown_away():
    rng = np.random.default_rng(0)
    level = np.repeat(rng.integers(2, 14, 60), 7).astype(float)
    series = data.Series(np.clip(level + rng.integers(-1, 2, 420), 0, None), None, "units", "memory")
    forecast = [{"profile": (float(x),) * 7} for x in level[::7]]
    blind = ucbf.learn(Inventory(capacity=40), data.episodes(series, 7))
    told = ucbf.learn(Inventory(capacity=40), data.episodes(series, 7), changes=forecast)
    assert told.rewards[advice.LEARNED].mean() > blind.rewards[advice.LEARNED].mean() + 5


def test_weekdays_and_weekends_have_policies_of_their_own():
    hours = np.tile(np.concatenate([np.full(120, 2.0), np.full(48, 6.0)]), 10)
    times = tuple(datetime(2024, 1, 1) + timedelta(hours=i) for i in range(len(hours)))
    noisy = hours + np.random.default_rng(0).integers(-1, 2, len(hours))
    days = data.episodes(data.Series(noisy, times, "calls", "memory"), 24)
    found = ucbf.learn(Queue(horizon=24, capacity=30, max_arrivals=12), days, ongoing=True)
    assert list(found.by_kind) == ["weekday", "weekend"]
    assert found.by_kind["weekend"].amount_distribution.mean(3) == pytest.approx(6, abs=0.3)
    assert found.by_kind["weekday"].amount_distribution.mean(3) == pytest.approx(2, abs=0.3)
    assert "### weekend" in advice.summary(found)
    by_kind = {kind: found.rewards[advice.LEARNED][[k == kind for k in found.test.kinds]] for kind in found.by_kind}
    expected = 5 / 7 * by_kind["weekday"].mean() + 2 / 7 * by_kind["weekend"].mean()
    assert found.value == pytest.approx(expected, rel=0.1)


def test_no_demand_is_ever_below_zero():
    quiet = np.random.default_rng(0).poisson((1, 1, 1, 1, 1, 12, 12), (30, 7)).astype(float)
    weeks = data.episodes(data.Series(quiet.ravel(), None, "u", "m"), 7)
    found = ucbf.learn(Inventory(capacity=40, max_demand=30), weeks, pooled=True)
    law = found.last.amount_distribution
    assert "that is NOT the same" in advice.summary(found)
    assert law.pmf[:, law.values < 0].sum() == 0
    np.testing.assert_allclose(law.pmf.sum(axis=1), 1)


def test_a_discount_does_not_take_the_value_away():
    found = ucbf.learn(Inventory(discount=0.99), poisson_weeks(), pooled=False)
    plain = ucbf.learn(Inventory(), poisson_weeks(), pooled=False)
    assert found.value == pytest.approx(plain.value, rel=0.1)


def test_few_episodes_prove_nothing():
    found = ucbf.learn(Inventory(), poisson_weeks(6))
    assert np.isnan(found.loss)
    page = advice.summary(found)
    assert "not to be told from 6 episodes" in page
    assert "take it as a first guess" in page
    assert "So few episodes (2) do not settle who is better" in page


def test_sizes_suit_the_series():
    given = advice.suggested_parameters(Inventory, np.array([0.0, 300, 693]), {"price": 3.0, "unit": None})
    assert given == {"unit": 20.0, "max_demand": 1040.0, "capacity": 1400.0, "price": 3.0}
    assert advice.suggested_parameters(Reservoir, np.array([0.1, 0.2]), {})["unit"] == 0.005
    assert [advice.nice_ceiling(x) for x in (0.03, 1, 1.1, 6, 20.1)] == [0.05, 1, 2, 10, 50]


def test_one_value_serves_all_steps_and_several_are_one_each():
    flags = SimpleNamespace(prices=[3.0], target=[1.0, 2.0], capacity=9.0, initial=None)
    assert given_parameters(Battery, flags, None) == {"prices": 3.0, "target": [1.0, 2.0], "capacity": 9.0}


def test_the_page_says_what_was_done_to_the_rows(tmp_path):
    begin = np.datetime64("2024-03-24T23:00")  # midnight of a Monday in Berlin, a week before the clock is set
    hours = begin + 60 * np.arange(24 * 21 - 1)
    (tmp_path / "calls.csv").write_text("time,calls\n" + "".join(f"{t}Z,{i % 5}\n" for i, t in enumerate(hours)))
    done = run("queue", "--arrivals", "calls.csv", "--time-zone", "Europe/Berlin", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "504 rows; episodes of 24 steps, the first from 2024-03-25, the last from 2024-04-14" in done.stdout
    assert "The clock was set forward once, on 2024-03-31: the hour that it skips is taken as the mean" in done.stdout
    done = run("queue", "--arrivals", "calls.csv", "--time-zone", "Mars", cwd=tmp_path)
    assert (done.returncode, done.stderr[:44]) == (2, "ucbf: time_zone: unknown time zone 'Mars'; g")


def test_of_very_many_episodes_enough_judge_and_are_resampled(monkeypatch):
    whole = ucbf.learn(Inventory(), poisson_weeks(60))
    monkeypatch.setattr("ucbf.advice.training.MOST_JUDGED", 7 * 10)
    monkeypatch.setattr("ucbf.advice.resampling.MOST_RESAMPLED", 7 * 20)
    found = ucbf.learn(Inventory(), poisson_weeks(60))
    assert (len(whole.training), len(whole.test)) == (42, 18)
    assert (len(found.training), len(found.test)) == (42, 10)
    np.testing.assert_array_equal(found.rewards[advice.LEARNED], whole.rewards[advice.LEARNED][:10])
    np.testing.assert_array_equal(found.policy.actions, whole.policy.actions)
    assert found.loss > whole.loss  # of histories that are half as long
    assert "42 to learn from, 10 to judge by. The 8 after them settle no more, and did not judge." in advice.summary(
        found
    )
    assert "after them" not in advice.summary(whole)
