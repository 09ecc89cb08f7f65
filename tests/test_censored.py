"""Demand that an empty shelf hid: the product limit, draws from it, and what the page says."""

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, stats

import commands
import ucbf
from ucbf import advice, data
from ucbf.advice import censored_remark, missing_remark
from ucbf.systems import Inventory

N = 7 * 60


def weeks(amounts):
    return data.episodes(data.Series(np.ravel(amounts).astype(float), None, "units", "memory"), np.shape(amounts)[1])


def test_the_product_limit_by_hand():
    # 1, 2+, 2, 3+, 4, with + for "at least". At 1: 1 of 5. At 2: the 2+ may be this very 2, so 1 of (2, 3+, 4).
    # At 3 nothing is seen; at 4 one of one. P(1) = 1/5, P(2) = 4/5 · 1/3, P(4) = 4/5 · 2/3.
    support, pmf = data.product_limit(np.array([1, 2, 2, 3, 4.0]), np.array([1, 0, 1, 0, 1], bool))
    assert support.tolist() == [1, 2, 3, 4]
    expected = [Fraction(1, 5), Fraction(4, 15), 0, Fraction(8, 15)]
    np.testing.assert_allclose(pmf, [float(p) for p in expected])


def test_what_nothing_showed_is_at_the_largest_value():
    # 1, 2, 5+: a third is known only to be 5 or more.
    support, pmf = data.product_limit(np.array([5, 1, 2.0]), np.array([0, 1, 1], bool))
    assert support.tolist() == [1, 2, 5]
    np.testing.assert_allclose(pmf, [1 / 3] * 3)


def test_hidden_poisson_demand_comes_back():
    rng = np.random.default_rng(1)
    demand, stock = rng.poisson(10, (400, 7)), rng.integers(6, 18, (400, 7))
    sold, in_stock = np.minimum(demand, stock), demand < stock  # nothing left: there may have been more
    done = data.uncensored(weeks(sold), in_stock)
    found = done.episodes.values
    assert sold.mean() < 0.94 * demand.mean()
    assert np.quantile(sold, 0.9) < 0.94 * np.quantile(demand, 0.9)
    assert found.mean() == pytest.approx(demand.mean(), rel=0.02)
    assert np.quantile(found, 0.9) == pytest.approx(np.quantile(demand, 0.9), rel=0.03)
    assert (found >= sold).all()
    np.testing.assert_array_equal(found[in_stock], sold[in_stock])
    np.testing.assert_array_equal(found, data.uncensored(weeks(sold), in_stock).episodes.values)
    assert done.unresolved.sum() < 0.02 * (~in_stock).sum()


def test_draws_follow_the_law_given_what_was_sold():
    # Of one step: 1 and 4 were seen as often; one that sold 2 was 4, one that sold 4 is a guess.
    amounts = np.array([[1], [4]] * 5 + [[2], [4]])
    done = data.uncensored(weeks(amounts), np.array([True] * 10 + [False] * 2)[:, None])
    assert done.episodes.values[-2, 0] == 4
    assert 4 <= done.episodes.values[-1, 0] <= 8
    assert done.episodes.drawn == 2
    assert done.unresolved.ravel().tolist() == [False] * 11 + [True]


def slow_bell_curve(values, exact):
    """Literal: mean and spread of roots that make these values likeliest, some of which are at least so much."""
    y, least = np.sqrt(values + 3 / 8), np.sqrt(np.maximum(values - 0.5, 0) + 3 / 8)

    def against(at):
        mean, spread = at[0], math.exp(at[1])
        return -(stats.norm.logpdf(y[exact], mean, spread).sum() + stats.norm.logsf(least[~exact], mean, spread).sum())

    best = optimize.minimize(against, [y.mean(), math.log(y.std())], method="Nelder-Mead", options={"fatol": 1e-10})
    return best.x[0], math.exp(best.x[1])


@pytest.mark.parametrize(("mean", "level"), [(20, 18), (20, 22), (4, 5)])
def test_what_is_beyond_all_that_was_seen_follows_the_likeliest_bell_curve(mean, level):
    rng = np.random.default_rng(0)
    demand = rng.poisson(mean, 20_000)
    sold = np.minimum(demand, level).astype(float)
    exact = demand < level
    done = data.uncensored(weeks(sold[:, None]), exact[:, None])
    found = done.episodes.values.ravel()[~exact]
    assert done.unresolved.ravel().tolist() == (~exact).tolist()
    m, s = slow_bell_curve(sold, exact)
    edge = math.sqrt(level - 0.5 + 3 / 8)
    draws = stats.truncnorm((edge - m) / s, np.inf, m, s).rvs(100_000, random_state=1) ** 2 - 3 / 8
    assert found.mean() == pytest.approx(draws.mean(), rel=0.01)
    assert found.mean() == pytest.approx(demand[~exact].mean(), rel=0.05)
    np.testing.assert_allclose(
        np.quantile(found, [0.1, 0.5, 0.9]), np.quantile(demand[~exact], [0.1, 0.5, 0.9]), atol=1
    )


def test_a_level_that_is_always_sold_out_moves_when_learned_again():
    """A shelf that was filled to 18 a day, with a demand of 20: the plan fills it higher."""
    demand = np.random.default_rng(0).poisson(20, (60, 7))
    done = data.uncensored(weeks(np.minimum(demand, 18)), demand < 18)
    shop = Inventory(capacity=80, max_demand=60, price=9, unit_cost=4, holding=0.1, horizon=7)
    found = ucbf.learn(shop, done.episodes)
    policy = found.by_kind[""].policy
    assert policy.states[0] + policy.quantities[0, 0] >= 24
    assert found.certificate is None
    assert "of the amounts were not seen, and are draws" in advice.summary(found)


def test_a_step_with_few_amounts_is_drawn_from_all_steps():
    amounts = np.array([[2, 9]] * 4 + [[2, 3]] * 4)
    in_stock = np.array([[True, True]] * 4 + [[True, False]] * 4)  # step 1: four known amounts, all 9
    done = data.uncensored(weeks(amounts), in_stock)
    assert set(done.episodes.values[4:, 1]) == {9.0}
    amounts[:4, 1] = 3  # now 3 is the largest that was ever seen, in any step
    assert data.uncensored(weeks(amounts), in_stock).unresolved.sum() == 4


def test_episodes_that_are_learned_from_do_not_know_what_followed():
    amounts = np.array([[1], [4]] * 5 + [[2]] + [[9]] * 30)
    in_stock = (np.arange(41) != 10)[:, None]
    assert data.uncensored(weeks(amounts), in_stock, learned_from=11).episodes.values[10, 0] == 4
    drawn = {data.uncensored(weeks(amounts), in_stock, seed).episodes.values[10, 0] for seed in range(20)}
    assert drawn == {4.0, 9.0}


@pytest.mark.parametrize(
    ("sold_out", "kept", "first"),
    [(20, 2, False), (20, 3, True), (51, 0, True), (50, 0, False)],
)
def test_many_that_cannot_be_resolved_are_read_first(sold_out, kept, first):
    hidden = np.arange(100) < sold_out
    done = SimpleNamespace(
        sold=np.full(100, 4.0),
        sold_out=hidden,
        unknown=np.zeros(100, bool),
        unresolved=np.arange(100) < kept,
        sold_out_after=np.zeros(3, bool),
        episodes=SimpleNamespace(values=np.full(100, 5.0)),
    )
    remark = censored_remark(done, "open")
    assert remark.first == first
    assert f"{sold_out} of 100 steps were sold out" in remark.text
    assert "the mean rose from 4 to 5 (+25.0%)" in remark.text


def test_the_command_says_what_was_hidden(tmp_path):
    rng = np.random.default_rng(0)
    demand, stock = rng.poisson(10, N), rng.integers(6, 18, N)
    days = np.datetime64("2024-01-01") + np.arange(N)
    lines = zip(days, np.minimum(demand, stock), (demand < stock) * 1, strict=True)
    (tmp_path / "sales.csv").write_text("date,units,open\n" + "".join(f"{d},{u},{o}\n" for d, u, o in lines))
    shop = ["--demand", "sales.csv", "--column", "units", "--price", 9, "--unit-cost", 4]
    done = commands.ucbf("learn", "inventory", *shop, "--in-stock", "open", cwd=tmp_path)
    said = f"{int((demand >= stock).sum())} of {N} steps were sold out (column 'open'), so that the demand was at least"
    assert said in done.stdout
    assert f"the mean rose from {np.minimum(demand, stock).mean():.3g} to " in done.stdout


def test_a_log_of_stock_and_sales_says_which_days_sold_out(tmp_path):
    rng = np.random.default_rng(0)
    demand, came, shelf = rng.poisson(10, N), rng.integers(0, 6, N), rng.integers(6, 13, N)
    sold, days = np.minimum(demand, came + shelf), np.datetime64("2024-01-01") + np.arange(N)

    def written(rows):
        lines = (f"{d},{u},{s},{c},{o}\n" for d, u, s, c, o in rows)
        (tmp_path / "log.csv").write_text("date,units,stock,received,open\n" + "".join(lines))

    written(zip(days, sold, shelf, came, (demand < came + shelf) * 1, strict=True))
    shop = ["learn", "inventory", "--demand", "log.csv", "--column", "units", "--price", 9, "--unit-cost", 4]
    marked = commands.ucbf(*shop, "--in-stock", "open", "--out", "marked", cwd=tmp_path)
    logged = commands.ucbf(*shop, "--available", "stock", "received", "--out", "logged", cwd=tmp_path)
    assert "(column 'stock + received'), so that the demand was at least" in logged.stdout
    same = [text.stdout.replace("'stock + received'", "'open'").split("written to")[0] for text in (marked, logged)]
    assert same[0] == same[1]
    alone = commands.ucbf(*shop, "--available", "stock", cwd=tmp_path, check=False)
    assert alone.returncode == 2
    first = int((sold > shelf).argmax())
    assert (
        f"row {first + 2} ({days[first]}): {sold[first]} were sold (units) of {shelf[first]} that were there (stock), "
        f"in {int((sold > shelf).sum())} steps in all; name every column" in alone.stderr
    )
    both = commands.ucbf(*shop, "--available", "stock", "--in-stock", "open", cwd=tmp_path, check=False)
    assert "are both given; give one of them" in both.stderr


def test_where_every_step_was_sold_out_nothing_is_known_of_the_demand():
    episodes = weeks(np.full((10, 7), 4.0))
    remark = censored_remark(data.uncensored(episodes, np.zeros((10, 7), bool)), "open")
    assert remark.first
    assert remark.text.startswith("Every step was sold out (column 'open'): nothing shows how much more was asked for")


def test_missing_days_are_not_known(tmp_path):
    rng = np.random.default_rng(3)
    demand = np.tile([2, 4, 6, 8, 10, 12, 14], 60) + rng.integers(0, 2, N)
    there = rng.random(N) > 0.2
    there[[0, -1]] = True
    days = np.datetime64("2024-01-01") + np.arange(N)
    text = "date,units\n" + "".join(f"{d},{u}\n" for d, u, here in zip(days, demand, there, strict=True) if here)
    (tmp_path / "sales.csv").write_text(text)
    series = data.read_series(tmp_path / "sales.csv", gaps="unknown")
    n, first = (~there).sum(), days[~there][0]
    assert series.notes == (f"{n} days are missing and are taken as not known, the first {first} 00:00:00.",)
    episodes = data.episodes(series, 7)
    shop = ucbf.systems.Inventory(capacity=20, max_demand=16)
    for learn in (ucbf.advice.learn, ucbf.advice.learn_orders):
        with pytest.raises(ValueError, match=r"not known \(gaps='unknown'\); draw them .*uncensored\(episodes\)"):
            learn(shop, episodes)
    done = data.uncensored(episodes, learned_from=40)
    np.testing.assert_array_equal(done.unknown.ravel(), ~there)
    assert not done.sold_out.any()
    assert not done.unresolved.any()
    np.testing.assert_array_equal(done.episodes.values.ravel()[there], demand[there])
    drawn = done.episodes.values - np.array([2, 4, 6, 8, 10, 12, 14])  # each like the others of its weekday
    assert set(drawn.ravel()) == {0, 1}
    ucbf.advice.learn(shop, done.episodes)

    shop = ["--demand", "sales.csv", "--price", 9, "--unit-cost", 4, "--no-pictures"]
    done = commands.ucbf("learn", "inventory", *shop, "--gaps", "unknown", cwd=tmp_path)
    said = f"{n} of {N} steps are missing and were taken as not known (--gaps unknown): their amounts were drawn"
    assert said in done.stdout
    refused = commands.ucbf("learn", "inventory", *shop, cwd=tmp_path, check=False)
    assert "or that it is not known (--gaps unknown)" in refused.stderr


def test_missing_days_beside_days_that_were_sold_out():
    # Five days of 3 and one of 9 were seen. A day that sold 4 was 9; of a missing day nothing is known, so it may be 3.
    amounts = np.array([[3]] * 5 + [[9], [4], [0]])
    series = data.Series(amounts.ravel().astype(float), None, "units", "memory", unknown=np.arange(8) == 7)
    sold_out = (np.arange(8) == 6)[:, None]
    runs = [data.uncensored(data.episodes(series, 1), ~sold_out, seed) for seed in range(30)]
    assert {run.episodes.values[6, 0] for run in runs} == {9}
    assert {run.episodes.values[7, 0] for run in runs} == {3, 9}
    assert all(run.episodes.series.unknown is None for run in runs)
    after = data.Series(np.array([3.0, 9, 3, 9, 3, 9, 0]), None, "units", "memory", unknown=np.arange(7) == 6)
    assert data.uncensored(data.episodes(after, 2)).episodes.series.values.tolist() == [3, 9, 3, 9, 3, 9, 3]
    # All that is known was sold out: a missing day is drawn from what was sold.
    run = data.uncensored(data.episodes(series, 1), np.zeros((8, 1), bool))
    assert run.episodes.values[7, 0] in {3, 4, 9}
    nothing = data.Series(np.zeros(8), None, "units", "memory", unknown=np.ones(8, bool))
    with pytest.raises(data.UserError, match="memory: no step of the episodes to learn from is known"):
        data.uncensored(data.episodes(nothing, 1))


def test_steps_after_the_last_whole_episode_are_drawn_and_counted(tmp_path):
    rng = np.random.default_rng(0)
    days, demand, there = np.datetime64("2024-01-01") + np.arange(146), rng.poisson(20, 146), np.arange(146) < 140
    demand[140:] = 2
    rows = zip(days, demand, there * 1, strict=True)
    (tmp_path / "sales.csv").write_text("date,units,open\n" + "".join(f"{d},{u},{o}\n" for d, u, o in rows))
    episodes = data.episodes(data.read_series(tmp_path / "sales.csv", "units"), 7)
    done = data.uncensored(episodes, there)
    drawn = done.episodes.rest
    assert (len(drawn), done.sold_out_after.sum(), done.sold_out.sum()) == (6, 6, 0)
    assert all(amount in episodes.values[:, h] for h, amount in enumerate(drawn))
    assert drawn.mean() == pytest.approx(20, rel=0.25)  # six draws of deviation 4.5
    assert episodes.rest.tolist() == [2] * 6  # what was read is as it was
    # with those of the episodes alone, the shelf was never empty after them
    weekly = data.uncensored(episodes, np.ones((20, 7), bool))
    assert weekly.episodes.rest.tolist() == [2] * 6
    with pytest.raises(
        ValueError, match=r"in_stock has shape \(20,\); give \(146,\), one for each step of the series, or"
    ):
        data.uncensored(episodes, np.ones(20, bool))
    shop = ["--demand", "sales.csv", "--column", "units", "--lead-time", 2, "--price", 9, "--unit-cost", 4]
    said = commands.ucbf("learn", "inventory", *shop, "--in-stock", "open", "--no-pictures", cwd=tmp_path).stdout
    assert (
        "No step of the whole episodes was sold out, by column 'open', but 6 of the 6 steps after the last wh" in said
    )
    there[5] = False
    text = censored_remark(data.uncensored(episodes, there), "open").text
    assert text.startswith(
        "1 of 140 steps, and 6 of the 6 steps after the last whole episode, were sold out (column 'o"
    )


def test_steps_after_the_last_whole_day_are_drawn_from_days_of_their_kind():
    hours = np.datetime64("2024-01-01T00", "h") + np.arange(24 * 59 + 20)  # to a Thursday's evening
    weekday = (hours.astype("datetime64[D]").astype(int) + 3) % 7 < 5
    unknown = np.zeros(len(hours), bool)
    unknown[-10:-2] = True
    values = np.where(weekday, 100.0, 0) * ~unknown
    for seed in range(4):
        series = data.Series(values.copy(), hours, "load", "memory", unknown=unknown)
        done = data.uncensored(data.episodes(series, 24), seed=seed)
        assert done.episodes.rest.tolist() == [100] * 20
        assert done.unknown_after.sum() == 8
    for learn in (ucbf.advice.learn, ucbf.advice.learn_orders):
        with pytest.raises(ValueError, match=r"of the episodes, or after them, are not known \(gaps='unknown'\)"):
            learn(ucbf.systems.Inventory(horizon=24, capacity=200, max_demand=110), data.episodes(series, 24))
    assert missing_remark(done).text.startswith(
        "0 of 1416 steps, and 8 of the 20 steps after the last whole episode, a"
    )
