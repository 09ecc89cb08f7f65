"""``ucbf learn``, and what it is made of: from a file to a policy and a page."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ucbf
from ucbf import advice, data
from ucbf.systems import Battery, Inventory, Reservoir

UCBF = [sys.executable, "-c", "from ucbf.cli import main; main()"]
DATA = Path(__file__).parents[1] / "examples" / "data"


def run(*arguments, cwd):
    return subprocess.run([*UCBF, "learn", *map(str, arguments)], capture_output=True, text=True, cwd=cwd)


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
    names = "agent.npz comparison.csv law.csv policy.csv policy.pdf policy.png policy.svg summary.md"
    assert " ".join(sorted(path.name for path in out.iterdir())) == names
    page = (out / "summary.md").read_text()
    assert page in printed
    assert "28 were learned from, 12 kept to judge by" in page
    assert "nothing speaks against independence" in page
    assert "order up to" in page
    with (out / "policy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["day", "stock", "order"]
    assert rows[0]["day"] == "Mon"
    with (out / "law.csv").open() as file:
        law = list(csv.DictReader(file))
    assert sum(float(row["probability"]) for row in law if row["day"] == "Tue") == pytest.approx(1)


def test_the_agent_it_writes_goes_on(shop):
    here, _ = shop
    agent = ucbf.load(here / "results" / "inventory" / "agent.npz")
    with (here / "results" / "inventory" / "policy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert agent.act(0, 0) == float(rows[0]["order"])
    agent.observe(0, 0, agent.act(0, 0), 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--demand", "none.csv"], "there is no file 'none.csv'"),
        (["--column", "sales"], "demand.csv has no column 'sales'; it has 'date', 'units'"),
        (["--holding", "-1"], "holding is -1; it must be 0 or more"),
        (["--config", "bad.toml"], "bad.toml: inventory has no parameter 'prize'"),
        (["--config", "broken.toml"], "broken.toml is not TOML"),
        (["--horizon", "300"], "280 rows make 0 whole episodes of 300 steps"),
        (["--train", "0"], "train is 0; it must be above 0"),
        (["--max-demand", "3"], "column 'units': demand"),
        (["--capacity", "7.5"], "capacity / unit is 7.5"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(shop, change, message):
    here, _ = shop
    (here / "bad.toml").write_text("prize = 3\n")
    (here / "broken.toml").write_text("price = \n")
    given = change if change[0] == "--demand" else ["--demand", "demand.csv", *change]
    done = run("inventory", *given, cwd=here)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_bad_file_is_told_by_the_command(tmp_path):
    (tmp_path / "bad.csv").write_text("date,units\n2024-01-01,3\n2024-01-02,-4\n")
    done = run("inventory", "--demand", "bad.csv", cwd=tmp_path)
    said = "ucbf: bad.csv, row 3, column 'units': -4 is below 0, the least that makes sense here\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_the_other_systems_have_their_commands(tmp_path):
    power = ["--demand", DATA / "power.csv", "--column", "demand_gwh", "--price-file", DATA / "power.csv"]
    prices = ["--price-column", "price_eur_per_mwh", "--unit", 2, "--shortage-price", 200]
    done = run("battery", *power, *prices, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "buy up to" in done.stdout
    done = run("reservoir", "--inflow", DATA / "fulda.csv", "--unit", 20, "--train", 1, cwd=tmp_path)
    assert "release" in done.stdout
    assert "that followed" not in done.stdout
    (tmp_path / "calls.csv").write_text("calls\n" + "\n".join(map(str, np.random.default_rng(0).poisson(4, 300))))
    service = ["--service", 0, 3, 6, "--service-cost", 0, 2, 9]
    done = run("queue", "--arrivals", "calls.csv", "--horizon", 5, *service, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "hour 1" in done.stdout


def test_a_price_is_needed_for_every_step(tmp_path):
    (tmp_path / "short.csv").write_text("time,price\n2000-06-05 00:00,3\n2000-06-05 01:00,4\n")
    power = ["--demand", DATA / "power.csv", "--column", "demand_gwh"]
    done = run("battery", *power, "--price-file", "short.csv", cwd=tmp_path)
    assert "short.csv, column 'price': 2 rows, but the demand needs 2016" in done.stderr


def poisson_weeks(K=60, mean=6):
    series = data.Series(np.random.default_rng(0).poisson(mean, 7 * K).astype(float), None, "units", "memory")
    return data.episodes(series, 7)


def test_advice_is_the_plan_with_the_counted_law():
    found = ucbf.advise(Inventory(), poisson_weeks(), pooled=False, ongoing=False)
    first = found.training.amounts
    counted = np.array([np.bincount(first[:, h].astype(int), minlength=16) / len(first) for h in range(7)])
    np.testing.assert_allclose(found.demand.pmf, counted, atol=1e-12)
    world = Inventory().world(ucbf.Disturbance(counted))
    np.testing.assert_array_equal(found.policy.actions, ucbf.optimal(world).policy)
    assert found.value == pytest.approx(ucbf.optimal(world).v[0, 0])
    assert found.certificate.gap[0] > found.loss >= 0


def test_business_that_goes_on_has_no_last_day():
    # The law is the same every day, and so, without an end to plan for, nearly is the rule; with an end it is not.
    found = ucbf.advise(Inventory(order_cost=12), poisson_weeks(), pooled=False)
    again = ucbf.advise(Inventory(order_cost=12), poisson_weeks(), pooled=False, ongoing=False)
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
    found = ucbf.advise(Inventory(), poisson_weeks(20))
    assert found.pooled
    assert len(found.agent.law.pmf) == 1
    for h in range(7):
        assert found.demand.mean(h) == pytest.approx(found.training.profile[h], abs=1)


def test_judging_is_the_same_for_everyone():
    found = ucbf.advise(Inventory(), poisson_weeks(), pooled=False, ongoing=False)
    w = Inventory().disturbances(found.test.amounts)
    np.testing.assert_allclose(found.rewards[advice.LEARNED], ucbf.replay(found.policy, w).reward)
    for name, rule in found.rules.items():
        np.testing.assert_allclose(found.rewards[name], ucbf.replay(rule, w).reward)


def test_prices_of_the_day_are_used_on_the_day():
    series = data.Series(np.full(40, 3.0), None, "kw", "memory")
    dear_first = [{"prices": (9.0, 1.0)}, {"prices": (1.0, 9.0)}] * 10
    store = Battery(horizon=2, capacity=6, max_buy=6, max_demand=4, shortage_price=20, end_value=0)
    found = ucbf.advise(store, data.episodes(series, 2), changes=dear_first, pooled=False)
    # Demand is 3 an hour: on days that begin dear 3 are bought at 9 and 3 at 1, on others 6 at 1.
    assert sorted(set(found.rewards[advice.LEARNED].round(6))) == [-30.0, -6.0]
    assert not found.ongoing
    with pytest.raises(ValueError, match="changes has 1 entries"):
        ucbf.advise(store, data.episodes(series, 2), changes=dear_first[:1])


def test_sizes_suit_the_series():
    given = advice.suggested(Inventory, np.array([0.0, 300, 693]), {"price": 3.0, "unit": None})
    assert given == {"unit": 20.0, "max_demand": 1040.0, "capacity": 1400.0, "price": 3.0}
    assert advice.suggested(Reservoir, np.array([0.1, 0.2]), {})["unit"] == 0.005
    assert [advice.nice(x) for x in (0.03, 1, 1.1, 6, 20.1)] == [0.05, 1, 2, 10, 50]
